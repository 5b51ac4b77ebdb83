//! Links, routes over them, and the packets in them.
//!
//! [Injected](Network::inject) packets traverse the links of their route.
//! [`step`](Network::step) handles one event, and returns the packet that reaches the end of its
//! route. The simulator is a network with endpoints and applications, the emulator is one with
//! ports: packets are of any type that implements [`PacketStore`]. Their purpose has no meaning
//! here.

mod accounting;
pub mod config;
pub mod egress;
pub mod events;
mod histogram;
mod link;
pub(crate) mod log;
pub mod losses;
mod medium;
mod occupancy;
pub mod packet;
pub mod probe;
pub mod propagation;
pub mod records;
pub mod routes;
pub mod series;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod wire;

use std::sync::Arc;

use aqmlab_aqm::{LinkEnv, QueueConfig, QueueDiscipline};
use aqmlab_core::{Bytes, Packet, Span, Time};

pub use self::config::LinkConfig;
pub use self::events::Simultaneous;
pub use self::link::{LinkColumn, LinkResult, QueuedLink};
pub use self::packet::{LossCause, PacketStore};
pub use self::routes::{Hop, RouteId};
pub use self::wire::Capacity;

use self::accounting::PacketAccounting;
use self::events::{EventKey, EventQueue, TRANSMISSION_END, WAKEUP};
use self::medium::Medium;
use self::propagation::FixedDelay;
use self::records::RecordSink;
use self::routes::Routes;

/// Largest size of a packet in bytes: keeps the transmitter's arithmetic in 64 bits.
pub(crate) const MAX_PACKET: u64 = 1 << 30;

/// Bytes of the Ethernet header, which sizes of packets do not include.
pub const HEADER: u32 = 14;

/// Configuration of a network.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Links of the network.
    pub links: &'a [LinkConfig],
    /// Longest base round-trip time over each link.
    pub base_rtts: Vec<Span>,
    /// First seed of all random streams.
    pub seed: u64,
    /// Second seed of all random streams.
    pub replication: u64,
    /// Order of simultaneous events.
    pub simultaneous: Simultaneous,
    /// Largest packet on the link layer, for disciplines that depend on it.
    pub mtu: Bytes,
    /// End of the run: nothing is sent later.
    pub end: Time,
    /// True if every packet is recorded at every link.
    pub record_packets: bool,
    /// True to omit events for ends of transmissions where possible: call
    /// [`catch_up`](Network::catch_up) before reading the state of links.
    pub defers_ends: bool,
}

impl Setup<'_> {
    /// End of a network that runs for ever.
    pub const NO_END: Time = Time::MAX;
}

/// State that the links of a network share.
#[derive(Clone)]
pub(crate) struct Shared<S: PacketStore> {
    /// Time of the present event.
    pub now: Time,
    /// Greatest key of all events handled so far.
    pub reached: EventKey,
    pub events: EventQueue,
    /// Kind of the events of deliveries.
    pub delivery: u32,
    pub accounting: PacketAccounting<S>,
    /// Media, by the index of the first of their links.
    pub media: Vec<Medium>,
}

/// Observes packets entering and leaving each link.
pub trait Observer<S: PacketStore> {
    /// Handles a packet that enters a link.
    #[inline]
    fn entered(&mut self, _now: Time, _link: u32, _packet: &Packet, _store: &S) {}
    /// Handles a packet that leaves a link.
    #[inline]
    fn left(&mut self, _now: Time, _link: u32, _packet: &Packet, _store: &S) {}
}

/// No-op observer.
impl<S: PacketStore> Observer<S> for () {}

/// Links, routes and packets in flight.
#[derive(Clone)]
pub struct Network<S: PacketStore> {
    /// Links of the setup, which have a queue.
    links: Vec<QueuedLink>,
    /// Links without a queue, which delay all packets equally. Their indices follow those above.
    delays: Vec<FixedDelay>,
    routes: Routes,
    shared: Shared<S>,
    handled: u64,
}

impl<S: PacketStore> Network<S>
where
    S: Default,
{
    /// Returns the network of `setup`, empty, at time zero.
    pub fn new(setup: &Setup) -> Self {
        let links: Vec<_> =
            (0..setup.links.len()).map(|index| QueuedLink::new(index, setup)).collect();
        let shared = Shared {
            now: Time::ZERO,
            reached: EventKey::MIN,
            events: EventQueue::default(),
            delivery: setup.simultaneous.delivery(),
            accounting: PacketAccounting::new(S::default()),
            media: vec![Medium::default(); links.len()],
        };
        Network { links, delays: Vec::new(), routes: Routes::default(), shared, handled: 0 }
    }
}

