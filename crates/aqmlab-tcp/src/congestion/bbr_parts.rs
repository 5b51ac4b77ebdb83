//! What the versions of BBR have in common.
//!
//! Rates are of payload, as delivery rates are; a pacing rate is of bits on the
//! wire.

use aqmlab_core::{Rate, Span};

use super::control::{AckSample, RateSample, Setup};

/// The largest value of the last `N` periods of a virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter<const N: usize> {
    /// The largest of each period, at the period's number modulo N.
    slots: [f64; N],
    period: u64,
}

impl<const N: usize> MaxFilter<N> {
    pub fn new() -> Self {
        MaxFilter { slots: [0.0; N], period: 0 }
    }
    /// A value in this period, which is no earlier than the last.
    pub fn update(&mut self, period: u64, value: f64) {
        let passed = (period - self.period).min(N as u64);
        for back in 0..passed {
            self.slots[((period - back) % N as u64) as usize] = 0.0;
        }
        self.period = period;
        let slot = &mut self.slots[(period % N as u64) as usize];
        *slot = slot.max(value);
    }
    pub fn max(&self) -> f64 {
        self.slots.iter().fold(0.0, |most, &value| most.max(value))
    }
}

/// Round trips by deliveries: a round ends when data sent after its beginning are delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    next_delivered: u64,
    pub count: u64,
    /// Whether the acknowledgement at hand began one.
    pub started: bool,
}

impl Rounds {
    pub fn update(&mut self, sample: &AckSample) {
        self.started = sample.rate.is_some_and(|rate| rate.prior_delivered >= self.next_delivered);
        if self.started {
            self.start(sample.total_delivered);
            self.count += 1;
        }
    }
    /// One begins now, without counting.
    pub fn start(&mut self, total_delivered: u64) {
        self.next_delivered = total_delivered;
    }
}

/// Samples of data sent while ProbeRTT limited the sender: they count as application-limited
/// (MarkConnectionAppLimited).
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldBack {
    from: u64,
    until: u64,
}

impl HeldBack {
    pub fn new() -> Self {
        HeldBack { from: u64::MAX, until: 0 }
    }
    /// Until more is delivered than this and the data in flight.
    pub fn mark(&mut self, total_delivered: u64, in_flight: u64) {
        if self.from == u64::MAX || total_delivered > self.until {
            self.from = total_delivered;
        }
        self.until = total_delivered + in_flight;
    }
    pub fn covers(&self, rate: &RateSample) -> bool {
        rate.app_limited || (self.from..=self.until).contains(&rate.prior_delivered)
    }
}

/// Round trips without a quarter more that fill the pipe.
const FULL_BW_ROUNDS: u32 = 3;
const FULL_BW_GROWTH: f64 = 1.25;

/// Search for the full pipe (BBR.full_bw and what belongs to it).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    pub bw: f64,
    pub count: u32,
    /// True if the last round trips show it, and if any did.
    pub now: bool,
    pub reached: bool,
}

impl FullPipe {
    /// A round trip with this rate is over.
    pub fn take(&mut self, bw: f64) {
        if bw >= self.bw * FULL_BW_GROWTH {
            (self.bw, self.count) = (bw, 0);
            return;
        }
        self.count += 1;
        self.now = self.count >= FULL_BW_ROUNDS;
        self.reached |= self.now;
    }
    /// Restarts the search.
    pub fn restart(&mut self, bw: f64) {
        *self = FullPipe { bw, reached: self.reached, ..FullPipe::default() };
    }
}

/// The first pacing rate, in bytes a second: so many initial windows in a
/// round-trip time; none before there is one.
pub(super) fn first_pacing_rate(window: u64, gain: f64, srtt: Option<Span>) -> Option<f64> {
    let srtt = srtt.filter(|srtt| *srtt > Span::ZERO)?;
    Some(gain * window as f64 / srtt.as_secs_f64())
}

/// Conversion from payload to bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    bits_per_byte: f64,
}

impl Wire {
    pub fn new(setup: &Setup) -> Self {
        let header = setup.header as f64;
        Wire { bits_per_byte: 8.0 * (setup.mss as f64 + header) / setup.mss as f64 }
    }
    /// Bits on the wire in a second, for bytes of payload in a second.
    pub fn bits(&self, bytes_per_sec: f64) -> f64 {
        bytes_per_sec * self.bits_per_byte
    }
    pub fn rate(&self, bytes_per_sec: f64) -> Rate {
        Rate::from_bps(self.bits(bytes_per_sec) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_what_was_sent_after_it_began() {
        let mut rounds = Rounds::default();
        let sample = |prior_delivered, total_delivered| AckSample {
            rate: Some(RateSample { prior_delivered, ..RateSample::default() }),
            total_delivered,
            ..AckSample::default()
        };
        for (prior, total, count) in [
            (0, 1000, 1),
            (0, 2000, 1),
            (999, 3000, 1),
            (1000, 4000, 2),
            (3000, 5000, 2),
            (4000, 6000, 3),
        ] {
            rounds.update(&sample(prior, total));
            assert_eq!(rounds.count, count, "{prior} {total}");
        }
    }

    #[test]
    fn what_was_sent_while_held_back_is_covered_and_nothing_else() {
        let mut held = HeldBack::new();
        let sent_at = |prior_delivered| RateSample { prior_delivered, ..RateSample::default() };
        assert!(!held.covers(&sent_at(0)));
        held.mark(10_000, 4000);
        held.mark(12_000, 4000);
        let covered = [9999, 10_000, 16_000, 16_001].map(|prior| held.covers(&sent_at(prior)));
        assert_eq!(covered, [false, true, true, false]);
        held.mark(50_000, 1000);
        assert!(!held.covers(&sent_at(16_000)) && held.covers(&sent_at(50_500)));
    }
}
