//! Link changes during a run: planned by the scenario, or requested by the user.
//!
//! [`Change`] defines the meaning of a change. Planned changes take effect at their times, ordered
//! with all other events of the network. Requested changes take effect at once. Flows cannot
//! change: the emulator has none.

use std::collections::VecDeque;

use aqmlab_core::{Error, Result, Time, Value};
use aqmlab_sim::network::Network;
use aqmlab_sim::scenario::{Change, ChangeParams, Changing, Effect, Surroundings};
use aqmlab_sim::{Outside, Scenario};

use crate::packet::buffers::Buffers;

/// Requested change.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Key, with its link.
    pub key: String,
    /// New value.
    pub value: Value,
    /// True to replace the queue by a new one.
    pub replace: bool,
}

/// Effect of one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Key, with its link.
    pub key: String,
    /// Value before the change.
    pub before: Value,
    /// Value after the change.
    pub after: Value,
}

/// Current links, with the changes made and pending.
pub struct Changes {
    /// Scenario as read from the file.
    scenario: Scenario,
    current: Changing,
    planned: VecDeque<Change>,
    made: Vec<Change>,
    around: Surroundings,
}

/// Rejects scenarios with changes that the emulator cannot make.
///
/// # Errors
/// Returns an error if a change starts or stops flows.
pub fn check(scenario: &Scenario) -> Result<()> {
    let of_flows = |change: &&Change| !matches!(change.effect, Effect::Link(..));
    match scenario.changes.iter().find(of_flows) {
        None => Ok(()),
        Some(change) => {
            let error = Error::new("changes of flows are available in simulation only");
            Err(error.at(scenario.changed_key(&change.effect)).at("changes"))
        }
    }
}

impl Changes {
    /// Creates the changes of a scenario.
    pub fn new(scenario: &Scenario, around: Surroundings) -> Self {
        let planned = scenario.changes.iter().cloned().collect();
        let (current, scenario) = (Changing::new(scenario), scenario.clone());
        Changes { scenario, current, planned, made: Vec::new(), around }
    }

    /// Returns the time of the next planned change.
    pub fn next_time(&self) -> Option<Time> {
        self.planned.front().map(|change| Time::ZERO + change.at)
    }

    /// Makes the planned changes that are due.
    pub fn come(&mut self, now: Time, network: &mut Network<Buffers>) {
        let Some(change) = self.planned.pop_front() else { return };
        change.effect.apply(network, now, &self.around);
        self.current.take(&change.effect, &self.scenario);
        self.made.push(change);
    }

    /// Makes requested changes: all of them, or none. See [`Effect::apply`] for `now`.
    ///
    /// # Errors
    /// Returns an error if a key cannot change, or not to its value.
    pub fn set(
        &mut self,
        now: Time,
        asked: &[Asked],
        network: &mut Network<Buffers>,
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

    /// Returns all changes of the run; those not reached are last.
    pub fn into_all(self) -> Vec<Change> {
        self.made.into_iter().chain(self.planned).collect()
    }
}
