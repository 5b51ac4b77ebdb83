//! Random rates: a Markov chain, and the Ornstein-Uhlenbeck process.
//!
//! # Model
//! The chain remains in a state for an exponential time, then moves to another. The
//! Ornstein-Uhlenbeck process is sampled at regular times with its exact transition, X' = m + (X -
//! m) a + s sqrt(1 - a^2) N with a = exp(-step / correlation time), and truncated at zero.
//!
//! # Sources
//! - Uhlenbeck and Ornstein, "On the Theory of the Brownian Motion" (1930);
//!   the exact transition: Gillespie, Physical Review E 54 (1996).
//!
//! 1. If the deviation exceeds about half of the mean, the truncation at zero raises the mean: the
//!    offered capacity is that of the draws.

use aqmlab_core::{Deadline, Error, Rate, Result, Span, Stream, Time, params};

use super::MAX_RATE;

params! {
    /// Rate that changes randomly between states.
    pub struct MarkovParams {
        /// Rate in each state.
        rates: Vec<Rate> = vec![Rate::from_bps(10_000_000), Rate::from_bps(1_000_000)],
            source "this program";
        /// Mean time in each state; exponentially distributed.
        dwell: Vec<Span> = vec![Span::from_secs(5), Span::from_secs(1)], source "this program";
        /// Transition probabilities, one row for each state; `[]`: all other states equally likely.
        transitions: Vec<f64> = vec![], source "this program";
    }
}

params! {
    /// Rate that varies around its mean: the Ornstein-Uhlenbeck process.
    pub struct OrnsteinUhlenbeckParams {
        /// Mean, before truncation at zero.
        mean: Rate = Rate::from_bps(10_000_000), in Rate::from_bps(1) => MAX_RATE,
            source "this program";
        /// Standard deviation.
        deviation: Rate = Rate::from_bps(3_000_000), in Rate::from_bps(0) => MAX_RATE,
            source "this program";
        /// Time after which the autocorrelation has fallen to 1/e.
        correlation_time: Span = Span::from_secs(1),
            in Span::from_micros(1) => Span::from_secs(100_000),
            source "this program";
        /// Time for which a rate is constant.
        step: Span = Span::from_millis(10), in Span::from_micros(1) => Span::from_secs(1000),
            source "this program";
    }
}

impl MarkovParams {
    /// Rejects an invalid chain.
    pub(super) fn check(&self) -> Result<()> {
        let count = self.rates.len();
        if count < 2 || self.rates.iter().any(|rate| *rate > MAX_RATE) {
            let allowed = format!("two or more rates, each at most {MAX_RATE}");
            return Err(Error::not_allowed(format!("{:?}", self.rates), allowed).at("rates"));
        }
        if self.rates.iter().all(|rate| rate.as_bps() == 0) {
            return Err(Error::new("expected a rate above zero").at("rates"));
        }
        let longest = Span::from_secs(10_000_000);
        let is_fit = |dwell: &Span| *dwell >= Span::from_micros(1) && *dwell <= longest;
        if self.dwell.len() != count || !self.dwell.iter().all(is_fit) {
            let allowed = format!("{count} times from 1us to {longest}, one for each rate");
            return Err(Error::not_allowed(format!("{:?}", self.dwell), allowed).at("dwell"));
        }
        let is_row = |row: &[f64]| {
            let is_share = row.iter().all(|share| (0.0..=1.0).contains(share));
            is_share && (row.iter().sum::<f64>() - 1.0).abs() < 1e-6
        };
        let rows = &self.transitions;
        if !rows.is_empty() && (rows.len() != count * count || !rows.chunks(count).all(is_row)) {
            let allowed = format!("{count} rows of {count} probabilities, the sum of each row 1");
            return Err(Error::not_allowed(format!("{rows:?}"), allowed).at("transitions"));
        }
        Ok(())
    }

    /// Returns the probability of a transition from `from` to `to`.
    fn chance(&self, from: usize, to: usize) -> f64 {
        let count = self.rates.len();
        match self.transitions.get(from * count + to) {
            Some(chance) => *chance,
            None if from == to => 0.0,
            None => 1.0 / (count - 1) as f64,
        }
    }

