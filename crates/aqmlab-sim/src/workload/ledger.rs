//! Datagrams of a flow that have not arrived: in flight or lost.

use std::collections::VecDeque;

use aqmlab_core::{Span, Time};

/// Time after which a datagram that has not arrived counts as lost.
pub(super) const GIVEN_UP: Span = Span::from_secs(3);

/// Datagrams in flight, in order of their sending times.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    under_way: VecDeque<Time>,
    /// Number of lost datagrams, without those overdue since the last call.
    lost: u64,
}

impl Ledger {
    pub fn sent(&mut self, now: Time) {
        self.lose(self.overdue(now, GIVEN_UP));
        self.under_way.push_back(now);
    }
    /// Counts the datagrams that were sent before `sent` and have not arrived as lost.
    pub fn overtake(&mut self, sent: Time) {
        self.lose(self.under_way.partition_point(|each| *each < sent));
    }
    /// Records an arrival. Returns false for a duplicate, and for a datagram that counts as lost.
    pub fn arrived(&mut self, sent: Time, now: Time) -> bool {
        self.lose(self.overdue(now, GIVEN_UP));
        let place = self.under_way.binary_search(&sent);
        place.is_ok_and(|place| self.under_way.remove(place).is_some())
    }
    /// Returns the number of datagrams lost by `now`, of which those that have not arrived `after`
    /// they were sent.
    pub fn lost(&self, now: Time, after: Span) -> u64 {
        self.lost + self.overdue(now, after) as u64
    }
    /// Restarts the count of losses.
    pub fn restart(&mut self, now: Time, after: Span) {
        self.lose(self.overdue(now, after));
        self.lost = 0;
    }
    /// Counts the first datagrams as lost.
    fn lose(&mut self, datagrams: usize) {
        self.under_way.drain(..datagrams);
        self.lost += datagrams as u64;
    }
    /// Returns the number of datagrams that have not arrived `after` they were sent.
    fn overdue(&self, now: Time, after: Span) -> usize {
        let after = after.min(GIVEN_UP);
        self.under_way.iter().take_while(|sent| **sent + after < now).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overtaken_datagrams_arrive_and_doubles_do_not_count() {
        let (at, now) = (|n: u64| Time::from_nanos(n), Time::from_nanos(5));
        let mut ledger = Ledger::default();
        (1..=4).for_each(|n| ledger.sent(at(n)));
        assert!(ledger.arrived(at(1), now) && !ledger.arrived(at(1), now));
        assert!(ledger.arrived(at(3), now));
        assert!(ledger.arrived(at(2), now) && !ledger.arrived(at(2), now));
        assert_eq!(ledger.lost(now, GIVEN_UP), 0);
        assert_eq!(ledger.lost(now + Span::from_secs(4), GIVEN_UP), 1);
    }
    #[test]
    fn an_application_may_count_what_is_overtaken_as_lost() {
        let (at, now) = (|n: u64| Time::from_nanos(n), Time::from_nanos(5));
        let mut ledger = Ledger::default();
        (1..=4).for_each(|n| ledger.sent(at(n)));
        ledger.overtake(at(3));
        assert!(ledger.arrived(at(3), now));
        assert_eq!(ledger.lost(now, GIVEN_UP), 2);
        ledger.overtake(at(2));
        assert!(!ledger.arrived(at(2), now), "too late");
        assert!(ledger.arrived(at(4), now));
        assert_eq!(ledger.lost(now, GIVEN_UP), 2);
    }
    #[test]
    fn what_never_arrives_is_lost_in_the_end() {
        let at = |secs: u64| Time::ZERO + Span::from_secs(secs);
        let mut ledger = Ledger::default();
        (0..10).for_each(|n| ledger.sent(at(n)));
        assert_eq!(ledger.lost(at(9), GIVEN_UP), 6, "sent at 0 to 5 s");
        assert_eq!(ledger.lost(at(11), GIVEN_UP), 8);
        assert!(!ledger.arrived(at(5), at(9)), "too late");
        ledger.restart(at(9), GIVEN_UP);
        assert_eq!((ledger.lost(at(9), GIVEN_UP), ledger.lost(at(11), GIVEN_UP)), (0, 2));
    }
}
