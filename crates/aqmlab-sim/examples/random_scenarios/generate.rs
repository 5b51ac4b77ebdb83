//! A random scenario: any topology, discipline, control, workload and impairment.

use aqmlab_aqm::registry;
use aqmlab_core::{Params, Stream, Table, Value};
use aqmlab_sim::endpoints::tfrc::TfrcParams;
use aqmlab_sim::impairment::{
    ChanceParams, GilbertElliottParams, JitterParams, OutageParams, SlotParams,
};
use aqmlab_sim::network::egress::{DriverParams, ShaperParams};
use aqmlab_sim::rate::radio::{LteParams, WifiParams};
use aqmlab_sim::rate::random::OrnsteinUhlenbeckParams;
use aqmlab_sim::scenario::{FlowParams, LinkParams, RecordParams};
use aqmlab_sim::workload;
use aqmlab_tcp::{TcpParams, congestion};

use crate::draw::Draw;
use crate::{COLUMNS, TRACE, parse};

/// The scenario of this number, valid.
pub fn scenario(seed: u64, number: u64) -> Table {
    let mut draw = Draw::new(Stream::for_component(seed, number, "random scenario"));
    let mut table = whole(&mut draw, seed, number);
    loop {
        let Err(error) = parse(&table) else { return table };
        if refused(&mut table, &error.key, &mut draw).is_none() {
            table = whole(&mut draw, seed, number);
        }
    }
}

/// Takes out what is refused: the value at `key`, or one in the table there.
fn refused(table: &mut Table, key: &str, draw: &mut Draw) -> Option<()> {
    const NAMES: [&str; 4] = ["discipline", "kind", "algorithm", "process"];
    let (head, rest) = key.split_once('.').unwrap_or((key, ""));
    let Some(Value::Table(inner)) = table.get(head) else {
        return table.remove(head).map(|_| ());
    };
    let mut inner = inner.clone();
    if rest.is_empty() || inner.get(rest.split('.').next()?).is_none() {
        let keys: Vec<String> =
            inner.keys().filter(|key| !NAMES.contains(key)).map(str::to_string).collect();
        match keys.is_empty() {
            true => return table.remove(head).map(|_| ()),
            false => inner.remove(draw.pick(&keys).as_str()),
        };
    } else {
        refused(&mut inner, rest, draw)?;
    }
    table.insert(head, Value::Table(inner));
    Some(())
}

fn whole(draw: &mut Draw, seed: u64, number: u64) -> Table {
    let mut table = Table::new();
    let millis = draw.log(50.0, 20_000.0) as u64;
    table.insert("duration", format!("{millis}ms").into());
    table.insert("seed", Value::Integer(((seed.wrapping_mul(31) + number) >> 1) as i64));
    table.insert("simultaneous", (*draw.pick(&["arrivals-first", "departures-first"])).into());
    let names = |direction: &str, count: u64| -> Vec<String> {
        (0..count).map(|index| format!("{direction}{index}")).collect()
    };
    let (there, back) = (draw.whole(1, 3), draw.whole(1, 2));
    let [down, up] = [names("down", there), names("up", back)];
    let mut links = Table::new();
    for name in down.iter().chain(&up) {
        let link = link(draw, links.keys().last().map(str::to_string));
        links.insert(name.as_str(), Value::Table(link));
    }
    table.insert("links", Value::Table(links));
    let mut flows = Table::new();
    for index in 0..draw.whole(1, 4) {
        let group = group(draw, &down, &up);
        flows.insert(format!("group{index}"), Value::Table(group));
    }
    table.insert("flows", Value::Table(flows));
    let mut record = Table::new();
    let bold = draw.boldness;
    draw.boldness = 0.5;
    draw.fill(&mut record, &RecordParams::specs(), &["warmup", "interval"]);
    draw.boldness = bold;
    // Each sample looks at all that a discipline has: up to 65,536 flows.
    record.insert("interval", format!("{}us", draw.log(5e3, 3.6e9) as u64).into());
    if draw.chance(0.3) {
        record.insert("warmup", format!("{}ms", draw.whole(0, millis - 1)).into());
    }
    table.insert("record", Value::Table(record));
    table
}

/// What of a link is made with more care than any value of its kind.
const LINK_TABLES: &[&str] = &[
    "rate",
    "delay",
    "jitter",
    "loss",
    "duplicate",
    "slot",
    "shares",
    "queue",
    "shaper",
    "driver",
    "thresholds",
];

