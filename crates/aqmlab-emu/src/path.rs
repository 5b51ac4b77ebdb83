//! Data path: packets enter at ports, traverse links, and leave at other ports.
//!
//! # Model
//! The network is the simulator's own, with its queues, rates, impairments, routes and pending
//! events; its packets are handles of buffers. Time is an argument: the caller passes the current
//! time, and everything due until then is processed at its *scheduled* time. A late caller
//! therefore delays the packets that were due, and no others: lateness does not accumulate.
//!
//! This module reads no clock and no device, so tests can drive it.

use aqmlab_core::{Bytes, Packet, Result, Span, Time};
use aqmlab_sim::Scenario;
use aqmlab_sim::network::series::{LinkSeries, Sample};
use aqmlab_sim::network::{HEADER, Hop, LossCause, Network, Observer, PacketStore, RouteId, Setup};
use aqmlab_sim::scenario::{Change, Level, Surroundings};

use crate::addresses::Block;
use crate::changes::{Asked, Changes, Made};
use crate::packet::buffers::{Buffers, Frame, segment_and_route};
use crate::packet::offload::Offload;
use crate::packet::segments::{MOST_HEAD, Run, plan};
use crate::packet::wire::{TCP, UDP, Unfit, parse};

/// Number of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets as the network counts them.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// Large packets that entered on a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// All of them.
    pub packets: u64,
    /// Packets that expect an answer: all but UDP to a shell's addresses.
    pub awaiting: u64,
    /// Packets to other addresses than those of shells.
    pub elsewhere: u64,
    /// TCP segments and UDP datagrams to addresses of shells.
    pub to_servers: u64,
}

/// Route of packets that enter at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Links, by index; at least one.
    pub links: Vec<u32>,
    /// Port at the end of the route.
    pub exit: u16,
}

/// Packet that leaves the data path.
pub struct Departure<'a> {
    /// Port of departure.
    pub exit: u16,
    /// Scheduled time of departure.
    pub due: Time,
    /// Time the packet had waited to be read.
    pub waited: Span,
    /// Number of the network's packets in it.
    pub packets: u32,
    /// Offload work left to the kernel.
    pub offload: Offload,
    /// Packet contents: headers and the rest.
    pub parts: [&'a [u8]; 2],
}

/// Receives departing packets.
pub trait Exits {
    /// Sends a packet, or a large packet, that is due.
    fn send(&mut self, departure: &Departure<'_>);
}

/// What a link does with a packet.
#[derive(Clone, Copy, Debug)]
pub enum Passage {
    /// The packet arrives.
    Arrived,
    /// The packet leaves.
    Departed,
    /// The queue drops the packet, or the link loses it.
    Gone(LossCause),
}

/// Observes packets at every link, as the network sees them.
pub trait Tap: Send {
    /// Called when a packet arrives at a link, leaves it or is lost there. The packet is
    /// a segment of a frame in `buffers`.
    fn saw(&mut self, time: Time, link: u32, what: Passage, handle: &Packet, buffers: &Buffers);
    /// Called periodically, with or without packets.
    fn tick(&mut self, _now: Time, _network: &Network<Buffers>) {}
    /// Called at the end. Returns messages for the user, one sentence each.
    fn finish(&mut self, _end: Time) -> Vec<String> {
        Vec::new()
    }
}

/// Network observer that forwards packets to the tap, if any.
struct Shown<'a>(&'a mut Option<Box<dyn Tap>>);

impl Observer<Buffers> for Shown<'_> {
    fn entered(&mut self, now: Time, link: u32, handle: &Packet, buffers: &Buffers) {
        if let Some(tap) = &mut self.0 {
            tap.saw(now, link, Passage::Arrived, handle, buffers);
        }
    }
    fn left(&mut self, now: Time, link: u32, handle: &Packet, buffers: &Buffers) {
        if let Some(tap) = &mut self.0 {
            tap.saw(now, link, Passage::Departed, handle, buffers);
        }
    }
}

/// Returns the context of a scenario's network, for changes.
fn surroundings(scenario: &Scenario) -> Surroundings {
    let Setup { seed, replication, mtu, end, .. } = scenario.network(0);
    Surroundings { seed, replication, mtu, end }
}

