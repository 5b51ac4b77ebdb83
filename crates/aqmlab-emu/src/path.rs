//! The data path: packets in at ports, through links, out at other ports.
//!
//! # Model
//! The links are the simulator's own state machines with their queues, rates
//! and impairments, and so is the list of pending events. Time is an argument
//! here too: whoever drives the path says how late it is, and all that was due
//! until then happens at the time at which it was *scheduled*. How late the
//! driver comes thus moves a packet by that much and no other packet at all:
//! lateness does not add up.
//!
//! Nothing here reads a clock or a device, so a test can drive it.

use aqmlab_aqm::DropReason;
use aqmlab_core::{Bytes, Packet, Time};
use aqmlab_sim::Scenario;
use aqmlab_sim::events::{Event, EventQueue};
use aqmlab_sim::link::{Link, Setting, transmission_end};
use aqmlab_sim::scenario::Level;
use aqmlab_sim::series::{LinkSeries, Sample};

use crate::buffers::Buffers;
use crate::handle::Handle;
use crate::offload::Offload;
use crate::segments::{MOST_HEAD, Run, plan};
use crate::wire::{Unfit, parse};

/// Bytes of the Ethernet header that disciplines are told of besides the MTU.
const ETHERNET: u64 = 14;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets as the network sees them.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// The way of packets that come in at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its links, by index; at least one.
    pub links: Vec<u32>,
    /// The port at its end.
    pub exit: u16,
}

/// What leaves the path.
pub struct Departure<'a> {
    /// At which port.
    pub exit: u16,
    /// When it should have.
    pub due: Time,
    /// How many packets of the network are in it.
    pub packets: u32,
    /// What the kernel has left to do.
    pub offload: Offload,
    /// The packet: headers and rest.
    pub parts: [&'a [u8]; 2],
}

/// Takes what leaves the path.
pub trait Exits {
    /// A packet, or a large one, is due.
    fn send(&mut self, departure: &Departure<'_>);
}

/// Is shown the packets at both ends of every link, as the network sees them.
pub trait Tap: Send {
    /// A packet has come to a link. `bytes` is the frame of which it is the
    /// segment `handle.segment`.
    fn arrived(&mut self, time: Time, link: u32, handle: &Handle, buffers: &Buffers);
    /// A packet comes out of a link.
    fn departed(&mut self, time: Time, link: u32, handle: &Handle, buffers: &Buffers);
    /// A packet was dropped by the queue of a link for a reason, or lost on
    /// its way.
    fn dropped(
        &mut self,
        time: Time,
        link: u32,
        handle: &Handle,
        reason: Option<DropReason>,
        buffers: &Buffers,
    );
    /// Some time has passed, with packets or without.
    fn tick(&mut self, _now: Time, _links: &[Link<Handle>]) {}
    /// It is over; what there is to say, one sentence each.
    fn finish(&mut self, _end: Time) -> Vec<String> {
        Vec::new()
    }
}

/// Links with packets in them.
pub struct DataPath {
    links: Vec<Link<Handle>>,
    events: EventQueue,
    buffers: Buffers,
    routes: Vec<Route>,
    /// The last event or arrival.
    now: Time,
    /// Events handled.
    pub handled: u64,
    /// What has come in, and what has come out.
    pub entered: Tally,
    /// Whatever became of it at the device.
    pub left: Tally,
    /// Packets that are not carried, by [`Unfit`].
    pub unfit: [u64; Unfit::ALL.len()],
    run: Option<(Run, u16, Time)>,
    interval: Option<aqmlab_core::Span>,
    series: LinkSeries,
    samples: Vec<Sample>,
    tap: Option<Box<dyn Tap>>,
    flow_of: Option<fn(&[u8]) -> u32>,
}

impl DataPath {
    /// The links of `scenario`, empty, at time zero. `mtu` is that of the
    /// devices; each port has one route, or none where packets end.
    pub fn new(scenario: &Scenario, routes: Vec<Route>, mtu: Bytes) -> Self {
        Self::replicated(scenario, routes, mtu, 0)
    }

    /// As [`new`](Self::new), with other random draws for each `replication`.
    pub fn replicated(
        scenario: &Scenario,
        routes: Vec<Route>,
        mtu: Bytes,
        replication: u64,
    ) -> Self {
        let mtu = Bytes::new(mtu.get() + ETHERNET);
        let setting = Setting { replication, mtu, end: Time::MAX };
        Self::with_links(scenario, Link::all(scenario, &setting), routes)
    }

