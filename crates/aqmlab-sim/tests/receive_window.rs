//! Receive windows that grow, from end to end.

use aqmlab_core::Value;
use aqmlab_sim::{RunResult, Scenario, run};

/// A bandwidth-delay product of 1.25 MB, without timestamps and with them.
const BULK: &str = r#"
    duration = "10s"
    bottleneck = "down"
    [links.down]
    rate = "100mbit"
    delay = "50ms"
    queue = { discipline = "droptail", limit = "500p" }
    [links.up]
    rate = "100mbit"
    delay = "50ms"
    [flows.bulk]
    path = "down"
    return_path = "up"
"#;

fn bulk(profile: &str, window: &[(&str, &str)]) -> RunResult {
    let keys = [("profile", profile)].into_iter().chain(window.iter().copied());
    let overrides: Vec<_> =
        keys.map(|(key, value)| (format!("transport.{key}"), Value::from(value))).collect();
    run(&Scenario::parse(BULK, "bulk", &overrides).unwrap(), 0)
}

/// An automatic window never limits a flow that is limited by its queue: results equal those
/// without a limit, except for the acknowledgements. A limited buffer allows five
/// eighths of its size per round trip.
#[test]
fn a_window_that_grows_costs_nothing_and_one_that_may_not_does() {
    for profile in ["rfc", "linux-6"] {
        let delivered = |window: &[_]| bulk(profile, window).delivered_packets(0) as f64;
        let (free, grows) = (delivered(&[]), delivered(&[("receive_window", "auto")]));
        let kept = delivered(&[("receive_window", "auto"), ("receive_buffer_max", "131072b")]);
        assert!(grows > 0.97 * free, "{profile}: {grows} of {free}");
        // 81920 bytes in 100 ms, 1448 or 1460 in a packet: 561 to 566 a second.
        assert!((5300.0..5750.0).contains(&kept), "{profile}: {kept}");
    }
}
