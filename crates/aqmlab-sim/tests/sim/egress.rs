//! Shapers and drivers between a queue and its transmitter.

use crate::common::{LINE, Settings, on_line};
use aqmlab_sim::{LinkResult, RunResult};
use proptest::prelude::*;

/// Three bulk flows over one link.
const BULK: &Settings = &[
    ("links.down.delay", "10ms"),
    ("links.down.queue", "codel"),
    ("links.up.rate", "100mbit"),
    ("links.up.delay", "10ms"),
    ("transport.profile", "linux-6"),
    ("flows.bulk.count", "3"),
];

fn result(settings: &Settings) -> RunResult {
    on_line(&[BULK, settings].concat())
}

fn throughput(result: &RunResult) -> f64 {
    result.links[0].counts.delivered_bytes as f64 * 8.0 / result.end.as_secs_f64()
}

fn same(a: &LinkResult, b: &LinkResult) -> bool {
    a.counts == b.counts && a.sojourn == b.sojourn && a.backlog_max == b.backlog_max
}

#[test]
fn a_driver_with_room_for_one_packet_is_as_good_as_none() {
    let plain = result(&[]);
    let with = result(&[("links.down.driver.limit", "1p")]);
    assert!(plain.links.iter().zip(&with.links).all(|(a, b)| same(a, b)));
    assert!(plain.links[0].driver.is_none());
    let driver = with.links[0].driver.unwrap();
    assert_eq!((driver.times.max.as_nanos(), driver.max_bytes), (0, 1500));
}

#[test]
fn a_shaper_sets_the_rate() {
    let rate = "4321kbit";
    let shaped = result(&[("links.down.shaper.rate", rate), ("links.down.shaper.burst", "3000b")]);
    let share = throughput(&shaped) / 4.321e6;
    assert!((0.98..=1.001).contains(&share), "{share}");
    // The queue builds before the shaper: CoDel sees it and acts.
    assert!(shaped.links[0].counts.dropped_total() > 0);
    assert!(shaped.links[0].sojourn.mean > 0.002, "{}", shaped.links[0].sojourn.mean);
    assert!((shaped.links[0].utilisation - 0.43).abs() < 0.02);
}

/// The rates and limits that disciplines derive from the link are those of the shaper.
#[test]
fn a_queue_behind_a_shaper_has_the_rate_of_the_shaper() {
    for queue in [
        "{ discipline = 'droptail', limit = '1bdp' }",
        "{ discipline = 'docsis_pie' }",
        "{ discipline = 'red' }",
    ] {
        let wait = |rate, more: &Settings| {
            let line = [("links.down.rate", rate), ("links.down.queue", queue)];
            result(&[&line, more].concat()).links[0].sojourn.mean
        };
        let slow = wait("5mbit", &[]);
        let shaped = wait("1gbit", &[("links.down.shaper.rate", "5mbit")]);
        assert!((0.8..1.25).contains(&(shaped / slow)), "{queue}: {shaped} {slow}");
    }
}

#[test]
fn a_deep_driver_hides_the_queue_from_the_discipline() {
    let hidden = result(&[("links.down.driver.limit", "200p")]);
    let driver = hidden.links[0].driver.unwrap();
    assert!(driver.times.mean() > 0.05, "{}", driver.times.mean());
    let open = result(&[]);
    assert!(hidden.links[0].counts.dropped_total() < open.links[0].counts.dropped_total());
    assert_eq!(hidden.links[0].sojourn.quantiles[0], 0.0, "most of the packets pass CoDel at once");
}

#[test]
fn dynamic_limits_bring_it_back() {
    let ring = |bql: &str| {
        result(&[
            ("links.down.driver.limit", "200p"),
            ("links.down.driver.bql", bql),
            ("links.down.driver.interrupts", "3ms"),
        ])
    };
    let (hidden, kept) = (ring("false"), ring("true"));
    let mean = |result: &RunResult| result.links[0].driver.unwrap().times.mean();
    // At least the bytes sent between two interrupts, at most twice as many.
    assert!(mean(&kept) < 0.008, "{}", mean(&kept));
    assert!(mean(&kept) < mean(&hidden) / 6.0);
    assert!(throughput(&kept) > 0.95 * throughput(&result(&[])));
    assert!(kept.links[0].counts.dropped_total() > 0);
}

