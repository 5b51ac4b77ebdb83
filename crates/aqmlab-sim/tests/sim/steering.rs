//! Runs that are steered: a parameter that changes keeps the queue's state, a replacement does
//! not, and the scenario that a steered run leaves repeats it.

use crate::common::{BESIDE, LINE, Settings, ms, not_set, repeated, seen, set, try_set};
use aqmlab_core::{Span, Time};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::{Run, RunResult, Scenario};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;

fn scene(settings: &Settings) -> Scenario {
    let scene = [
        ("duration", "30s"),
        ("links.down", "{ rate = '5mbit', delay = '10ms', queue = 'codel' }"),
        ("links.up", "{ rate = '50mbit', delay = '10ms' }"),
        ("transport.profile", "linux-6"),
        ("flows.bulk.count", "4"),
    ];
    crate::common::scenario(LINE, &[&scene, settings].concat())
}

fn replace(run: &mut Run, key: &str, text: &str) -> Span {
    try_set(run, key, text, true).unwrap()
}

/// What the bottleneck shows under this name.
fn sees(run: &Run, what: &str) -> f64 {
    seen(run, Subject::Link(0), what).unwrap()
}

/// A run of 30 s in which this happens at the multiples of an interval.
fn steered(every: Option<u64>, act: impl Fn(&mut Run)) -> (RunResult, Scenario) {
    let mut run = Run::new(scene(&[]), 0);
    for step in 1..every.map_or(1, |every| 30_000 / every) {
        run.advance(ms(step * every.unwrap())).unwrap();
        act(&mut run);
    }
    let scenario = Scenario::clone(run.scenario());
    (run.finish().unwrap(), scenario)
}

/// A value that is the present one is no change, however often it is set: by its key, and with the
/// whole queue.
#[test]
fn an_equal_value_does_nothing() {
    let (never, _) = steered(None, |_| ());
    assert!(never.links[0].counts.dropped_total() > 300, "CoDel is at work");
    for every in [1_000, 200, 100] {
        for (key, text) in [("queue.target", "\"5ms\""), ("links.down.queue", "\"codel\"")] {
            let (result, scenario) = steered(Some(every), |run| {
                set(run, key, text);
            });
            assert!(scenario.changes.is_empty());
            assert_eq!(result.digest(), never.digest(), "{key} every {every} ms");
            assert_eq!(result.links[0].counts, never.links[0].counts);
        }
    }
}

/// Alternating a target by a microsecond has almost no effect; restarting every 100 ms disables
/// CoDel.
#[test]
fn a_parameter_that_moves_keeps_codel_at_work() {
    let p95 = |result: &RunResult| result.links[0].sojourn.quantiles[3];
    let (never, _) = steered(None, |_| ());
    let nudge = |run: &mut Run, act: fn(&mut Run, &str, &str) -> Span| {
        let at = run.time().as_nanos() / 100_000_000 % 2;
        act(run, "queue.target", if at == 0 { "\"5001us\"" } else { "\"5ms\"" });
    };
    let (changed, scenario) = steered(Some(100), |run| nudge(run, set));
    assert_eq!(scenario.changes.len(), 298);
    let (drops, usual) = (changed.links[0].counts.dropped_total(), never.links[0].counts);
    assert!(drops.abs_diff(usual.dropped_total()) < usual.dropped_total() / 5, "{drops}");
    assert!((p95(&changed) / p95(&never) - 1.0).abs() < 0.3, "{} {}", p95(&changed), p95(&never));
    let (replaced, _) = steered(Some(100), |run| nudge(run, replace));
    assert!(p95(&replaced) > 10.0 * p95(&never), "{}", p95(&replaced));
}

#[test]
fn a_replacement_begins_anew_with_the_packets() {
    let mut run = Run::new(scene(&[]), 0);
    run.advance(ms(10_000)).unwrap();
    while sees(&run, "dropping") == 0.0 {
        run.step().unwrap();
    }
    let (count, backlog) = (sees(&run, "count"), sees(&run, "backlog_packets"));
    assert!(count > 1.0 && backlog > 2.0);
    set(&mut run, "queue.interval", "\"90ms\"");
    run.step().unwrap();
    assert!(sees(&run, "count") >= count);
    replace(&mut run, "queue", "\"codel\"");
    let at = run.time() + Span::from_nanos(2);
    run.advance(at).unwrap();
    assert_eq!((sees(&run, "count"), sees(&run, "dropping")), (0.0, 0.0));
    assert!((sees(&run, "backlog_packets") - backlog).abs() <= 3.0);
    let (_, scenario) = repeated(run);
    assert_eq!(scenario.to_toml().matches("replace = \"true\"").count(), 1);
}

