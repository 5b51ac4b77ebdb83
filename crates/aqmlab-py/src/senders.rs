//! Replay of recorded senders.

use aqmlab_conformance::senders::{Around, Case, Outcome, Settings, compare};
use aqmlab_core::{Error, ParamType, Time, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};

use crate::convert::{to_py_error, to_table};

fn choice<T: ParamType>(key: &str, text: &str) -> Result<T, Error> {
    T::read(&Value::from(text)).ok_or_else(|| Error::not_allowed(text, T::allowed()).at(key))
}

/// Parses and packs a recorded connection of a sender.
#[pyfunction]
#[pyo3(signature = (name, events, *, control, stack, recovery, frto, tail_loss_probe, after_idle, offload, path, receive_buffer, all_acknowledged_ns, retransmitted))]
#[allow(clippy::too_many_arguments)] // named ones
pub fn pack_sender<'py>(
    py: Python<'py>,
    name: &str,
    events: &str,
    control: String,
    stack: &str,
    recovery: &str,
    frto: bool,
    tail_loss_probe: bool,
    after_idle: bool,
    offload: bool,
    path: &Bound<'py, PyMapping>,
    receive_buffer: Option<u64>,
    all_acknowledged_ns: u64,
    retransmitted: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let all_acknowledged = Some(Time::from_nanos(all_acknowledged_ns));
    let outcome = Outcome { all_acknowledged, retransmitted };
    let around = Around { path: to_table(path)?, receive_buffer, outcome };
    let packed = py.detach(|| -> Result<Vec<u8>, Error> {
        let settings = Settings {
            control,
            stack: choice("reference", stack)?,
            mss: 1448,
            recovery: choice("recovery", recovery)?,
            timestamps: false,
            ecn: false,
            frto,
            tail_loss_probe,
            offload,
            after_idle,
        };
        settings.params()?;
        Ok(Case::read(name, settings, &around, events)?.pack())
    });
    Ok(PyBytes::new(py, &packed.map_err(|error| to_py_error(py, error))?))
}

/// Comparison: segments and equal ones, windows and equal ones, round-trip times equal within a
/// millisecond, and the time of the first difference.
type Equal = (u64, u64, u64, u64, u64, Option<u64>);

/// Replays a packed recording. Returns its name and the comparison.
#[pyfunction]
pub fn replay_sender(py: Python<'_>, packed: &[u8]) -> PyResult<(String, Equal)> {
    let replayed = py.detach(|| -> Result<_, Error> {
        let case = Case::unpack(&mut &*packed)?;
        let seen = compare(&case)?;
        let first = seen.first_difference.map(|at| at.as_nanos());
        let equal = (
            seen.segments,
            seen.segments_equal,
            seen.windows,
            seen.windows_equal,
            seen.srtt_equal,
            first,
        );
        Ok((case.name, equal))
    });
    replayed.map_err(|error| to_py_error(py, error))
}

/// Returns the name of the packed recording at an offset, and the offset of the next.
#[pyfunction]
pub fn next_sender(py: Python<'_>, packed: &[u8], begin: usize) -> PyResult<(String, usize)> {
    let mut rest = &packed[begin.min(packed.len())..];
    match Case::unpack(&mut rest) {
        Ok(case) => Ok((case.name, packed.len() - rest.len())),
        Err(error) => Err(to_py_error(py, error)),
    }
}

/// Time of the last acknowledgement, and number of retransmissions.
type Went = (Option<u64>, u64);

/// Replays a packed recording in a closed loop with simulated ends and links. Returns its name, the
/// result, the recorded result, and whether they are close.
#[pyfunction]
pub fn close_sender(py: Python<'_>, packed: &[u8]) -> PyResult<(String, Went, Went, bool)> {
    let closed = py.detach(|| -> Result<_, Error> {
        let case = Case::unpack(&mut &*packed)?;
        let ours = aqmlab_conformance::senders::closed_loop::play(&case)?;
        let went = |outcome: &Outcome| {
            (outcome.all_acknowledged.map(|at| at.as_nanos()), outcome.retransmitted)
        };
        let is_close = ours.is_close_to(&case.outcome);
        Ok((case.name, went(&ours), went(&case.outcome), is_close))
    });
    closed.map_err(|error| to_py_error(py, error))
}
