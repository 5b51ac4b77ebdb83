//! SACK processing (`tcp_sacktag_write_queue`).

use super::LinuxSender;
use super::acks::{Sacked, flag};
use super::segment_queue::tag;
use super::state::{CaState, MAX_REORDERING, Rate};
use crate::segment::Ack;

/// Blocks of an acknowledgement, in the order of numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    blocks: [(u64, u64); 4],
    len: usize,
    /// Block that reports a duplicate.
    duplicate: Option<usize>,
}

impl LinuxSender {
    /// End of the reported data; the first unacknowledged byte if nothing is reported.
    #[inline]
    pub(super) fn fack(&self) -> u64 {
        match self.state.sacked_out {
            0 => self.state.una,
            _ => self.highest_sack.max(self.state.una),
        }
    }

    pub(super) fn take_sack(&mut self, ack: &Ack, prior_una: u64, rate: &mut Rate) -> Sacked {
        let mut sacked = Sacked { reordered: self.state.nxt, ..Sacked::default() };
        if self.state.sacked_out == 0 {
            self.highest_sack = self.state.una;
        }
        let duplicate = self.take_dsack(ack, prior_una, &mut sacked);
        if ack.ack + 1 + self.state.max_window < prior_una || self.state.packets_out == 0 {
            return sacked;
        }
        let blocks = self.valid_blocks(ack, duplicate, prior_una);
        let known = if self.state.sacked_out == 0 { [(0, 0); 4] } else { self.known };
        for (number, &(start, end)) in blocks.blocks[..blocks.len].iter().enumerate() {
            if blocks.duplicate == Some(number) {
                self.tag_range(start, end, true, &mut sacked, rate);
                continue;
            }
            let mut from = start;
            for (known_start, known_end) in known {
                if known_end <= from || known_start >= end {
                    continue;
                }
                if from < known_start {
                    self.tag_range(from, known_start, false, &mut sacked, rate);
                }
                from = from.max(known_end);
            }
            if from < end {
                self.tag_range(from, end, false, &mut sacked, rate);
            }
        }
        self.known = blocks.blocks;
        if self.state.ca_state != CaState::Loss || self.state.undo_marker != 0 {
            self.check_reordering(sacked.reordered);
        }
        sacked
    }

    /// First block that reports a duplicate (RFC 2883).
    fn take_dsack(&mut self, ack: &Ack, prior_una: u64, sacked: &mut Sacked) -> bool {
        let blocks = ack.sack.as_slice();
        let Some(&(start, end)) = blocks.first() else { return false };
        let within = blocks.get(1).is_some_and(|second| second.0 <= start && end <= second.1);
        if start >= ack.ack && !within {
            return false;
        }
        let (start, end) = (start + 1, end + 1);
        let state = &mut self.state;
        if start >= end || end - start > state.max_window {
            return false;
        }
        let mut segments = 1;
        if end - start > u64::from(state.mss) {
            segments = (end - start).div_ceil(u64::from(state.mss));
        } else if state.probe_end != 0 && state.probe_end == end {
            sacked.flags |= flag::DSACK_TLP;
        }
        state.dsack_dups += segments;
        if state.dsack_dups > state.total_retrans {
            return false;
        }
        if state.reordering_seen > 0 && sacked.flags & flag::DSACK_TLP == 0 {
            state.rack.dsack_seen = true;
        }
        sacked.flags |= flag::DSACKING;
        sacked.delivered += segments as u32;
        if state.undo_marker != 0
            && state.undo_retrans > 0
            && end <= prior_una
            && end > state.undo_marker
        {
            state.undo_retrans = (state.undo_retrans - segments as i32).max(0);
        }
        true
    }

    fn valid_blocks(&self, ack: &Ack, duplicate: bool, prior_una: u64) -> Blocks {
        let state = &self.state;
        let mut blocks = Blocks { duplicate: duplicate.then_some(0), ..Blocks::default() };
        for (number, &(start, end)) in ack.sack.as_slice().iter().enumerate() {
            let (start, end) = (start + 1, end + 1);
            let is_duplicate = duplicate && number == 0;
            let valid = end <= state.nxt
                && start < end
                && (start > state.una
                    || (is_duplicate
                        && state.undo_marker != 0
                        && end <= state.una
                        && (start >= state.undo_marker
                            || (end > state.undo_marker && start + state.max_window >= end))));
            if !valid || end <= prior_una {
                if number == 0 {
                    blocks.duplicate = None;
                }
                continue;
            }
            blocks.blocks[blocks.len] = (start, end);
            blocks.len += 1;
        }
        let first = blocks.blocks[0];
        blocks.blocks[..blocks.len].sort_unstable();
        if blocks.duplicate.is_some() {
            blocks.duplicate = blocks.blocks[..blocks.len].iter().position(|block| *block == first);
        }
        blocks
    }

