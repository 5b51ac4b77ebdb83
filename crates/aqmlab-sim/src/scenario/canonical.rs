//! Canonical form of a scenario: JSON with every default filled in. Equal scenarios have equal
//! texts, so its digest identifies a scenario.

use aqmlab_core::{Auto, Chosen, ParamType, Params, Stated, Table, Value};

use super::{
    FlowGroup, FlowParams, LinkConfig, LinkNames, LinkParams, Reroute, RerouteParams, RunParams,
    Scenario, Sizes,
};
use crate::endpoints::tfrc::TfrcParams;

impl Scenario {
    /// Returns the scenario as canonical JSON, which parses to the same scenario.
    pub fn to_json(&self) -> String {
        to_json(&Value::Table(self.to_table()))
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
        let flows = first.map(|flow| (flow.name.clone(), self.flow_table(flow)));
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

    pub(super) fn flow_table(&self, flow: &FlowGroup) -> Value {
        let names = |path: &Vec<u32>| {
            LinkNames(path.iter().map(|link| self.links[*link as usize].name.clone()).collect())
        };
        let usual = FlowParams::default();
        let mut transport = flow.transport.to_value().as_table().ok().cloned();
        if flow.endpoint.downcast_ref::<TfrcParams>().is_some() {
            transport = transport.map(|all| {
                let used = all.iter().filter(|(key, _)| TfrcParams::USED.contains(key));
                used.map(|(key, value)| (key.to_string(), value.clone())).collect()
            });
        }
        let is_late = flow.access_delay.ceiling() > 0.0;
        let reroute = |change: &Reroute| RerouteParams {
            at: change.at,
            path: change.path.as_ref().map(names),
            return_path: change.return_path.as_ref().map(names),
        };
        let params = FlowParams {
            count: flow.count,
            path: names(&flow.path),
            return_path: names(&flow.return_path),
            workload: Chosen::from_table(flow.workload.to_table()),
            size: flow.size,
            source: flow.source.clone(),
            destination: flow.destination.clone(),
            class: flow.class,
            delays: flow.delays,
            access_delay: if is_late { flow.access_delay.clone() } else { usual.access_delay },
            start: Auto::Set(flow.start),
            endpoint: match flow.endpoint.is_tcp() {
                true => usual.endpoint,
                false => Chosen::from_table(flow.endpoint.to_table()),
            },
            reroutes: flow.reroutes.iter().map(reroute).collect(),
            transport,
        };
        params.to_value()
    }
}

fn owned((key, value): (&'static str, Value)) -> (String, Value) {
    (key.to_string(), value)
}

/// Returns a value as a scenario states it.
fn stated<T: ParamType>(value: &Value) -> Stated<T> {
    Stated::read(value).expect("what was read reads back")
}

/// Returns a value as JSON.
pub fn to_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Text(text) => write_json_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Table(table) => {
            out.push('{');
            for (i, (key, value)) in table.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_json_text(key, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
