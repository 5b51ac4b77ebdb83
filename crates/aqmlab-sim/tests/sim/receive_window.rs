//! Receive windows that grow, from end to end.

use crate::common::{Settings, on_line};
use aqmlab_sim::RunResult;

/// A bandwidth-delay product of 1.25 MB, without timestamps and with them.
fn bulk(profile: &str, window: &Settings) -> RunResult {
    let long = [
        ("duration", "10s"),
        ("links.down.rate", "100mbit"),
        ("links.down.delay", "50ms"),
        ("links.down.queue.limit", "500p"),
        ("links.up.rate", "100mbit"),
        ("links.up.delay", "50ms"),
        ("transport.profile", profile),
    ];
    on_line(&[&long, window].concat())
}

/// An automatic window never limits a flow that is limited by its queue: results equal those
/// without a limit, except for the acknowledgements. A limited buffer allows five
/// eighths of its size per round trip.
#[test]
fn a_window_that_grows_costs_nothing_and_one_that_may_not_does() {
    for profile in ["rfc", "linux-6"] {
        let delivered = |window: &[_]| bulk(profile, window).delivered_packets(0) as f64;
        let (free, grows) = (delivered(&[]), delivered(&[("transport.receive_window", "auto")]));
        let limited =
            [("transport.receive_window", "auto"), ("transport.receive_buffer_max", "131072b")];
        let kept = delivered(&limited);
        assert!(grows > 0.97 * free, "{profile}: {grows} of {free}");
        // 81920 bytes in 100 ms, 1448 or 1460 in a packet: 561 to 566 a second.
        assert!((5300.0..5750.0).contains(&kept), "{profile}: {kept}");
    }
}
