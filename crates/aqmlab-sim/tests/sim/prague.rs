//! Prague over simulated links: L4S.

use aqmlab_sim::RunResult;
use aqmlab_sim::network::series::Subject;

fn link(rate: &str, queue: &str, flows: &str) -> RunResult {
    let text = format!(
        r#"
        duration = "60s"
        bottleneck = "down"
        [links.near]
        rate = "1gbit"
        delay = "0.5ms"
        [links.far]
        rate = "1gbit"
        delay = "10ms"
        [links.down]
        rate = "{rate}"
        delay = "2ms"
        queue = {queue}
        [links.up]
        rate = "1gbit"
        delay = "2ms"
        [transport]
        ecn = "accurate"
        ecn_codepoint = "ect1"
        congestion_control = "prague"
        {flows}
        "#
    );
    crate::common::result(&text, &[])
}
fn flow(name: &str, first: &str, more: &str) -> String {
    format!("[flows.{name}]\npath = [\"{first}\", \"down\"]\nreturn_path = \"up\"\n{more}\n")
}

const DUALPI2: &str = r#"{ discipline = "dualpi2" }"#;
const CLASSIC: &str =
    r#"transport = { congestion_control = "reno", ecn = "classic", ecn_codepoint = "ect0" }"#;

const OWN_RTT: &str = r#"transport.congestion_control.rtt_virt = "none""#;

/// DualPI2 marks at 1 ms of queue; the link stays busy with that.
#[test]
fn dualpi2_keeps_its_queue_at_a_millisecond() {
    for first in ["near", "far"] {
        let result = link("40mbit", DUALPI2, &flow("one", first, ""));
        let bottleneck = &result.links[2];
        assert!(bottleneck.utilisation > 0.97, "{first}: {}", bottleneck.utilisation);
        let [median, .., p99] = bottleneck.sojourn.quantiles;
        assert!(median < 0.0015 && p99 < 0.003, "{first}: {median} {p99}");
        assert_eq!(bottleneck.counts.dropped_total(), 0);
        assert_eq!(result.flows[0].stats.unwrap().retransmissions, 0);
        // Marks all the time: two a round trip, of 5 or 14 ms.
        assert!(bottleneck.counts.marked_total() > 4000, "{first}");
    }
}

/// Acknowledgements have Prague's codepoint: beside an upload in the classic queue of DualPI2, at
/// 15 ms, they do not wait.
#[test]
fn acknowledgements_take_the_low_latency_queue() {
    let upload = "{ path = 'up', return_path = 'down', transport.congestion_control = 'cubic' }";
    let result = crate::common::on_line(&[
        ("links.down.queue", "dualpi2"),
        ("links.up.queue", "dualpi2"),
        ("flows.bulk.transport.profile", "linux-l4s"),
        ("flows.upload", upload),
        ("record.level", "series"),
    ]);
    let mut rtts: Vec<f64> = crate::common::series(&result, Subject::Flow(0), "smoothed_rtt_s")
        .into_iter()
        .filter_map(|(time, rtt)| (time > 10.0).then_some(rtt))
        .collect();
    rtts.sort_by(f64::total_cmp);
    assert!(rtts[rtts.len() / 2] < 0.048, "40 ms without queues: {:?}", rtts);
}

/// Round-trip times of 4.5 and 14 ms: their own ratio is 3, with the queue.
#[test]
fn a_near_flow_leaves_a_far_one_its_share() {
    let ratio = |more: &str| {
        let flows = flow("near", "near", more) + &flow("far", "far", more);
        let result = link("40mbit", DUALPI2, &flows);
        // The kernel's pacing makes up for late segments, and DualPI2 marks these bursts.
        assert!(result.links[2].utilisation > 0.96, "{}", result.links[2].utilisation);
        result.flows[0].goodput / result.flows[1].goodput
    };
    let (virtually, really) = (ratio(""), ratio(OWN_RTT));
    assert!((0.4..1.6).contains(&virtually), "{virtually}");
    assert!(really > 2.5, "{really}");
}

/// RFC 9332, section 2.1: the coupling is there for both to get about as much;
/// within a factor of three, as long as round-trip times differ by their queues.
#[test]
fn reno_in_the_classic_queue_gets_its_share() {
    for first in ["near", "far"] {
        let flows = flow("scalable", first, "") + &flow("classic", first, CLASSIC);
        let result = link("40mbit", DUALPI2, &flows);
        // The kernel's pacing makes up for late segments, and DualPI2 marks these bursts.
        assert!(result.links[2].utilisation > 0.96, "{}", result.links[2].utilisation);
        let ratio = result.flows[0].goodput / result.flows[1].goodput;
        assert!((1.0 / 3.0..3.0).contains(&ratio), "{first}: {ratio}");
    }
}

#[test]
fn other_queues() {
    // Without RACK it hangs on the limit, by a packet, whether the repair meets a full buffer again
    // and waits for the timer.
    let repairs = r#"transport.recovery = "rack""#;
    let fifo =
        link("10mbit", r#"{ discipline = "droptail", limit = "50p" }"#, &flow("a", "far", repairs));
    assert!(fifo.links[2].utilisation > 0.95, "{}", fifo.links[2].utilisation);
    let stats = fifo.flows[0].stats.unwrap();
    assert!(stats.fast_retransmits > 5 && stats.timeouts == 0, "{stats:?}");
    // Each mark of CoDel costs a few percent of the window: it needs a good many
    // more of them than Reno would, and the queue stands above the target.
    let codel = link("10mbit", r#"{ discipline = "codel", ecn = true }"#, &flow("a", "far", ""));
    assert!(codel.links[2].utilisation > 0.95, "{}", codel.links[2].utilisation);
    assert!(codel.links[2].sojourn.quantiles[4] < 0.03, "{:?}", codel.links[2].sojourn.quantiles);
    assert_eq!(codel.flows[0].stats.unwrap().retransmissions, 0);
}
/// RFC 9331, section 4.3, item 3: Reno, which halves its window at each mark,
/// starves in one queue with Prague, unless Prague finds out. The low-latency
/// queue of DualPI2 is not taken for a classic one.
#[test]
fn the_fallback_saves_reno_in_a_classic_queue() {
    const FALLBACK: &str = "transport.congestion_control.classic_fallback = true";
    let ratio = |queue: &str, more: &str| {
        let flows = flow("scalable", "far", more) + &flow("classic", "far", CLASSIC);
        let result = link("40mbit", queue, &flows);
        result.flows[0].goodput / result.flows[1].goodput
    };
    for queue in
        [r#"{ discipline = "pi2", ecn = true }"#, r#"{ discipline = "codel", ecn = true }"#]
    {
        let (without, with) = (ratio(queue, ""), ratio(queue, FALLBACK));
        assert!(without > 6.0 && with < 3.0, "{queue}: {without} {with}");
    }
    assert_eq!(ratio(DUALPI2, ""), ratio(DUALPI2, FALLBACK));
}
