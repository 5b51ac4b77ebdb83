//! LEDBAT++: LEDBAT that shares fairly and finds the base delay again.
//!
//! The window grows by GAIN, which depends on the path, below the target and
//! shrinks by a share of itself above; and now and then it slows down to two
//! segments, so that the queue drains and all flows see the base delay.
//!
//! # Sources
//! P. Balasubramanian, O. Ertugay, D. Havey and M. Bagnulo, "LEDBAT++:
//! Congestion Control for Background Traffic",
//! draft-irtf-iccrg-ledbat-plus-plus. Its rules and numbers were taken from
//! public implementations that cite it; the text was not at hand, so sections
//! are not cited.
//!
//! # Differences
//! 1. The window moves with each acknowledgement by its share of what the draft
//!    has for a round-trip time.
//! 2. Slowdowns begin and end with acknowledgements, and are timed with the
//!    smoothed round-trip time.
//! 3. Minutes of the base delay are counted from the start of the simulation.
//! 4. The first window is the transport's; the draft begins with two segments.

use aqmlab_core::{Component, Span, Time, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::delay::QueueingDelay;
use super::slow_start::SlowStartKind;
use super::window::{Window, by_field};

params! {
    /// Parameters of LEDBAT++.
    pub struct LedbatPpParams {
        /// The queueing delay to keep to.
        target: Span = Span::from_millis(60), in Span::from_micros(1) => Span::from_secs(10),
            source "draft-irtf-iccrg-ledbat-plus-plus";
        /// Share by which the window shrinks for each multiple of the target above the
        /// target.
        constant: f64 = 1.0, in 0.0 => 100.0, source "draft-irtf-iccrg-ledbat-plus-plus";
        /// Makes periodic slowdowns.
        slowdowns: bool = true, source "draft-irtf-iccrg-ledbat-plus-plus";
    }
}

impl Component for LedbatPpParams {
    const NAME: &'static str = "ledbat++";
    const SUMMARY: &'static str =
        "LEDBAT with slowdowns and multiplicative decrease (draft-irtf-iccrg-ledbat-plus-plus)";
}

/// The first slow start ends at this share of the target.
const START_SHARE: f64 = 0.75;
/// 1 / GAIN at most.
const SLOWEST: f64 = 16.0;
/// Round-trip times from slow start to the first slowdown, and in a slowdown.
const BEFORE_FIRST: u64 = 2;
const FROZEN: u64 = 2;
/// The next slowdown comes so many times its duration later.
const PERIOD: u64 = 9;

#[derive(Clone, Copy, Debug, PartialEq)]
enum SlowdownPhase {
    /// The first slow start.
    Start,
    /// With the time of the next slowdown.
    Avoidance(Time),
    /// The window stays at two segments, from and until then.
    Frozen(Time, Time),
    /// Slow start back to ssthresh, in a slowdown since then.
    Ramp(Time),
}

/// The state of LEDBAT++.
#[derive(Clone, Debug)]
pub(crate) struct LedbatPp {
    window: Window,
    params: LedbatPpParams,
    delay: QueueingDelay,
    phase: SlowdownPhase,
}

impl LedbatPp {
    pub fn new(params: &LedbatPpParams, setup: &Setup) -> Self {
        LedbatPp {
            window: Window::new(SlowStartKind::Standard, setup),
            params: params.clone(),
            delay: QueueingDelay::new(),
            phase: SlowdownPhase::Start,
        }
    }

    /// GAIN: at most Reno's, and the less the shorter the path.
    fn gain(&self, base: Span) -> f64 {
        let ratio = 2.0 * self.params.target.as_secs_f64() / base.as_secs_f64();
        1.0 / libm::ceil(ratio).min(SLOWEST)
    }

    /// Next phase, before the window moves.
    fn advance(&mut self, sample: &AckSample, load: f64) {
        let now = sample.now;
        let rtt = sample.smoothed_rtt.unwrap_or(Span::ZERO);
        match self.phase {
            SlowdownPhase::Start if load > START_SHARE || !self.window.in_slow_start() => {
                self.phase = SlowdownPhase::Avoidance(now + rtt * BEFORE_FIRST);
            }
            SlowdownPhase::Avoidance(next) if self.params.slowdowns && now >= next => {
                self.window.ssthresh = self.window.window();
                self.window.cwnd = 2.0 * self.window.mss;
                self.phase = SlowdownPhase::Frozen(now, now + rtt * FROZEN);
            }
            SlowdownPhase::Frozen(since, until) if now >= until => {
                self.phase = SlowdownPhase::Ramp(since)
            }
            SlowdownPhase::Ramp(since) if !self.window.in_slow_start() => {
                self.phase = SlowdownPhase::Avoidance(now + (now - since) * PERIOD);
            }
            _ => {}
        }
    }
}

impl CongestionControl for LedbatPp {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.delay.sample(sample.now, rtt);
        }
        if sample.acked == 0 || sample.in_recovery || sample.ece {
            return;
        }
        let (Some(waiting), Some(base)) = (self.delay.queueing(), self.delay.base()) else {
            return;
        };
        let load = waiting.as_secs_f64() / self.params.target.as_secs_f64();
        self.advance(sample, load);
        let gain = self.gain(base);
        let window = &mut self.window;
        match self.phase {
            SlowdownPhase::Start | SlowdownPhase::Ramp(_) if sample.window_limited => {
                window.cwnd += gain * sample.counted() as f64;
            }
            SlowdownPhase::Avoidance(_) if load > 1.0 => {
                let segments = window.segments();
                let step = gain - self.params.constant * segments * (load - 1.0);
                window.grow(step.max(-segments / 2.0), sample.counted());
            }
            SlowdownPhase::Avoidance(_) if sample.window_limited => {
                window.grow(gain, sample.counted())
            }
            _ => {}
        }
        window.cwnd = window.cwnd.max(2.0 * window.mss);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        // A loss in a slowdown is one of the window from before.
        let slow = matches!(self.phase, SlowdownPhase::Frozen(..) | SlowdownPhase::Ramp(_));
        let whole = if slow { self.window.ssthresh as f64 } else { self.window.cwnd };
        let cwnd = self.window.cwnd;
        self.window.reduce(event, whole / 2.0);
        if let Congestion::Timeout { .. } = event.kind {
            self.phase = SlowdownPhase::Ramp(event.now);
        } else if slow {
            self.window.cwnd = cwnd.min(self.window.cwnd);
        } else if self.phase == SlowdownPhase::Start {
            self.phase = SlowdownPhase::Avoidance(event.now);
        }
    }

    by_field!(window);
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("queueing_delay_s", self.delay.queueing().map_or(0.0, Span::as_secs_f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, event, transport};

    fn acked(now: u64, delay: u64) -> AckSample {
        AckSample {
            now: Time::ZERO + Span::from_millis(now),
            rtt: Some(Span::from_millis(delay)),
            smoothed_rtt: Some(Span::from_millis(100)),
            ..ack(1000)
        }
    }
    /// A path of 120 ms, for which GAIN is 1.
    fn ledbat(segments: u64) -> LedbatPp {
        let setup = transport();
        let setup = setup.setup(segments * 1000, 0);
        let mut ledbat = LedbatPp::new(&LedbatPpParams::default(), &setup);
        ledbat.on_ack(&AckSample { in_recovery: true, ..acked(0, 120) });
        ledbat
    }
    fn settle(ledbat: &mut LedbatPp, now: u64, delay: u64) {
        (0..4).for_each(|_| ledbat.on_ack(&AckSample { in_recovery: true, ..acked(now, delay) }));
    }

    #[test]
    fn the_gain_depends_on_the_path() {
        let ledbat = ledbat(10);
        for (base, expected) in [(1, 16.0), (8, 15.0), (20, 6.0), (60, 2.0), (120, 1.0), (200, 1.0)]
        {
            assert_eq!(ledbat.gain(Span::from_millis(base)), 1.0 / expected, "{base}");
        }
    }

    /// In a round-trip time: GAIN below the target; 10 % above it a tenth of the
    /// window less; never more than half.
    #[test]
    fn above_the_target_the_window_shrinks_by_a_share() {
        for (delay, step) in [(120, 1.0), (180, 1.0), (186, -9.0), (400, -50.0)] {
            let mut ledbat = ledbat(100);
            ledbat.phase = SlowdownPhase::Avoidance(Time::ZERO + Span::from_secs(3600));
            settle(&mut ledbat, 1, delay);
            ledbat.on_ack(&acked(1, delay));
            let expected = 100_000.0 + step * 10.0;
            assert!((ledbat.window.cwnd - expected).abs() < 1e-6, "{delay}");
        }
    }

    /// The first slow start ends at 45 ms; two round-trip times later the window
    /// is two segments for two, then grows back; nine times as long after.
    #[test]
    fn slowdowns_take_a_tenth_of_the_time() {
        let mut ledbat = ledbat(10);
        ledbat.on_ack(&acked(10, 120));
        assert_eq!((ledbat.window(), ledbat.phase), (11_000, SlowdownPhase::Start));
        settle(&mut ledbat, 20, 166);
        ledbat.on_ack(&acked(20, 166));
        let ms = |millis| Time::ZERO + Span::from_millis(millis);
        assert_eq!(ledbat.phase, SlowdownPhase::Avoidance(ms(220)));
        ledbat.on_ack(&acked(220, 120));
        assert_eq!(
            (ledbat.window(), ledbat.phase),
            (2000, SlowdownPhase::Frozen(ms(220), ms(420)))
        );
        assert_eq!(ledbat.ssthresh(), 11_090);
        ledbat.on_ack(&acked(400, 120));
        assert_eq!(ledbat.window(), 2000);
        for _ in 0..10 {
            ledbat.on_ack(&acked(420, 300)); // delay does not end this slow start
        }
        assert_eq!((ledbat.window(), ledbat.phase), (12_000, SlowdownPhase::Ramp(ms(220))));
        ledbat.on_ack(&acked(620, 120));
        assert_eq!(ledbat.phase, SlowdownPhase::Avoidance(ms(620 + 9 * 400)));
    }

    #[test]
    fn a_loss_in_a_slowdown_is_of_the_window_before() {
        let mut ledbat = ledbat(64);
        ledbat.phase = SlowdownPhase::Avoidance(Time::ZERO);
        ledbat.on_ack(&acked(10, 120));
        assert_eq!((ledbat.window(), ledbat.ssthresh()), (2000, 64_000));
        ledbat.on_congestion(&event(Congestion::Loss, 2000));
        assert_eq!((ledbat.window(), ledbat.ssthresh()), (2000, 32_000));
        ledbat.phase = SlowdownPhase::Avoidance(Time::ZERO + Span::from_secs(3600));
        ledbat.window.cwnd = 40_000.0;
        ledbat.on_congestion(&event(Congestion::Loss, 40_000));
        assert_eq!((ledbat.window(), ledbat.ssthresh()), (20_000, 20_000));
    }

    /// Three quarters of the target are not more than three quarters.
    #[test]
    fn the_first_slow_start_lasts_to_three_quarters_of_the_target() {
        for (load, goes_on) in [(0.75, true), (0.751, false)] {
            let mut ledbat = ledbat(10);
            ledbat.advance(&acked(10, 120), load);
            assert_eq!(ledbat.phase == SlowdownPhase::Start, goes_on, "{load}");
        }
    }
}
