//! What carries a link's packets: a transmitter of constant rate, one whose
//! rate follows a course, or grants of so many bytes at certain times.

use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Framing, Rate, Span, Stream, Time};

use super::MAX_PACKET;
use super::config::LinkConfig;
use crate::rate::Source;
use crate::rate::course::{Course, CourseMeter, CourseTransmitter};
use crate::rate::grants::{Grants, GrantsMeter};
use crate::rate::schedule::Schedule;

/// Computes when transmissions end, without rounding away any of the rate.
///
/// Within a busy period the end of the n-th packet is the start of the period
/// plus all bits so far divided by the rate, rounded down once: the remainder
/// of each division is carried to the next packet.
pub(crate) struct RateClock {
    rate: u64,
    remainder: u64,
    /// The size that came last, how long it takes, and the remainder of that division: most
    /// packets are of one size, and a division takes longer than all else here.
    last: (u32, u64, u64),
}

impl RateClock {
    pub fn new(rate: Rate) -> Self {
        RateClock { rate: rate.as_bps(), remainder: 0, last: (0, 0, 0) }
    }
    /// The link was idle: a new busy period begins.
    #[inline]
    pub fn restart(&mut self) {
        self.remainder = 0;
    }
    /// What is sent from now on takes another rate.
    pub fn set_rate(&mut self, rate: Rate) {
        *self = Self::new(rate);
    }
    /// How long the next `bytes` take, from the end of those before.
    #[inline]
    pub fn transmit(&mut self, bytes: u32) -> Span {
        // On the wire a packet may be larger than it is.
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

/// A wire with a course of rates, or one that adds to each packet.
pub(crate) struct CourseWire<P> {
    transmitter: CourseTransmitter,
    framing: Framing,
    /// At the start of the run.
    meter: CourseMeter,
    /// A packet whose transmission never ends.
    stuck: Option<P>,
}

impl<P> CourseWire<P> {
    /// When a packet of this size, the next, has been sent; `None` for never.
    #[inline(never)]
    pub fn transmit(&mut self, size: u32) -> Option<Time> {
        self.transmitter.transmit(self.framing.wire_size(size))
    }

    /// What is sent from `time` on takes another rate: of a wire whose rate follows no random
    /// course.
    pub fn set_rate(&mut self, time: Time, rate: Rate) {
        if let Some(course) = self.meter.course().with_rate_from(time, rate.as_bps()) {
            self.meter = CourseMeter::new(course.clone());
            self.transmitter.follow(course);
        }
    }

    /// The bits that packets used up to `now`: of a transmission that ends later, a part.
    fn used_bits(&self, now: Time, until: Option<Time>) -> f64 {
        let sent = self.transmitter.sent_bits(self.stuck.is_none()) as f64;
        let mut meter = self.meter.clone();
        let offered = meter.until(now);
        let later = until.filter(|until| *until > now).map_or(offered, |until| meter.until(until));
        sent - (later - offered) as f64 / NANOS_PER_SEC as f64
    }
}

/// A wire that sends when it is granted.
pub(crate) struct GrantWire<P> {
    grants: Grants,
    pub framing: Framing,
    /// A packet of which a part was sent, and how many bytes are left.
    pub sending: Option<(P, u64)>,
    /// Bytes that were sent.
    pub used: u64,
    /// At the start of the run.
    meter: GrantsMeter,
}

impl<P> GrantWire<P> {
    /// The bytes of the grant that has come, which is used up now.
    pub fn next(&mut self) -> u64 {
        let (_, bytes) = self.grants.peek().expect("a grant has come");
        self.grants.advance();
        bytes
    }
    /// The time of the first grant from `now` on, or later than it; `None` if none comes.
    /// What is before that passes unused.
    pub fn next_from(&mut self, now: Time, is_later: bool) -> Option<Time> {
        self.grants.seek(now + Span::from_nanos(u64::from(is_later)));
        self.grants.peek().map(|(time, _)| time)
    }
}

/// What carries a link's packets.
pub(crate) enum Wire<P> {
    Constant(RateClock),
    Course(Box<CourseWire<P>>),
    Grants(Box<GrantWire<P>>),
}

impl<P> Wire<P> {
    /// A wire for a run that is over at `end`.
    pub fn new(link: &LinkConfig, stream: Stream, end: Time) -> Self {
        let framing = link.framing;
        match link.process.source(stream, end) {
            Source::Constant(rate) if framing == Framing::NONE => {
                Wire::Constant(RateClock::new(rate))
            }
            Source::Constant(rate) => {
                let schedule = Schedule::new(vec![(Span::ZERO, rate.as_bps())], false);
                Self::with_course(Course::Schedule(schedule), framing, end)
            }
            Source::Course(course) => Self::with_course(course, framing, end),
            Source::Grants(grants) => Wire::Grants(Box::new(GrantWire {
                meter: GrantsMeter::new(grants.clone()),
                grants,
                framing,
                sending: None,
                used: 0,
            })),
        }
    }

    fn with_course(course: Course, framing: Framing, end: Time) -> Self {
        Wire::Course(Box::new(CourseWire {
            meter: CourseMeter::new(course.clone()),
            transmitter: CourseTransmitter::new(course, end),
            framing,
            stuck: None,
        }))
    }

    /// Keeps a packet whose transmission never ends.
    #[cold]
    pub fn keep(&mut self, packet: P) {
        match self {
            Wire::Course(wire) => wire.stuck = Some(packet),
            Wire::Constant(_) | Wire::Grants(_) => unreachable!("its transmissions end"),
        }
    }

    /// The link was idle: a new busy period begins.
    #[inline]
    pub fn restart(&mut self, now: Time) {
        match self {
            Wire::Constant(transmitter) => transmitter.restart(),
            Wire::Course(wire) => wire.transmitter.restart(now),
            Wire::Grants(_) => {}
        }
    }

    /// Counts what is offered, from the start of the run; `None` with a
    /// constant rate.
    pub fn meter(&self) -> Option<Meter> {
        match self {
            Wire::Constant(_) => None,
            Wire::Course(wire) => Some(Meter::Course(wire.meter.clone())),
            Wire::Grants(wire) => Some(Meter::Grants(wire.meter.clone())),
        }
    }

    /// Counts the bytes that could be sent, from the start of the run.
    pub fn capacity(&self) -> Capacity {
        let rate = match self {
            Wire::Constant(transmitter) => transmitter.rate,
            Wire::Course(_) | Wire::Grants(_) => 0,
        };
        Capacity { rate, before: Offered::default(), meter: self.meter() }
    }

    /// The bits that packets used up to `now`, where they are counted; `until` is the end of the
    /// transmission in progress.
    pub fn used_bits(&self, now: Time, until: Option<Time>) -> f64 {
        match self {
            Wire::Constant(_) => 0.0,
            Wire::Course(wire) => wire.used_bits(now, until),
            Wire::Grants(wire) => wire.used as f64 * 8.0,
        }
    }

    /// The packet of which grants have sent a part, or whose transmission never ends.
    pub fn unfinished(&self) -> Option<&P> {
        match self {
            Wire::Constant(_) => None,
            Wire::Course(wire) => wire.stuck.as_ref(),
            Wire::Grants(wire) => wire.sending.as_ref().map(|(packet, _)| packet),
        }
    }
}

/// What a wire of constant rate offered before its rate changed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Offered {
    /// Bytes up to `until`, the end of the transmission during which the rate changed.
    bytes: f64,
    until: Time,
    /// Bits a second just before that.
    rate: u64,
}

/// Counts the bytes that a wire offers.
pub struct Capacity {
    /// Bits a second, if there is no meter.
    rate: u64,
    pub(super) before: Offered,
    meter: Option<Meter>,
}

impl Capacity {
    /// Bytes offered from the start of the run to `end`. Times must not go back.
    pub fn bytes(&mut self, end: Time) -> f64 {
        let Some(meter) = &mut self.meter else {
            let Offered { bytes, until, rate } = self.before;
            let over = |rate: u64, span: Span| rate as f64 / 8.0 * span.as_secs_f64();
            return match end >= until {
                true => bytes + over(self.rate, end - until),
                false => bytes - over(rate, until - end),
            };
        };
        meter.bits(end + Span::from_nanos(1)) / 8.0
    }

    /// What was offered up to `time`, at which the rate changes.
    pub(super) fn until(mut self, time: Time) -> Offered {
        let rate = if time > self.before.until { self.rate } else { self.before.rate };
        Offered { bytes: self.bytes(time), until: time, rate }
    }
}

/// Counts what a wire offers.
pub(crate) enum Meter {
    Course(CourseMeter),
    Grants(GrantsMeter),
}

impl Meter {
    /// Bits offered before `time`. Times must not go back.
    pub fn bits(&mut self, time: Time) -> f64 {
        match self {
            Meter::Course(meter) => meter.until(time) as f64 / NANOS_PER_SEC as f64,
            Meter::Grants(meter) => meter.before(time) as f64 * 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The end of n packets of the given sizes, one division for all.
    fn exact_end(rate: u64, bytes: u128) -> u64 {
        (bytes * 8 * u128::from(NANOS_PER_SEC) / u128::from(rate)) as u64
    }

    proptest! {
        /// Over a long busy period, at odd rates, not a nanosecond is lost.
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
