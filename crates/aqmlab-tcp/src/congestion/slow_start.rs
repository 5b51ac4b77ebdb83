//! Slow start, and its exits before a loss.
//!
//! # Sources
//! RFC 5681, section 3.1 (standard); RFC 3465, section 2.2 (counting bytes up
//! to L segments); RFC 9406, section 4 (HyStart++); S. Ha and I. Rhee, "Taming
//! the elephants: New TCP slow start", Computer Networks 55 (2011), with the
//! constants and details of Linux's `net/ipv4/tcp_cubic.c` (HyStart).
//!
//! # Differences
//! 1. HyStart: the train of acknowledgements that is too long is compared with
//!    the least round-trip time if the sender paces, as in Linux, but without
//!    what Linux adds for segmentation offload, which does not exist here.
//! 2. While the application, and not the window, holds the sender back, both
//!    go on to look at delays, but the window does not grow (RFC 7661).
//! 3. HyStart counts bytes without a limit, as Linux does; HyStart++ with L
//!    = 8, or without a limit if the transport has `pacing`.

use aqmlab_core::{Span, Time, choices};

use super::control::{AckSample, Setup};

choices! {
    /// Exit of slow start without a loss.
    pub enum SlowStartKind {
        /// At ssthresh.
        Standard = "standard",
        /// At growing delays or trains of acknowledgements (Ha and Rhee 2011).
        Hystart = "hystart",
        /// The same with ns-3's thresholds, which are eight times and twice as high.
        HystartNs3 = "hystart-ns3",
        /// By way of conservative slow start, when delays grow (RFC 9406).
        HystartPp = "hystart++",
    }
}

/// HyStart++'s constants (RFC 9406, section 4.3).
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
const L: u64 = 8;

/// HyStart's: HYSTART_DELAY_MIN, HYSTART_DELAY_MAX, HYSTART_MIN_SAMPLES,
/// hystart_ack_delta and hystart_low_window of Linux.
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);
const MIN_SAMPLES: u32 = 8;
const ACK_DELTA: Span = Span::from_millis(2);
const LOW_WINDOW: u64 = 16;

/// No round-trip time yet.
const UNKNOWN: Span = Span::MAX;

/// What an acknowledgement does in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advance {
    /// By how much the window grows.
    pub growth: u64,
    /// True if slow start ends with it: ssthresh becomes the window.
    pub exit: bool,
}

/// The state of slow start.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    kind: SlowStartKind,
    mss: u64,
    paced: bool,
    /// Bytes that one acknowledgement may add at most.
    limit: u64,
    /// The least round-trip time of the last round, and of this one.
    last_round: Span,
    this_round: Span,
    samples: u32,
    /// HyStart++: in conservative slow start, with this round-trip time at its
    /// beginning and so many rounds behind it.
    conservative: Option<(Span, u32)>,
    /// HyStart: when the round began, and the last acknowledgement of its train.
    round_began: Time,
    train_end: Time,
    /// Whether an exit was found, after which slow start is standard.
    found: bool,
}

impl SlowStart {
    pub fn new(kind: SlowStartKind, setup: &Setup) -> Self {
        let paced = setup.is_paced;
        let limit = match kind {
            SlowStartKind::Standard => setup.mss,
            SlowStartKind::HystartPp if !paced => L * setup.mss,
            _ => u64::MAX,
        };
        SlowStart {
            kind,
            mss: setup.mss,
            paced,
            limit,
            last_round: UNKNOWN,
            this_round: UNKNOWN,
            samples: 0,
            conservative: None,
            round_began: Time::ZERO,
            train_end: Time::ZERO,
            found: false,
        }
    }

    /// Standard slow start counts up to this many bytes (RFC 3465, section 2.2).
    pub fn with_limit(mut self, limit: u64) -> Self {
        if self.kind == SlowStartKind::Standard {
            self.limit = limit;
        }
        self
    }