    /// As [`new`](Self::new), of links that exist.
    pub fn with_links(scenario: &Scenario, links: Vec<Link<Handle>>, routes: Vec<Route>) -> Self {
        let mut path = DataPath {
            links,
            events: EventQueue::new(scenario.simultaneous),
            buffers: Buffers::default(),
            routes,
            now: Time::ZERO,
            handled: 0,
            entered: Tally::default(),
            left: Tally::default(),
            unfit: [0; Unfit::ALL.len()],
            run: None,
            interval: (scenario.record.level != Level::Summary).then_some(scenario.record.interval),
            series: LinkSeries::default(),
            samples: Vec::new(),
            tap: None,
            flow_of: None,
        };
        for link in &mut path.links {
            link.start(&mut path.events);
        }
        if path.interval.is_some() {
            path.events.push(Time::ZERO, Event::Sample(0));
        }
        path
    }

    /// Shows packets to a tap from now on.
    pub fn set_tap(&mut self, tap: Box<dyn Tap>) {
        self.tap = Some(tap);
        self.buffers.keep_dropped();
    }

    /// Whether somebody is shown the packets.
    pub fn has_tap(&self) -> bool {
        self.tap.is_some()
    }

    /// Takes the number of a packet's flow from its bytes in the place of the
    /// hash of its 5-tuple: for recorded cases, whose flows have numbers.
    pub fn number_flows_by(&mut self, flow_of: fn(&[u8]) -> u32) {
        self.flow_of = Some(flow_of);
    }

    /// The links, for those who watch.
    pub fn links(&self) -> &[Link<Handle>] {
        &self.links
    }

    /// The links, for those who take records.
    pub fn links_mut(&mut self) -> &mut [Link<Handle>] {
        &mut self.links
    }

    /// Where the next packet is to be read into.
    pub fn scratch(&mut self) -> &mut [u8] {
        self.buffers.scratch()
    }

    /// A packet of `length` bytes, which stands in the scratch place, comes in
    /// for the route. What was due before has been [advanced](Self::advance).
    pub fn receive(&mut self, route: u16, offload: Offload, length: usize, now: Time) {
        let now = now.max(self.now);
        let bytes = self.buffers.scratch();
        let bytes = &bytes[..length.min(bytes.len())];
        let planned = parse(bytes).and_then(|mut headers| {
            if let Some(flow_of) = self.flow_of {
                headers.hash = flow_of(bytes);
                headers.hosts = [headers.hash; 2];
            }
            plan(bytes, headers, offload)
        });
        let frame = match planned {
            Ok(frame) if usize::from(route) < self.routes.len() => frame,
            Ok(_) => return self.unfit[Unfit::NoRoute as usize] += 1,
            Err(reason) => return self.unfit[reason as usize] += 1,
        };
        self.now = now;
        let place = self.buffers.keep(frame);
        let first = self.routes[usize::from(route)].links[0];
        for segment in 0..frame.segments {
            let handle = Handle::new(place, &frame, segment, route);
            self.entered.add(u64::from(handle.size));
            if let Some(tap) = &mut self.tap {
                tap.arrived(now, first, &handle, &self.buffers);
            }
            let (events, buffers) = (&mut self.events, &mut self.buffers);
            self.links[first as usize].arrive(handle, now, events, buffers);
        }
        self.show_dropped(now);
    }

    /// Shows the tap what was dropped.
    #[inline]
    fn show_dropped(&mut self, now: Time) {
        if let Some(tap) = &mut self.tap {
            while let Some((handle, reason)) = self.buffers.take_dropped() {
                let link = self.routes[usize::from(handle.route)].links[usize::from(handle.hop)];
                tap.dropped(now, link, &handle, reason, &self.buffers);
                self.buffers.release(handle.place, 1);
            }
        }
    }

    /// Some time has passed.
    pub fn tick(&mut self, now: Time) {
        if let Some(tap) = &mut self.tap {
            tap.tick(now, &self.links);
        }
    }

    /// When something is due next.
    pub fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    /// Lets everything happen that is due up to `now`.
    pub fn advance(&mut self, now: Time, exits: &mut impl Exits) {
        while self.events.next_time().is_some_and(|time| time <= now) {
            let (time, event) = self.events.pop().expect("just seen");
            self.now = time;
            self.handled += 1;
            self.handle(time, event, exits);
            self.show_dropped(time);
        }
        self.flush(exits);
    }

