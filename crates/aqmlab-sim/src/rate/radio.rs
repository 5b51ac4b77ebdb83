//! Synthetic cellular and wireless links: times and sizes of transmissions.
//!
//! # Model
//! Both draw grants, each a time and a number of bytes, like a recorded trace of delivery
//! opportunities.
//!
//! **LTE.** Every millisecond (a transmission time interval) the scheduler grants the link a block
//! with probability `share`. The block size follows the channel: the exponential of two
//! Ornstein-Uhlenbeck processes, sampled every 10 ms. The slow one models shadowing and the load of
//! the cell; the fast one models fading as seen by the scheduler. Outages (handover, cell edge) are
//! a Poisson process with exponential durations. The size is scaled so that the long-run mean is
//! `mean`.
//!
//! **Wi-Fi.** The station contends for the channel: DIFS, a back-off of a uniform number of slots,
//! and a geometric number of transmissions of other stations. It then sends one aggregate: the
//! bytes that its current rate carries in `txop`, at most `aggregate`. Preamble, SIFS and block
//! acknowledgement add time. With probability `collision` the whole aggregate is lost and the
//! contention window doubles. The rate follows an Ornstein-Uhlenbeck process over the coding
//! schemes of 802.11ac.
//!
//! # Sources
//! - 3GPP TS 36.213, section 7.1: a transport block per subframe of 1 ms.
//! - Winstein, Sivaraman, Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay
//!   over Cellular Networks" (NSDI 2013): rates of cellular links vary by large factors within
//!   seconds, with outages.
//! - IEEE 802.11-2016: 19.4.4 and 21.3 (slot 9 us, SIFS 16 us, DIFS 34 us,
//!   VHT preamble about 40 us), 10.22 (EDCA), 21.5 (VHT-MCS 0 to 9).
//! - The defaults of LTE were fitted manually to mean, variation and autocorrelation of mahimahi's
//!   LTE traces; docs/links.md has the figures.
//!
//! # Differences
//! 1. An aggregate is drawn independently of the backlog: with a short queue a part of it is
//!    unused, whereas a real station would occupy the channel for less time.
//! 2. LTE's blocks have any size. HARQ retransmissions are not modelled, nor other users of the
//!    cell beyond `share` and the slow process.
//! 3. Frames of an aggregate are not lost individually.

use aqmlab_core::{Rate, Span, Stream, Time, params};

use super::MAX_RATE;
use super::random::Swing;

params! {
    /// Synthetic LTE link.
    pub struct LteParams {
        /// Long-run mean rate.
        mean: Rate = Rate::from_bps(6_000_000), in Rate::from_bps(1000) => MAX_RATE,
            source "mahimahi's LTE traces: 1.9 to 16.7 Mbit/s";
        /// Share of the milliseconds in which the link may send.
        share: f64 = 0.3, in 0.001 => 1.0, source "mahimahi's LTE traces: 0.12 to 0.44";
        /// Standard deviation of the logarithm of the slow part.
        slow_deviation: f64 = 0.55, in 0.0 => 3.0, source "fitted, docs/links.md";
        /// Correlation time of the slow part.
        slow_time: Span = Span::from_secs(4), in Span::from_millis(1) => Span::from_secs(100_000),
            source "fitted, docs/links.md";
        /// Standard deviation of the logarithm of the fast part.
        fast_deviation: f64 = 0.25, in 0.0 => 3.0, source "fitted, docs/links.md";
        /// Correlation time of the fast part.
        fast_time: Span = Span::from_millis(300),
            in Span::from_millis(1) => Span::from_secs(100_000),
            source "fitted, docs/links.md";
        /// Mean time from the end of an outage to the start of the next.
        outage_interval: Span = Span::from_secs(8),
            in Span::from_millis(1) => Span::from_secs(10_000_000),
            source "fitted, docs/links.md";
        /// Mean duration of an outage; 0s: no outages.
        outage: Span = Span::from_millis(250), in Span::ZERO => Span::from_secs(1000),
            source "fitted, docs/links.md";
    }
}

