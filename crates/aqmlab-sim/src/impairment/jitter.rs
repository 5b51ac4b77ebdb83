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
}

impl JitterState {
    pub fn new(params: JitterParams) -> Self {
        JitterState { params, draws: Draws::default() }
    }

    /// Returns the delay of the next packet, around the mean `delay`.
    pub fn next(&mut self, delay: Span, stream: &mut Stream) -> Span {
        let JitterParams { spread, distribution, correlation } = &self.params;
        let unit = self.draws.next(*correlation, stream, |stream| distribution.draw(stream));
        Span::from_secs_f64(delay.as_secs_f64() + unit * spread.as_secs_f64())
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
        let params = JitterParams { spread: Span::from_millis(2), distribution, correlation };
        let mut state = JitterState::new(params);
        let delay = Span::from_millis(20);
        (0..COUNT).map(|_| (state.next(delay, &mut stream).as_secs_f64() - 0.02) / 0.002).collect()
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
}
