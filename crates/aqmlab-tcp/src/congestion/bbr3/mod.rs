//! BBR, version 3: a model of the path that losses bound.
//!
//! As in version 1, the sender paces at a bandwidth and holds about twice the bandwidth-delay
//! product in flight. Version 3 adds bounds learnt from congestion: `inflight_longterm`, the amount
//! in flight when a probe lost more than 2 %, and the short-term `bw_shortterm` and
//! `inflight_shortterm`, which limit the sender between probes after a round trip with losses. A
//! cycle of DOWN, CRUISE, REFILL and UP probes every two to three seconds, or as often as Reno
//! would.
//!
//! # Sources
//! draft-ietf-ccwg-bbr-06, section 5; functions cite the names of its pseudocode. (Earlier
//! versions, and Linux, call `longterm` and `shortterm`
//! `hi` and `lo`.) Linux's `net/ipv4/tcp_bbr.c` of version 3 where noted.
//!
//! # Differences
//! 1. Data are counted in payload bytes, not packets; the pacing rate has the
//!    headers added.
//! 2. Segments are sent one by one. The send quantum only bounds windows from
//!    below, three times (sections 5.5.8.1 and 5.6.4.2).
//! 3. If the SYN was lost, nothing is paced before the first round-trip time
//!    (section 5.6.2 takes 1 ms for it).
//! 4. The ranges lost in a round trip of Startup (section 5.3.1.3) are counted as acknowledgements
//!    that report losses, as in Linux, whether or not the ranges are contiguous.
//! 5. After a timeout the window is one segment (section 5.6.4.4: the data in flight and one
//!    segment, but nothing is in flight then).
//! 6. ECN changes nothing: the draft has no response to marks. Use it with
//!    `ecn = off`.
//! 7. The state that a spurious recovery restores is saved before the first loss that the
//!    acknowledgement reports; the recovery that begins with it does not save it again
//!    (OnEnterFastRecovery), when the losses have had their effect.
//! 8. An acknowledgement whose rate sample is not reliable, because its interval is below the minimum
//!    round-trip time, ends no round trip and says nothing of losses (section 4.1.2 has all but
//!    the rate of it).
//! 9. A gain for each state is that of the table in section 5.6.1, also where
//!    the pseudocode does not set it.

mod model;
mod probe;

use aqmlab_core::{Component, Rate, Span, Stream, Time, params};

use super::bbr_parts::{FullPipe, HeldBack, MaxFilter, Rounds, Wire, first_pacing_rate};
use super::control::{
    AckSample, Congestion, CongestionControl, CongestionEvent, LostSegment, SentSample, Setup,
};

params! {
    /// Parameters of BBR, version 3.
    pub struct Bbr3Params {
        /// Pacing gain of Startup.
        startup_pacing_gain: f64 = 2.77, in 1.0 => 10.0, source "draft-ietf-ccwg-bbr-06, section 5.3.1.1: 4 ln 2";
        /// Window gain, but for UP, which has a quarter more, and ProbeRTT.
        cwnd_gain: f64 = 2.0, in 1.0 => 10.0, source "draft-ietf-ccwg-bbr-06, section 5.6.1: DefaultCwndGain";
        /// The share of losses in a round trip that is too high.
        loss_thresh: f64 = 0.02, in 0.0 => 0.5, source "draft-ietf-ccwg-bbr-06, section 5.5.10.2: LossThresh";
        /// Smallest factor of the short-term bounds after a round trip with losses.
        beta: f64 = 0.7, in 0.0 => 1.0, source "draft-ietf-ccwg-bbr-06, section 5.5.10: Beta";
        /// Headroom below the long-term bound between probes.
        headroom: f64 = 0.15, in 0.0 => 0.9, source "draft-ietf-ccwg-bbr-06, section 5.6.1: 0.85 inflight_longterm";
        /// Validity of a minimum delay before ProbeRTT.
        probe_rtt_interval: Span = Span::from_secs(5), in Span::from_millis(100) => Span::from_secs(1000),
            source "draft-ietf-ccwg-bbr-06, section 5.3.4.1: ProbeRTTInterval";
        /// The least time that ProbeRTT lasts.
        probe_rtt_duration: Span = Span::from_millis(200), in Span::ZERO => Span::from_secs(10),
            source "draft-ietf-ccwg-bbr-06, section 5.3.4.1: ProbeRTTDuration";
        /// Window gain of ProbeRTT.
        probe_rtt_cwnd_gain: f64 = 0.5, in 0.0 => 1.0, source "draft-ietf-ccwg-bbr-06, section 5.3.4.1: ProbeRTTCwndGain";
        /// Window of the minimum round-trip time filter.
        min_rtt_window: Span = Span::from_secs(10), in Span::from_millis(100) => Span::from_secs(1000),
            source "draft-ietf-ccwg-bbr-06, section 5.5.7.2: MinRTTFilterLen";
        /// The percentage by which the sender paces below the bandwidth.
        pacing_margin: f64 = 1.0, in 0.0 => 50.0, source "draft-ietf-ccwg-bbr-06, section 5.6.2: PacingMarginPercent";
    }
}

