//! State of a connection that both senders share: handshake, data written, timestamps, counts.

use aqmlab_core::Time;

use crate::segment::{Ack, DataSegment};
use crate::sender::Stats;

/// State of the connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnState {
    Closed,
    SynSent,
    Established,
}

/// The sending side of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub state: ConnState,
    /// Bytes that the application has written.
    pub written: u64,
    finite: bool,
    pub syn_sent: Time,
    /// Retransmissions of the SYN.
    pub syn_repeats: u32,
    /// TS.Recent: time at which the latest acknowledgement was sent (RFC 7323).
    pub echo: Time,
    pub stats: Stats,
}

impl Connection {
    /// A closed connection with `bytes` bytes to send, or endless data.
    pub fn new(bytes: Option<u64>) -> Self {
        Connection {
            state: ConnState::Closed,
            written: bytes.unwrap_or(u64::MAX / 4),
            finite: bytes.is_some(),
            syn_sent: Time::ZERO,
            syn_repeats: 0,
            echo: Time::ZERO,
            stats: Stats::default(),
        }
    }
    /// Opens the connection; a SYN must follow.
    pub fn open(&mut self, now: Time) {
        debug_assert_eq!(self.state, ConnState::Closed, "a connection is opened once");
        self.state = ConnState::SynSent;
        self.syn_sent = now;
    }
    /// Whether the data have an end.
    pub fn is_finite(&self) -> bool {
        self.finite
    }
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(self.finite, "endless data cannot grow");
        self.written += bytes;
    }
    /// Discards what has not been sent.
    pub fn truncate(&mut self, sent: u64) {
        self.finite = true;
        self.written = sent;
    }
    /// Returns true if all bytes are acknowledged.
    #[inline]
    pub fn is_finished(&self, acknowledged: u64) -> bool {
        self.finite && acknowledged == self.written
    }
    #[inline]
    pub fn take_timestamps(&mut self, ack: &Ack) {
        if let Some(times) = ack.timestamps {
            self.echo = self.echo.max(times.value);
        }
    }
    /// Returns the SYN, sent now.
    pub fn syn(&self, now: Time) -> DataSegment {
        let retransmission = self.syn_repeats > 0;
        DataSegment { syn: true, retransmission, sent_at: now, ..DataSegment::default() }
    }
}
