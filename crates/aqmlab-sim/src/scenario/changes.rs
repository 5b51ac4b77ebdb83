//! Changes during a run: `[[changes]]` of a scenario.
//!
//! Each gives a key another value at some time. The effect of a change is known when the scenario
//! has been read: a link has another rate, delay or queue, or a group of flows begins or stops.
//!
//! # Meaning of a change
//! An equal value does nothing. Otherwise:
//!
//! 1. `links.NAME.rate`: packets that are sent from then on take the new rate; the one on the
//!    transmitter ends as it began. For links of constant rate.
//! 2. `links.NAME.delay`: packets whose transmission begins from then on take the new delay,
//!    but none overtakes another.
//! 3. `links.NAME.loss`: packets whose transmission ends from then on are lost so; packets in
//!    flight arrive. `none` ends the losses.
//! 4. `links.NAME.queue`, or a key below it: parameters of the same discipline are written, and
//!    packets and the state of the control stay, as with `tc qdisc change`
//!    ([`Discipline::change`](aqmlab_aqm::Discipline::change)). Another discipline, or any with
//!    `replace`, takes over the packets with their arrival times and begins with a new state.
//!    Limits in bandwidth-delay products are those of the link at that time.
//! 5. `flows.NAME` with a table: a new group of flows begins, at once or at its `start`.
//! 6. `flows.NAME.active = false`: the group sends nothing new. What is under way is still
//!    sent again where it is lost. A group that has stopped does not come back: another takes
//!    its place.

use std::sync::Arc;

use aqmlab_aqm::Transition;
use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, Error, ParamType, Result, Span, Table, Time, Value};
use aqmlab_tcp::TcpParams;

use super::overrides::{at_key, with_link};
use super::read::{read_flow, transport_of};
use super::{ChangeParams, FlowGroup, LinkConfig, LinkKey, Outside, Scenario};
use crate::network::{Network, NetworkPacket};

/// Something that changes in the middle of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Span,
    /// What.
    pub effect: Effect,
}

/// What a change does.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A key of a link has another value.
    Link(LinkKey, LinkChange),
    /// The group of flows of this index begins.
    Begin(u32),
    /// The group of flows of this index stops.
    Stop(u32),
}

/// A link as it is after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkChange {
    /// Its index.
    pub link: u32,
    /// Value from then on.
    pub config: Arc<LinkConfig>,
    /// Of a queue: the longest round-trip time without queues over the link, then.
    pub base_rtt: Span,
    /// Whether a new queue was asked for.
    pub replace: bool,
    /// How the link gets there.
    pub transition: Transition,
}

/// What a change of a link needs to know of the network that it is made in.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The seed of the scenario.
    pub seed: u64,
    /// The replication.
    pub replication: u64,
    /// The largest packet on the link layer, for disciplines that ask.
    pub mtu: Bytes,
    /// When the run is over.
    pub end: Time,
}

impl Effect {
    /// Makes the change in a network, at `now`, which is no earlier than all that has happened
    /// there and no later than what is next. Flows are not the network's.
    pub fn apply<P: NetworkPacket>(
        &self,
        network: &mut Network<P>,
        now: Time,
        around: &Surroundings,
    ) {
        if let Effect::Link(key, to) = self {
            key.apply(to, network, now, around);
        }
    }

    /// Whether it gives a link the value that it has.
    pub fn is_none(&self) -> bool {
        matches!(self, Effect::Link(_, to) if to.transition == Transition::None)
    }
}

/// Reads the changes of `table`, of which the rest is in `scenario`, in the order of their
/// times; groups of flows that begin by one are added to the scenario.
pub(super) fn read_changes(
    table: &Table,
    scenario: &mut Scenario,
    outside: Outside<'_>,
) -> Result<()> {
    let Some(changes) = table.get("changes") else { return Ok(()) };
    let changes = read_value(changes);
    let mut changes: Vec<ChangeParams> = changes.map_err(|error: Error| error.at("changes"))?;
    changes.sort_by_key(|change| change.at);
    let transport = transport_of(table, outside)?;
    let mut after = Changing { transport, ..Changing::new(scenario) };
    let read = |change| after.change(change, outside).map_err(|error| error.at("changes"));
    scenario.changes = changes.iter().map(read).collect::<Result<_>>()?;
    scenario.flows = after.scenario.flows;
    Ok(())
}

