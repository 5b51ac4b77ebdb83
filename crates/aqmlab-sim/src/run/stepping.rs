//! A run in steps: go on to a moment, look, change something, go on.
//!
//! A run in steps gives the same bits as [`run`](fn@super::run) on the same scenario. What
//! [`Run::set`] changes becomes a [change](crate::scenario::Change) of the scenario, so the
//! scenario of the run, saved and run from the start, gives the same again.
//!
//! A [`Snapshot`] is not a copy of the state (queues, senders and applications may be
//! anybody's, in Python too) but the scenario with its changes, and how far the run was: to
//! restore it, the run is repeated up to there. That takes as long as it took before.

use std::sync::Arc;

use aqmlab_core::{Result, Span, Time, Value};

use super::results::{RunResult, volume};
use super::simulation::Simulation;
use super::watch::{Stopped, Watch};
use crate::endpoints::Direction;
use crate::endpoints::flow::Flow;
use crate::network::probe::PacketEvent;
use crate::network::series::Subject;
use crate::scenario::{ChangeParams, Changing, Effect, Outside, Scenario};
use crate::workload::quantities::Quantity;

/// The scenario as it is after the first of its changes.
struct Current {
    after: Changing,
    /// How many these are.
    taken: usize,
}

impl Current {
    fn new(scenario: &Scenario) -> Self {
        Current { after: Changing::new(scenario), taken: 0 }
    }

    /// Takes over the changes up to `index`.
    fn take(&mut self, scenario: &Scenario, index: usize) {
        for change in &scenario.changes[self.taken..index] {
            self.after.take(&change.effect, scenario);
        }
        self.taken = index;
    }
}

/// A run under way.
pub struct Run {
    simulation: Simulation,
    watch: Watch,
    /// Where it is asked to be.
    time: Time,
    /// All before this moment has happened, and nothing at it or later.
    open: Time,
    /// The link whose packets are watched.
    watched: Option<usize>,
    /// The scenario as changes are made to it; `None` if it is not known yet.
    current: Option<Current>,
}

/// Where a run was.
#[derive(Clone)]
pub struct Snapshot {
    scenario: Arc<Scenario>,
    time: Time,
    open: Time,
    events: u64,
}

impl Snapshot {
    /// The virtual time of it.
    pub fn time(&self) -> Time {
        self.time
    }
}

/// A flow that [`Run::flows`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowView {
    /// Its group, by index.
    pub group: u32,
    /// Bytes of data that have arrived, each counted once.
    pub delivered: u64,
    /// Whether it has begun and not ended.
    pub is_active: bool,
}

impl Run {
    /// A replication of a scenario, at its start.
    pub fn new(scenario: Scenario, replication: u64) -> Self {
        Self::watched(Arc::new(scenario), replication, Watch::default())
    }

    /// The same, with a bound on the work.
    pub fn watched(scenario: Arc<Scenario>, replication: u64, watch: Watch) -> Self {
        let simulation = Simulation::new(scenario, replication, &watch);
        Run { simulation, watch, time: Time::ZERO, open: Time::ZERO, watched: None, current: None }
    }

