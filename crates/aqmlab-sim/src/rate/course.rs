//! Rates that hold for a while, and a transmitter that follows them exactly.

use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Span, Stream, Time};

use super::random::{Markov, MarkovParams, OrnsteinUhlenbeck, OrnsteinUhlenbeckParams};
use super::schedule::Schedule;

/// A course of rates at work.
#[derive(Clone)]
pub(crate) enum Course {
    Schedule(Schedule),
    Random(Box<Random>),
}

/// Courses that are drawn as they are needed.
#[derive(Clone)]
pub(crate) enum Random {
    Markov(Markov),
    OrnsteinUhlenbeck(OrnsteinUhlenbeck),
}

impl Course {
    pub fn markov(params: MarkovParams, stream: Stream) -> Self {
        Course::Random(Box::new(Random::Markov(Markov::new(params, stream))))
    }
    pub fn ornstein_uhlenbeck(params: &OrnsteinUhlenbeckParams, stream: Stream) -> Self {
        let process = OrnsteinUhlenbeck::new(params, stream);
        Course::Random(Box::new(Random::OrnsteinUhlenbeck(process)))
    }

    /// The same up to a moment, and one rate from then on; `None` for a random one.
    pub fn with_rate_from(&self, time: Time, rate: u64) -> Option<Course> {
        match self {
            Course::Schedule(schedule) => Some(Course::Schedule(schedule.with_step(time, rate))),
            Course::Random(_) => None,
        }
    }

    /// The rate at `time`, and until when it holds; `None` for ever. Times must not go back.
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

/// Bits times a second's nanoseconds that a course offers, summed up.
#[derive(Clone)]
pub(crate) struct CourseMeter {
    course: Course,
    now: Time,
    sum: u128,
}

impl CourseMeter {
    pub fn new(course: Course) -> Self {
        CourseMeter { course, now: Time::ZERO, sum: 0 }
    }
    /// What it counts.
    pub fn course(&self) -> &Course {
        &self.course
    }
    /// What is offered up to `time`. Times must not go back.
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

/// A transmitter whose rate follows a course.
///
/// A packet needs its bits times a second's nanoseconds; each nanosecond does
/// as many of them as the rate is then. A packet that is on the transmitter
/// when the rate changes goes on with the new one. Its end is rounded down to
/// a nanosecond, and what is owed then is done by the packets after it: over
/// a busy period nothing is rounded away.
pub(crate) struct CourseTransmitter {
    course: Course,
    /// The end of what has been sent.
    now: Time,
    owed: u64,
    /// When the run is over: what does not end before that never does.
    end: Time,
    /// Bits of packets that were begun, and of the last of them.
    pub bits: u64,
    last_bits: u64,
}

impl CourseTransmitter {
    pub fn new(course: Course, end: Time) -> Self {
        CourseTransmitter { course, now: Time::ZERO, owed: 0, end, bits: 0, last_bits: 0 }
    }

    /// The link was idle: a new busy period begins.
    pub fn restart(&mut self, now: Time) {
        self.now = now;
        self.owed = 0;
    }

    /// Goes on with another course.
    pub fn follow(&mut self, course: Course) {
        self.course = course;
    }

    /// When the next `bytes` have been sent, from the end of those before; `None` if that is
    /// never. Nothing may be sent after that.
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
                // Less than `left`, or the division would have been small.
                Some(_) => left -= rate * room,
                None => {}
            }
            self.now = until?;
        }
        None
    }

    /// The bits of the packets that were all sent, if the last of them was or was not.
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
        // 1500 bytes: 6 ms at 2 Mbit/s. Half is sent when the rate falls to a
        // tenth; nothing moves for 10 ms; the rest, 6000 bits at 0.2 Mbit/s.
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
        /// Over any steps, the n-th packet ends at the first nanosecond before
        /// which all of its bits, but for less than a nanosecond's worth, fit.
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
