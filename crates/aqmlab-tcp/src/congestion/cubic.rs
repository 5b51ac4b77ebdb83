//! CUBIC: a window that is a cubic function of the time since the last loss.
//!
//! The window grows fast back towards W_max, where the last loss was, slowly
//! around it, and faster again beyond; never slower than Reno's would.
//!
//! # Sources
//! RFC 9438, section 4; RFC 8511, section 3.1, for ECN; slow start:
//! [`slow_start`](super::slow_start).
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

use aqmlab_core::{Result, Span, Time, params};

use super::slow_start::{SlowStart, SlowStartKind};
use super::{
    AckSample, Congestion, CongestionControl, CongestionEvent, ControlParams, SentSample, Setup,
    check_beta_ecn,
};

params! {
    /// Parameters of CUBIC.
    pub struct CubicParams {
        /// C: how steep the function is, in segments per cubic second.
        c: f64 = 0.4, in 1e-6 => 1e6, source "RFC 9438, section 5";
        /// What is kept of the window at a loss.
        beta: f64 = 0.7, in 0.01 => 0.99, source "RFC 9438, section 4.6";
        /// What is kept of the window at an ECN echo; `none`: as much as at a loss.
        beta_ecn: Option<f64> = None, source "RFC 8511, section 3.1: 0.85";
        /// Whether W_max is lowered when a loss comes below the last one.
        fast_convergence: bool = true, source "RFC 9438, section 4.7";
        /// Whether the window is at least what Reno's would be.
        reno_friendly: bool = true, source "RFC 9438, section 4.3";
        /// How slow start ends.
        slow_start: SlowStartKind = SlowStartKind::HystartPp,
            source "RFC 9438, section 4.10: hystart++; Linux: hystart";
    }
}

impl ControlParams for CubicParams {
    const NAME: &'static str = "cubic";
    const SUMMARY: &'static str =
        "a cubic function of the time since the last loss (RFC 9438), with HyStart++";

    fn check(&self) -> Result<()> {
        check_beta_ecn(self.beta_ecn)
    }

    /// K (RFC 9438, section 4.2), or what W_est takes, if that is faster
    /// (section 4.3).
    fn cycle(&self, window: f64, rtt: f64, _acknowledged: u64) -> Option<f64> {
        let lost = (1.0 - self.beta) * window;
        let k = libm::cbrt(lost / self.c);
        let alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        Some(if self.reno_friendly { k.min(lost / alpha * rtt) } else { k })
    }
}

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
    /// When this congestion avoidance began, without the times that do not count.
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

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
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

