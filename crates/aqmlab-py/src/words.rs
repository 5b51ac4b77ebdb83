//! Textual notation of queues and shapers, for Python.

use aqmlab_aqm::{Discipline, QueueConfig};
use aqmlab_core::catalogue::{say_in_dialect, say_in_words, words_of};
use aqmlab_core::words::{Said, Word, say_params};
use aqmlab_core::{Error, ParamType, Params, Table, Value};
use aqmlab_sim::network::egress::ShaperParams;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::convert::{from_value, to_py_error, to_value};
use crate::custom::PyLookup;

fn read_queue(queue: &Bound<'_, PyAny>) -> PyResult<QueueConfig> {
    let value = to_value(queue)?;
    let read = QueueConfig::read_with(&value, &PyLookup { folders: &[] });
    read.map_err(|error| to_py_error(queue.py(), error.at("queue")))
}

fn read_shaper(shaper: &Bound<'_, PyAny>) -> PyResult<ShaperParams> {
    let read = ShaperParams::parse(&to_value(shaper)?);
    read.map_err(|error: Error| to_py_error(shaper.py(), error.at("shaper")))
}

/// Returns a queue with every parameter, from its notation or a table.
#[pyfunction]
pub fn parse_queue<'py>(queue: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    from_value(queue.py(), &Value::Table(read_queue(queue)?.to_table()))
}

/// Returns a shaper with every parameter, from its notation or a table.
#[pyfunction]
pub fn parse_shaper<'py>(shaper: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let entries = read_shaper(shaper)?.entries().into_iter();
    let table: Table = entries.map(|(key, value)| (key.to_string(), value)).collect();
    from_value(shaper.py(), &Value::Table(table))
}

/// Notation of tc, and the parameters that it cannot express.
type InTc = (String, Vec<String>);

fn in_tc(said: Said, rate: Option<&str>) -> InTc {
    let rate = said.rate.zip(rate).map(|(word, rate)| format!(" {word} {rate}"));
    let left_out = said.left_out.into_iter().map(|(key, value)| format!("{key} = {value}"));
    (said.words + &rate.unwrap_or_default(), left_out.collect())
}

/// Returns a queue in the notation of tc; `None` if Linux has no such queue.
#[pyfunction]
#[pyo3(signature = (queue, rate = None))]
pub fn queue_in_tc(queue: &Bound<'_, PyAny>, rate: Option<&str>) -> PyResult<Option<InTc>> {
    Ok(say_in_dialect(&read_queue(queue)?).map(|said| in_tc(said, rate)))
}

/// Returns a queue in a notation that reads back as the same queue.
#[pyfunction]
pub fn queue_in_words(queue: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(say_in_words(&read_queue(queue)?))
}

/// Returns a shaper in the notation of tc.
#[pyfunction]
pub fn shaper_in_tc(shaper: &Bound<'_, PyAny>) -> PyResult<InTc> {
    let mut params = read_shaper(shaper)?;
    // tc's HTB has sizes instead of names of link layers.
    params.framing = params.framing.resolve().into();
    Ok(in_tc(say_params(&params), None))
}

/// Adds the notation of a queue to its section of the reference, with its command.
pub fn add_words_of_queue(section: &Bound<'_, PyDict>, name: &str) -> PyResult<()> {
    let py = section.py();
    let words = words_of::<dyn Discipline>(name).map_err(|error| to_py_error(py, error))?;
    add_words(section, words.into_iter().filter_map(|(_, word)| word))?;
    let config = QueueConfig::named(name).map_err(|error| to_py_error(py, error))?;
    section.set_item("tc", say_in_dialect(&config).map(|said| said.words))
}

/// Adds the notation of the shaper.
pub fn add_words_of_shaper(section: &Bound<'_, PyDict>) -> PyResult<()> {
    let words = ShaperParams::dialects().iter().flat_map(|dialect| dialect.words());
    add_words(section, words)
}

fn add_words(
    section: &Bound<'_, PyDict>,
    words: impl Iterator<Item = &'static Word>,
) -> PyResult<()> {
    let list = PyList::empty(section.py());
    for word in words {
        let dict = PyDict::new(section.py());
        dict.set_item("word", word.word)?;
        dict.set_item("has_value", word.has_value())?;
        dict.set_item("key", word.key())?;
        dict.set_item("sets", word.sets())?;
        dict.set_item("why", word.why())?;
        dict.set_item("is_refused", word.is_refused())?;
        list.append(dict)?;
    }
    section.set_item("words", list)
}
