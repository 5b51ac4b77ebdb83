//! The clocks of a kernel: nanoseconds, microseconds, milliseconds of timestamps, jiffies.
//!
//! All of them count from the host's start, which is no whole number of any of them before the
//! simulation's: a jiffy begins at some place within a millisecond. Timers wait in a wheel
//! whose further levels have a coarser grain, so that they run out late, never early
//! (`kernel/time/timer.c`).

use aqmlab_core::{Span, Time};

/// Jiffies a second, as the recordings have it.
const JIFFY: u64 = 1_000_000;
/// What the host has been up, at least: no stamp is zero, which stands for none.
const UP: u64 = 4096 * 1_000_000;
/// A level of the wheel holds 64 places, each eight times as wide as in the one before.
const PLACES: u64 = 63;
const LEVELS: u32 = 8;

/// Offset of the host's clocks from the simulation's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    offset: u64,
    jiffies: u64,
}

impl Clock {
    /// Somewhere within a jiffy, and somewhere in the timer wheel.
    pub fn new(phase: Span, jiffies: u64) -> Self {
        Clock { offset: UP + phase.as_nanos() % JIFFY, jiffies }
    }
    /// At a place that a number says.
    pub fn somewhere(seed: u64) -> Self {
        let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self::new(Span::from_nanos((mixed >> 20) % JIFFY), (mixed >> 44) % 4096)
    }
    /// Nanoseconds.
    #[inline]
    pub fn nanos(self, now: Time) -> u64 {
        now.as_nanos() + self.offset
    }
    /// Converts nanoseconds of the host to the simulation's time.
    #[inline]
    pub fn time(self, nanos: u64) -> Time {
        Time::from_nanos(nanos.saturating_sub(self.offset))
    }
    /// Milliseconds, as timestamps have them.
    #[inline]
    pub fn stamp(self, at: Time) -> u64 {
        self.nanos(at) / 1_000_000
    }
    /// Jiffies at so many nanoseconds.
    #[inline]
    pub fn jiffies(self, nanos: u64) -> u64 {
        nanos / JIFFY + self.jiffies
    }
    /// When a jiffy begins.
    #[inline]
    pub fn begin(self, jiffy: u64) -> Time {
        self.time((jiffy - self.jiffies) * JIFFY)
    }
}

/// The jiffy in which a timer runs out that was set at one jiffy for another.
#[inline]
pub(crate) fn runs_out(set: u64, expires: u64) -> u64 {
    let expires = expires.max(set);
    let mut level = 0;
    while level + 1 < LEVELS && expires - set >= PLACES << (3 * level) {
        level += 1;
    }
    ((expires >> (3 * level)) + 1) << (3 * level)
}

/// Microseconds in jiffies, rounded up.
#[inline]
pub(crate) fn jiffies_of(micros: u64) -> u64 {
    micros.div_ceil(1000)
}

/// Extreme value in a window of time, by three samples (`lib/win_minmax.c`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extreme {
    samples: [(u64, u64); 3],
}

impl Extreme {
    /// The value of the best one.
    #[inline]
    pub fn get(&self) -> u64 {
        self.samples[0].1
    }
    /// Restarts the window.
    pub fn reset(&mut self, at: u64, value: u64) {
        self.samples = [(at, value); 3];
    }
    /// Adds a sample; `better` returns true if the first value is at least as good as the second.
    #[inline]
    pub fn take(&mut self, window: u64, at: u64, value: u64, better: fn(u64, u64) -> bool) {
        let new = (at, value);
        if better(value, self.samples[0].1) || at - self.samples[2].0 > window {
            self.reset(at, value);
            return;
        }
        if better(value, self.samples[1].1) {
            self.samples[1] = new;
            self.samples[2] = new;
        } else if better(value, self.samples[2].1) {
            self.samples[2] = new;
        }
        let age = at - self.samples[0].0;
        if age > window {
            self.samples = [self.samples[1], self.samples[2], new];
            if at - self.samples[0].0 > window {
                self.samples = [self.samples[1], self.samples[2], new];
            }
        } else if self.samples[1].0 == self.samples[0].0 && age > window / 4 {
            self.samples[1] = new;
            self.samples[2] = new;
        } else if self.samples[2].0 == self.samples[1].0 && age > window / 2 {
            self.samples[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_run_out_late_by_the_grain_of_their_level() {
        assert_eq!(runs_out(1000, 1012), 1013, "the next jiffy");
        assert_eq!(runs_out(1000, 1272), 1280, "eight jiffies");
        assert_eq!(runs_out(1000, 1600), 1600 / 64 * 64 + 64);
        assert_eq!(runs_out(1000, 900), 1001, "overdue");
    }

    #[test]
    fn the_least_of_a_window_is_forgotten_after_it() {
        let mut least = Extreme::default();
        let better = |new, old| new <= old;
        least.reset(0, 10);
        least.take(100, 50, 20, better);
        assert_eq!(least.get(), 10);
        least.take(100, 90, 15, better);
        least.take(100, 110, 30, better);
        assert_eq!(least.get(), 15);
        least.take(100, 400, 40, better);
        assert_eq!(least.get(), 40);
    }

    #[test]
    fn jiffies_begin_where_the_phase_says() {
        let clock = Clock::new(Span::from_micros(300), 7);
        let jiffy = clock.jiffies(clock.nanos(Time::from_nanos(5_000_000)));
        assert_eq!(clock.begin(jiffy + 1), Time::from_nanos(5_700_000));
        assert_eq!(
            clock.stamp(Time::from_nanos(5_700_000)),
            1 + clock.stamp(Time::from_nanos(5_699_999))
        );
    }
}
