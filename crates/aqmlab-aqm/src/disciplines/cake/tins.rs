//! Tins: which class of service a packet belongs to, and what share of the
//! link the class has.
//!
//! # Sources
//! tc-cake(8), priority queue parameters; Linux's sch_cake for the codepoints,
//! the rates, the weights without a shaper and the parameters at low rates;
//! RFC 4594 and RFC 8622 for the names of the codepoints.

use alloc::{vec, vec::Vec};

use aqmlab_core::{Bytes, Rate, Span, choices};

use super::shaper::{Pace, bytes_per_second};

choices! {
    /// Mapping of DSCPs to tins.
    pub enum Diffserv {
        /// Not at all: one tin.
        Besteffort = "besteffort",
        /// Eight tins by the upper three bits, the old IP precedence.
        Precedence = "precedence",
        /// Bulk, best effort, voice.
        Diffserv3 = "diffserv3",
        /// Bulk, best effort, video, voice.
        Diffserv4 = "diffserv4",
        /// Eight tins, from lower effort to network control.
        Diffserv8 = "diffserv8",
    }
}

/// Lower effort (RFC 8622).
const LE: u8 = 1;
/// The old type of service: throughput, and delay.
const TOS2: u8 = 2;
const TOS4: u8 = 4;
/// Class selectors (RFC 2474).
const CS: [u8; 8] = [0, 8, 16, 24, 32, 40, 48, 56];
/// Assured forwarding (RFC 2597): classes 1 to 4.
const AF1: [u8; 3] = [10, 12, 14];
const AF2: [u8; 3] = [18, 20, 22];
const AF3: [u8; 3] = [26, 28, 30];
const AF4: [u8; 3] = [34, 36, 38];
/// Voice admit (RFC 5865) and expedited forwarding (RFC 3246).
const VA: u8 = 44;
const EF: u8 = 46;

/// A tin's share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share {
    /// The rate up to which it goes before the tins below it.
    pub rate: Option<Rate>,
    /// Weight without a shaper.
    pub weight: i64,
}

impl Diffserv {
    /// The tin of each codepoint.
    pub(super) fn map(self) -> [u8; 64] {
        let mut map = [0; 64];
        let mut put = |tin: u8, points: &[&[u8]]| {
            points.iter().copied().flatten().for_each(|point| map[*point as usize] = tin);
        };
        match self {
            Diffserv::Besteffort => (),
            Diffserv::Precedence => {
                return core::array::from_fn(|point| (point >> 3) as u8);
            }
            Diffserv::Diffserv3 => {
                put(1, &[&[LE, CS[1]]]);
                put(2, &[&[TOS4, VA, EF, CS[6], CS[7]]]);
            }
            Diffserv::Diffserv4 => {
                put(1, &[&[LE, CS[1]]]);
                put(2, &[&[TOS4, CS[2], CS[3]], &AF2, &AF3, &AF4]);
                put(3, &[&[CS[4], CS[5], CS[6], CS[7], VA, EF]]);
            }
            Diffserv::Diffserv8 => {
                let all: [u8; 64] = core::array::from_fn(|point| point as u8);
                put(2, &[&all]);
                put(0, &[&[LE]]);
                put(1, &[&[TOS2, CS[1]], &AF1]);
                put(3, &[&[CS[3]], &AF3, &AF4]);
                put(4, &[&[TOS4], &AF2]);
                put(5, &[&[CS[2]]]);
                put(6, &[&[CS[4], CS[5], VA, EF]]);
                put(7, &[&[CS[6], CS[7]]]);
            }
        }
        map
    }

    /// The tins' shares. The first has all: what the others leave is its own.
    pub(super) fn shares(self, rate: Option<Rate>) -> Vec<Share> {
        // Shifts, on whole bytes per second, as in Linux, where none (cake_set_rate) is no limit:
        // an estimated bandwidth can be that low.
        let part = |rate: Option<Rate>, times: u64, shift: u32| {
            let bytes = rate.map_or(0, |rate| (bytes_per_second(rate) * times) >> shift);
            (bytes > 0).then(|| Rate::from_bps(bytes * 8))
        };
        let shifted = |shift: u32| Share { rate: part(rate, 1, shift), weight: 1024 >> shift };
        match self {
            Diffserv::Besteffort => vec![Share { rate, weight: 65_535 }],
            Diffserv::Diffserv3 => [0, 4, 2].map(shifted).to_vec(),
            Diffserv::Diffserv4 => [0, 4, 1, 2].map(shifted).to_vec(),
            Diffserv::Precedence | Diffserv::Diffserv8 => {
                let mut share = Share { rate, weight: 256 };
                let mut shares = Vec::new();
                for _ in 0..8 {
                    shares.push(share);
                    share = Share { rate: part(share.rate, 7, 3), weight: (share.weight * 7) >> 3 };
                }
                shares
            }
        }
    }
}

/// What a tin's rate makes of the parameters: at low rates a target of less
/// than one and a half packets could not be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TinTuning {
    pub target: Span,
    pub interval: Span,
    /// The time of the largest packet.
    pub mtu_time: Span,
    pub quantum: u64,
}

