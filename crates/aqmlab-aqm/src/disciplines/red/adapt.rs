//! Adaptation of `max_p`.

use aqmlab_core::Time;

use super::automatic::RedSettings;
use super::{Adaptive, RedParams, seconds};

/// State of either algorithm.
#[derive(Clone)]
pub(super) struct Adapt {
    /// Time of the last change by Floyd's.
    last_change: f64,
    /// Place of the average, for Feng's.
    side: Side,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Side {
    Below,
    Between,
    Above,
}

impl Default for Adapt {
    fn default() -> Self {
        Adapt { last_change: 0.0, side: Side::Above }
    }
}

impl Adapt {
    /// Returns the new `max_p`, at an arrival.
    pub fn adapt(
        &mut self,
        params: &RedParams,
        settings: &RedSettings,
        max_p: f64,
        average: f64,
        now: Time,
    ) -> f64 {
        match params.adaptive {
            Adaptive::None => max_p,
            Adaptive::Floyd => self.floyd(params, settings, max_p, average, now),
            Adaptive::Feng => self.feng(params, settings, max_p, average),
        }
    }

    /// Adaptive RED (2001), section 4: keeps the average in the middle.
    fn floyd(
        &mut self,
        params: &RedParams,
        &RedSettings { min, max, bottom, .. }: &RedSettings,
        max_p: f64,
        average: f64,
        now: Time,
    ) -> f64 {
        let now = seconds(now);
        if now <= self.last_change + params.adapt_interval.as_secs_f64() {
            return max_p;
        }
        let part = 0.4 * (max - min);
        if average < min + part && max_p > bottom {
            self.last_change = now;
            max_p * params.beta
        } else if average > max - part && max_p < params.top {
            self.last_change = now;
            max_p + params.alpha.min(max_p / 4.0)
        } else {
            max_p
        }
    }

    /// Self-configuring RED (1999): a step whenever the average leaves the space between the
    /// thresholds.
    fn feng(
        &mut self,
        params: &RedParams,
        &RedSettings { min, max, .. }: &RedSettings,
        max_p: f64,
        average: f64,
    ) -> f64 {
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
            Side::Below => max_p / params.feng_alpha,
            Side::Between => max_p,
            Side::Above => max_p * params.feng_beta,
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Span;

    use super::*;
    use crate::testing::env;

    /// `max_p` after averages that are seen 600 ms apart, with thresholds of 5 and 15: the middle is
    /// from 9 to 11.
    fn adapted(adaptive: Adaptive, mut max_p: f64, averages: &[f64]) -> f64 {
        let params = RedParams { adaptive, ..RedParams::default() };
        let settings = RedSettings::new(&params, &env());
        let (mut adapt, mut now) = (Adapt::default(), Time::ZERO);
        for average in averages {
            now += Span::from_millis(600);
            max_p = adapt.adapt(&params, &settings, max_p, *average, now);
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
            let got = adapted(Adaptive::Floyd, max_p, averages);
            assert!((got - expected).abs() < 1e-15, "{max_p}, {averages:?}: {got}, not {expected}");
        }
    }

    #[test]
    fn feng_steps_when_the_average_leaves_the_space_between() {
        let mut averages = Vec::new();
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
            averages.push(average);
            let max_p = adapted(Adaptive::Feng, 0.36, &averages);
            assert!((max_p - expected).abs() < 1e-15, "{average}: {max_p}, not {expected}");
        }
    }
}
