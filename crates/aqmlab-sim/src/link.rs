//! A link: a queue, a transmitter of exact rate, and the way to the far end.

use std::collections::VecDeque;

use aqmlab_aqm::Queue;
use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Rate, Span, Time};

use crate::egress::Egress;
use crate::events::{Event, EventQueue};
use crate::packet::{SimPacket, Store};
use crate::probe::LinkProbe;
use crate::scenario::{LinkConfig, Simultaneous};

/// The largest packet there is: keeps the transmitter's arithmetic in 64 bits.
pub(crate) const MAX_PACKET: u64 = 1 << 30;

/// Computes when transmissions end, without rounding away any of the rate.
///
/// Within a busy period the end of the n-th packet is the start of the period
/// plus all bits so far divided by the rate, rounded down once: the remainder
/// of each division is carried to the next packet.
pub(crate) struct Transmitter {
    rate: u64,
    remainder: u64,
}

impl Transmitter {
    pub fn new(rate: Rate) -> Self {
        Transmitter { rate: rate.as_bps(), remainder: 0 }
    }
    /// The link was idle: a new busy period begins.
    #[inline]
    pub fn restart(&mut self) {
        self.remainder = 0;
    }
    /// How long the next `bytes` take, from the end of those before.
    #[inline]
    pub fn transmit(&mut self, bytes: u32) -> Span {
        debug_assert!(u64::from(bytes) <= MAX_PACKET);
        let scaled = u64::from(bytes) * 8 * NANOS_PER_SEC + self.remainder;
        self.remainder = scaled % self.rate;
        Span::from_nanos(scaled / self.rate)
    }
}

/// One direction of a link.
pub(crate) struct Link {
    pub name: String,
    pub queue: Queue<SimPacket>,
    pub probe: LinkProbe,
    index: u32,
    delay: Span,
    /// Shaper and driver, if there are such.
    pub egress: Option<Box<Egress>>,
    transmitter: Transmitter,
    /// The size of the packet that is on the transmitter.
    sending: u32,
    /// A packet is on the transmitter, or its end has not been looked at yet.
    busy: bool,
    /// When the transmitter is done with what it has.
    busy_until: Time,
    /// Whether a `TransmissionEnd` is pending.
    end_pending: bool,
    /// Packets on their way, with the time at which each arrives.
    pipe: VecDeque<(Time, SimPacket)>,
    /// When the pending wake-up of queue or egress is due.
    wakeup_at: Time,
    /// Whether a transmission that ends at the moment of an arrival ends first.
    departures_first: bool,
}

impl Link {
    pub fn new(
        config: &LinkConfig,
        index: u32,
        queue: Queue<SimPacket>,
        egress: Option<Box<Egress>>,
        probe: LinkProbe,
        simultaneous: Simultaneous,
    ) -> Self {
        Link {
            name: config.name.clone(),
            queue,
            probe,
            index,
            delay: config.delay,
            egress,
            transmitter: Transmitter::new(config.rate),
            sending: 0,
            busy: false,
            busy_until: Time::ZERO,
            end_pending: false,
            pipe: VecDeque::new(),
            wakeup_at: Time::MAX,
            departures_first: simultaneous == Simultaneous::DeparturesFirst,
        }
    }

    /// A packet comes to the queue.
    pub fn arrive(
        &mut self,
        packet: SimPacket,
        now: Time,
        events: &mut EventQueue,
        store: &mut Store,
    ) {
        if self.busy_until < now || (self.busy_until == now && self.departures_first) {
            self.settle();
        }
        self.queue.enqueue(packet, now);
        self.take_dropped(now, store);
        if self.busy {
            self.probe.backlog(now, self.queue.backlog());
            self.fill(now, store);
            self.await_end(events);
        } else {
            self.transmitter.restart();
            self.send_next(now, events, store);
        }
        self.await_wakeup(now, events);
    }

    /// A transmission ended while packets were waiting.
    pub fn transmission_end(&mut self, now: Time, events: &mut EventQueue, store: &mut Store) {
        self.end_pending = false;
        self.busy = false;
        if let Some(egress) = &mut self.egress {
            egress.sent(now, self.sending);
        }
        self.send_next(now, events, store);
        self.await_wakeup(now, events);
    }

    /// A timer of the queue discipline or of the egress ran out.
    pub fn wakeup(&mut self, now: Time, events: &mut EventQueue, store: &mut Store) {
        if now != self.wakeup_at {
            return; // An earlier one was asked for since.
        }
        self.wakeup_at = Time::MAX;
        if self.busy_until <= now {
            self.settle();
        }
        if self.queue.next_wakeup() == Some(now) {
            self.queue.on_wakeup(now);
            self.take_dropped(now, store);
        }
        if let Some(egress) = &mut self.egress {
            egress.on_wakeup(now);
        }
        if self.busy {
            self.fill(now, store);
        } else if self.waiting() > 0 {
            // Something was held back until now.
            self.transmitter.restart();
            self.send_next(now, events, store);
        }
        self.await_wakeup(now, events);
    }

    /// Takes the packet that arrives at the far end now.
    #[inline]
    pub fn deliver(&mut self, events: &mut EventQueue) -> SimPacket {
        let (_, packet) = self.pipe.pop_front().expect("a delivery is pending for a packet");
        if let Some((time, _)) = self.pipe.front() {
            events.push(*time, Event::Delivery(self.index));
        }
        packet
    }

