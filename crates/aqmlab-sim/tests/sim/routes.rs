//! Routes that change during a run.

use crate::common::{Settings, read_again};
use aqmlab_sim::{RunResult, Scenario, run};

const TEXT: &str = r#"
    duration = "3s"
    bottleneck = "down"
    links.down = { rate = "10mbit", delay = "20ms" }
    links.behind = { rate = "10mbit", delay = "20ms" }
    links.detour = { rate = "10mbit", delay = "50ms" }
    links.up = { rate = "10mbit", delay = "10ms" }
    flows.some = { path = ["down", "behind"], return_path = "up" }
"#;

fn scenario(set: &Settings) -> Scenario {
    crate::common::scenario(TEXT, set)
}

fn result(set: &Settings) -> RunResult {
    run(&scenario(set), 0)
}

/// The packets that arrived at each link.
fn arrived(result: &RunResult) -> Vec<u64> {
    result.links.iter().map(|link| link.counts.arrived).collect()
}

/// Packets sent after the change use the new links; packets in flight continue along the old ones.
#[test]
fn what_is_sent_after_the_change_takes_the_new_route() {
    let result = result(&[
        ("flows.some.workload", r#"{ kind = "cbr", rate = "1mbit", packet = "1000b" }"#),
        ("flows.some.reroutes", r#"[{ at = "1s", path = ["detour"] }]"#),
    ]);
    // A packet each 8 ms from 0 on; that of 1 s is the first on the detour.
    assert_eq!(arrived(&result), [125, 125, 251, 0]);
    let datagrams = result.flows[0].datagrams.as_ref().unwrap();
    // The last seven are still in propagation, of 50 ms.
    assert_eq!((datagrams.sent, datagrams.received), (376, 369));
    let transmission = 0.0008;
    assert!((datagrams.delay.min.as_secs_f64() - (0.04 + 2.0 * transmission)).abs() < 1e-9);
    assert!((datagrams.delay.max.as_secs_f64() - (0.05 + transmission)).abs() < 1e-9);
    assert_eq!(result.links[0].counts.delivered, 125);
}

/// Several changes, in any order in the file; in both directions, and for members with access
/// delays, which remain.
#[test]
fn tcp_goes_on_over_changes_of_both_directions() {
    let changes = r#"[
        { at = "2s", path = ["down", "behind"], return_path = ["up"] },
        { at = "1s", path = ["detour"], return_path = ["behind"] }]"#
        .replace('\n', " ");
    let set = |access| {
        [
            ("flows.some.count", "2"),
            ("flows.some.size", "\"1mb\""),
            ("flows.some.access_delay", access),
            ("flows.some.delays", "true"),
            ("flows.some.reroutes", &*changes),
            ("duration", "\"20s\""),
        ]
    };
    for (access, least) in [("\"0ms\"", 0.04), ("\"30ms\"", 0.07)] {
        let result = result(&set(access));
        assert!(result.flows.iter().all(|flow| flow.delivered == 1 << 20), "{access}");
        let arrived = arrived(&result);
        assert!(arrived.iter().all(|packets| *packets > 50), "{access}: {arrived:?}");
        for flow in &result.flows {
            assert!(flow.delays.unwrap().0 > least, "{access}: {:?}", flow.delays);
        }
    }
}

#[test]
fn changes_read_back_and_wrong_ones_are_refused() {
    let changed = scenario(&[("flows.some.reroutes", r#"[{ at = "1s", path = ["detour"] }]"#)]);
    assert!(read_again(&changed) != scenario(&[]));
    for (value, expected) in [
        ("[{ at = \"1s\", path = [\"detuor\"] }]", "flows.some.reroutes.path: `detuor`"),
        ("[{ path = [\"detour\"] }]", "the key `at` is missing"),
        ("[{ at = \"1s\" }]", "nothing changes"),
        ("[{ at = 1, path = [\"detour\"] }]", "flows.some.reroutes.0.at"),
        ("\"detour\"", "a list in brackets, each a table"),
        ("[{ at = \"1s\", way = [\"detour\"] }]", "unknown key"),
    ] {
        let error = crate::common::refused(TEXT, &[("flows.some.reroutes", value)]);
        assert!(error.contains(expected), "{error}");
    }
}

/// Disciplines receive the longest round-trip time over a link, on any route.
#[test]
fn round_trips_count_over_all_routes() {
    let rtt =
        |set: &Settings, link: usize| scenario(set).base_rtt_over(link).as_nanos() / 1_000_000;
    let both = [(
        "flows.some.reroutes",
        r#"[{ at = "1s", path = ["detour"] },
        { at = "2s", return_path = ["behind"] }]"#,
    )]
    .map(|(key, value)| (key, value.replace('\n', " ")));
    let both = both.each_ref().map(|(key, value)| (*key, &**value));
    assert_eq!([0, 1, 2, 3].map(|link| rtt(&[], link)), [50, 50, 0, 50]);
    assert_eq!([0, 1, 2, 3].map(|link| rtt(&both, link)), [50, 70, 70, 60]);
}