    /// Congestion ends HyStart++ permanently (RFC 9406, section 4.3: only the first slow start has
    /// it); HyStart restarts after a timeout (Linux).
    /// After a timeout one segment is counted (RFC 3465, section 2.3).
    pub fn on_congestion(&mut self, timeout: bool) {
        match self.kind {
            SlowStartKind::Standard => {
                if timeout {
                    self.limit = self.mss;
                }
            }
            SlowStartKind::Hystart | SlowStartKind::HystartNs3 => self.found = !timeout,
            SlowStartKind::HystartPp => {
                self.found = true;
                self.limit = self.mss;
            }
        }
        self.conservative = None;
    }

    /// An acknowledgement of new data while `cwnd` is below ssthresh.
    pub fn on_ack(&mut self, sample: &AckSample, cwnd: u64) -> Advance {
        // RFC 5681's N, and Linux's `acked`, of which there can be much.
        let growth = match self.kind {
            _ if !sample.window_limited => 0,
            SlowStartKind::Hystart | SlowStartKind::HystartNs3 => sample.counted(),
            SlowStartKind::Standard | SlowStartKind::HystartPp => sample.acked.min(self.limit),
        };
        if self.found {
            return Advance { growth, exit: false };
        }
        match self.kind {
            SlowStartKind::Standard => Advance { growth, exit: false },
            SlowStartKind::Hystart | SlowStartKind::HystartNs3 => {
                Advance { growth, exit: self.hystart(sample, cwnd) }
            }
            SlowStartKind::HystartPp => self.hystart_pp(sample, growth),
        }
    }

