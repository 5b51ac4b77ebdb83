//! Job runner: runs jobs on all cores in the background, while Python handles progress bars, files
//! and signals.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use aqmlab_core::Span;
use aqmlab_sim::capture::{self, Recorder};
use aqmlab_sim::network::records::RecordSink;
use aqmlab_sim::scenario::{FlowGroup, Level, LinkConfig};
use aqmlab_sim::{Run, RunResult, Scenario, Stopped, WorkLimit, run_into};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::convert::{ControlError, QueueError};
use crate::custom::fault::{Abandoned, Failure, abandon_with};
use crate::custom::{Kind, PyConfig};
use crate::record::{Record, from_capture};
use crate::run::held;
use crate::scenario::PyScenario;
use crate::spill::{Spill, Unwritten, to_os_error};
use crate::stuck::Running;
use crate::tables::{Finished, Results};

/// Limit of results waiting to be fetched, beyond which workers wait. It bounds the memory when
/// every packet is recorded.
const WAITING: usize = 64;

/// Time that the exit of the program waits for running Python methods: threads must not use the
/// interpreter after its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Run number, scenario and replication.
struct Job {
    run: u32,
    scenario: Arc<Scenario>,
    replication: u64,
    /// Recorder, in addition to the results.
    recorder: Option<Recorder>,
    /// Jobs that differ from this one only after a time, and that time.
    followers: Vec<Job>,
    until: Span,
    /// Run until that time, to continue.
    from: Option<Arc<Mutex<Run>>>,
}

impl Job {
    /// Returns the time until which another job can share its run, if that is worthwhile.
    fn shares(&self, other: &Job) -> Option<Span> {
        let is_same = self.replication == other.replication && self.recorder.is_none();
        let may = is_same && self.scenario.record.level != Level::Packets;
        let until = self.scenario.first_difference(&other.scenario).filter(|_| may)?;
        let is_late = until > Span::ZERO && until.as_nanos() >= self.until.as_nanos() / 2;
        (is_late && !has_custom(&self.scenario)).then_some(until)
    }
}

/// Reason for an unfinished run.
enum Broken {
    /// Failure of Python code.
    Custom { run: u32, failure: Failure },
    /// No progress in virtual time.
    Stuck { run: u32, stopped: Stopped },
    /// Incomplete records.
    Unwritten(Unwritten),
    /// A bug.
    Engine(String),
}

type Outcome = Result<Finished, Broken>;

/// Jobs not started yet.
struct Waiting {
    jobs: VecDeque<Job>,
    /// True while more jobs may be added; workers then wait for them.
    open: bool,
    /// Jobs that wait for the run of this number to reach their first difference.
    followers: BTreeMap<u32, Vec<Job>>,
}

struct Work {
    waiting: Mutex<Waiting>,
    /// Signalled when jobs are added, or when the queue is closed.
    changed: Condvar,
    total: AtomicUsize,
    /// Number of working threads, without those of stuck runs.
    active: AtomicUsize,
    /// Runs in progress.
    running: Running,
    /// Folder for records of packets until the tables are built; `None`: in memory.
    spill: Option<PathBuf>,
    stopped: AtomicBool,
    /// Set when results are no longer needed: runs with Python code end at once.
    abandoned: Arc<AtomicBool>,
    /// Runs in Python code, with Python's numbers of their threads.
    in_python: Mutex<BTreeMap<u32, Option<u64>>>,
    out_of_python: Condvar,
}

