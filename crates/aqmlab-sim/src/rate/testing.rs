//! Moments of measured values, for tests.

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    covariance(values, 0).sqrt()
}

/// Returns the autocorrelation at a distance.
pub(crate) fn autocorrelation(values: &[f64], distance: usize) -> f64 {
    covariance(values, distance) / covariance(values, 0)
}

fn covariance(values: &[f64], distance: usize) -> f64 {
    let mean = mean(values);
    let pairs = values.iter().zip(&values[distance..]);
    pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / values.len() as f64
}