impl Component for Bbr3Params {
    const NAME: &'static str = "bbr3";
    const SUMMARY: &'static str = "bandwidth and delay, bounded by losses (draft-ietf-ccwg-bbr)";
}

/// MinPipeCwnd, in segments.
const MIN_PIPE: f64 = 4.0;
/// MaxBwFilterLen, in cycles, and ExtraAckedFilterLen, in round trips.
const BANDWIDTH_CYCLES: usize = 2;
const EXTRA_ACKED_ROUNDS: usize = 10;
/// Section 5.3.2.
const DRAIN_ROUNDS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bbr3Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Bbr3Mode {
    /// IsInAProbeBWState.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Bbr3Mode::Down | Bbr3Mode::Cruise | Bbr3Mode::Refill | Bbr3Mode::Up)
    }
    /// IsProbingBW.
    fn accelerates(self) -> bool {
        matches!(self, Bbr3Mode::Startup | Bbr3Mode::Refill | Bbr3Mode::Up)
    }
}

/// Phase of the acknowledgements (section 5.3.3.9).
#[derive(Clone, Copy, Debug, PartialEq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// RS: the rate sample, with 0 for values that were not measured.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    /// Bytes a second.
    delivery_rate: f64,
    delivered: f64,
    prior_delivered: Option<u64>,
    tx_in_flight: f64,
    lost: f64,
    app_limited: bool,
    newly_acked: f64,
}

/// State restored after a spurious recovery (section 5.5.11).
#[derive(Clone, Copy, Debug, Default)]
struct Saved {
    /// The state that the losses ended.
    state: Option<Bbr3Mode>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// BBR.probe_rtt_min_delay and what else ProbeRTT goes by (section 5.3.4).
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    min_delay: Option<Span>,
    min_stamp: Time,
    expired: bool,
    done: Option<Time>,
    round_done: bool,
}

/// BBR.loss_in_round and the rest of a round's losses.
#[derive(Clone, Copy, Debug, Default)]
struct LossEvents {
    in_round: bool,
    round_delivered: u64,
    round_start: bool,
    events_in_round: u32,
    /// True if the current acknowledgement reported some.
    noted: bool,
}

/// In which recovery the sender is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bbr3Recovery {
    None,
    Fast,
    Timeout,
}

/// The state of BBR. Volumes are in bytes, rates in bytes a second of payload;
/// a bound that is not set is infinite.
#[derive(Clone, Debug)]
pub(crate) struct Bbr3 {
    params: Bbr3Params,
    mss: f64,
    initial_window: f64,
    ssthresh: u64,
    selective: bool,
    wire: Wire,
    random: Stream,

    // As of the acknowledgement at hand.
    now: Time,
    delivered: u64,
    in_flight: f64,
    window_limited: bool,
    rs: Sampled,

    state: Bbr3Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: Rounds,
    repair: Bbr3Recovery,
    undo: Saved,
    idle_restart: bool,
    held_back: HeldBack,

    // The bandwidth.
    bandwidth: MaxFilter<BANDWIDTH_CYCLES>,
    cycle_count: u64,
    max_bw: f64,
    bw_shortterm: f64,
    bw: f64,
    bw_latest: f64,

    // The volume.
    inflight_shortterm: f64,
    inflight_longterm: f64,
    inflight_latest: f64,
    extra_acked: MaxFilter<EXTRA_ACKED_ROUNDS>,
    extra_acked_since: Time,
    extra_acked_delivered: f64,

    // The delay.
    min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    probe_rtt: ProbeRtt,

    losses: LossEvents,
    /// Section 5.3.1.2.
    full: FullPipe,
    drain_start_round: u64,

    // Probes for bandwidth.
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    rounds_since_probe_up: u64,
    bw_probe_wait: Span,
    cycle_stamp: Time,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,

    // What the sender asks for.
    pacing_rate: Option<f64>,
    cwnd: f64,
    prior_cwnd: f64,
}

