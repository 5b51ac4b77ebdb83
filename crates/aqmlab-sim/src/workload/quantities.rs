//! Measured quantities of a group of flows: names, directions, and which direction is the worse.
//!
//! Where a quantity is measured in both directions they are never mixed: a direction that carries
//! nothing must not be averaged with one that carries everything. The tables contain both, the
//! worse first.

use aqmlab_core::Time;

use crate::endpoints::Direction;
use crate::network::probe::TimeSummary;
use crate::workload::app::{App, Tally};

/// Quantity measured for a group of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// Name in tables.
    pub name: &'static str,
    /// Direction in which it was measured; `None`: both, or the application.
    pub direction: Option<Direction>,
}

impl Quantity {
    /// Creates a quantity without a direction.
    pub fn of(name: &'static str) -> Self {
        Quantity { name, direction: None }
    }

    /// Creates the one-way delay of packets.
    pub fn delay(direction: Direction) -> Self {
        Quantity { name: "delay", direction: Some(direction) }
    }
}

/// Scores of which higher is better; for all others lower is better.
const MORE_IS_BETTER: [&str; 2] = ["mos", "r_factor"];

/// Scores of applications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Sum and count by quantity.
    sums: Vec<(Quantity, f64, f64)>,
    /// Number of players that never started.
    pub never_started: u64,
}

impl Scores {
    /// Adds the scores that an application reports at `now`.
    pub fn add(&mut self, app: &dyn App, now: Time) {
        let direction = app.direction();
        self.never_started += u64::from(!app.has_begun());
        app.report(now, &mut |name, value| self.add_one(Quantity { name, direction }, value));
    }

    /// Adds the scores that an application reports for a tally.
    pub(crate) fn add_tally(&mut self, app: &dyn App, tally: Tally) {
        let direction = app.direction();
        app.score(tally, &mut |name, value| self.add_one(Quantity { name, direction }, value));
    }

    fn add_one(&mut self, quantity: Quantity, value: f64) {
        match self.sums.iter_mut().find(|(known, ..)| *known == quantity) {
            Some((_, sum, count)) => {
                *sum += value;
                *count += 1.0;
            }
            None => self.sums.push((quantity, value, 1.0)),
        }
    }

    /// Removes all scores.
    pub fn clear(&mut self) {
        *self = Scores::default();
    }

    /// Returns means over the applications; for a quantity with two directions, the worse is first.
    pub fn means(&self) -> Vec<(Quantity, f64)> {
        let means = self.sums.iter().map(|(quantity, sum, count)| (*quantity, sum / count));
        let mut means: Vec<_> = means.collect();
        worse_first(&mut means, |quantity, mean| {
            if MORE_IS_BETTER.contains(&quantity.name) { -mean } else { *mean }
        });
        means
    }
}

/// Orders the directions of a quantity by descending mean; a direction without arrivals is first.
pub fn worse_times_first(times: &mut [(Quantity, TimeSummary)]) {
    worse_first(times, |_, times| if times.count == 0 { f64::INFINITY } else { times.mean });
}

/// Sorts by the first place of each name, then by descending badness.
fn worse_first<T>(rows: &mut [(Quantity, T)], badness: impl Fn(&Quantity, &T) -> f64) {
    let names: Vec<&str> = rows.iter().map(|(quantity, _)| quantity.name).collect();
    let place = |quantity: &Quantity| names.iter().position(|name| *name == quantity.name);
    rows.sort_by(|(one, first), (other, second)| {
        let by_badness = badness(other, second).total_cmp(&badness(one, first));
        place(one).cmp(&place(other)).then(by_badness)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct ByDirection(Direction, &'static [(&'static str, f64)]);

    impl App for ByDirection {
        fn start(&mut self, _cx: &mut crate::workload::app::Context) {}
        fn report(&self, _now: Time, see: &mut dyn FnMut(&'static str, f64)) {
            self.1.iter().for_each(|(name, value)| see(name, *value));
        }
        fn direction(&self) -> Option<Direction> {
            Some(self.0)
        }
    }

    #[test]
    fn directions_are_not_averaged_and_the_worse_is_first() {
        let mut scores = Scores::default();
        for side in [
            ByDirection(Direction::Forward, &[("mos", 4.4), ("late", 0.0)]),
            ByDirection(Direction::Backward, &[("mos", 1.0), ("late", 0.7)]),
            ByDirection(Direction::Forward, &[("mos", 4.2), ("late", 0.2)]),
        ] {
            scores.add(&side, Time::ZERO);
        }
        let of = |name, direction| Quantity { name, direction: Some(direction) };
        let expected = [
            (of("mos", Direction::Backward), 1.0),
            (of("mos", Direction::Forward), 4.3),
            (of("late", Direction::Backward), 0.7),
            (of("late", Direction::Forward), 0.1),
        ];
        let means = scores.means();
        assert_eq!(means.len(), expected.len());
        for ((quantity, mean), (of, value)) in means.iter().zip(expected) {
            assert_eq!(*quantity, of);
            assert!((mean - value).abs() < 1e-12, "{quantity:?}: {mean}");
        }
    }

    #[test]
    fn a_direction_in_which_nothing_arrives_is_the_worst() {
        let some = TimeSummary { count: 2, mean: 9.0, ..TimeSummary::default() };
        let none = TimeSummary { mean: f64::NAN, ..TimeSummary::default() };
        let rtt = Quantity { name: "rtt", direction: None };
        let mut times = vec![
            (Quantity::delay(Direction::Forward), some.clone()),
            (rtt, some),
            (Quantity::delay(Direction::Backward), none),
        ];
        worse_times_first(&mut times);
        let order: Vec<Quantity> = times.iter().map(|(quantity, _)| *quantity).collect();
        let [forward, reverse] = Direction::ALL.map(Quantity::delay);
        assert_eq!(order, [reverse, forward, rtt]);
    }
}
