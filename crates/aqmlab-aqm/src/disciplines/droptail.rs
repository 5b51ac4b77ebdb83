//! Drop-tail: first in, first out, and what does not fit is dropped.
//!
//! # Model
//! A packet that does not fit is dropped. With `drop = head` the packets at the head of the queue
//! are dropped instead, so that the sender learns of the loss a queueing delay earlier.
//!
//! # Sources
//! RFC 7567, section 2 ("tail drop") and section 4.1 (head drop); the limit
//! forms are those of `tc`'s pfifo (packets) and bfifo (bytes), `drop = head`
//! is its pfifo_head_drop. Two limits at once, `limit` and `byte_limit`, are
//! those of mahimahi's queues (its dropping_packet_queue.cc).
//!
//! # Differences
//! 1. `tc` has no head drop for a limit in bytes. Here as many packets go as
//!    the arriving one needs room; one that is larger than the limit goes
//!    itself.
//!
//! The packet in transmission does not count, as in all three qdiscs.

use alloc::boxed::Box;

use aqmlab_core::words::{Dialect, Form, Word};
use aqmlab_core::{Bytes, Component, Limit, Packet, choices, params};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline, Reason};
use crate::fifo::{Fifo, QueueLimit};

choices! {
    /// Packet dropped from a full queue.
    pub enum DropFrom {
        /// The arriving one.
        Tail = "tail",
        /// The one that has waited longest.
        Head = "head",
    }
}

params! {
    /// Parameters of the drop-tail queue.
    pub struct DropTailParams {
        /// Capacity of the queue; `unlimited`: no limit.
        limit: Limit = Limit::Packets(1000),
            source "tc-pfifo(8); 1000 packets is Linux's default txqueuelen";
        /// Additional limit in bytes; `none`: no additional limit.
        byte_limit: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 40)),
            source "mahimahi, mm-link's queue argument bytes";
        /// Packet dropped when the queue is full.
        drop: DropFrom = DropFrom::Tail, source "tc-pfifo(8); head: Linux's pfifo_head_drop";
    } words TC
}

/// tc-pfifo(8), tc-bfifo(8).
const TC: &[Dialect] = &[
    Dialect {
        kind: "pfifo",
        source: "tc-pfifo(8)",
        always: &["limit"],
        words: &[&[Word::value("limit", "limit", Form::Packets)]],
        ..Dialect::EMPTY
    },
    Dialect {
        kind: "bfifo",
        source: "tc-bfifo(8)",
        always: &["limit"],
        words: &[&[Word::value("limit", "limit", Form::Size)]],
        ..Dialect::EMPTY
    },
    Dialect {
        kind: "pfifo_head_drop",
        source: "Linux, sch_fifo.c",
        implies: &[("drop", "head")],
        always: &["limit"],
        words: &[&[Word::value("limit", "limit", Form::Packets)]],
        ..Dialect::EMPTY
    },
];

impl Component for DropTailParams {
    const NAME: &'static str = "droptail";
    const SUMMARY: &'static str = "first in, first out; packets that do not fit are dropped";
}

impl Discipline for DropTailParams {
    fn gives_signals(&self) -> bool {
        false
    }

    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        let room = QueueLimit::new(self.limit, self.byte_limit, env);
        Box::new(DropTail { fifo: Fifo::default(), room, drop: self.drop })
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, _cx: &mut Context<'_>) {
        // Linux, fifo_init: packets beyond a smaller limit stay queued.
        let queue = queue.machine::<DropTail>();
        queue.room = QueueLimit::new(self.limit, self.byte_limit, env);
        queue.drop = self.drop;
    }
}

/// The state machine.
#[derive(Clone)]
struct DropTail {
    fifo: Fifo,
    room: QueueLimit,
    drop: DropFrom,
}

