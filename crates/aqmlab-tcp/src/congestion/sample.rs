//! Inputs of congestion controls.

use aqmlab_core::{Span, Time};

/// An acknowledgement that delivers data or reports CE marks.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AckSample {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub acked: u64,
    /// Bytes newly reported by SACK.
    pub sacked: u64,
    /// Bytes newly delivered, in either way: `acked` without what SACK had
    /// reported before, and `sacked`.
    pub delivered: u64,
    /// Bytes that SACK had reported before and that count again (`recovery_end_counts`).
    pub recounted: u64,
    /// Bytes newly taken for lost.
    pub lost: u64,
    /// Bytes newly reported to have come with CE (accurate ECN).
    pub ce_bytes: u64,
    /// Packets newly reported to have come with CE (accurate ECN).
    pub ce_packets: u64,
    /// True if it reports CE marks: it carries ECE (classic ECN), or counts more than the last one
    /// (accurate).
    pub ece: bool,
    /// FlightSize before it came.
    pub prior_in_flight: u64,
    /// Bytes that count against the window after it.
    pub in_flight: u64,
    /// The round-trip time measured with it, if there was one to measure.
    pub rtt: Option<Span>,
    /// The time from the sending of the earliest segment that it acknowledges to
    /// its own sending by the receiver, whose clock agrees with the sender's in
    /// a simulation; only with `timestamps`. It holds the acknowledgement's
    /// delay.
    pub one_way_delay: Option<Span>,
    /// The smoothed round-trip time with it.
    pub smoothed_rtt: Option<Span>,
    /// The least round-trip time of the connection's data.
    pub min_rtt: Option<Span>,
    /// The delivery rate, if the control needs one and there was enough to
    /// measure it.
    pub rate: Option<RateSample>,
    /// Whether a round begins: data sent after the last one began have been
    /// acknowledged.
    pub round_start: bool,
    /// All bytes delivered so far.
    pub total_delivered: u64,
    /// All bytes taken for lost so far.
    pub total_lost: u64,
    /// Whether the sender is in fast recovery (or, with PRR, reduces the window
    /// for an ECN echo): windows do not grow then.
    pub in_recovery: bool,
    /// Whether the data of a timeout are not through yet.
    pub in_loss: bool,
    /// Whether the window, and not the application, has held the sender back.
    pub window_limited: bool,
}

impl AckSample {
    /// Bytes by which windows that count bytes grow: newly acknowledged, without
    /// what SACK had reported before. After a timeout one acknowledgement can
    /// cover a whole window that has been there for long.
    #[inline]
    pub fn counted(&self) -> u64 {
        self.acked.min(self.delivered) + self.recounted
    }
}

/// Recorded acknowledgements; `None`: none are recorded.
pub type Samples = Option<Vec<AckSample>>;

/// A sample of the rate at which data arrive
/// (draft-cheng-iccrg-delivery-rate-estimation, section 3): taken with the
/// segment, among those newly delivered, that was sent last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered since `prior_delivered`.
    pub delivered: u64,
    /// Over this time: the longer of sending them and of their arrival.
    pub interval: Span,
    /// Whether the application had nothing to send when it was sent.
    pub app_limited: bool,
    /// All bytes delivered when the segment was sent.
    pub prior_delivered: u64,
    /// Bytes taken for lost since then.
    pub lost: u64,
    /// Bytes in flight just after it was sent, with it.
    pub tx_in_flight: u64,
    /// The time since it was sent (of its last transmission).
    pub rtt: Span,
}

impl RateSample {
    /// In bytes a second.
    pub fn bytes_per_sec(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

/// A data segment that is sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SentSample {
    /// Time of the change.
    pub now: Time,
    /// Payload in bytes.
    pub bytes: u64,
    /// Bytes that counted against the window before it.
    pub prior_in_flight: u64,
    /// Whether the application has held the sender back.
    pub app_limited: bool,
    /// True for a retransmission.
    pub retransmission: bool,
}

/// A segment that is taken for lost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LostSegment {
    /// Payload in bytes.
    pub bytes: u64,
    /// Bytes in flight just after it was sent, with it.
    pub tx_in_flight: u64,
    /// Bytes taken for lost since it was sent, with it.
    pub lost: u64,
    /// Whether the application had nothing to send when it was sent.
    pub app_limited: bool,
}

/// Kind of a congestion event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Fast recovery begins: a loss was found.
    #[default]
    Loss,
    /// The retransmission timer ran out.
    Timeout {
        /// True for the first timeout of this segment.
        first: bool,
    },
    /// The receiver reports CE marks: at most once a window of data (RFC 3168,
    /// section 6.1.2; RFC 8511 for how to answer).
    Ecn,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CongestionEvent {
    /// Time of detection.
    pub now: Time,
    /// Kind.
    pub kind: Congestion,
    /// FlightSize, without what limited transmit sent (RFC 5681, section 3.2).
    pub flight_size: u64,
    /// Bytes that counted against the window.
    pub in_flight: u64,
}
