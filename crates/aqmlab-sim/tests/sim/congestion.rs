//! Congestion controls over simulated links.

use crate::common::{BESIDE, LINE, Settings, jain, read_again};
use aqmlab_sim::{RunResult, Scenario, run};

fn scenario(settings: &Settings) -> Scenario {
    let reno = [("links.down.queue.limit", "100p"), ("transport.congestion_control", "reno")];
    crate::common::scenario(LINE, &[&reno, settings].concat())
}

/// A name in the file becomes a table when a key is set in it; a flow's own
/// table without a name goes on from what holds for all.
#[test]
fn parameters_of_a_control_are_set_by_dotted_keys() {
    let for_all = scenario(&[("transport.congestion_control.beta_ecn", "0.8")]);
    let named = scenario(&[
        ("transport.congestion_control", "reno"),
        ("transport.congestion_control.beta_ecn", "0.8"),
    ]);
    let of_flow = scenario(&[("flows.bulk.transport.congestion_control.beta_ecn", "0.8")]);
    assert_ne!(for_all, scenario(&[]));
    assert_eq!(for_all, named);
    assert_eq!(for_all, of_flow);
    read_again(&for_all);
}

/// One bulk flow over 10 Mbit/s with 40 ms, and a queue that is large enough
/// for none to be lost unless the control wants it so.
fn alone(control: &str, queue: &str, settings: &Settings) -> RunResult {
    let mut all = vec![
        ("duration", "60s"),
        ("transport.congestion_control", control),
        ("queue.limit", queue),
    ];
    all.extend_from_slice(settings);
    run(&scenario(&all), 0)
}

/// The mean number of segments in the queue.
fn standing_queue(result: &RunResult) -> f64 {
    result.links[0].backlog_mean[1] / 1500.0
}

/// Each control fills the link on its own: its window is above the
/// bandwidth-delay product of 33 segments most of the time. (`cbr` controls
/// nothing, and the window of `steered` is set from outside.)
#[test]
fn every_control_fills_a_link() {
    let others = ["cbr", "steered"];
    let entries = aqmlab_tcp::congestion::entries();
    for entry in entries.iter().filter(|entry| !others.contains(&entry.name)) {
        let result = alone(entry.name, "100p", &[]);
        let utilisation = result.links[0].utilisation;
        assert!(utilisation > 0.9, "{}: {utilisation}", entry.name);
    }
}

/// Scalable keeps Kelly's 7/8 of the window after each loss, with and without PRR, and needs no
/// timeout.
#[test]
fn scalable_keeps_seven_eighths_in_recoveries_with_prr() {
    for (recovery, prr) in [("sack", "false"), ("sack", "true"), ("rack", "true")] {
        let settings = [
            ("transport.recovery", recovery),
            ("transport.prr", prr),
            ("record.level", "series"),
            ("record.interval", "5ms"),
            NO_OVERSHOOT,
        ];
        let result = alone("scalable", "60p", &settings);
        let settled = result.samples.iter().filter(|sample| sample.time.as_secs_f64() > 20.0);
        let windows = settled.filter(|sample| sample.quantity == "cwnd_bytes");
        let (least, most) = windows.fold((f64::MAX, 0.0f64), |(least, most), sample| {
            (sample.value.min(least), sample.value.max(most))
        });
        assert!((least / most - 0.875).abs() < 0.02, "{recovery} {prr}: {least} {most}");
        let flow = result.flows[0].stats.as_ref().unwrap();
        assert!(flow.fast_retransmits > 20 && flow.timeouts == 0, "{recovery} {prr}: {flow:?}");
        assert!(result.links[0].utilisation > 0.98, "{recovery} {prr}");
    }
}

/// Brakmo and Peterson: between alpha and beta segments wait.
#[test]
fn vegas_keeps_alpha_to_beta_segments_in_the_queue() {
    for (alpha, beta) in [("2", "4"), ("1", "3"), ("10", "12")] {
        let result = alone(
            "vegas",
            "1000p",
            &[
                ("transport.congestion_control.beta", beta),
                ("transport.congestion_control.alpha", alpha),
            ],
        );
        let queue = standing_queue(&result);
        let (alpha, beta): (f64, f64) = (alpha.parse().unwrap(), beta.parse().unwrap());
        assert!((alpha - 1.0..beta + 1.0).contains(&queue), "{alpha} {beta}: {queue}");
        assert_eq!(result.links[0].counts.dropped_total(), 0);
    }
}

/// LEDBAT keeps its target of delay in the queue.
#[test]
fn ledbat_keeps_its_target() {
    for (control, target, low, high) in [
        ("ledbat", "100ms", 0.080, 0.105),
        ("ledbat", "25ms", 0.02, 0.027),
        ("ledbat++", "60ms", 0.03, 0.065),
    ] {
        let result = alone(
            control,
            "1000p",
            &[("duration", "120s"), ("transport.congestion_control.target", target)],
        );
        let sojourn = result.links[0].sojourn.mean;
        assert!((low..high).contains(&sojourn), "{control} {target}: {sojourn}");
        assert_eq!(result.links[0].counts.dropped_total(), 0, "{control}");
    }
}

