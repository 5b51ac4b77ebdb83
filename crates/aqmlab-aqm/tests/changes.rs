//! What a change of parameters does to a queue with packets, for every discipline and parameter:
//! parameters are written, packets and state stay, limits hold from then on.

mod harness;

use aqmlab_aqm::registry::{PRESETS, entries};
use aqmlab_aqm::{QueueConfig, Transition};
use aqmlab_core::{Limit, Span, Stream, Time};
use proptest::prelude::*;

use harness::*;

/// Values to try: each parameter takes those that it can have.
const VALUES: [&str; 20] = [
    "2ms",
    "40ms",
    "5mbit",
    "30mbit",
    "700b",
    "9kb",
    "-4b",
    "20p",
    "45p",
    "20kb",
    "0.3",
    "0.9",
    "2",
    "7",
    "40",
    "true",
    "false",
    "none",
    "auto",
    "unlimited",
];

/// Each change of one parameter of each variant, by key: the settings before and after.
struct Case {
    before: String,
    key: &'static str,
    text: &'static str,
    after: String,
    to: QueueConfig,
}

impl Case {
    fn name(&self) -> &str {
        name_of(&self.before)
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for before in variants() {
        let name = name_of(&before);
        let of = PRESETS.iter().find(|preset| preset.name == name).map_or(name, |preset| preset.of);
        let entry = entries().into_iter().find(|entry| entry.name == of).unwrap();
        let from = config(&before);
        for spec in entry.params {
            for text in VALUES.iter().chain(spec.choices) {
                let after = format!("{before} {}={text}", spec.name);
                // Where it is allowed.
                if let Some(to) = try_config(&after).ok().filter(|to| *to != from) {
                    cases.push(Case { before: before.clone(), key: spec.name, text, after, to });
                }
            }
        }
    }
    cases
}

/// Packets at 1.3 times the rate of the link, with pauses.
fn arrivals(count: u64) -> Vec<Arrival> {
    let mut random = Stream::for_component(1, 0, "changes");
    let gap = |random: &mut Stream| match random.next_u32() % 500 {
        0 => 120_000_000,
        n if n < 150 => 0,
        _ => u64::from(random.next_u32() % 2_200_000),
    };
    let arrival = |random: &mut Stream| Arrival {
        gap: Span::from_nanos(gap(random)),
        flow: random.next_u32() % 6,
        size: if random.next_u32().is_multiple_of(4) {
            40 + random.next_u32() % 1461
        } else {
            1500
        },
        ecn: (random.next_u32() % 4) as u8,
    };
    (0..count).map(|_| arrival(&mut random)).collect()
}

/// Parameters that a running queue cannot take.
fn is_fixed(key: &str) -> bool {
    ["variant", "divisor", "isolation", "hashing", "ways"].contains(&key)
}

#[test]
fn what_a_running_queue_cannot_take_is_refused_by_name() {
    for case in cases() {
        let is_fixed = match (case.name(), case.key) {
            ("cake", "isolation") | ("sfq", "flows") => false,
            (_, "flows") => true,
            (_, key) => is_fixed(key),
        };
        match config(&case.before).transition(&case.to) {
            Ok(transition) => {
                assert_eq!((transition, is_fixed), (Transition::Change, false), "{}", case.after);
            }
            Err(error) => {
                assert!(is_fixed && error.key == case.key, "{}: {error}", case.after);
                assert!(error.to_string().contains("`replace`"), "{error}");
            }
        }
    }
}

#[test]
fn an_equal_queue_is_no_change_and_another_discipline_is_a_replacement() {
    for queue in variants() {
        let config = config(&queue);
        assert_eq!(config.transition(&config.clone()).unwrap(), Transition::None, "{queue}");
        let other = QueueConfig::named(if config.name() == "step" { "blue" } else { "step" });
        assert_eq!(config.transition(&other.unwrap()).unwrap(), Transition::Replace, "{queue}");
    }
}

/// Disciplines that restart something at every change in Linux, even to equal values.
fn restarts(queue: &str) -> bool {
    match name_of(queue) {
        "red_linux" | "sfb" | "choke" => true,
        "sfq" => queue.contains("perturb="),
        // Tins that take turns begin with the first.
        "cake" => !queue.contains("bandwidth="),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..Default::default() })]

    /// Writing the parameters with their present values changes nothing.
    #[test]
    fn written_again_parameters_change_nothing(arrivals in traffic()) {
        for queue in variants().iter().filter(|queue| !restarts(queue)) {
            let config = config(queue);
            let changed = link_to(queue).run_with(&arrivals, |link, id, now| {
                if id % 7 == 3 {
                    assert_eq!(link.change(&config, now), 0, "{queue}");
                }
            });
            prop_assert_eq!(link_to(queue).run(&arrivals), changed, "{} differs", queue);
        }
    }
}

