//! CUBIC: a window that is a cubic function of the time since the last loss.
//!
//! The window grows fast back towards W_max, where the last loss was, slowly
//! around it, and faster again beyond; never slower than Reno's would.
//!
//! # Sources
//! RFC 9438, section 4; RFC 8511, section 3.1, for ECN; slow start:
//! `slow_start`.
//!
//! With `variant = "ns3"` it is ns-3's (`ns3`) instead. The kernel's is part of Linux's sender.
//!
//! # Differences
//! 1. The steps towards the target (section 4.4: for each acknowledgement) are
//!    counted for each segment acknowledged, as Linux does, so that delayed
//!    acknowledgements do not slow the window down. The window follows the
//!    function of the time either way.
//! 2. In the Reno-friendly region the window never falls: it becomes W_est if
//!    that is more (section 4.3 sets it to W_est).
//! 3. K is 0 and W_max the window if the window is above W_max when congestion
//!    avoidance begins, as in Linux: the equation of section 4.2 would give a
//!    K in the past.
//! 4. FlightSize counts as cwnd at most: it has what SACK has reported in it,
//!    and 0.7 of it can be above the window just after a recovery.
//! 5. The time while the application holds the sender back is left out
//!    (section 5.8) from one acknowledgement to the next.

use aqmlab_core::{Component, Error, Rate, Result, Span, Time, choices, params};

mod ns3;

use ns3::Ns3Cubic;

use super::control::{
    AckSample, Congestion, CongestionControl, CongestionEvent, LostSegment, SentSample, Setup,
    check_beta_ecn,
};
use super::slow_start::{SlowStart, SlowStartKind};

choices! {
    /// Window function of CUBIC.
    pub enum WindowFunction {
        /// Linux's with Linux's sender, RFC 9438's with the RFCs'.
        Auto = "auto",
        /// The standard's, with fractions of segments (RFC 9438).
        Rfc9438 = "rfc9438",
        /// The kernel's, in whole segments; only with Linux's sender.
        Linux = "linux",
        /// ns-3's: Linux's, but the count towards the next segment is kept over a loss.
        Ns3 = "ns3",
    }
}

impl WindowFunction {
    fn is_linuxs(self) -> bool {
        matches!(self, WindowFunction::Linux | WindowFunction::Ns3)
    }
}

params! {
    /// Parameters of CUBIC.
    pub struct CubicParams {
        /// C: how steep the function is, in segments per cubic second.
        c: f64 = 0.4, in 1e-6 => 1e6, source "RFC 9438, section 5";
        /// Factor of the window at a loss.
        beta: f64 = 0.7, in 0.01 => 0.99, source "RFC 9438, section 4.6";
        /// Factor of the window at an ECN echo; `none`: as at a loss.
        beta_ecn: Option<f64> = None, in Some(0.01) => Some(1.0), source "RFC 8511, section 3.1: 0.85";
        /// Lowers W_max when a loss occurs below the previous W_max.
        fast_convergence: bool = true, source "RFC 9438, section 4.7";
        /// Whether the window is at least that of Reno.
        reno_friendly: bool = true, source "RFC 9438, section 4.3";
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Hystart,
            source "Linux: net/ipv4/tcp_cubic.c; RFC 9438, section 4.10: hystart++";
        /// Arithmetic of the window.
        variant: WindowFunction = WindowFunction::Auto,
            source "Linux: net/ipv4/tcp_cubic.c; RFC 9438; ns-3: tcp-cubic.cc";
    }
}

impl CubicParams {
    /// True if these are parameters of the kernel's CUBIC.
    pub(crate) fn is_the_kernels(&self) -> bool {
        matches!(self.variant, WindowFunction::Auto | WindowFunction::Linux)
            && matches!(self.slow_start, SlowStartKind::Hystart | SlowStartKind::Standard)
            && self.beta_ecn.is_none()
    }

    /// K (RFC 9438, section 4.2), or what W_est takes, if that is faster
    /// (section 4.3).
    pub(super) fn cycle(&self, window: f64, rtt: f64, _acknowledged: u64) -> f64 {
        let lost = (1.0 - self.beta) * window;
        let k = libm::cbrt(lost / self.c);
        let alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        if self.reno_friendly { k.min(lost / alpha * rtt) } else { k }
    }
}

impl Component for CubicParams {
    const NAME: &'static str = "cubic";
    const SUMMARY: &'static str =
        "a cubic function of the time since the last loss: Linux's with HyStart, or RFC 9438";

