//! Filter of acknowledgements: drops one in a flow's queue that later ones make superfluous.
//!
//! # Model
//! An arriving segment that acknowledges something is compared with those of its flow in the
//! queue, from the head on. One of them is superfluous if it only acknowledges, and neither its
//! acknowledgement number, its timestamps nor its SACK blocks say more than the arriving one.
//! Equal ones are not: they signal a loss. Windows are not compared. The first of two superfluous
//! ones is dropped, or a single one right before the arriving one (`aggressive`). A change of the
//! ECN flags protects the one before it.
//!
//! # Sources
//! tc-cake(8), ack-filter; Linux's sch_cake: `cake_ack_filter`, `cake_tcph_may_drop`,
//! `cake_tcph_sack_compare`.
//!
//! # Differences
//! 1. A flow is known by its hash, not by addresses and ports.
//! 2. IPv6 in IPv4 is not looked into.

use core::cmp::Ordering;

use aqmlab_core::{Packet, TcpHeader, choices};

use crate::discipline::Headers;
use crate::fifo::Fifo;

choices! {
    /// Acknowledgements that the filter drops.
    pub enum AckFilter {
        /// None.
        None = "none",
        /// One of those that two later ones cover, so that a loss of one does no harm.
        Conservative = "conservative",
        /// Also one that only its successor covers.
        Aggressive = "aggressive",
    }
}

impl AckFilter {
    /// Returns the place of a packet that the last one of the queue makes superfluous.
    pub(super) fn find(self, queue: &Fifo, headers: &dyn Headers) -> Option<usize> {
        let last = queue.backlog().packets.checked_sub(1)? as usize;
        let packet = queue.get(last)?;
        let newest = headers.tcp(packet)?;
        let is_trigger = newest.flags & (TcpHeader::ACK | TcpHeader::SYN) == TcpHeader::ACK;
        if self == AckFilter::None || !is_trigger {
            return None;
        }
        let is_own = |other: &&Packet| other.flow_hash() == packet.flow_hash();
        // A superfluous one with its ECN flags.
        let mut first: Option<(usize, u16)> = None;
        for place in 0..last {
            let other = queue.get(place).filter(is_own);
            let Some(header) = other.and_then(|other| headers.tcp(other)) else { continue };
            first = first.filter(|(_, flags)| *flags == ecn_flags(&header));
            if !is_superfluous(&header, &newest) {
                continue;
            }
            if let Some((place, _)) = first {
                return Some(place);
            }
            first = Some((place, ecn_flags(&header)));
        }
        let (place, flags) = first.filter(|_| self == AckFilter::Aggressive)?;
        (place + 1 == last && flags == ecn_flags(&newest)).then_some(place)
    }
}

fn ecn_flags(header: &TcpHeader) -> u16 {
    header.flags & (TcpHeader::ECE | TcpHeader::CWR)
}

/// True if `a` is later than `b` modulo 2^32.
fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// Whether a segment says nothing that a newer one of its flow does not say as well.
fn is_superfluous(header: &TcpHeader, newest: &TcpHeader) -> bool {
    if !may_drop(header, newest) || after(header.ack, newest.ack) {
        return false;
    }
    match compare_sack(header, newest) {
        Ordering::Greater => false,
        Ordering::Equal => header.ack != newest.ack,
        Ordering::Less => true,
    }
}

/// True if flags, options and timestamps allow dropping the segment (`cake_tcph_may_drop`).
fn may_drop(header: &TcpHeader, newest: &TcpHeader) -> bool {
    let flags = header.flags & !(TcpHeader::ECE | TcpHeader::CWR);
    let is_ack = header.payload == 0 && flags == TcpHeader::ACK;
    // One without timestamps has zeros.
    let times = header.timestamps.into_iter().flatten();
    let mut pairs = times.zip(newest.timestamps.unwrap_or_default());
    is_ack && !header.has_other_options && !pairs.any(|(time, newest)| after(time, newest))
}