impl<S: PacketStore> Network<S> {
    /// Adds a link without a queue, which delays packets by `delay`. Returns its index.
    pub fn add_delay(&mut self, delay: Span) -> u32 {
        self.delays.push(FixedDelay::new(delay));
        (self.links.len() + self.delays.len()) as u32 - 1
    }

    /// Adds a route over at least one link, by index.
    pub fn add_route(&mut self, links: impl IntoIterator<Item = u32>) -> RouteId {
        let route = self.routes.add(links);
        debug_assert!(self.routes.link(self.routes.start(route)).is_some(), "a route has a link");
        route
    }

    /// Changes a route for packets injected from now on. Packets in flight continue along the old
    /// links.
    pub fn change_route(&mut self, route: RouteId, links: impl IntoIterator<Item = u32>) {
        self.routes.change(route, links);
    }

    /// Returns the link that a packet is on whose next hop is `position`.
    pub fn link_of(&self, position: Hop) -> u32 {
        self.routes.link(position.previous()).expect("the packet has entered a link")
    }

    /// Schedules the first timers of the queue disciplines.
    pub fn start(&mut self) {
        self.links.iter_mut().for_each(|link| link.schedule_wakeup(&mut self.shared));
    }

    /// Injects a packet at the start of a route. `now` is no earlier than in any call before.
    #[inline(always)]
    pub fn inject(
        &mut self,
        now: Time,
        route: RouteId,
        mut packet: Packet,
        observer: &mut impl Observer<S>,
    ) {
        debug_assert!(now >= self.shared.now, "time goes forward");
        self.shared.now = now;
        let start = self.routes.start(route);
        let link = self.routes.link(start).expect("a route has a link");
        packet.position = start.next().0;
        self.shared.accounting.begins(&packet);
        self.enter(link, packet, observer);
    }

