//! A packet and a link for the unit tests.

use std::cell::RefCell;

use aqmlab_core::{Ecn, Packet, Rate, Span, Stream, TcpHeader, Time};

use crate::discipline::{Discipline, Headers, LinkEnv, QueueDiscipline, Reason};
use crate::queue::Queue;

/// Packets of tests. They have 1500 bytes and are not ECN-capable, unless stated otherwise.
pub(crate) trait TestPacket: Into<Packet> {
    /// Returns a packet with this codepoint.
    fn of_ecn(ecn: Ecn) -> Packet {
        Packet::new(1500, ecn)
    }
    /// Returns a packet of this flow.
    fn of_flow(flow: u32) -> Packet {
        Packet::of_ecn(Ecn::NotEct).with_flow_hash(flow)
    }
    /// Returns a packet of this size.
    fn of_size(size: u32) -> Packet {
        Packet::new(size, Ecn::NotEct)
    }
    /// Changes the size.
    fn with_size(self, size: u32) -> Packet {
        let packet = self.into();
        like(&packet, size, packet.ecn())
    }
    /// Changes the codepoint.
    fn with_ecn(self, ecn: Ecn) -> Packet {
        let packet = self.into();
        like(&packet, packet.size(), ecn)
    }
    /// Adds a TCP header, for [`OfTests`].
    fn with_header(self, header: TcpHeader) -> Packet {
        HEADERS.with_borrow_mut(|headers| {
            headers.push(header);
            self.into().with_key(headers.len() as u64)
        })
    }
    /// Turns it into a segment of 40 bytes that only acknowledges.
    fn acking(self, number: u32) -> Packet {
        self.with_size(40).with_header(acking(number))
    }
}

impl TestPacket for Packet {}

fn like(packet: &Packet, size: u32, ecn: Ecn) -> Packet {
    Packet::new(size, ecn)
        .with_flow_hash(packet.flow_hash())
        .with_hosts(packet.hosts())
        .with_class(packet.class())
        .with_key(packet.key)
}

std::thread_local! {
    /// Headers of packets. The key of a packet is one more than the index.
    static HEADERS: RefCell<Vec<TcpHeader>> = const { RefCell::new(Vec::new()) };
}

/// Header of a segment that only acknowledges.
pub(crate) fn acking(number: u32) -> TcpHeader {
    TcpHeader { ack: number, flags: TcpHeader::ACK, ..TcpHeader::default() }
}

/// Headers of the packets of tests.
pub(crate) struct OfTests;

impl Headers for OfTests {
    fn tcp(&self, packet: &Packet) -> Option<TcpHeader> {
        let index = packet.key.checked_sub(1)?;
        HEADERS.with_borrow(|headers| headers.get(index as usize).copied())
    }
}

/// A link of 10 Mbit/s.
pub(crate) fn env() -> LinkEnv {
    LinkEnv::new(Rate::from_bps(10_000_000), Span::from_millis(100))
}

/// A link of 2 Mbit/s: 6 ms for a packet, as [`run`] takes.
pub(crate) fn slow() -> LinkEnv {
    LinkEnv { rate: Rate::from_bps(2_000_000), ..env() }
}

/// The end of this many milliseconds.
pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A queue of the discipline behind the link of 10 Mbit/s.
pub(crate) fn queue(params: &impl Discipline) -> Queue {
    queue_on(&env(), params)
}

/// A queue of the discipline behind this link.
pub(crate) fn queue_on(env: &LinkEnv, params: &impl Discipline) -> Queue {
    seeded(env, params, 1)
}

/// A queue of the discipline behind this link with these random numbers.
pub(crate) fn seeded(env: &LinkEnv, params: &impl Discipline, seed: u64) -> Queue {
    params.check().unwrap();
    Queue::new(params.build(env), Stream::from_state(seed))
}

/// A queue with this state machine and these random numbers.
pub(crate) fn queue_of(seed: u64, machine: impl QueueDiscipline) -> Queue {
    Queue::new(Box::new(machine), Stream::from_state(seed))
}

/// Value that the discipline shows under this name.
pub(crate) fn seen(queue: &Queue, name: &str) -> f64 {
    let mut found = None;
    queue.observe(&mut |key, value| found = found.or((key == name).then_some(value)));
    found.unwrap_or_else(|| panic!("it shows no {name}"))
}

/// Identifiers of the notes.
pub(crate) fn ids(queue: &Queue) -> Vec<&'static str> {
    queue.notes().iter().map(|note| note.id).collect()
}

pub(crate) fn assert_near(measured: f64, expected: f64) {
    assert!((measured - expected).abs() < 1e-12, "{measured} instead of {expected}");
}

/// Offers this many packets at the start.
pub(crate) fn fill(queue: &mut Queue, count: usize, ecn: Ecn) {
    offer(queue, std::iter::repeat_n(Packet::of_ecn(ecn), count));
}

/// Sends packets one by one. Returns the shares dropped and marked.
fn one_by_one(mut queue: Queue, ecn: Ecn) -> (f64, f64) {
    for _ in 0..100_000 {
        fill(&mut queue, 1, ecn);
        queue.dequeue(Time::ZERO);
        queue.take_dropped(|_, _| ());
    }
    let counts = queue.counts();
    (counts.dropped_total() as f64 / 1e5, counts.marked_total() as f64 / 1e5)
}

