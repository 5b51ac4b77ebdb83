//! State of a connection that both senders share: handshake, data written, timestamps, counts.

use aqmlab_core::Time;

use crate::segment::{Ack, DataSegment};

/// State of the connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnState {
    Closed,
    SynSent,
    Established,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Data segments, with those sent again.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Times the retransmission timer ran out, the SYN's included.
    pub timeouts: u64,
    /// Fast recoveries.
    pub fast_retransmits: u64,
    /// Tail loss probes.
    pub tail_probes: u64,
    /// Spurious recoveries and timeouts that were undone.
    pub undone: u64,
    /// Reductions of the window for ECN echoes.
    pub ecn_reductions: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
}

impl Stats {
    /// Returns the counts since `before`, an earlier state.
    pub fn since(&self, before: &Stats) -> Stats {
        Stats {
            segments_sent: self.segments_sent - before.segments_sent,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
            fast_retransmits: self.fast_retransmits - before.fast_retransmits,
            tail_probes: self.tail_probes - before.tail_probes,
            undone: self.undone - before.undone,
            ecn_reductions: self.ecn_reductions - before.ecn_reductions,
            bytes_acked: self.bytes_acked - before.bytes_acked,
        }
    }
}

/// Bytes that an application writes at a time, unless it writes less: as iperf3 does.
const WRITE: u64 = 1 << 17;

/// The sending side of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub state: ConnState,
    /// Bytes that the application has written.
    pub written: u64,
    /// Bytes of a write of the application.
    pub write: u64,
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
            write: WRITE,
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
    /// Returns a segment of data that leaves at this time, for the first time or again, and counts
    /// it.
    #[inline(always)]
    pub fn segment(&mut self, seq: u64, len: u32, sent_at: Time, again: bool) -> DataSegment {
        self.stats.segments_sent += 1;
        self.stats.retransmissions += u64::from(again);
        DataSegment {
            seq,
            len,
            retransmission: again,
            push: self.ends_write(seq, len),
            sent_at,
            echo: self.echo,
            ..DataSegment::default()
        }
    }
    /// Returns true if a write of the application ends in this segment, or all its data do.
    #[inline]
    fn ends_write(&self, seq: u64, len: u32) -> bool {
        let end = seq + u64::from(len);
        seq / self.write != end / self.write || end == self.written
    }
    #[inline]
    pub fn take_timestamps(&mut self, ack: &Ack) {
        if let Some(times) = ack.timestamps {
            self.echo = self.echo.max(times.value);
        }
    }
    /// Returns the SYN, sent now, which asks for ECN or not.
    pub fn syn(&self, now: Time, asks_ecn: bool) -> DataSegment {
        let (syn, retransmission) = (true, self.syn_repeats > 0);
        DataSegment { syn, retransmission, cwr: asks_ecn, sent_at: now, ..DataSegment::default() }
    }
}
