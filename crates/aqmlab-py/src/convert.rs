//! Conversion of values and errors between the engine and Python.

use aqmlab_core::value::DEEPEST;
use aqmlab_core::{Error, Table, Value};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

create_exception!(
    aqmlab._core,
    InputError,
    PyValueError,
    "Invalid input: file, key, given value, allowed values."
);

create_exception!(
    aqmlab._core,
    CustomError,
    PyRuntimeError,
    "Failure of custom code: class, method, line, cause."
);

create_exception!(
    aqmlab._core,
    ControlError,
    CustomError,
    "Failure of a congestion control written in Python: class, method, line, cause."
);

create_exception!(
    aqmlab._core,
    QueueError,
    CustomError,
    "Failure of a queue discipline written in Python: class, method, line, cause."
);

/// Converts an error of the engine to Python.
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

/// Converts an error about user input, raised in Python, to the engine.
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

/// Converts a Python mapping to a table of the engine.
pub fn to_table(mapping: &Bound<'_, PyMapping>) -> PyResult<Table> {
    convert_table(mapping, 0).map_err(|wrong| wrong.raised(mapping.py()))
}

/// Converts a Python value to a value of the engine.
pub fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(object, 0).map_err(|wrong| wrong.raised(object.py()))
}

/// Error of a conversion.
enum Wrong {
    /// Invalid value; callers add its location.
    Given(Error),
    /// Failure of Python code.
    Python(PyErr),
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Self {
        Wrong::Python(error)
    }
}

impl Wrong {
    fn at(self, key: &str) -> Self {
        match self {
            Wrong::Given(error) => Wrong::Given(error.at(key)),
            other => other,
        }
    }
    fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Wrong::Given(error) => to_py_error(py, error),
            Wrong::Python(error) => error,
        }
    }
}

/// Converts a Python value to a value of the engine.
fn convert(object: &Bound<'_, PyAny>, depth: usize) -> Result<Value, Wrong> {
    if depth > DEEPEST {
        return Err(Wrong::Given(Error::new(format!("nested more than {DEEPEST} deep"))));
    }
    if let Ok(text) = object.cast::<PyString>() {
        Ok(Value::Text(text.to_str()?.to_string()))
    } else if let Ok(flag) = object.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if object.cast::<PyInt>().is_ok() {
        // Integers beyond 64 bits are not valid for any parameter; as text, the reader rejects and
        // shows them.
        Ok(object.extract().map_or_else(|_| Value::Text(object.to_string()), Value::Integer))
    } else if let Ok(number) = object.cast::<PyFloat>() {
        Ok(Value::Float(number.value()))
    } else if object.cast::<PyList>().is_ok() || object.cast::<PyTuple>().is_ok() {
        let items = object.try_iter()?.map(|item| convert(&item?, depth + 1));
        Ok(Value::List(items.collect::<Result<_, _>>()?))
    } else if let Ok(mapping) = object.cast::<PyMapping>() {
        Ok(Value::Table(convert_table(mapping, depth)?))
    } else if object.cast::<PyType>().is_ok() {
        // Queue discipline or congestion control, given as a class.
        let name = object.py().import("aqmlab.custom")?.call_method1("name_of", (object,))?;
        Ok(Value::Text(name.extract()?))
    } else {
        let text = object.str()?.to_string();
        let allowed = "text, a number, true or false, a list or a mapping";
        Err(Wrong::Given(Error::not_allowed(text, allowed)))
    }
}

fn convert_table(mapping: &Bound<'_, PyMapping>, depth: usize) -> Result<Table, Wrong> {
    let items = mapping.items()?;
    let pairs = items.iter().map(|pair| {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let key = key.str()?.to_string();
        let value = convert(&value, depth + 1).map_err(|wrong| wrong.at(&key))?;
        Ok((key, value))
    });
    pairs.collect()
}

/// Converts a value of the engine to a Python object.
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
