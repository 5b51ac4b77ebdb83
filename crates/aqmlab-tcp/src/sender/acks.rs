//! What acknowledgements tell, and where recoveries begin and end.

use aqmlab_core::Time;

use super::{Sender, State};
use crate::congestion::{AckSample, Congestion, CongestionControl, CongestionEvent};
use crate::recovery::{LossRecovery, Phase};
use crate::scoreboard::DUP_THRESH;
use crate::segment::Ack;

impl Sender {
    /// An acknowledgement arrives.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        if ack.syn {
            self.on_syn_ack(now, ack);
            return;
        }
        if self.state != State::Established || ack.ack > self.board.nxt() {
            return; // RFC 9293, section 3.10.7.4: of what was never sent.
        }
        self.window_end = self.window_end.max(ack.ack + ack.window);
        if ack.ack > self.board.una() {
            self.on_new_ack(now, ack);
        } else if ack.ack == self.board.una() && !self.board.is_empty() {
            self.on_duplicate_ack(now, ack);
        }
    }

    fn on_syn_ack(&mut self, now: Time, ack: &Ack) {
        if self.state != State::SynSent {
            return;
        }
        self.state = State::Established;
        self.window_end = ack.ack + ack.window;
        self.deadline = Time::MAX;
        if self.syn_retransmitted {
            self.rtt.after_syn_timeout(self.params.initial_rto);
            // RFC 5681, section 3.1: a window of one segment after a lost SYN.
            self.control = Self::control(&self.params, self.mss);
        } else {
            self.rtt.sample(now - self.syn_sent);
        }
    }

    fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        let in_flight = self.board.flight_size();
        let acked = self.board.acknowledge(ack.ack);
        let sacked = self.recovery.take_sack(&mut self.board, &ack.sack, self.phase);
        self.stats.bytes_acked = ack.ack;
        let timed = !acked.ambiguous || self.recovery.times_repaired();
        let rtt = acked.sent_at.filter(|_| timed).map(|sent_at| now - sent_at);
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        let in_recovery = matches!(self.phase, Phase::Recovery { .. });
        match self.phase {
            Phase::Recovery { point } if ack.ack >= point => self.end_recovery(),
            Phase::Recovery { .. } => {
                self.retransmit_head |= self.recovery.on_partial_ack(&mut self.board, acked.bytes);
            }
            Phase::Loss { point } if ack.ack >= point => self.phase = Phase::Open,
            _ => {}
        }
        self.dup_acks = self.recovery.duplicates_after(sacked);
        self.limited = 0;
        self.timed_out = None;
        self.control.on_ack(&AckSample {
            now,
            acked: acked.bytes,
            in_flight,
            rtt,
            in_recovery,
            window_limited: self.window_limited,
        });
        self.restart_timer(now);
        if sacked > 0 && self.phase == Phase::Open && self.recovery.head_is_lost(&self.board) {
            self.begin_recovery(now);
        }
    }

    fn on_duplicate_ack(&mut self, now: Time, ack: &Ack) {
        if !self.recovery.on_duplicate(&mut self.board, &ack.sack, self.phase) {
            return;
        }
        self.dup_acks += 1;
        // RFC 6675, section 5, steps 1 and 2; RFC 5681, section 3.2.
        if self.phase == Phase::Open
            && (self.dup_acks >= DUP_THRESH || self.recovery.head_is_lost(&self.board))
            && self.recovery.may_begin(&self.board)
        {
            self.begin_recovery(now);
        }
    }

    /// RFC 6675, section 5, step 4; RFC 6582, section 3.2, step 2.
    fn begin_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery { point: self.board.nxt() };
        self.stats.fast_retransmits += 1;
        let window = self.control.window();
        let flight_size = self.recovery.flight_at_loss(&self.board, self.limited, window);
        self.control.on_congestion(&CongestionEvent { now, kind: Congestion::Loss, flight_size });
        self.recovery.begin(&mut self.board);
        self.retransmit_head = true;
    }

    fn end_recovery(&mut self) {
        if self.recovery.end() {
            self.control.on_recovery_exit(self.board.flight_size());
        }
        self.phase = Phase::Open;
        self.retransmit_head = false;
    }
}
