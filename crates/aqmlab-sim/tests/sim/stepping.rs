//! A run in steps with changes equals the run of the resulting scenario.

use std::sync::Arc;

use crate::common::{LINE, Settings, ms, not_set, repeated, seen, set};
use aqmlab_core::{Span, Time};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::{Run, Scenario, WorkLimit, run};

/// Bulk flows of both kinds, a call and pages over one link.
const SCENE: &Settings = &[
    ("duration", "8s"),
    ("links.down.delay", "10ms"),
    ("links.down.queue", "codel"),
    ("links.up.rate", "50mbit"),
    ("links.up.delay", "10ms"),
    ("transport.profile", "linux-6"),
    ("flows.bulk.count", "2"),
    ("flows.file", "{ path = 'down', return_path = 'up', size = '300000b', start = '500ms' }"),
    ("flows.call", "{ path = 'down', return_path = 'up', workload = 'voip' }"),
    ("flows.web", "{ path = 'down', return_path = 'up', workload = 'page' }"),
    ("record.level", "packets"),
];

const LATE: &str = r#"{ path = ["down"], return_path = ["up"], count = 3, access_delay = "5ms" }"#;

fn scene(settings: &Settings) -> Scenario {
    crate::common::scenario(LINE, &[SCENE, settings].concat())
}

/// All that can change: rate, delay, loss, queue and a parameter of it, groups that begin and stop.
const CHANGES: [(u64, &str, &str); 11] = [
    (700, "links.down.rate", "\"4mbit\""),
    (1_100, "queue.target", "\"20ms\""),
    (1_500, "flows.late", LATE),
    (2_000, "links.down.delay", "\"2ms\""),
    (2_200, "links.up.loss", "0.01"),
    (2_500, "links.down.queue", "{ discipline = \"fq_pie\", limit = \"300p\" }"),
    (3_000, "flows.web.active", "false"),
    (3_500, "flows.bulk.active", "false"),
    (4_000, "links.down.rate", "\"40mbit\""),
    (4_500, "links.up.loss", "\"none\""),
    (5_000, "flows.call.active", "false"),
];

fn changed() -> Run {
    let mut run = Run::new(scene(&[]), 3);
    for (at, key, text) in CHANGES {
        run.advance(ms(at)).unwrap();
        assert_eq!(set(&mut run, key, text), Span::from_millis(at));
    }
    run
}

#[test]
fn a_run_in_steps_is_the_same_as_one() {
    for queue in ["codel", "pie", "fq_codel", "dualpi2", "cake", "red", "sfq"] {
        let whole = run(&scene(&[("queue", queue)]), 3);
        let mut steps = Run::new(scene(&[("queue", queue)]), 3);
        for step in 0..200 {
            steps.advance(Time::from_nanos(step * 17_123_456)).unwrap();
            if step % 10 == 0 {
                steps.step().unwrap();
            }
        }
        let steps = steps.finish().unwrap();
        assert_eq!((steps.digest(), steps.events), (whole.digest(), whole.events), "{queue}");
    }
}

#[test]
fn a_run_that_was_changed_is_the_run_of_the_scenario_that_it_leaves() {
    let (changed, scenario) = repeated(changed());
    assert_eq!(scenario.changes.len(), CHANGES.len());
    assert_ne!(changed.digest(), run(&scene(&[]), 3).digest());
    assert_eq!(changed.groups.len(), scenario.flows.len());
}

/// A change between two events of one moment comes after both.
#[test]
fn a_change_after_a_single_step_is_repeatable() {
    let mut run_of = Run::new(scene(&[]), 0);
    run_of.advance(ms(900)).unwrap();
    for key in 0..40 {
        let now = run_of.step().unwrap().unwrap();
        let at = set(&mut run_of, "links.down.rate", &format!("\"{}mbit\"", 5 + key % 3));
        assert!(Time::ZERO + at > now);
    }
    repeated(run_of);
}

