//! Tests of every parameter at the ends of its range, between and beyond them, with defaults for
//! the others: valid values run or are rejected with a reason, others are rejected.

use std::time::Duration;

use aqmlab_aqm::registry;
use aqmlab_core::framing::Octets;
use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, ParamSpec, Params, Rate, Span, Table, Value};
use aqmlab_sim::impairment::{
    ChanceParams, DelayCsvParams, DelayStepsParams, GilbertElliottParams, JitterParams,
    ListedLossParams, OutageParams, SlotParams,
};
use aqmlab_sim::network::egress::{DriverParams, ShaperParams};
use aqmlab_sim::rate::radio::{LteParams, WifiParams};
use aqmlab_sim::rate::random::{MarkovParams, OrnsteinUhlenbeckParams};
use aqmlab_sim::rate::{CsvParams, RateStepsParams, TraceParams};
use aqmlab_sim::scenario::{
    FlowParams, LinkParams, RecordParams, RunParams, parse_document, to_toml,
};
use aqmlab_sim::workload;
use aqmlab_tcp::{TcpParams, congestion};

use crate::trial::{Outcome, shortened};
use crate::{parse, shrink};

const BASE: &str = r#"
    duration = "2s"
    [links.down]
    rate = "10mbit"
    delay = "10ms"
    queue = "codel"
    [links.up]
    rate = "10mbit"
    delay = "10ms"
    [flows.one]
    count = 2
    path = "down"
    return_path = "up"
"#;

/// Any value is as good as another.
const WITHOUT_RANGE: [&str; 2] = ["seed", "start"];

/// Group of parameters, with its place and the keys required next to it.
struct Section {
    place: &'static str,
    besides: Vec<(&'static str, Value)>,
    specs: Vec<ParamSpec>,
}

fn section<T: Params>(place: &'static str, besides: &[(&'static str, &str)]) -> Section {
    let besides = besides.iter().map(|(key, text)| (*key, Value::from(*text))).collect();
    Section { place, besides, specs: T::specs() }
}

fn sections() -> Vec<Section> {
    let named = |place, key, name: &str, specs: Vec<ParamSpec>| Section {
        place,
        besides: vec![(key, name.into())],
        specs,
    };
    let queues = registry::entries().into_iter();
    let controls = congestion::entries().into_iter();
    let workloads = workload::entries().into_iter();
    let control = "flows.one.transport.congestion_control";
    let process = "links.down.rate";
    queues
        .map(|entry| named("links.down.queue", "discipline", entry.name, entry.params))
        .chain(controls.map(|entry| named(control, "algorithm", entry.name, entry.params)))
        .chain(workloads.map(|entry| named("flows.one.workload", "kind", entry.name, entry.params)))
        .chain([
            section::<RunParams>("", &[]),
            section::<LinkParams>("links.down", &[]),
            section::<FlowParams>("flows.one", &[]),
            section::<RecordParams>("record", &[]),
            section::<TcpParams>("flows.one.transport", &[]),
            section::<ShaperParams>("links.down.shaper", &[("rate", "5mbit")]),
            section::<DriverParams>("links.down.driver", &[]),
            section::<MarkovParams>(process, &[("process", "markov")]),
            section::<OrnsteinUhlenbeckParams>(process, &[("process", "ornstein-uhlenbeck")]),
            section::<LteParams>(process, &[("process", "lte")]),
            section::<WifiParams>(process, &[("process", "wifi")]),
            section::<TraceParams>(process, &[("trace", crate::TRACE)]),
            section::<CsvParams>(process, &[("csv", crate::COLUMNS)]),
            section::<RateStepsParams>(process, &[("steps", "0s 1mbit, 1s 5mbit")]),
            section::<DelayStepsParams>("links.down.delay", &[("steps", "0s 1ms, 1s 5ms")]),
            section::<DelayCsvParams>("links.down.delay", &[("csv", crate::COLUMNS)]),
            section::<JitterParams>("links.down.jitter", &[]),
            section::<SlotParams>("links.down.slot", &[]),
            section::<ChanceParams>("links.down.loss", &[("chance", "0.01")]),
            section::<ChanceParams>("links.down.duplicate", &[("chance", "0.01")]),
            section::<GilbertElliottParams>("links.down.loss", &[("p", "0.01")]),
            section::<ListedLossParams>("links.down.loss", &[("packets", "[3, 5]")]),
            section::<OutageParams>("links.down.loss", &[("off", "100ms")]),
        ])
        .collect()
}

