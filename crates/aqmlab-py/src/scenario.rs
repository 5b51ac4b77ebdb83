//! `Scenario` for Python.

use std::sync::Arc;

use aqmlab_core::Value;
use aqmlab_sim::Scenario;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use crate::convert::{from_value, to_py_error, to_table, to_value};

/// A checked scenario with every default filled in.
#[pyclass(name = "Scenario", module = "aqmlab._core", frozen)]
pub struct PyScenario(pub Arc<Scenario>);

#[pymethods]
impl PyScenario {
    #[new]
    #[pyo3(signature = (source, *, file = "<scenario>", overrides = None))]
    fn new(
        source: &Bound<'_, PyAny>,
        file: &str,
        overrides: Option<&Bound<'_, PyMapping>>,
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
        let scenario = if let Ok(text) = source.cast::<PyString>() {
            Scenario::parse(text.to_str()?, file, &overrides)
        } else {
            Scenario::from_table(to_table(source.cast::<PyMapping>()?)?, file, &overrides)
        };
        scenario.map(|scenario| PyScenario(Arc::new(scenario))).map_err(|e| to_py_error(py, e))
    }

    /// The scenario as canonical JSON.
    #[getter]
    fn resolved(&self) -> String {
        self.0.to_json()
    }
}

/// What stands after `--set key=`: a TOML value, or else plain text.
#[pyfunction]
pub fn parse_value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    from_value(py, &aqmlab_sim::scenario::parse_value(text))
}
