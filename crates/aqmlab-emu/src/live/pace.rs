//! When the loop sleeps, and until when.
//!
//! # Model
//! A wake-up costs more processor time than a packet does, and comes late by
//! what the kernel needs for it. So
//!
//! * departures wake the loop at most so many times in a while, and are written
//!   together if they follow each other faster: the *gathering* bounds both the lateness
//!   of a packet and the wake-ups a second. `balanced` measures what a wake-up costs on the
//!   machine (14 to 23 us of processor time were seen in virtual ones) and gathers for as
//!   long as keeps wake-ups below a share of the processor;
//! * packets that come end a sleep at most so many times in a while, departures counted,
//!   and are read together if they come faster, as network cards moderate their interrupts;
//! * the timer is set earlier than the deadline by what wake-ups have been late
//!   lately, and the clock is watched for the rest;
//! * a process with real-time priority that leaves its processor to nobody has
//!   it taken by the kernel for 50 ms in each second (`sched_rt_runtime_us`; on
//!   newer kernels the deadline server of ordinary tasks): the loop *rests* for
//!   that share itself, 0.1 ms at a time.

use aqmlab_core::{Span, Time, choices};

choices! {
    /// How the emulator waits for the time of a departure.
    pub enum Precision {
        /// It sleeps for 1 ms at least, and writes together what was due meanwhile.
        LowCpu = "low-cpu",
        /// It sleeps until just before a departure, 2,500 to 10,000 times a second at most.
        Balanced = "balanced",
        /// It looks at the clock and at the devices all the time.
        Exact = "exact",
    }
}

/// Departures wake the loop once in so many times what a wake-up costs, or more often if they
/// have not for a while: wake-ups take a sixteenth of the processor at most ...
const GATHERED_COSTS: u64 = 16;
/// ... but not more often than full packets leave at 120 Mbit/s, nor more seldom than this.
const LEAST_GATHERED: Span = Span::from_micros(100);
const MOST_GATHERED: Span = Span::from_micros(400);
/// The same where processor time matters more than times do.
const GATHERED_LOW: Span = Span::from_micros(1000);
/// So often either may wake the loop at once.
const BURST: u64 = 4;
/// Sleeps by their lengths: so many of them are told apart, each twice as long as
/// the one before, from the first on.
const LENGTHS: usize = 6;
const FIRST: u64 = 64_000;
/// The clock is watched for so long at most, or for this part of a sleep if that is longer: a
/// virtual machine whose processor has been idle for milliseconds wakes 100 us late and more.
const MOST_LEAD: Span = Span::from_micros(40);
const LEAD_SHARE: u64 = 32;
/// Wake-ups are no later than this, usually; what is later is an accident.
const MOST_LATE: Span = Span::from_micros(300);
/// By this part of the sleep an estimate of the lateness of wake-ups changes each time, so that
/// it takes the same time to learn whatever the sleeps; by so much at least and at most.
const STEP_SHARE: u64 = 2048;
const STEP: u64 = 500;
const MOST_STEP: u64 = 10_000;
/// A rest.
const REST: Span = Span::from_micros(100);
/// The part of the time in which a real-time loop leaves the processor to others: 1/12, more
/// than the kernel takes, as others do not get all of a rest.
const LEFT_SHARE: u64 = 12;
/// Not more than so much of it is saved up, or owed before it is given whatever is due.
const MOST_SAVED: i64 = 5_000_000;
const MOST_OWED: i64 = 20_000_000;
/// While less is owed, the loop rests when nothing is due for so long, and is awake again so long
/// before that.
const CALM: Span = Span::from_micros(90);
const AWAKE: Span = Span::from_micros(40);

/// What the loop is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Go on: something is due, or nearly.
    No,
    /// Sleep until then or until a packet comes.
    Until(Time),
    /// Sleep until then: packets have ended sleeps often enough.
    Deaf(Time),
}

/// Lets something happen a few times at once, and then once in an interval.
#[derive(Clone, Copy, Debug)]
struct Moderated {
    interval: Span,
    /// When it would have happened as often, if it had at intervals.
    used: Time,
}

impl Moderated {
    fn new(interval: Span) -> Self {
        Moderated { interval, used: Time::ZERO }
    }

    /// It happened.
    fn happened(&mut self, now: Time) {
        let next = self.used.max(now) + self.interval;
        self.used = next.min(now + self.interval * (BURST + 1));
    }

