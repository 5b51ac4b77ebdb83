//! Random streams: one for every component, keyed by what the component is
//! called and not by when it was made.
//!
//! # Model
//!
//! The generator is SplitMix64 as published by Steele, Lea and Flood, "Fast
//! Splittable Pseudorandom Number Generators" (OOPSLA 2014): a 64-bit counter
//! that advances by an odd `gamma`, hashed to give the output. Each stream
//! has its own state *and* its own gamma, so two streams are not shifted
//! copies of one sequence. The conformance vectors draw from the same
//! generator with the golden gamma: [`Stream::from_state`] replays them.
//!
//! The key is hashed from (seed, replication, component path). Adding a flow
//! leaves every other stream unchanged, so two disciplines are compared under
//! the same arrivals (common random numbers).
//!
//! The mapping to distributions is part of the promise and is fixed by the
//! test vectors below: results are the same bits on every machine.

use crate::math;
use crate::time::Span;

/// 2^64 divided by the golden ratio, made odd: the increment of the original.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers that belongs to one component.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stream {
    state: u64,
    gamma: u64,
}

impl Stream {
    /// The stream of a component, by its name (`links.bottleneck.queue`)
    /// in the given replication of a run with the given seed.
    pub fn for_component(seed: u64, replication: u64, component: &str) -> Self {
        let mut key = mix64(seed.wrapping_add(GOLDEN_GAMMA));
        key = absorb(key, replication);
        key = absorb(key, component.len() as u64);
        for chunk in component.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            key = absorb(key, u64::from_le_bytes(word));
        }
        let state = mix64(key.wrapping_add(GOLDEN_GAMMA));
        let gamma = mix_gamma(key.wrapping_add(GOLDEN_GAMMA.wrapping_mul(2)));
        Stream { state, gamma }
    }

    /// The plain SplitMix64 sequence that starts at `state`: what the
    /// conformance vectors drew from.
    pub fn from_state(state: u64) -> Self {
        Stream { state, gamma: GOLDEN_GAMMA }
    }

    /// A number uniform over all 64-bit values.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(self.gamma);
        mix64(self.state)
    }

    /// A number uniform over all 32-bit values: the high half of a 64-bit one.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [0, 1), a multiple of 2^-32: one 32-bit draw, as kernels do.
    #[inline]
    pub fn uniform32(&mut self) -> f64 {
        f64::from(self.next_u32()) * (1.0 / (1u64 << 32) as f64)
    }

    /// Uniform over the whole nanoseconds of `[low, high]`.
    pub fn uniform_span(&mut self, low: Span, high: Span) -> Span {
        let width = high.saturating_sub(low).as_nanos() as u128 + 1;
        // Multiply-shift (Lemire 2019); the bias is below 2^-30 for any span
        // under an hour, and there is no rejection loop to make the number of
        // draws depend on the values.
        let offset = (u128::from(self.next_u64()) * width) >> 64;
        low + Span::from_nanos(offset as u64)
    }

    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u lies in (0, 1]: the logarithm is finite.
        -libm::log(1.0 - self.uniform()) * mean
    }

    /// Normally distributed with mean 0 and variance 1.
    pub fn normal(&mut self) -> f64 {
        // Box and Muller (1958): always two draws, and one of the two results.
        let radius = math::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }
}

/// The finaliser of SplitMix64 (Stafford's variant 13 of the MurmurHash3 mix).
#[inline]
fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// An odd increment with enough bit transitions (OOPSLA 2014, section 5).
fn mix_gamma(mut z: u64) -> u64 {
    z = (z ^ (z >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    z = (z ^ (z >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    z = (z ^ (z >> 33)) | 1;
    if (z ^ (z >> 1)).count_ones() < 24 { z ^ 0xAAAA_AAAA_AAAA_AAAA } else { z }
}

fn absorb(key: u64, word: u64) -> u64 {
    mix64(key.rotate_left(23) ^ word).wrapping_add(GOLDEN_GAMMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of SplitMix64 from state 1234567, as published with
    /// Vigna's reference program.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut stream = Stream::from_state(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for number in expected {
            assert_eq!(stream.next_u64(), number);
        }
    }

    #[test]
    fn keys_and_distributions_are_fixed_for_ever() {
        let mut stream = Stream::for_component(1, 0, "links.bottleneck.queue");
        let drawn = (
            stream.next_u64(),
            stream.next_u32(),
            stream.uniform().to_bits(),
            stream.uniform_span(Span::ZERO, Span::from_millis(650)).as_nanos(),
            stream.exponential(1.0).to_bits(),
        );
        assert_eq!(drawn, FIXED, "the promise of reproducible results is broken");
    }
    const FIXED: (u64, u32, u64, u64, u64) =
        (4214645602772731258, 9010343, 4589181450630585264, 316017301, 4605276947483296784);

    #[test]
    fn a_stream_depends_on_seed_replication_and_path_only() {
        let base = Stream::for_component(7, 3, "flows.a.0");
        assert_eq!(base, Stream::for_component(7, 3, "flows.a.0"));
        for other in [
            Stream::for_component(8, 3, "flows.a.0"),
            Stream::for_component(7, 4, "flows.a.0"),
            Stream::for_component(7, 3, "flows.a.1"),
            Stream::for_component(7, 3, "flows.a.0\0"),
        ] {
            assert_ne!(base, other);
        }
    }

    /// Neighbouring streams (seeds, replications, paths) must look
    /// independent: their correlation over n pairs has a standard deviation
    /// of 1/sqrt(n); 5 of those are allowed over 300 pairs of streams.
    #[test]
    fn neighbouring_streams_are_uncorrelated() {
        let n = 4096;
        let sample = |seed, replication, path: &str| -> Vec<f64> {
            let mut stream = Stream::for_component(seed, replication, path);
            (0..n).map(|_| stream.uniform() - 0.5).collect()
        };
        let reference = sample(1, 0, "flows.a.0");
        for i in 1..=100 {
            for other in [
                sample(1 + i, 0, "flows.a.0"),
                sample(1, i, "flows.a.0"),
                sample(1, 0, &format!("flows.a.{i}")),
            ] {
                let dot: f64 = reference.iter().zip(&other).map(|(a, b)| a * b).sum();
                let correlation = dot / (n as f64 / 12.0);
                assert!(correlation.abs() < 5.0 / (n as f64).sqrt(), "{i}: {correlation}");
            }
        }
    }

    #[test]
    fn moments_of_the_distributions_are_right() {
        let mut stream = Stream::for_component(5, 0, "moments");
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential(2.0)) - 2.0).abs() < 0.03);
        let (low, high) = (Span::from_millis(10), Span::from_millis(20));
        let spans = mean(&mut || stream.uniform_span(low, high).as_secs_f64());
        assert!((spans - 0.015).abs() < 0.0001);
    }

    #[test]
    fn the_normal_distribution_has_its_moments() {
        let mut stream = Stream::for_component(7, 0, "normal");
        let count = 200_000;
        let mut sums = [0.0; 4];
        for _ in 0..count {
            let x = stream.normal();
            let mut power = 1.0;
            for sum in &mut sums {
                power *= x;
                *sum += power;
            }
        }
        let moments = sums.map(|sum| sum / f64::from(count));
        for (moment, expected) in moments.into_iter().zip([0.0, 1.0, 0.0, 3.0]) {
            assert!((moment - expected).abs() < 0.05, "{moments:?}");
        }
    }
}
