//! What arrived out of order: blocks of data, and in which order they last grew.
//!
//! Of hundreds of blocks (a lost repair leaves the first gap open while new data go on coming) only the
//! four that grew last are ever reported, so their order is kept and not looked for.

/// Blocks of data beyond what arrived in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// Where each begins and ends, sorted, apart from each other.
    blocks: Vec<(u64, u64)>,
    /// The same, the one with the latest arrival last.
    latest: Vec<(u64, u64)>,
}

impl Reassembly {
    /// Whether nothing has arrived out of order.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Keeps data that arrived out of order, joined with their neighbours;
    /// whether they were all there before.
    pub fn store(&mut self, mut start: u64, mut end: u64) -> bool {
        let first = self.blocks.partition_point(|block| block.1 < start);
        let touched = self.blocks[first..].partition_point(|block| block.0 <= end);
        let last = first + touched;
        let is_known =
            self.blocks.get(first).is_some_and(|block| block.0 <= start && end <= block.1);
        for block in &self.blocks[first..last] {
            start = start.min(block.0);
            end = end.max(block.1);
            let place = self.latest.iter().rposition(|each| each == block);
            self.latest.remove(place.expect("each block is in both lists"));
        }
        self.latest.push((start, end));
        match touched {
            1 => self.blocks[first] = (start, end),
            _ => drop(self.blocks.splice(first..last, [(start, end)])),
        }
        is_known
    }

    /// All before `next` has arrived: up to where that is so with the blocks that are joined.
    pub fn advance(&mut self, mut next: u64) -> u64 {
        let joined = self.blocks.iter().take_while(|block| block.0 <= next).count();
        if joined > 0 {
            for (_, end) in self.blocks.drain(..joined) {
                next = next.max(end);
            }
            self.latest.retain(|block| block.0 > next);
        }
        next
    }

    /// The blocks, the one with the latest arrival first.
    pub fn latest(&self) -> impl Iterator<Item = &(u64, u64)> {
        self.latest.iter().rev()
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

    proptest! {
        /// RFC 2018, section 4: the block with the latest segment first, then those before it.
        #[test]
        fn blocks_are_those_of_the_bytes_and_the_latest_comes_first(
            segments in prop::collection::vec((0u64..60, 1u64..6), 1..80),
        ) {
            let (mut reassembly, mut next) = (Reassembly::default(), 0);
            let mut arrived = vec![0; 70];
            for (stamp, (start, len)) in (1..).zip(segments) {
                let end = start + len;
                if end <= next {
                    continue;
                }
                let bytes = &mut arrived[start as usize..end as usize];
                if start > next {
                    let known = reassembly.store(start, end);
                    prop_assert_eq!(known, bytes.iter().all(|before| *before > 0));
                    bytes.fill(stamp);
                } else {
                    // In order: no block has grown by it.
                    bytes.iter_mut().for_each(|byte| *byte = stamp);
                    next = reassembly.advance(end);
                    let gap = arrived.iter().position(|byte| *byte == 0);
                    prop_assert_eq!(next, gap.unwrap_or(arrived.len()) as u64);
                }
                let expected = by_bytes(&arrived, next);
                prop_assert_eq!(reassembly.is_empty(), expected.is_empty());
                prop_assert_eq!(reassembly.latest().copied().collect::<Vec<_>>(), expected);
            }
        }
    }
}
