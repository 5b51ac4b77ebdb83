//! Deficit round robin between flows, new ones first.
//!
//! # Sources
//! RFC 8290, sections 4.1 and 4.2; Linux's fq_codel and fq_pie do the same, as
//! the conformance vectors show.

use alloc::{collections::VecDeque, vec, vec::Vec};

use aqmlab_core::Bytes;

use crate::fq::FlowScheduler;

/// Deficit round robin with new and old flows (RFC 8290, section 4.2).
#[derive(Clone)]
pub(crate) struct Drr {
    quantum: i64,
    deficits: Vec<i64>,
    active: Vec<bool>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl FlowScheduler for Drr {
    fn new(buckets: u64, quantum: Bytes) -> Self {
        Drr {
            quantum: quantum.get() as i64,
            deficits: vec![0; buckets as usize],
            active: vec![false; buckets as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }
    fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = quantum.get() as i64;
    }
    #[inline]
    fn is_active(&self, bucket: u32) -> bool {
        self.active[bucket as usize]
    }
    fn activate(&mut self, bucket: u32) {
        self.active[bucket as usize] = true;
        self.deficits[bucket as usize] = self.quantum;
        self.new.push_back(bucket);
    }
    fn pick(&mut self, _head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let bucket = *list.front()?;
            let deficit = &mut self.deficits[bucket as usize];
            if *deficit > 0 {
                return Some(bucket);
            }
            *deficit += self.quantum;
            list.pop_front();
            self.old.push_back(bucket);
        }
    }
    #[inline]
    fn served(&mut self, bucket: u32, size: u32, _is_empty: bool) {
        self.deficits[bucket as usize] -= i64::from(size);
    }
    fn gave_none(&mut self, bucket: u32) {
        // A new flow that ran empty waits a turn among the old ones; otherwise it could always
        // return as a new one.
        if self.new.pop_front().is_some() && !self.old.is_empty() {
            self.old.push_back(bucket);
            return;
        } else if self.old.front() == Some(&bucket) {
            self.old.pop_front();
        }
        self.active[bucket as usize] = false;
    }
    fn active(&self) -> impl Iterator<Item = u32> {
        self.new.iter().chain(&self.old).copied()
    }
    fn clear(&mut self) {
        for bucket in self.new.drain(..).chain(self.old.drain(..)) {
            self.active[bucket as usize] = false;
        }
    }
}