/// A scenario as it has become by changes that are made one after another. Making one costs the
/// same however many there were.
#[derive(Clone, Debug)]
pub struct Changing {
    /// Without its changes.
    scenario: Scenario,
    /// Of flows that changes add.
    transport: TcpParams,
    /// The groups that have stopped.
    stopped: Vec<u32>,
}

impl Changing {
    /// A scenario before its changes.
    pub fn new(scenario: &Scenario) -> Self {
        let scenario = scenario.without_changes();
        Changing { scenario, transport: TcpParams::default(), stopped: Vec::new() }
    }

    /// The groups of flows, with those that have been added.
    pub fn flows(&self) -> &[FlowGroup] {
        &self.scenario.flows
    }

    /// Makes a change.
    ///
    /// # Errors
    /// If the key cannot change, or not to this value: then nothing has changed. The error has
    /// the whole key.
    pub fn change(&mut self, change: &ChangeParams, outside: Outside<'_>) -> Result<Change> {
        let place = self.full_key(&change.key)?;
        let parts: Vec<&str> = place.splitn(4, '.').collect();
        let link_key = match parts[..] {
            ["links", _, what, ..] => {
                LinkKey::read(&what.into()).filter(|key| parts.len() == 3 || key.has_keys())
            }
            _ => None,
        };
        if change.replace && link_key != Some(LinkKey::Queue) {
            return Err(Error::new("only a queue can be replaced").at(&place));
        }
        let effect = match link_key {
            Some(key) => {
                let (name, below) = (parts[1], parts.get(3).copied());
                let index = self.scenario.links.iter().position(|link| link.name == name);
                let names = self.scenario.links.iter().map(|link| link.name.as_str());
                let index = index.ok_or_else(|| Error::unknown("link", name, names).at(&place))?;
                let next =
                    key.with_value(&self.scenario.links[index], below, &change.value, outside);
                next.and_then(|next| self.change_link(key, index, next, change.replace))
                    .map_err(|error| error.at(name).at("links"))
            }
            None => self.change_flows(change, &parts, outside).map_err(|error| error.at(&place)),
        };
        Ok(Change { at: change.at, effect: effect? })
    }

    /// Takes over a change that was made before, of a scenario that has become `of`.
    pub fn take(&mut self, effect: &Effect, of: &Scenario) {
        match effect {
            Effect::Link(key, to) => {
                key.take(&mut self.scenario.links[to.link as usize], &to.config);
            }
            Effect::Begin(group) => self.scenario.flows.push(of.flows[*group as usize].clone()),
            Effect::Stop(group) => self.stopped.push(*group),
        }
    }

    /// Makes a change once more that `of` has later, because others have been made before it.
    ///
    /// # Errors
    /// If it cannot be made any more.
    pub fn again(&mut self, change: &Change, of: &Scenario) -> Result<Change> {
        let effect = match &change.effect {
            Effect::Link(key, to) => {
                let index = to.link as usize;
                let mut next = self.scenario.links[index].clone();
                key.take(&mut next, &to.config);
                self.change_link(*key, index, next, to.replace)
            }
            Effect::Begin(group) => self.begin(of.flows[*group as usize].clone()),
            Effect::Stop(group) => self.stop(&of.flows[*group as usize].name),
        };
        let effect = effect.map_err(|error| error.at(of.changed_key(&change.effect)))?;
        Ok(Change { at: change.at, effect })
    }

    /// The value at the key of a link now, every default filled in.
    pub fn value(&self, key: &str) -> Option<Value> {
        let key = self.full_key(key).ok()?;
        let mut parts = key.splitn(4, '.');
        let (_, name, what) = (parts.next()?, parts.next()?, parts.next()?);
        let link = self.scenario.links.iter().find(|link| link.name == name)?;
        let value = LinkKey::read(&what.into())?.value(link);
        match parts.next() {
            Some(below) => at_key(value.as_table().ok()?, below).cloned(),
            None => Some(value),
        }
    }

    /// Returns the whole key of a change.
    fn full_key(&self, key: &str) -> Result<String> {
        let names = self.scenario.links.iter().map(|link| link.name.as_str());
        match key.split('.').next() {
            Some("queue") => {
                let bottleneck = &self.scenario.links[self.scenario.bottleneck];
                Ok(format!("links.{}.{key}", bottleneck.name))
            }
            _ => with_link(key, names),
        }
    }

