//! CUBIC of ns-3: Linux's in whole segments, with three differences.
//!
//! # Sources
//! `src/internet/model/tcp-cubic.cc` of ns-3.44. It follows `net/ipv4/tcp_cubic.c` of Linux, which
//! differs from RFC 9438:
//!
//! - The window, ssthresh and the points of the curve are whole segments, rounded down.
//! - W_est grows by alpha for good; RFC 9438, section 4.3, has it grow by a segment a round-trip
//!   time once it has reached the window before the loss.
//! - Before the first loss, and from a timeout to the next loss, the window grows by a
//!   twentieth a round-trip time at least: W_max is not known then.
//! - The curve is evaluated a least round-trip time ahead, not a smoothed one.
//! - The least round-trip time is forgotten at a timeout, and not measured in the second after
//!   a recovery.
//! - A reduction takes the window, not FlightSize.
//!
//! ns-3 differs from Linux in that segments acknowledged towards the next one stay counted after
//! a loss, one acknowledgement adds one segment at most, and the curve is evaluated with each
//! acknowledgement.
//!
//! # Differences
//! None known.

use aqmlab_core::{Span, Time};

use super::super::control::{
    AckSample, Congestion, CongestionControl, CongestionEvent, SentSample, Setup,
};
use super::super::slow_start::SlowStart;
use super::CubicParams;

/// The unit of beta: 717 / 1024 for 0.7.
const SCALE: u64 = 1024;
/// Acknowledged segments for one more segment: at most 1.5 windows a round-trip time,
const LEAST_COUNT: u64 = 2;
/// a twentieth while W_max is not known,
const COUNT_BEFORE_LOSS: u64 = 20;
/// and hardly any on the plateau.
const WINDOWS_ON_PLATEAU: u64 = 100;
/// No measurements of the least round-trip time so long after a recovery.
const NOT_MEASURED: Span = Span::from_secs(1);

/// An epoch: congestion avoidance from a reduction on.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Time,
    /// Seconds from its beginning to the plateau, and the window there.
    k: f64,
    origin: u64,
    /// W_est, and segments acknowledged towards its next segment.
    w_est: u64,
    acked: u64,
}

/// The state; windows in segments.
#[derive(Clone, Debug)]
pub(crate) struct Ns3Cubic {
    mss: u64,
    c: f64,
    beta: u64,
    fast_convergence: bool,
    reno_friendly: bool,
    slow_start: SlowStart,
    cwnd: u64,
    ssthresh: u64,
    /// Segments acknowledged towards the next one, and bytes towards the next of these.
    counted: u64,
    rest: u64,
    /// None since the connection began or a timeout came.
    w_max: Option<u64>,
    epoch: Option<Epoch>,
    least_rtt: Option<Span>,
    last_sent: Time,
    /// Window and ssthresh before the last reduction.
    before: (u64, u64),
}

impl Ns3Cubic {
    pub fn new(params: &CubicParams, setup: &Setup) -> Self {
        let cwnd = (setup.initial_window / setup.mss).max(1);
        let ssthresh = setup.initial_ssthresh / setup.mss;
        Ns3Cubic {
            mss: setup.mss,
            c: params.c,
            beta: (params.beta * SCALE as f64).round() as u64,
            fast_convergence: params.fast_convergence,
            reno_friendly: params.reno_friendly,
            slow_start: SlowStart::new(params.slow_start, setup),
            cwnd,
            ssthresh,
            counted: 0,
            rest: 0,
            w_max: None,
            epoch: None,
            least_rtt: None,
            last_sent: Time::ZERO,
            before: (cwnd, ssthresh),
        }
    }

