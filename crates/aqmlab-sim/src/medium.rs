//! A medium that two links share: only one of them sends at a time.
//!
//! A link that finds the medium taken waits; where both wait they take turns,
//! packet by packet. Turning round takes no time.

use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone, Copy, Default)]
struct Medium {
    taken: bool,
    waiting: [bool; 2],
}

/// One link's part in a medium.
pub(crate) struct Share {
    medium: Rc<Cell<Medium>>,
    side: usize,
    /// The other link, by index.
    partner: u32,
}

impl Share {
    /// The parts of two links, by index.
    pub fn pair(first: u32, second: u32) -> [Share; 2] {
        let medium = Rc::new(Cell::new(Medium::default()));
        let share = |side, partner| Share { medium: Rc::clone(&medium), side, partner };
        [share(0, second), share(1, first)]
    }

    fn update(&self, change: impl FnOnce(&mut Medium)) {
        let mut medium = self.medium.get();
        change(&mut medium);
        self.medium.set(medium);
    }
    pub fn is_taken(&self) -> bool {
        self.medium.get().taken
    }
    pub fn take(&self) {
        self.update(|medium| medium.taken = true);
    }
    /// This link has sent. Gives the other if it waits.
    pub fn release(&self) -> Option<u32> {
        self.update(|medium| medium.taken = false);
        self.waiting_partner()
    }
    pub fn wait(&self) {
        self.update(|medium| medium.waiting[self.side] = true);
    }
    pub fn stop_waiting(&self) {
        self.update(|medium| medium.waiting[self.side] = false);
    }
    /// The other link if it waits for the medium, and that is free.
    pub fn waiting_partner(&self) -> Option<u32> {
        let medium = self.medium.get();
        (!medium.taken && medium.waiting[1 - self.side]).then_some(self.partner)
    }
}
