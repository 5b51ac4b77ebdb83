//! A link: a queue, a wire, and the way to the far end.

use aqmlab_aqm::{LinkEnv, Queue};
use aqmlab_core::{Bytes, Span, Stream, Time};

use crate::carried::Carried;
use crate::egress::Egress;
use crate::events::{Event, EventQueue};
use crate::medium::Share;
use crate::pipe::{PathCounts, Pipe};
use crate::probe::{LinkProbe, PacketRecord, Sojourn};
use crate::results::LinkResult;
use crate::scenario::{Level, LinkConfig, Scenario, Simultaneous};
pub use crate::wire::Capacity;
use crate::wire::{Meter, Wire};

/// The largest packet there is: keeps the transmitter's arithmetic in 64 bits.
pub(crate) const MAX_PACKET: u64 = 1 << 30;

/// What a link is made of.
struct LinkParts<P> {
    queue: Queue<P>,
    probe: LinkProbe,
    egress: Option<Box<Egress<P>>>,
    wire: Wire<P>,
    pipe: Pipe<P>,
}

/// One direction of a link.
pub struct Link<P> {
    /// Its name in the scenario.
    pub name: String,
    /// Its queue.
    pub queue: Queue<P>,
    pub(crate) probe: LinkProbe,
    index: u32,
    /// Shaper and driver, if there are such.
    pub(crate) egress: Option<Box<Egress<P>>>,
    wire: Wire<P>,
    /// The medium, if other links use it too.
    medium: Option<Share>,
    /// Whether it sends only when a grant comes or a shared medium is free.
    is_unusual: bool,
    /// The size of the packet that is on the transmitter.
    sending: u32,
    /// A packet is on the transmitter, or its end has not been looked at yet.
    busy: bool,
    /// When the transmitter is done with what it has; `None` if that is never, or not known
    /// before a shared medium is free.
    busy_until: Option<Time>,
    /// Whether a `TransmissionEnd` is pending.
    end_pending: bool,
    pipe: Pipe<P>,
    /// When the pending wake-up of queue or egress is due, if there is one.
    wakeup_at: Option<Time>,
    /// Whether a transmission that ends at the moment of an arrival ends first.
    departures_first: bool,
}

/// What the links of a scenario are made for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The second seed of all random streams.
    pub replication: u64,
    /// The largest packet on the link layer, for disciplines that ask.
    pub mtu: Bytes,
    /// When the run is over: nothing is sent after that.
    pub end: Time,
}

impl<P: Carried> Link<P> {
    /// The links of a scenario.
    pub fn all(scenario: &Scenario, setting: &Setting) -> Vec<Self> {
        let mut links: Vec<Self> =
            (0..scenario.links.len()).map(|index| Self::make(scenario, index, setting)).collect();
        for medium in scenario.media() {
            for (index, share) in medium.iter().zip(Share::among(&medium)) {
                links[*index as usize].share(share);
            }
        }
        links
    }

    fn make(scenario: &Scenario, index: usize, setting: &Setting) -> Self {
        let config = &scenario.links[index];
        let stream = |part: &str| {
            let path = format!("links.{}.{part}", config.name);
            Stream::for_component(scenario.seed, setting.replication, &path)
        };
        let base_rtt = scenario.base_rtt_over(index);
        let env = LinkEnv { rate: config.rate, base_rtt, mtu: setting.mtu };
        let record_packets = scenario.record.level == Level::Packets;
        let parts = LinkParts {
            queue: Queue::new(config.queue.build(&env), stream("queue")),
            probe: LinkProbe::new(&config.thresholds, base_rtt, record_packets),
            egress: Egress::new(config, &env).map(Box::new),
            wire: Wire::new(config, stream("rate"), setting.end),
            pipe: Pipe::new(&config.way, setting.end, stream),
        };
        Link::new(config, index as u32, parts, scenario.simultaneous)
    }

    fn new(
        config: &LinkConfig,
        index: u32,
        parts: LinkParts<P>,
        simultaneous: Simultaneous,
    ) -> Self {
        let LinkParts { queue, probe, egress, wire, pipe } = parts;
        Link {
            name: config.name.clone(),
            queue,
            probe,
            index,
            egress,
            wire,
            medium: None,
            is_unusual: config.process.gives_grants(),
            sending: 0,
            busy: false,
            busy_until: Some(Time::ZERO),
            end_pending: false,
            pipe,
            wakeup_at: None,
            departures_first: simultaneous == Simultaneous::DeparturesFirst,
        }
    }

