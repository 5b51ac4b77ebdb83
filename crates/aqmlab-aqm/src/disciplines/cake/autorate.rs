//! `autorate-ingress`: the bandwidth from what arrives.
//!
//! # Model
//! For a shaper behind the bottleneck. A window ends with a packet that comes
//! later than packets usually do, so that bursts do not count for more than
//! they are; the rate of its bytes moves the estimate, up faster than down, and
//! the shaper is set to 15/16 of that.
//!
//! # Sources
//! tc-cake(8); Linux's sch_cake. (It means to wait 250 ms between two
//! changes, but never notes when it made one, and so makes them at once.)

use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Rate, Time};

use super::shaper::bytes_per_second;

/// The estimate and its components.
#[derive(Clone, Debug)]
pub(super) struct Autorate {
    /// Nanoseconds between two packets, on average.
    usual_gap: u64,
    /// `None`: the start of the kernel's clock, 1000 s before the data's, as in the recordings.
    window_begin: Option<Time>,
    window_bytes: u64,
    /// Bytes per second.
    peak: u64,
}

/// Gaps and rates that go up count for more than those that go down.
fn average(old: u64, sample: u64) -> u64 {
    let shift = if sample > old { 2 } else { 8 };
    old - (old >> shift) + (sample >> shift)
}

impl Autorate {
    /// From this rate on. As in Linux, whose clocks are 0 until they are set, the first window begins
    /// with the kernel, and so shows nearly no rate.
    pub fn new(start: Option<Rate>) -> Self {
        Autorate {
            usual_gap: 0,
            window_begin: None,
            window_bytes: 0,
            peak: start.map_or(0, bytes_per_second),
        }
    }

    /// A packet came while the estimate was not used.
    #[inline]
    pub fn ignored(&mut self) {
        self.window_bytes = 0;
    }

    /// A packet came after the one at `last`, if there was one, and the queue has so many bytes more.
    /// Gives the rate to set the shaper to, if there is a new one; no rate is unlimited.
    pub fn arrived(&mut self, bytes: i64, last: Option<Time>, now: Time) -> Option<Option<Rate>> {
        self.window_bytes = self.window_bytes.wrapping_add_signed(bytes);
        let gap = last.map_or(NANOS_PER_SEC, |last| (now - last).as_nanos());
        let gap = gap.min(NANOS_PER_SEC);
        self.usual_gap = average(self.usual_gap, gap);
        if gap <= self.usual_gap {
            return None;
        }
        let lasted = match self.window_begin {
            Some(begin) => (now - begin).as_nanos(),
            None => 1000 * NANOS_PER_SEC + (now - Time::ZERO).as_nanos(),
        };
        let rate = self.window_bytes.wrapping_mul(NANOS_PER_SEC) / lasted;
        self.peak = average(self.peak, rate);
        self.window_bytes = 0;
        self.window_begin = Some(now);
        let bytes_per_second = self.peak.wrapping_mul(15) >> 4;
        Some((bytes_per_second > 0).then(|| Rate::from_bps(bytes_per_second * 8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last rate set, in bit/s, by packets of 1000 bytes at these times.
    fn rate(micros: impl IntoIterator<Item = u64>) -> f64 {
        let mut autorate = Autorate::new(None);
        let (mut rate, mut last) = (None, None);
        for at in micros {
            let now = Time::from_nanos(1000 * at);
            let set = autorate.arrived(1000, last.replace(now), now);
            rate = set.flatten().or(rate);
        }
        rate.unwrap().as_bps() as f64
    }

    #[test]
    fn a_steady_arrival_gives_15_16_of_its_rate() {
        // 8 Mbit/s. Without any jitter no gap is longer than usual, and no window ends.
        assert!((rate((1..8000).map(|i| 1000 * i + i % 2 * 100)) / 7.5e6 - 1.0).abs() < 1e-4);
    }

    #[test]
    fn bursts_count_for_what_they_are_on_average() {
        // Ten packets in 100 us, every 10 ms: 8 Mbit/s too.
        let bursts = (1..4000).flat_map(|i| (0..10).map(move |k| 10_000 * i + 10 * k));
        assert!((rate(bursts) / 7.5e6 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_first_window_shows_nearly_no_rate() {
        let mut autorate = Autorate::new(Some(Rate::from_bps(100_000_000)));
        let rate = autorate.arrived(1000, None, Time::ZERO).unwrap().unwrap();
        // 255/256, then 15/16.
        assert!((rate.as_bps() as f64 / 93.39e6 - 1.0).abs() < 1e-4, "{rate}");
        // Gaps of a burst are short beside 250 ms, the first average.
        let next = Time::from_nanos(10_000_000);
        assert_eq!(autorate.arrived(1000, Some(Time::ZERO), next), None);
    }

    /// Linux, cake_enqueue: an acknowledgement that is filtered out can be larger than the packet that
    /// replaces it, and 64 bits wrap.
    #[test]
    fn a_byte_less_than_nothing_is_a_high_rate() {
        let rate = Autorate::new(None).arrived(-1, None, Time::ZERO).unwrap().unwrap();
        // (2^64 - 10^9) / 10^12 bytes/s, a quarter of it, 15/16.
        assert_eq!(rate.as_bps(), 4_323_455 * 8);
    }

    #[test]
    fn a_lull_or_a_burst_of_20_packets_moves_the_estimate_little() {
        let fast = |from: u64, count: u64| (1..=count).map(move |i| from + 1000 * i + i % 2 * 100);
        let slow = |from: u64, count: u64| (1..=count).map(move |i| from + 2000 * i + i % 2 * 100);
        let up = rate(slow(0, 8000).chain(fast(16_000_000, 20)));
        let down = rate(fast(0, 4000).chain(slow(4_000_000, 20)));
        assert!(down > 6.8e6, "{down}");
        // Packets that come sooner than usual end no window.
        assert!((up / 3.75e6 - 1.0).abs() < 1e-4, "{up}");
    }
}
