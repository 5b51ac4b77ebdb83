//! A link that is kept busy, for the tests of what links can be.
#![allow(dead_code, reason = "no test uses all of it")]

use std::sync::Arc;

use aqmlab_core::{Error, Value};
use aqmlab_sim::rate::InputFile;
use aqmlab_sim::scenario::parse_value;
use aqmlab_sim::{Outside, RunResult, Scenario, run};

/// More flows than needed to keep a link busy; what the overrides say is done
/// to it.
pub const BULK: &str = r#"
    duration = "20s"
    [links.down]
    rate = "10mbit"
    delay = "10ms"
    queue = { discipline = "droptail", limit = "200p" }
    [links.up]
    rate = "100mbit"
    delay = "10ms"
    queue = { discipline = "droptail", limit = "1000p" }
    [transport]
    profile = "rfc"
    [flows.bulk]
    count = 5
    path = ["down"]
    return_path = ["up"]
    [record]
    level = "packets"
"#;

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

pub fn file(content: &[u8]) -> aqmlab_core::Result<Arc<InputFile>> {
    Ok(Arc::new(InputFile::new(content.to_vec())))
}

pub fn read_file(name: &str) -> aqmlab_core::Result<Arc<InputFile>> {
    match name {
        "some.trace" => file(trace().as_bytes()),
        "rates.csv" => file(b"time,rate\n0,5\n1,0\n1.5,20\n3,1.25\n"),
        "delays.csv" => file(b"0,10\n2,50\n4,5\n"),
        _ => Err(Error::new("there is no such file").in_file(name)),
    }
}

pub fn scenario(overrides: &[(&str, &str)]) -> aqmlab_core::Result<Scenario> {
    let overrides: Vec<(String, Value)> =
        overrides.iter().map(|(key, text)| (key.to_string(), parse_value(text))).collect();
    Scenario::parse_with(BULK, "bulk", &overrides, Outside::files(&read_file))
}

pub fn result(overrides: &[(&str, &str)]) -> RunResult {
    run(&scenario(overrides).unwrap(), 0)
}

pub fn error(overrides: &[(&str, &str)]) -> String {
    scenario(overrides).unwrap_err().to_string()
}

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
