//! CUBIC (`net/ipv4/tcp_cubic.c`): the curve in 1024ths of a second, looked at once a jiffy.

use super::super::clock::jiffies_of;
use super::super::state::{CaState, State};
use super::{Algorithm, Event, reno};
use crate::congestion::cubic::CubicParams;
use crate::congestion::slow_start::SlowStartKind;

/// The unit of beta: 717 / 1024.
const UNIT: u32 = 1024;
/// The unit of time on the curve: 2^10 a second.
const TIME_BITS: u32 = 10;
/// HyStart: from this window on, acknowledgements of a train this close, and so many samples.
const LOW_WINDOW: u32 = 16;
const TRAIN_GAP: u64 = 2000;
const SAMPLES: u32 = 8;
const DELAY_MIN: u64 = 4000;
const DELAY_MAX: u64 = 16_000;
/// For trains behind offloading hosts: four of the largest packets of the host.
const LARGEST: u64 = 65_536;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    beta: u32,
    /// C in 10240ths: 41 for 0.4.
    scale: u64,
    fast_convergence: bool,
    friendly: bool,
    hystart: bool,

    count: u32,
    w_max: u32,
    last_cwnd: u32,
    last_time: u64,
    origin: u32,
    k: u64,
    min_delay: u64,
    /// The jiffy in which the epoch began; 0 for none.
    epoch: u64,
    acked: u32,
    w_est: u32,
    found: bool,
    round_began: u64,
    round_end: u64,
    last_ack: u64,
    round_min: u64,
    samples: u32,
}

impl Cubic {
    pub fn new(params: &CubicParams) -> Self {
        Cubic {
            beta: (params.beta * f64::from(UNIT)).round() as u32,
            scale: ((params.c * 102.4).round() as u64).max(1),
            fast_convergence: params.fast_convergence,
            friendly: params.reno_friendly,
            hystart: params.slow_start == SlowStartKind::Hystart,
            round_min: u64::MAX,
            ..Cubic::default()
        }
    }

    fn reset(&mut self) {
        (self.count, self.w_max, self.last_cwnd, self.last_time) = (0, 0, 0, 0);
        (self.origin, self.k, self.min_delay, self.epoch) = (0, 0, 0, 0);
        (self.acked, self.w_est, self.found) = (0, 0, false);
    }
    fn begin_round(&mut self, state: &State) {
        self.round_began = state.micros;
        self.last_ack = state.micros;
        self.round_end = state.nxt;
        self.round_min = u64::MAX;
        self.samples = 0;
    }

    /// Segments to be acknowledged for one more of the window.
    fn update(&mut self, state: &State, acked: u32) {
        let (cwnd, now) = (state.cwnd, state.jiffies);
        self.acked += acked;
        if self.last_cwnd == cwnd && now - self.last_time <= 1000 / 32 {
            return;
        }
        if self.epoch == 0 || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            self.look(cwnd, now, acked);
        }
        if self.friendly {
            // With the kernel's beta the step is never 0.
            let step = ((cwnd * (8 * (UNIT + self.beta) / 3 / (UNIT - self.beta))) >> 3).max(1);
            while self.acked > step {
                self.acked -= step;
                self.w_est += 1;
            }
            if self.w_est > cwnd {
                self.count = self.count.min(cwnd / (self.w_est - cwnd));
            }
        }
        self.count = self.count.max(2);
    }

    /// Looks at the curve.
    fn look(&mut self, cwnd: u32, now: u64, acked: u32) {
        if self.epoch == 0 {
            self.epoch = now;
            self.acked = acked;
            self.w_est = cwnd;
            if self.w_max <= cwnd {
                self.k = 0;
                self.origin = cwnd;
            } else {
                let factor = (1 << (10 + 3 * TIME_BITS)) / (self.scale * 10);
                self.k = cube_root(factor * u64::from(self.w_max - cwnd));
                self.origin = self.w_max;
            }
        }
        let time =
            ((now.saturating_sub(self.epoch) + jiffies_of(self.min_delay)) << TIME_BITS) / 1000;
        let offset = u128::from(time.abs_diff(self.k));
        let cube = u128::from(self.scale * 10) * offset * offset * offset;
        let delta = (cube >> (10 + 3 * TIME_BITS)) as u32;
        let target = match time < self.k {
            true => self.origin.wrapping_sub(delta),
            false => self.origin.wrapping_add(delta),
        };
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.w_max == 0 && self.count > 20 {
            self.count = 20;
        }
    }

    fn hystart(&mut self, state: &mut State, delay: u64) {
        if state.una > self.round_end {
            self.begin_round(state);
        }
        if state.cwnd < LOW_WINDOW {
            return;
        }
        if state.micros - self.last_ack <= TRAIN_GAP {
            self.last_ack = state.micros;
            let slack = match state.pacing_rate {
                0 => 0,
                rate => (LARGEST * 4 * 1_000_000 / rate).min(1000),
            };
            let mut threshold = self.min_delay + slack;
            if !state.paces {
                threshold >>= 1;
            }
            if state.micros - self.round_began > threshold {
                self.found = true;
                state.ssthresh = state.cwnd;
            }
        }
        self.round_min = self.round_min.min(delay);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else if self.round_min
            > self.min_delay + (self.min_delay >> 3).clamp(DELAY_MIN, DELAY_MAX)
        {
            self.found = true;
            state.ssthresh = state.cwnd;
        }
    }
}

