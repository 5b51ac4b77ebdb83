//! Queueing delay: what delays are now, above the least of the last minutes.
//!
//! # Sources
//! RFC 6817, sections 2.4.2 and 2.5: minima over minutes, and the least of the
//! last samples as FILTER().

use aqmlab_core::{Span, Time};

/// BASE_HISTORY and CURRENT_FILTER.
const BASE_HISTORY: usize = 10;
const CURRENT_FILTER: usize = 4;
const MINUTE: u64 = 60_000_000_000;

/// Delays as LEDBAT keeps them.
#[derive(Clone, Debug)]
pub(super) struct QueueingDelay {
    /// The least delay of each of the last minutes with samples, the present one last.
    base: [Span; BASE_HISTORY],
    /// The minute of the last of them.
    minute: u64,
    current: [Span; CURRENT_FILTER],
    next: usize,
}

impl QueueingDelay {
    pub fn new() -> Self {
        QueueingDelay {
            base: [Span::MAX; BASE_HISTORY],
            minute: 0,
            current: [Span::MAX; CURRENT_FILTER],
            next: 0,
        }
    }

    pub fn sample(&mut self, now: Time, delay: Span) {
        let minute = now.as_nanos() / MINUTE;
        // Section 2.4.2: one minimum is forgotten, also after minutes without a sample.
        if minute != self.minute {
            self.minute = minute;
            self.base.rotate_left(1);
            self.base[BASE_HISTORY - 1] = Span::MAX;
        }
        let least = &mut self.base[BASE_HISTORY - 1];
        *least = delay.min(*least);
        self.current[self.next] = delay;
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// The least delay of the last minutes, once there is one.
    pub fn base(&self) -> Option<Span> {
        self.base.iter().copied().min().filter(|&base| base != Span::MAX)
    }

    /// Queuing delay, once a delay was measured.
    pub fn queueing(&self) -> Option<Span> {
        let current = self.current.iter().copied().min()?;
        Some(current.saturating_sub(self.base()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }
    fn ms(millis: u64) -> Option<Span> {
        Some(Span::from_millis(millis))
    }

    #[test]
    fn the_least_of_four_counts_above_the_least_of_ten_minutes() {
        let mut delay = QueueingDelay::new();
        assert_eq!((delay.base(), delay.queueing()), (None, None));
        for (seconds, millis) in [(0, 50), (1, 90), (2, 80), (3, 95), (4, 99)] {
            delay.sample(at(seconds), Span::from_millis(millis));
        }
        assert_eq!((delay.base(), delay.queueing()), (ms(50), ms(30)));
        // The first minute is forgotten after ten.
        for minute in 1..10 {
            delay.sample(at(60 * minute), Span::from_millis(70));
        }
        assert_eq!((delay.base(), delay.queueing()), (ms(50), ms(20)));
        delay.sample(at(600), Span::from_millis(70));
        assert_eq!((delay.base(), delay.queueing()), (ms(70), ms(0)));
        delay.sample(at(6000), Span::from_millis(75));
        assert_eq!(delay.base(), ms(70), "a silence is one minute");
    }
}
