//! The general path: links with shapers or drivers, disciplines that shape, grants, shared media,
//! rates that vary, and impairments. Ends of transmissions for which packets wait have events.

use aqmlab_core::{Packet, Span, Time};

use super::QueuedLink;
use super::fast::dequeue;
use super::transmitter::Transmitter;
use crate::network::Shared;
use crate::network::accounting::PacketAccounting;
use crate::network::events::{TRANSMISSION_END, WAKEUP};
use crate::network::packet::PacketStore;
use crate::network::wire::Wire;

impl QueuedLink {
    #[inline(never)]
    pub(super) fn arrive_general<S: PacketStore>(
        &mut self,
        packet: Packet,
        shared: &mut Shared<S>,
    ) {
        let now = shared.now;
        self.end_quiet(now + Span::from_nanos(u64::from(self.departures_first)));
        self.probe.arrived(now, &packet);
        let may_pass =
            self.egress.is_none() && self.medium.is_none() && !matches!(self.wire, Wire::Grants(_));
        if self.transmitter == Transmitter::Idle && may_pass {
            self.pass(packet, shared);
        } else {
            self.probe.entered(now, packet.size());
            self.queue.enqueue_stamped(packet, now, &shared.accounting.store);
            self.take_dropped(now, &mut shared.accounting);
            if self.transmitter == Transmitter::Idle {
                self.wire.restart(now);
                self.send_next(shared);
            } else {
                self.fill_driver(now, &mut shared.accounting);
                self.expect_end(shared);
            }
            self.probe.backlog(now, self.queue.counted());
        }
        self.schedule_wakeup(shared);
    }

    /// Handles the end of a transmission, or a grant. Returns the link that may use a shared medium
    /// now.
    pub(crate) fn transmission_end<S: PacketStore>(
        &mut self,
        shared: &mut Shared<S>,
    ) -> Option<u32> {
        let state = std::mem::replace(&mut self.transmitter, Transmitter::Idle);
        let mut next = None;
        if let Transmitter::Busy { size, .. } = state {
            let medium = self.medium.map(|medium| &mut shared.media[medium as usize]);
            next = medium.and_then(|medium| medium.release(self.index));
            if let Some(egress) = &mut self.egress {
                egress.sent(shared.now, size);
            }
            if let Some(medium) = self.medium
                && next.is_some()
                && self.waiting() > 0
            {
                shared.media[medium as usize].wait(self.index);
                self.transmitter = Transmitter::AwaitingMedium;
            } else {
                self.send_next(shared);
            }
        } else {
            debug_assert_eq!(state, Transmitter::AwaitingGrant);
            self.use_grant(shared);
        }
        self.schedule_wakeup(shared);
        next
    }

    /// Handles the turn of this link on a shared medium. Returns the link that may use the medium
    /// instead, if this one has nothing to send.
    pub(crate) fn granted<S: PacketStore>(&mut self, shared: &mut Shared<S>) -> Option<u32> {
        debug_assert_eq!(self.transmitter, Transmitter::AwaitingMedium);
        self.transmitter = Transmitter::Idle;
        let medium = self.medium.expect("the link waited for a medium") as usize;
        shared.media[medium].end_wait(self.index);
        self.wire.restart(shared.now);
        self.send_next(shared);
        self.schedule_wakeup(shared);
        shared.media[medium].next_waiting(self.index)
    }

