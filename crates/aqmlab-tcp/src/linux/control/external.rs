//! Controls that are not the kernel's, behind its interface: those of [`crate::congestion`] and
//! custom ones, whose windows are in bytes.
//!
//! The kernel owns the window while it is reduced (PRR), after a timeout and after idle times; the
//! control owns it otherwise. Two kinds of modules of the kernel correspond to them:
//!
//! - A control that [recovers by itself](CongestionControl::recovers_by_itself) is a module with
//!   `cong_control`: its window always holds. It is called at the end of an acknowledgement
//!   (`tcp_cong_control`), first `on_ack` and then `on_congestion`.
//! - Any other control is called before the congestion machine (`in_ack_event`), so that `on_ack`
//!   precedes `on_congestion` here as well. The machine asks it for its threshold (`ssthresh`), to which
//!   PRR then brings the window down.
//!
//! # Differences
//! 1. Data are counted in whole segments; only `acked` and the counts of accurate ECN are exact.
//! 2. `on_sent` and `on_lost` are called for each segment; of these the kernel has only
//!    `CA_EVENT_TX_START` (and, in BBRv3's tree, `skb_marked_lost`).

use aqmlab_core::{Span, Time};

use super::super::state::{CaState, INFINITE, State};
use super::Algorithm;
use crate::congestion::{
    AckSample, Congestion, CongestionControl, CongestionEvent, Control, LostSegment, SentSample,
    Setup,
};
use crate::params::TcpParams;

/// Largest window in segments: sums with it do not overflow.
const MOST: u64 = 1 << 30;

/// A control with its state, and its last reports.
#[derive(Clone, Debug)]
pub(crate) struct External {
    pub control: Box<Control>,
    recovers_by_itself: bool,
    pub needs_rate_samples: bool,
    /// Congestion to be reported after the acknowledgement.
    pending: Option<CongestionEvent>,
    /// Least round-trip time of data.
    least_rtt: Option<Span>,
    /// Lost segments reported so far.
    lost_reported: u64,
    /// The sequence number, or with rate samples the number of delivered segments, with which a
    /// round ends.
    round_end: u64,
    /// Whether the transport paces controls without a rate of their own.
    paces_others: bool,
    /// Share of the payload in the bytes on the wire.
    payload_share: f64,
}

impl External {
    pub fn new(control: Control, setup: &Setup) -> Self {
        let (mss, header) = (setup.mss as f64, setup.header as f64);
        External {
            recovers_by_itself: control.recovers_by_itself(),
            needs_rate_samples: control.needs_rate_samples(),
            control: Box::new(control),
            pending: None,
            least_rtt: None,
            lost_reported: 0,
            round_end: 0,
            paces_others: setup.is_paced,
            payload_share: mss / (mss + header),
        }
    }
    /// Gives a steered control another window and rate; false for all others.
    pub fn steer(&mut self, state: &mut State, params: &TcpParams) -> bool {
        let is_steered = self.control.steer(&params.congestion_control, u64::from(state.mss));
        if is_steered {
            self.apply(state);
        }
        is_steered
    }

    fn window(&self, state: &State) -> u32 {
        (self.control.window() / u64::from(state.mss)).clamp(1, MOST) as u32
    }
    fn threshold(&self, state: &State) -> u32 {
        (self.control.ssthresh() / u64::from(state.mss)).clamp(1, u64::from(INFINITE)) as u32
    }
    /// Takes the control's window, threshold and rate for the connection's. While the kernel
    /// reduces the window, that and the threshold are the kernel's.
    pub fn apply(&self, state: &mut State) {
        if self.recovers_by_itself || !state.in_reduction() {
            state.cwnd = self.window(state);
            state.ssthresh = self.threshold(state);
        }
        let rate = self.control.pacing_rate();
        state.paces = self.paces_others || rate.is_some();
        if let Some(rate) = rate {
            let bytes = rate.as_bps() as f64 / 8.0 * self.payload_share;
            state.pacing_rate = (bytes as u64).max(1);
        }
    }

    /// Completes and reports the sample of an acknowledgement. `prior_delivered` segments had been
    /// delivered when the newest segment was sent that it delivers.
    pub fn on_ack(&mut self, state: &State, sample: &mut AckSample, prior_delivered: u64) {
        if let Some(rtt) = sample.rtt {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        sample.min_rtt = self.least_rtt;
        let mss = u64::from(state.mss);
        sample.lost = (state.lost - self.lost_reported) * mss;
        self.lost_reported = state.lost;
        let (reached, next) = match self.needs_rate_samples {
            true => (prior_delivered > 0 && prior_delivered >= self.round_end, state.delivered),
            false => (state.una > self.round_end, state.nxt),
        };
        sample.round_start = reached;
        if reached {
            self.round_end = next;
        }
        self.control.on_ack(sample);
    }
    /// Reports the congestion of the acknowledgement that has been reported.
    pub fn report_pending(&mut self) {
        if let Some(event) = self.pending.take() {
            self.control.on_congestion(&event);
        }
    }
    /// A timeout for which the kernel does not lower the threshold again.
    pub fn on_repeated_timeout(&mut self, state: &State) {
        let event = congestion_event(state, Congestion::Timeout { first: false });
        self.control.on_congestion(&event);
    }
    pub fn on_sent(&mut self, sent: &SentSample) {
        self.control.on_sent(sent);
    }
    pub fn on_lost(&mut self, lost: &LostSegment) {
        if self.needs_rate_samples {
            self.control.on_lost(lost);
        }
    }
    pub fn on_connected(&mut self, state: &mut State, now: Time) {
        if state.cwnd < state.initial_window || state.ssthresh < INFINITE {
            self.on_idle(state);
        }
        self.control.on_connected(now, state.srtt());
        self.apply(state);
    }
}

/// FlightSize without what limited transmit sent is the window at most.
fn congestion_event(state: &State, kind: Congestion) -> CongestionEvent {
    let mss = u64::from(state.mss);
    CongestionEvent {
        now: state.now,
        kind,
        flight_size: u64::from(state.packets_out.min(state.cwnd)) * mss,
        in_flight: u64::from(state.in_flight()) * mss,
    }
}

impl Algorithm for External {
    /// The threshold at congestion: the window that the control wants.
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        let event = congestion_event(state, state.cause);
        let is_timeout = matches!(event.kind, Congestion::Timeout { .. });
        if self.recovers_by_itself && !is_timeout {
            self.pending = self.pending.or(Some(event));
            return state.ssthresh;
        }
        self.pending = None;
        self.control.on_congestion(&event);
        match is_timeout {
            true => self.threshold(state),
            false => self.window(state),
        }
    }
    fn undo(&mut self, state: &mut State) -> u32 {
        self.pending = None;
        self.control.on_undo();
        self.window(state)
    }
    fn on_idle(&mut self, state: &mut State) {
        let mss = u64::from(state.mss);
        if state.ssthresh < INFINITE {
            self.control.set_ssthresh(u64::from(state.ssthresh) * mss);
        }
        self.control.on_idle(u64::from(state.cwnd) * mss);
        self.apply(state);
    }
    fn enter(&mut self, state: &mut State, new: CaState) {
        if new == CaState::Loss {
            state.cwnd = state.cwnd.max(self.window(state));
        }
    }
    fn recovers_by_itself(&self) -> bool {
        self.recovers_by_itself
    }
    fn has_rate(&self) -> bool {
        self.control.pacing_rate().is_some()
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.control.observe(see);
    }
}