#[test]
fn what_a_running_queue_cannot_take_is_an_error_with_its_key() {
    let mut run = Run::new(scene(&[("queue", "fq_codel")]), 0);
    run.advance(ms(1_000)).unwrap();
    let whole = "{ discipline = \"fq_codel\", flows = 512 }";
    for (key, value) in [("queue.flows", "512"), ("links.down.queue", whole)] {
        let error = not_set(&mut run, key, value);
        assert!(error.starts_with("links.down.queue.flows: "), "{error}");
        assert!(error.contains("`replace`"), "{error}");
    }
    let rate = try_set(&mut run, "links.down.rate", "'1mbit'", true);
    let error = rate.unwrap_err().to_string();
    assert!(error.contains("only a queue can be replaced"), "{error}");
    assert!(run.scenario().changes.is_empty());
    replace(&mut run, "queue.flows", "512");
    // From then on it has 512.
    set(&mut run, "queue.target", "\"6ms\"");
    repeated(run);
}

/// A limit in bandwidth-delay products is that of the link at the time of the change.
#[test]
fn a_limit_follows_the_link_at_a_change() {
    let mut run =
        Run::new(scene(&[("queue", "{ discipline = \"droptail\", limit = \"2bdp\" }")]), 0);
    run.advance(ms(5_000)).unwrap();
    let before = sees(&run, "backlog_bytes");
    set(&mut run, "links.down.rate", "\"20mbit\"");
    set(&mut run, "queue.drop", "\"head\"");
    run.advance(ms(15_000)).unwrap();
    assert!(sees(&run, "backlog_bytes") > 2.0 * before, "{before}");
}

/// The rates of a stopped flow are those of its time. A second of data is in flight at the end.
#[test]
fn a_stopped_flow_has_the_goodput_of_its_time() {
    let cbr =
        r#"{ path = ["down"], return_path = ["up"], workload = { kind = "cbr", rate = "2mbit" } }"#;
    let settings = |stop: &'static str, duration| {
        [
            ("links.down.rate", "10mbit"),
            ("links.down.delay", "500ms"),
            ("links.up.delay", "500ms"),
            ("flows.load", cbr),
            ("changes", stop),
            ("duration", duration),
        ]
    };
    let stop = r#"[
        { at = "9999ms", key = "flows.bulk.active", value = false },
        { at = "9999ms", key = "flows.load.active", value = false },
    ]"#;
    let run = |settings: &Settings| Run::new(scene(settings), 0).finish().unwrap();
    let (whole, stopped) = (run(&settings("[]", "9999ms")), run(&settings(stop, "30s")));
    assert_eq!(whole.flows.len(), stopped.flows.len());
    for (whole, stopped) in whole.flows.iter().zip(&stopped.flows) {
        assert_eq!((stopped.goodput, stopped.throughput), (whole.goodput, whole.throughput));
    }
    let arrived = |run: &RunResult| run.flows.iter().map(|flow| flow.delivered).sum::<u64>();
    assert!(arrived(&stopped) > arrived(&whole) + 100_000, "what was in flight arrives");
}

