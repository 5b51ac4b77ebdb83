//! What was sent and has not arrived, of datagrams that stay in order.

use std::collections::VecDeque;

use aqmlab_core::Time;

/// The datagrams of a flow by the times at which they were sent.
#[derive(Default)]
pub(super) struct Ledger {
    under_way: VecDeque<Time>,
    /// Given up: others that were sent later have arrived.
    pub lost: u64,
}

impl Ledger {
    pub fn sent(&mut self, now: Time) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overtaken_is_lost_and_doubles_do_not_count() {
        let at = |n: u64| Time::from_nanos(n);
        let mut ledger = Ledger::default();
        (1..=4).for_each(|n| ledger.sent(at(n)));
        assert!(ledger.arrived(at(1)) && !ledger.arrived(at(1)));
        assert!(ledger.arrived(at(3)));
        assert_eq!(ledger.lost, 1);
        assert!(!ledger.arrived(at(2)), "too late");
        assert!(ledger.arrived(at(4)));
        assert_eq!(ledger.lost, 1);
    }
}
