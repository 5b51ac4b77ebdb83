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

/// The settings with one value changed, where it is allowed.
fn with(
    name: &str,
    settings: &[(String, String)],
    key: &str,
    text: &str,
) -> Option<(Vec<(String, String)>, QueueConfig)> {
    let mut settings: Vec<_> = settings.iter().filter(|(k, _)| k != key).cloned().collect();
    settings.push((key.to_string(), text.to_string()));
    let config = try_config(name, &settings).ok()?;
    Some((settings, config))
}

/// Each change of one parameter of each variant, by key: the settings before and after.
struct Case {
    name: &'static str,
    before: Vec<(String, String)>,
    key: &'static str,
    after: Vec<(String, String)>,
    to: QueueConfig,
}

impl Case {
    fn label(&self) -> String {
        let Case { name, before, key, after, .. } = self;
        let (_, text) = after.last().expect("the key is the last");
        format!("{name} {before:?} {key} = {text}")
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, before) in variants() {
        let of = PRESETS.iter().find(|preset| preset.name == name).map_or(name, |preset| preset.of);
        let entry = entries().into_iter().find(|entry| entry.name == of).unwrap();
        let from = config(name, &before);
        for spec in entry.params {
            let texts = VALUES.iter().copied().chain(spec.choices.iter().copied());
            for text in texts {
                let Some((after, to)) = with(name, &before, spec.name, text) else { continue };
                if to != from {
                    let before = before.clone();
                    cases.push(Case { name, before, key: spec.name, after, to });
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
        let is_fixed = match (case.name, case.key) {
            ("cake", "isolation") | ("sfq", "flows") => false,
            (_, "flows") => true,
            (_, key) => is_fixed(key),
        };
        match config(case.name, &case.before).transition(&case.to) {
            Ok(transition) => {
                assert_eq!((transition, is_fixed), (Transition::Change, false), "{}", case.label());
            }
            Err(error) => {
                assert!(is_fixed && error.key == case.key, "{}: {error}", case.label());
                assert!(error.to_string().contains("`replace`"), "{error}");
            }
        }
    }
}

#[test]
fn an_equal_queue_is_no_change_and_another_discipline_is_a_replacement() {
    for (name, settings) in variants() {
        let config = config(name, &settings);
        assert_eq!(config.transition(&config.clone()).unwrap(), Transition::None, "{name}");
        let other = QueueConfig::named(if config.name() == "step" { "blue" } else { "step" });
        assert_eq!(config.transition(&other.unwrap()).unwrap(), Transition::Replace, "{name}");
    }
}

/// Disciplines that restart something at every change in Linux, even to equal values.
fn restarts(name: &str, settings: &[(String, String)]) -> bool {
    let has = |key: &str| settings.iter().any(|(name, _)| name == key);
    match name {
        "red_linux" | "sfb" | "choke" => true,
        "sfq" => has("perturb"),
        // Tins that take turns begin with the first.
        "cake" => !has("bandwidth"),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..Default::default() })]

    /// Writing the parameters with their present values changes nothing.
    #[test]
    fn written_again_parameters_change_nothing(arrivals in traffic()) {
        for (name, settings) in variants() {
            if restarts(name, &settings) {
                continue;
            }
            let label = format!("{name} {:?}", &settings[1..]);
            let config = config(name, &settings);
            let link = || link(&label, shapes(&settings), config.build_checked(&env()));
            let changed = link().run_with(&arrivals, |link, id, now| {
                if id % 7 == 3 {
                    assert_eq!(link.change(&config, now), 0, "{label}");
                }
            });
            prop_assert_eq!(link().run(&arrivals), changed, "{} differs", label);
        }
    }
}

/// Effects of the start that a change cannot repeat: the first timer, the first allowance, the
/// initial tokens, the estimate of the bandwidth, and random numbers drawn by the change.
fn begins_differently(case: &Case) -> bool {
    let estimates = case.before.iter().any(|(key, _)| key == "autorate_ingress");
    (estimates && case.key == "bandwidth")
        || matches!(
            (case.name, case.key),
            (_, "tupdate" | "max_burst" | "traffic_burst" | "sustained_rate" | "frequency")
                | ("dualpi2", "target" | "rtt_max")
                | ("sfq", "perturb")
                | ("sfb", _)
        )
        || (case.name == "sfq" && restarts("sfq", &case.before))
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
        let from = config(case.name, &case.before);
        if from.transition(&case.to).is_err() {
            continue;
        }
        let label = case.label();
        let shapes = shapes(&case.before) || shapes(&case.after);
        let link = |config: &QueueConfig| Link {
            limit: u64::MAX,
            ..link(&label, shapes, config.build_checked(&env()))
        };
        let mut changed_at_once = link(&from);
        changed_at_once.change(&case.to, Time::ZERO);
        let events = changed_at_once.run(&arrivals);
        let built = link(&case.to).run(&arrivals);
        assert_eq!(events, built, "{label}");
        let config_name = from.name().to_string();
        let is_felt = felt.entry((config_name, case.key)).or_insert(false);
        *is_felt |= built != link(&from).run(&arrivals);
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
        if config(case.name, &case.before).transition(&case.to).is_err() {
            continue;
        }
        let label = case.label();
        for adapted in [false, true] {
            let of = |config: &QueueConfig| match adapted {
                true => adapted_config(config),
                false => config.clone(),
            };
            let (from, to) = (of(&config(case.name, &case.before)), of(&case.to));
            let shapes = shapes(&case.before) || shapes(&case.after);
            let link = link(&label, shapes, from.build_checked(&env()));
            let events = link.run_with(&arrivals, |link, id, now| {
                if id == 300 {
                    check_change(&case, link, &to, now);
                }
            });
            // Packets that are classified again, or whose hash changes, may overtake others.
            let may_pass = matches!(
                (case.name, case.key),
                ("dualpi2", "classifier") | ("cake", "isolation" | "diffserv") | ("sfq", _)
            );
            if !may_pass {
                let lane = |arrival: &Arrival| lane(case.name, &case.before, arrival);
                check_order(&label, &arrivals, &events, lane);
            }
        }
    }
}

fn check_change(case: &Case, link: &mut Link<'_>, to: &QueueConfig, now: Time) {
    let label = case.label();
    let before = link.queue.backlog().packets;
    let dropped = link.change(to, now);
    let after = link.queue.backlog().packets;
    let purges = ["red_linux", "sfb"].contains(&case.name);
    let is_cut = ["limit", "byte_limit", "memory_limit"].contains(&case.key);
    let loses_tins = (case.name, case.key) == ("cake", "diffserv");
    assert!(before > 0, "{label}: the queue is empty");
    if purges {
        assert_eq!((dropped, after), (before, 0), "{label}");
    } else if !is_cut && !loses_tins {
        // An idle link with a shaper that lets go takes one.
        assert!(dropped == 0 && after + 1 >= before, "{label}: {before}, {after}");
    }
    if case.key == "limit" {
        let (_, text) = case.after.last().unwrap();
        let limit =
            aqmlab_core::params::read_value(&text.as_str().into()).map_or(u64::MAX, packets);
        // These keep excess packets until they are sent, or until the next packet arrives.
        let keeps = ["droptail", "cake"].contains(&case.name);
        assert!(keeps || after <= limit, "{label}: {after} packets");
        link.limit = limit.max(if keeps { after } else { 0 });
    }
}
