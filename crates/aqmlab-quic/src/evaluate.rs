//! A user's controller, evaluated from a Rust test: metrics and verdicts.
//!
//! ```no_run
//! # use aqmlab_quic::noq_proto::congestion::{NewReno, NewRenoConfig};
//! aqmlab_quic::evaluate(|| Box::new(my_controller())).assert();
//! # fn my_controller() -> NewReno { unimplemented!() }
//! ```
//!
//! Each case runs in several replications, which differ in the random start times of flows and in
//! losses. Each runs again with the library's CUBIC, with the same random numbers, for comparison.
//! A rule holds if all of the 99 % interval of its mean (Student's) is on the right side of its limit,
//! fails if all is on the wrong side, and is not decided otherwise. The limits are the project's own;
//! RFC 9743 names none. NewReno and CUBIC of both libraries keep them; a window that is halved at each
//! loss uses 75 % of a link without a buffer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use aqmlab_core::{Result, Time, Value};
use aqmlab_sim::endpoints::Endpoints;
use aqmlab_sim::run::work_limit::Progress;
use aqmlab_sim::{Outside, RunResult, Scenario, WorkLimit, try_run};

use crate::own::{Code, Own, OwnParams};

/// Evaluates a controller of noq or quinn with the default settings.
pub fn evaluate<Library>(make: impl Code<Library>) -> Report {
    Evaluation::new(make).run()
}

/// A measured number of a run.
type Measure = fn(&Scenario, &RunResult) -> f64;

/// A rule: a metric and its limit.
struct Rule {
    metric: &'static str,
    measure: Measure,
    is_least: bool,
    limit: f64,
}

/// A scenario and its rules.
struct Case {
    name: &'static str,
    /// Section of RFC 9743.
    section: &'static str,
    scenario: String,
    rules: Vec<Rule>,
}

const fn least(metric: &'static str, measure: Measure, limit: f64) -> Rule {
    Rule { metric, measure, is_least: true, limit }
}

const fn most(metric: &'static str, measure: Measure, limit: f64) -> Rule {
    Rule { metric, measure, is_least: false, limit }
}

fn use_of_link(_: &Scenario, run: &RunResult) -> f64 {
    run.links[0].utilisation
}

/// 95th percentile of the time in the queue, in milliseconds.
fn delay(_: &Scenario, run: &RunResult) -> f64 {
    1e3 * run.links[0].sojourn.quantiles[3]
}

fn loss(_: &Scenario, run: &RunResult) -> f64 {
    let counts = &run.links[0].counts;
    counts.dropped_total() as f64 / counts.arrived.max(1) as f64
}

/// Goodput of the flows of group `own`.
fn goodputs<'a>(scenario: &'a Scenario, run: &'a RunResult) -> impl Iterator<Item = f64> + 'a {
    run.flows
        .iter()
        .filter(|flow| scenario.flows[flow.group as usize].name == "own")
        .map(|flow| flow.goodput)
}

/// Share of the goodput of all flows.
fn share(scenario: &Scenario, run: &RunResult) -> f64 {
    let all: f64 = run.flows.iter().map(|flow| flow.goodput).sum();
    goodputs(scenario, run).sum::<f64>() / all
}

/// Jain's index of the flows' goodputs.
fn jain(scenario: &Scenario, run: &RunResult) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for goodput in goodputs(scenario, run) {
        count += 1.0;
        sum += goodput;
        squares += goodput * goodput;
    }
    sum * sum / (count * squares)
}

fn scenario(down: &str, flows: &str) -> String {
    format!(
        r#"
        duration = "15s"
        bottleneck = "down"
        record.warmup = "3s"
        links.down = {{ rate = "10mbit", delay = "20ms", {down} }}
        links.up = {{ rate = "10mbit", delay = "20ms" }}
        {flows}
        "#
    )
}

fn flows(name: &str, keys: &str) -> String {
    let start = r#"start = { each = ["0s", "500ms"] }"#;
    format!("flows.{name} = {{ path = \"down\", return_path = \"up\", {start}, {keys} }}\n")
}

