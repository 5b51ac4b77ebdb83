//! Waiting times of packets before they are read.
//!
//! # Model
//! A TUN device delivers packets without timestamps, so the emulator cannot know when a packet
//! arrived. It knows the earliest possible time: after the device was last found empty. While the
//! loop sleeps, the kernel watches the device and makes the loop runnable when the first packet
//! arrives; `schedstat` contains the time for which the loop was runnable but did not run. A packet
//! that ends a sleep arrived at the start of that wait, at the earliest. The time from the earliest
//! possible arrival to the read is an upper bound. The emulator reports this bound.
//!
//! A packet that alone can have ended a sleep made the loop runnable when it arrived, and it
//! *arrives* at that time: a path that holds it for longer than it waited does not add the
//! wait to its delay. All other packets arrive when they are read.
//!
//! A stopped process (SIGSTOP, a frozen control group, a paused machine) neither runs nor waits to
//! run. The loop sleeps for at most [`WATCH`]. If it resumes more than [`STOPPED`] after it should
//! have, and `schedstat` does not explain the difference, it was stopped. Packets read then may have
//! arrived at any time since the loop last ran.
//!
//! # Differences
//! 1. A stop shorter than [`WATCH`] and [`STOPPED`] together may be missed, and the wait of a process
//!    for a slow disk or for swapped memory counts as a stop.

use aqmlab_core::{Span, Time};
use aqmlab_sim::network::probe::TimeHistogram;

use crate::sys::time::RunDelay;

/// Interval over which the largest lateness is recorded.
pub const INTERVAL: Span = Span::from_secs(1);

/// Longest sleep of the loop: a longer stop shows as a late wake-up.
pub const WATCH: Span = Span::from_millis(100);
/// Unexplained absence from which the process was stopped: more than the 50 ms in each second that
/// the kernel takes from real-time programs.
pub const STOPPED: Span = Span::from_millis(60);

/// Times in which the process was stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stops {
    /// Number of stops.
    pub count: u64,
    /// Sum of their durations.
    pub total: Span,
    /// Duration of the longest.
    pub longest: Span,
    /// End of the first.
    pub first: Time,
}

impl Stops {
    /// Records that the loop resumed at `now`, `absence` later than expected, of which it waited to
    /// run for `waited`. Returns the duration of the stop; zero if there was none.
    fn note(&mut self, now: Time, absence: Span, waited: Span) -> Span {
        let stopped = absence.saturating_sub(waited);
        if stopped <= STOPPED {
            return Span::ZERO;
        }
        if self.count == 0 {
            self.first = now;
        }
        self.count += 1;
        self.total += stopped;
        self.longest = self.longest.max(stopped);
        stopped
    }
}

/// Largest lateness in each interval.
#[derive(Debug, Default)]
pub struct LatenessSeries {
    /// By interval number; zero for intervals without packets.
    most: Vec<Span>,
}

impl LatenessSeries {
    /// Records the lateness of a packet.
    #[inline]
    pub fn note(&mut self, now: Time, late: Span) {
        let number = (now.as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.most.len() <= number {
            self.most.resize(number + 1, Span::ZERO);
        }
        self.most[number] = self.most[number].max(late);
    }

    /// Returns the end of each interval up to `end`, with its largest lateness.
    pub fn until(&self, end: Time) -> impl Iterator<Item = (Time, Span)> {
        let at = move |number: usize| (Time::ZERO + INTERVAL * (number as u64 + 1)).min(end);
        self.most.iter().enumerate().map(move |(number, most)| (at(number), *most))
    }
}

/// Measures how long packets wait to be read.
pub struct Intake {
    /// By port: packets in the device arrived after this time.
    since: Vec<Time>,
    /// Port whose next packet has ended a sleep; that packet arrived at `since`.
    ended_by: Option<usize>,
    run_delay: Option<RunDelay>,
    /// Last reading of `run_delay`.
    last: Span,
    /// Times in which the process was stopped.
    pub stops: Stops,
    /// Upper bounds of the waiting times.
    pub lateness: TimeHistogram,
    /// Largest waiting time of each second.
    pub lateness_series: LatenessSeries,
}

impl Intake {
    /// Creates the statistics for `ports` ports. Call it in the reading thread.
    pub fn new(ports: usize) -> Self {
        let (lateness, lateness_series) = (TimeHistogram::new(), LatenessSeries::default());
        let (since, run_delay) = (vec![Time::ZERO; ports], RunDelay::open());
        let (last, stops) = (Span::ZERO, Stops::default());
        Intake { since, ended_by: None, run_delay, last, stops, lateness, lateness_series }
    }

    /// Returns true if the kernel reports how long a sleeper waited to run.
    pub fn sees_sleep(&self) -> bool {
        self.run_delay.is_some()
    }

    /// Records that the loop goes to sleep at `now`. Returns the total time it has waited to run so
    /// far.
    pub fn sleeps(&mut self) -> Span {
        self.last = self.run_delay.as_mut().map_or(Span::ZERO, RunDelay::read);
        self.last
    }

    /// Records that the loop resumed at `now`, `absence` later than it should have. Returns for how
    /// long it was stopped since the last call of [`sleeps`](Self::sleeps).
    #[inline]
    pub fn resumes(&mut self, now: Time, absence: Span) -> Span {
        if absence <= STOPPED || self.run_delay.is_none() {
            return Span::ZERO;
        }
        let before = self.last;
        let waited = self.sleeps().saturating_sub(before);
        self.stops.note(now, absence, waited)
    }

