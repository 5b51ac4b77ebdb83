//! The lists of a tin's flows, linked through one array: flows leave them in
//! any place.

use alloc::{vec, vec::Vec};

/// List that a flow is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    New,
    Old,
    Decaying,
}

/// The three lists.
#[derive(Clone)]
pub(super) struct Lists {
    links: Vec<Link>,
    /// First and last of each.
    ends: [(u32, u32); 3],
}

#[derive(Clone, Copy)]
struct Link {
    list: Option<List>,
    before: u32,
    after: u32,
}

/// No flow.
const NOBODY: u32 = u32::MAX;

impl Lists {
    pub fn new(flows: usize) -> Self {
        let link = Link { list: None, before: NOBODY, after: NOBODY };
        Lists { links: vec![link; flows], ends: [(NOBODY, NOBODY); 3] }
    }

    #[inline]
    pub fn head(&self, list: List) -> Option<u32> {
        let (first, _) = self.ends[list as usize];
        (first != NOBODY).then_some(first)
    }

    /// Moves a flow from where it is to the tail of a list.
    pub fn move_to(&mut self, index: u32, list: List) {
        self.remove(index);
        let (first, last) = &mut self.ends[list as usize];
        let before = core::mem::replace(last, index);
        self.links[index as usize] = Link { list: Some(list), before, after: NOBODY };
        match before {
            NOBODY => *first = index,
            _ => self.links[before as usize].after = index,
        }
    }

    /// Takes a flow from its list, if it is on one.
    pub fn remove(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        let Some(list) = link.list.take() else { return };
        let Link { before, after, .. } = *link;
        let (first, last) = &mut self.ends[list as usize];
        match before {
            NOBODY => *first = after,
            _ => self.links[before as usize].after = after,
        }
        match after {
            NOBODY => *last = before,
            _ => self.links[after as usize].before = before,
        }
    }
}
