//! Deficit round robin as first published.
//!
//! # Sources
//! Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round Robin",
//! IEEE/ACM Transactions on Networking 4(3), 1996, section III.

use alloc::{collections::VecDeque, vec, vec::Vec};

use aqmlab_core::Bytes;

use crate::fq::FlowScheduler;

/// Round robin: a flow gets a quantum at its turn and sends as its credit allows; a flow that runs
/// empty loses its credit.
#[derive(Clone)]
pub(crate) struct Rounds {
    quantum: u64,
    deficits: Vec<u64>,
    active: Vec<bool>,
    /// The active flows, the one whose turn it is in front.
    round: VecDeque<u32>,
    /// True if that flow has received its quantum.
    is_served: bool,
}

impl Rounds {
    /// The flow in front has nothing to send.
    fn retire(&mut self) {
        if let Some(bucket) = self.round.pop_front() {
            self.active[bucket as usize] = false;
            self.deficits[bucket as usize] = 0;
            self.is_served = false;
        }
    }
}

impl FlowScheduler for Rounds {
    fn new(buckets: u64, quantum: Bytes) -> Self {
        Rounds {
            quantum: quantum.get(),
            deficits: vec![0; buckets as usize],
            active: vec![false; buckets as usize],
            round: VecDeque::new(),
            is_served: false,
        }
    }
    fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = quantum.get();
    }
    #[inline]
    fn is_active(&self, bucket: u32) -> bool {
        self.active[bucket as usize]
    }
    fn activate(&mut self, bucket: u32) {
        self.active[bucket as usize] = true;
        self.round.push_back(bucket);
    }
    fn pick(&mut self, head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        loop {
            let bucket = *self.round.front()?;
            let deficit = &mut self.deficits[bucket as usize];
            if !self.is_served {
                *deficit += self.quantum;
                self.is_served = true;
            }
            match head(bucket) {
                Some(size) if u64::from(size) <= *deficit => return Some(bucket),
                Some(_) => {
                    self.round.rotate_left(1);
                    self.is_served = false;
                }
                // It lost its packets to others.
                None => self.retire(),
            }
        }
    }
    #[inline]
    fn served(&mut self, bucket: u32, size: u32, is_empty: bool) {
        self.deficits[bucket as usize] -= u64::from(size);
        if is_empty {
            self.retire();
        }
    }
    fn gave_none(&mut self, _bucket: u32) {
        self.retire();
    }
    fn active(&self) -> impl Iterator<Item = u32> {
        self.round.iter().copied()
    }
    fn clear(&mut self) {
        while !self.round.is_empty() {
            self.retire();
        }
    }
}