impl Bbr3 {
    /// OnInit.
    pub fn new(params: &Bbr3Params, setup: &Setup) -> Self {
        let infinite = f64::INFINITY;
        let mut bbr = Bbr3 {
            params: params.clone(),
            mss: setup.mss as f64,
            initial_window: setup.initial_window as f64,
            ssthresh: setup.initial_ssthresh,
            selective: setup.has_sack,
            wire: Wire::new(setup),
            random: Stream::from_state(setup.seed),
            now: Time::ZERO,
            delivered: 0,
            in_flight: 0.0,
            window_limited: false,
            rs: Sampled::default(),
            state: Bbr3Mode::Startup,
            pacing_gain: 1.0,
            cwnd_gain: 1.0,
            rounds: Rounds::default(),
            repair: Bbr3Recovery::None,
            undo: Saved::default(),
            idle_restart: false,
            held_back: HeldBack::new(),
            bandwidth: MaxFilter::new(),
            cycle_count: 0,
            max_bw: 0.0,
            bw_shortterm: infinite,
            bw: 0.0,
            bw_latest: 0.0,
            inflight_shortterm: infinite,
            inflight_longterm: infinite,
            inflight_latest: 0.0,
            extra_acked: MaxFilter::new(),
            extra_acked_since: Time::ZERO,
            extra_acked_delivered: 0.0,
            min_rtt: None,
            min_rtt_stamp: Time::ZERO,
            probe_rtt: ProbeRtt::default(),
            losses: LossEvents::default(),
            full: FullPipe::default(),
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            rounds_since_probe_up: 0,
            bw_probe_wait: Span::ZERO,
            cycle_stamp: Time::ZERO,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: infinite,
            pacing_rate: None,
            cwnd: setup.initial_window as f64,
            prior_cwnd: 0.0,
        };
        bbr.enter(Bbr3Mode::Startup);
        bbr
    }

    /// Changes the state, and the gains with it (section 5.6.1).
    fn enter(&mut self, state: Bbr3Mode) {
        let gain = self.params.cwnd_gain;
        (self.pacing_gain, self.cwnd_gain) = match state {
            Bbr3Mode::Startup => (self.params.startup_pacing_gain, gain),
            Bbr3Mode::Drain => (0.5, gain),
            Bbr3Mode::Down => (0.9, gain),
            Bbr3Mode::Cruise | Bbr3Mode::Refill => (1.0, gain),
            Bbr3Mode::Up => (1.25, gain * 1.125),
            Bbr3Mode::ProbeRtt => (1.0, self.params.probe_rtt_cwnd_gain),
        };
        self.state = state;
    }

    /// Takes what the acknowledgement says.
    fn take(&mut self, sample: &AckSample) {
        self.now = sample.now;
        self.delivered = sample.total_delivered;
        self.in_flight = sample.in_flight as f64;
        self.window_limited = sample.window_limited;
        self.losses.noted = sample.lost > 0;
        self.rs = Sampled { newly_acked: sample.delivered as f64, ..Sampled::default() };
        if let Some(rate) = &sample.rate {
            self.rs = Sampled {
                delivery_rate: rate.bytes_per_sec(),
                delivered: rate.delivered as f64,
                prior_delivered: Some(rate.prior_delivered),
                tx_in_flight: rate.tx_in_flight as f64,
                lost: rate.lost as f64,
                app_limited: self.held_back.covers(rate),
                ..self.rs
            };
        }
        if self.pacing_rate.is_none() {
            self.init_pacing_rate(sample.smoothed_rtt);
        }
    }

    /// InitPacingRate.
    fn init_pacing_rate(&mut self, srtt: Option<Span>) {
        let gain = self.params.startup_pacing_gain;
        self.pacing_rate = first_pacing_rate(self.initial_window as u64, gain, srtt);
    }

    /// CheckStartupDone, with CheckStartupHighLoss.
    fn check_startup_done(&mut self, sample: &AckSample) {
        self.check_startup_high_loss(sample);
        if self.state == Bbr3Mode::Startup && self.full.reached {
            self.enter(Bbr3Mode::Drain);
            self.drain_start_round = self.rounds.count;
        }
    }
    /// CheckDrainDone.
    fn check_drain_done(&mut self) {
        if self.state == Bbr3Mode::Drain
            && (self.in_flight <= self.inflight(self.bw, 1.0)
                || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down();
        }
    }

