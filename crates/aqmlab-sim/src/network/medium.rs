//! A medium that links share: only one of them sends at a time.
//!
//! A link that finds the medium taken waits. Waiting links take turns, packet by packet, in the
//! order of the scenario. So all links with packets to send have equally many opportunities,
//! regardless of their rates.
//!
//! # Sources
//! IEEE 802.11's distributed coordination gives every station the same chance to send next.
//! Consequences for slow and fast stations on one channel: Heusse, Rousseau, Berger-Sabbatel and
//! Duda, "Performance Anomaly of 802.11b" (INFOCOM 2003).
//!
//! # Differences
//! 1. Turns are in order, where stations contend at random. Contention, collisions and turnaround
//!    take no time (`rate = { process = "wifi" }` models them, for one station).

/// A medium of a network, numbered as the first of its links.
#[derive(Clone, Default)]
pub(crate) struct Medium {
    is_taken: bool,
    /// Links that wait, in ascending order.
    waiting: Vec<u32>,
}

impl Medium {
    /// Takes the medium for a link. Returns false, and lets the link wait, if another one has taken
    /// it.
    pub fn take(&mut self, link: u32) -> bool {
        if self.is_taken {
            self.wait(link);
            return false;
        }
        self.is_taken = true;
        true
    }
    /// Releases the medium of a link. Returns the link that waits next.
    pub fn release(&mut self, link: u32) -> Option<u32> {
        self.is_taken = false;
        self.next_waiting(link)
    }
    /// Lets a link wait for its turn.
    pub fn wait(&mut self, link: u32) {
        let place = self.waiting.partition_point(|other| *other < link);
        self.waiting.insert(place, link);
    }
    /// Ends the wait of a link.
    pub fn end_wait(&mut self, link: u32) {
        self.waiting.retain(|other| *other != link);
    }
    /// Returns the link whose turn follows this one's, if the medium is free and a link waits.
    pub fn next_waiting(&self, link: u32) -> Option<u32> {
        let after = self.waiting.iter().find(|other| **other > link);
        let next = after.or(self.waiting.first()).filter(|other| **other != link);
        next.copied().filter(|_| !self.is_taken)
    }
}
