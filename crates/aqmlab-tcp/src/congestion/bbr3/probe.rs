//! Probes for bandwidth and for the delay (draft-ietf-ccwg-bbr-06, sections
//! 5.3.3 and 5.3.4).

use aqmlab_core::Span;

use super::super::control::AckSample;
use super::{AckPhase, Bbr3, Bbr3Mode};

/// The round trips that Reno would need at most (section 5.3.3.8.2).
const RENO_ROUNDS: f64 = 63.0;

impl Bbr3 {
    /// PickProbeWait.
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = u64::from(self.random.uniform() < 0.5);
        self.bw_probe_wait = Span::from_secs_f64(2.0 + self.random.uniform());
    }
    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = self.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.rounds.start(self.delivered);
        self.enter(Bbr3Mode::Down);
    }
    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.rounds.start(self.delivered);
        self.enter(Bbr3Mode::Refill);
    }
    /// StartProbeBW_UP.
    pub(super) fn start_up(&mut self) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.rounds.start(self.delivered);
        self.full.restart(self.rs.delivery_rate);
        self.enter(Bbr3Mode::Up);
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self) {
        if !self.full.reached || self.adapt_long_term_model() {
            return;
        }
        match self.state {
            Bbr3Mode::Down => {
                if !self.is_time_to_probe_bw() && self.is_time_to_cruise() {
                    self.enter(Bbr3Mode::Cruise);
                }
            }
            Bbr3Mode::Cruise => {
                self.is_time_to_probe_bw();
            }
            Bbr3Mode::Refill => {
                if self.rounds.started {
                    self.is_bw_probe_sample = true;
                    self.start_up();
                }
            }
            Bbr3Mode::Up => {
                if self.is_time_to_go_down() {
                    self.prev_probe_too_high = false;
                    self.start_down();
                }
            }
            Bbr3Mode::Startup | Bbr3Mode::Drain | Bbr3Mode::ProbeRtt => {}
        }
    }

    /// IsTimeToProbeBW, with IsRenoCoexistenceProbeTime: goes to REFILL if so.
    fn is_time_to_probe_bw(&mut self) -> bool {
        let reno_rounds = (self.target_inflight() / self.mss).min(RENO_ROUNDS);
        let is_time = self.now > self.cycle_stamp + self.bw_probe_wait
            || self.rounds_since_probe_up as f64 >= reno_rounds;
        if is_time {
            self.start_refill();
        }
        is_time
    }
    /// IsTimeToCruise.
    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom()
            && self.in_flight <= self.inflight(self.max_bw, 1.0)
    }
    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self) -> bool {
        if self.prev_probe_too_high && self.in_flight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.window_limited && self.cwnd >= self.inflight_longterm {
            self.full.restart(self.rs.delivery_rate);
            return false;
        }
        self.full.now
    }

    /// RaiseInflightLongtermSlope.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = (1u64 << self.bw_probe_up_rounds) as f64;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(self.mss);
    }
    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self) {
        if !self.window_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += self.rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = libm::floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc);
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.mss;
        }
        if self.rounds.started {
            self.raise_inflight_longterm_slope();
        }
    }
    /// AdaptLongTermModel: whether it changed the state.
    fn adapt_long_term_model(&mut self) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.rounds.started {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.rounds.started {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.probes_bandwidth() && !self.rs.app_limited {
                self.advance_max_bw_filter();
            }
            if self.state.probes_bandwidth()
                && self.prev_probe_precautionary
                && !self.prev_probe_too_high
            {
                self.start_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high() && self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(self.rs.tx_in_flight);
            if self.state == Bbr3Mode::Up {
                self.probe_inflight_longterm_upward();
            }
        }
        false
    }

    /// CheckProbeRTT, with EnterProbeRTT and HandleProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, sample: &AckSample) {
        if self.state != Bbr3Mode::ProbeRtt && self.probe_rtt.expired && !self.idle_restart {
            self.enter(Bbr3Mode::ProbeRtt);
            self.save_cwnd();
            self.probe_rtt.done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.rounds.start(self.delivered);
        }
        if self.state == Bbr3Mode::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }
    fn handle_probe_rtt(&mut self, sample: &AckSample) {
        self.held_back.mark(self.delivered, sample.in_flight);
        if self.probe_rtt.done.is_some() {
            self.probe_rtt.round_done |= self.rounds.started;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done();
            }
        } else if self.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done = Some(self.now + self.params.probe_rtt_duration);
            self.probe_rtt.round_done = false;
            self.rounds.start(self.delivered);
        }
    }
    /// CheckProbeRTTDone, with ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt.done.is_none_or(|done| self.now <= done) {
            return;
        }
        self.probe_rtt.min_stamp = self.now;
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full.reached {
            self.start_down();
            self.enter(Bbr3Mode::Cruise);
        } else {
            self.enter(Bbr3Mode::Startup);
        }
    }
    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw, self.params.probe_rtt_cwnd_gain).max(self.min_pipe())
    }
}
