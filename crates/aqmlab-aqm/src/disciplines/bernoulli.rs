//! Bernoulli: a FIFO that signals arriving packets with one probability.
//!
//! # Model
//! Each arriving packet is chosen independently with `probability`. A chosen packet is marked if
//! `ecn` is on and its sender supports ECN, and dropped otherwise.
//!
//! # Sources
//! None. A controller that changes `probability` during a run (`[[changes]]`, `aqmlab.gym`) makes an
//! AQM of it; constant, it is the baseline without feedback.
//!
//! # Differences
//! None.

use aqmlab_core::{Component, Limit, Packet, params};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of Bernoulli.
    pub struct BernoulliParams {
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-pfifo(8), as for droptail";
        /// Probability of a signal to an arriving packet.
        probability: f64 = 0.01, in 0.0 => 1.0, source "the controller's choice";
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = false, source "RFC 3168, section 5";
    }
}

impl Component for BernoulliParams {
    const NAME: &'static str = "bernoulli";
    const SUMMARY: &'static str = "marks or drops arriving packets with one probability";
}

impl OneMachine for BernoulliParams {
    type Machine = OneQueue<Self>;
}

impl Aqm for BernoulliParams {
    type Params = Self;

    fn new(params: &Self, env: &LinkEnv) -> OneQueue<Self> {
        OneQueue::new(QueueLimit::new(params.limit, None, env), params.clone())
    }

    fn enqueue(
        &mut self,
        fifo: &mut Fifo,
        room: QueueLimit,
        mut packet: Packet,
        cx: &mut Context<'_>,
    ) {
        if cx.random.uniform() < self.probability {
            let Some(marked) = cx.signal(packet, self.ecn, Reason::User) else { return };
            packet = marked;
        }
        fifo.push_within(room, packet, cx);
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPacket, offer, queue};

    #[test]
    fn a_tenth_of_the_packets_is_dropped() {
        let params = BernoulliParams { probability: 0.1, limit: Limit::Unlimited, ecn: true };
        let mut queue = queue(&params);
        let dropped = offer(&mut queue, (0..10_000).map(Packet::of_flow)).len();
        assert!((900..1_100).contains(&dropped), "{dropped}");
        assert_eq!(queue.backlog().packets, 10_000 - dropped as u64);
    }
}
