//! The data path: packets in at ports, through links, out at other ports.
//!
//! # Model
//! The network is the simulator's own, with its queues, rates, impairments,
//! routes and pending events; its packets are handles of buffers. Time is an argument
//! here too: whoever drives the path says how late it is, and all that was due
//! until then happens at the time at which it was *scheduled*. How late the
//! driver comes thus moves a packet by that much and no other packet at all:
//! lateness does not add up.
//!
//! Nothing here reads a clock or a device, so a test can drive it.

use aqmlab_aqm::Reason;
use aqmlab_core::{Bytes, Packet, Result, Span, Time};
use aqmlab_sim::Scenario;
use aqmlab_sim::network::series::{LinkSeries, Sample};
use aqmlab_sim::network::{HEADER, LossCause, Network, Observer, RouteId, Setup, SidePool};
use aqmlab_sim::scenario::{Change, Level, Surroundings};

use crate::changes::{Asked, Changes, Made};
use crate::packet::buffers::{Buffers, Frame};
use crate::packet::handle::Handle;
use crate::packet::offload::Offload;
use crate::packet::segments::{MOST_HEAD, Run, plan};
use crate::packet::wire::{UDP, Unfit, parse};

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
    /// How long it had waited to be read.
    pub waited: Span,
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
        reason: Option<Reason>,
        buffers: &Buffers,
    );
    /// Some time has passed, with packets or without.
    fn tick(&mut self, _now: Time, _network: &Network<Handle>) {}
    /// It is over; what there is to say, one sentence each.
    fn finish(&mut self, _end: Time) -> Vec<String> {
        Vec::new()
    }
}

/// Shows what passes to the tap, if there is one.
struct Shown<'a>(&'a mut Option<Box<dyn Tap>>);

impl Observer<Handle> for Shown<'_> {
    fn entered(&mut self, now: Time, link: u32, handle: &Handle, buffers: &Buffers) {
        if let Some(tap) = &mut self.0 {
            tap.arrived(now, link, handle, buffers);
        }
    }
    fn left(&mut self, now: Time, link: u32, handle: &Handle, buffers: &Buffers) {
        if let Some(tap) = &mut self.0 {
            tap.departed(now, link, handle, buffers);
        }
    }
}

/// The network of a scenario, for those who change it.
fn surroundings(scenario: &Scenario) -> Surroundings {
    let Setup { seed, replication, mtu, end, .. } = scenario.network(0);
    Surroundings { seed, replication, mtu, end }
}

