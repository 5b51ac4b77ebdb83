//! Laws that hold for every scenario: conservation, order, exact rates,
//! complete transfers, and the same bits for the same seed.

use crate::common::{LINE, Settings, read_again};
use aqmlab_sim::network::probe::PacketRecord;
use aqmlab_sim::{LinkResult, Scenario, WorkLimit, run, try_run};
use proptest::prelude::*;

/// Two groups of finite flows over two bottlenecks in a row, two-way.
const TWO_WAY: &str = r#"
    duration = "300s"
    bottleneck = "bottleneck"
    [links.access]
    rate = "20mbit"
    delay = "1ms"
    queue = { discipline = "droptail", limit = "20p" }
    [links.bottleneck]
    rate = "2mbit"
    delay = "20ms"
    thresholds = ["3000b"]
    [links.back]
    rate = "1mbit"
    delay = "20ms"
    queue = { discipline = "droptail", limit = "30p" }
    [flows.down]
    path = ["access", "bottleneck"]
    return_path = ["back"]
    size = "100000b"
    start = { uniform = ["0s", "100ms"] }
    [flows.up]
    path = ["back"]
    return_path = ["access", "bottleneck"]
    size = "50000b"
    [record]
    level = "packets"
"#;

fn scenario(settings: &Settings) -> Scenario {
    crate::common::scenario(TWO_WAY, settings)
}

fn any_queue() -> impl Strategy<Value = String> {
    let disciplines: Vec<&str> =
        aqmlab_aqm::registry::entries().into_iter().map(|entry| entry.name).collect();
    (prop::sample::select(disciplines), 3u32..60)
        .prop_map(|(name, limit)| format!("{{ discipline = '{name}', limit = '{limit}p' }}"))
}

fn sent(link: &LinkResult) -> Vec<PacketRecord> {
    link.packets.iter().filter(|packet| packet.dropped.is_none()).copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// `run` itself checks conservation at every queue and panics otherwise. The canonical form has
    /// the same results.
    #[test]
    fn every_transfer_completes_in_order_under_every_discipline(
        queue in any_queue(), seed in 0u64..1000, count in 1i64..6,
    ) {
        let single = !["fq", "cake", "drr"].iter().any(|queues| queue.contains(queues));
        let (seed, count) = (seed.to_string(), count.to_string());
        let scenario =
            scenario(&[("queue", &queue), ("seed", &seed), ("flows.down.count", &count)]);
        let result = run(&scenario, 0);
        prop_assert_eq!(run(&read_again(&scenario), 0).digest(), result.digest());
        for flow in &result.flows {
            prop_assert!(flow.finish.is_some(), "unfinished: {:?}", flow.stats);
            prop_assert_eq!(flow.delivered, flow.size.unwrap());
        }
        for (link, config) in result.links.iter().zip(&scenario.links) {
            prop_assert!(link.utilisation <= 1.0);
            prop_assert!(link.sojourn.count == link.counts.delivered);
            let sent = sent(link);
            // The transmitter takes a packet only when the one before is
            // through, and never waits while there is one in the queue.
            for pair in sent.windows(2) {
                let free = pair[0].end + config.rate.transmission_time(
                    aqmlab_core::Bytes::new(u64::from(pair[0].size)));
                prop_assert!(pair[1].end >= free);
                let due = free.max(pair[1].arrival);
                prop_assert!(pair[1].end.saturating_since(due).as_nanos() <= 1,
                    "idle with a packet queued: {pair:?}");
            }
            // The order is that of the arrivals: of each flow, or of all packets of a single queue.
            for flow in 0..result.flows.len() as u32 {
                for is_ack in [false, true] {
                    let of_flow = sent.iter().filter(|p| p.flow == flow && p.is_ack == is_ack);
                    prop_assert!(of_flow.is_sorted_by_key(|packet| packet.arrival));
                }
            }
            prop_assert!(!single || sent.iter().is_sorted_by_key(|packet| packet.arrival));
        }
    }
}

