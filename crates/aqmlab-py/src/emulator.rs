//! Commands behind emulated links, for Python.

use std::any::Any;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use aqmlab_core::{Error, Params, Span};
use aqmlab_emu::observe::{CaptureFile, LogFile, Recordings};
use aqmlab_emu::shell::{self, EmulatorParams, Options};
use aqmlab_sim::probe::{QUANTILES, SojournSummary};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::convert::{QueueError, to_py_error, to_table};
use crate::custom::fault::Failure;
use crate::runner::panic_text;
use crate::scenario::PyScenario;
use crate::tables::{Finished, Results};

/// A command that has been run behind links.
#[pyclass(module = "aqmlab._core", frozen)]
pub struct Emulation {
    /// Its exit status, as shells give it.
    #[pyo3(get)]
    status: i32,
    /// The tables.
    #[pyo3(get)]
    results: Py<Results>,
    /// Sentences for the user.
    #[pyo3(get)]
    remarks: Vec<String>,
    /// How late packets were written.
    lateness: SojournSummary,
}

#[pymethods]
impl Emulation {
    #[getter]
    fn lateness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("count", self.lateness.count)?;
        for (quantile, value) in QUANTILES.iter().zip(self.lateness.quantiles) {
            dict.set_item(format!("p{}_s", quantile * 100.0), value)?;
        }
        dict.set_item("max_s", self.lateness.max.as_secs_f64())?;
        Ok(dict)
    }
}

/// Runs a command behind links of a scenario; see the type stub.
#[pyfunction]
#[pyo3(signature = (
    scenario, command, *, down, up, environment, far = vec![], nat = false, settings = None,
    logs = vec![], capture = None, until = None,
))]
#[allow(clippy::too_many_arguments)]
pub fn emulate(
    py: Python<'_>,
    scenario: PyRef<'_, PyScenario>,
    command: Vec<OsString>,
    down: Vec<String>,
    up: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    far: Vec<OsString>,
    nat: bool,
    settings: Option<&Bound<'_, PyMapping>>,
    logs: Vec<(String, PathBuf, Vec<String>)>,
    capture: Option<(PathBuf, Option<u64>, u32)>,
    until: Option<f64>,
) -> PyResult<Emulation> {
    let scenario = Arc::clone(&scenario.scenario);
    let params = match settings {
        None => EmulatorParams::default(),
        Some(settings) => EmulatorParams::from_table(&to_table(settings)?)
            .map_err(|error| to_py_error(py, error))?,
    };
    let index = |name: &String| {
        let names = scenario.links.iter().map(|link| link.name.as_str());
        let found = names.clone().position(|known| known == name);
        found.map(|index| index as u32).ok_or_else(|| Error::unknown("link", name, names))
    };
    let indices = |names: &[String], key: &str| {
        let found: Result<Vec<u32>, Error> = names.iter().map(index).collect();
        found.map_err(|error| to_py_error(py, error.at(key)))
    };
    let (down, up) = (indices(&down, "down")?, indices(&up, "up")?);
    let mut recordings = Recordings {
        logs: Vec::new(),
        capture: capture.map(|(file, ring, most)| CaptureFile { file, ring, most }),
    };
    for (link, file, head) in logs {
        let link = indices(std::slice::from_ref(&link), "logs")?[0];
        recordings.logs.push(LogFile { link, file, head });
    }
    let until = until.map(Span::from_secs_f64);
    let options = Options { command, nat, far, down, up, environment, recordings, until };
    let run = || catch_unwind(AssertUnwindSafe(|| shell::run(&scenario, &options, &params)));
    let outcome = py
        .detach(run)
        .map_err(|panic| broken(py, panic))?
        .map_err(|error| to_py_error(py, error))?;
    let finished = Finished { run: 0, scenario, result: outcome.result };
    Ok(Emulation {
        status: outcome.status,
        results: Py::new(py, Results::new(vec![finished]))?,
        remarks: outcome.remarks,
        lateness: outcome.lateness,
    })
}

/// The end by a fault of a queue in Python, or by a bug.
fn broken(py: Python<'_>, panic: Box<dyn Any + Send>) -> PyErr {
    match panic.downcast::<Failure>() {
        Ok(failure) => {
            let error = QueueError::new_err(failure.message);
            error.set_cause(py, failure.cause);
            error
        }
        Err(panic) => {
            PyRuntimeError::new_err(format!("a bug in the emulator: {}", panic_text(&*panic)))
        }
    }
}
