//! BBR version 1 (`net/ipv4/tcp_bbr.c`): bandwidth in segments a microsecond, times 2^24.

use std::collections::VecDeque;

use super::super::clock::Extreme;
use super::super::state::{CaState, INFINITE, Rate, State};
use super::{Algorithm, Event};

const BW_SCALE: u32 = 24;
const BW_UNIT: u64 = 1 << BW_SCALE;
/// Gains in 256ths.
const UNIT: u32 = 256;
const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
const CWND_GAIN: u32 = UNIT * 2;
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Rounds of the bandwidth's maximum.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Jiffies that a least round-trip time holds, and that ProbeRTT lasts.
const MIN_RTT_WINDOW: u64 = 10_000;
const PROBE_RTT: u64 = 200;
const MIN_CWND: u32 = 4;
const INITIAL_CWND: u32 = 10;
/// Below so many bytes a second segments leave by one.
const ONE_BY_ONE: u64 = 1_200_000 >> 3;
/// The host sends at most a millisecond's worth at once, and no more than this.
const PACING_SHIFT: u32 = 10;
const LARGEST_BURST: u64 = 65_536 - 1 - 320;
/// Full pipe: rounds without a quarter more.
const FULL_ROUNDS: u32 = 3;
/// Long-term sampling of policers: rounds, losses in 256ths, and how alike two intervals are.
const LONG_ROUNDS: u32 = 4;
const LONG_LOSS: u64 = 50;
const LONG_RATIO: u64 = UNIT as u64 / 8;
const LONG_DIFFERENCE: u64 = 4000 / 8;
const LONG_USE: u32 = 48;
/// Aggregation: rounds of the maximum, the most of it in microseconds, and of an epoch.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_MOST: u64 = 100_000;
const EPOCH_MOST: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinuxBbrMode {
    #[default]
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Sampling of the long-term rate.
#[derive(Clone, Copy, Debug, Default)]
struct LongTerm {
    sampling: bool,
    rounds: u32,
    uses: bool,
    bandwidth: u64,
    delivered: u64,
    millis: u64,
    lost: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Bbr {
    seed: u64,
    /// The phases to enter ProbeBW in, if they are known.
    pub phases: VecDeque<u8>,
    /// Number of entries of ProbeBW.
    pub drawn: usize,
    min_rtt: u64,
    min_rtt_at: u64,
    probe_rtt_done: u64,
    bandwidth: Extreme,
    rounds: u64,
    round_end: u64,
    cycle_at: u64,
    mode: LinuxBbrMode,
    prev_state: CaState,
    conserves: bool,
    round_start: bool,
    idle_restart: bool,
    probe_rtt_round: bool,
    long: LongTerm,
    pacing_gain: u32,
    cwnd_gain: u32,
    full: bool,
    full_count: u32,
    full_bandwidth: u64,
    phase: usize,
    has_rtt: bool,
    prior_cwnd: u32,
    epoch_at: u64,
    epoch_acked: u32,
    extra: [u32; 2],
    extra_rounds: u32,
    extra_index: usize,
}

impl Bbr {
    pub fn new(seed: u64) -> Self {
        Bbr {
            seed,
            min_rtt: u64::MAX,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            ..Bbr::default()
        }
    }

    fn bandwidth(&self) -> u64 {
        if self.long.uses { self.long.bandwidth } else { self.bandwidth.get() }
    }
    fn bytes_per_second(state: &State, bandwidth: u64, gain: u32) -> u64 {
        let rate = (bandwidth * u64::from(state.mss) * u64::from(gain)) >> 8;
        (rate * (1_000_000 / 100 * 99)) >> BW_SCALE
    }
    fn initial_rate(&mut self, state: &mut State) {
        let rtt = if state.srtt8 > 0 {
            self.has_rtt = true;
            (state.srtt8 >> 3).max(1)
        } else {
            1000
        };
        let bandwidth = u64::from(state.cwnd) * BW_UNIT / rtt;
        state.pacing_rate = Self::bytes_per_second(state, bandwidth, HIGH_GAIN);
    }
    fn pace(&mut self, state: &mut State, bandwidth: u64, gain: u32) {
        let rate = Self::bytes_per_second(state, bandwidth, gain);
        if !self.has_rtt && state.srtt8 > 0 {
            self.initial_rate(state);
        }
        if self.full || rate > state.pacing_rate {
            state.pacing_rate = rate;
        }
    }
    /// Segments that leave the host at once, by its offloading.
    fn burst(state: &State) -> u32 {
        let bytes = (state.pacing_rate >> PACING_SHIFT).min(LARGEST_BURST);
        ((bytes / u64::from(state.mss)) as u32).max(Self::least_at_once(state)).min(0x7f)
    }
    /// The least number of segments that are sent at once.
    pub fn least_at_once(state: &State) -> u32 {
        if state.pacing_rate < ONE_BY_ONE { 1 } else { 2 }
    }
    fn save_cwnd(&mut self, state: &State) {
        let good = self.prev_state < CaState::Recovery && self.mode != LinuxBbrMode::ProbeRtt;
        self.prior_cwnd = if good { state.cwnd } else { self.prior_cwnd.max(state.cwnd) };
    }

    fn bdp(&self, bandwidth: u64, gain: u32) -> u32 {
        if self.min_rtt >= u64::from(u32::MAX) {
            return INITIAL_CWND;
        }
        (((bandwidth * self.min_rtt * u64::from(gain)) >> 8).div_ceil(BW_UNIT)) as u32
    }
    fn budget(&self, state: &State, cwnd: u32) -> u32 {
        let cwnd = (cwnd + 3 * Self::burst(state) + 1) & !1;
        if self.mode == LinuxBbrMode::ProbeBw && self.phase == 0 { cwnd + 2 } else { cwnd }
    }
    fn inflight(&self, state: &State, bandwidth: u64, gain: u32) -> u32 {
        self.budget(state, self.bdp(bandwidth, gain))
    }
    /// Segments in flight when the next segment leaves.
    fn in_network(&self, state: &State, in_flight: u32) -> u32 {
        let wait = state.paced_until.saturating_sub(state.nanos) / 1000;
        let delivered = ((self.bandwidth() * wait) >> BW_SCALE) as u32;
        let more = if self.pacing_gain > UNIT { Self::burst(state) } else { 0 };
        (in_flight + more).saturating_sub(delivered)
    }
    fn aggregation(&self) -> u32 {
        if !self.full {
            return 0;
        }
        let most = self.bandwidth() * EXTRA_MOST / BW_UNIT;
        self.extra[0].max(self.extra[1]).min(most as u32)
    }

    /// Window in a recovery: first the delivered segments, then slow start; the earlier window
    /// after it.
    fn recover(&mut self, state: &State, rate: &Rate) -> (u32, bool) {
        let (before, now) = (self.prev_state, state.ca_state);
        let mut cwnd = state.cwnd;
        if rate.losses > 0 {
            cwnd = cwnd.saturating_sub(rate.losses).max(1);
        }
        if now == CaState::Recovery && before != CaState::Recovery {
            self.conserves = true;
            self.round_end = state.delivered;
            cwnd = state.in_flight() + rate.acked_sacked;
        } else if before >= CaState::Recovery && now < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserves = false;
        }
        self.prev_state = now;
        match self.conserves {
            true => (cwnd.max(state.in_flight() + rate.acked_sacked), true),
            false => (cwnd, false),
        }
    }
    fn set_cwnd(&mut self, state: &mut State, rate: &Rate) {
        if rate.acked_sacked > 0 {
            let (mut cwnd, conserves) = self.recover(state, rate);
            if !conserves {
                let target = self.bdp(self.bandwidth(), self.cwnd_gain) + self.aggregation();
                let target = self.budget(state, target);
                if self.full {
                    cwnd = (cwnd + rate.acked_sacked).min(target);
                } else if cwnd < target || state.delivered < u64::from(INITIAL_CWND) {
                    cwnd += rate.acked_sacked;
                }
                cwnd = cwnd.max(MIN_CWND);
            }
            state.cwnd = cwnd;
        }
        if self.mode == LinuxBbrMode::ProbeRtt {
            state.cwnd = state.cwnd.min(MIN_CWND);
        }
    }

    fn phase_ends(&self, state: &State, rate: &Rate) -> bool {
        let full_length = state.delivered_at.saturating_sub(self.cycle_at) > self.min_rtt;
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_network = self.in_network(state, rate.prior_in_flight);
        let bandwidth = self.bandwidth.get();
        if self.pacing_gain > UNIT {
            let reached = || in_network >= self.inflight(state, bandwidth, self.pacing_gain);
            return full_length && (rate.losses > 0 || reached());
        }
        full_length || in_network <= self.inflight(state, bandwidth, UNIT)
    }
    fn begin_phase(&mut self, state: &State, phase: usize) {
        self.phase = phase;
        self.cycle_at = state.delivered_at;
    }
    fn probe_bandwidth(&mut self, state: &State) {
        self.mode = LinuxBbrMode::ProbeBw;
        self.drawn += 1;
        // Any but the one that drains.
        let phase = self.phases.pop_front().map(usize::from).unwrap_or_else(|| {
            self.seed = self
                .seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (8 - (self.seed >> 33) as usize % 7) % 8
        });
        self.begin_phase(state, phase);
    }
    fn leave_probe_rtt(&mut self, state: &State) {
        match self.full {
            true => self.probe_bandwidth(state),
            false => self.mode = LinuxBbrMode::Startup,
        }
    }

    fn begin_long_interval(&mut self, state: &State) {
        self.long.millis = state.delivered_at / 1000;
        self.long.delivered = state.delivered;
        self.long.lost = state.lost;
        self.long.rounds = 0;
    }
    fn forget_long(&mut self, state: &State) {
        self.long = LongTerm::default();
        self.begin_long_interval(state);
    }
    fn long_interval_done(&mut self, state: &State, bandwidth: u64) {
        let last = self.long.bandwidth;
        if last > 0 {
            let difference = bandwidth.abs_diff(last);
            if difference * u64::from(UNIT) <= LONG_RATIO * last
                || Self::bytes_per_second(state, difference, UNIT) <= LONG_DIFFERENCE
            {
                self.long.bandwidth = (bandwidth + last) >> 1;
                self.long.uses = true;
                self.pacing_gain = UNIT;
                self.long.rounds = 0;
                return;
            }
        }
        self.long.bandwidth = bandwidth;
        self.begin_long_interval(state);
    }
    /// Whether a policer is at work.
    fn sample_long(&mut self, state: &State, rate: &Rate) {
        if self.long.uses {
            if self.mode == LinuxBbrMode::ProbeBw && self.round_start {
                self.long.rounds += 1;
                if self.long.rounds >= LONG_USE {
                    self.forget_long(state);
                    self.probe_bandwidth(state);
                }
            }
            return;
        }
        if !self.long.sampling {
            if rate.losses == 0 {
                return;
            }
            self.begin_long_interval(state);
            self.long.sampling = true;
        }
        if rate.app_limited {
            self.forget_long(state);
            return;
        }
        self.long.rounds += u32::from(self.round_start);
        if self.long.rounds < LONG_ROUNDS {
            return;
        }
        if self.long.rounds > 4 * LONG_ROUNDS {
            self.forget_long(state);
            return;
        }
        let lost = state.lost - self.long.lost;
        let delivered = state.delivered - self.long.delivered;
        if rate.losses == 0 || delivered == 0 || lost << 8 < LONG_LOSS * delivered {
            return;
        }
        let millis = (state.delivered_at / 1000).saturating_sub(self.long.millis);
        if millis >= 1 {
            self.long_interval_done(state, delivered * BW_UNIT / (millis * 1000));
        }
    }

    fn update_bandwidth(&mut self, state: &State, rate: &Rate) {
        self.round_start = false;
        if rate.delivered < 0 || rate.interval <= 0 {
            return;
        }
        if rate.prior_delivered >= self.round_end {
            self.round_end = state.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserves = false;
        }
        self.sample_long(state, rate);
        let bandwidth = rate.delivered as u64 * BW_UNIT / rate.interval as u64;
        if !rate.app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.take(BANDWIDTH_ROUNDS, self.rounds, bandwidth, |new, old| new >= old);
        }
    }
    fn update_aggregation(&mut self, state: &State, rate: &Rate) {
        if rate.acked_sacked == 0 || rate.delivered < 0 || rate.interval <= 0 {
            return;
        }
        if self.round_start {
            self.extra_rounds = (self.extra_rounds + 1).min(0x1f);
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra_index ^= 1;
                self.extra[self.extra_index] = 0;
            }
        }
        let epoch = state.delivered_at.saturating_sub(self.epoch_at);
        let mut expected = (self.bandwidth() * epoch / BW_UNIT) as u32;
        if self.epoch_acked <= expected || self.epoch_acked + rate.acked_sacked >= EPOCH_MOST {
            self.epoch_acked = 0;
            self.epoch_at = state.delivered_at;
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + rate.acked_sacked).min(EPOCH_MOST - 1);
        let extra = (self.epoch_acked - expected).min(state.cwnd);
        self.extra[self.extra_index] = self.extra[self.extra_index].max(extra);
    }
    fn check_full(&mut self, rate: &Rate) {
        if self.full || !self.round_start || rate.app_limited {
            return;
        }
        if self.bandwidth.get() >= (self.full_bandwidth * u64::from(UNIT * 5 / 4)) >> 8 {
            self.full_bandwidth = self.bandwidth.get();
            self.full_count = 0;
            return;
        }
        self.full_count += 1;
        self.full = self.full_count >= FULL_ROUNDS;
    }
    fn check_drain(&mut self, state: &mut State) {
        let bandwidth = self.bandwidth.get();
        if self.mode == LinuxBbrMode::Startup && self.full {
            self.mode = LinuxBbrMode::Drain;
            state.ssthresh = self.inflight(state, bandwidth, UNIT);
        }
        if self.mode == LinuxBbrMode::Drain
            && self.in_network(state, state.in_flight()) <= self.inflight(state, bandwidth, UNIT)
        {
            self.probe_bandwidth(state);
        }
    }
    fn check_probe_rtt_done(&mut self, state: &mut State) {
        if self.probe_rtt_done == 0 || state.jiffies <= self.probe_rtt_done {
            return;
        }
        self.min_rtt_at = state.jiffies;
        state.cwnd = state.cwnd.max(self.prior_cwnd);
        self.leave_probe_rtt(state);
    }
    fn update_min_rtt(&mut self, state: &mut State, rate: &Rate) {
        let expired = state.jiffies > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Ok(rtt) = u64::try_from(rate.rtt)
            && (rtt < self.min_rtt || (expired && !rate.ack_delayed))
        {
            self.min_rtt = rtt;
            self.min_rtt_at = state.jiffies;
        }
        if expired && !self.idle_restart && self.mode != LinuxBbrMode::ProbeRtt {
            self.mode = LinuxBbrMode::ProbeRtt;
            self.save_cwnd(state);
            self.probe_rtt_done = 0;
        }
        if self.mode == LinuxBbrMode::ProbeRtt {
            state.app_limited = (state.delivered + u64::from(state.in_flight())).max(1);
            if self.probe_rtt_done == 0 && state.in_flight() <= MIN_CWND {
                self.probe_rtt_done = state.jiffies + PROBE_RTT;
                self.probe_rtt_round = false;
                self.round_end = state.delivered;
            } else if self.probe_rtt_done != 0 {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt_done(state);
                }
            }
        }
        if rate.delivered > 0 {
            self.idle_restart = false;
        }
    }
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            LinuxBbrMode::Startup => (HIGH_GAIN, HIGH_GAIN),
            LinuxBbrMode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            LinuxBbrMode::ProbeBw if self.long.uses => (UNIT, CWND_GAIN),
            LinuxBbrMode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            LinuxBbrMode::ProbeRtt => (UNIT, UNIT),
        };
    }
}