/// A network with ports.
pub struct DataPath {
    network: Network<Handle>,
    changes: Changes,
    /// The port at the end of each of the network's routes.
    exits: Vec<u16>,
    /// The last event or arrival.
    now: Time,
    /// Samples taken.
    sampled: u64,
    /// What has come in, and what has come out.
    pub entered: Tally,
    /// Whatever became of it at the device.
    pub left: Tally,
    /// By route: large packets that came in, and those of them that await an answer: all
    /// but UDP's.
    pub came: Vec<[u64; 2]>,
    /// Packets that are not carried, by [`Unfit`].
    pub unfit: [u64; Unfit::ALL.len()],
    run: Option<(Run, u16, Time)>,
    interval: Span,
    /// When the next sample is due.
    next_sample: Option<Time>,
    series: LinkSeries,
    /// What is left out at the beginning.
    warmup: Span,
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
        let mtu = Bytes::new(mtu.get() + u64::from(HEADER));
        let setup = Setup { mtu, ..scenario.network(replication) };
        let mut path = Self::with_network(scenario, Network::new(&setup), routes);
        path.changes =
            Changes::new(scenario, Surroundings { mtu, replication, ..surroundings(scenario) });
        path
    }

    /// As [`new`](Self::new), of a network that exists and has no routes yet.
    pub fn with_network(
        scenario: &Scenario,
        mut network: Network<Handle>,
        routes: Vec<Route>,
    ) -> Self {
        for route in &routes {
            network.add_route(route.links.iter().copied());
        }
        network.start();
        let has_samples = scenario.record.level != Level::Summary;
        DataPath {
            network,
            changes: Changes::new(scenario, surroundings(scenario)),
            came: vec![[0; 2]; routes.len()],
            exits: routes.into_iter().map(|route| route.exit).collect(),
            now: Time::ZERO,
            sampled: 0,
            entered: Tally::default(),
            left: Tally::default(),
            unfit: [0; Unfit::ALL.len()],
            run: None,
            interval: scenario.record.interval,
            next_sample: has_samples.then_some(Time::ZERO),
            series: LinkSeries::default(),
            warmup: Span::ZERO,
            samples: Vec::new(),
            tap: None,
            flow_of: None,
        }
    }

    /// Shows packets to a tap from now on.
    pub fn set_tap(&mut self, tap: Box<dyn Tap>) {
        self.tap = Some(tap);
        self.network.store_mut().keep_dropped();
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

    /// The network, for those who watch.
    pub fn network(&self) -> &Network<Handle> {
        &self.network
    }

    /// The network, for those who take records.
    pub fn network_mut(&mut self) -> &mut Network<Handle> {
        &mut self.network
    }

    /// Where the next packet is to be read into.
    pub fn scratch(&mut self) -> &mut [u8] {
        self.network.store_mut().scratch()
    }

    /// A packet of `length` bytes, which stands in the scratch place, comes in
    /// for the route. What was due before has been [advanced](Self::advance).
    pub fn receive(&mut self, route: u16, offload: Offload, length: usize, now: Time) {
        self.receive_late(route, offload, length, now, Span::ZERO);
    }

    /// As [`receive`](Self::receive), of a packet that has waited so long to be read.
    pub fn receive_late(
        &mut self,
        route: u16,
        offload: Offload,
        length: usize,
        now: Time,
        waited: Span,
    ) {
        let now = now.max(self.now);
        let buffers = self.network.store_mut();
        let bytes = buffers.scratch();
        let bytes = &bytes[..length.min(bytes.len())];
        let planned = parse(bytes).and_then(|mut headers| {
            if let Some(flow_of) = self.flow_of {
                headers.hash = flow_of(bytes);
                headers.hosts = [headers.hash; 2];
            }
            plan(bytes, headers, offload)
        });
        let frame = match planned {
            Ok(frame) if usize::from(route) < self.exits.len() => Frame { waited, ..frame },
            Ok(_) => return self.unfit[Unfit::NoRoute as usize] += 1,
            Err(reason) => return self.unfit[reason as usize] += 1,
        };
        self.now = now;
        let came = &mut self.came[usize::from(route)];
        came[0] += 1;
        came[1] += u64::from(frame.headers.protocol != UDP);
        let place = buffers.keep(frame);
        for segment in 0..frame.segments {
            let handle = Handle::new(place, &frame, segment, route);
            self.entered.add(u64::from(handle.size));
            let observer = &mut Shown(&mut self.tap);
            self.network.inject(now, RouteId(u32::from(route)), handle, observer);
        }
        self.show_dropped(now);
    }

    /// Shows the tap what was dropped.
    #[inline]
    fn show_dropped(&mut self, now: Time) {
        if let Some(tap) = &mut self.tap {
            while let Some((handle, fate)) = self.network.store_mut().take_dropped() {
                let reason = match fate {
                    LossCause::Dropped(reason) => Some(reason),
                    LossCause::Lost => None,
                };
                let link = self.network.link_of(handle.position);
                tap.dropped(now, link, &handle, reason, self.network.store());
                self.network.store_mut().free(handle);
            }
        }
    }

    /// Some time has passed.
    pub fn tick(&mut self, now: Time) {
        if let Some(tap) = &mut self.tap {
            tap.tick(now, &self.network);
        }
    }

    /// When something is due next.
    pub fn next_time(&self) -> Option<Time> {
        let others = self.next_sample.into_iter().chain(self.changes.next_time());
        self.network.next_time().into_iter().chain(others).min()
    }

    /// Lets everything happen that is due up to `now`.
    pub fn advance(&mut self, now: Time, exits: &mut impl Exits) {
        while let Some(time) = self.next_time().filter(|time| *time <= now) {
            self.now = time;
            // At one moment what happens in the network is first.
            if self.network.next_time() != Some(time) {
                match self.next_sample == Some(time) {
                    true => self.sample(),
                    false => self.changes.come(time, &mut self.network),
                }
            } else if let Some(handle) = self.network.step(&mut Shown(&mut self.tap)) {
                self.depart(handle, exits);
            }
            self.show_dropped(time);
        }
        self.flush(exits);
    }

    /// Gives keys of links other values: all of them, or none. When that was, and what it did.
    ///
    /// # Errors
    /// If a key cannot change, or not to its value.
    pub fn set(&mut self, now: Time, asked: &[Asked]) -> Result<(Time, Vec<Made>)> {
        // What is due and has not happened yet comes after it.
        let at = self.next_time().map_or(now, |next| next.min(now)).max(self.now);
        let made = self.changes.set(at, asked, &mut self.network)?;
        self.now = at;
        self.show_dropped(at);
        Ok((at, made))
    }

    fn sample(&mut self) {
        self.sampled += 1;
        self.series.sample(self.now, &mut self.network, &mut self.samples);
        self.next_sample = Some(self.now + self.interval);
    }

    /// A packet has come to the end of its route.
    fn depart(&mut self, handle: Handle, exits: &mut impl Exits) {
        let exit = self.exits[usize::from(handle.route)];
        self.left.add(u64::from(handle.size()));
        let other = match &mut self.run {
            Some((run, at, _)) if *at == exit => run.join(handle),
            _ => Some(handle),
        };
        if let Some(handle) = other {
            self.flush(exits);
            self.run = Some((Run::new(handle), exit, self.now));
        }
    }

    /// Hands out the packets that leave together.
    fn flush(&mut self, exits: &mut impl Exits) {
        let Some((run, exit, due)) = self.run.take() else { return };
        let mut room = [0; MOST_HEAD];
        let (offload, parts) = run.frame(self.network.store(), &mut room);
        let (waited, packets) =
            (self.network.store().get(run.place).1.waited, u32::from(run.count));
        exits.send(&Departure { exit, due, waited, packets, offload, parts });
        self.network.store_mut().free_run(run);
    }

    /// The warm-up is over: what is measured counts from now on.
    pub fn end_warmup(&mut self, now: Time) {
        let now = now.max(self.now);
        self.network.end_warmup(now);
        self.warmup = now - Time::ZERO;
        self.series.restart_sojourns();
    }

    /// Packets that are in queues and pipes.
    pub fn under_way(&self) -> u64 {
        self.network.store().live_count()
    }

    /// Ends it at `end`: what happened at each link, the samples, and what is
    /// still under way.
    ///
    /// # Panics
    /// If a packet is not accounted for: a bug.
    pub fn finish(mut self, end: Time) -> Finished {
        let end = end.max(self.now);
        let remarks = self.tap.take().map(|mut tap| tap.finish(end)).unwrap_or_default();
        self.network.finish(end);
        let under_way = self.under_way();
        let events = self.network.handled() + self.sampled;
        let notes = self.network.links().map(|link| link.queue.notes()).collect();
        // Over the whole run, the warm-up with it.
        let ways = || self.network.links().map(|link| link.way());
        let lost: u64 = ways().map(|way| way.lost).sum();
        let copied: u64 = ways().map(|way| way.duplicated).sum();
        let dropped: u64 =
            self.network.links().map(|link| link.queue.counts().dropped_total()).sum();
        assert_eq!(
            self.entered.packets + copied,
            self.left.packets + lost + dropped + under_way,
            "packets went in that neither came out nor were dropped, lost or left"
        );
        let (samples, changes) = (self.samples, self.changes.into_all());
        let (links, warmup) = (self.network.into_results(end), self.warmup);
        Finished { end, warmup, events, links, notes, samples, changes, under_way, remarks }
    }
}

/// What is left of a data path.
pub struct Finished {
    /// When it ended.
    pub end: Time,
    /// What was left out at its beginning.
    pub warmup: Span,
    /// Events handled.
    pub events: u64,
    /// By link.
    pub links: Vec<aqmlab_sim::LinkResult>,
    /// What the disciplines have to say, by link.
    pub notes: Vec<Vec<aqmlab_aqm::Note>>,
    /// At recording levels `series` and `packets`.
    pub samples: Vec<Sample>,
    /// What changed, and what was to change later.
    pub changes: Vec<Change>,
    /// Packets that were still in queues and pipes.
    pub under_way: u64,
    /// What the tap has to say.
    pub remarks: Vec<String>,
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
