//! What the tests of workloads have in common.
#![allow(dead_code, reason = "no test uses all of it")]

use aqmlab_core::Value;
use aqmlab_sim::{GroupResult, RunResult, Scenario, run};

/// Returns a scenario with one link in each direction and the workload in group `app`.
pub fn scenario_text(workload: &str) -> String {
    format!(
        r#"
        duration = "20s"
        [links.down]
        rate = "10mbit"
        delay = "20ms"
        queue = {{ discipline = "droptail", limit = "1000p" }}
        [links.up]
        rate = "10mbit"
        delay = "20ms"
        queue = {{ discipline = "droptail", limit = "1000p" }}
        [transport]
        profile = "rfc"
        [flows.app]
        path = "down"
        return_path = "up"
        workload = {workload}
        "#
    )
}

pub fn scenario(workload: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, Value)> =
        overrides.iter().map(|(key, value)| (key.to_string(), Value::from(*value))).collect();
    Scenario::parse(&scenario_text(workload), "workload", &overrides).unwrap()
}

pub fn result(workload: &str, overrides: &[(&str, &str)]) -> RunResult {
    run(&scenario(workload, overrides), 0)
}

pub fn mean(group: &GroupResult, name: &str) -> f64 {
    let times = group.times_of(name);
    times.unwrap_or_else(|| panic!("no times of {name}")).mean
}

/// A number that the first group sums up to.
pub fn value(result: &RunResult, name: &str) -> f64 {
    result.groups[0].value_of(name).unwrap()
}
