//! Changes during a run: `[[changes]]` of a scenario.
//!
//! Each gives a key another value at some time. Reading the scenario determines the effect of a
//! change: another rate, delay, loss or queue of a link, or the start or stop of a group of flows.
//!
//! # Meaning of a change
//! A change to an equal value has no effect. Otherwise:
//!
//! 1. `links.NAME.rate`: applies to the next transmissions; the current transmission ends as
//!    scheduled. Only for links of constant rate.
//! 2. `links.NAME.delay`: applies to packets whose transmission begins later; none overtakes
//!    another.
//! 3. `links.NAME.loss`: applies to packets whose transmission ends later; packets in flight
//!    arrive. `none` disables losses.
//! 4. `links.NAME.queue`, or a key below it: parameters of the same discipline are changed, and
//!    packets and control state stay, as with `tc qdisc change`
//!    ([`Discipline::change`](aqmlab_aqm::Discipline::change)). Another discipline, or any with
//!    `replace`, takes over the packets with their arrival times and starts with new state. Limits
//!    in bandwidth-delay products use the link's values at that time.
//! 5. `flows.NAME` with a table: adds a group of flows, which starts at once or at its `start`.
//! 6. `flows.NAME.transport.KEY`: all flows of the group, if they are TCP's, continue with another
//!    congestion control, pacing or ECN ([`TransportKey`]). Another congestion control starts with
//!    window and threshold of the one before; `steered` keeps its counters.
//!    `flows.NAME.INDEX.transport.KEY` changes one flow of a group without applications.
//! 7. `flows.NAME.active = false`: the group stops sending new data. Lost data is still
//!    retransmitted. A stopped group cannot restart; add another group instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use aqmlab_aqm::Transition;
use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, Error, ParamType, Result, Span, Table, Time, Value};
use aqmlab_tcp::TcpParams;

use super::overrides::{at_key, with_link};
use super::read::{group_index, link_index, read_flow, transport_of};
use super::{
    ChangeParams, FlowGroup, LinkConfig, LinkKey, Outside, Scenario, TransportChange, TransportKey,
};
use crate::network::{Network, PacketStore};

/// Change during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Span,
    /// Effect of the change.
    pub effect: Effect,
}

/// Effect of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Another value of a link key.
    Link(LinkKey, LinkChange),
    /// Start of the group of flows with this index.
    Begin(u32),
    /// Stop of the group of flows with this index.
    Stop(u32),
    /// Another value of a transport key.
    Transport(TransportKey, TransportChange),
}

/// State of a link after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkChange {
    /// Index of the link.
    pub link: u32,
    /// Configuration after the change.
    pub config: Arc<LinkConfig>,
    /// Longest base round-trip time over the link after the change; used for queues.
    pub base_rtt: Span,
    /// True if a new queue was requested.
    pub replace: bool,
    /// Transition of the link to the new configuration.
    pub transition: Transition,
}

/// Properties of the network that a link change depends on.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Seed of the scenario.
    pub seed: u64,
    /// Replication number.
    pub replication: u64,
    /// Largest packet on the link layer, used by some disciplines.
    pub mtu: Bytes,
    /// End of the run.
    pub end: Time,
}

impl Effect {
    /// Applies the change to a network at `now`, which must be between the last and the next event.
    /// Changes of flows do not affect the network.
    pub fn apply<S: PacketStore>(
        &self,
        network: &mut Network<S>,
        now: Time,
        around: &Surroundings,
    ) {
        if let Effect::Link(key, to) = self {
            key.apply(to, network, now, around);
        }
    }

    /// Returns whether the link already has the value.
    pub fn is_none(&self) -> bool {
        match self {
            Effect::Link(_, to) => to.transition == Transition::None,
            Effect::Transport(_, to) => !to.is_other,
            Effect::Begin(_) | Effect::Stop(_) => false,
        }
    }
}

/// Reads the changes of `table`, in the order of their times. The other parts of the table are in
/// `scenario`; groups of flows that changes add are appended to it.
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

/// Scenario with changes applied one after another. The cost of a change does not depend on the
/// number of earlier ones.
#[derive(Clone, Debug)]
pub struct Changing {
    /// Current scenario, without its changes.
    scenario: Scenario,
    /// Number of changes made, without those to an equal value.
    taken: usize,
    /// Transport of flows that changes add.
    transport: TcpParams,
    /// Stopped groups.
    stopped: Vec<u32>,
    /// Transports that have changed, of groups and of single flows by their index. The groups of
    /// `scenario` keep those they begin with.
    transports: BTreeMap<(u32, Option<u32>), TcpParams>,
}

impl Changing {
    /// Creates the state before all changes.
    pub fn new(scenario: &Scenario) -> Self {
        let scenario = scenario.without_changes();
        let (taken, transport, stopped) = (0, TcpParams::default(), Vec::new());
        Changing { scenario, taken, transport, stopped, transports: BTreeMap::new() }
    }

