//! Histogram of times, of constant size and exact to 0.1 %.
//!
//! Each number of nanoseconds below 2048 has a bucket. Above, every power of two has 1024 buckets of
//! equal width, at most a thousandth of the values in them. The buckets are those of HdrHistogram
//! with three significant digits, and the same in all histograms: counts can be added and
//! subtracted.

use aqmlab_core::Span;

/// Buckets per power of two.
const EACH: u64 = 1024;

/// Quantiles in a summary.
pub const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// Returns the name of a quantile: `p50`, `p99`, `p999`.
pub fn percentile(quantile: f64) -> String {
    format!("p{}", (quantile * 1000.0) / 10.0).replace('.', "")
}

/// Number, sum and maximum of times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeSum {
    /// Number of times.
    pub count: u64,
    /// Sum in nanoseconds.
    pub(crate) sum: u128,
    /// Longest time.
    pub max: Span,
}

impl TimeSum {
    /// Adds a time.
    pub(crate) fn add(&mut self, time: Span) {
        self.count += 1;
        self.sum += u128::from(time.as_nanos());
        self.max = self.max.max(time);
    }
    /// Returns the mean in seconds; NaN without times.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64 * 1e-9
    }
}

/// Summary of times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeSummary {
    /// Number of times.
    pub count: u64,
    /// Mean in seconds; NaN if there are no times, like the quantiles.
    pub mean: f64,
    /// Values at [`QUANTILES`], in seconds.
    pub quantiles: [f64; QUANTILES.len()],
    /// Shortest time; zero if there are no times.
    pub min: Span,
    /// Longest time.
    pub max: Span,
    /// Histogram: upper ends of buckets in nanoseconds, with counts. All runs have the same
    /// buckets, so histograms can be added; the width of a bucket is at most 0.1 % of its value.
    pub buckets: Vec<(u64, u64)>,
}

/// Histogram of times: sojourn times of sent packets, and others.
#[derive(Clone)]
pub struct TimeHistogram {
    /// Counts by bucket.
    counts: Vec<u64>,
    total: u64,
    pub(super) sum: u128,
    min: Span,
    max: Span,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl TimeHistogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        TimeHistogram { counts: Vec::new(), total: 0, sum: 0, min: Span::MAX, max: Span::ZERO }
    }

    /// Returns the bucket of a value, and the binary logarithm of the width of the bucket.
    #[inline(always)]
    fn bucket(value: u64) -> (usize, u32) {
        let wider = (value | EACH).ilog2() - EACH.ilog2();
        ((u64::from(wider) * EACH + (value >> wider)) as usize, wider)
    }

    /// Returns the largest value of a bucket.
    fn upper(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        let wider = (bucket / EACH).saturating_sub(1);
        (bucket - wider * EACH) << wider | ((1 << wider) - 1)
    }

    /// Records a time. Not inlined: for cold paths.
    #[inline(never)]
    pub fn note(&mut self, time: Span) {
        self.note_many(time, 1);
    }

    /// Records a time `times` times.
    #[inline(always)]
    pub fn note_many(&mut self, time: Span, times: u64) {
        self.sum += u128::from(time.as_nanos()) * u128::from(times);
        self.min = self.min.min(time);
        self.max = self.max.max(time);
        let (bucket, wider) = Self::bucket(time.as_nanos());
        if bucket >= self.counts.len() {
            self.grow(wider);
        }
        self.counts[bucket] += times;
        self.total += times;
    }

    /// Makes room for all values of this power of two.
    #[cold]
    fn grow(&mut self, wider: u32) {
        self.counts.resize(((u64::from(wider) + 2) * EACH) as usize, 0);
    }

    /// Returns the number of times, and their sum in seconds.
    pub fn total(&self) -> (u64, f64) {
        (self.total, self.sum as f64 * 1e-9)
    }

    /// Adds the times of another histogram.
    pub fn add(&mut self, other: &TimeHistogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the mean in seconds; NaN without times.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.total as f64 * 1e-9
    }

    /// Returns the longest time.
    pub fn max(&self) -> Span {
        self.max
    }

    /// Returns the counts since `before`, an earlier state, by bucket, and their sum; `None` if that
    /// is none.
    fn counts_since(&self, before: &TimeHistogram) -> Option<(Vec<u64>, u64)> {
        let total = self.total.checked_sub(before.total)?;
        if before.counts.iter().skip(self.counts.len()).any(|count| *count > 0) {
            return None;
        }
        let mut counts = self.counts.clone();
        for (count, less) in counts.iter_mut().zip(&before.counts) {
            *count = count.checked_sub(*less)?;
        }
        Some((counts, total))
    }

    /// Returns quantiles in seconds of the times recorded after `before`, an earlier state; NaN
    /// without any.
    pub fn quantiles_since<const N: usize>(
        &self,
        before: &TimeHistogram,
        asked: [f64; N],
    ) -> [f64; N] {
        let since = self.counts_since(before).filter(|(_, total)| *total > 0);
        asked.map(|quantile| {
            let reached = |(counts, total): &(Vec<u64>, u64)| quantile_of(counts, *total, quantile);
            since.as_ref().map_or(f64::NAN, |since| reached(since) as f64 * 1e-9)
        })
    }

    /// Returns a quantile in seconds; NaN without times.
    pub fn quantile(&self, quantile: f64) -> f64 {
        match self.total {
            0 => f64::NAN,
            // The buckets give the upper end of one.
            total => {
                let reached = quantile_of(&self.counts, total, quantile);
                reached.min(self.max.as_nanos()) as f64 * 1e-9
            }
        }
    }

    /// Returns summary statistics.
    pub fn summary(&self) -> TimeSummary {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        TimeSummary {
            count: self.total,
            mean: self.mean(),
            quantiles: QUANTILES.map(|quantile| self.quantile(quantile)),
            min: if self.total == 0 { Span::ZERO } else { self.min },
            max: self.max,
            buckets: counts.map(|(bucket, count)| (Self::upper(bucket), *count)).collect(),
        }
    }
}

