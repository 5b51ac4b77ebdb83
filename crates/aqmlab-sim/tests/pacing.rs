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

const BURSTS: &str = r#"
    duration = "20s"
    bottleneck = "down"
    [links.down]
    rate = "50mbit"
    loss = 0.01
    [links.up]
    rate = "50mbit"
    delay = "35ms"
    [transport]
    profile = "linux-6.1"
    segmentation_offload = true
    congestion_control = "reno"
    [flows.bulk]
    path = "down"
    return_path = "up"
"#;

/// Segments leave in pairs: in Linux 5.4 a paced window that is odd does not grow. Unpaced ones do.
#[test]
fn linux_5_4_forgets_that_a_paced_window_was_full() {
    let delivered = |stack: &str, pacing: bool| {
        let overrides = [
            ("transport.stack".to_string(), Value::from(stack)),
            ("transport.pacing".to_string(), Value::Bool(pacing)),
        ];
        let results =
            (0..4).map(|seed| run(&Scenario::parse(BURSTS, "bursts", &overrides).unwrap(), seed));
        results.map(|result| result.delivered_packets(0)).sum::<u64>() as f64
    };
    let (newer, older) = (delivered("linux-6.1", true), delivered("linux-5.4", true));
    assert!(older < 0.6 * newer, "{older} {newer}");
    let (newer, older) = (delivered("linux-6.1", false), delivered("linux-5.4", false));
    assert!((0.8..1.05).contains(&(older / newer)), "{older} {newer}");
}
