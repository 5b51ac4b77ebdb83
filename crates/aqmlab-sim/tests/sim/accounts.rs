//! Every packet of a flow arrives, is dropped by a queue or is lost on a link, and is counted once.

use crate::common::{BESIDE, Settings, on_line};
use aqmlab_sim::endpoints::{Direction, End};
use aqmlab_sim::{RunResult, Traffic};

/// Short transfers over a lossy link with a queue of two packets, in both directions.
const MICE: &Settings = &[
    ("duration", "60s"),
    ("links.down.rate", "1mbit"),
    ("links.down.delay", "10ms"),
    ("links.down.loss", "0.05"),
    ("links.down.queue.limit", "2p"),
    ("links.up.rate", "1mbit"),
    ("links.up.delay", "10ms"),
    ("links.up.loss", "0.02"),
    ("flows", "{}"),
    ("flows.mice", BESIDE),
    ("flows.mice.count", "300"),
    ("flows.mice.size", "3000b"),
    ("flows.mice.start", "{ each = ['0s', '10s'] }"),
    ("record.level", "packets"),
];

fn result(settings: &Settings) -> RunResult {
    on_line(&[MICE, settings].concat())
}

fn forward(result: &RunResult) -> &Traffic {
    result.groups[0].traffic[Direction::Forward as usize].as_ref().unwrap()
}

/// Packets of a link that were sent and dropped after a time in seconds, according to its record.
fn recorded(result: &RunResult, link: usize, from: f64) -> [u64; 2] {
    let packets =
        result.links[link].packets.iter().filter(|packet| packet.end.as_secs_f64() > from);
    let [sent, dropped] = [false, true].map(|is_dropped| {
        packets.clone().filter(|packet| packet.dropped.is_some() == is_dropped).count()
    });
    [sent as u64, dropped as u64]
}

#[test]
fn losses_are_counted_by_cause_with_their_syns() {
    let result = result(&[]);
    assert!(result.flows.iter().all(|flow| flow.finish.is_some()), "nothing is under way");
    let (data, acks) = (recorded(&result, 0, -1.0), recorded(&result, 1, -1.0));
    let traffic = forward(&result);
    let [sent, dropped] = data;
    assert_eq!(traffic.losses.queues.data, dropped);
    assert_eq!(traffic.arrived[End::Sink as usize] + traffic.losses.links.data, sent);
    assert_eq!(traffic.losses.links.data, result.links[0].way.lost);
    assert_eq!(traffic.losses.links.acks, result.links[1].way.lost);
    let [sent, _] = acks;
    assert_eq!(traffic.arrived[End::Source as usize] + traffic.losses.links.acks, sent);
    assert!(traffic.losses.queues.syns > 50, "{:?}", traffic.losses);
    assert!(traffic.losses.links.syns > 10, "{:?}", traffic.losses);
    // The rows of the flows add up to the group.
    let flows = || result.flows.iter();
    assert_eq!(flows().map(|flow| flow.losses.queues.data).sum::<u64>(), dropped);
    assert_eq!(flows().map(|flow| flow.losses.links.data).sum::<u64>(), traffic.losses.links.data);
    assert_eq!(flows().map(|flow| flow.arrived[1]).sum::<u64>(), traffic.arrived[1]);
}

/// Flows of a workload that take the places of others are counted like any others.
#[test]
fn flows_that_come_and_go_are_counted_too() {
    let workload = [
        ("flows.mice.workload.kind", "transfers"),
        ("flows.mice.workload.size", "3000b"),
        ("flows.mice.count", "3"),
        ("flows.mice.size", "none"),
    ];
    let with = |level| result(&[&workload[..], &[("record.level", level)]].concat());
    let (packets, summary) = (with("packets"), with("summary"));
    assert!(packets.flows.len() > summary.flows.len() + 10, "places are used again");
    let [sent, dropped] = recorded(&packets, 0, -1.0);
    assert_eq!(forward(&packets), forward(&summary));
    let traffic = forward(&summary);
    assert_eq!(traffic.losses.queues.data, dropped);
    let ended = traffic.arrived[1] + traffic.losses.links.data;
    assert!(ended <= sent && sent - ended < 10, "{ended} of {sent}: few are under way");
}

