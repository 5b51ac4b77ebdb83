//! A queue discipline whose methods are Python's.
//!
//! The GIL is taken for each call. The object is the run's own, and time,
//! randomness and packets come in as arguments: which thread runs it, and what
//! runs beside it, makes no difference.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use aqmlab_aqm::{Backlog, Context, Handle, LinkEnv, Note, QueueDiscipline};
use aqmlab_core::{Packet, Stream, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::objects::{self, Link, PyPacket};
use super::{Class, PyConfig};

/// The end of a run by a fault of a queue in Python: unwinds to the runner.
pub struct Failure {
    /// Class, method, line and what happened.
    pub message: String,
    /// The exception that the class raised, if it raised one.
    pub cause: Option<PyErr>,
}

/// The end of a run that nobody waits for: unwinds to the runner.
pub struct Abandoned;

thread_local! {
    static ABANDONED: RefCell<Arc<AtomicBool>> = RefCell::default();
}

/// Runs on this thread end when `flag` is set.
pub fn abandon_with(flag: &Arc<AtomicBool>) {
    ABANDONED.set(Arc::clone(flag));
}

/// What goes wrong in a call.
enum Fault {
    Raised(PyErr),
    Broken(String),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Fault::Raised(error)
    }
}

/// An instance of a class, with the packets that it holds.
pub struct PyQueue {
    class: Arc<Class>,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    on_wakeup: Option<Py<PyAny>>,
    next_wakeup: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
    notes: Option<Py<PyAny>>,
    cx: Py<objects::Context>,
    /// Which queue the packets belong to.
    ledger: Arc<objects::Ledger>,
    /// The packets in the queue, by place.
    handles: Vec<Option<Handle>>,
    backlog: Backlog,
    wakeup: Option<Time>,
    now: Time,
    abandoned: Arc<AtomicBool>,
}

impl PyQueue {
    /// An instance of the class.
    ///
    /// # Panics
    /// With a [`Failure`] if the class does not let itself be made.
    pub fn new(config: &PyConfig, env: &LinkEnv) -> Self {
        let class = &config.class;
        Python::attach(|py| {
            Self::make(py, config, env)
                .map_err(|error| error.report(py, class, "__init__", Time::ZERO))
        })
        .unwrap_or_else(|failure| resume_unwind(failure))
    }

    fn make(py: Python<'_>, config: &PyConfig, env: &LinkEnv) -> Result<Self, Fault> {
        let keywords = PyDict::new(py);
        for (name, param) in &config.params {
            keywords.set_item(name, param.to_python(py, env)?)?;
        }
        let link = Bound::new(py, Link::of(env))?;
        let object = config.class.class.bind(py).call((link,), Some(&keywords))?;
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let optional = |name: &str| {
            let has = config.class.methods.iter().any(|each| each == name);
            has.then(|| method(name)).transpose()
        };
        // The queue's stream comes with the first call.
        let cx = objects::Context::new(Stream::from_state(0));
        let mut queue = PyQueue {
            class: Arc::clone(&config.class),
            enqueue: method("enqueue")?,
            dequeue: method("dequeue")?,
            on_wakeup: optional("on_wakeup")?,
            next_wakeup: optional("next_wakeup")?,
            observe: optional("observe")?,
            notes: optional("notes")?,
            ledger: Arc::clone(&cx.ledger),
            cx: Py::new(py, cx)?,
            handles: Vec::new(),
            backlog: Backlog::default(),
            wakeup: None,
            now: Time::ZERO,
            abandoned: ABANDONED.with_borrow(Arc::clone),
        };
        queue.ask_wakeup(py)?;
        Ok(queue)
    }