    fn next_state(&self, from: usize, stream: &mut Stream) -> usize {
        let mut left = stream.uniform();
        let last = self.rates.len() - 1;
        for to in 0..last {
            left -= self.chance(from, to);
            if left < 0.0 {
                return to;
            }
        }
        // Rounding may leave a remainder for a state with probability zero.
        (0..=last).rev().find(|to| self.chance(from, *to) > 0.0).unwrap_or(last)
    }

    /// Returns the long-run mean rate: the shares of visits, by power iteration of
    /// the lazy chain (which is aperiodic), times the times in each state.
    pub(super) fn mean(&self) -> f64 {
        const ROUNDS: usize = 10_000;
        let count = self.rates.len();
        let mut visits = vec![1.0 / count as f64; count];
        let mut before = Vec::new();
        for round in 0..ROUNDS {
            let into =
                |to| (0..count).map(|from| visits[from] * self.chance(from, to)).sum::<f64>();
            let next: Vec<f64> = (0..count).map(|to| 0.5 * visits[to] + 0.5 * into(to)).collect();
            // From here on the result is stable, or alternates in the last bit, so the result of
            // the last iteration is known.
            let stays = next == visits;
            if stays || next == before {
                let is_odd = !(ROUNDS - round).is_multiple_of(2);
                visits = if is_odd || stays { next } else { visits };
                break;
            }
            before = std::mem::replace(&mut visits, next);
        }
        let time = |state: usize| visits[state] * self.dwell[state].as_secs_f64();
        let bits = (0..count).map(|state| time(state) * self.rates[state].as_bps() as f64);
        bits.sum::<f64>() / (0..count).map(time).sum::<f64>()
    }
}

/// State of a Markov chain.
#[derive(Clone)]
pub(crate) struct Markov {
    params: MarkovParams,
    stream: Stream,
    state: usize,
    until: Time,
}

impl Markov {
    pub fn new(params: MarkovParams, mut stream: Stream) -> Self {
        let state = (stream.uniform() * params.rates.len() as f64) as usize;
        let mut chain = Markov { params, stream, state, until: Time::ZERO };
        chain.dwell();
        chain
    }
    fn dwell(&mut self) {
        let mean = self.params.dwell[self.state].as_secs_f64();
        let time = Span::from_secs_f64(self.stream.exponential(mean));
        self.until += time.max(Span::from_nanos(1));
    }
    /// Returns the rate, and its end.
    pub fn now(&self) -> (u64, Deadline) {
        (self.params.rates[self.state].as_bps(), Deadline::at(self.until))
    }
    pub fn advance(&mut self) {
        self.state = self.params.next_state(self.state, &mut self.stream);
        self.dwell();
    }
}

/// State of an Ornstein-Uhlenbeck process.
#[derive(Clone)]
pub(crate) struct OrnsteinUhlenbeck {
    stream: Stream,
    swing: Swing,
    mean: f64,
    deviation: f64,
    step: Span,
    until: Time,
}

impl OrnsteinUhlenbeck {
    pub fn new(params: &OrnsteinUhlenbeckParams, mut stream: Stream) -> Self {
        let swing = Swing::new(params.step, params.correlation_time, &mut stream);
        OrnsteinUhlenbeck {
            stream,
            swing,
            mean: params.mean.as_bps() as f64,
            deviation: params.deviation.as_bps() as f64,
            step: params.step,
            until: Time::ZERO + params.step,
        }
    }
    /// Returns the rate, and its end.
    pub fn now(&self) -> (u64, Deadline) {
        // `as` converts negative values to zero.
        let rate = (self.mean + self.deviation * self.swing.value).round() as u64;
        (rate.min(MAX_RATE.as_bps()), Deadline::at(self.until))
    }
    pub fn advance(&mut self) {
        self.swing.advance(&mut self.stream);
        self.until += self.step;
    }
}

/// Ornstein-Uhlenbeck process with mean 0 and variance 1, at regular times.
#[derive(Clone)]
pub(crate) struct Swing {
    pub value: f64,
    keep: f64,
    fresh: f64,
}

