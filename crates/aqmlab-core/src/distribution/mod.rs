//! Distributions of sizes, times and numbers, in one form for all places.
//!
//! In a scenario a distribution is a value (always that), a table or a text:
//!
//! ```toml
//! size = "10kb"
//! size = { pareto = { shape = 1.5, mean = "10kb", cap = "5mb" } }
//! size = "pareto(shape=1.5, mean=10kb, cap=5mb)"
//! ```
//!
//! | Law | Arguments |
//! |---|---|
//! | `constant` | the value |
//! | `uniform` | the two ends |
//! | `exponential` | the mean |
//! | `pareto` | `shape`, and `mean` or `scale` (the least value); `cap` |
//! | `lognormal` | `sigma`, and `mean` or `median`; `cap` |
//! | `weibull` | `shape`, and `mean` or `scale`; `cap` |
//! | `extreme` | `location` and `scale` (Gumbel's, of the largest value); `cap` |
//! | `cdf` | values with the probability up to each, rising to 1 |
//! | `list` | values, taken in turn |
//!
//! # Sources
//! Devroye, Non-Uniform Random Variate Generation (1986), chapter II
//! (inversion); Gumbel, Statistics of Extremes (1958): exp(-exp(-(x - a)/b)).
//!
//! # Differences
//! 1. A `cap` cuts: what would be larger is the cap. `mean` is that without
//!    the cap.
//! 2. Between the points of a `cdf` the quantiles lie on straight lines; below
//!    the first there is nothing, so its probability is that of its value.

use alloc::{format, string::String, vec::Vec};

mod text;

use core::fmt;
use core::marker::PhantomData;

use crate::error::{Error, Result};
use crate::params::{ParamType, read_fractional_bytes, read_value};
use crate::quantity::Bytes;
use crate::random::Stream;
use crate::time::Span;
use crate::value::Value;

/// Quantities that a distribution can have.
pub trait Measure: ParamType + Copy {
    /// Converts to the base unit: bytes, nanoseconds.
    fn to_base(self) -> f64;
    /// Returns the nearest value.
    fn of_base(base: f64) -> Self;
    /// Reads a measure of spread in the base unit; it may be fractional.
    ///
    /// # Errors
    /// Returns an error if `value` is not a measure of spread.
    fn read_spread(value: &Value) -> Result<f64> {
        read_value::<Self>(value).map(Self::to_base)
    }
    /// The text of a measure of spread, which reads back as the same.
    fn spread_to_text(base: f64) -> String {
        Self::of_base(base).to_text()
    }
}

impl Measure for Bytes {
    fn read_spread(value: &Value) -> Result<f64> {
        let bytes = read_fractional_bytes(value);
        bytes.ok_or_else(|| Error::not_allowed(value, Bytes::allowed()))
    }
    fn spread_to_text(base: f64) -> String {
        format!("{base}b")
    }
    fn to_base(self) -> f64 {
        self.get() as f64
    }
    fn of_base(base: f64) -> Self {
        Bytes::new(libm::round(base) as u64)
    }
}
impl Measure for Span {
    fn to_base(self) -> f64 {
        self.as_nanos() as f64
    }
    fn of_base(base: f64) -> Self {
        Span::from_nanos(libm::round(base) as u64)
    }
}
impl Measure for u64 {
    fn to_base(self) -> f64 {
        self as f64
    }
    fn of_base(base: f64) -> Self {
        libm::round(base) as u64
    }
}
impl Measure for f64 {
    fn to_base(self) -> f64 {
        self
    }
    fn of_base(base: f64) -> Self {
        base
    }
}

/// A law, its arguments in the base unit.
#[derive(Clone, PartialEq, Debug)]
enum Law {
    Constant(f64),
    Uniform(f64, f64),
    Exponential(f64),
    Pareto { shape: f64, scale: f64 },
    LogNormal { median: f64, sigma: f64 },
    Weibull { shape: f64, scale: f64 },
    Extreme { location: f64, scale: f64 },
    Cdf(Vec<(f64, f64)>),
    List(Vec<f64>),
}

/// A distribution of `T`.
#[derive(Clone, PartialEq)]
pub struct Distribution<T> {
    law: Law,
    cap: Option<f64>,
    /// The text as written; it reads back as the same distribution.
    text: String,
    of: PhantomData<T>,
}

impl<T: Measure> Distribution<T> {
    /// Always this value.
    pub fn constant(value: T) -> Self {
        Self::new(Law::Constant(value.to_base()), None, value.to_text())
    }

    /// Exponential with this mean.
    pub fn exponential(mean: T) -> Self {
        Self::new(
            Law::Exponential(mean.to_base()),
            None,
            format!("exponential({})", mean.to_text()),
        )
    }

    /// Pareto's law with this shape, above 1, and this mean.
    pub fn pareto(shape: f64, mean: T) -> Self {
        let scale = mean.to_base() * (shape - 1.0) / shape;
        let text = format!("pareto(shape={shape}, mean={})", mean.to_text());
        Self::new(Law::Pareto { shape, scale }, None, text)
    }

    /// Reads a value, a table or a text.
    ///
    /// # Errors
    /// Returns an error that describes the allowed forms.
    pub fn parse(value: &Value) -> Result<Self> {
        text::parse(value)
    }

    fn new(law: Law, cap: Option<f64>, text: String) -> Self {
        Distribution { law, cap, text, of: PhantomData }
    }

