//! The shaper: when the next packet may go, of the whole queue and of a tin.
//!
//! # Model
//! A shaper in deficit mode: every packet moves the time of the next by what it
//! takes at the rate. There is no bucket of tokens, and no burst beyond what
//! makes up for a link that came late. Packets that were dropped can be charged
//! too (`ingress`); a second schedule at two thirds of the rate, which ignores them, ensures that
//! packets are still sent.
//!
//! # Sources
//! Linux's sch_cake, with its arithmetic: the time of a byte is a number of
//! 34 bits, so that the rate is exact to 2^-33; the time of a packet is whole
//! nanoseconds.

use aqmlab_core::{Rate, Span, Time};

/// The time that a byte takes, in nanoseconds shifted left; 0 without a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    nanos: u64,
    shift: u32,
}

impl Pace {
    /// Rates below this are taken for it.
    const LEAST: u64 = 64;
    const BITS: u32 = 34;

    pub fn new(rate: Option<Rate>) -> Self {
        let Some(rate) = rate else { return Pace { nanos: 0, shift: 0 } };
        let mut nanos = (1_000_000_000 << Self::BITS) / bytes_per_second(rate).max(Self::LEAST);
        let mut shift = Self::BITS;
        while nanos >> Self::BITS > 0 {
            nanos >>= 1;
            shift -= 1;
        }
        Pace { nanos, shift }
    }

    /// The time of so many bytes.
    #[inline]
    pub fn time_of(&self, bytes: u64) -> Span {
        Span::from_nanos((bytes * self.nanos) >> self.shift)
    }
}

/// tc counts rates in whole bytes per second.
pub(super) fn bytes_per_second(rate: Rate) -> u64 {
    rate.as_bps() / 8
}

/// The schedule of the whole queue.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    pace: Pace,
    next: Time,
    /// The schedule that does not see dropped packets.
    failsafe: Time,
}

impl Shaper {
    pub fn new(rate: Option<Rate>) -> Self {
        Shaper { pace: Pace::new(rate), next: Time::ZERO, failsafe: Time::ZERO }
    }

    /// Continues at another rate. As in Linux, cake_reconfigure, the time of the next packet stays:
    /// after a busy time without a limit, packets leave at once until the schedule has caught up.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.pace = Pace::new(rate);
    }

    /// The time until which nothing may be sent, if it is not now.
    #[inline]
    pub fn held_until(&self, now: Time) -> Option<Time> {
        let next = self.next.min(self.failsafe);
        (next > now).then_some(next)
    }

    /// A packet arrives at an empty queue: unused time is lost.
    pub fn wake(&mut self, now: Time) {
        if self.next < now {
            self.next = now;
            self.failsafe = now;
        }
    }

    /// So many bytes were sent, or dropped.
    #[inline]
    pub fn charge(&mut self, bytes: u64, dropped: bool) {
        let time = self.pace.time_of(bytes);
        self.next += time;
        if !dropped {
            self.failsafe += time + time / 2;
        }
    }
}

/// The schedule of a tin: whether it is below its share.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pace: Pace,
    next: Time,
}

impl Schedule {
    pub fn new(rate: Option<Rate>) -> Self {
        Schedule { pace: Pace::new(rate), next: Time::ZERO }
    }

    /// Continues at another rate.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.pace = Pace::new(rate);
    }

    /// When the tin's next packet is due.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// A packet arrives at an empty tin.
    pub fn wake(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// So many bytes of the tin went. One that is behind makes up for it.
    #[inline]
    pub fn charge(&mut self, bytes: u64, now: Time) {
        let time = self.pace.time_of(bytes);
        if self.next < now {
            self.next += time;
        } else if self.next < now + time {
            self.next = now + time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_byte_is_exact() {
        for (bits, bytes, nanos) in [
            (8_000_000, 1500, 1_500_000),
            (100_000_000, 1538, 123_040),
            (512, 1, 15_625_000),
            (1_000_000_000_000, 64_000, 512),
            // Less than there is.
            (8, 1, 15_625_000),
        ] {
            let time = Pace::new(Some(Rate::from_bps(bits))).time_of(bytes).as_nanos();
            assert!(nanos - time <= 1, "{bits}: {time}");
        }
    }

    #[test]
    fn a_schedule_makes_up_for_a_late_link_but_not_for_an_idle_one() {
        let at = |nanos| Time::from_nanos(nanos);
        // 1 GB/s: a nanosecond a byte.
        let mut shaper = Shaper::new(Some(Rate::from_bps(8_000_000_000)));
        shaper.charge(1000, false);
        assert_eq!(shaper.held_until(at(999)), Some(at(1000)));
        assert_eq!(shaper.held_until(at(1000)), None);
        // Sent 500 late: the next is due 1000 after when it should have gone.
        shaper.charge(1000, false);
        assert_eq!(shaper.held_until(at(1500)), Some(at(2000)));
        // Idle until 9000.
        shaper.wake(at(9000));
        shaper.charge(1000, false);
        assert_eq!(shaper.held_until(at(9000)), Some(at(10_000)));
    }

    #[test]
    fn drops_cost_at_most_a_third_of_the_rate() {
        let at = |nanos| Time::from_nanos(nanos);
        let mut shaper = Shaper::new(Some(Rate::from_bps(8_000_000_000)));
        for _ in 0..100 {
            shaper.charge(1000, true);
        }
        assert_eq!(shaper.held_until(at(0)), None, "nothing was sent yet");
        shaper.charge(1000, false);
        assert_eq!(shaper.held_until(at(0)), Some(at(1500)));
    }

    #[test]
    fn a_tin_that_is_behind_catches_up_and_one_ahead_waits() {
        let at = |nanos| Time::from_nanos(nanos);
        let mut schedule = Schedule::new(Some(Rate::from_bps(8_000_000_000)));
        schedule.charge(1000, at(5000));
        assert_eq!(schedule.next(), at(1000));
        schedule.wake(at(5000));
        schedule.charge(1000, at(5000));
        assert_eq!(schedule.next(), at(6000));
        // Served ahead of its time: it does not fall further behind.
        schedule.charge(400, at(5100));
        assert_eq!(schedule.next(), at(6000));
        schedule.charge(1000, at(5100));
        assert_eq!(schedule.next(), at(6100));
    }
}
