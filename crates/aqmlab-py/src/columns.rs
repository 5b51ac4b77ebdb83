//! Columns passed from the engine through the Arrow PyCapsule interface.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::stream::ArrowArrayStream;

/// Values of a column as Arrow has them; those of bits are in bytes, the lowest first.
pub enum Values {
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
    Bool(Vec<u8>),
    /// Few distinct texts: an index for each row, and the texts one after another with their ends.
    Text {
        keys: Vec<i32>,
        ends: Vec<i32>,
        letters: Vec<u8>,
    },
}

impl Values {
    /// Returns the type in Arrow's notation; a text is its index.
    pub fn format(&self) -> &'static str {
        match self {
            Values::U32(_) => "I",
            Values::U64(_) => "L",
            Values::F64(_) => "g",
            Values::Bool(_) => "b",
            Values::Text { .. } => "i",
        }
    }
}

/// Column of a table.
pub struct Column {
    pub name: String,
    pub values: Values,
    pub nullable: bool,
    /// A bit for each row that has a value.
    pub valid: Vec<u8>,
    pub nulls: usize,
}

/// Columns of equal lengths.
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: usize,
}

/// Table under construction, column by column, with equal lengths.
#[derive(Default)]
pub struct Columns {
    columns: Vec<Column>,
    rows: Option<usize>,
}

fn bits(values: impl Iterator<Item = bool>) -> (Vec<u8>, usize, usize) {
    let (mut bytes, mut rows, mut unset) = (Vec::new(), 0, 0);
    for value in values {
        if rows % 8 == 0 {
            bytes.push(0);
        }
        bytes[rows / 8] |= u8::from(value) << (rows % 8);
        rows += 1;
        unset += usize::from(!value);
    }
    (bytes, rows, unset)
}

impl Columns {
    fn push(&mut self, name: &str, rows: usize, values: Values, valid: Option<(Vec<u8>, usize)>) {
        assert_eq!(*self.rows.get_or_insert(rows), rows, "columns are of one length");
        let nullable = valid.is_some();
        let (valid, nulls) = valid.unwrap_or_default();
        self.columns.push(Column { name: name.to_owned(), values, nullable, valid, nulls });
    }
    pub fn u32(&mut self, name: &str, values: impl Iterator<Item = u32>) {
        let values: Vec<u32> = values.collect();
        self.push(name, values.len(), Values::U32(values), None);
    }
    pub fn u64(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        let values: Vec<u64> = values.collect();
        self.push(name, values.len(), Values::U64(values), None);
    }
    pub fn maybe_u64(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        let values: Vec<Option<u64>> = values.collect();
        let (valid, rows, nulls) = bits(values.iter().map(Option::is_some));
        let values = values.into_iter().map(Option::unwrap_or_default).collect();
        self.push(name, rows, Values::U64(values), Some((valid, nulls)));
    }
    /// Adds a column; NaN becomes null, the absence of a measurement.
    pub fn f64(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        let mut values: Vec<f64> = values.collect();
        let (valid, rows, nulls) = bits(values.iter().map(|value| !value.is_nan()));
        values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0);
        self.push(name, rows, Values::F64(values), Some((valid, nulls)));
    }
    pub fn bool(&mut self, name: &str, values: impl Iterator<Item = bool>) {
        let (bytes, rows, _) = bits(values);
        self.push(name, rows, Values::Bool(bytes), None);
    }
    /// Adds a column with few distinct texts.
    pub fn text<S: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = S>) {
        self.maybe_text(name, values.map(Some));
        self.columns.last_mut().expect("it was added").nullable = false;
    }

    /// Adds a column with few distinct texts and nulls.
    pub fn maybe_text<S: AsRef<str>>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<S>>,
    ) {
        let mut known: HashMap<String, i32> = HashMap::new();
        let (mut keys, mut ends, mut letters) = (Vec::new(), vec![0], Vec::new());
        let mut present = Vec::new();
        for value in values {
            present.push(value.is_some());
            keys.push(value.map_or(0, |text| {
                let text = text.as_ref();
                known.get(text).copied().unwrap_or_else(|| {
                    let key = i32::try_from(known.len()).expect("the texts are few");
                    known.insert(text.to_owned(), key);
                    letters.extend_from_slice(text.as_bytes());
                    ends.push(i32::try_from(letters.len()).expect("the texts are few"));
                    key
                })
            }));
        }
        let (valid, rows, nulls) = bits(present.into_iter());
        self.push(name, rows, Values::Text { keys, ends, letters }, Some((valid, nulls)));
    }

    pub fn finish(self) -> Table {
        Table { columns: self.columns, rows: self.rows.unwrap_or(0) }
    }
}

/// Table as a Python object: Arrow-aware libraries read it without a copy.
#[pyclass(name = "Table", module = "aqmlab._core", frozen)]
pub struct ArrowTable(Arc<Table>);

impl ArrowTable {
    pub fn new(table: Table) -> Self {
        ArrowTable(Arc::new(table))
    }
}

#[pymethods]
impl ArrowTable {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.rows
    }

    /// Returns the rows as dictionaries, to read a few without a table library.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows: Vec<_> = (0..self.0.rows).map(|_| PyDict::new(py)).collect();
        for column in &self.0.columns {
            for (index, row) in rows.iter().enumerate() {
                row.set_item(&column.name, cell(py, column, index)?)?;
            }
        }
        Ok(rows)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface permits a producer to ignore the requested schema.
        let _ = requested_schema;
        let stream = ArrowArrayStream::new(Arc::clone(&self.0));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// Returns a value of a column; `None` for null.
fn cell<'py>(py: Python<'py>, column: &Column, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let set = |bits: &[u8]| (bits[row / 8] >> (row % 8)) & 1 == 1;
    if column.nulls > 0 && !set(&column.valid) {
        return Ok(py.None().into_bound(py));
    }
    match &column.values {
        Values::U32(values) => values[row].into_bound_py_any(py),
        Values::U64(values) => values[row].into_bound_py_any(py),
        Values::F64(values) => values[row].into_bound_py_any(py),
        Values::Bool(bits) => set(bits).into_bound_py_any(py),
        Values::Text { keys, ends, letters } => {
            let key = keys[row] as usize;
            let text = &letters[ends[key] as usize..ends[key + 1] as usize];
            std::str::from_utf8(text).expect("it was a text").into_bound_py_any(py)
        }
    }
}
