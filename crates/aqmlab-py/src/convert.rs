//! Values and errors across the boundary.

use aqmlab_core::{Error, Table, Value};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

create_exception!(
    aqmlab._core,
    InputError,
    PyValueError,
    "What a user can cause: file, key, what was given, what is allowed."
);

create_exception!(
    aqmlab._core,
    CustomError,
    PyRuntimeError,
    "Code of the user's own did something wrong: class, method, line, what."
);

create_exception!(
    aqmlab._core,
    ControlError,
    CustomError,
    "A congestion control written in Python did something wrong: class, method, line, what."
);

create_exception!(
    aqmlab._core,
    QueueError,
    CustomError,
    "A queue discipline written in Python did something wrong: class, method, line, what."
);

/// The one place where the engine's errors become Python's.
pub fn to_py_error(py: Python<'_>, error: Error) -> PyErr {
    let exception = InputError::new_err(error.to_string());
    let value = exception.value(py);
    let set = || -> PyResult<()> {
        value.setattr("file", error.file)?;
        value.setattr("key", error.key)?;
        value.setattr("given", error.given)?;
        value.setattr("problem", error.problem)?;
        value.setattr("hint", error.hint)
    };
    match set() {
        Ok(()) => exception,
        Err(failed) => failed,
    }
}

/// The way back: an error raised in Python about what a user gave.
pub fn from_py_error(py: Python<'_>, error: &PyErr) -> Error {
    let value = error.value(py);
    if !error.is_instance_of::<InputError>(py) {
        return Error::new(error.to_string());
    }
    let text = |name: &str| -> Option<String> { value.getattr(name).ok()?.extract().ok()? };
    Error {
        file: text("file"),
        key: text("key").unwrap_or_default(),
        given: text("given"),
        problem: text("problem").unwrap_or_default(),
        hint: text("hint"),
    }
}

/// A Python value as the engine's.
pub fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = object.cast::<PyString>() {
        Ok(Value::Text(text.to_str()?.to_string()))
    } else if let Ok(flag) = object.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if object.cast::<PyInt>().is_ok() {
        // Whole numbers beyond 64 bits are no value of any parameter: their
        // text is refused, and shown, by whoever reads it.
        Ok(object.extract().map_or_else(|_| Value::Text(object.to_string()), Value::Integer))
    } else if let Ok(number) = object.cast::<PyFloat>() {
        Ok(Value::Float(number.value()))
    } else if object.cast::<PyList>().is_ok() || object.cast::<PyTuple>().is_ok() {
        let items = object.try_iter()?.map(|item| to_value(&item?));
        Ok(Value::List(items.collect::<PyResult<_>>()?))
    } else if let Ok(mapping) = object.cast::<PyMapping>() {
        Ok(Value::Table(to_table(mapping)?))
    } else if object.cast::<PyType>().is_ok() {
        // A queue discipline or congestion control, given as the class itself.
        let name = object.py().import("aqmlab.custom")?.call_method1("name_of", (object,))?;
        Ok(Value::Text(name.extract()?))
    } else {
        let text = object.str()?.to_string();
        let error = Error::not_allowed(text, "text, a number, true or false, a list or a mapping");
        Err(to_py_error(object.py(), error))
    }
}

/// A Python mapping as the engine's table.
pub fn to_table(mapping: &Bound<'_, PyMapping>) -> PyResult<Table> {
    let mut table = Table::new();
    for pair in mapping.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        table.insert(key.str()?.to_string(), to_value(&value)?);
    }
    Ok(table)
}

/// The engine's value as a Python object.
pub fn from_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::List(items) => {
            let items: Vec<_> =
                items.iter().map(|item| from_value(py, item)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Table(table) => {
            let dict = PyDict::new(py);
            for (key, value) in table.iter() {
                dict.set_item(key, from_value(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