    /// A packet comes to the queue.
    pub fn arrive(&mut self, packet: P, now: Time, events: &mut EventQueue, store: &mut P::Store) {
        if self
            .busy_until
            .is_some_and(|until| until < now || (until == now && self.departures_first))
        {
            self.settle();
        }
        self.queue.enqueue(packet, now);
        self.take_dropped(now, store);
        if self.busy {
            self.probe.backlog(now, self.queue.backlog());
            self.fill(now, store);
            self.await_end(events);
        } else {
            self.wire.restart(now);
            self.send_next(now, events, store);
        }
        self.await_wakeup(now, events);
    }

    /// A transmission ended while packets were waiting, or a grant has come.
    /// Gives the link that may use a shared medium now.
    fn transmission_end(
        &mut self,
        now: Time,
        events: &mut EventQueue,
        store: &mut P::Store,
    ) -> Option<u32> {
        self.end_pending = false;
        self.busy = false;
        if self.is_unusual {
            return self.unusual_end(now, events, store);
        }
        if let Some(egress) = &mut self.egress {
            egress.sent(now, self.sending);
        }
        self.send_next(now, events, store);
        self.await_wakeup(now, events);
        None
    }

    #[inline(never)]
    fn unusual_end(
        &mut self,
        now: Time,
        events: &mut EventQueue,
        store: &mut P::Store,
    ) -> Option<u32> {
        let Some(medium) = &self.medium else {
            self.use_grant(now, events, store);
            self.await_wakeup(now, events);
            return None;
        };
        let next = medium.release();
        if let Some(egress) = &mut self.egress {
            egress.sent(now, self.sending);
        }
        if next.is_some() && self.waiting() > 0 {
            self.defer();
        } else {
            self.send_next(now, events, store);
        }
        self.await_wakeup(now, events);
        next
    }

    /// The shared medium for which this link has waited is free. Gives the
    /// link that may use it in its place if it does not.
    fn granted(&mut self, now: Time, events: &mut EventQueue, store: &mut P::Store) -> Option<u32> {
        self.end_pending = false;
        self.busy = false;
        self.medium.as_ref().expect("it has waited for it").set_waiting(false);
        self.wire.restart(now);
        self.send_next(now, events, store);
        self.await_wakeup(now, events);
        self.medium.as_ref().and_then(Share::next_waiting)
    }

    /// Waits for its turn on the medium.
    #[cold]
    fn defer(&mut self) {
        self.medium.as_ref().expect("only on a shared medium").set_waiting(true);
        self.busy = true;
        self.busy_until = None;
        self.end_pending = true;
    }

    /// A timer of the queue discipline or of the egress ran out.
    pub fn wakeup(&mut self, now: Time, events: &mut EventQueue, store: &mut P::Store) {
        if self.wakeup_at != Some(now) {
            return; // An earlier one was asked for since.
        }
        self.wakeup_at = None;
        if self.is_sent(now) {
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
            self.wire.restart(now);
            self.send_next(now, events, store);
        }
        self.await_wakeup(now, events);
    }

    /// Takes the packet that arrives at the far end now, if there is one.
    #[inline]
    pub fn deliver(&mut self, now: Time, events: &mut EventQueue) -> Option<P> {
        self.pipe.pop(now, self.index, events)
    }

    /// What is measured as a distribution begins now.
    pub fn end_warmup(&mut self) {
        self.probe.restart();
    }

