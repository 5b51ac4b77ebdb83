//! A link alone in a network: packets in, packets out.

use std::sync::Arc;

use aqmlab_core::{Span, Time};
use proptest::prelude::*;

use crate::network::testing::Plain;
use crate::network::{Network, RouteId};
use crate::rate::InputFile;
use crate::scenario::{Outside, Scenario};

const LINK: &str = r#"
    [links.down]
    rate = { trace = "x" }
    delay = "0s"
    queue = { discipline = "droptail", limit = "unlimited" }
    [links.up]
    rate = "1mbit"
    [flows.one]
    path = ["down"]
    return_path = ["up"]
"#;

/// A network of that link and another; its only route is the link.
fn network(trace: &str, overhead: u32) -> Network<Plain> {
    let overrides = [("links.down.overhead".to_string(), overhead.to_string().as_str().into())];
    let read_file = |_: &str| Ok(Arc::new(InputFile::new(trace.as_bytes().to_vec())));
    let scenario =
        Scenario::parse_with(LINK, "link", &overrides, Outside::files(&read_file)).unwrap();
    let mut network = Network::new(&scenario.network(0));
    network.add_route([0]);
    network
}

/// In which millisecond each packet leaves.
fn departures(mut network: Network<Plain>, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let mut left = (0..).zip(arrivals).peekable();
    let mut out = Vec::new();
    while out.len() < arrivals.len() {
        let now = network.next_time();
        let next = left.peek().map(|(_, (ms, _))| Time::ZERO + Span::from_millis(*ms));
        if let Some(next) = next.filter(|next| now.is_none_or(|now| *next <= now)) {
            let (number, (_, size)) = left.next().expect("peeked");
            network.inject(next, RouteId(0), Plain::new(number, *size), &mut ());
        } else if let Some(packet) = network.step(&mut ()) {
            assert_eq!(packet.number as usize, out.len());
            out.push(now.expect("it had an event").as_nanos() / 1_000_000);
        }
    }
    out
}

/// The rules of mahimahi's traces as they stand in words: an opportunity
/// carries 1504 bytes, of one packet after the other; what is left when
/// nothing waits is lost; the last time is the period.
fn by_the_rules(times: &[u64], arrivals: &[(u64, u32)], overhead: u32) -> Vec<u64> {
    let period = *times.last().unwrap();
    let mut out = Vec::new();
    let mut left = 0;
    for (cycle, time) in (0..).flat_map(|cycle| times.iter().map(move |time| (cycle, time))) {
        let now = cycle * period + time;
        let mut room = 1504;
        while room > 0 {
            if out.len() == arrivals.len() {
                return out;
            }
            let (arrival, size) = arrivals[out.len()];
            if left == 0 {
                if arrival > now {
                    break;
                }
                left = size + overhead;
            }
            let part = left.min(room);
            room -= part;
            left -= part;
            if left == 0 {
                out.push(now);
            }
        }
    }
    unreachable!("the trace repeats for ever")
}

proptest! {
    #[test]
    fn a_trace_is_followed_by_its_rules(
        mut times in prop::collection::vec(0u64..60, 1..25),
        mut arrivals in prop::collection::vec((0u64..400, 1u32..4000), 1..60),
        overhead in prop::sample::select(vec![0u32, 4]),
    ) {
        times.sort_unstable();
        arrivals.sort_by_key(|arrival| arrival.0);
        prop_assume!(*times.last().unwrap() > 0);
        let trace: String = times.iter().map(|time| format!("{time}\n")).collect();
        let network = network(&trace, overhead);
        prop_assert_eq!(
            departures(network, &arrivals),
            by_the_rules(&times, &arrivals, overhead)
        );
    }
}