    /// Records that the loop is awake at `now`. `before` is the result of [`sleeps`](Self::sleeps).
    /// `readable` are the ports with packets; nothing else has ended the sleep before `until`. The
    /// process was stopped for `stopped` of the sleep.
    pub fn woke(
        &mut self,
        now: Time,
        before: Span,
        until: Time,
        stopped: Span,
        readable: impl Iterator<Item = bool>,
    ) {
        let (mut ready, mut ports) = (None, 0);
        self.ended_by = None;
        for (port, (since, is_readable)) in self.since.iter_mut().zip(readable).enumerate() {
            let earliest = match is_readable {
                false => now,
                true => *ready.get_or_insert_with(|| {
                    let waited = self.run_delay.as_mut().map_or(Span::ZERO, RunDelay::read);
                    let absent = waited.saturating_sub(before) + stopped;
                    Time::ZERO + now.saturating_since(Time::ZERO + absent)
                }),
            };
            *since = earliest.max(*since);
            if is_readable {
                ports += 1;
                // A wake-up at `until` or later may be the timer.
                self.ended_by =
                    (ports == 1 && *since < until && stopped == Span::ZERO).then_some(port);
            }
        }
    }

    /// Records that the device of a port is empty at `now`.
    #[inline]
    pub fn empty(&mut self, port: usize, now: Time) {
        self.since[port] = now;
    }

    /// Records a read from a port. Returns the packet's arrival time and an upper bound of its
    /// earlier wait.
    #[inline]
    pub fn read(&mut self, port: usize, now: Time) -> (Time, Span) {
        let since = self.since[port];
        let late = now.saturating_since(since);
        self.lateness.note_many(late, 1);
        self.lateness_series.note(now, late);
        if self.ended_by == Some(port) {
            self.ended_by = None;
            return (since, Span::ZERO);
        }
        (now, late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_that_waiting_does_not_explain_is_a_stop() {
        let (mut stops, millis) = (Stops::default(), Span::from_millis);
        assert_eq!(stops.note(at(1_000_000), millis(400), millis(360)), Span::ZERO);
        assert_eq!(stops.note(at(2_000_000), millis(400), millis(100)), millis(300));
        assert_eq!(stops.note(at(3_000_000), millis(70), Span::ZERO), millis(70));
        assert_eq!((stops.count, stops.total, stops.longest), (2, millis(370), millis(300)));
        assert_eq!(stops.first, at(2_000_000));
        let mut intake = Intake::new(1);
        intake.empty(0, at(1000));
        // The packet may have arrived at any time of the stop, so it ended no sleep.
        let until = at(2_000_000);
        intake.woke(at(500_000), Span::ZERO, until, millis(300), [true].into_iter());
        let late = intake.read(0, at(500_000)).1;
        assert!(late >= millis(300), "{late:?}");
    }

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn a_packet_came_after_its_device_was_empty() {
        let mut intake = Intake::new(2);
        intake.empty(0, at(100));
        intake.empty(1, at(400));
        assert_eq!(intake.read(0, at(450)), (at(450), Span::from_micros(350)));
        assert_eq!(intake.read(1, at(450)), (at(450), Span::from_micros(50)));
        assert_eq!(intake.lateness.max(), Span::from_micros(350));
    }

    /// Two ports, without `schedstat`: the sleeper ran at once.
    fn woken(until: Time, readable: [bool; 2]) -> Intake {
        let mut intake = Intake::new(2);
        intake.run_delay = None;
        intake.woke(at(5000), Span::ZERO, until, Span::ZERO, readable.into_iter());
        intake
    }

    #[test]
    fn what_ends_a_sleep_came_when_the_sleeper_became_runnable() {
        let micros = Span::from_micros;
        let mut intake = woken(Time::MAX, [true, false]);
        assert_eq!(intake.read(0, at(5003)), (at(5000), Span::ZERO));
        assert_eq!(intake.lateness.max(), micros(3));
        // Later packets may have arrived after it.
        assert_eq!(intake.read(0, at(5004)), (at(5004), micros(4)));
        // A port that was empty at the time may have a packet shortly after.
        assert_eq!(intake.read(1, at(5010)), (at(5010), micros(10)));
    }

    #[test]
    fn where_something_else_may_have_ended_the_sleep_packets_arrive_when_they_are_read() {
        for (until, readable) in [(at(5000), [true, false]), (Time::MAX, [true, true])] {
            let mut intake = woken(until, readable);
            let read = intake.read(0, at(5003));
            assert_eq!(read, (at(5003), Span::from_micros(3)));
        }
    }

    #[test]
    fn the_longest_of_each_second_is_kept() {
        let mut lateness_series = LatenessSeries::default();
        lateness_series.note(at(500_000), Span::from_micros(7));
        lateness_series.note(at(600_000), Span::from_micros(3));
        lateness_series.note(at(2_100_000), Span::from_micros(5));
        let found: Vec<(Time, Span)> = lateness_series.until(at(2_500_000)).collect();
        let micros = Span::from_micros;
        let ends =
            [(at(1_000_000), micros(7)), (at(2_000_000), micros(0)), (at(2_500_000), micros(5))];
        assert_eq!(found, ends);
    }
}
