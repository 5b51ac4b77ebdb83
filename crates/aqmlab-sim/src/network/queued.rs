//! A link with a queue, a wire, and the way to the far end.

use std::sync::Arc;

use aqmlab_aqm::{Backlog, Counts, LinkEnv, Queue, QueueConfig, QueueDiscipline};
use aqmlab_core::{Rate, Span, Stream, Time};

use super::carried::{Carried, Fate};
use super::config::LinkConfig;
use super::custody::Custody;
use super::egress::Egress;
use super::events::{LinkEvent, Simultaneous};
use super::medium::Share;
use super::occupancy::Waits;
use super::pipe::{Pipe, PropagationCounts};
use super::probe::{LinkProbe, PacketEvent, PacketRecord, Times};
use super::records::RecordSink;
use super::wire::{Capacity, Meter, Offered, Wire};
use super::{HEADER, Setup, Shared};

/// What a link is made of.
struct LinkParts<P> {
    queue: Queue<P>,
    probe: LinkProbe,
    egress: Option<Box<Egress<P>>>,
    wire: Wire<P>,
    pipe: Pipe<P>,
}

/// A link with a queue.
pub struct QueuedLink<P> {
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
    /// Whether packets wait for the end of the transmission, and it gets no event.
    end_due: bool,
    /// Whether ends of transmissions can do without events.
    is_lazy: bool,
    /// Whether that is wanted.
    may_be_lazy: bool,
    /// How many had none.
    ended: u64,
    pub(crate) pipe: Pipe<P>,
    /// When the pending wake-up of queue or egress is due, if there is one.
    wakeup_at: Option<Time>,
    /// Whether packets may change when that has to be: with an egress, or a queue that shapes.
    asks_wakeup: bool,
    /// Whether a transmission that ends at the moment of an arrival ends first.
    departures_first: bool,
    /// What was offered before the rate changed.
    offered: Offered,
    /// How often the rate of a link with framing has changed: what was a meter is none then.
    pub(crate) rate_changes: u32,
    /// What had been counted when the warm-up ended, if there was one.
    before: Box<measured::Before>,
}

impl<P: Carried> QueuedLink<P> {
    /// The link of this index.
    pub(crate) fn make(index: usize, setup: &Setup) -> Self {
        let config = &setup.links[index];
        let stream = |part: &str| {
            let path = format!("links.{}.{part}", config.name);
            Stream::for_component(setup.seed, setup.replication, &path)
        };
        let base_rtt = setup.base_rtts[index];
        let env = LinkEnv { rate: config.rate, base_rtt, mtu: setup.mtu, header: HEADER };
        let parts = LinkParts {
            queue: Queue::new(config.queue.build(&env), stream("queue")),
            probe: LinkProbe::new(&config.thresholds, base_rtt, setup.record_packets),
            egress: Egress::new(config, &env).map(Box::new),
            wire: Wire::new(config, stream("rate"), setup.end),
            pipe: Pipe::new(&config.way, setup.end, stream),
        };
        let mut link = QueuedLink::new(config, index as u32, parts, setup.simultaneous);
        link.may_be_lazy = setup.is_lazy;
        link.choose_ends();
        link
    }

    fn new(
        config: &LinkConfig,
        index: u32,
        parts: LinkParts<P>,
        simultaneous: Simultaneous,
    ) -> Self {
        let LinkParts { queue, probe, egress, wire, pipe } = parts;
        QueuedLink {
            name: config.name.clone(),
            asks_wakeup: egress.is_some() || !queue.is_clocked(),
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
            end_due: false,
            is_lazy: false,
            may_be_lazy: false,
            ended: 0,
            pipe,
            wakeup_at: None,
            departures_first: simultaneous == Simultaneous::DeparturesFirst,
            offered: Offered::default(),
            rate_changes: 0,
            before: Box::default(),
        }
    }

    /// A packet comes to the queue, with the time as that of its arrival.
    pub(crate) fn arrive(&mut self, packet: P, shared: &mut Shared<P>) {
        let now = shared.now;
        self.catch_up(shared);
        if self
            .busy_until
            .is_some_and(|until| until < now || (until == now && self.departures_first))
        {
            self.settle();
        }
        self.probe.arrived(now, &packet);
        if !self.busy && !self.is_unusual && self.egress.is_none() {
            return self.pass(packet, shared);
        }
        self.probe.entered(now, packet.size());
        self.queue.enqueue_stamped(packet, now, &shared.custody.store);
        self.take_dropped(now, &mut shared.custody);
        if self.busy {
            self.fill(now, &mut shared.custody);
            self.await_end(shared);
        } else {
            self.wire.restart(now);
            self.send_next(shared);
        }
        self.probe.backlog(now, self.queue.counted());
        self.await_wakeup(shared);
    }

