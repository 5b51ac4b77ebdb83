//! The filter of acknowledgements: of those in a flow's queue that a later one
//! makes superfluous, the first goes.
//!
//! # Sources
//! tc-cake(8), ack-filter; Linux's sch_cake.

use aqmlab_core::{Packet, choices};

use crate::fifo::Fifo;

choices! {
    /// Which acknowledgements are dropped.
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
    /// The place of a packet that the last one of the queue makes superfluous.
    /// Equal acknowledgements all stay: they signal loss.
    pub(super) fn find<P: Packet>(self, queue: &Fifo<P>) -> Option<usize> {
        let last = queue.backlog().packets.checked_sub(1)? as usize;
        if self == AckFilter::None {
            return None;
        }
        let trigger = queue.get(last)?;
        let acknowledged = trigger.pure_ack()?;
        let (mut first, mut found) = (None, 0);
        for place in 0..last {
            let packet = queue.get(place)?;
            if packet.flow_hash() != trigger.flow_hash() {
                continue;
            }
            match packet.pure_ack() {
                // What it says may be lost with the one before it.
                None if first.is_some() => {
                    first = None;
                    found -= 1;
                }
                Some(number) if number < acknowledged => {
                    first = first.or(Some(place));
                    found += 1;
                    if found > 1 {
                        return first;
                    }
                }
                _ => (),
            }
        }
        first.filter(|place| self == AckFilter::Aggressive && place + 1 == last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestPacket;

    fn ack(number: u64) -> TestPacket {
        TestPacket::of_flow(1).acking(number)
    }

    /// What each filter finds: the conservative and the aggressive one.
    fn found(packets: impl IntoIterator<Item = TestPacket>) -> (Option<usize>, Option<usize>) {
        let mut queue = Fifo::default();
        packets.into_iter().for_each(|packet| queue.push(packet));
        assert_eq!(AckFilter::None.find(&queue), None);
        (AckFilter::Conservative.find(&queue), AckFilter::Aggressive.find(&queue))
    }

    #[test]
    fn only_what_later_ones_cover_is_found() {
        assert_eq!(found([]), (None, None));
        assert_eq!(found([ack(1)]), (None, None));
        assert_eq!(found([ack(1), ack(2)]), (None, Some(0)));
        assert_eq!(found([ack(1), ack(2), ack(3)]), (Some(0), Some(0)));
        // Duplicates say that something is lost.
        assert_eq!(found([ack(2), ack(2), ack(2)]), (None, None));
        assert_eq!(found([ack(3), ack(2)]), (None, None), "the older came last");
        assert_eq!(found([ack(1), ack(2), ack(2)]), (None, None));
    }

    #[test]
    fn other_packets_are_left_alone() {
        let other = TestPacket::of_flow(2).acking(1);
        assert_eq!(found([other.clone(), ack(2), ack(3)]), (None, Some(1)));
        // Not next to its successor.
        assert_eq!(found([ack(1), other, ack(2)]), (None, None));
        let data = || TestPacket::of_flow(1);
        assert_eq!(found([ack(1), ack(2), data()]), (None, None), "no pure acknowledgement");
        assert_eq!(found([data(), ack(1), ack(2)]), (None, Some(1)));
        assert_eq!(found([ack(1), data(), ack(2), ack(3)]), (None, Some(2)));
    }
}