/// Asserts that packets of this codepoint are dropped and marked with these probabilities.
pub(crate) fn assert_shares(queue: Queue, ecn: Ecn, drops: f64, marks: f64) {
    let (dropped, marked) = one_by_one(queue, ecn);
    let near = |share: f64, expected: f64| match expected {
        0.0 => share == 0.0,
        _ => (share - expected).abs() < 0.005,
    };
    assert!(near(dropped, drops) && near(marked, marks), "{ecn:?} {dropped} {marked}");
}

/// Asserts that PI squared with a coupling of 2, at a base probability of 0.6, drops packets of
/// every kind and marks the rest of L4S.
pub(crate) fn assert_overload(make: impl Fn() -> Queue) {
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        let (dropped, marked) = one_by_one(make(), ecn);
        assert!((dropped - 0.36).abs() < 0.005, "{ecn:?} {dropped}");
        assert_eq!(marked, if ecn == Ecn::Ect1 { 1.0 - dropped } else { 0.0 }, "{ecn:?}");
    }
}

/// Offers packets at the start and gives those dropped.
pub(crate) fn offer(queue: &mut Queue, packets: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
    let mut dropped = Vec::new();
    for packet in packets {
        queue.enqueue_stamped(packet, Time::ZERO, &OfTests);
        queue.take_dropped(|packet, _| dropped.push(packet));
        queue.assert_conservation("test");
    }
    dropped
}

/// Takes all packets out at the start.
pub(crate) fn drain(queue: &mut Queue) -> Vec<Packet> {
    std::iter::from_fn(|| queue.dequeue(Time::ZERO)).collect()
}

/// Offers a packet every `gap` to a link that takes 6 ms for each (2 Mbit/s).
pub(crate) fn run(queue: &mut Queue, gap: Span, seconds: u64) {
    run_with(queue, gap, seconds, Ecn::NotEct);
}

/// The same with packets of the given codepoint.
pub(crate) fn run_with(queue: &mut Queue, gap: Span, seconds: u64, ecn: Ecn) {
    let arrivals = (0..).map(|i| (Time::ZERO + gap * i, Packet::of_ecn(ecn)));
    serve(queue, arrivals, Span::from_secs(seconds));
}

/// Offers packets at these times to a link that takes 6 ms for each. Returns the dropped ones with
/// their times.
pub(crate) fn serve(
    queue: &mut Queue,
    arrivals: impl Iterator<Item = (Time, Packet)>,
    duration: Span,
) -> Vec<(Time, Packet, Reason)> {
    let mut arrivals = arrivals.peekable();
    let (mut free, mut busy, mut dropped) = (Time::MAX, false, Vec::new());
    loop {
        let arrival = arrivals.peek().map_or(Time::MAX, |(time, _)| *time);
        let wakeup = queue.next_wakeup().unwrap_or(Time::MAX);
        let now = arrival.min(free).min(wakeup);
        if now >= Time::ZERO + duration {
            return dropped;
        }
        let may_send = if now == free {
            true
        } else if now == wakeup {
            queue.on_wakeup(now);
            false
        } else {
            let (_, packet) = arrivals.next().expect("there is one");
            queue.enqueue(packet, now);
            !busy
        };
        if may_send {
            busy = queue.dequeue(now).is_some();
            free = if busy { now + Span::from_millis(6) } else { Time::MAX };
        }
        queue.take_dropped(|packet, reason| dropped.push((now, packet, reason)));
        queue.assert_conservation("test");
    }
}

/// Sends packets that have waited for 10 ms, one every millisecond, after one that has not. Returns
/// the times, in ms, at which one is dropped.
pub(crate) fn late_drops(mut queue: Queue, millis: u64) -> Vec<u64> {
    let mut drops = Vec::new();
    fill(&mut queue, 1, Ecn::NotEct);
    queue.dequeue(Time::ZERO).unwrap();
    for ms in 0..millis {
        queue.enqueue(Packet::of_flow(0), at(ms));
        if ms >= 10 {
            queue.dequeue(at(ms)).unwrap();
            queue.take_dropped(|_, _| drops.push(ms));
        }
    }
    drops
}

/// Offers packets of these flows, one every millisecond, to a link that sends two of three.
/// Returns the share of flow 0 among those sent.
pub(crate) fn share_of_the_first(mut queue: Queue, flows: impl Iterator<Item = u32>) -> f64 {
    let (mut first, mut all) = (0, 0);
    for (flow, i) in flows.zip(0..) {
        queue.enqueue(Packet::of_flow(flow), at(i + 1));
        queue.take_dropped(|_, _| ());
        if i % 3 != 0
            && let Some(packet) = queue.dequeue(at(i + 1))
        {
            all += 1;
            first += u32::from(packet.flow_hash() == 0);
        }
    }
    f64::from(first) / f64::from(all)
}

/// Offers packets at the start. Returns those dropped or marked, by number from 1, and whether they
/// were dropped.
pub(crate) fn chosen(queue: &mut Queue, ecn: Ecn, count: u64) -> Vec<(u64, bool)> {
    let signalled = |number| {
        let marks = queue.counts().marked_total();
        queue.enqueue(Packet::of_ecn(ecn), Time::ZERO);
        let mut dropped = false;
        queue.take_dropped(|_, _| dropped = true);
        (dropped || queue.counts().marked_total() > marks).then_some((number, dropped))
    };
    (1..=count).filter_map(signalled).collect()
}