/// Effects of the start that a change cannot repeat: the first timer, the first allowance, the
/// initial tokens, SFQ's slots, the estimate of the bandwidth, and random numbers drawn by the change.
fn begins_differently(case: &Case) -> bool {
    let estimates = case.before.contains("autorate_ingress=");
    (estimates && case.key == "bandwidth")
        || matches!(
            (case.name(), case.key),
            (_, "tupdate" | "max_burst" | "traffic_burst" | "sustained_rate" | "frequency")
                | ("dualpi2", "target" | "rtt_max")
                | ("sfq", "flows" | "perturb")
                | ("sfb", _)
        )
        || (case.name() == "sfq" && restarts(&case.before))
}

/// Parameters of what this traffic has none of, or that are not in the events.
const UNFELT: [(&str, &str); 9] = [
    ("blue", "idle_repeats"),
    ("cake", "ack_filter"),
    ("cake", "wash"),
    ("docsis_pie", "burst_reset"),
    ("pie", "cap"),
    ("red", "beta"),
    ("red", "bottom"),
    ("red", "top"),
    ("red_linux", "harddrop"),
];

/// Before the first packet a change is as good as having been built so: no parameter is forgotten.
#[test]
fn a_change_of_an_unused_queue_is_a_queue_built_so() {
    let arrivals = arrivals(2000);
    let mut felt = std::collections::BTreeMap::new();
    for case in cases().iter().filter(|case| !begins_differently(case)) {
        let from = config(&case.before);
        if from.transition(&case.to).is_err() {
            continue;
        }
        let link = |config: &QueueConfig| Link {
            limit: u64::MAX,
            ..link(&case.after, config.build_checked(&env()))
        };
        let mut changed_at_once = link(&from);
        changed_at_once.change(&case.to, Time::ZERO);
        let events = changed_at_once.run(&arrivals);
        let built = link(&case.to).run(&arrivals);
        assert_eq!(events, built, "{}", case.after);
        let config_name = from.name().to_string();
        let is_felt = felt.entry((config_name, case.key)).or_insert(false);
        *is_felt = *is_felt || built != link(&from).run(&arrivals);
    }
    let unfelt = felt.into_iter().filter(|(_, is_felt)| !is_felt).map(|(key, _)| key);
    let unfelt: Vec<(String, &str)> = unfelt.collect();
    assert_eq!(unfelt, UNFELT.map(|(name, key)| (name.to_string(), key)));
}

/// What a limit is in packets; of bytes in the smallest.
fn packets(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes.get() / 40,
        Limit::Bdp(_) | Limit::Unlimited => u64::MAX,
    }
}

/// Changed in the middle, with packets in the queue: none is lost or reordered, none is dropped
/// but by a smaller limit (or where Linux drops all), and the limit is kept from then on.
#[test]
fn a_change_in_the_middle_keeps_packets_and_limits() {
    let arrivals = arrivals(600);
    for case in cases() {
        if config(&case.before).transition(&case.to).is_err() {
            continue;
        }
        for adapted in [false, true] {
            let of = |config: &QueueConfig| match adapted {
                true => adapted_config(config),
                false => config.clone(),
            };
            let (from, to) = (of(&config(&case.before)), of(&case.to));
            let link = link(&case.after, from.build_checked(&env()));
            let events = link.run_with(&arrivals, |link, id, now| {
                if id == 300 {
                    check_change(&case, link, &to, now);
                }
            });
            // Packets that are classified again, or whose hash changes, may overtake others.
            let may_pass = matches!(
                (case.name(), case.key),
                ("dualpi2", "classifier") | ("cake", "isolation" | "diffserv") | ("sfq", _)
            );
            if !may_pass {
                let lane = |arrival: &Arrival| lane(&case.before, arrival);
                check_order(&case.after, &arrivals, &events, lane);
            }
        }
    }
}

fn check_change(case: &Case, link: &mut Link<'_>, to: &QueueConfig, now: Time) {
    let (name, label) = (case.name(), &case.after);
    let before = link.queue.backlog().packets;
    let dropped = link.change(to, now);
    let after = link.queue.backlog().packets;
    let purges = ["red_linux", "sfb"].contains(&name);
    let is_cut = ["limit", "byte_limit", "memory_limit"].contains(&case.key);
    let loses_tins = (name, case.key) == ("cake", "diffserv");
    assert!(before > 0, "{label}: the queue is empty");
    if purges {
        assert_eq!((dropped, after), (before, 0), "{label}");
    } else if !is_cut && !loses_tins {
        // An idle link with a shaper that lets go takes one.
        assert!(dropped == 0 && after + 1 >= before, "{label}: {before}, {after}");
    }
    if case.key == "limit" {
        let limit = aqmlab_core::params::read_value(&case.text.into()).map_or(u64::MAX, packets);
        // These keep excess packets until they are sent, or until the next packet arrives.
        let keeps = ["droptail", "cake"].contains(&name);
        assert!(keeps || after <= limit, "{label}: {after} packets");
        link.limit = limit.max(if keeps { after } else { 0 });
    }
}