/// Returns the number of nanoseconds that the share `quantile` of `total` times does not exceed, as
/// the largest of its bucket.
fn quantile_of(counts: &[u64], total: u64, quantile: f64) -> u64 {
    let rank = ((quantile * total as f64).ceil() as u64).max(1);
    let mut count = 0;
    let reached = counts.iter().position(|each| {
        count += each;
        count >= rank
    });
    reached.map_or(0, TimeHistogram::upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> TimeHistogram {
        let mut histogram = TimeHistogram::new();
        values.iter().for_each(|value| histogram.note(Span::from_nanos(*value)));
        histogram
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_and_is_narrow(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let (bucket, _) = TimeHistogram::bucket(value);
            let upper = TimeHistogram::upper(bucket);
            prop_assert_eq!(TimeHistogram::bucket(upper).0, bucket);
            prop_assert!(upper >= value && upper - value <= value / EACH);
            if bucket > 0 {
                prop_assert!(TimeHistogram::upper(bucket - 1) < value);
            }
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..100_000_000, 1..300), quantile in 0.0..1.0,
        ) {
            let times = of(&values);
            let measured = quantile_of(&times.counts, times.total, quantile);
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            let bucket = TimeHistogram::bucket;
            prop_assert_eq!(bucket(measured), bucket(values[rank - 1]));
        }

        #[test]
        fn what_is_added_can_be_subtracted(
            first in prop::collection::vec(any::<u64>(), 0..100),
            second in prop::collection::vec(0u64..1 << 40, 0..100),
        ) {
            let (before, more) = (of(&first), of(&second));
            let mut both = before.clone();
            both.add(&more);
            let (counts, total) = both.counts_since(&before).expect("it is an earlier state");
            prop_assert_eq!(&counts[..more.counts.len()], &more.counts);
            prop_assert!(counts[more.counts.len()..].iter().all(|count| *count == 0));
            prop_assert_eq!(total, second.len() as u64);
            prop_assert_eq!(more.counts_since(&both).is_none(), !first.is_empty());
        }
    }

    #[test]
    fn what_is_counted_many_times_is_in_one_bucket() {
        let mut histogram = of(&[7, 1 << 30, u64::MAX]);
        histogram.note_many(Span::from_nanos(7), 3);
        let last = (1 << 30) + (1 << 20) - 1;
        assert_eq!(histogram.summary().buckets, [(7, 4), (last, 1), (u64::MAX, 1)]);
        let quantile = |of: f64| quantile_of(&histogram.counts, histogram.total, of);
        assert_eq!((quantile(0.0), quantile(1.0)), (7, u64::MAX));
        assert_eq!(quantile_of(&[], 0, 0.5), 0);
    }
}
