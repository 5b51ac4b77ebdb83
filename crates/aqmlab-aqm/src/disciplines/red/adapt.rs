//! How `max_p` adapts itself.

use aqmlab_core::Time;

use super::automatic::Settings;
use super::{Adaptive, RedParams, seconds};

pub(super) enum Adapt {
    None,
    Floyd(Floyd),
    Feng(Feng),
}

/// Adaptive RED (2001), section 4: keeps the average in the middle.
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
    pub fn new(params: &RedParams, settings: &Settings) -> Self {
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
    use super::*;

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
