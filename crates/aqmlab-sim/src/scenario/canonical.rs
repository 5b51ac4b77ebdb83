//! The canonical form of a scenario: JSON with every default filled in.
//! Equal scenarios have equal texts, so its digest names a scenario.

use aqmlab_core::{Framing, ParamType, Params, Span, Table, Value};

use super::{FlowGroup, LinkConfig, Reroute, Scenario, Start};
use crate::endpoints::EndpointConfig;

impl Scenario {
    /// The scenario as canonical JSON. It reads back as the same scenario.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        write_json(&Value::Table(self.to_table()), &mut text);
        text
    }

    /// The scenario as values, every default filled in.
    pub fn to_table(&self) -> Table {
        let mut table = Table::new();
        table.insert("duration", self.duration.to_string().into());
        table.insert("seed", self.seed.to_string().into());
        if let Some(group) = self.until {
            table.insert("until", self.flows[group as usize].name.as_str().into());
        }
        table.insert("simultaneous", self.simultaneous.to_text().into());
        table.insert("bottleneck", self.links[self.bottleneck].name.as_str().into());
        let links = self.links.iter().map(|link| (link.name.clone(), self.link_table(link)));
        table.insert("links", Value::Table(links.collect()));
        let flows = self.flows.iter().map(|flow| (flow.name.clone(), self.flow_table(flow)));
        table.insert("flows", Value::Table(flows.collect()));
        let mut record = self.record.entries();
        // As with links: what is not there is left out.
        record.retain(|(key, _)| *key != "warmup" || self.record.warmup.as_nanos() > 0);
        table.insert("record", settings(record));
        table
    }

    fn link_table(&self, link: &LinkConfig) -> Value {
        let mut table = Table::new();
        table.insert("rate", link.process.to_value());
        table.insert("delay", link.way.delay.to_value());
        self.unusual(link, &mut table);
        table.insert("queue", Value::Table(link.queue.to_table()));
        if let Some(shaper) = &link.shaper {
            table.insert("shaper", settings(shaper.entries()));
        }
        if let Some(driver) = &link.driver {
            table.insert("driver", settings(driver.entries()));
        }
        let thresholds = link.thresholds.iter().map(|bytes| bytes.to_string().into()).collect();
        table.insert("thresholds", Value::List(thresholds));
        Value::Table(table)
    }

    /// What most links have not: it is left out where it is not.
    fn unusual(&self, link: &LinkConfig, table: &mut Table) {
        if let Some(jitter) = &link.way.jitter {
            let mut entries = jitter.entries();
            entries.retain(|(key, _)| *key != "correlation" || jitter.correlation > 0.0);
            table.insert("jitter", settings(entries));
        }
        if let Some(loss) = &link.way.loss {
            table.insert("loss", loss.to_value());
        }
        if link.way.duplicate.chance > 0.0 {
            table.insert("duplicate", link.way.duplicate.to_value());
        }
        if let Some(slot) = &link.way.slot {
            table.insert("slot", settings(slot.entries()));
        }
        if link.way.reordering {
            table.insert("reordering", true.to_text().into());
        }
        if link.framing != Framing::NONE {
            table.insert("linklayer", link.framing.layer.to_text().into());
            table.insert("overhead", link.framing.overhead.to_string().into());
            table.insert("mpu", link.framing.mpu.to_string().into());
        }
        if let Some(first) = link.medium {
            let others = self.links.iter().filter(|other| other.medium == Some(first));
            let other = others.map(|other| &other.name).find(|name| **name != link.name);
            table.insert("shares", other.expect("it shares").as_str().into());
        }
    }

    fn flow_table(&self, flow: &FlowGroup) -> Value {
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
        table.insert("transport", settings(flow.transport.entries()));
        Value::Table(table)
    }
}

fn settings(entries: Vec<(&'static str, Value)>) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
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
