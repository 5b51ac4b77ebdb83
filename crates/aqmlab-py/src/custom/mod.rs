//! Queue disciplines and congestion controls written in Python: lookup by name, parameters,
//! failures. `aqmlab.custom` is the Python half.

pub mod fault;

use std::path::PathBuf;
use std::sync::Arc;

use aqmlab_core::params::read_value;
use aqmlab_core::{AnyComponent, Bytes, Error, Limit, ParamType, Rate, Result, Span, Value};
use aqmlab_load::{CODE, File, check_code};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::convert::{from_py_error, to_py_error};
use crate::reference::param_dict;

/// Resolves classes by names such as `my_queue.py:MyQueue`.
pub struct PyLookup<'a> {
    /// Folders with the files, in search order.
    pub folders: &'a [String],
}

impl PyLookup<'_> {
    /// Returns the type of this name: of a shared library (by `load`) or a class, if it is one.
    pub fn find<T>(
        &self,
        kind: Kind,
        name: &str,
        load: impl FnOnce(File<'_>) -> Result<T>,
        boxed: impl FnOnce(PyConfig) -> T,
    ) -> Result<Option<T>> {
        if let Some(loaded) = self.library(name, load)? {
            return Ok(Some(loaded));
        }
        let class = Python::attach(|py| {
            PyConfig::load(py, Some(kind), name, self.folders)
                .map_err(|error| from_py_error(py, &error))
        });
        Ok(class?.map(boxed))
    }

    /// Loads from the shared library of this name, if it names one (`libmine.so:Mine`).
    fn library<T>(
        &self,
        name: &str,
        load: impl FnOnce(File<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let found = Python::attach(|py| -> PyResult<Option<(PathBuf, String)>> {
            let custom = py.import("aqmlab.custom")?;
            custom.call_method1("library", (name, self.folders))?.extract()
        });
        let found = found.map_err(|error| Python::attach(|py| from_py_error(py, &error)))?;
        found.map(|(path, code)| load(File { path: &path, code: &code, name })).transpose()
    }
}

/// Kind of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Queue,
    Control,
}

impl Kind {
    /// Returns the section of the reference, which is also the key in scenarios.
    pub fn section(self) -> &'static str {
        match self {
            Kind::Queue => "queue",
            Kind::Control => "congestion_control",
        }
    }
}

/// Class as described by `aqmlab.custom.load`.
#[derive(Debug)]
pub struct Class {
    pub kind: Kind,
    pub name: String,
    pub class: Py<PyAny>,
    pub summary: String,
    pub code: String,
    /// Optional methods and attributes of the class.
    pub optional: Vec<String>,
}

/// Class with its parameters.
#[derive(Clone, Debug)]
pub struct PyConfig {
    pub class: Arc<Class>,
    pub params: Vec<(String, Param)>,
}

/// Value of a parameter. The default determines its type.
#[derive(Clone, Debug)]
pub enum Param {
    Time(Span),
    Rate(Rate),
    Size(Bytes),
    Limit(Limit),
    Switch(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl PyConfig {
    /// Loads the class of this name; `None` if the name is not that of a class. Without `kind`, its
    /// methods determine the kind.
    pub fn load(
        py: Python<'_>,
        kind: Option<Kind>,
        name: &str,
        folders: &[String],
    ) -> PyResult<Option<Self>> {
        let arguments = (kind.map(Kind::section), name, folders);
        let loaded = py.import("aqmlab.custom")?.call_method1("load", arguments)?;
        if loaded.is_none() {
            return Ok(None);
        }
        let defaults = loaded.getattr("parameters")?;
        let params = defaults
            .cast::<PyDict>()?
            .iter()
            .map(|(key, default)| Ok((key.extract()?, Param::of_default(&default)?)))
            .collect::<PyResult<_>>()?;
        let section: String = loaded.getattr("section")?.extract()?;
        let class = Class {
            kind: if section == "queue" { Kind::Queue } else { Kind::Control },
            name: name.to_string(),
            class: loaded.getattr("class_")?.unbind(),
            summary: loaded.getattr("summary")?.extract()?,
            code: loaded.getattr("code")?.extract()?,
            optional: loaded.getattr("optional")?.extract()?,
        };
        Ok(Some(PyConfig { class: Arc::new(class), params }))
    }

    /// Creates an object of the class with `first` and its parameters; `limit` converts limits.
    pub fn make<'py>(
        &self,
        py: Python<'py>,
        first: impl IntoPyObject<'py>,
        limit: &dyn Fn(Limit) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.class.class.bind(py).call((first,), Some(&self.keywords(py, limit)?))
    }

    /// Returns the parameters by name; `limit` converts limits.
    pub fn keywords<'py>(
        &self,
        py: Python<'py>,
        limit: &dyn Fn(Limit) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        for (name, param) in &self.params {
            keywords.set_item(name, param.to_python(py, limit)?)?;
        }
        Ok(keywords)
    }
}

impl Class {
    /// Returns whether the class has this method or attribute.
    pub fn has(&self, name: &str) -> bool {
        self.optional.iter().any(|each| each == name)
    }
}