    /// The scenario, with all that was changed.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.simulation.scenario
    }

    /// The virtual time that it has come to.
    pub fn time(&self) -> Time {
        self.time
    }

    /// When something happens next; `None` at the end.
    pub fn next_time(&self) -> Option<Time> {
        self.simulation.next_time()
    }

    /// Events that were handled so far.
    pub fn events(&self) -> u64 {
        self.simulation.events_handled()
    }

    /// Lets happen all that is before `until`; what is at that moment is still to come.
    ///
    /// # Errors
    /// If the run makes no progress: see [`Watch`].
    pub fn advance(&mut self, until: Time) -> std::result::Result<(), Stopped> {
        let end = Time::ZERO + self.scenario().duration;
        self.simulation.run(Some(until))?;
        self.time = self.time.max(until.min(end));
        // Behind the end all of it has happened.
        self.open = self.open.max(until.min(end + Span::from_nanos(1)));
        Ok(())
    }

    /// Lets the next event happen; gives its time, or `None` at the end.
    ///
    /// # Errors
    /// As [`Run::advance`].
    pub fn step(&mut self) -> std::result::Result<Option<Time>, Stopped> {
        if !self.simulation.step_once()? {
            return Ok(None);
        }
        self.time = self.time.max(self.simulation.now);
        self.open = self.open.max(self.simulation.now + Span::from_nanos(1));
        Ok(Some(self.simulation.now))
    }

    /// Gives a key another value from now on: an event of the scenario. Which keys may
    /// change, and what that means, is said at [changes](crate::scenario::Change). An equal value
    /// does nothing and is no event. Gives the time of the change. Costs the same however many
    /// changes there were.
    ///
    /// # Errors
    /// If the key cannot change, or not to that value: then nothing has changed.
    pub fn set(&mut self, key: &str, value: &Value, outside: Outside<'_>) -> Result<Span> {
        self.change(key, value, false, outside)
    }

    /// Gives a queue other parameters, or the same ones, with a new state: the packets stay.
    ///
    /// # Errors
    /// As [`Run::set`], and if the key is not one of a queue.
    pub fn replace(&mut self, key: &str, value: &Value, outside: Outside<'_>) -> Result<Span> {
        self.change(key, value, true, outside)
    }

    fn change(
        &mut self,
        key: &str,
        value: &Value,
        replace: bool,
        outside: Outside<'_>,
    ) -> Result<Span> {
        let at = self.open - Time::ZERO;
        let change = ChangeParams { at, key: key.to_string(), value: value.clone(), replace };
        let scenario = &self.simulation.scenario;
        let index = scenario.changes.partition_point(|change| change.at <= at);
        let current = self.current.get_or_insert_with(|| Current::new(scenario));
        current.take(scenario, index);
        let change = current.after.change(&change, outside)?;
        if change.effect.is_none() {
            return Ok(at);
        }
        current.taken += 1;
        // Those that are still to come follow from what is before them.
        let later = &scenario.changes[index..];
        let mut flows = None;
        let mut changes = vec![change];
        if !later.is_empty() || matches!(changes[0].effect, Effect::Begin(_)) {
            let mut end = current.after.clone();
            for change in later {
                let again = end.again(change, scenario).inspect_err(|_| self.current = None);
                changes.push(again?);
            }
            flows = Some(end.flows().to_vec());
        }
        self.simulation.plan(index, changes, flows);
        Ok(at)
    }

    /// Takes out the changes of the scenario that are still to come.
    pub fn drop_later_changes(&mut self) {
        let cut = self.scenario().without_changes_after(self.open - Time::ZERO);
        // An event for a change that is no longer there finds nothing to do.
        self.simulation.scenario = Arc::new(cut);
    }

    /// Where the run is.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            scenario: Arc::clone(self.scenario()),
            time: self.time,
            open: self.open,
            events: self.events(),
        }
    }

    /// Goes back (or on) to where the run was, with the scenario that it had then: the run is
    /// repeated up to there.
    ///
    /// # Errors
    /// As [`Run::advance`].
    pub fn restore(&mut self, to: &Snapshot) -> std::result::Result<(), Stopped> {
        let replication = self.simulation.replication;
        self.current = None;
        self.simulation = Simulation::new(Arc::clone(&to.scenario), replication, &self.watch);
        self.watch_packets(self.watched);
        self.simulation.run(Some(Time::from_nanos(to.open.as_nanos().saturating_sub(1))))?;
        while self.events() < to.events && self.simulation.step_once()? {}
        (self.time, self.open) = (to.time, to.open);
        Ok(())
    }

    /// Goes back to a moment, with all changes that the scenario has by now, later ones too.
    ///
    /// # Errors
    /// As [`Run::advance`].
    pub fn rewind(&mut self, to: Time) -> std::result::Result<(), Stopped> {
        let (scenario, time) = (Arc::clone(self.scenario()), Time::ZERO);
        self.restore(&Snapshot { scenario, time, open: time, events: 0 })?;
        self.advance(to)
    }

    /// Shows the state of links and flows by name, as recordings of the level `series` do:
    /// what disciplines and controls [observe](aqmlab_aqm::QueueDiscipline::observe), and
    /// what has been counted.
    pub fn observe(&self, see: &mut dyn FnMut(Subject, &'static str, f64)) {
        for (index, link) in self.simulation.network.links().enumerate() {
            let subject = Subject::Link(index as u32);
            let (backlog, counts) = (link.queue.backlog(), link.counts(self.time));
            see(subject, "backlog_packets", backlog.packets as f64);
            see(subject, "backlog_bytes", backlog.bytes as f64);
            see(subject, "dropped", counts.dropped_total() as f64);
            see(subject, "marked", counts.marked_total() as f64);
            see(subject, "delivered_bytes", counts.delivered_bytes as f64);
            see(subject, "delivered_packets", counts.delivered as f64);
            link.queue.observe(&mut |name, value| see(subject, name, value));
        }
        for (index, flow) in self.simulation.flows.iter().enumerate() {
            if self.is_active(flow) {
                let subject = Subject::Flow(index as u32);
                see(subject, "delivered_bytes", flow.delivered() as f64);
                flow.observe(&mut |name, value| see(subject, name, value));
            }
        }
    }

    /// The flows so far, by index; places of those that are gone may be used again.
    pub fn flows(&self) -> impl Iterator<Item = FlowView> {
        self.simulation.flows.iter().map(|flow| FlowView {
            group: flow.group,
            delivered: flow.delivered(),
            is_active: self.is_active(flow),
        })
    }

    /// Bytes of data that have arrived, each counted once, by group of flows: those of flows that are
    /// gone too. Groups that have not begun have none.
    pub fn delivered(&self) -> Vec<u64> {
        let begun = self.simulation.activities.len();
        let of = |group| match group < begun {
            true => Direction::ALL
                .map(|direction| volume(&self.simulation, group as u32, direction).delivered)
                .iter()
                .sum(),
            false => 0,
        };
        (0..self.scenario().flows.len()).map(of).collect()
    }

    /// Shows what the applications of each group have measured since the warm-up: group, quantity, statistic
    /// and value. Scores, such as `mos`, have a `mean`; times in seconds, such as `page_load`, have a
    /// `median` and a `p95`.
    pub fn quality(&self, see: &mut dyn FnMut(usize, Quantity, &'static str, f64)) {
        for (group, activity) in self.simulation.activities.iter().enumerate() {
            let scores = self.simulation.reports(group as u32);
            scores.into_iter().for_each(|(quantity, mean)| see(group, quantity, "mean", mean));
            for (quantity, times) in &activity.times {
                let times = times.summary();
                see(group, *quantity, "median", times.quantiles[0]);
                see(group, *quantity, "p95", times.quantiles[3]);
            }
        }
    }

    fn is_active(&self, flow: &Flow) -> bool {
        flow.start <= self.simulation.now && flow.finish.is_none()
    }

    /// Has what happens to each packet at a link noted from now on, at one link at a time.
    pub fn watch_packets(&mut self, link: Option<usize>) {
        for (index, each) in self.simulation.network.links_mut().enumerate() {
            each.watch_packets(link == Some(index));
        }
        self.watched = link;
    }

    /// What happened to packets at the watched link since this was last asked.
    pub fn take_events(&mut self) -> Vec<PacketEvent> {
        let watched = self.watched;
        watched.map(|link| self.simulation.network.link_mut(link).take_events()).unwrap_or_default()
    }

    /// Goes on to the end and gives the results.
    ///
    /// # Errors
    /// As [`Run::advance`].
    pub fn finish(mut self) -> std::result::Result<RunResult, Stopped> {
        self.simulation.run(None)?;
        self.simulation.finish();
        Ok(RunResult::of(self.simulation))
    }
}