    /// Tells the queue of a transmission that ended with nothing to send.
    ///
    /// No event is spent on these. Disciplines get their time as an argument,
    /// so telling them late, but before anything else, is the same. To be
    /// called when `busy_until` has passed. (With an egress every end has its
    /// event.)
    #[inline]
    fn settle(&mut self) {
        if self.busy && !self.end_pending {
            self.busy = false;
            let none = self.queue.dequeue(self.busy_until);
            debug_assert!(none.is_none(), "{}: a packet out of an empty queue", self.name);
        }
    }

    /// Packets that are waiting to be sent, here or in the egress.
    #[inline]
    fn waiting(&self) -> u64 {
        self.queue.backlog().packets + self.egress.as_ref().map_or(0, |egress| egress.waiting())
    }

    /// Takes the next packet from the queue.
    #[inline(always)]
    fn fetch(
        queue: &mut Queue<SimPacket>,
        probe: &mut LinkProbe,
        now: Time,
        store: &mut Store,
    ) -> Option<SimPacket> {
        let packet = queue.dequeue(now);
        take_dropped(queue, probe, now, store);
        probe.backlog(now, queue.backlog());
        let packet = packet?;
        probe.departure(now, &packet);
        Some(packet)
    }

    /// Lets the driver, if there is one, take what it has room for.
    #[inline]
    fn fill(&mut self, now: Time, store: &mut Store) {
        if let Some(egress) = &mut self.egress {
            let (queue, probe) = (&mut self.queue, &mut self.probe);
            egress.fill(now, || Self::fetch(queue, probe, now, store));
        }
    }

    /// Gives the transmitter, which is free, the next packet.
    fn send_next(&mut self, now: Time, events: &mut EventQueue, store: &mut Store) {
        self.fill(now, store);
        let packet = match &mut self.egress {
            None => Self::fetch(&mut self.queue, &mut self.probe, now, store),
            Some(egress) => egress.pop(now),
        };
        let Some(packet) = packet else { return };
        self.busy = true;
        self.sending = packet.size;
        let duration = self.transmitter.transmit(packet.size);
        self.probe.transmission(duration);
        self.busy_until = now + duration;
        let arrival = self.busy_until + self.delay;
        if self.pipe.is_empty() {
            events.push(arrival, Event::Delivery(self.index));
        }
        self.pipe.push_back((arrival, packet));
        self.await_end(events);
    }

    /// Asks for an event at the end of the transmission if there is something
    /// to do then.
    #[inline]
    fn await_end(&mut self, events: &mut EventQueue) {
        let matters = || self.egress.is_some() || self.queue.backlog().packets > 0;
        if !self.end_pending && matters() {
            self.end_pending = true;
            events.push(self.busy_until, Event::TransmissionEnd(self.index));
        }
    }

    #[inline]
    fn await_wakeup(&mut self, now: Time, events: &mut EventQueue) {
        let mut at = self.queue.next_wakeup().unwrap_or(Time::MAX);
        if let Some(egress) = &mut self.egress {
            at = at.min(egress.next_wakeup(now));
        }
        if at < self.wakeup_at {
            self.wakeup_at = at;
            events.push(at, Event::Wakeup(self.index));
        }
    }

    /// The first wake-up, before any packet.
    pub fn start(&mut self, events: &mut EventQueue) {
        self.await_wakeup(Time::ZERO, events);
    }

    /// The run is over: closes the books.
    ///
    /// # Panics
    /// If packets were lost without being counted: a bug of the discipline.
    pub fn finish(&mut self, now: Time) {
        if self.busy_until <= now {
            self.settle();
        }
        self.probe.finish(now);
        self.queue.assert_conservation(&self.name);
        if let Some(egress) = &self.egress {
            let passed = egress.summary.count + egress.waiting();
            assert_eq!(passed, self.queue.counts().delivered, "{}: lost in the driver", self.name);
        }
    }

    #[inline]
    fn take_dropped(&mut self, now: Time, store: &mut Store) {
        take_dropped(&mut self.queue, &mut self.probe, now, store);
    }
}

#[inline(always)]
fn take_dropped(queue: &mut Queue<SimPacket>, probe: &mut LinkProbe, now: Time, store: &mut Store) {
    queue.take_dropped(|packet, reason| {
        store.forget(&packet);
        probe.dropped(now, &packet, reason);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The end of n packets of the given sizes, one division for all.
    fn exact_end(rate: u64, bytes: u128) -> u64 {
        (bytes * 8 * u128::from(NANOS_PER_SEC) / u128::from(rate)) as u64
    }

    proptest! {
        /// Over a long busy period, at odd rates, not a nanosecond is lost.
        #[test]
        fn the_rate_is_exact_over_any_time(
            rate in prop_oneof![
                Just(1_700), Just(399_900_000_000), Just(1_000), Just(400_000_000_000), 1u64..1_000_000_000_000,
            ],
            sizes in prop::collection::vec(1u32..65_536, 1..50),
            rounds in 1u64..2_000,
        ) {
            let mut transmitter = Transmitter::new(Rate::from_bps(rate));
            let (mut end, mut bytes) = (0u64, 0u128);
            for _ in 0..rounds {
                for size in &sizes {
                    end += transmitter.transmit(*size).as_nanos();
                    bytes += u128::from(*size);
                    if end > u64::MAX / 4 { return Ok(()); }
                }
                prop_assert_eq!(end, exact_end(rate, bytes));
            }
        }
    }
}