    /// Returns the groups of flows, including added ones.
    pub fn flows(&self) -> &[FlowGroup] {
        &self.scenario.flows
    }

    /// Makes a change.
    ///
    /// # Errors
    /// Returns an error with the complete key if the key cannot change, or not to this value; the
    /// state is then unchanged.
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
                let index = link_index(&self.scenario.links, name);
                let index = index.map_err(|error| error.at(&place))? as usize;
                let next =
                    key.with_value(&self.scenario.links[index], below, &change.value, outside);
                next.and_then(|next| self.change_link(key, index, next, change.replace))
                    .map_err(|error| error.at(name).at("links"))
            }
            None => self.change_flows(change, &parts, outside).map_err(|error| error.at(&place)),
        };
        let effect = effect?;
        self.taken += usize::from(!effect.is_none());
        Ok(Change { at: change.at, effect })
    }

    /// Applies a change that was made earlier; `of` is the scenario after it.
    pub fn take(&mut self, effect: &Effect, of: &Scenario) {
        self.taken += 1;
        match effect {
            Effect::Link(key, to) => {
                key.take(&mut self.scenario.links[to.link as usize], &to.config);
            }
            Effect::Begin(group) => self.scenario.flows.push(of.flows[*group as usize].clone()),
            Effect::Stop(group) => self.stopped.push(*group),
            Effect::Transport(key, to) => {
                self.set_transport(*key, to.group, to.member, &to.transport);
            }
        }
    }

    /// Applies the changes of a scenario up to `index` that are not made yet.
    pub(crate) fn catch_up(&mut self, of: &Scenario, index: usize) {
        for change in &of.changes[self.taken..index] {
            self.take(&change.effect, of);
        }
    }

    /// Makes a later change of `of` again, after other changes were made before it.
    ///
    /// # Errors
    /// Returns an error if it is no longer possible.
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
            Effect::Transport(key, to) => {
                let before = self.transport_of(to.group, to.member);
                let mut next = before.clone();
                key.take(&mut next, &to.transport);
                let checked = before.check_change(&next);
                checked.map(|()| self.change_transport(*key, to.group, to.member, next))
            }
        };
        let effect = effect.map_err(|error| error.at(of.changed_key(&change.effect)))?;
        Ok(Change { at: change.at, effect })
    }

    /// Returns the current value of a link key, with every default filled in.
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

    /// Returns the complete key of a change.
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
                    let allowed = "false: a stopped group cannot restart";
                    return Err(Error::not_allowed(&change.value, allowed));
                }
                self.stop(name)
            }
            ["flows", name, "transport", key] => self.change_key(name, None, key, change, outside),
            ["flows", name, member, key] => {
                let key = key.strip_prefix("transport.").ok_or_else(Self::cannot_change)?;
                self.change_key(name, Some(member), key, change, outside)
            }
            _ => Err(Self::cannot_change()),
        }
    }

    fn cannot_change() -> Error {
        Error::new("this cannot change during a run").hint(format!(
            "links.NAME.{} or .queue.KEY; flows.NAME = a new group; flows.NAME.active = false; \
             flows.NAME.transport.{} (of one flow: flows.NAME.INDEX.transport.KEY)",
            LinkKey::choices().join(", ."),
            TransportKey::choices().join(", .")
        ))
    }

    /// Changes a transport key of a group, or of its flow with the index `member`.
    fn change_key(
        &mut self,
        name: &str,
        member: Option<&str>,
        key: &str,
        change: &ChangeParams,
        outside: Outside<'_>,
    ) -> Result<Effect> {
        let (key, below) = match key.split_once('.') {
            Some((key, below)) => (key, Some(below)),
            None => (key, None),
        };
        let key = TransportKey::read(&key.into()).ok_or_else(Self::cannot_change)?;
        let index = group_index(&self.scenario.flows, name)?;
        let group = &self.scenario.flows[index as usize];
        let member = member.map(|text| group.member(text)).transpose()?;
        let before = self.transport_of(index, member);
        let next = key.with_value(group, before, below, &change.value, outside);
        let below = below.map(|below| format!(".{below}")).unwrap_or_default();
        let whole = format!("transport.{}{below}", key.to_text());
        let next = next.map_err(|mut error| {
            // The caller adds the key of the change.
            if let Some(rest) = error.key.strip_prefix(&whole) {
                error.key = rest.trim_start_matches('.').to_string();
            }
            error
        })?;
        Ok(self.change_transport(key, index, member, next))
    }

    /// Returns whether a group of flows, or one of its flows, has the congestion control `steered`.
    pub fn is_steered(&self, group: u32, member: Option<u32>) -> bool {
        let own = self.transports.range((group, None)..=(group, Some(u32::MAX)));
        let own = own.map(|(_, own)| own).filter(|_| member.is_none());
        let mut all = own.chain([self.transport_of(group, member)]);
        all.any(|own| own.congestion_control.name() == "steered")
    }

    fn transport_of(&self, group: u32, member: Option<u32>) -> &TcpParams {
        let own = [member, None].into_iter().find_map(|own| self.transports.get(&(group, own)));
        own.unwrap_or(&self.scenario.flows[group as usize].transport)
    }

    /// Sets a key of a group and of all its flows, or of one flow. Returns whether it was different.
    fn set_transport(
        &mut self,
        key: TransportKey,
        group: u32,
        member: Option<u32>,
        from: &TcpParams,
    ) -> bool {
        let before = self.transport_of(group, member).clone();
        self.transports.entry((group, member)).or_insert(before);
        let last = member.unwrap_or(u32::MAX);
        let mut is_other = false;
        for (_, own) in self.transports.range_mut((group, member)..=(group, Some(last))) {
            let before = own.clone();
            key.take(own, from);
            is_other |= *own != before;
        }
        is_other
    }

    fn change_transport(
        &mut self,
        key: TransportKey,
        group: u32,
        member: Option<u32>,
        next: TcpParams,
    ) -> Effect {
        let is_other = self.set_transport(key, group, member, &next);
        let transport = Arc::new(next);
        Effect::Transport(key, TransportChange { group, member, transport, is_other })
    }

    fn begin(&mut self, group: FlowGroup) -> Result<Effect> {
        if self.scenario.flows.iter().any(|flows| flows.name == group.name) {
            return Err(Error::new("a group of flows with this name exists already"));
        }
        self.scenario.flows.push(group);
        Ok(Effect::Begin(self.scenario.flows.len() as u32 - 1))
    }

    fn stop(&mut self, name: &str) -> Result<Effect> {
        let index = group_index(&self.scenario.flows, name)?;
        if self.stopped.contains(&index) {
            return Err(Error::new("these flows are stopped already"));
        }
        self.stopped.push(index);
        Ok(Effect::Stop(index))
    }
}

