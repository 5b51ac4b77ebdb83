//! `Scenario` for Python.

use std::sync::Arc;

use aqmlab_core::Value;
use aqmlab_sim::Scenario;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use crate::convert::{from_value, to_py_error, to_table, to_value};
use crate::queue::PyLookup;

/// A checked scenario with every default filled in.
#[pyclass(name = "Scenario", module = "aqmlab._core", frozen)]
pub struct PyScenario {
    pub scenario: Arc<Scenario>,
    /// Where files with queues are looked for.
    #[pyo3(get)]
    folders: Vec<String>,
}

#[pymethods]
impl PyScenario {
    #[new]
    #[pyo3(signature = (source, *, file = "<scenario>", overrides = None, folders = vec![]))]
    fn new(
        source: &Bound<'_, PyAny>,
        file: &str,
        overrides: Option<&Bound<'_, PyMapping>>,
        folders: Vec<String>,
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
        let lookup = PyLookup { folders: &folders };
        let scenario = if let Ok(text) = source.cast::<PyString>() {
            Scenario::parse_with(text.to_str()?, file, &overrides, &lookup)
        } else {
            let table = to_table(source.cast::<PyMapping>()?)?;
            Scenario::from_table_with(table, file, &overrides, &lookup)
        };
        let scenario = Arc::new(scenario.map_err(|error| to_py_error(py, error))?);
        Ok(PyScenario { scenario, folders })
    }

    /// The scenario as canonical JSON.
    #[getter]
    fn resolved(&self) -> String {
        self.scenario.to_json()
    }
}

/// What stands after `--set key=`: a TOML value, or else plain text.
#[pyfunction]
pub fn parse_value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    from_value(py, &aqmlab_sim::scenario::parse_value(text))
}
