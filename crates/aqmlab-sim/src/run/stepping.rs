//! Step-by-step runs: advance to a time, observe, change a value, continue.
//!
//! A run in steps gives the same bits as [`run`](fn@super::run) on the same scenario. [`Run::set`]
//! adds a [change](crate::scenario::Change) to the scenario, so the saved scenario of the run gives
//! the same results from the start.
//!
//! [`Run::fork`] copies the state: network, endpoints, applications, random streams and
//! measurements. Samples and records of packets, which grow with the run, are shared between copies.
//! A [`Position`] is the time only; the run is repeated to make its state again.

use std::sync::Arc;

use aqmlab_core::{Error, Result, Span, Time, Value};
use aqmlab_tcp::congestion::AckSample;

use super::results::{RunResult, volume};
use super::simulation::Simulation;
use super::work_limit::{Progress, Stopped, WorkLimit};
use crate::endpoints::Direction;
use crate::endpoints::flow::Flow;
use crate::network::probe::PacketEvent;
use crate::network::series::Subject;
use crate::scenario::{ChangeParams, Changing, Effect, Outside, Scenario, group_index};
use crate::workload::app::Activity;
use crate::workload::quantities::{Quantity, Scores};

/// Run in progress.
#[derive(Clone)]
pub struct Run {
    simulation: Simulation,
    limit: WorkLimit,
    /// Requested time.
    time: Time,
    /// All events strictly before this time have been handled.
    open: Time,
    /// Link whose packets are observed.
    watched: Option<usize>,
    /// Scenario with changes applied; `None` until needed.
    current: Option<Changing>,
}

/// Position of a run without its state, from which [`Run::repeat`] makes the state again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Requested time.
    pub time: Time,
    /// All events strictly before this time have been handled.
    pub open: Time,
    /// Number of events handled.
    pub events: u64,
}

/// State of a flow, returned by [`Run::flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowView {
    /// Group, by index.
    pub group: u32,
    /// Data bytes that arrived, each counted once.
    pub delivered: u64,
    /// True if the flow has started and not ended.
    pub is_active: bool,
}

impl Run {
    /// Creates a replication of a scenario, at its start.
    pub fn new(scenario: Scenario, replication: u64) -> Self {
        Self::with_limit(Arc::new(scenario), replication, WorkLimit::default())
    }

    /// Creates a replication with a work limit.
    pub fn with_limit(scenario: Arc<Scenario>, replication: u64, limit: WorkLimit) -> Self {
        let simulation = Simulation::new(scenario, replication, &limit, None);
        Run { simulation, limit, time: Time::ZERO, open: Time::ZERO, watched: None, current: None }
    }

