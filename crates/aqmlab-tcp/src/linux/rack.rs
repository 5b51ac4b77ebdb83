//! RACK (`tcp_recovery.c`): segments sent well before a delivered one are lost.

use super::LinuxSender;
use super::acks::flag;
use super::clock::jiffies_of;
use super::control::Algorithm;
use super::segment_queue::{Segment, tag};
use super::state::{CaState, Pending, Rate};
use crate::congestion::LostSegment;

/// Successful recoveries that a larger reordering window lasts.
pub(super) const PERSIST: u32 = 16;
/// The least timeout, in microseconds.
pub(super) const LEAST_TIMEOUT: u64 = 2000;

/// True if one segment was sent after the other; the higher one of those sent at the same time.
#[inline]
pub(super) fn sent_after(one: (u64, u64), other: (u64, u64)) -> bool {
    one > other
}

impl LinuxSender {
    /// A segment was delivered that was sent then.
    #[inline]
    pub(super) fn advance_rack(&mut self, tags: u8, end: u64, sent: u64) {
        let rtt = self.state.micros.saturating_sub(sent);
        if rtt < self.state.min_rtt() && tags & tag::AGAIN != 0 {
            return;
        }
        let rack = &mut self.state.rack;
        rack.advanced = true;
        rack.rtt = rtt;
        if sent_after((sent, end), (rack.sent, rack.end)) {
            rack.sent = sent;
            rack.end = end;
        }
    }

    fn reordering_window(&self) -> u64 {
        let state = &self.state;
        if state.reordering_seen == 0
            && (state.ca_state >= CaState::Recovery || state.sacked_out >= state.reordering)
        {
            return 0;
        }
        let window = (state.min_rtt() >> 2) * u64::from(state.rack.steps);
        window.min(state.srtt8 >> 3)
    }

    /// Remaining time of a segment in microseconds.
    #[inline]
    pub(super) fn time_left(&self, sent: u64, window: u64) -> i64 {
        (self.state.rack.rtt + window) as i64 - self.state.micros.saturating_sub(sent) as i64
    }

    /// Marks lost segments; returns the longest remaining time of the others, or 0.
    fn detect_loss(&mut self) -> u64 {
        let window = self.reordering_window();
        let mut longest = 0;
        let mut next = self.queue.earliest();
        while let Some(place) = next {
            next = self.queue.later(place);
            let segment = *self.queue.at(place);
            if segment.has(tag::LOST) && !segment.has(tag::RETRANSMITTED) {
                continue;
            }
            let rack = &self.state.rack;
            if !sent_after((rack.sent, rack.end), (segment.micros(), segment.end())) {
                break;
            }
            let left = self.time_left(segment.micros(), window);
            if left <= 0 {
                self.mark_lost(place);
                self.queue.unlink(place);
            } else {
                longest = longest.max(left as u64);
            }
        }
        longest
    }

    /// After an acknowledgement; whether the timer is set for the rest.
    pub(super) fn rack_mark_lost(&mut self) -> bool {
        if !self.state.rack.advanced {
            return false;
        }
        self.state.rack.advanced = false;
        let left = self.detect_loss();
        if left > 0 {
            let wait = jiffies_of(left + LEAST_TIMEOUT).min(self.state.rto);
            self.set_timer(Pending::Reordering, wait);
        }
        left > 0
    }

    /// The reordering timer ran out.
    pub(super) fn on_reordering_timeout(&mut self) {
        let (before, lost) = (self.state.in_flight(), self.state.lost);
        self.detect_loss();
        if before != self.state.in_flight() {
            if self.state.ca_state != CaState::Recovery {
                self.enter_recovery(false);
                if !self.control.recovers_by_itself() {
                    self.reduce(1, (self.state.lost - lost) as u32, 0);
                }
            }
            self.retransmit_lost();
        }
        if self.pending != Some(Pending::Timeout) {
            self.restart_timer();
        }
    }