    /// From then on it may happen again.
    fn next(&self) -> Time {
        Time::ZERO + self.used.saturating_since(Time::ZERO + self.interval * BURST)
    }
}

/// Decides.
#[derive(Debug)]
pub struct Pace {
    precision: Precision,
    /// How late wake-ups are, in nanoseconds: the median, by the length of the sleep.
    late: [u64; LENGTHS],
    /// Wake-ups to write.
    departures: Moderated,
    /// Wake-ups by packets.
    arrivals: Moderated,
    /// Time left to others and not yet due to them, in nanoseconds.
    saved: i64,
    accounted: Time,
    is_real_time: bool,
}

impl Pace {
    /// With a real-time priority, or without; `wake_up` measures what a wake-up costs.
    pub fn new(precision: Precision, is_real_time: bool, wake_up: impl Fn() -> Span) -> Self {
        let gathered = match precision {
            Precision::Exact => Span::ZERO,
            Precision::Balanced => {
                (wake_up() * GATHERED_COSTS).clamp(LEAST_GATHERED, MOST_GATHERED)
            }
            Precision::LowCpu => GATHERED_LOW,
        };
        // Packets may wait a little longer to be read, as more may follow.
        let moderated = (gathered * 2).min(MOST_GATHERED).max(gathered);
        let (departures, arrivals) = (Moderated::new(gathered), Moderated::new(moderated));
        let (late, saved, accounted) = ([5_000; LENGTHS], 0, Time::ZERO);
        Pace { precision, late, departures, arrivals, saved, accounted, is_real_time }
    }

    /// Departures wake the loop once in this time, if they follow each other faster.
    pub fn gathered(&self) -> Span {
        self.departures.interval
    }

    /// Something was written. It was awake for that: packets need not wake it again soon.
    pub fn wrote(&mut self, now: Time) {
        self.departures.happened(now);
        self.arrivals.happened(now);
    }

    fn length(ahead: Span) -> usize {
        let times = ahead.as_nanos() / FIRST;
        (times.checked_ilog2().map_or(0, |power| power as usize + 1)).min(LENGTHS - 1)
    }

    /// A packet has ended a sleep.
    pub fn interrupted(&mut self, now: Time) {
        self.arrivals.happened(now);
    }

    /// What to do now, if something is due at `due`.
    pub fn wait(&self, now: Time, due: Time) -> Wait {
        if self.precision == Precision::Exact {
            return Wait::No;
        }
        // From then on packets may end a sleep.
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

    /// It was asked to wake after `asked`, and came `late`.
    pub fn woke(&mut self, asked: Span, late: Span) {
        let known = &mut self.late[Self::length(asked)];
        let step = (asked.as_nanos() / STEP_SHARE).clamp(STEP, MOST_STEP);
        *known = match late.as_nanos() > *known {
            true => (*known + step).min(MOST_LATE.as_nanos()),
            false => known.saturating_sub(step),
        };
    }

    /// The processor was left to others for so long.
    pub fn left(&mut self, length: Span) {
        self.saved = (self.saved + length.as_nanos() as i64).min(MOST_SAVED);
    }

    /// A rest, if it is time for one, and whether packets may end it; something is due at
    /// `due`.
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

    /// On a machine where a wake-up costs 20 us.
    fn pace(precision: Precision) -> Pace {
        Pace { late: [0; LENGTHS], ..Pace::new(precision, false, || Span::from_micros(20)) }
    }

    #[test]
    fn departures_that_follow_closely_are_gathered() {
        for (precision, gathered) in [(Precision::Balanced, 320), (Precision::LowCpu, 1000)] {
            let mut pace = pace(precision);
            // A few may follow each other at once.
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
            assert_eq!(pace.gathered(), Span::from_micros(gathered));
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
        // What is due ends it all the same.
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
        // Sleeps of another length are another matter.
        assert_eq!(pace.wait(at(5000), at(9000)), Wait::Until(at(9000)));
        // An accident changes little.
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
        // Late by this, after a sleep of this length: watched for so long.
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
            // Where there are pauses between departures, none is held up.
            assert_eq!(pressed > 0, gap == 10, "{pressed}");
        }
        let mut ordinary = pace(Precision::Exact);
        assert_eq!(ordinary.rest(at(10_000_000), None), None);
    }
}
