//! COBALT: CoDel and BLUE over one queue.
//!
//! # Model
//! The AQM of each flow of [`cake`](crate::disciplines::cake), for a queue without flows: CoDel's
//! control law, whose count decays by the same law while the delay is below the target, and BLUE, a
//! probability that rises when the buffer overflows and falls when the queue runs empty, against
//! unresponsive traffic.
//!
//! # Sources
//! Linux's COBALT in the qdisc CAKE, as recorded in the conformance vectors of
//! that and their rules. The law is in the file `src/cobalt.rs`.
//!
//! # Differences
//! 1. Linux has it in CAKE only. As there, a full queue loses its first packet,
//!    and the last packet of the queue is never dropped.
//! 2. The queue runs empty when the link finds it so; in CAKE when the scheduler
//!    does, which does not look while there is no packet of any flow.
//! 3. `ecn = false` is not in Linux.

use aqmlab_core::{Component, Limit, Packet, Span, params};

use crate::cobalt::{CobaltState, InitialGrace, Law};
use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of COBALT.
    pub struct CobaltParams {
        /// The sojourn time that the queue may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "tc-cake(8)";
        /// Time for which the delay may exceed the target; about the largest common
        /// round-trip time.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "tc-cake(8), rtt";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-codel(8)";
        /// Marks ECN-capable packets where the control law would drop them.
        ecn: bool = true, source "tc-cake(8): always";
        /// Linux's COBALT as it is, or with its first interval as it is meant.
        variant: InitialGrace = InitialGrace::LinuxInitfix, source "conformance vectors";
    }
}

impl Component for CobaltParams {
    const NAME: &'static str = "cobalt";
    const SUMMARY: &'static str = "CoDel and BLUE in one queue, as in each flow of CAKE";
}

impl OneMachine for CobaltParams {
    type Machine = OneQueue<Cobalt>;
    const FIXED: &'static [&'static str] = &["variant"];
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Cobalt {
    ecn: bool,
    law: Law,
    state: CobaltState,
}

impl Aqm for Cobalt {
    type Params = CobaltParams;

    fn new(params: &CobaltParams, env: &LinkEnv) -> OneQueue<Self> {
        let law = Law::new(params.target, params.interval, params.variant);
        let cobalt = Cobalt { ecn: params.ecn, state: CobaltState::new(&law), law };
        OneQueue::new(QueueLimit::new(params.limit, None, env), cobalt)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        *self = Cobalt { state: self.state, ..new };
    }

    fn enqueue(&mut self, fifo: &mut Fifo, room: QueueLimit, packet: Packet, cx: &mut Context<'_>) {
        while !room.admits(fifo.backlog(), packet.size()) {
            self.state.overflowed(&self.law, cx.now);
            let Some(head) = fifo.pop() else {
                // Larger than the whole buffer.
                cx.drop(packet, Reason::Overlimit);
                return;
            };
            cx.drop(head, Reason::Overlimit);
        }
        fifo.push(packet);
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        while let Some(packet) = fifo.pop() {
            let is_last = fifo.is_empty();
            match self.state.release(&self.law, Span::ZERO, packet, is_last, self.ecn, cx) {
                Ok(packet) => return Some(packet),
                Err((packet, reason)) => cx.drop(packet, reason),
            }
        }
        self.state.ran_empty(&self.law, cx.now);
        None
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("count", self.state.count());
        see("dropping", f64::from(u8::from(self.state.is_dropping())));
        see("blue_probability", self.state.probability());
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Ecn, Time};

    use super::*;
    use crate::disciplines::cake;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, fill, late_drops, offer, queue, run, seen};

    fn drops(variant: InitialGrace, until: u64) -> Vec<u64> {
        late_drops(queue(&CobaltParams { variant, ..CobaltParams::default() }), until)
    }

    #[test]
    fn the_first_drop_comes_after_an_interval_or_at_once() {
        assert_eq!(drops(InitialGrace::LinuxInitfix, 200)[0], 110);
        assert_eq!(drops(InitialGrace::Linux, 200)[0], 11);
    }

    #[test]
    fn a_queue_that_never_runs_empty_is_that_of_a_flow_alone_in_cake() {
        let (cake, cobalt) = (cake::CakeParams::default(), CobaltParams::default());
        let [cake, cobalt] = [queue(&cake), queue(&cobalt)].map(|mut queue| {
            run(&mut queue, Span::from_micros(5455), 60);
            queue.counts()
        });
        assert!(cake.dropped_total() > 300, "{cake:?}");
        assert_eq!(cake, cobalt);
    }

    #[test]
    fn blue_rises_by_a_256th_with_overflows_a_target_apart() {
        let mut queue =
            queue(&CobaltParams { limit: Limit::Packets(5), ..CobaltParams::default() });
        let blue = |queue: &Queue| seen(queue, "blue_probability");
        fill(&mut queue, 7, Ecn::NotEct);
        assert_eq!((queue.counts().dropped_total(), blue(&queue)), (2, 1.0 / 256.0));
        queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO + Span::from_millis(5));
        assert_eq!(blue(&queue), 1.0 / 256.0, "not yet");
        queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::from_nanos(5_000_001));
        assert_eq!(blue(&queue), 2.0 / 256.0);
        // An empty queue takes 1/4096 off.
        while queue.dequeue(Time::ZERO + Span::from_millis(11)).is_some() {}
        assert_eq!(blue(&queue), 2.0 / 256.0 - 1.0 / 4096.0);
    }

    #[test]
    fn a_full_queue_loses_its_first_packet() {
        let mut queue =
            queue(&CobaltParams { limit: Limit::Packets(2), ..CobaltParams::default() });
        let lost = offer(&mut queue, (0..3).map(Packet::of_flow));
        assert_eq!(lost.iter().map(Packet::flow_hash).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        // One at a time, each 10 ms late, for 3 s.
        let mut queue = queue(&CobaltParams::default());
        for i in 0..300 {
            queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO + Span::from_millis(10) * i);
            let packet = queue.dequeue(Time::ZERO + Span::from_millis(10) * (i + 1));
            assert!(packet.is_some(), "{i}");
        }
    }
}
