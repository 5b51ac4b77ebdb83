//! Drop-tail: first in, first out, and what does not fit is dropped.
//!
//! # Sources
//! RFC 7567, section 2 ("tail drop"); the limit forms are those of `tc`'s
//! pfifo (packets) and bfifo (bytes).
//!
//! # Differences
//! None known. As in both qdiscs, the packet in transmission does not count.

use aqmlab_core::{Limit, Packet, params};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline};
use crate::fifo::Fifo;

params! {
    /// Parameters of the drop-tail queue.
    pub struct DropTailParams {
        /// How much the queue holds.
        limit: Limit = Limit::Packets(1000),
            source "tc-pfifo(8); 1000 packets is Linux's default txqueuelen";
    }
}

impl Discipline for DropTailParams {
    const NAME: &'static str = "droptail";
    const SUMMARY: &'static str = "first in, first out; what does not fit is dropped";
    const SIGNALS: bool = false;

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        let limit = self.limit.resolve(env.rate, env.base_rtt);
        Box::new(DropTail { fifo: Fifo::default(), limit })
    }
}

/// The state machine.
struct DropTail<P> {
    fifo: Fifo<P>,
    limit: Limit,
}

impl<P: Packet + Send> QueueDiscipline<P> for DropTail<P> {
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_, P>) {
        self.fifo.push_within(self.limit, packet, cx);
    }
    fn dequeue(&mut self, _cx: &mut Context<'_, P>) -> Option<P> {
        self.fifo.pop()
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