/// Goodput over time never exceeds the link, not even when a hole is filled behind which a
/// window of data waits.
#[test]
fn no_sample_of_goodput_exceeds_the_link() {
    let bulk = [
        ("flows.mice.count", "4"),
        ("flows.mice.size", "none"),
        ("links.down.rate", "10mbit"),
        ("links.down.queue.limit", "200p"),
        ("links.down.loss", "0.001"),
        ("links.up.rate", "100mbit"),
        ("record.level", "series"),
    ];
    let result = result(&bulk);
    let mut sums = std::collections::BTreeMap::new();
    for sample in result.samples.iter().filter(|sample| sample.quantity == "goodput_bps") {
        *sums.entry(sample.time).or_insert(0.0) += sample.value;
    }
    // Samples of 100 ms: a packet may end just after one.
    let most = sums.values().fold(0.0, |most: f64, sum| most.max(*sum));
    assert!((9e6..10e6 * 1460.0 / 1500.0 + 1460.0 * 8.0 / 0.1).contains(&most), "{most}");
    let bytes = 0.1 / 8.0 * sums.values().sum::<f64>();
    let delivered: u64 = result.flows.iter().map(|flow| flow.delivered).sum();
    assert!((bytes / delivered as f64 - 1.0).abs() < 1e-9, "{bytes} {delivered}");
    assert!(result.flows.iter().all(|flow| flow.delivered > flow.stats.unwrap().bytes_acked));
}

/// A copy of a datagram is no goodput, and has no delay.
#[test]
fn copies_of_datagrams_do_not_count_as_received() {
    let cbr = [
        ("flows.mice.count", "2"),
        ("flows.mice.size", "none"),
        ("flows.mice.workload.kind", "cbr"),
        ("flows.mice.workload.rate", "500kbit"),
        ("links.down.rate", "10mbit"),
        ("links.down.loss", "0"),
        ("links.down.duplicate", "0.5"),
        ("links.down.jitter.spread", "5ms"),
        ("links.down.reordering", "true"),
        ("links.down.queue.limit", "100p"),
        ("record.level", "summary"),
    ];
    let result = result(&cbr);
    let way = &result.links[0].way;
    assert!(way.duplicated > 3000 && way.reordered > 1000, "{way:?}");
    let datagrams = || result.flows.iter().map(|flow| flow.datagrams.as_ref().unwrap());
    let sent: u64 = datagrams().map(|each| each.sent).sum();
    let received: u64 = datagrams().map(|each| each.received).sum();
    assert!(received <= sent && sent - received < 10, "{received} of {sent}");
    assert_eq!(result.groups[0].times_of("delay").unwrap().count, received);
    assert!(datagrams().all(|each| each.received_bytes == 1000 * each.received));
    assert!(forward(&result).arrived[1] > 14 * received / 10, "copies arrive");
}

/// A copy counts like any packet, and nothing of the warm-up counts.
#[test]
fn what_ends_after_the_warm_up_is_counted() {
    let late = [("record.warmup", "5s"), ("links.down.duplicate", "0.3")];
    let result = result(&late);
    let traffic = forward(&result);
    let [sent, dropped] = recorded(&result, 0, 5.0);
    assert_eq!(traffic.losses.queues.data, dropped);
    let ended = traffic.arrived[1] + traffic.losses.links.data;
    let expected = sent + result.links[0].way.duplicated;
    // At the end of the warm-up, one packet may be on the transmitter and a few in flight.
    assert!(ended.abs_diff(expected) < 10, "{ended} {expected}");
    assert!(result.links[0].way.duplicated > 50);
}
