//! The keys of a link that may change during a run, each with all that this takes: what a change
//! means is said at [`changes`](super::changes).

use aqmlab_aqm::LinkEnv;
use aqmlab_core::{Error, Result, Stream, Time, Value, choices};

use super::{LinkChange, LinkConfig, Surroundings};
use crate::impairment::{DelayProcess, Loss};
use crate::network::{Carried, Network};
use crate::rate::RateProcess;

choices! {
    /// A key of a link that may change.
    pub enum LinkKey {
        /// How fast it sends.
        Rate = "rate",
        /// How long packets are on their way.
        Delay = "delay",
        /// Which are lost on their way.
        Loss = "loss",
        /// Its queue.
        Queue = "queue",
    }
}

impl LinkKey {
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
            _ => return Ok(()),
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
            // The change itself, by key.
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