impl Algorithm for Cubic {
    fn init(&mut self, state: &mut State) {
        self.reset();
        if self.hystart {
            self.begin_round(state);
        }
    }
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        self.epoch = 0;
        self.w_max = match state.cwnd < self.w_max && self.fast_convergence {
            true => state.cwnd * (UNIT + self.beta) / (2 * UNIT),
            false => state.cwnd,
        };
        (state.cwnd * self.beta / UNIT).max(2)
    }
    fn avoid(&mut self, state: &mut State, acked: u32) {
        reno(state, acked, |state, acked| {
            self.update(state, acked);
            self.count
        });
    }
    fn enter(&mut self, state: &mut State, new: CaState) {
        if new == CaState::Loss {
            self.reset();
            self.begin_round(state);
        }
    }
    fn event(&mut self, state: &mut State, event: Event) {
        // The curve stands still while the application is idle.
        if event == Event::TransmitStart && self.epoch != 0 && state.jiffies > state.last_sent {
            self.epoch = (self.epoch + state.jiffies - state.last_sent).min(state.jiffies);
        }
    }
    fn measured(&mut self, state: &mut State, rtt: i64) {
        let Ok(delay) = u64::try_from(rtt) else { return };
        if self.epoch != 0 && state.jiffies - self.epoch < 1000 {
            return;
        }
        let delay = delay.max(1);
        if self.min_delay == 0 || self.min_delay > delay {
            self.min_delay = delay;
        }
        if !self.found && state.in_slow_start() && self.hystart {
            self.hystart(state, delay);
        }
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("w_max_segments", f64::from(self.w_max));
    }
}

/// Roots of 0 to 63 in 64ths, less 10: what the kernel's first guess is.
#[rustfmt::skip]
const ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156,
    157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199,
    200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229,
    231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// A cubic root by a table and one step of Newton's, within a few thousandths.
fn cube_root(a: u64) -> u64 {
    let bits = 64 - a.leading_zeros();
    if bits < 7 {
        return (u64::from(ROOTS[a as usize]) + 35) >> 6;
    }
    let b = ((bits * 84) >> 8) - 1;
    let x = ((u64::from(ROOTS[(a >> (b * 3)) as usize]) + 10) << b) >> 6;
    let x = 2 * x + a / (x * (x - 1));
    (x * 341) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own would loop without end, or divide by zero.
    #[test]
    fn parameters_at_the_ends_of_their_ranges_have_windows() {
        for (beta, c) in [(0.01, 0.4), (0.0995, 0.4), (0.99, 0.4), (0.7, 1e-6), (0.7, 1e6)] {
            let params = CubicParams { beta, c, ..CubicParams::default() };
            let mut cubic = Cubic::new(&params);
            let mut state = State::new(1448, 4, 2);
            state.nanos = 5_000_000;
            state.jiffies = 5;
            for round in 0..100 {
                if round % 10 == 0 {
                    state.cwnd = cubic.ssthresh(&mut state);
                    state.jiffies += 100;
                }
                cubic.update(&state, 2);
                assert!(cubic.count >= 2, "{beta} {c}");
                state.jiffies += 40;
            }
        }
    }
}
