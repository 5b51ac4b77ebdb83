//! Sleep and wake-up policy of the event loop.
//!
//! # Model
//! A wake-up costs more processor time than a packet, and is late by the time the kernel needs for
//! it. Therefore:
//!
//! * departures wake the loop a limited number of times per interval, and are written together if
//!   they follow each other faster. This *gathering* bounds both the lateness of a packet and the
//!   wake-up rate. `balanced` measures the cost of a wake-up on the machine (14 to 23 us of
//!   processor time on the virtual machines measured) and gathers long enough to keep wake-ups
//!   below a share of the processor;
//! * arrivals end a sleep a limited number of times per interval, departures included, and are read
//!   together if they are faster (interrupt moderation of network cards);
//! * the timer is set earlier than the deadline by the recent lateness of wake-ups, and the loop
//!   polls the clock for the rest;
//! * the kernel throttles a real-time process that never yields its processor for 50 ms in each
//!   second (`sched_rt_runtime_us`; the deadline server of ordinary tasks on newer kernels). The
//!   loop *rests* for that share itself, 0.1 ms at a time.

use aqmlab_core::{Span, Time};

use crate::params::Precision;

/// Interval of wake-ups for departures, in costs of a wake-up, after the initial burst: wake-ups
/// use at most a sixteenth of the processor ...
const GATHERED_COSTS: u64 = 16;
/// ... within this range: the minimum is the interval of full packets at 120 Mbit/s.
const LEAST_GATHERED: Span = Span::from_micros(100);
const MOST_GATHERED: Span = Span::from_micros(400);
/// Interval of wake-ups where processor time matters more than precision.
const GATHERED_LOW: Span = Span::from_micros(1000);
/// Burst of immediate wake-ups, for departures and for arrivals.
const BURST: u64 = 4;
/// Number of sleep length classes; each is twice as long as the one before, starting with the
/// first.
const LENGTHS: usize = 6;
const FIRST: u64 = 64_000;
/// Longest polling of the clock, or this part of a sleep if that is longer: a virtual machine whose
/// processor has been idle for milliseconds wakes 100 us late and more.
const MOST_LEAD: Span = Span::from_micros(40);
const LEAD_SHARE: u64 = 32;
/// Usual upper bound of the lateness of wake-ups; later ones are outliers.
const MOST_LATE: Span = Span::from_micros(300);
/// Step of the lateness estimate, as a part of the sleep, so that the learning time does not depend
/// on the length of sleeps; bounded below and above.
const STEP_SHARE: u64 = 2048;
const STEP: u64 = 500;
const MOST_STEP: u64 = 10_000;
/// Length of a rest.
const REST: Span = Span::from_micros(100);
/// Share of the time that a real-time loop leaves to others: 1/12, more than the kernel takes,
/// because others do not get all of a rest.
const LEFT_SHARE: u64 = 12;
/// Limit of the saved time, and of the owed time before a rest is forced.
const MOST_SAVED: i64 = 5_000_000;
const MOST_OWED: i64 = 20_000_000;
/// While less is owed, the loop rests only if nothing is due for this long, and is awake again this
/// long before the next deadline.
const CALM: Span = Span::from_micros(90);
const AWAKE: Span = Span::from_micros(40);

/// Next action of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Continue: a packet is due, or nearly.
    No,
    /// Sleep until the time or until a packet arrives.
    Until(Time),
    /// Sleep until the time, ignoring packets: arrivals have ended sleeps often enough.
    Deaf(Time),
}

/// Rate limiter with a burst: several events at once, then one per interval.
#[derive(Clone, Copy, Debug)]
pub struct Moderated {
    /// Interval of events that follow each other closely.
    pub interval: Span,
    /// Time up to which the allowance is used.
    used: Time,
}

impl Moderated {
    fn new(interval: Span) -> Self {
        Moderated { interval, used: Time::ZERO }
    }

    /// Records an event.
    fn happened(&mut self, now: Time) {
        let next = self.used.max(now) + self.interval;
        self.used = next.min(now + self.interval * (BURST + 1));
    }

    /// Returns the earliest time of the next event.
    fn next(&self) -> Time {
        Time::ZERO + self.used.saturating_since(Time::ZERO + self.interval * BURST)
    }
}

/// Decides when the loop sleeps, and for how long.
#[derive(Debug)]
pub struct Pace {
    precision: Precision,
    /// Median lateness of wake-ups in nanoseconds, by length of the sleep.
    late: [u64; LENGTHS],
    /// Wake-ups for departures.
    pub departures: Moderated,
    /// Wake-ups for arrivals.
    arrivals: Moderated,
    /// Time left to others ahead of schedule, in nanoseconds; negative: time owed.
    saved: i64,
    accounted: Time,
    is_real_time: bool,
}