impl DropTail {
    /// Drops at the head until a packet fits, unless it never will.
    fn make_room(&mut self, size: u32, cx: &mut Context<'_>) {
        if !self.room.admits(Backlog::default(), size) {
            return;
        }
        while !self.room.admits(self.fifo.backlog(), size) {
            let head = self.fifo.pop().expect("an empty queue admits it");
            cx.drop(head, Reason::Overlimit);
        }
    }
}

impl QueueDiscipline for DropTail {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if self.drop == DropFrom::Head {
            self.make_room(packet.size(), cx);
        }
        self.fifo.push_within(self.room, packet, cx);
    }
    fn dequeue(&mut self, _cx: &mut Context<'_>) -> Option<Packet> {
        self.fifo.pop()
    }
    fn passes(&self, size: u32) -> bool {
        self.fifo.is_empty() && self.room.admits(Backlog::default(), size)
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Bytes;

    use super::*;
    use crate::testing::{self, TestPacket, drain, queue};

    /// Returns the dropped packets, in order, and those that stay.
    fn offer(params: &DropTailParams, packets: &[Packet]) -> (Vec<u32>, Vec<u32>) {
        let mut queue = queue(params);
        let dropped = testing::offer(&mut queue, packets.iter().cloned());
        assert_eq!(queue.counts().dropped[Reason::Overlimit as usize], dropped.len() as u64);
        let flows = |packets: Vec<Packet>| packets.iter().map(Packet::flow_hash).collect();
        (flows(dropped), flows(drain(&mut queue)))
    }

    #[test]
    fn a_full_queue_loses_its_tail_or_its_head() {
        let packets: Vec<Packet> = (1..=5).map(Packet::of_flow).collect();
        let limit = Limit::Packets(3);
        for (drop, dropped, left) in
            [(DropFrom::Tail, [4, 5], [1, 2, 3]), (DropFrom::Head, [1, 2], [3, 4, 5])]
        {
            let (measured, stays) =
                offer(&DropTailParams { limit, drop, byte_limit: None }, &packets);
            assert_eq!((measured, stays), (dropped.to_vec(), left.to_vec()));
        }
    }

    #[test]
    fn as_many_go_at_the_head_as_the_arriving_packet_needs() {
        let packets: Vec<Packet> = [(1, 500), (2, 500), (3, 500), (4, 900), (5, 1501), (6, 600)]
            .map(|(flow, size)| Packet::of_flow(flow).with_size(size))
            .to_vec();
        let limit = Limit::Bytes(Bytes::new(1500));
        let params = DropTailParams { limit, drop: DropFrom::Head, byte_limit: None };
        // The fourth needs 900 bytes: two go. The fifth never fits: it goes
        // alone. The sixth needs 500 of the third.
        assert_eq!(offer(&params, &packets), (vec![1, 2, 5, 3], vec![4, 6]));
    }

    #[test]
    fn of_two_limits_the_one_that_is_reached_first_counts() {
        let packets: Vec<Packet> =
            [(1, 100), (2, 100), (3, 100), (4, 100), (5, 1300), (6, 1500), (7, 100)]
                .map(|(flow, size)| Packet::of_flow(flow).with_size(size))
                .to_vec();
        let (limit, byte_limit) = (Limit::Packets(3), Some(Bytes::new(1500)));
        let params = |drop| DropTailParams { limit, byte_limit, drop };
        // The fourth is one too many, and so are all behind it.
        assert_eq!(offer(&params(DropFrom::Tail), &packets), (vec![4, 5, 6, 7], vec![1, 2, 3]));
        // The fifth is one too many as well, and with 1300 bytes it fits beside
        // two; the sixth fits alone, and the seventh does not fit beside it.
        assert_eq!(offer(&params(DropFrom::Head), &packets), (vec![1, 2, 3, 4, 5, 6], vec![7]));
        // Bytes alone: packets do not count.
        let params = DropTailParams { limit: Limit::Unlimited, ..params(DropFrom::Tail) };
        assert_eq!(offer(&params, &packets), (vec![5, 6], vec![1, 2, 3, 4, 7]));
    }
}