/// Reads a group of flows that a change adds.
fn read_group(
    name: &str,
    change: &ChangeParams,
    links: &[LinkConfig],
    transport: &TcpParams,
    outside: Outside<'_>,
) -> Result<FlowGroup> {
    let mut group = read_flow(name, &change.value, change.at, links, transport, outside)?;
    let [first, _] = group.start.range();
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
    /// Returns a change as a scenario states it, with every default filled in.
    pub(super) fn change_table(&self, change: &Change) -> Value {
        let (value, replace) = match &change.effect {
            Effect::Link(key, to) => (key.value(&to.config), to.replace),
            Effect::Begin(group) => (self.flows[*group as usize].params.to_value(), false),
            Effect::Stop(_) => ("false".into(), false),
            Effect::Transport(key, to) => (key.value(&to.transport), false),
        };
        let key = self.changed_key(&change.effect);
        ChangeParams { at: change.at, key, value, replace }.to_value()
    }

    /// Returns the key that a change refers to.
    pub fn changed_key(&self, effect: &Effect) -> String {
        let flows = |group: &u32| &self.flows[*group as usize].name;
        match effect {
            Effect::Link(key, to) => {
                format!("links.{}.{}", self.links[to.link as usize].name, key.to_text())
            }
            Effect::Begin(group) => format!("flows.{}", flows(group)),
            Effect::Stop(group) => format!("flows.{}.active", flows(group)),
            Effect::Transport(key, to) => {
                let member = to.member.map_or(String::new(), |member| format!("{member}."));
                format!("flows.{}.{member}transport.{}", flows(&to.group), key.to_text())
            }
        }
    }

    /// Returns the time of the first difference between runs of two scenarios that differ only in
    /// changes; `None` if they are equal, or differ otherwise.
    pub fn first_difference(&self, other: &Scenario) -> Option<Span> {
        let is_same = |(one, two): &(&Change, &Change)| match &one.effect {
            Effect::Begin(group) => {
                let group = *group as usize;
                one == two && self.flows[group] == other.flows[group]
            }
            _ => one == two,
        };
        let same = self.changes.iter().zip(&other.changes).take_while(is_same).count();
        let next = [self, other].into_iter().filter_map(|each| each.changes.get(same));
        let at = next.map(|change| change.at).min()?;
        (self.without_changes() == other.without_changes()).then_some(at)
    }

    /// Returns the scenario at the start, without changes.
    #[must_use]
    pub fn without_changes(&self) -> Scenario {
        let mut cut = self.clone();
        cut.changes.clear();
        cut.flows.retain(|flows| !flows.is_added);
        cut
    }

    /// Removes the changes after `at`, and the groups of flows that they add.
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
