//! DCTCP (`net/ipv4/tcp_dctcp.c`).

use super::super::state::{CaState, State};
use super::{Algorithm, Event};

/// All data came with CE.
const ALL: u64 = 1024;
/// g = 1 / 2^4.
const SHIFT: u32 = 4;

#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    alpha: u64,
    delivered: u64,
    delivered_ce: u64,
    round_end: u64,
    loss_cwnd: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        Dctcp { alpha: ALL, delivered: 0, delivered_ce: 0, round_end: 0, loss_cwnd: 0 }
    }
}

impl Dctcp {
    fn begin_round(&mut self, state: &State) {
        self.round_end = state.nxt;
        self.delivered = state.delivered;
        self.delivered_ce = state.delivered_ce;
    }
    fn halve(&mut self, state: &mut State) {
        self.loss_cwnd = state.cwnd;
        state.ssthresh = (state.cwnd >> 1).max(2);
    }
}

impl Algorithm for Dctcp {
    fn init(&mut self, state: &mut State) {
        self.begin_round(state);
    }
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        self.loss_cwnd = state.cwnd;
        let less = (u64::from(state.cwnd) * self.alpha) >> 11;
        (state.cwnd - less as u32).max(2)
    }
    fn undo(&mut self, state: &mut State) -> u32 {
        state.cwnd.max(self.loss_cwnd)
    }
    fn enter(&mut self, state: &mut State, new: CaState) {
        if new == CaState::Recovery && state.ca_state != CaState::Recovery {
            self.halve(state);
        }
    }
    fn event(&mut self, state: &mut State, event: Event) {
        if event == Event::Loss {
            self.halve(state);
        }
    }
    fn acknowledged(&mut self, state: &mut State, _slow: bool) {
        if state.una < self.round_end {
            return;
        }
        let marked = state.delivered_ce - self.delivered_ce;
        let less = self.alpha >> SHIFT;
        self.alpha -= if less == 0 { self.alpha } else { less };
        if marked > 0 {
            let more = (marked << (10 - SHIFT)) / (state.delivered - self.delivered).max(1);
            self.alpha = (self.alpha + more).min(ALL);
        }
        self.begin_round(state);
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("alpha", self.alpha as f64 / ALL as f64);
    }
}