    fn check(&self) -> Result<()> {
        if let (Some(beta), true) = (self.beta_ecn, self.variant.is_linuxs()) {
            let allowed = "none, or variant = rfc9438: the others keep as much as at a loss";
            return Err(Error::not_allowed(beta, allowed).at("beta_ecn"));
        }
        check_beta_ecn(self.beta_ecn)
    }
}

/// CUBIC, in one of its variants.
#[derive(Clone, Debug)]
pub(crate) enum Cubic {
    Rfc9438(Rfc9438),
    Ns3(Ns3Cubic),
}

/// Calls a method of the one there is.
macro_rules! each {
    ($self:ident, $state:ident => $call:expr) => {
        match $self {
            Cubic::Rfc9438($state) => $call,
            Cubic::Ns3($state) => $call,
        }
    };
}

impl Cubic {
    pub fn new(params: &CubicParams, setup: &Setup) -> Self {
        match params.variant {
            WindowFunction::Ns3 => Cubic::Ns3(Ns3Cubic::new(params, setup)),
            _ => Cubic::Rfc9438(Rfc9438::new(params, setup)),
        }
    }
}

pass_control!(Cubic, each);

/// What a spurious loss must not change (section 4.9.2).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    /// Windows in bytes.
    cwnd: f64,
    ssthresh: u64,
    prior: f64,
    w_max: f64,
    w_est: f64,
    /// Seconds from the beginning of the epoch to W_max.
    k: f64,
    /// Start of this congestion avoidance, shifted by the times that do not count.
    epoch: Option<Time>,
    /// The next congestion avoidance begins on its plateau: after a timeout,
    /// and before the first loss.
    plateau: bool,
}

impl Curve {
    /// Section 5.8: this time, in which the window was not in use, does not count.
    fn leave_out(&mut self, time: Span) {
        if let Some(epoch) = &mut self.epoch {
            *epoch += time;
        }
    }
}

/// The state of the window function as RFC 9438 has it.
#[derive(Clone, Debug)]
pub(crate) struct Rfc9438 {
    curve: Curve,
    undo: Curve,
    slow_start: SlowStart,
    mss: u64,
    /// C in bytes per cubic second.
    c: f64,
    beta: f64,
    beta_ecn: f64,
    /// alpha_cubic in bytes; 0 without a Reno-friendly region.
    alpha: f64,
    /// alpha once W_est has reached the window before the loss.
    alpha_beyond: f64,
    fast_convergence: bool,
    last_ack: Time,
}

impl Rfc9438 {
    pub fn new(params: &CubicParams, setup: &Setup) -> Self {
        let mss = setup.mss as f64;
        let curve = Curve {
            cwnd: setup.initial_window as f64,
            ssthresh: setup.initial_ssthresh,
            prior: 0.0,
            w_max: 0.0,
            w_est: 0.0,
            k: 0.0,
            epoch: None,
            plateau: true,
        };
        let friendly = if params.reno_friendly { mss } else { 0.0 };
        Rfc9438 {
            curve,
            undo: curve,
            slow_start: SlowStart::new(params.slow_start, setup),
            mss: setup.mss,
            c: params.c * mss,
            beta: params.beta,
            beta_ecn: params.beta_ecn.unwrap_or(params.beta),
            alpha: 3.0 * (1.0 - params.beta) / (1.0 + params.beta) * friendly,
            alpha_beyond: friendly,
            fast_convergence: params.fast_convergence,
            last_ack: Time::ZERO,
        }
    }

    /// Section 4.2: a stage of congestion avoidance begins.
    fn begin_epoch(&mut self, now: Time) {
        let curve = &mut self.curve;
        curve.epoch = Some(now);
        curve.w_est = curve.cwnd;
        if curve.plateau && curve.prior == 0.0 {
            curve.prior = curve.cwnd; // section 4.10
        }
        if curve.plateau || curve.w_max <= curve.cwnd {
            curve.w_max = curve.cwnd; // sections 4.8 and 4.10
            curve.k = 0.0;
        } else {
            curve.k = libm::cbrt((curve.w_max - curve.cwnd) / self.c);
        }
        curve.plateau = false;
    }

