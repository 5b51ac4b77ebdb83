//! Pacing from end to end.

use crate::common::{LINE, on_line, scenario};
use aqmlab_sim::{RunResult, run};

fn bulk(pacing: &str) -> RunResult {
    on_line(&[
        ("duration", "5s"),
        ("links.down.rate", "100mbit"),
        ("links.up.rate", "100mbit"),
        ("transport.profile", "linux-6"),
        ("transport.initial_window", "100p"),
        ("transport.receive_window", "160p"),
        ("transport.pacing", pacing),
    ])
}

/// A window below the bandwidth-delay product needs no queue if it is paced,
/// and timers that alternate leave no events behind.
#[test]
fn a_paced_window_needs_almost_no_queue() {
    let (burst, paced) = (bulk("false"), bulk("true"));
    assert!(burst.links[0].backlog_max.packets >= 98);
    assert!(paced.links[0].backlog_max.packets <= 20, "{:?}", paced.links[0].backlog_max);
    let delivered = |result: &RunResult| result.delivered_packets(0) as f64;
    assert!(delivered(&paced) > 0.95 * delivered(&burst));
    assert!(paced.events as f64 <= 1.6 * burst.events as f64, "{} {}", paced.events, burst.events);
}

/// Segments leave in pairs: in Linux 5.4 a paced window that is odd does not grow. Unpaced ones do.
#[test]
fn linux_5_4_forgets_that_a_paced_window_was_full() {
    let delivered = |stack: &str, pacing: &str| {
        let bursts = [
            ("links.down.rate", "50mbit"),
            ("links.down.delay", "0s"),
            ("links.down.loss", "0.01"),
            ("links.up.rate", "50mbit"),
            ("links.up.delay", "35ms"),
            ("transport.profile", "linux-6.1"),
            ("transport.segmentation_offload", "true"),
            ("transport.congestion_control", "reno"),
            ("transport.stack", stack),
            ("transport.pacing", pacing),
        ];
        let results = (0..4).map(|seed| run(&scenario(LINE, &bursts), seed));
        results.map(|result| result.delivered_packets(0)).sum::<u64>() as f64
    };
    let (newer, older) = (delivered("linux-6.1", "true"), delivered("linux-5.4", "true"));
    assert!(older < 0.6 * newer, "{older} {newer}");
    let (newer, older) = (delivered("linux-6.1", "false"), delivered("linux-5.4", "false"));
    assert!((0.8..1.05).contains(&(older / newer)), "{older} {newer}");
}
