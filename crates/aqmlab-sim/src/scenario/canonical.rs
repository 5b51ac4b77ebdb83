//! The canonical form of a scenario: JSON with every default filled in.
//! Equal scenarios have equal texts, so its digest names a scenario.

use aqmlab_core::{Chosen, Framing, ParamType, Params, Span, Stated, Table, Value};

use super::{FlowGroup, LinkConfig, LinkParams, Reroute, RunParams, Scenario, Sizes, Start};
use crate::endpoints::EndpointConfig;

impl Scenario {
    /// The scenario as canonical JSON. It reads back as the same scenario.
    pub fn to_json(&self) -> String {
        to_json(&Value::Table(self.to_table()))
    }

    /// The scenario as values, every default filled in.
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
        let usual = LinkParams::default();
        let plain = link.framing == Framing::NONE;
        let bytes = |bytes: u32| (!plain).then_some(u64::from(bytes));
        let params = LinkParams {
            rate: stated(&link.process.to_value()),
            delay: stated(&link.way.delay.to_value()),
            jitter: link.way.jitter.clone(),
            loss: link.way.loss.as_ref().map(|loss| stated(&loss.to_value())),
            duplicate: stated(&link.way.duplicate.to_value()),
            slot: link.way.slot.clone(),
            reordering: link.way.reordering,
            linklayer: if plain { usual.linklayer } else { link.framing.layer },
            overhead: bytes(link.framing.overhead),
            mpu: bytes(link.framing.mpu),
            shares: link.medium.map(|first| self.other_on_medium(first, link)),
            queue: Chosen::from_table(link.queue.to_table()),
            shaper: link.shaper.clone(),
            driver: link.driver.clone(),
            thresholds: Sizes(link.thresholds.clone()),
        };
        let mut entries = params.canonical();
        if !plain && params.linklayer == usual.linklayer {
            // The three that say what packets take on the wire stand together.
            let place = entries.iter().position(|(key, _)| *key == "overhead");
            let layer = ("linklayer", params.linklayer.to_value());
            entries.insert(place.expect("it is stated"), layer);
        }
        Value::Table(entries.into_iter().map(owned).collect())
    }

    /// Another link on the medium of which this is the first.
    fn other_on_medium(&self, first: u32, link: &LinkConfig) -> String {
        let others = self.links.iter().filter(|other| other.medium == Some(first));
        let other = others.map(|other| &other.name).find(|name| **name != link.name);
        other.expect("it shares").clone()
    }

    pub(super) fn flow_table(&self, flow: &FlowGroup) -> Value {
        let names = |path: &[u32]| {
            let name = |link: &u32| Value::from(self.links[*link as usize].name.as_str());
            Value::List(path.iter().map(name).collect())
        };
        let mut table = Table::new();
        table.insert("count", flow.count.to_string().into());
        table.insert("path", names(&flow.path));
        table.insert("return_path", names(&flow.return_path));
        table.insert("workload", Value::Table(flow.workload.to_table()));
        table.insert("size", flow.size.to_text().into());
        table.insert("source", flow.source.to_text().into());
        table.insert("destination", flow.destination.to_text().into());
        table.insert("class", flow.class.to_text().into());
        if flow.delays {
            table.insert("delays", "true".into());
        }
        if flow.access_delay.ceiling() > 0.0 {
            table.insert("access_delay", flow.access_delay.to_text().into());
        }
        let between = |name: &str, low: Span, high: Span| {
            let ends = vec![low.to_string().into(), high.to_string().into()];
            Value::Table([(name.to_string(), Value::List(ends))].into_iter().collect())
        };
        let start = match flow.start {
            Start::At(start) => Value::from(start.to_string()),
            Start::Uniform(low, high) => between("uniform", low, high),
            Start::Each(low, high) => between("each", low, high),
        };
        table.insert("start", start);
        if !matches!(flow.endpoint, EndpointConfig::Tcp(_)) {
            table.insert("endpoint", Value::Table(flow.endpoint.to_table()));
        }
        if !flow.reroutes.is_empty() {
            let change = |change: &Reroute| {
                let mut table = Table::new();
                table.insert("at", change.at.to_string().into());
                for (key, path) in [("path", &change.path), ("return_path", &change.return_path)] {
                    if let Some(path) = path {
                        table.insert(key, names(path));
                    }
                }
                Value::Table(table)
            };
            table.insert("reroutes", Value::List(flow.reroutes.iter().map(change).collect()));
        }
        table.insert("transport", flow.transport.to_value());
        Value::Table(table)
    }
}

fn owned((key, value): (&'static str, Value)) -> (String, Value) {
    (key.to_string(), value)
}

/// A value as a scenario states it.
fn stated<T: ParamType>(value: &Value) -> Stated<T> {
    Stated::read(value).expect("what was read reads back")
}

/// A value as JSON.
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