/// Compares by the bytes that SACK blocks cover. One whose blocks the other does not cover is
/// greater, and so is a first one with a duplicate (`cake_tcph_sack_compare`).
fn compare_sack(one: &TcpHeader, other: &TcpHeader) -> Ordering {
    let (blocks, others) = (one.sack.as_slice(), other.sack.as_slice());
    if blocks.is_empty() || others.is_empty() {
        return others.is_empty().cmp(&blocks.is_empty());
    }
    let is_covered = |[start, end]: [u32; 2]| {
        others.iter().any(|[from, to]| !after(*from, start) && !after(end, *to))
    };
    if blocks.iter().any(|block| after(one.ack, block[0]) || !is_covered(*block)) {
        return Ordering::Greater;
    }
    let bytes = |blocks: &[[u32; 2]]| {
        let lengths = blocks.iter().map(|[start, end]| end.wrapping_sub(*start));
        lengths.fold(0, u32::wrapping_add)
    };
    if bytes(others) > bytes(blocks) { Ordering::Less } else { Ordering::Equal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OfTests, TestPacket, acking as ack};

    fn timed(number: u32, times: [u32; 2]) -> TcpHeader {
        TcpHeader { timestamps: Some(times), ..ack(number) }
    }

    fn sacking<const N: usize>(number: u32, blocks: [[u32; 2]; N]) -> TcpHeader {
        let mut header = ack(number);
        blocks.into_iter().for_each(|block| header.sack.push(block));
        header
    }

    fn flagged(number: u32, flags: u16) -> TcpHeader {
        TcpHeader { flags: TcpHeader::ACK | flags, ..ack(number) }
    }

    /// Segments found by the conservative and by the aggressive filter.
    fn found_of(packets: impl IntoIterator<Item = Packet>) -> (Option<usize>, Option<usize>) {
        let mut queue = Fifo::default();
        packets.into_iter().for_each(|packet| queue.push(packet));
        assert_eq!(AckFilter::None.find(&queue, &OfTests), None);
        (
            AckFilter::Conservative.find(&queue, &OfTests),
            AckFilter::Aggressive.find(&queue, &OfTests),
        )
    }

    fn found<const N: usize>(headers: [TcpHeader; N]) -> (Option<usize>, Option<usize>) {
        found_of(headers.map(|header| Packet::of_flow(1).with_header(header)))
    }

    const NOTHING: (Option<usize>, Option<usize>) = (None, None);
    /// Only the aggressive filter drops the first.
    const SINGLE: (Option<usize>, Option<usize>) = (None, Some(0));
    const FIRST: (Option<usize>, Option<usize>) = (Some(0), Some(0));

    #[test]
    fn only_what_later_ones_cover_is_found() {
        assert_eq!(found([]), NOTHING);
        assert_eq!(found([ack(1)]), NOTHING);
        assert_eq!(found([ack(1), ack(2)]), SINGLE);
        assert_eq!(found([ack(1), ack(2), ack(3)]), FIRST);
        // Duplicates say that something is lost.
        assert_eq!(found([ack(2), ack(2), ack(2)]), NOTHING);
        assert_eq!(found([ack(3), ack(2)]), NOTHING, "the older came last");
        assert_eq!(found([ack(1), ack(2), ack(2)]), NOTHING);
        let before = u32::MAX - 1;
        assert_eq!(found([ack(before), ack(1)]), SINGLE, "numbers wrap");
        assert_eq!(found([ack(1), ack(before)]), NOTHING);
    }

    #[test]
    fn newer_timestamps_protect_and_older_ones_do_not() {
        assert_eq!(found([timed(1, [10, 5]), timed(2, [10, 5]), timed(3, [11, 6])]), FIRST);
        assert_eq!(found([timed(1, [11, 5]), timed(2, [10, 5])]), NOTHING, "a later TSval");
        assert_eq!(found([timed(1, [10, 6]), timed(2, [10, 5])]), NOTHING, "a later TSecr");
        assert_eq!(found([timed(1, [u32::MAX, 5]), timed(2, [3, 5])]), SINGLE, "clocks wrap");
        assert_eq!(found([ack(1), timed(2, [10, 5])]), SINGLE);
        // One without timestamps counts as one with zeros.
        assert_eq!(found([timed(1, [10, 5]), ack(2)]), NOTHING);
    }

    #[test]
    fn sack_blocks_have_to_be_covered() {
        let (one, two) = ([20, 30], [40, 50]);
        // More is selected with the same number: the earlier one is superfluous.
        assert_eq!(found([sacking(10, [one]), sacking(10, [two, one])]), SINGLE);
        assert_eq!(found([sacking(10, [one]), sacking(10, [[15, 35]])]), SINGLE, "a superset");
        assert_eq!(found([ack(10), sacking(10, [one])]), SINGLE);
        assert_eq!(found([sacking(10, [one]), sacking(10, [one])]), NOTHING, "the same");
        assert_eq!(found([sacking(10, [one]), sacking(12, [one])]), SINGLE, "a later number");
        // Each has what the other has not.
        assert_eq!(found([sacking(10, [one]), sacking(12, [two])]), NOTHING);
        assert_eq!(found([sacking(10, [one, two]), sacking(12, [one])]), NOTHING);
        assert_eq!(found([sacking(10, [[20, 31]]), sacking(12, [one])]), NOTHING, "a byte more");
        assert_eq!(found([sacking(10, [one]), ack(35)]), NOTHING, "as if it were not said");
        // A duplicate (RFC 2883) is reported once.
        assert_eq!(found([sacking(10, [[5, 9]]), sacking(12, [[5, 9]])]), NOTHING);
        let wrapped = [u32::MAX - 4, 6];
        assert_eq!(
            found([sacking(u32::MAX - 9, [wrapped]), sacking(u32::MAX - 9, [wrapped, [8, 9]])]),
            SINGLE
        );
    }

    #[test]
    fn flags_protect_and_windows_are_not_compared() {
        for flags in [0x001, 0x002, 0x004, 0x008, 0x020, TcpHeader::AE, 0x200] {
            assert_eq!(found([flagged(1, flags), ack(2), ack(3)]).0, None, "{flags:#x}");
        }
        let other = TcpHeader { has_other_options: true, ..ack(1) };
        assert_eq!(found([other, ack(2)]), NOTHING);
        let none = TcpHeader { flags: 0, ..ack(1) };
        assert_eq!(found([none, ack(2)]), NOTHING);
        // What arrives need only acknowledge.
        let data = TcpHeader { payload: 1448, flags: TcpHeader::ACK | 0x008, ..ack(3) };
        assert_eq!(found([ack(1), ack(2), data]), FIRST);
        assert_eq!(found([ack(1), flagged(2, TcpHeader::SYN)]), NOTHING);
        // Data between do not protect, and are not dropped.
        assert_eq!(found([ack(1), data, ack(4), ack(5)]), FIRST);
        assert_eq!(found([data, ack(4), ack(5)]), (None, Some(1)));
    }

    #[test]
    fn a_change_of_the_ecn_flags_protects_what_came_before() {
        let ece = |number| flagged(number, TcpHeader::ECE);
        assert_eq!(found([ece(1), ece(2), ece(3)]), FIRST);
        assert_eq!(found([ack(1), ece(2)]), NOTHING);
        assert_eq!(found([ack(1), ece(2), ece(3)]), (None, Some(1)));
        assert_eq!(found([ack(1), ece(2), ack(3)]), NOTHING, "each is a change");
        assert_eq!(found([ack(1), ece(2), ece(3), ece(4)]), (Some(1), Some(1)));
        assert_eq!(found([ece(1), flagged(2, TcpHeader::CWR)]), NOTHING);
        // The arriving one alone has no part in the conservative comparison.
        assert_eq!(found([ack(1), ack(2), ece(3)]), FIRST);
    }

    #[test]
    fn other_packets_are_left_alone() {
        let of = |flow, header| Packet::of_flow(flow).with_header(header);
        let own = |number| of(1, ack(number));
        assert_eq!(found_of([of(2, ack(1)), own(2), own(3)]), (None, Some(1)));
        assert_eq!(found_of([own(1), of(2, ack(1)), own(2)]), NOTHING, "not next to it");
        assert_eq!(found_of([own(1), of(2, ack(1)), own(2), own(3)]), FIRST);
        let plain = || Packet::of_flow(1);
        assert_eq!(found_of([own(1), own(2), plain()]), NOTHING, "no TCP");
        assert_eq!(found_of([own(1), plain(), own(2), own(3)]), FIRST);
    }
}
