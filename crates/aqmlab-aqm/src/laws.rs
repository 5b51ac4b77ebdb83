//! Laws that hold for several disciplines, as tables: the excess of an overload, the notes of it,
//! and the parameters that are refused.

use aqmlab_core::{Ecn, Result, Span, Stream, Table, Value};

use crate::discipline::{QueueConfig, Reason};
use crate::queue::Queue;
use crate::testing::{ids, run_with, seen, slow};

/// Reads a discipline with settings: `target 60ms, ecn true`.
fn read(name: &str, settings: &str) -> Result<QueueConfig> {
    let pairs = settings.split(", ").filter_map(|pair| pair.split_once(' '));
    let pairs = pairs.chain([("discipline", name)]);
    let table: Table = pairs.map(|(key, text)| (key.to_string(), text.into())).collect();
    QueueConfig::read(&Value::Table(table))
}

/// Returns a queue after packets arrived every `gap` microseconds at a link that sends one in 6 ms.
fn loaded(name: &str, settings: &str, gap: u64, seconds: u64, ecn: Ecn) -> Queue {
    let built = read(name, settings).unwrap().build_checked(&slow());
    let mut queue = Queue::new(built, Stream::from_state(1));
    run_with(&mut queue, Span::from_micros(gap), seconds, ecn);
    queue
}

/// Packets arrive every so many microseconds for so many seconds at a link that sends one in 6 ms,
/// from senders that do not react. The excess is dropped, most of it early.
struct Overload {
    name: &'static str,
    settings: &'static str,
    ecn: Ecn,
    gap: u64,
    seconds: u64,
    tolerance: f64,
    /// A value of the state at the end, and its range.
    state: (&'static str, f64, f64),
    notes: &'static [&'static str],
}

/// 110 % of what the link sends.
const TENTH: Overload = Overload {
    name: "pie",
    settings: "",
    ecn: Ecn::NotEct,
    gap: 5455,
    seconds: 30,
    tolerance: 0.02,
    // Derandomised, p reaches nearly twice the share of drops.
    state: ("drop_probability", 0.02, 0.3),
    notes: &[],
};
/// 120 %: a sixth is too much.
const FIFTH: Overload = Overload { gap: 5000, seconds: 300, tolerance: 0.01, ..TENTH };
/// 150 %: a third is dropped, so the base of PI squared is 1 / sqrt 3.
const HALF: Overload = Overload {
    gap: 4000,
    seconds: 60,
    tolerance: 0.03,
    state: ("base_probability", 0.427, 0.727),
    ..TENTH
};
const OVERLOADED: &[&str] = &["dualpi2-one-queue", "dualpi2-overload"];

/// PI with gains for a queue of so few packets.
macro_rules! pi {
    ($reference:literal) => {
        concat!("a 0.00183, b 0.00181, reference ", $reference)
    };
}

#[rustfmt::skip]
const OVERLOADS: &[Overload] = &[
    // The target is well above two packets, from which nothing is dropped early.
    Overload { settings: "target 60ms", ..TENTH },
    Overload { settings: "target 60ms, delay rate", ..TENTH },
    Overload { settings: "target 60ms, derandomize false", ..TENTH },
    Overload { settings: "target 60ms, decay half-target", ..TENTH },
    Overload { settings: "target 60ms, activation 0.01", ..TENTH },
    Overload { settings: "target 60ms, variant linux-clamped", ..TENTH },
    // A packet of 1500 bytes meets 1.46 times the probability.
    Overload { name: "docsis_pie", settings: "target 30ms", tolerance: 0.01, state: ("state", 2.0, 2.0), ..HALF },
    Overload { name: "dualpi2", notes: OVERLOADED, ..HALF },
    Overload { name: "dualpi2", ecn: Ecn::Ect0, notes: OVERLOADED, ..HALF },
    Overload { name: "dualpi2", ecn: Ecn::Ect1, notes: OVERLOADED, ..HALF },
    Overload { name: "dualpi2", settings: "variant linux", notes: OVERLOADED, ..HALF },
    Overload { name: "dualpi2", settings: "variant linux", ecn: Ecn::Ect0, notes: OVERLOADED, ..HALF },
    // With a coupling of 2 a base of 0.577 is overload.
    Overload { name: "pi2", notes: &["pi2-overload"], ..HALF },
    Overload { name: "pi2", settings: "derandomize true", notes: &["pi2-overload"], ..HALF },
    Overload { name: "pi2", settings: "coupling 1", ..HALF },
    // The control law drops a packet every 60 ms at its third drop. A packet takes 6 ms, the target
    // is 5.
    Overload { name: "codel_dt", seconds: 120, tolerance: 0.005, state: ("", 0.0, 0.0), notes: &["codel-target-below-packet"], ..TENTH },
    Overload { name: "codel_dt", settings: "delay shaper, traffic_burst 0b", seconds: 120, tolerance: 0.005, state: ("", 0.0, 0.0), notes: &["codel-target-below-packet"], ..TENTH },
    Overload { name: "cobalt", seconds: 120, tolerance: 0.01, state: ("", 0.0, 0.0), ..TENTH },
    Overload { name: "pi", settings: pi!("20p"), state: ("drop_probability", 0.13, 0.2), ..FIFTH },
    Overload { name: "pi", settings: pi!("80p"), state: ("drop_probability", 0.13, 0.2), ..FIFTH },
    Overload { name: "blue", settings: "limit 50p", state: ("drop_probability", 0.12, 0.24), ..FIFTH },
];

