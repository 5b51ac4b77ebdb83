//! Simulation of one run: network, endpoints and applications, and their events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aqmlab_core::{Bytes, Sampler, Span, Stream, Time};

use aqmlab_tcp::TcpParams;

use super::apps::AppSlot;
use super::events::Event;
use super::results::{GroupBefore, counted};
use super::series::Series;
use super::work_limit::{Stopped, Work, WorkLimit};
use crate::capture::Recorder;
use crate::endpoints::flow::{Flow, FlowSetup, NONE};
use crate::endpoints::packet::{Arrived, SimPacket, Store};
use crate::endpoints::{ConnectionLog, Direction, End};
use crate::network::events::{EventKey, EventQueue};
use crate::network::losses::Losses;
use crate::network::{Network, RouteId, Setup};
use crate::scenario::{FlowGroup, FlowParams, Level, Reroute, Scenario};
use crate::workload::app::Activity;

/// MTU of an Ethernet link by the kernel's `psched_mtu`: 1500 bytes and a header.
pub(crate) const MTU: Bytes = Bytes::new(1514);

/// Run in progress.
#[derive(Clone)]
pub(crate) struct Simulation {
    pub scenario: Arc<Scenario>,
    pub replication: u64,
    pub now: Time,
    pub network: Network<Store>,
    /// Routes by group.
    pub(super) routes: Vec<GroupRoutes>,
    pub flows: Vec<Flow>,
    /// Number of the next flow, by group.
    pub numbers: Vec<u32>,
    pub series: Option<Series>,
    pub(super) handled: u64,
    pub work: Work,
    pub apps: Vec<AppSlot>,
    /// Slots of ended applications.
    pub free_apps: Vec<u32>,
    /// Counters of applications, by group.
    pub activities: Vec<Activity>,
    /// Slots of ended flows, by group and direction.
    pub free_flows: Vec<[Vec<u32>; 2]>,
    pub events: EventQueue,
    /// Number of unfinished finite flows and applications, of the group that ends the run, if any.
    pub unfinished: usize,
    /// True if flows without end exist: the run then lasts its full duration.
    endless: bool,
    /// Transports that have changed: of groups, and of single flows by their index in the group.
    pub(super) transports: BTreeMap<(u32, Option<u32>), Arc<TcpParams>>,
    /// Groups whose senders record acknowledgements.
    pub(super) sampled: Vec<u32>,
    /// Number of scenario changes made so far.
    pub(super) changed: usize,
    /// Recorder, in addition to the results.
    pub recorder: Option<Box<Recorder>>,
    /// Excluded interval; zero until the warm-up ends.
    pub(super) warmup: Span,
    /// Counters at the end of the warm-up, by group.
    pub(super) before: Vec<GroupBefore>,
    /// Time of the first start of a flow or application, by group.
    pub(super) first_starts: Vec<Time>,
}

/// Routes of a group: to the receivers, and back.
#[derive(Clone)]
pub(super) struct GroupRoutes {
    shared: [RouteId; 2],
    /// Routes of each member and its access link, if members have access delays.
    own: Vec<([RouteId; 2], u32)>,
}

impl GroupRoutes {
    /// Adds the routes of a group. The access delay of each member, drawn with the stream
    /// `flows.NAME.access`, is a separate link after the others.
    pub fn add(group: &FlowGroup, stream: Stream, network: &mut Network<Store>) -> Self {
        let paths = [&group.path, &group.return_path];
        let shared = paths.map(|path| network.add_route(path.iter().copied()));
        let mut own = Vec::new();
        if group.params.access_delay.ceiling() > 0.0 {
            let mut delays = Sampler::new(&group.params.access_delay, stream);
            own.extend((0..group.params.count).map(|_| {
                let access = network.add_delay(delays.draw());
                let links = |path: &Vec<u32>| path.clone().into_iter().chain([access]);
                (paths.map(|path| network.add_route(links(path))), access)
            }));
        }
        GroupRoutes { shared, own }
    }

    /// Changes the routes of packets sent from now on.
    fn change(&self, change: &Reroute, network: &mut Network<Store>) {
        let mut direction = |direction: usize, path: &Option<Vec<u32>>| {
            let Some(path) = path else { return };
            network.change_route(self.shared[direction], path.iter().copied());
            for (routes, access) in &self.own {
                let links = path.iter().copied().chain([*access]);
                network.change_route(routes[direction], links);
            }
        };
        direction(0, &change.path);
        direction(1, &change.return_path);
    }