    fn handle(&mut self, now: Time, event: Event, exits: &mut impl Exits) {
        let (events, buffers) = (&mut self.events, &mut self.buffers);
        match event {
            Event::TransmissionEnd(link) => {
                transmission_end(&mut self.links, link, now, events, buffers);
            }
            Event::Wakeup(link) => self.links[link as usize].wakeup(now, events, buffers),
            Event::Delivery(link) => {
                let Some(mut handle) = self.links[link as usize].deliver(now, events) else {
                    return;
                };
                if let Some(tap) = &mut self.tap {
                    tap.departed(now, link, &handle, buffers);
                }
                handle.hop += 1;
                let route = &self.routes[usize::from(handle.route)];
                match route.links.get(usize::from(handle.hop)) {
                    Some(next) => {
                        if let Some(tap) = &mut self.tap {
                            tap.arrived(now, *next, &handle, buffers);
                        }
                        self.links[*next as usize].arrive(handle, now, events, buffers);
                    }
                    None => {
                        let exit = route.exit;
                        self.depart(&handle, exit, now, exits);
                    }
                }
            }
            Event::Sample(_) => {
                let interval = self.interval.expect("samples are asked for");
                self.series.sample(now, &mut self.links, &mut self.samples);
                events.push(now + interval, event);
            }
            other => unreachable!("{other:?} is no event of a link"),
        }
    }

    /// A packet has come to the end of its route.
    fn depart(&mut self, handle: &Handle, exit: u16, due: Time, exits: &mut impl Exits) {
        self.left.add(u64::from(handle.size()));
        if let Some((run, at, _)) = &mut self.run
            && *at == exit
            && run.join(handle)
        {
            return;
        }
        self.flush(exits);
        self.run = Some((Run::new(handle), exit, due));
    }

    /// Hands out the packets that leave together.
    fn flush(&mut self, exits: &mut impl Exits) {
        let Some((run, exit, due)) = self.run.take() else { return };
        let mut room = [0; MOST_HEAD];
        let (offload, parts) = run.frame(&self.buffers, &mut room);
        exits.send(&Departure { exit, due, packets: u32::from(run.count), offload, parts });
        self.buffers.release(run.place, u32::from(run.count));
    }

    /// What is measured as a distribution begins now.
    pub fn end_warmup(&mut self) {
        self.links.iter_mut().for_each(Link::end_warmup);
        self.series.restart_sojourns();
    }

    /// Packets that are in queues and pipes.
    pub fn under_way(&self) -> u64 {
        self.buffers.handles()
    }

    /// Ends it at `end`: what happened at each link, the samples, and what is
    /// still under way.
    ///
    /// # Panics
    /// If a packet is not accounted for: a bug.
    pub fn finish(mut self, end: Time) -> Finished {
        let end = end.max(self.now);
        let remarks = self.tap.take().map(|mut tap| tap.finish(end)).unwrap_or_default();
        for link in &mut self.links {
            link.finish(end);
        }
        let under_way = self.under_way();
        let notes = self.links.iter().map(|link| link.queue.notes()).collect();
        let links: Vec<_> = self.links.into_iter().map(|link| link.into_result(end)).collect();
        let lost: u64 = links.iter().map(|link| link.way.lost).sum();
        let copied: u64 = links.iter().map(|link| link.way.duplicated).sum();
        let dropped: u64 = links.iter().map(|link| link.counts.dropped_total()).sum();
        assert_eq!(
            self.entered.packets + copied,
            self.left.packets + lost + dropped + under_way,
            "packets went in that neither came out nor were dropped, lost or left"
        );
        let events = self.handled;
        Finished { end, events, links, notes, samples: self.samples, under_way, remarks }
    }
}

/// What is left of a data path.
pub struct Finished {
    /// When it ended.
    pub end: Time,
    /// Events handled.
    pub events: u64,
    /// By link.
    pub links: Vec<aqmlab_sim::LinkResult>,
    /// What the disciplines have to say, by link.
    pub notes: Vec<Vec<aqmlab_aqm::Note>>,
    /// At recording levels `series` and `packets`.
    pub samples: Vec<Sample>,
    /// Packets that were still in queues and pipes.
    pub under_way: u64,
    /// What the tap has to say.
    pub remarks: Vec<String>,
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
