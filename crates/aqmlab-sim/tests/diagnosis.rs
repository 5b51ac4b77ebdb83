//! Misleading runs have notes, other runs do not.

use aqmlab_core::Value;
use aqmlab_sim::run::diagnosis::About;
use aqmlab_sim::{Scenario, run};

/// Bulk flows that fill a link, for long enough.
const BULK: &str = r#"
    duration = "60s"
    [links.access]
    rate = "1gbit"
    delay = "1ms"
    [links.down]
    rate = "10mbit"
    delay = "10ms"
    queue = "codel"
    [links.up]
    rate = "100mbit"
    delay = "10ms"
    [transport]
    profile = "rfc"
    [flows.bulk]
    count = 4
    path = ["access", "down"]
    return_path = ["up"]
"#;

/// The ids and subjects of what a run says of itself.
fn findings(overrides: &[(&str, &str)]) -> Vec<(&'static str, About, String)> {
    let overrides: Vec<(String, Value)> =
        overrides.iter().map(|(key, text)| (key.to_string(), Value::from(*text))).collect();
    let scenario = Scenario::parse(BULK, "bulk", &overrides).unwrap();
    let findings = run(&scenario, 0).findings.into_iter();
    findings.map(|found| (found.note.id, found.about, found.note.text)).collect()
}

/// Asserts that exactly one thing is said, and gives its text.
fn only(id: &str, about: About, overrides: &[(&str, &str)]) -> String {
    let findings = findings(overrides);
    let [(found, of, text)] = &findings[..] else { panic!("{id}: {findings:?}") };
    assert_eq!((*found, *of), (id, about), "{text}");
    text.clone()
}

const DOWN: About = About::Link(1);
const BULK_FLOWS: About = About::Group(0);

#[test]
fn a_run_that_means_what_it_seems_says_nothing() {
    assert_eq!(findings(&[]), []);
    assert_eq!(findings(&[("queue", "droptail")]), [], "drop-tail is not meant to act");
}

#[test]
fn a_group_that_never_starts_is_named() {
    let late = |start: &str| {
        let group =
            format!("[flows.late]\npath = \"down\"\nreturn_path = \"up\"\nstart = \"{start}\"\n");
        let scenario = Scenario::parse(&format!("{BULK}{group}"), "late", &[]).unwrap();
        let findings = run(&scenario, 0).findings.into_iter();
        let of_group = findings.filter(|found| found.about == About::Group(1));
        of_group.map(|found| (found.note.id, found.note.text)).collect::<Vec<_>>()
    };
    let [(id, text)] = &late("61s")[..] else { panic!("{:?}", late("61s")) };
    assert_eq!(*id, "never-started");
    assert!(text.contains("start at 61s, and the run ended at 60s"), "{text}");
    assert!(late("59s").iter().all(|(id, _)| *id != "never-started"));
}