    fn change_link(
        &mut self,
        key: LinkKey,
        index: usize,
        next: LinkConfig,
        replace: bool,
    ) -> Result<Effect> {
        let transition = key.transition(&self.scenario.links[index], &next, replace)?;
        let config = Arc::new(next.clone());
        self.scenario.links[index] = next;
        let base_rtt = match key {
            LinkKey::Queue => self.scenario.base_rtt_over(index),
            _ => Span::ZERO,
        };
        let link = index as u32;
        Ok(Effect::Link(key, LinkChange { link, config, base_rtt, replace, transition }))
    }

    fn change_flows(
        &mut self,
        change: &ChangeParams,
        parts: &[&str],
        outside: Outside<'_>,
    ) -> Result<Effect> {
        match parts[..] {
            ["flows", name] => {
                let group =
                    read_group(name, change, &self.scenario.links, &self.transport, outside)?;
                self.begin(group)
            }
            ["flows", name, "active"] => {
                if change.value.to_string() != "false" {
                    let allowed = "false: a group that has stopped stays so";
                    return Err(Error::not_allowed(&change.value, allowed));
                }
                self.stop(name)
            }
            _ => Err(Error::new("this cannot change during a run").hint(format!(
                "links.NAME.{} or .queue.KEY; flows.NAME = a new group; flows.NAME.active = false",
                LinkKey::choices().join(", .")
            ))),
        }
    }

    fn begin(&mut self, group: FlowGroup) -> Result<Effect> {
        if self.scenario.flows.iter().any(|flows| flows.name == group.name) {
            return Err(Error::new("there is a group of flows of this name already"));
        }
        self.scenario.flows.push(group);
        Ok(Effect::Begin(self.scenario.flows.len() as u32 - 1))
    }

    fn stop(&mut self, name: &str) -> Result<Effect> {
        let names = || self.scenario.flows.iter().map(|flows| flows.name.as_str());
        let index = names().position(|known| known == name);
        let index = index.ok_or_else(|| Error::unknown("group of flows", name, names()))? as u32;
        if self.stopped.contains(&index) {
            return Err(Error::new("these flows have stopped before"));
        }
        self.stopped.push(index);
        Ok(Effect::Stop(index))
    }
}

/// A group of flows that begins by a change.
fn read_group(
    name: &str,
    change: &ChangeParams,
    links: &[LinkConfig],
    transport: &TcpParams,
    outside: Outside<'_>,
) -> Result<FlowGroup> {
    let mut group = read_flow(name, &change.value, change.at, links, transport, outside)?;
    let first = group.start.earliest();
    if first < change.at {
        let problem = "the flows begin before the change that adds them";
        return Err(Error::new(problem).given(first).at("start"));
    }
    if !group.reroutes.is_empty() {
        return Err(Error::new("flows that a change adds keep their routes").at("reroutes"));
    }
    group.is_added = true;
    Ok(group)
}

impl Scenario {
    /// A change as a scenario states it, every default filled in.
    pub(super) fn change_table(&self, change: &Change) -> Value {
        let (value, replace) = match &change.effect {
            Effect::Link(key, to) => (key.value(&to.config), to.replace),
            Effect::Begin(group) => (self.flow_table(&self.flows[*group as usize]), false),
            Effect::Stop(_) => ("false".into(), false),
        };
        let key = self.changed_key(&change.effect);
        ChangeParams { at: change.at, key, value, replace }.to_value()
    }

    /// The key that a change gives another value.
    pub fn changed_key(&self, effect: &Effect) -> String {
        let flows = |group: &u32| &self.flows[*group as usize].name;
        match effect {
            Effect::Link(key, to) => {
                format!("links.{}.{}", self.links[to.link as usize].name, key.to_text())
            }
            Effect::Begin(group) => format!("flows.{}", flows(group)),
            Effect::Stop(group) => format!("flows.{}.active", flows(group)),
        }
    }

    /// The scenario as it is at the start, and stays.
    #[must_use]
    pub fn without_changes(&self) -> Scenario {
        let mut cut = self.clone();
        cut.changes.clear();
        cut.flows.retain(|flows| !flows.is_added);
        cut
    }

    /// Has the changes of a run end here: those after `at` are taken out, and the groups of
    /// flows that they add.
    #[must_use]
    pub fn without_changes_after(&self, at: Span) -> Scenario {
        let mut cut = self.clone();
        cut.changes.retain(|change| change.at <= at);
        let begun = cut.changes.iter().filter(|change| matches!(change.effect, Effect::Begin(_)));
        let first = self.flows.iter().filter(|flows| !flows.is_added).count();
        cut.flows.truncate(first + begun.count());
        cut
    }
}
