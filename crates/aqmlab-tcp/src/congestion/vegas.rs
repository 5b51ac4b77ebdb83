//! Vegas: as many segments in the queue as wanted.
//!
//! Once a round-trip time, diff = W (1 - baseRTT / RTT) is the number of
//! segments that wait in queues, W the window at its beginning; the window grows by a segment while there are
//! fewer than alpha, and shrinks by one while there are more than beta.
//!
//! # Sources
//! L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a
//! Global Internet", IEEE JSAC 13 (8), 1995, section III; Linux,
//! `net/ipv4/tcp_vegas.c`, for what the paper leaves open. The paper was at hand
//! only in what others say of it.
//!
//! # Differences
//! 1. The RTT of a round is the least of it, as in Linux, which leaves out what
//!    delayed acknowledgements add; with two samples or fewer the acknowledgement
//!    that ends the round counts as one of Reno's, and nothing else, as there.
//! 2. Slow start doubles the window each round-trip time; the paper doubles it
//!    every other one. It ends when diff is above gamma, as in Linux: the window
//!    becomes what the rate achieved asks for, and one segment more. The rate is that
//!    of the window acknowledged in the round, as in the paper and in Linux 2.6.22
//!    (ns-2's); Linux of today takes the window of now, which slow start has
//!    doubled meanwhile.
//! 3. Losses are found by the sender (Vegas's own retransmission rules are not
//!    there), and answered as Reno does: by halving, where the paper takes a
//!    quarter for losses found early.
//! 4. The base round-trip time is the minimum of the connection; it is not forgotten (Linux
//!    restarts after an idle time).
//! 5. Linux of today compares cwnd (RTT - baseRTT) / baseRTT with the parameters,
//!    which is more by RTT / baseRTT; here it is the paper's diff, as in 2.6.22.

use aqmlab_core::{Component, Error, Result, Span, params};

use super::control::{AckSample, CongestionControl, CongestionEvent, Setup};
use super::slow_start::SlowStartKind;
use super::window::{Window, by_field};

params! {
    /// Parameters of Vegas.
    pub struct VegasParams {
        /// The window grows while fewer segments than this wait.
        alpha: f64 = 2.0, in 0.0 => 1e6, source "Linux; 1 in ns-2; 1 to 3 in Brakmo and Peterson 1995";
        /// The window shrinks while more segments than this wait.
        beta: f64 = 4.0, in 0.0 => 1e6, source "Linux; 3 in ns-2 and in Brakmo and Peterson 1995";
        /// Slow start ends when more segments than this wait.
        gamma: f64 = 1.0, in 0.0 => 1e6, source "Brakmo and Peterson 1995, section III.C; Linux";
    }
}

impl Component for VegasParams {
    const NAME: &'static str = "vegas";
    const SUMMARY: &'static str =
        "keeps a few segments in the queue, by round-trip times (Brakmo and Peterson 1995)";

    fn check(&self) -> Result<()> {
        if self.alpha <= self.beta {
            return Ok(());
        }
        let allowed = format!("at most beta = {}", self.beta);
        Err(Error::not_allowed(self.alpha, allowed).at("alpha"))
    }
}

/// The state of Vegas.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    window: Window,
    params: VegasParams,
    /// The least round-trip time of this round, and how many were measured.
    least: Span,
    samples: u32,
    /// True if this round began outside of recoveries.
    whole_round: bool,
    /// Window at its beginning, in segments.
    began_with: f64,
    diff: f64,
}

impl Vegas {
    pub fn new(params: &VegasParams, setup: &Setup) -> Self {
        Vegas {
            window: Window::new(SlowStartKind::Standard, setup),
            params: params.clone(),
            least: Span::MAX,
            samples: 0,
            whole_round: false,
            began_with: 0.0,
            diff: 0.0,
        }
    }

