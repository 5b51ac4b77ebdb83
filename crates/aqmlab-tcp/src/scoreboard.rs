//! Scoreboard of segments in flight (RFC 6675).
//!
//! The scoreboard holds a record for each segment from SND.UNA to SND.NXT.
//! `pipe` (section 4: the octets in the network) is updated as records change; the edge below which
//! unSACKed segments are lost only moves forward. Each segment is touched a constant number of
//! times, for any window.

use std::collections::VecDeque;

use aqmlab_core::Time;

use crate::delivery::{Delivery, SentSegment};
use crate::segment::SackBlocks;

/// Duplicate acknowledgements that mean a loss (RFC 6675, section 2).
pub(crate) const DUP_THRESH: u64 = 3;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub seq: u64,
    /// Time of the last transmission.
    pub sent_at: Time,
    pub len: u32,
    pub sacked: bool,
    pub lost: bool,
    /// A retransmission of it is thought to be in the network.
    pub retransmitted: bool,
    /// Sent more than once: gives no round-trip time.
    pub ambiguous: bool,
}

impl Record {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
    fn segment(&self) -> SentSegment {
        SentSegment { end: self.end(), len: u64::from(self.len), sent_at: self.sent_at }
    }
    /// Contribution to `pipe` (RFC 6675, section 4, SetPipe).
    fn in_network(&self) -> u64 {
        let copies = u64::from(!self.lost) + u64::from(self.retransmitted);
        if self.sacked { 0 } else { u64::from(self.len) * copies }
    }
}

/// What a cumulative acknowledgement told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    pub bytes: u64,
    /// When the newest acknowledged segment was sent, if it was sent once
    /// (Karn's rule, RFC 6298, section 3) and has not been SACKed before: its
    /// arrival would be long ago, and the time until now the recovery's.
    pub sent_at: Option<Time>,
    /// True if any of them was retransmitted.
    pub ambiguous: bool,
}

/// The scoreboard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    una: u64,
    nxt: u64,
    pipe: u64,
    /// The end of the highest SACKed segment.
    high_sacked: u64,
    /// UnSACKed segments that begin below are lost.
    lost_edge: u64,
    /// HighRxt: segments below were retransmitted in this recovery, or need
    /// not be.
    high_rxt: u64,
    /// The blocks of the last acknowledgement: most come again.
    seen: SackBlocks,
    mss: u64,
    /// SACKed segments, and their bytes.
    pub sacked_segments: u64,
    pub sacked_bytes: u64,
    /// Losses are found by the recovery, not by RFC 6675's rule.
    pub by_time: bool,
    /// The segments that the acknowledgement at hand delivers, if `collects`.
    pub news: Vec<Record>,
    pub collects: bool,
    /// Delivery and loss counters, with a record for each segment if the control needs it.
    pub delivery: Delivery,
}

impl Scoreboard {
    pub fn new(mss: u64, delivery: Delivery) -> Self {
        Scoreboard { mss, delivery, ..Scoreboard::default() }
    }
    /// The scoreboard of a recovery that goes by time.
    #[cfg(test)]
    pub fn by_time(mss: u64) -> Self {
        Scoreboard { mss, by_time: true, collects: true, ..Scoreboard::default() }
    }

    pub fn una(&self) -> u64 {
        self.una
    }
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    pub fn pipe(&self) -> u64 {
        self.pipe
    }
    /// FlightSize (RFC 5681, section 2).
    pub fn flight_size(&self) -> u64 {
        self.nxt - self.una
    }
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
    /// Number of unacknowledged segments.
    pub fn segments(&self) -> usize {
        self.records.len()
    }
    /// The end of the first unacknowledged segment.
    pub fn head_end(&self) -> u64 {
        self.records.front().map_or(self.una, Record::end)
    }
    /// Whether the first unacknowledged segment is lost.
    pub fn head_is_lost(&self) -> bool {
        self.records.front().is_some_and(|record| record.lost && !record.sacked)
    }

    /// New data were sent.
    #[inline(always)]
    pub fn sent(&mut self, len: u32, now: Time) {
        self.delivery.on_sent(now, self.pipe, len);
        self.records.push_back(Record {
            seq: self.nxt,
            sent_at: now,
            len,
            sacked: false,
            lost: false,
            retransmitted: false,
            ambiguous: false,
        });
        self.nxt += u64::from(len);
        self.pipe += u64::from(len);
    }

