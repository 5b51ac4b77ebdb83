//! One queue, first in, first out, with an AQM: the storage, the limit and the calls that disciplines
//! without flow queues share.

use alloc::vec::Vec;

use aqmlab_core::{Packet, Time};

use crate::discipline::{Backlog, Context, LinkEnv, Machine, Note, QueueDiscipline, Reason};
use crate::fifo::{Fifo, QueueLimit};

/// AQM of a queue. The methods with a default are those of a drop-tail queue; see
/// [`QueueDiscipline`].
pub(crate) trait Aqm: Clone + Send + 'static {
    /// Parameters of the discipline.
    type Params;

    /// Returns a queue at the start.
    fn new(params: &Self::Params, env: &LinkEnv) -> OneQueue<Self>;

    /// Takes the parameters of `new`, a queue at its start, and keeps the state. The default is for
    /// an AQM without state.
    fn change(&mut self, new: Self, _fifo: &mut Fifo, _cx: &mut Context<'_>) {
        *self = new;
    }

    /// Drops what there is no room for after a change: by default from the head.
    fn trim(fifo: &mut Fifo, room: QueueLimit, cx: &mut Context<'_>) {
        fifo.trim(room, cx);
    }

    /// Enqueues a packet: by default one that fits and that [`admit`](Self::admit) lets in.
    #[inline(always)]
    fn enqueue(&mut self, fifo: &mut Fifo, room: QueueLimit, packet: Packet, cx: &mut Context<'_>) {
        if !room.admits(fifo.backlog(), packet.size()) {
            self.refused();
            cx.drop(packet, Reason::Overlimit);
        } else if let Some(packet) = self.admit(fifo, packet, cx) {
            fifo.push(packet);
        }
    }

    /// Returns an arriving packet that fits, marked or not, unless it is dropped.
    #[inline(always)]
    fn admit(&mut self, _fifo: &Fifo, packet: Packet, _cx: &mut Context<'_>) -> Option<Packet> {
        Some(packet)
    }

    /// Handles an arriving packet that does not fit.
    #[inline(always)]
    fn refused(&mut self) {}

    /// Returns the next packet to send.
    #[inline(always)]
    fn dequeue(&mut self, fifo: &mut Fifo, _cx: &mut Context<'_>) -> Option<Packet> {
        fifo.pop()
    }

    /// Returns the time of the timer.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Handles the timer.
    fn on_wakeup(&mut self, _fifo: &Fifo, _cx: &mut Context<'_>) {}

    /// Passes names and values of the state to `see`.
    fn observe(&self, _fifo: &Fifo, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Returns notes for the readers of the results.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// The discipline of an AQM.
#[derive(Clone)]
pub(crate) struct OneQueue<A> {
    pub fifo: Fifo,
    pub room: QueueLimit,
    pub aqm: A,
}

impl<A> OneQueue<A> {
    /// An empty queue.
    pub fn new(room: QueueLimit, aqm: A) -> Self {
        OneQueue { fifo: Fifo::default(), room, aqm }
    }
}

impl<A: Aqm> Machine<A::Params> for OneQueue<A> {
    fn new(params: &A::Params, env: &LinkEnv) -> Self {
        A::new(params, env)
    }

    fn change(&mut self, params: &A::Params, env: &LinkEnv, cx: &mut Context<'_>) {
        let OneQueue { room, aqm, .. } = A::new(params, env);
        self.room = room;
        self.aqm.change(aqm, &mut self.fifo, cx);
        A::trim(&mut self.fifo, room, cx);
    }
}

impl<A: Aqm> QueueDiscipline for OneQueue<A> {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        self.aqm.enqueue(&mut self.fifo, self.room, packet, cx);
    }
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        self.aqm.dequeue(&mut self.fifo, cx)
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.aqm.next_wakeup()
    }
    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.aqm.on_wakeup(&self.fifo, cx);
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.observe(&self.fifo, see);
    }
    fn notes(&self) -> Vec<Note> {
        self.aqm.notes()
    }
}
