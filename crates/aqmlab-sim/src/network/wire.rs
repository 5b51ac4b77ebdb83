//! Transmitters of a link: with constant rate, with variable rate, or with grants of bytes at
//! certain times.

use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Framing, Packet, Rate, Span, Stream, Time};

use super::MAX_PACKET;
use super::config::LinkConfig;
use crate::rate::RateSource;
use crate::rate::course::{Course, CourseMeter, CourseTransmitter};
use crate::rate::grants::{Grants, GrantsMeter};
use crate::rate::schedule::Schedule;

/// Computes the ends of transmissions without accumulating rounding errors.
///
/// Within a busy period, the end of the n-th packet is the start of the period plus all bits so far
/// divided by the rate, rounded down once: the remainder of each division is carried over to the
/// next packet.
#[derive(Clone)]
pub(crate) struct RateClock {
    rate: u64,
    /// Capacity before the last change of the rate.
    before: Offered,
    remainder: u64,
    /// Last size, its duration, and the remainder of that division: most packets have the same
    /// size, and a division is slower than everything else here.
    last: (u32, u64, u64),
}

impl RateClock {
    pub fn new(rate: Rate) -> Self {
        RateClock { rate: rate.as_bps(), before: Offered::default(), remainder: 0, last: (0, 0, 0) }
    }
    /// Changes the rate of transmissions from `time` on.
    pub fn set_rate(&mut self, time: Time, rate: Rate) {
        let last = if time > self.before.until { self.rate } else { self.before.rate };
        let before = Offered { bits: self.offered(time), until: time, rate: last };
        *self = RateClock { before, ..Self::new(rate) };
    }
    /// Returns the bits offered from the start of the run to `end`.
    fn offered(&self, end: Time) -> f64 {
        let Offered { bits, until, rate } = self.before;
        match end >= until {
            true => bits + self.rate as f64 * (end - until).as_secs_f64(),
            false => bits - rate as f64 * (until - end).as_secs_f64(),
        }
    }
    /// Returns the transmission time of the next `bytes`, from the end of the previous packet.
    #[inline]
    pub fn transmit(&mut self, bytes: u32) -> Span {
        // A packet may be larger on the wire.
        debug_assert!(u64::from(bytes) <= 2 * MAX_PACKET);
        if bytes != self.last.0 {
            let scaled = u64::from(bytes) * 8 * NANOS_PER_SEC;
            self.last = (bytes, scaled / self.rate, scaled % self.rate);
        }
        let (_, nanos, remainder) = self.last;
        // Both remainders are less than the rate.
        let sum = remainder + self.remainder;
        let carry = sum >= self.rate;
        self.remainder = if carry { sum - self.rate } else { sum };
        Span::from_nanos(nanos + u64::from(carry))
    }
}

/// Wire with a variable rate, or with framing overhead.
#[derive(Clone)]
pub(crate) struct CourseWire {
    transmitter: CourseTransmitter,
    framing: Framing,
    /// Meter at the start of the run.
    meter: CourseMeter,
    /// Packet whose transmission never ends.
    stuck: Option<Packet>,
}

impl CourseWire {
    /// Returns the end of the transmission of the next packet, of this size; `None`: never.
    #[inline(never)]
    pub fn transmit(&mut self, size: u32) -> Option<Time> {
        self.transmitter.transmit(self.framing.wire_size(size))
    }

    /// Changes the rate from `time` on; the rate must not be random.
    pub fn set_rate(&mut self, time: Time, rate: Rate) {
        if let Some(course) = self.meter.course.with_rate_from(time, rate.as_bps()) {
            self.meter = CourseMeter::new(course.clone());
            self.transmitter.course = course;
        }
    }

    /// Returns the bits used by packets up to `now`, including part of a transmission in progress.
    fn used_bits(&self, now: Time, until: Option<Time>) -> f64 {
        let sent = self.transmitter.sent_bits(self.stuck.is_none()) as f64;
        let mut meter = self.meter.clone();
        let offered = meter.until(now);
        let later = until.filter(|until| *until > now).map_or(offered, |until| meter.until(until));
        sent - (later - offered) as f64 / NANOS_PER_SEC as f64
    }
}

/// Wire that sends when granted.
#[derive(Clone)]
pub(crate) struct GrantWire {
    pub grants: Grants,
    pub framing: Framing,
    /// Partly sent packet, with the number of remaining bytes.
    pub sending: Option<(Packet, u64)>,
    /// Bytes sent.
    pub used: u64,
    /// Meter at the start of the run.
    meter: GrantsMeter,
}

/// Transmitter of a link.
#[derive(Clone)]
pub(crate) enum Wire {
    Constant(RateClock),
    Course(Box<CourseWire>),
    Grants(Box<GrantWire>),
}

