//! DCTCP at a queue that marks above a threshold.

use crate::common::{BESIDE, Settings, jain, on_line, series};
use aqmlab_sim::RunResult;
use aqmlab_sim::network::series::Subject;

/// 1000-byte packets: 100 Mbit/s are 12.5 a millisecond, and the base
/// round-trip time of 10 ms with 0.08 ms of transmission 126 packets.
const SHORT: &Settings = &[
    ("links.down.rate", "100mbit"),
    ("links.down.delay", "5ms"),
    ("links.down.queue", "{ discipline = 'step', threshold = '20p' }"),
    ("links.up.rate", "1gbit"),
    ("links.up.delay", "5ms"),
    ("transport.congestion_control", "dctcp"),
    ("transport.mss", "960b"),
    ("transport.ecn", "accurate"),
    ("transport.delayed_ack", "1"),
    ("record.level", "series"),
    ("record.interval", "1ms"),
];

fn flows(count: usize, settings: &Settings) -> RunResult {
    let names: Vec<String> = (1..count).map(|index| format!("flows.f{index}")).collect();
    let others: Vec<_> = names.iter().map(|name| (name.as_str(), BESIDE)).collect();
    on_line(&[SHORT, &others, settings].concat())
}

/// The values of a quantity of the bottleneck or of a flow, in the second half
/// of the run, in order.
fn settled(result: &RunResult, subject: Subject, quantity: &str) -> Vec<f64> {
    let samples = series(result, subject, quantity).into_iter();
    let mut values: Vec<f64> =
        samples.filter(|(time, _)| *time > 10.0).map(|(_, value)| value).collect();
    assert!(values.len() > 9000, "{quantity}: {}", values.len());
    values.sort_by(f64::total_cmp);
    values
}
fn ends(values: &[f64]) -> (f64, f64) {
    (values[0], values[values.len() - 1])
}

/// Alizadeh et al. (2010), section 3.3: with W* = (C RTT + K) / N, alpha
/// solves alpha^2 (1 - alpha / 4) = (2 W* + 1) / (W* + 1)^2, the window swings
/// by D = (W* + 1) alpha / 2 and the queue by N D, up to K + N: here 0.118, 8.7
/// packets of 147, and a queue from 12 to 21.
#[test]
fn one_flow_swings_as_the_model_says() {
    let result = flows(1, &[]);
    let w: f64 = 126.0 + 20.0;
    let right = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    let model = (0..20).fold(right.sqrt(), |alpha, _| (right / (1.0 - alpha / 4.0)).sqrt());
    let swing = (w + 1.0) * model / 2.0;

    let alphas = settled(&result, Subject::Flow(0), "alpha");
    let alpha = alphas.iter().sum::<f64>() / alphas.len() as f64;
    assert!((alpha / model - 1.0).abs() < 0.1, "{alpha} {model}");

    let (least, most) = ends(&settled(&result, Subject::Flow(0), "cwnd_bytes"));
    let (least, most) = (least / 960.0, most / 960.0);
    assert!((most - (w + 1.0)).abs() < 4.0, "{most}");
    assert!(((most - least) / swing - 1.0).abs() < 0.3, "{least} {most} {swing}");

    let (least, most) = ends(&settled(&result, Subject::Link(0), "backlog_packets"));
    assert!((most - 21.0).abs() <= 2.0, "{most}");
    assert!(((most - least) / swing - 1.0).abs() < 0.3, "{least} {most} {swing}");
    assert_eq!(result.links[0].counts.dropped_total(), 0);
    assert!(result.links[0].utilisation > 0.99, "{}", result.links[0].utilisation);
}

