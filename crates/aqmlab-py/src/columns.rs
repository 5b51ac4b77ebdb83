//! Columns passed from the engine through the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow_array::builder::{StringDictionaryBuilder, StringViewBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, RecordBatch, RecordBatchIterator,
    StringArray, StringViewArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Table under construction, column by column. Functions of the rows make the columns.
pub struct Columns<I> {
    rows: I,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl<I: Iterator + Clone> Columns<I> {
    /// Begins a table of these rows, without columns.
    pub fn new(rows: I) -> Self {
        Columns { rows, fields: Vec::new(), arrays: Vec::new() }
    }
    /// Begins a table with the run of each row, and the name of its subject.
    pub fn of<S: AsRef<str>>(rows: I, subject: &str, of: impl Fn(I::Item) -> (u32, S)) -> Self {
        let mut columns = Columns::new(rows);
        columns.u32("run", |row| of(row).0);
        columns.text(subject, |row| of(row).1);
        columns
    }
    fn push(&mut self, name: &str, array: ArrayRef, nullable: bool) {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
    }
    pub fn u32(&mut self, name: &str, value: impl Fn(I::Item) -> u32) {
        let values = self.rows.clone().map(value);
        self.push(name, Arc::new(UInt32Array::from_iter_values(values)), false);
    }
    pub fn u64(&mut self, name: &str, value: impl Fn(I::Item) -> u64) {
        let values = self.rows.clone().map(value);
        self.push(name, Arc::new(UInt64Array::from_iter_values(values)), false);
    }
    pub fn maybe_u64(&mut self, name: &str, value: impl Fn(I::Item) -> Option<u64>) {
        let array: UInt64Array = self.rows.clone().map(value).collect();
        self.push(name, Arc::new(array), true);
    }
    /// Adds a column; NaN becomes null, the absence of a measurement.
    pub fn f64(&mut self, name: &str, value: impl Fn(I::Item) -> f64) {
        let values = self.rows.clone().map(value);
        let array: Float64Array = values.map(|value| (!value.is_nan()).then_some(value)).collect();
        self.push(name, Arc::new(array), true);
    }
    pub fn bool(&mut self, name: &str, value: impl Fn(I::Item) -> bool) {
        let array: BooleanArray = self.rows.clone().map(|row| Some(value(row))).collect();
        self.push(name, Arc::new(array), false);
    }
    pub fn text<S: AsRef<str>>(&mut self, name: &str, value: impl Fn(I::Item) -> S) {
        self.texts(name, |row| Some(value(row)), false);
    }
    pub fn maybe_text<S: AsRef<str>>(&mut self, name: &str, value: impl Fn(I::Item) -> Option<S>) {
        self.texts(name, value, true);
    }
    fn texts<S: AsRef<str>>(
        &mut self,
        name: &str,
        value: impl Fn(I::Item) -> Option<S>,
        nullable: bool,
    ) {
        let mut builder = StringViewBuilder::new().with_deduplicate_strings();
        self.rows.clone().for_each(|row| builder.append_option(value(row)));
        self.push(name, Arc::new(builder.finish()), nullable);
    }
    /// Adds a column with few distinct texts as codes: less memory, slower to read.
    pub fn coded<S: AsRef<str>>(&mut self, name: &str, value: impl Fn(I::Item) -> S) {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        self.rows.clone().for_each(|row| builder.append_value(value(row)));
        self.push(name, Arc::new(builder.finish()), false);
    }

    pub fn finish(self) -> RecordBatch {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
            .expect("columns are of one length")
    }
}

/// Table as a Python object: Arrow-aware libraries read it without a copy.
#[pyclass(name = "Table", module = "aqmlab._core", frozen)]
pub struct ArrowTable(pub RecordBatch);

#[pymethods]
impl ArrowTable {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns the rows as dictionaries, to read a few without a table library.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows: Vec<_> = (0..self.0.num_rows()).map(|_| PyDict::new(py)).collect();
        for (field, column) in self.0.schema().fields().iter().zip(self.0.columns()) {
            for (index, row) in rows.iter().enumerate() {
                row.set_item(field.name(), cell(py, column.as_ref(), index)?)?;
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
        let schema = self.0.schema();
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// Returns a value of a column; `None` for null.
fn cell<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let any = column.as_any();
    if column.is_null(row) {
        Ok(py.None().into_bound(py))
    } else if let Some(values) = any.downcast_ref::<UInt32Array>() {
        values.value(row).into_bound_py_any(py)
    } else if let Some(values) = any.downcast_ref::<UInt64Array>() {
        values.value(row).into_bound_py_any(py)
    } else if let Some(values) = any.downcast_ref::<Float64Array>() {
        values.value(row).into_bound_py_any(py)
    } else if let Some(values) = any.downcast_ref::<BooleanArray>() {
        values.value(row).into_bound_py_any(py)
    } else if let Some(values) = any.downcast_ref::<StringViewArray>() {
        values.value(row).into_bound_py_any(py)
    } else {
        let texts = any.downcast_ref::<DictionaryArray<Int32Type>>();
        let texts = texts.and_then(|texts| texts.downcast_dict::<StringArray>());
        let texts = texts.expect("`Columns` makes columns of these types alone");
        texts.into_iter().nth(row).flatten().into_bound_py_any(py)
    }
}
