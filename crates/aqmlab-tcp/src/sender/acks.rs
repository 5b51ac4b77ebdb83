//! What acknowledgements tell, and where recoveries begin and end.

use aqmlab_core::Time;

use super::{Sender, State};
use crate::congestion::{
    AckSample, Congestion, CongestionControl, CongestionEvent, Control, Setup,
};
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
            let setup = Setup::new(&self.params, self.mss, self.seed);
            self.control = Control::new(&self.params.congestion_control, &setup);
        } else {
            self.rtt.sample(now - self.syn_sent);
        }
    }

    fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        let mut news = self.news(now, ack);
        let acked = self.board.acknowledge(ack.ack, now);
        news.acked = acked.bytes;
        news.sacked = self.recovery.take_sack(&mut self.board, ack, now, self.phase);
        self.stats.bytes_acked = ack.ack;
        let timed = !acked.ambiguous || self.recovery.times_repaired();
        news.rtt = acked.sent_at.filter(|_| timed).map(|sent_at| now - sent_at);
        if let Some(rtt) = news.rtt {
            self.rtt.sample(rtt);
        }
        match self.phase {
            Phase::Recovery { point } if ack.ack >= point => self.end_recovery(),
            Phase::Recovery { .. } => {
                self.retransmit_head |= self.recovery.on_partial_ack(&mut self.board, acked.bytes);
            }
            Phase::Loss { point } if ack.ack >= point => self.phase = Phase::Open,
            _ => {}
        }
        self.dup_acks = self.recovery.duplicates_after(news.sacked);
        self.limited = 0;
        self.timed_out = None;
        self.tell_control(&mut news);
        self.restart_timer(now);
        if news.sacked > 0 && self.phase == Phase::Open && self.recovery.head_is_lost(&self.board) {
            self.begin_recovery(now);
        }
        if news.ece {
            self.on_ecn_echo(now);
        }
    }

    fn on_duplicate_ack(&mut self, now: Time, ack: &Ack) {
        let mut news = self.news(now, ack);
        let counts = self.recovery.on_duplicate(&mut self.board, ack, now, self.phase);
        news.sacked = self.board.delivery.delivered - news.total_delivered;
        if news.sacked > 0 || news.ece {
            self.tell_control(&mut news);
        }
        self.dup_acks += u64::from(counts);
        // RFC 6675, section 5, steps 1 and 2; RFC 5681, section 3.2.
        if counts
            && self.phase == Phase::Open
            && (self.dup_acks >= DUP_THRESH || self.recovery.head_is_lost(&self.board))
            && self.recovery.may_begin(&self.board)
        {
            self.begin_recovery(now);
        }
        if news.ece {
            self.on_ecn_echo(now);
        }
    }

    /// The beginning of a sample: how things stand before the acknowledgement.
    #[inline]
    fn news(&mut self, now: Time, ack: &Ack) -> AckSample {
        let mut news = AckSample {
            now,
            prior_in_flight: self.board.flight_size(),
            total_delivered: self.board.delivery.delivered,
            in_recovery: matches!(self.phase, Phase::Recovery { .. }),
            in_loss: matches!(self.phase, Phase::Loss { .. }),
            ..AckSample::default()
        };
        self.ecn.take(ack, &mut news);
        news
    }

    /// Completes the sample and hands it on.
    #[inline]
    fn tell_control(&mut self, news: &mut AckSample) {
        let delivery = &mut self.board.delivery;
        news.delivered = delivery.delivered - news.total_delivered;
        news.total_delivered = delivery.delivered;
        news.lost = delivery.lost - self.lost_told;
        news.total_lost = delivery.lost;
        self.lost_told = delivery.lost;
        if delivery.keeps_records() {
            delivery.take_losses(|lost| self.control.on_lost(lost));
            news.rate = delivery.sample(news.now, self.rtt.min());
            let sent = news.rate.map(|rate| rate.prior_delivered);
            news.round_start = sent.is_some_and(|sent| sent >= self.round_end);
            if news.round_start {
                self.round_end = delivery.delivered;
            }
        } else {
            news.round_start = self.board.una() > self.round_end;
            if news.round_start {
                self.round_end = self.board.nxt();
            }
        }
        news.in_flight = self.recovery.in_network(&self.board, self.phase);
        news.smoothed_rtt = self.rtt.smoothed();
        news.min_rtt = self.rtt.min();
        news.window_limited = self.window_limited;
        self.control.on_ack(news);
    }

    /// RFC 6675, section 5, step 4; RFC 6582, section 3.2, step 2.
    fn begin_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery { point: self.board.nxt() };
        self.stats.fast_retransmits += 1;
        let window = self.control.window();
        let flight_size = self.recovery.flight_at_loss(&self.board, self.limited, window);
        self.tell_congestion(now, Congestion::Loss, flight_size);
        self.recovery.begin(&mut self.board);
        self.retransmit_head = true;
    }

    pub(super) fn tell_congestion(&mut self, now: Time, kind: Congestion, flight_size: u64) {
        let in_flight = self.recovery.in_network(&self.board, self.phase);
        self.control.on_congestion(&CongestionEvent { now, kind, flight_size, in_flight });
        self.ecn.reduced(self.board.nxt());
    }

    fn end_recovery(&mut self) {
        if self.recovery.end() {
            self.control.on_recovery_exit(self.board.flight_size());
        }
        self.phase = Phase::Open;
        self.retransmit_head = false;
    }
}