fn cases() -> Vec<Case> {
    let own = |count| flows("own", &format!("count = {count}, endpoint = \"quic\""));
    let cubic = flows("cubic", "transport = { congestion_control = \"cubic\" }");
    let fifo = |limit| format!("queue = {{ discipline = \"droptail\", limit = \"{limit}\" }}");
    let case = |name, section, down: &str, flows: String, rules| Case {
        name,
        section,
        scenario: scenario(down, &flows),
        rules,
    };
    vec![
        case(
            "drop-tail",
            "5.1.2",
            &fifo("1bdp"),
            own(1),
            vec![least("utilisation", use_of_link, 0.9), most("loss", loss, 0.05)],
        ),
        case(
            "shallow buffer",
            "5.1.1",
            &fifo("0.25bdp"),
            own(1),
            vec![least("utilisation", use_of_link, 0.7), most("loss", loss, 0.1)],
        ),
        case(
            "FQ-CoDel",
            "5.3.1",
            "queue = \"fq_codel\"",
            own(1),
            vec![least("utilisation", use_of_link, 0.75), most("delay_p95_ms", delay, 30.0)],
        ),
        case(
            "1 % random loss",
            "5.1.3",
            "loss = 0.01",
            own(1),
            vec![least("utilisation", use_of_link, 0.15)],
        ),
        case(
            "two flows",
            "5.1.4",
            &fifo("1bdp"),
            own(2),
            vec![least("jain", jain, 0.7), least("utilisation", use_of_link, 0.9)],
        ),
        case(
            "beside CUBIC",
            "5.2.1",
            &fifo("1bdp"),
            own(1) + &cubic,
            vec![least("share", share, 0.1), most("share", share, 0.8)],
        ),
        case(
            "40 flows",
            "5.1.1",
            &fifo("1bdp"),
            own(40),
            vec![least("utilisation", use_of_link, 0.95), most("loss", loss, 0.35)],
        ),
    ]
}

/// Answer of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of the interval is on the right side of the limit.
    Holds,
    /// All of the interval is on the wrong side.
    Fails,
    /// The interval contains the limit, or there are fewer than five replications.
    Undecided,
}

/// A metric of one case, with its limit and verdict.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Name of the case.
    pub case: &'static str,
    /// Section of RFC 9743 that the case is about.
    pub section: &'static str,
    /// Name of the metric.
    pub metric: &'static str,
    /// Mean over the replications.
    pub mean: f64,
    /// Half of the 99 % interval; NaN without one.
    pub half: f64,
    /// Mean with the library's CUBIC.
    pub cubic: f64,
    /// True if the limit is the least value, false if it is the largest one.
    pub is_least: bool,
    /// Limit of the rule.
    pub limit: f64,
    /// Verdict of the rule.
    pub verdict: Verdict,
}

/// Result of an evaluation. Its `Display` is a table.
#[derive(Clone, Debug)]
pub struct Report {
    /// Type of the controller.
    pub controller: &'static str,
    /// Seed of the runs.
    pub seed: u64,
    /// Replications of each case.
    pub replications: u64,
    /// Metrics and verdicts of the cases.
    pub readings: Vec<Reading>,
    /// Reason that ended the evaluation: a panic, a failed connection or a controller that does not
    /// send. It names controller, virtual time, case, seed and replication.
    pub failure: Option<String>,
}

impl Report {
    /// True if nothing failed and no rule fails.
    pub fn passes(&self) -> bool {
        self.failure.is_none() && self.readings.iter().all(|each| each.verdict != Verdict::Fails)
    }

    /// Mean of a metric in a case.
    pub fn metric(&self, case: &str, metric: &str) -> Option<f64> {
        let found = self.readings.iter().find(|each| each.case == case && each.metric == metric);
        found.map(|each| each.mean)
    }

    /// Ends a test with the table if a rule fails.
    ///
    /// # Panics
    /// Panics unless the report [`passes`](Self::passes).
    pub fn assert(&self) {
        assert!(self.passes(), "\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} replications, seed {}", self.controller, self.replications, self.seed)?;
        if let Some(failure) = &self.failure {
            return writeln!(f, "failed: {failure}");
        }
        writeln!(f, "case (RFC 9743)         metric         wanted         found      CUBIC")?;
        for each in &self.readings {
            let sign = if each.is_least { ">=" } else { "<=" };
            let verdict = match each.verdict {
                Verdict::Holds => "holds",
                Verdict::Fails => "does not hold",
                Verdict::Undecided => "not decided",
            };
            writeln!(
                f,
                "{:<16} {:<6} {:<12} {sign} {:>6} {:>8.3} ± {:<6.3} {:>6.3}  {verdict}",
                each.case, each.section, each.metric, each.limit, each.mean, each.half, each.cubic
            )?;
        }
        Ok(())
    }
}

/// Settings of an evaluation.
pub struct Evaluation {
    own: Own,
    seed: u64,
    replications: u64,
    threads: usize,
    patience: Duration,
}

/// Interval of the checks for progress.
const CHECK: Duration = Duration::from_millis(100);

impl Evaluation {
    /// Makes an evaluation of a controller: seed 1, five replications, two threads.
    pub fn new<Library>(make: impl Code<Library>) -> Self {
        let patience = Duration::from_secs(60);
        Evaluation { own: make.own(), seed: 1, replications: 5, threads: 2, patience }
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of replications; verdicts need five.
    #[must_use]
    pub fn replications(mut self, count: u64) -> Self {
        self.replications = count.max(1);
        self
    }

    /// Sets the number of threads. The report does not depend on it.
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count.max(1);
        self
    }