impl TinTuning {
    pub fn new(rate: Option<Rate>, target: Span, interval: Span, mtu: Bytes) -> Self {
        let mtu_time = Pace::new(rate).time_of(mtu.get());
        let least = Span::from_nanos(mtu_time.as_nanos() * 3 / 2);
        let tuned = least.max(target);
        TinTuning {
            target: tuned,
            interval: (interval + tuned).saturating_sub(target).max(tuned * 2),
            mtu_time,
            quantum: rate.map_or(1514, |rate| (bytes_per_second(rate) >> 12).clamp(300, 1514)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tins(diffserv: Diffserv, points: &[u8]) -> Vec<u8> {
        points.iter().map(|point| diffserv.map()[*point as usize]).collect()
    }

    #[test]
    fn codepoints_have_the_tins_of_the_manual() {
        // DF, LE, CS1, AF11, CS2, AF21, CS3, AF31, CS4, AF41, CS5, VA, EF, CS6, CS7.
        let points = [0, 1, 8, 10, 16, 18, 24, 26, 32, 34, 40, 44, 46, 48, 56];
        assert_eq!(tins(Diffserv::Besteffort, &points), [0; 15]);
        let three = [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2];
        assert_eq!(tins(Diffserv::Diffserv3, &points), three);
        let four = [0, 1, 1, 0, 2, 2, 2, 2, 3, 2, 3, 3, 3, 3, 3];
        assert_eq!(tins(Diffserv::Diffserv4, &points), four);
        let eight = [2, 0, 1, 1, 5, 4, 3, 3, 6, 3, 6, 6, 6, 7, 7];
        assert_eq!(tins(Diffserv::Diffserv8, &points), eight);
        let precedence = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 7];
        assert_eq!(tins(Diffserv::Precedence, &points), precedence);
        // Unknown codepoints are best effort.
        assert_eq!(tins(Diffserv::Diffserv8, &[3, 63]), [2, 2]);
        assert_eq!(tins(Diffserv::Diffserv4, &[3, 63]), [0, 0]);
    }

    #[test]
    fn shares_are_those_of_the_manual() {
        let rates = |diffserv: Diffserv| -> Vec<u64> {
            let shares = diffserv.shares(Some(Rate::from_bps(64_000_000)));
            shares.iter().map(|share| share.rate.unwrap().as_bps()).collect()
        };
        // 100 %, 6.25 %, 25 %; with video 50 %.
        assert_eq!(rates(Diffserv::Diffserv3), [64_000_000, 4_000_000, 16_000_000]);
        assert_eq!(rates(Diffserv::Diffserv4), [64_000_000, 4_000_000, 32_000_000, 16_000_000]);
        let eight = rates(Diffserv::Diffserv8);
        assert_eq!(eight[..3], [64_000_000, 56_000_000, 49_000_000]);
        // 7/8 to the seventh, 39.27 %.
        assert!((eight[7] as f64 / 64e6 - 0.392_695).abs() < 1e-6);
        // 5 bytes/s.
        let slow = Diffserv::Diffserv3.shares(Some(Rate::from_bps(40)));
        assert_eq!(
            [0, 1, 2].map(|tin| slow[tin].rate.map(Rate::as_bps)),
            [Some(40), None, Some(8)]
        );
        let weights: Vec<i64> =
            Diffserv::Precedence.shares(None).iter().map(|share| share.weight).collect();
        assert_eq!(weights, [256, 224, 196, 171, 149, 130, 113, 98]);
    }

    #[test]
    fn an_interval_is_at_least_two_targets_at_any_rate() {
        let (target, interval) = (Span::from_millis(20), Span::from_millis(30));
        for rate in [None, Some(Rate::from_bps(1_000_000_000))] {
            let tuning = TinTuning::new(rate, target, interval, Bytes::new(1514));
            assert_eq!((tuning.target, tuning.interval), (target, Span::from_millis(40)));
        }
    }

    #[test]
    fn low_rates_have_longer_targets() {
        let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
        let tuning =
            |bits| TinTuning::new(Some(Rate::from_bps(bits)), target, interval, Bytes::new(1514));
        // 1514 bytes at 1 Mbit/s take 12.112 ms; half as much again is the target.
        let slow = tuning(1_000_000);
        assert_eq!(slow.mtu_time, Span::from_nanos(12_112_000));
        assert_eq!(slow.target, Span::from_nanos(18_168_000));
        assert_eq!(slow.interval, Span::from_nanos(113_168_000));
        assert_eq!(slow.quantum, 300);
        // At 64 kbit/s two targets are more than the interval and the difference.
        let slower = tuning(64_000);
        assert_eq!(slower.interval, slower.target * 2);
        // 20 Mbit/s: 2.5 MB/s over 4096.
        let usual = tuning(20_000_000);
        assert_eq!((usual.target, usual.interval, usual.quantum), (target, interval, 610));
        assert_eq!(tuning(1_000_000_000).quantum, 1514);
    }
}
