//! Westwood+: a loss sets the window to the estimated capacity of the path.
//!
//! Reno, but a loss leaves bandwidth times the least round-trip time in place
//! of a half, so that losses that are no congestion cost little.
//!
//! # Sources
//! L. A. Grieco and S. Mascolo, "Performance evaluation and comparison of
//! Westwood+, New Reno, and Vegas TCP congestion control", ACM CCR 34 (2), 2004;
//! Linux, `net/ipv4/tcp_westwood.c`, for the filter.
//!
//! # Differences
//! 1. Bandwidth is measured over delivered data, including SACK, where Linux counts duplicate
//!    acknowledgements as segments.
//! 2. A loss sets the window to the estimate at once; Linux halves it and sets it to the estimate
//!    at the end of the recovery. The window after a timeout is one segment, ssthresh the estimate,
//!    as in the paper and in Linux.

use aqmlab_core::{Component, Span, Time, params};

use super::control::{AckSample, CongestionControl, CongestionEvent, Setup};
use super::slow_start::SlowStartKind;
use super::window::{Window, by_field};

params! {
    /// Parameters of Westwood+.
    pub struct WestwoodParams {
        /// The share of the last estimate in the next, in both stages of the filter.
        filter: f64 = 0.875, in 0.0 => 0.999, source "Linux: 7/8; Grieco and Mascolo 2004: 0.9";
        /// The least time over which bandwidth is measured; a round-trip time if that is longer.
        least_interval: Span = Span::from_millis(50), in Span::from_nanos(1) => Span::from_secs(10),
            source "Linux: TCP_WESTWOOD_RTT_MIN";
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
    }
}

impl Component for WestwoodParams {
    const NAME: &'static str = "westwood";
    const SUMMARY: &'static str =
        "Westwood+: Reno that reduces to the estimated bandwidth-delay product (Grieco 2004)";
}

/// The state of Westwood+.
#[derive(Clone, Debug)]
pub(crate) struct Westwood {
    window: Window,
    params: WestwoodParams,
    /// Bytes delivered since this measurement began.
    delivered: u64,
    since: Option<Time>,
    last_rtt: Span,
    min_rtt: Option<Span>,
    /// Bytes a second after the first stage of the filter and after the second.
    stage: f64,
    bandwidth: f64,
}

impl Westwood {
    pub fn new(params: &WestwoodParams, setup: &Setup) -> Self {
        Westwood {
            window: Window::new(params.slow_start, setup),
            params: params.clone(),
            delivered: 0,
            since: None,
            last_rtt: Span::ZERO,
            min_rtt: None,
            stage: 0.0,
            bandwidth: 0.0,
        }
    }

    fn measure(&mut self, sample: &AckSample) {
        self.last_rtt = sample.rtt.unwrap_or(self.last_rtt);
        self.min_rtt = sample.min_rtt;
        let since = *self.since.get_or_insert(sample.now);
        let interval = sample.now - since;
        if interval > self.last_rtt.max(self.params.least_interval) {
            let rate = self.delivered as f64 / interval.as_secs_f64();
            if self.bandwidth == 0.0 {
                (self.stage, self.bandwidth) = (rate, rate);
            } else {
                let old = self.params.filter;
                self.stage = old * self.stage + (1.0 - old) * rate;
                self.bandwidth = old * self.bandwidth + (1.0 - old) * self.stage;
            }
            self.delivered = 0;
            self.since = Some(sample.now);
        }
        self.delivered += sample.delivered;
    }
}

impl CongestionControl for Westwood {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        self.measure(sample);
        self.window.on_ack(sample, |window| window.grow(1.0, sample.counted()));
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let kept = match self.min_rtt {
            Some(rtt) if self.bandwidth > 0.0 => self.bandwidth * rtt.as_secs_f64(),
            _ => self.window.in_use(event) / 2.0,
        };
        // A loss makes no window larger.
        self.window.reduce(event, kept.min(self.window.cwnd));
    }

    by_field!(window);
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("bandwidth_bps", self.bandwidth * 8.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Congestion;
    use super::*;
    use crate::testing::{ack, event, transport};

    /// Acknowledges a segment each `gap` milliseconds for `count` segments.
    fn acknowledge(westwood: &mut Westwood, from: u64, gap: u64, count: u64) {
        for number in 0..count {
            westwood.on_ack(&AckSample {
                now: Time::ZERO + Span::from_millis(from + number * gap),
                rtt: Some(Span::from_millis(200)),
                min_rtt: Some(Span::from_millis(100)),
                in_recovery: true, // the window does not matter here
                ..ack(1000)
            });
        }
    }
    fn westwood() -> Westwood {
        Westwood::new(&WestwoodParams::default(), &transport().setup(100_000, 0))
    }

    /// 100 kB/s for 100 ms are 10 segments, however much was in flight.
    #[test]
    fn a_loss_leaves_bandwidth_times_the_least_round_trip_time() {
        for kind in [Congestion::Loss, Congestion::Ecn, Congestion::Timeout { first: true }] {
            let mut westwood = westwood();
            acknowledge(&mut westwood, 0, 10, 200);
            westwood.on_congestion(&event(kind, 50_000));
            assert_eq!(westwood.ssthresh(), 10_000, "{kind:?}");
        }
    }

    /// Two stages of 7/8: n steps after the rate doubled, the remainder of the old rate is
    /// (7/8)^n (1 + n/8).
    #[test]
    fn the_filter_has_two_stages() {
        let mut westwood = westwood();
        acknowledge(&mut westwood, 0, 10, 211);
        assert!((westwood.bandwidth - 100_000.0).abs() < 1.0);
        acknowledge(&mut westwood, 2105, 5, 8 * 41);
        let left = libm::pow(0.875, 8.0) * 2.0;
        let expected = 200_000.0 - left * 100_000.0;
        assert!((westwood.bandwidth / expected - 1.0).abs() < 0.02, "{}", westwood.bandwidth);
    }

    #[test]
    fn without_a_measurement_it_halves() {
        let mut westwood = westwood();
        westwood.on_congestion(&event(Congestion::Loss, 50_000));
        assert_eq!(westwood.window(), 25_000);
    }
}