params! {
    /// Synthetic Wi-Fi link with aggregation.
    pub struct WifiParams {
        /// Rate of the best coding scheme (256-QAM 5/6).
        phy: Rate = Rate::from_bps(433_300_000), in Rate::from_bps(100_000) => MAX_RATE,
            source "IEEE 802.11-2016, 21.5: VHT, 80 MHz, one stream, short guard interval";
        /// Mean coding scheme, 0 to 9.
        scheme: f64 = 5.0, in 0.0 => 9.0, source "this program";
        /// Standard deviation of the coding scheme.
        scheme_deviation: f64 = 1.5, in 0.0 => 9.0, source "this program";
        /// Correlation time of the coding scheme.
        scheme_time: Span = Span::from_secs(1),
            in Span::from_millis(1) => Span::from_secs(100_000),
            source "this program";
        /// Maximum duration of an aggregate.
        txop: Span = Span::from_millis(4), in Span::from_micros(50) => Span::from_millis(20),
            source "Linux, mac80211: aggregates of at most 4 ms";
        /// Maximum bytes of an aggregate.
        aggregate: u64 = 65_535, in 64 => 1_048_575,
            source "IEEE 802.11-2016, 9.7: an A-MPDU of HT stations";
        /// Mean number of other stations' transmissions between two of this link.
        others: f64 = 1.0, in 0.0 => 1000.0, source "this program";
        /// Maximum duration of another station's transmission; uniform from 0.
        others_txop: Span = Span::from_millis(4), in Span::ZERO => Span::from_millis(20),
            source "this program";
        /// Probability that an aggregate collides.
        collision: f64 = 0.05, in 0.0 => 0.9, source "this program";
    }
}

const MILLI: Span = Span::from_millis(1);

/// State of an LTE link.
#[derive(Clone)]
pub(crate) struct Lte {
    share: f64,
    deviations: [f64; 2],
    outage: f64,
    outage_interval: f64,
    stream: Stream,
    slow: Swing,
    fast: Swing,
    /// Bytes of a block with both processes at their mean.
    block: f64,
    present: f64,
    /// Fractions of bytes left over from rounding.
    left: f64,
    now: Time,
    outage_at: Time,
    outage_until: Time,
    /// End of the run, after which no grant is drawn.
    end: Time,
    pub next: Option<(Time, u64)>,
}

impl Lte {
    const SAMPLE: u64 = 10;

    pub fn new(params: &LteParams, mut stream: Stream, end: Time) -> Self {
        let step = Span::from_millis(Self::SAMPLE);
        let slow = Swing::new(step, params.slow_time, &mut stream);
        let fast = Swing::new(step, params.fast_time, &mut stream);
        let deviations = [params.slow_deviation, params.fast_deviation];
        let variance = deviations.map(|deviation| deviation * deviation).iter().sum::<f64>();
        // Interval and outage alternate: the link is available for this share.
        let interval = params.outage_interval.as_secs_f64();
        let outage = params.outage.as_secs_f64();
        let up = interval / (interval + outage);
        let bytes_per_milli = params.mean.as_bytes_per_sec() * MILLI.as_secs_f64();
        let block = bytes_per_milli / (params.share * up) * libm::exp(-variance / 2.0);
        let first = stream.exponential(interval);
        let mut lte = Lte {
            share: params.share,
            deviations,
            outage,
            outage_interval: interval,
            stream,
            slow,
            fast,
            block,
            present: 0.0,
            left: 0.0,
            now: Time::ZERO,
            outage_at: Time::ZERO + Span::from_secs_f64(first),
            outage_until: Time::ZERO,
            end,
            next: None,
        };
        lte.sample();
        lte.advance();
        lte
    }

    fn sample(&mut self) {
        let [slow, fast] = self.deviations;
        self.present = self.block * libm::exp(slow * self.slow.value + fast * self.fast.value);
        self.slow.advance(&mut self.stream);
        self.fast.advance(&mut self.stream);
    }

    /// Advances to the next grant.
    pub fn advance(&mut self) {
        self.next = None;
        while self.now < self.end {
            self.now += MILLI;
            if (self.now.as_nanos() / MILLI.as_nanos()).is_multiple_of(Self::SAMPLE) {
                self.sample();
            }
            if self.now >= self.outage_at {
                let length = Span::from_secs_f64(self.stream.exponential(self.outage));
                self.outage_until = self.outage_at + length;
                let pause = Span::from_secs_f64(self.stream.exponential(self.outage_interval));
                self.outage_at = self.outage_until + pause.max(MILLI);
            }
            if self.stream.uniform() >= self.share || self.now < self.outage_until {
                continue;
            }
            self.left += self.present;
            let bytes = self.left as u64;
            self.left -= bytes as f64;
            if bytes > 0 {
                self.next = Some((self.now, bytes));
                return;
            }
        }
    }
}

