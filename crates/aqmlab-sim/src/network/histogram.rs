//! Histogram of constant size, exact to 0.1 %.
//!
//! Each number below 2048 has a bucket. Above, every power of two has 1024 buckets of equal width,
//! at most a thousandth of the values in them. The buckets are those of HdrHistogram with three
//! significant digits, and the same in all histograms: counts can be added and subtracted.

/// Buckets per power of two.
const EACH: u64 = 1024;

/// Counts by bucket.
#[derive(Clone, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
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

    /// Counts a value once.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a value `times` times.
    #[inline(always)]
    pub fn record_many(&mut self, value: u64, times: u64) {
        let (bucket, wider) = Self::bucket(value);
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

    /// Returns the number of counted values.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
    }

    /// Returns the counts since `before`, an earlier state; `None` if that is none.
    pub fn since(&self, before: &Histogram) -> Option<Histogram> {
        let mut since = self.clone();
        since.total = since.total.checked_sub(before.total)?;
        if before.counts.iter().skip(since.counts.len()).any(|count| *count > 0) {
            return None;
        }
        for (count, less) in since.counts.iter_mut().zip(&before.counts) {
            *count = count.checked_sub(*less)?;
        }
        Some(since)
    }

    /// Returns the value that the share `quantile` of all values does not exceed, as the largest
    /// of its bucket; 0 without values.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.total as f64).ceil() as u64).max(1);
        let mut count = 0;
        let reached = self.counts.iter().position(|each| {
            count += each;
            count >= rank
        });
        reached.map_or(0, Self::upper)
    }

    /// Returns the largest value and the count of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (Self::upper(bucket), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_and_is_narrow(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let (bucket, _) = Histogram::bucket(value);
            let upper = Histogram::upper(bucket);
            prop_assert_eq!(Histogram::bucket(upper).0, bucket);
            prop_assert!(upper >= value && upper - value <= value / EACH);
            if bucket > 0 {
                prop_assert!(Histogram::upper(bucket - 1) < value);
            }
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..100_000_000, 1..300), quantile in 0.0..1.0,
        ) {
            let measured = of(&values).quantile(quantile);
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            prop_assert_eq!(Histogram::bucket(measured), Histogram::bucket(values[rank - 1]));
        }

        #[test]
        fn what_is_added_can_be_subtracted(
            first in prop::collection::vec(any::<u64>(), 0..100),
            second in prop::collection::vec(0u64..1 << 40, 0..100),
        ) {
            let (before, more) = (of(&first), of(&second));
            let mut both = before.clone();
            both.add(&more);
            let since = both.since(&before).expect("it is an earlier state");
            prop_assert!(since.buckets().eq(more.buckets()));
            prop_assert_eq!(since.len(), second.len() as u64);
            prop_assert_eq!(more.since(&both).is_none(), !first.is_empty());
        }
    }

    #[test]
    fn what_is_counted_many_times_is_in_one_bucket() {
        let mut histogram = of(&[7, 1 << 30, u64::MAX]);
        histogram.record_many(7, 3);
        let last = (1 << 30) + (1 << 20) - 1;
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(7, 4), (last, 1), (u64::MAX, 1)]);
        assert_eq!((histogram.quantile(0.0), histogram.quantile(1.0)), (7, u64::MAX));
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
