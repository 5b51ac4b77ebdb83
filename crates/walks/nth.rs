//! Nth: a FIFO that signals every n-th packet, independent of the queue.
//!
//! # Model
//! Arriving packets are counted. Every `every`-th packet is marked if its sender supports ECN, and
//! dropped otherwise.
//!
//! # Sources
//! The walk in CONTRIBUTING.md.
//!
//! # Differences
//! None.

use alloc::boxed::Box;

use aqmlab_core::{Component, Limit, Packet, params};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline, Reason};
use crate::fifo::{Fifo, QueueLimit};

params! {
    /// Parameters of Nth.
    pub struct NthParams {
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-pfifo(8), as for droptail";
        /// Interval of signals in packets.
        every: u64 = 100, in 2 => 1_000_000, source "the walk in CONTRIBUTING.md";
    }
}

impl Component for NthParams {
    const NAME: &'static str = "nth";
    const SUMMARY: &'static str = "marks or drops every n-th packet";
}

impl Discipline for NthParams {
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(Nth {
            fifo: Fifo::default(),
            room: QueueLimit::new(self.limit, None, env),
            every: self.every,
            count: 0,
        })
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        let queue = queue.machine::<Nth>();
        queue.room = QueueLimit::new(self.limit, None, env);
        queue.every = self.every;
        queue.fifo.trim(queue.room, cx);
    }
}

/// State of Nth.
#[derive(Clone)]
struct Nth {
    fifo: Fifo,
    room: QueueLimit,
    every: u64,
    /// Packets since the last signal.
    count: u64,
}

impl QueueDiscipline for Nth {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        self.count += 1;
        if self.count >= self.every {
            self.count = 0;
            if !packet.ecn().is_capable() {
                cx.drop(packet, Reason::User);
                return;
            }
            cx.mark(&mut packet, Reason::User);
        }
        self.fifo.push_within(self.room, packet, cx);
    }

    fn dequeue(&mut self, _cx: &mut Context<'_>) -> Option<Packet> {
        self.fifo.pop()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("count", self.count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPacket, offer, queue};

    #[test]
    fn every_third_of_nine_is_dropped() {
        let mut queue = queue(&NthParams { every: 3, ..NthParams::default() });
        let dropped = offer(&mut queue, (0..9).map(TestPacket::of_flow));
        let flows: Vec<u32> = dropped.iter().map(Packet::flow_hash).collect();
        assert_eq!(flows, [2, 5, 8]);
    }
}
