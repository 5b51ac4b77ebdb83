//! A network: links, the routes over them, and the packets in them.
//!
//! What is [injected](Network::inject) goes from link to link along its route;
//! [`step`](Network::step) lets one event happen, and gives the packet that
//! comes to the end of its route by it. The simulator is such a network with
//! endpoints and applications, the emulator one with ports: packets are of any
//! type that can be [`NetworkPacket`].
//!
//! Nothing here knows what packets are for.

mod accounting;
pub mod config;
pub mod egress;
pub mod events;
mod histogram;
mod link;
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
use aqmlab_core::{Bytes, Span, Time};

pub use self::config::LinkConfig;
pub use self::events::Simultaneous;
pub use self::link::{LinkColumn, LinkResult, QueuedLink};
pub use self::packet::{LossCause, NetworkPacket, SidePool};
pub use self::routes::{Position, RouteId};
pub use self::wire::Capacity;

use self::accounting::PacketAccounting;
use self::events::{EventKey, LinkEvent, LinkEvents};
use self::link::Link;
use self::medium::Medium;
use self::records::RecordSink;
use self::routes::Routes;

/// The largest packet there is: keeps the transmitter's arithmetic in 64 bits.
pub(crate) const MAX_PACKET: u64 = 1 << 30;

/// Bytes of the Ethernet header, which the sizes of packets leave out.
pub const HEADER: u32 = 14;

/// What the links of a network are made of.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The links.
    pub links: &'a [LinkConfig],
    /// The longest round-trip time without queues over each.
    pub base_rtts: Vec<Span>,
    /// The first seed of all random streams.
    pub seed: u64,
    /// The second.
    pub replication: u64,
    /// The order of what happens at one moment.
    pub simultaneous: Simultaneous,
    /// The largest packet on the link layer, for disciplines that ask.
    pub mtu: Bytes,
    /// When the run is over: nothing is sent after that.
    pub end: Time,
    /// Whether what becomes of every packet at every link is recorded.
    pub record_packets: bool,
    /// Whether ends of transmissions do without events where they can: whoever looks at the links
    /// has them [catch up](Network::catch_up) first.
    pub defers_ends: bool,
}

impl Setup<'_> {
    /// The end of a network that has none.
    pub const NO_END: Time = Time::MAX;

    /// The links, by index, of each medium that several share.
    fn media(&self) -> Vec<Vec<u32>> {
        let indices = 0..self.links.len() as u32;
        let medium = |index: u32| self.links[index as usize].medium;
        let firsts = indices.clone().filter(|index| medium(*index) == Some(*index));
        firsts
            .map(|first| indices.clone().filter(|index| medium(*index) == Some(first)).collect())
            .collect()
    }
}

/// What the links of a network have in common.
pub(crate) struct Shared<P: NetworkPacket> {
    /// The time of what happens now.
    pub now: Time,
    /// The latest of all events that have happened, in their order.
    pub reached: EventKey,
    pub events: LinkEvents,
    pub accounting: PacketAccounting<P>,
    pub media: Vec<Medium>,
}

/// Is shown every packet where it enters a link and where it leaves it.
pub trait Observer<P: NetworkPacket> {
    /// A packet comes to a link.
    #[inline]
    fn entered(&mut self, _now: Time, _link: u32, _packet: &P, _store: &P::Store) {}
    /// A packet comes out of a link.
    #[inline]
    fn left(&mut self, _now: Time, _link: u32, _packet: &P, _store: &P::Store) {}
}

/// Nobody looks.
impl<P: NetworkPacket> Observer<P> for () {}

/// Links, routes, and packets on their way.
pub struct Network<P: NetworkPacket> {
    links: Vec<Link<P>>,
    routes: Routes,
    shared: Shared<P>,
    handled: u64,
}

impl<P: NetworkPacket> Network<P>
where
    P::Store: Default,
{
    /// The links of `setup`, empty, at time zero.
    pub fn new(setup: &Setup) -> Self {
        let make = |index| Link::Queued(Box::new(QueuedLink::new(index, setup)));
        let mut links: Vec<Link<P>> = (0..setup.links.len()).map(make).collect();
        let mut media = Vec::new();
        for (index, parties) in setup.media().iter().enumerate() {
            let (medium, shares) = Medium::of(parties, index);
            media.push(medium);
            for (link, share) in parties.iter().zip(shares) {
                links[*link as usize].expect_queued().share(share);
            }
        }
        let shared = Shared {
            now: Time::ZERO,
            reached: EventKey::MIN,
            events: LinkEvents::new(setup.simultaneous),
            accounting: PacketAccounting::new(P::Store::default()),
            media,
        };
        Network { links, routes: Routes::default(), shared, handled: 0 }
    }
}

