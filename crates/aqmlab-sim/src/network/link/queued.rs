//! Link with a queue: its parts, and functions that read or change them.

use std::sync::Arc;

use aqmlab_aqm::{Backlog, Counts, LinkEnv, Queue, QueueConfig, QueueDiscipline};
use aqmlab_core::{Packet, Rate, Span, Stream, Time};

use super::result::LinkBefore;
use super::transmitter::{TransmissionEnd, Transmitter};
use crate::network::egress::Egress;
use crate::network::events::{Simultaneous, TRANSMISSION_END};
use crate::network::occupancy::Waits;
use crate::network::packet::PacketStore;
use crate::network::probe::{LinkProbe, PacketEvent, PacketRecord, TimeHistogram};
use crate::network::propagation::{Propagation, PropagationCounts};
use crate::network::records::{RecordSink, Records};
use crate::network::wire::{Capacity, Wire};
use crate::network::{HEADER, Setup, Shared};

/// Link with a queue.
#[derive(Clone)]
pub struct QueuedLink {
    /// Name in the scenario.
    pub name: String,
    /// Queue discipline with its counts.
    pub queue: Queue,
    pub(crate) probe: LinkProbe,
    pub(super) index: u32,
    /// Shaper and driver, if the link has one of them.
    pub(crate) egress: Option<Box<Egress>>,
    pub(super) wire: Wire,
    /// Medium that it shares with other links.
    pub(super) medium: Option<u32>,
    pub(super) transmitter: Transmitter,
    /// True if the link takes the [fast path](super::fast).
    pub(super) is_fast: bool,
    /// True if the link takes the fast path whenever possible.
    may_be_fast: bool,
    /// Number of transmissions that ended without an event while packets waited.
    pub(crate) deferred: u64,
    pub(crate) propagation: Propagation,
    /// Time of the pending wake-up of queue or egress.
    pub(super) wakeup_at: Option<Time>,
    /// True if a transmission that ends at the time of an arrival ends first.
    pub(super) departures_first: bool,
    /// Number of changes of the rate of a link with framing: each replaces the meter.
    pub(crate) rate_changes: u32,
    /// Counts at the end of the warm-up.
    pub(super) before: Box<LinkBefore>,
}

impl QueuedLink {
    /// Returns the link with this index in the setup.
    pub(crate) fn new(index: usize, setup: &Setup) -> Self {
        let config = &setup.links[index];
        let stream = |part: &str| {
            let path = format!("links.{}.{part}", config.name);
            Stream::for_component(setup.seed, setup.replication, &path)
        };
        let base_rtt = setup.base_rtts[index];
        let env = LinkEnv::new(config.service_rate(), base_rtt).with_sizes(setup.mtu, HEADER);
        let mut queue = Queue::new(config.queue.build_checked(&env), stream("queue"));
        if let Some(shaper) = config.shaper.as_ref().filter(|shaper| shaper.stab) {
            queue = queue.with_size_table(shaper.framing.resolve());
        }
        let mut link = QueuedLink {
            name: config.name.clone(),
            queue,
            probe: LinkProbe::new(&config.thresholds, base_rtt, setup.record_packets),
            index: index as u32,
            egress: Egress::new(config, base_rtt).map(Box::new),
            wire: Wire::new(config, stream("rate"), setup.end),
            medium: config.medium,
            transmitter: Transmitter::Idle,
            is_fast: false,
            may_be_fast: setup.defers_ends,
            deferred: 0,
            propagation: Propagation::new(&config.way, setup.end, stream),
            wakeup_at: None,
            departures_first: setup.simultaneous == Simultaneous::DeparturesFirst,
            rate_changes: 0,
            before: Box::default(),
        };
        link.choose_path();
        link
    }

    /// Decides whether the link takes the fast path.
    fn choose_path(&mut self) {
        let is_delayed =
            matches!(&self.propagation, Propagation::Fixed(path) if path.delay > Span::ZERO);
        self.is_fast = self.may_be_fast
            && is_delayed
            && matches!(self.wire, Wire::Constant(_))
            && self.medium.is_none()
            && self.egress.is_none()
            && self.queue.has_fixed_timer();
    }

