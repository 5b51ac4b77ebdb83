//! Links that change while packets pass: those that the scenario plans, and
//! what somebody asks for meanwhile.
//!
//! What a change means is said at [`Change`]. Those that are planned happen at
//! their times, in the order of all else that happens in the network; those that are asked
//! for happen at once. Flows are not the emulator's: they do not change.

use std::collections::VecDeque;

use aqmlab_core::{Error, Result, Time, Value};
use aqmlab_sim::network::Network;
use aqmlab_sim::scenario::{Change, ChangeParams, Changing, Effect, Surroundings};
use aqmlab_sim::{Outside, Scenario};

use crate::packet::handle::Handle;

/// A change that somebody asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The key, with its link.
    pub key: String,
    /// The new value.
    pub value: Value,
    /// Whether a new queue is asked for.
    pub replace: bool,
}

/// What one change has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The key, with its link.
    pub key: String,
    /// What stood there.
    pub before: Value,
    /// What stands there now.
    pub after: Value,
}

/// The links as they are, and the changes that were made and are to come.
pub struct Changes {
    /// As it was read.
    scenario: Scenario,
    current: Changing,
    planned: VecDeque<Change>,
    made: Vec<Change>,
    around: Surroundings,
}

/// Refuses a scenario in which something changes that is not the emulator's.
///
/// # Errors
/// If flows begin or stop by a change.
pub fn check(scenario: &Scenario) -> Result<()> {
    let of_flows = |change: &&Change| !matches!(change.effect, Effect::Link(..));
    match scenario.changes.iter().find(of_flows) {
        None => Ok(()),
        Some(change) => {
            let error = Error::new("changes of flows are simulated only");
            Err(error.at(scenario.changed_key(&change.effect)).at("changes"))
        }
    }
}

impl Changes {
    /// Those of a scenario.
    pub fn new(scenario: &Scenario, around: Surroundings) -> Self {
        let planned = scenario.changes.iter().cloned().collect();
        let (current, scenario) = (Changing::new(scenario), scenario.clone());
        Changes { scenario, current, planned, made: Vec::new(), around }
    }

    /// When the next that is planned comes.
    pub fn next_time(&self) -> Option<Time> {
        self.planned.front().map(|change| Time::ZERO + change.at)
    }

    /// Makes the planned change whose time has come.
    pub fn come(&mut self, now: Time, network: &mut Network<Handle>) {
        let Some(change) = self.planned.pop_front() else { return };
        change.effect.apply(network, now, &self.around);
        self.current.take(&change.effect, &self.scenario);
        self.made.push(change);
    }

    /// Makes changes that somebody asks for: all of them, or none. `now` is as for
    /// [`Effect::apply`].
    ///
    /// # Errors
    /// If a key cannot change, or not to its value.
    pub fn set(
        &mut self,
        now: Time,
        asked: &[Asked],
        network: &mut Network<Handle>,
    ) -> Result<Vec<Made>> {
        let mut next = self.current.clone();
        let (mut changes, mut made) = (Vec::new(), Vec::new());
        for Asked { key, value, replace } in asked {
            let before = next.value(key);
            let at = now.saturating_since(Time::ZERO);
            let (name, value) = (key.clone(), value.clone());
            let change = ChangeParams { at, key: name, value, replace: *replace };
            changes.push(next.change(&change, Outside::default())?);
            let shown = |value: Option<Value>| value.unwrap_or_else(|| "none".into());
            let after = shown(next.value(key));
            made.push(Made { key: key.clone(), before: shown(before), after });
        }
        let mut later = next.clone();
        let again = self.planned.iter().map(|change| later.again(change, &self.scenario));
        self.planned = again.collect::<Result<_>>()?;
        changes.retain(|change| !change.effect.is_none());
        for change in &changes {
            change.effect.apply(network, now, &self.around);
        }
        self.current = next;
        self.made.append(&mut changes);
        Ok(made)
    }

    /// All changes of the run, those that did not come to pass last.
    pub fn into_all(self) -> Vec<Change> {
        self.made.into_iter().chain(self.planned).collect()
    }
}