impl Wire {
    /// Creates the wire for a run that ends at `end`.
    pub fn new(link: &LinkConfig, stream: Stream, end: Time) -> Self {
        let framing = link.framing;
        let course = match link.process.source(stream, end) {
            RateSource::Constant(rate) if framing == Framing::NONE => {
                return Wire::Constant(RateClock::new(rate));
            }
            RateSource::Constant(rate) => {
                Course::Schedule(Schedule::new(vec![(Span::ZERO, rate.as_bps())], false))
            }
            RateSource::Course(course) => course,
            RateSource::Grants(grants) => {
                return Wire::Grants(Box::new(GrantWire {
                    meter: GrantsMeter::new(grants.clone()),
                    grants,
                    framing,
                    sending: None,
                    used: 0,
                }));
            }
        };
        Wire::Course(Box::new(CourseWire {
            meter: CourseMeter::new(course.clone()),
            transmitter: CourseTransmitter::new(course, end),
            framing,
            stuck: None,
        }))
    }

    /// Keeps a packet whose transmission never ends.
    #[cold]
    pub fn keep(&mut self, packet: Packet) {
        match self {
            Wire::Course(wire) => wire.stuck = Some(packet),
            Wire::Constant(_) | Wire::Grants(_) => unreachable!("its transmissions end"),
        }
    }

    /// Starts a new busy period of an idle link.
    #[inline]
    pub fn restart(&mut self, now: Time) {
        match self {
            Wire::Constant(clock) => clock.remainder = 0,
            Wire::Course(wire) => wire.transmitter.restart(now),
            Wire::Grants(_) => {}
        }
    }

    /// Returns a meter of the offered bits from the start of the run.
    pub fn capacity(&self) -> Capacity {
        Capacity(match self {
            Wire::Constant(clock) => Offer::Constant(clock.clone()),
            Wire::Course(wire) => Offer::Course(wire.meter.clone()),
            Wire::Grants(wire) => Offer::Grants(wire.meter.clone()),
        })
    }

    /// Returns the bits used by packets up to `now`, if they are counted; `until` is the end of the
    /// transmission in progress.
    pub fn used_bits(&self, now: Time, until: Option<Time>) -> f64 {
        match self {
            Wire::Constant(_) => 0.0,
            Wire::Course(wire) => wire.used_bits(now, until),
            Wire::Grants(wire) => wire.used as f64 * 8.0,
        }
    }

    /// Returns the packet that grants have sent partly, or whose transmission never ends.
    pub fn unfinished(&self) -> Option<&Packet> {
        match self {
            Wire::Constant(_) => None,
            Wire::Course(wire) => wire.stuck.as_ref(),
            Wire::Grants(wire) => wire.sending.as_ref().map(|(packet, _)| packet),
        }
    }
}

/// Bits offered by a wire of constant rate before a change of the rate.
#[derive(Clone, Copy, Default)]
struct Offered {
    /// Bits up to `until`, the end of the transmission during the change.
    bits: f64,
    until: Time,
    /// Rate in bit/s before the change.
    rate: u64,
}

/// Meter of the bits offered by a wire.
#[derive(Clone)]
pub struct Capacity(Offer);

#[derive(Clone)]
enum Offer {
    Constant(RateClock),
    Course(CourseMeter),
    Grants(GrantsMeter),
}

impl Capacity {
    /// Returns the bytes offered from the start of the run to `end`. Times must not decrease.
    pub fn bytes(&mut self, end: Time) -> f64 {
        let is_constant = matches!(self.0, Offer::Constant(_));
        self.bits(if is_constant { end } else { end + Span::from_nanos(1) }) / 8.0
    }

    /// Returns the bits offered before `time`. Times must not decrease.
    pub(crate) fn bits(&mut self, time: Time) -> f64 {
        match &mut self.0 {
            Offer::Constant(clock) => clock.offered(time),
            Offer::Course(meter) => meter.until(time) as f64 / NANOS_PER_SEC as f64,
            Offer::Grants(meter) => meter.before(time) as f64 * 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the end of n packets of the given sizes, computed with one division.
    fn exact_end(rate: u64, bytes: u128) -> u64 {
        (bytes * 8 * u128::from(NANOS_PER_SEC) / u128::from(rate)) as u64
    }

    proptest! {
        /// Over a long busy period at odd rates, no time is lost to rounding.
        #[test]
        fn the_rate_is_exact_over_any_time(
            rate in prop_oneof![
                Just(1_700), Just(399_900_000_000), Just(1_000), Just(400_000_000_000), 1u64..1_000_000_000_000,
            ],
            sizes in prop::collection::vec(1u32..65_536, 1..50),
            rounds in 1u64..2_000,
        ) {
            let mut transmitter = RateClock::new(Rate::from_bps(rate));
            let (mut end, mut bytes) = (0u64, 0u128);
            for _ in 0..rounds {
                for size in &sizes {
                    end += transmitter.transmit(*size).as_nanos();
                    bytes += u128::from(*size);
                    if end > u64::MAX / 4 { return Ok(()); }
                }
                prop_assert_eq!(end, exact_end(rate, bytes));
            }
        }
    }
}