impl Swing {
    pub fn new(step: Span, correlation_time: Span, stream: &mut Stream) -> Self {
        let keep = libm::exp(-step.as_secs_f64() / correlation_time.as_secs_f64());
        Swing { value: stream.normal(), keep, fresh: (1.0 - keep * keep).sqrt() }
    }
    pub fn advance(&mut self, stream: &mut Stream) {
        self.value = self.value * self.keep + self.fresh * stream.normal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::testing::{autocorrelation, deviation, mean};

    const END: Time = Time::from_nanos(20_000 * 1_000_000_000);

    fn stream(path: &str) -> Stream {
        Stream::for_component(1, 0, path)
    }

    #[test]
    fn the_chain_has_its_long_run_mean() {
        let mbit = |rate: u64| Rate::from_bps(rate * 1_000_000);
        let params = MarkovParams {
            rates: vec![mbit(0), mbit(3), mbit(12)],
            dwell: vec![Span::from_millis(200), Span::from_secs(1), Span::from_millis(500)],
            // A cycle with a backward transition: a chain with unequal visits.
            transitions: vec![0.0, 1.0, 0.0, 0.5, 0.0, 0.5, 1.0, 0.0, 0.0],
        };
        params.check().unwrap();
        // Visits: 2/5, 2/5, 1/5. Times: 0.08, 0.4, 0.1. Bits: 1.2 + 1.2.
        assert!((params.mean() - 2.4e6 / 0.58).abs() < 1.0, "{}", params.mean());
        let mut chain = Markov::new(params.clone(), stream("markov"));
        let (mut bits, mut now) = (0.0, Time::ZERO);
        while now < END {
            let (rate, until) = chain.now();
            let until = until.time().unwrap();
            bits += rate as f64 * (until - now).as_secs_f64();
            now = until;
            chain.advance();
        }
        let mean = bits / now.as_secs_f64();
        assert!((mean / params.mean() - 1.0).abs() < 0.03, "{mean}");
    }

    /// The cost of eight hundred states is their square, times a few dozen.
    #[test]
    fn the_mean_of_many_states_is_found_when_it_no_longer_moves() {
        let count = 800;
        let params = MarkovParams {
            rates: (0..count).map(|n| Rate::from_bps(n * 1_000_000)).collect(),
            dwell: vec![Span::from_secs(1); count as usize],
            transitions: vec![],
        };
        params.check().unwrap();
        assert!((params.mean() / 399.5e6 - 1.0).abs() < 1e-9, "{}", params.mean());
        let two = MarkovParams { transitions: vec![0.3, 0.7, 0.6, 0.4], ..MarkovParams::default() };
        // Visits as 0.6 to 0.7, times 5 s and 1 s, rates 10 and 1 Mbit/s.
        let (first, second) = (0.6 * 5.0, 0.7);
        let mean = (first * 10e6 + second * 1e6) / (first + second);
        assert!((two.mean() / mean - 1.0).abs() < 1e-9, "{}", two.mean());
    }

    #[test]
    fn the_swing_has_its_moments_and_its_correlation_time() {
        let params = OrnsteinUhlenbeckParams::default();
        let mut process = OrnsteinUhlenbeck::new(&params, stream("ou"));
        let mut rates = Vec::new();
        while process.until < END {
            rates.push(process.now().0 as f64);
            process.advance();
        }
        let (mean, deviation) = (mean(&rates), deviation(&rates));
        assert!((mean / 10e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((deviation / 3e6 - 1.0).abs() < 0.02, "{deviation}");
        // One hundred steps per second.
        let correlation = autocorrelation(&rates, 100);
        assert!((correlation - libm::exp(-1.0)).abs() < 0.03, "{correlation}");
    }

    #[test]
    fn chains_that_are_none_are_refused() {
        let chain = |rates: &[u64], dwell: &[u64], transitions: &[f64]| MarkovParams {
            rates: rates.iter().map(|rate| Rate::from_bps(*rate)).collect(),
            dwell: dwell.iter().map(|millis| Span::from_millis(*millis)).collect(),
            transitions: transitions.to_vec(),
        };
        for (params, key) in [
            (chain(&[1], &[1], &[]), "rates"),
            (chain(&[0, 0], &[1, 1], &[]), "rates"),
            (chain(&[0, u64::MAX], &[1, 1], &[]), "rates"),
            (chain(&[0, 1], &[1], &[]), "dwell"),
            (chain(&[0, 1], &[1, 0], &[]), "dwell"),
            (chain(&[0, 1], &[1, 1], &[1.0, 0.0]), "transitions"),
            (chain(&[0, 1], &[1, 1], &[0.5, 0.4, 1.0, 0.0]), "transitions"),
            (chain(&[0, 1], &[1, 1], &[2.0, -1.0, 1.0, 0.0]), "transitions"),
        ] {
            assert_eq!(params.check().unwrap_err().key, key, "{params:?}");
        }
    }
}
