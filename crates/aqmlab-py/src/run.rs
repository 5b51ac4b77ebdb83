//! Step-by-step runs (`Run`) for Python.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aqmlab_core::{Error, Span, Time};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::{Outside, Position, Run, Stopped};
use aqmlab_tcp::congestion::AckSample;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::convert::{to_py_error, to_value};
use crate::custom::PyLookup;
use crate::runner::broken;
use crate::scenario::{Files, PyScenario, read_named};
use crate::tables::{Finished, Results};

/// Saved state of a run.
#[pyclass(name = "Snapshot", module = "aqmlab._core", frozen)]
pub struct PySnapshot {
    run: Mutex<Run>,
    time: Time,
}

#[pymethods]
impl PySnapshot {
    /// Virtual time in seconds.
    #[getter]
    fn time(&self) -> f64 {
        self.time.as_secs_f64()
    }
}

/// Run in progress, used by one thread.
#[pyclass(name = "Run", module = "aqmlab._core", unsendable)]
pub struct PyRun {
    /// `None` after the end, or after a failure.
    run: Option<Run>,
    folders: Vec<String>,
}

#[pymethods]
impl PyRun {
    #[new]
    #[pyo3(signature = (scenario, replication = 0))]
    fn new(py: Python<'_>, scenario: PyRef<'_, PyScenario>, replication: u64) -> PyResult<Self> {
        let make = || Run::new((*scenario.scenario).clone(), replication);
        let run = guarded(py, make)?;
        Ok(PyRun { run: Some(run), folders: scenario.folders.clone() })
    }

    /// Current virtual time in seconds.
    #[getter]
    fn time(&self) -> PyResult<f64> {
        Ok(self.ready()?.time().as_secs_f64())
    }

    /// Time of the next event in seconds; `None` at the end, and after it.
    #[getter]
    fn next_time(&self) -> Option<f64> {
        self.run.as_ref()?.next_time().map(Time::as_secs_f64)
    }

    /// Number of events handled.
    #[getter]
    fn events(&self) -> PyResult<u64> {
        Ok(self.ready()?.events())
    }

    /// Scenario with all changes.
    #[getter]
    fn scenario(&self) -> PyResult<PyScenario> {
        let scenario = std::sync::Arc::clone(self.ready()?.scenario());
        Ok(PyScenario { scenario, folders: self.folders.clone() })
    }

    /// Handles all events before `until`, in seconds.
    fn advance(&mut self, py: Python<'_>, until: f64) -> PyResult<()> {
        let until = time(until)?;
        self.with(py, |run| run.advance(until))
    }