    /// SetPacingRateWithGain.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (100.0 - self.params.pacing_margin) / 100.0;
        if rate > 0.0 && (self.full.reached || self.pacing_rate.is_none_or(|old| rate > old)) {
            self.pacing_rate = Some(rate);
        }
    }
    /// SetSendQuantum.
    fn send_quantum(&self) -> f64 {
        let quantum = self.pacing_rate.unwrap_or(0.0) * 0.001;
        quantum.min(65_536.0).max(2.0 * self.mss)
    }

    /// SetCwnd.
    fn set_cwnd(&mut self) {
        let max_inflight =
            { self.quantized(self.bdp(self.bw, self.cwnd_gain) + self.extra_acked.max()) };
        if self.full.reached {
            self.cwnd = (self.cwnd + self.rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || (self.delivered as f64) < self.initial_window {
            self.cwnd += self.rs.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_pipe());
        if self.state == Bbr3Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd()); // BoundCwndForProbeRTT
        }
        self.bound_cwnd_for_model();
    }
    /// BoundCwndForModel.
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            Bbr3Mode::Down | Bbr3Mode::Refill | Bbr3Mode::Up => self.inflight_longterm,
            Bbr3Mode::Cruise | Bbr3Mode::ProbeRtt => self.inflight_with_headroom(),
            Bbr3Mode::Startup | Bbr3Mode::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(self.min_pipe());
        self.cwnd = self.cwnd.min(cap);
    }

    /// SaveCwnd.
    fn save_cwnd(&mut self) {
        let modulated = self.repair != Bbr3Recovery::None || self.state == Bbr3Mode::ProbeRtt;
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }
    /// RestoreCwnd.
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl CongestionControl for Bbr3 {
    /// OnInit: parameters from the handshake.
    fn on_connected(&mut self, now: Time, rtt: Option<Span>) {
        self.min_rtt = rtt;
        self.min_rtt_stamp = now;
        self.probe_rtt.min_delay = rtt;
        self.probe_rtt.min_stamp = now;
        self.extra_acked_since = now;
        self.init_pacing_rate(rtt);
    }

    /// UpdateOnACK.
    fn on_ack(&mut self, sample: &AckSample) {
        self.take(sample);
        if self.repair != Bbr3Recovery::None && !sample.in_recovery && !sample.in_loss {
            self.repair = Bbr3Recovery::None;
            self.restore_cwnd();
        }
        self.update_latest_delivery_signals();
        self.update_congestion_signals(sample);
        self.update_ack_aggregation();
        self.check_full_bw_reached();
        self.check_startup_done(sample);
        self.check_drain_done();
        self.update_probe_bw_cycle_phase();
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.advance_latest_delivery_signals();
        self.bw = self.max_bw.min(self.bw_shortterm); // BoundBWForModel
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd();
    }

    /// Section 5.6.4.4.
    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.kind {
            Congestion::Ecn => {}
            Congestion::Loss => {
                // State before these losses is saved already.
                if !self.losses.noted || event.now != self.now {
                    self.save_state_upon_loss();
                }
                self.repair = Bbr3Recovery::Fast;
            }
            Congestion::Timeout { .. } => {
                self.save_state_upon_loss();
                self.repair = Bbr3Recovery::Timeout;
                self.cwnd = self.mss;
            }
        }
    }

    /// HandleSpuriousLossDetection.
    fn on_undo(&mut self) {
        self.repair = Bbr3Recovery::None;
        self.restore_cwnd();
        self.undo_losses();
    }

    fn on_lost(&mut self, lost: &LostSegment) {
        self.handle_lost_packet(lost);
    }

    /// HandleRestartFromIdle.
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight == 0 && sent.app_limited {
            self.idle_restart = true;
            self.extra_acked_since = sent.now;
            if self.state.probes_bandwidth() {
                self.set_pacing_rate(1.0);
            } else if self.state == Bbr3Mode::ProbeRtt {
                self.now = sent.now;
                self.check_probe_rtt_done();
            }
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.cwnd as u64
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
        see("bandwidth_bps", self.wire.bits(self.max_bw));
        if let Some(min_rtt) = self.min_rtt {
            see("propagation_time_s", min_rtt.as_secs_f64());
        }
        see("pacing_gain", self.pacing_gain);
        for (name, bound) in [
            ("inflight_longterm_bytes", self.inflight_longterm),
            ("inflight_shortterm_bytes", self.inflight_shortterm),
        ] {
            if bound.is_finite() {
                see(name, bound);
            }
        }
    }
}

#[cfg(test)]
mod tests;
