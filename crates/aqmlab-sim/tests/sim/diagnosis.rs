//! Misleading runs have notes, other runs do not.

use crate::common::{BESIDE, LINE, Settings, on_line};
use aqmlab_sim::RunResult;
use aqmlab_sim::run::diagnosis::{About, Finding};

/// Bulk flows that fill a link, for long enough.
const BULK: &Settings = &[
    ("duration", "60s"),
    ("links.access", "{ rate = '1gbit', delay = '1ms' }"),
    ("links.down.delay", "10ms"),
    ("links.down.queue", "codel"),
    ("links.up.rate", "100mbit"),
    ("links.up.delay", "10ms"),
    ("flows.bulk.count", "4"),
    ("flows.bulk.path", "['access', 'down']"),
];

fn said(found: Finding) -> (&'static str, About, String) {
    (found.note.id, found.about, found.note.text)
}

/// The ids and subjects of what a run says of itself.
fn findings(settings: &Settings) -> Vec<(&'static str, About, String)> {
    on_line(&[BULK, settings].concat()).findings.into_iter().map(said).collect()
}

/// What a run says under this id, and of what.
fn note(id: &str, settings: &Settings) -> Option<(About, String)> {
    let found = findings(settings).into_iter().find(|(found, ..)| *found == id);
    found.map(|(_, about, text)| (about, text))
}

const DOWN: About = About::Link(0);
const BULK_FLOWS: About = About::Group(0);

#[test]
fn a_run_that_means_what_it_seems_says_nothing() {
    assert_eq!(findings(&[]), []);
    let fifo = [("queue", "droptail"), ("queue.limit", "2bdp")];
    assert_eq!(findings(&fifo), [], "drop-tail is not meant to act");
}

/// A shaper or another link of the medium leaves the link idle, and packets wait.
#[test]
fn a_link_that_may_not_send_is_not_idle() {
    let shaped: [&Settings; 2] = [
        &[("links.down.shaper.rate", "10mbit")],
        &[("queue", "cake"), ("queue.bandwidth", "10mbit")],
    ];
    for settings in shaped {
        let settings = [&[("links.down.rate", "1gbit")], settings].concat();
        assert_eq!(findings(&settings), [], "{settings:?}");
    }
    let bloated = [("queue", "droptail"), ("queue.limit", "unlimited"), ("duration", "5s")];
    let shaped = [("links.down.rate", "1gbit"), shaped[0][0]];
    let beside = [
        ("links.beside", "{ rate = '1mbit', delay = '1ms', shares = 'down' }"),
        ("flows.beside", "{ path = 'beside', return_path = 'up' }"),
    ];
    for settings in [&shaped, &beside] {
        assert_eq!(note("no-load", &[&bloated, &settings[..]].concat()), None, "{settings:?}");
    }
}

#[test]
fn a_group_that_never_starts_is_named() {
    let late =
        |start| note("never-started", &[("flows.late", BESIDE), ("flows.late.start", start)]);
    let (about, text) = late("61s").unwrap();
    assert_eq!(about, About::Group(1));
    assert!(text.contains("start at 61s, and the run ended at 60s"), "{text}");
    assert_eq!(late("59s"), None);
}

/// Flows that the run ends before are no flows of rate 0 in means and indices of fairness.
#[test]
fn flows_that_do_not_start_are_noted_and_have_no_rates() {
    let late = [("duration", "10s"), ("flows.bulk.start", "{ each = ['0s', '20s'] }")];
    let result = on_line(&[BULK, &late].concat());
    let ran = |flow: &&aqmlab_sim::FlowResult| flow.start < result.end;
    let started = result.flows.iter().filter(ran).count();
    assert!(0 < started && started < 4);
    for flow in &result.flows {
        assert_eq!([flow.goodput, flow.throughput].map(|rate| rate > 0.0), [ran(&flow); 2]);
        assert_eq!(flow.goodput.is_nan(), !ran(&flow));
    }
    assert_eq!(result.groups[0].started, started as u64);
    let notes: Vec<_> = result.findings.into_iter().map(said).collect();
    let [("never-started", BULK_FLOWS, text)] = &notes[..] else { panic!("{notes:?}") };
    assert!(text.starts_with(&format!("{} of 4 flows had not started", 4 - started)), "{text}");
}

/// A longer run does not complete them.
#[test]
fn lost_datagrams_are_not_unfinished_transfers() {
    let workload = |kind| BESIDE.replace('}', &format!(", workload = {kind} }}"));
    for kind in ["{ kind = 'video', rate = '2mbit' }", "'probe'"] {
        let settings = [("flows.other", &*workload(kind)), ("links.down.loss", "30%")];
        assert_eq!(note("unfinished-transfers", &settings), None, "{kind}");
    }
}

