//! Changes during a run: `[[changes]]` of a scenario.
//!
//! Each is a key that gets another value at some time. What a change does is known when the
//! scenario has been read: a link has another rate, delay or queue, or a group of flows begins
//! or stops.
//!
//! # What a change means
//! 1. `links.NAME.rate`: packets that are sent from then on take the new rate; the one on the
//!    transmitter ends as it began. For links of constant rate.
//! 2. `links.NAME.delay`: packets whose transmission begins from then on take the new delay,
//!    but none overtakes another.
//! 3. `links.NAME.loss`: packets whose transmission ends from then on are lost so; what is on
//!    its way arrives. `none` ends the losses.
//! 4. `links.NAME.queue`, or a key below it: a new discipline takes the place of the old one,
//!    as by `tc qdisc replace`, but takes over the packets of the old one with their arrival
//!    times. The state of its control begins anew, also if only one parameter differs.
//! 5. `flows.NAME` with a table: a new group of flows begins, at once or at its `start`.
//! 6. `flows.NAME.active = false`: the group sends nothing new. What is under way is still
//!    sent again where it is lost. A group that has stopped does not come back: another takes
//!    its place.

use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, Error, ParamType, Result, Span, Table, Time, Value};

use super::overrides::{at_key, set, whole_key};
use super::read::{read_flow, read_link_alone, transport_of};
use super::{ChangeParams, FlowGroup, LinkConfig, LinkKey, Outside, Scenario, Start};
use crate::network::{Carried, Network};

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
    pub config: Box<LinkConfig>,
    /// The longest round-trip time without queues over it, then.
    pub base_rtt: Span,
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
    pub fn apply<P: Carried>(&self, network: &mut Network<P>, now: Time, around: &Surroundings) {
        if let Effect::Link(key, to) = self {
            key.apply(to, network, now, around);
        }
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
    let mut table = table.clone();
    table.remove("changes");
    let mut after = scenario.clone();
    for change in &changes {
        let effect = read_change(change, &mut table, &mut after, outside);
        let effect = effect.map_err(|error| error.at("changes"))?;
        after.changes.push(Change { at: change.at, effect });
    }
    scenario.flows = after.flows;
    scenario.changes = after.changes;
    Ok(())
}

/// A scenario as it has become by changes that are made one after another.
#[derive(Clone, Debug)]
pub struct Changing {
    table: Table,
    scenario: Scenario,
}

impl Changing {
    /// A scenario before its changes.
    pub fn new(scenario: &Scenario) -> Self {
        let scenario = scenario.without_changes();
        Changing { table: scenario.to_table(), scenario }
    }

    /// Makes a change.
    ///
    /// # Errors
    /// If the key cannot change, or not to this value: then nothing has changed.
    pub fn change(
        &mut self,
        at: Span,
        key: &str,
        value: &Value,
        outside: Outside<'_>,
    ) -> Result<Change> {
        let mut next = self.clone();
        let change = ChangeParams { at, key: key.to_string(), value: value.clone() };
        let effect = read_change(&change, &mut next.table, &mut next.scenario, outside)?;
        *self = next;
        Ok(Change { at, effect })
    }

    /// Takes over a change of a link that was read before.
    pub fn take(&mut self, effect: &Effect) {
        let Effect::Link(key, to) = effect else { return };
        key.take(&mut self.scenario.links[to.link as usize], &to.config);
        self.table = self.scenario.to_table();
    }

    /// What stands at a dotted key now, every default filled in.
    pub fn value(&self, key: &str) -> Option<Value> {
        at_key(&self.scenario.to_table(), key).cloned()
    }
}

