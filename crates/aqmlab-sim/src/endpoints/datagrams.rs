//! Datagrams as endpoints: nothing is acknowledged or sent again, and what
//! arrives is measured.

use aqmlab_core::{Ecn, Span, Time};

use super::{Endpoint, Incoming, Outgoing};
use crate::network::probe::{Times, TimesSummary};

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
    pub delay: TimesSummary,
    /// The smoothed difference of the delays of neighbours, in seconds.
    pub jitter: f64,
}

/// What a datagram carries: the time at which its application sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent(pub Time);

/// What comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {}

/// Sends what the application says.
#[derive(Default)]
pub struct DatagramSource {
    /// What waits to be polled for: its size, and when it was sent.
    waiting: Option<(u32, Time)>,
    /// Packets sent.
    pub sent: u64,
}

impl DatagramSource {
    /// A packet of this size; it is to be polled for at once.
    pub fn send(&mut self, now: Time, size: u32) {
        debug_assert!(self.waiting.is_none(), "the one before has been polled for");
        self.waiting = Some((size, now));
    }
}

impl Endpoint<Sent, Nothing> for DatagramSource {
    fn poll(&mut self, _now: Time) -> Option<Outgoing<Sent>> {
        let (size, sent) = self.waiting.take()?;
        self.sent += 1;
        Some(Outgoing { payload: Sent(sent), size, ecn: Ecn::NotEct })
    }
    fn on_packet(&mut self, _now: Time, packet: Incoming<Nothing>) {
        match packet.payload {}
    }
}

/// Measures what comes.
#[derive(Default)]
pub struct DatagramSink {
    /// Packets that arrived.
    pub received: u64,
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// Their one-way delays.
    pub delay: Times,
    last_delay: Span,
    jitter: f64,
}

impl Endpoint<Nothing, Sent> for DatagramSink {
    fn poll(&mut self, _now: Time) -> Option<Outgoing<Nothing>> {
        None
    }
    fn on_packet(&mut self, now: Time, packet: Incoming<Sent>) {
        let delay = now - packet.payload.0;
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
}

impl DatagramSink {
    /// What has become of the datagrams of a flow that sent so many packets
    /// and bytes.
    pub fn summary(&self, sent: u64, sent_bytes: u64) -> DatagramSummary {
        DatagramSummary {
            sent,
            sent_bytes,
            received: self.received,
            received_bytes: self.received_bytes,
            delay: self.delay.summary(),
            jitter: self.jitter,
        }
    }
}
