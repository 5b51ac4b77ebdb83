//! BBR, version 1: a model of the path instead of losses.
//!
//! The path is a bottleneck bandwidth (the largest delivery rate of ten round
//! trips) and a round-trip propagation time (the least of ten seconds). The
//! sender paces at the bandwidth, with a gain that now and then probes for more
//! and drains what the probe queued, and keeps twice their product in flight at
//! most. Losses say nothing of the path.
//!
//! # Sources
//! draft-cardwell-iccrg-bbr-congestion-control-00, section 4 (functions cite the names of its
//! pseudocode); N. Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14 (2016); Linux's
//! `net/ipv4/tcp_bbr.c` where noted.
//!
//! # Differences
//! 1. Data are counted in payload bytes, not packets; the pacing rate has the
//!    headers added.
//! 2. Segments are sent one by one. The send quantum only adds to the window,
//!    three times, as section 4.2.3.2 has it.
//! 3. If the SYN was lost, nothing is paced before the first round-trip time
//!    (section 4.2.1 takes 1 ms for it).
//! 4. The bandwidth filter holds the largest rate of each of the last ten
//!    round trips, not the three estimates of Linux's `win_minmax.c`.
//! 5. A timeout sets the window to one segment and does not subtract the lost data. A spurious loss
//!    restores the window and restarts the search for the full pipe
//!    (Linux, `bbr_undo_cwnd`).
//! 6. No long-term sampling for policers and no compensation for aggregated
//!    acknowledgements, which Linux has and the draft does not.
//! 7. A recovery that begins as another ends is a new one (section 4.2.3.4); to Linux's BBR both
//!    are one.

use aqmlab_core::{Component, Rate, Span, Stream, Time, params};

use super::bbr_parts::{FullPipe, HeldBack, MaxFilter, Rounds, Wire, first_pacing_rate};
use super::control::{
    AckSample, Congestion, CongestionControl, CongestionEvent, SentSample, Setup,
};

params! {
    /// Parameters of BBR.
    pub struct BbrParams {
        /// Pacing and window gain of Startup; Drain paces with the reciprocal.
        high_gain: f64 = 2.885, in 1.0 => 10.0, source "draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.2.1: 2/ln 2";
        /// Window gain of ProbeBW.
        cwnd_gain: f64 = 2.0, in 1.0 => 10.0, source "draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.2";
        /// Validity of a minimum round-trip time before ProbeRTT.
        rtprop_window: Span = Span::from_secs(10), in Span::from_millis(100) => Span::from_secs(1000),
            source "draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1.2.2";
        /// The least time that ProbeRTT lasts.
        probe_rtt_duration: Span = Span::from_millis(200), in Span::ZERO => Span::from_secs(10),
            source "draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.5";
    }
}

impl Component for BbrParams {
    const NAME: &'static str = "bbr";
    const SUMMARY: &'static str = "bottleneck bandwidth and round-trip propagation time, version 1";
}

/// BtlBwFilterLen, in round trips.
const BANDWIDTH_ROUNDS: usize = 10;
/// The gains of ProbeBW (section 4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// BBRMinPipeCwnd, in segments.
const MIN_PIPE: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw { phase: usize, since: Time },
    ProbeRtt { done: Option<Time>, round_done: bool },
}

/// In which recovery the sender is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RecoveryPhase {
    None,
    /// Fast recovery; for a round trip the sender sends as much as is delivered.
    Fast {
        conserve: bool,
    },
    Timeout,
}

/// The state of BBR.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    params: BbrParams,
    mss: u64,
    initial_window: u64,
    ssthresh: u64,
    wire: Wire,
    random: Stream,
    state: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: Rounds,
    bandwidth: MaxFilter<BANDWIDTH_ROUNDS>,
    /// BtlBw: what the filter holds.
    btl_bw: f64,
    rtprop: Option<Span>,
    rtprop_stamp: Time,
    rtprop_expired: bool,
    /// Section 4.3.2.2.
    full: FullPipe,
    held_back: HeldBack,
    idle_restart: bool,
    /// Payload bytes a second.
    pacing_rate: Option<f64>,
    cwnd: u64,
    prior_cwnd: u64,
    repair: RecoveryPhase,
    /// What the next acknowledgement says is lost, a timeout has taken for lost.
    timeout_losses: bool,
    total_delivered: u64,
}

impl Bbr {
    pub fn new(params: &BbrParams, setup: &Setup) -> Self {
        Bbr {
            params: params.clone(),
            mss: setup.mss,
            initial_window: setup.initial_window,
            ssthresh: setup.initial_ssthresh,
            wire: Wire::new(setup),
            random: Stream::from_state(setup.seed),
            state: Mode::Startup,
            pacing_gain: params.high_gain,
            cwnd_gain: params.high_gain,
            rounds: Rounds::default(),
            bandwidth: MaxFilter::new(),
            btl_bw: 0.0,
            rtprop: None,
            rtprop_stamp: Time::ZERO,
            rtprop_expired: false,
            full: FullPipe::default(),
            held_back: HeldBack::new(),
            idle_restart: false,
            pacing_rate: None,
            cwnd: setup.initial_window,
            prior_cwnd: 0,
            repair: RecoveryPhase::None,
            timeout_losses: false,
            total_delivered: 0,
        }
    }

