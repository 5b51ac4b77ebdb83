//! Runs that stand still: their virtual time does not go on for minutes.
//!
//! The engine ends a run by itself that does too much at one moment
//! ([`Watch`](aqmlab_sim::Watch)). This is for what no count of events sees, an event that has no
//! end. A thread cannot be stopped; the run is given up, and its thread left behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aqmlab_core::Time;
use aqmlab_sim::Scenario;
use aqmlab_sim::run::watch::Progress;

/// How long a run may stand still.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks no more than this counts: the whole program may have been stopped.
const MOST_BETWEEN: Duration = Duration::from_secs(1);

struct Run {
    scenario: Arc<Scenario>,
    progress: Arc<Progress>,
    /// Where it was at the last look, and for how long it has been there.
    time: Time,
    still: Duration,
}

/// The runs that are under way, by number.
#[derive(Default)]
pub struct Running {
    runs: Mutex<BTreeMap<u32, Run>>,
    looked: Mutex<Option<Instant>>,
}

impl Running {
    /// A run begins. Gives where it tells of its progress.
    pub fn begin(&self, run: u32, scenario: &Arc<Scenario>) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let (time, still) = (Time::ZERO, Duration::ZERO);
        let entry =
            Run { scenario: Arc::clone(scenario), progress: Arc::clone(&progress), time, still };
        self.runs.lock().expect("no holder of this lock panics").insert(run, entry);
        progress
    }

    /// It has ended. Says whether it was not given up before.
    pub fn end(&self, run: u32) -> bool {
        self.runs.lock().expect("no holder of this lock panics").remove(&run).is_some()
    }

    /// Gives up those that have stood still for too long, and says what they are at. To be
    /// asked now and then.
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
                "no progress: virtual time stood at {at} s for {} s, at {event}",
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

    /// A run whose progress nobody tells of stands still; the time in which nobody looks does
    /// not count.
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
                && stuck[0].1.starts_with("no progress: virtual time stood at 0 s for 120 s"),
            "{stuck:?}"
        );
        assert!(!running.end(3), "it was given up");
    }
}