    fn measure(&mut self, sample: &AckSample) {
        let early = |epoch: Epoch| sample.now < epoch.began + NOT_MEASURED;
        if let Some(rtt) = sample.rtt.filter(|_| !self.epoch.is_some_and(early)) {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Slow start; returns the segments left for congestion avoidance.
    fn slow_start(&mut self, sample: &AckSample, segments: u64) -> u64 {
        let seen = AckSample { min_rtt: self.least_rtt, ..*sample };
        if self.slow_start.on_ack(&seen, self.cwnd * self.mss).exit {
            self.ssthresh = self.cwnd;
        }
        if !sample.window_limited {
            return 0;
        }
        let taken = segments.min(self.ssthresh - self.cwnd);
        self.cwnd += taken;
        segments - taken
    }

    fn begin_epoch(&mut self, now: Time) -> Epoch {
        let cwnd = self.cwnd;
        let (k, origin) = match self.w_max {
            Some(w_max) if w_max > cwnd => (libm::cbrt((w_max - cwnd) as f64 / self.c), w_max),
            _ => (0.0, cwnd),
        };
        Epoch { began: now, k, origin, w_est: cwnd, acked: 0 }
    }

    /// The acknowledged segments after which the window grows by one.
    fn count(&mut self, now: Time, segments: u64) -> u64 {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(now),
        };
        epoch.acked += segments;
        let mut count = self.by_curve(&epoch, now).max(LEAST_COUNT);
        if self.reno_friendly {
            count = self.by_reno(&mut epoch, count).max(LEAST_COUNT);
        }
        self.epoch = Some(epoch);
        count
    }

    fn by_curve(&self, epoch: &Epoch, now: Time) -> u64 {
        let ahead = self.least_rtt.unwrap_or(Span::ZERO);
        let past_k = (now - epoch.began + ahead).as_secs_f64() - epoch.k;
        let distance = (self.c * past_k.abs() * past_k * past_k) as u64;
        let target = match past_k < 0.0 {
            true => epoch.origin.saturating_sub(distance),
            false => epoch.origin + distance,
        };
        let count = match target > self.cwnd {
            true => self.cwnd / (target - self.cwnd),
            false => WINDOWS_ON_PLATEAU * self.cwnd,
        };
        if self.w_max.is_none() { count.min(COUNT_BEFORE_LOSS) } else { count }
    }

    /// W_est grows by alpha, 3 (1 - beta) / (1 + beta), a round-trip time.
    fn by_reno(&self, epoch: &mut Epoch, count: u64) -> u64 {
        let scale = 8 * (SCALE + self.beta) / 3 / (SCALE - self.beta);
        let each = (self.cwnd * scale / 8).max(1);
        let grown = epoch.acked.saturating_sub(1) / each;
        epoch.w_est += grown;
        epoch.acked -= grown * each;
        match epoch.w_est > self.cwnd {
            true => count.min(self.cwnd / (epoch.w_est - self.cwnd)),
            false => count,
        }
    }

    fn avoid_congestion(&mut self, now: Time, segments: u64) {
        let count = self.count(now, segments);
        self.counted += segments;
        if self.counted >= count {
            self.counted -= count;
            self.cwnd += 1;
        }
    }

    fn reduce(&mut self) {
        self.before = (self.cwnd, self.ssthresh);
        self.epoch = None;
        let converges = self.fast_convergence && self.w_max.is_some_and(|w_max| self.cwnd < w_max);
        self.w_max = Some(match converges {
            true => self.cwnd * (SCALE + self.beta) / (2 * SCALE),
            false => self.cwnd,
        });
        self.ssthresh = (self.cwnd * self.beta / SCALE).max(2);
    }

    fn segments(&self, bytes: u64) -> u64 {
        (bytes / self.mss).max(1)
    }
}

impl CongestionControl for Ns3Cubic {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        self.measure(sample);
        if sample.acked == 0 || sample.ece || sample.in_recovery {
            return;
        }
        self.rest += sample.delivered + sample.recounted;
        let mut segments = self.rest / self.mss;
        self.rest %= self.mss;
        if self.cwnd < self.ssthresh {
            segments = self.slow_start(sample, segments);
        }
        if segments > 0 && sample.window_limited {
            self.avoid_congestion(sample.now, segments);
        }
    }

    /// The time in which nothing was in flight does not count.
    #[inline]
    fn on_sent(&mut self, sent: &SentSample) {
        let last = std::mem::replace(&mut self.last_sent, sent.now);
        if let (0, Some(epoch)) = (sent.prior_in_flight, &mut self.epoch) {
            epoch.began = (epoch.began + (sent.now - last)).min(sent.now);
        }
    }

    fn on_idle(&mut self, restart_window: u64) {
        self.cwnd = self.cwnd.min(self.segments(restart_window));
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let timeout = matches!(event.kind, Congestion::Timeout { .. });
        if timeout {
            self.counted = 0;
        }
        if !matches!(event.kind, Congestion::Timeout { first: false }) {
            self.reduce();
        }
        self.slow_start.on_congestion(timeout);
        self.cwnd = self.ssthresh;
        if timeout {
            self.cwnd = 1;
            self.w_max = None;
            self.epoch = None;
            self.least_rtt = None;
        }
    }

    /// `tcp_reno_undo_cwnd`: the window, and not the curve.
    fn on_undo(&mut self) {
        self.cwnd = self.cwnd.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }

    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = self.segments(ssthresh).max(2);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.cwnd * self.mss
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh * self.mss
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("w_max", (self.w_max.unwrap_or(0) * self.mss) as f64);
        see("w_est", (self.epoch.map_or(0, |epoch| epoch.w_est) * self.mss) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RTT, ack, event, transport};

    /// In congestion avoidance with so many segments, after a loss.
    fn after_loss(segments: u64, params: &CubicParams) -> Ns3Cubic {
        let mut cubic = Ns3Cubic::new(params, &transport().setup(10_000, 0));
        cubic.cwnd = segments;
        cubic.least_rtt = Some(RTT);
        cubic.on_congestion(&event(Congestion::Loss, segments * 1000));
        cubic
    }
    fn acknowledge(cubic: &mut Ns3Cubic, at: Span, segments: u64) {
        for _ in 0..segments {
            cubic.on_ack(&AckSample { now: Time::ZERO + at, rtt: Some(RTT), ..ack(1000) });
        }
    }