    /// Changes the state, and the gains with it.
    fn enter(&mut self, state: Mode) {
        let high_gain = self.params.high_gain;
        (self.pacing_gain, self.cwnd_gain) = match state {
            Mode::Startup => (high_gain, high_gain),
            Mode::Drain => (1.0 / high_gain, high_gain),
            Mode::ProbeBw { phase, .. } => (CYCLE[phase], self.params.cwnd_gain),
            Mode::ProbeRtt { .. } => (1.0, 1.0),
        };
        self.state = state;
    }
    /// BBREnterProbeBW: in any phase but the one that drains.
    fn enter_probe_bw(&mut self, now: Time) {
        let back = ((self.random.uniform() * 7.0) as usize).min(6);
        self.enter(Mode::ProbeBw { phase: (CYCLE.len() - back) % CYCLE.len(), since: now });
    }

    /// BBRUpdateBtlBw.
    fn update_bandwidth(&mut self, sample: &AckSample) {
        self.rounds.update(sample);
        let Some(rate) = &sample.rate else { return };
        let bandwidth = rate.bytes_per_sec();
        if bandwidth >= self.btl_bw || !self.held_back.covers(rate) {
            self.bandwidth.update(self.rounds.count, bandwidth);
            self.btl_bw = self.bandwidth.max();
        }
    }

    /// BBRCheckCyclePhase and BBRIsNextCyclePhase.
    fn check_cycle_phase(&mut self, sample: &AckSample) {
        let Mode::ProbeBw { phase, since } = self.state else { return };
        let full_length = self.rtprop.is_some_and(|rtprop| sample.now - since > rtprop);
        let prior_in_flight = sample.in_flight + sample.delivered + sample.lost;
        let next = if self.pacing_gain > 1.0 {
            let reached = prior_in_flight >= self.in_flight_for(self.pacing_gain);
            full_length && (sample.lost > 0 || reached)
        } else if self.pacing_gain < 1.0 {
            full_length || prior_in_flight <= self.in_flight_for(1.0)
        } else {
            full_length
        };
        if next {
            // BBRAdvanceCyclePhase.
            self.enter(Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: sample.now });
        }
    }

    /// BBRCheckFullPipe.
    fn check_full_pipe(&mut self, sample: &AckSample) {
        let limited = sample.rate.is_none_or(|rate| self.held_back.covers(&rate));
        if !self.full.reached && self.rounds.started && !limited {
            self.full.take(self.btl_bw);
        }
    }

    /// BBRCheckDrain.
    fn check_drain(&mut self, sample: &AckSample) {
        if self.state == Mode::Startup && self.full.reached {
            self.enter(Mode::Drain);
        }
        if self.state == Mode::Drain && sample.in_flight <= self.in_flight_for(1.0) {
            self.enter_probe_bw(sample.now);
        }
    }

    /// BBRUpdateRTprop.
    fn update_rtprop(&mut self, sample: &AckSample) {
        self.rtprop_expired = sample.now > self.rtprop_stamp + self.params.rtprop_window;
        let Some(rtt) = sample.rtt else { return };
        if self.rtprop_expired || self.rtprop.is_none_or(|rtprop| rtt <= rtprop) {
            self.rtprop = Some(rtt);
            self.rtprop_stamp = sample.now;
        }
    }

    /// BBRCheckProbeRTT and BBRHandleProbeRTT.
    fn check_probe_rtt(&mut self, sample: &AckSample) {
        let probing = matches!(self.state, Mode::ProbeRtt { .. });
        if !probing && self.rtprop_expired && !self.idle_restart {
            self.enter(Mode::ProbeRtt { done: None, round_done: false });
            self.save_cwnd();
        }
        self.idle_restart = false;
        let Mode::ProbeRtt { done, round_done } = &mut self.state else { return };
        self.held_back.mark(sample.total_delivered, sample.in_flight);
        match *done {
            None => {
                if sample.in_flight <= MIN_PIPE * self.mss {
                    *done = Some(sample.now + self.params.probe_rtt_duration);
                    self.rounds.start(sample.total_delivered);
                }
            }
            Some(done) => {
                *round_done |= self.rounds.started;
                if *round_done && sample.now > done {
                    self.exit_probe_rtt(sample.now);
                }
            }
        }
    }
    fn exit_probe_rtt(&mut self, now: Time) {
        self.rtprop_stamp = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.enter_probe_bw(now);
        } else {
            self.enter(Mode::Startup);
        }
    }

    /// BBRSaveCwnd.
    fn save_cwnd(&mut self) {
        let modulated =
            self.repair != RecoveryPhase::None || matches!(self.state, Mode::ProbeRtt { .. });
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// BBRSetPacingRateWithGain.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.btl_bw;
        if rate > 0.0 && (self.full.reached || self.pacing_rate.is_none_or(|old| rate > old)) {
            self.pacing_rate = Some(rate);
        }
    }
    /// BBRInitPacingRate.
    fn init_pacing_rate(&mut self, srtt: Option<Span>) {
        self.pacing_rate = first_pacing_rate(self.initial_window, self.params.high_gain, srtt);
    }

    /// BBRSetSendQuantum (section 4.2.2): rates in bits a second.
    fn send_quantum(&self) -> u64 {
        let rate = self.pacing_rate.unwrap_or(0.0);
        match rate * 8.0 {
            bits if bits < 1.2e6 => self.mss,
            bits if bits < 24e6 => 2 * self.mss,
            _ => ((rate * 0.001) as u64).min(64 * 1024),
        }
    }
    /// BBRInflight.
    fn in_flight_for(&self, gain: f64) -> u64 {
        match self.rtprop {
            Some(rtprop) if self.btl_bw > 0.0 => {
                let bdp = self.btl_bw * rtprop.as_secs_f64();
                (gain * bdp) as u64 + 3 * self.send_quantum()
            }
            _ => self.initial_window,
        }
    }

    /// BBRSetCwnd and BBRModulateCwndForRecovery.
    fn set_cwnd(&mut self, sample: &AckSample) {
        let target = self.in_flight_for(self.cwnd_gain);
        if !std::mem::take(&mut self.timeout_losses) && sample.lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(sample.lost).max(self.mss);
        }
        if self.repair == (RecoveryPhase::Fast { conserve: true }) {
            self.cwnd = self.cwnd.max(sample.in_flight + sample.delivered);
        } else {
            if self.full.reached {
                self.cwnd = (self.cwnd + sample.delivered).min(target);
            } else if self.cwnd < target || sample.total_delivered < self.initial_window {
                self.cwnd += sample.delivered;
            }
            self.cwnd = self.cwnd.max(MIN_PIPE * self.mss);
        }
        if let Mode::ProbeRtt { .. } = self.state {
            self.cwnd = self.cwnd.min(MIN_PIPE * self.mss);
        }
    }

    /// Section 4.2.3.4: a round trip of conservation ends, or the recovery.
    fn follow_recovery(&mut self, sample: &AckSample) {
        if self.repair == RecoveryPhase::None {
            return;
        }
        if !sample.in_recovery && !sample.in_loss {
            self.repair = RecoveryPhase::None;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        } else if self.rounds.started
            && let RecoveryPhase::Fast { conserve } = &mut self.repair
        {
            *conserve = false;
        }
    }
}

