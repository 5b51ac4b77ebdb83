//! Stability test of a moving average.

use std::collections::VecDeque;

/// Last values of an average.
#[derive(Clone)]
pub(super) struct Stability {
    last: VecDeque<f64>,
    distance: usize,
    tolerance: f64,
    count: u64,
}

impl Stability {
    pub fn new(distance: usize, tolerance: f64) -> Self {
        Stability { last: VecDeque::new(), distance, tolerance, count: 0 }
    }
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.last.push_back(value);
        if self.last.len() > self.distance {
            self.last.pop_front();
        }
    }
    /// Returns the number of values so far.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Returns whether the standard deviation of the last values is below the tolerated share of
    /// the latest value.
    pub fn is_stable(&self) -> bool {
        let (Some(current), true) = (self.last.back(), self.last.len() == self.distance) else {
            return false;
        };
        let n = self.distance as f64;
        let mean = self.last.iter().sum::<f64>() / n;
        let variance = self.last.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        libm::sqrt(variance) < self.tolerance * current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_values_within_five_per_cent_are_stable() {
        let mut stability = Stability::new(4, 0.05);
        for (value, is_stable) in [
            (25.0, false),
            (50.0, false),
            (100.0, false),
            (104.0, false),
            (96.0, false),
            (100.0, true),
            (100.0, true),
            (150.0, false),
        ] {
            stability.add(value);
            assert_eq!(stability.is_stable(), is_stable, "{value}");
        }
        assert_eq!(stability.count(), 8);
    }
}
