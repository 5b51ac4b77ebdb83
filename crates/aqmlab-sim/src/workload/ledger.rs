//! Datagrams of a flow that have not arrived: in flight or lost.

use std::collections::VecDeque;

use aqmlab_core::{Span, Time};

/// Time after which a datagram that has not arrived counts as lost.
const GIVEN_UP: Span = Span::from_secs(3);

/// Datagrams in flight, in order of their sending times.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    under_way: VecDeque<Time>,
    /// Number of lost datagrams: overtaken, or overdue.
    lost: u64,
}

impl Ledger {
    pub fn sent(&mut self, now: Time) {
        let overdue = self.overdue(now);
        self.under_way.drain(..overdue);
        self.lost += overdue as u64;
        self.under_way.push_back(now);
    }
    /// Records an arrival. Returns whether it is in order; overtaken datagrams count as lost, and
    /// duplicates count once.
    pub fn arrived(&mut self, sent: Time) -> bool {
        while let Some(first) = self.under_way.front()
            && *first < sent
        {
            self.under_way.pop_front();
            self.lost += 1;
        }
        let is_due = self.under_way.front() == Some(&sent);
        if is_due {
            self.under_way.pop_front();
        }
        is_due
    }
    /// Returns the number of datagrams lost by `now`.
    pub fn lost(&self, now: Time) -> u64 {
        self.lost + self.overdue(now) as u64
    }
    /// Restarts the count of losses.
    pub fn restart(&mut self, now: Time) {
        let overdue = self.overdue(now);
        self.under_way.drain(..overdue);
        self.lost = 0;
    }
    /// Returns the number of overdue datagrams.
    fn overdue(&self, now: Time) -> usize {
        self.under_way.iter().take_while(|sent| **sent + GIVEN_UP < now).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overtaken_is_lost_and_doubles_do_not_count() {
        let (at, now) = (|n: u64| Time::from_nanos(n), Time::from_nanos(5));
        let mut ledger = Ledger::default();
        (1..=4).for_each(|n| ledger.sent(at(n)));
        assert!(ledger.arrived(at(1)) && !ledger.arrived(at(1)));
        assert!(ledger.arrived(at(3)));
        assert_eq!(ledger.lost(now), 1);
        assert!(!ledger.arrived(at(2)), "too late");
        assert!(ledger.arrived(at(4)));
        assert_eq!(ledger.lost(now), 1);
    }
    #[test]
    fn what_never_arrives_is_lost_in_the_end() {
        let at = |secs: u64| Time::ZERO + Span::from_secs(secs);
        let mut ledger = Ledger::default();
        (0..10).for_each(|n| ledger.sent(at(n)));
        assert_eq!(ledger.lost(at(9)), 6, "sent at 0 to 5 s");
        assert_eq!(ledger.lost(at(11)), 8);
        assert!(!ledger.arrived(at(5)), "too late");
        ledger.restart(at(9));
        assert_eq!((ledger.lost(at(9)), ledger.lost(at(11))), (0, 2));
    }
}