    /// Begins a busy period with what waits at an idle link.
    pub(super) fn send_waiting<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        if self.waiting() > 0 {
            self.wire.restart(shared.now);
            self.send_next(shared);
        }
    }

    /// Sends the next packet as soon as grants or the medium allow. The transmitter must be idle.
    fn send_next<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        let now = shared.now;
        if matches!(self.wire, Wire::Grants(_)) {
            return self.await_grant(self.departures_first, shared);
        }
        if let Some(medium) = self.medium
            && !shared.media[medium as usize].take(self.index)
        {
            self.transmitter = Transmitter::AwaitingMedium;
            return;
        }
        if let Some(packet) = self.take(now, &mut shared.accounting) {
            self.begin(packet, now, shared);
            self.expect_end(shared);
        } else if let Some(medium) = self.medium {
            shared.media[medium as usize].release(self.index);
        }
    }

    /// Waits for the next grant, the first after the present if `is_later`.
    fn await_grant<S: PacketStore>(&mut self, is_later: bool, shared: &mut Shared<S>) {
        let Wire::Grants(wire) = &mut self.wire else { return };
        self.transmitter = Transmitter::AwaitingGrant;
        // Earlier grants remain unused.
        wire.grants.seek(shared.now + Span::from_nanos(u64::from(is_later)));
        if let Some((at, _)) = wire.grants.peek() {
            shared.events.push(at, TRANSMISSION_END, self.index);
        }
    }

    /// Sends what a grant has room for. The rest of the grant is lost.
    fn use_grant<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        let now = shared.now;
        let Wire::Grants(wire) = &mut self.wire else { return };
        let (_, granted) = wire.grants.peek().expect("a grant has come");
        wire.grants.advance();
        let framing = wire.framing;
        let mut sending = wire.sending.take();
        let mut room = granted;
        let mut is_empty = false;
        while room > 0 {
            let next = sending.take().or_else(|| {
                let packet = self.take(now, &mut shared.accounting)?;
                let bytes = u64::from(framing.wire_size(packet.size()));
                Some((packet, bytes))
            });
            let Some((packet, left)) = next else {
                is_empty = true;
                break;
            };
            if left > room {
                sending = Some((packet, left - room));
                room = 0;
                break;
            }
            room -= left;
            if let Some(egress) = &mut self.egress {
                egress.sent(now, packet.size());
            }
            let of_warmup = self.warmup_sends().then(|| self.probe.losses.clone());
            self.propagation.push(packet, now, self.index, &mut self.probe.losses, shared);
            if let Some(losses) = of_warmup {
                self.end_of_warmups_packet(losses);
            }
        }
        let Wire::Grants(wire) = &mut self.wire else { return };
        wire.used += granted - room;
        wire.sending = sending;
        if !is_empty {
            self.await_grant(false, shared);
        }
    }

    /// Removes the next packet from driver or queue.
    fn take<S: PacketStore>(
        &mut self,
        now: Time,
        accounting: &mut PacketAccounting<S>,
    ) -> Option<Packet> {
        self.fill_driver(now, accounting);
        match &mut self.egress {
            Some(egress) => egress.pop(now),
            None => self.dequeue_to_send(now, accounting),
        }
    }

    /// Moves packets from the queue into the driver, if any, while shaper and driver
    /// allow.
    pub(super) fn fill_driver<S: PacketStore>(
        &mut self,
        now: Time,
        accounting: &mut PacketAccounting<S>,
    ) {
        let Some(egress) = &mut self.egress else { return };
        while egress.has_room() {
            if egress.release(now) {
                continue;
            }
            let (queue, probe) = (&mut self.queue, &mut self.probe);
            if !egress.may_take(now, queue.counted().packets) {
                break;
            }
            let Some(packet) = dequeue(queue, probe, now, accounting) else { break };
            self.probe.left(now, &packet);
            egress.push(packet, now);
        }
        self.queue.hold(egress.held());
        self.probe.shrunk(now, self.queue.counted());
    }

    /// Schedules the next wake-up, unless an earlier one is pending.
    #[inline(never)]
    pub(crate) fn schedule_wakeup<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        let next = self.next_wakeup(shared.now);
        if let Some(at) = next
            && self.wakeup_at.is_none_or(|pending| at < pending)
        {
            self.wakeup_at = next;
            shared.events.push(at, WAKEUP, self.index);
        }
    }

    /// Returns the time of the next timer of queue, shaper or driver.
    #[inline(always)]
    pub(super) fn next_wakeup(&mut self, now: Time) -> Option<Time> {
        let next = self.queue.next_wakeup();
        let Some(egress) = &mut self.egress else { return next };
        let other = egress.next_wakeup(now, self.queue.counted().packets > 0);
        next.into_iter().chain(other).min()
    }
}
