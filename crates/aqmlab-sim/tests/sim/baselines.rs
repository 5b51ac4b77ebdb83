//! Relentless and a constant rate over simulated links.

use crate::common::{BESIDE, Settings, on_line};
use aqmlab_sim::RunResult;

fn bulk(settings: &Settings) -> RunResult {
    on_line(&[&[("links.down.queue.limit", "50p")], settings].concat())
}

const CBR: (&str, &str) = ("transport.congestion_control.algorithm", "cbr");
const RATE: &str = "transport.congestion_control.rate";

/// 6 Mbit/s of segments on the wire, 1460 bytes in 1500 of them payload.
#[test]
fn a_constant_rate_below_the_link_arrives_and_makes_no_queue() {
    let result = bulk(&[CBR, (RATE, "6mbit")]);
    let expected = 6e6 * 1460.0 / 1500.0;
    let goodput = result.flows[0].goodput;
    assert!((goodput / expected - 1.0).abs() < 0.01, "{goodput}");
    assert_eq!(result.links[0].counts.dropped_total(), 0);
    assert!(
        result.links[0].sojourn.quantiles[4] < 0.001,
        "{:?}",
        result.links[0].sojourn.quantiles
    );
}

/// Twice the link's rate: the queue is full, half is dropped, and nothing
/// that is dropped makes it any slower.
#[test]
fn a_constant_rate_above_the_link_does_not_yield() {
    for queue in ["droptail", "codel"] {
        let result = bulk(&[CBR, (RATE, "20mbit"), ("links.down.queue.discipline", queue)]);
        let link = &result.links[0];
        assert!(link.utilisation > 0.99, "{queue}: {}", link.utilisation);
        let sent = result.flows[0].sent as f64 * 1500.0 * 8.0 / 20.0;
        assert!((sent / 20e6 - 1.0).abs() < 0.02, "{queue}: {sent}");
        let share = link.counts.dropped_total() as f64 / result.flows[0].sent as f64;
        assert!((share - 0.5).abs() < 0.03, "{queue}: {share}");
    }
}

/// Reno fills buffer and link, and loses about a segment per round trip: about 10 per second at 100
/// ms of base and queuing delay.
#[test]
fn relentless_keeps_a_queue_full_at_a_loss_a_round_trip() {
    let settings = [("transport.congestion_control", "relentless")];
    let result = bulk(&settings);
    let link = &result.links[0];
    assert!(link.utilisation > 0.98, "{}", link.utilisation);
    assert_eq!(result.flows[0].stats.unwrap().timeouts, 0);
    // 40 ms and up to 50 packets of 1.2 ms.
    let (most, least) = (20.0 / 0.04, 20.0 / 0.1 / 2.0);
    let drops = link.counts.dropped_total() as f64;
    assert!((least..most).contains(&drops), "{drops}");
    assert!(link.sojourn.quantiles[0] > 0.04, "{:?}", link.sojourn.quantiles);
}

/// Delay-based disciplines have to drop as much, and keep the queue shorter. (Retransmissions are
/// dropped as well: timeouts cost a tenth of the link.)
#[test]
fn queues_that_manage_themselves_bound_relentless() {
    for queue in ["codel", "dualpi2"] {
        let settings = [
            ("transport.congestion_control", "relentless"),
            ("links.down.queue.discipline", queue),
            ("links.down.queue.limit", "1000p"),
        ];
        let link = &bulk(&settings).links[0];
        assert!(link.utilisation > 0.8, "{queue}: {}", link.utilisation);
        assert!(link.sojourn.quantiles[0] < 0.03, "{queue}: {:?}", link.sojourn.quantiles);
        assert!(link.counts.dropped_total() > 100, "{queue}");
    }
}

/// Reno yields to each loss by half of its window, Relentless by one segment.
#[test]
fn relentless_takes_most_from_reno() {
    let settings =
        [("flows.bulk.transport.congestion_control", "relentless"), ("flows.other", BESIDE)];
    let result = bulk(&settings);
    let (relentless, reno) = (result.flows[0].goodput, result.flows[1].goodput);
    assert!(relentless > 4.0 * reno && reno > 0.0, "{relentless} {reno}");
}