    /// Returns the time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        debug_assert!(self.next_end().is_none(), "the time of a deferred end is unknown here");
        self.shared.events.next().any().map(EventKey::time)
    }

    /// Returns the key of the next event.
    #[inline(always)]
    pub(crate) fn next(&self) -> EventKey {
        self.shared.events.next()
    }

    /// Handles the next event. Returns the packet that reaches the end of its route, if there is
    /// one; the caller takes its payload out of the store.
    #[inline]
    pub fn step(&mut self, observer: &mut impl Observer<S>) -> Option<Packet> {
        let mut arrived = None;
        if let Some(event) = self.shared.events.next().any() {
            self.step_into(event, &mut arrived, observer);
        }
        arrived
    }

    /// Handles `key`, the next event, and puts the packet that reaches the end of its route into
    /// `arrived`, which is `None`. This saves a copy compared to [`step`](Self::step).
    #[inline(always)]
    pub(crate) fn step_into(
        &mut self,
        key: EventKey,
        arrived: &mut Option<Packet>,
        observer: &mut impl Observer<S>,
    ) {
        let time = key.time();
        debug_assert!(time >= self.shared.now, "time goes forward");
        self.shared.now = time;
        self.shared.reached = self.shared.reached.max(key);
        self.handled += 1;
        let link = key.index();
        match key.kind() {
            TRANSMISSION_END => {
                self.shared.events.pop();
                self.transmission_end(link);
            }
            WAKEUP => {
                self.shared.events.pop();
                self.links[link as usize].wakeup(&mut self.shared);
            }
            _ => {
                *arrived = match self.links.get_mut(link as usize) {
                    Some(link) => link.deliver(&mut self.shared),
                    None => self.leave_delay(link),
                };
                let Some(packet) = arrived else { return };
                observer.left(time, link, packet, &self.shared.accounting.store);
                let Some(next) = self.routes.link(Hop(packet.position)) else {
                    return self.shared.accounting.arrives(packet);
                };
                if let Some(packet) = arrived.take() {
                    self.forward(next, packet, observer);
                }
            }
        }
    }

    /// Forwards a packet to its next link.
    #[inline(never)]
    fn forward(&mut self, link: u32, mut packet: Packet, observer: &mut impl Observer<S>) {
        packet.position = Hop(packet.position).next().0;
        self.enter(link, packet, observer);
    }

    /// Passes a packet to a link.
    #[inline(always)]
    fn enter(&mut self, link: u32, mut packet: Packet, observer: &mut impl Observer<S>) {
        packet.set_arrival(self.shared.now);
        observer.entered(self.shared.now, link, &packet, &self.shared.accounting.store);
        match self.links.get_mut(link as usize) {
            Some(link) => link.arrive(packet, &mut self.shared),
            None => self.enter_delay(link, packet),
        }
    }

    /// Passes a packet to a link without a queue. Not inlined, which would cost other packets more.
    #[inline(never)]
    fn enter_delay(&mut self, link: u32, packet: Packet) {
        let delay = &mut self.delays[link as usize - self.links.len()];
        delay.push(packet, self.shared.now, link, &mut self.shared);
    }

    /// Removes the packet that arrives at the far end of a link without a queue.
    #[inline(never)]
    fn leave_delay(&mut self, link: u32) -> Option<Packet> {
        self.delays[link as usize - self.links.len()].pop(&mut self.shared)
    }

    /// Handles the end of a transmission, and the turns on a shared medium that follow from it.
    #[inline]
    fn transmission_end(&mut self, link: u32) {
        let mut next = self.links[link as usize].transmission_end(&mut self.shared);
        while let Some(link) = next {
            next = self.links[link as usize].granted(&mut self.shared);
        }
    }

    /// Returns the number of events so far, deferred ends of transmissions included.
    pub fn handled(&self) -> u64 {
        self.handled + self.links().map(|link| link.deferred).sum::<u64>()
    }

    /// Returns the store with the payloads of packets.
    pub fn store(&self) -> &S {
        &self.shared.accounting.store
    }

    /// Returns the store to be changed.
    #[inline]
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.shared.accounting.store
    }

    /// Returns the links that have a queue, in the order of the setup.
    pub fn links(&self) -> impl Iterator<Item = &QueuedLink> + Clone {
        self.links.iter()
    }

    /// Returns the links that have a queue, to be changed.
    pub fn links_mut(&mut self) -> impl Iterator<Item = &mut QueuedLink> {
        self.links.iter_mut()
    }

    /// Returns the link with this index in the setup.
    pub fn link(&self, index: usize) -> &QueuedLink {
        &self.links[index]
    }

    /// Returns the link with this index in the setup, to be changed.
    pub fn link_mut(&mut self, index: usize) -> &mut QueuedLink {
        &mut self.links[index]
    }

    /// Marks all events before `key` as handled.
    #[inline]
    pub(crate) fn reach(&mut self, key: EventKey) {
        self.shared.now = self.shared.now.max(key.time());
        self.shared.reached = self.shared.reached.max(key);
    }

    /// Handles all deferred ends of transmissions before the present.
    pub fn catch_up(&mut self) {
        self.links.iter_mut().for_each(|link| link.catch_up(&mut self.shared));
    }

    /// Returns the next deferred end of a transmission, and its link.
    pub(crate) fn next_end(&self) -> Option<(EventKey, u32)> {
        let ends = (0..).zip(&self.links);
        ends.filter_map(|(index, link)| Some((link.deferred_end()?, index))).min()
    }

    /// Handles a deferred end of a transmission.
    pub(crate) fn end_one(&mut self, end: EventKey, link: u32) {
        self.reach(end);
        self.links[link as usize].end_one(end.time(), &mut self.shared);
    }

    /// Changes a link.
    pub(crate) fn change_link(
        &mut self,
        now: Time,
        link: u32,
        change: impl FnOnce(&mut QueuedLink, &mut Shared<S>),
    ) {
        self.shared.now = now;
        let link = &mut self.links[link as usize];
        link.catch_up(&mut self.shared);
        change(link, &mut self.shared);
        link.changed(&mut self.shared);
    }

    /// Replaces the discipline of a link; the new one gets the packets.
    pub fn replace_queue(&mut self, now: Time, link: u32, discipline: Box<dyn QueueDiscipline>) {
        self.change_link(now, link, |link, shared| link.replace_queue(discipline, shared));
    }

    /// Changes parameters of the discipline of a link.
    pub fn change_queue(&mut self, now: Time, link: u32, to: &QueueConfig, env: &LinkEnv) {
        self.change_link(now, link, |link, shared| link.change_queue(to, env, shared));
    }

    /// Ends the warm-up: statistics start again.
    pub fn end_warmup(&mut self, now: Time) {
        self.catch_up();
        self.links_mut().for_each(|link| link.end_warmup(now));
    }

    /// Finalises statistics at the end of the run. Payloads of arrived packets have been taken out of
    /// the store.
    ///
    /// # Panics
    /// Panics if a packet is unaccounted for: a bug of a discipline.
    pub fn finish(&mut self, end: Time) {
        self.catch_up();
        self.links_mut().for_each(|link| link.finish(end));
        let held = self.links.iter().map(QueuedLink::held).sum::<u64>();
        self.shared.accounting.check(held + self.delays.iter().map(FixedDelay::held).sum::<u64>());
    }

    /// Passes future records of packets to a sink.
    pub fn give_records(&mut self, sink: &Arc<dyn RecordSink>) {
        for (index, link) in (0..).zip(self.links_mut()) {
            link.give_records(index, sink);
        }
    }

    /// Returns the results of the links that have a queue, from the end of the warm-up to `end`. Call
    /// [`finish`](Self::finish) first.
    pub fn into_results(self, end: Time) -> Vec<LinkResult> {
        self.links.into_iter().map(|link| link.into_result(end)).collect()
    }
}
