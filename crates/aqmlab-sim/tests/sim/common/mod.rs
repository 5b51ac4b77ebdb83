//! Scenarios of the tests: a line, settings on top of it, and runs.
#![allow(dead_code, reason = "no test uses all of it")]

use aqmlab_core::{Result, Span, Time, Value};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::scenario::parse_value;
use aqmlab_sim::{GroupResult, Outside, Run, RunResult, Scenario, run};

pub mod busy_link;

/// Keys with their values, on top of a scenario.
pub type Settings<'a> = [(&'a str, &'a str)];

/// A bulk flow over a link in each direction.
pub const LINE: &str = r#"
    duration = "20s"
    bottleneck = "down"
    [links.down]
    rate = "10mbit"
    delay = "20ms"
    queue = { discipline = "droptail", limit = "1000p" }
    [links.up]
    rate = "10mbit"
    delay = "20ms"
    [transport]
    profile = "rfc"
    [flows.bulk]
    path = "down"
    return_path = "up"
"#;

/// Another group of flows over this line.
pub const BESIDE: &str = "{ path = 'down', return_path = 'up' }";

pub fn pairs(settings: &Settings) -> Vec<(String, Value)> {
    settings.iter().map(|(key, text)| (key.to_string(), parse_value(text))).collect()
}

pub fn parse(text: &str, settings: &Settings) -> Result<Scenario> {
    Scenario::parse(text, "test.toml", &pairs(settings))
}

pub fn scenario(text: &str, settings: &Settings) -> Scenario {
    parse(text, settings).unwrap_or_else(|error| panic!("{error}"))
}

pub fn result(text: &str, settings: &Settings) -> RunResult {
    run(&scenario(text, settings), 0)
}

/// The error of a scenario that is refused.
pub fn refused(text: &str, settings: &Settings) -> String {
    parse(text, settings).unwrap_err().to_string()
}

/// Results over the line.
pub fn on_line(settings: &Settings) -> RunResult {
    result(LINE, settings)
}

/// The line with this workload in group `app`.
pub fn workload(workload: &str) -> String {
    let workload = workload.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}workload = {workload}\n", LINE.replace("flows.bulk", "flows.app"))
}

/// Results of a workload.
pub fn run_workload(of: &str, settings: &Settings) -> RunResult {
    result(&workload(of), settings)
}

/// The same scenario from its canonical forms, as a table and as a file.
pub fn read_again(scenario: &Scenario) -> Scenario {
    let again =
        Scenario::from_table(scenario.to_table(), "again", &[], Outside::default()).unwrap();
    assert_eq!(again, *scenario);
    let text = scenario.to_toml();
    let again = Scenario::parse(&text, "saved", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.to_json(), scenario.to_json());
    assert_eq!(again, *scenario);
    again
}

/// Finishes a run, which the scenario that it leaves has to repeat.
pub fn repeated(run_of: Run) -> (RunResult, Scenario) {
    let scenario = read_again(run_of.scenario());
    let again = run(&scenario, run_of.replication());
    let result = run_of.finish().unwrap();
    assert_eq!((result.digest(), result.events), (again.digest(), again.events));
    (result, scenario)
}

pub fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

pub fn set(run: &mut Run, key: &str, text: &str) -> Span {
    try_set(run, key, text, false).unwrap_or_else(|error| panic!("{error}"))
}

pub fn try_set(run: &mut Run, key: &str, text: &str, replace: bool) -> Result<Span> {
    run.set(key, &parse_value(text), replace, Outside::default())
}

/// The error of a change that is refused.
pub fn not_set(run: &mut Run, key: &str, text: &str) -> String {
    try_set(run, key, text, false).unwrap_err().to_string()
}

/// What a link or a flow of a run shows under this name.
pub fn seen(run: &Run, subject: Subject, quantity: &str) -> Option<f64> {
    let mut value = None;
    run.observe(&mut |of, name, found| {
        if of == subject && name == quantity {
            value = Some(found);
        }
    });
    value
}

/// The samples of a quantity of a link or a flow: seconds and values.
pub fn series(result: &RunResult, subject: Subject, quantity: &str) -> Vec<(f64, f64)> {
    let samples = result.samples.iter();
    samples
        .filter(|sample| sample.subject == subject && sample.quantity == quantity)
        .map(|sample| (sample.time.as_secs_f64(), sample.value))
        .collect()
}

pub fn mean(group: &GroupResult, name: &str) -> f64 {
    let times = group.times_of(name);
    times.unwrap_or_else(|| panic!("no times of {name}")).mean
}

/// A number that the first group sums up to.
pub fn value(result: &RunResult, name: &str) -> f64 {
    result.groups[0].value_of(name).unwrap()
}

/// Jain's index of the shares of flows.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}
