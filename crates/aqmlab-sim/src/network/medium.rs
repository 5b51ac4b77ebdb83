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

/// A medium, one of a network's.
#[derive(Clone)]
pub(crate) struct Medium {
    taken: bool,
    parties: Vec<Party>,
}

#[derive(Clone)]
struct Party {
    /// The link, by index.
    link: u32,
    waits: bool,
}

/// One link's part in a medium.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    /// The medium, by index.
    medium: usize,
    /// The place among its parties.
    place: usize,
}

impl Medium {
    /// The medium of these links, which is the `index`-th, and their parts in it.
    pub fn of(links: &[u32], index: usize) -> (Medium, impl Iterator<Item = Share>) {
        let parties = links.iter().map(|link| Party { link: *link, waits: false }).collect();
        let shares = (0..links.len()).map(move |place| Share { medium: index, place });
        (Medium { taken: false, parties }, shares)
    }
}

impl Share {
    pub fn is_taken(self, media: &[Medium]) -> bool {
        media[self.medium].taken
    }
    pub fn take(self, media: &mut [Medium]) {
        media[self.medium].taken = true;
    }
    /// This link has sent. Gives the next that waits.
    pub fn release(self, media: &mut [Medium]) -> Option<u32> {
        media[self.medium].taken = false;
        self.next_waiting(media)
    }
    pub fn set_waiting(self, waits: bool, media: &mut [Medium]) {
        media[self.medium].parties[self.place].waits = waits;
    }
    /// The link whose turn it is after this one, if the medium is free and
    /// another waits.
    pub fn next_waiting(self, media: &[Medium]) -> Option<u32> {
        let medium = &media[self.medium];
        if medium.taken {
            return None;
        }
        let (before, after) = medium.parties.split_at(self.place);
        let others = after[1..].iter().chain(before);
        others.into_iter().find(|party| party.waits).map(|party| party.link)
    }
}
