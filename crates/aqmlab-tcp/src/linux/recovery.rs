//! The congestion machine (`tcp_fastretrans_alert`), and how windows come down (PRR, RFC 6937).

use super::LinuxSender;
use super::acks::{Retransmissions, flag};
use super::control::{Algorithm, Event};
use super::segment_queue::tag;
use super::state::{CaState, INFINITE, Pending, REORDERING};
use crate::congestion::Congestion;
use crate::prr::{Progress, Prr};

impl LinuxSender {
    pub(super) fn enter(&mut self, new: CaState) {
        self.control.enter(&mut self.state, new);
        self.state.ca_state = new;
    }

    pub(super) fn machine(
        &mut self,
        prior_una: u64,
        duplicates: u32,
        flags: &mut u32,
        repair: &mut Retransmissions,
    ) {
        let seen = *flags;
        let ece = seen & flag::ECE != 0;
        let mut lost = duplicates > 0 || (seen & flag::DATA_SACKED != 0 && self.is_far_above());
        if self.state.packets_out == 0 {
            self.state.sacked_out = 0;
        }
        if ece {
            self.state.prior_ssthresh = 0;
        }
        if self.check_reneging(flags) {
            return;
        }
        if self.state.ca_state == CaState::Open {
            self.state.retrans_stamp = 0;
        } else if self.state.una >= self.state.high_seq && self.leave_state() {
            return;
        }
        let begins = match self.state.ca_state {
            CaState::Recovery => {
                let goes_on = self.go_on_recovering(prior_una, duplicates, flags, &mut lost);
                goes_on.then_some(false)
            }
            _ => self.look_for_recovery(duplicates, flags, repair).then_some(true),
        };
        let Some(begins) = begins else { return };
        if !self.is_rack() && lost {
            self.update_scoreboard(begins);
        }
        *repair = Retransmissions::Lost;
    }

    /// Handles an acknowledgement in a recovery; returns true if lost segments are to be
    /// retransmitted.
    fn go_on_recovering(
        &mut self,
        prior_una: u64,
        duplicates: u32,
        flags: &mut u32,
        lost: &mut bool,
    ) -> bool {
        let seen = *flags;
        let ece = seen & flag::ECE != 0;
        if seen & flag::UNA_ADVANCED == 0 {
            if !self.sysctl.sack {
                self.add_reno_sack(duplicates, ece);
            }
        } else if self.undo_partially(prior_una, lost) {
            return false;
        }
        if self.undo_by_dsack() {
            self.try_open(seen);
        }
        self.identify_loss(flags);
        if self.state.ca_state != CaState::Recovery {
            if !self.is_time_to_recover() {
                return false;
            }
            self.enter_recovery(ece);
        }
        true
    }

    /// An acknowledgement outside of a recovery; whether one begins with it.
    fn look_for_recovery(
        &mut self,
        duplicates: u32,
        flags: &mut u32,
        repair: &mut Retransmissions,
    ) -> bool {
        let seen = *flags;
        let ece = seen & flag::ECE != 0;
        if self.state.ca_state == CaState::Loss {
            self.process_loss(seen, duplicates, repair);
            self.identify_loss(flags);
            let open = self.state.ca_state == CaState::Open;
            if !open && *flags & flag::LOST_RETRANS == 0 {
                return false;
            }
        }
        if !self.sysctl.sack {
            if seen & flag::UNA_ADVANCED != 0 {
                self.state.sacked_out = 0;
            }
            self.add_reno_sack(duplicates, ece);
        }
        if self.state.ca_state <= CaState::Disorder {
            self.undo_by_dsack();
        }
        self.identify_loss(flags);
        if !self.is_time_to_recover() {
            self.try_open(seen);
            return false;
        }
        self.enter_recovery(ece);
        true
    }

    fn is_rack(&self) -> bool {
        self.sysctl.rack
    }

