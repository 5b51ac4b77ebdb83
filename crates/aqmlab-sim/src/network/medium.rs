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

/// A medium of a network.
#[derive(Clone)]
pub(crate) struct Medium {
    taken: bool,
    parties: Vec<Party>,
}

#[derive(Clone)]
struct Party {
    /// Index of the link.
    link: u32,
    waits: bool,
}

/// Place of a link among those that share a medium.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    /// Index of the medium.
    medium: usize,
    /// Index among the parties of the medium.
    place: usize,
}

impl Medium {
    /// Returns the medium of these links, with this index, and their shares of it.
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
    /// Releases the medium. Returns the link that waits next.
    pub fn release(self, media: &mut [Medium]) -> Option<u32> {
        media[self.medium].taken = false;
        self.next_waiting(media)
    }
    pub fn set_waiting(self, waits: bool, media: &mut [Medium]) {
        media[self.medium].parties[self.place].waits = waits;
    }
    /// Returns the link whose turn follows this one's, if the medium is free and a link waits.
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
