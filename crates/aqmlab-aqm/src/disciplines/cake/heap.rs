//! The heap that finds the queue to drop from.
//!
//! # Sources
//! Linux's sch_cake, whose heap has a fault: an entry that sinks compares the
//! next levels with what took its place. So the top is not always the longest
//! queue, and which one it is depends on the entries of unused tins.

use alloc::vec::Vec;

/// Queues by their bytes. Entry `8 i + t` is queue `i` of tin `t`, whether
/// there is such a tin or not.
#[derive(Clone, Default)]
pub(super) struct Heap {
    /// Empty until the buffer is full for the first time.
    entries: Vec<u32>,
    /// Index in the heap of each entry.
    places: Vec<u32>,
    /// For so many more departures the heap is kept up to date.
    timeout: u32,
}

impl Heap {
    pub const TINS: u32 = 8;
    /// Number of departures after a drop for which the heap is kept up to date.
    const TIMEOUT: u32 = 65_535;

    fn value(&self, place: usize, bytes: impl Fn(u32, u32) -> u64) -> u64 {
        let entry = self.entries[place];
        bytes(entry % Self::TINS, entry / Self::TINS)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        self.places[self.entries[a] as usize] = a as u32;
        self.places[self.entries[b] as usize] = b as u32;
    }

    fn sink(&mut self, mut place: usize, bytes: impl Fn(u32, u32) -> u64) {
        let mut most = self.value(place, &bytes);
        loop {
            let mut best = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.entries.len() && self.value(child, &bytes) > most {
                    best = child;
                    most = self.value(child, &bytes);
                }
            }
            if best == place {
                return;
            }
            self.swap(place, best);
            place = best;
        }
    }

    /// Where the queue is, if the heap is up to date.
    #[inline]
    fn place(&self, tin: u32, index: u32) -> Option<usize> {
        (self.timeout > 0).then(|| self.places[(index * Self::TINS + tin) as usize] as usize)
    }

    /// The queue got a packet. `bytes` are those of a queue in a tin.
    #[inline]
    pub fn grown(&mut self, tin: u32, index: u32, bytes: impl Fn(u32, u32) -> u64) {
        let Some(mut place) = self.place(tin, index) else { return };
        while place > 0 && self.value(place, &bytes) > self.value((place - 1) / 2, &bytes) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// The queue lost a packet.
    #[inline]
    pub fn shrunk(&mut self, tin: u32, index: u32, bytes: impl Fn(u32, u32) -> u64) {
        if let Some(place) = self.place(tin, index) {
            self.sink(place, bytes);
        }
    }

    /// A packet was sent.
    #[inline]
    pub fn departed(&mut self) {
        self.timeout = self.timeout.saturating_sub(1);
    }

    /// Marks the heap as out of date: queues changed without an update.
    pub fn disordered(&mut self) {
        self.timeout = 0;
    }

    /// The tin and the queue at the top, which loses a packet now; the heap is
    /// built if it is not up to date, or if it has an empty queue there.
    pub fn top(&mut self, queues: usize, bytes: impl Fn(u32, u32) -> u64) -> (u32, u32) {
        if self.entries.is_empty() {
            self.entries = (0..queues as u32 * Self::TINS).collect();
            self.places.clone_from(&self.entries);
        }
        if self.timeout == 0 || self.value(0, &bytes) == 0 {
            for place in (0..=self.entries.len() / 2).rev() {
                self.sink(place, &bytes);
            }
        }
        self.timeout = Self::TIMEOUT;
        (self.entries[0] % Self::TINS, self.entries[0] / Self::TINS)
    }
}
