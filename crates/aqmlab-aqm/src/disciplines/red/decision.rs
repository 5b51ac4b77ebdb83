//! The random decision.

use aqmlab_core::{Packet, Time, math};

use super::adapt::Adapt;
use super::automatic::RedSettings;
use super::{RedParams, Shape};
use crate::discipline::{Context, Reason};

#[derive(Clone)]
pub(super) struct Decision {
    params: RedParams,
    pub settings: RedSettings,
    /// The line above the upper threshold in gentle mode: slope and offset.
    gentle: Option<(f64, f64)>,
    pub max_p: f64,
    adapt: Adapt,
    /// Packets and bytes since the last drop.
    count: u64,
    count_bytes: u64,
    /// The average has been above the lower threshold before.
    old: bool,
}

#[derive(PartialEq)]
pub(super) enum Fate {
    Pass,
    Mark,
    Drop(Reason),
}

/// Zhou, Yeung and Li 2006, section 3.1: max_p times this makes the quadratic
/// curve drop as much as the line, averaged over the space between the
/// thresholds (the integral of x^2 is 1/3, that of x is 1/2).
const QUADRATIC_SCALE: f64 = 1.5;

impl Decision {
    pub fn new(params: &RedParams, settings: &RedSettings) -> Self {
        // Where the curve below the upper threshold ends.
        let end = match params.shape {
            Shape::Linear => params.max_p,
            Shape::Quadratic => (QUADRATIC_SCALE * params.max_p).min(1.0),
        };
        let line = ((1.0 - end) / settings.max, 2.0 * end - 1.0);
        Decision {
            gentle: params.gentle.then_some(line),
            max_p: params.max_p,
            params: params.clone(),
            settings: settings.clone(),
            adapt: Adapt::default(),
            count: 0,
            count_bytes: 0,
            old: false,
        }
    }

    /// Writes other parameters. A `max_p` that has adapted itself stays, unless another is given.
    pub fn change(&mut self, new: Decision) {
        if new.params.max_p != self.params.max_p {
            self.max_p = new.max_p;
        }
        if new.params.adaptive != self.params.adaptive {
            self.adapt = new.adapt;
        }
        (self.params, self.settings, self.gentle) = (new.params, new.settings, new.gentle);
    }

    /// Forgets the average: the next packet above the lower threshold is the first.
    pub fn restart(&mut self) {
        self.old = false;
        self.restart_count();
    }

    pub fn adapt(&mut self, now: Time, average: f64) {
        self.max_p = self.adapt.adapt(&self.params, &self.settings, self.max_p, average, now);
    }

    /// Decides on an arriving packet, apart from the limit.
    pub fn decide(
        &mut self,
        average: f64,
        length: u64,
        packet: &Packet,
        cx: &mut Context<'_>,
    ) -> Fate {
        self.count += 1;
        self.count_bytes += u64::from(packet.size());
        if average < self.settings.min || length <= 1 {
            self.old = false;
            return Fate::Pass;
        }
        let max = self.settings.max;
        let most = if self.gentle.is_some() { 2.0 * max } else { max };
        if average >= most && self.params.mark_p.is_none() {
            self.restart_count();
            return Fate::Drop(Reason::RedForced);
        }
        if !self.old {
            self.old = true;
            self.count = 1;
            self.count_bytes = u64::from(packet.size());
            return Fate::Pass;
        }
        let base = self.base_probability(average);
        if cx.random.uniform32() > self.spread(base, packet.size()) {
            return Fate::Pass;
        }
        self.restart_count();
        let may_mark = self.params.mark_p.is_none_or(|limit| base < limit);
        if self.params.ecn && packet.ecn().is_capable() && may_mark {
            Fate::Mark
        } else {
            Fate::Drop(Reason::RedEarly)
        }
    }

