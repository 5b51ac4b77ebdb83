//! The model of the path: bandwidth, volume, delay, and what losses do to them
//! (draft-ietf-ccwg-bbr-06, section 5.5).

use aqmlab_core::Span;

use super::super::bbr_parts::MaxFilter;
use super::super::control::{AckSample, LostSegment};
use super::{Bbr3, Bbr3Mode, Bbr3Recovery, Saved};

/// StartupFullLossCnt (section 5.3.1.3).
const STARTUP_LOSS_EVENTS: u32 = 6;

impl Bbr3 {
    // Volumes (section 5.6.4.2).

    /// BDPMultiple.
    pub(super) fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt {
            None => self.initial_window,
            Some(min_rtt) => gain * bw * min_rtt.as_secs_f64(),
        }
    }
    /// QuantizationBudget.
    pub(super) fn quantized(&self, volume: f64) -> f64 {
        let volume = volume.max(3.0 * self.send_quantum()).max(self.min_pipe());
        if self.state == Bbr3Mode::Up { volume + 2.0 * self.mss } else { volume }
    }
    /// Inflight.
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(self.bdp(bw, gain))
    }
    pub(super) fn min_pipe(&self) -> f64 {
        super::MIN_PIPE * self.mss
    }
    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp(self.bw, 1.0).min(self.cwnd)
    }
    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = self.mss.max(self.params.headroom * self.inflight_longterm);
        (self.inflight_longterm - headroom).max(self.min_pipe())
    }

    // Deliveries.

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self) {
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        self.losses.round_start =
            self.rs.prior_delivered.is_some_and(|prior| prior >= self.losses.round_delivered);
        if self.losses.round_start {
            self.losses.round_delivered = self.delivered;
        }
    }
    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.losses.round_start {
            self.bw_latest = self.rs.delivery_rate;
            self.inflight_latest = self.rs.delivered;
        }
    }
    /// ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.losses.in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// UpdateMaxBw, with UpdateRound.
    fn update_max_bw(&mut self, sample: &AckSample) {
        self.rounds.update(sample);
        self.rounds_since_probe_up += u64::from(self.rounds.started);
        let rate = self.rs.delivery_rate;
        if rate > 0.0 && (rate >= self.max_bw || !self.rs.app_limited) {
            self.bandwidth.update(self.cycle_count, rate);
            self.max_bw = self.bandwidth.max();
        }
    }
    /// AdvanceMaxBwFilter.
    pub(super) fn advance_max_bw_filter(&mut self) {
        self.cycle_count += 1;
    }

    /// UpdateACKAggregation.
    pub(super) fn update_ack_aggregation(&mut self) {
        let interval = self.now.saturating_since(self.extra_acked_since).as_secs_f64();
        let mut expected = self.bw * interval;
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_since = self.now;
            expected = 0.0;
        }
        self.extra_acked_delivered += self.rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        // In Startup, only the present round counts, then and later.
        if !self.full.reached && self.rounds.started {
            self.extra_acked = MaxFilter::new();
        }
        self.extra_acked.update(self.rounds.count, extra);
    }

    // The full pipe (section 5.3.1.2).

    /// CheckFullBWReached.
    pub(super) fn check_full_bw_reached(&mut self) {
        if !self.full.now && self.rounds.started && !self.rs.app_limited {
            self.full.take(self.rs.delivery_rate);
        }
    }
    /// CheckStartupHighLoss (section 5.3.1.3).
    pub(super) fn check_startup_high_loss(&mut self, sample: &AckSample) {
        if sample.lost > 0 {
            self.losses.events_in_round += 1;
        }
        let recovered_for_a_round = self.losses.round_start && self.repair == Bbr3Recovery::Fast;
        let ranges = if self.selective { STARTUP_LOSS_EVENTS } else { 1 };
        if self.state == Bbr3Mode::Startup
            && recovered_for_a_round
            && self.losses.events_in_round >= ranges
            && self.is_inflight_too_high()
        {
            self.undo.state = Some(Bbr3Mode::Startup);
            self.full.reached = true;
            self.inflight_longterm = self.bdp(self.bw, 1.0).max(self.inflight_latest);
        }
        if self.losses.round_start {
            self.losses.events_in_round = 0;
        }
    }

    // Losses (section 5.5.10).

    /// IsInflightTooHigh.
    pub(super) fn is_inflight_too_high(&self) -> bool {
        self.rs.lost > self.rs.tx_in_flight * self.params.loss_thresh
            || (self.rs.lost > 0.0 && !self.selective)
    }
    /// HandleInflightTooHigh.
    fn handle_inflight_too_high(&mut self) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !self.rs.app_limited {
            self.inflight_longterm =
                self.rs.tx_in_flight.max(self.target_inflight() * self.params.beta);
        }
        if self.state == Bbr3Mode::Up {
            self.undo.state = Some(Bbr3Mode::Up);
            self.start_down();
        }
    }
    /// HandleLostPacket, with NoteLoss.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostSegment) {
        if !self.losses.in_round {
            self.losses.round_delivered = self.delivered;
            self.save_state_upon_loss();
        }
        self.losses.in_round = true;
        if !self.is_bw_probe_sample {
            return;
        }
        self.rs.tx_in_flight = lost.tx_in_flight as f64;
        self.rs.lost = lost.lost as f64;
        self.rs.app_limited = lost.app_limited;
        if self.is_inflight_too_high() {
            self.rs.tx_in_flight = self.inflight_at_loss(lost.bytes as f64);
            self.handle_inflight_too_high();
        }
    }
    /// InflightAtLoss: where in this segment the share of losses crossed the
    /// threshold.
    pub(super) fn inflight_at_loss(&self, size: f64) -> f64 {
        let thresh = self.params.loss_thresh;
        let inflight_prev = self.rs.tx_in_flight - size;
        let lost_prev = self.rs.lost - size;
        inflight_prev + (thresh * inflight_prev - lost_prev) / (1.0 - thresh)
    }

    /// UpdateCongestionSignals.
    pub(super) fn update_congestion_signals(&mut self, sample: &AckSample) {
        self.update_max_bw(sample);
        if self.losses.round_start {
            self.adapt_lower_bounds();
            self.losses.in_round = false;
        }
    }
    /// AdaptLowerBoundsFromCongestion, with InitLowerBounds and LossLowerBounds.
    fn adapt_lower_bounds(&mut self) {
        if self.state.accelerates() || !self.losses.in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.cwnd;
        }
        let beta = self.params.beta;
        self.bw_shortterm = self.bw_latest.max(beta * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(beta * self.inflight_shortterm);
    }
    /// ResetShortTermModel.
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// SaveStateUponLoss.
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Saved {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }
    /// HandleSpuriousLossDetection, but for the window.
    pub(super) fn undo_losses(&mut self) {
        self.losses.in_round = false;
        self.full.restart(0.0); // ResetFullBW
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(Bbr3Mode::Startup) if self.state != Bbr3Mode::Startup => {
                self.full.reached = false;
                if self.state != Bbr3Mode::ProbeRtt {
                    self.enter(Bbr3Mode::Startup);
                }
            }
            Some(Bbr3Mode::Up) if !matches!(self.state, Bbr3Mode::Up | Bbr3Mode::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }

    // The delay (section 5.3.4.3).

    /// UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, sample: &AckSample) {
        self.probe_rtt.expired =
            self.now > self.probe_rtt.min_stamp + self.params.probe_rtt_interval;
        let lower = |new: Span, old: Option<Span>| old.is_none_or(|old| new < old);
        if let Some(rtt) = sample.rtt
            && (lower(rtt, self.probe_rtt.min_delay) || self.probe_rtt.expired)
        {
            self.probe_rtt.min_delay = Some(rtt);
            self.probe_rtt.min_stamp = self.now;
        }
        let expired = self.now > self.min_rtt_stamp + self.params.min_rtt_window;
        if let Some(delay) = self.probe_rtt.min_delay
            && (lower(delay, self.min_rtt) || expired)
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt.min_stamp;
        }
    }
}