#[test]
fn replications_and_seeds_differ_but_other_flows_do_not_matter() {
    let one = scenario(&[]);
    let start = |scenario: &Scenario, replication| run(scenario, replication).flows[0].start;
    assert_ne!(start(&one, 0), start(&one, 1));
    assert_ne!(start(&one, 0), start(&scenario(&[("seed", "2")]), 0));
    // Adding flows leaves the draws of the others unchanged.
    assert_eq!(start(&one, 0), start(&scenario(&[("flows.up.count", "5")]), 0));
}

#[test]
fn a_bulk_flow_fills_its_link_exactly() {
    for (rate, duration) in [("1700bit", "2000s"), ("399.9kbit", "2000s"), ("10mbit", "20s")] {
        let settings = [
            ("duration", duration),
            ("links.down.rate", rate),
            ("links.down.delay", "1ms"),
            ("links.down.queue.limit", "40p"),
            ("links.up.rate", "1gbit"),
            ("links.up.delay", "1ms"),
            ("transport.profile", "linux-6"),
            ("record.level", "packets"),
        ];
        let scenario = crate::common::scenario(LINE, &settings);
        let result = run(&scenario, 0);
        let link = &result.links[0];
        // From one transmission to another without a gap, the bits sent take
        // exactly their time at the rate of the link.
        let sent = sent(link);
        let busy_from = sent.iter().rposition(|p| p.arrival == p.end).unwrap_or(0);
        let run = &sent[busy_from..];
        let bits: u128 = run[..run.len() - 1].iter().map(|p| u128::from(p.size) * 8).sum();
        let nanos = bits * 1_000_000_000 / u128::from(scenario.links[0].rate.as_bps());
        let measured = run[run.len() - 1].end.saturating_since(run[0].end).as_nanos();
        assert!(run.len() > 100 || rate == "1700bit", "{rate}: {} packets in a row", run.len());
        assert_eq!(u128::from(measured), nanos, "{rate}");
    }
}

/// Work at one moment has an end, and one that is named: a window of which no acknowledgement
/// stops the sender.
#[test]
fn a_run_without_progress_is_ended() {
    let many = [("flows.bulk.count", "50"), ("flows.bulk.start", "0s")];
    let scenario = crate::common::scenario(LINE, &many);
    let few = WorkLimit { at_once: 60, ..WorkLimit::default() };
    let stopped = try_run(&scenario, 0, &few).err().unwrap();
    assert!(stopped.at_once && stopped.work > 60 && stopped.work <= 62, "{stopped:?}");
    let told = stopped.to_string();
    assert!(told.contains("no progress: 6") && told.contains("flows `bulk`"), "{told}");
    let short = WorkLimit { in_all: 10_000, ..WorkLimit::default() };
    let stopped = try_run(&scenario, 0, &short).err().unwrap();
    assert!(!stopped.at_once && stopped.at > aqmlab_core::Time::ZERO, "{stopped:?}");
    assert_eq!(try_run(&scenario, 0, &short).err(), Some(stopped), "it is the same each time");
    assert!(try_run(&scenario, 0, &WorkLimit::default()).is_ok());
}

/// A congestion window without bound is sent at one moment.
#[test]
fn a_burst_without_end_is_ended_before_the_memory_is_full() {
    let steered = "{ algorithm = \"steered\", window = \"100000000000p\" }";
    for profile in ["rfc", "linux-6"] {
        let settings = [("transport.profile", profile), ("transport.congestion_control", steered)];
        // Linux's receivers offer more than a million segments only if told to.
        let settings = [&settings[..], &[("transport.receive_window", "unlimited")]].concat();
        let scenario = crate::common::scenario(LINE, &settings);
        let stopped = try_run(&scenario, 0, &WorkLimit::default()).err().unwrap();
        assert!(stopped.at_once && stopped.work < 1_100_000, "{stopped:?}");
        assert_eq!(stopped.event, "a burst without end, flows `bulk`", "{profile}");
    }
}