impl Cubic {
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
        Cubic {
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

impl CongestionControl for Cubic {
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
mod tests {
    use super::super::testing::{ack, event, transport};
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn cubic(params: CubicParams) -> Cubic {
        Cubic::new(&params, &Setup::new(&transport(), 10_000, 0))
    }
    fn standard() -> Cubic {
        cubic(CubicParams { slow_start: SlowStartKind::Standard, ..CubicParams::default() })
    }
    fn at(seconds: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(seconds)
    }
    /// In congestion avoidance with this window in segments, before any loss.
    fn with_window(segments: u64) -> Cubic {
        let mut cubic = standard();
        cubic.curve.cwnd = (segments * 1000) as f64;
        cubic.curve.ssthresh = segments * 1000;
        cubic
    }
    /// Acknowledges window after window, evenly over each round-trip time,
    /// up to a time in seconds; gives the window in segments.
    fn acknowledge(cubic: &mut Cubic, from: f64, to: f64) -> f64 {
        let mut now = from;
        while now < to {
            let segments = (cubic.window() / 1000).max(1);
            cubic.on_ack(&AckSample { now: at(now), smoothed_rtt: Some(RTT), ..ack(1000) });
            now += RTT.as_secs_f64() / segments as f64;
        }
        cubic.curve.cwnd / 1000.0
    }

    /// Section 4.2: from 0.7 W_max the plateau is K = cbrt(0.3 W_max / C) away.
    /// 1000 segments: K is 9.086 s.
    #[test]
    fn after_a_loss_the_window_is_the_cubic_function_of_the_time() {
        let mut cubic = with_window(1000);
        cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (700_000, 700_000));
        let k = libm::cbrt(300.0 / 0.4);
        let w = |t: f64| 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
        let mut now = 0.0;
        for until in [1.0, 3.0, 6.0, k, 12.0, 15.0] {
            let window = acknowledge(&mut cubic, now, until);
            // The target is a round-trip time ahead and is approached in one.
            assert!(w(until) - 1.0 < window && window < w(until + 0.1) + 1.0, "{until}: {window}");
            assert!((cubic.curve.k - k).abs() < 1e-9);
            now = until;
        }
    }

    /// Delayed acknowledgements make no difference (difference 1).
    #[test]
    fn acknowledging_two_segments_at_once_is_as_fast() {
        let grow = |each: u64| {
            let mut cubic = with_window(1000);
            cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
            let mut now = 0.0;
            while now < 4.0 {
                let sample = AckSample { now: at(now), smoothed_rtt: Some(RTT), ..ack(each) };
                cubic.on_ack(&sample);
                now += 0.1 * each as f64 / cubic.curve.cwnd;
            }
            cubic.curve.cwnd
        };
        assert!((grow(1000) / grow(2000) - 1.0).abs() < 0.002, "{} {}", grow(1000), grow(2000));
    }

    /// Section 4.2: at most by half a window in a round-trip time.
    #[test]
    fn the_target_is_at_most_one_and_a_half_windows() {
        let mut cubic = with_window(100);
        cubic.begin_epoch(at(0.0));
        let sample = AckSample { now: at(100.0), smoothed_rtt: Some(RTT), ..ack(1000) };
        cubic.on_ack(&sample);
        assert_eq!(cubic.window(), 100_500);
    }

    /// Section 4.3: small windows grow as AIMD(alpha, 0.7) until W_est is where
    /// the loss was, then by a segment a round-trip time.
    #[test]
    fn with_small_windows_it_is_as_fast_as_reno() {
        let mut cubic = with_window(20);
        cubic.on_congestion(&event(Congestion::Loss, 20_000));
        let alpha = 3.0 * 0.3 / 1.7;
        let window = acknowledge(&mut cubic, 0.0, 1.0);
        let reno = 14.0 + 10.0 * alpha;
        assert!((window - reno).abs() < 0.6, "{window} {reno}");
        // From 14 to 20 segments takes 11.3 round-trip times.
        let before = acknowledge(&mut cubic, 1.0, 1.2);
        let after = acknowledge(&mut cubic, 1.2, 1.7);
        assert!((after - before - 5.0).abs() < 0.5, "{before} {after}");
    }

    /// The mean window in segments when one segment in `interval` is lost, from
    /// the first loss at this window on.
    fn mean_window(interval: u64, first: u64) -> f64 {
        let mut cubic = with_window(first);
        cubic.fast_convergence = false; // section 4.7: for a single flow
        let mut now = 0.0;
        for number in 0..5 * interval {
            if number % interval == 0 {
                cubic.on_congestion(&event(Congestion::Loss, cubic.window()));
            }
            cubic.on_ack(&AckSample { now: at(now), smoothed_rtt: Some(RTT), ..ack(1000) });
            now += RTT.as_secs_f64() * 1000.0 / cubic.curve.cwnd;
        }
        (5 * interval) as f64 * RTT.as_secs_f64() / now
    }

    /// Section 5.1, table 1: as Reno (38 segments) at a loss rate of 1e-3, above
    /// it (Reno has 120 and 379) at 1e-4 and 1e-5. The model has each loss at the
    /// plateau, where the mean is (3 + beta) / 4 of the window; that is where
    /// this begins, for the model returns to it only slowly.
    #[test]
    fn mean_windows_are_those_of_the_table() {
        for (interval, expected) in [(1000, 38.0), (10_000, 187.0), (100_000, 1054.0)] {
            let mean = mean_window(interval, (expected * 4.0 / 3.7) as u64);
            assert!((mean / expected - 1.0).abs() < 0.06, "{interval}: {mean}");
        }
    }

    #[test]
    fn a_loss_below_the_last_lowers_the_plateau() {
        let mut cubic = with_window(100);
        cubic.on_congestion(&event(Congestion::Loss, 100_000));
        assert_eq!(cubic.curve.w_max, 100_000.0);
        cubic.on_congestion(&event(Congestion::Loss, 70_000));
        assert_eq!(cubic.curve.w_max, 70_000.0 * 0.85);
        cubic.fast_convergence = false;
        cubic.on_congestion(&event(Congestion::Loss, 40_000));
        assert_eq!(cubic.curve.w_max, 49_000.0);
        assert_eq!(cubic.window(), 28_000, "of FlightSize");
    }

    #[test]
    fn windows_do_not_fall_below_figure_5s_bounds() {
        let mut cubic = with_window(2);
        cubic.on_congestion(&event(Congestion::Loss, 2000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (2000, 2000));
        cubic.on_congestion(&event(Congestion::Ecn, 2000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (1400, 2000));
        cubic.on_congestion(&event(Congestion::Ecn, 1000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 2000));
    }

    /// RFC 8511.
    #[test]
    fn an_echo_may_leave_more_than_a_loss() {
        let mut cubic = cubic(CubicParams { beta_ecn: Some(0.85), ..CubicParams::default() });
        cubic.curve.cwnd = 100_000.0;
        cubic.on_congestion(&event(Congestion::Ecn, 100_000));
        assert_eq!(cubic.window(), 85_000);
        cubic.on_congestion(&event(Congestion::Loss, 100_000));
        assert_eq!(cubic.window(), 59_499, "of the window: no more was in use");
    }

    /// Section 4.8: slow start to ssthresh, then the convex half of the function.
    #[test]
    fn after_a_timeout_the_plateau_is_where_avoidance_begins() {
        let mut cubic = with_window(1000);
        cubic.on_congestion(&event(Congestion::Timeout { first: true }, 1_000_000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 700_000));
        cubic.on_congestion(&event(Congestion::Timeout { first: false }, 1000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 700_000));
        for _ in 0..699 {
            cubic.on_ack(&ack(1000));
        }
        assert_eq!(cubic.window(), 700_000);
        let window = acknowledge(&mut cubic, 1.0, 6.0);
        assert_eq!((cubic.curve.k, cubic.curve.w_max), (0.0, 700_000.0));
        assert!((window - (700.0 + 0.4 * 125.0)).abs() < 4.0, "{window}");
    }

    /// Section 4.9.2; the second timeout of a segment does not hide the first.
    #[test]
    fn what_was_spurious_is_undone() {
        let mut cubic = with_window(1000);
        cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
        acknowledge(&mut cubic, 0.0, 2.0);
        let before = cubic.curve;
        for kind in [Congestion::Loss, Congestion::Timeout { first: true }] {
            cubic.on_congestion(&event(kind, 500_000));
            cubic.on_congestion(&event(Congestion::Timeout { first: false }, 1000));
            assert_eq!(cubic.window(), 1000);
            cubic.on_undo();
            assert_eq!(cubic.curve, before);
        }
        cubic.on_congestion(&event(Congestion::Loss, 500_000));
        cubic.curve.cwnd = before.cwnd + 1.0;
        cubic.on_undo();
        assert_eq!(cubic.curve.cwnd, before.cwnd + 1.0, "long past: stays as it is");
    }

    /// Section 5.8.
    #[test]
    fn time_without_data_to_send_does_not_count() {
        let mut cubic = with_window(1000);
        cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
        let window = acknowledge(&mut cubic, 0.0, 1.0);
        for now in [20.0, 50.0] {
            cubic.on_ack(&AckSample { now: at(now), window_limited: false, ..ack(1000) });
        }
        assert_eq!(cubic.curve.cwnd / 1000.0, window);
        let later = acknowledge(&mut cubic, 50.0, 50.01);
        assert!(later - window < 10.0, "{window} {later}");
    }

    #[test]
    fn nothing_grows_in_recovery_or_with_an_echo() {
        let mut cubic = standard();
        for sample in [
            AckSample { in_recovery: true, ..ack(1000) },
            AckSample { ece: true, ..ack(1000) },
            AckSample { sacked: 1000, ..ack(0) },
        ] {
            cubic.on_ack(&sample);
            assert_eq!(cubic.window(), 10_000);
        }
        cubic.on_ack(&ack(1000));
        assert_eq!(cubic.window(), 11_000);
    }

    /// Section 4.10: HyStart++ ends slow start without a loss; the window goes
    /// on from there by the convex half.
    #[test]
    fn an_exit_without_loss_makes_a_plateau() {
        let mut cubic = cubic(CubicParams::default());
        let rtt = |round: u64| Span::from_millis(if round < 3 { 100 } else { 150 });
        let mut rounds = 0;
        while cubic.ssthresh() > cubic.window() {
            for number in 0..cubic.window() / 1000 {
                cubic.on_ack(&AckSample {
                    now: at(rounds as f64 * 0.1),
                    rtt: Some(rtt(rounds)),
                    round_start: number == 0,
                    ..ack(1000)
                });
            }
            rounds += 1;
            assert!(rounds < 12);
        }
        assert_eq!(rounds, 9, "three fast, one that finds it, five slow, the last just begun");
        let exit = cubic.ssthresh();
        acknowledge(&mut cubic, 2.0, 2.1);
        assert_eq!((cubic.curve.w_max as u64, cubic.curve.k), (exit, 0.0));
    }

    /// Section 5.8: a flow that was idle for a minute goes on where it was.
    #[test]
    fn idle_times_do_not_count() {
        let grown = |idle: u64| {
            let mut cubic = standard();
            cubic.curve.cwnd = 100_000.0;
            cubic.on_congestion(&event(Congestion::Loss, 100_000));
            let mut now = 0;
            for step in 0..100 {
                if step == 50 {
                    now += idle;
                    let now = Time::ZERO + Span::from_millis(now);
                    let app_limited = true;
                    let (bytes, prior_in_flight, retransmission) = (1000, 0, false);
                    let sent =
                        SentSample { now, bytes, prior_in_flight, app_limited, retransmission };
                    cubic.on_sent(&sent);
                }
                now += 10;
                cubic.on_ack(&AckSample {
                    now: Time::ZERO + Span::from_millis(now),
                    smoothed_rtt: Some(Span::from_millis(100)),
                    ..ack(10_000)
                });
            }
            cubic.curve.cwnd
        };
        assert!((grown(60_000) / grown(0) - 1.0).abs() < 1e-9, "{} {}", grown(60_000), grown(0));
    }
}
