//! Reno: slow start and congestion avoidance.
//!
//! # Sources
//! RFC 5681, sections 3.1 and 3.2; RFC 6582 for the end of a recovery
//! without SACK; RFC 3168, section 6.1.2, and RFC 8511 (ABE) for ECN; RFC 3465
//! for counting bytes, which RFC 5681 recommends: a segment a round-trip time, independent of how
//! much each acknowledgement covers. Reno, NewReno and SACK differ in loss detection and recovery,
//! which is the sender's part.
//!
//! # Differences
//! 1. The window does not grow while the application, and not the window,
//!    holds the sender back (RFC 7661, section 1, names the problem).

use aqmlab_core::{Component, Error, Result, params};

use super::control::{
    AckSample, Congestion, CongestionControl, CongestionEvent, Setup, check_beta_ecn,
};
use super::slow_start::{SlowStart, SlowStartKind};

params! {
    /// Parameters of Reno.
    pub struct RenoParams {
        /// Factor of the window at an ECN echo; `none`: one half, as at a loss.
        beta_ecn: Option<f64> = None, in Some(0.01) => Some(1.0), source "RFC 8511, section 3.1: 0.8";
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
        /// L: bytes are counted, in slow start up to so many segments for each acknowledgement;
        /// `none` counts acknowledgements, as ns-2 does.
        byte_counting: Option<u64> = Some(1), in Some(1) => Some(1_000_000),
            source "RFC 5681, section 3.1; RFC 3465: at most 2";
        /// The least window that a loss leaves, in segments; the threshold is two at least.
        least_window: u64 = 2, in 1 => 2, source "RFC 5681, section 3.1, equation 4; 1 in ns-2";
        /// With `byte_counting`: whether the bytes counted towards the next segment are
        /// kept at a loss.
        keep_count: bool = false, [left out], source "ns-3: tcp-linux-reno.cc; Linux: false";
    }
}

impl Component for RenoParams {
    const NAME: &'static str = "reno";
    const SUMMARY: &'static str = "slow start, congestion avoidance, halving (RFC 5681)";

    fn check(&self) -> Result<()> {
        if self.byte_counting == Some(0) {
            let allowed = "at least 1 segment, or `none`";
            return Err(Error::not_allowed(0, allowed).at("byte_counting"));
        }
        check_beta_ecn(self.beta_ecn)
    }
}

impl RenoParams {
    /// Half of the window at a segment a round trip, or one for each
    /// acknowledgement that a window has.
    pub(super) fn cycle(&self, window: f64, rtt: f64, acknowledged: u64) -> f64 {
        let growth = self.byte_counting.map_or(1.0 / acknowledged as f64, |_| 1.0);
        window / 2.0 / growth * rtt
    }
}

/// The state of Reno.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    cwnd: u64,
    ssthresh: u64,
    mss: u64,
    slow_start: SlowStart,
    /// With byte counting: bytes acknowledged since the window grew last.
    counted: Option<u64>,
    /// Whether the count is kept over a loss.
    keep_count: bool,
    /// What an ECN echo leaves, in place of a half.
    beta_ecn: Option<f64>,
    /// The least window that a loss leaves.
    least: u64,
    /// Both before the last loss or timeout.
    before: (u64, u64),
}

impl Reno {
    pub fn new(params: &RenoParams, setup: &Setup) -> Self {
        let (cwnd, ssthresh) = (setup.initial_window, setup.initial_ssthresh);
        Reno {
            cwnd,
            ssthresh,
            mss: setup.mss,
            slow_start: SlowStart::new(params.slow_start, setup)
                .with_limit(params.byte_counting.unwrap_or(1) * setup.mss),
            counted: params.byte_counting.map(|_| 0),
            keep_count: params.keep_count,
            beta_ecn: params.beta_ecn,
            least: params.least_window * setup.mss,
            before: (cwnd, ssthresh),
        }
    }