#[test]
fn an_unfinished_transfer_counts_once() {
    let settings = [
        ("duration", "10s"),
        ("flows.bulk.size", "1mb"),
        ("flows.bulk.start", "{ each = ['0s', '20s'] }"),
    ];
    let (_, text) = note("unfinished-transfers", &settings).unwrap();
    assert!(text.contains(" of 4 transfers"), "{text}");
}

#[test]
fn a_group_with_players_that_never_start_is_noted() {
    for workload in ["{ kind = 'video', over = 'tcp', rate = '2mbit', buffer = '1s' }", "'dash'"] {
        let player = BESIDE.replace('}', &format!(", workload = {workload} }}"));
        let at = |rate| {
            let settings =
                [("flows.bulk", &*player), ("duration", "15s"), ("links.down.rate", rate)];
            on_line(&settings)
        };
        let (slow, fast) = (at("10kbit"), at("50mbit"));
        let noted = |result: &RunResult| {
            let mut findings = result.findings.iter();
            findings.any(|found| found.note.id == "playback-never-started")
        };
        assert!(noted(&slow) && !noted(&fast), "{workload}");
        for score in ["stalls", "stalled"] {
            assert_eq!(slow.groups[0].value_of(score), None, "{workload}");
            assert_eq!(fast.groups[0].value_of(score), Some(0.0), "{workload}");
        }
    }
}

