//! Adaptation of `max_p`.

use aqmlab_core::Time;

use super::automatic::RedSettings;
use super::{Adaptive, RedParams, seconds};

#[derive(Clone)]
pub(super) enum Adapt {
    None,
    Floyd(Floyd),
    Feng(Feng),
}

/// Adaptive RED (2001), section 4: keeps the average in the middle.
#[derive(Clone)]
pub(super) struct Floyd {
    alpha: f64,
    beta: f64,
    interval: f64,
    top: f64,
    bottom: f64,
    last_change: f64,
}

/// Self-configuring RED (1999): a step whenever the average leaves the space
/// between the thresholds.
#[derive(Clone)]
pub(super) struct Feng {
    alpha: f64,
    beta: f64,
    side: Side,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Side {
    Below,
    Between,
    Above,
}

impl Adapt {
    pub fn new(params: &RedParams, settings: &RedSettings) -> Self {
        match params.adaptive {
            Adaptive::None => Adapt::None,
            Adaptive::Floyd => Adapt::Floyd(Floyd {
                alpha: params.alpha,
                beta: params.beta,
                interval: params.adapt_interval.as_secs_f64(),
                top: params.top,
                bottom: settings.bottom,
                last_change: 0.0,
            }),
            Adaptive::Feng => Adapt::Feng(Feng {
                alpha: params.feng_alpha,
                beta: params.feng_beta,
                side: Side::Above,
            }),
        }
    }

    /// Goes on from where another of the same kind was.
    pub fn resume(&mut self, before: &Adapt) {
        match (self, before) {
            (Adapt::Floyd(floyd), Adapt::Floyd(before)) => floyd.last_change = before.last_change,
            (Adapt::Feng(feng), Adapt::Feng(before)) => feng.side = before.side,
            _ => (),
        }
    }

    /// The new `max_p`, at an arrival.
    pub fn adapt(&mut self, max_p: f64, now: Time, average: f64, min: f64, max: f64) -> f64 {
        match self {
            Adapt::None => max_p,
            Adapt::Floyd(floyd) => floyd.adapt(max_p, now, average, min, max),
            Adapt::Feng(feng) => feng.adapt(max_p, average, min, max),
        }
    }
}

impl Floyd {
    fn adapt(&mut self, max_p: f64, now: Time, average: f64, min: f64, max: f64) -> f64 {
        let now = seconds(now);
        if now <= self.last_change + self.interval {
            return max_p;
        }
        let part = 0.4 * (max - min);
        if average < min + part && max_p > self.bottom {
            self.last_change = now;
            max_p * self.beta
        } else if average > max - part && max_p < self.top {
            self.last_change = now;
            max_p + self.alpha.min(max_p / 4.0)
        } else {
            max_p
        }
    }
}

impl Feng {
    fn adapt(&mut self, max_p: f64, average: f64, min: f64, max: f64) -> f64 {
        let before = self.side;
        if min < average && average < max {
            self.side = Side::Between;
        } else if average < min {
            self.side = Side::Below;
        } else if average > max {
            self.side = Side::Above;
        }
        match self.side {
            side if side == before => max_p,
            Side::Below => max_p / self.alpha,
            Side::Between => max_p,
            Side::Above => max_p * self.beta,
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Span;

    use super::*;

    /// Thresholds 5 and 15: the middle is from 9 to 11.
    const MIN: f64 = 5.0;
    const MAX: f64 = 15.0;

    fn floyd() -> Floyd {
        Floyd { alpha: 0.01, beta: 0.9, interval: 0.5, top: 0.5, bottom: 0.01, last_change: 0.0 }
    }

    /// `max_p` after averages that are seen 600 ms apart.
    fn adapted(mut max_p: f64, averages: &[f64]) -> f64 {
        let (mut floyd, mut now) = (floyd(), Time::ZERO);
        for average in averages {
            now += Span::from_millis(600);
            max_p = floyd.adapt(max_p, now, *average, MIN, MAX);
        }
        max_p
    }

    /// Section 4: more by alpha, but by no more than a quarter of itself; less by beta.
    #[test]
    fn floyd_adds_little_and_multiplies() {
        for (max_p, averages, expected) in [
            (0.1, &[11.1][..], 0.11),
            (0.1, &[11.1, 20.0], 0.12),
            // A quarter of 0.02 is less than alpha.
            (0.02, &[11.1], 0.025),
            (0.02, &[11.1, 11.1], 0.031_25),
            (0.1, &[8.9], 0.09),
            (0.1, &[0.0, 8.9], 0.081),
            // In the middle it stays.
            (0.1, &[9.0, 10.0, 11.0], 0.1),
            // At its bounds it stays as well.
            (0.5, &[20.0], 0.5),
            (0.01, &[0.0], 0.01),
        ] {
            let got = adapted(max_p, averages);
            assert!((got - expected).abs() < 1e-15, "{max_p}, {averages:?}: {got}, not {expected}");
        }
    }

    #[test]
    fn feng_steps_when_the_average_leaves_the_space_between() {
        let mut feng = Feng { alpha: 3.0, beta: 2.0, side: Side::Above };
        let mut max_p = 0.36;
        for (average, expected) in [
            (0.0, 0.12),
            (4.9, 0.12),
            // At a threshold it has not passed it.
            (5.0, 0.12),
            (10.0, 0.12),
            (4.0, 0.04),
            // Both thresholds at once.
            (16.0, 0.08),
            (40.0, 0.08),
            (15.0, 0.08),
            (14.0, 0.08),
            (15.1, 0.16),
            (1.0, 0.16 / 3.0),
        ] {
            max_p = feng.adapt(max_p, average, 5.0, 15.0);
            assert!((max_p - expected).abs() < 1e-15, "{average}: {max_p}, not {expected}");
        }
    }
}
