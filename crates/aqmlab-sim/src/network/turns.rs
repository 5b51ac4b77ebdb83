//! Links that do not send whenever they have something: those whose rate is a course of grants
//! (a radio, a recorded trace), and those that share a medium with others.

use super::QueuedLink;
use crate::network::Shared;
use crate::network::carried::Carried;
use crate::network::medium::Share;
use crate::network::wire::Wire;

impl<P: Carried> QueuedLink<P> {
    #[inline(never)]
    pub(super) fn unusual_end(&mut self, shared: &mut Shared<P>) -> Option<u32> {
        let now = shared.now;
        let Some(medium) = self.medium else {
            self.use_grant(shared);
            self.await_wakeup(shared);
            return None;
        };
        let next = medium.release(&mut shared.media);
        if let Some(egress) = &mut self.egress {
            egress.sent(now, self.sending);
        }
        if next.is_some() && self.waiting() > 0 {
            self.defer(shared);
        } else {
            self.send_next(shared);
        }
        self.await_wakeup(shared);
        next
    }

    /// The shared medium for which this link has waited is free. Gives the
    /// link that may use it in its place if it does not.
    pub(crate) fn granted(&mut self, shared: &mut Shared<P>) -> Option<u32> {
        let now = shared.now;
        self.end_pending = false;
        self.busy = false;
        self.medium.expect("it has waited for it").set_waiting(false, &mut shared.media);
        self.wire.restart(now);
        self.send_next(shared);
        self.await_wakeup(shared);
        self.medium.and_then(|medium| medium.next_waiting(&shared.media))
    }

    /// Waits for its turn on the medium.
    #[cold]
    fn defer(&mut self, shared: &mut Shared<P>) {
        self.medium.expect("only on a shared medium").set_waiting(true, &mut shared.media);
        self.busy = true;
        self.busy_until = None;
        self.end_pending = true;
    }

    /// Whether a packet may be sent now, and not only when a grant comes or
    /// the medium is free.
    #[inline(never)]
    pub(super) fn may_send(&mut self, shared: &mut Shared<P>) -> bool {
        if let Wire::Grants(wire) = &mut self.wire {
            self.busy = true;
            self.busy_until = wire.next_from(shared.now, self.departures_first);
            self.await_end(shared);
            return false;
        }
        let Some(medium) = self.medium else { return true };
        let is_free = !medium.is_taken(&shared.media);
        if is_free {
            medium.take(&mut shared.media);
        } else {
            self.defer(shared);
        }
        is_free
    }

    /// Sends what a grant has room for. What it leaves is lost.
    fn use_grant(&mut self, shared: &mut Shared<P>) {
        let now = shared.now;
        let Wire::Grants(wire) = &mut self.wire else { return };
        let (granted, framing) = (wire.next(), wire.framing);
        let mut sending = wire.sending.take();
        let mut room = granted;
        let mut is_empty = false;
        while room > 0 {
            let next = sending.take().or_else(|| {
                let packet = self.take(now, &mut shared.custody)?;
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
            self.pipe.push(packet, now, self.index, &mut self.probe.losses, shared);
        }
        let Wire::Grants(wire) = &mut self.wire else { return };
        wire.used += granted - room;
        wire.sending = sending;
        if !is_empty {
            self.busy = true;
            self.busy_until = wire.next_from(now, false);
            self.await_end(shared);
        }
    }

    /// Shares a medium with other links.
    pub(crate) fn share(&mut self, share: Share) {
        self.medium = Some(share);
        self.is_unusual = true;
        self.choose_ends();
    }
}