    /// For controls that are Reno but for what an ECN echo leaves: window and
    /// ssthresh become this.
    pub(super) fn reduce_to(&mut self, window: u64) {
        self.slow_start.on_congestion(false);
        self.before = (self.cwnd, self.ssthresh);
        self.ssthresh = window.max(2 * self.mss);
        self.cwnd = self.ssthresh;
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        // RFC 3168, section 6.1.2: nor does an ECN echo make the window grow.
        if sample.acked == 0 || sample.ece || sample.in_recovery {
            return;
        }
        if self.cwnd < self.ssthresh {
            // Section 3.1, equation 2: slow start.
            let step = self.slow_start.on_ack(sample, self.cwnd);
            self.cwnd += step.growth;
            if step.exit {
                self.ssthresh = self.cwnd;
            }
            return;
        }
        if !sample.window_limited {
            return;
        }
        if let Some(counted) = &mut self.counted {
            // RFC 3465, section 2.1: a segment for each window of bytes.
            *counted += sample.counted();
            if *counted >= self.cwnd {
                *counted -= self.cwnd;
                self.cwnd += self.mss;
            }
        } else {
            // Section 3.1, equation 3: congestion avoidance; at least 1 byte.
            self.cwnd += (self.mss * self.mss / self.cwnd).max(1);
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        // Section 3.1, equation 4: no more than half of FlightSize.
        let in_use = event.flight_size.min(self.cwnd);
        let halved = (in_use / 2).max(2 * self.mss);
        self.slow_start.on_congestion(matches!(event.kind, Congestion::Timeout { .. }));
        // When the same segment times out again, the first time was before.
        if !matches!(event.kind, Congestion::Timeout { first: false }) {
            self.before = (self.cwnd, self.ssthresh);
        }
        if !self.keep_count {
            self.counted = self.counted.map(|_| 0);
        }
        match event.kind {
            Congestion::Loss => {
                self.ssthresh = halved;
                self.cwnd = (in_use / 2).max(self.least);
            }
            Congestion::Ecn => {
                // RFC 8511, section 3.1.
                let kept = |beta| (in_use as f64 * beta) as u64;
                let kept = self.beta_ecn.map_or(in_use / 2, kept);
                self.ssthresh = kept.max(2 * self.mss);
                self.cwnd = kept.max(self.least);
            }
            Congestion::Timeout { first } => {
                // The threshold is held when the same segment times out again.
                if first {
                    self.ssthresh = halved;
                }
                self.cwnd = self.mss; // LW, the loss window
            }
        }
    }

    /// RFC 5682, section 3.
    fn on_undo(&mut self) {
        let (cwnd, ssthresh) = self.before;
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn on_idle(&mut self, restart_window: u64) {
        self.cwnd = self.cwnd.min(restart_window);
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(2 * self.mss);
    }

    fn on_recovery_exit(&mut self, in_flight: u64) {
        // RFC 6582, section 3.2, step 3, option 1.
        self.cwnd = self.ssthresh.min(in_flight.max(self.mss) + self.mss);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.cwnd
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, event, transport};

    /// ns-3: nine of the twenty segments that one more takes stay counted.
    #[test]
    fn what_was_counted_can_be_kept_over_a_loss() {
        for keep_count in [false, true] {
            let params = RenoParams { keep_count, ..RenoParams::default() };
            let mut reno = Reno::new(&params, &transport().setup(20_000, 0));
            reno.ssthresh = 20_000;
            reno.on_ack(&ack(9000));
            reno.on_congestion(&event(Congestion::Loss, 20_000));
            reno.on_ack(&ack(1000));
            assert_eq!(reno.window(), if keep_count { 11_000 } else { 10_000 });
        }
    }

    /// Also a timeout that came twice.
    #[test]
    fn what_was_spurious_leaves_no_trace() {
        let again = event(Congestion::Timeout { first: false }, 1000);
        for kind in [Congestion::Loss, Congestion::Timeout { first: true }] {
            let mut reno = Reno::new(&RenoParams::default(), &transport().setup(20_000, 0));
            let before = (reno.window(), reno.ssthresh());
            reno.on_congestion(&event(kind, 10_000));
            reno.on_congestion(&again);
            assert_eq!(reno.window(), 1000);
            reno.on_undo();
            assert_eq!((reno.window(), reno.ssthresh()), before);
        }
    }
}