    #[test]
    fn windows_are_whole_segments_rounded_down() {
        let mut cubic = after_loss(10, &CubicParams::default());
        assert_eq!((cubic.window(), cubic.ssthresh(), cubic.w_max), (7000, 7000, Some(10)));
        // 7 x 0.85 and 7 x 0.7.
        cubic.on_congestion(&event(Congestion::Loss, 7000));
        assert_eq!((cubic.window(), cubic.w_max), (4000, Some(5)));
        cubic.on_congestion(&event(Congestion::Ecn, 4000));
        cubic.on_congestion(&event(Congestion::Loss, 2000));
        assert_eq!(cubic.window(), 2000);
    }

    /// From 20 to 14: K is 2.466 s. A round-trip time after the beginning the curve is at
    /// 20 - 5 (5.3), so 14 segments for one more; then the target is reached. On the plateau
    /// 15 / 5 = 3 segments bring one more.
    #[test]
    fn the_window_follows_the_curve_in_whole_segments() {
        let mut cubic = after_loss(20, &CubicParams::default());
        acknowledge(&mut cubic, Span::from_millis(1), 13);
        assert_eq!(cubic.window(), 14_000);
        acknowledge(&mut cubic, Span::from_millis(1), 1);
        assert_eq!(cubic.window(), 15_000);
        acknowledge(&mut cubic, Span::from_millis(1), 20);
        assert_eq!(cubic.window(), 15_000);
        cubic.counted = 0;
        cubic.reno_friendly = false;
        acknowledge(&mut cubic, Span::from_millis(2370), 3);
        assert_eq!(cubic.window(), 16_000);
    }

    /// Section 4.3 of RFC 9438 would grow by a segment each round-trip time above 20.
    #[test]
    fn w_est_grows_by_alpha_for_good() {
        let mut cubic = after_loss(20, &CubicParams { c: 1e-6, ..CubicParams::default() });
        for round in 1..=60 {
            let segments = cubic.cwnd;
            for number in 0..segments {
                acknowledge(&mut cubic, RTT * round + RTT * number / segments, 1);
            }
        }
        let grown = (cubic.cwnd - 14) as f64 / 60.0;
        assert!((grown - 0.53).abs() < 0.03, "{grown}");
    }

    #[test]
    fn a_timeout_forgets_the_curve_and_five_percent_follow() {
        let mut cubic = after_loss(100, &CubicParams::default());
        acknowledge(&mut cubic, Span::from_millis(1), 1);
        cubic.on_congestion(&event(Congestion::Timeout { first: true }, 70_000));
        assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 49_000));
        assert_eq!((cubic.w_max, cubic.least_rtt), (None, None));
        cubic.on_congestion(&event(Congestion::Timeout { first: false }, 1000));
        assert_eq!(cubic.ssthresh(), 49_000);
        cubic.slow_start.on_congestion(false); // no HyStart in what follows
        acknowledge(&mut cubic, Span::from_secs(1), 48);
        assert_eq!(cubic.window(), 49_000);
        acknowledge(&mut cubic, Span::from_secs(1), 19);
        assert_eq!(cubic.window(), 49_000);
        acknowledge(&mut cubic, Span::from_secs(1), 1);
        assert_eq!(cubic.window(), 50_000);
    }

    #[test]
    fn what_was_in_vain_is_undone() {
        let mut cubic = after_loss(100, &CubicParams::default());
        cubic.on_congestion(&event(Congestion::Timeout { first: true }, 70_000));
        cubic.on_undo();
        assert_eq!((cubic.window(), cubic.ssthresh()), (70_000, 70_000));
    }

    /// 13 of the 14 segments that one more takes stay counted; in Linux they do not.
    #[test]
    fn what_was_counted_before_a_loss_is_kept() {
        let mut cubic = after_loss(20, &CubicParams::default());
        acknowledge(&mut cubic, Span::from_millis(1), 13);
        cubic.on_congestion(&event(Congestion::Loss, 14_000));
        acknowledge(&mut cubic, Span::from_millis(2), 1);
        assert_eq!(cubic.window(), 10_000);
    }

    /// The round-trip time of a link that is quiet only right after a recovery is not the base.
    #[test]
    fn the_least_round_trip_time_is_not_measured_after_a_recovery() {
        let mut cubic = after_loss(20, &CubicParams::default());
        acknowledge(&mut cubic, Span::from_millis(1), 1);
        let short = Some(RTT / 2);
        let sample = |millis| AckSample {
            now: Time::ZERO + Span::from_millis(millis),
            rtt: short,
            ..ack(1000)
        };
        cubic.on_ack(&sample(900));
        assert_eq!(cubic.least_rtt, Some(RTT));
        cubic.on_ack(&sample(1100));
        assert_eq!(cubic.least_rtt, short);
    }
}