/// Changes that were planned follow those that are made before them, and may become impossible.
#[test]
fn planned_changes_follow_what_is_set_before_them() {
    let plan = r#"[
        { at = "4s", key = "queue.target", value = "20ms" },
        { at = "5s", key = "flows.late", value = { path = ["down"], return_path = ["up"] } },
        { at = "6s", key = "links.down.rate", value = "8mbit" },
        { at = "9s", key = "flows.late.active", value = false },
        { at = "10s", key = "queue", value = "pie" },
    ]"#;
    let mut run_of = Run::new(scene(&[("changes", plan), ("duration", "12s")]), 0);
    run_of.advance(ms(1_000)).unwrap();
    set(&mut run_of, "queue.limit", "\"50p\"");
    set(&mut run_of, "links.down.rate", "\"3mbit\"");
    set(&mut run_of, "flows.early", r#"{ path = ["down"], return_path = ["up"], count = 2 }"#);
    assert!(not_set(&mut run_of, "flows.late", BESIDE).contains("exists already"));
    run_of.advance(ms(4_000)).unwrap();
    // A simultaneous `set` precedes planned changes.
    set(&mut run_of, "queue.interval", "\"50ms\"");
    run_of.advance(ms(7_000)).unwrap();
    set(&mut run_of, "flows.early.active", "false");
    set(&mut run_of, "queue", "\"fq_codel\"");
    let (result, scenario) = repeated(run_of);
    let keys: Vec<String> =
        scenario.changes.iter().map(|change| scenario.changed_key(&change.effect)).collect();
    assert_eq!(keys[3..6], ["links.down.queue", "links.down.queue", "flows.late"]);
    assert_eq!(scenario.changes.len(), 11);
    let names: Vec<&str> = scenario.flows.iter().map(|flows| flows.name.as_str()).collect();
    assert_eq!(names, ["bulk", "early", "late"]);
    assert!(result.groups.iter().all(|group| group.started > 0));
}

/// A key and a value that can be set in any scene, and how long the run goes on before.
fn any_set() -> impl Strategy<Value = (u64, bool, String, String)> {
    let rate = (1u32..30).prop_map(|rate| ("links.down.rate".into(), format!("\"{rate}mbit\"")));
    let delay = (0u32..40).prop_map(|delay| ("links.up.delay".into(), format!("\"{delay}ms\"")));
    let loss = (0u32..3).prop_map(|loss| ("links.down.loss".into(), format!("0.0{loss}")));
    let burst =
        (1u32..9).prop_map(|r| ("links.down.loss".into(), format!("{{ p = 0.001, r = 0.{r} }}")));
    let limit = (5u32..200).prop_map(|limit| ("queue.limit".into(), format!("\"{limit}p\"")));
    let target = (1u32..30).prop_map(|target| ("queue.target".into(), format!("\"{target}ms\"")));
    let ecn = any::<bool>().prop_map(|ecn| ("queue.ecn".into(), ecn.to_string()));
    let flows = (1u32..40).prop_map(|flows| ("queue.flows".into(), flows.to_string()));
    let queues = ["codel", "fq_codel", "pie", "red_linux", "sfq", "cake", "dualpi2", "droptail"];
    let queue = prop::sample::select(queues.to_vec())
        .prop_map(|queue| ("links.down.queue".into(), format!("\"{queue}\"")));
    let begin = (0u32..6).prop_map(|number| (format!("flows.x{number}"), BESIDE.into()));
    let stop = (0u32..6).prop_map(|number| (format!("flows.x{number}.active"), "false".into()));
    let change = prop_oneof![
        2 => rate, 1 => delay, 1 => loss, 1 => burst, 3 => limit, 3 => target, 1 => ecn, 1 => flows,
        3 => queue, 1 => begin, 1 => stop,
    ];
    let gap = prop_oneof![0u64..3, 0u64..200_000_000];
    (gap, prop::bool::weighted(0.2), change)
        .prop_map(|(gap, replace, (key, text))| (gap, replace, key, text))
}

proptest! {
    #![proptest_config(Config { cases: 60, failure_persistence: None, ..Config::default() })]

    /// Invalid changes are rejected; the remaining scenario repeats the run bit by bit, also from a
    /// file.
    #[test]
    fn random_changes_are_repeated_by_the_scenario(
        sets in prop::collection::vec(any_set(), 1..80),
        queue in prop::sample::select(vec!["codel", "fq_codel", "red", "cake"]),
        planned in any::<bool>(),
    ) {
        let plan = r#"[
            { at = "700ms", key = "queue.limit", value = "77p" },
            { at = "1500ms", key = "links.down.rate", value = "7mbit" },
        ]"#;
        let mut settings = vec![("queue", queue), ("duration", "3s"), ("record.level", "packets")];
        if planned {
            settings.push(("changes", plan));
        }
        let mut steered = Run::new(scene(&settings), 1);
        let mut now = 0;
        for (gap, replace, key, text) in sets {
            now += gap;
            steered.advance(Time::from_nanos(now)).unwrap();
            // Some keys do not belong to the present queue, or to existing flows.
            let _ = try_set(&mut steered, &key, &text, replace && key.contains("queue"));
        }
        repeated(steered);
    }
}