    /// Sets the time without progress of a run after which the evaluation ends: 60 s by default.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Reads a scenario of your own, in which the endpoint `quic` has the controller. `aqmlab_sim::run`
    /// runs it.
    ///
    /// # Errors
    /// Returns an error that names key and allowed values if the scenario is wrong.
    pub fn scenario(&self, toml: &str, set: &[(String, Value)]) -> Result<Scenario> {
        let endpoints = Endpoints::default().with(Box::new(OwnParams::new(self.own.clone())))?;
        Scenario::parse_with(toml, "scenario", set, Outside::endpoints(&endpoints))
    }

    /// Runs all cases.
    pub fn run(&self) -> Report {
        let mut report = Report {
            controller: self.own.name(),
            seed: self.seed,
            replications: self.replications,
            readings: Vec::new(),
            failure: None,
        };
        match self.measure() {
            Ok(found) => {
                for (case, [own, cubic]) in cases().iter().zip(&found) {
                    let readings = case.rules.iter().enumerate();
                    report
                        .readings
                        .extend(readings.map(|(i, rule)| case.judge(rule, i, own, cubic)));
                }
            }
            Err(failure) => report.failure = Some(failure),
        }
        report
    }

    /// Scenarios of the cases, each with the controller and with CUBIC.
    fn scenarios(&self, cases: &[Case]) -> Vec<Scenario> {
        let seed = [("seed".to_string(), Value::Integer(self.seed as i64))];
        let library = aqmlab_core::ParamType::to_text(&self.own.library());
        let cubic = crate::endpoints().expect("its name is free");
        let both = cases.iter().flat_map(|case| {
            let own = self.scenario(&case.scenario, &seed);
            let stack = ("flows.own.endpoint.stack".to_string(), library.as_str().into());
            let set = [seed[0].clone(), stack];
            let outside = Outside::endpoints(&cubic);
            [own, Scenario::parse_with(&case.scenario, "scenario", &set, outside)]
        });
        both.map(|each| each.expect("the scenarios of the evaluation are correct")).collect()
    }

    /// Values of each case, with the controller and with CUBIC, by replication and rule. A thread
    /// cannot be stopped: that of a run without progress is left behind.
    fn measure(&self) -> std::result::Result<Vec<[Vec<Vec<f64>>; 2]>, String> {
        let cases = cases();
        let scenarios = self.scenarios(&cases);
        let count = self.replications as usize;
        let work = Arc::new(Work {
            name: self.own.name(),
            seed: self.seed,
            values: Mutex::new(vec![vec![Vec::new(); count]; scenarios.len()]),
            cases,
            scenarios,
            count,
            failures: Mutex::default(),
            running: Mutex::default(),
            next: AtomicUsize::new(0),
        });
        let (done, all_done) = mpsc::channel();
        for _ in 0..self.threads {
            let (work, done) = (Arc::clone(&work), done.clone());
            thread::spawn(move || work.run(&done));
        }
        drop(done);
        work.watch(&all_done, self.patience)?;
        // The first in order, with any number of threads: earlier jobs are complete.
        if let Some((_, failure)) = std::mem::take(&mut *held(&work.failures)).into_iter().min() {
            return Err(failure);
        }
        let mut values = std::mem::take(&mut *held(&work.values)).into_iter();
        Ok(work.cases.iter().map(|_| [(); 2].map(|()| values.next().unwrap_or_default())).collect())
    }
}

/// Runs of an evaluation, shared by its threads. Jobs are numbered by scenario and replication.
struct Work {
    name: &'static str,
    seed: u64,
    cases: Vec<Case>,
    scenarios: Vec<Scenario>,
    /// Number of replications.
    count: usize,
    values: Mutex<Vec<Vec<Vec<f64>>>>,
    failures: Mutex<Vec<(usize, String)>>,
    running: Mutex<BTreeMap<usize, Arc<Progress>>>,
    next: AtomicUsize,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    /// Runs jobs until none is left or one fails. Dropping `done` reports the end.
    fn run(&self, done: &Sender<()>) {
        loop {
            let job = self.next.fetch_add(1, Ordering::Relaxed);
            let (which, replication) = (job / self.count, job % self.count);
            if which >= self.scenarios.len() || !held(&self.failures).is_empty() {
                break;
            }
            let progress = Arc::<Progress>::default();
            held(&self.running).insert(job, Arc::clone(&progress));
            match self.once(job, progress) {
                Ok(found) => held(&self.values)[which][replication] = found,
                Err(failure) => held(&self.failures).push((job, failure)),
            }
            held(&self.running).remove(&job);
        }
        // Fails if the evaluation has ended without this thread.
        let _ = done.send(());
    }