    /// Handles the next event. Returns its time in seconds, or `None` at the end.
    fn step(&mut self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.with(py, Run::step)?.map(Time::as_secs_f64))
    }

    /// Changes a key from now on. Returns the time of the change in seconds.
    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.change(key, value, false)
    }

    /// Changes a key of a queue, which restarts with new state. Returns the time in seconds.
    fn replace(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.change(key, value, true)
    }

    /// Removes the pending changes.
    fn drop_later_changes(&mut self) -> PyResult<()> {
        self.run.as_mut().ok_or_else(over)?.drop_later_changes();
        Ok(())
    }

    /// Returns a snapshot of the run.
    fn snapshot(&self, py: Python<'_>) -> PyResult<PySnapshot> {
        let run = self.ready()?;
        let copy = guarded(py, || run.fork())?.map_err(|error| to_py_error(py, error))?;
        Ok(PySnapshot { time: copy.time(), run: Mutex::new(copy) })
    }

    /// Restores a snapshot.
    fn restore(&mut self, py: Python<'_>, snapshot: PyRef<'_, PySnapshot>) -> PyResult<()> {
        let run = self.run.as_mut().ok_or_else(over)?;
        guarded(py, || run.restore(&held(&snapshot.run)))
    }

    /// Returns a copy of the run.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let run = self.ready()?;
        let fork = guarded(py, || run.fork())?.map_err(|error| to_py_error(py, error))?;
        Ok(PyRun { run: Some(fork), folders: self.folders.clone() })
    }

    /// Position of the run: replication, time, open time (in nanoseconds) and events.
    #[getter]
    fn position(&self) -> PyResult<(u64, u64, u64, u64)> {
        let run = self.ready()?;
        let Position { time, open, events } = run.position();
        Ok((run.replication(), time.as_nanos(), open.as_nanos(), events))
    }

    /// Makes the state at a position again, by repeating the run of a scenario.
    #[staticmethod]
    fn repeat(
        py: Python<'_>,
        scenario: PyRef<'_, PyScenario>,
        position: (u64, u64, u64, u64),
    ) -> PyResult<Self> {
        let (replication, time, open, events) = position;
        let [time, open] = [time, open].map(Time::from_nanos);
        let (folders, scenario) = (scenario.folders.clone(), (*scenario.scenario).clone());
        let make = || Run::repeat(scenario, replication, Position { time, open, events });
        Ok(PyRun { run: Some(guarded(py, make)?.map_err(|stopped| stuck(py, stopped))?), folders })
    }

    /// Returns to an earlier time, in seconds, with all changes.
    fn rewind(&mut self, py: Python<'_>, to: f64) -> PyResult<()> {
        let to = time(to)?;
        self.with(py, |run| run.rewind(to, None))
    }

    /// Returns the state of links by name, and of the active flows.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let run = self.ready()?;
        let mut seen: Vec<(Subject, &'static str, f64)> = Vec::new();
        run.observe(&mut |subject, name, value| seen.push((subject, name, value)));
        let mut counts = vec![0_u32; run.scenario().flows.len()];
        let places: Vec<(usize, u32)> = run
            .flows()
            .map(|flow| {
                let group = flow.group as usize;
                counts[group] += 1;
                (group, counts[group] - 1)
            })
            .collect();
        let (links, flows) = (PyDict::new(py), PyList::empty(py));
        let mut last: Option<(Subject, Bound<'py, PyDict>)> = None;
        for (subject, name, value) in seen {
            let same = last.as_ref().filter(|(before, _)| *before == subject);
            let dict = match (same, subject) {
                (Some((_, dict)), _) => dict.clone(),
                (None, Subject::Flow(index)) => {
                    let dict = PyDict::new(py);
                    let (group, place) = places[index as usize];
                    dict.set_item("group", &run.scenario().flows[group].name)?;
                    dict.set_item("index", place)?;
                    flows.append(&dict)?;
                    dict
                }
                (None, Subject::Link(index)) => {
                    let dict = PyDict::new(py);
                    links.set_item(&run.scenario().links[index as usize].name, &dict)?;
                    dict
                }
                (None, Subject::Emulator) => continue,
            };
            dict.set_item(name, value)?;
            last = Some((subject, dict));
        }
        let all = PyDict::new(py);
        all.set_item("links", links)?;
        all.set_item("flows", flows)?;
        Ok(all)
    }

    /// Returns columns of the acknowledgements of a group, or of one flow, since the last call.
    fn samples<'py>(
        &mut self,
        py: Python<'py>,
        group: &str,
        index: Option<u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let run = self.run.as_mut().ok_or_else(over)?;
        let samples = run.samples(group, index).map_err(|error| to_py_error(py, error))?;
        let seconds = |span: Option<Span>| span.map_or(f64::NAN, Span::as_secs_f64);
        type Column<'a> = (&'static str, &'a dyn Fn(&AckSample) -> f64);
        let columns: [Column; 9] = [
            ("time_s", &|ack| ack.now.as_secs_f64()),
            ("rtt_s", &|ack| seconds(ack.rtt)),
            ("acked_bytes", &|ack| ack.acked as f64),
            ("delivered_bytes", &|ack| ack.delivered as f64),
            ("lost_bytes", &|ack| ack.lost as f64),
            ("in_flight_bytes", &|ack| ack.in_flight as f64),
            ("marked", &|ack| f64::from(u8::from(ack.ece))),
            ("ce_packets", &|ack| ack.ce_packets as f64),
            ("app_limited", &|ack| {
                f64::from(u8::from(ack.rate.is_some_and(|rate| rate.app_limited)))
            }),
        ];
        let all = PyDict::new(py);
        for (name, value) in columns {
            all.set_item(name, samples.iter().map(value).collect::<Vec<f64>>())?;
        }
        Ok(all)
    }

    /// Runs to the end. Returns the tables, and their digest.
    fn finish(&mut self, py: Python<'_>) -> PyResult<(Results, String)> {
        let run = self.run.take().ok_or_else(over)?;
        let scenario = std::sync::Arc::clone(run.scenario());
        let result = guarded(py, || run.finish())?.map_err(|stopped| stuck(py, stopped))?;
        let digest = format!("{:016x}", result.digest());
        Ok((Results::new(vec![Finished::new(0, scenario, result)]), digest))
    }
}