    /// A packet comes while nothing is sent, and goes through the queue in one step.
    #[inline(never)]
    fn pass(&mut self, packet: P, shared: &mut Shared<P>) {
        let (now, size) = (shared.now, packet.size());
        self.wire.restart(now);
        let packet = self.queue.pass_stamped(packet, now, &shared.custody.store);
        self.take_dropped(now, &mut shared.custody);
        self.probe.passed(now, size, &packet);
        self.probe.backlog(now, self.queue.counted());
        if let Some(packet) = packet {
            self.send(packet, now, shared);
            self.await_end(shared);
        }
        self.await_wakeup(shared);
    }

    /// A transmission ended while packets were waiting, or a grant has come.
    /// Gives the link that may use a shared medium now.
    pub(crate) fn transmission_end(&mut self, shared: &mut Shared<P>) -> Option<u32> {
        let now = shared.now;
        self.end_pending = false;
        self.busy = false;
        if self.is_unusual {
            return self.unusual_end(shared);
        }
        if let Some(egress) = &mut self.egress {
            egress.sent(now, self.sending);
        }
        self.send_next(shared);
        self.await_wakeup(shared);
        None
    }

    /// A timer of the queue discipline or of the egress ran out.
    pub(crate) fn wakeup(&mut self, shared: &mut Shared<P>) {
        let now = shared.now;
        if self.wakeup_at != Some(now) {
            return; // An earlier one was asked for since.
        }
        self.wakeup_at = None;
        self.catch_up(shared);
        if self.is_sent(now) {
            self.settle();
        }
        if self.queue.next_wakeup() == Some(now) {
            self.queue.on_wakeup(now);
            self.take_dropped(now, &mut shared.custody);
        }
        if let Some(egress) = &mut self.egress {
            egress.on_wakeup(now);
        }
        if self.busy {
            self.fill(now, &mut shared.custody);
        } else if self.waiting() > 0 {
            // Something was held back until now.
            self.wire.restart(now);
            self.send_next(shared);
        }
        self.ask_wakeup(shared);
    }

    /// Takes the packet that arrives at the far end now, if there is one.
    #[inline]
    pub(crate) fn deliver(&mut self, shared: &mut Shared<P>) -> Option<P> {
        self.catch_up(shared);
        self.pipe.pop(self.index, shared)
    }