    fn of(&self, member: u32) -> [RouteId; 2] {
        self.own.get(member as usize).map_or(self.shared, |(routes, _)| *routes)
    }
}

impl Simulation {
    pub fn new(
        scenario: Arc<Scenario>,
        replication: u64,
        limit: &WorkLimit,
        recorder: Option<Box<Recorder>>,
    ) -> Self {
        let end = Time::ZERO + scenario.duration;
        let setup = Setup { mtu: MTU, end, defers_ends: true, ..scenario.network(replication) };
        let network = Network::new(&setup);
        let lasting = scenario.flows.iter().filter(|group| !group.workload.has_app());
        let count: u64 = lasting.map(|group| group.params.count).sum();
        let mut simulation = Simulation {
            replication,
            now: Time::ZERO,
            network,
            routes: Vec::new(),
            flows: Vec::with_capacity(count as usize),
            numbers: Vec::new(),
            series: (scenario.record.level != Level::Summary).then(Series::default),
            handled: 0,
            work: Work::new(limit),
            events: EventQueue::default(),
            apps: Vec::new(),
            free_apps: Vec::new(),
            activities: Vec::new(),
            warmup: Span::ZERO,
            before: Vec::new(),
            first_starts: Vec::new(),
            free_flows: Vec::new(),
            unfinished: 0,
            endless: false,
            transports: BTreeMap::new(),
            sampled: Vec::new(),
            changed: 0,
            recorder,
            scenario,
        };
        let first = simulation.scenario.flows.iter().filter(|group| !group.is_added).count();
        (0..first as u32).for_each(|number| simulation.add_routes(number));
        (0..first as u32).for_each(|number| simulation.make_flows(number));
        simulation.start();
        simulation
    }

    /// Adds the routes and the per-group state of the next group.
    pub(super) fn add_routes(&mut self, number: u32) {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[number as usize];
        let stream = self.stream(&format!("flows.{}.access", group.name));
        self.routes.push(GroupRoutes::add(group, stream, &mut self.network));
        self.activities.push(Activity::default());
        self.free_flows.push(Default::default());
        self.numbers.push(0);
    }

    pub fn stream(&self, path: &str) -> Stream {
        Stream::for_component(self.scenario.seed, self.replication, path)
    }

    pub(super) fn make_flows(&mut self, number: u32) {
        let scenario = Arc::clone(&self.scenario);
        let group = &scenario.flows[number as usize];
        let starts = group.starts(|path| self.stream(path));
        self.first_starts.extend(starts.iter().min());
        let runs_itself = !group.workload.has_app();
        let ends = group.ends();
        for (member, start) in (0..).zip(starts) {
            if runs_itself {
                let index = self.flows.len() as u32;
                let name = format!("flows.{}.{member}.hash", group.name);
                let mut setup = self.setup_flow(&scenario, index, number, member as u32, &name);
                setup.size = group.params.size.map(Bytes::get);
                setup.start = start;
                self.flows.push(Flow::new(setup));
                self.events.push(start, Event::FlowStart as u32, index);
                self.unfinished += usize::from(ends && self.is_awaited(number));
            } else {
                self.make_app(number, member, start);
            }
        }
        self.endless |= !ends && self.is_awaited(number);
    }

    /// Returns whether the run continues until this group of flows has finished.
    pub fn is_awaited(&self, group: u32) -> bool {
        self.scenario.until.is_none_or(|until| until == group)
    }

