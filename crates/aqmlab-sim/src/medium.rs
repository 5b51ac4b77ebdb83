//! A medium that links share: only one of them sends at a time.
//!
//! A link that finds the medium taken waits; those that wait take turns, packet
//! by packet, in the order of the scenario. So each has as many opportunities
//! to send as any other that has something to send, whatever its rate.
//!
//! # Sources
//! IEEE 802.11's distributed coordination gives every station the same chance
//! to send next; what follows for slow and fast stations on one channel:
//! Heusse, Rousseau, Berger-Sabbatel and Duda, "Performance Anomaly of
//! 802.11b" (INFOCOM 2003).
//!
//! # Differences
//! 1. Turns are in order, where stations contend at random; contention,
//!    collisions and turning round take no time (`rate = { process = "wifi" }`
//!    has them, for one station).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

struct Medium {
    taken: Cell<bool>,
    parties: RefCell<Vec<Party>>,
}

struct Party {
    /// The link, by index.
    link: u32,
    waits: bool,
}

/// One link's part in a medium.
pub(crate) struct Share {
    medium: Rc<Medium>,
    place: usize,
}

impl Share {
    /// The parts of these links, by index.
    pub fn among(links: &[u32]) -> Vec<Share> {
        let parties = links.iter().map(|link| Party { link: *link, waits: false }).collect();
        let medium = Rc::new(Medium { taken: Cell::new(false), parties: RefCell::new(parties) });
        (0..links.len()).map(|place| Share { medium: Rc::clone(&medium), place }).collect()
    }

    pub fn is_taken(&self) -> bool {
        self.medium.taken.get()
    }
    pub fn take(&self) {
        self.medium.taken.set(true);
    }
    /// This link has sent. Gives the next that waits.
    pub fn release(&self) -> Option<u32> {
        self.medium.taken.set(false);
        self.next_waiting()
    }
    pub fn set_waiting(&self, waits: bool) {
        self.medium.parties.borrow_mut()[self.place].waits = waits;
    }
    /// The link whose turn it is after this one, if the medium is free and
    /// another waits.
    pub fn next_waiting(&self) -> Option<u32> {
        if self.is_taken() {
            return None;
        }
        let parties = self.medium.parties.borrow();
        let (before, after) = parties.split_at(self.place);
        let others = after[1..].iter().chain(before);
        others.into_iter().find(|party| party.waits).map(|party| party.link)
    }
}