#[test]
fn the_excess_of_an_overload_is_dropped_early() {
    for Overload { name, settings, ecn, gap, seconds, tolerance, state, notes } in OVERLOADS {
        let label = format!("{name} {settings} {ecn:?}");
        let queue = loaded(name, settings, *gap, *seconds, *ecn);
        let counts = queue.counts();
        let share = counts.dropped_total() as f64 / counts.arrived as f64;
        assert!((share - (1.0 - *gap as f64 / 6000.0)).abs() < *tolerance, "{label}: {share}");
        let late = counts.dropped[Reason::Overlimit as usize];
        assert!(late * 6 < counts.dropped_total(), "{label}: {counts:?}");
        let (quantity, low, high) = *state;
        if !quantity.is_empty() {
            let value = seen(&queue, quantity);
            assert!((low..=high).contains(&value), "{label}: {quantity} is {value}");
        }
        // PI keeps its reference.
        let most = if settings.contains("80p") { 65..95 } else { 0..51 };
        assert!(most.contains(&queue.backlog().packets), "{label}: {:?}", queue.backlog());
        assert_eq!(ids(&queue), *notes, "{label}");
    }
}

/// Disciplines that signal by marks, and the load: packets every so many microseconds for so many
/// seconds at a link that sends one in 6 ms, from senders that do not react.
const MARKING: &[(&str, &str, u64, u64)] = &[
    ("bernoulli", "probability 0.1", 5000, 5),
    ("blue", "limit 50p", 5000, 300),
    ("cobalt", "", 5455, 20),
    ("codel", "", 5000, 20),
    ("fq_cobalt", "", 2000, 10),
    ("pi", "limit 200p", 5000, 60),
    ("pie2013", "dq_threshold 5p", 5400, 20),
];

#[test]
fn marks_replace_early_drops() {
    for (name, settings, gap, seconds) in MARKING {
        let signals = |ecn, enabled| {
            let settings = format!("{settings}, ecn {enabled}");
            let counts = loaded(name, &settings, *gap, *seconds, ecn).counts();
            let late = counts.dropped[Reason::Overlimit as usize];
            (counts.dropped_total() - late, counts.marked_total())
        };
        let (plain, marked) = signals(Ecn::NotEct, true);
        assert!(plain > 10 && marked == 0, "{name}: {plain} {marked}");
        assert_eq!(signals(Ecn::Ect0, false), (plain, 0), "{name}");
        let (dropped, marked) = signals(Ecn::Ect0, true);
        assert!(dropped == 0 && marked > 10, "{name}: {dropped} {marked}");
    }
}

/// Settings that contradict each other or have no meaning, and part of the error: its key
/// or the relation.
const REFUSED: &[(&str, &str, &str)] = &[
    ("choke", "max_threshold 5p", "min_threshold: "),
    ("docsis_pie", "limit unlimited", "limit: "),
    ("dualpi2", "step_packets 5", "step_packets: "),
    ("dualpi2", "min_qlen_step 1", "min_qlen_step: "),
    ("dualpi2", "drop_early true", "drop_early: "),
    ("dualpi2", "target 0s", "tupdate: "),
    ("dualpi2", "c_protection 101", "c_protection: "),
    ("dualpi2", "alpha -1", "alpha: "),
    ("dualpi2", "variant linux, scheduler ts-fifo", "scheduler: "),
    ("pi", "b 1.822e-5", "b: "),
    ("pi", "reference unlimited", "reference: "),
    ("pie", "activation 0.3, limit unlimited", "activation: "),
    ("pie", "activation 0.3, variant linux", "activation: "),
    ("pie", "activation 1.5", "activation: "),
    ("pie2013", "dq_threshold unlimited", "dq_threshold: "),
    ("red", "max_threshold unlimited", "max_threshold: "),
    ("red", "min_threshold 5p, max_threshold 5p", "less than"),
    ("red", "min_threshold 5p, max_threshold 9000b", "same unit"),
    ("red_linux", "min_threshold 5p, max_threshold 15p", "min_threshold: "),
    ("red_linux", "min_threshold 9000b, max_threshold 9000b", "min_threshold: "),
    ("red_linux", "min_threshold 9000b, max_threshold 20p", "max_threshold: "),
    ("red_linux", "min_threshold 9000b, max_threshold 1bdp", "min_threshold: "),
    ("red_linux", "min_threshold 1b, max_threshold 5000000000b", "max_threshold: "),
    ("sfq", "quantum 0b", "quantum: "),
    ("sfq", "quantum 2000000b", "quantum: "),
    ("sfq", "perturb 0s", "perturb: "),
    ("sfq", "perturb 1us", "perturb: "),
    ("sred", "limit unlimited", "limit: "),
    ("sred", "replacement 0", "replacement: "),
    ("step", "threshold unlimited", "threshold: "),
];