    /// Changes the rate of a link of constant rate, from the end of the transmission in progress.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        let from = now + self.unsent(now);
        let capacity = self.capacity();
        if let Wire::Course(wire) = &mut self.wire {
            wire.set_rate(from, rate);
            self.rate_changes += 1;
        } else if let Wire::Constant(transmitter) = &mut self.wire {
            self.offered = capacity.until(from);
            transmitter.set_rate(rate);
        }
    }

    /// Another discipline takes the place of the present one, and its packets.
    pub(crate) fn replace_queue(
        &mut self,
        discipline: Box<dyn QueueDiscipline<P>>,
        shared: &mut Shared<P>,
    ) {
        let now = shared.now;
        if self.is_sent(now) {
            self.settle();
        }
        let kept = self.queue.replace(discipline, now);
        self.probe.abandoned(now, kept);
        shared.custody.abandon(kept.packets);
        self.asks_wakeup = self.egress.is_some() || !self.queue.is_clocked();
        self.go_on(shared);
    }

    /// The discipline gets other parameters.
    pub(crate) fn change_queue(&mut self, to: &QueueConfig, env: &LinkEnv, shared: &mut Shared<P>) {
        let now = shared.now;
        if self.is_sent(now) {
            self.settle();
        }
        self.queue.change(to, env, now);
        self.go_on(shared);
    }

    /// Goes on with a queue that has changed.
    fn go_on(&mut self, shared: &mut Shared<P>) {
        let now = shared.now;
        self.take_dropped(now, &mut shared.custody);
        self.probe.backlog(now, self.queue.counted());
        if self.busy {
            self.fill(now, &mut shared.custody);
            self.await_end(shared);
        } else if self.waiting() > 0 {
            self.wire.restart(now);
            self.send_next(shared);
        }
        if self.next_wakeup(now) != self.wakeup_at {
            self.wakeup_at = None; // One that is pending finds nothing to do.
            self.ask_wakeup(shared);
        }
    }

    /// What became of each packet since this was last asked, at recording
    /// level `packets`.
    pub fn take_records(&mut self) -> Vec<PacketRecord> {
        self.probe.packets.as_mut().map(|it| std::mem::take(it.kept())).unwrap_or_default()
    }

    /// Has a sink take what is recorded of packets, as those of the link with this index.
    pub(crate) fn give_records(&mut self, index: u32, sink: &Arc<dyn RecordSink>) {
        if let Some(records) = &mut self.probe.packets {
            records.give_to(index, Arc::clone(sink));
        }
    }

    /// Has what happens to each packet noted from now on, or not any more.
    pub fn watch_packets(&mut self, is_watched: bool) {
        self.probe.watched = is_watched.then(Vec::new);
    }

    /// What happened to packets since this was last asked, if they are watched.
    pub fn take_events(&mut self) -> Vec<PacketEvent> {
        self.probe.watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The times in queue so far.
    pub fn sojourn(&self) -> &Times {
        &self.probe.sojourn
    }

    /// What happened in propagation to packets that were delivered by `now`, as
    /// [counts](Self::counts) has them.
    pub fn way_at(&self, now: Time) -> PropagationCounts {
        self.pipe.counts_at(now)
    }

    /// The same with the packet in transmission.
    pub fn way(&self) -> PropagationCounts {
        self.pipe.counts()
    }

    /// Counts what the link offers, if that changes over time.
    pub(crate) fn meter(&self) -> Option<Meter> {
        self.wire.meter()
    }

    /// Counts the bytes that the link offers.
    pub fn capacity(&self) -> Capacity {
        let mut capacity = self.wire.capacity();
        capacity.before = self.offered;
        capacity
    }

    /// The counts of the link up to `now`: a packet is delivered when the transmitter has sent all
    /// of it. Arrived = delivered + dropped + waiting + in transmission.
    pub fn counts(&self, now: Time) -> Counts {
        let mut counts = self.begun_counts();
        let sending = self.in_transmission(now);
        counts.delivered -= sending.packets;
        counts.delivered_bytes -= sending.bytes;
        counts
    }

    /// The same with the packet in transmission among those delivered.
    fn begun_counts(&self) -> Counts {
        let mut counts = self.queue.counts();
        if let Some(egress) = &self.egress {
            let Backlog { packets, bytes } = egress.passed;
            (counts.delivered, counts.delivered_bytes) = (packets, bytes);
        }
        counts
    }

    /// The packet that the transmitter has not finished at `now`, if there is one.
    fn in_transmission(&self, now: Time) -> Backlog {
        let of_size = |size| Backlog { packets: 1, bytes: u64::from(size) };
        match self.wire.unfinished() {
            Some(packet) => of_size(packet.size()),
            None if self.unsent(now) > Span::ZERO => of_size(self.sending),
            None => Backlog::default(),
        }
    }

    /// How long the transmission in progress takes after `now`.
    fn unsent(&self, now: Time) -> Span {
        match (&self.wire, self.busy_until) {
            // Then it is the time of the next grant.
            (Wire::Grants(_), _) | (_, None) => Span::ZERO,
            (_, Some(until)) => until.saturating_since(now),
        }
    }

    /// Packets that are waiting to be sent, here or in the egress.
    #[inline]
    fn waiting(&self) -> u64 {
        self.queue.counted().packets + self.egress.as_ref().map_or(0, |egress| egress.waiting())
    }

    /// Packets that are somewhere in the link.
    pub(crate) fn held(&self) -> u64 {
        self.waiting() + u64::from(self.wire.unfinished().is_some()) + self.pipe.held()
    }

    /// Takes the next packet from the discipline.
    #[inline(always)]
    fn dequeue(
        queue: &mut Queue<P>,
        probe: &mut LinkProbe,
        now: Time,
        custody: &mut Custody<P>,
    ) -> Option<P> {
        let packet = queue.dequeue(now);
        take_dropped(queue, probe, now, custody);
        debug_assert_eq!(queue.counted(), queue.backlog());
        packet
    }

    /// Moves packets from the queue into the driver, if there is one, while shaper and driver
    /// allow.
    #[inline]
    fn fill(&mut self, now: Time, custody: &mut Custody<P>) {
        if self.egress.is_some() {
            self.fill_driver(now, custody);
        }
    }

    #[inline(never)]
    fn fill_driver(&mut self, now: Time, custody: &mut Custody<P>) {
        let Some(egress) = &mut self.egress else { return };
        // A discipline with an empty queue learns from a call that it is idle.
        while egress.has_room() && (self.queue.counted().packets == 0 || egress.may_pass(now)) {
            let (queue, probe) = (&mut self.queue, &mut self.probe);
            let Some(packet) = Self::dequeue(queue, probe, now, custody) else { break };
            self.probe.left(now, &packet);
            egress.push(packet, now);
        }
        self.probe.shrunk(now, self.queue.counted());
    }

    /// Gives the transmitter, which is free, the next packet.
    fn send_next(&mut self, shared: &mut Shared<P>) {
        if self.is_unusual && !self.may_send(shared) {
            return;
        }
        if self.transmit(shared.now, shared) {
            self.await_end(shared);
        }
    }

    /// Puts the next packet on the transmitter, which is free from `now` on. Whether there was one.
    #[inline(always)]
    fn transmit(&mut self, now: Time, shared: &mut Shared<P>) -> bool {
        let Some(packet) = self.take(now, &mut shared.custody) else {
            if let Some(medium) = self.medium {
                medium.release(&mut shared.media);
            }
            return false;
        };
        self.send(packet, now, shared);
        true
    }

    /// Sends a packet.
    #[inline(always)]
    fn send(&mut self, packet: P, now: Time, shared: &mut Shared<P>) {
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
            Some(sent) => {
                let losses = &mut self.probe.losses;
                self.pipe.push(packet, sent, self.index, losses, shared);
            }
            None => self.wire.keep(packet),
        }
    }

    /// The next packet out of queue or egress.
    #[inline(always)]
    fn take(&mut self, now: Time, custody: &mut Custody<P>) -> Option<P> {
        self.fill(now, custody);
        if let Some(egress) = &mut self.egress {
            return egress.pop(now);
        }
        let packet = Self::dequeue(&mut self.queue, &mut self.probe, now, custody);
        if let Some(packet) = &packet {
            self.probe.left(now, packet);
        }
        self.probe.shrunk(now, self.queue.counted());
        packet
    }

    /// Sees to it that the next wake-up is pending, after packets came or went.
    #[inline(always)]
    fn await_wakeup(&mut self, shared: &mut Shared<P>) {
        debug_assert!(self.asks_wakeup || self.wakeup_at == self.queue.next_wakeup());
        if self.asks_wakeup {
            self.ask_wakeup(shared);
        }
    }

    #[inline(never)]
    fn ask_wakeup(&mut self, shared: &mut Shared<P>) {
        let next = self.next_wakeup(shared.now);
        if let Some(at) = next
            && self.wakeup_at.is_none_or(|pending| at < pending)
        {
            self.wakeup_at = next;
            shared.events.push(at, LinkEvent::Wakeup(self.index));
        }
    }

    /// When queue or egress want to be woken.
    #[inline(always)]
    fn next_wakeup(&mut self, now: Time) -> Option<Time> {
        let next = self.queue.next_wakeup();
        let Some(egress) = &mut self.egress else { return next };
        let other = egress.next_wakeup(now, self.queue.counted().packets > 0);
        match (next, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            _ => next.or(other),
        }
    }

    /// The first wake-up, before any packet.
    pub(crate) fn start(&mut self, shared: &mut Shared<P>) {
        self.ask_wakeup(shared);
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
            let passed = egress.passed.packets + egress.waiting();
            assert_eq!(passed, self.queue.counts().delivered, "{}: lost in the driver", self.name);
        }
    }

    /// Checks Little's law in queue and driver, at the end of a run.
    ///
    /// # Panics
    /// If it does not hold: a bug.
    fn assert_littles_law(self, end: Time) {
        let backlog = self.queue.counted();
        let mut inside = Waits::default();
        if let Some(egress) = &self.egress {
            egress.assert_littles_law(end, &self.name);
        }
        let kept = self.queue.into_queued(end, |packet| inside.add(end - packet.arrival()));
        inside.add_unknown(kept, end);
        self.probe.assert_littles_law(end, backlog, inside, &self.name);
    }

    #[inline]
    fn take_dropped(&mut self, now: Time, custody: &mut Custody<P>) {
        take_dropped(&mut self.queue, &mut self.probe, now, custody);
    }
}

#[inline(always)]
fn take_dropped<P: Carried>(
    queue: &mut Queue<P>,
    probe: &mut LinkProbe,
    now: Time,
    custody: &mut Custody<P>,
) {
    queue.take_dropped(|packet, reason| {
        probe.dropped(now, &packet, reason);
        custody.ends(packet, Fate::Dropped(reason));
    });
}

#[path = "ends.rs"]
mod ends;
#[path = "measured.rs"]
mod measured;
pub use measured::{LinkColumn, LinkResult};
#[path = "turns.rs"]
mod turns;

#[cfg(test)]
#[path = "queued_tests.rs"]
mod tests;
