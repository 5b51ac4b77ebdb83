//! Replay of recorded arrivals; see [`aqmlab_conformance::queues`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use aqmlab_aqm::{QueueConfig, Reason};
use aqmlab_conformance::queues::{self, Arrival, QueueOutcome, Surroundings, Verdict};
use aqmlab_core::{Bytes, Ecn, Rate, Time, Value};
use arrow_array::RecordBatch;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::columns::{ArrowTable, Columns};
use crate::convert::{to_py_error, to_table};
use crate::runner::panic_text;

/// Replays arrivals through a queue; see the type stub.
#[pyfunction]
#[pyo3(signature = (queue, times, flows, sizes, ecn, *, rate_bps, ns_per_byte, random_seed, mtu, emulator = false))]
#[expect(clippy::too_many_arguments, reason = "Python gives all but the columns by name")]
pub fn replay(
    py: Python<'_>,
    queue: &Bound<'_, PyMapping>,
    times: PyBuffer<u64>,
    flows: PyBuffer<u32>,
    sizes: PyBuffer<u32>,
    ecn: PyBuffer<u8>,
    rate_bps: u64,
    ns_per_byte: u64,
    random_seed: u64,
    mtu: u64,
    emulator: bool,
) -> PyResult<ArrowTable> {
    let config = QueueConfig::read(&Value::Table(to_table(queue)?));
    let config = config.map_err(|error| to_py_error(py, error))?;
    let arrivals =
        arrivals(&times.to_vec(py)?, &flows.to_vec(py)?, &sizes.to_vec(py)?, &ecn.to_vec(py)?)?;
    let surroundings = Surroundings {
        rate: Rate::from_bps(rate_bps),
        nanos_per_byte: ns_per_byte,
        mtu: Bytes::new(mtu),
        random_seed,
    };
    let run = || match emulator {
        false => Ok(queues::replay(&config, &surroundings, &arrivals)),
        true => queues::emulated::replay(&config, &surroundings, &arrivals),
    };
    let outcomes = py.detach(|| catch_unwind(AssertUnwindSafe(run))).map_err(|panic| {
        let text = panic_text(&*panic);
        PyRuntimeError::new_err(format!("a bug in the engine, replay of {}: {text}", config.name()))
    })?;
    outcomes.map(|outcomes| ArrowTable(table(&outcomes))).map_err(|error| to_py_error(py, error))
}

fn arrivals(times: &[u64], flows: &[u32], sizes: &[u32], ecn: &[u8]) -> PyResult<Vec<Arrival>> {
    if [flows.len(), sizes.len(), ecn.len()].iter().any(|length| *length != times.len()) {
        return Err(PyValueError::new_err("the columns differ in length"));
    }
    if !times.is_sorted() {
        return Err(PyValueError::new_err("times must not decrease"));
    }
    let rows = times.iter().zip(flows).zip(sizes).zip(ecn);
    Ok(rows
        .map(|(((time, flow), size), ecn)| Arrival {
            time: Time::from_nanos(*time),
            flow: *flow,
            size: *size,
            ecn: Ecn::from_bits(*ecn),
        })
        .collect())
}

fn table(outcomes: &[QueueOutcome]) -> RecordBatch {
    let mut columns = Columns::new(outcomes.iter());
    columns.u32("id", |o| o.id);
    columns.text("verdict", |o| Verdict::name(o.verdict));
    columns.u64("t_ns", |o| o.time.as_nanos());
    columns.u64("sojourn_ns", |o| o.sojourn.as_nanos());
    columns.maybe_u64("t_mark_ns", |o| o.marked.map(Time::as_nanos));
    columns.maybe_text("reason", |o| o.reason.map(Reason::name));
    columns.finish()
}