/// Tests all parameters, and prints failures. Returns the numbers of values and failures.
pub fn all(patience: Duration) -> (u64, u64) {
    let (mut tried, mut failed) = (0, 0);
    for section in sections() {
        for spec in &section.specs {
            let (inside, outside) = values(spec);
            let is_number = !matches!(spec.kind, "name" | "switch" | "text" | "limit")
                && spec.kind.len() < 13
                && spec.default.as_deref().is_some_and(|text| number(spec, text).is_some());
            if is_number && spec.range.is_none() && !WITHOUT_RANGE.contains(&spec.name) {
                failed += 1;
                println!("{}.{}: a number without a range", section.place, spec.name);
            }
            for value in inside {
                tried += 1;
                failed += u64::from(!runs(&section, spec, value, patience));
            }
            for value in outside {
                tried += 1;
                if parse(&table(&section, spec, &value)).is_ok() {
                    failed += 1;
                    println!("{}.{}: {value:?} is not refused", section.place, spec.name);
                }
            }
        }
    }
    (tried, failed)
}

/// Returns whether a scenario with this value runs, or is refused for a reason that names a key.
fn runs(section: &Section, spec: &ParamSpec, value: Value, patience: Duration) -> bool {
    let scenario = table(section, spec, &value);
    match parse(&scenario) {
        Err(error) if error.key.is_empty() => {
            println!("{}.{} = {value:?}: {error}", section.place, spec.name);
            return false;
        }
        Err(_) => return true,
        Ok(_) => {}
    }
    let (_, outcome) = shortened(scenario.clone(), patience);
    let Outcome::Failed(problem) = outcome else { return true };
    println!("{}.{} = {value:?} FAILED: {problem}", section.place, spec.name);
    println!("{}", to_toml(&shrink::shrink(scenario, &problem, patience)));
    false
}

fn table(section: &Section, spec: &ParamSpec, value: &Value) -> Table {
    let mut table = parse_document(BASE).expect("TOML");
    let path = |key: &str| match section.place {
        "" => key.to_string(),
        place => format!("{place}.{key}"),
    };
    if !section.besides.is_empty() {
        let besides = section.besides.iter().map(|(key, value)| (key.to_string(), value.clone()));
        set(&mut table, section.place, Value::Table(besides.collect()));
    }
    set(&mut table, &path(spec.name), value.clone());
    table
}

fn set(table: &mut Table, path: &str, value: Value) {
    table.set_key(path, value).expect("tables on the way");
}

/// A value in its base unit, by its kind.
fn number(spec: &ParamSpec, text: &str) -> Option<f64> {
    let value = Value::from(text);
    match spec.kind {
        "time" => read_value::<Span>(&value).ok().map(|span| span.as_nanos() as f64),
        "rate" => read_value::<Rate>(&value).ok().map(|rate| rate.as_bps() as f64),
        "size" => read_value::<Bytes>(&value).ok().map(|bytes| bytes.get() as f64),
        "bytes" => read_value::<Octets>(&value).ok().map(|bytes| bytes.0 as f64),
        "whole number" => read_value::<u64>(&value).ok().map(|number| number as f64),
        "number" => read_value::<f64>(&value).ok(),
        _ => None,
    }
}

/// Values in the range, and beyond it.
fn values(spec: &ParamSpec) -> (Vec<Value>, Vec<Value>) {
    if !spec.choices.is_empty() {
        return (spec.choices.iter().map(|name| (*name).into()).collect(), vec!["?".into()]);
    }
    let mut inside: Vec<Value> = ["none", "auto", "unlimited"].map(Value::from).to_vec();
    if spec.kind == "limit" || spec.kind == "threshold" {
        inside
            .extend(["1p", "100000p", "1b", "100000000b", "0.001bdp", "1000bdp"].map(Value::from));
    }
    let Some((low, high)) = &spec.range else { return (inside, Vec::new()) };
    let (Some(least), Some(most)) = (number(spec, low), number(spec, high)) else {
        return (inside, Vec::new());
    };
    inside.extend([low.as_str(), high.as_str()].map(Value::from));
    let form = |base: f64| match spec.kind {
        "time" => Value::from(format!("{base:.0}ns")),
        "rate" => Value::from(format!("{base:.0}bit")),
        "size" | "bytes" => Value::from(format!("{base:.0}b")),
        "whole number" => Value::from(format!("{base:.0}")),
        _ => Value::from(format!("{base:?}")),
    };
    // At a quarter, a half and three quarters of its orders of magnitude.
    let first = if least > 0.0 { least } else { (most * 1e-6).min(1.0) };
    for part in [0.25, 0.5, 0.75] {
        inside.push(form((first * libm::pow(most / first, part)).max(least)));
    }
    let mut outside = vec![form(most * 2.0 + 1.0)];
    match spec.kind {
        "number" | "bytes" => outside.push(form(least - 1.0 - least.abs())),
        _ if least >= 1.0 => outside.push(form(0.0)),
        _ => {}
    }
    (inside, outside)
}
