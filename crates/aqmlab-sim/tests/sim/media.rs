//! Links that share a medium: one sends at a time.

use crate::common::busy_link::{RATES, result, scenario};
use crate::common::read_again;
use aqmlab_sim::{RunResult, run};
use proptest::prelude::*;

#[test]
fn a_shared_medium_carries_one_packet_at_a_time() {
    let both_ways = |shares: &[(&str, &str)]| {
        let back = "{ count = 5, path = ['up'], return_path = ['down'], start = '0s' }";
        let mut settings =
            vec![("links.up.rate", "10mbit"), ("flows.back", back), ("flows.bulk.start", "0s")];
        settings.extend(shares);
        result(&settings)
    };
    let bytes = |result: &RunResult, link: usize| result.links[link].counts.delivered_bytes as f64;
    let full = both_ways(&[]);
    let half = both_ways(&[("links.down.shares", "up")]);
    let named_twice = both_ways(&[("links.down.shares", "up"), ("links.up.shares", "down")]);
    assert_eq!(half.links[0].counts, named_twice.links[0].counts);
    let total = bytes(&half, 0) + bytes(&half, 1);
    let capacity = 10e6 / 8.0 * 20.0;
    assert!(total <= capacity && total > 0.97 * capacity, "{total}");
    assert!(bytes(&full, 0) + bytes(&full, 1) > 1.3 * capacity);
    // They take turns, packet by packet: neither starves.
    let packets = [0, 1].map(|link| half.links[link].counts.delivered as f64);
    let share = packets[0] / (packets[0] + packets[1]);
    assert!((0.4..0.6).contains(&share), "{share}");
    let busy = half.links[0].utilisation + half.links[1].utilisation;
    assert!((0.97..=1.001).contains(&busy), "{busy}");
}

/// At the end the link waits for the medium, and has not sent since the warm-up.
#[test]
fn a_link_that_waits_for_a_medium_has_sent_its_last_packet() {
    let text = "duration = '1019ms'\nrecord = { warmup = '827ms' }\n\
                [links.down]\nrate = '3797043bit'\nframing = 'ptm'\n\
                [links.next]\nrate = { process = 'ornstein-uhlenbeck' }\nshares = 'down'\n\
                [links.up]\nrate = '134495bit'\ndelay = '0s'\n\
                [flows.one]\npath = ['next']\nreturn_path = ['up']\ntransport = { mss = '169521b' }\n\
                [flows.both]\npath = ['down', 'next']\nreturn_path = ['up']\n\
                start = { uniform = ['0s', '180ms'] }\n";
    let result = crate::common::result(text, &[]);
    assert_eq!(result.links[0].utilisation, 0.0);
}

/// An access point and three stations on one channel, one of them slow.
const STATIONS: [(&str, &str); 4] =
    [("down", "10mbit"), ("first", "10mbit"), ("slow", "1mbit"), ("third", "10mbit")];

/// Packets that each of those links sent in 20 s, and what share of the time it sent.
fn stations(settings: &[(&str, &str)]) -> [(f64, f64); 4] {
    let idle = "{ kind = 'cbr', rate = '1bit' }";
    let mut all: Vec<(String, String)> = vec![("flows.bulk.workload".into(), idle.into())];
    for (name, rate) in STATIONS {
        all.push((format!("links.{name}"), format!("{{ rate = '{rate}', delay = '1ms' }}")));
        let cbr = "{ kind = 'cbr', rate = '12mbit', packet = '1250b' }";
        let flow = format!("{{ path = ['{name}'], return_path = ['up'], workload = {cbr} }}");
        all.push((format!("flows.{name}"), flow));
    }
    // Each names one other: together they are on one medium.
    for (name, other) in [("first", "down"), ("slow", "third"), ("third", "first")] {
        all.push((format!("links.{name}.shares"), other.into()));
    }
    let mut given: Vec<_> = all.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    given.extend(settings);
    let scenario = scenario(&given).unwrap();
    let result = run(&read_again(&scenario), 0);
    STATIONS.map(|(name, _)| {
        let index = scenario.links.iter().position(|link| link.name == name).unwrap();
        let link = &result.links[index];
        (link.counts.delivered as f64, link.utilisation)
    })
}

#[test]
fn stations_on_one_channel_have_as_many_turns_and_the_slow_one_costs_all() {
    // 10,000 bits each: a round takes 1 + 1 + 10 + 1 ms.
    let rounds = 20.0 / 0.013;
    let sent = stations(&[]);
    for ((packets, used), airtime) in sent.into_iter().zip([1.0, 1.0, 10.0, 1.0]) {
        assert!((packets - rounds).abs() < 2.0, "{sent:?}");
        assert!((used - airtime / 13.0).abs() < 0.002, "{sent:?}");
    }
    // If the slow link has little to send, the others share the rest.
    let sent = stations(&[("flows.slow.workload.rate", "100kbit")]);
    assert!((sent[2].0 - 200.0).abs() < 2.0, "{sent:?}");
    for (packets, _) in [sent[0], sent[1], sent[3]] {
        assert!((packets - (20.0 - 2.0) / 0.003).abs() < 8.0, "{sent:?}");
    }
    let busy: f64 = sent.iter().map(|(_, used)| used).sum();
    assert!((0.999..=1.001).contains(&busy), "{busy}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With any combination of ends, all links of a shared medium continue to the end, and together
    /// send no more than one of them could.
    #[test]
    fn a_shared_medium_never_stalls(
        queues in prop::collection::vec(
            prop::sample::select(vec!["droptail", "codel", "pie", "fq_codel", "red"]), 2),
        third in any::<bool>(),
        rate in prop::sample::select(RATES[..3].to_vec()),
        settings in prop::sample::subsequence(vec![
            ("links.down.driver.limit", "5p"),
            ("links.up.shaper.rate", "6mbit"),
            ("links.down.loss", "0.02"),
            ("links.up.framing", "atm"),
            ("simultaneous", "departures-first"),
        ], 0..5),
    ) {
        let back = "{ count = 2, path = ['up'], return_path = ['down'] }";
        let mut all = vec![
            ("duration", "8s"),
            ("links.up.rate", rate),
            ("links.down.rate", rate),
            ("links.up.shares", "down"),
            ("flows.back", back),
            ("links.down.queue", queues[0]),
            ("links.up.queue", queues[1]),
        ];
        if third {
            let own = "{ count = 2, path = ['station'], return_path = ['down'] }";
            all.push(("flows.station", own));
            all.push(("links.station", "{ rate = '7mbit', delay = '3ms', shares = 'down' }"));
        }
        all.extend(settings);
        let result = result(&all);
        for link in &result.links {
            let last = link.packets.iter().rfind(|packet| packet.dropped.is_none());
            prop_assert!(last.unwrap().end.as_secs_f64() > 6.0);
        }
        let used: f64 = result.links.iter().map(|link| link.utilisation).sum();
        prop_assert!(used <= 1.001, "{used}");
    }
}
