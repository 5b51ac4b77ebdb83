//! Random part of the delay, drawn for each packet.

use aqmlab_core::{Span, Stream, choices, params};

use super::{Draws, MAX_CORRELATION};

choices! {
    /// Distribution of jitter.
    pub enum Distribution {
        /// Uniform, within one spread around the delay.
        Uniform = "uniform",
        /// Normal, with the spread as standard deviation.
        Normal = "normal",
        /// Pareto, with a long tail: netem's table, of mean 0.
        Pareto = "pareto",
        /// A quarter of the normal and three quarters of the Pareto distribution.
        ParetoNormal = "paretonormal",
    }
}

params! {
    /// Random part of the delay, drawn for each packet.
    pub struct JitterParams {
        /// netem's JITTER: the half width, the standard deviation, or the unit of the Pareto table.
        spread: Span = Span::from_millis(1), in Span::ZERO => Span::from_secs(3600),
            source "tc-netem(8), delay";
        /// Distribution around the link's delay; negative delays become zero.
        distribution: Distribution = Distribution::Normal, source "tc-netem(8), distribution";
        /// Probability that a packet has the jitter of the one before it.
        correlation: f64 = 0.0, [left out], in 0.0 => MAX_CORRELATION, source "tc-netem(8), delay";
        /// Probability that a packet has no delay at all and overtakes the packets before it.
        reorder: f64 = 0.0, [left out], in 0.0 => 1.0, source "tc-netem(8), reorder";
        /// Probability that a packet has the outcome of the one before it, delayed or not.
        reorder_correlation: f64 = 0.0, [left out], in 0.0 => MAX_CORRELATION,
            source "tc-netem(8), reorder";
        /// Distance of packets without delay: after each, this number minus one are delayed.
        gap: u64 = 1, [left out], in 1 => 1_000_000_000, source "tc-netem(8), gap";
    }
}

impl Distribution {
    /// Returns a draw in units of the spread.
    fn draw(self, stream: &mut Stream) -> f64 {
        const MOST: f64 = 4.0;
        let pareto = |beyond: f64| ((1.0 / libm::cbrt(beyond) - 1.5) * 4.0 / 3.0).min(MOST);
        match self {
            Distribution::Uniform => 2.0 * stream.uniform() - 1.0,
            Distribution::Normal => stream.normal().clamp(-MOST, MOST),
            Distribution::Pareto => pareto(1.0 - stream.uniform()),
            Distribution::ParetoNormal => {
                let normal = stream.normal().clamp(-MOST, MOST);
                let beyond = 0.5 * libm::erfc(normal * std::f64::consts::FRAC_1_SQRT_2);
                0.25 * normal + 0.75 * pareto(beyond)
            }
        }
    }
}

/// State of jitter.
#[derive(Clone)]
pub(crate) struct JitterState {
    params: JitterParams,
    draws: Draws,
    reorder_draws: Draws,
    /// Packets delayed since the last without delay.
    delayed: u64,
}

impl JitterState {
    pub fn new(params: JitterParams) -> Self {
        let (draws, reorder_draws) = Default::default();
        JitterState { params, draws, reorder_draws, delayed: 0 }
    }