    /// What became of each packet since this was last asked, at recording
    /// level `packets`.
    pub fn take_records(&mut self) -> Vec<PacketRecord> {
        self.probe.packets.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What happened, up to `end`; call [`finish`](Link::finish) before.
    pub fn into_result(self, end: Time) -> LinkResult {
        LinkResult {
            counts: self.queue.counts(),
            dropped_queued: self.probe.dropped_queued,
            backlog_mean: self.probe.backlog_mean(end),
            capacity: self.capacity().bytes(end),
            loss_intervals: self.probe.loss_intervals(),
            utilisation: self.utilisation(end),
            way: self.way(),
            sojourn: self.probe.sojourn.summary(),
            backlog_max: self.probe.backlog_max,
            driver: self.egress.map(|egress| egress.summary),
            loss_events: self.probe.losses.events(),
            loss_event_flows: self.probe.losses.mean_flows(),
            excursions: self.probe.excursions,
            packets: self.probe.packets.unwrap_or_default(),
        }
    }

    /// The times in queue so far.
    pub fn sojourn(&self) -> &Sojourn {
        &self.probe.sojourn
    }

    /// What happened to packets on their way.
    pub fn way(&self) -> PathCounts {
        self.pipe.counts()
    }

    /// Counts what the link offers, if that changes over time.
    pub(crate) fn meter(&self) -> Option<Meter> {
        self.wire.meter()
    }

    /// Counts the bytes that the link offers.
    pub fn capacity(&self) -> Capacity {
        self.wire.capacity()
    }

    /// The share of what the link offered from the first packet to `end` that
    /// packets used; with a constant rate, the share of the time.
    pub fn utilisation(&self, end: Time) -> f64 {
        match (self.meter(), self.probe.first_arrival) {
            (Some(mut meter), Some(first)) => {
                let before = meter.bits(first);
                let offered = meter.bits(end + Span::from_nanos(1)) - before;
                let used = self.wire.used_bits(self.is_sent(end));
                if offered > 0.0 { (used / offered).min(1.0) } else { 0.0 }
            }
            _ => self.probe.utilisation(end),
        }
    }

    /// Tells the queue of a transmission that ended with nothing to send.
    ///
    /// No event is spent on these. Disciplines get their time as an argument,
    /// so telling them late, but before anything else, is the same. To be
    /// called when `busy_until` has passed. (With an egress every end has its
    /// event.)
    #[inline]
    fn settle(&mut self) {
        if let Some(until) = self.busy_until
            && self.busy
            && !self.end_pending
        {
            self.busy = false;
            let none = self.queue.dequeue(until);
            debug_assert!(none.is_none(), "{}: a packet out of an empty queue", self.name);
        }
    }

    /// Whether the transmitter is done with all that it was given.
    #[inline]
    fn is_sent(&self, now: Time) -> bool {
        self.busy_until.is_some_and(|until| until <= now)
    }

    /// Packets that are waiting to be sent, here or in the egress.
    #[inline]
    fn waiting(&self) -> u64 {
        self.queue.backlog().packets + self.egress.as_ref().map_or(0, |egress| egress.waiting())
    }

    /// Takes the next packet from the queue.
    #[inline(always)]
    fn fetch(
        queue: &mut Queue<P>,
        probe: &mut LinkProbe,
        now: Time,
        store: &mut P::Store,
    ) -> Option<P> {
        let packet = queue.dequeue(now);
        take_dropped(queue, probe, now, store);
        probe.backlog(now, queue.backlog());
        let packet = packet?;
        probe.departure(now, &packet);
        Some(packet)
    }

    /// Lets the driver, if there is one, take what it has room for.
    #[inline]
    fn fill(&mut self, now: Time, store: &mut P::Store) {
        if let Some(egress) = &mut self.egress {
            let (queue, probe) = (&mut self.queue, &mut self.probe);
            egress.fill(now, || Self::fetch(queue, probe, now, store));
        }
    }

    /// Gives the transmitter, which is free, the next packet.
    fn send_next(&mut self, now: Time, events: &mut EventQueue, store: &mut P::Store) {
        if self.is_unusual && !self.may_send(now, events) {
            return;
        }
        let Some(packet) = self.take(now, store) else {
            if let Some(medium) = &self.medium {
                medium.release();
            }
            return;
        };
        self.busy = true;
        self.sending = packet.size();
        match &mut self.wire {
            Wire::Constant(transmitter) => {
                let duration = transmitter.transmit(packet.size());
                self.probe.transmission(duration);
                self.busy_until = Some(now + duration);
            }
            Wire::Course(wire) => self.busy_until = wire.transmit(packet.size()),
            Wire::Grants(_) => unreachable!("it sends when a grant comes"),
        }
        match self.busy_until {
            Some(sent) => self.pipe.push(packet, sent, self.index, events, store),
            None => packet.forget(store),
        }
        self.await_end(events);
    }

    /// Whether a packet may be sent now, and not only when a grant comes or
    /// the medium is free.
    #[inline(never)]
    fn may_send(&mut self, now: Time, events: &mut EventQueue) -> bool {
        if let Wire::Grants(wire) = &mut self.wire {
            self.busy = true;
            self.busy_until = wire.next_from(now, self.departures_first);
            self.await_end(events);
            return false;
        }
        let Some(medium) = &self.medium else { return true };
        let is_free = !medium.is_taken();
        if is_free {
            medium.take();
        } else {
            self.defer();
        }
        is_free
    }

    /// Sends what a grant has room for. What it leaves is lost.
    fn use_grant(&mut self, now: Time, events: &mut EventQueue, store: &mut P::Store) {
        let Wire::Grants(wire) = &mut self.wire else { return };
        let (granted, framing) = (wire.next(), wire.framing);
        let mut sending = wire.sending.take();
        let mut room = granted;
        let mut is_empty = false;
        while room > 0 {
            let next = sending.take().or_else(|| {
                let packet = self.take(now, store)?;
                Some((packet, u64::from(framing.wire_size(packet.size()))))
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
            self.pipe.push(packet, now, self.index, events, store);
        }
        let Wire::Grants(wire) = &mut self.wire else { return };
        wire.used += granted - room;
        wire.sending = sending;
        if !is_empty {
            self.busy = true;
            self.busy_until = wire.next_from(now, false);
            self.await_end(events);
        }
    }

    /// The next packet out of queue or egress.
    #[inline(always)]
    fn take(&mut self, now: Time, store: &mut P::Store) -> Option<P> {
        self.fill(now, store);
        match &mut self.egress {
            None => Self::fetch(&mut self.queue, &mut self.probe, now, store),
            Some(egress) => egress.pop(now),
        }
    }

    /// Shares a medium with other links.
    fn share(&mut self, share: Share) {
        self.medium = Some(share);
        self.is_unusual = true;
    }

    /// Asks for an event at the end of the transmission if there is something
    /// to do then.
    #[inline]
    fn await_end(&mut self, events: &mut EventQueue) {
        let matters =
            || self.is_unusual || self.egress.is_some() || self.queue.backlog().packets > 0;
        if !self.end_pending && matters() {
            self.end_pending = true;
            if let Some(until) = self.busy_until {
                events.push(until, Event::TransmissionEnd(self.index));
            }
        }
    }

    #[inline]
    fn await_wakeup(&mut self, now: Time, events: &mut EventQueue) {
        let mut next = self.queue.next_wakeup();
        if let Some(egress) = &mut self.egress {
            let other = egress.next_wakeup(now);
            next = match (next, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                _ => next.or(other),
            };
        }
        if let Some(at) = next
            && self.wakeup_at.is_none_or(|pending| at < pending)
        {
            self.wakeup_at = next;
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
        if self.is_sent(now) {
            self.settle();
        }
        self.probe.finish(now);
        self.pipe.assert_conservation(&self.name);
        self.queue.assert_conservation(&self.name);
        if let Some(egress) = &self.egress {
            let passed = egress.summary.count + egress.waiting();
            assert_eq!(passed, self.queue.counts().delivered, "{}: lost in the driver", self.name);
        }
    }

    #[inline]
    fn take_dropped(&mut self, now: Time, store: &mut P::Store) {
        take_dropped(&mut self.queue, &mut self.probe, now, store);
    }
}

/// The transmission of a link ended: of all that may follow from that on a
/// shared medium too.
#[inline]
pub fn transmission_end<P: Carried>(
    links: &mut [Link<P>],
    index: u32,
    now: Time,
    events: &mut EventQueue,
    store: &mut P::Store,
) {
    let mut next = links[index as usize].transmission_end(now, events, store);
    while let Some(index) = next {
        next = links[index as usize].granted(now, events, store);
    }
}

#[inline(always)]
fn take_dropped<P: Carried>(
    queue: &mut Queue<P>,
    probe: &mut LinkProbe,
    now: Time,
    store: &mut P::Store,
) {
    queue.take_dropped(|packet, reason| {
        packet.dropped(store, reason);
        probe.dropped(now, &packet, reason);
    });
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
