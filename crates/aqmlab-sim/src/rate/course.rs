//! Piecewise constant rates, and a transmitter that follows them exactly.

use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Span, Time};

use super::random::{Markov, OrnsteinUhlenbeck};
use super::schedule::Schedule;

/// Sequence of rates over time.
#[derive(Clone)]
pub(crate) enum Course {
    Schedule(Schedule),
    Random(Box<Random>),
}

/// Rates that are drawn on demand.
#[derive(Clone)]
pub(crate) enum Random {
    Markov(Markov),
    OrnsteinUhlenbeck(OrnsteinUhlenbeck),
}

impl Course {
    /// Returns the same sequence up to a time, and a constant rate afterwards; `None` for a random
    /// one.
    pub fn with_rate_from(&self, time: Time, rate: u64) -> Option<Course> {
        match self {
            Course::Schedule(schedule) => Some(Course::Schedule(schedule.with_step(time, rate))),
            Course::Random(_) => None,
        }
    }

    /// Returns the rate at `time`, and its end; `None`: for ever. Times must not decrease.
    fn at(&mut self, time: Time) -> (u64, Option<Time>) {
        let random = match self {
            Course::Schedule(schedule) => return schedule.at(time),
            Course::Random(random) => random,
        };
        loop {
            let (rate, until) = match random.as_ref() {
                Random::Markov(chain) => chain.now(),
                Random::OrnsteinUhlenbeck(process) => process.now(),
            };
            if !until.has_come(time) {
                return (rate, until.time());
            }
            match random.as_mut() {
                Random::Markov(chain) => chain.advance(),
                Random::OrnsteinUhlenbeck(process) => process.advance(),
            }
        }
    }
}

/// Integral of the offered rate, in bits times nanoseconds per second.
#[derive(Clone)]
pub(crate) struct CourseMeter {
    pub course: Course,
    now: Time,
    sum: u128,
}

impl CourseMeter {
    pub fn new(course: Course) -> Self {
        CourseMeter { course, now: Time::ZERO, sum: 0 }
    }
    /// Returns the integral up to `time`. Times must not decrease.
    pub fn until(&mut self, time: Time) -> u128 {
        if let Course::Schedule(schedule) = &self.course {
            return schedule.integral(time);
        }
        while self.now < time {
            let (rate, until) = self.course.at(self.now);
            let until = until.map_or(time, |until| until.min(time));
            self.sum += u128::from(rate) * u128::from((until - self.now).as_nanos());
            self.now = until;
        }
        self.sum
    }
}

/// Transmitter whose rate follows a sequence of rates.
///
/// A packet needs its bits times the nanoseconds of a second as work; each nanosecond performs the
/// current rate as work. A packet in transmission during a change continues at the new rate. The
/// end of a packet is rounded down to a nanosecond, and the remaining work is added to the next
/// packets: over a busy period no time is lost to rounding.
#[derive(Clone)]
pub(crate) struct CourseTransmitter {
    pub course: Course,
    /// End of the last transmission.
    now: Time,
    owed: u64,
    /// End of the run: transmissions that do not end before it never end.
    end: Time,
    /// Bits of all packets begun, and of the last one.
    pub bits: u64,
    last_bits: u64,
}

impl CourseTransmitter {
    pub fn new(course: Course, end: Time) -> Self {
        CourseTransmitter { course, now: Time::ZERO, owed: 0, end, bits: 0, last_bits: 0 }
    }

    /// Starts a new busy period of an idle link.
    pub fn restart(&mut self, now: Time) {
        self.now = now;
        self.owed = 0;
    }

    /// Returns the end of the transmission of the next `bytes`, which starts at the end of the
    /// previous one; `None` if it never ends. No transmission may follow then.
    pub fn transmit(&mut self, bytes: u32) -> Option<Time> {
        self.last_bits = u64::from(bytes) * 8;
        self.bits += self.last_bits;
        let mut left = self.last_bits * NANOS_PER_SEC + self.owed;
        if let Course::Schedule(schedule) = &self.course {
            let (done, time) = schedule.whole_periods(u128::from(left));
            left -= done as u64;
            self.now += time;
        }
        while self.now <= self.end {
            let (rate, until) = self.course.at(self.now);
            let room = until.map_or(Span::MAX, |until| until.saturating_since(self.now));
            let room = room.as_nanos();
            match left.checked_div(rate) {
                Some(time) if time <= room => {
                    self.now += Span::from_nanos(time);
                    self.owed = left % rate;
                    return Some(self.now);
                }
                // Less than `left`, otherwise the division would have been small.
                Some(_) => left -= rate * room,
                None => {}
            }
            self.now = until?;
        }
        None
    }

