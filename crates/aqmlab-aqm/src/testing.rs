//! A packet and a link for the unit tests.

use aqmlab_core::{Bytes, Ecn, Packet, Rate, Span, Stream, TcpHeader, Time, packet_fields};

use crate::discipline::{Discipline, Headers, LinkEnv};
use crate::queue::Queue;

/// A packet, of 1500 bytes unless said otherwise.
#[derive(Clone, Debug)]
pub(crate) struct TestPacket {
    pub ecn: Ecn,
    flow: u32,
    size: u32,
    hosts: Option<[u32; 2]>,
    class: u8,
    header: Option<TcpHeader>,
    arrival: Time,
}

impl TestPacket {
    pub fn new(ecn: Ecn) -> Self {
        TestPacket {
            ecn,
            flow: 0,
            size: 1500,
            hosts: None,
            class: 0,
            header: None,
            arrival: Time::ZERO,
        }
    }
    /// One that is not ECN-capable, of this flow.
    pub fn of_flow(flow: u32) -> Self {
        TestPacket { flow, ..TestPacket::new(Ecn::NotEct) }
    }
    /// One that is not ECN-capable, of this size.
    pub fn of_size(size: u32) -> Self {
        TestPacket::new(Ecn::NotEct).with_size(size)
    }
    pub fn with_size(self, size: u32) -> Self {
        TestPacket { size, ..self }
    }
    /// From one host to another.
    pub fn between(self, source: u32, destination: u32) -> Self {
        TestPacket { hosts: Some([source, destination]), ..self }
    }
    /// With a DSCP.
    pub fn classed(self, class: u8) -> Self {
        TestPacket { class, ..self }
    }
    /// With a TCP header.
    pub fn with_header(self, header: TcpHeader) -> Self {
        TestPacket { header: Some(header), ..self }
    }
    /// A segment of 40 bytes that only acknowledges.
    pub fn acking(self, number: u32) -> Self {
        self.with_size(40).with_header(acking(number))
    }
    /// The acknowledgement number.
    pub fn ack(&self) -> Option<u32> {
        self.header.map(|header| header.ack)
    }
}

impl Packet for TestPacket {
    packet_fields!(size, class, ecn, mark, arrival);
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    fn hosts(&self) -> [u32; 2] {
        self.hosts.unwrap_or([self.flow; 2])
    }
}

/// Header of a segment that only acknowledges.
pub(crate) fn acking(number: u32) -> TcpHeader {
    TcpHeader { ack: number, flags: TcpHeader::ACK, ..TcpHeader::default() }
}

/// Headers of the packets of tests, which carry them.
pub(crate) struct OfTests;

impl Headers<TestPacket> for OfTests {
    fn tcp(&self, packet: &TestPacket) -> Option<TcpHeader> {
        packet.header
    }
}

/// A link of 10 Mbit/s.
pub(crate) fn env() -> LinkEnv {
    LinkEnv {
        rate: Rate::from_bps(10_000_000),
        base_rtt: Span::from_millis(100),
        mtu: Bytes::new(1514),
        header: 0,
    }
}

/// A queue of the discipline behind that link.
pub(crate) fn queue(params: &impl Discipline) -> Queue<TestPacket> {
    params.check().unwrap();
    Queue::new(params.build(&env()), Stream::from_state(1))
}

/// Offers packets at the start and gives those dropped.
pub(crate) fn offer(
    queue: &mut Queue<TestPacket>,
    packets: impl IntoIterator<Item = TestPacket>,
) -> Vec<TestPacket> {
    let mut dropped = Vec::new();
    for packet in packets {
        queue.enqueue_stamped(packet, Time::ZERO, &OfTests);
        queue.take_dropped(|packet, _| dropped.push(packet));
        queue.assert_conservation("test");
    }
    dropped
}

/// Takes all packets out at the start.
pub(crate) fn drain(queue: &mut Queue<TestPacket>) -> Vec<TestPacket> {
    std::iter::from_fn(|| queue.dequeue(Time::ZERO)).collect()
}

/// Offers a packet every `gap` to a link that takes 6 ms for each (2 Mbit/s).
pub(crate) fn run(queue: &mut Queue<TestPacket>, gap: Span, seconds: u64) {
    run_with(queue, gap, seconds, Ecn::NotEct);
}

/// The same with packets of the given codepoint.
pub(crate) fn run_with(queue: &mut Queue<TestPacket>, gap: Span, seconds: u64, ecn: Ecn) {
    let (end, service) = (Time::ZERO + Span::from_secs(seconds), Span::from_millis(6));
    let (mut arrival, mut free, mut busy) = (Time::ZERO, Time::MAX, false);
    loop {
        let wakeup = queue.next_wakeup().unwrap_or(Time::MAX);
        let now = arrival.min(free).min(wakeup);
        if now >= end {
            break;
        }
        let may_send = if now == free {
            true
        } else if now == wakeup {
            queue.on_wakeup(now);
            false
        } else {
            queue.enqueue(TestPacket::new(ecn), now);
            arrival += gap;
            !busy
        };
        if may_send {
            busy = queue.dequeue(now).is_some();
            free = if busy { now + service } else { Time::MAX };
        }
        queue.take_dropped(|_, _| ());
        queue.assert_conservation("test");
    }
}