    /// The mean in the base unit (bytes, nanoseconds), without the cap; infinite if the mean does
    /// not exist.
    pub fn mean(&self) -> f64 {
        match &self.law {
            Law::Constant(value) => *value,
            Law::Uniform(low, high) => (low + high) / 2.0,
            Law::Exponential(mean) => *mean,
            Law::Pareto { shape, .. } if *shape <= 1.0 => f64::INFINITY,
            Law::Pareto { shape, scale } => scale * shape / (shape - 1.0),
            Law::LogNormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
            Law::Weibull { shape, scale } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Law::Extreme { location, scale } => location + EULER * scale,
            Law::Cdf(points) => {
                let first = points[0].0 * points[0].1;
                let between = points.windows(2).map(|pair| {
                    let [(low, before), (high, after)] = [pair[0], pair[1]];
                    (low + high) / 2.0 * (after - before)
                });
                first + between.sum::<f64>()
            }
            Law::List(values) => values.iter().sum::<f64>() / values.len() as f64,
        }
    }

    /// The largest value in the base unit; the mean if the distribution has no largest value.
    pub fn ceiling(&self) -> f64 {
        let largest = match &self.law {
            Law::Constant(value) | Law::Uniform(_, value) => Some(*value),
            Law::Cdf(points) => points.last().map(|(value, _)| *value),
            Law::List(values) => values.iter().copied().reduce(f64::max),
            _ => None,
        };
        match (largest, self.cap) {
            (Some(value), Some(cap)) => value.min(cap),
            (value, cap) => value.or(cap).unwrap_or_else(|| self.mean()),
        }
    }

    /// A value in the base unit; `turn` counts the draws, for lists.
    fn draw(&self, stream: &mut Stream, turn: usize) -> f64 {
        let drawn = match &self.law {
            Law::Constant(value) => *value,
            Law::Uniform(low, high) => low + (high - low) * stream.uniform(),
            Law::Exponential(mean) => stream.exponential(*mean),
            // 1 - u lies in (0, 1]: all of these are finite.
            Law::Pareto { shape, scale } => scale * libm::pow(1.0 - stream.uniform(), -1.0 / shape),
            Law::LogNormal { median, sigma } => median * libm::exp(sigma * stream.normal()),
            Law::Weibull { shape, scale } => {
                scale * libm::pow(stream.exponential(1.0), 1.0 / shape)
            }
            // Of an exponential variable the logarithm; that of 0 there is not.
            Law::Extreme { location, scale } => {
                location - scale * libm::log(stream.exponential(1.0).max(1e-16))
            }
            Law::Cdf(points) => quantile(points, stream.uniform()),
            Law::List(values) => values[turn % values.len()],
        };
        self.cap.map_or(drawn, |cap| drawn.min(cap))
    }
}

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The value below which lies the share `p` of a piecewise linear law.
pub fn quantile(points: &[(f64, f64)], p: f64) -> f64 {
    let above = points.partition_point(|(_, up_to)| *up_to <= p);
    let Some(&(high, after)) = points.get(above) else { return points[points.len() - 1].0 };
    let Some(&(low, before)) = above.checked_sub(1).map(|below| &points[below]) else {
        return high;
    };
    low + (high - low) * (p - before) / (after - before)
}

/// Draws from the gamma distribution with this shape, at least 1, and scale 1: Marsaglia and
/// Tsang, A simple method for generating gamma variables (ACM TOMS 2000).
pub fn gamma(stream: &mut Stream, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = stream.normal();
        let root = 1.0 + c * x;
        let v = root * root * root;
        let u = 1.0 - stream.uniform();
        if v > 0.0 && libm::log(u) < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
            return d * v;
        }
    }
}

impl<T> fmt::Debug for Distribution<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: Measure> ParamType for Distribution<T> {
    const KIND: &'static str = "distribution";
    fn allowed() -> String {
        format!(
            "{}, or a distribution such as {{ exponential = ... }} or \
             {{ pareto = {{ shape = 1.5, mean = ... }} }} (constant, uniform, exponential, \
             pareto, lognormal, weibull, extreme, cdf, list)",
            T::allowed()
        )
    }
    fn read(value: &Value) -> Option<Self> {
        Self::parse(value).ok()
    }
    fn to_text(&self) -> String {
        self.text.clone()
    }
}

/// A distribution with the stream that its values are drawn from.
#[derive(Clone, Debug)]
pub struct Sampler<T> {
    distribution: Distribution<T>,
    stream: Stream,
    drawn: usize,
}

impl<T: Measure> Sampler<T> {
    /// Draws from `distribution` with `stream`.
    pub fn new(distribution: &Distribution<T>, stream: Stream) -> Self {
        Sampler { distribution: distribution.clone(), stream, drawn: 0 }
    }
    /// The next value.
    pub fn draw(&mut self) -> T {
        let drawn = self.distribution.draw(&mut self.stream, self.drawn);
        self.drawn = self.drawn.wrapping_add(1);
        T::of_base(drawn)
    }
}

/// A law that is not known.
fn unknown(name: &str) -> Error {
    let laws = [
        "constant",
        "uniform",
        "exponential",
        "pareto",
        "lognormal",
        "weibull",
        "extreme",
        "cdf",
        "list",
    ];
    Error::unknown("distribution", name, laws)
}

#[cfg(test)]
mod tests;