impl<P: NetworkPacket> Network<P> {
    /// Adds a link without a queue: all that enters leaves after `delay`. Its index.
    pub fn add_delay(&mut self, delay: Span) -> u32 {
        let index = self.links.len() as u32;
        self.links.push(Link::delay(index, delay));
        index
    }

    /// Adds a route over these links, by index; at least one.
    pub fn add_route(&mut self, links: impl IntoIterator<Item = u32>) -> RouteId {
        let route = self.routes.add(links);
        debug_assert!(self.routes.link(self.routes.start(route)).is_some(), "a route has a link");
        route
    }

    /// Has what is injected from now on for a route take these links. What is
    /// under way goes on along the old ones.
    pub fn change_route(&mut self, route: RouteId, links: impl IntoIterator<Item = u32>) {
        self.routes.change(route, links);
    }

    /// Whether there is such a route.
    pub fn has_route(&self, route: RouteId) -> bool {
        self.routes.has(route)
    }

    /// The link that a packet is on which has come so far.
    pub fn link_of(&self, position: Position) -> u32 {
        self.routes.link(position.previous()).expect("it has entered one")
    }

    /// Begins: the disciplines' first timers.
    pub fn start(&mut self) {
        for link in self.links.iter_mut().filter_map(Link::queued_mut) {
            link.start(&mut self.shared);
        }
    }

    /// A packet begins its route at `now`, no earlier than anything before.
    #[inline(always)]
    pub fn inject(
        &mut self,
        now: Time,
        route: RouteId,
        mut packet: P,
        observer: &mut impl Observer<P>,
    ) {
        debug_assert!(now >= self.shared.now, "time goes forward");
        self.shared.now = now;
        let start = self.routes.start(route);
        let link = self.routes.link(start).expect("a route has a link");
        packet.set_position(start.next());
        self.shared.accounting.begins(&packet);
        self.enter(link, packet, observer);
    }

