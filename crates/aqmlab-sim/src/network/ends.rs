//! Ends of transmissions without events.
//!
//! On most links all that follows from the end of a transmission is that the next packet leaves
//! the queue, and nobody notices before something else happens at the link: a packet arrives, one
//! is delivered, a timer of the queue runs out, somebody looks. Such ends get no event. The link
//! [catches up](QueuedLink::catch_up) then, and takes its packets from the queue with the times at
//! which the transmissions ended.
//!
//! # Why the results are the same
//! Everything that the end of a transmission works on belongs to the link, and takes the time as an
//! argument: queue, probe, transmitter, pipe. The one effect on others, a delivery, comes at least
//! a nanosecond later (the delay is not zero), and is known in time: the next packet is
//! delivered after the one before it, whose delivery has the link catch up.
//!
//! # Why the order is the same
//! With an event, an end would have happened before another event exactly if its key is less: the
//! least of all pending keys comes first. (So it is for what is put off with a key behind all that
//! has happened; an end with another one, when a transmission takes no time, keeps its event.)
//! Time and kind are in the key, so both orders of simultaneous events hold.
//!
//! A queue that shapes, an egress, a shared medium, a rate that changes by itself and a way with
//! impairments have effects that others must know of, and keep their events.

use aqmlab_core::{Span, Time};

use super::QueuedLink;
use crate::network::Shared;
use crate::network::carried::Carried;
use crate::network::events::{Key, LinkEvent};
use crate::network::pipe::Pipe;
use crate::network::wire::Wire;

impl<P: Carried> QueuedLink<P> {
    /// Finds out whether ends of transmissions can do without events.
    pub(super) fn choose_ends(&mut self) {
        let is_delayed = matches!(&self.pipe, Pipe::Fixed { delay, .. } if *delay > Span::ZERO);
        self.is_lazy = self.may_be_lazy
            && is_delayed
            && matches!(self.wire, Wire::Constant(_))
            && !self.is_unusual
            && !self.asks_wakeup;
    }

    /// Asks for an event at the end of the transmission if there is something
    /// to do then.
    #[inline]
    pub(super) fn await_end(&mut self, shared: &mut Shared<P>) {
        let matters =
            || self.is_unusual || self.egress.is_some() || self.queue.counted().packets > 0;
        if !self.end_pending && !self.end_due && matters() {
            if self.is_lazy && !self.is_ended(shared) {
                self.end_due = true;
                return;
            }
            self.end_pending = true;
            if let Some(until) = self.busy_until {
                shared.events.push(until, LinkEvent::TransmissionEnd(self.index));
            }
        }
    }

    /// Tells the queue of a transmission that ended with nothing to send.
    ///
    /// No event is spent on these. Disciplines get their time as an argument,
    /// so telling them late, but before anything else, is the same. To be
    /// called when `busy_until` has passed. (With an egress every end has its
    /// event.)
    #[inline]
    pub(super) fn settle(&mut self) {
        if let Some(until) = self.busy_until
            && self.busy
            && !self.end_pending
            && !self.end_due
        {
            self.busy = false;
            let none = self.queue.dequeue(until);
            debug_assert!(none.is_none(), "{}: a packet out of an empty queue", self.name);
        }
    }

    /// Whether the transmitter is done with all that it was given.
    #[inline]
    pub(super) fn is_sent(&self, now: Time) -> bool {
        self.busy_until.is_some_and(|until| until <= now)
    }

    /// The key of the end of the transmission under way, as if it had an event.
    #[inline]
    fn end_key(&self) -> Option<Key> {
        self.busy_until.map(|until| Key::transmission_end(until, self.index))
    }

    /// Whether the transmission under way has ended, in the order of events.
    #[inline]
    pub(super) fn is_ended(&self, shared: &Shared<P>) -> bool {
        self.busy_until.is_some_and(|until| until <= shared.now)
            && self.end_key().is_some_and(|key| key <= shared.reached)
    }

    /// Lets the transmissions end that have ended by now.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, shared: &mut Shared<P>) {
        if self.end_due && self.busy_until.is_some_and(|until| until <= shared.now) {
            self.end_transmissions(shared);
        }
    }

    #[inline(never)]
    fn end_transmissions(&mut self, shared: &mut Shared<P>) {
        debug_assert_eq!(shared.reached.time(), shared.now);
        while self.end_due
            && let Some(until) = self.busy_until
            && (until < shared.now || Key::transmission_end(until, self.index) < shared.reached)
        {
            self.end_one(shared);
        }
    }

    /// Lets the transmission end whose end is [due](Self::due_end).
    #[inline(always)]
    pub(crate) fn end_one(&mut self, shared: &mut Shared<P>) {
        let Some(until) = self.busy_until else { return };
        self.busy = false;
        self.ended += 1;
        self.end_due = self.transmit(until, shared) && self.queue.counted().packets > 0;
    }

    /// The next end of a transmission for which packets wait and that has no event.
    pub(crate) fn due_end(&self) -> Option<Key> {
        self.end_key().filter(|_| self.end_due)
    }

    /// How many ends of transmissions had no event though packets waited.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// Something about the link was changed, which has caught up: ends have events from now on if
    /// they need them.
    pub(crate) fn changed(&mut self, shared: &mut Shared<P>) {
        self.choose_ends();
        if self.end_due && !self.is_lazy {
            self.end_due = false;
            self.end_pending = true;
            if let Some(until) = self.busy_until {
                shared.events.push(until, LinkEvent::TransmissionEnd(self.index));
            }
        }
    }
}

#[cfg(test)]
#[path = "ends_tests.rs"]
mod tests;