impl Param {
    fn of_default(default: &Bound<'_, PyAny>) -> PyResult<Param> {
        if let Ok(text) = default.cast::<PyString>() {
            let text = text.to_str()?;
            let value = Value::from(text);
            return Ok(Span::read(&value)
                .map(Param::Time)
                .or_else(|| Rate::read(&value).map(Param::Rate))
                .or_else(|| Bytes::read(&value).map(Param::Size))
                .or_else(|| Limit::read(&value).map(Param::Limit))
                .unwrap_or_else(|| Param::Text(text.to_string())));
        }
        if let Ok(flag) = default.cast::<PyBool>() {
            return Ok(Param::Switch(flag.is_true()));
        }
        if let Ok(number) = default.cast::<PyFloat>() {
            return Ok(Param::Number(number.value()));
        }
        default.cast::<PyInt>()?.extract().map(Param::Whole)
    }

    /// Reads a value of the same type.
    fn read(&self, value: &Value) -> Result<Param> {
        Ok(match self {
            Param::Time(_) => Param::Time(read_value(value)?),
            Param::Rate(_) => Param::Rate(read_value(value)?),
            Param::Size(_) => Param::Size(read_value(value)?),
            Param::Limit(_) => Param::Limit(read_value(value)?),
            Param::Switch(_) => Param::Switch(read_value(value)?),
            Param::Number(_) => Param::Number(read_value(value)?),
            Param::Text(_) => Param::Text(read_value(value)?),
            Param::Whole(_) => match value {
                Value::Integer(number) => Param::Whole(*number),
                other => other
                    .to_string()
                    .trim()
                    .parse()
                    .map(Param::Whole)
                    .map_err(|_| Error::not_allowed(other, "a whole number such as 3"))?,
            },
        })
    }

    fn to_text(&self) -> String {
        match self {
            Param::Time(span) => span.to_text(),
            Param::Rate(rate) => rate.to_text(),
            Param::Size(bytes) => bytes.to_text(),
            Param::Limit(limit) => limit.to_text(),
            Param::Switch(flag) => flag.to_text(),
            Param::Whole(number) => number.to_string(),
            Param::Number(number) => number.to_text(),
            Param::Text(text) => text.clone(),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Param::Time(_) => Span::KIND,
            Param::Rate(_) => Rate::KIND,
            Param::Size(_) => Bytes::KIND,
            Param::Limit(_) => Limit::KIND,
            Param::Switch(_) => bool::KIND,
            Param::Whole(_) => u64::KIND,
            Param::Number(_) => f64::KIND,
            Param::Text(_) => String::KIND,
        }
    }

    /// Converts a parameter for the constructor: nanoseconds, bits per second, bytes.
    fn to_python<'py>(
        &self,
        py: Python<'py>,
        limit: &dyn Fn(Limit) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Param::Time(span) => span.as_nanos().into_pyobject(py)?.into_any(),
            Param::Rate(rate) => rate.as_bps().into_pyobject(py)?.into_any(),
            Param::Size(bytes) => bytes.get().into_pyobject(py)?.into_any(),
            Param::Limit(given) => limit(*given)?,
            Param::Switch(flag) => PyBool::new(py, *flag).to_owned().into_any(),
            Param::Whole(number) => number.into_pyobject(py)?.into_any(),
            Param::Number(number) => PyFloat::new(py, *number).into_any(),
            Param::Text(text) => PyString::new(py, text).into_any(),
        })
    }
}

impl AnyComponent for PyConfig {
    fn name(&self) -> &str {
        &self.class.name
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        if key == CODE {
            return check_code(&self.class.code, value);
        }
        match self.params.iter_mut().find(|(name, _)| name == key) {
            Some((_, param)) => {
                *param = param.read(value).map_err(|error| error.at(key))?;
                Ok(())
            }
            None => {
                let names = self.params.iter().map(|(name, _)| name.as_str());
                let mut error = Error::unknown("key", key, names);
                error.given = None;
                Err(error.at(key))
            }
        }
    }

    fn check(&self) -> Result<()> {
        for (key, param) in &self.params {
            if self.class.kind == Kind::Control
                && let Param::Limit(limit @ Limit::Bdp(_)) = param
            {
                let allowed = "packets (10p) or bytes (14600b)";
                return Err(Error::not_allowed(limit, allowed).at(key));
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<(&str, Value)> {
        let code = std::iter::once((CODE, self.class.code.as_str().into()));
        let params =
            self.params.iter().map(|(name, param)| (name.as_str(), param.to_text().into()));
        code.chain(params).collect()
    }
}

/// Returns the data of `aqmlab explain` for a class; see the type stub.
///
/// # Errors
/// Returns an error if the class does not exist.
#[pyfunction]
pub fn describe<'py>(
    py: Python<'py>,
    name: &str,
    folders: Vec<String>,
) -> PyResult<(&'static str, String, Vec<Bound<'py, PyDict>>)> {
    let lookup = PyLookup { folders: &folders };
    let loaded = lookup.library(name, aqmlab_load::describe);
    if let Some((is_queue, summary, specs)) = loaded.map_err(|error| to_py_error(py, error))? {
        let kind = if is_queue { Kind::Queue } else { Kind::Control };
        let params = specs.iter().map(|spec| param_dict(py, spec)).collect::<PyResult<_>>()?;
        return Ok((kind.section(), summary, params));
    }
    let config = PyConfig::load(py, None, name, &folders)?;
    let config = config.ok_or_else(|| to_py_error(py, Error::not_allowed(name, "a class")))?;
    let describe = |(name, param): &(String, Param)| {
        let dict = PyDict::new(py);
        dict.set_item("name", name)?;
        dict.set_item("kind", param.kind())?;
        dict.set_item("default", param.to_text())?;
        Ok(dict)
    };
    let params = config.params.iter().map(describe).collect::<PyResult<_>>()?;
    Ok((config.class.kind.section(), config.class.summary.clone(), params))
}
