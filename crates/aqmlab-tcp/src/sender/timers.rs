//! The retransmission timer (RFC 6298).

use aqmlab_core::{Deadline, Time};

use super::RfcSender;
use super::output::Burst;
use crate::congestion::Congestion;
use crate::connection::ConnState;
use crate::recovery::{AckContext, LossRecovery, Phase};

impl RfcSender {
    /// Returns the time at which [`on_timeout`](Self::on_timeout) must be called: expiry of the
    /// retransmission timer, loss of a late segment, a probe, or departure of a paced segment.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        let repair = self.recovery.deadline().min(self.tlp.at);
        self.deadline.min(self.pacer.deadline()).min(repair).time()
    }

    /// New data were acknowledged: RFC 6298, (5.2) and (5.3).
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.deadline = match self.board.is_empty() {
            true => Deadline::NEVER,
            false => Deadline::at(now + self.rtt.rto()),
        };
    }

    /// RFC 9293, section 3.8.6.1: the receiver's window is closed, and nothing in
    /// flight will bring word of its opening.
    #[inline]
    pub(super) fn persist(&mut self, now: Time) {
        let waits = self.board.nxt() < self.conn.written && self.board.is_empty();
        if waits && !self.persisting {
            self.persisting = true;
            self.deadline = Deadline::at(now + self.rtt.rto());
        }
    }

    /// The time of [`next_timeout`](Self::next_timeout) has come: ask for
    /// segments afterwards.
    pub fn on_timeout(&mut self, now: Time) {
        self.burst = Burst::default();
        if self.recovery.deadline().has_come(now) {
            let cx = AckContext { now, phase: self.phase, rtt: &self.rtt };
            self.recovery.on_deadline(&mut self.board, &cx);
            self.look_for_loss(now);
        }
        if self.tlp.at.has_come(now) {
            self.on_probe_timeout();
            return; // it takes the place of the retransmission timer
        }
        if !self.deadline.has_come(now) {
            return;
        }
        self.rtt.back_off();
        self.deadline = Deadline::at(now + self.rtt.rto());
        if self.persisting {
            self.window_probe_due = true;
            return;
        }
        self.conn.stats.timeouts += 1;
        if self.conn.state == ConnState::SynSent {
            self.syn_due = true;
            self.conn.syn_repeats += 1;
            return;
        }
        let head = self.board.una();
        let first = self.timed_out != Some(head);
        self.timed_out = Some(head);
        let flight_size = self.flight_at_loss(0);
        let again = matches!(self.phase, Phase::Loss { .. });
        let recovering = matches!(self.phase, Phase::Recovery { .. });
        self.tell_congestion(now, Congestion::Timeout { first }, flight_size);
        if !again {
            self.undo.begin(head, true, recovering);
        }
        // RFC 6675, section 5.1; RFC 6582, section 3.2, step 4.
        self.phase = Phase::Loss { point: self.board.nxt() };
        self.recovery.on_timeout(&mut self.board, &self.rtt, now);
        self.prr = None;
        self.validation.forget();
        self.tlp.stop();
        self.retransmit_head = true;
        self.dup_acks = 0;
        self.limited = 0;
    }
}
