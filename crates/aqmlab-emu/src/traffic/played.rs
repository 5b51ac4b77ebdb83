//! Results of a group's applications.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use aqmlab_core::Span;
use aqmlab_sim::endpoints::Direction;
use aqmlab_sim::network::probe::{QUANTILES, TimeSummary};
use aqmlab_sim::workload::quantities::Quantity;

use super::flow_stats::{Reader, StatsWriter};

/// Counts, times and scores of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    /// Flows, requests or other items counted by the workload.
    pub started: u64,
    pub completed: u64,
    pub bytes: u64,
    pub times: Vec<(Quantity, TimeSummary)>,
    pub scores: Vec<(Quantity, f64)>,
}

/// Returns a copy of the text that is never freed; few exist.
fn lasting(text: String) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(text.as_str()) {
        return found;
    }
    let text: &'static str = Box::leak(text.into_boxed_str());
    known.insert(text);
    text
}

impl Played {
    pub fn write(&self, words: &mut StatsWriter) {
        [self.started, self.completed, self.bytes]
            .into_iter()
            .for_each(|count| words.number(count));
        words.number(self.times.len() as u64);
        for (quantity, times) in &self.times {
            write_quantity(quantity, words);
            let TimeSummary { count, mean, quantiles, min, max, buckets } = times;
            words.number(*count);
            words.number(mean.to_bits());
            quantiles.iter().for_each(|value| words.number(value.to_bits()));
            words.number(min.as_nanos());
            words.number(max.as_nanos());
            words.list(&buckets.iter().map(|(end, _)| *end).collect::<Vec<_>>());
            words.list(&buckets.iter().map(|(_, count)| *count).collect::<Vec<_>>());
        }
        words.number(self.scores.len() as u64);
        for (quantity, value) in &self.scores {
            write_quantity(quantity, words);
            words.number(value.to_bits());
        }
    }

    pub fn read(words: &mut Reader<'_>) -> Self {
        let [started, completed, bytes] = [(); 3].map(|()| words.number());
        let times = (0..words.number()).map(|_| (read_quantity(words), read_times(words)));
        let times = times.collect();
        let score = |words: &mut Reader<'_>| {
            let quantity = read_quantity(words);
            (quantity, f64::from_bits(words.number()))
        };
        let scores = (0..words.number()).map(|_| score(words)).collect();
        Played { started, completed, bytes, times, scores }
    }
}

fn write_quantity(quantity: &Quantity, words: &mut StatsWriter) {
    words.text(quantity.name);
    words.number(quantity.direction.map_or(u64::MAX, |direction| direction as u64));
}

fn read_quantity(words: &mut Reader<'_>) -> Quantity {
    let name = lasting(words.text());
    let direction = Direction::ALL.get(words.number() as usize).copied();
    Quantity { name, direction }
}

fn read_times(words: &mut Reader<'_>) -> TimeSummary {
    let (count, mean) = (words.number(), f64::from_bits(words.number()));
    let quantiles = [(); QUANTILES.len()].map(|()| f64::from_bits(words.number()));
    let [min, max] = [(); 2].map(|()| Span::from_nanos(words.number()));
    let ends = words.list();
    let buckets = ends.into_iter().zip(words.list()).collect();
    TimeSummary { count, mean, quantiles, min, max, buckets }
}