    /// Returns the delay of the next packet, around the mean `delay`; `None` if it has none and
    /// overtakes the packets before it.
    pub fn next(&mut self, delay: Span, stream: &mut Stream) -> Option<Span> {
        let JitterParams { spread, distribution, correlation, reorder, .. } = &self.params;
        if *reorder > 0.0 {
            // As in netem_enqueue(): no draw within the gap.
            let may = self.delayed >= self.params.gap - 1;
            let correlation = self.params.reorder_correlation;
            if may && self.reorder_draws.next(correlation, stream, Stream::uniform) < *reorder {
                self.delayed = 0;
                return None;
            }
            self.delayed += 1;
        }
        let unit = self.draws.next(*correlation, stream, |stream| distribution.draw(stream));
        Some(Span::from_secs_f64(delay.as_secs_f64() + unit * spread.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::testing::{autocorrelation, deviation, mean};

    const COUNT: usize = 400_000;

    /// Returns draws in units of the spread.
    fn jitter_draws(distribution: Distribution, correlation: f64) -> Vec<f64> {
        let mut stream = Stream::for_component(3, 0, "jitter");
        let spread = Span::from_millis(2);
        let params = JitterParams { spread, distribution, correlation, ..JitterParams::default() };
        let mut state = JitterState::new(params);
        let mut next = || state.next(Span::from_millis(20), &mut stream).unwrap();
        (0..COUNT).map(|_| (next().as_secs_f64() - 0.02) / 0.002).collect()
    }

    /// Returns mean, deviation and a tail probability, in units of the spread.
    fn jitter(distribution: Distribution, beyond: f64) -> [f64; 3] {
        let draws = jitter_draws(distribution, 0.0);
        [mean(&draws), deviation(&draws), share_beyond(&draws, beyond)]
    }

    fn share_beyond(draws: &[f64], beyond: f64) -> f64 {
        draws.iter().filter(|draw| **draw > beyond).count() as f64 / draws.len() as f64
    }

    #[test]
    fn jitter_is_distributed_as_it_says() {
        // netem's Pareto in closed form: P(X > x) = (3x/4 + 3/2)^-3, truncated at 4 (1.1 % of the
        // draws): mean -2/3 4.5^-2, second moment 0.676.
        let survival = |x: f64| 1.0 / ((0.75 * x + 1.5) * (0.75 * x + 1.5) * (0.75 * x + 1.5));
        for (distribution, beyond, expected, tolerance) in [
            (Distribution::Uniform, 0.5, [0.0, 1.0 / 3.0f64.sqrt(), 0.25], 0.01),
            (Distribution::Normal, 1.0, [0.0, 1.0, 0.158_655], 0.01),
            (Distribution::Pareto, 1.0, [-0.033, 0.821, survival(1.0)], 0.02),
        ] {
            let measured = jitter(distribution, beyond);
            for (value, expected) in measured.into_iter().zip(expected) {
                assert!((value - expected).abs() < tolerance, "{distribution:?}: {measured:?}");
            }
        }
        assert!((jitter(Distribution::Pareto, 3.99)[2] - survival(3.99)).abs() < 0.001);
        // A quarter and three quarters at the same quantile: the median combines both medians, 0
        // and 4/3 (2^(1/3) - 1.5), and so does the tail beyond one deviation.
        let median = 0.75 * 4.0 / 3.0 * (libm::cbrt(2.0) - 1.5);
        assert!((jitter(Distribution::ParetoNormal, median)[2] - 0.5).abs() < 0.003);
        let one = 0.25 + 0.75 * 4.0 / 3.0 * (1.0 / libm::cbrt(0.158_655) - 1.5);
        assert!((jitter(Distribution::ParetoNormal, one)[2] - 0.158_655).abs() < 0.003);
    }

    /// Property of `correlation`: the distribution is unchanged, and the autocorrelation falls by
    /// that factor with every packet.
    #[test]
    fn correlation_keeps_the_distribution_and_is_what_it_says() {
        for distribution in [Distribution::Uniform, Distribution::Pareto] {
            let independent = jitter_draws(distribution, 0.0);
            for correlation in [0.25, 0.8] {
                let draws = jitter_draws(distribution, correlation);
                for x in [-0.5, 0.0, 0.5, 0.9] {
                    let [one, other] = [&draws, &independent].map(|draws| share_beyond(draws, x));
                    assert!((one - other).abs() < 0.01, "{x}: {one} {other}");
                }
                for distance in 1..=3 {
                    let law = libm::pow(correlation, distance as f64);
                    let measured = autocorrelation(&draws, distance);
                    assert!((measured - law).abs() < 0.02, "{distance}: {measured} {law}");
                }
            }
        }
    }

    /// Shares of packets without delay. Linux 6.12, 100,000 packets: `reorder 25%` 0.248, `reorder
    /// 50% gap 5` 0.166 (a cycle has 4 delayed packets, then a geometric number of mean 2).
    #[test]
    fn reordered_packets_have_their_share_gap_and_correlation() {
        for (reorder, reorder_correlation, gap, share, law) in
            [(0.25, 0.0, 1, 0.25, 0.0), (0.5, 0.0, 5, 1.0 / 6.0, -0.2), (0.25, 0.5, 1, 0.25, 0.5)]
        {
            let mut stream = Stream::for_component(3, 0, "reorder");
            let own = JitterParams { reorder, reorder_correlation, gap, ..JitterParams::default() };
            let mut state = JitterState::new(own);
            let mut early = || state.next(Span::from_millis(20), &mut stream).is_none();
            let early: Vec<f64> = (0..COUNT).map(|_| f64::from(early())).collect();
            assert!((mean(&early) - share).abs() < 0.005, "{}", mean(&early));
            let measured = autocorrelation(&early, 1);
            assert!((measured - law).abs() < 0.01, "{measured} {law}");
            let apart = early.iter().skip_while(|early| **early == 0.0).skip(1);
            let nearest = apart.copied().collect::<Vec<_>>();
            let nearest = nearest.split(|early| *early > 0.0).map(<[f64]>::len);
            assert_eq!(nearest.rev().skip(1).min(), Some(gap as usize - 1));
        }
    }
}
