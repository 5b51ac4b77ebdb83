//! Rates, sizes and queue limits, with the text forms of `tc`.

use crate::math;
use core::fmt;

use crate::time::{NANOS_PER_SEC, Span};

/// Bits per second; never zero once it has been read from a scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rate(u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Bytes(u64);

/// Capacity of a queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// Packets of any size.
    Packets(u64),
    /// A number of bytes.
    Bytes(Bytes),
    /// A multiple of the bandwidth-delay product of the link and its flows.
    Bdp(f64),
    /// No limit.
    Unlimited,
}

impl Rate {
    /// A rate of `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Self {
        Rate(bits)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Bytes per second.
    pub fn as_bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// The time that `bytes` occupy a link of this rate, to the nanosecond
    /// below. (Links carry the remainder along, see `aqmlab-sim`.)
    pub fn transmission_time(self, bytes: Bytes) -> Span {
        let nanos = u128::from(bytes.0) * 8 * u128::from(NANOS_PER_SEC) / u128::from(self.0);
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
    /// The bytes that pass in `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes =
            u128::from(self.0) * u128::from(span.as_nanos()) / (8 * u128::from(NANOS_PER_SEC));
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Bytes(bytes)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Limit {
    /// The same limit with a bandwidth-delay product turned into bytes, for
    /// a link of `rate` under flows whose base round-trip time is `rtt`.
    /// At least one full packet of 1514 bytes always fits.
    pub fn resolve(self, rate: Rate, rtt: Span) -> Limit {
        match self {
            Limit::Bdp(multiple) => {
                let bdp = rate.bytes_in(rtt).get() as f64 * multiple;
                Limit::Bytes(Bytes::new((math::round(bdp) as u64).max(1514)))
            }
            other => other,
        }
    }
    /// Whether a queue that holds `packets` packets of `bytes` bytes in all
    /// has room for one more of `size` bytes.
    ///
    /// An unresolved [`Limit::Bdp`] has no room: it must be resolved first.
    #[inline]
    pub fn admits(self, packets: u64, bytes: u64, size: u64) -> bool {
        match self {
            Limit::Packets(limit) => packets < limit,
            Limit::Bytes(limit) => bytes + size <= limit.0,
            Limit::Bdp(_) => false,
            Limit::Unlimited => true,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0;
        for (unit, name) in [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")] {
            let value = bps as f64 / unit as f64;
            // Petabits a second have more digits than a number that is read.
            if bps >= unit && math::round(value * unit as f64) as u64 == bps {
                return write!(f, "{value}{name}");
            }
        }
        write!(f, "{bps}bit")
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}b", self.0)
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(packets) => write!(f, "{packets}p"),
            Limit::Bytes(bytes) => write!(f, "{bytes}"),
            Limit::Bdp(multiple) => write!(f, "{multiple}bdp"),
            Limit::Unlimited => f.write_str("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_takes_6_ms_at_2_mbit() {
        let rate = Rate::from_bps(2_000_000);
        assert_eq!(rate.transmission_time(Bytes::new(1500)), Span::from_millis(6));
        assert_eq!(rate.bytes_in(Span::from_millis(60)), Bytes::new(15_000));
    }

    #[test]
    fn the_text_of_a_rate_has_all_digits() {
        let text = |bps| Rate::from_bps(bps).to_string();
        assert_eq!(text(12_500_000), "12.5mbit");
        assert_eq!(text(399_900_000_001), "399.900000001gbit");
        assert_eq!(text(8_409_851_653_338_811), "8409851653.338811mbit");
    }

    #[test]
    fn limits_count_what_they_name() {
        assert!(Limit::Packets(2).admits(1, 3000, 1500));
        assert!(!Limit::Packets(2).admits(2, 80, 40));
        assert!(Limit::Bytes(Bytes::new(3000)).admits(1, 1500, 1500));
        assert!(!Limit::Bytes(Bytes::new(3000)).admits(1, 1501, 1500));
        let bdp = Limit::Bdp(2.0).resolve(Rate::from_bps(10_000_000), Span::from_millis(100));
        assert_eq!(bdp, Limit::Bytes(Bytes::new(250_000)));
    }
}