    /// When something happens next.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        debug_assert!(self.next_end().is_none(), "what ends without an event is not told of");
        self.shared.events.next().any().map(EventKey::time)
    }

    /// What happens next.
    #[inline(always)]
    pub(crate) fn next(&self) -> EventKey {
        self.shared.events.next()
    }

    /// Lets the next event happen. Gives the packet, if there is one, that has
    /// come to the end of its route by it; what that keeps in the store is to be taken out.
    #[inline]
    pub fn step(&mut self, observer: &mut impl Observer<P>) -> Option<P> {
        let mut arrived = None;
        self.step_into(&mut arrived, observer);
        arrived
    }

    /// The same, with a place for the packet, in which there is none: there it need not be copied
    /// once more.
    #[inline(always)]
    pub(crate) fn step_into(&mut self, arrived: &mut Option<P>, observer: &mut impl Observer<P>) {
        let Some((key, event)) = self.shared.events.pop() else { return };
        let time = key.time();
        debug_assert!(time >= self.shared.now, "time goes forward");
        self.shared.now = time;
        self.shared.reached = self.shared.reached.max(key);
        self.handled += 1;
        match event {
            LinkEvent::Delivery(link) => {
                *arrived = self.links[link as usize].deliver(&mut self.shared);
                let Some(packet) = arrived else { return };
                observer.left(time, link, packet, &self.shared.accounting.store);
                let Some(next) = self.routes.link(packet.position()) else {
                    return self.shared.accounting.arrives(packet);
                };
                if let Some(packet) = arrived.take() {
                    self.forward(next, packet, observer);
                }
            }
            LinkEvent::TransmissionEnd(link) => self.transmission_end(link),
            LinkEvent::Wakeup(link) => {
                self.links[link as usize].expect_queued().wakeup(&mut self.shared);
            }
        }
    }

    /// A packet goes on to its next link.
    #[inline(never)]
    fn forward(&mut self, link: u32, mut packet: P, observer: &mut impl Observer<P>) {
        packet.set_position(packet.position().next());
        self.enter(link, packet, observer);
    }

    /// Gives a packet to a link.
    #[inline(always)]
    fn enter(&mut self, link: u32, mut packet: P, observer: &mut impl Observer<P>) {
        packet.set_arrival(self.shared.now);
        observer.entered(self.shared.now, link, &packet, &self.shared.accounting.store);
        self.links[link as usize].arrive(packet, &mut self.shared);
    }

    /// The transmission of a link ended: and all that may follow from that on a
    /// shared medium.
    #[inline]
    fn transmission_end(&mut self, link: u32) {
        let mut next = self.links[link as usize].expect_queued().transmission_end(&mut self.shared);
        while let Some(link) = next {
            next = self.links[link as usize].expect_queued().granted(&mut self.shared);
        }
    }

    /// Events handled so far, and ends of transmissions that needed none.
    pub fn handled(&self) -> u64 {
        self.handled + self.links().map(QueuedLink::deferred_ends).sum::<u64>()
    }

    /// What packets keep besides themselves.
    pub fn store(&self) -> &P::Store {
        &self.shared.accounting.store
    }

    /// The same, to be changed.
    #[inline]
    pub fn store_mut(&mut self) -> &mut P::Store {
        &mut self.shared.accounting.store
    }

    /// The links that have a queue, in the order of the setup.
    pub fn links(&self) -> impl Iterator<Item = &QueuedLink<P>> + Clone {
        self.links.iter().filter_map(Link::queued)
    }

    /// The same, to be changed.
    pub fn links_mut(&mut self) -> impl Iterator<Item = &mut QueuedLink<P>> {
        self.links.iter_mut().filter_map(Link::queued_mut)
    }

    /// The link of this index in the setup.
    pub fn link(&self, index: usize) -> &QueuedLink<P> {
        self.links[index].queued().expect("those of the setup have one")
    }

    /// The same, to be changed.
    pub fn link_mut(&mut self, index: usize) -> &mut QueuedLink<P> {
        self.links[index].expect_queued()
    }

    /// All has happened that comes before `key` in the order of events.
    #[inline]
    pub(crate) fn reach(&mut self, key: EventKey) {
        self.shared.now = self.shared.now.max(key.time());
        self.shared.reached = self.shared.reached.max(key);
    }

    /// Lets all transmissions end that have ended by now without an event.
    pub fn catch_up(&mut self) {
        for link in self.links.iter_mut().filter_map(Link::queued_mut) {
            link.catch_up(&mut self.shared);
        }
    }

    /// The next end of a transmission that has no event, and its link.
    pub(crate) fn next_end(&self) -> Option<(EventKey, u32)> {
        let ends = (0..).zip(&self.links).filter_map(|(index, link)| {
            let end = link.queued()?.deferred_end()?;
            Some((end, index))
        });
        ends.min_by_key(|(end, _)| *end)
    }

    /// Lets that happen as if it had one.
    pub(crate) fn end_one(&mut self, end: EventKey, link: u32) {
        self.reach(end);
        self.links[link as usize].expect_queued().end_one(end.time(), &mut self.shared);
    }

    /// Changes something about a link.
    pub(crate) fn change_link(
        &mut self,
        now: Time,
        link: u32,
        change: impl FnOnce(&mut QueuedLink<P>, &mut Shared<P>),
    ) {
        self.shared.now = now;
        let link = self.links[link as usize].expect_queued();
        link.catch_up(&mut self.shared);
        change(link, &mut self.shared);
        link.changed(&mut self.shared);
    }

    /// Another discipline takes the place of that of a link, and its packets.
    pub fn replace_queue(&mut self, now: Time, link: u32, discipline: Box<dyn QueueDiscipline<P>>) {
        self.change_link(now, link, |link, shared| link.replace_queue(discipline, shared));
    }

    /// The discipline of a link gets other parameters, which it can take.
    pub fn change_queue(&mut self, now: Time, link: u32, to: &QueueConfig, env: &LinkEnv) {
        self.change_link(now, link, |link, shared| link.change_queue(to, env, shared));
    }

    /// The warm-up is over: what is measured counts from now on.
    pub fn end_warmup(&mut self, now: Time) {
        self.catch_up();
        self.links_mut().for_each(|link| link.end_warmup(now));
    }

    /// It is over: closes the books. What has arrived has been taken out of the store.
    ///
    /// # Panics
    /// If packets were lost without being counted: a bug of a discipline.
    pub fn finish(&mut self, end: Time) {
        self.catch_up();
        self.links_mut().for_each(|link| link.finish(end));
        self.shared.accounting.check(self.links.iter().map(Link::held).sum());
    }

    /// Has a sink take what is recorded of packets from now on.
    pub fn give_records(&mut self, sink: &Arc<dyn RecordSink>) {
        for (index, link) in (0..).zip(self.links_mut()) {
            link.give_records(index, sink);
        }
    }

    /// What happened at the links that have a queue, from the end of the warm-up to `end`;
    /// [finished](Self::finish) before.
    pub fn into_results(self, end: Time) -> Vec<LinkResult> {
        let queued = |link| match link {
            Link::Queued(link) => Some(link.into_result(end)),
            Link::Delay { .. } => None,
        };
        self.links.into_iter().filter_map(queued).collect()
    }
}
