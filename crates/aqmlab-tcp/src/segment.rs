//! Segments and acknowledgements.

use aqmlab_core::{Ecn, Time};

/// A segment from the sender: data, or the SYN.
///
/// Data are numbered from 0; the SYN is outside of the numbering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSegment {
    /// The number of the first byte.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u32,
    /// True for the SYN.
    pub syn: bool,
    /// True for a retransmission.
    pub retransmission: bool,
    /// PSH: a write of the application ends in it.
    pub push: bool,
    /// TSval: when it was sent (RFC 7323); for receivers that send timestamps.
    pub sent_at: Time,
    /// TSecr: when the acknowledgement was sent that came last; for receivers that send
    /// timestamps.
    pub echo: Time,
    /// The ECN codepoint that it is sent with, or has come with.
    pub ecn: Ecn,
    /// CWR: the window was reduced (RFC 3168, section 6.1.2). In a SYN: it asks for ECN.
    pub cwr: bool,
}

impl DataSegment {
    /// The number after the last byte.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// Linux, `tcp_paws_check`: whether a timestamp is more than a millisecond older than TS.Recent.
#[inline]
pub(crate) fn is_outdated(recent: Time, stamp: Time) -> bool {
    let millis = |time: Time| time.as_nanos() / 1_000_000;
    millis(recent) > millis(stamp) + 1
}

/// An acknowledgement from the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// All bytes before this one have arrived.
    pub ack: u64,
    /// True for the SYN-ACK.
    pub syn: bool,
    /// Bytes beyond `ack` that the receiver can take.
    pub window: u64,
    /// Blocks received beyond `ack`.
    pub sack: SackBlocks,
    /// ECE: data came with CE (classic ECN; RFC 3168, section 6.1.3). In a SYN-ACK: ECN is used.
    pub ece: bool,
    /// Data received with CE (accurate ECN).
    pub ce: CeCount,
    /// With the timestamps option (RFC 7323).
    pub timestamps: Option<Timestamps>,
}

impl Ack {
    /// The duplicate that came, if the first block reports one (RFC 2883,
    /// section 4): it lies below the acknowledgement or within the second.
    #[inline]
    pub fn dsack(&self) -> Option<(u64, u64)> {
        let &(start, end) = self.sack.as_slice().first()?;
        let second = self.sack.as_slice().get(1);
        let within = second.is_some_and(|second| second.0 <= start && end <= second.1);
        (end <= self.ack || within).then_some((start, end))
    }
}

/// Times in an acknowledgement (RFC 7323, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: when it was sent.
    pub value: Time,
    /// TSecr: when the segment was sent that moved the acknowledgement on.
    pub echo: Time,
}

/// Counters of data with CE since the beginning of the connection (RFC 9768, section 3.2.1: `r.cep`
/// and `r.ceb`, which do not wrap here).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeCount {
    /// Packets.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl CeCount {
    /// Takes a later count; returns the difference. A count that was overtaken adds nothing.
    #[inline]
    pub(crate) fn take(&mut self, count: CeCount) -> CeCount {
        if count.packets <= self.packets {
            return CeCount::default();
        }
        let seen = std::mem::replace(self, count);
        CeCount { packets: count.packets - seen.packets, bytes: count.bytes - seen.bytes }
    }
}

/// Up to four blocks of data that arrived out of order, the most recent
/// first (RFC 2018, sections 3 and 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u64, u64); Self::MAX],
    len: usize,
}

impl SackBlocks {
    /// 40 bytes of options hold four blocks (RFC 2018, section 3).
    pub const MAX: usize = 4;

    /// Adds a block: from its first byte to the byte after its last. Blocks
    /// beyond the fourth are left out.
    pub fn push(&mut self, start: u64, end: u64) {
        if self.len < Self::MAX {
            self.blocks[self.len] = (start, end);
            self.len += 1;
        }
    }
    /// The blocks.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.blocks[..self.len]
    }
    /// Bytes of the option, with the padding to whole words; none without blocks (RFC 2018,
    /// section 3).
    #[inline]
    pub fn option_bytes(&self) -> u32 {
        if self.is_empty() { 0 } else { 4 + 8 * self.len as u32 }
    }
    /// True if there are no blocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