    /// Returns the bits sent, with or without the last packet.
    pub fn sent_bits(&self, is_last_sent: bool) -> u64 {
        if is_last_sent { self.bits } else { self.bits - self.last_bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const END: Time = Time::from_nanos(u64::MAX / 2);

    fn schedule(steps: &[(u64, u64)], repeats: bool) -> Schedule {
        let steps = steps.iter().map(|(time, rate)| (Span::from_millis(*time), *rate));
        Schedule::new(steps.collect(), repeats)
    }

    #[test]
    fn a_packet_goes_on_at_the_new_rate() {
        // 1500 bytes: 6 ms at 2 Mbit/s. Half is sent when the rate falls to a tenth; no bits are
        // sent for 10 ms; the rest is 6000 bits at 0.2 Mbit/s.
        let steps = schedule(&[(0, 2_000_000), (3, 0), (13, 200_000)], false);
        let mut transmitter = CourseTransmitter::new(Course::Schedule(steps), END);
        let at = |millis: u64| Some(Time::from_nanos(millis * 1_000_000));
        assert_eq!(transmitter.transmit(1500), at(43));
        assert_eq!(transmitter.transmit(25), at(44));
        transmitter.restart(Time::from_nanos(50_000_000));
        assert_eq!(transmitter.transmit(25), at(51));
    }

    #[test]
    fn a_link_that_stops_never_ends_its_packet() {
        let steps = schedule(&[(0, 8000), (1, 0)], false);
        let mut transmitter = CourseTransmitter::new(Course::Schedule(steps), END);
        assert_eq!(transmitter.transmit(1), Some(Time::from_nanos(1_000_000)));
        assert_eq!(transmitter.transmit(1), None);
        assert_eq!(transmitter.sent_bits(false), 8);
    }

    #[test]
    fn periods_of_nanoseconds_are_not_walked_through() {
        let steps = [(0, 1), (1, 0)].map(|(time, rate)| (Span::from_nanos(time), rate));
        let course = Course::Schedule(Schedule::new(steps.to_vec(), true));
        let mut transmitter = CourseTransmitter::new(course, END);
        // 8 bits at one bit per second, every other nanosecond.
        assert_eq!(transmitter.transmit(1), Some(Time::from_nanos(16 * NANOS_PER_SEC - 1)));
    }

    proptest! {
        /// For any steps, the n-th packet ends at the first nanosecond before which all of its bits
        /// fit, except for less than a nanosecond's worth.
        #[test]
        fn the_rate_is_exact_over_steps(
            lengths in prop::collection::vec(1u64..3_000_000, 2..10),
            rates in prop::collection::vec(prop_oneof![Just(0u64), 1u64..2_000_000_000], 10),
            sizes in prop::collection::vec(1u32..3_000, 1..60),
            repeats: bool,
        ) {
            prop_assume!(rates[..lengths.len()].iter().any(|rate| *rate > 0));
            let mut start = 0;
            let steps = lengths.iter().zip(&rates).map(|(length, rate)| {
                let step = (Span::from_nanos(start), *rate);
                start += length;
                step
            });
            let schedule = Schedule::new(steps.collect(), repeats);
            let mut transmitter = CourseTransmitter::new(Course::Schedule(schedule.clone()), END);
            let mut needed = 0u128;
            for size in sizes {
                needed += u128::from(size) * 8 * u128::from(NANOS_PER_SEC);
                let Some(end) = transmitter.transmit(size) else {
                    prop_assert!(schedule.integral(END) < needed);
                    break;
                };
                let done = schedule.integral(end);
                prop_assert!(done <= needed, "{done} of {needed}");
                let next = schedule.integral(end + Span::from_nanos(1));
                prop_assert!(next > done || needed == done || schedule.at(end).0 == 0);
                prop_assert!(needed - done < 2_000_000_000, "less than a nanosecond is owed");
            }
        }
    }
}