impl Pace {
    /// Creates the policy for a real-time or ordinary process. `wake_up` measures the cost of a
    /// wake-up.
    pub fn new(precision: Precision, is_real_time: bool, wake_up: impl Fn() -> Span) -> Self {
        let gathered = match precision {
            Precision::Exact => Span::ZERO,
            Precision::Balanced => {
                (wake_up() * GATHERED_COSTS).clamp(LEAST_GATHERED, MOST_GATHERED)
            }
            Precision::LowCpu => GATHERED_LOW,
        };
        // Arrivals may wait a little longer to be read, as more may follow.
        let moderated = (gathered * 2).min(MOST_GATHERED).max(gathered);
        let (departures, arrivals) = (Moderated::new(gathered), Moderated::new(moderated));
        let (late, saved, accounted) = ([5_000; LENGTHS], 0, Time::ZERO);
        Pace { precision, late, departures, arrivals, saved, accounted, is_real_time }
    }

    /// Records a write. The loop was awake for it, so arrivals need not wake it again soon.
    pub fn wrote(&mut self, now: Time) {
        self.departures.happened(now);
        self.arrivals.happened(now);
    }

    fn length(ahead: Span) -> usize {
        let times = ahead.as_nanos() / FIRST;
        (times.checked_ilog2().map_or(0, |power| power as usize + 1)).min(LENGTHS - 1)
    }

    /// Records that a packet has ended a sleep.
    pub fn interrupted(&mut self, now: Time) {
        self.arrivals.happened(now);
    }

    /// Returns the action at `now` for a deadline at `due`.
    pub fn wait(&self, now: Time, due: Time) -> Wait {
        if self.precision == Precision::Exact {
            return Wait::No;
        }
        // From this time on, packets may end a sleep.
        let hears = self.arrivals.next();
        let target = match due {
            Time::MAX => due,
            due => due.max(self.departures.next()),
        };
        let until = if hears > now { target.min(hears) } else { target };
        let Some(ahead) = until.as_nanos().checked_sub(now.as_nanos()) else { return Wait::No };
        let lead = match self.precision {
            Precision::Balanced if until == target && target != Time::MAX => {
                let most = MOST_LEAD.as_nanos().max(ahead / LEAD_SHARE);
                self.late[Self::length(Span::from_nanos(ahead))].min(most)
            }
            _ => 0,
        };
        match ahead > lead {
            true if hears > now => Wait::Deaf(Time::from_nanos(until.as_nanos() - lead)),
            true => Wait::Until(Time::from_nanos(until.as_nanos() - lead)),
            false => Wait::No,
        }
    }

    /// Records a wake-up that was requested after `asked`, and was late by `late`.
    pub fn woke(&mut self, asked: Span, late: Span) {
        let known = &mut self.late[Self::length(asked)];
        let step = (asked.as_nanos() / STEP_SHARE).clamp(STEP, MOST_STEP);
        *known = match late.as_nanos() > *known {
            true => (*known + step).min(MOST_LATE.as_nanos()),
            false => known.saturating_sub(step),
        };
    }

    /// Records that the processor was left to others for `length`.
    pub fn left(&mut self, length: Span) {
        self.saved = (self.saved + length.as_nanos() as i64).min(MOST_SAVED);
    }