/// Runs that differ in later changes continue from a common one, also if the run could be over.
#[test]
fn scenarios_that_differ_late_share_a_run() {
    let change = |(at, key, value): (u64, &str, &str)| {
        format!("{{ at = '{at}ms', key = '{key}', value = {value} }}")
    };
    let of = |until: &Settings, numbers: &[usize]| {
        let changes: Vec<_> = numbers.iter().map(|number| change(CHANGES[*number])).collect();
        let changes = format!("[{}]", changes.join(", "));
        Arc::new(scene(&[until, &[("changes", &*changes)]].concat()))
    };
    for until in [&[][..], &[("until", "file")]] {
        let first = of(until, &[0, 1, 2, 3, 6, 8]);
        for (numbers, at) in
            [(&[0, 1, 2, 4, 5, 9][..], 2_000), (&[0, 1, 2][..], 2_000), (&[0, 1, 3, 10][..], 1_500)]
        {
            let other = of(until, numbers);
            let until = Span::from_millis(at);
            assert_eq!(first.first_difference(&other), Some(until));
            assert_eq!(other.first_difference(&first), Some(until));
            let shared = Run::shared(&other, 3, until, WorkLimit::default()).unwrap();
            for each in [&first, &other] {
                let own = shared.fork().unwrap().continued(each, None).finish().unwrap();
                let whole = run(each, 3);
                assert_eq!((own.digest(), own.events), (whole.digest(), whole.events));
            }
        }
        assert_eq!(first.first_difference(&first), None);
    }
    let [one, two] = ["3", "4"].map(|count| {
        let late = change((700, "flows.late", &LATE.replace('3', count)));
        scene(&[("changes", &format!("[{late}]"))])
    });
    assert_eq!(one.first_difference(&two), Some(Span::from_millis(700)));
    assert_eq!(one.first_difference(&scene(&[("queue", "pie")])), None);
}

#[test]
fn what_a_change_does_is_seen() {
    let mut plain = Run::new(scene(&[]), 0);
    let mut slow = Run::new(scene(&[]), 0);
    for each in [&mut plain, &mut slow] {
        each.advance(ms(2_000)).unwrap();
    }
    set(&mut slow, "links.down.rate", "\"1mbit\"");
    set(&mut slow, "flows.bulk.active", "false");
    let delivered = |run: &Run| run.flows().map(|flow| flow.delivered).sum::<u64>();
    assert_eq!(delivered(&plain), delivered(&slow));
    for each in [&mut plain, &mut slow] {
        each.advance(ms(6_000)).unwrap();
    }
    assert!(delivered(&slow) < delivered(&plain) / 2);
    let bulk = slow.flows().filter(|flow| flow.group == 0 && flow.is_active).count();
    assert_eq!(bulk, 0, "the flows have ended");
}

/// A link offers what its rates give, each for its time.
#[test]
fn the_capacity_counts_each_rate_for_its_time() {
    let change = "[{ at = \"2s\", key = \"links.down.rate\", value = \"4mbit\" }]";
    let result = run(&scene(&[("changes", change)]), 0);
    let offered = (2.0 * 10e6 + 6.0 * 4e6) / 8.0;
    // The transmission during the change ends at the old rate: 1500 bytes at most.
    let late = result.links[0].capacity - offered;
    assert!((0.0..1500.0 * 0.6).contains(&late), "{late}");
    assert!(result.links[0].utilisation <= 1.0);
    // With what the link adds to packets, too.
    let framed = [("changes", change), ("links.down.overhead", "40")];
    let result = run(&scene(&framed), 0);
    let late = result.links[0].capacity - offered;
    assert!((-1.0..1540.0 * 0.6).contains(&late), "{late}");
    let carried = result.links[0].counts.delivered_bytes as f64;
    assert!(carried / result.links[0].capacity < 1460.0 / 1500.0);
    assert!(carried / result.links[0].capacity > 0.9);
}

/// Losses begin and end, and no other packet is lost on the link.
#[test]
fn losses_begin_and_end() {
    let lost = |changes: &str| run(&scene(&[("changes", changes)]), 0).links[0].way;
    let begins = r#"{ at = "2s", key = "links.down.loss", value = 0.05 }"#;
    let ends = r#"{ at = "3s", key = "links.down.loss", value = "none" }"#;
    let (all, part) = (lost(&format!("[{begins}]")), lost(&format!("[{begins}, {ends}]")));
    assert!(all.lost > 100 && part.lost > 20, "{all:?}, {part:?}");
    assert!(part.lost < all.lost / 2);
}

/// For any sequence of replacements, no packet is lost or created.
#[test]
fn packets_are_conserved_when_any_queue_follows_any_other() {
    let names: Vec<&str> = aqmlab_aqm::registry::entries().iter().map(|entry| entry.name).collect();
    for (index, name) in names.iter().enumerate() {
        let next = names[(index + 7) % names.len()];
        let mut run = Run::new(scene(&[("queue", name), ("duration", "2s")]), 0);
        run.advance(ms(1_000)).unwrap();
        set(&mut run, "queue", next);
        run.advance(ms(1_500)).unwrap();
        set(&mut run, "links.down.queue", name);
        let result = run.finish().unwrap();
        assert!(result.links[0].counts.delivered > 100, "{name}, {next}");
    }
}

