//! Datagrams of a flow that have not arrived: under way, or lost.

use std::collections::VecDeque;

use aqmlab_core::{Span, Time};

/// A datagram that has not arrived after this time is lost.
const GIVEN_UP: Span = Span::from_secs(3);

/// The datagrams of a flow that keep their order, by the times at which they were sent.
#[derive(Default)]
pub(super) struct Ledger {
    under_way: VecDeque<Time>,
    /// Given up: others that were sent later have arrived, or it took too long.
    lost: u64,
}

impl Ledger {
    pub fn sent(&mut self, now: Time) {
        let overdue = self.overdue(now);
        self.under_way.drain(..overdue);
        self.lost += overdue as u64;
        self.under_way.push_back(now);
    }
    /// Whether what was sent then arrives in its turn; what was overtaken is
    /// given up already, and what comes twice counts once.
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
    /// Datagrams lost by `now`.
    pub fn lost(&self, now: Time) -> u64 {
        self.lost + self.overdue(now) as u64
    }
    /// Counts losses from now on.
    pub fn restart(&mut self, now: Time) {
        let overdue = self.overdue(now);
        self.under_way.drain(..overdue);
        self.lost = 0;
    }
    /// Datagrams under way for too long.
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
