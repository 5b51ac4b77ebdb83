//! `Scenario` for Python.

use std::cell::RefCell;
use std::sync::Arc;

use aqmlab_core::{Error, Value};
use aqmlab_sim::Scenario;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use crate::convert::{from_value, to_py_error, to_table, to_value};

/// A checked scenario with every default filled in.
#[pyclass(name = "Scenario", module = "aqmlab._core", frozen)]
pub struct PyScenario {
    pub scenario: Arc<Scenario>,
    read_file: Option<Py<PyAny>>,
}

#[pymethods]
impl PyScenario {
    #[new]
    #[pyo3(signature = (source, *, file = "<scenario>", overrides = None, read_file = None))]
    fn new(
        source: &Bound<'_, PyAny>,
        file: &str,
        overrides: Option<&Bound<'_, PyMapping>>,
        read_file: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = source.py();
        let overrides: Vec<(String, Value)> = match overrides {
            None => Vec::new(),
            Some(mapping) => mapping
                .items()?
                .iter()
                .map(|pair| {
                    let (key, value): (String, Bound<'_, PyAny>) = pair.extract()?;
                    Ok((key, to_value(&value)?))
                })
                .collect::<PyResult<_>>()?,
        };
        // What is no fault of a file goes back to Python as it is.
        let raised = RefCell::new(None);
        let read = |name: &str| match &read_file {
            None => Err(Error::new("files are not read here").given(name)),
            Some(function) => read_by(function, name).map_err(|error| {
                let problem = problem_of(py, &error);
                if problem.is_none() {
                    raised.replace(Some(error));
                }
                Error::new(problem.unwrap_or_default()).in_file(name)
            }),
        };
        let scenario = if let Ok(text) = source.cast::<PyString>() {
            Scenario::parse_with(text.to_str()?, file, &overrides, &read)
        } else {
            let table = to_table(source.cast::<PyMapping>()?)?;
            Scenario::from_table_with(table, file, &overrides, &read)
        };
        if let Some(error) = raised.take() {
            return Err(error);
        }
        let scenario = scenario.map_err(|error| to_py_error(py, error))?;
        let read_file = read_file.map(Bound::unbind);
        Ok(PyScenario { scenario: Arc::new(scenario), read_file })
    }

    /// What reads the files that the scenario names.
    #[getter]
    fn read_file(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.read_file.as_ref().map(|function| function.clone_ref(py))
    }

    /// The scenario as canonical JSON.
    #[getter]
    fn resolved(&self) -> String {
        self.scenario.to_json()
    }
}

fn read_by(function: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u8>> {
    function.call1((name,))?.extract()
}

/// What is wrong with a file that could not be read; `None` if it is not that.
fn problem_of(py: Python<'_>, error: &PyErr) -> Option<String> {
    if error.is_instance_of::<PyFileNotFoundError>(py) {
        return Some("there is no such file".into());
    }
    let reason = || error.value(py).getattr("strerror").map(|text| text.to_string());
    error
        .is_instance_of::<PyOSError>(py)
        .then(|| format!("cannot be read: {}", reason().unwrap_or_default()))
}

/// What stands after `--set key=`: a TOML value, or else plain text.
#[pyfunction]
pub fn parse_value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    from_value(py, &aqmlab_sim::scenario::parse_value(text))
}