#[test]
fn a_snapshot_is_restored_bit_for_bit() {
    let mut run = changed();
    run.step().unwrap();
    let copy = run.fork().unwrap();
    let seen = |run: &Run| {
        let mut seen = Vec::new();
        run.observe(&mut |subject, name, value| seen.push(format!("{subject:?} {name} {value}")));
        (seen, run.events(), run.time())
    };
    let before = seen(&run);
    run.advance(ms(6_000)).unwrap();
    set(&mut run, "queue", "\"droptail\"");
    run.advance(ms(7_000)).unwrap();
    assert_ne!(seen(&run), before);
    run.restore(&copy);
    assert_eq!(seen(&run), before);
    assert_eq!(run.scenario().changes.len(), CHANGES.len());
    let whole = changed().finish().unwrap();
    assert_eq!(run.finish().unwrap().digest(), whole.digest());
}

#[test]
fn back_at_a_moment_later_changes_are_kept_or_dropped() {
    let mut run = changed();
    run.rewind(ms(1_200), None).unwrap();
    assert_eq!(run.time(), ms(1_200));
    assert_eq!(run.scenario().changes.len(), CHANGES.len());
    run.drop_later_changes();
    assert_eq!(run.scenario().changes.len(), 2);
    assert_eq!(run.scenario().flows.len(), 4);
    set(&mut run, "flows.late", LATE);
    repeated(run);
}

#[test]
fn packets_are_watched_from_queue_to_link() {
    let mut run =
        Run::new(scene(&[("queue", "{ discipline = \"droptail\", limit = \"20p\" }")]), 0);
    run.watch_packets(Some(0));
    run.advance(ms(3_000)).unwrap();
    let events = run.take_events();
    let of = |arrives, drops| {
        let same = events.iter().filter(|event| event.arrives == arrives);
        same.filter(|event| event.packet.dropped.is_some() == drops).count()
    };
    let [arrived, left, dropped] = [of(true, false), of(false, false), of(false, true)];
    let count = |name: &str| seen(&run, Subject::Link(0), name).unwrap() as usize;
    assert!(dropped > 0 && left > 1000);
    assert_eq!(dropped, count("dropped"));
    // The last of them may be in transmission.
    assert!((0..=1).contains(&(left - count("delivered_packets"))));
    assert_eq!(arrived, left + dropped + count("backlog_packets"));
    assert!(run.take_events().is_empty());
}

#[test]
fn a_change_that_cannot_be_is_refused_and_changes_nothing() {
    let mut run = Run::new(scene(&[]), 0);
    run.advance(ms(1_000)).unwrap();
    for (key, value, expected) in [
        ("links.down.rat", "\"1mbit\"", "cannot change during a run"),
        ("links.dwn.rate", "\"1mbit\"", "down"),
        ("queue.taget", "\"1ms\"", "target"),
        ("links.down.rate", "\"fast\"", "links.down.rate: `fast`"),
        ("links.down.loss", "2.0", "links.down.loss: `2"),
        ("links.down.queue.taget", "\"1ms\"", "links.down.queue.taget: unknown key"),
        ("flows.bulk.transport.mss", "\"500b\"", "cannot change during a run"),
        ("flows.bulk", LATE, "already"),
        ("flows.bulk.active", "true", "false"),
        ("flows.late", "{ path = [\"down\"], return_path = [\"up\"], start = \"1ms\" }", "before"),
        ("seed", "3", "cannot change during a run"),
        ("flows.bulk.transport.ecn", "\"accurate\"", "flows.bulk.transport.ecn"),
        ("flows.bulk.transport.pacing", "\"x\"", "bulk.transport.pacing: `x`: expected true"),
        (
            "flows.bulk.transport.congestion_control",
            "\"cubi\"",
            "bulk.transport.congestion_control: `",
        ),
        (
            "flows.bulk.transport.congestion_control.beta2",
            "1",
            "bulk.transport.congestion_control.beta2: ",
        ),
        (
            "flows.bulk.transport.congestion_control",
            "{ algorithm = \"steered\", window = \"unlimited\" }",
            "also a pacing_rate",
        ),
        ("flows.bulk.transport.pacing.x", "1", "no keys of its own"),
        ("flows.bul.transport.pacing", "true", "bulk"),
        ("flows.bulk.2.transport.pacing", "true", "an index from 0 to 1"),
        ("flows.web.0.transport.pacing", "true", "flows of applications have no index"),
        ("flows.bulk.0.size", "true", "cannot change during a run"),
    ] {
        let error = not_set(&mut run, key, value);
        assert!(error.contains(expected), "{key}: {error}");
    }
    assert!(run.scenario().changes.is_empty());
    let whole = aqmlab_sim::run(&scene(&[]), 0);
    assert_eq!(run.finish().unwrap().digest(), whole.digest());
}