impl Algorithm for Bbr {
    fn init(&mut self, state: &mut State) {
        state.ssthresh = INFINITE;
        state.paces = true;
        self.round_end = state.delivered;
        self.min_rtt = state.min_rtt();
        self.min_rtt_at = state.jiffies;
        self.initial_rate(state);
        self.forget_long(state);
        self.epoch_at = state.micros;
    }
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        self.save_cwnd(state);
        state.ssthresh
    }
    fn undo(&mut self, state: &mut State) -> u32 {
        self.full_bandwidth = 0;
        self.full_count = 0;
        self.forget_long(state);
        state.cwnd
    }
    fn enter(&mut self, state: &mut State, new: CaState) {
        if new == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full_bandwidth = 0;
            self.round_start = true;
            self.sample_long(state, &Rate { losses: 1, ..Rate::default() });
        }
    }
    fn event(&mut self, state: &mut State, event: Event) {
        if event == Event::TransmitStart && state.app_limited != 0 {
            self.idle_restart = true;
            self.epoch_at = state.micros;
            self.epoch_acked = 0;
            if self.mode == LinuxBbrMode::ProbeBw {
                self.pace(state, self.bandwidth(), UNIT);
            } else if self.mode == LinuxBbrMode::ProbeRtt {
                self.check_probe_rtt_done(state);
            }
        }
    }
    fn control(&mut self, state: &mut State, rate: &Rate) {
        self.update_bandwidth(state, rate);
        self.update_aggregation(state, rate);
        if self.mode == LinuxBbrMode::ProbeBw && self.phase_ends(state, rate) {
            self.begin_phase(state, (self.phase + 1) % 8);
        }
        self.check_full(rate);
        self.check_drain(state);
        self.update_min_rtt(state, rate);
        self.update_gains();
        self.pace(state, self.bandwidth(), self.pacing_gain);
        self.set_cwnd(state, rate);
    }
    fn recovers_by_itself(&self) -> bool {
        true
    }
    fn has_rate(&self) -> bool {
        true
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("pacing_gain", f64::from(self.pacing_gain) / f64::from(UNIT));
        see("min_rtt_ms", self.min_rtt as f64 * 1e-3);
    }
}