/// Data bits per subcarrier and symbol of VHT-MCS 0 to 9.
const SCHEMES: [f64; 10] = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5, 5.0, 6.0, 20.0 / 3.0];

/// State of a Wi-Fi link.
#[derive(Clone)]
pub(crate) struct Wifi {
    params: WifiParams,
    stream: Stream,
    swing: Swing,
    sampled: Time,
    doublings: u32,
    now: Time,
    /// End of the run, after which no grant is drawn.
    end: Time,
    pub next: Option<(Time, u64)>,
}

impl Wifi {
    const SLOT: Span = Span::from_micros(9);
    const DIFS: Span = Span::from_micros(34);
    /// Preamble before the data, SIFS and block acknowledgement after it.
    const FIXED: Span = Span::from_micros(40 + 16 + 32);
    const LEAST_WINDOW: u64 = 15;
    const MOST_DOUBLINGS: u32 = 6;
    const SAMPLE: Span = Span::from_millis(10);

    pub fn new(params: &WifiParams, mut stream: Stream, end: Time) -> Self {
        let swing = Swing::new(Self::SAMPLE, params.scheme_time, &mut stream);
        let mut wifi = Wifi {
            params: params.clone(),
            stream,
            swing,
            sampled: Time::ZERO,
            doublings: 0,
            now: Time::ZERO,
            end,
            next: None,
        };
        wifi.advance();
        wifi
    }

    /// Returns the rate in bit/s for this value of the process.
    fn rate(params: &WifiParams, swing: f64) -> f64 {
        let scheme = (params.scheme + params.scheme_deviation * swing).round();
        let bits = SCHEMES[(scheme.max(0.0) as usize).min(SCHEMES.len() - 1)];
        params.phy.as_bps() as f64 * bits / SCHEMES[SCHEMES.len() - 1]
    }

    /// Returns the bytes of an aggregate at this rate.
    fn bytes(params: &WifiParams, rate: f64) -> u64 {
        let in_time = rate * params.txop.as_secs_f64() / 8.0;
        (in_time as u64).clamp(1, params.aggregate)
    }

    /// Draws the number of preceding transmissions of other stations: geometric.
    fn others(&mut self) -> u64 {
        let stay = self.params.others / (1.0 + self.params.others);
        match stay > 0.0 {
            true => (libm::log(1.0 - self.stream.uniform()) / libm::log(stay)) as u64,
            false => 0,
        }
    }

    /// Advances to the end of the next successful aggregate.
    pub fn advance(&mut self) {
        self.next = None;
        while self.now < self.end {
            let window = ((Self::LEAST_WINDOW + 1) << self.doublings) - 1;
            let slots = (self.stream.uniform() * (window + 1) as f64) as u64;
            self.now += Self::DIFS + Self::SLOT * slots;
            for _ in 0..self.others() {
                let length = self.stream.uniform_span(Span::ZERO, self.params.others_txop);
                self.now += length + Self::FIXED + Self::DIFS;
            }
            while self.sampled + Self::SAMPLE <= self.now {
                self.sampled += Self::SAMPLE;
                self.swing.advance(&mut self.stream);
            }
            let rate = Self::rate(&self.params, self.swing.value);
            let bytes = Self::bytes(&self.params, rate);
            self.now += Self::FIXED + Span::from_secs_f64(bytes as f64 * 8.0 / rate);
            if self.stream.uniform() >= self.params.collision {
                self.doublings = 0;
                self.next = Some((self.now, bytes));
                return;
            }
            self.doublings = (self.doublings + 1).min(Self::MOST_DOUBLINGS);
        }
    }

