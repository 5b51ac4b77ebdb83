//! Drops from the front what has waited too long.

use aqmlab_aqm::fifo::Fifo;
use aqmlab_aqm::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline, Reason};
use aqmlab_core::{Component, Packet, Span, params};

params! {
    /// The parameters of my queue.
    pub struct MyQueueParams {
        /// Longest sojourn time of a packet.
        patience: Span = Span::from_millis(20), source "my own";
    }
}

aqmlab_aqm::export!(MyQueue: MyQueueParams);

impl Component for MyQueueParams {
    const NAME: &'static str = "my_queue";
    const SUMMARY: &'static str = "drops from the front what has waited too long";
}

impl Discipline for MyQueueParams {
    fn build(&self, _: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(MyQueue { patience: self.patience, fifo: Fifo::default() })
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, _: &LinkEnv, _: &mut Context<'_>) {
        queue.machine::<MyQueue>().patience = self.patience;
    }
}

#[derive(Clone)]
struct MyQueue {
    patience: Span,
    fifo: Fifo,
}

impl QueueDiscipline for MyQueue {
    fn enqueue(&mut self, packet: Packet, _: &mut Context<'_>) {
        self.fifo.push(packet);
    }
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let mut packet = self.fifo.pop()?;
        while cx.now.saturating_since(packet.arrival()) > self.patience {
            let Some(next) = self.fifo.pop() else { break };
            cx.drop(std::mem::replace(&mut packet, next), Reason::User);
        }
        Some(packet)
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