    /// The data in flight at the entry of the state are acknowledged; returns true if the
    /// processing ends.
    fn leave_state(&mut self) -> bool {
        match self.state.ca_state {
            CaState::Cwr if self.state.una != self.state.high_seq => {
                self.end_reduction();
                self.enter(CaState::Open);
            }
            CaState::Recovery => {
                if !self.sysctl.sack {
                    self.state.sacked_out = 0;
                }
                if self.undo_recovery() {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// The receiver seems to have discarded reported data: it gets a short time.
    fn check_reneging(&mut self, flags: &mut u32) -> bool {
        if *flags & flag::RENEGING == 0 || *flags & flag::UNA_ADVANCED == 0 {
            return false;
        }
        let wait = (self.state.srtt8 >> 4).div_ceil(1000).max(10);
        self.set_timer(Pending::Timeout, wait);
        *flags &= !flag::SET_TIMER;
        true
    }

    fn is_time_to_recover(&self) -> bool {
        let state = &self.state;
        state.lost_out > 0 || (!self.is_rack() && state.sacked_out + 1 > state.reordering)
    }

    pub(super) fn enter_recovery(&mut self, ece: bool) {
        self.conn.stats.fast_retransmits += 1;
        if !self.any_sent_again() {
            self.state.retrans_stamp = 0;
        }
        self.state.prior_ssthresh = 0;
        self.begin_undo();
        if !self.state.in_reduction() {
            if !ece {
                self.state.prior_ssthresh = self.state.current_ssthresh();
            }
            self.begin_reduction(Congestion::Loss);
        }
        self.enter(CaState::Recovery);
    }

    pub(super) fn begin_reduction(&mut self, cause: Congestion) {
        let state = &mut self.state;
        state.high_seq = state.nxt;
        state.probe_end = 0;
        state.cwnd_count = 0;
        state.prior_cwnd = state.cwnd;
        state.cause = cause;
        state.ssthresh = self.control.ssthresh(state);
        state.prr = Prr::new(u64::from(state.prior_cwnd), u64::from(state.ssthresh), 1);
        state.request_cwr();
    }

    /// Reduces the window: in proportion to the delivered data, or by the delivered data once it is
    /// below the threshold.
    pub(super) fn reduce(&mut self, delivered: u32, lost: u32, flags: u32) {
        if delivered == 0 {
            return;
        }
        let state = &mut self.state;
        // The control may have set another one since the beginning (DCTCP).
        state.prr.ssthresh = u64::from(state.ssthresh);
        state.prr.on_ack(Progress {
            delivered: u64::from(delivered),
            pipe: u64::from(state.in_flight()),
            safe: flags & flag::UNA_ADVANCED != 0 && lost == 0,
        });
        state.cwnd = (state.prr.cwnd() as u32).max(1);
    }

    pub(super) fn end_reduction(&mut self) {
        if self.control.recovers_by_itself() {
            return;
        }
        let state = &mut self.state;
        if state.ssthresh < INFINITE && (state.ca_state == CaState::Cwr || state.undo_marker != 0) {
            state.cwnd = state.ssthresh;
            state.cwnd_stamp = state.jiffies;
        }
        self.tell(Event::ReductionComplete);
    }

    fn enter_cwr(&mut self) {
        self.state.prior_ssthresh = 0;
        if self.state.ca_state < CaState::Cwr {
            self.state.undo_marker = 0;
            self.conn.stats.ecn_reductions += 1;
            self.begin_reduction(Congestion::Ecn);
            self.enter(CaState::Cwr);
        }
    }
    pub(super) fn keep_open(&mut self) {
        let state = &self.state;
        let disorder = state.left_out() > 0 || self.any_sent_again();
        let new = if disorder { CaState::Disorder } else { CaState::Open };
        if self.state.ca_state != new {
            self.enter(new);
            self.state.high_seq = self.state.nxt;
        }
    }
    fn try_open(&mut self, flags: u32) {
        if !self.any_sent_again() {
            self.state.retrans_stamp = 0;
        }
        if flags & flag::ECE != 0 {
            self.enter_cwr();
        }
        if self.state.ca_state != CaState::Cwr {
            self.keep_open();
        }
    }

    /// An acknowledgement while a tail loss probe is out.
    pub(super) fn judge_probe(&mut self, number: u64, flags: u32) {
        if number < self.state.probe_end {
            return;
        }
        let other = flag::UNA_ADVANCED | flag::NOT_DUP | flag::DATA_SACKED;
        if !self.state.probe_repeats || flags & flag::DSACK_TLP != 0 {
            self.state.probe_end = 0;
        } else if number > self.state.probe_end {
            self.begin_reduction(Congestion::Loss);
            self.enter(CaState::Cwr);
            self.end_reduction();
            self.keep_open();
        } else if flags & other == 0 {
            self.state.probe_end = 0;
        }
    }

    /// A timeout: the window is one segment more than what may still arrive.
    pub(super) fn enter_loss(&mut self) {
        let begins = self.state.ca_state < CaState::Recovery;
        self.mark_all_lost();
        let state = &self.state;
        if state.ca_state <= CaState::Disorder
            || state.high_seq <= state.una
            || (state.ca_state == CaState::Loss && state.timeouts == 0)
        {
            self.state.prior_ssthresh = self.state.current_ssthresh();
            self.state.prior_cwnd = self.state.cwnd;
            self.state.cause = Congestion::Timeout { first: true };
            self.state.ssthresh = self.control.ssthresh(&mut self.state);
            self.tell(Event::Loss);
            self.begin_undo();
        } else if let Some(external) = self.control.as_external() {
            external.on_repeated_timeout(&self.state);
        }
        let state = &mut self.state;
        state.cwnd = state.in_flight() + 1;
        state.cwnd_count = 0;
        state.cwnd_stamp = state.jiffies;
        if state.ca_state <= CaState::Disorder && state.sacked_out >= REORDERING {
            state.reordering = state.reordering.min(REORDERING);
        }
        self.enter(CaState::Loss);
        let state = &mut self.state;
        state.high_seq = state.nxt;
        state.probe_end = 0;
        state.request_cwr();
        state.frto = self.sysctl.frto && (begins || state.timeouts > 0);
    }

    /// Marks all segments lost, except those reported and those sent recently.
    fn mark_all_lost(&mut self) {
        let reneging = self.queue.head().is_some_and(|head| head.has(tag::SACKED));
        if reneging {
            self.state.sacked_out = 0;
            self.state.is_reneging = true;
        } else if !self.sysctl.sack {
            self.state.sacked_out = 0;
        }
        let first = self.queue.first();
        for place in first..self.queue.end() {
            let segment = *self.queue.at(place);
            if reneging {
                self.queue.at_mut(place).tags &= !tag::SACKED;
            } else if self.is_rack() && place != first && self.time_left(segment.micros(), 0) > 0 {
                continue;
            }
            self.mark_lost(place);
        }
        self.clear_hints();
    }
}
