//! Undoing of spurious reductions: segments declared lost were only late.

use super::LinuxSender;
use super::acks::{Retransmissions, flag};
use super::control::Algorithm;
use super::rack::PERSIST;
use super::segment_queue::tag;
use super::state::CaState;

impl LinuxSender {
    /// Starts the count of retransmissions.
    pub(super) fn begin_undo(&mut self) {
        let state = &mut self.state;
        state.undo_marker = state.una;
        state.undo_retrans = state.retrans_out as i32;
        if state.probe_end != 0 && state.probe_repeats {
            state.undo_retrans += 1;
        }
        if state.undo_retrans == 0 {
            state.undo_retrans = -1;
        }
    }

    /// The acknowledgement was sent before the first retransmission arrived.
    fn is_delayed(&self) -> bool {
        let state = &self.state;
        if state.retrans_stamp != 0 {
            return state.echoes_before(state.retrans_stamp);
        }
        self.sysctl.sack || state.una < state.high_seq
    }
    fn may_undo(&self) -> bool {
        self.state.undo_marker != 0 && (self.state.undo_retrans == 0 || self.is_delayed())
    }
    /// True if a retransmitted segment may still be in flight.
    pub(super) fn any_sent_again(&self) -> bool {
        self.state.retrans_out > 0 || self.queue.head().is_some_and(|head| head.has(tag::EVER))
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.queue.iter_mut().for_each(|segment| segment.tags &= !tag::LOST);
            self.state.lost_out = 0;
            self.clear_hints();
        }
        if self.state.prior_ssthresh != 0 {
            self.state.cwnd = self.control.undo(&mut self.state);
            let state = &mut self.state;
            if state.prior_ssthresh > state.ssthresh {
                state.ssthresh = state.prior_ssthresh;
                state.cwr_due = false;
            }
        }
        let state = &mut self.state;
        state.cwnd_stamp = state.jiffies;
        state.undo_marker = 0;
        state.rack.advanced = true;
        self.conn.stats.undone += 1;
    }
    pub(super) fn clear_hints(&mut self) {
        self.lost_hint = None;
        self.lost_count = 0;
        self.again_hint = None;
    }

    /// Without SACK the old state holds until something above is acknowledged (RFC 6582).
    fn holds_state(&mut self) -> bool {
        if self.state.una != self.state.high_seq || self.sysctl.sack {
            return false;
        }
        if !self.any_sent_again() {
            self.state.retrans_stamp = 0;
        }
        true
    }

    /// A recovery ends; whether its state holds on.
    pub(super) fn undo_recovery(&mut self) -> bool {
        if self.may_undo() {
            self.undo_reduction(false);
        } else if self.state.rack.persist > 0 {
            self.state.rack.persist -= 1;
        }
        if self.holds_state() {
            return true;
        }
        self.enter(CaState::Open);
        self.state.is_reneging = false;
        false
    }
    /// Duplicates were reported of all that was sent again.
    pub(super) fn undo_by_dsack(&mut self) -> bool {
        if self.state.undo_marker == 0 || self.state.undo_retrans != 0 {
            return false;
        }
        self.state.rack.persist = (self.state.rack.persist + 1).min(PERSIST);
        self.undo_reduction(false);
        true
    }
    /// After a timeout.
    fn undo_loss(&mut self, spurious: bool) -> bool {
        if !spurious && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true);
        self.state.timeouts = 0;
        if self.holds_state() {
            return true;
        }
        if spurious || self.sysctl.sack {
            self.enter(CaState::Open);
            self.state.is_reneging = false;
        }
        true
    }
    /// Handles a partial acknowledgement in a recovery; returns true if nothing more is to be done,
    /// and sets `lost` if the next segment is certainly lost.
    pub(super) fn undo_partially(&mut self, prior_una: u64, lost: &mut bool) -> bool {
        if self.state.undo_marker == 0 || !self.is_delayed() {
            *lost = self.is_far_above();
            return false;
        }
        self.check_reordering(prior_una);
        if self.state.retrans_out > 0 {
            return true;
        }
        if !self.any_sent_again() {
            self.state.retrans_stamp = 0;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }
    /// Something is reported so far above the hole that it cannot be reordering.
    pub(super) fn is_far_above(&self) -> bool {
        let state = &self.state;
        self.fack() > state.una + u64::from(state.reordering) * u64::from(state.mss)
    }

    /// An acknowledgement after a timeout (F-RTO: RFC 5682, with SACK).
    pub(super) fn process_loss(
        &mut self,
        flags: u32,
        duplicates: u32,
        repair: &mut Retransmissions,
    ) {
        let recovered = self.state.una >= self.state.high_seq;
        let advanced = flags & flag::UNA_ADVANCED != 0;
        if advanced && self.undo_loss(false) {
            return;
        }
        if self.state.frto {
            if flags & flag::ORIG_SACK_ACKED != 0 && self.undo_loss(true) {
                return;
            }
            if self.state.nxt > self.state.high_seq {
                if flags & flag::DATA_SACKED != 0 || duplicates > 0 {
                    self.state.frto = false;
                }
            } else if advanced && !recovered {
                self.state.high_seq = self.state.nxt;
                let has_data = self.state.nxt < self.state.written;
                if has_data && self.state.window_end() > self.state.nxt {
                    *repair = Retransmissions::New;
                    return;
                }
                self.state.frto = false;
            }
        }
        if recovered {
            self.undo_recovery();
            return;
        }
        if !self.sysctl.sack {
            if self.state.nxt > self.state.high_seq && duplicates > 0 {
                self.add_reno_sack(duplicates, flags & flag::ECE != 0);
            } else if advanced {
                self.state.sacked_out = 0;
            }
        }
        *repair = Retransmissions::Lost;
    }
}
