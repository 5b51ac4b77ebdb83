//! A window with slow start, as controls that differ in congestion avoidance
//! have it in common.

use super::control::{AckSample, Congestion, CongestionEvent, Setup};
use super::slow_start::{SlowStart, SlowStartKind};

/// A congestion window, its threshold, and how both answer congestion
/// (RFC 5681, section 3.1).
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// In bytes, with a fraction: steps can be less than a byte.
    pub cwnd: f64,
    pub ssthresh: u64,
    pub mss: f64,
    slow_start: SlowStart,
    /// Both before the last loss or timeout.
    before: (f64, u64),
}

impl Window {
    pub fn new(kind: SlowStartKind, setup: &Setup) -> Self {
        let (cwnd, ssthresh) = (setup.initial_window as f64, setup.initial_ssthresh);
        Window {
            cwnd,
            ssthresh,
            mss: setup.mss as f64,
            slow_start: SlowStart::new(kind, setup),
            before: (cwnd, ssthresh),
        }
    }

    /// True if an acknowledgement counts for growth: it covers new data, carries no echo (RFC 3168,
    /// section 6.1.2), and does not arrive in a recovery.
    #[inline]
    pub fn counts(sample: &AckSample) -> bool {
        sample.acked > 0 && !sample.ece && !sample.in_recovery
    }
    /// True if it may grow the window: the window, not the application, was the limit.
    #[inline]
    pub fn may_grow(sample: &AckSample) -> bool {
        Self::counts(sample) && sample.window_limited
    }
    /// Slow start, or else `avoid`: congestion avoidance.
    #[inline]
    pub fn on_ack(&mut self, sample: &AckSample, avoid: impl FnOnce(&mut Self)) {
        if !Self::counts(sample) {
            return;
        }
        if self.in_slow_start() {
            self.slow_start(sample);
        } else if sample.window_limited {
            avoid(self);
        }
    }

    /// In bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        self.cwnd as u64
    }
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    /// In segments.
    #[inline]
    pub fn segments(&self) -> f64 {
        self.cwnd / self.mss
    }
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.window() < self.ssthresh
    }

    /// An acknowledgement in slow start; the window grows if it held the sender
    /// back.
    pub fn slow_start(&mut self, sample: &AckSample) {
        let step = self.slow_start.on_ack(sample, self.window());
        self.cwnd += step.growth as f64;
        if step.exit {
            self.ssthresh = self.window();
        }
    }

    /// Grows by so many segments in a round-trip time.
    #[inline]
    pub fn grow(&mut self, segments: f64, acked: u64) {
        self.cwnd += segments * self.mss * acked as f64 / self.cwnd;
    }

    /// Bytes of the window in use: FlightSize, at most the window. FlightSize includes data
    /// reported by SACK, so a large share of it could make the window larger at a loss.
    pub fn in_use(&self, event: &CongestionEvent) -> f64 {
        self.cwnd.min(event.flight_size as f64)
    }

    /// Leaves `kept` bytes, at least two segments; after a timeout one segment,
    /// with the threshold held when the same segment times out again.
    pub fn reduce(&mut self, event: &CongestionEvent, kept: f64) {
        let timeout = matches!(event.kind, Congestion::Timeout { .. });
        if !matches!(event.kind, Congestion::Timeout { first: false }) {
            self.before = (self.cwnd, self.ssthresh);
            self.ssthresh = kept.max(2.0 * self.mss) as u64;
        }
        self.slow_start.on_congestion(timeout);
        self.cwnd = if timeout { self.mss } else { self.ssthresh as f64 };
    }

    /// The last reduction had no reason (RFC 5682, section 3).
    pub fn on_undo(&mut self) {
        self.cwnd = self.cwnd.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }

    /// Removes the unused part.
    pub fn on_idle(&mut self, restart_window: u64) {
        self.cwnd = self.cwnd.min(restart_window as f64);
    }
    pub fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(2 * self.mss as u64);
    }

    /// RFC 6582, section 3.2, step 3, option 1.
    pub fn on_recovery_exit(&mut self, in_flight: u64) {
        let window = (in_flight as f64).max(self.mss) + self.mss;
        self.cwnd = window.min(self.ssthresh as f64);
    }
}

/// The methods that a control leaves to a field: its [`Window`], or the control that it extends.
macro_rules! by_field {
    ($field:ident) => {
        fn on_undo(&mut self) {
            self.$field.on_undo();
        }
        fn on_idle(&mut self, restart_window: u64) {
            self.$field.on_idle(restart_window);
        }
        fn set_ssthresh(&mut self, ssthresh: u64) {
            self.$field.set_ssthresh(ssthresh);
        }
        fn on_recovery_exit(&mut self, in_flight: u64) {
            self.$field.on_recovery_exit(in_flight);
        }
        #[inline]
        fn window(&self) -> u64 {
            self.$field.window()
        }
        fn ssthresh(&self) -> u64 {
            self.$field.ssthresh()
        }
    };
}
pub(super) use by_field;