/// What one change does to a scenario, of which `table` is all but the changes. An error has
/// the whole key.
fn read_change(
    change: &ChangeParams,
    table: &mut Table,
    scenario: &mut Scenario,
    outside: Outside<'_>,
) -> Result<Effect> {
    let place = full_key(&change.key, table, scenario)?;
    let parts: Vec<&str> = place.split('.').collect();
    let link_key = match parts[..] {
        ["links", _, what, ..] => {
            LinkKey::read(&what.into()).filter(|key| parts.len() == 3 || key.has_keys())
        }
        _ => None,
    };
    let Some(key) = link_key else {
        let effect = read_other_change(change, &parts, table, scenario, outside);
        return effect.map_err(|error| error.at(&place));
    };
    let name = parts[1];
    let index = scenario.links.iter().position(|link| link.name == name);
    let names = scenario.links.iter().map(|link| link.name.as_str());
    let index = index.ok_or_else(|| Error::unknown("link", name, names).at(&place))?;
    set(table, &place, &change.value)?;
    let link = at_key(table, &format!("links.{name}")).expect("it has just been set");
    let next = read_link_alone(link, &scenario.links[index], key, outside);
    let next = next.map_err(|error| error.at(name).at("links"))?;
    read_link_change(key, index, next, scenario).map_err(|error| error.at(&place))
}

/// Returns the whole key of a change.
fn full_key(key: &str, table: &Table, scenario: &Scenario) -> Result<String> {
    match key.split('.').next() {
        Some("queue") => Ok(format!("links.{}.{key}", scenario.links[scenario.bottleneck].name)),
        _ => whole_key(table, key),
    }
}

/// What a change of flows does.
fn read_other_change(
    change: &ChangeParams,
    parts: &[&str],
    table: &Table,
    scenario: &mut Scenario,
    outside: Outside<'_>,
) -> Result<Effect> {
    match parts[..] {
        ["flows", name] => {
            let group = read_group(name, change, table, scenario, outside)?;
            scenario.flows.push(group);
            Ok(Effect::Begin(scenario.flows.len() as u32 - 1))
        }
        ["flows", name, "active"] => {
            let index = scenario.flows.iter().position(|flows| flows.name == name);
            let names = scenario.flows.iter().map(|flows| flows.name.as_str());
            let index = index.ok_or_else(|| Error::unknown("group of flows", name, names))? as u32;
            if change.value.to_string() != "false" {
                let allowed = "false: a group that has stopped stays so";
                return Err(Error::not_allowed(&change.value, allowed));
            }
            let stopped = |change: &Change| change.effect == Effect::Stop(index);
            if scenario.changes.iter().any(stopped) {
                return Err(Error::new("these flows have stopped before"));
            }
            Ok(Effect::Stop(index))
        }
        _ => Err(Error::new("this cannot change during a run").hint(format!(
            "links.NAME.{} or .queue.KEY; flows.NAME = a new group; flows.NAME.active = false",
            LinkKey::choices().join(", .")
        ))),
    }
}

fn read_link_change(
    key: LinkKey,
    index: usize,
    config: LinkConfig,
    scenario: &mut Scenario,
) -> Result<Effect> {
    key.check(&scenario.links[index], &config)?;
    scenario.links[index] = config.clone();
    let base_rtt = scenario.base_rtt_over(index);
    let change = LinkChange { link: index as u32, config: Box::new(config), base_rtt };
    Ok(Effect::Link(key, change))
}

/// A group of flows that begins by a change.
fn read_group(
    name: &str,
    change: &ChangeParams,
    table: &Table,
    scenario: &Scenario,
    outside: Outside<'_>,
) -> Result<FlowGroup> {
    if scenario.flows.iter().any(|flows| flows.name == name) {
        return Err(Error::new("there is a group of flows of this name already"));
    }
    let mut entries = change.value.as_table()?.clone();
    if entries.get("start").is_none() {
        entries.insert("start", change.at.to_string().into());
    }
    let transport = transport_of(table, outside)?;
    let mut group = read_flow(name, &Value::Table(entries), &scenario.links, &transport, outside)?;
    let first = match group.start {
        Start::At(first) | Start::Uniform(first, _) | Start::Each(first, _) => first,
    };
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
        let value = match &change.effect {
            Effect::Link(key, to) => key.value(&to.config),
            Effect::Begin(group) => self.flow_table(&self.flows[*group as usize]),
            Effect::Stop(_) => "false".into(),
        };
        ChangeParams { at: change.at, key: self.changed_key(&change.effect), value }.to_value()
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
