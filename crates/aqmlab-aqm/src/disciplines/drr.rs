//! DRR: deficit round robin, fair queueing by bytes at constant cost.
//!
//! # Model
//! Packets are hashed into queues, each first in, first out. The queues that
//! hold packets take turns: at its turn a queue gets a quantum of credit and sends packets while
//! its credit covers them. Remaining credit is kept for the next turn, unless the queue ran empty.
//! When an arriving packet does not fit, the queue with the most bytes loses one.
//!
//! # Sources
//! - Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round Robin",
//!   IEEE/ACM Transactions on Networking 4(3), 1996: the rounds.
//! - McKenney, "Stochastic Fairness Queueing", 1990, which they take over for
//!   the hashing and for the full buffer ("buffer stealing").
//!
//! # Differences
//! 1. All queues have the same quantum; the paper allows one for each.
//! 2. At which end the longest queue loses its packet is a parameter: the tail
//!    as in Linux's sfq, or the head. The paper does not say it in its
//!    algorithm; the papers were not at hand when this was written.

use aqmlab_core::{Bytes, Component, Limit, params};

use crate::discipline::{LinkEnv, OneMachine};
use crate::fq::drr_plain::Rounds;
use crate::fq::hash::Sharing;
use crate::fq::{FIXED, FlowQueues, Fq, FqParams, NoAqm, Overflow};

params! {
    /// Parameters of DRR.
    pub struct DrrParams {
        /// The number of queues that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "Shreedhar and Varghese 1996; McKenney 1990";
        /// The credit of a queue in each turn; the work for a packet is constant if it is
        /// no less than the largest packet. `none`: the link's largest packet.
        quantum: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1_000_000)),
            source "Shreedhar and Varghese 1996, section III";
        /// Total capacity of all queues.
        limit: Limit = Limit::Packets(1000), source "none given; as for drop-tail";
        /// Whether the longest queue drops from its head instead of its tail.
        headdrop: bool = false, source "tc-sfq(8), headdrop";
    } with {
        /// Units that share a queue.
        sharing: Sharing = Sharing::default();
    }
}

impl Component for DrrParams {
    const NAME: &'static str = "drr";
    const SUMMARY: &'static str = "deficit round robin: a queue for each flow, turns by bytes";
}

impl OneMachine for DrrParams {
    type Machine = Fq<NoAqm, Rounds>;
    const FIXED: &'static [&'static str] = FIXED;
    const GIVES_SIGNALS: bool = false;
}

impl FlowQueues<NoAqm> for DrrParams {
    fn fq(&self, env: &LinkEnv) -> FqParams<'_, ()> {
        FqParams {
            sharing: &self.sharing,
            buckets: self.flows,
            quantum: self.quantum.unwrap_or(env.mtu),
            settings: (),
            limit: self.limit.resolve(env.rate, env.base_rtt),
            overflow: Overflow::Steal { from_head: self.headdrop },
            largest: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Time;

    use aqmlab_core::Packet;

    use super::*;
    use crate::fq::hash::{Hashing, Isolation, Method};
    use crate::queue::Queue;
    use crate::testing::{TestPacket, drain, offer, queue};

    fn packet(flow: u32, size: u32) -> Packet {
        Packet::of_flow(flow).with_size(size)
    }

    fn flows(queue: &mut Queue) -> Vec<u32> {
        drain(queue).iter().map(Packet::flow_hash).collect()
    }

    /// Manually computed rounds with a quantum of 500: credits are given at turns, kept between
    /// them, and lost by a queue that runs empty.
    #[test]
    fn credit_is_given_kept_and_lost() {
        let mut queue = queue(&DrrParams { quantum: Some(Bytes::new(500)), ..Default::default() });
        let arrivals = [(1, 200), (1, 750), (2, 500), (2, 500), (3, 750), (3, 100), (4, 100)];
        let dropped = offer(&mut queue, arrivals.map(|(flow, size)| packet(flow, size)));
        assert!(dropped.is_empty());
        // Turn 1: flow 1 sends 200 and keeps 300, flow 2 sends 500, flow 3
        // keeps 500, flow 4 sends 100 and loses 400. Turn 2: flow 1 has 800 and
        // sends 750, flow 2 sends 500, flow 3 has 1000: 750 and 100.
        assert_eq!(flows(&mut queue), [1, 2, 4, 1, 2, 3, 3]);
        // Flow 4 starts with one quantum: it lost its remaining credit.
        offer(&mut queue, [packet(4, 600), packet(5, 100), packet(5, 100)]);
        assert_eq!(flows(&mut queue), [5, 5, 4]);
    }

    /// Theorem of the paper: with any packet sizes, two backlogged flows differ
    /// by less than a quantum and two largest packets.
    #[test]
    fn backlogged_flows_get_the_same_bytes() {
        let mut queue = queue(&DrrParams { limit: Limit::Unlimited, ..Default::default() });
        let sizes = [1500, 40, 577];
        for flow in 0..3 {
            let count = 600_000 / sizes[flow as usize];
            offer(&mut queue, (0..count).map(|_| packet(flow, sizes[flow as usize])));
        }
        let mut sent = [0u32; 3];
        for _ in 0..2000 {
            let packet = queue.dequeue(Time::ZERO).unwrap();
            sent[packet.flow_hash() as usize] += packet.size();
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least < 1514 + 2 * 1500, "{sent:?}");
        }
    }