fn link(draw: &mut Draw, other: Option<String>) -> Table {
    let mut link = Table::new();
    link.insert("rate", rate(draw));
    link.insert("delay", delay(draw));
    draw.fill(&mut link, &LinkParams::specs(), LINK_TABLES);
    if let Some(other) = other.filter(|_| draw.chance(0.12)) {
        link.insert("shares", other.as_str().into());
    }
    link.insert("queue", queue(draw));
    if draw.chance(0.1) {
        let sizes = (0..draw.whole(1, 3)).map(|_| format!("{}b", draw.whole(0, 100_000)).into());
        link.insert("thresholds", Value::List(sizes.collect()));
    }
    if draw.chance(0.1) {
        let mut shaper = Table::new();
        draw.fill(&mut shaper, &ShaperParams::specs(), &["rate"]);
        shaper.insert("rate", rate_text(draw).into());
        link.insert("shaper", Value::Table(shaper));
    }
    if draw.chance(0.15) {
        link.insert("driver", some_of::<DriverParams>(draw));
    }
    if draw.chance(0.15) {
        link.insert("jitter", some_of::<JitterParams>(draw));
    }
    if draw.chance(0.1) {
        link.insert("slot", some_of::<SlotParams>(draw));
    }
    if draw.chance(0.12) {
        let mut duplicate = some_of::<ChanceParams>(draw);
        if let Value::Table(table) = &mut duplicate {
            table.insert("chance", Value::Float(draw.log(0.0, 1.0)));
        }
        link.insert("duplicate", duplicate);
    }
    if draw.chance(0.3) {
        link.insert("loss", loss(draw));
    }
    link
}

/// Half of the parameters of a group.
fn some_of<T: Params>(draw: &mut Draw) -> Value {
    let mut table = Table::new();
    let bold = std::mem::replace(&mut draw.boldness, 0.5);
    draw.fill(&mut table, &T::specs(), &[]);
    draw.boldness = bold;
    Value::Table(table)
}

fn loss(draw: &mut Draw) -> Value {
    let chance = draw.log(1e-4, 1.0);
    match draw.whole(0, 4) {
        0 => Value::Float(chance),
        1 => {
            let mut loss = some_of::<ChanceParams>(draw);
            if let Value::Table(table) = &mut loss {
                table.insert("chance", Value::Float(chance));
            }
            loss
        }
        2 => {
            let mut loss = some_of::<GilbertElliottParams>(draw);
            if let Value::Table(table) = &mut loss {
                table.insert("p", Value::Float(chance));
            }
            loss
        }
        3 => {
            let numbers = (0..draw.whole(1, 5)).map(|_| Value::Integer(draw.whole(1, 500) as i64));
            Value::Table(
                [("packets".to_string(), Value::List(numbers.collect()))].into_iter().collect(),
            )
        }
        _ => {
            let mut loss = some_of::<OutageParams>(draw);
            if let Value::Table(table) = &mut loss
                && table.is_empty()
            {
                table.insert("off", "200ms".into());
            }
            loss
        }
    }
}

fn rate_text(draw: &mut Draw) -> String {
    match draw.chance(0.8) {
        true => format!("{}bit", draw.log(2e5, 1e9) as u64),
        false => format!("{}bit", draw.log(1.0, 1e15) as u64),
    }
}

fn steps(draw: &mut Draw, one: impl Fn(&mut Draw) -> String) -> Value {
    let mut millis = 0;
    let mut steps = Vec::new();
    for _ in 0..draw.whole(1, 5) {
        let pair = vec![format!("{millis}ms").into(), one(draw).into()];
        steps.push(Value::List(pair));
        millis += draw.log(1.0, 5000.0).round() as u64;
    }
    let table = [
        ("steps".to_string(), Value::List(steps)),
        ("repeat".to_string(), Value::Bool(draw.chance(0.5))),
    ];
    Value::Table(table.into_iter().collect())
}

fn rate(draw: &mut Draw) -> Value {
    let process = |draw: &mut Draw, name: &str, specs: &[aqmlab_core::ParamSpec]| {
        let mut table = Table::new();
        table.insert("process", name.into());
        draw.fill(&mut table, specs, &[]);
        Value::Table(table)
    };
    match draw.whole(0, 11) {
        0 => steps(draw, |draw| match draw.chance(0.25) {
            true => "0bit".to_string(),
            false => rate_text(draw),
        }),
        1 => {
            let mut table = Table::new();
            table.insert("process", "markov".into());
            let count = draw.whole(2, 4);
            let rates = (0..count).map(|_| rate_text(draw).into()).collect();
            let dwell = (0..count).map(|_| format!("{}us", draw.log(1.0, 1e7) as u64).into());
            table.insert("dwell", Value::List(dwell.collect()));
            table.insert("rates", Value::List(rates));
            Value::Table(table)
        }
        2 => process(draw, "ornstein-uhlenbeck", &OrnsteinUhlenbeckParams::specs()),
        3 => process(draw, "lte", &LteParams::specs()),
        4 => process(draw, "wifi", &WifiParams::specs()),
        5 => {
            let mut table = Table::new();
            table.insert("trace", TRACE.into());
            if draw.chance(0.3) {
                table.insert("opportunity", format!("{}b", draw.log(1.0, 1e9) as u64).into());
            }
            Value::Table(table)
        }
        6 => {
            let mut table = Table::new();
            table.insert("csv", COLUMNS.into());
            table.insert("repeat", Value::Bool(draw.chance(0.5)));
            Value::Table(table)
        }
        _ => rate_text(draw).into(),
    }
}

