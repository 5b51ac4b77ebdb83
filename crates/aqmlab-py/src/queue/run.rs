//! Queue discipline with Python methods.
//!
//! Each call acquires the GIL. The object belongs to the run, and time, randomness and packets are
//! arguments, so results do not depend on threads or on other runs.

use std::sync::Arc;

use aqmlab_aqm::{Backlog, CloneDiscipline, Context, LinkEnv, Note, QueueDiscipline};
use aqmlab_core::{Limit, Packet, Stream, Time};
use aqmlab_load::kept;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::objects::{self, Link, PyPacket};
use crate::custom::fault::{Abandonment, Failure, Fault, attached, deep_copy, pairs, show};
use crate::custom::{Class, PyConfig};

/// Instance of a class, with its methods.
struct Object {
    itself: Py<PyAny>,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    on_wakeup: Option<Py<PyAny>>,
    next_wakeup: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
    notes: Option<Py<PyAny>>,
    change: Option<Py<PyAny>>,
}

impl Object {
    fn new(class: &Class, object: Bound<'_, PyAny>) -> PyResult<Self> {
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let optional = |name: &str| class.has(name).then(|| method(name)).transpose();
        Ok(Object {
            enqueue: method("enqueue")?,
            dequeue: method("dequeue")?,
            on_wakeup: optional("on_wakeup")?,
            next_wakeup: optional("next_wakeup")?,
            observe: optional("observe")?,
            notes: optional("notes")?,
            change: optional("change")?,
            itself: object.unbind(),
        })
    }
}

/// Instance of a class, with its queued packets.
pub struct PyQueue {
    class: Arc<Class>,
    object: Object,
    cx: Py<objects::Context>,
    /// Accounts of the packets of this queue.
    ledger: Arc<objects::Ledger>,
    /// Packets in the queue, by slot.
    packets: Vec<Option<Packet>>,
    /// Free slots.
    free: Vec<u32>,
    backlog: Backlog,
    wakeup: Option<Time>,
    now: Time,
    abandonment: Abandonment,
}

impl PyQueue {
    /// Creates an instance of the class.
    ///
    /// # Panics
    /// Panics with a [`Failure`] if the constructor fails.
    pub fn new(config: &PyConfig, env: &LinkEnv) -> Self {
        let class = &config.class;
        attached(|py| {
            Self::make(py, config, env)
                .map_err(|error| error.report(py, class, "__init__", Time::ZERO))
        })
    }

    fn make(py: Python<'_>, config: &PyConfig, env: &LinkEnv) -> Result<Self, Fault> {
        let object = config.make(py, Link::of(env), &resolved(py, env))?;
        // The first call sets the queue's stream.
        let cx = objects::Context::new(Stream::from_state(0));
        let mut queue = PyQueue {
            class: Arc::clone(&config.class),
            object: Object::new(&config.class, object)?,
            ledger: Arc::clone(&cx.ledger),
            cx: Py::new(py, cx)?,
            packets: Vec::new(),
            free: Vec::new(),
            backlog: Backlog::default(),
            wakeup: None,
            now: Time::ZERO,
            abandonment: Abandonment::of_this_thread(),
        };
        queue.ask_wakeup(py)?;
        Ok(queue)
    }

    /// Copies the object, with the packets that it keeps.
    fn copy(&self, py: Python<'_>) -> Result<Self, Box<Failure>> {
        let memo = PyDict::new(py);
        let begin = || -> PyResult<Py<objects::Context>> {
            let cx = Py::new(py, objects::Context::new(Stream::from_state(0)))?;
            memo.set_item(objects::ACCOUNTS, &cx)?;
            memo.set_item(self.cx.as_ptr() as usize, &cx)?;
            Ok(cx)
        };
        let failed = |error| Fault::Raised(error).report(py, &self.class, "enqueue", self.now);
        let cx = begin().map_err(failed)?;
        let object = deep_copy(&self.class, self.object.itself.bind(py), &memo)?;
        let object = Object::new(&self.class, object).map_err(failed)?;
        let ledger = Arc::clone(&cx.borrow(py).ledger);
        Ok(PyQueue {
            class: Arc::clone(&self.class),
            object,
            ledger,
            cx,
            packets: self.packets.clone(),
            free: self.free.clone(),
            backlog: self.backlog,
            wakeup: self.wakeup,
            now: self.now,
            abandonment: Abandonment::of_this_thread(),
        })
    }

    /// Changes its parameters.
    pub fn change(&mut self, config: &PyConfig, env: &LinkEnv, cx: &mut Context<'_>) {
        self.call(cx, "change", |queue, py| {
            let change = queue.object.change.as_ref().expect("checked: the class has it");
            let keywords = config.keywords(py, &resolved(py, env))?;
            change.bind(py).call((&queue.cx,), Some(&keywords))?;
            Ok(None)
        });
    }

