//! Work limit of a run, to end runs that make no progress in virtual time.
//!
//! Work is counted in events and in packets that endpoints send. A run with more work at one time
//! than [`WorkLimit::at_once`] makes no progress; the caller may also limit the total. Both are counts,
//! so a run stops at the same event on every machine.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_core::Time;

use super::events::Event;
use super::simulation::Simulation;
use crate::network::events::{EventKey, EventTag, TRANSMISSION_END, WAKEUP};
use crate::scenario::Scenario;

/// Limits of the work of a run.
#[derive(Clone, Debug)]
pub struct WorkLimit {
    /// Work at one virtual time.
    pub at_once: u64,
    /// Work of the whole run.
    pub in_all: u64,
    /// Progress indicator for other threads.
    pub progress: Option<Arc<Progress>>,
}

impl Default for WorkLimit {
    /// A limit far above any finite scenario: a million flows that start simultaneously with ten
    /// segments each use half of it.
    fn default() -> Self {
        WorkLimit { at_once: 20_000_000, in_all: u64::MAX, progress: None }
    }
}

/// Largest number of packets that an endpoint sends in one call: more than a window of 100 Gbit/s and
/// 100 ms has. A window without bound fills the memory before [`WorkLimit::at_once`].
const BURST: u32 = 1 << 20;

/// Progress of a run for another thread: the time in nanoseconds, and the event.
#[derive(Debug, Default)]
pub struct Progress {
    time: AtomicU64,
    event: AtomicU64,
}

impl Progress {
    /// Returns the current virtual time.
    pub fn time(&self) -> Time {
        Time::from_nanos(self.time.load(Ordering::Relaxed))
    }
    /// Returns the current event like [`Stopped::event`]; for flows only its kind.
    pub fn event(&self, scenario: &Scenario) -> String {
        describe(scenario, EventTag(self.event.load(Ordering::Relaxed)), None)
    }
}

/// Error of a run that made no progress, or exceeded its work limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Virtual time reached.
    pub at: Time,
    /// Last event, and its place: "a delivery, link `down`".
    pub event: String,
    /// Number of events and packets: at this time, or in total.
    pub work: u64,
    /// True if `work` counts one virtual time.
    pub at_once: bool,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stopped { at, event, work, at_once } = self;
        let at = at.as_secs_f64();
        match at_once {
            true => {
                write!(f, "no progress: {work} events at {at} s of virtual time, the last {event}")
            }
            false => write!(f, "stopped after {work} events, at {at} s, at {event}"),
        }
    }
}

/// Work of a run so far.
#[derive(Clone)]
pub(crate) struct Work {
    limit: WorkLimit,
    /// Work until the limits are checked again.
    left: u64,
    /// `left` at the start of the current virtual time.
    left_before: u64,
    /// Work of the run when `left` is zero.
    checked_at: u64,
    /// Group of a flow that sent more than [`BURST`].
    burst: Option<u32>,
}

impl Work {
    pub fn new(limit: &WorkLimit) -> Self {
        let left = limit.at_once.min(limit.in_all);
        Work { limit: limit.clone(), left, left_before: left, checked_at: left, burst: None }
    }
    /// Reports the progress elsewhere from now on.
    pub fn show_to(&mut self, progress: Option<Arc<Progress>>) {
        self.limit.progress = progress;
    }
    /// Returns the work so far.
    fn done(&self) -> u64 {
        self.checked_at - self.left
    }
    /// Returns the work before the current virtual time.
    fn before(&self) -> u64 {
        self.checked_at - self.left_before
    }
    /// Advances the virtual time.
    #[inline]
    pub fn advance(&mut self) {
        self.left_before = self.left;
    }
    /// Counts work. Returns whether more is allowed.
    #[inline]
    pub fn spend(&mut self) -> bool {
        if self.left == 0 && !self.extend() {
            return false;
        }
        self.left -= 1;
        true
    }
    /// Counts a packet of a flow, the `sent`th of a call. Returns whether more are allowed.
    #[inline]
    pub fn send(&mut self, sent: u32, group: u32) -> bool {
        if sent > BURST {
            self.stop(group);
        }
        self.spend()
    }
    /// Ends the run.
    #[cold]
    fn stop(&mut self, group: u32) {
        let (done, before) = (self.done(), self.before());
        (self.checked_at, self.left, self.left_before) = (done, 0, done - before);
        (self.limit.at_once, self.burst) = (0, Some(group));
    }
    /// Checks the limits again, because the time may have advanced. Returns false, and counts the
    /// work above, if one is reached.
    #[cold]
    fn extend(&mut self) -> bool {
        let (done, before) = (self.done(), self.before());
        let limit = self.limit.in_all.min(before.saturating_add(self.limit.at_once));
        self.left = limit.saturating_sub(done);
        self.checked_at = done + self.left.max(1);
        self.left_before = self.checked_at - before;
        self.left > 0
    }
    /// Publishes the progress of the run.
    #[inline]
    pub fn show(&self, event: EventKey, is_in_network: bool) {
        if let Some(progress) = &self.limit.progress {
            progress.time.store(event.time().as_nanos(), Ordering::Relaxed);
            progress.event.store(EventTag::new(event, is_in_network).0, Ordering::Relaxed);
        }
    }
}

impl Simulation {
    /// Returns the error for a run that ends at this event.
    #[cold]
    pub fn stopped(&self, event: EventKey, is_in_network: bool) -> Stopped {
        let event = EventTag::new(event, is_in_network);
        let (done, before) = (self.work.done(), self.work.before());
        let at_once = done < self.work.limit.in_all;
        let work = if at_once { done - before } else { done };
        let index = event.index() as usize;
        let group = match Event::of(event.kind()) {
            _ if event.is_in_network() => None,
            Event::FlowStart | Event::Heard | Event::SenderTimer | Event::ReceiverTimer => {
                Some(self.flows[index].group)
            }
            Event::AppStart | Event::App => Some(self.apps[index].group()),
            Event::Change | Event::Reroute | Event::Sample | Event::WarmupEnd => None,
        };
        let event = match self.work.burst {
            Some(group) => {
                let name = &self.scenario.flows[group as usize].name;
                format!("a burst without end, flows `{name}`")
            }
            None => describe(&self.scenario, event, group),
        };
        Stopped { at: self.now, event, work, at_once }
    }
}

/// Describes an event, with its link or group of flows.
fn describe(scenario: &Scenario, event: EventTag, group: Option<u32>) -> String {
    if event.is_in_network() {
        let what = match event.kind() {
            TRANSMISSION_END => "the end of a transmission",
            WAKEUP => "a timer of the queue",
            _ => "a delivery",
        };
        return match scenario.links.get(event.index() as usize) {
            Some(link) => format!("{what}, link `{}`", link.name),
            None => what.to_string(),
        };
    }
    let what = match Event::of(event.kind()) {
        Event::Change => "a change of the scenario",
        Event::Reroute => "a change of routes",
        Event::FlowStart => "the start of a flow",
        Event::Heard => "the end of a flow",
        Event::SenderTimer => "a timer of a sender",
        Event::ReceiverTimer => "a timer of a receiver",
        Event::AppStart => "the start of a workload",
        Event::App => "a timer of a workload",
        Event::Sample => "a sample of the series",
        Event::WarmupEnd => "the end of the warm-up",
    };
    match group {
        Some(group) => format!("{what}, flows `{}`", scenario.flows[group as usize].name),
        None => what.to_string(),
    }
}