/// Network with ports.
pub struct DataPath {
    /// Network, for observers and readers of records.
    pub network: Network<Buffers>,
    changes: Changes,
    /// Port at the end of each route of the network.
    exits: Vec<u16>,
    /// Time of the last event or arrival.
    now: Time,
    /// Number of samples taken.
    sampled: u64,
    /// Packets that entered the data path.
    pub entered: Tally,
    /// Packets that left, whether or not the device accepted them.
    pub left: Tally,
    /// By route: large packets that entered.
    pub came: Vec<Entered>,
    /// Packets rejected as unsupported, by [`Unfit`].
    pub unfit: [u64; Unfit::ALL.len()],
    run: Option<(Run, u16, Time)>,
    interval: Span,
    /// Time of the next sample.
    next_sample: Option<Time>,
    series: LinkSeries,
    /// Interval excluded at the beginning.
    warmup: Span,
    samples: Vec<Sample>,
    tap: Option<Box<dyn Tap>>,
    flow_of: Option<fn(&[u8]) -> u32>,
}

impl DataPath {
    /// Creates the path over the links of `scenario`, empty, at time zero. `mtu` is that of the
    /// devices. Each port has one route, or none where packets end. Random draws differ for each
    /// `replication`.
    pub fn new(scenario: &Scenario, routes: Vec<Route>, mtu: Bytes, replication: u64) -> Self {
        let mtu = Bytes::new(mtu.get() + u64::from(HEADER));
        let setup = Setup { mtu, ..scenario.network(replication) };
        let mut path = Self::with_network(scenario, Network::new(&setup), routes);
        path.changes =
            Changes::new(scenario, Surroundings { mtu, replication, ..surroundings(scenario) });
        path
    }