    /// Takes a cumulative acknowledgement of everything before `ack`.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64, now: Time) -> Acked {
        let mut acked = Acked { bytes: ack - self.una, ..Acked::default() };
        while let Some(front) = self.records.front_mut() {
            if front.end() <= ack {
                self.pipe -= front.in_network();
                acked.ambiguous |= front.ambiguous;
                let timed = !front.ambiguous && !front.sacked;
                acked.sent_at = timed.then_some(front.sent_at);
                if front.sacked {
                    self.sacked_segments -= 1;
                    self.sacked_bytes -= u64::from(front.len);
                } else {
                    self.delivery.on_delivered(0, front.segment(), now);
                    if self.collects {
                        self.news.push(*front);
                    }
                }
                self.delivery.pop();
                self.records.pop_front();
            } else {
                if front.seq < ack {
                    // Part of a segment: the rest stays.
                    self.pipe -= front.in_network();
                    match front.sacked {
                        true => self.sacked_bytes -= ack - front.seq,
                        false => self.delivery.on_delivered_part(ack - front.seq),
                    }
                    front.len = (front.end() - ack) as u32;
                    front.seq = ack;
                    self.pipe += front.in_network();
                }
                break;
            }
        }
        self.una = ack;
        self.high_rxt = self.high_rxt.max(ack);
        self.lost_edge = self.lost_edge.max(ack);
        self.high_sacked = self.high_sacked.max(ack);
        // Data SACKed directly above the acknowledged data would have been acknowledged with them
        // if the receiver still had them.
        if self.records.front().is_some_and(|head| head.sacked) {
            self.forget_sacked();
        }
        acked
    }

    /// Takes SACK blocks (RFC 6675, section 4, Update); returns the bytes
    /// that were not known to have arrived before.
    #[inline]
    pub fn sack(&mut self, blocks: &SackBlocks, now: Time) -> u64 {
        if blocks.is_empty() && self.seen.is_empty() {
            return 0;
        }
        self.take_blocks(blocks, now)
    }

    fn take_blocks(&mut self, blocks: &SackBlocks, now: Time) -> u64 {
        let mut bytes = 0;
        for &(start, end) in blocks.as_slice() {
            let seen = self.seen.as_slice().iter().find(|block| block.0 == start && block.1 <= end);
            let from = seen.map_or(start, |block| block.1).max(self.una);
            let end = end.min(self.nxt);
            if from < end {
                bytes += self.sack_range(from, end, now);
            }
        }
        self.seen = *blocks;
        if bytes > 0 && !self.by_time {
            self.find_losses();
        }
        bytes
    }

    fn sack_range(&mut self, start: u64, end: u64, now: Time) -> u64 {
        let mut bytes = 0;
        let first = self.index_of(start);
        for (index, record) in (first..).zip(self.records.range_mut(first..)) {
            if record.end() > end {
                break;
            }
            if !record.sacked {
                self.pipe -= record.in_network();
                record.sacked = true;
                self.delivery.on_delivered(index, record.segment(), now);
                if self.collects {
                    self.news.push(*record);
                }
                self.sacked_segments += 1;
                self.sacked_bytes += u64::from(record.len);
                bytes += u64::from(record.len);
                self.high_sacked = self.high_sacked.max(record.end());
            }
        }
        bytes
    }

    /// The first record that begins at `seq` or later.
    pub fn index_of(&self, seq: u64) -> usize {
        // Where it is if all segments are full, as most are.
        let likely = (seq.saturating_sub(self.una) / self.mss) as usize;
        if self.records.get(likely).is_some_and(|record| record.seq == seq) {
            return likely;
        }
        self.records.partition_point(|record| record.seq < seq)
    }

    /// Marks segments lost by IsLost (RFC 6675, section 4): below three SACKed runs, or below more
    /// than (DupThresh - 1) segments' worth of SACKed bytes. Walks down from the highest SACKed
    /// segment until there is enough above.
    fn find_losses(&mut self) {
        let (mut bytes, mut runs, mut in_run) = (0, 0, false);
        let top = self.index_of(self.high_sacked);
        let mut edge = None;
        for record in self.records.range(..top).rev() {
            if record.seq < self.lost_edge {
                break;
            }
            if record.sacked {
                bytes += u64::from(record.len);
                runs += u64::from(!in_run);
                if bytes > (DUP_THRESH - 1) * self.mss || runs >= DUP_THRESH {
                    edge = Some(record.seq);
                    break;
                }
            }
            in_run = record.sacked;
        }
        let Some(edge) = edge else { return };
        let first = self.index_of(self.lost_edge);
        for (index, record) in (first..).zip(self.records.range_mut(first..)) {
            if record.seq >= edge {
                break;
            }
            if !record.sacked && !record.lost {
                self.pipe -= u64::from(record.len);
                record.lost = true;
                self.delivery.on_lost(index, record.seq, record.len);
            }
        }
        self.lost_edge = edge;
    }

    /// Marks the first unacknowledged segment as lost, independent of the rules: third duplicate
    /// acknowledgement, or a partial one (RFC 6582).
    pub fn head_lost(&mut self) {
        if let Some(head) = self.records.front_mut() {
            self.pipe -= head.in_network();
            if head.in_network() > 0 {
                self.delivery.on_lost(0, head.seq, head.len);
            }
            head.lost = true;
            head.retransmitted = false;
            self.pipe += head.in_network();
            self.lost_edge = self.lost_edge.max(head.end());
        }
    }

    /// A new loss recovery begins: nothing has been retransmitted in it.
    pub fn begin_recovery(&mut self) {
        self.high_rxt = self.una;
    }

    /// The retransmission timer expired: nothing counts as in the network. With `keep_sacked` SACK
    /// reports are kept, since reneging is detected (RFC 6675, section 5.1, allows it; RFC 2018,
    /// section 8, discards them).
    pub fn timeout(&mut self, keep_sacked: bool) {
        if !keep_sacked {
            self.forget_sacked();
        }
        for (index, record) in self.records.iter_mut().enumerate() {
            if record.in_network() > 0 {
                self.delivery.on_lost(index, record.seq, record.len);
            }
            record.lost = !record.sacked;
            record.retransmitted = false;
        }
        self.pipe = 0;
        self.lost_edge = self.nxt;
        self.high_rxt = self.una;
    }

    /// The receiver has reneged (RFC 2018, section 8): reported, unacknowledged data must be
    /// retransmitted.
    fn forget_sacked(&mut self) {
        for record in self.records.iter_mut().filter(|record| record.sacked) {
            record.sacked = false;
            record.lost = true;
            record.retransmitted = false;
            self.lost_edge = self.lost_edge.max(record.end());
        }
        self.high_rxt = self.una;
        self.clear_reports();
    }
    fn clear_reports(&mut self) {
        self.seen = SackBlocks::default();
        self.high_sacked = self.una;
        self.sacked_segments = 0;
        self.sacked_bytes = 0;
    }

    /// The record at a place.
    pub fn record(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    /// Marks the segment at this place as lost.
    pub fn mark_lost(&mut self, index: usize) {
        let record = &mut self.records[index];
        self.pipe -= record.in_network();
        record.lost = true;
        record.retransmitted = false;
        self.delivery.on_lost(index, record.seq, record.len);
        self.lost_edge = self.lost_edge.max(record.end());
        self.high_rxt = self.high_rxt.min(record.seq);
    }

    /// The first lost segment that was not sent again since.
    pub fn next_lost(&mut self) -> Option<usize> {
        let mut index = self.index_of(self.high_rxt);
        while let Some(record) = self.records.get(index) {
            if record.seq >= self.lost_edge {
                return None;
            }
            if record.lost && !record.sacked && !record.retransmitted {
                return Some(index);
            }
            self.high_rxt = record.end();
            index += 1;
        }
        None
    }

    /// The last segment.
    pub fn last(&self) -> Option<usize> {
        self.records.len().checked_sub(1)
    }

    /// The losses were spurious: one copy of each unreported segment is in the network.
    pub fn undo_losses(&mut self) {
        for record in self.records.iter_mut().filter(|record| !record.sacked) {
            record.lost = false;
            record.retransmitted = false;
        }
        self.pipe = self.records.iter().map(Record::in_network).sum();
        self.lost_edge = self.una;
        self.high_rxt = self.una;
    }

    /// Clears the reports: one copy of each segment is in flight.
    pub fn forget_all(&mut self) {
        for record in &mut self.records {
            record.sacked = false;
        }
        self.clear_reports();
        self.undo_losses();
    }

    /// NextSeg, rule 1 and 3 (RFC 6675, section 4): the first segment after
    /// HighRxt that is not SACKed and is lost (`lost_only`), or that lies
    /// below a SACKed one. Returns its place.
    pub fn next_hole(&mut self, lost_only: bool) -> Option<usize> {
        let limit = if lost_only { self.lost_edge } else { self.high_sacked };
        let mut index = self.index_of(self.high_rxt);
        while let Some(record) = self.records.get(index) {
            if record.seq >= limit {
                return None;
            }
            if !record.sacked && (!lost_only || record.lost) {
                return Some(index);
            }
            if lost_only {
                self.high_rxt = record.end();
            }
            index += 1;
        }
        None
    }

    /// The segment with the highest unSACKed byte (NextSeg, rule 4).
    pub fn last_hole(&self) -> Option<usize> {
        self.records.iter().rposition(|record| !record.sacked)
    }

    /// A segment is sent again; `advance` moves HighRxt (rule 4 does not).
    pub fn retransmit(&mut self, index: usize, now: Time, advance: bool) -> (u64, u32) {
        let record = &mut self.records[index];
        self.pipe -= record.in_network();
        self.delivery.on_retransmitted(index, now, self.pipe, record.len);
        record.retransmitted = true;
        record.ambiguous = true;
        record.sent_at = now;
        self.pipe += record.in_network();
        if advance {
            self.high_rxt = record.end();
        }
        (record.seq, record.len)
    }

    /// Recomputes the incremental counters.
    #[cfg(test)]
    pub fn check(&self) {
        let mut seq = self.una;
        for record in &self.records {
            assert_eq!(record.seq, seq);
            assert!(record.len > 0);
            // Below the edge all that is not SACKed is lost, above it none is.
            let by_edge = record.lost == (record.seq < self.lost_edge);
            assert!(record.sacked || by_edge || self.by_time, "{self:?}");
            seq = record.end();
        }
        assert_eq!(seq, self.nxt);
        assert_eq!(self.pipe, self.records.iter().map(Record::in_network).sum::<u64>());
        let sacked = || self.records.iter().filter(|record| record.sacked);
        self.delivery.check(self.records.len());
        assert_eq!(self.sacked_segments, sacked().count() as u64);
        assert_eq!(self.sacked_bytes, sacked().map(|record| u64::from(record.len)).sum::<u64>());
    }
}
