//! The delay that a cable modem predicts from its rate shaper, for
//! [`docsis_pie`](crate::disciplines::docsis_pie) and
//! [`codel_dt`](crate::disciplines::codel_dt).
//!
//! # Model
//! A service flow may send at its peak rate while it has tokens, which accumulate at the sustained
//! rate up to the traffic burst, and at the sustained rate after that. The link behind the queue
//! sends the packets; the shaper here delays nothing and only counts the tokens.
//!
//! # Sources
//! RFC 8034, section 3 (the two rates and the burst) and appendix A.2 (the
//! predicted delay).

use alloc::{format, vec, vec::Vec};

use aqmlab_core::{Bytes, Rate, Time, math};

use crate::discipline::{LinkEnv, Note};

/// The state of the token bucket of a service flow.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    /// In bytes per second.
    sustained: f64,
    peak: f64,
    burst: f64,
    tokens: f64,
    last: Time,
    measured: Busy,
}

/// What the link really sent while there was a queue.
#[derive(Clone, Debug, Default)]
struct Busy {
    bytes: u64,
    seconds: f64,
    /// A packet that left a queue behind: when, and its size.
    previous: Option<(Time, u32)>,
}

impl TokenBucket {
    /// Rates that are not given are the link's.
    pub fn new(sustained: Option<Rate>, peak: Option<Rate>, burst: Bytes, env: &LinkEnv) -> Self {
        let sustained = sustained.unwrap_or(env.rate).as_bytes_per_sec();
        let peak = peak.map_or(sustained, Rate::as_bytes_per_sec);
        let burst = burst.get() as f64;
        let measured = Busy::default();
        TokenBucket { sustained, peak, burst, tokens: burst, last: Time::ZERO, measured }
    }

    /// Takes the rates and the burst of another; tokens beyond the burst are lost.
    pub fn change(&mut self, new: &TokenBucket) {
        (self.sustained, self.peak, self.burst) = (new.sustained, new.peak, new.burst);
        self.tokens = self.tokens.min(new.burst);
    }

    /// The sustained rate in bytes per second.
    pub fn sustained(&self) -> f64 {
        self.sustained
    }

    fn refill(&mut self, now: Time) {
        let earned = self.sustained * (now - self.last).as_secs_f64();
        self.tokens = (self.tokens + earned).min(self.burst);
        self.last = now;
    }

    /// A packet leaves and `backlog` bytes stay.
    #[inline]
    pub fn departed(&mut self, now: Time, size: u32, backlog: u64) {
        self.refill(now);
        self.tokens = (self.tokens - f64::from(size)).max(0.0);
        if let Some((since, bytes)) = self.measured.previous {
            self.measured.seconds += (now - since).as_secs_f64();
            self.measured.bytes += u64::from(bytes);
        }
        self.measured.previous = (backlog > 0).then_some((now, size));
    }

    /// Predicts the time to send `queue` bytes, in seconds (appendix A.2).
    #[inline]
    pub fn expected_delay(&mut self, now: Time, queue: u64) -> f64 {
        self.refill(now);
        let queue = queue as f64;
        if queue <= self.tokens {
            queue / self.peak
        } else {
            (queue - self.tokens) / self.sustained + self.tokens / self.peak
        }
    }

    /// What a reader has to know of a shaper that is not the link's.
    pub fn notes(&self) -> Vec<Note> {
        let Busy { bytes, seconds, .. } = self.measured;
        if seconds < 1.0 {
            return Vec::new();
        }
        let real = bytes as f64 / seconds;
        if real >= 0.8 * self.sustained && real <= 1.25 * self.peak {
            return Vec::new();
        }
        let rate = |bytes: f64| Rate::from_bps(math::round(bytes * 8.0) as u64);
        vec![Note {
            id: "docsis-rate-mismatch",
            text: format!(
                "The delay was predicted for a sustained rate of {} and a peak rate of {}, but \
                 while there was a queue the link sent at another rate, so the predictions were \
                 wrong. Set `sustained_rate` and `peak_rate` to what the link does, or measure \
                 the rate.",
                rate(self.sustained),
                rate(self.peak),
            ),
        }]
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Span;

    use super::*;
    use crate::testing::env;

    fn shaper() -> TokenBucket {
        // 1 MB/s sustained, 4 MB/s peak, 10 kB of burst.
        let (sustained, peak) = (Rate::from_bps(8_000_000), Rate::from_bps(32_000_000));
        TokenBucket::new(Some(sustained), Some(peak), Bytes::new(10_000), &env())
    }

    #[test]
    fn tokens_go_at_the_peak_rate_and_the_rest_at_the_sustained() {
        let mut shaper = shaper();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(shaper.expected_delay(Time::ZERO, 8_000), 0.002);
        close(shaper.expected_delay(Time::ZERO, 10_000), 0.0025);
        close(shaper.expected_delay(Time::ZERO, 15_000), 0.005 + 0.0025);
        for _ in 0..4 {
            shaper.departed(Time::ZERO, 1500, 15_000);
        }
        // 4000 tokens are left; after 3 ms there are 7000.
        close(shaper.expected_delay(Time::ZERO, 15_000), 0.011 + 0.001);
        let later = Time::ZERO + Span::from_millis(3);
        close(shaper.expected_delay(later, 15_000), 0.008 + 0.001_75);
        let much_later = Time::ZERO + Span::from_secs(1);
        close(shaper.expected_delay(much_later, 10_000), 0.0025);
    }

    #[test]
    fn a_link_of_another_rate_is_noted() {
        // A packet of 1500 bytes every 1.5 ms is the sustained rate.
        for (gap, notes) in [(1500, 0), (400, 0), (3000, 1), (250, 1)] {
            let mut shaper = shaper();
            for i in 0..8000 {
                let now = Time::ZERO + Span::from_micros(gap) * i;
                shaper.departed(now, 1500, 3000);
            }
            assert_eq!(shaper.notes().len(), notes, "{gap} us");
        }
        // A queue that is empty after each packet measures nothing.
        let mut shaper = shaper();
        for i in 0..8000 {
            shaper.departed(Time::ZERO + Span::from_millis(3) * i, 1500, 0);
        }
        assert!(shaper.notes().is_empty());
    }
}
