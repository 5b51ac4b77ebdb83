//! `Scenario` for Python.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use aqmlab_core::params::ParamType;
use aqmlab_core::{Bytes, Error, Rate, Span, Value};
use aqmlab_sim::rate::{InputFile, RateProcess};
use aqmlab_sim::{Outside, Scenario};
use pyo3::exceptions::{PyFileNotFoundError, PyKeyError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMapping, PyString};

use crate::convert::{from_value, to_py_error, to_table};
use crate::custom::PyLookup;

/// Folders in which a file is searched, and its name.
type Place = (Vec<String>, String);

/// Files named by scenarios.
#[pyclass(module = "aqmlab._core", frozen)]
#[derive(Default)]
pub struct Files {
    read: Mutex<HashMap<Place, Arc<InputFile>>>,
}

#[pymethods]
impl Files {
    #[new]
    #[pyo3(signature = (contents = vec![]))]
    fn new(contents: Vec<(Place, PyBackedBytes)>) -> Self {
        let files = contents.into_iter();
        let read = files.map(|(place, bytes)| (place, Arc::new(InputFile::new(bytes.to_vec()))));
        Files { read: Mutex::new(read.collect()) }
    }

    /// Returns the files read: ((folders, name), content) of each file, sorted.
    fn contents<'py>(&self, py: Python<'py>) -> Vec<(Place, Bound<'py, PyBytes>)> {
        let read = self.read.lock().expect("no holder of this lock panics");
        let sorted: BTreeMap<_, _> = read.iter().collect();
        let content = |file: &InputFile| PyBytes::new(py, file.content());
        sorted.into_iter().map(|(place, file)| (place.clone(), content(file))).collect()
    }
}

impl Files {
    /// Returns a file, which is read on first use.
    fn get(&self, py: Python<'_>, folders: &[String], name: &str) -> PyResult<Arc<InputFile>> {
        let read = || self.read.lock().expect("no holder of this lock panics");
        let key = (folders.to_vec(), name.to_string());
        if let Some(file) = read().get(&key) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(InputFile::new(read_file(py, folders, name)?));
        read().insert(key, Arc::clone(&file));
        Ok(file)
    }
}

/// Checked scenario with every default filled in.
#[pyclass(name = "Scenario", module = "aqmlab._core", frozen)]
pub struct PyScenario {
    pub scenario: Arc<Scenario>,
    /// Folders in which files named by the scenario are searched.
    #[pyo3(get)]
    pub folders: Vec<String>,
}

#[pymethods]
impl PyScenario {
    #[new]
    #[pyo3(signature = (
        source, *, file = "<scenario>", overrides = None, settings = None, folders = vec![], files = None
    ))]
    fn new(
        source: &Bound<'_, PyAny>,
        file: &str,
        overrides: Option<&Bound<'_, PyMapping>>,
        settings: Option<&Bound<'_, PyMapping>>,
        folders: Vec<String>,
        files: Option<PyRef<'_, Files>>,
    ) -> PyResult<Self> {
        let py = source.py();
        let pairs = |mapping: Option<&Bound<'_, PyMapping>>| -> PyResult<Vec<(String, Value)>> {
            Ok(mapping.map(to_table).transpose()?.unwrap_or_default().into_iter().collect())
        };
        let (overrides, settings) = (pairs(overrides)?, pairs(settings)?);
        let own = Files::default();
        let files = files.as_deref().unwrap_or(&own);
        let read_file = |name: &str| read_named(py, files, &folders, name);
        let classes = PyLookup { folders: &folders };
        let endpoints = aqmlab_quic::endpoints().map_err(|error| to_py_error(py, error))?;
        let outside = Outside {
            disciplines: &classes,
            controls: &classes,
            endpoints: &endpoints,
            read_file: &read_file,
            settings: &settings,
        };
        let scenario = if let Ok(text) = source.cast::<PyString>() {
            Scenario::parse_with(text.to_str()?, file, &overrides, outside)
        } else {
            let table = to_table(source.cast::<PyMapping>()?)?;
            Scenario::from_table(table, file, &overrides, outside)
        };
        let scenario = Arc::new(scenario.map_err(|error| to_py_error(py, error))?);
        Ok(PyScenario { scenario, folders })
    }

    /// Scenario as canonical JSON.
    #[getter]
    fn resolved(&self) -> String {
        self.scenario.to_json()
    }

    /// Returns the scenario as TOML, with every default filled in.
    fn to_toml(&self) -> String {
        self.scenario.to_toml()
    }

    /// Scenario as a dictionary.
    #[getter]
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, &Value::Table(self.scenario.to_table()))
    }

    /// Returns the mean rate of a link in bit/s.
    fn mean_rate(&self, link: &str) -> PyResult<f64> {
        let links = &self.scenario.links;
        let config = links.iter().find(|config| config.name == link);
        let config = config.ok_or_else(|| PyKeyError::new_err(link.to_owned()))?;
        Ok(config.rate.as_bps() as f64)
    }

    /// Returns the period of a link's trace in seconds; `None` without a trace.
    fn trace_period(&self, link: &str) -> Option<f64> {
        let config = self.scenario.links.iter().find(|config| config.name == link)?;
        match &config.process {
            RateProcess::Trace(_, trace) => Some(trace.period() as f64 / 1e3),
            _ => None,
        }
    }
}

/// Reads a file named by a scenario.
pub fn read_named(
    py: Python<'_>,
    files: &Files,
    folders: &[String],
    name: &str,
) -> Result<Arc<InputFile>, Error> {
    let file = files.get(py, folders, name);
    file.map_err(|error| Error::new(problem_of(py, &error)).in_file(name))
}

/// Reads a file from the first folder that contains it, or from the working directory.
fn read_file(py: Python<'_>, folders: &[String], name: &str) -> PyResult<Vec<u8>> {
    let path = py.import("pathlib")?.getattr("Path")?;
    let read = py.import("aqmlab.files")?.getattr("read_bytes")?;
    for folder in folders {
        match read.call1((path.call1((folder, name))?,)) {
            Err(error) if error.is_instance_of::<PyFileNotFoundError>(py) => {}
            content => return bytes(&content?),
        }
    }
    bytes(&read.call1((path.call1((name,))?,))?)
}

fn bytes(content: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    Ok(content.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// Describes why a file could not be read.
fn problem_of(py: Python<'_>, error: &PyErr) -> String {
    if error.is_instance_of::<PyFileNotFoundError>(py) {
        return "there is no such file".into();
    }
    let reason = error.value(py).getattr("strerror").map(|text| text.to_string());
    format!("cannot be read: {}", reason.unwrap_or_else(|_| error.to_string()))
}

/// Parses a time (ns), rate (bit/s) or size (bytes). Returns the value and its canonical text.
#[pyfunction]
pub fn parse_quantity(py: Python<'_>, kind: &str, text: &str) -> PyResult<(u64, String)> {
    let value = Value::Text(text.into());
    let found = match kind {
        "time" => Span::parse(&value).map(|span| (span.as_nanos(), span.to_text())),
        "rate" => Rate::parse(&value).map(|rate| (rate.as_bps(), rate.to_text())),
        "size" => Bytes::parse(&value).map(|bytes| (bytes.get(), bytes.to_text())),
        _ => Err(Error::new(format!("expected time, rate or size, not {kind}"))),
    };
    found.map_err(|error| to_py_error(py, error))
}

/// Parses the text after `--set key=`: a TOML value, or else plain text.
#[pyfunction]
pub fn parse_value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    from_value(py, &aqmlab_sim::scenario::parse_value(text))
}