    /// Returns the long-run rate: the bytes of an aggregate divided by the time between two,
    /// averaged over the coding schemes with the discretised normal distribution, without the
    /// doubling of the window.
    pub fn mean(params: &WifiParams) -> f64 {
        let slots = Self::SLOT.as_secs_f64() * Self::LEAST_WINDOW as f64 / 2.0;
        let idle = Self::DIFS.as_secs_f64() + slots;
        let each = (params.others_txop / 2 + Self::FIXED + Self::DIFS).as_secs_f64();
        let (mut bits, mut time) = (0.0, 0.0);
        for step in -400..=400 {
            let swing = f64::from(step) / 100.0;
            let rate = Self::rate(params, swing);
            let sent = Self::bytes(params, rate) as f64 * 8.0;
            let cycle = idle + params.others * each + Self::FIXED.as_secs_f64() + sent / rate;
            // Long cycles are less frequent.
            let share = libm::exp(-swing * swing / 2.0) / cycle;
            bits += share * sent * (1.0 - params.collision);
            time += share * cycle;
        }
        bits / time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::testing::{autocorrelation, deviation, mean};

    const SECONDS: usize = 10_000;

    /// Returns the bits in each bin of 100 ms.
    fn bins(mut next: impl FnMut() -> (Time, u64)) -> Vec<f64> {
        let mut bins = vec![0.0; SECONDS * 10];
        loop {
            let (time, bytes) = next();
            match bins.get_mut((time.as_nanos() / 100_000_000) as usize) {
                Some(bin) => *bin += bytes as f64 * 8.0,
                None => return bins,
            }
        }
    }

    #[test]
    fn lte_looks_like_recorded_traces() {
        let params = LteParams::default();
        let mut lte = Lte::new(&params, Stream::for_component(1, 0, "lte"), Time::MAX);
        let mut last = Time::ZERO;
        let (mut gaps, mut grants) = (0u32, 0u32);
        let bins = bins(|| {
            let next = lte.next.unwrap();
            lte.advance();
            gaps += u32::from(next.0 - last > Span::from_millis(100));
            grants += 1;
            last = next.0;
            next
        });
        let rate = mean(&bins) * 10.0;
        assert!((rate / 6e6 - 1.0).abs() < 0.05, "{rate}");
        // mahimahi's four traces named "short" have a variation of 0.59 to 0.71, a correlation of
        // 0.84 to 0.93 over 100 ms, 0.48 to 0.79 over a second, -0.05 to 0.62 over ten; 1.3 to 12.4
        // gaps per minute.
        let variation = deviation(&bins) / mean(&bins);
        assert!((0.59..0.75).contains(&variation), "{variation}");
        for (lag, low, high) in [(1, 0.80, 0.93), (10, 0.48, 0.79), (100, -0.05, 0.3)] {
            let correlation = autocorrelation(&bins, lag);
            assert!((low..high).contains(&correlation), "lag {lag}: {correlation}");
        }
        let gaps_a_minute = f64::from(gaps) * 60.0 / SECONDS as f64;
        assert!((1.3..12.4).contains(&gaps_a_minute), "{gaps_a_minute}");
        let busy = f64::from(grants) / (SECONDS as f64 * 1000.0);
        assert!((busy - 0.29).abs() < 0.02, "{busy}");
    }

    /// An eighth of a byte per millisecond: no grant is drawn beyond the end of the run.
    #[test]
    fn a_link_that_is_granted_nothing_in_the_run_never_is() {
        let params = LteParams {
            mean: Rate::from_bps(1000),
            share: 1.0,
            slow_deviation: 0.0,
            fast_deviation: 0.0,
            outage: Span::ZERO,
            ..LteParams::default()
        };
        let grant = Lte::new(&params, Stream::for_component(1, 0, "lte"), Time::MAX).next;
        assert_eq!(grant, Some((Time::ZERO + Span::from_millis(8), 1)));
        let end = Time::ZERO + Span::from_millis(5);
        let mut lte = Lte::new(&params, Stream::for_component(1, 0, "lte"), end);
        assert_eq!(lte.next, None);
        lte.advance();
        assert_eq!((lte.next, lte.now), (None, end));
    }

    #[test]
    fn wifi_sends_aggregates_at_the_rate_that_the_formula_gives() {
        for others in [0.0, 1.0, 5.0] {
            let params = WifiParams { others, ..WifiParams::default() };
            let stream = Stream::for_component(1, 0, "wifi");
            let mut wifi = Wifi::new(&params, stream, Time::MAX);
            let mut largest = 0;
            let bins = bins(|| {
                let next = wifi.next.unwrap();
                wifi.advance();
                largest = largest.max(next.1);
                next
            });
            let (rate, expected) = (mean(&bins) * 10.0, Wifi::mean(&params));
            assert!((rate / expected - 1.0).abs() < 0.05, "{others}: {rate}, {expected}");
            assert_eq!(largest, 65_535);
        }
    }
}