impl Work {
    /// Returns the next job; `None` at the end.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting.lock().expect("no holder of this lock panics");
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(mut job) = waiting.jobs.pop_front() {
                if !job.followers.is_empty() {
                    waiting.followers.insert(job.run, std::mem::take(&mut job.followers));
                }
                return Some(job);
            }
            if !waiting.open && waiting.followers.is_empty() {
                return None;
            }
            waiting = self.changed.wait(waiting).expect("no holder of this lock panics");
        }
    }

    /// Lets the followers of a run start, from its state if it can be copied.
    fn release(&self, run: u32, from: Option<&Arc<Mutex<Run>>>) {
        let mut waiting = self.waiting.lock().expect("no holder of this lock panics");
        for mut job in waiting.followers.remove(&run).into_iter().flatten().rev() {
            job.from = from.cloned();
            waiting.jobs.push_front(job);
        }
        self.changed.notify_all();
    }

    /// Prevents further jobs.
    fn stop(&self) {
        // Under the lock: otherwise a worker that has just found the queue empty would miss it.
        let _waiting = self.waiting.lock().expect("no holder of this lock panics");
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// Runs jobs in the background.
#[pyclass(module = "aqmlab._core", frozen)]
pub struct Runner {
    work: Arc<Work>,
    outcomes: Mutex<Receiver<Outcome>>,
    /// Result channel for threads that replace those of stuck runs.
    sender: SyncSender<Outcome>,
    /// Runs without progress, until they are fetched.
    stuck: Mutex<BTreeMap<u32, String>>,
    /// Failure of the run with the lowest number, until all workers have ended. It prevents further
    /// runs.
    failed: Mutex<Option<Broken>>,
    finished: AtomicUsize,
}

#[pymethods]
impl Runner {
    #[new]
    #[pyo3(signature = (jobs, *, threads = None, open = false, spill = None, record = None))]
    fn new(
        jobs: Vec<(u32, PyRef<'_, PyScenario>, u64)>,
        threads: Option<usize>,
        open: bool,
        spill: Option<PathBuf>,
        record: Option<Record>,
    ) -> PyResult<Self> {
        if threads == Some(0) {
            return Err(PyValueError::new_err("threads: at least 1"));
        }
        let recorder = match (record, &jobs[..]) {
            (None, _) => None,
            (Some(record), [(_, scenario, _)]) => Some(record.begin(&scenario.scenario)?),
            _ => return Err(PyValueError::new_err("record: of one job")),
        };
        // The number of cores is in files, and takes a quarter of the time of a short run.
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let most = if open { usize::MAX } else { jobs.len() };
        let threads = threads.unwrap_or_else(cores).min(most);
        let work = Arc::new(Work {
            waiting: Mutex::new(Waiting {
                jobs: VecDeque::new(),
                open,
                followers: BTreeMap::new(),
            }),
            changed: Condvar::new(),
            total: AtomicUsize::new(0),
            active: AtomicUsize::new(threads),
            running: Running::default(),
            spill,
            stopped: AtomicBool::new(false),
            abandoned: Arc::default(),
            in_python: Mutex::default(),
            out_of_python: Condvar::new(),
        });
        let (sender, outcomes) = sync_channel(WAITING);
        let (outcomes, failed, stuck) = (Mutex::new(outcomes), Mutex::default(), Mutex::default());
        let finished = AtomicUsize::new(0);
        let runner = Runner { work, outcomes, sender, stuck, failed, finished };
        runner.add(jobs, recorder);
        for _ in 0..threads {
            start(&runner.work, &runner.sender);
        }
        Ok(runner)
    }

    /// Adds jobs to an open runner.
    fn extend(&self, jobs: Vec<(u32, PyRef<'_, PyScenario>, u64)>) {
        self.add(jobs, None);
    }

    /// Declares that no more jobs will be added.
    fn close(&self) {
        self.work.waiting.lock().expect("no holder of this lock panics").open = false;
        self.work.changed.notify_all();
    }

    /// Waits up to `timeout` seconds for finished runs, and returns all of them; `None` at the end.
    /// After a failure of Python code, or incomplete records, no further run starts, and the error
    /// is raised after the other runs have ended. Runs without progress are abandoned: see `stuck`.
    fn poll(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Results>> {
        let timeout = Duration::try_from_secs_f64(timeout)
            .map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        let (outcomes, all_done) = py.detach(|| self.take(timeout));
        let mut runs = Vec::new();
        for outcome in outcomes {
            match outcome {
                Ok(finished) => runs.push(finished),
                Err(Broken::Engine(problem)) => return Err(PyRuntimeError::new_err(problem)),
                Err(Broken::Stuck { run, stopped }) => self.keep_stuck(run, stopped.to_string()),
                Err(failure) => self.keep_failure(failure),
            }
        }
        self.give_up_stuck();
        if runs.is_empty() {
            let failed = self.failed.lock().expect("no holder of this lock panics");
            return match failed.as_ref().filter(|_| all_done) {
                Some(Broken::Custom { run, failure }) => Err(to_custom_error(py, *run, failure)),
                Some(Broken::Unwritten(Unwritten(error, path))) => Err(to_os_error(error, path)),
                _ => Ok(None),
            };
        }
        self.finished.fetch_add(runs.len(), Ordering::Relaxed);
        Ok(Some(Results::new(runs)))
    }

    /// Returns the runs abandoned since the last call, by number, each with its last event.
    fn stuck(&self) -> BTreeMap<u32, String> {
        std::mem::take(&mut *self.stuck.lock().expect("no holder of this lock panics"))
    }

    #[getter]
    fn finished(&self) -> usize {
        self.finished.load(Ordering::Relaxed)
    }
    #[getter]
    fn total(&self) -> usize {
        self.work.total.load(Ordering::Relaxed)
    }
    /// Starts no further job, and waits only briefly for those in Python code. Returns the threads
    /// that still run such code.
    fn stop(&self, py: Python<'_>) -> BTreeSet<u64> {
        self.work.stop();
        self.work.abandoned.store(true, Ordering::Relaxed);
        py.detach(|| {
            let running = self.work.in_python.lock().expect("no holder of this lock panics");
            let left = &self.work.out_of_python;
            let waited = left.wait_timeout_while(running, PATIENCE, |each| !each.is_empty());
            let running = waited.expect("no holder of this lock panics").0;
            running.values().copied().flatten().collect()
        })
    }
}

impl Runner {
    /// Adds jobs; the first is recorded.
    fn add(&self, jobs: Vec<(u32, PyRef<'_, PyScenario>, u64)>, mut recorder: Option<Recorder>) {
        let count = jobs.len();
        let mut heads: Vec<Job> = Vec::new();
        for (run, scenario, replication) in jobs {
            let scenario = Arc::clone(&scenario.scenario);
            let (recorder, until) = (recorder.take(), Span::ZERO);
            let followers = Vec::new();
            let job = Job { run, scenario, replication, recorder, followers, until, from: None };
            match heads.last_mut().and_then(|head| Some((head.shares(&job)?, head))) {
                Some((until, head)) => {
                    head.until = until;
                    head.followers.push(job);
                }
                None => heads.push(job),
            }
        }
        let mut waiting = self.work.waiting.lock().expect("no holder of this lock panics");
        self.work.total.fetch_add(count, Ordering::Relaxed);
        waiting.jobs.extend(heads);
        self.work.changed.notify_all();
    }

    fn keep_stuck(&self, run: u32, text: String) {
        self.stuck.lock().expect("no holder of this lock panics").insert(run, text);
    }

    /// Abandons runs without progress, and replaces their threads.
    #[allow(clippy::disallowed_methods, reason = "a watch over the engine, not a part of it")]
    fn give_up_stuck(&self) {
        for (run, text) in self.work.running.stuck(Instant::now()) {
            self.work.release(run, None);
            self.keep_stuck(run, text);
            start(&self.work, &self.sender);
        }
    }

    /// Returns finished results, and whether more may follow.
    fn take(&self, timeout: Duration) -> (Vec<Outcome>, bool) {
        let all_done = self.work.active.load(Ordering::Acquire) == 0;
        let timeout = if all_done { Duration::ZERO } else { timeout };
        let outcomes = self.outcomes.lock().expect("no holder of this lock panics");
        match outcomes.recv_timeout(timeout) {
            Ok(first) => (std::iter::once(first).chain(outcomes.try_iter()).collect(), false),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                (Vec::new(), all_done)
            }
        }
    }

    fn keep_failure(&self, new: Broken) {
        self.work.stop();
        let number = |of: &Broken| match of {
            Broken::Custom { run, .. } => u64::from(*run),
            _ => u64::MAX,
        };
        let mut failed = self.failed.lock().expect("no holder of this lock panics");
        if failed.as_ref().is_none_or(|known| number(&new) < number(known)) {
            *failed = Some(new);
        }
    }
}

/// Converts a panic to an exception: that of Python code, or that of a bug in this place.
pub fn broken(py: Python<'_>, panic: Box<dyn Any + Send>, place: &str) -> PyErr {
    match Failure::of(panic) {
        Ok(failure) => to_custom_error(py, 0, &failure),
        Err(panic) => {
            PyRuntimeError::new_err(format!("a bug in the {place}: {}", panic_text(&*panic)))
        }
    }
}

fn to_custom_error(py: Python<'_>, run: u32, failure: &Failure) -> PyErr {
    let message = failure.message.clone();
    let error = match failure.kind {
        Kind::Queue => QueueError::new_err(message),
        Kind::Control => ControlError::new_err(message),
    };
    error.set_cause(py, failure.cause.as_ref().map(|cause| cause.clone_ref(py)));
    match error.value(py).setattr("run", run) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.work.stop();
        self.work.abandoned.store(true, Ordering::Relaxed);
    }
}

/// Returns whether a scenario contains Python code.
fn has_custom(scenario: &Scenario) -> bool {
    let queue = |link: &LinkConfig| link.queue.downcast_ref::<PyConfig>().is_some();
    let control =
        |flow: &FlowGroup| flow.transport.congestion_control.downcast_ref::<PyConfig>().is_some();
    scenario.links.iter().any(queue) || scenario.flows.iter().any(control)
}

/// Result of a run that did not panic.
type Ran = Result<Result<Recorded, Stopped>, Box<dyn Any + Send>>;
/// Result, with the completeness of its records.
type Recorded = (RunResult, Result<(), capture::Unwritten>);

/// Executes one run. Returns `None` if it was abandoned for lack of progress.
fn run(work: &Work, job: &mut Job, spill: Option<&Arc<Spill>>) -> Option<Ran> {
    let recorder = job.recorder.take();
    let (scenario, replication) = (&job.scenario, job.replication);
    let (run, until, from) = (job.run, job.until, job.from.take());
    let simulate = |limit: &WorkLimit| {
        let sink = spill.map(|spill| Arc::clone(spill) as Arc<dyn RecordSink>);
        catch_unwind(AssertUnwindSafe(|| match recorder {
            None if from.is_some() || until > Span::ZERO => {
                let from = match from {
                    Some(from) => from,
                    None => {
                        let shared = Run::shared(scenario, replication, until, limit.clone())?;
                        Arc::new(Mutex::new(shared))
                    }
                };
                let copy = Some(held(&from)).filter(|run| run.is_cloneable());
                let copy = copy.and_then(|run| run.fork().ok());
                work.release(run, copy.is_some().then_some(&from));
                let own = copy.unwrap_or_else(|| taken(from));
                Ok((own.continued(scenario, limit.progress.clone()).finish()?, Ok(())))
            }
            recorder => run_into(scenario, replication, limit, sink, recorder),
        }))
    };
    if has_custom(&job.scenario) {
        return Some(run_custom(work, job, || simulate(&WorkLimit::default())));
    }
    let progress = work.running.begin(job.run, &job.scenario);
    let result = simulate(&WorkLimit { progress: Some(progress), ..WorkLimit::default() });
    if until > Span::ZERO {
        work.release(run, None); // if the run stopped before that time
    }
    work.running.end(job.run).then_some(result)
}

/// Returns a run that is not shared.
fn taken(run: Arc<Mutex<Run>>) -> Run {
    let run = Arc::into_inner(run).expect("released without a copy");
    run.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Executes a run with Python code, whose duration is not limited.
fn run_custom(work: &Work, job: &Job, simulate: impl FnOnce() -> Ran + Send) -> Ran {
    let in_python = || work.in_python.lock().expect("no holder of this lock panics");
    {
        let mut running = in_python();
        if work.abandoned.load(Ordering::Relaxed) {
            return Err(Box::new(Abandoned));
        }
        running.insert(job.run, None);
    }
    abandon_with(&work.abandoned);
    // The thread keeps its interpreter state for the whole run: creating it takes longer than a
    // call.
    Python::attach(|py| {
        let thread = py.import("threading").and_then(|it| it.call_method0("get_ident")?.extract());
        in_python().insert(job.run, thread.ok());
        let result = py.detach(simulate);
        in_python().remove(&job.run);
        work.out_of_python.notify_all();
        result
    })
}

/// Starts a worker thread.
fn start(work: &Arc<Work>, sender: &SyncSender<Outcome>) {
    let (work, sender) = (Arc::clone(work), sender.clone());
    thread::spawn(move || {
        if labour(&work, &sender).is_some() {
            work.active.fetch_sub(1, Ordering::Release);
        }
    });
}

/// Runs jobs until none is left. Returns `None` if the thread was replaced.
fn labour(work: &Work, sender: &SyncSender<Outcome>) -> Option<()> {
    while let Some(mut job) = work.next() {
        let spill = work.spill.as_ref().map(|folder| Arc::new(Spill::new(folder)));
        let result = run(work, &mut job, spill.as_ref())?;
        if matches!(&result, Err(panic) if panic.is::<Abandoned>()) {
            break;
        }
        let outcome = result
            .map_err(|panic| {
                let panic = match Failure::of(panic) {
                    Ok(failure) => return Broken::Custom { run: job.run, failure },
                    Err(panic) => panic,
                };
                let panic = match panic.downcast::<Unwritten>() {
                    Ok(why) => return Broken::Unwritten(*why),
                    Err(panic) => panic,
                };
                let text = panic_text(&*panic);
                Broken::Engine(format!("a bug in the engine, run {}: {text}", job.run))
            })
            .and_then(|ran| ran.map_err(|stopped| Broken::Stuck { run: job.run, stopped }))
            .and_then(|(result, written)| match written {
                Ok(()) => Ok(result),
                Err(problem) => Err(Broken::Unwritten(from_capture(problem))),
            })
            .map(|result| {
                spill.iter().for_each(|spill| spill.close());
                Finished { run: job.run, scenario: Arc::clone(&job.scenario), result, spill }
            });
        if sender.send(outcome).is_err() {
            break; // Results are no longer needed.
        }
    }
    Some(())
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic")
}
