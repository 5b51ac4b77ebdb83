//! A flow of datagrams: nothing is acknowledged or sent again, and what
//! arrives is measured.

use aqmlab_core::{Ecn, Span, Time};

use super::packet::SimPacket;
use crate::network::probe::{Sojourn, SojournSummary};
use crate::network::{Position, RouteId};

/// Indices of datagram flows have this bit, so that a packet says what it is.
pub(crate) const DATAGRAMS: u32 = 1 << 31;

/// What has become of the datagrams of a flow.
#[derive(Clone, Debug)]
pub struct DatagramSummary {
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent, on the wire.
    pub sent_bytes: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// The one-way delay of those that arrived.
    pub delay: SojournSummary,
    /// The smoothed difference of the delays of neighbours, in seconds.
    pub jitter: f64,
}

/// A flow of datagrams.
pub(crate) struct DatagramFlow {
    pub group: u32,
    /// The application to which it belongs, and whether that wants to be told
    /// of every arrival.
    pub app: u32,
    pub tells: bool,
    pub route: RouteId,
    pub start: Time,
    pub sent: u64,
    pub sent_bytes: u64,
    /// Packets that were sent in the warm-up.
    pub sent_before: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub delay: Sojourn,
    index: u32,
    hash: u32,
    hosts: [u32; 2],
    pub class: u8,
    last_delay: Span,
    jitter: f64,
}

/// What [`DatagramFlow::new`] needs to know.
pub(crate) struct DatagramSetup {
    pub index: u32,
    pub group: u32,
    pub app: u32,
    pub tells: bool,
    pub route: RouteId,
    pub start: Time,
    pub hash: u32,
    pub hosts: [u32; 2],
    pub class: u8,
}

impl DatagramFlow {
    pub fn new(setup: DatagramSetup) -> Self {
        DatagramFlow {
            group: setup.group,
            app: setup.app,
            tells: setup.tells,
            route: setup.route,
            start: setup.start,
            sent: 0,
            sent_bytes: 0,
            sent_before: 0,
            received: 0,
            received_bytes: 0,
            delay: Sojourn::new(),
            index: setup.index | DATAGRAMS,
            hash: setup.hash,
            hosts: setup.hosts,
            class: setup.class,
            last_delay: Span::ZERO,
            jitter: 0.0,
        }
    }

    /// The next packet. `stamp` is the time that it carries: its delay counts
    /// from then.
    pub fn packet(&mut self, size: u32, stamp: Time) -> SimPacket {
        self.sent += 1;
        self.sent_bytes += u64::from(size);
        SimPacket {
            arrival: Time::ZERO,
            seq: stamp.as_nanos(),
            flow: self.index,
            hash: self.hash,
            size,
            kind: 0,
            ecn: Ecn::NotEct,
            position: Position::default(),
            class: self.class,
            hosts: self.hosts,
        }
    }

    /// A packet has arrived.
    pub fn receive(&mut self, now: Time, packet: &SimPacket) {
        let delay = now - Time::from_nanos(packet.seq);
        if self.received > 0 {
            // RFC 3550, section 6.4.1.
            let change = (delay.as_secs_f64() - self.last_delay.as_secs_f64()).abs();
            self.jitter += (change - self.jitter) / 16.0;
        }
        self.last_delay = delay;
        self.received += 1;
        self.received_bytes += u64::from(packet.size);
        self.delay.note(delay);
    }

    pub fn summary(&self) -> DatagramSummary {
        DatagramSummary {
            sent: self.sent,
            sent_bytes: self.sent_bytes,
            received: self.received,
            received_bytes: self.received_bytes,
            delay: self.delay.summary(),
            jitter: self.jitter,
        }
    }
}