    /// Returns the length of a rest, if one is needed, and whether packets may end it. The next
    /// deadline is `due`.
    pub fn rest(&mut self, now: Time, due: Option<Time>) -> Option<(Span, bool)> {
        if !self.is_real_time {
            return None;
        }
        let share = now.saturating_since(self.accounted).as_nanos() / LEFT_SHARE;
        self.accounted = now;
        self.saved -= share as i64;
        if self.saved < -MOST_OWED {
            return Some((REST, false));
        }
        let free = due.map_or(Span::MAX, |due| due.saturating_since(now));
        (self.saved < 0 && free > CALM)
            .then(|| (REST.min(Span::from_nanos(free.as_nanos() - AWAKE.as_nanos())), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    /// A machine on which a wake-up costs 20 us.
    fn pace(precision: Precision) -> Pace {
        Pace { late: [0; LENGTHS], ..Pace::new(precision, false, || Span::from_micros(20)) }
    }

    #[test]
    fn departures_that_follow_closely_are_gathered() {
        for (precision, gathered) in [(Precision::Balanced, 320), (Precision::LowCpu, 1000)] {
            let mut pace = pace(precision);
            // A burst may follow at once.
            pace.wrote(at(10_000));
            assert_eq!(pace.wait(at(10_010), at(10_030)), Wait::Until(at(10_030)));
            (0..BURST).for_each(|_| pace.wrote(at(10_000)));
            pace.arrivals.used = Time::ZERO;
            let next = at(10_000 + gathered);
            assert_eq!(pace.wait(at(10_010), at(10_030)), Wait::Until(next));
            assert_eq!(pace.wait(at(10_010), at(15_000)), Wait::Until(at(15_000)));
            assert_eq!(pace.wait(next, at(10_030)), Wait::No);
            assert_eq!(pace.wait(at(10_010), Time::MAX), Wait::Until(Time::MAX));
        }
        assert_eq!(pace(Precision::Exact).wait(at(1010), at(5000)), Wait::No);
    }

    #[test]
    fn where_wake_ups_are_cheap_departures_are_apart_and_packets_wait_less() {
        for (cost, gathered, moderated) in
            [(2, 100, 200), (10, 160, 320), (20, 320, 400), (90, 400, 400)]
        {
            let pace = Pace::new(Precision::Balanced, true, || Span::from_micros(cost));
            assert_eq!(pace.departures.interval, Span::from_micros(gathered));
            assert_eq!(pace.arrivals.interval, Span::from_micros(moderated));
        }
    }

    #[test]
    fn departures_at_30_mbit_a_second_are_not_gathered_and_closer_ones_are() {
        for (apart, wakes) in [(400, 1000), (16, 50)] {
            let (mut pace, mut now, mut written, mut woken) =
                (pace(Precision::Balanced), at(10_000), 0, 0);
            while written < 1000 {
                let due = at(10_000 + (written + 1) * apart);
                match pace.wait(now, due) {
                    Wait::No => {
                        written = (now.as_nanos() / 1000 - 10_000) / apart;
                        woken += 1;
                        pace.wrote(now);
                    }
                    Wait::Until(until) | Wait::Deaf(until) => now = until,
                }
            }
            assert!((wakes..=wakes + BURST + 1).contains(&woken), "{woken} of {wakes}");
        }
    }

    #[test]
    fn packets_end_sleeps_so_often_and_are_read_together_then() {
        let mut pace = pace(Precision::Balanced);
        let mut ended = 0;
        let mut now = at(10_000);
        while now < at(110_000) {
            now += Span::from_micros(10);
            match pace.wait(now, Time::MAX) {
                Wait::Until(_) => {
                    ended += 1;
                    pace.interrupted(now);
                }
                Wait::Deaf(until) => now = until,
                Wait::No => panic!("nothing is due"),
            }
        }
        let most = 100_000 / (MOST_GATHERED.as_nanos() / 1000) + BURST + 1;
        assert!((most - 20..=most).contains(&ended), "{ended} of {most}");
        // A deadline ends the sleep anyway.
        pace.arrivals.used = now + MOST_GATHERED * (2 * BURST);
        let due = now + Span::from_micros(50);
        assert_eq!(pace.wait(now, due), Wait::Deaf(due));
    }

    #[test]
    fn timers_are_set_early_by_what_wake_ups_are_late() {
        let mut pace = pace(Precision::Balanced);
        let mut asked = Span::ZERO;
        for _ in 0..1000 {
            let Wait::Until(until) = pace.wait(at(5000), at(5500)) else { panic!("it sleeps") };
            asked = until.saturating_since(at(5000));
            pace.woke(asked, Span::from_micros(20));
        }
        let lead = Span::from_micros(500).as_nanos() - asked.as_nanos();
        assert!(lead.abs_diff(20_000) <= 2 * STEP, "{lead}");
        // Other sleep lengths have their own estimates.
        assert_eq!(pace.wait(at(5000), at(9000)), Wait::Until(at(9000)));
        // An outlier changes little.
        pace.woke(asked, Span::from_millis(50));
        let Wait::Until(until) = pace.wait(at(5000), at(5500)) else { panic!("it sleeps") };
        let change = asked.as_nanos().abs_diff(until.saturating_since(at(5000)).as_nanos());
        assert!(change <= 2 * STEP, "{change}");
    }

    #[test]
    fn the_clock_is_watched_for_a_small_part_of_a_sleep() {
        let lead = |late: u64, length: u64| {
            let mut pace = pace(Precision::Balanced);
            for _ in 0..100 {
                pace.woke(Span::from_micros(length), Span::from_micros(late));
            }
            let due = at(5000 + length);
            let Wait::Until(until) = pace.wait(at(5000), due) else { panic!("it sleeps") };
            due.saturating_since(until).as_nanos() / 1000
        };
        // Lateness, length of the sleep, resulting time of polling.
        for (late, length, watched) in
            [(150, 20_000, 150), (150, 3_200, 100), (150, 400, 40), (5_000, 100_000, 300)]
        {
            let step = MOST_STEP / 1000;
            assert!(lead(late, length).abs_diff(watched) <= step, "{late} {length}");
        }
    }

    #[test]
    fn a_real_time_loop_leaves_others_more_than_the_kernel_takes() {
        for gap in [10, 120, 1000] {
            let mut pace = Pace::new(Precision::Exact, true, || unreachable!("it never sleeps"));
            let (mut now, mut left, mut pressed) = (Time::ZERO, Span::ZERO, 0);
            while now < at(3_000_000) {
                now += Span::from_micros(10);
                let due = at((now.as_nanos() / 1000 / gap + 1) * gap);
                if let Some((rest, may_end)) = pace.rest(now, Some(due)) {
                    now += rest;
                    left += rest;
                    pace.left(rest);
                    pressed += u32::from(!may_end);
                }
            }
            let share = left.as_secs_f64() / 3.0;
            assert!((0.06..0.10).contains(&share), "{share}");
            // Where departures have pauses between them, none is delayed.
            assert_eq!(pressed > 0, gap == 10, "{pressed}");
        }
        let mut ordinary = pace(Precision::Exact);
        assert_eq!(ordinary.rest(at(10_000_000), None), None);
    }
}
