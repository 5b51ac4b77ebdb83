//! LEDBAT: background traffic that keeps to a share of the queue.
//!
//! # Sources
//! RFC 6817, section 2.4.2.
//!
//! # Differences
//! 1. Delays are one-way if the transport has timestamps, otherwise round-trip times, which include
//!    queues on the return path.
//! 2. FILTER() is the least of the last four samples (section 2.5 asks for at
//!    least four in a round-trip time), also when they are older than that.
//! 3. Minutes are counted from the start of the simulation.
//! 4. Slow start (section 2.2 allows it) is off unless asked for, and ends when
//!    the target is reached.
//! 5. max_allowed_cwnd keeps windows from growing, not from staying as they
//!    are: after a burst of acknowledgements in a recovery FlightSize is small.

use aqmlab_core::{Component, Span, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::delay::QueueingDelay;
use super::slow_start::SlowStartKind;
use super::window::{Window, by_field};

params! {
    /// Parameters of LEDBAT.
    pub struct LedbatParams {
        /// TARGET: the queueing delay to keep to.
        target: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(10),
            source "RFC 6817, section 2.5: 100ms or less";
        /// GAIN: segments a round-trip time while nothing waits.
        gain: f64 = 1.0, in 0.001 => 100.0,
            source "RFC 6817, section 2.5: 1 or less; RFC 7928, section 5.4, has 10";
        /// ALLOWED_INCREASE: segments by which the window may exceed the data in flight.
        allowed_increase: u64 = 1, in 1 => 1000, source "RFC 6817, section 2.5";
        /// Whether the connection starts with slow start.
        slow_start: bool = false, source "RFC 6817, section 2.2";
    }
}

impl Component for LedbatParams {
    const NAME: &'static str = "ledbat";
    const SUMMARY: &'static str =
        "background traffic that keeps queueing delay at a target (RFC 6817)";
}

/// The state of LEDBAT.
#[derive(Clone, Debug)]
pub(crate) struct Ledbat {
    window: Window,
    params: LedbatParams,
    delay: QueueingDelay,
    /// In slow start.
    starting: bool,
}

impl Ledbat {
    pub fn new(params: &LedbatParams, setup: &Setup) -> Self {
        Ledbat {
            window: Window::new(SlowStartKind::Standard, setup),
            params: params.clone(),
            delay: QueueingDelay::new(),
            starting: params.slow_start,
        }
    }

    /// off_target: 1 with an empty queue, 0 at the target.
    fn off_target(&self) -> Option<f64> {
        let waiting = self.delay.queueing()?.as_secs_f64();
        Some(1.0 - waiting / self.params.target.as_secs_f64())
    }
}

impl CongestionControl for Ledbat {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        if let Some(delay) = sample.one_way_delay.or(sample.rtt) {
            self.delay.sample(sample.now, delay);
        }
        if sample.acked == 0 || sample.in_recovery || sample.ece {
            return;
        }
        let Some(off_target) = self.off_target() else {
            return;
        };
        let window = &mut self.window;
        self.starting &= window.in_slow_start() && off_target > 0.0;
        let before = window.cwnd;
        if self.starting {
            window.slow_start(sample);
        } else {
            window.grow(self.params.gain * off_target, sample.counted());
        }
        let allowed =
            sample.prior_in_flight as f64 + self.params.allowed_increase as f64 * window.mss;
        window.cwnd = window.cwnd.min(allowed.max(before)).max(2.0 * window.mss);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.window.reduce(event, self.window.cwnd / 2.0);
        let timeout = matches!(event.kind, Congestion::Timeout { .. });
        self.starting = self.params.slow_start && timeout;
    }

    by_field!(window);
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("queueing_delay_s", self.delay.queueing().map_or(0.0, Span::as_secs_f64));
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Time;

    use super::*;
    use crate::testing::{ack, event, transport};

    fn acked(now: u64, delay: u64) -> AckSample {
        AckSample {
            now: Time::ZERO + Span::from_millis(now),
            rtt: Some(Span::from_millis(delay)),
            prior_in_flight: 100_000,
            ..ack(1000)
        }
    }
    fn ledbat(params: LedbatParams) -> Ledbat {
        let mut ledbat = Ledbat::new(&params, &transport().setup(100_000, 0));
        ledbat.on_ack(&AckSample { in_recovery: true, ..acked(0, 50) });
        for _ in 0..3 {
            ledbat.on_ack(&AckSample { in_recovery: true, ..acked(0, 60) });
        }
        ledbat
    }

    /// A segment of 100 acknowledged: GAIN off_target / 100 of a segment.
    #[test]
    fn the_window_moves_in_proportion_to_the_distance_from_the_target() {
        for (delay, step) in [(50, 10.0), (100, 5.0), (150, 0.0), (200, -5.0), (350, -20.0)] {
            let mut ledbat = ledbat(LedbatParams::default());
            for _ in 0..4 {
                ledbat.on_ack(&AckSample { in_recovery: true, ..acked(1, delay) });
            }
            ledbat.on_ack(&acked(2, delay));
            assert!((ledbat.window.cwnd - 100_000.0 - step).abs() < 1e-6, "{delay}");
        }
    }

    #[test]
    fn the_window_grows_no_further_than_what_is_in_flight_and_a_segment() {
        let mut ledbat = ledbat(LedbatParams::default());
        ledbat.on_ack(&AckSample { prior_in_flight: 99_005, ..acked(1, 50) });
        assert_eq!(ledbat.window(), 100_005);
        ledbat.on_ack(&AckSample { prior_in_flight: 10_000, ..acked(1, 50) });
        assert_eq!(ledbat.window(), 100_005);
    }

    #[test]
    fn congestion_halves_the_window_and_a_timeout_leaves_one_segment() {
        let mut ledbat = ledbat(LedbatParams::default());
        ledbat.on_congestion(&event(Congestion::Loss, 80_000));
        assert_eq!(ledbat.window(), 50_000);
        ledbat.on_congestion(&event(Congestion::Timeout { first: true }, 80_000));
        assert_eq!(ledbat.window(), 1000);
        ledbat.on_ack(&acked(1, 50));
        assert_eq!(ledbat.window(), 2000, "MIN_CWND");
    }

    /// With timestamps only one-way delays count.
    #[test]
    fn one_way_delays_come_first() {
        let mut ledbat = ledbat(LedbatParams::default());
        let sample = AckSample { one_way_delay: Some(Span::from_millis(20)), ..acked(1, 500) };
        for _ in 0..4 {
            ledbat.on_ack(&AckSample { in_recovery: true, ..sample });
        }
        assert_eq!(ledbat.delay.queueing(), Some(Span::ZERO));
    }

    #[test]
    fn slow_start_ends_at_the_target() {
        let mut ledbat = ledbat(LedbatParams { slow_start: true, ..LedbatParams::default() });
        ledbat.on_ack(&acked(1, 60));
        assert_eq!(ledbat.window(), 101_000);
        (0..4).for_each(|_| ledbat.on_ack(&AckSample { in_recovery: true, ..acked(2, 160) }));
        ledbat.on_ack(&acked(2, 160));
        assert!(ledbat.window() < 101_000 && !ledbat.starting);
    }
}