    /// Duplicates make the reordering window larger, once a round trip.
    pub(super) fn update_reordering_window(&mut self, rate: &Rate) {
        if rate.prior_delivered == 0 {
            return;
        }
        let delivered = self.state.delivered;
        let rack = &mut self.state.rack;
        if rate.prior_delivered < rack.last_delivered {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.steps = (rack.steps + 1).min(0xff);
            rack.dsack_seen = false;
            rack.last_delivered = delivered;
            rack.persist = PERSIST;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }

    /// Marks a segment as lost.
    pub(super) fn mark_lost(&mut self, place: u64) {
        let segment = *self.queue.at(place);
        if segment.has(tag::SACKED) {
            return;
        }
        let earlier = match self.again_hint {
            None => self.state.retrans_out >= self.state.lost_out,
            Some(hint) => place < hint,
        };
        if earlier {
            self.again_hint = Some(place);
        }
        if !segment.has(tag::LOST) {
            self.state.lost_out += 1;
            self.queue.at_mut(place).tags |= tag::LOST;
            self.report_lost(&segment);
        } else if segment.has(tag::RETRANSMITTED) {
            self.queue.at_mut(place).tags &= !tag::RETRANSMITTED;
            self.state.retrans_out -= 1;
            self.report_lost(&segment);
        }
    }
    /// Counts a lost transmission and reports it.
    fn report_lost(&mut self, segment: &Segment) {
        self.state.lost += 1;
        self.losses.add(segment.seq - 1, segment.len);
        let mss = u64::from(self.state.mss);
        let lost = u64::from((self.state.lost as u32).wrapping_sub(segment.lost));
        self.control.on_lost(|| LostSegment {
            bytes: u64::from(segment.len),
            tx_in_flight: u64::from(segment.in_flight) * mss,
            lost: lost * mss,
            app_limited: segment.app_limited,
        });
    }

    /// Finds losses after an acknowledgement.
    pub(super) fn identify_loss(&mut self, flags: &mut u32) {
        if self.queue.is_empty() {
            return;
        }
        if !self.sysctl.sack {
            self.newreno_mark_lost(*flags & flag::UNA_ADVANCED != 0);
        } else if self.sysctl.rack {
            let before = self.state.retrans_out;
            if self.rack_mark_lost() {
                *flags &= !flag::SET_TIMER;
            }
            if before > self.state.retrans_out {
                *flags |= flag::LOST_RETRANS;
            }
        }
    }

    /// RFC 6582: the first segment.
    fn newreno_mark_lost(&mut self, advanced: bool) {
        let state = &self.state;
        let begins = state.ca_state < CaState::Recovery && state.sacked_out >= state.reordering;
        if (begins || (state.ca_state == CaState::Recovery && advanced))
            && !self.queue.head().is_some_and(|head| head.has(tag::LOST))
        {
            let first = self.queue.first();
            self.mark_lost(first);
            if first + 1 < self.queue.end() {
                self.queue.at_mut(first + 1).tags &= !tag::PART;
            }
        }
    }

    /// Without RACK: what has so many reported segments above it (RFC 6675).
    pub(super) fn update_scoreboard(&mut self, begins: bool) {
        if !self.sysctl.sack {
            return;
        }
        match self.state.sacked_out.checked_sub(self.state.reordering) {
            Some(most) => self.mark_head_lost(most, false),
            None if begins => self.mark_head_lost(1, true),
            None => {}
        }
    }

    fn mark_head_lost(&mut self, most: u32, head_only: bool) {
        let (mut place, mut count) = match self.lost_hint {
            Some(hint) if head_only && self.queue.at(hint).seq > self.state.una => return,
            Some(hint) => (hint, self.lost_count),
            None => (self.queue.first(), 0),
        };
        while place < self.queue.end() {
            self.lost_hint = Some(place);
            self.lost_count = count;
            let segment = *self.queue.at(place);
            count += u32::from(segment.has(tag::SACKED));
            if count > most {
                break;
            }
            if !segment.has(tag::LOST) {
                self.mark_lost(place);
            }
            place += 1;
            let is_one = place < self.queue.end() && self.queue.at(place).has(tag::PART);
            if head_only && !is_one {
                break;
            }
        }
    }
}
