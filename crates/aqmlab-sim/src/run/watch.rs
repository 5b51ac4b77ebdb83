//! What ends a run that would not come to its end: work without progress in virtual time.
//!
//! Work is counted in events and in packets that endpoints send. A run that does more of it at
//! one moment than [`Watch::at_once`] makes no progress; and a caller may bound the work in all.
//! Both are counts: where a run stops is the same on every machine.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_core::Time;

use super::events::Event;
use super::simulation::Simulation;
use crate::network::events::{EventKey, EventTag, LinkEvent};
use crate::scenario::Scenario;

/// How much work a run may do.
#[derive(Clone, Debug)]
pub struct Watch {
    /// At one moment of virtual time.
    pub at_once: u64,
    /// From its start to its end.
    pub in_all: u64,
    /// Where others can see how far it is.
    pub progress: Option<Arc<Progress>>,
}

impl Default for Watch {
    /// What no scenario with an end comes near: a million flows that all begin at one moment
    /// with ten segments each are half of it.
    fn default() -> Self {
        Watch { at_once: 20_000_000, in_all: u64::MAX, progress: None }
    }
}

/// How far a run is, for another thread: the moment, in nanoseconds, and the event.
#[derive(Debug, Default)]
pub struct Progress {
    time: AtomicU64,
    event: AtomicU64,
}

impl Progress {
    /// The moment that the run has come to.
    pub fn time(&self) -> Time {
        Time::from_nanos(self.time.load(Ordering::Relaxed))
    }
    /// What is going on there: as [`Stopped::event`], but of flows the kind alone.
    pub fn event(&self, scenario: &Scenario) -> String {
        describe(scenario, EventTag(self.event.load(Ordering::Relaxed)), None)
    }
}

/// A run that was ended because it made no progress, or did more than it was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The virtual time that it had come to.
    pub at: Time,
    /// The event at which it was ended, and where: "a delivery, link `down`".
    pub event: String,
    /// Events and packets: at that moment, or in all.
    pub work: u64,
    /// Whether all of them were at that moment.
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

/// The work of a run.
pub(crate) struct Effort {
    watch: Watch,
    done: u64,
    /// What was done before this moment.
    before: u64,
}

impl Effort {
    pub fn new(watch: &Watch) -> Self {
        Effort { watch: watch.clone(), done: 0, before: 0 }
    }
    /// Virtual time goes on.
    #[inline]
    pub fn advance(&mut self) {
        self.before = self.done;
    }
    /// Something is done. Says whether more may be.
    #[inline]
    pub fn spend(&mut self) -> bool {
        self.done += 1;
        self.done - self.before <= self.watch.at_once && self.done <= self.watch.in_all
    }
    /// Shows others where the run is.
    #[inline]
    pub fn show(&self, event: EventKey, is_in_network: bool) {
        if let Some(progress) = &self.watch.progress {
            progress.time.store(event.time().as_nanos(), Ordering::Relaxed);
            progress.event.store(EventTag::new(event, is_in_network).0, Ordering::Relaxed);
        }
    }
}

impl Simulation {
    /// Why the run was ended at this event.
    #[cold]
    pub fn stopped(&self, event: EventKey, is_in_network: bool) -> Stopped {
        let event = EventTag::new(event, is_in_network);
        let at_once = self.effort.done < self.effort.watch.in_all;
        let work = if at_once { self.effort.done - self.effort.before } else { self.effort.done };
        let group = if event.is_in_network() {
            None
        } else {
            match Event::new(event.kind(), event.index()) {
                Event::FlowStart(index)
                | Event::Heard(index)
                | Event::SenderTimer(index)
                | Event::ReceiverTimer(index) => Some(self.flows[index as usize].group),
                Event::AppStart(index) | Event::App(index) => {
                    Some(self.apps[index as usize].group())
                }
                Event::Change | Event::Reroute(_) | Event::Sample | Event::WarmupEnd => None,
            }
        };
        Stopped { at: self.now, event: describe(&self.scenario, event, group), work, at_once }
    }
}

/// What an event is, and of which link or group of flows.
fn describe(scenario: &Scenario, event: EventTag, group: Option<u32>) -> String {
    if event.is_in_network() {
        let what = match LinkEvent::new(event.kind(), event.index()) {
            LinkEvent::Delivery(_) => "a delivery",
            LinkEvent::TransmissionEnd(_) => "the end of a transmission",
            LinkEvent::Wakeup(_) => "a timer of the queue",
        };
        return match scenario.links.get(event.index() as usize) {
            Some(link) => format!("{what}, link `{}`", link.name),
            None => what.to_string(),
        };
    }
    let what = match Event::new(event.kind(), event.index()) {
        Event::Change => "a change of the scenario",
        Event::Reroute(_) => "a change of routes",
        Event::FlowStart(_) => "the start of a flow",
        Event::Heard(_) => "the end of a flow",
        Event::SenderTimer(_) => "a timer of a sender",
        Event::ReceiverTimer(_) => "a timer of a receiver",
        Event::AppStart(_) => "the start of a workload",
        Event::App(_) => "a timer of a workload",
        Event::Sample => "a sample of the series",
        Event::WarmupEnd => "the end of the warm-up",
    };
    match group {
        Some(group) => format!("{what}, flows `{}`", scenario.flows[group as usize].name),
        None => what.to_string(),
    }
}
