//! Virtual time: [`Time`] is a moment, [`Span`] a length; both are integer
//! nanoseconds, so that sums are exact and results the same on any machine.
//! A [`Deadline`] is a moment or never, and nothing can be added to it.

use crate::math;
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A moment, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(u64);

/// A length of time in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// The end of all time. What may never come is a [`Deadline`] or an `Option`.
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }
    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// The time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A time at which something is due, or never. Never is later than any time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Time);

impl Deadline {
    /// Never due.
    pub const NEVER: Deadline = Deadline(Time::MAX);

    /// Due at `time`; never, if `time` is the largest one.
    pub const fn at(time: Time) -> Self {
        Deadline(time)
    }
    /// True if the deadline is never due.
    pub const fn is_never(self) -> bool {
        self.0.0 == Time::MAX.0
    }
    /// True if the deadline is due at or before `now`.
    pub const fn has_come(self, now: Time) -> bool {
        self.0.0 <= now.0 && !self.is_never()
    }
    /// The time, unless the deadline is never due.
    pub const fn time(self) -> Option<Time> {
        if self.is_never() { None } else { Some(self.0) }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const MAX: Span = Span(u64::MAX);

    /// A length of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }
    /// A length of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros * 1_000)
    }
    /// A length of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis * 1_000_000)
    }
    /// A length of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs * NANOS_PER_SEC)
    }
    /// The nearest whole number of nanoseconds to `secs`; negative and NaN
    /// give zero, too large ones [`Span::MAX`].
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates and maps NaN to 0: just what the contract says.
        Span(math::round(secs * NANOS_PER_SEC as f64) as u64)
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// So many times this long, to the nanosecond below; nothing for a
    /// negative factor.
    pub fn scaled(self, factor: f64) -> Span {
        Span((self.0 as f64 * factor) as u64)
    }
    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub for Time {
    type Output = Span;
    /// The time between two moments. Panics in debug builds if `earlier` is
    /// later: see [`Time::saturating_since`].
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Span {
    type Output = Span;
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

impl fmt::Display for Span {
    /// The shortest `tc` form that says the same: `5ms`, `100us`, `1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0;
        if nanos >= NANOS_PER_SEC || nanos == 0 {
            write!(f, "{}s", nanos as f64 / 1e9)
        } else if nanos >= 1_000_000 {
            write!(f, "{}ms", nanos as f64 / 1e6)
        } else if nanos >= 1_000 {
            write!(f, "{}us", nanos as f64 / 1e3)
        } else {
            write!(f, "{nanos}ns")
        }
    }
}
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time() {
            Some(time) => fmt::Debug::fmt(&time, f),
            None => f.write_str("never"),
        }
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", Span(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_prints_in_the_unit_that_suits_it() {
        for (span, text) in [
            (Span::from_millis(5), "5ms"),
            (Span::from_micros(1500), "1.5ms"),
            (Span::from_secs(3), "3s"),
            (Span::from_nanos(42), "42ns"),
            (Span::ZERO, "0s"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn never_does_not_come() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let deadline = Deadline::at(at(3));
        assert_eq!(deadline.min(Deadline::NEVER), deadline);
        assert_eq!((deadline.time(), Deadline::NEVER.time()), (Some(at(3)), None));
        assert!(deadline.has_come(at(3)) && !deadline.has_come(at(2)));
        assert!(!Deadline::NEVER.has_come(Time::MAX), "not even at the end of all time");
        assert!(Deadline::at(at(3) + Span::MAX).is_never());
        assert_eq!(std::format!("{deadline:?} {:?}", Deadline::NEVER), "@3ms never");
    }

    #[test]
    fn conversions_saturate_instead_of_wrapping() {
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(1e30), Span::MAX);
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO.saturating_since(Time::from_nanos(7)), Span::ZERO);
    }
}
