//! A network of one link: arrivals and departures.

use std::sync::Arc;

use aqmlab_aqm::fifo::Fifo;
use aqmlab_aqm::{Backlog, Context, QueueDiscipline};
use aqmlab_core::{Packet, Span, Time};
use proptest::prelude::*;

use crate::network::testing::numbered;
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

/// Returns a network of that link and another; its only route is the link.
fn network(trace: &str, overhead: u32) -> Network<()> {
    let overrides = [("links.down.overhead".to_string(), overhead.to_string().as_str().into())];
    let read_file = |_: &str| Ok(Arc::new(InputFile::new(trace.as_bytes().to_vec())));
    let scenario =
        Scenario::parse_with(LINK, "link", &overrides, Outside::files(&read_file)).unwrap();
    let mut network = Network::new(&scenario.network(0));
    network.add_route([0]);
    network
}

/// Returns the millisecond of each departure.
fn departures(mut network: Network<()>, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let mut left = (0..).zip(arrivals).peekable();
    let mut out = Vec::new();
    while out.len() < arrivals.len() {
        let now = network.next_time();
        let next = left.peek().map(|(_, (ms, _))| Time::ZERO + Span::from_millis(*ms));
        if let Some(next) = next.filter(|next| now.is_none_or(|now| *next <= now)) {
            let (number, (_, size)) = left.next().expect("peeked");
            network.inject(next, RouteId(0), numbered(number, *size), &mut ());
        } else if let Some(packet) = network.step(&mut ()) {
            assert_eq!(packet.key as usize, out.len());
            out.push(now.expect("it had an event").as_nanos() / 1_000_000);
        }
    }
    out
}

/// Implements mahimahi's documented rules: an opportunity carries 1504 bytes of consecutive
/// packets; the rest is lost if no packet waits; the last time is the period.
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

/// FIFO whose packets leave with a changed arrival time, or not at all.
#[derive(Clone, Default)]
struct OddFifo {
    fifo: Fifo,
    by: Span,
    stays: bool,
    /// True if it must not be asked for a packet while it is empty.
    is_never_empty: bool,
}

impl QueueDiscipline for OddFifo {
    fn enqueue(&mut self, packet: Packet, _: &mut Context<'_>) {
        self.fifo.push(packet);
    }
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        if self.stays {
            return None;
        }
        assert!(!self.is_never_empty || self.fifo.backlog().packets > 0, "it has packets");
        let mut packet = self.fifo.pop()?;
        packet.set_arrival(cx.now - self.by.min(cx.now - packet.arrival()));
        Some(packet)
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

/// htb_deactivate: a class without packets is not served.
#[test]
fn a_shaper_does_not_ask_an_empty_queue() {
    // Bursts of 12 ms, with pauses.
    let arrivals: Vec<_> = (0..500).map(|number| (number / 5 * 20, 1500)).collect();
    for driver in ["1p", "200p"] {
        let shaped = format!("'50mbit'\nshaper.rate = '5mbit'\ndriver.limit = '{driver}'");
        let text = LINK.replace("{ trace = \"x\" }", &shaped);
        let scenario = Scenario::parse(&text, "link", &[]).unwrap();
        let mut network = Network::<()>::new(&scenario.network(0));
        network.add_route([0]);
        let queue = OddFifo { is_never_empty: true, ..OddFifo::default() };
        network.replace_queue(Time::ZERO, 0, Box::new(queue));
        assert_eq!(departures(network, &arrivals).len(), 500);
    }
}

/// tbf_dequeue: the bucket has tokens for all of a packet when it passes, and meanwhile the packet
/// is no longer in the queue.
#[test]
fn a_tbf_holds_the_next_packet() {
    let shaped = "'1gbit'\nshaper = 'tbf rate 12kbit burst 1600 latency 50ms'";
    let text = LINK.replace("{ trace = \"x\" }", shaped).replace("\"unlimited\"", "\"2p\"");
    let scenario = Scenario::parse(&text, "link", &[]).unwrap();
    let mut network = Network::<()>::new(&scenario.network(0));
    network.add_route([0]);
    // At first the bucket has 100 bytes more than a packet.
    let times = departures(network, &[(0, 1500), (1, 1500), (2, 60), (2, 1500)]);
    assert_eq!(times, [0, 933, 973, 1973]);
}

/// Sends five packets of a millisecond each; those from the third on use that queue.
fn restamped(by: Span, end: u64) {
    let text = LINK.replace("{ trace = \"x\" }", "\"12mbit\"");
    let scenario = Scenario::parse(&text, "link", &[]).unwrap();
    let mut network = Network::<()>::new(&scenario.network(0));
    network.add_route([0]);
    for number in 0..5 {
        network.inject(Time::ZERO, RouteId(0), numbered(number, 1500), &mut ());
    }
    while network.next_time().is_some_and(|next| next.as_nanos() <= 2_500_000) {
        network.step(&mut ());
    }
    let at = Time::from_nanos(2_500_000);
    let queue = OddFifo { by, stays: end == 0, ..OddFifo::default() };
    network.replace_queue(at, 0, Box::new(queue));
    let end = Time::ZERO + Span::from_millis(end.max(10));
    while network.next_time().is_some_and(|next| next <= end) {
        network.step(&mut ());
    }
    network.finish(end);
    network.into_results(end);
}

#[test]
fn littles_law_holds_with_packets_that_left_wait_or_are_kept() {
    restamped(Span::MAX, 10);
    restamped(Span::MAX, 4);
    // The FIFO releases no packet, and its packets have waited for some time.
    restamped(Span::MAX, 0);
}

#[test]
#[should_panic(expected = "down: Little's law does not hold in the queue")]
fn a_discipline_that_changes_times_breaks_littles_law() {
    restamped(Span::from_micros(1), 10);
}

#[test]
#[should_panic(expected = "down: Little's law does not hold in the queue")]
fn so_it_does_with_packets_that_wait_at_the_end() {
    restamped(Span::from_micros(1), 3);
}