#[test]
fn a_warm_up_ends_before_the_run() {
    let with = |warmup: &str| {
        let settings = [("record.warmup".to_string(), Value::from(warmup))];
        Scenario::parse(BULK, "bulk", &settings)
    };
    assert!(with("59s").is_ok());
    for warmup in ["60s", "90s"] {
        let error = with(warmup).unwrap_err().to_string();
        for word in ["record.warmup", warmup, "shorter than `duration`, 60s"] {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

/// 1 % of the packets lost on the link keep Reno from filling it; at 0.001 % the queue drops more.
#[test]
fn a_link_that_loses_more_than_its_queue_drops_says_so() {
    let of_link = |loss| {
        let settings = [("links.down.loss", loss), ("duration", "20s"), ("flows.bulk.start", "0s")];
        findings(&settings).into_iter().find(|(id, ..)| *id == "losses-of-the-link")
    };
    let (_, about, text) = of_link("1%").unwrap();
    assert_eq!(about, DOWN);
    assert!(text.contains("1.0 %") || text.contains("0.9 %") || text.contains("1.1 %"), "{text}");
    assert_eq!(of_link("0.001%"), None);
}

/// Acknowledgements are queued on a return path of 120 kbit/s, and not on one of 1.5 Mbit/s.
#[test]
fn ledbat_without_timestamps_says_what_it_counts() {
    let text = |timestamps: &str, rate: &str| -> Vec<String> {
        let settings = [
            ("transport.congestion_control", "ledbat"),
            ("transport.timestamps", timestamps),
            ("links.up.rate", rate),
            ("duration", "20s"),
        ];
        let found = findings(&settings).into_iter();
        found.filter(|found| found.0 == "ledbat-counts-the-way-back").map(|found| found.2).collect()
    };
    let said = text("false", "120kbit");
    assert!(said[0].contains("counts the queuing delay of the return path"), "{said:?}");
    assert!(text("true", "120kbit").is_empty() && text("false", "1500kbit").is_empty());
}

#[test]
fn an_aqm_that_never_acted_says_so() {
    let text =
        only("aqm-never-acted", DOWN, &[("queue.target", "50s"), ("queue.limit", "unlimited")]);
    assert!(text.contains("codel never acted: it dropped and marked no packet"), "{text}");
    let text = only("aqm-never-acted", DOWN, &[("queue.target", "1s"), ("queue.limit", "40p")]);
    assert!(text.contains("drops came from a full buffer"), "{text}");
}

#[test]
fn a_buffer_that_overflowed_first_says_so() {
    let text = only("overflow-before-aqm", DOWN, &[("queue.limit", "50p")]);
    assert!(text.contains("before codel first signalled"), "{text}");
}

#[test]
fn a_link_without_load_says_so() {
    let fast = [("links.down.rate", "900mbit"), ("flows.bulk.size", "1mb"), ("bottleneck", "down")];
    let text = only("no-load", DOWN, &fast);
    assert!(text.contains("no queue to manage"), "{text}");
}

#[test]
fn a_queue_that_stands_elsewhere_is_named() {
    let found = findings(&[("links.access.rate", "5mbit"), ("bottleneck", "down")]);
    let (_, about, text) = found.iter().find(|found| found.0 == "bottleneck-elsewhere").unwrap();
    assert_eq!(*about, DOWN);
    assert!(text.contains("was at access") && text.contains("not at down"), "{text}");
}

#[test]
fn flows_that_their_receivers_hold_back_say_so() {
    let found = findings(&[("flows.bulk.transport.receive_window", "6000b")]);
    let (_, about, text) = found.iter().find(|found| found.0 == "receive-window-limited").unwrap();
    assert_eq!(*about, BULK_FLOWS);
    assert!(text.contains("4 of 4 flows"), "{text}");
}

/// A late segment undoes a recovery of Linux. Its other losses are found by the timeout only, which
/// each acknowledgement postpones.
#[test]
fn a_lost_segment_that_is_not_sent_again_is_noted() {
    let found = |window: &str| {
        findings(&[
            ("transport.profile", "linux-6"),
            ("transport.congestion_control", "reno"),
            ("transport.receive_window", window),
            ("queue", "droptail"),
            ("queue.limit", "100p"),
            ("links.down.delay", "20ms"),
            ("links.down.jitter.spread", "5ms"),
            ("links.down.reordering", "true"),
            ("links.up.delay", "20ms"),
            ("flows.bulk.count", "1"),
            ("duration", "10s"),
            ("seed", "5"),
        ])
    };
    let noted = found("unlimited").into_iter().find(|found| found.0 == "hole-left-open");
    let (_, about, text) = noted.unwrap();
    assert_eq!(about, BULK_FLOWS);
    assert!(text.starts_with("1 of 1 flows ended with a lost segment"), "{text}");
    assert!(text.contains("for up to 9.") && text.contains("only by a timeout"), "{text}");
    assert!(found("auto").iter().all(|found| found.0 != "hole-left-open"));
}

#[test]
fn a_run_too_short_for_its_sawtooth_says_how_long() {
    let long_path = [("links.down.delay", "200ms"), ("links.down.rate", "100mbit")];
    let found = findings(&long_path);
    let (_, about, text) = found.iter().find(|found| found.0 == "run-too-short").unwrap();
    assert_eq!(*about, BULK_FLOWS);
    // 100 Mbit/s over 211 ms for four flows: 1758 packets, 440 a flow, a half
    // of them at one a round trip.
    assert!(text.contains("the window of reno takes 46.4s"), "{text}");
    assert!(text.contains("at least 139s"), "{text}");
    // 0.3 of 440 packets: the cube root of 132 / 0.4. W_est needs 250 round trips.
    let mut with_cubic = long_path.to_vec();
    with_cubic.extend([("duration", "15s"), ("transport.congestion_control", "cubic")]);
    let found = findings(&with_cubic);
    let (_, _, text) = found.iter().find(|found| found.0 == "run-too-short").unwrap();
    assert!(text.contains("the window of cubic takes 6.9"), "{text}");
    // Model-based pacing has no such cycle.
    with_cubic.push(("transport.congestion_control", "bbr"));
    assert!(findings(&with_cubic).iter().all(|found| found.0 != "run-too-short"));
}

#[test]
fn a_deep_driver_and_few_packets_and_unfinished_transfers_are_named() {
    only("hidden-queue", DOWN, &[("links.down.driver.limit", "100p")]);
    only("few-packets", DOWN, &[("queue", "droptail"), ("flows.bulk.size", "200kb")]);
    let text = only("unfinished-transfers", About::Run, &[("flows.bulk.size", "1gb")]);
    assert!(text.contains("4 of 4 transfers"), "{text}");
}

#[test]
fn a_run_without_traffic_says_so() {
    only("no-traffic", About::Run, &[("flows.bulk.start", "100s")]);
}

#[test]
fn a_run_too_short_for_its_discipline_says_what_was_on_its_way() {
    let red = [("queue", "red"), ("queue.weight", "0.00001"), ("queue.min_threshold", "1p")];
    let found = findings(&red);
    let (_, about, text) = found.iter().find(|found| found.0 == "run-too-short").unwrap();
    assert_eq!(*about, DOWN);
    // 10^5 packets of 1514 bytes at 10 Mbit/s.
    assert!(text.contains("the average queue takes 121s"), "{text}");
}

/// Datagrams at twice the capacity: the buffer is full, and BLUE drops most.
#[test]
fn a_buffer_that_sets_off_blue_is_noted() {
    for queue in ["cobalt", "fq_cobalt", "cake"] {
        let findings = findings(&[
            ("queue", queue),
            ("queue.limit", "20p"),
            ("flows.bulk.workload", "cbr"),
            ("flows.bulk.workload.rate", "5mbit"),
        ]);
        let said = |id| findings.iter().find(|(found, of, _)| (*found, *of) == (id, DOWN));
        let (_, _, text) = said("blue-set-off").unwrap_or_else(|| panic!("{queue}: {findings:?}"));
        assert!(text.contains("BLUE dropped"), "{text}");
    }
    assert!(findings(&[("queue", "cobalt")]).is_empty(), "with room for all");
    let blue = findings(&[("queue", "blue"), ("queue.limit", "20p")]);
    assert!(blue.iter().all(|(id, ..)| *id != "blue-set-off"), "BLUE alone has no control law");
}

/// Three packets arrive in each transmission, the first of them when the queue has room: datagrams
/// at random times find none.
#[test]
fn flows_in_phase_with_the_link_are_named() {
    let text = r#"
        duration = "20s"
        [links.down]
        rate = "10mbit"
        delay = "10ms"
        queue = { discipline = "droptail", limit = "1p" }
        [links.up]
        rate = "10mbit"
        delay = "10ms"
        [flows.load]
        path = ["down"]
        return_path = ["up"]
        workload = { kind = "cbr", rate = "30mbit" }
        [flows.ping]
        path = ["down"]
        return_path = ["up"]
        workload = { kind = "probe", gap = { exponential = "10ms" } }
    "#;
    let dropped = |rate: &str, vary: &str, order: &str| {
        let set = [
            ("flows.load.workload.rate", rate),
            ("flows.load.workload.vary", vary),
            ("simultaneous", order),
        ];
        let set = set.map(|(key, text)| (key.to_string(), Value::from(text)));
        let result = run(&Scenario::parse(text, "phase", &set).unwrap(), 0);
        let is_named = result.findings.iter().any(|found| found.note.id == "phase-effects");
        (result.groups[1].completed as f64 / result.groups[1].started as f64, is_named)
    };
    for order in ["arrivals-first", "departures-first"] {
        assert_eq!(dropped("30mbit", "0.0", order), (0.0, true));
        for spread in [("30.1mbit", "0.0"), ("30mbit", "0.5")] {
            let (arrived, is_named) = dropped(spread.0, spread.1, order);
            assert!((0.1..0.5).contains(&arrived) && !is_named, "{spread:?}: {arrived}");
        }
    }
}