    /// Creates the path over an existing network without routes.
    pub fn with_network(
        scenario: &Scenario,
        mut network: Network<Buffers>,
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
            came: vec![Entered::default(); routes.len()],
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

    /// Sets the tap, if any, that observes packets from now on.
    pub fn set_tap(&mut self, tap: Option<Box<dyn Tap>>) {
        if tap.is_some() {
            self.network.store_mut().keep_dropped();
        }
        self.tap = tap;
    }

    /// Returns true if packets are observed.
    pub fn has_tap(&self) -> bool {
        self.tap.is_some()
    }

    /// Takes flow numbers from packet bytes instead of the hash of the 5-tuple: for recorded cases,
    /// whose flows have numbers.
    pub fn number_flows_by(&mut self, flow_of: fn(&[u8]) -> u32) {
        self.flow_of = Some(flow_of);
    }

    /// Returns the buffer for reading the next packet.
    pub fn scratch(&mut self) -> &mut [u8] {
        self.network.store_mut().scratch()
    }

    /// Injects a packet of `length` bytes from the scratch buffer on a route; it has waited for `waited`
    /// to be read. Call [`advance`](Self::advance) first.
    pub fn receive(
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
        let is_elsewhere = Block::of_packet(bytes).is_none();
        let frame = match planned {
            Ok(frame) if usize::from(route) < self.exits.len() => Frame { waited, ..frame },
            Ok(_) => return self.unfit[Unfit::NoRoute as usize] += 1,
            Err(reason) => return self.unfit[reason as usize] += 1,
        };
        self.now = now;
        let came = &mut self.came[usize::from(route)];
        came.packets += 1;
        came.awaiting += u64::from(frame.headers.protocol != UDP || is_elsewhere);
        came.elsewhere += u64::from(is_elsewhere);
        let has_ports = matches!(frame.headers.protocol, TCP | UDP);
        came.to_servers += u64::from(has_ports && !is_elsewhere);
        let place = buffers.keep(frame);
        for segment in 0..frame.segments {
            let handle = frame.packet(place, segment, route);
            self.entered.add(u64::from(handle.size()));
            let observer = &mut Shown(&mut self.tap);
            self.network.inject(now, RouteId(u32::from(route)), handle, observer);
        }
        self.show_dropped(now);
    }

    /// Reports dropped packets to the tap.
    #[inline]
    fn show_dropped(&mut self, now: Time) {
        if let Some(tap) = &mut self.tap {
            while let Some((handle, cause)) = self.network.store_mut().take_dropped() {
                let link = self.network.link_of(Hop(handle.position));
                tap.saw(now, link, Passage::Gone(cause), &handle, self.network.store());
                self.network.store_mut().free(handle);
            }
        }
    }

    /// Reports the current time to the tap.
    pub fn tick(&mut self, now: Time) {
        if let Some(tap) = &mut self.tap {
            tap.tick(now, &self.network);
        }
    }

    /// Returns the time of the next due event or sample.
    pub fn next_time(&self) -> Option<Time> {
        let others = self.next_sample.into_iter().chain(self.changes.next_time());
        self.network.next_time().into_iter().chain(others).min()
    }

    /// Processes everything due up to `now`.
    pub fn advance(&mut self, now: Time, exits: &mut impl Exits) {
        while let Some(time) = self.next_time().filter(|time| *time <= now) {
            self.now = time;
            // The network's events precede samples at the same time.
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

    /// Changes keys of links: all of them, or none. Returns the time and the effects.
    ///
    /// # Errors
    /// Returns an error if a key cannot change, or not to its value.
    pub fn set(&mut self, now: Time, asked: &[Asked]) -> Result<(Time, Vec<Made>)> {
        // Overdue events that are not processed yet come after the change.
        let at = self.next_time().map_or(now, |next| next.min(now)).max(self.now);
        let made = self.changes.set(at, asked, &mut self.network)?;
        self.now = at;
        self.show_dropped(at);
        Ok((at, made))
    }

    fn sample(&mut self) {
        self.sampled += 1;
        let samples = &mut self.samples;
        self.series.sample(self.now, &mut self.network, |sample| samples.push(sample));
        self.next_sample = Some(self.now + self.interval);
    }

    /// Processes a packet at the end of its route.
    fn depart(&mut self, handle: Packet, exits: &mut impl Exits) {
        let exit = self.exits[usize::from(segment_and_route(&handle).1)];
        self.left.add(u64::from(handle.size()));
        let run = self.run.as_mut().filter(|(_, at, _)| *at == exit);
        if !run.is_some_and(|(run, ..)| run.join(&handle)) {
            self.flush(exits);
            self.run = Some((Run::of(&handle), exit, self.now));
        }
    }

    /// Sends the packets that leave together.
    fn flush(&mut self, exits: &mut impl Exits) {
        let Some((run, exit, due)) = self.run.take() else { return };
        let mut room = [0; MOST_HEAD];
        let (offload, parts) = run.frame(self.network.store(), &mut room);
        let (waited, packets) =
            (self.network.store().get(run.place).1.waited, u32::from(run.count));
        exits.send(&Departure { exit, due, waited, packets, offload, parts });
        self.network.store_mut().free_run(run);
    }

    /// Ends the warm-up: statistics count from now on.
    pub fn end_warmup(&mut self, now: Time) {
        let now = now.max(self.now);
        self.network.end_warmup(now);
        self.warmup = now - Time::ZERO;
        self.series.restart_sojourns();
    }

    /// Returns the number of packets in queues and pipes.
    pub fn under_way(&self) -> u64 {
        self.network.store().live_count()
    }

    /// Ends the path at `end`. Returns the link statistics, the samples, and the packets in flight.
    ///
    /// # Panics
    /// Panics if a packet is not accounted for: a bug.
    pub fn finish(mut self, end: Time) -> Finished {
        let end = end.max(self.now);
        let remarks = self.tap.take().map(|mut tap| tap.finish(end)).unwrap_or_default();
        self.network.finish(end);
        let under_way = self.under_way();
        let events = self.network.handled() + self.sampled;
        let notes = self.network.links().map(|link| link.queue.notes()).collect();
        // Conservation holds over the whole run, including the warm-up.
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

/// Results of a data path.
pub struct Finished {
    /// Time of the end.
    pub end: Time,
    /// Interval excluded at the beginning.
    pub warmup: Span,
    /// Events handled.
    pub events: u64,
    /// Statistics by link.
    pub links: Vec<aqmlab_sim::LinkResult>,
    /// Notes of the disciplines, by link.
    pub notes: Vec<Vec<aqmlab_aqm::Note>>,
    /// Samples, at recording levels `series` and `packets`.
    pub samples: Vec<Sample>,
    /// Changes made, then changes not reached.
    pub changes: Vec<Change>,
    /// Packets still in queues and pipes.
    pub under_way: u64,
    /// Messages of the tap.
    pub remarks: Vec<String>,
}

#[cfg(test)]
mod tests;