    /// Tags the segments that lie within a block as a whole.
    fn tag_range(&mut self, start: u64, end: u64, dup: bool, sacked: &mut Sacked, rate: &mut Rate) {
        let mut place = self.queue.place_of(start);
        while place < self.queue.end() {
            let segment = *self.queue.at(place);
            if segment.seq >= end {
                break;
            }
            if segment.seq >= start && segment.end() <= end {
                self.tag(place, dup, sacked);
                self.rate_delivered(place, rate);
                let segment = self.queue.at(place);
                if segment.has(tag::SACKED) {
                    self.highest_sack = self.highest_sack.max(segment.end());
                    self.queue.unlink(place);
                }
            }
            place += 1;
        }
    }

    fn tag(&mut self, place: u64, dup: bool, sacked: &mut Sacked) {
        let segment = *self.queue.at(place);
        let mut tags = segment.tags;
        if dup && segment.has(tag::AGAIN) {
            let state = &mut self.state;
            if state.undo_marker != 0 && state.undo_retrans > 0 && segment.end() > state.undo_marker
            {
                state.undo_retrans -= 1;
            }
            if segment.has(tag::SACKED) {
                sacked.reordered = sacked.reordered.min(segment.seq);
            }
        }
        if segment.end() <= self.state.una {
            return;
        }
        if !segment.has(tag::SACKED) {
            self.advance_rack(tags, segment.end(), segment.micros());
            if segment.has(tag::RETRANSMITTED) {
                if segment.has(tag::LOST) {
                    tags &= !(tag::LOST | tag::RETRANSMITTED);
                    self.state.lost_out -= 1;
                    self.state.retrans_out -= 1;
                }
            } else {
                if !segment.has(tag::AGAIN) {
                    if segment.seq < self.fack() {
                        sacked.reordered = sacked.reordered.min(segment.seq);
                    }
                    if segment.end() <= self.state.high_seq {
                        sacked.flags |= flag::ORIG_SACK_ACKED;
                    }
                    if sacked.first == 0 {
                        sacked.first = segment.micros();
                    }
                    sacked.last = segment.micros();
                }
                if segment.has(tag::LOST) {
                    tags &= !tag::LOST;
                    self.state.lost_out -= 1;
                }
            }
            tags |= tag::SACKED;
            sacked.flags |= flag::DATA_SACKED;
            self.state.sacked_out += 1;
            sacked.delivered += 1;
            if self.lost_hint.is_some_and(|hint| place < hint) {
                self.lost_count += 1;
            }
        }
        if dup && tags & tag::RETRANSMITTED != 0 {
            tags &= !tag::RETRANSMITTED;
            self.state.retrans_out -= 1;
        }
        self.queue.at_mut(place).tags = tags;
        // One sent again and not lost since keeps its buffer.
        let is_news = !segment.has(tag::SACKED) && tags & tag::SACKED != 0;
        let rests = segment.has(tag::LOST) || !segment.has(tag::RETRANSMITTED);
        if is_news && rests && !dup {
            self.queue.join(place);
        }
    }

    /// A segment was delivered after later ones: reordering.
    pub(super) fn check_reordering(&mut self, low: u64) {
        let (fack, mss) = (self.fack(), u64::from(self.state.mss));
        if low >= fack {
            return;
        }
        let distance = fack - low;
        if distance > u64::from(self.state.reordering) * mss {
            self.state.reordering = (distance.div_ceil(mss) as u32).min(MAX_REORDERING);
        }
        self.state.reordering_seen += 1;
    }

    /// Without SACK a duplicate acknowledgement stands for a segment that was delivered.
    pub(super) fn add_reno_sack(&mut self, duplicates: u32, ece: bool) {
        if duplicates == 0 {
            return;
        }
        let before = self.state.sacked_out;
        self.state.sacked_out += duplicates;
        self.check_reno_reordering(0);
        self.state.count_delivered(self.state.sacked_out.saturating_sub(before), ece);
    }
    pub(super) fn remove_reno_sacks(&mut self, acked: u32, ece: bool) {
        if acked > 0 {
            let state = &mut self.state;
            state.count_delivered(acked.saturating_sub(state.sacked_out).max(1), ece);
            state.sacked_out = state.sacked_out.saturating_sub(acked - 1);
        }
        self.check_reno_reordering(acked);
    }
    /// More duplicates than segments in flight indicate reordering.
    fn check_reno_reordering(&mut self, more: u32) {
        let state = &mut self.state;
        let holes = state.lost_out.max(1).min(state.packets_out);
        if state.sacked_out + holes > state.packets_out {
            state.sacked_out = state.packets_out - holes;
            state.reordering = (state.packets_out + more).min(MAX_REORDERING);
            state.reordering_seen += 1;
        }
    }
}