#[test]
fn a_warm_up_ends_before_the_run() {
    let with = |warmup| crate::common::parse(LINE, &[("record.warmup", warmup)]);
    assert!(with("19s").is_ok());
    for warmup in ["20s", "90s"] {
        let error = with(warmup).unwrap_err().to_string();
        for word in ["record.warmup", warmup, "shorter than `duration`, 20s"] {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

/// 1 % of the packets lost on the link keep Reno from filling it; at 0.001 % the queue drops more.
#[test]
fn a_link_that_loses_more_than_its_queue_drops_says_so() {
    let of_link = |loss| {
        let settings = [("links.down.loss", loss), ("duration", "20s"), ("flows.bulk.start", "0s")];
        note("losses-of-the-link", &settings)
    };
    let (about, text) = of_link("1%").unwrap();
    assert_eq!(about, DOWN);
    assert!(text.contains("1.0 %") || text.contains("0.9 %") || text.contains("1.1 %"), "{text}");
    assert_eq!(of_link("0.001%"), None);
}

/// Reno's slow start overflows the queue in the warm-up only; then the link loses packets.
#[test]
fn notes_count_what_the_results_count() {
    let settings = |warmup| {
        [
            ("queue", "droptail"),
            ("queue.limit", "5p"),
            ("links.down.loss", "4%"),
            ("flows.bulk.count", "1"),
            ("duration", "20s"),
            ("flows.bulk.start", "0s"),
            ("record.warmup", warmup),
        ]
    };
    let [whole, measured] =
        ["0s", "15s"].map(|warmup| on_line(&[BULK, &settings(warmup)].concat()));
    let counts = |run: &RunResult| (run.links[0].way.lost, run.links[0].counts.dropped_total());
    assert!(counts(&whole).1 > 0 && counts(&measured).1 == 0);
    assert!(counts(&measured).0 < counts(&whole).0);
    fn told<'a>(run: &'a RunResult, id: &str) -> Option<&'a str> {
        let found = run.findings.iter().find(|found| found.note.id == id)?;
        Some(&found.note.text)
    }
    for run in [&whole, &measured] {
        let text = told(run, "losses-of-the-link").unwrap();
        let lost = counts(run).0;
        assert!(text.contains(&format!("lost {lost} packets")), "{lost}: {text}");
    }
    assert!(told(&whole, "no-load").is_none() && told(&measured, "no-load").is_some());
}

/// Acknowledgements are queued on a return path of 120 kbit/s, and not on one of 1.5 Mbit/s.
#[test]
fn ledbat_without_timestamps_says_what_it_counts() {
    let text = |timestamps, rate| {
        let settings = [
            ("transport.congestion_control", "ledbat"),
            ("transport.timestamps", timestamps),
            ("links.up.rate", rate),
            ("duration", "20s"),
        ];
        note("ledbat-counts-the-way-back", &settings)
    };
    let (_, said) = text("false", "120kbit").unwrap();
    assert!(said.contains("counts the queuing delay of the return path"), "{said:?}");
    assert!(text("true", "120kbit").is_none() && text("false", "1500kbit").is_none());
}

#[test]
fn a_control_that_needs_marks_and_gets_none_is_noted() {
    let text = |control, ecn, codepoint| {
        let settings = [
            ("transport.congestion_control", control),
            ("transport.ecn", ecn),
            ("transport.ecn_codepoint", codepoint),
            ("duration", "1s"),
        ];
        note("no-marks", &settings).map(|(about, text)| (about == BULK_FLOWS, text))
    };
    let (of_the_group, said) = text("dctcp", "off", "ect0").unwrap();
    assert!(of_the_group && said.contains("Set `transport.ecn = dctcp`"), "{said}");
    assert!(text("prague", "off", "ect1").unwrap().1.contains("ecn = accurate` and"));
    assert!(text("prague", "accurate", "ect0").unwrap().1.starts_with("L4S queues"));
    assert_eq!(text("prague", "accurate", "ect1"), None);
    assert_eq!(text("dctcp", "dctcp", "ect0"), None);
    assert_eq!(text("cubic", "off", "ect0"), None);
}

/// The only note of a run: its identifier, its subject, the settings, and words of its text.
#[test]
fn a_misleading_run_has_one_note() {
    let cases: [(&str, About, &Settings, &str); 8] = [
        (
            "aqm-never-acted",
            DOWN,
            &[("queue.target", "50s"), ("queue.limit", "unlimited")],
            "codel never acted: it dropped and marked no packet",
        ),
        (
            "aqm-never-acted",
            DOWN,
            &[("queue.target", "1s"), ("queue.limit", "40p")],
            "drops came from a full buffer",
        ),
        ("overflow-before-aqm", DOWN, &[("queue.limit", "50p")], "before codel first signalled"),
        (
            "no-load",
            DOWN,
            &[("links.down.rate", "900mbit"), ("flows.bulk.size", "1mb")],
            "no queue to manage",
        ),
        ("hidden-queue", DOWN, &[("links.down.driver.limit", "100p")], "in the driver"),
        ("few-packets", DOWN, &[("queue", "droptail"), ("flows.bulk.size", "200kb")], "only"),
        ("unfinished-transfers", About::Run, &[("flows.bulk.size", "1gb")], "4 of 4 transfers"),
        ("no-traffic", About::Run, &[("flows.bulk.start", "100s")], "no packet arrived"),
    ];
    for (id, about, settings, words) in cases {
        let findings = findings(settings);
        let [(found, of, text)] = &findings[..] else { panic!("{id}: {findings:?}") };
        assert_eq!((*found, *of), (id, about), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_note_names_its_subject_and_numbers() {
    let cases: [(&str, About, &Settings, &[&str]); 3] = [
        (
            "bottleneck-elsewhere",
            DOWN,
            &[("links.access.rate", "5mbit")],
            &["was at access", "not at down"],
        ),
        (
            "receive-window-limited",
            BULK_FLOWS,
            &[("flows.bulk.transport.receive_window", "6000b")],
            &["4 of 4 flows"],
        ),
        // 10^5 packets of 1514 bytes at 10 Mbit/s.
        (
            "run-too-short",
            DOWN,
            &[("queue", "red"), ("queue.weight", "0.00001"), ("queue.min_threshold", "1p")],
            &["the average queue takes 121s"],
        ),
    ];
    for (id, about, settings, words) in cases {
        let (of, text) = note(id, settings).unwrap();
        assert_eq!(of, about, "{text}");
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
    }
}

/// A sender that responds to nothing has a congestion window as large as no limit.
#[test]
fn an_unlimited_receive_window_limits_no_flow() {
    let settings = [("transport.profile", "rfc"), ("transport.congestion_control", "cbr")];
    assert_eq!(note("receive-window-limited", &settings), None);
}

/// A late segment undoes a recovery of Linux. Its other losses are found by the timeout only, which
/// each acknowledgement postpones.
#[test]
fn a_lost_segment_that_is_not_sent_again_is_noted() {
    let found = |window: &str| {
        let settings = [
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
        ];
        note("hole-left-open", &settings)
    };
    let (about, text) = found("unlimited").unwrap();
    assert_eq!(about, BULK_FLOWS);
    assert!(text.starts_with("1 of 1 flows ended with a lost segment"), "{text}");
    assert!(text.contains("for up to 9.") && text.contains("only by a timeout"), "{text}");
    assert_eq!(found("auto"), None);
}

#[test]
fn a_run_too_short_for_its_sawtooth_says_how_long() {
    let long_path = [("links.down.delay", "200ms"), ("links.down.rate", "100mbit")];
    let (about, text) = note("run-too-short", &long_path).unwrap();
    assert_eq!(about, BULK_FLOWS);
    // 100 Mbit/s over 211 ms and 2 ms in the queue for four flows: 1774 packets, 444 a flow, a half
    // of them at one a round trip of 212 ms.
    assert!(text.contains("a mean round trip of 212ms the window of reno takes 47.1s"), "{text}");
    assert!(text.contains("at least 141s"), "{text}");
    // 0.3 of 440 packets: the cube root of 132 / 0.4, 6.9 s; in so short a run the queue of the slow
    // start counts. W_est needs 250 round trips.
    let mut with_cubic = long_path.to_vec();
    with_cubic.extend([("duration", "15s"), ("transport.congestion_control", "cubic")]);
    let (_, text) = note("run-too-short", &with_cubic).unwrap();
    assert!(text.contains("the window of cubic takes 7.7s"), "{text}");
    // Model-based pacing has no such cycle.
    with_cubic.push(("transport.congestion_control", "bbr"));
    assert_eq!(note("run-too-short", &with_cubic), None);
}

/// A buffer of one BDP doubles the window at a loss, and raises the mean round trip by a half or
/// more: the period of Reno is three times as long, and that of CUBIC twice.
#[test]
fn the_period_of_a_sawtooth_includes_the_queue() {
    for (control, periods, longest) in [("reno", 8.0, 42.0), ("cubic", 20.0, 16.0)] {
        let settings = |duration| {
            [
                ("queue", "droptail"),
                ("queue.limit", "1bdp"),
                ("links.down.delay", "75ms"),
                ("links.up.delay", "75ms"),
                ("flows.bulk.count", "1"),
                ("transport.congestion_control", control),
                ("duration", duration),
            ]
        };
        let (_, text) = note("run-too-short", &settings("12s")).unwrap();
        let said = text.split(" takes ").nth(1).unwrap().split("s from").next().unwrap();
        let said: f64 = said.parse().unwrap();
        assert!(said < longest, "{text}");
        let result = on_line(&[BULK, &settings("400s")[..]].concat());
        let found = result.flows[0].stats.unwrap().fast_retransmits as f64;
        let measured = 400.0 / found;
        assert!(found > periods && (0.8..1.25).contains(&(said / measured)), "{measured}: {text}");
        assert!(result.findings.is_empty(), "{:?}", result.findings);
    }
}

/// Datagrams at twice the capacity: the buffer is full, and BLUE drops most.
#[test]
fn a_buffer_that_sets_off_blue_is_noted() {
    for queue in ["cobalt", "fq_cobalt", "cake"] {
        let settings = [
            ("queue", queue),
            ("queue.limit", "20p"),
            ("flows.bulk.workload", "cbr"),
            ("flows.bulk.workload.rate", "5mbit"),
        ];
        let (about, text) = note("blue-set-off", &settings).unwrap();
        assert!(about == DOWN && text.contains("BLUE dropped"), "{queue}: {text}");
    }
    assert!(findings(&[("queue", "cobalt")]).is_empty(), "with room for all");
    let blue = note("blue-set-off", &[("queue", "blue"), ("queue.limit", "20p")]);
    assert_eq!(blue, None, "BLUE alone has no control law");
}

/// A link of 10 Mbit/s behind a shaper.
const SHAPED: &str = "{ rate = '1gbit', shaper = 'htb rate 10mbit' }";

/// Three packets arrive in each transmission, the first of them when the queue has room: datagrams
/// at random times find none.
#[test]
fn flows_in_phase_with_the_link_are_named() {
    let dropped = |rate: &str, vary: &str, order: &str, line: &str| {
        let load = format!("{{ kind = 'cbr', rate = '{rate}', vary = {vary} }}");
        let result = on_line(&[
            ("links.down", line),
            ("links.down.delay", "10ms"),
            ("links.down.queue.limit", "1p"),
            ("links.up.delay", "10ms"),
            ("flows.bulk.workload", &load),
            ("flows.ping", BESIDE),
            ("flows.ping.workload", "{ kind = 'probe', gap = { exponential = '10ms' } }"),
            ("simultaneous", order),
        ]);
        let is_named = result.findings.iter().any(|found| found.note.id == "phase-effects");
        (result.groups[1].completed as f64 / result.groups[1].started as f64, is_named)
    };
    for order in ["arrivals-first", "departures-first"] {
        for (line, most) in [("{ rate = '10mbit' }", 0.0), (SHAPED, 0.02)] {
            let (arrived, is_named) = dropped("30mbit", "0.0", order, line);
            assert!(arrived <= most && is_named, "{line}: {arrived}");
            for spread in [("30.1mbit", "0.0"), ("30mbit", "0.5")] {
                let (arrived, is_named) = dropped(spread.0, spread.1, order, line);
                assert!((0.1..0.5).contains(&arrived) && !is_named, "{spread:?}: {arrived}");
            }
        }
    }
}