/// alpha is the share of marks: by counters, and by the flags of the receiver of
/// RFC 8257, section 3.2, with delayed acknowledgements too. ECE until CWR lasts a
/// round trip for each mark: that is hardly more where marks come a round trip long,
/// as at this step, and many times as much where they come one by one.
#[test]
fn the_flags_of_the_dctcp_receiver_tell_the_share_of_marks() {
    let told_by = |queue: &Settings, ecn, delayed_ack| {
        let settings = [("transport.ecn", ecn), ("transport.delayed_ack", delayed_ack)];
        let result = flows(4, &[queue, &settings].concat());
        let alphas = settled(&result, Subject::Flow(0), "alpha");
        let counts = result.links[0].counts;
        let share = counts.marked_total() as f64 / counts.delivered as f64;
        alphas.iter().sum::<f64>() / alphas.len() as f64 / share
    };
    let told = |ecn, delayed_ack| told_by(&[], ecn, delayed_ack);
    for (ecn, delayed_ack) in [("accurate", "1"), ("accurate", "2"), ("dctcp", "1"), ("dctcp", "2")]
    {
        let told = told(ecn, delayed_ack);
        assert!((0.95..1.02).contains(&told), "{ecn} {delayed_ack}: {told}");
    }
    let until_cwr = told("classic", "2");
    assert!((1.0..1.5).contains(&until_cwr), "{until_cwr}");
    let one_by_one = told_by(&[("queue", "red"), ("queue.ecn", "true")], "classic", "2");
    assert!(one_by_one > 10.0, "{one_by_one}");
}

/// The same paper, section 3.4: below a seventh of C RTT (18 packets) the queue
/// runs empty, and the link with it.
#[test]
fn too_low_a_threshold_costs_throughput() {
    let at = |threshold| flows(1, &[("queue.threshold", threshold)]).links[0].utilisation;
    let (enough, little) = (at("20p"), at("1p"));
    assert!(little < enough - 0.01 && little > 0.85, "{little} {enough}");
}

#[test]
fn flows_share_a_short_queue() {
    let result = flows(4, &[]);
    let link = &result.links[0];
    assert!(link.utilisation > 0.98, "{}", link.utilisation);
    // The slow starts overshoot once.
    assert!(link.sojourn.quantiles[4] < 0.003, "{:?}", link.sojourn.quantiles);
    let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
    assert!(jain(&goodputs) > 0.95, "{goodputs:?}");
}

/// All packets of Linux's DCTCP are ECN-capable (RFC 8257, sections 3.6 and 4.1): above the
/// threshold SYNs and acknowledgements are marked, while those of the RFCs' sender are dropped.
#[test]
fn syns_and_acknowledgements_are_not_dropped() {
    let dropped = |profile| {
        let linux = [("transport.ecn", "dctcp"), ("transport.delayed_ack", "2")];
        let upload = "{ path = 'up', return_path = 'down', start = '1s' }";
        let later = "{ path = 'down', return_path = 'up', start = '2s', count = 20, size = '1kb' }";
        let more =
            [("flows.upload", upload), ("flows.later", later), ("transport.profile", profile)];
        flows(2, &[&linux[..], &more].concat()).links[0].counts.dropped_total()
    };
    assert_eq!(dropped("linux-6.12"), 0);
    assert!(dropped("rfc") > 100);
}

/// Without marks it is Reno; with too many, by CoDel's square root, it still
/// keeps the link busy.
#[test]
fn other_queues() {
    let over = |queue: &str| {
        on_line(&[
            ("links.down.queue", queue),
            ("transport.congestion_control", "dctcp"),
            ("transport.ecn", "accurate"),
        ])
    };
    let fifo = over("{ discipline = 'droptail', limit = '50p' }");
    assert!(fifo.links[0].utilisation > 0.95, "{}", fifo.links[0].utilisation);
    assert!(fifo.links[0].counts.dropped_total() > 5 && fifo.flows[0].stats.unwrap().timeouts == 0);
    let codel = over("{ discipline = 'codel', ecn = true }");
    assert!(codel.links[0].utilisation > 0.9, "{}", codel.links[0].utilisation);
    assert!(codel.links[0].sojourn.mean < 0.05, "{}", codel.links[0].sojourn.mean);
    assert_eq!(codel.flows[0].stats.unwrap().retransmissions, 0);
}
