//! ACK processing of the RFC sender; entering and leaving recovery.

use aqmlab_core::{Deadline, Time};

use super::RfcSender;
use super::output::Burst;
use crate::congestion::{AckSample, Congestion, CongestionControl, CongestionEvent, Control};
use crate::connection::ConnState;
use crate::prr::{Progress, Prr};
use crate::recovery::{AckContext, LossRecovery, Phase};
use crate::scoreboard::DUP_THRESH;
use crate::segment::Ack;

impl RfcSender {
    /// An acknowledgement arrives.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.burst = Burst::default();
        self.conn.take_timestamps(ack);
        if ack.syn {
            self.on_syn_ack(now, ack);
            return;
        }
        if self.conn.state != ConnState::Established || ack.ack > self.board.nxt() {
            return; // RFC 9293, section 3.10.7.4: of what was never sent.
        }
        self.window_end = self.window_end.max(ack.ack + ack.window);
        self.board.news.clear();
        let duplicate = ack.ack == self.board.una();
        if ack.ack > self.board.una() {
            self.on_new_ack(now, ack);
        } else if duplicate && !self.board.is_empty() {
            self.on_duplicate_ack(now, ack);
        }
        self.judge_probe(now, ack, duplicate);
    }

    fn on_syn_ack(&mut self, now: Time, ack: &Ack) {
        if self.conn.state != ConnState::SynSent {
            return;
        }
        self.conn.state = ConnState::Established;
        self.window_end = ack.ack + ack.window;
        self.deadline = Deadline::NEVER;
        if self.conn.syn_repeats > 0 {
            self.rtt.after_syn_timeout(self.params.initial_rto);
            // RFC 5681, section 3.1: a window of one segment after a lost SYN.
            let setup = self.params.setup(self.mss, self.seed);
            self.control = Control::new(&self.params.congestion_control, &setup);
            // ns-2 takes it for a timeout of data.
            if self.rules.syn_is_data {
                self.control.set_ssthresh(2 * self.mss);
            }
        } else {
            self.rtt.first_sample(now, now - self.conn.syn_sent);
        }
        self.control.on_connected(now, self.rtt.smoothed());
    }

    fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        let mut news = self.news(now, ack);
        let lost_before = self.board.delivery.lost;
        let acked = self.board.acknowledge(ack.ack, now);
        news.acked = acked.bytes;
        self.conn.stats.bytes_acked = ack.ack;
        let timed = !acked.ambiguous || self.rules.times_repaired;
        news.rtt = acked.sent_at.filter(|_| timed).map(|sent_at| now - sent_at);
        // RFC 7323, section 4.1: timestamps tell which transmission it was.
        news.rtt = news.rtt.or(ack.timestamps.map(|times| now - times.echo));
        if let Some(rtt) = news.rtt {
            self.rtt.sample(now, rtt);
            self.tlp.on_round_trip();
        }
        let cx = AckContext { now, phase: self.phase, rtt: &self.rtt };
        news.sacked = self.recovery.on_ack(&mut self.board, ack, &cx);
        self.look_for_undo(ack, true);
        match self.phase {
            Phase::Recovery { point } if ack.ack >= point || self.rules.ends_early => {
                self.end_recovery();
                if self.params.recovery_end_counts {
                    let delivered = self.board.delivery.delivered - news.total_delivered;
                    news.in_recovery = false;
                    news.recounted = acked.bytes.saturating_sub(delivered);
                }
            }
            Phase::Recovery { .. } => {
                self.retransmit_head |= self.recovery.on_partial_ack(&mut self.board, acked.bytes);
            }
            Phase::Loss { point } if ack.ack >= point => {
                self.recovery.end(&mut self.board);
                self.phase = Phase::Open;
            }
            Phase::Reduction { point } if ack.ack >= point => {
                self.phase = Phase::Open;
                self.prr = None;
            }
            _ => {}
        }
        self.dup_acks = self.rules.duplicates_after(news.sacked);
        self.limited = 0;
        self.timed_out = None;
        self.validate_delivery(now, news.total_delivered);
        self.tell_control(&mut news);
        self.restart_timer(now);
        if self.phase.is_open() && self.recovery.finds_loss(&mut self.board, news.sacked, false) {
            self.begin_recovery(now, news.delivered);
        }
        let safe = self.board.delivery.lost == lost_before;
        self.finish_ack(now, &news, safe);
    }

    fn on_duplicate_ack(&mut self, now: Time, ack: &Ack) {
        let mut news = self.news(now, ack);
        let cx = AckContext { now, phase: self.phase, rtt: &self.rtt };
        let sacked = self.recovery.on_duplicate(&mut self.board, ack, &cx);
        let counts = self.rules.counts_duplicate(sacked);
        self.look_for_undo(ack, false);
        news.sacked = self.board.delivery.delivered - news.total_delivered;
        if news.sacked > 0 || news.ece {
            self.tell_control(&mut news);
        }
        self.dup_acks += u64::from(counts);
        if self.rules.duplicates_restart_timer {
            self.restart_timer(now);
        }
        // RFC 6675, section 5, steps 1 and 2; RFC 5681, section 3.2.
        let is_third = counts && self.dup_acks >= DUP_THRESH;
        if self.phase.is_open() && self.recovery.finds_loss(&mut self.board, news.sacked, is_third)
        {
            self.begin_recovery(now, news.delivered);
        }
        self.finish_ack(now, &news, false);
    }

    /// After what the acknowledgement told: ECN, PRR and the probe timer.
    #[inline]
    fn finish_ack(&mut self, now: Time, news: &AckSample, safe: bool) {
        if news.ece {
            self.on_ecn_echo(now, news.delivered);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_ack(Progress { delivered: news.delivered, pipe: self.board.pipe(), safe });
        }
        if news.delivered > 0 {
            self.schedule_probe(now);
        }
    }

    /// A late segment may have become a loss.
    pub(super) fn look_for_loss(&mut self, now: Time) {
        if self.phase.is_open() && self.recovery.finds_loss(&mut self.board, 0, false) {
            self.begin_recovery(now, 0);
            if let Some(prr) = &mut self.prr {
                // As if it had delivered one segment, as in Linux.
                let pipe = self.board.pipe();
                prr.on_ack(Progress { delivered: self.mss, pipe, safe: false });
            }
        }
    }

    /// The beginning of a sample: how things stand before the acknowledgement.
    #[inline]
    fn news(&mut self, now: Time, ack: &Ack) -> AckSample {
        let mut news = AckSample {
            now,
            prior_in_flight: self.board.flight_size(),
            total_delivered: self.board.delivery.delivered,
            in_recovery: matches!(self.phase, Phase::Recovery { .. } | Phase::Reduction { .. }),
            in_loss: matches!(self.phase, Phase::Loss { .. }),
            one_way_delay: ack.timestamps.map(|times| times.value.saturating_since(times.echo)),
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
            let sent = delivery.prior_delivered();
            news.round_start = sent.is_some_and(|sent| sent >= self.round_end);
            news.rate = delivery.sample(news.now, self.rtt.min());
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
        news.min_rtt = self.rtt.min_of_data();
        news.window_limited = self.window_limited;
        self.control.on_ack(news);
        #[cfg(test)]
        {
            self.told = *news;
        }
    }

    /// RFC 6675, section 5, step 4; RFC 6582, section 3.2, step 2.
    fn begin_recovery(&mut self, now: Time, delivered: u64) {
        self.conn.stats.fast_retransmits += 1;
        // RFC 3168, section 6.1.2: marks and losses of one window of data reduce it once.
        let by_itself = self.control.recovers_by_itself();
        if by_itself || !self.ecn.has_reduced_for(self.board.una()) {
            let flight_size = self.flight_at_loss(self.limited);
            let in_use = self.in_use_at_loss(now, flight_size);
            self.tell_congestion(now, Congestion::Loss, in_use);
            self.undo.begin(self.board.una(), false, false);
            self.begin_reduction(delivered);
        }
        self.phase = Phase::Recovery { point: self.board.nxt() };
        self.recovery.begin(&mut self.board);
        self.retransmit_head = true;
    }

    /// FlightSize reported to the control at a loss, without the `limited` bytes sent by limited
    /// transmit.
    pub(super) fn flight_at_loss(&self, limited: u64) -> u64 {
        match self.rules.window_was_in_flight {
            true => self.control.window(),
            false => self.board.flight_size() - limited,
        }
    }

    /// Begins a proportional reduction of the window, if settings and control allow it; returns
    /// true if it does. RecoverFS includes the data delivered by the current acknowledgement.
    pub(super) fn begin_reduction(&mut self, delivered: u64) -> bool {
        if !self.params.prr || self.control.recovers_by_itself() {
            return false;
        }
        let recover_fs = self.board.flight_size() - self.board.sacked_bytes + delivered;
        self.prr = Some(Prr::new(recover_fs, self.control.window(), self.mss));
        true
    }

    pub(super) fn tell_congestion(&mut self, now: Time, kind: Congestion, flight_size: u64) {
        let in_flight = self.recovery.in_network(&self.board, self.phase);
        self.control.on_congestion(&CongestionEvent { now, kind, flight_size, in_flight });
        self.ecn.reduced(self.board.nxt());
        self.undo.close();
    }

    fn end_recovery(&mut self) {
        self.recovery.end(&mut self.board);
        if self.rules.deflates_at_end {
            self.control.on_recovery_exit(self.board.flight_size());
        }
        self.validate_after_recovery();
        self.phase = Phase::Open;
        self.prr = None;
        self.retransmit_head = false;
    }
}
