//! What goes wrong in code of the user's own, and how it ends the run.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use aqmlab_core::Time;
use pyo3::prelude::*;

use super::{Class, Kind};

/// The end of a run by a fault of code in Python: unwinds to the runner.
pub struct Failure {
    /// What the code is of.
    pub kind: Kind,
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

/// Whether the runs of the thread that made it are given up.
pub struct Abandonment(Arc<AtomicBool>);

impl Abandonment {
    pub fn of_this_thread() -> Self {
        Abandonment(ABANDONED.with_borrow(Arc::clone))
    }
    /// Ends the run if it is given up.
    pub fn check(&self) {
        if self.0.load(Relaxed) {
            resume_unwind(Box::new(Abandoned));
        }
    }
}

/// What goes wrong in a call.
pub enum Fault {
    Raised(PyErr),
    Broken(String),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Fault::Raised(error)
    }
}

/// The keys and values of a mapping.
pub fn pairs<'py, T>(mapping: &Bound<'py, PyAny>) -> PyResult<Vec<(String, T)>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    mapping.call_method0("items")?.try_iter()?.map(|pair| pair?.extract::<(String, T)>()).collect()
}

/// Shows what the object's `observe` says, if it has that method.
///
/// # Panics
/// With a [`Failure`] if the method fails.
pub fn show(
    class: &Class,
    observe: Option<&Py<PyAny>>,
    now: Time,
    see: &mut dyn FnMut(&'static str, f64),
) {
    let Some(observe) = observe else { return };
    let seen = Python::attach(|py| {
        let call = || -> PyResult<Vec<(String, f64)>> { pairs(&observe.bind(py).call0()?) };
        call().map_err(|error| Fault::Raised(error).report(py, class, "observe", now))
    });
    for (name, value) in seen.unwrap_or_else(|failure| resume_unwind(failure)) {
        see(kept(&name), value);
    }
}

/// The same text for as long as the program runs: names of what a class shows
/// are few, and stand in every sample.
pub fn kept(text: &str) -> &'static str {
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
    pub fn report(self, py: Python<'_>, class: &Class, method: &str, now: Time) -> Box<Failure> {
        let (problem, cause) = match self {
            Fault::Raised(error) => (None, Some(error)),
            Fault::Broken(problem) => (Some(problem), None),
        };
        // With its traceback, which names the line.
        let exception = cause.as_ref().map(|error| error.clone_ref(py).into_value(py));
        let arguments =
            (&class.name, class.class.bind(py), method, now.as_secs_f64(), &problem, exception);
        let message = py
            .import("aqmlab.custom")
            .and_then(|module| module.call_method1("fault", arguments)?.extract())
            .unwrap_or_else(|error: PyErr| format!("{}: {method}: {error}", class.name));
        Box::new(Failure { kind: class.kind, message, cause })
    }
}