    /// RFC 9406, section 4.2.
    fn hystart_pp(&mut self, sample: &AckSample, growth: u64) -> Advance {
        if sample.round_start {
            self.last_round = std::mem::replace(&mut self.this_round, UNKNOWN);
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds == CSS_ROUNDS {
                    // Section 4.3: later slow starts are standard.
                    self.found = true;
                    self.limit = self.mss;
                }
            }
        }
        if let Some(rtt) = sample.rtt {
            self.this_round = self.this_round.min(rtt);
            self.samples += 1;
        }
        let growth = match self.conservative {
            None => {
                if self.delay_has_grown() {
                    self.conservative = Some((self.this_round, 0));
                }
                growth
            }
            Some((baseline, _)) => {
                if self.samples >= N_RTT_SAMPLE && self.this_round < baseline {
                    self.conservative = None; // the exit was spurious
                }
                growth / CSS_GROWTH_DIVISOR
            }
        };
        Advance { growth, exit: self.found }
    }

    fn delay_has_grown(&self) -> bool {
        if self.samples < N_RTT_SAMPLE || self.last_round == UNKNOWN || self.this_round == UNKNOWN {
            return false;
        }
        let share = self.last_round / MIN_RTT_DIVISOR;
        let threshold = share.min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
        self.this_round >= self.last_round + threshold
    }

    /// HyStart's: an eighth of the least round-trip time, in ns-3 all of it.
    fn delay_threshold(&self, least: Span) -> Span {
        match self.kind {
            SlowStartKind::HystartNs3 => least.max(DELAY_MIN),
            _ => (least / 8).max(DELAY_MIN).min(DELAY_MAX),
        }
    }

    /// Ha and Rhee, section 4, as in Linux's `hystart_update`.
    fn hystart(&mut self, sample: &AckSample, cwnd: u64) -> bool {
        if sample.round_start {
            self.round_began = sample.now;
            self.train_end = sample.now;
            self.this_round = UNKNOWN;
            self.samples = 0;
        }
        let (Some(rtt), Some(least)) = (sample.rtt, sample.min_rtt) else {
            return false;
        };
        if cwnd < LOW_WINDOW * self.mss {
            return false;
        }
        if sample.now - self.train_end <= ACK_DELTA {
            self.train_end = sample.now;
            // Half a round-trip time: the one-way delay forward.
            let longest = if self.paced || self.kind == SlowStartKind::HystartNs3 {
                least
            } else {
                least / 2
            };
            self.found = sample.now - self.round_began > longest;
        }
        self.this_round = self.this_round.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else if self.this_round > least + self.delay_threshold(least) {
            self.found = true;
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, transport};

    fn slow_start(kind: SlowStartKind) -> SlowStart {
        SlowStart::new(kind, &transport().setup(10_000, 0))
    }

    /// A round of `count` acknowledgements, one each `gap`, with one
    /// round-trip time; gives the growth of each and the place of an exit.
    fn round(
        slow: &mut SlowStart,
        from: u64,
        count: u64,
        gap_us: u64,
        rtt_ms: u64,
    ) -> (Vec<u64>, Option<u64>) {
        let mut growth = Vec::new();
        for number in 0..count {
            let sample = AckSample {
                now: Time::ZERO + Span::from_millis(from) + Span::from_micros(gap_us * number),
                rtt: Some(Span::from_millis(rtt_ms)),
                min_rtt: Some(Span::from_millis(100)),
                round_start: number == 0,
                ..ack(1000)
            };
            let step = slow.on_ack(&sample, 40_000);
            growth.push(step.growth);
            if step.exit {
                return (growth, Some(number));
            }
        }
        (growth, None)
    }

    #[test]
    fn standard_slow_start_counts_one_segment_an_acknowledgement() {
        let mut slow = slow_start(SlowStartKind::Standard);
        assert_eq!(slow.on_ack(&ack(2000), 0), Advance { growth: 1000, exit: false });
        assert_eq!(slow.on_ack(&ack(300), 0), Advance { growth: 300, exit: false });
        let mut abc = slow.with_limit(2000);
        assert_eq!(abc.on_ack(&ack(2500), 0).growth, 2000);
    }

    #[test]
    fn hystart_pp_counts_up_to_eight_segments_unless_it_paces() {
        assert_eq!(slow_start(SlowStartKind::HystartPp).on_ack(&ack(9000), 0).growth, 8000);
        let paced = crate::TcpParams { pacing: true, ..transport() };
        let mut slow = SlowStart::new(SlowStartKind::HystartPp, &paced.setup(10_000, 0));
        assert_eq!(slow.on_ack(&ack(9000), 0).growth, 9000);
    }

    /// RttThresh is an eighth of the last round's: 12.5 ms, then 14 ms; eight samples are needed; five
    /// rounds follow in which the window grows by a quarter.
    #[test]
    fn hystart_pp_leaves_by_five_conservative_rounds() {
        let mut slow = slow_start(SlowStartKind::HystartPp);
        round(&mut slow, 0, 10, 100, 100);
        round(&mut slow, 100, 20, 100, 112); // less than the threshold
        let (growth, exit) = round(&mut slow, 200, 20, 100, 126);
        assert_eq!(exit, None);
        assert_eq!(growth[..8], [1000; 8]);
        assert_eq!(growth[8..], [250; 12]);
        for number in 1..5 {
            let (growth, exit) = round(&mut slow, 200 + number * 100, 20, 100, 126);
            assert_eq!((growth, exit), (vec![250; 20], None), "round {number}");
        }
        assert_eq!(round(&mut slow, 900, 20, 100, 126), (vec![250], Some(0)));
    }

    /// Section 4.3: HyStart++ is for the first slow start.
    #[test]
    fn after_conservative_rounds_slow_start_is_standard() {
        let mut slow = slow_start(SlowStartKind::HystartPp);
        for rtt in [100, 126, 126, 126, 126, 126, 126] {
            round(&mut slow, 0, 20, 100, rtt);
        }
        assert!(slow.found);
        assert_eq!(slow.on_ack(&ack(9000), 0), Advance { growth: 1000, exit: false });
    }

    /// Rounds and delays are followed while the application holds back.
    #[test]
    fn without_growth_the_delay_is_watched() {
        for kind in [SlowStartKind::HystartPp, SlowStartKind::Hystart] {
            let mut slow = slow_start(kind);
            let sample = |rtt, round_start| AckSample {
                rtt: Some(Span::from_millis(rtt)),
                min_rtt: Some(Span::from_millis(100)),
                round_start,
                window_limited: false,
                ..ack(1000)
            };
            let mut exits = 0;
            for rtt in [100, 126, 126, 126, 126, 126, 126] {
                for number in 0..20 {
                    let step = slow.on_ack(&sample(rtt, number == 0), 40_000);
                    assert_eq!(step.growth, 0);
                    exits += u32::from(step.exit);
                }
            }
            assert_eq!(exits, 1, "{kind:?}");
        }
    }

    #[test]
    fn hystart_pp_goes_on_when_the_delay_was_but_jitter() {
        let mut slow = slow_start(SlowStartKind::HystartPp);
        round(&mut slow, 0, 10, 100, 100);
        round(&mut slow, 100, 10, 100, 100);
        round(&mut slow, 200, 20, 100, 120);
        let (growth, _) = round(&mut slow, 300, 20, 100, 101);
        assert_eq!(growth[..8], [250; 8]);
        assert_eq!(growth[8..], [1000; 12]);
    }

    #[test]
    fn congestion_ends_hystart_pp_for_good() {
        let mut slow = slow_start(SlowStartKind::HystartPp);
        slow.on_congestion(true);
        round(&mut slow, 0, 20, 100, 100);
        assert_eq!(round(&mut slow, 100, 20, 100, 200), (vec![1000; 20], None));
    }

    /// After a timeout: a window's worth of segments that SACK had reported.
    #[test]
    fn hystart_does_not_count_again_what_sack_had_reported() {
        let sample = AckSample { delivered: 3000, ..ack(100_000) };
        assert_eq!(slow_start(SlowStartKind::Hystart).on_ack(&sample, 1000).growth, 3000);
    }

    /// 100 ms and an eighth, which is 12.5 ms, with the ninth sample.
    #[test]
    fn hystart_leaves_when_the_delay_has_grown() {
        let mut slow = slow_start(SlowStartKind::Hystart);
        assert_eq!(round(&mut slow, 0, 40, 100, 112).1, None);
        assert_eq!(round(&mut slow, 100, 40, 100, 113).1, Some(8));
        // Later growth is standard until a timeout.
        assert_eq!(round(&mut slow, 200, 40, 100, 113).1, None);
        slow.on_congestion(true);
        assert_eq!(round(&mut slow, 300, 40, 100, 113).1, Some(8));
    }

    /// Acknowledgements 1 ms apart for more than 50 ms; 3 ms apart are no train.
    #[test]
    fn hystart_leaves_when_the_train_is_long() {
        let mut slow = slow_start(SlowStartKind::Hystart);
        assert_eq!(round(&mut slow, 0, 100, 3000, 100).1, None);
        assert_eq!(round(&mut slow, 1000, 100, 1000, 100).1, Some(51));
    }

    /// A delay of twice the least round-trip time, and a train of all of it.
    #[test]
    fn hystart_of_ns3_waits_longer() {
        let mut slow = slow_start(SlowStartKind::HystartNs3);
        assert_eq!(round(&mut slow, 0, 40, 100, 200).1, None);
        assert_eq!(round(&mut slow, 100, 40, 100, 201).1, Some(8));
        let mut slow = slow_start(SlowStartKind::HystartNs3);
        assert_eq!(round(&mut slow, 0, 110, 1000, 100).1, Some(101));
    }

    #[test]
    fn hystart_does_nothing_below_sixteen_segments() {
        let mut slow = slow_start(SlowStartKind::Hystart);
        let sample = AckSample {
            now: Time::ZERO + Span::from_secs(1),
            rtt: Some(Span::from_secs(1)),
            min_rtt: Some(Span::from_millis(100)),
            ..ack(1000)
        };
        assert!((0..100).all(|_| !slow.on_ack(&sample, 15_999).exit));
        assert!((0..100).any(|_| slow.on_ack(&sample, 16_000).exit));
    }
}