    pub fn restart_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }

    /// The probability by the average alone, p_b.
    pub fn base_probability(&self, average: f64) -> f64 {
        let max = self.settings.max;
        let p = match self.gentle {
            Some((slope, offset)) if average >= max => slope * average + offset,
            None if average >= max => 1.0,
            _ => self.between(average),
        };
        p.min(1.0)
    }

    /// 0 at the lower threshold, 1 at the upper one.
    pub fn place(&self, average: f64) -> f64 {
        let RedSettings { min, max, .. } = self.settings;
        let width = max - min;
        (1.0 / width) * average + (-min / width)
    }

    /// p_b between the thresholds.
    fn between(&self, average: f64) -> f64 {
        let part = self.place(average);
        match self.params.shape {
            Shape::Linear => part * self.max_p,
            Shape::Quadratic if part < 0.0 => 0.0,
            Shape::Quadratic => part * part * (QUADRATIC_SCALE * self.max_p),
        }
    }

    /// The probability that makes the distance between drops uniform instead
    /// of geometric, p_a (Floyd and Jacobson 1993, section 7).
    fn spread(&self, base: f64, size: u32) -> f64 {
        let (by_size, mean_packet) = (self.params.by_size, self.settings.mean_packet);
        let count = if by_size {
            math::floor(self.count_bytes as f64 / mean_packet)
        } else {
            self.count as f64
        };
        let reached = count * base;
        let mut p = match (self.params.wait, reached) {
            (true, reached) if reached < 1.0 => 0.0,
            (true, reached) if reached < 2.0 => base / (2.0 - reached),
            (false, reached) if reached < 1.0 => base / (1.0 - reached),
            _ => 1.0,
        };
        if by_size && p < 1.0 {
            p = p * f64::from(size) / mean_packet;
        }
        p.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Bytes;

    use super::*;
    use crate::testing::{assert_near, env};

    fn decision(params: &RedParams) -> Decision {
        Decision::new(params, &RedSettings::new(params, &env()))
    }
    /// Thresholds 5 and 15 packets, max_p 0.1.
    #[test]
    fn the_probability_grows_in_proportion_or_with_the_square() {
        let linear = decision(&RedParams::default());
        let square = RedParams { shape: Shape::Quadratic, ..RedParams::default() };
        let quadratic = decision(&square);
        let hard = decision(&RedParams { gentle: false, ..square });
        for (average, by_line, by_square, without_gentle) in [
            (5.0, 0.0, 0.0, 0.0),
            (7.5, 0.025, 0.009_375, 0.009_375),
            (10.0, 0.05, 0.0375, 0.0375),
            (14.0, 0.09, 0.1215, 0.1215),
            (15.0, 0.1, 0.15, 1.0),
            (22.5, 0.55, 0.575, 1.0),
            (30.0, 1.0, 1.0, 1.0),
        ] {
            assert_near(linear.base_probability(average), by_line);
            assert_near(quadratic.base_probability(average), by_square);
            assert_near(hard.base_probability(average), without_gentle);
        }
        // What the paper chose 1.5 for: the same mean.
        let mean = |it: &Decision| {
            (0..1000).map(|i| it.base_probability(5.005 + f64::from(i) / 100.0)).sum::<f64>()
        };
        assert!((mean(&linear) / mean(&quadratic) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn by_size_counts_bytes_in_whole_mean_packets() {
        let mut it = decision(&RedParams {
            by_size: true,
            wait: false,
            mean_packet: Bytes::new(1000),
            ..RedParams::default()
        });
        // How many packets there were does not matter.
        it.count = 1_000_000;
        for (bytes, size, expected) in [
            (999, 1000, 0.125),
            (1000, 1000, 1.0 / 7.0),
            (3999, 1500, 0.3),
            (3999, 40, 0.2 * 0.04),
            (4500, 1500, 0.375),
            // 0.5 for a mean packet; never more than 1.
            (6000, 4000, 1.0),
            (8000, 40, 1.0),
        ] {
            it.count_bytes = bytes;
            assert_near(it.spread(0.125, size), expected);
        }
    }
}
