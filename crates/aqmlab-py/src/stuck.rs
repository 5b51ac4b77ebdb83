//! Detection of stuck runs, whose virtual time does not advance for minutes.
//!
//! The engine itself ends a run with too many events at one time ([`WorkLimit`](aqmlab_sim::WorkLimit)).
//! This module detects endless events, which no event count reveals. A thread cannot be stopped;
//! the run is abandoned, and its thread left behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aqmlab_core::Time;
use aqmlab_sim::Scenario;
use aqmlab_sim::run::work_limit::Progress;

/// Time without progress before a run is abandoned.
const PATIENCE: Duration = Duration::from_secs(120);
/// Limit of the counted time between two checks: the whole program may have been suspended.
const MOST_BETWEEN: Duration = Duration::from_secs(1);

struct Run {
    scenario: Arc<Scenario>,
    progress: Arc<Progress>,
    /// Virtual time at the last check, and how long it has not changed.
    time: Time,
    still: Duration,
}

/// Runs in progress, by number.
#[derive(Default)]
pub struct Running {
    runs: Mutex<BTreeMap<u32, Run>>,
    looked: Mutex<Option<Instant>>,
}

impl Running {
    /// Registers a run. Returns the object for its progress.
    pub fn begin(&self, run: u32, scenario: &Arc<Scenario>) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let (time, still) = (Time::ZERO, Duration::ZERO);
        let entry =
            Run { scenario: Arc::clone(scenario), progress: Arc::clone(&progress), time, still };
        self.runs.lock().expect("no holder of this lock panics").insert(run, entry);
        progress
    }

    /// Unregisters a run. Returns false if it was abandoned.
    pub fn end(&self, run: u32) -> bool {
        self.runs.lock().expect("no holder of this lock panics").remove(&run).is_some()
    }

    /// Abandons stuck runs, and returns them with their last event. Call it periodically.
    pub fn stuck(&self, now: Instant) -> Vec<(u32, String)> {
        let before = self.looked.lock().expect("no holder of this lock panics").replace(now);
        let passed = before.map_or(Duration::ZERO, |before| now - before).min(MOST_BETWEEN);
        let mut runs = self.runs.lock().expect("no holder of this lock panics");
        for run in runs.values_mut() {
            let time = run.progress.time();
            run.still = if time == run.time { run.still + passed } else { Duration::ZERO };
            run.time = time;
        }
        let stuck: Vec<u32> =
            runs.iter().filter(|(_, run)| run.still >= PATIENCE).map(|(run, _)| *run).collect();
        let give_up = |number: u32| {
            let run = runs.remove(&number).expect("it is there");
            let at = run.time.as_secs_f64();
            let event = run.progress.event(&run.scenario);
            let text = format!(
                "no progress: virtual time stopped at {at} s for {} s, at {event}",
                PATIENCE.as_secs()
            );
            (number, text)
        };
        stuck.into_iter().map(give_up).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run without reported progress is stuck; the time between checks does not count beyond the
    /// limit.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "any moment will do to begin with")]
    fn a_run_that_stands_still_is_given_up_once() {
        let text = "[links.a]\nrate = \"1mbit\"\n[flows.b]\npath = \"a\"\nreturn_path = \"a\"";
        let scenario = Arc::new(Scenario::parse(text, "still", &[]).unwrap());
        let running = Running::default();
        running.begin(3, &scenario);
        running.begin(4, &scenario);
        let start = Instant::now();
        let mut looks = (0..).map(|second| start + Duration::from_secs(second));
        assert!(running.stuck(looks.next().unwrap()).is_empty());
        assert!(running.stuck(start + Duration::from_secs(1_000)).is_empty(), "nobody looked");
        assert!(running.end(4));
        let later = (1_001..).map(|second| start + Duration::from_secs(second));
        let (count, stuck) = later
            .enumerate()
            .map(|(count, now)| (count, running.stuck(now)))
            .find(|(_, stuck)| !stuck.is_empty())
            .unwrap();
        assert_eq!(count, 118);
        assert!(
            stuck[0].0 == 3
                && stuck[0].1.starts_with("no progress: virtual time stopped at 0 s for 120 s"),
            "{stuck:?}"
        );
        assert!(!running.end(3), "the run was abandoned");
    }
}
