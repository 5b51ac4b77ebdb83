//! A run that is bounded in work and in time, and checked.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::Duration;

use aqmlab_core::{Span, Table, Time};
use aqmlab_sim::{Run, RunResult, Scenario, Stopped, WorkLimit, try_run};

use crate::check::check;
use crate::parse;

/// Events and packets of a scenario.
const WORK: u64 = 20_000;
/// The same at one moment: more of them is not an error, but no test either.
const AT_ONCE: u64 = 200_000;

/// Message for a run that does not end.
pub const TOO_LONG: &str = "it takes too long";

/// Result of a run.
pub struct Trial {
    pub digest: u64,
    pub events: u64,
    /// End of the run.
    end: Time,
}

/// Way of running a scenario.
type Way = fn(&Arc<Scenario>, Time, &WorkLimit) -> Result<RunResult, Stopped>;

/// Runs from start to end.
const WHOLE: Way = |scenario, _, limit| try_run(scenario, 0, limit);

/// Runs without later changes first, and then with them, in steps, returns to a copy and runs to the
/// end; the run `end`s at about this time. A copy of the run before the return must have the same
/// results.
const WITH_RETURN: Way = |scenario, end, limit| {
    let third = (end - Time::ZERO).as_nanos() / 3;
    let begun = Run::shared(scenario, 0, Span::from_nanos(third), limit.clone())?;
    let mut run = begun.continued(scenario, limit.progress.clone());
    run.step()?;
    let copy = run.fork().expect("all components of the project can be copied");
    run.advance(Time::from_nanos(2 * third) + Span::from_nanos(1))?;
    let fork = run.fork().expect("it could be copied before");
    run.restore(&copy);
    let (result, other) = (run.finish()?, fork.finish()?);
    assert_eq!(result.digest(), other.digest(), "a restored run has other results");
    Ok(result)
};

/// Result of a scenario.
pub enum Outcome {
    Done(Trial),
    /// The first time step has more work than a test allows.
    TooMuch,
    Failed(String),
}

/// Runs a scenario, with a shorter `duration` if its own causes too much work. Returns the scenario
/// that ran.
pub fn shortened(mut table: Table, patience: Duration) -> (Table, Outcome) {
    let mut work = WORK;
    for round in 1..=12 {
        let scenario = match parse(&table) {
            Ok(scenario) => Arc::new(scenario),
            Err(error) => return (table, Outcome::Failed(error.to_string())),
        };
        let stopped = match attempt(&scenario, (WHOLE, Time::ZERO), work, patience) {
            Ok(Ok(trial)) => return (table, again(&scenario, trial, patience * 3)),
            Ok(Err(stopped)) => stopped,
            // A queue may look at 65,536 flows at each event: slow, but it goes on.
            Err(problem) if problem == TOO_LONG && work == WORK => {
                work = WORK / 200;
                continue;
            }
            Err(problem) => return (table, Outcome::Failed(problem)),
        };
        // The mean rate of a link may depend on the duration: a shorter one is another run.
        let nanos = stopped / round;
        if nanos == 0 {
            break;
        }
        table.insert("duration", format!("{nanos}ns").into());
        // A warm-up has to end before the run.
        table.set_key("record.warmup", "0s".into()).expect("`record` is a table");
    }
    (table, Outcome::TooMuch)
}

/// Runs a scenario on two other threads at once, on one of them with a return to a snapshot: the
/// results are the same.
fn again(scenario: &Arc<Scenario>, trial: Trial, patience: Duration) -> Outcome {
    let others: Vec<_> = thread::scope(|scope| {
        let attempt = |way| move || attempt(scenario, (way, trial.end), WORK, patience);
        let both = [WHOLE, WITH_RETURN].map(|way| scope.spawn(attempt(way)));
        both.map(|thread| thread.join().expect("it catches panics")).into_iter().collect()
    });
    for other in others {
        match other {
            Ok(Ok(other)) if (other.digest, other.events) == (trial.digest, trial.events) => {}
            Ok(Ok(_)) => return Outcome::Failed("another thread gives other tables".into()),
            Ok(Err(_)) => return Outcome::Failed("another thread needs more events".into()),
            Err(problem) => return Outcome::Failed(problem),
        }
    }
    Outcome::Done(trial)
}

/// Runs a scenario in a thread of its own, which is left behind if it takes too long. Inside an
/// error is the virtual time, in nanoseconds, at which it had done all the work it may do.
fn attempt(
    scenario: &Arc<Scenario>,
    (way, end): (Way, Time),
    work: u64,
    patience: Duration,
) -> Result<Result<Trial, u64>, String> {
    let (sender, receiver) = channel();
    let scenario = Arc::clone(scenario);
    keep_panics();
    thread::spawn(move || {
        let limit = WorkLimit { at_once: AT_ONCE, in_all: work, ..WorkLimit::default() };
        let outcome = catch_unwind(AssertUnwindSafe(|| match way(&scenario, end, &limit) {
            Err(stopped) => Ok(Err(stopped.at.as_nanos())),
            Ok(result) => check(&scenario, &result)
                .map(|()| (result.digest(), result.events, result.end))
                .map(|(digest, events, end)| Ok(Trial { digest, events, end })),
        }));
        let outcome = outcome.unwrap_or_else(|panic| Err(panic_text(&*panic)));
        let _ = sender.send(outcome);
    });
    receiver.recv_timeout(patience).unwrap_or_else(|_| Err(TOO_LONG.to_string()))
}

/// Runs a scenario unchanged, without a limit.
pub fn plain(scenario: Scenario) -> Result<Trial, String> {
    match attempt(&Arc::new(scenario), (WHOLE, Time::ZERO), u64::MAX, Duration::from_secs(600))? {
        Ok(trial) => Ok(trial),
        Err(nanos) => Err(format!("no progress at {nanos} ns")),
    }
}

/// Where the last panic was.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Stores panics instead of printing them.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
            *PLACE.lock().expect("no holder panics") = place.unwrap_or_default();
        }));
    });
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
    format!("{}: {text}", PLACE.lock().expect("no holder panics"))
}
