//! Histogram of times, of constant size and exact to 0.1 %.
//!
//! Each number of nanoseconds below 2048 has a bucket. Above, every power of two has 1024 buckets of
//! equal width, at most a thousandth of the values in them. The buckets are those of HdrHistogram
//! with three significant digits, and the same in all histograms: counts can be added and
//! subtracted.

use aqmlab_core::Span;

/// Buckets per power of two.
const EACH: u64 = 1024;

/// Counts by bucket, in pages of `EACH` buckets. Most times of a run are of a few powers of two:
/// pages without any are not there, so that copies (of snapshots) and sums have little to do.
#[derive(Clone)]
struct Counts {
    /// First index of each page in `counts`; far beyond its end if it is not there.
    starts: [u32; 64],
    counts: Vec<u64>,
}

impl Counts {
    const fn new() -> Self {
        Counts { starts: [u32::MAX / 2; 64], counts: Vec::new() }
    }

    /// Returns the count of a bucket, to change it.
    #[inline(always)]
    fn at(&mut self, bucket: usize) -> &mut u64 {
        let (page, place) = (bucket / EACH as usize % 64, bucket % EACH as usize);
        let mut at = self.starts[page] as usize + place;
        if at >= self.counts.len() {
            at = self.make(page) + place;
        }
        &mut self.counts[at]
    }

    /// Adds a page of zeros, and returns where it begins.
    #[cold]
    fn make(&mut self, page: usize) -> usize {
        let start = self.counts.len();
        self.counts.reserve_exact(EACH as usize);
        self.counts.resize(start + EACH as usize, 0);
        self.starts[page] = start as u32;
        start
    }

    /// Returns buckets, in order, with their counts; those without may be missing.
    fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let page = |(page, start): (usize, &u32)| Some((page, self.counts.get(*start as usize..)?));
        let pages = self.starts.iter().enumerate().filter_map(page);
        pages.flat_map(|(page, counts)| {
            (page * EACH as usize..).zip(counts.iter().copied()).take(EACH as usize)
        })
    }

    /// Returns the number of nanoseconds that the share `quantile` of `total` times does not exceed,
    /// as the largest of its bucket.
    fn quantile(&self, total: u64, quantile: f64) -> u64 {
        let rank = ((quantile * total as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let reached = self.iter().find(|(_, count)| {
            sum += count;
            sum >= rank
        });
        reached.map_or(0, |(bucket, _)| TimeHistogram::upper(bucket))
    }
}

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
    counts: Counts,
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
        TimeHistogram { counts: Counts::new(), total: 0, sum: 0, min: Span::MAX, max: Span::ZERO }
    }

    /// Returns the bucket of a value.
    #[inline(always)]
    fn bucket(value: u64) -> usize {
        let wider = (value | EACH).ilog2() - EACH.ilog2();
        (u64::from(wider) * EACH + (value >> wider)) as usize
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
        *self.counts.at(Self::bucket(time.as_nanos())) += times;
        self.total += times;
    }

    /// Returns the number of times, and their sum in seconds.
    pub fn total(&self) -> (u64, f64) {
        (self.total, self.sum as f64 * 1e-9)
    }

    /// Adds the times of another histogram.
    pub fn add(&mut self, other: &TimeHistogram) {
        let more = other.counts.iter().filter(|(_, count)| *count > 0);
        more.for_each(|(bucket, count)| *self.counts.at(bucket) += count);
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
    fn counts_since(&self, before: &TimeHistogram) -> Option<(Counts, u64)> {
        let total = self.total.checked_sub(before.total)?;
        let mut counts = self.counts.clone();
        for (bucket, less) in before.counts.iter().filter(|(_, count)| *count > 0) {
            let count = counts.at(bucket);
            *count = count.checked_sub(less)?;
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
            let reached = |(counts, total): &(Counts, u64)| counts.quantile(*total, quantile);
            since.as_ref().map_or(f64::NAN, |since| reached(since) as f64 * 1e-9)
        })
    }

    /// Returns a quantile in seconds; NaN without times.
    pub fn quantile(&self, quantile: f64) -> f64 {
        match self.total {
            0 => f64::NAN,
            // The buckets give the upper end of one.
            total => {
                let reached = self.counts.quantile(total, quantile);
                reached.min(self.max.as_nanos()) as f64 * 1e-9
            }
        }
    }

    /// Returns summary statistics.
    pub fn summary(&self) -> TimeSummary {
        let counts = self.counts.iter().filter(|(_, count)| *count > 0);
        TimeSummary {
            count: self.total,
            mean: self.mean(),
            quantiles: QUANTILES.map(|quantile| self.quantile(quantile)),
            min: if self.total == 0 { Span::ZERO } else { self.min },
            max: self.max,
            buckets: counts.map(|(bucket, count)| (Self::upper(bucket), count)).collect(),
        }
    }
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
            let bucket = TimeHistogram::bucket(value);
            let upper = TimeHistogram::upper(bucket);
            prop_assert_eq!(TimeHistogram::bucket(upper), bucket);
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
            let measured = times.counts.quantile(times.total, quantile);
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
            let counted = |counts: &Counts| counts.iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
            prop_assert_eq!(counted(&counts), counted(&more.counts));
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
        let quantile = |of: f64| histogram.counts.quantile(histogram.total, of);
        assert_eq!((quantile(0.0), quantile(1.0)), (7, u64::MAX));
        assert_eq!(Counts::new().quantile(0, 0.5), 0);
    }
}