    /// Calls a method, and checks its result; a fault ends the run.
    fn call(
        &mut self,
        cx: &mut Context<'_>,
        name: &'static str,
        call: impl FnOnce(&mut Self, Python<'_>) -> Result<Option<u32>, Fault>,
    ) -> Option<Packet> {
        self.abandonment.check();
        self.now = cx.now;
        attached(|py| {
            self.around(py, cx, name, call)
                .map_err(|fault| fault.report(py, &self.class, name, cx.now))
        })
    }

    fn around(
        &mut self,
        py: Python<'_>,
        cx: &mut Context<'_>,
        name: &str,
        call: impl FnOnce(&mut Self, Python<'_>) -> Result<Option<u32>, Fault>,
    ) -> Result<Option<Packet>, Fault> {
        {
            let mut own = self.cx.borrow_mut(py);
            own.now = cx.now.as_nanos();
            own.random = cx.random.clone();
            own.backlog = self.backlog;
            own.open = true;
        }
        let leaves = call(self, py)?;
        let dropped = {
            let own = &mut *self.cx.borrow_mut(py);
            own.open = false;
            *cx.random = own.random.clone();
            for (place, reason) in own.marked.drain(..) {
                let packet =
                    self.packets[place as usize].as_mut().expect("only what is here is marked");
                cx.mark(packet, reason);
            }
            std::mem::take(&mut own.dropped)
        };
        for (place, reason) in dropped {
            let packet = self.take(place);
            cx.drop(packet, reason);
        }
        let leaves = leaves.map(|place| self.take(place));
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

    /// Takes out the packet at `place`.
    fn take(&mut self, place: u32) -> Packet {
        let packet = self.packets[place as usize].take();
        let packet = packet.expect("a packet leaves once: that was checked");
        self.free.push(place);
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.size());
        packet
    }

    fn ask_wakeup(&mut self, py: Python<'_>) -> Result<(), Fault> {
        let Some(next_wakeup) = &self.object.next_wakeup else { return Ok(()) };
        let answer = next_wakeup.bind(py).call0()?;
        let nanos: Option<u64> = answer.extract().map_err(|_| {
            Fault::Broken(format!("next_wakeup returned {answer}, not whole nanoseconds or None"))
        })?;
        self.wakeup = nanos.map(Time::from_nanos);
        match self.wakeup.filter(|at| *at < self.now) {
            None => Ok(()),
            Some(at) => {
                let at = at.as_nanos();
                Err(Fault::Broken(format!("next_wakeup returned {at}, a time in the past")))
            }
        }
    }
}

/// Converts limits for a link.
fn resolved<'py>(
    py: Python<'py>,
    env: &LinkEnv,
) -> impl Fn(Limit) -> PyResult<Bound<'py, PyAny>> + use<'py> {
    let (rate, base_rtt) = (env.rate, env.base_rtt);
    move |limit| Ok(Bound::new(py, objects::PyLimit(limit.resolve(rate, base_rtt)))?.into_any())
}

/// # Panics
/// Panics with a [`Failure`](crate::custom::fault::Failure) if the object cannot be copied.
impl CloneDiscipline for PyQueue {
    fn clone_box(&self) -> Box<dyn QueueDiscipline> {
        Box::new(attached(|py| self.copy(py)))
    }
}

impl QueueDiscipline for PyQueue {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let header = cx.headers.tcp(&packet);
        self.call(cx, "enqueue", |queue, py| {
            let place = queue.free.pop().unwrap_or_else(|| {
                queue.packets.push(None);
                queue.packets.len() as u32 - 1
            });
            let object = PyPacket::new(place, &packet, header, &queue.ledger);
            queue.backlog.packets += 1;
            queue.backlog.bytes += u64::from(packet.size());
            queue.packets[place as usize] = Some(packet);
            let packet = Bound::new(py, object)?;
            queue.object.enqueue.bind(py).call1((&packet, &queue.cx))?;
            if !packet.get().was_dropped() {
                packet.get().is_queued_now();
            }
            Ok(None)
        });
    }

    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        self.call(cx, "dequeue", |queue, py| {
            let given = queue.object.dequeue.bind(py).call1((&queue.cx,))?;
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

    fn has_fixed_timer(&self) -> bool {
        self.object.next_wakeup.is_none()
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.call(cx, "on_wakeup", |queue, py| {
            if let Some(on_wakeup) = &queue.object.on_wakeup {
                on_wakeup.bind(py).call1((&queue.cx,))?;
            }
            Ok(None)
        });
        if self.wakeup == Some(cx.now) {
            let problem =
                "next_wakeup repeatedly returned the current time: the clock could not advance";
            let fault = Fault::Broken(problem.to_string());
            attached(|py| Err(fault.report(py, &self.class, "on_wakeup", cx.now)))
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn list(&self, see: &mut dyn FnMut(&Packet)) -> bool {
        self.packets.iter().flatten().for_each(see);
        true
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        show(&self.class, self.object.observe.as_ref(), self.now, see);
    }

    fn notes(&self) -> Vec<Note> {
        let Some(notes) = &self.object.notes else { return Vec::new() };
        let said: Vec<(String, String)> = attached(|py| {
            let said = notes.bind(py).call0().and_then(|said| pairs(&said));
            said.map_err(|error| Fault::Raised(error).report(py, &self.class, "notes", self.now))
        });
        said.into_iter().map(|(id, text)| Note { id: kept(&id), text }).collect()
    }
}