impl PyRun {
    fn change(&mut self, key: &str, value: &Bound<'_, PyAny>, replace: bool) -> PyResult<f64> {
        let py = value.py();
        let value = to_value(value)?;
        let (files, folders) = (Files::default(), self.folders.clone());
        let read_file = |name: &str| read_named(py, &files, &folders, name);
        let classes = PyLookup { folders: &folders };
        let endpoints = aqmlab_quic::endpoints().map_err(|error| to_py_error(py, error))?;
        let outside = Outside {
            disciplines: &classes,
            controls: &classes,
            endpoints: &endpoints,
            read_file: &read_file,
            ..Outside::default()
        };
        let run = self.run.as_mut().ok_or_else(over)?;
        let at = run.set(key, &value, replace, outside).map_err(|error| to_py_error(py, error))?;
        Ok(at.as_secs_f64())
    }

    fn ready(&self) -> PyResult<&Run> {
        self.run.as_ref().ok_or_else(over)
    }

    /// Handles events by `what`. A run in which Python code failed cannot continue.
    fn with<T>(
        &mut self,
        py: Python<'_>,
        what: impl FnOnce(&mut Run) -> Result<T, Stopped>,
    ) -> PyResult<T> {
        let mut run = self.run.take().ok_or_else(over)?;
        let done = guarded(py, || what(&mut run))?.map_err(|stopped| stuck(py, stopped))?;
        self.run = Some(run);
        Ok(done)
    }
}

/// Advances several runs, each to its own time in seconds, on this number of threads without the
/// GIL. If one fails, it is over, and the error of the first is raised.
#[pyfunction]
pub fn advance_all(
    py: Python<'_>,
    runs: Vec<Py<PyRun>>,
    until: Vec<f64>,
    threads: usize,
) -> PyResult<()> {
    if until.len() != runs.len() {
        return Err(PyValueError::new_err("one time for each run"));
    }
    let until = until.into_iter().map(time).collect::<PyResult<Vec<Time>>>()?;
    let mut taken = Vec::new();
    for (run, until) in runs.iter().zip(until) {
        let Some(going) = run.borrow_mut(py).run.take() else {
            for (run, (going, _)) in runs.iter().zip(taken) {
                run.borrow_mut(py).run = Some(going);
            }
            return Err(over());
        };
        taken.push((going, until));
    }
    let share = taken.len().div_ceil(threads.max(1)).max(1);
    type Ended = std::thread::Result<Result<Run, Stopped>>;
    let advance = |(mut run, until): (Run, Time)| -> Ended {
        catch_unwind(AssertUnwindSafe(|| run.advance(until).map(|()| run)))
    };
    let mut parts: Vec<Vec<(Run, Time)>> = Vec::new();
    while !taken.is_empty() {
        parts.push(taken.split_off(taken.len().saturating_sub(share)));
    }
    let ended: Vec<Ended> = py.detach(|| {
        std::thread::scope(|scope| {
            let mine = parts.pop().unwrap_or_default();
            let others: Vec<_> = parts
                .into_iter()
                .rev()
                .map(|part| scope.spawn(|| part.into_iter().map(advance).collect::<Vec<_>>()))
                .collect();
            let mut ended: Vec<Ended> = mine.into_iter().map(advance).collect();
            ended.extend(others.into_iter().flat_map(|part| part.join().expect("caught inside")));
            ended
        })
    });
    let mut failed = Ok(());
    for (run, ended) in runs.iter().zip(ended) {
        match guarded(py, || ended.unwrap_or_else(|panic| resume_unwind(panic))) {
            Ok(Ok(advanced)) => run.borrow_mut(py).run = Some(advanced),
            Ok(Err(stopped)) => failed = failed.and(Err(stuck(py, stopped))),
            Err(error) => failed = failed.and(Err(error)),
        }
    }
    failed
}

/// Converts a panic to an exception: that of Python code, or that of a bug.
fn guarded<T>(py: Python<'_>, what: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(what)).map_err(|panic| broken(py, panic, "engine"))
}

/// Returns what a lock holds. A copy that failed has left it unchanged.
pub fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn over() -> PyErr {
    let error = Error::new("the run is over")
        .hint("make another Run; `fork()` before `finish()` keeps a copy");
    Python::attach(|py| to_py_error(py, error))
}

/// Returns the `StuckError` of the package.
fn stuck(py: Python<'_>, stopped: Stopped) -> PyErr {
    let problems = BTreeMap::from([(0, stopped.to_string())]);
    let errors = py.import("aqmlab.errors");
    match errors.and_then(|errors| errors.call_method1("StuckError", (problems,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

fn time(seconds: f64) -> PyResult<Time> {
    if !(0.0..=1e10).contains(&seconds) {
        return Err(PyValueError::new_err(format!("expected seconds from 0, got {seconds}")));
    }
    Ok(Time::ZERO + Span::from_secs_f64(seconds))
}
