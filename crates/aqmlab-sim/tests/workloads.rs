//! Every workload: what it offers, that it completes, and that it leaves the
//! random numbers of others alone.

use aqmlab_core::Value;
use aqmlab_sim::{GroupResult, RunResult, Scenario, run};

/// One link each way; the group `app` has the workload.
fn scenario(workload: &str, overrides: &[(&str, &str)]) -> Scenario {
    let text = format!(
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
        [flows.app]
        path = "down"
        return_path = "up"
        workload = {workload}
        "#
    );
    let overrides: Vec<(String, Value)> =
        overrides.iter().map(|(key, value)| (key.to_string(), Value::from(*value))).collect();
    Scenario::parse(&text, "workload", &overrides).unwrap()
}

fn result(workload: &str, overrides: &[(&str, &str)]) -> RunResult {
    run(&scenario(workload, overrides), 0)
}

fn mean(group: &GroupResult, name: &str) -> f64 {
    let times = group.times.iter().find(|(known, _)| *known == name);
    times.unwrap_or_else(|| panic!("no times of {name}")).1.mean
}

#[test]
fn a_constant_bit_rate_is_constant() {
    let result = result(r#"{ kind = "cbr", rate = "1mbit", packet = "1000b" }"#, &[]);
    let datagrams = result.flows[0].datagrams.as_ref().unwrap();
    // At 0, 8 ms and so on up to 20 s.
    assert_eq!(datagrams.sent, 2501);
    assert_eq!(datagrams.sent - datagrams.received, 3, "20.8 ms on the way");
    // Alone, each takes its transmission and the propagation delay.
    assert!((datagrams.delay.mean - 0.0208).abs() < 1e-9, "{}", datagrams.delay.mean);
    assert!((mean(&result.groups[0], "delay") - 0.0208).abs() < 1e-9);
    assert_eq!(datagrams.jitter, 0.0);
}

#[test]
fn too_much_of_it_fills_the_buffer_and_is_lost() {
    let result = result(
        r#"{ kind = "cbr", rate = "20mbit", packet = "1000b" }"#,
        &[("links.down.queue.limit", "50p")],
    );
    let datagrams = result.flows[0].datagrams.as_ref().unwrap();
    let lost = result.links[0].counts.dropped_total();
    assert!((lost as f64 / datagrams.sent as f64 - 0.5).abs() < 0.01);
    assert!(datagrams.sent - datagrams.received - lost <= 50 + 26, "the rest is on its way");
    assert!((result.flows[0].goodput / 10e6 - 1.0).abs() < 0.01, "{}", result.flows[0].goodput);
    assert!((datagrams.delay.quantiles[0] - (0.020 + 51.0 * 0.0008)).abs() < 0.001);
}

#[test]
fn transfers_come_at_their_times_and_all_complete() {
    let result =
        result(r#"{ kind = "transfers", size = "14600b", gap = "100ms", number = 50 }"#, &[]);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (50, 50, 50 * 14_600));
    // SYN and SYN-ACK, of 40 bytes each.
    assert!((mean(group, "startup") - 0.040064).abs() < 1e-9, "{}", mean(group, "startup"));
    assert!(mean(group, "completion") > 0.080 && mean(group, "completion") < 0.2);
    assert!(result.flows.is_empty(), "places are used again");
    // The last starts at 5 s, and the run ends with it.
    assert!((result.end.as_secs_f64() - 5.1).abs() < 0.1, "{:?}", result.end);
}

#[test]
fn closed_transfers_follow_one_another() {
    let workload =
        r#"{ kind = "transfers", size = "14600b", gap = "100ms", number = 20, timing = "closed" }"#;
    let result = result(workload, &[("record.level", "series")]);
    assert_eq!(result.groups[0].completed, 20);
    let flows = &result.flows;
    assert_eq!(flows.len(), 20, "all have a row where there are records");
    for pair in flows.windows(2) {
        let gap = pair[1].start - pair[0].finish.unwrap();
        assert_eq!(gap.as_nanos(), 100_000_000);
    }
}

/// Places are used again, with packets of those that had them before still on
/// their way: nothing that is measured changes.
#[test]
fn using_places_again_changes_nothing() {
    let workload = r#"{ kind = "transfers", gap = { exponential = "4ms" },
        size = { pareto = { shape = 1.2, mean = "3kb", cap = "1mb" } } }"#;
    let lossy = ("links.down.queue.limit", "20p");
    let scenarios = ["summary", "series"]
        .map(|level| result(&workload.replace('\n', " "), &[lossy, ("record.level", level)]));
    let counts = scenarios.each_ref().map(|result| {
        let group = &result.groups[0];
        let down = result.links[0].counts;
        (group.started, group.completed, group.bytes, down, result.events)
    });
    assert_eq!(counts[0].0, counts[1].0);
    assert!(counts[0].0 > 4500, "{}", counts[0].0);
    assert!(counts[0].3.dropped_total() > 100);
    let close = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.01;
    assert!(close(counts[0].1, counts[1].1), "{counts:?}");
    assert!(close(counts[0].3.arrived, counts[1].3.arrived), "{counts:?}");
}

#[test]
fn a_workload_is_a_name_or_a_table() {
    let by_name = scenario("\"cbr\"", &[]);
    assert_eq!(by_name, scenario("{ kind = \"cbr\" }", &[]));
    assert_eq!(scenario("\"cbr\"", &[("flows.app.workload.rate", "1mbit")]), by_name);
    assert_ne!(scenario("\"cbr\"", &[("flows.app.workload.rate", "2mbit")]), by_name);
}