    /// Returns the scenario, with all changes.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.simulation.scenario
    }

    /// Returns the replication number.
    pub fn replication(&self) -> u64 {
        self.simulation.replication
    }

    /// Returns the current virtual time.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Returns the time of the next event; `None` at the end.
    pub fn next_time(&self) -> Option<Time> {
        self.simulation.next_time()
    }

    /// Returns the number of events handled.
    pub fn events(&self) -> u64 {
        self.simulation.events_handled()
    }

    /// Handles all events before `until`; events at `until` remain pending.
    ///
    /// # Errors
    /// Returns an error if the run makes no progress: see [`WorkLimit`].
    pub fn advance(&mut self, until: Time) -> std::result::Result<(), Stopped> {
        let end = Time::ZERO + self.scenario().duration;
        self.simulation.run(Some(until))?;
        self.time = self.time.max(until.min(end));
        // After the end, no events are pending.
        self.open = self.open.max(until.min(end + Span::from_nanos(1)));
        Ok(())
    }

    /// Handles the next event. Returns its time, or `None` at the end.
    ///
    /// # Errors
    /// See [`Run::advance`].
    pub fn step(&mut self) -> std::result::Result<Option<Time>, Stopped> {
        if !self.simulation.step_once()? {
            return Ok(None);
        }
        self.time = self.time.max(self.simulation.now);
        self.open = self.open.max(self.simulation.now + Span::from_nanos(1));
        Ok(Some(self.simulation.now))
    }

    /// Changes a key from now on, and adds the change to the scenario.
    /// [`Change`](crate::scenario::Change) lists the keys and the meaning of changes. A change to
    /// an equal value has no effect and is not added, except that `replace` restarts a queue with
    /// new state; its packets stay. Returns the time of the change. The cost does not depend on the
    /// number of earlier changes.
    ///
    /// # Errors
    /// Returns an error if the key cannot change, or not to this value, or if `replace` is true and
    /// the key is not one of a queue; the run is then unchanged.
    pub fn set(
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
        let current = self.current.get_or_insert_with(|| Changing::new(scenario));
        current.catch_up(scenario, index);
        let change = current.change(&change, outside)?;
        if change.effect.is_none() {
            return Ok(at);
        }
        // Later changes depend on earlier ones.
        let later = &scenario.changes[index..];
        let mut flows = None;
        let mut changes = vec![change];
        if !later.is_empty() || matches!(changes[0].effect, Effect::Begin(_)) {
            let mut end = current.clone();
            for change in later {
                let again = end.again(change, scenario).inspect_err(|_| self.current = None);
                changes.push(again?);
            }
            flows = Some(end.flows().to_vec());
        }
        self.simulation.plan(index, changes, flows);
        Ok(at)
    }

    /// Removes the pending changes of the scenario.
    pub fn drop_later_changes(&mut self) {
        let cut = self.scenario().without_changes_after(self.open - Time::ZERO);
        // An event for a removed change has no effect.
        self.simulation.scenario = Arc::new(cut);
    }

    /// Returns an independent copy of the run in its current state. With endpoints that cannot be
    /// copied, such as QUIC's, it repeats the run from its start.
    ///
    /// # Errors
    /// Returns an error that names a queue or congestion control that cannot be copied. Those of
    /// this project can, as well as those of other crates that are `Clone`.
    pub fn fork(&self) -> Result<Run> {
        if self.simulation.check_clone()? {
            return Ok(self.clone());
        }
        let scenario = (**self.scenario()).clone();
        let mut run = Run::repeat(scenario, self.replication(), self.position())
            .map_err(|stopped| Error::new(stopped.to_string()))?;
        run.watch_packets(self.watched);
        Ok(run)
    }

    /// Returns whether a copy costs the size of the state, not the length of the run.
    pub fn is_cloneable(&self) -> bool {
        self.simulation.check_clone().unwrap_or(false)
    }

    /// Starts a run up to the [first difference](Scenario::first_difference) of several scenarios,
    /// of which `scenario` is one; each [continues](Run::continued) a copy.
    ///
    /// # Errors
    /// See [`Run::advance`].
    pub fn shared(
        scenario: &Scenario,
        replication: u64,
        until: Span,
        limit: WorkLimit,
    ) -> std::result::Result<Run, Stopped> {
        let before = Span::from_nanos(until.as_nanos().saturating_sub(1));
        let common = Arc::new(scenario.without_changes_after(before));
        let mut run = Run::with_limit(common, replication, limit);
        run.advance(Time::ZERO + until)?;
        Ok(run)
    }

    /// Continues a [shared](Run::shared) run with one of its scenarios.
    #[must_use]
    pub fn continued(mut self, scenario: &Arc<Scenario>, progress: Option<Arc<Progress>>) -> Run {
        self.simulation.resume(Arc::clone(scenario));
        self.simulation.work.show_to(progress);
        self
    }

    /// Continues from a [copy](Run::fork) of this run or of another one, with its scenario. The
    /// cost is that of another copy.
    pub fn restore(&mut self, copy: &Run) {
        let watched = self.watched;
        *self = copy.fork().expect("it could be copied before");
        self.watch_packets(watched);
    }

    /// Returns the position of the run.
    pub fn position(&self) -> Position {
        Position { time: self.time, open: self.open, events: self.events() }
    }

    /// Makes the state at a position of a run of this scenario again, by repeating the run.
    ///
    /// # Errors
    /// See [`Run::advance`].
    pub fn repeat(
        scenario: Scenario,
        replication: u64,
        to: Position,
    ) -> std::result::Result<Run, Stopped> {
        let mut run = Run::new(scenario, replication);
        run.simulation.run(Some(Time::from_nanos(to.open.as_nanos().saturating_sub(1))))?;
        while run.events() < to.events && run.simulation.step_once()? {}
        (run.time, run.open) = (to.time, to.open);
        Ok(run)
    }

    /// Returns to an earlier time, with all current changes of the scenario, including later ones:
    /// continues from the optional copy if the changes before it are those of this run, and
    /// otherwise repeats the run from its start.
    ///
    /// # Errors
    /// See [`Run::advance`].
    pub fn rewind(&mut self, to: Time, from: Option<&Run>) -> std::result::Result<(), Stopped> {
        let scenario = Arc::clone(self.scenario());
        let is_past = |from: &&Run| {
            let made = ..from.simulation.changed;
            from.scenario().changes.get(made) == scenario.changes.get(made)
        };
        match from.filter(is_past) {
            Some(from) => {
                self.restore(from);
                self.current = None;
                self.simulation.resume(scenario);
            }
            None => {
                let watched = self.watched;
                let replication = self.simulation.replication;
                *self = Run::with_limit(scenario, replication, self.limit.clone());
                self.watch_packets(watched);
            }
        }
        self.advance(to)
    }

    /// Reports the state of links and flows by name, like recordings of the level `series`: the
    /// state that disciplines and controls [report](aqmlab_aqm::QueueDiscipline::observe), and
    /// counters.
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

    /// Returns the acknowledgements that the senders of a group received since the last call, in the
    /// order of time: of all, or of the flow with this index. Recording starts with the first call.
    ///
    /// # Errors
    /// Returns an error if there is no such flow, or no congestion control is `steered`.
    pub fn samples(&mut self, group: &str, index: Option<u32>) -> Result<Vec<AckSample>> {
        let groups = &self.simulation.scenario.flows;
        let number = group_index(groups, group)?;
        let only = index.map(|index| groups[number as usize].member(&index.to_string()));
        let only = only.transpose().map_err(|error| error.at(group))?;
        let mut is_steered =
            self.current.as_ref().is_some_and(|current| current.is_steered(number, only));
        let mut samples = Vec::new();
        let own = self.simulation.flows.iter_mut().filter(|flow| flow.group == number);
        for (flow, _) in own.zip(0..).filter(|(_, index)| only.is_none_or(|only| only == *index)) {
            if let Some(slot) = flow.tcp_mut().and_then(|tcp| tcp.sender.samples()) {
                samples.extend(slot.replace(Vec::new()).unwrap_or_default());
                is_steered = true;
            }
        }
        if !is_steered {
            let problem = "only senders with the congestion control `steered` record samples";
            return Err(Error::new(problem).at(group).hint("call act() first"));
        }
        if !self.simulation.sampled.contains(&number) {
            self.simulation.sampled.push(number);
        }
        samples.sort_by_key(|ack| ack.now);
        Ok(samples)
    }

    /// Returns the flows so far, by index; slots of ended flows may be reused.
    pub fn flows(&self) -> impl Iterator<Item = FlowView> {
        self.simulation.flows.iter().map(|flow| FlowView {
            group: flow.group,
            delivered: flow.delivered(),
            is_active: self.is_active(flow),
        })
    }

    /// Returns the data bytes that arrived (each counted once) by group of flows, including ended
    /// flows. Groups that have not started are absent.
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

    /// Returns the counters and times of each group's applications, such as `page_load`. Groups that
    /// have not started are absent.
    pub fn activities(&self) -> &[Activity] {
        &self.simulation.activities
    }

    /// Returns the scores of each group since the last call, such as `mos`, as means over its
    /// applications: those of calls, games and video over UDP. Results do not depend on calls.
    pub fn take_scores(&mut self) -> Vec<Vec<(Quantity, f64)>> {
        let scores = self.simulation.take_scores(self.time);
        scores.iter().map(Scores::means).collect()
    }

    fn is_active(&self, flow: &Flow) -> bool {
        flow.start <= self.simulation.now && flow.finish.is_none()
    }

    /// Observes the packets at a link from now on; one link at a time.
    pub fn watch_packets(&mut self, link: Option<usize>) {
        for (index, each) in self.simulation.network.links_mut().enumerate() {
            each.watch_packets(link == Some(index));
        }
        self.watched = link;
    }

    /// Returns the packet events at the observed link since the last call.
    pub fn take_events(&mut self) -> Vec<PacketEvent> {
        let watched = self.watched;
        watched.map(|link| self.simulation.network.link_mut(link).take_events()).unwrap_or_default()
    }

    /// Runs to the end, and returns the results.
    ///
    /// # Errors
    /// See [`Run::advance`].
    pub fn finish(mut self) -> std::result::Result<RunResult, Stopped> {
        self.simulation.run(None)?;
        self.simulation.finish();
        Ok(RunResult::of(self.simulation))
    }
}