/// A packet of 1500 bytes is 1554 on a PTM line with PPPoE: a shaper that does not know that
/// fills the modem's buffer, one that does leaves it empty.
#[test]
fn a_shaper_that_counts_the_link_layer_keeps_the_modem_empty() {
    let line = [
        ("links.down.link_layer", "pppoe-ptm"),
        ("links.down.driver.limit", "200p"),
        ("links.down.shaper.rate", "9800kbit"),
    ];
    let with = |more: &Settings| result(&[&line[..], more].concat());
    let (blind, aware) = (with(&[]), with(&[("links.down.shaper.link_layer", "pppoe-ptm")]));
    let mean = |result: &RunResult| result.links[0].driver.unwrap().times.mean();
    assert!(mean(&blind) > 0.02, "{}", mean(&blind));
    assert!(mean(&aware) < 0.001, "{}", mean(&aware));
    let share = throughput(&aware) / (9.8e6 * 1500.0 / 1554.0);
    assert!((0.97..=1.001).contains(&share), "{share}");
}

#[test]
fn a_shaper_needs_its_rate() {
    let error = crate::common::refused(LINE, &[("links.down.shaper.burst", "3000b")]);
    assert!(error.contains("links.down.shaper") && error.contains("rate"), "{error}");
}

/// Results are about the link where packets wait.
#[test]
fn a_link_with_a_slow_shaper_is_the_bottleneck() {
    let access = "[links.access]\nrate = \"100mbit\"\ndelay = \"1ms\"\n[links.up]";
    let text = LINE
        .replace("bottleneck = \"down\"", "")
        .replace("[links.up]", access)
        .replace("  path = \"down\"", "path = [\"access\", \"down\"]");
    let of = |settings: &Settings| {
        let scenario = crate::common::scenario(&text, settings);
        scenario.links[scenario.bottleneck].name.clone()
    };
    assert_eq!(of(&[]), "down");
    assert_eq!(of(&[("links.access.shaper.rate", "4mbit")]), "access");
    assert_eq!(of(&[("links.access.shaper.rate", "40mbit")]), "down");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// `run` checks that nothing is lost; the shaper is never passed.
    #[test]
    fn nothing_is_lost_and_the_rate_is_kept(
        kbit in 200u64..12_000,
        burst in 100u64..40_000,
        ceil in prop::option::of(500u64..20_000),
        cells in prop::sample::select(vec!["none", "atm", "ptm"]),
        limit in prop_oneof![Just("1p"), Just("7p"), Just("20000b"), Just("2bdp"), Just("unlimited")],
        bql in prop::sample::select(vec!["true", "false"]),
        interrupts in prop::sample::select(vec!["0ms", "100us", "5ms"]),
        queue in prop::sample::select(vec!["droptail", "codel", "pie", "fq_codel"]),
    ) {
        let rate = format!("{kbit}kbit");
        let size = format!("{burst}b");
        let mut settings = vec![
            ("duration", "5s"),
            ("queue", queue),
            ("links.down.shaper.rate", rate.as_str()),
            ("links.down.shaper.burst", size.as_str()),
            ("links.down.driver.limit", limit),
            ("links.down.driver.bql", bql),
            ("links.down.driver.interrupts", interrupts),
        ];
        let ceil = ceil.map(|kbit| format!("{kbit}kbit"));
        settings.extend(ceil.as_deref().map(|ceil| ("links.down.shaper.ceil", ceil)));
        settings.push(("links.down.shaper.framing", cells));
        let result = result(&settings);
        // The bucket may be in deficit by a packet.
        let most = kbit as f64 * 1e3 * 5.0 + 8.0 * burst as f64 + 2.0 * 8.0 * 1500.0;
        let passed = result.links[0].counts.delivered_bytes as f64 * 8.0;
        prop_assert!(passed <= most, "{passed} of {most}");
        prop_assert!(passed > 0.0);
    }
}