    /// A round has ended with enough measurements.
    fn adapt(&mut self, base: Span) {
        let window = &mut self.window;
        let target = self.began_with * base.as_secs_f64() / self.least.as_secs_f64();
        self.diff = self.began_with - target;
        if window.in_slow_start() {
            if self.diff > self.params.gamma {
                window.cwnd = window.cwnd.min((target + 1.0) * window.mss);
                window.ssthresh = window.ssthresh.min(window.window().saturating_sub(1));
            }
        } else if self.diff > self.params.beta {
            window.cwnd -= window.mss;
            window.ssthresh = window.ssthresh.min(window.window().saturating_sub(1));
        } else if self.diff < self.params.alpha {
            window.cwnd += window.mss;
        }
        window.cwnd = window.cwnd.max(2.0 * window.mss);
    }
}

impl CongestionControl for Vegas {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let grows = Window::may_grow(sample);
        let few = self.samples <= 2;
        if sample.round_start {
            if let (Some(base), true) = (sample.min_rtt, self.whole_round && grows && !few) {
                self.adapt(base);
            }
            self.least = Span::MAX;
            self.samples = 0;
            self.whole_round = !sample.in_recovery;
            self.began_with = self.window.segments();
        }
        if let Some(rtt) = sample.rtt {
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
        if !grows {
            return;
        }
        if self.window.in_slow_start() {
            self.window.slow_start(sample);
        } else if few && sample.round_start {
            self.window.grow(1.0, sample.counted());
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.window.reduce(event, self.window.in_use(event) / 2.0);
        self.whole_round = false;
    }

    by_field!(window);
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("diff", self.diff);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, round, transport};

    fn in_avoidance(segments: u64) -> Vegas {
        let params = VegasParams::default();
        let mut vegas = Vegas::new(&params, &transport().setup(segments * 1000, 0));
        vegas.window.ssthresh = 0;
        round(&mut vegas, 100.0);
        vegas.window.cwnd = (segments * 1000) as f64;
        vegas.whole_round = false;
        vegas
    }

    /// With 20 segments, 2 and 4 wait at round-trip times of 111.1 and 125 ms.
    #[test]
    fn the_window_moves_by_a_segment_to_have_two_to_four_in_the_queue() {
        for (rtt, expected) in [(110.0, 21_000), (112.0, 20_000), (124.0, 20_000), (126.0, 19_000)]
        {
            let mut vegas = in_avoidance(20);
            round(&mut vegas, rtt);
            assert_eq!(vegas.window(), 20_000, "a round is measured first");
            round(&mut vegas, rtt);
            assert_eq!(vegas.window(), expected, "{rtt}");
            assert_eq!(vegas.ssthresh(), 0, "{rtt}: it is not raised");
        }
    }

    #[test]
    fn slow_start_ends_when_more_than_gamma_wait() {
        let params = VegasParams::default();
        let mut vegas = Vegas::new(&params, &transport().setup(10_000, 0));
        round(&mut vegas, 100.0);
        assert_eq!(vegas.window(), 20_000);
        // 20 segments at 105 ms: 0.95 wait.
        round(&mut vegas, 105.0);
        assert_eq!(vegas.window(), 40_000);
        round(&mut vegas, 105.0);
        assert_eq!(vegas.window(), 80_000);
        // 40 segments at 105 ms: 1.9 wait, 38.1 do not. That the window has doubled since is
        // no reason for more.
        round(&mut vegas, 105.0);
        assert!((39_000..39_200).contains(&vegas.window()), "{}", vegas.window());
        assert!(vegas.window() >= vegas.ssthresh());
    }

    /// One acknowledgement a round says nothing of queues.
    #[test]
    fn with_few_measurements_an_acknowledgement_a_round_is_one_of_renos() {
        let mut vegas = in_avoidance(2);
        // The whole window of 2, then two thirds of one of 3.
        for expected in [3000, 3666] {
            vegas.on_ack(&AckSample {
                rtt: Some(Span::from_secs(1)),
                min_rtt: Some(Span::from_millis(100)),
                round_start: true,
                ..ack(2000)
            });
            assert_eq!(vegas.window(), expected);
        }
    }
}
