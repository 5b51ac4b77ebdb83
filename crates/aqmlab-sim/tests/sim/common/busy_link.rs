//! A link that is kept busy, for the tests of what links can be.

use std::sync::Arc;

use aqmlab_core::{Error, Result};
use aqmlab_sim::rate::InputFile;
use aqmlab_sim::{Outside, RunResult, Scenario, run};

use super::{LINE, Settings, pairs};

/// More flows than needed to keep the link busy; settings change it.
const BUSY: &Settings = &[
    ("links.down.delay", "10ms"),
    ("links.down.queue.limit", "200p"),
    ("links.up.rate", "100mbit"),
    ("links.up.delay", "10ms"),
    ("flows.bulk.count", "5"),
    ("record.level", "packets"),
];

/// 1000 opportunities, some at once, in two seconds; none between 0.7 and 1.4.
pub fn trace() -> String {
    let times = (0..1000u64).map(|i| {
        let time = i * i % 1300;
        if time > 700 { time + 700 } else { time }
    });
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times.push(2000);
    times.iter().map(|time| format!("{time}\n")).collect()
}

pub fn file(content: &[u8]) -> Result<Arc<InputFile>> {
    Ok(Arc::new(InputFile::new(content.to_vec())))
}

pub fn read_file(name: &str) -> Result<Arc<InputFile>> {
    match name {
        "some.trace" => file(trace().as_bytes()),
        "rates.csv" => file(b"time,rate\n0,5\n1,0\n1.5,20\n3,1.25\n"),
        "delays.csv" => file(b"0,10\n2,50\n4,5\n"),
        _ => Err(Error::new("there is no such file").in_file(name)),
    }
}

pub fn scenario_with(settings: &Settings, outside: Outside<'_>) -> Result<Scenario> {
    Scenario::parse_with(LINE, "bulk", &pairs(&[BUSY, settings].concat()), outside)
}

pub fn scenario(settings: &Settings) -> Result<Scenario> {
    scenario_with(settings, Outside::files(&read_file))
}

pub fn result(settings: &Settings) -> RunResult {
    run(&scenario(settings).unwrap(), 0)
}

pub fn error(settings: &Settings) -> String {
    scenario(settings).unwrap_err().to_string()
}

/// One rate of each kind.
pub const RATES: &[&str] = &[
    r#"{ steps = [["0s", "10mbit"], ["3s", "1mbit"], ["7s", "20mbit"]] }"#,
    r#"{ steps = [["0s", "10mbit"], ["300ms", "0bit"], ["700ms", "3mbit"]], repeat = true }"#,
    r#"{ csv = "rates.csv" }"#,
    r#"{ trace = "some.trace" }"#,
    r#"{ process = "markov", rates = ["9mbit", "0bit", "2mbit"], dwell = ["1s", "200ms", "2s"] }"#,
    r#"{ process = "ornstein-uhlenbeck", mean = "8mbit", deviation = "4mbit" }"#,
    r#"{ process = "lte" }"#,
    r#"{ process = "wifi", others = 20, aggregate = 10000 }"#,
];
