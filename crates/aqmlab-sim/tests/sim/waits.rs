//! The time of a packet at a link: in the queue, in the driver, in transmission, in propagation.

use crate::common::{result, series};
use aqmlab_core::Span;
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::{LinkResult, RunResult};
use proptest::prelude::*;

/// Datagrams over one link, which have all arrived before the end.
const DATAGRAMS: &str = r#"
    duration = "12s"
    changes = [{ at = "10s", key = "flows.load.active", value = false }]
    [links.down]
    rate = "100mbit"
    delay = "10ms"
    queue = { discipline = "droptail", limit = "unlimited" }
    [links.up]
    rate = "100mbit"
    delay = "10ms"
    [flows.load]
    path = ["down"]
    return_path = ["up"]
    workload = { kind = "cbr", rate = "2mbit", packet = "1250b", vary = 1.0 }
"#;

/// Packet-seconds of backlog, over a run without a warm-up.
fn backlog_seconds(result: &RunResult, link: &LinkResult) -> f64 {
    link.backlog_mean[0] * result.end.as_secs_f64()
}

/// Two packets of 10 ms of tokens, 5 ms apart. The first takes one byte of them from the bucket, so
/// the second waits for 9.992 - 5 ms.
#[test]
fn the_wait_for_the_shaper_is_time_in_the_queue() {
    let result = result(
        DATAGRAMS,
        &[
            ("duration", "40ms"),
            ("changes", r#"[{ at = "6ms", key = "flows.load.active", value = false }]"#),
            ("flows.load.workload", r#"{ kind = "cbr", rate = "2mbit", packet = "1250b" }"#),
            ("links.down.shaper", r#"{ rate = "1mbit", burst = "1b" }"#),
            ("links.down.thresholds", r#"["0b"]"#),
            ("record.level", "series"),
            ("record.interval", "1ms"),
        ],
    );
    let link = &result.links[0];
    let wait = Span::from_micros(4_992);
    assert_eq!(link.counts.delivered, 2);
    assert_eq!((link.sojourn.min, link.sojourn.max), (Span::ZERO, wait));
    assert_eq!(link.driver.unwrap().times.max, Span::ZERO);
    let (mean, longest) = result.flows[0].delays.unwrap();
    assert_eq!(longest, Span::from_micros(10_000 + 100) + wait);
    assert!((mean - 0.012_596).abs() < 1e-12);
    // The same time as a backlog, in each of its measures.
    assert!((backlog_seconds(&result, link) - wait.as_secs_f64()).abs() < 1e-12);
    assert!((link.backlog_mean[1] / link.backlog_mean[0] - 1250.0).abs() < 1e-9);
    assert_eq!((link.backlog_max.packets, link.backlog_max.bytes), (1, 1250));
    let excursions = &link.excursions[0];
    assert_eq!((excursions.count, excursions.total), (1, wait));
    let samples = series(&result, Subject::Link(0), "backlog_packets");
    // At 5, 6, 7, 8 and 9 ms.
    assert_eq!(samples.iter().map(|(_, value)| value).sum::<f64>(), 5.0);
}

/// Poisson arrivals, one millisecond of tokens each: rho / 2 / (1 - rho) milliseconds.
#[test]
fn a_shaper_is_a_server_of_constant_time() {
    let probes = r#"{ kind = "probe", gap = { exponential = "1.25ms" }, packet = "1250b" }"#;
    let settings = [
        ("duration", "400s"),
        ("changes", "[]"),
        ("flows.load.workload", probes),
        ("links.down.rate", "1000gbit"),
        ("links.down.shaper", r#"{ rate = "10mbit", burst = "1b" }"#),
    ];
    let result = result(DATAGRAMS, &settings);
    let link = &result.links[0];
    let load = link.counts.arrived as f64 / 1000.0 / result.end.as_secs_f64();
    assert!((load - 0.8).abs() < 0.01, "{load}");
    let expected = load / 2.0 / (1.0 - load) * 1e-3;
    assert!((link.sojourn.mean / expected - 1.0).abs() < 0.03, "{}", link.sojourn.mean);
    let waited = link.sojourn.mean * link.sojourn.count as f64;
    assert!((backlog_seconds(&result, link) / waited - 1.0).abs() < 1e-4);
}

/// Three times what the link carries, into a driver that takes it all.
#[test]
fn a_driver_does_not_deliver_what_it_holds() {
    for (rate, load) in [("1mbit", "3mbit"), ("1kbit", "3kbit")] {
        for driver in ["none", "2000p", "3p"] {
            for warmup in ["0s", "3s", "3.123456789s"] {
                let workload = format!("{{ kind = \"cbr\", rate = \"{load}\" }}");
                let mut settings = vec![
                    ("changes", "[]"),
                    ("duration", "30s"),
                    ("flows.load.workload", &workload),
                    ("links.down.rate", rate),
                    ("record.warmup", warmup),
                ];
                settings.extend((driver != "none").then_some(("links.down.driver.limit", driver)));
                let result = result(DATAGRAMS, &settings);
                let link = &result.links[0];
                let case = format!("{rate}, driver {driver}, warm-up {warmup}");
                let share = link.counts.delivered_bytes as f64 / link.capacity;
                // Short of it by one packet at each end.
                let packets = link.capacity / 1000.0;
                assert!(share <= 1.0 && share * packets >= packets - 2.0, "{case}: {share}");
                assert!((link.utilisation - 1.0).abs() < 1e-9, "{case}: {}", link.utilisation);
            }
        }
    }
}

/// The packet in transmission is not delivered, and keeps the transmitter busy.
#[test]
fn a_transmission_counts_when_it_ends() {
    // 10,000 bits at 1 kbit/s: ten seconds for each packet, with one arrival per second.
    let workload = r#"{ kind = "cbr", rate = "10kbit", packet = "1250b" }"#;
    let at = |duration: &str, warmup: &str| {
        let settings = [
            ("changes", "[]"),
            ("flows.load.workload", workload),
            ("links.down.rate", "1kbit"),
            ("duration", duration),
            ("record.warmup", warmup),
        ];
        let result = result(DATAGRAMS, &settings);
        let link = &result.links[0];
        let inside = link.counts.arrived - link.counts.delivered - link.counts.dropped_total();
        (link.counts.delivered, inside, link.utilisation)
    };
    assert_eq!(at("9.5s", "0s"), (0, 10, 1.0));
    assert_eq!(at("10s", "0s"), (1, 10, 1.0));
    assert_eq!(at("19.5s", "0s"), (1, 19, 1.0));
    // The transmission that spans the end of the warm-up does not count.
    assert_eq!(at("19.5s", "5s"), (0, 19, 1.0));
    assert_eq!(at("20s", "5s"), (1, 19, 1.0));
    assert_eq!(at("9s", "5s"), (0, 9, 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With any stages between queue and transmitter, the times in the stages add up to the total.
    #[test]
    fn the_waits_add_up_to_the_delay(
        seed in 0u64..1000,
        shaper in prop::option::of((2_100u64..9_000, 1250u64..20_000)),
        driver in prop::option::of((1u64..30, any::<bool>(), 0u64..3_000)),
        mbit in 3u64..20,
        queue in prop::sample::select(vec!["droptail", "fq_codel", "cake", "pie", "drr"]),
        order in prop::sample::select(vec!["arrivals-first", "departures-first"]),
    ) {
        let (seed, rate) = (seed.to_string(), format!("{mbit}mbit"));
        let queue = format!("{{ discipline = \"{queue}\" }}");
        let mut settings = vec![
            ("seed", seed),
            ("simultaneous", order.to_string()),
            ("links.down.rate", rate),
            ("links.down.queue", queue),
        ];
        if let Some((kbit, burst)) = shaper {
            settings.push(("links.down.shaper.rate", format!("{kbit}kbit")));
            settings.push(("links.down.shaper.burst", format!("{burst}b")));
        }
        if let Some((limit, bql, interrupts)) = driver {
            settings.push(("links.down.driver.limit", format!("{limit}p")));
            settings.push(("links.down.driver.bql", bql.to_string()));
            settings.push(("links.down.driver.interrupts", format!("{interrupts}us")));
        }
        let settings: Vec<_> = settings.iter().map(|(key, text)| (*key, text.as_str())).collect();
        let result = result(DATAGRAMS, &settings);
        let link = &result.links[0];
        let count = link.counts.delivered as f64;
        prop_assert!(count > 1000.0);
        prop_assert_eq!(link.counts.delivered + link.counts.dropped_total(), link.counts.arrived);
        let in_driver = link.driver.map_or(0.0, |driver| driver.times.mean());
        let in_transmission = 1250.0 * 8.0 / (mbit as f64 * 1e6);
        let delay = link.sojourn.mean + in_driver + in_transmission + 0.01;
        let (mean, _) = result.flows[0].delays.unwrap();
        // Ends of transmissions are rounded down to a nanosecond.
        prop_assert!((mean - delay).abs() < 1.1e-9, "{mean}, {delay}");
        if link.counts.dropped_total() == 0 {
            let waited = link.sojourn.mean * count;
            prop_assert!((backlog_seconds(&result, link) - waited).abs() < 1e-9 * waited.max(1.0));
        }
    }
}
