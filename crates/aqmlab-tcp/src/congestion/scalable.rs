//! Scalable TCP: windows grow and shrink by a share of themselves.
//!
//! # Sources
//! T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area
//! Networks", ACM CCR 33 (2), 2003: for each acknowledgement cwnd + a, at a loss
//! cwnd (1 - b), with a = 0.01, b = 1/8; Reno's rule below a window `low_window`.
//! The values are also in RFC 3649, section 8; the paper itself was not at hand.
//!
//! # Differences
//! 1. a is for each segment acknowledged, not for each acknowledgement, so that
//!    delayed acknowledgements do not halve the growth; Linux's is 1 / min(w, 100).

use aqmlab_core::{Component, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::slow_start::SlowStartKind;
use super::window::{Window, by_field};

params! {
    /// Parameters of Scalable TCP.
    pub struct ScalableParams {
        /// a: by how many segments the window grows for each that is acknowledged.
        increase: f64 = 0.01, in 1e-6 => 1.0, source "Kelly 2003; Linux: 0.02";
        /// b: which share of the window is lost at a loss.
        decrease: f64 = 0.125, in 0.001 => 0.999, source "Kelly 2003";
        /// Windows of so many segments and less grow and shrink as Reno's.
        low_window: f64 = 16.0, in 0.0 => 1e9, source "Kelly 2003";
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
    }
}

impl Component for ScalableParams {
    const NAME: &'static str = "scalable";
    const SUMMARY: &'static str =
        "windows that grow and shrink by a share of themselves (Kelly 2003)";
}

impl ScalableParams {
    /// The same number of round trips for windows of any size.
    pub(super) fn cycle(&self, _window: f64, rtt: f64, _acknowledged: u64) -> f64 {
        -libm::log(1.0 - self.decrease) / libm::log(1.0 + self.increase) * rtt
    }
}

/// The state of Scalable TCP.
#[derive(Clone, Debug)]
pub(crate) struct Scalable {
    window: Window,
    params: ScalableParams,
}

impl Scalable {
    pub fn new(params: &ScalableParams, setup: &Setup) -> Self {
        Scalable { window: Window::new(params.slow_start, setup), params: params.clone() }
    }
}

impl CongestionControl for Scalable {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let ScalableParams { low_window, increase, .. } = self.params;
        self.window.on_ack(sample, |window| {
            if window.segments() <= low_window {
                window.grow(1.0, sample.counted());
            } else {
                window.cwnd += increase * sample.counted() as f64;
            }
        });
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let low = self.window.segments() <= self.params.low_window;
        let timeout = matches!(event.kind, Congestion::Timeout { .. });
        let lost = if low || timeout { 0.5 } else { self.params.decrease };
        self.window.reduce(event, self.window.in_use(event) * (1.0 - lost));
    }

    by_field!(window);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, event, transport};

    /// The time between two losses does not depend on the window: it takes
    /// ln(8/7) / 0.01 windows' worth of acknowledgements less a little, 13.4
    /// round-trip times.
    #[test]
    fn the_time_to_recover_is_the_same_for_all_windows() {
        for window in [100_000, 10_000_000] {
            let params = ScalableParams::default();
            let mut scalable = Scalable::new(&params, &transport().setup(window, 0));
            scalable.on_congestion(&event(Congestion::Loss, window));
            assert_eq!(scalable.window(), window / 8 * 7);
            let mut rounds = 0.0;
            while scalable.window() < window {
                rounds += 1000.0 / scalable.window() as f64;
                scalable.on_ack(&ack(1000));
            }
            assert!((rounds - libm::log(8.0 / 7.0) / 0.01).abs() < 0.1, "{rounds}");
        }
    }

    #[test]
    fn small_windows_are_renos() {
        let params = ScalableParams::default();
        let mut scalable = Scalable::new(&params, &transport().setup(16_000, 0));
        scalable.on_congestion(&event(Congestion::Loss, 16_000));
        assert_eq!(scalable.window(), 8000);
        (0..8).for_each(|_| scalable.on_ack(&ack(1000)));
        assert!((8900..9000).contains(&scalable.window()));
    }
}
