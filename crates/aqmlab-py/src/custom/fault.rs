//! Failures of custom code, which end the run.

use std::any::Any;
use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use aqmlab_core::Time;
use aqmlab_load::quantity;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Class, Kind};

/// Panic payload that ends a run after a failure of Python code.
pub struct Failure {
    /// Kind of the code.
    pub kind: Kind,
    /// Class, method, line and cause.
    pub message: String,
    /// Exception raised by the class, if any.
    pub cause: Option<PyErr>,
}

impl Failure {
    /// Returns the failure of Python code or a library that a panic reports.
    ///
    /// # Errors
    /// Returns the payload of any other panic.
    pub fn of(panic: Box<dyn Any + Send>) -> Result<Self, Box<dyn Any + Send>> {
        panic.downcast().map(|failure| *failure).or_else(|panic| {
            let failure = panic.downcast::<aqmlab_load::Failure>()?;
            let kind = if failure.is_queue { Kind::Queue } else { Kind::Control };
            Ok(Failure { kind, message: failure.message, cause: None })
        })
    }
}

/// Panic payload that ends an abandoned run.
pub struct Abandoned;

thread_local! {
    static ABANDONED: RefCell<Arc<AtomicBool>> = RefCell::default();
}

/// Ends runs on this thread when `flag` is set.
pub fn abandon_with(flag: &Arc<AtomicBool>) {
    ABANDONED.set(Arc::clone(flag));
}

/// State of the creating thread: true if its runs are abandoned.
pub struct Abandonment(Arc<AtomicBool>);

impl Abandonment {
    pub fn of_this_thread() -> Self {
        Abandonment(ABANDONED.with_borrow(Arc::clone))
    }
    /// Ends the run if it is abandoned.
    pub fn check(&self) {
        if self.0.load(Relaxed) {
            resume_unwind(Box::new(Abandoned));
        }
    }
}

/// Failure of a call.
pub enum Fault {
    Raised(PyErr),
    Broken(String),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Fault::Raised(error)
    }
}

/// Runs Python code, whose failure ends the run.
///
/// # Panics
/// Panics with the [`Failure`].
pub fn attached<T>(call: impl FnOnce(Python<'_>) -> Result<T, Box<Failure>>) -> T {
    Python::attach(call).unwrap_or_else(|failure| resume_unwind(failure))
}

/// Returns the keys and values of a mapping.
pub fn pairs<'py, T>(mapping: &Bound<'py, PyAny>) -> PyResult<Vec<(String, T)>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    mapping.call_method0("items")?.try_iter()?.map(|pair| pair?.extract::<(String, T)>()).collect()
}

/// Reports the values of the object's `observe` method, if it has one.
///
/// # Panics
/// Panics with a [`Failure`] if the method fails.
pub fn show(
    class: &Class,
    observe: Option<&Py<PyAny>>,
    now: Time,
    see: &mut dyn FnMut(&'static str, f64),
) {
    let Some(observe) = observe else { return };
    let named = |(name, value): (String, f64)| {
        quantity(&name, class.kind == Kind::Queue).map(|name| (name, value)).map_err(Fault::Broken)
    };
    let seen: Vec<_> = attached(|py| {
        let seen = observe.bind(py).call0().and_then(|seen| pairs(&seen)).map_err(Fault::Raised);
        let seen = seen.and_then(|seen| seen.into_iter().map(named).collect());
        seen.map_err(|fault: Fault| fault.report(py, class, "observe", now))
    });
    seen.into_iter().for_each(|(name, value)| see(name, value));
}

/// Copies the state of an object with `copy.deepcopy`, for a snapshot of the run; `memo` contains
/// the copies of objects that belong to the engine.
///
/// # Errors
/// Returns the failure if it cannot be copied.
pub fn deep_copy<'py>(
    class: &Class,
    object: &Bound<'py, PyAny>,
    memo: &Bound<'py, PyDict>,
) -> Result<Bound<'py, PyAny>, Box<Failure>> {
    let py = object.py();
    let copied = py.import("copy").and_then(|it| it.call_method1("deepcopy", (object, memo)));
    copied.map_err(|error| {
        let name = &class.name;
        let message =
            format!("{name}: the state cannot be copied: {error} (define `__deepcopy__`)");
        Box::new(Failure { kind: class.kind, message, cause: Some(error) })
    })
}

impl Fault {
    /// Creates the message for the user.
    pub fn report(self, py: Python<'_>, class: &Class, method: &str, now: Time) -> Box<Failure> {
        let (problem, cause) = match self {
            Fault::Raised(error) => (None, Some(error)),
            Fault::Broken(problem) => (Some(problem), None),
        };
        // The traceback contains the line.
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
