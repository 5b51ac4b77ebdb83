//! Out-of-order data: blocks, and the order in which they last grew.
//!
//! There may be tens of thousands of blocks (every second segment of a large window is lost, or a
//! lost retransmission leaves the first gap open while new data arrive). The four that grew last
//! are reported. Blocks are therefore in two orders: by sequence number, in a ring whose shorter
//! side moves when a block is added or removed, and by their latest arrival, in a linked list.

use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Block {
    start: u64,
    end: u64,
    /// Packets that hold it, and segments in the last of them.
    heads: u32,
    shared: u32,
    /// The places of those that grew just after it and just before it.
    newer: u32,
    older: u32,
}

/// Blocks of data beyond what arrived in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// The blocks at their places, and the places that are free.
    kept: Vec<Block>,
    free: Vec<u32>,
    /// The places by sequence number; the blocks are apart from each other.
    sorted: VecDeque<u32>,
    newest: u32,
    bytes: u64,
    heads: u64,
    /// Segments that share a head at most.
    shared: u32,
}

impl Reassembly {
    pub fn new(shared: u32) -> Self {
        Reassembly { newest: NONE, shared, ..Reassembly::default() }
    }

    /// True if no data are out of order.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.newest == NONE
    }

    fn at(&self, place: u32) -> &Block {
        &self.kept[place as usize]
    }
    fn unlink(&mut self, place: u32) {
        let Block { newer, older, .. } = *self.at(place);
        match newer {
            NONE => self.newest = older,
            newer => self.kept[newer as usize].older = older,
        }
        if older != NONE {
            self.kept[older as usize].newer = newer;
        }
    }

    /// Keeps data that arrived out of order, joined with their neighbours; returns what of them the
    /// first block held before that they overlap (`tcp_data_queue_ofo`: one D-SACK is contiguous).
    pub fn store(&mut self, mut start: u64, mut end: u64) -> Option<(u64, u64)> {
        let first = self.sorted.partition_point(|place| self.at(*place).end < start);
        let last = self.sorted.partition_point(|place| self.at(*place).start <= end);
        let mut known = None;
        let (from, (mut heads, mut shared)) = (start, (1, 1));
        for index in first..last {
            let place = self.sorted[index];
            let block = *self.at(place);
            let is_known = block.start <= start && end <= block.end;
            let (first, last) = (block.start.max(start), block.end.min(end));
            known = known.or((first < last).then_some((first, last)));
            start = start.min(block.start);
            end = end.max(block.end);
            self.bytes -= block.end - block.start;
            self.heads -= u64::from(block.heads);
            if block.end == from && block.shared < self.shared {
                (heads, shared) = (block.heads, block.shared + 1);
            } else if block.end == from {
                heads = block.heads + 1;
            } else if block.start <= from && is_known {
                (heads, shared) = (block.heads, block.shared);
            } else {
                (heads, shared) = (heads + block.heads, block.shared);
            }
            self.unlink(place);
        }
        self.bytes += end - start;
        self.heads += u64::from(heads);
        let place = match self.sorted.get(first).filter(|_| first < last) {
            Some(&place) => {
                self.free.extend(self.sorted.drain(first + 1..last));
                place
            }
            None => {
                let place = self.free.pop().unwrap_or(self.kept.len() as u32);
                self.sorted.insert(first, place);
                place
            }
        };
        let block = Block { start, end, heads, shared, newer: NONE, older: self.newest };
        match self.kept.get_mut(place as usize) {
            Some(kept) => *kept = block,
            None => self.kept.push(block),
        }
        if self.newest != NONE {
            self.kept[self.newest as usize].newer = place;
        }
        self.newest = place;
        known
    }

    /// Returns the part of data in order up to `end` that the first block holds (`tcp_ofo_queue`).
    pub fn known_before(&self, end: u64) -> Option<(u64, u64)> {
        let block = self.at(*self.sorted.front()?);
        (block.start < end).then_some((block.start, block.end.min(end)))
    }

    /// All before `next` has arrived: up to where that is so with the blocks that are joined.
    pub fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(&place) = self.sorted.front()
            && self.at(place).start <= next
        {
            let block = *self.at(place);
            next = next.max(block.end);
            self.bytes -= block.end - block.start;
            self.heads -= u64::from(block.heads);
            self.unlink(place);
            self.free.push(place);
            self.sorted.pop_front();
        }
        next
    }

    /// Bytes in all blocks.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Packets that hold them.
    #[inline]
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// The blocks, the one with the latest arrival first.
    pub fn latest(&self) -> impl Iterator<Item = (u64, u64)> {
        let kept = |place: u32| self.kept.get(place as usize);
        let blocks = std::iter::successors(kept(self.newest), move |block| kept(block.older));
        blocks.map(|block| (block.start, block.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Byte by byte: when each last arrived in a block, 0 if it did not.
    fn by_bytes(arrived: &[u64], next: u64) -> Vec<(u64, u64)> {
        let mut blocks: Vec<(u64, (u64, u64))> = Vec::new();
        for byte in next..arrived.len() as u64 {
            let stamp = arrived[byte as usize];
            match blocks.last_mut() {
                Some((latest, block)) if stamp > 0 && block.1 == byte => {
                    *latest = stamp.max(*latest);
                    block.1 += 1;
                }
                _ if stamp > 0 => blocks.push((stamp, (byte, byte + 1))),
                _ => {}
            }
        }
        blocks.sort_by_key(|(latest, _)| std::cmp::Reverse(*latest));
        blocks.into_iter().map(|(_, block)| block).collect()
    }

    /// The first of the bytes from `start` on that had arrived, up to one that had not.
    fn first_run(bytes: &[u64], start: u64) -> Option<(u64, u64)> {
        let first = bytes.iter().position(|before| *before > 0)?;
        let run = bytes[first..].iter().take_while(|before| **before > 0).count();
        Some((start + first as u64, start + (first + run) as u64))
    }

    proptest! {
        /// RFC 2018, section 4: the block with the latest segment first, then those before it.
        #[test]
        fn blocks_are_those_of_the_bytes_and_the_latest_comes_first(
            segments in prop::collection::vec((0u64..60, 1u64..6), 1..80),
        ) {
            let (mut reassembly, mut next) = (Reassembly::new(1), 0);
            let mut arrived = vec![0; 70];
            for (stamp, (start, len)) in (1..).zip(segments) {
                let end = start + len;
                if end <= next {
                    continue;
                }
                let bytes = &mut arrived[start as usize..end as usize];
                if start > next {
                    let known = reassembly.store(start, end);
                    prop_assert_eq!(known, first_run(bytes, start));
                    bytes.fill(stamp);
                } else {
                    // In order: no block has grown by it.
                    let after = next.saturating_sub(start).min(len) as usize;
                    let known = reassembly.known_before(end);
                    prop_assert_eq!(known, first_run(&bytes[after..], start + after as u64));
                    bytes.iter_mut().for_each(|byte| *byte = stamp);
                    next = reassembly.advance(end);
                    let gap = arrived.iter().position(|byte| *byte == 0);
                    prop_assert_eq!(next, gap.unwrap_or(arrived.len()) as u64);
                }
                let expected = by_bytes(&arrived, next);
                prop_assert_eq!(reassembly.is_empty(), expected.is_empty());
                prop_assert_eq!(reassembly.latest().collect::<Vec<_>>(), expected);
            }
        }
    }
}
