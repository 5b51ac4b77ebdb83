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

use super::bbr_parts::{HeldBack, MaxFilter, Rounds, Wire, first_pacing_rate};
use super::control::{
    AckSample, Congestion, CongestionControl, CongestionEvent, ControlParams, ExternalControl,
    SentSample, Setup,
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

impl ControlParams for BbrParams {
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
        Box::new(Bbr::new(self, setup))
    }
}

/// BtlBwFilterLen, in round trips.
const BANDWIDTH_ROUNDS: usize = 10;
/// The gains of ProbeBW (section 4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// BBRMinPipeCwnd, in segments.
const MIN_PIPE: u64 = 4;
/// Round trips without a quarter more that fill the pipe (section 4.3.2.2).
const FULL_BW_ROUNDS: u32 = 3;
const FULL_BW_GROWTH: f64 = 1.25;

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
    filled_pipe: bool,
    full_bw: f64,
    full_bw_count: u32,
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
            filled_pipe: false,
            full_bw: 0.0,
            full_bw_count: 0,
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

    /// BBREnterStartup.
    fn enter_startup(&mut self) {
        self.state = Mode::Startup;
        self.pacing_gain = self.params.high_gain;
        self.cwnd_gain = self.params.high_gain;
    }
    /// BBREnterProbeBW: in any phase but the one that drains.
    fn enter_probe_bw(&mut self, now: Time) {
        let back = ((self.random.uniform() * 7.0) as usize).min(6);
        self.cwnd_gain = self.params.cwnd_gain;
        self.enter_phase((CYCLE.len() - back) % CYCLE.len(), now);
    }
    /// BBRAdvanceCyclePhase.
    fn enter_phase(&mut self, phase: usize, now: Time) {
        self.state = Mode::ProbeBw { phase, since: now };
        self.pacing_gain = CYCLE[phase];
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
            self.enter_phase((phase + 1) % CYCLE.len(), sample.now);
        }
    }

    /// BBRCheckFullPipe.
    fn check_full_pipe(&mut self, sample: &AckSample) {
        let limited = sample.rate.is_none_or(|rate| self.held_back.covers(&rate));
        if self.filled_pipe || !self.rounds.started || limited {
            return;
        }
        if self.btl_bw >= self.full_bw * FULL_BW_GROWTH {
            self.full_bw = self.btl_bw;
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= FULL_BW_ROUNDS;
    }

    /// BBRCheckDrain.
    fn check_drain(&mut self, sample: &AckSample) {
        if self.state == Mode::Startup && self.filled_pipe {
            self.state = Mode::Drain;
            self.pacing_gain = 1.0 / self.params.high_gain;
            self.cwnd_gain = self.params.high_gain;
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
            self.state = Mode::ProbeRtt { done: None, round_done: false };
            self.save_cwnd();
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
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
        if self.filled_pipe {
            self.enter_probe_bw(now);
        } else {
            self.enter_startup();
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
        if rate > 0.0 && (self.filled_pipe || self.pacing_rate.is_none_or(|old| rate > old)) {
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
            if self.filled_pipe {
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
        self.full_bw = 0.0;
        self.full_bw_count = 0;
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
mod tests {
    use super::super::RateSample;
    use super::super::testing::{ack, event, transport};
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn bbr() -> Bbr {
        Bbr::new(&BbrParams::default(), &transport().setup(10_000, 1))
    }
    /// A round trip: an acknowledgement of all that was sent in it, so many
    /// segments.
    fn sample(round: u64, delivered_before: u64, segments: u64) -> AckSample {
        let delivered = segments * 1000;
        let rate = RateSample {
            delivered,
            interval: RTT,
            prior_delivered: delivered_before,
            ..RateSample::default()
        };
        AckSample {
            now: Time::ZERO + RTT * round,
            total_delivered: delivered_before + delivered,
            in_flight: delivered,
            rtt: Some(RTT),
            smoothed_rtt: Some(RTT),
            rate: Some(rate),
            ..ack(delivered)
        }
    }
    fn play(bbr: &mut Bbr, rounds: &[u64]) {
        let mut delivered = 0;
        for (index, segments) in (1..).zip(rounds) {
            bbr.on_ack(&sample(index, delivered, *segments));
            delivered += segments * 1000;
        }
    }

    /// Section 4.3.2.2: a quarter more is growth.
    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut bbr = bbr();
        play(&mut bbr, &[10, 20, 25, 32, 32, 39]);
        assert_eq!((bbr.state, bbr.pacing_gain), (Mode::Startup, 2.885));
        play(&mut bbr, &[10, 20, 25, 32, 32, 39, 39]);
        assert!(bbr.filled_pipe && bbr.state != Mode::Startup);
    }

    /// 100 segments in 100 ms; the pacing rate has 40 bytes with each.
    #[test]
    fn rate_and_window_are_gains_of_the_model() {
        let mut bbr = bbr();
        play(&mut bbr, &[10, 20, 40, 80, 100, 100, 100, 100, 100, 100, 100]);
        assert_eq!((bbr.btl_bw, bbr.rtprop), (1e6, Some(RTT)));
        assert_eq!(bbr.cwnd_gain, 2.0);
        let wire = 1e6 * 8.0 * 1.04;
        assert_eq!(bbr.pacing_rate().unwrap().as_bps(), (wire * bbr.pacing_gain) as u64);
        // 8 Mbit/s: a quantum of two segments.
        assert_eq!(bbr.in_flight_for(2.0), 200_000 + 3 * 2000);
        assert!(bbr.window() <= 206_000);
    }

    #[test]
    fn a_bandwidth_is_forgotten_after_ten_rounds() {
        let mut bbr = bbr();
        let mut rounds = vec![100; 8];
        rounds.extend([50; 9]);
        play(&mut bbr, &rounds);
        assert_eq!(bbr.btl_bw, 1e6);
        let mut bbr = self::bbr();
        rounds.push(50);
        play(&mut bbr, &rounds);
        assert_eq!(bbr.btl_bw, 0.5e6);
    }

    /// Sections 4.3.4.1 and 4.3.4.2: 5/4, 3/4 and six times 1, from anywhere but 3/4.
    #[test]
    fn the_cycle_begins_anywhere_but_in_its_drain() {
        let mut begun = [0; 8];
        let mut bbr = bbr();
        for _ in 0..7000 {
            bbr.enter_probe_bw(Time::ZERO);
            let Mode::ProbeBw { phase, .. } = bbr.state else { unreachable!() };
            begun[phase] += 1;
        }
        assert_eq!(begun[1], 0);
        for phase in [0, 2, 3, 4, 5, 6, 7] {
            assert!((850..1150).contains(&begun[phase]), "{begun:?}");
        }
    }

    /// Section 4.2.3.4: for a round trip as much is sent as is delivered; at the end the window is
    /// restored.
    #[test]
    fn a_recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
        let mut bbr = bbr();
        play(&mut bbr, &[100; 12]);
        let before = bbr.window();
        let in_flight = CongestionEvent { in_flight: 90_000, ..event(Congestion::Loss, 100_000) };
        bbr.on_congestion(&in_flight);
        assert_eq!(bbr.window(), 91_000);
        let within = AckSample {
            now: Time::ZERO + RTT * 13,
            in_flight: 88_000,
            delivered: 2000,
            lost: 1000,
            total_delivered: 1_202_000,
            in_recovery: true,
            ..AckSample::default()
        };
        bbr.on_ack(&within);
        assert_eq!(bbr.window(), 90_000, "what is in flight and what has arrived");
        bbr.on_ack(&AckSample { lost: 0, in_flight: 50_000, ..within });
        assert_eq!(bbr.window(), 90_000, "it falls by losses only");
        bbr.on_ack(&AckSample { in_recovery: false, lost: 0, ..within });
        assert_eq!(bbr.window(), before);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_a_spurious_one_nothing() {
        let mut bbr = bbr();
        play(&mut bbr, &[100; 12]);
        let before = bbr.window();
        bbr.on_congestion(&event(Congestion::Timeout { first: true }, 100_000));
        assert_eq!(bbr.window(), 1000);
        bbr.on_undo();
        assert_eq!(bbr.window(), before);
    }

    #[test]
    fn the_handshake_gives_the_first_propagation_time() {
        let mut bbr = bbr();
        bbr.on_connected(Time::ZERO, Some(RTT / 2));
        play(&mut bbr, &[10, 20]);
        assert_eq!(bbr.rtprop, Some(RTT / 2));
    }

    /// Section 4.3.5: 200 ms and a round with four segments; Startup goes on if the pipe is not
    /// known to be full.
    #[test]
    fn probe_rtt_before_the_pipe_is_full_leads_back_to_startup() {
        let mut bbr = bbr();
        play(&mut bbr, &[10, 20]);
        let few = |round, before| AckSample { in_flight: 4000, ..sample(round, before, 10) };
        bbr.on_ack(&few(103, 30_000));
        assert_eq!((bbr.window(), bbr.pacing_gain), (4000, 1.0), "ten seconds after the last");
        bbr.on_ack(&few(105, 40_000));
        assert!(matches!(bbr.state, Mode::ProbeRtt { .. }), "after 200 ms");
        bbr.on_ack(&few(106, 50_000));
        assert_eq!((bbr.state, bbr.pacing_gain), (Mode::Startup, 2.885));
    }

    #[test]
    fn a_timeout_in_a_recovery_keeps_the_window_before_it() {
        let mut bbr = bbr();
        play(&mut bbr, &[100; 12]);
        let before = bbr.window();
        let in_flight = CongestionEvent { in_flight: 50_000, ..event(Congestion::Loss, 100_000) };
        bbr.on_congestion(&in_flight);
        bbr.on_congestion(&event(Congestion::Timeout { first: true }, 50_000));
        bbr.on_undo();
        assert_eq!(bbr.window(), before);
    }

    #[test]
    fn after_a_spurious_loss_the_search_for_the_plateau_begins_again() {
        let mut bbr = bbr();
        play(&mut bbr, &[10, 20, 40, 40]);
        assert_eq!((bbr.full_bw, bbr.full_bw_count), (0.4e6, 1));
        bbr.on_undo();
        bbr.on_ack(&sample(5, 110_000, 40));
        assert_eq!((bbr.full_bw, bbr.full_bw_count), (0.4e6, 0));
    }

    #[test]
    fn marks_change_nothing() {
        let mut bbr = bbr();
        play(&mut bbr, &[100; 12]);
        let before = bbr.window();
        bbr.on_congestion(&event(Congestion::Ecn, 100_000));
        assert_eq!(bbr.window(), before);
    }
}