    #[test]
    fn the_longest_queue_makes_room_at_either_end() {
        for (headdrop, lost) in [(false, &[600, 500][..]), (true, &[300, 400, 500])] {
            let limit = Limit::Bytes(Bytes::new(2000));
            let mut queue = queue(&DrrParams { limit, headdrop, ..Default::default() });
            offer(&mut queue, [300, 400, 500, 600].map(|size| packet(1, size)));
            let dropped = offer(&mut queue, [packet(2, 1300)]);
            assert_eq!(dropped.iter().map(Packet::size).collect::<Vec<_>>(), lost);
            assert!(dropped.iter().all(|packet| packet.flow_hash() == 1));
            // A packet that can never fit displaces no other packet.
            let dropped = offer(&mut queue, [packet(3, 2001)]);
            assert_eq!(dropped.iter().map(Packet::flow_hash).collect::<Vec<_>>(), [3]);
        }
    }

    /// Flow 1 is active and has no packet when flow 2 has to give way.
    #[test]
    fn a_packet_without_bytes_gives_way() {
        let mut queue = queue(&DrrParams { limit: Limit::Packets(2), ..Default::default() });
        offer(&mut queue, [1, 2].map(|flow| packet(flow, 0)));
        assert_eq!(offer(&mut queue, [packet(3, 0)]).len(), 1);
        let dropped = offer(&mut queue, [packet(3, 0)]);
        assert_eq!(dropped.iter().map(Packet::flow_hash).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn hosts_can_share_instead_of_flows() {
        let turns = |isolation| {
            let sharing = Sharing { isolation, ..Sharing::default() };
            let mut queue = queue(&DrrParams { sharing, ..Default::default() });
            let arrivals = [1, 2, 3].map(|flow| packet(flow, 1500));
            let [one, two, three] = arrivals;
            offer(
                &mut queue,
                [one.with_hosts([7, 1]), two.with_hosts([7, 2]), three.with_hosts([8, 1])],
            );
            flows(&mut queue)
        };
        assert_eq!(turns(Isolation::Flow), [1, 2, 3]);
        assert_eq!(turns(Isolation::SrcHost), [1, 3, 2]);
        assert_eq!(turns(Isolation::DstHost), [1, 2, 3]);
    }

    #[test]
    fn flows_of_one_bucket_have_their_own_in_a_set() {
        let order = |hashing| {
            let hashing = Hashing { hashing, ..Hashing::default() };
            let sharing = Sharing { hashing, ..Sharing::default() };
            let mut queue = queue(&DrrParams { flows: 16, sharing, ..Default::default() });
            offer(&mut queue, [5, 5, 21, 21, 37, 37].map(|flow| packet(flow, 1500)));
            flows(&mut queue)
        };
        assert_eq!(order(Method::Direct), [5, 5, 21, 21, 37, 37]);
        assert_eq!(order(Method::SetAssociative), [5, 21, 37, 5, 21, 37]);
    }
}