/// Slow start stays below what the path and the queue hold, so that tests of
/// congestion avoidance do not begin with the loss of half a window.
const NO_OVERSHOOT: (&str, &str) = ("transport.initial_ssthresh", "60000b");

/// Two flows at the same time, over a queue that drops at random so that their
/// losses do not keep step.
#[test]
fn two_flows_of_a_kind_share_a_link() {
    for entry in aqmlab_tcp::congestion::entries() {
        let result = alone(
            entry.name,
            "100p",
            &[("duration", "300s"), ("flows.bulk.count", "2"), ("queue", "pie"), NO_OVERSHOOT],
        );
        let shares: Vec<f64> = result.flows.iter().map(|flow| flow.delivered as f64).collect();
        let index = jain(&shares);
        assert!(index > 0.95, "{}: {index}", entry.name);
    }
}

/// Goodput of the second kind, which begins after 20 s, over that of the first since then.
fn ratio(first: &str, second: &str, queue: &str) -> f64 {
    ratio_with(&[
        ("queue.limit", queue),
        ("flows.bulk.transport.congestion_control", first),
        ("flows.late.transport.congestion_control", second),
    ])
}
fn ratio_with(settings: &Settings) -> f64 {
    let until = |duration: &str| {
        let late = [("flows.late", BESIDE), ("flows.late.start", "20s"), ("duration", duration)];
        let result = run(&scenario(&[&late, settings].concat()), 0);
        [0, 1].map(|flow: usize| result.flows[flow].delivered as f64)
    };
    let (before, after) = (until("20s"), until("320s"));
    after[1] / (after[0] - before[0])
}

#[test]
fn one_that_comes_late_gets_its_share() {
    for control in ["reno", "cubic", "westwood", "compound", "ledbat++"] {
        let ratio = ratio(control, control, "100p");
        assert!((0.8..1.25).contains(&ratio), "{control}: {ratio}");
    }
}

/// Low, Peterson and Wang (2002): each keeps n segments in the queue, and one that comes late
/// takes what the first keeps, k, for part of its base round-trip time. With q segments in all
/// the first has n / q of the link and the second n / (q - k), together 1: it gets 1.6
/// to 1.8 times as much. (Windows hop by a segment, so it is that within a fifth.)
#[test]
fn what_comes_late_to_vegas_gets_more() {
    for n in ["3", "6", "10"] {
        let settings = [
            ("transport.congestion_control", "vegas"),
            ("transport.congestion_control.beta", n),
            ("transport.congestion_control.alpha", n),
            ("transport.delayed_ack", "1"),
        ];
        let k = standing_queue(&run(&scenario(&[&settings[..], &[NO_OVERSHOOT]].concat()), 0));
        let n: f64 = n.parse().unwrap();
        assert!((n - 0.5..n + 1.0).contains(&k), "{n}: {k}");
        let half = n + k / 2.0;
        let q = half + (half * half - n * k).sqrt();
        let (ratio, expected) = (ratio_with(&settings), q / (q - k));
        assert!((ratio / expected - 1.0).abs() < 0.2, "{n}: {ratio} {expected}");
    }
}

/// RFC 6817, section 4.4 and the draft of LEDBAT++: a flow that begins while
/// another keeps the queue at its target takes that for the base delay, and
/// gets more. Slowdowns mend it.
#[test]
fn the_latecomers_advantage_is_ledbats_and_not_ledbat_pps() {
    assert!(ratio("ledbat", "ledbat", "400p") > 3.0);
    let mended = ratio("ledbat++", "ledbat++", "400p");
    assert!((0.8..1.25).contains(&mended), "{mended}");
}

/// The known unfairness of unlike kinds over a deep queue.
#[test]
fn what_yields_to_delay_yields_to_reno() {
    for (control, most) in [("vegas", 0.15), ("ledbat", 0.2), ("ledbat++", 0.1)] {
        let ratio = ratio("reno", control, "400p");
        assert!(ratio < most, "{control}: {ratio}");
    }
}

#[test]
fn what_grows_fast_gets_more_than_reno() {
    // At these windows CUBIC is in its Reno-friendly region (RFC 9438, section 4.3) for long.
    for (control, least) in [("cubic", 1.1), ("scalable", 2.0)] {
        let ratio = ratio("reno", control, "100p");
        assert!(ratio > least, "{control}: {ratio}");
    }
}

/// PIE as Linux computes it drops in bursts. What SACK reports meanwhile is in
/// FlightSize, half of which is no window: it was 28 timeouts and a storm of
/// repairs.
#[test]
fn bursts_of_losses_are_mended_without_a_storm() {
    for recovery in ["sack", "rack", "newreno"] {
        let settings = [
            ("queue", "pie"),
            ("queue.variant", "linux-clamped"),
            ("transport.recovery", recovery),
            ("duration", "60s"),
        ];
        let result = run(&scenario(&settings), 0);
        let (stats, goodput) = (result.flows[0].stats.unwrap(), result.flows[0].goodput);
        assert!(stats.timeouts <= 5 && stats.retransmissions < 600, "{recovery}: {stats:?}");
        assert!(goodput > 8.8e6, "{recovery}: {goodput}");
    }
}
