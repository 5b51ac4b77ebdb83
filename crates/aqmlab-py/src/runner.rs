//! Runs jobs on all cores in the background while Python looks after
//! progress bars, files and signals.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use aqmlab_sim::Scenario;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::scenario::PyScenario;
use crate::tables::{Finished, Results};

/// Results that may wait to be fetched; then the workers wait. It bounds the
/// memory when every packet is recorded.
const WAITING: usize = 64;

/// A run number, a scenario and a replication.
struct Job {
    run: u32,
    scenario: Arc<Scenario>,
    replication: u64,
}

type Outcome = Result<Finished, String>;

struct Work {
    jobs: Vec<Job>,
    next: AtomicUsize,
    stopped: AtomicBool,
}

/// Runs jobs in the background.
#[pyclass(module = "aqmlab._core", frozen)]
pub struct Runner {
    work: Arc<Work>,
    outcomes: Mutex<Receiver<Outcome>>,
    finished: AtomicUsize,
}

#[pymethods]
impl Runner {
    #[new]
    #[pyo3(signature = (scenarios, jobs, *, threads = None))]
    fn new(
        scenarios: Vec<PyRef<'_, PyScenario>>,
        jobs: Vec<(u32, usize, u64)>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        if threads == Some(0) {
            return Err(PyValueError::new_err("threads: at least 1"));
        }
        let jobs = jobs
            .into_iter()
            .map(|(run, index, replication)| {
                let scenario = scenarios
                    .get(index)
                    .ok_or_else(|| PyIndexError::new_err(format!("no scenario {index}")))?;
                Ok(Job { run, scenario: Arc::clone(&scenario.scenario), replication })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or(cores).min(jobs.len());
        let work =
            Arc::new(Work { jobs, next: AtomicUsize::new(0), stopped: AtomicBool::new(false) });
        let (sender, outcomes) = sync_channel(WAITING);
        for _ in 0..threads {
            let (work, sender) = (Arc::clone(&work), sender.clone());
            thread::spawn(move || labour(&work, &sender));
        }
        Ok(Runner { work, outcomes: Mutex::new(outcomes), finished: AtomicUsize::new(0) })
    }

    /// Waits up to `timeout` seconds for finished runs and takes all there
    /// are; `None` if there are none.
    fn poll(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Results>> {
        let timeout = Duration::try_from_secs_f64(timeout)
            .map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        let outcomes = py.detach(|| self.take(timeout));
        let runs = outcomes.into_iter().collect::<Result<Vec<_>, _>>();
        let runs = runs.map_err(PyRuntimeError::new_err)?;
        if runs.is_empty() {
            return Ok(None);
        }
        self.finished.fetch_add(runs.len(), Ordering::Relaxed);
        Ok(Some(Results::new(runs)))
    }

    #[getter]
    fn finished(&self) -> usize {
        self.finished.load(Ordering::Relaxed)
    }
    #[getter]
    fn total(&self) -> usize {
        self.work.jobs.len()
    }
    /// Starts no further job; those under way finish.
    fn stop(&self) {
        self.work.stopped.store(true, Ordering::Relaxed);
    }
}

impl Runner {
    fn take(&self, timeout: Duration) -> Vec<Outcome> {
        let outcomes = self.outcomes.lock().expect("no holder of this lock panics");
        match outcomes.recv_timeout(timeout) {
            Ok(first) => std::iter::once(first).chain(outcomes.try_iter()).collect(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Vec::new(),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What each thread does: the next job, until there is none.
fn labour(work: &Work, sender: &SyncSender<Outcome>) {
    while !work.stopped.load(Ordering::Relaxed) {
        let Some(job) = work.jobs.get(work.next.fetch_add(1, Ordering::Relaxed)) else { return };
        let run = || aqmlab_sim::run(&job.scenario, job.replication);
        let outcome = catch_unwind(AssertUnwindSafe(run))
            .map(|result| Finished { run: job.run, scenario: Arc::clone(&job.scenario), result })
            .map_err(|panic| {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                format!("a bug in the engine, run {}: {}", job.run, text.unwrap_or("panic"))
            });
        if sender.send(outcome).is_err() {
            return; // Nobody waits for results any more.
        }
    }
}
