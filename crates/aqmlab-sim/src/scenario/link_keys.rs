//! Link keys that may change during a run. [`changes`](super::changes) defines the meaning of a
//! change.

use aqmlab_aqm::{LinkEnv, QueueConfig, Transition};
use aqmlab_core::{Error, ParamType, Result, Stream, Table, Time, Value, choices};

use super::overrides::set;
use super::read::read_link_alone;
use super::{LinkChange, LinkConfig, Outside, Surroundings};
use crate::impairment::{DelayProcess, Loss};
use crate::network::{HEADER, Network, PacketStore};
use crate::rate::RateProcess;

choices! {
    /// Link key that may change.
    pub enum LinkKey {
        /// Transmission rate.
        Rate = "rate",
        /// Propagation delay.
        Delay = "delay",
        /// Packet loss.
        Loss = "loss",
        /// Queue discipline.
        Queue = "queue",
    }
}

impl LinkKey {
    /// Returns whether keys below it may change individually: `queue.target`.
    pub(super) fn has_keys(self) -> bool {
        matches!(self, LinkKey::Loss | LinkKey::Queue)
    }

    /// Copies the value from another link.
    pub(super) fn take(self, link: &mut LinkConfig, from: &LinkConfig) {
        match self {
            LinkKey::Rate => (link.rate, link.process) = (from.rate, from.process.clone()),
            LinkKey::Delay => (link.delay, link.way.delay) = (from.delay, from.way.delay.clone()),
            LinkKey::Loss => link.way.loss = from.way.loss.clone(),
            LinkKey::Queue => link.queue = from.queue.clone(),
        }
    }

    /// Returns the link with another value of this key, or of a key below it.
    pub(super) fn with_value(
        self,
        before: &LinkConfig,
        below: Option<&str>,
        value: &Value,
        outside: Outside<'_>,
    ) -> Result<LinkConfig> {
        let mut after = before.clone();
        if self == LinkKey::Queue {
            let queue = match below {
                None => QueueConfig::read_with(value, outside.disciplines),
                Some(below) => {
                    let mut table = Table::new();
                    table.set_key(below, value.clone())?;
                    let value = Value::Table(table);
                    before.queue.updated_with(&value, outside.disciplines)
                }
            };
            after.queue = queue.map_err(|error| error.at("queue"))?;
            return Ok(after);
        }
        let (mut alone, mut path) = (Table::new(), self.to_text());
        if let Some(below) = below {
            if before.way.loss.is_some() {
                alone.insert(&path, self.value(before));
            }
            path = format!("{path}.{below}");
        }
        set(&mut alone, &path, value)?;
        read_link_alone(&Value::Table(alone), before, self, outside)
    }

    /// Returns the transition of a link from one value to another during a run.
    pub(super) fn transition(
        self,
        before: &LinkConfig,
        after: &LinkConfig,
        replace: bool,
    ) -> Result<Transition> {
        self.check(before, after).map_err(|error| error.at(self.to_text()))?;
        let is_equal = match self {
            LinkKey::Rate => before.process == after.process,
            LinkKey::Delay => before.way.delay == after.way.delay,
            LinkKey::Loss => before.way.loss == after.way.loss,
            LinkKey::Queue if replace => return Ok(Transition::Replace),
            LinkKey::Queue => {
                let transition = before.queue.transition(&after.queue);
                return transition.map_err(|error| error.at("queue"));
            }
        };
        Ok(if is_equal { Transition::None } else { Transition::Change })
    }

    /// Rejects values that a link cannot change to or from during a run.
    fn check(self, before: &LinkConfig, after: &LinkConfig) -> Result<()> {
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

    /// Returns the value as a scenario states it.
    pub(super) fn value(self, link: &LinkConfig) -> Value {
        match self {
            LinkKey::Rate => link.process.to_value(),
            LinkKey::Delay => link.way.delay.to_value(),
            LinkKey::Loss => link.way.loss.as_ref().map_or_else(|| "none".into(), Loss::to_value),
            LinkKey::Queue => Value::Table(link.queue.to_table()),
        }
    }

    /// Makes the change in a network.
    pub(super) fn apply<S: PacketStore>(
        self,
        to: &LinkChange,
        network: &mut Network<S>,
        now: Time,
        around: &Surroundings,
    ) {
        let stream = |part: &str| {
            let path = format!("links.{}.{part}", to.config.name);
            Stream::for_component(around.seed, around.replication, &path)
        };
        let config = &to.config;
        match self {
            _ if to.transition == Transition::None => (),
            // Apply the change, by key.
            LinkKey::Rate => {
                network.change_link(now, to.link, |link, _| link.set_rate(now, config.rate));
            }
            LinkKey::Delay => network.change_link(now, to.link, |link, _| {
                link.propagation.set_delay(config.delay, stream("way"));
            }),
            LinkKey::Loss => network.change_link(now, to.link, |link, _| {
                link.propagation.set_loss(config.way.loss.clone(), around.end, stream);
            }),
            LinkKey::Queue => {
                let (rate, mtu) = (config.service_rate(), around.mtu);
                let env = LinkEnv::new(rate, to.base_rtt).with_sizes(mtu, HEADER);
                match to.transition {
                    Transition::Replace => {
                        network.replace_queue(now, to.link, config.queue.build_checked(&env));
                    }
                    _ => network.change_queue(now, to.link, &config.queue, &env),
                }
            }
        }
    }
}