    /// Waits for all threads, or until the virtual time of a run stands still for too long.
    fn watch(
        &self,
        all_done: &mpsc::Receiver<()>,
        patience: Duration,
    ) -> std::result::Result<(), String> {
        let mut known: BTreeMap<usize, (Time, Duration)> = BTreeMap::new();
        loop {
            match all_done.recv_timeout(CHECK) {
                Ok(()) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let running = held(&self.running).clone();
            known.retain(|job, _| running.contains_key(job));
            for (job, progress) in running {
                let time = progress.time();
                let (before, still) = known.entry(job).or_insert((time, Duration::ZERO));
                *still = if time == *before { *still + CHECK } else { Duration::ZERO };
                *before = time;
                if *still >= patience {
                    let event = progress.event(&self.scenarios[job / self.count]);
                    let (name, at, place) = (self.name, time.as_secs_f64(), self.place(job));
                    return Err(format!("{name}: no progress at {at:.6} s, {event}; {place}"));
                }
            }
        }
    }

    fn place(&self, job: usize) -> String {
        let case = self.cases[job / self.count / 2].name;
        format!("case `{case}`, seed {}, replication {}", self.seed, job % self.count)
    }

    /// Runs a job.
    fn once(&self, job: usize, progress: Arc<Progress>) -> std::result::Result<Vec<f64>, String> {
        let scenario = &self.scenarios[job / self.count];
        let (name, place) = (self.name, self.place(job));
        let limit = WorkLimit { progress: Some(progress), ..WorkLimit::default() };
        let run = try_run(scenario, (job % self.count) as u64, &limit)
            .map_err(|stopped| format!("{name}: {stopped}; {place}"))?;
        // A connection that starves beside others is no fault here: the metrics show it.
        let own = run.flows.iter().filter(|flow| scenario.flows[flow.group as usize].name == "own");
        let (sent, delivered) =
            own.fold((0, 0), |(sent, bytes), flow| (sent + flow.sent, bytes + flow.delivered));
        let notes = run.findings.iter().filter(|found| found.note.id == "connection-failed");
        for text in notes.map(|found| &found.note.text) {
            if delivered == 0 || text.contains("`panic: ") {
                return Err(format!("{text}; {place}"));
            }
        }
        if delivered == 0 {
            let end = run.end.as_secs_f64();
            return Err(format!(
                "{name}: no data arrived by {end} s, {sent} packets sent; {place}"
            ));
        }
        let rules = &self.cases[job / self.count / 2].rules;
        Ok(rules.iter().map(|rule| (rule.measure)(scenario, &run)).collect())
    }
}

impl Case {
    fn judge(&self, rule: &Rule, index: usize, own: &[Vec<f64>], cubic: &[Vec<f64>]) -> Reading {
        let values: Vec<f64> = own.iter().map(|each| each[index]).collect();
        let (mean, half) = interval(&values);
        let slack = if rule.is_least { mean - rule.limit } else { rule.limit - mean };
        let verdict = match () {
            () if slack > half => Verdict::Holds,
            () if slack < -half => Verdict::Fails,
            () => Verdict::Undecided,
        };
        let others: Vec<f64> = cubic.iter().map(|each| each[index]).collect();
        Reading {
            case: self.name,
            section: self.section,
            metric: rule.metric,
            mean,
            half,
            cubic: interval(&others).0,
            is_least: rule.is_least,
            limit: rule.limit,
            verdict,
        }
    }
}

/// Fewest replications with an interval.
const FEWEST: usize = 5;

/// Mean, and half of its 99 % interval; NaN with fewer than [`FEWEST`] values.
fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < FEWEST {
        return (mean, f64::NAN);
    }
    let squares: f64 = values.iter().map(|each| (each - mean) * (each - mean)).sum();
    (mean, student(values.len() - 1) * (squares / (count - 1.0) / count).sqrt())
}

/// Quantile 0.995 of Student's distribution (Hill 1970, Cornish-Fisher expansion): within 0.5 % from
/// 4 degrees of freedom.
fn student(freedom: usize) -> f64 {
    let (z, n) = (2.575_829_303_548_9, freedom as f64);
    let (z2, inverse) = (z * z, 1.0 / n);
    let one = (z2 + 1.0) / 4.0;
    let two = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let three = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let four = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
    z * (1.0 + inverse * (one + inverse * (two + inverse * (three + inverse * four))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of Student's distribution.
    #[test]
    fn intervals_are_students() {
        for (freedom, exact) in [(4, 4.604), (5, 4.032), (9, 3.250), (19, 2.861), (99, 2.626)] {
            assert!(
                (student(freedom) / exact - 1.0).abs() < 0.005,
                "{freedom}: {}",
                student(freedom)
            );
        }
        let (mean, half) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((mean - 3.0).abs() < 1e-12 && (half - 4.604 * 0.5_f64.sqrt()).abs() < 0.02);
        assert!(interval(&[1.0; 4]).1.is_nan());
    }
}
