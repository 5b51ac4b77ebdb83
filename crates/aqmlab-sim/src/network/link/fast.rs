//! The fast path: a link of constant rate and fixed delay, with a queue and nothing else.
//!
//! Most ends of transmissions have no event here. The only effect of such an end is that the next
//! packet leaves the queue, which affects nothing else before another event of the link: a packet
//! arrives or is delivered, a timer of the queue fires, or the link is read. Before such an event,
//! the link [catches up](QueuedLink::catch_up): it dequeues packets with the times at which the
//! transmissions ended.
//!
//! # Why the results are equal
//! The end of a transmission affects parts of the link that take the time as an argument: queue,
//! probe, transmitter, propagation. Its only effect elsewhere is a delivery, at least a nanosecond
//! later (the delay is not zero). The link processes it in time: each packet is delivered after the
//! one before it, and the link catches up at every delivery.
//!
//! # Why the order is equal
//! With an event, an end would precede another event exactly if its key is smaller, because the
//! smallest of all pending keys is first. This holds for ends that are deferred with a key greater
//! than those of all events handled so far. An end with a smaller key, of a transmission that takes
//! no time, has an event. Keys contain time and kind, so both orders of simultaneous events hold.
//!
//! Disciplines that shape, shapers and drivers, shared media, variable rates and impairments have
//! effects outside the link: such links use the [general path](super::general).

use aqmlab_aqm::Queue;
use aqmlab_core::{Packet, Span, Time};

use super::QueuedLink;
use super::transmitter::{TransmissionEnd, Transmitter};
use crate::network::Shared;
use crate::network::accounting::PacketAccounting;
use crate::network::events::{EventKey, TRANSMISSION_END};
use crate::network::packet::{LossCause, PacketStore};
use crate::network::probe::LinkProbe;
use crate::network::wire::Wire;

impl QueuedLink {
    #[inline(always)]
    pub(super) fn arrive_fast<S: PacketStore>(&mut self, packet: Packet, shared: &mut Shared<S>) {
        let now = shared.now;
        if self.transmitter.has_ended(now) {
            self.catch_up(shared);
            self.end_quiet(now + Span::from_nanos(u64::from(self.departures_first)));
        }
        self.probe.arrived(now, &packet);
        if self.transmitter == Transmitter::Idle {
            return self.pass(packet, shared);
        }
        self.probe.entered(now, packet.size());
        self.queue.enqueue_stamped(packet, now, &shared.accounting.store);
        self.take_dropped(now, &mut shared.accounting);
        self.expect_end(shared);
        self.probe.backlog(now, self.queue.counted());
    }

    /// Handles a packet that arrives at an idle link.
    #[inline(never)]
    pub(super) fn pass<S: PacketStore>(&mut self, packet: Packet, shared: &mut Shared<S>) {
        self.wire.restart(shared.now);
        if self.queue.lets_pass(packet.size()) {
            self.probe.departure(shared.now, &packet);
            self.begin(packet, shared.now, shared);
        } else {
            self.pass_queue(packet, shared);
        }
    }

    /// Enqueues a packet at an idle link and sends the next.
    #[inline(never)]
    fn pass_queue<S: PacketStore>(&mut self, packet: Packet, shared: &mut Shared<S>) {
        let (now, size) = (shared.now, packet.size());
        self.queue.enqueue_stamped(packet, now, &shared.accounting.store);
        let packet = self.queue.dequeue(now);
        self.take_dropped(now, &mut shared.accounting);
        self.probe.passed(now, size, &packet);
        self.probe.backlog(now, self.queue.counted());
        if let Some(packet) = packet {
            self.begin(packet, now, shared);
            self.expect_end(shared);
        }
    }