    /// Calls a method with everything around it; a fault ends the run.
    fn call(
        &mut self,
        cx: &mut Context<'_, Handle>,
        name: &'static str,
        call: impl FnOnce(&mut Self, Python<'_>) -> Result<Option<u32>, Fault>,
    ) -> Option<Handle> {
        if self.abandoned.load(Relaxed) {
            resume_unwind(Box::new(Abandoned));
        }
        self.now = cx.now;
        Python::attach(|py| {
            self.around(py, cx, name, call)
                .map_err(|fault| fault.report(py, &self.class, name, cx.now))
        })
        .unwrap_or_else(|failure| resume_unwind(failure))
    }

    fn around(
        &mut self,
        py: Python<'_>,
        cx: &mut Context<'_, Handle>,
        name: &str,
        call: impl FnOnce(&mut Self, Python<'_>) -> Result<Option<u32>, Fault>,
    ) -> Result<Option<Handle>, Fault> {
        {
            let mut own = self.cx.borrow_mut(py);
            own.now = cx.now.as_nanos();
            own.random = cx.random.clone();
            own.backlog = self.backlog;
            own.open = true;
        }
        let leaves = call(self, py)?;
        {
            let own = &mut *self.cx.borrow_mut(py);
            own.open = false;
            *cx.random = own.random.clone();
            for (place, reason) in own.marked.drain(..) {
                let handle =
                    self.handles[place as usize].as_mut().expect("only what is here is marked");
                cx.mark(handle, reason);
            }
            for (place, reason) in own.dropped.drain(..) {
                let handle = take(&mut self.handles, &mut self.backlog, place);
                cx.drop(handle, reason);
            }
        }
        let leaves = leaves.map(|place| take(&mut self.handles, &mut self.backlog, place));
        if self.ledger.lost() > 0 {
            let problem =
                "a packet was lost: it is neither kept, nor dropped by cx.drop, nor returned";
            return Err(Fault::Broken(problem.to_string()));
        }
        self.ask_wakeup(py)?;
        let held = self.backlog.packets;
        if name == "dequeue" && leaves.is_none() && held > 0 && self.wakeup.is_none() {
            let problem = format!("returned None, but the queue holds {held} packets");
            return Err(Fault::Broken(problem));
        }
        Ok(leaves)
    }

    fn ask_wakeup(&mut self, py: Python<'_>) -> Result<(), Fault> {
        let Some(next_wakeup) = &self.next_wakeup else { return Ok(()) };
        let answer = next_wakeup.bind(py).call0()?;
        let nanos: Option<u64> = answer.extract().map_err(|_| {
            Fault::Broken(format!("next_wakeup returned {answer}, not whole nanoseconds or None"))
        })?;
        self.wakeup = nanos.map(Time::from_nanos);
        match self.wakeup.filter(|at| *at < self.now) {
            None => Ok(()),
            Some(at) => {
                let at = at.as_nanos();
                Err(Fault::Broken(format!("next_wakeup returned {at}, a time that has passed")))
            }
        }
    }
}

/// The packet at `place` leaves the queue.
fn take(handles: &mut [Option<Handle>], backlog: &mut Backlog, place: u32) -> Handle {
    let handle = handles[place as usize].take().expect("a packet leaves once: that was checked");
    backlog.packets -= 1;
    backlog.bytes -= u64::from(handle.size());
    handle
}

impl QueueDiscipline<Handle> for PyQueue {
    fn enqueue(&mut self, handle: Handle, cx: &mut Context<'_, Handle>) {
        self.call(cx, "enqueue", |queue, py| {
            let packet = Bound::new(py, PyPacket::of(&handle, &queue.ledger))?;
            let (place, size) = (handle.place() as usize, u64::from(handle.size()));
            if queue.handles.len() <= place {
                queue.handles.resize_with(place + 1, || None);
            }
            queue.handles[place] = Some(handle);
            queue.backlog.packets += 1;
            queue.backlog.bytes += size;
            queue.enqueue.bind(py).call1((&packet, &queue.cx))?;
            if !packet.get().was_dropped() {
                packet.get().is_queued_now();
            }
            Ok(None)
        });
    }

    fn dequeue(&mut self, cx: &mut Context<'_, Handle>) -> Option<Handle> {
        self.call(cx, "dequeue", |queue, py| {
            let given = queue.dequeue.bind(py).call1((&queue.cx,))?;
            if given.is_none() {
                return Ok(None);
            }
            let Ok(packet) = given.cast::<PyPacket>() else {
                let problem = format!("returned {}, not a packet or None", given.repr()?);
                return Err(Fault::Broken(problem));
            };
            let packet = packet.get();
            packet
                .leave(&queue.ledger)
                .map_err(|problem| Fault::Broken(format!("returned a packet, but {problem}")))?;
            Ok(Some(packet.place()))
        })
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_, Handle>) {
        self.call(cx, "on_wakeup", |queue, py| {
            if let Some(on_wakeup) = &queue.on_wakeup {
                on_wakeup.bind(py).call1((&queue.cx,))?;
            }
            Ok(None)
        });
        if self.wakeup == Some(cx.now) {
            let problem = "next_wakeup stays at the time that is now: the clock would stand still";
            let fault = Fault::Broken(problem.to_string());
            let failure = Python::attach(|py| fault.report(py, &self.class, "on_wakeup", cx.now));
            resume_unwind(failure);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let Some(observe) = &self.observe else { return };
        let seen = Python::attach(|py| {
            let call = || -> PyResult<Vec<(String, f64)>> { pairs(&observe.bind(py).call0()?) };
            call()
                .map_err(|error| Fault::Raised(error).report(py, &self.class, "observe", self.now))
        });
        for (name, value) in seen.unwrap_or_else(|failure| resume_unwind(failure)) {
            see(kept(&name), value);
        }
    }

    fn notes(&self) -> Vec<Note> {
        let Some(notes) = &self.notes else { return Vec::new() };
        let said = Python::attach(|py| {
            let call = || -> PyResult<Vec<(String, String)>> { pairs(&notes.bind(py).call0()?) };
            call().map_err(|error| Fault::Raised(error).report(py, &self.class, "notes", self.now))
        });
        let said = said.unwrap_or_else(|failure| resume_unwind(failure));
        said.into_iter().map(|(id, text)| Note { id: kept(&id), text }).collect()
    }
}

/// The keys and values of a mapping.
fn pairs<'py, T>(mapping: &Bound<'py, PyAny>) -> PyResult<Vec<(String, T)>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    mapping.call_method0("items")?.try_iter()?.map(|pair| pair?.extract::<(String, T)>()).collect()
}

/// The same text for as long as the program runs: names of what a class shows
/// are few, and stand in every sample.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().expect("no holder of this lock panics");
    if let Some(known) = kept.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.to_string().into_boxed_str());
    kept.insert(new);
    new
}

impl Fault {
    /// The one message that a user gets.
    fn report(self, py: Python<'_>, class: &Class, method: &str, now: Time) -> Box<Failure> {
        let (problem, cause) = match self {
            Fault::Raised(error) => (None, Some(error)),
            Fault::Broken(problem) => (Some(problem), None),
        };
        // With its traceback, which names the line.
        let exception = cause.as_ref().map(|error| error.clone_ref(py).into_value(py));
        let arguments =
            (&class.name, class.class.bind(py), method, now.as_secs_f64(), &problem, exception);
        let message = py
            .import("aqmlab.queue")
            .and_then(|module| module.call_method1("fault", arguments)?.extract())
            .unwrap_or_else(|error: PyErr| format!("{}: {method}: {error}", class.name));
        Box::new(Failure { message, cause })
    }
}