#[test]
fn parameters_without_a_meaning_are_refused_by_name() {
    for (name, settings, part) in REFUSED {
        let error = read(name, settings).expect_err(settings).to_string();
        assert!(error.contains(part), "{name} {settings}: {error}");
    }
    for (name, settings) in [
        ("dualpi2", "variant linux, drop_early true"),
        ("pie", "activation 0.3"),
        ("sfb", "rehash 0s"),
        ("sfq", "perturb none"),
    ] {
        read(name, settings).unwrap();
    }
}

/// Packets every so many microseconds for so many seconds at a link that sends one in 6 ms; the
/// notes at the end, and whether packets were dropped early.
type Noted = (&'static str, &'static str, u64, u64, &'static [&'static str], Option<bool>);

#[rustfmt::skip]
const NOTED: &[Noted] = &[
    // 1514 bytes take 6.056 ms, two of them 12.112 ms.
    ("codel", "target 6056us", 5000, 5, &["codel-target-below-packet"], None),
    ("codel", "target 6057us", 5000, 5, &[], None),
    ("codel", "target 6056us", 12_000, 5, &[], None),
    ("codel_dt", "limit 10p", 5000, 10, &["codel-target-below-packet", "codel-dt-no-rate-sample"], Some(false)),
    ("docsis_pie", "limit 100000p", 5000, 20, &["docsis-pie-inactive"], Some(false)),
    ("pie", "target 12ms", 5455, 30, &["pie-target-below-two-packets"], None),
    ("pie", "target 12200us", 5455, 30, &[], None),
    ("pie", "target 12ms, variant linux-clamped", 5455, 30, &["pie-target-below-two-packets"], None),
    ("pie", "target 12200us, variant linux-clamped", 5455, 30, &[], None),
    ("pie", "activation 0.9", 5455, 30, &["pie-inactive"], Some(false)),
    // Ten packets are below the threshold of 16 kb and 60 ms at this rate.
    ("pie", "delay rate, limit 10p, target 30ms", 5455, 30, &["pie-no-rate-sample"], Some(false)),
    ("pie", "delay rate, limit 10p, target 30ms, variant linux", 5455, 30, &["pie-no-rate-sample"], Some(false)),
    ("pie2013", "", 5400, 20, &["pie-no-rate-sample"], Some(false)),
    ("pie2013", "tupdate 60ms", 5400, 20, &[], Some(true)),
    ("pie2013", "dq_threshold 5p", 5400, 20, &[], Some(true)),
    ("pie2013", "dq_threshold 7500b", 5400, 20, &[], Some(true)),
    // Ten packets leave in 54 ms: a cycle has to begin within 0.1 ms of an update, one of 6 ms apart.
    ("pie2013", "tupdate 54.1ms", 5400, 60, &["pie-few-rate-samples"], None),
    ("pie2013", "tupdate 57ms", 5400, 60, &[], None),
    // A link without a queue.
    ("pie2013", "", 7000, 2, &[], Some(false)),
];

#[test]
fn what_a_reader_has_to_know_is_noted() {
    for (name, settings, gap, seconds, notes, is_early) in NOTED {
        let queue = loaded(name, settings, *gap, *seconds, Ecn::NotEct);
        assert_eq!(ids(&queue), *notes, "{name} {settings} {gap}");
        let counts = queue.counts();
        let early = counts.dropped_total() - counts.dropped[Reason::Overlimit as usize];
        let is_right =
            is_early.is_none_or(|is_early| if is_early { early > 50 } else { early == 0 });
        assert!(is_right, "{name} {settings}: {counts:?}");
    }
}

#[test]
fn notes_contain_the_numbers_of_the_queue() {
    let kernel = "delay rate, limit 10p, target 30ms";
    let of_2013 = &["10p", "30ms", "2mbit", "`tupdate`", "`dq_threshold`"];
    for (name, settings, parts) in [("pie", kernel, &["16384b"][..]), ("pie2013", "", of_2013)] {
        let text = &loaded(name, settings, 5400, 20, Ecn::NotEct).notes()[0].text;
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}