    /// Sections 4.2 to 4.5.
    fn avoid_congestion(&mut self, sample: &AckSample) {
        let Some(epoch) = self.curve.epoch else {
            self.begin_epoch(sample.now);
            return self.avoid_congestion(sample);
        };
        let curve = &mut self.curve;
        let acked = sample.counted() as f64;
        let past_k = (sample.now - epoch).as_secs_f64() - curve.k;
        let alpha = if curve.w_est < curve.prior { self.alpha } else { self.alpha_beyond };
        curve.w_est += alpha * acked / curve.cwnd; // figure 4
        if self.c * past_k * past_k * past_k + curve.w_max < curve.w_est {
            curve.cwnd = curve.cwnd.max(curve.w_est);
            return;
        }
        let rtt = sample.smoothed_rtt.map_or(0.0, |rtt| rtt.as_secs_f64());
        let past_k = past_k + rtt;
        let target = self.c * past_k * past_k * past_k + curve.w_max;
        // Comparisons instead of `clamp`: no window makes the bounds cross.
        let target = target.max(curve.cwnd).min(1.5 * curve.cwnd);
        curve.cwnd += (target - curve.cwnd) * acked / curve.cwnd;
    }

    /// Sections 4.6 and 4.7; `beta` of FlightSize is kept.
    fn reduce(&mut self, flight_size: u64, beta: f64) {
        let curve = &mut self.curve;
        let converges = self.fast_convergence && curve.cwnd < curve.w_max;
        let share = if converges { (1.0 + self.beta) / 2.0 } else { 1.0 };
        curve.w_max = curve.cwnd * share;
        curve.prior = curve.cwnd;
        curve.ssthresh = (curve.cwnd.min(flight_size as f64) * beta) as u64;
        curve.epoch = None;
        curve.plateau = false;
    }
}

impl CongestionControl for Rfc9438 {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let last_ack = std::mem::replace(&mut self.last_ack, sample.now);
        if sample.acked == 0 || sample.ece || sample.in_recovery {
            return;
        }
        if !sample.window_limited {
            self.curve.leave_out(sample.now - last_ack);
        }
        if (self.curve.cwnd as u64) < self.curve.ssthresh {
            let step = self.slow_start.on_ack(sample, self.curve.cwnd as u64);
            self.curve.cwnd += step.growth as f64;
            if step.exit {
                self.curve.ssthresh = self.curve.cwnd as u64;
            }
        } else if sample.window_limited {
            self.avoid_congestion(sample);
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight == 0 {
            let last_ack = std::mem::replace(&mut self.last_ack, sent.now);
            self.curve.leave_out(sent.now - last_ack);
        }
    }

    /// Another stage of congestion avoidance follows the slow start.
    fn on_idle(&mut self, restart_window: u64) {
        if self.curve.cwnd > restart_window as f64 {
            self.curve.cwnd = restart_window as f64;
            self.curve.epoch = None;
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let again = matches!(event.kind, Congestion::Timeout { first: false });
        if !again {
            self.undo = self.curve;
        }
        self.slow_start.on_congestion(matches!(event.kind, Congestion::Timeout { .. }));
        let two = 2 * self.mss;
        match event.kind {
            // Figure 5.
            Congestion::Loss => {
                self.reduce(event.flight_size, self.beta);
                self.curve.cwnd = self.curve.ssthresh.max(two) as f64;
            }
            Congestion::Ecn => {
                self.reduce(event.flight_size, self.beta_ecn);
                self.curve.cwnd = self.curve.ssthresh.max(self.mss) as f64;
            }
            // Section 4.8; RFC 5681, section 3.1: ssthresh is held when the
            // same segment times out again.
            Congestion::Timeout { .. } => {
                if !again {
                    self.reduce(event.flight_size, self.beta);
                }
                self.curve.cwnd = self.mss as f64;
                self.curve.epoch = None;
                self.curve.plateau = true;
            }
        }
        self.curve.ssthresh = self.curve.ssthresh.max(two);
    }

    /// Section 4.9.2.
    fn on_undo(&mut self) {
        if self.curve.cwnd < self.curve.prior {
            self.curve = self.undo;
        }
    }

    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.curve.ssthresh = ssthresh.max(2 * self.mss);
    }

    fn on_recovery_exit(&mut self, in_flight: u64) {
        // RFC 6582, section 3.2, step 3, option 1.
        let window = self.curve.ssthresh.min(in_flight.max(self.mss) + self.mss);
        self.curve.cwnd = window as f64;
    }

    #[inline]
    fn window(&self) -> u64 {
        self.curve.cwnd as u64
    }
    fn ssthresh(&self) -> u64 {
        self.curve.ssthresh
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("w_max", self.curve.w_max);
        see("w_est", self.curve.w_est);
    }
}

#[cfg(test)]
mod tests;
