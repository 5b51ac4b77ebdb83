//! Pacing from end to end.

use aqmlab_core::Value;
use aqmlab_sim::{RunResult, Scenario, run};

const BULK: &str = r#"
    duration = "5s"
    bottleneck = "down"
    [links.down]
    rate = "100mbit"
    delay = "20ms"
    queue = { discipline = "droptail", limit = "1000p" }
    [links.up]
    rate = "100mbit"
    delay = "20ms"
    [transport]
    initial_window = "100p"
    receive_window = "160p"
    [flows.bulk]
    path = "down"
    return_path = "up"
"#;

fn bulk(pacing: bool) -> RunResult {
    let overrides = [("transport.pacing".to_string(), Value::Bool(pacing))];
    run(&Scenario::parse(BULK, "bulk", &overrides).unwrap(), 0)
}

/// A window below the bandwidth-delay product needs no queue if it is paced,
/// and timers that alternate leave no events behind.
#[test]
fn a_paced_window_needs_almost_no_queue() {
    let (burst, paced) = (bulk(false), bulk(true));
    assert!(burst.links[0].backlog_max.packets >= 98);
    assert!(paced.links[0].backlog_max.packets <= 20, "{:?}", paced.links[0].backlog_max);
    let delivered = |result: &RunResult| result.delivered_packets(0) as f64;
    assert!(delivered(&paced) > 0.95 * delivered(&burst));
    assert!(paced.events as f64 <= 1.6 * burst.events as f64, "{} {}", paced.events, burst.events);
}
