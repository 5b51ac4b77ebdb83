//! HighSpeed TCP: large windows grow faster and shrink less than Reno's.
//!
//! # Sources
//! RFC 3649, sections 5 and 7: a(w), b(w) and p(w), the drop rate at which the
//! mean window is w.
//!
//! # Differences
//! 1. a(w) and b(w) are computed from their equations when a round-trip time
//!    begins or congestion is found, where the RFC has a table (appendix B).
//! 2. a(w) / w is added for each segment acknowledged, not for each
//!    acknowledgement as in Linux.

use aqmlab_core::{Component, Error, Result, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::slow_start::SlowStartKind;
use super::window::{Window, by_field};

params! {
    /// Parameters of HighSpeed TCP.
    pub struct HighSpeedParams {
        /// Low_Window: windows up to so many segments are Reno's.
        low_window: f64 = 38.0, in 1.0 => 1e9, source "RFC 3649, section 5";
        /// Low_P: the drop rate at which the mean window is `low_window`.
        low_p: f64 = 1e-3, in 1e-15 => 0.1, source "RFC 3649, section 5";
        /// High_Window, the window at the loss rate `high_p`.
        high_window: f64 = 83_000.0, in 1.0 => 1e9, source "RFC 3649, section 5";
        /// High_P: the drop rate at which the mean window is `high_window`.
        high_p: f64 = 1e-7, in 1e-15 => 1e-3, source "RFC 3649, section 5";
        /// High_Decrease: the share of the window that is lost at a loss at `high_window`.
        high_decrease: f64 = 0.1, in 0.001 => 0.5, source "RFC 3649, section 7";
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
    }
}

impl Component for HighSpeedParams {
    const NAME: &'static str = "highspeed";
    const SUMMARY: &'static str =
        "large windows grow faster and shrink less than Reno's (RFC 3649)";

    fn check(&self) -> Result<()> {
        if self.low_window < self.high_window {
            return Ok(());
        }
        let allowed = format!("below high_window = {}", self.high_window);
        Err(Error::not_allowed(self.low_window, allowed).at("low_window"))
    }
}

impl HighSpeedParams {
    /// b(w) (section 7).
    fn decrease(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 0.5;
        }
        let way = libm::log(w / self.low_window) / libm::log(self.high_window / self.low_window);
        ((self.high_decrease - 0.5) * way + 0.5).max(self.high_decrease)
    }

    /// p(w): the response function of section 5, through (Low_P, Low_Window)
    /// and (High_P, High_Window).
    fn drop_rate(&self, w: f64) -> f64 {
        let slope =
            libm::log(self.high_p / self.low_p) / libm::log(self.high_window / self.low_window);
        self.low_p * libm::pow(w / self.low_window, slope)
    }

    /// a(w) (section 7).
    fn increase(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        let b = self.decrease(w);
        (w * w * self.drop_rate(w) * 2.0 * b / (2.0 - b)).max(1.0)
    }
}

/// The state of HighSpeed TCP.
#[derive(Clone, Debug)]
pub(crate) struct HighSpeed {
    window: Window,
    params: HighSpeedParams,
    /// a(w) for this round-trip time.
    increase: f64,
}

impl HighSpeed {
    pub fn new(params: &HighSpeedParams, setup: &Setup) -> Self {
        let window = Window::new(params.slow_start, setup);
        let increase = params.increase(window.segments());
        HighSpeed { window, params: params.clone(), increase }
    }
}

impl CongestionControl for HighSpeed {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        if sample.round_start {
            self.increase = self.params.increase(self.window.segments());
        }
        let increase = self.increase;
        self.window.on_ack(sample, |window| window.grow(increase, sample.counted()));
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let timeout = matches!(event.kind, Congestion::Timeout { .. });
        let b = if timeout { 0.5 } else { self.params.decrease(self.window.segments()) };
        self.window.reduce(event, self.window.in_use(event) * (1.0 - b));
        self.increase = self.params.increase(self.window.segments());
    }

    by_field!(window);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, round, transport};

    /// RFC 3649, sections 5 and 7, and appendix B: b is 0.5 up to 38 and 0.1 at
    /// 83000, where a is 72 (both in section 7); in the table of appendix B, a is 8
    /// and b 0.33 for 1058 segments.
    #[test]
    fn parameters_are_those_of_the_table() {
        let params = HighSpeedParams::default();
        assert_eq!((params.increase(38.0), params.decrease(38.0)), (1.0, 0.5));
        assert!((params.decrease(83_000.0) - 0.1).abs() < 1e-12);
        assert!((params.increase(83_000.0) - 72.0).abs() < 1.0);
        assert!((params.increase(1058.0) - 8.0).abs() < 0.5, "{}", params.increase(1058.0));
        assert!((params.decrease(1058.0) - 0.33).abs() < 0.005);
        // p(w) = 0.078 / w^1.2.
        for w in [100.0, 10_000.0] {
            let ratio = params.drop_rate(w) / (0.078 / libm::pow(w, 1.2));
            assert!((ratio - 1.0).abs() < 0.05, "{w}: {ratio}");
        }
    }

    /// Section 6, table 6: from one segment, so many after so many round-trip
    /// times.
    #[test]
    fn growth_is_that_of_the_table() {
        let params = HighSpeedParams::default();
        let mut highspeed = HighSpeed::new(&params, &transport().setup(1000, 0));
        highspeed.window.ssthresh = 1000;
        for (rounds, expected) in [(100, 131.0), (300, 1131.0), (1000, 17_409.0)] {
            let mut highspeed = highspeed.clone();
            for _ in 1..rounds {
                round(&mut highspeed, 100.0);
            }
            let window = highspeed.window.segments();
            assert!((window / expected - 1.0).abs() < 0.05, "{rounds}: {window}");
        }
    }

    #[test]
    fn a_loss_takes_b_of_the_window() {
        let params = HighSpeedParams::default();
        let mut highspeed = HighSpeed::new(&params, &transport().setup(83_000_000, 0));
        highspeed.on_congestion(&event(Congestion::Loss, 83_000_000));
        assert_eq!(highspeed.window(), 74_700_000);
        let mut small = HighSpeed::new(&params, &transport().setup(30_000, 0));
        small.on_congestion(&event(Congestion::Loss, 30_000));
        assert_eq!(small.window(), 15_000);
    }
}