fn delay(draw: &mut Draw) -> Value {
    let text = |draw: &mut Draw| match draw.chance(0.9) {
        true => format!("{}us", draw.log(0.0, 200_000.0) as u64),
        false => format!("{}ns", draw.log(0.0, 3.6e12) as u64),
    };
    match draw.whole(0, 9) {
        0 => steps(draw, text),
        1 => Value::Table([("csv".to_string(), COLUMNS.into())].into_iter().collect()),
        _ => text(draw).into(),
    }
}

fn queue(draw: &mut Draw) -> Value {
    let presets: Vec<&str> = registry::PRESETS.iter().map(|preset| preset.name).collect();
    if draw.chance(0.1) {
        return (*draw.pick(&presets)).into();
    }
    let entries = registry::entries();
    let entry = draw.pick(&entries);
    let mut table = Table::new();
    table.insert("discipline", entry.name.into());
    draw.fill(&mut table, &entry.params, &[]);
    Value::Table(table)
}

fn group(draw: &mut Draw, down: &[String], up: &[String]) -> Table {
    let mut group = Table::new();
    let (there, back) = if draw.chance(0.2) { (up, down) } else { (down, up) };
    group.insert("path", path(draw, there));
    group.insert("return_path", path(draw, back));
    let not = ["count", "size", "source", "destination", "access_delay"];
    draw.fill(&mut group, &FlowParams::specs(), &not);
    group.insert("count", Value::Integer(draw.log(1.0, 12.0).round() as i64));
    for end in ["source", "destination"] {
        if draw.chance(0.3) {
            group.insert(end, (*draw.pick(&["a", "b"])).into());
        }
    }
    if draw.chance(0.15) {
        group.insert("access_delay", draw.distribution("ms"));
    }
    match draw.whole(0, 3) {
        0 => group.insert("start", format!("{}ms", draw.whole(0, 2000)).into()),
        1 => {
            let ends = vec!["0s".into(), format!("{}ms", draw.whole(0, 2000)).into()];
            let kind = (*draw.pick(&["uniform", "each"])).to_string();
            group.insert("start", Value::Table([(kind, Value::List(ends))].into_iter().collect()));
        }
        _ => {}
    }
    if draw.chance(0.5) {
        if draw.chance(0.5) {
            group.insert("size", format!("{}b", draw.log(1.0, 1e7) as u64).into());
        }
    } else {
        group.insert("workload", of_kind(draw));
    }
    // What TFRC has no use for is refused, and taken out.
    if draw.chance(0.15) {
        let mut endpoint = Table::new();
        endpoint.insert("kind", "tfrc".into());
        draw.fill(&mut endpoint, &TfrcParams::specs(), &[]);
        group.insert("endpoint", Value::Table(endpoint));
    }
    group.insert("transport", transport(draw));
    group
}

/// Some of the links, in order.
fn path(draw: &mut Draw, links: &[String]) -> Value {
    let first = draw.whole(0, links.len() as u64 - 1) as usize;
    let last = draw.whole(first as u64, links.len() as u64 - 1) as usize;
    Value::List(links[first..=last].iter().map(|name| name.as_str().into()).collect())
}

fn of_kind(draw: &mut Draw) -> Value {
    if draw.chance(0.2) {
        return draw.pick(workload::PRESETS).name.into();
    }
    let entries = workload::entries();
    let entry = draw.pick(&entries);
    let mut table = Table::new();
    table.insert("kind", entry.name.into());
    draw.fill(&mut table, &entry.params, &[]);
    Value::Table(table)
}

fn transport(draw: &mut Draw) -> Value {
    let mut table = Table::new();
    draw.fill(&mut table, &TcpParams::specs(), &["congestion_control"]);
    if draw.chance(0.7) {
        let entries = congestion::entries();
        let entry = draw.pick(&entries);
        let mut control = Table::new();
        control.insert("algorithm", entry.name.into());
        draw.fill(&mut control, &entry.params, &[]);
        table.insert("congestion_control", Value::Table(control));
    }
    Value::Table(table)
}
