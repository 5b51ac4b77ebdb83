//! Canonical form of a scenario: JSON with every default filled in. Equal scenarios have equal
//! texts, so its digest identifies a scenario.

use aqmlab_core::{Chosen, ParamType, Params, Stated, Table, Value};

use super::text::{to_json, to_toml};
use super::{LinkConfig, LinkParams, RunParams, Scenario, Sizes};

impl Scenario {
    /// Returns the scenario as canonical JSON, which parses to the same scenario.
    pub fn to_json(&self) -> String {
        to_json(&Value::Table(self.to_table()))
    }

    /// Returns the scenario as TOML with every default filled in, which parses to the same
    /// scenario.
    pub fn to_toml(&self) -> String {
        to_toml(&self.to_table())
    }

    /// Returns the scenario as values, with every default filled in.
    pub fn to_table(&self) -> Table {
        let run = RunParams {
            duration: self.duration,
            seed: self.seed,
            until: self.until.map(|group| self.flows[group as usize].name.clone()),
            simultaneous: self.simultaneous,
            bottleneck: Some(self.links[self.bottleneck].name.clone()),
        };
        let mut table = run.canonical().into_iter().map(owned).collect::<Table>();
        let links = self.links.iter().map(|link| (link.name.clone(), self.link_table(link)));
        table.insert("links", Value::Table(links.collect()));
        let first = self.flows.iter().filter(|flow| !flow.is_added);
        let flows = first.map(|flow| (flow.name.clone(), flow.params.to_value()));
        table.insert("flows", Value::Table(flows.collect()));
        table.insert("record", self.record.to_value());
        if !self.changes.is_empty() {
            let changes = self.changes.iter().map(|change| self.change_table(change));
            table.insert("changes", Value::List(changes.collect()));
        }
        table
    }

    fn link_table(&self, link: &LinkConfig) -> Value {
        let params = LinkParams {
            rate: stated(&link.process.to_value()),
            delay: stated(&link.way.delay.to_value()),
            jitter: link.way.jitter.clone(),
            loss: link.way.loss.as_ref().map(|loss| stated(&loss.to_value())),
            duplicate: stated(&link.way.duplicate.to_value()),
            slot: link.way.slot.clone(),
            reordering: link.way.reordering,
            shares: link.medium.map(|first| self.other_on_medium(first, link)),
            queue: Chosen::from_table(link.queue.to_table()),
            shaper: link.shaper.clone(),
            driver: link.driver.clone(),
            thresholds: Sizes(link.thresholds.clone()),
            framing: link.framing.into(),
        };
        params.to_value()
    }

    /// Returns another link on the medium whose first link this is.
    fn other_on_medium(&self, first: u32, link: &LinkConfig) -> String {
        let others = self.links.iter().filter(|other| other.medium == Some(first));
        let other = others.map(|other| &other.name).find(|name| **name != link.name);
        other.expect("it shares").clone()
    }
}

fn owned((key, value): (&'static str, Value)) -> (String, Value) {
    (key.to_string(), value)
}

/// Returns a value as a scenario states it.
fn stated<T: ParamType>(value: &Value) -> Stated<T> {
    Stated::read(value).expect("what was read reads back")
}