    /// Returns the common setup of a group's flows. `name` is that of the stream for their
    /// differences.
    pub fn setup_flow<'a>(
        &mut self,
        scenario: &'a Scenario,
        index: u32,
        group: u32,
        member: u32,
        name: &str,
    ) -> FlowSetup<'a> {
        let config = &scenario.flows[group as usize];
        let FlowParams { source, destination, class, delays, .. } = &config.params;
        let number = self.numbers[group as usize];
        self.numbers[group as usize] += 1;
        let mut hash = self.stream(name);
        let host = |name: &Option<String>, end: &str| {
            let path = match name {
                Some(name) => format!("hosts.{name}"),
                None => format!("flows.{}.{member}.{end}", config.name),
            };
            self.stream(&path).next_u32()
        };
        FlowSetup {
            index,
            number,
            group,
            transport: match self.transports.get(&(group, None)) {
                Some(changed) => Cow::Owned((**changed).clone()),
                None => Cow::Borrowed(&config.transport),
            },
            endpoint: &config.endpoint,
            routes: self.routes[group as usize].of(member),
            size: None,
            start: Time::ZERO,
            app: NONE,
            is_open: false,
            is_transient: false,
            direction: Direction::Forward,
            hashes: [hash.next_u32(), hash.next_u32()],
            seed: hash.next_u64(),
            hosts: [host(source, "source"), host(destination, "destination")],
            class: class.0,
            delays: *delays,
            log: self.log(group, number),
        }
    }

    /// Returns the log of a connection, which the flow with this number in its group opens.
    pub fn log(&self, group: u32, number: u32) -> Option<ConnectionLog> {
        let recorder = self.recorder.as_ref()?;
        recorder.log(format!("{}.{number}", self.scenario.flows[group as usize].name))
    }

    /// Schedules the initial events: first timers, and the planned changes of the scenario.
    fn start(&mut self) {
        self.network.start();
        for ((_, change), number) in self.scenario.reroutes().zip(0..) {
            self.events.push(Time::ZERO + change.at, Event::Reroute as u32, number);
        }
        for change in &self.scenario.changes {
            self.events.push(Time::ZERO + change.at, Event::Change as u32, 0);
        }
        if self.series.is_some() {
            self.events.push(Time::ZERO, Event::Sample as u32, 0);
        }
        if self.scenario.record.warmup > Span::ZERO {
            let end = Time::ZERO + self.scenario.record.warmup;
            self.events.push(end, Event::WarmupEnd as u32, 0);
        }
    }

    /// Returns the next event, and whether it is in the network.
    #[inline(always)]
    fn next(&self) -> (EventKey, bool) {
        self.first(self.network.next())
    }

    /// Returns the first of the next events inside and outside the network.
    #[inline(always)]
    fn first(&self, inside: EventKey) -> (EventKey, bool) {
        // Network events precede simultaneous other events.
        let outside = self.events.next();
        if inside.time() <= outside.time() { (inside, true) } else { (outside, false) }
    }

    /// Returns the next event, including ends of transmissions without an event; for those also the
    /// link. See [`next`](Self::next).
    fn next_of_all(&self) -> (EventKey, bool, Option<u32>) {
        let event = self.network.next();
        let end = self.network.next_end().filter(|(end, _)| *end < event);
        let (next, is_in_network) = self.first(end.map_or(event, |(end, _)| end));
        (next, is_in_network, end.map(|(_, link)| link).filter(|_| is_in_network))
    }

    /// Returns the time of the next event before the end of the run.
    pub fn next_time(&self) -> Option<Time> {
        let end = Time::ZERO + self.scenario.duration;
        let next = self.next_of_all().0.any().map(EventKey::time).filter(|time| *time <= end);
        next.filter(|_| !self.is_over())
    }

    /// Returns whether everything that the run waits for has finished.
    pub fn is_over(&self) -> bool {
        self.unfinished == 0 && !self.endless && self.changed == self.scenario.changes.len()
    }

    /// Runs until the end, or until just before `until`.
    pub fn run(&mut self, until: Option<Time>) -> Result<(), Stopped> {
        let ran = self.run_events(until);
        self.network.catch_up();
        ran
    }

    #[inline(always)]
    fn run_events(&mut self, until: Option<Time>) -> Result<(), Stopped> {
        if self.is_over() && self.events_handled() > 0 {
            return Ok(());
        }
        let end = Time::ZERO + self.scenario.duration;
        let past = end + Span::from_nanos(1);
        let past = until.map_or(past, |until| until.min(past));
        loop {
            let (event, is_in_network) = self.next();
            if event.time() >= past {
                let until = until.filter(|until| *until <= end).map(EventKey::before);
                self.network.reach(until.unwrap_or(EventKey::after(end)));
                return Ok(());
            }
            self.step(event, is_in_network)?;
            if self.is_over() {
                return Ok(());
            }
        }
    }

    /// Handles the next event.
    #[inline(always)]
    fn step(&mut self, event: EventKey, is_in_network: bool) -> Result<(), Stopped> {
        let time = event.time();
        debug_assert!(time >= self.now, "time goes forward");
        if time > self.now {
            self.work.advance();
        }
        self.now = time;
        self.work.show(event, is_in_network);
        if is_in_network {
            let mut arrived = None;
            self.network.step_into(event, &mut arrived, &mut self.recorder);
            if let Some(packet) = &mut arrived {
                self.arrived(Arrived::new(packet));
            }
        } else {
            self.handled += 1;
            self.network.reach(EventKey::after(time));
            self.events.pop();
            self.handle(event);
        }
        if self.work.spend() { Ok(()) } else { Err(self.stopped(event, is_in_network)) }
    }

    /// Handles the next event of the run. Returns whether an event was left.
    pub fn step_once(&mut self) -> Result<bool, Stopped> {
        if self.next_time().is_none() {
            return Ok(false);
        }
        let (event, is_in_network, end) = self.next_of_all();
        match end {
            None => self.step(event, is_in_network)?,
            Some(link) => {
                self.now = event.time();
                self.network.end_one(event, link);
            }
        }
        self.network.catch_up();
        Ok(true)
    }

    /// Finalises the statistics.
    pub fn finish(&mut self) {
        if !self.is_over() {
            self.now = Time::ZERO + self.scenario.duration;
        }
        self.network.finish(self.now);
        // Groups of flows that never started.
        self.activities.resize_with(self.scenario.flows.len(), Activity::default);
    }

    /// Returns the number of events handled, inside and outside the network.
    pub fn events_handled(&self) -> u64 {
        self.handled + self.network.handled()
    }

    #[inline]
    fn handle(&mut self, event: EventKey) {
        let (now, index) = (self.now, event.index());
        match Event::of(event.kind()) {
            Event::Change => self.change(),
            Event::Reroute => self.reroute(index),
            Event::FlowStart => {
                if self.flows[index as usize].app == NONE {
                    self.activities[self.flows[index as usize].group as usize].started += 1;
                    self.count_bulk_flow(index, |losses| losses.joined(now));
                    self.flows[index as usize].source_mut().open(now);
                    self.send(index, End::Source);
                }
            }
            Event::SenderTimer => self.timer(index, End::Source),
            Event::ReceiverTimer => self.timer(index, End::Sink),
            Event::AppStart => self.start_app(index),
            Event::App => self.app_timer(index),
            Event::Sample => self.sample(),
            Event::WarmupEnd => self.end_warmup(),
            Event::Heard => {
                if self.flows[index as usize].awaited != u64::MAX {
                    self.heard(index);
                }
            }
        }
    }

    /// Counts a bulk flow that begins or ends, at the links of its data.
    #[inline(never)]
    pub(super) fn count_bulk_flow(&mut self, index: u32, count: impl Fn(&mut Losses)) {
        let group = &self.scenario.flows[self.flows[index as usize].group as usize];
        if !group.workload.has_app() {
            for link in group.links_of_data() {
                count(&mut self.network.link_mut(link as usize).probe.losses);
            }
        }
    }

    /// Handles a packet at the end of its route.
    #[inline(always)]
    fn arrived(&mut self, packet: Arrived) {
        let (now, index) = (self.now, packet.flow);
        let flow = &mut self.flows[index as usize];
        // Also for an ended flow of the same slot: group and direction are the same.
        flow.arrived[packet.to() as usize] += 1;
        let store = self.network.store_mut();
        if !flow.owns(&packet) {
            store.discard(packet);
        } else if packet.to() == End::Source {
            if let Some(recorder) = &mut self.recorder {
                recorder.received(now, flow, &packet, store);
            }
            let is_answer = flow.receive(now, packet, store);
            let is_drained = flow.finish.is_none() && flow.is_finished();
            if is_answer {
                self.connected(index);
            }
            if is_drained {
                self.drained(index);
            }
            self.send(index, End::Source);
        } else {
            if flow.delays.is_some()
                && let Some(delay) = flow.delayed(now, &packet, store)
            {
                self.activities[flow.group as usize].record_delay(flow.direction, delay);
            }
            if flow.is_of_datagrams() {
                let content = packet.content();
                if flow.receive(now, packet, store) {
                    self.datagram_arrived(index, content);
                }
                return;
            }
            let has_partner = flow.receive(now, packet, store);
            let is_awaited = flow.received() >= flow.awaited;
            self.send(index, End::Sink);
            if has_partner {
                self.answer(index);
            }
            if is_awaited {
                self.heard(index);
            }
        }
    }

    /// Sends the pending packets of one end of a flow.
    #[inline]
    pub fn send(&mut self, index: u32, of: End) {
        match (&self.recorder, of) {
            (None, End::Source) => self.send_data(index),
            (None, End::Sink) => self.send_acks(index),
            (Some(_), of) => self.send_recorded(index, of),
        }
    }

    // One function for each end, called wherever packets may be sent. The complete path from the
    // endpoint to its link is inlined into each.
    #[inline(never)]
    fn send_data(&mut self, index: u32) {
        self.send_all::<false>(index, End::Source);
    }
    #[inline(never)]
    fn send_acks(&mut self, index: u32) {
        self.send_all::<false>(index, End::Sink);
    }

    /// Sends and records; separate from runs without a recorder.
    #[cold]
    #[inline(never)]
    fn send_recorded(&mut self, index: u32, of: End) {
        self.send_all::<true>(index, of);
    }

    #[inline(always)]
    fn send_all<const IS_RECORDED: bool>(&mut self, index: u32, of: End) {
        let flow = &mut self.flows[index as usize];
        if let Some(recorder) = self.recorder.as_mut().filter(|_| IS_RECORDED && of == End::Source)
        {
            recorder.judged(self.now, index, flow);
        }
        let mut sent = 0;
        while let Some(packet) = flow.poll(of, self.now, self.network.store_mut()) {
            let route = flow.route(of);
            match self.recorder.as_mut().filter(|_| IS_RECORDED) {
                None => self.network.inject(self.now, route, packet, &mut ()),
                Some(recorder) => {
                    recorder.sent(self.now, flow, &packet, self.network.store());
                    self.network.inject(self.now, route, packet, &mut self.recorder);
                }
            }
            sent += 1;
            if of == End::Source && !self.work.send(sent, flow.group) {
                return;
            }
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|_| IS_RECORDED && of == End::Source)
        {
            recorder.settled(self.now, index, flow);
        }
        self.arm(index, of);
    }

    /// Ensures that a timer event is scheduled at or before the endpoint's deadline.
    #[inline(always)]
    pub fn arm(&mut self, index: u32, of: End) {
        if let Some(deadline) = self.flows[index as usize].arm(of) {
            let event = match of {
                End::Source => Event::SenderTimer,
                End::Sink => Event::ReceiverTimer,
            };
            self.events.push(deadline, event as u32, index);
        }
    }

    /// Handles a timer event, which may be earlier than the deadline.
    #[inline]
    fn timer(&mut self, index: u32, of: End) {
        let flow = &mut self.flows[index as usize];
        if flow.is_due(of, self.now) {
            flow.on_deadline(of, self.now);
            self.send(index, of);
        } else {
            self.arm(index, of);
        }
    }

    #[inline(never)]
    fn reroute(&mut self, number: u32) {
        let scenario = Arc::clone(&self.scenario);
        let change = scenario.reroutes().nth(number as usize);
        let (group, change) = change.expect("numbered as there");
        self.routes[group].change(change, &mut self.network);
    }

    fn sample(&mut self) {
        let Some(mut series) = self.series.take() else { return };
        self.network.catch_up();
        series.sample(self);
        self.series = Some(series);
        self.events.push(self.now + self.scenario.record.interval, Event::Sample as u32, 0);
    }

    /// Ends the warm-up: measurements start now.
    #[inline(never)]
    fn end_warmup(&mut self) {
        let now = self.now;
        self.warmup = now - Time::ZERO;
        self.before = counted(self);
        self.network.end_warmup(now);
        self.flows.iter_mut().for_each(|flow| flow.end_warmup(now));
        self.end_warmup_of_apps();
        for activity in &mut self.activities {
            activity.times.clear();
            activity.scores.clear();
        }
        if let Some(series) = &mut self.series {
            series.restart_sojourns();
        }
    }
}
