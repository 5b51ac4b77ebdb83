//! Buckets in turn, packet by packet, new ones first.
//!
//! # Sources
//! ns-2's sfqCoDel (Nichols and Jacobson, 2013), as the conformance vectors
//! show it.

use alloc::{collections::VecDeque, vec, vec::Vec};

use aqmlab_core::Bytes;

use crate::fq::FlowScheduler;

/// The ring of active buckets, turned so that the next one is in front.
#[derive(Clone)]
pub(crate) struct Ring {
    ring: VecDeque<u32>,
    active: Vec<bool>,
    /// Not served since it became active.
    new: Vec<bool>,
}

impl FlowScheduler for Ring {
    fn new(buckets: u64, _quantum: Bytes) -> Self {
        let none = || vec![false; buckets as usize];
        Ring { ring: VecDeque::new(), active: none(), new: none() }
    }
    #[inline]
    fn is_active(&self, bucket: u32) -> bool {
        self.active[bucket as usize]
    }
    fn activate(&mut self, bucket: u32) {
        self.active[bucket as usize] = true;
        self.new[bucket as usize] = true;
        let last = self.ring.len().saturating_sub(1);
        let new = &self.new;
        let place = self.ring.iter().take_while(|other| new[**other as usize]).count().min(last);
        if place == last {
            self.ring.push_back(bucket);
        } else {
            self.ring.insert(place, bucket);
        }
    }
    fn pick(&mut self, head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        // An empty bucket stays until its turn comes.
        while let Some(&bucket) = self.ring.front() {
            if head(bucket).is_some() {
                self.new[bucket as usize] = false;
                return Some(bucket);
            }
            self.ring.pop_front();
            self.active[bucket as usize] = false;
            self.new[bucket as usize] = false;
        }
        None
    }
    #[inline]
    fn served(&mut self, _bucket: u32, _size: u32, _is_empty: bool) {
        self.ring.rotate_left(1);
    }
    fn gave_none(&mut self, _bucket: u32) {
        // The discipline inside emptied it: `pick` takes it off.
    }
    fn active(&self) -> impl Iterator<Item = u32> {
        self.ring.iter().copied()
    }
    fn clear(&mut self) {
        for bucket in self.ring.drain(..) {
            self.active[bucket as usize] = false;
            self.new[bucket as usize] = false;
        }
    }
}