    /// Handles an arriving packet, whose arrival time is the present.
    #[inline]
    pub(crate) fn arrive<S: PacketStore>(&mut self, packet: Packet, shared: &mut Shared<S>) {
        if self.is_fast {
            self.arrive_fast(packet, shared);
        } else {
            self.arrive_general(packet, shared);
        }
    }

    /// Removes the packet that arrives at the far end, if any, and its event, the next of all.
    #[inline]
    pub(crate) fn deliver<S: PacketStore>(&mut self, shared: &mut Shared<S>) -> Option<Packet> {
        self.catch_up(shared);
        self.propagation.pop(self.index, shared)
    }

    /// Handles a timer of queue discipline, shaper or driver.
    pub(crate) fn wakeup<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        let now = shared.now;
        if self.wakeup_at != Some(now) {
            return; // Another was scheduled since.
        }
        self.wakeup_at = None;
        self.catch_up(shared);
        self.end_quiet(now + Span::from_nanos(1));
        if self.queue.next_wakeup() == Some(now) {
            self.queue.on_wakeup(now);
            self.take_dropped(now, &mut shared.accounting);
        }
        if let Some(egress) = &mut self.egress {
            egress.on_wakeup(now);
        }
        match self.transmitter {
            Transmitter::Idle => self.send_waiting(shared),
            _ => self.fill_driver(now, &mut shared.accounting),
        }
        self.schedule_wakeup(shared);
    }

    /// Changes the rate of a link of constant rate, from the end of the transmission in progress.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        let from = now + self.transmitter.unsent(now);
        match &mut self.wire {
            Wire::Constant(clock) => clock.set_rate(from, rate),
            Wire::Course(wire) => {
                wire.set_rate(from, rate);
                self.rate_changes += 1;
            }
            Wire::Grants(_) => {}
        }
    }

    /// Replaces the discipline; the new one gets the packets.
    pub(crate) fn replace_queue<S: PacketStore>(
        &mut self,
        discipline: Box<dyn QueueDiscipline>,
        shared: &mut Shared<S>,
    ) {
        let now = shared.now;
        self.end_quiet(now + Span::from_nanos(1));
        let kept = self.queue.replace(discipline, now);
        self.probe.abandoned(now, kept);
        shared.accounting.abandon(kept.packets);
        self.resume(shared);
    }

    /// Changes parameters of the discipline.
    pub(crate) fn change_queue<S: PacketStore>(
        &mut self,
        to: &QueueConfig,
        env: &LinkEnv,
        shared: &mut Shared<S>,
    ) {
        let now = shared.now;
        self.end_quiet(now + Span::from_nanos(1));
        self.queue.change(to, env, now);
        self.resume(shared);
    }

    /// Resumes with a changed queue.
    fn resume<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        let now = shared.now;
        self.take_dropped(now, &mut shared.accounting);
        self.probe.backlog(now, self.queue.counted());
        match self.transmitter {
            Transmitter::Idle => self.send_waiting(shared),
            _ => {
                self.fill_driver(now, &mut shared.accounting);
                self.expect_end(shared);
            }
        }
        if self.next_wakeup(now) != self.wakeup_at {
            self.wakeup_at = None; // A pending one has no effect.
            self.schedule_wakeup(shared);
        }
    }

    /// Handles a change of the link, which must have [caught up](Self::catch_up): deferred ends get
    /// events if the link is no longer fast.
    pub(crate) fn changed<S: PacketStore>(&mut self, shared: &mut Shared<S>) {
        self.choose_path();
        if let Transmitter::Busy { until, end: end @ TransmissionEnd::Deferred, .. } =
            &mut self.transmitter
            && !self.is_fast
        {
            *end = TransmissionEnd::Event;
            shared.events.push(*until, TRANSMISSION_END, self.index);
        }
    }

    /// Removes the records of packets since the last call, at recording level `packets`.
    pub fn take_records(&mut self) -> Vec<PacketRecord> {
        self.probe.packets.as_mut().map(Records::take).unwrap_or_default()
    }

    /// Passes future records of packets to a sink, for the link with this index.
    pub(crate) fn give_records(&mut self, index: u32, sink: &Arc<dyn RecordSink>) {
        if let Some(records) = &mut self.probe.packets {
            records.give_to(index, Arc::clone(sink));
        }
    }

    /// Starts or stops collecting the events of packets.
    pub fn watch_packets(&mut self, is_watched: bool) {
        self.probe.watched = is_watched.then(Vec::new);
    }

    /// Removes the events of packets since the last call, if they are collected.
    pub fn take_events(&mut self) -> Vec<PacketEvent> {
        self.probe.watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the sojourn times so far.
    pub fn sojourn(&self) -> &TimeHistogram {
        &self.probe.sojourn
    }

    /// Returns the propagation counts of the packets delivered by `now`, as in
    /// [`counts`](Self::counts).
    pub fn way_at(&self, now: Time) -> PropagationCounts {
        self.propagation.counts_at(now)
    }

    /// Returns the propagation counts, including the packet in transmission.
    pub fn way(&self) -> PropagationCounts {
        self.propagation.counts()
    }

    /// Returns a meter of the capacity, if the rate varies.
    pub(crate) fn meter(&self) -> Option<Capacity> {
        (!matches!(self.wire, Wire::Constant(_))).then(|| self.capacity())
    }

    /// Returns a meter of the capacity.
    pub fn capacity(&self) -> Capacity {
        self.wire.capacity()
    }

    /// Returns the counts up to `now`. A packet is delivered when its transmission ends: arrived =
    /// delivered + dropped + waiting + in transmission.
    pub fn counts(&self, now: Time) -> Counts {
        let mut counts = self.begun_counts();
        let sending = self.in_transmission(now);
        counts.delivered -= sending.packets;
        counts.delivered_bytes -= sending.bytes;
        counts
    }

    /// Returns the counts with the packet in transmission among the delivered ones.
    pub(super) fn begun_counts(&self) -> Counts {
        let mut counts = self.queue.counts();
        if let Some(egress) = &self.egress {
            let Backlog { packets, bytes } = egress.passed;
            (counts.delivered, counts.delivered_bytes) = (packets, bytes);
        }
        counts
    }

    /// Returns the size of the packet in transmission at `now`, if any.
    pub(super) fn in_transmission(&self, now: Time) -> Backlog {
        let size = match (self.wire.unfinished(), self.transmitter) {
            (Some(packet), _) => packet.size(),
            (None, Transmitter::Busy { until, size, .. }) if until > now => size,
            _ => return Backlog::default(),
        };
        Backlog { packets: 1, bytes: size.into() }
    }

    /// Returns the number of packets waiting for the transmitter.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        self.queue.counted().packets + self.egress.as_ref().map_or(0, |egress| egress.waiting())
    }

    /// Returns the number of packets anywhere in the link.
    pub(crate) fn held(&self) -> u64 {
        self.waiting() + u64::from(self.wire.unfinished().is_some()) + self.propagation.held()
    }

    /// Finalises statistics at the end of the run.
    ///
    /// # Panics
    /// Panics if a packet is unaccounted for: a bug of the discipline.
    pub fn finish(&mut self, now: Time) {
        self.end_quiet(now + Span::from_nanos(1));
        self.probe.finish(now);
        self.propagation.assert_conservation(&self.name);
        self.queue.assert_conservation(&self.name);
        if let Some(egress) = &self.egress {
            let passed = egress.passed.packets + egress.waiting();
            assert_eq!(passed, self.queue.counts().delivered, "{}: lost in the driver", self.name);
        }
    }

    /// Checks Little's law in queue and driver, at the end of a run.
    ///
    /// # Panics
    /// Panics if it does not hold: a bug.
    pub(super) fn assert_littles_law(self, end: Time) {
        let backlog = self.queue.counted();
        let mut inside = Waits::default();
        if let Some(egress) = &self.egress {
            egress.assert_littles_law(end, &self.name);
        }
        let kept = self.queue.into_queued(end, |arrival| inside.add(end - arrival));
        inside.add_unknown(kept, end);
        self.probe.assert_littles_law(end, backlog, inside, &self.name);
    }
}
