//! Every profile from end to end.

use crate::common::{Settings, read_again, result, scenario};
use aqmlab_core::{Limit, Span};
use aqmlab_sim::RunResult;
use aqmlab_tcp::Profile;
use aqmlab_tcp::params::Stack;

const SHARED: &str = r#"
    duration = "60s"
    bottleneck = "down"
    [links.down]
    rate = "10mbit"
    delay = "20ms"
    queue = { discipline = "droptail", limit = "40p" }
    [links.up]
    rate = "10mbit"
    delay = "20ms"
    [flows.bulk]
    count = 2
    path = "down"
    return_path = "up"
    [flows.short]
    count = 20
    path = "down"
    return_path = "up"
    size = "60kb"
    start = { uniform = ["5s", "6s"] }
"#;

const PROFILES: [&str; 8] = [
    "rfc",
    "ns2-sack1",
    "rfc-newreno",
    "linux-6",
    "linux-6.12",
    "linux-6.1",
    "windows",
    "linux-l4s",
];

fn shared(settings: &Settings) -> RunResult {
    result(SHARED, settings)
}

#[test]
fn every_profile_fills_the_link_and_finishes() {
    for profile in PROFILES {
        for queue in ["droptail", "codel", "fq_codel", "pie"] {
            let result =
                shared(&[("transport.profile", profile), ("links.down.queue.discipline", queue)]);
            let place = format!("{profile} over {queue}");
            assert!(result.links[0].utilisation > 0.8, "{place}");
            for flow in &result.flows {
                assert!(flow.size.is_none() || flow.finish.is_some(), "{place}");
                // Nothing is sent again that was neither lost nor late.
                let dropped = result.links[0].counts.dropped_total();
                assert!(flow.stats.unwrap().retransmissions <= 2 * dropped + 20, "{place}");
            }
        }
    }
}

/// CUBIC, ten segments (RFC 6928), timeouts of 200 ms and more, on Linux's state machine.
#[test]
fn without_a_profile_a_sender_is_linuxs() {
    let usual = scenario(SHARED, &[]);
    let transport = &usual.flows[0].transport;
    assert_eq!((transport.profile, transport.machine()), (Profile::Linux6, Stack::Linux612));
    assert_eq!(transport.congestion_control.name(), "cubic");
    assert_eq!(transport.initial_window, Limit::Packets(10));
    assert_eq!(transport.min_rto, Span::from_millis(200));
    assert_eq!(transport.mss.get() + transport.header.get(), 1500);
    assert_eq!(usual, scenario(SHARED, &[("transport.profile", "linux-6")]));
    assert_eq!(shared(&[]).groups[0].stack, Some("linux-6.12"));
}

/// Probes and time-based detection are there to save timeouts.
#[test]
fn rack_and_probes_save_timeouts() {
    let timeouts = |recovery: &str| {
        let result = shared(&[
            ("transport.profile", "rfc"),
            ("transport.recovery", recovery),
            ("transport.min_rto", "200ms"),
        ]);
        result.flows.iter().map(|flow| flow.stats.unwrap().timeouts).sum::<u64>()
    };
    let (rack, sack) = (timeouts("rack"), timeouts("sack"));
    assert!(4 * rack < 3 * sack, "{rack} {sack}");
}

/// The profile of one group replaces what the scenario says of all.
#[test]
fn groups_have_profiles_of_their_own() {
    let settings = [
        ("transport.profile", "linux-6"),
        ("flows.short.transport.profile", "rfc-newreno"),
        ("flows.short.transport.min_rto", "300ms"),
    ];
    let scenario = scenario(SHARED, &settings);
    let group = |name: &str| scenario.flows.iter().find(|flow| flow.name == name).unwrap();
    assert!(group("bulk").transport.prr && !group("short").transport.prr);
    assert_eq!(group("short").transport.min_rto.to_string(), "300ms");
    read_again(&scenario);
}
