//! The keys of a link that may change during a run, each with all that this takes: what a change
//! means is said at [`changes`](super::changes).

use aqmlab_aqm::LinkEnv;
use aqmlab_core::{Error, Result, Stream, Time, Value};

use super::{LinkChange, LinkConfig, Surroundings};
use crate::impairment::{DelayProcess, Loss};
use crate::network::{Carried, Network};
use crate::rate::RateProcess;

/// A key of a link that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKey {
    /// How fast it sends.
    Rate,
    /// How long packets are on their way.
    Delay,
    /// Which are lost on their way.
    Loss,
    /// Its queue.
    Queue,
}

impl LinkKey {
    /// All of them.
    pub const ALL: [LinkKey; 4] = [LinkKey::Rate, LinkKey::Delay, LinkKey::Loss, LinkKey::Queue];

    /// As it is in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            LinkKey::Rate => "rate",
            LinkKey::Delay => "delay",
            LinkKey::Loss => "loss",
            LinkKey::Queue => "queue",
        }
    }

    /// Whether a key below it may change alone: `queue.target`.
    pub(super) fn has_keys(self) -> bool {
        matches!(self, LinkKey::Loss | LinkKey::Queue)
    }

    /// Takes it from another link.
    pub(super) fn take(self, link: &mut LinkConfig, from: &LinkConfig) {
        match self {
            LinkKey::Rate => (link.rate, link.process) = (from.rate, from.process.clone()),
            LinkKey::Delay => (link.delay, link.way.delay) = (from.delay, from.way.delay.clone()),
            LinkKey::Loss => link.way.loss = from.way.loss.clone(),
            LinkKey::Queue => link.queue = from.queue.clone(),
        }
    }

    /// Refuses values that it cannot have, or come from, during a run.
    pub(super) fn check(self, before: &LinkConfig, after: &LinkConfig) -> Result<()> {
        let is_constant = |link: &LinkConfig| matches!(link.process, RateProcess::Constant(_));
        let problem = match self {
            LinkKey::Rate if !is_constant(before) || !is_constant(after) => {
                "the rate changes only if it is constant before and after"
            }
            LinkKey::Delay if !matches!(after.way.delay, DelayProcess::Constant(_)) => {
                "the delay changes only to a constant one"
            }
            LinkKey::Rate | LinkKey::Delay | LinkKey::Loss | LinkKey::Queue => return Ok(()),
        };
        Err(Error::new(problem))
    }

    /// Its value, as a scenario states it.
    pub(super) fn value(self, link: &LinkConfig) -> Value {
        match self {
            LinkKey::Rate => link.process.to_value(),
            LinkKey::Delay => link.way.delay.to_value(),
            LinkKey::Loss => link.way.loss.as_ref().map_or_else(|| "none".into(), Loss::to_value),
            LinkKey::Queue => Value::Table(link.queue.to_table()),
        }
    }

    /// Makes the change in a network.
    pub(super) fn apply<P: Carried>(
        self,
        to: &LinkChange,
        network: &mut Network<P>,
        now: Time,
        around: &Surroundings,
    ) {
        let stream = |part: &str| {
            let path = format!("links.{}.{part}", to.config.name);
            Stream::for_component(around.seed, around.replication, &path)
        };
        let config = &to.config;
        match self {
            LinkKey::Rate => {
                network.change_link(now, to.link, |link, _| link.set_rate(now, config.rate));
            }
            LinkKey::Delay => network.change_link(now, to.link, |link, _| {
                link.pipe.set_delay(config.delay, stream("way"));
            }),
            LinkKey::Loss => network.change_link(now, to.link, |link, _| {
                link.pipe.set_loss(config.way.loss.clone(), around.end, stream);
            }),
            LinkKey::Queue => {
                let env = LinkEnv { rate: config.rate, base_rtt: to.base_rtt, mtu: around.mtu };
                network.replace_queue(now, to.link, config.queue.build(&env));
            }
        }
    }
}