    /// Handles the deferred ends of transmissions before the present.
    #[inline(always)]
    pub(crate) fn catch_up<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        if self.transmitter.deferred().is_some_and(|until| until <= shared.now) {
            self.end_deferred(shared);
        }
    }

    #[inline(never)]
    fn end_deferred<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        debug_assert_eq!(shared.reached.time(), shared.now);
        while let Some(until) = self.transmitter.deferred()
            && (until < shared.now
                || EventKey::transmission_end(until, self.index) < shared.reached)
        {
            self.end_one(until, shared);
        }
    }

    /// Handles the deferred end of the transmission in progress, at `until`.
    #[inline(always)]
    pub(crate) fn end_one<S: PacketStore>(&mut self, until: Time, shared: &mut Shared<S>) {
        self.deferred += 1;
        self.transmitter = Transmitter::Idle;
        let Some(packet) = self.dequeue_to_send(until, &mut shared.accounting) else { return };
        self.begin(packet, until, shared);
        if self.queue.counted().packets > 0
            && let Transmitter::Busy { end, .. } = &mut self.transmitter
        {
            *end = TransmissionEnd::Deferred;
        }
    }

    /// Returns the key that a deferred end would have as an event.
    pub(crate) fn deferred_end(&self) -> Option<EventKey> {
        self.transmitter.deferred().map(|until| EventKey::transmission_end(until, self.index))
    }

    /// Handles the end of a transmission with an empty queue, if it is before `time`: a dequeue
    /// attempt informs the discipline that it is idle. Disciplines take the time as an argument, so
    /// a late attempt is equivalent, if nothing else happens to them before.
    #[inline(always)]
    pub(super) fn end_quiet(&mut self, time: Time) {
        if let Transmitter::Busy { until, end: TransmissionEnd::Quiet, .. } = self.transmitter
            && until < time
        {
            self.transmitter = Transmitter::Idle;
            let none = self.queue.dequeue(until);
            debug_assert!(none.is_none(), "{}: a packet from an empty queue", self.name);
        }
    }

    /// Starts the transmission of a packet.
    #[inline(always)]
    pub(super) fn begin<S: PacketStore>(
        &mut self,
        packet: Packet,
        now: Time,
        shared: &mut Shared<S>,
    ) {
        let size = packet.size();
        let until = match &mut self.wire {
            Wire::Constant(serializer) => {
                let duration = serializer.transmit(size);
                self.probe.transmission(duration);
                Some(now + duration)
            }
            Wire::Course(wire) => wire.transmit(size),
            Wire::Grants(_) => unreachable!("packets are sent when a grant comes"),
        };
        if let Some(until) = until {
            self.transmitter = Transmitter::Busy { until, size, end: TransmissionEnd::Quiet };
            self.propagation.push(packet, until, self.index, &mut self.probe.losses, shared);
        } else {
            self.transmitter = Transmitter::Stuck;
            self.wire.keep(packet);
        }
    }

    /// Schedules the end of the transmission in progress, if packets wait for it.
    #[inline(always)]
    pub(super) fn expect_end<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        let Transmitter::Busy { until, end: end @ TransmissionEnd::Quiet, .. } =
            &mut self.transmitter
        else {
            return;
        };
        if self.is_fast {
            if self.queue.counted().packets == 0 {
                return;
            }
            let key = EventKey::transmission_end(*until, self.index);
            if *until > shared.now || key > shared.reached {
                *end = TransmissionEnd::Deferred;
                return;
            }
        } else if self.medium.is_none()
            && self.egress.is_none()
            && self.queue.counted().packets == 0
        {
            return;
        }
        *end = TransmissionEnd::Event;
        shared.events.push(*until, TRANSMISSION_END, self.index);
    }

    /// Removes the next packet from the queue.
    #[inline(always)]
    pub(super) fn dequeue_to_send<S: PacketStore>(
        &mut self,
        now: Time,
        accounting: &mut PacketAccounting<S>,
    ) -> Option<Packet> {
        let packet = dequeue(&mut self.queue, &mut self.probe, now, accounting);
        if let Some(packet) = &packet {
            self.probe.left(now, packet);
        }
        self.probe.shrunk(now, self.queue.counted());
        packet
    }

    #[inline(always)]
    pub(super) fn take_dropped<S: PacketStore>(
        &mut self,
        now: Time,
        accounting: &mut PacketAccounting<S>,
    ) {
        take_dropped(&mut self.queue, &mut self.probe, now, accounting);
    }
}

/// Dequeues the next packet from the discipline.
#[inline(always)]
pub(super) fn dequeue<S: PacketStore>(
    queue: &mut Queue,
    probe: &mut LinkProbe,
    now: Time,
    accounting: &mut PacketAccounting<S>,
) -> Option<Packet> {
    let packet = queue.dequeue(now);
    take_dropped(queue, probe, now, accounting);
    debug_assert_eq!(queue.counted(), queue.backlog());
    packet
}

#[inline(always)]
fn take_dropped<S: PacketStore>(
    queue: &mut Queue,
    probe: &mut LinkProbe,
    now: Time,
    accounting: &mut PacketAccounting<S>,
) {
    queue.take_dropped(|packet, reason| {
        probe.dropped(now, &packet, reason);
        accounting.ends(packet, LossCause::Dropped(reason));
    });
}
