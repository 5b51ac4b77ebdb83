//! Whether the queue that marks is a classic one.

use aqmlab_core::Span;

/// Score of a classic queue (`tcp_prague.c`, prague_classic_ecn_detection): it grows while delays
/// vary by more than 0.75 ms or are 2 ms above their minimum, and shrinks otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassicQueue {
    /// Seconds; none before the first sample.
    pub mean: Option<f64>,
    pub deviation: f64,
    pub score: f64,
}

/// From here on marks may be classic ones; one more, and they are.
const L4S_SCORE: f64 = 8.0;
const MOST_SCORE: f64 = 17.0;
const VARIATION: f64 = 0.75e-3;
const DEPTH: f64 = 2e-3;

impl ClassicQueue {
    /// A round-trip time, with a window of so many segments: averages are over
    /// many round trips.
    pub fn sample(&mut self, rtt: Span, segments: f64) {
        let rtt = rtt.as_secs_f64();
        let mean = self.mean.get_or_insert(rtt);
        let gain = 0.5 / libm::pow(segments.max(1.0), 1.5);
        let off = rtt - *mean;
        *mean += gain * off;
        self.deviation += gain / 2.0 * (off.abs() - self.deviation);
    }
    /// Once a round trip.
    pub fn judge(&mut self, min_rtt: Option<Span>) {
        let (Some(mean), Some(least)) = (self.mean, min_rtt) else { return };
        let depth = mean - least.as_secs_f64();
        let variation = 0.5 * libm::log2(self.deviation.max(1e-9) / VARIATION);
        let standing = 0.5 * libm::log2((depth / DEPTH).max(1.0));
        self.score = (self.score + variation + standing).clamp(0.0, MOST_SCORE);
    }
    /// The share of marks below which no reduction goes.
    pub fn least_alpha(&self) -> f64 {
        0.625 * (self.score - L4S_SCORE).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays from 9 to 15 ms above the least, 3 ms off their mean on average:
    /// half of lg(12 / 2) and of lg(3 / 0.75) a round trip.
    #[test]
    fn a_queue_that_stands_and_varies_is_taken_for_a_classic_one() {
        let mut queue = ClassicQueue::default();
        for count in 0..20_000 {
            queue.sample(Span::from_millis(if count % 2 == 0 { 29 } else { 35 }), 20.0);
        }
        let least = Some(Span::from_millis(20));
        queue.judge(least);
        let step = 0.5 * (libm::log2(6.0) + libm::log2(4.0));
        assert!((queue.score / step - 1.0).abs() < 0.01, "{}", queue.score);
        for _ in 0..3 {
            assert_eq!(queue.least_alpha(), 0.0);
            queue.judge(least);
        }
        queue.judge(least);
        assert_eq!(queue.least_alpha(), 0.625);
        for _ in 0..20_000 {
            queue.sample(Span::from_millis(20), 20.0);
        }
        for _ in 0..20 {
            queue.judge(least);
        }
        assert_eq!(queue.score, 0.0, "a steady one is not");
    }
}