impl CongestionControl for Bbr {
    /// BBRInit (section 4.3.1).
    fn on_connected(&mut self, now: Time, rtt: Option<Span>) {
        self.rtprop = rtt;
        self.rtprop_stamp = now;
        self.init_pacing_rate(rtt);
    }

    fn on_ack(&mut self, sample: &AckSample) {
        self.total_delivered = sample.total_delivered;
        if self.pacing_rate.is_none() {
            self.init_pacing_rate(sample.smoothed_rtt);
        }
        // BBRUpdateModelAndState.
        self.update_bandwidth(sample);
        self.check_cycle_phase(sample);
        self.check_full_pipe(sample);
        self.check_drain(sample);
        self.update_rtprop(sample);
        self.check_probe_rtt(sample);
        // BBRUpdateControlParameters.
        self.set_pacing_rate(self.pacing_gain);
        self.follow_recovery(sample);
        self.set_cwnd(sample);
    }

    /// Section 4.2.3.4.
    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.kind {
            Congestion::Ecn => {}
            Congestion::Loss => {
                self.save_cwnd();
                self.cwnd = event.in_flight + self.mss;
                self.repair = RecoveryPhase::Fast { conserve: true };
                self.rounds.start(self.total_delivered);
            }
            Congestion::Timeout { .. } => {
                self.save_cwnd();
                self.cwnd = self.mss;
                self.repair = RecoveryPhase::Timeout;
                self.timeout_losses = true;
            }
        }
    }

    fn on_undo(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.repair = RecoveryPhase::None;
        self.full.restart(0.0);
    }

    /// BBRHandleRestartFromIdle.
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight == 0 && sent.app_limited {
            self.idle_restart = true;
            if let Mode::ProbeBw { .. } = self.state {
                self.set_pacing_rate(1.0);
            }
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.cwnd
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate.map(|rate| self.wire.rate(rate))
    }
    fn needs_rate_samples(&self) -> bool {
        true
    }
    fn recovers_by_itself(&self) -> bool {
        true
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("bandwidth_bps", self.wire.bits(self.btl_bw));
        if let Some(rtprop) = self.rtprop {
            see("propagation_time_s", rtprop.as_secs_f64());
        }
        see("pacing_gain", self.pacing_gain);
    }
}

#[cfg(test)]
mod tests;
