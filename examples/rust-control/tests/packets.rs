//! The control in scenarios, packet by packet.

use aqmlab_core::Value;
use aqmlab_sim::scenario::Level;
use aqmlab_sim::{Outside, Scenario};
use aqmlab_tcp::congestion::Controls;

/// All controls, with that of this crate.
fn mine() -> Controls {
    Controls::default().with(Box::new(rust_control::MyControlParams::default())).unwrap()
}

fn scenario(control: &str, profile: &str, queue: &str, kept: Option<&str>) -> Scenario {
    let mine = mine();
    let mut set = vec![
        ("transport.profile", profile),
        // A custom control runs in the RFC sender.
        ("transport.stack", "rfc"),
        ("transport.congestion_control.algorithm", control),
        ("transport.ecn", if queue == "codel" { "classic" } else { "off" }),
        ("queue", queue),
        ("duration", "20s"),
        ("record.level", "packets"),
    ];
    set.extend(kept.map(|kept| ("transport.congestion_control.kept", kept)));
    // Bytes are counted, as RFC 5681 recommends; ns-2's Reno does not.
    let counts = (control == "reno").then_some(("transport.congestion_control.byte_counting", "1"));
    set.extend(counts);
    let set: Vec<(String, Value)> =
        set.into_iter().map(|(key, text)| (key.to_string(), text.into())).collect();
    let text = include_str!("../../scenario.toml");
    Scenario::parse_with(text, "scenario.toml", &set, Outside::controls(&mine)).unwrap()
}

/// The control is Reno: every packet at every link has the same times and end.
#[test]
fn it_is_reno_packet_by_packet() {
    for profile in ["rfc", "ns2-sack1", "rfc-newreno", "linux-6", "windows"] {
        for queue in ["droptail", "codel"] {
            let mine = aqmlab_sim::run(&scenario("my_control", profile, queue, None), 0);
            let ours = aqmlab_sim::run(&scenario("reno", profile, queue, None), 0);
            assert_eq!(mine.events, ours.events, "{profile}, {queue}");
            let repairs: u64 =
                ours.flows.iter().map(|flow| flow.stats.unwrap().fast_retransmits).sum();
            let echoes: u64 =
                ours.flows.iter().map(|flow| flow.stats.unwrap().ecn_reductions).sum();
            assert!(repairs > 0 || echoes > 10, "{profile}, {queue}: {repairs}, {echoes}");
            for (mine, ours) in mine.flows.iter().zip(&ours.flows) {
                assert_eq!((mine.stats, mine.finish), (ours.stats, ours.finish));
            }
            for (mine, ours) in mine.links.iter().zip(&ours.links) {
                assert_eq!(mine.packets.len(), ours.packets.len());
                let different = mine.packets.iter().zip(&ours.packets).find(|(a, b)| {
                    (a.arrival, a.end, a.flow, a.dropped, a.ce)
                        != (b.arrival, b.end, b.flow, b.dropped, b.ce)
                });
                assert!(different.is_none(), "{profile}, {queue}: {different:?}");
            }
        }
    }
}

#[test]
fn its_parameter_counts_and_its_scenario_reads_back() {
    let half = scenario("my_control", "rfc", "droptail", None);
    let most = scenario("my_control", "rfc", "droptail", Some("0.9"));
    assert_eq!(half.record.level, Level::Packets);
    assert_ne!(half, most);
    let sent = |scenario: &Scenario| {
        let result = aqmlab_sim::run(scenario, 0);
        result.links[scenario.bottleneck].counts.dropped_total()
    };
    assert!(sent(&most) > 2 * sent(&half), "{} and {}", sent(&most), sent(&half));
    let mine = mine();
    let outside = Outside::controls(&mine);
    let again = Scenario::from_table(most.to_table(), "canonical", &[], outside);
    assert_eq!(again.unwrap(), most);
}

#[test]
fn a_wrong_value_and_a_wrong_name_are_refused() {
    let mine = mine();
    let text = include_str!("../../scenario.toml");
    for (key, value, expected) in [
        ("transport.congestion_control", "my_contrl", "did you mean `my_control`?"),
        (
            "flows.page.transport.congestion_control.algorithm",
            "mine",
            "flows.page.transport.congestion_control.algorithm: `mine`: unknown",
        ),
        ("transport.congestion_control.kept", "2", "congestion_control.kept: unknown key"),
    ] {
        let set = [(key.to_string(), value.into())];
        let error = Scenario::parse_with(text, "x", &set, Outside::controls(&mine));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let again = Box::new(rust_control::MyControlParams::default());
    assert!(mine.with(again).is_err(), "the name is taken");
}
