//! Vegas (`net/ipv4/tcp_vegas.c`).

use super::super::state::{CaState, State};
use super::{Algorithm, Event, reno};

const ALPHA: u64 = 2;
const BETA: u64 = 4;
const GAMMA: u64 = 1;
const UNKNOWN: u64 = 0x7fff_ffff;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    active: bool,
    round_end: u64,
    samples: u32,
    least: u64,
    base: u64,
}

impl Default for Vegas {
    fn default() -> Self {
        Vegas { active: true, round_end: 0, samples: 0, least: UNKNOWN, base: UNKNOWN }
    }
}

impl Vegas {
    fn begin(&mut self, state: &State) {
        self.active = true;
        self.round_end = state.nxt;
        self.samples = 0;
        self.least = UNKNOWN;
    }

    /// Once a round trip.
    fn adjust(&mut self, state: &mut State, acked: u32) {
        let cwnd = u64::from(state.cwnd);
        let target = cwnd * self.base / self.least;
        let excess = cwnd * (self.least - self.base) / self.base;
        if excess > GAMMA && state.in_slow_start() {
            state.cwnd = cwnd.min(target + 1) as u32;
            state.ssthresh = state.ssthresh.min(state.cwnd);
        } else if state.in_slow_start() {
            state.slow_start(acked);
        } else if excess > BETA {
            state.cwnd -= 1;
            state.ssthresh = state.ssthresh.min(state.cwnd);
        } else if excess < ALPHA {
            state.cwnd += 1;
        }
        state.cwnd = state.cwnd.max(2);
        state.ssthresh = state.current_ssthresh();
    }
}

impl Algorithm for Vegas {
    fn init(&mut self, state: &mut State) {
        self.base = UNKNOWN;
        self.begin(state);
    }
    fn avoid(&mut self, state: &mut State, acked: u32) {
        if !self.active {
            reno(state, acked, |state, _| state.cwnd);
            return;
        }
        if state.una > self.round_end {
            self.round_end = state.nxt;
            match self.samples <= 2 {
                true => reno(state, acked, |state, _| state.cwnd),
                false => self.adjust(state, acked),
            }
            self.samples = 0;
            self.least = UNKNOWN;
        } else if state.in_slow_start() {
            state.slow_start(acked);
        }
    }
    fn enter(&mut self, state: &mut State, new: CaState) {
        match new {
            CaState::Open => self.begin(state),
            _ => self.active = false,
        }
    }
    fn event(&mut self, state: &mut State, event: Event) {
        if matches!(event, Event::Restart | Event::TransmitStart) {
            self.init(state);
        }
    }
    fn measured(&mut self, _state: &mut State, rtt: i64) {
        let Ok(rtt) = u64::try_from(rtt) else { return };
        self.base = self.base.min(rtt + 1);
        self.least = self.least.min(rtt + 1);
        self.samples += 1;
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        if self.base != UNKNOWN {
            see("base_rtt_ms", self.base as f64 * 1e-3);
        }
    }
}
