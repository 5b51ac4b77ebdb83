//! A link alone: packets in, packets out.

use std::sync::Arc;

use super::*;
use crate::packet::{SimPacket, Store};
use crate::rate::InputFile;
use crate::scenario::Outside;
use aqmlab_core::Ecn;
use proptest::prelude::*;

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

fn link(trace: &str, overhead: u32) -> Link<SimPacket> {
    let overrides = [("links.down.overhead".to_string(), overhead.to_string().as_str().into())];
    let read_file = |_: &str| Ok(Arc::new(InputFile::new(trace.as_bytes().to_vec())));
    let scenario =
        Scenario::parse_with(LINK, "link", &overrides, Outside::files(&read_file)).unwrap();
    let setting = Setting { replication: 0, mtu: Bytes::new(1514), end: Time::MAX };
    Link::all(&scenario, &setting).swap_remove(0)
}

fn packet(number: usize, size: u32) -> SimPacket {
    SimPacket {
        arrival: Time::ZERO,
        seq: number as u64,
        flow: 0,
        hash: 0,
        size,
        kind: 0,
        ecn: Ecn::NotEct,
        hop: 0,
        class: 0,
        hosts: [0, 0],
    }
}

/// In which millisecond each packet leaves.
fn departures(link: &mut Link<SimPacket>, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let (mut events, mut store) = (EventQueue::new(Simultaneous::ArrivalsFirst), Store::default());
    let mut left = arrivals.iter().enumerate().peekable();
    let mut out = Vec::new();
    let mut pending = None;
    while out.len() < arrivals.len() {
        pending = pending.or_else(|| events.pop());
        let next = left.peek().map(|(_, (ms, _))| Time::ZERO + Span::from_millis(*ms));
        if next.is_some_and(|next| pending.is_none_or(|(time, _)| next <= time)) {
            let (number, (_, size)) = left.next().expect("peeked");
            link.arrive(packet(number, *size), next.expect("some"), &mut events, &mut store);
            // It may have asked for an event before the one that was next.
            if let Some((time, event)) = pending.take() {
                events.push(time, event);
            }
            continue;
        }
        let (now, event) = pending.take().expect("the link has packets to send");
        match event {
            Event::TransmissionEnd(_) => {
                assert_eq!(link.transmission_end(now, &mut events, &mut store), None);
            }
            Event::Delivery(_) => {
                let packet = link.deliver(now, &mut events).expect("nothing overtakes");
                assert_eq!(packet.seq as usize, out.len());
                out.push(now.as_nanos() / 1_000_000);
            }
            other => panic!("{other:?}"),
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
        let mut link = link(&trace, overhead);
        prop_assert_eq!(
            departures(&mut link, &arrivals),
            by_the_rules(&times, &arrivals, overhead)
        );
    }
}
