//! One run: links, flows and the events between them.

use aqmlab_core::{Bytes, Sampler, Span, Stream, Time};

use super::app::{Activity, AppSlot};
use super::events::{Event, Events};
use super::series::Series;
use super::watch::{Effort, Stopped, Watch};
use crate::endpoints::datagram::{DATAGRAMS, DatagramFlow};
use crate::endpoints::flow::{Flow, FlowSetup, NONE};
use crate::endpoints::packet::{SimPacket, kind};
use crate::network::probe::Sojourn;
use crate::network::{Network, RouteId, Setup};
use crate::scenario::{FlowGroup, Level, Scenario, Start};
use crate::workload::WorkloadConfig;

/// The kernel's `psched_mtu` of an Ethernet link: 1500 bytes and a header.
pub(crate) const MTU: Bytes = Bytes::new(1514);

/// A run under way.
pub(crate) struct Simulation<'a> {
    pub scenario: &'a Scenario,
    pub replication: u64,
    pub now: Time,
    pub network: Network<SimPacket>,
    /// By group.
    routes: Vec<GroupRoutes>,
    pub flows: Vec<Flow>,
    pub series: Option<Series>,
    handled: u64,
    pub effort: Effort,
    /// Flows of datagrams, numbered apart from the others.
    pub datagrams: Vec<DatagramFlow>,
    pub apps: Vec<AppSlot>,
    /// Places of applications that are gone.
    pub free_apps: Vec<u32>,
    /// By group.
    pub activities: Vec<Activity>,
    /// Places of flows that are gone, by group and direction.
    pub free_flows: Vec<[Vec<u32>; 2]>,
    pub events: Events,
    /// Finite flows and applications that have not finished; of the group that ends the run,
    /// if there is one.
    pub unfinished: usize,
    /// Whether there are flows without end: the run then lasts its duration.
    endless: bool,
}

/// The routes of a group: to the receivers, and back.
struct GroupRoutes {
    shared: [RouteId; 2],
    /// Of each member, where these have delays of their own.
    own: Vec<[RouteId; 2]>,
}

impl GroupRoutes {
    /// Adds the routes of a group. What each member has of delay beyond its
    /// links, drawn with the stream `flows.NAME.access`, is a link of its own
    /// behind the others.
    fn add(group: &FlowGroup, stream: Stream, network: &mut Network<SimPacket>) -> Self {
        let paths = [&group.path, &group.return_path];
        let shared = paths.map(|path| network.add_route(path.iter().copied()));
        let mut own = Vec::new();
        if group.access_delay.ceiling() > 0.0 {
            let mut delays = Sampler::new(&group.access_delay, stream);
            own.extend((0..group.count).map(|_| {
                let access = network.add_delay(delays.draw());
                paths.map(|path| network.add_route(path.iter().copied().chain([access])))
            }));
        }
        GroupRoutes { shared, own }
    }

    fn of(&self, member: u32) -> [RouteId; 2] {
        self.own.get(member as usize).copied().unwrap_or(self.shared)
    }
}

impl<'a> Simulation<'a> {
    pub fn new(scenario: &'a Scenario, replication: u64, watch: &Watch) -> Self {
        let end = Time::ZERO + scenario.duration;
        let mut network = Network::new(&Setup { mtu: MTU, end, ..scenario.network(replication) });
        let add_routes = |group: &FlowGroup| {
            let path = format!("flows.{}.access", group.name);
            let stream = Stream::for_component(scenario.seed, replication, &path);
            GroupRoutes::add(group, stream, &mut network)
        };
        let routes = scenario.flows.iter().map(add_routes).collect();
        let mut simulation = Simulation {
            scenario,
            replication,
            now: Time::ZERO,
            network,
            routes,
            flows: Vec::new(),
            series: (scenario.record.level != Level::Summary).then(Series::default),
            handled: 0,
            effort: Effort::new(watch),
            events: Events::default(),
            datagrams: Vec::new(),
            apps: Vec::new(),
            free_apps: Vec::new(),
            activities: scenario.flows.iter().map(|_| Activity::default()).collect(),
            free_flows: scenario.flows.iter().map(|_| Default::default()).collect(),
            unfinished: 0,
            endless: false,
        };
        for (number, group) in scenario.flows.iter().enumerate() {
            simulation.make_flows(number as u32, group);
        }
        simulation
    }

    pub fn stream(&self, path: &str) -> Stream {
        Stream::for_component(self.scenario.seed, self.replication, path)
    }

    fn make_flows(&mut self, number: u32, group: &FlowGroup) {
        let name = &group.name;
        let one = match group.start {
            Start::At(start) => start,
            Start::Uniform(low, high) => {
                self.stream(&format!("flows.{name}.start")).uniform_span(low, high)
            }
            Start::Each(..) => Span::ZERO,
        };
        let is_bulk = matches!(group.workload, WorkloadConfig::Bulk(_));
        let ends = group.ends();
        for member in 0..group.count {
            let start = Time::ZERO
                + match group.start {
                    Start::Each(low, high) => {
                        self.stream(&format!("flows.{name}.{member}.start")).uniform_span(low, high)
                    }
                    _ => one,
                };
            if is_bulk {
                let index = self.flows.len() as u32;
                let name = format!("flows.{}.{member}.hash", group.name);
                let mut setup = self.setup_flow(index, number, member as u32, &name);
                setup.size = group.size.map(Bytes::get);
                setup.start = start;
                self.flows.push(Flow::new(setup));
                self.activities[number as usize].started += 1;
                self.events.push(start, Event::FlowStart(index));
                self.unfinished += usize::from(ends && self.is_awaited(number));
            } else {
                self.make_app(number, member, start);
            }
        }
        self.endless |= !ends && self.is_awaited(number);
    }

    /// Whether the run goes on until this group of flows is done.
    pub fn is_awaited(&self, group: u32) -> bool {
        self.scenario.until.is_none_or(|until| until == group)
    }

    /// What flows of a group have in common. `name` is that of the stream of
    /// what tells them apart.
    pub fn setup_flow(&self, index: u32, group: u32, member: u32, name: &str) -> FlowSetup<'a> {
        let config = &self.scenario.flows[group as usize];
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
            group,
            transport: &config.transport,
            routes: self.routes[group as usize].of(member),
            size: None,
            start: Time::ZERO,
            app: NONE,
            is_open: false,
            is_transient: false,
            is_turned: false,
            hashes: [hash.next_u32(), hash.next_u32()],
            seed: hash.next_u64(),
            hosts: [host(&config.source, "source"), host(&config.destination, "destination")],
            class: config.class.0,
            delays: config.delays,
        }
    }

    pub fn run(&mut self) -> Result<(), Stopped> {
        self.network.start();
        if self.series.is_some() {
            self.events.push(Time::ZERO, Event::Sample);
        }
        if self.scenario.record.warmup > Span::ZERO {
            self.events.push(Time::ZERO + self.scenario.record.warmup, Event::WarmupEnd);
        }
        let end = Time::ZERO + self.scenario.duration;
        loop {
            // At one moment what happens in the network is first.
            let (time, event) = match (self.network.next(), self.events.next()) {
                (Some(inside), Some(outside)) if inside.0 <= outside.0 => inside,
                (_, Some(outside)) => outside,
                (Some(inside), None) => inside,
                (None, None) => break,
            };
            if time > end {
                break;
            }
            debug_assert!(time >= self.now, "time goes forward");
            if time > self.now {
                self.effort.advance();
            }
            self.now = time;
            self.effort.show(time, event);
            if event.is_in_network() {
                if let Some(packet) = self.network.step(&mut ()) {
                    self.arrived(packet);
                }
            } else if let Some((_, event)) = self.events.pop() {
                self.handled += 1;
                self.handle(event);
            }
            if !self.effort.spend() {
                return Err(self.stopped(event));
            }
            if self.unfinished == 0 && !self.endless {
                break;
            }
        }
        if self.unfinished > 0 || self.endless {
            self.now = end;
        }
        self.network.finish(self.now);
        Ok(())
    }

    /// Events handled, in the network and outside.
    pub fn events_handled(&self) -> u64 {
        self.handled + self.network.handled()
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::FlowStart(flow) => {
                self.flows[flow as usize].sender.open(now);
                self.send_data(flow);
            }
            Event::SenderTimer(flow) => {
                let flow_state = &mut self.flows[flow as usize];
                if flow_state.sender_timer_due(now) {
                    flow_state.sender.on_timeout(now);
                    self.send_data(flow);
                } else {
                    flow_state.arm_sender(&mut self.events);
                }
            }
            Event::AppStart(app) => self.start_app(app),
            Event::App(app) => self.app_timer(app),
            Event::ReceiverTimer(flow) => {
                let flow_state = &mut self.flows[flow as usize];
                if flow_state.receiver_timer_due(now) {
                    flow_state.receiver.on_timeout(now);
                    self.send_acks(flow);
                } else {
                    flow_state.arm_receiver(&mut self.events);
                }
            }
            Event::Sample => self.sample(),
            Event::WarmupEnd => self.end_warmup(),
            Event::Heard(flow) => {
                if self.flows[flow as usize].awaited != u64::MAX {
                    self.heard(flow);
                }
            }
        }
    }

    /// A packet has come to the end of its route.
    #[inline]
    fn arrived(&mut self, packet: SimPacket) {
        if packet.flow & DATAGRAMS != 0 {
            return self.datagram_arrived(&packet);
        }
        let flow = &mut self.flows[packet.flow as usize];
        let store = self.network.store_mut();
        if !flow.owns(&packet) {
            store.forget(&packet);
        } else if packet.is(kind::ACK) {
            let ack = flow.ack_of(&packet, store);
            flow.sender.on_ack(self.now, &ack);
            let is_drained = flow.finish.is_none() && flow.sender.is_finished();
            if ack.syn {
                self.connected(packet.flow);
            }
            if is_drained {
                self.drained(packet.flow);
            }
            self.send_data(packet.flow);
        } else {
            let segment = flow.segment_of(&packet, store);
            if flow.delays.is_some()
                && let Some(delay) = flow.delayed(self.now, &segment)
            {
                self.activities[flow.group as usize].record("delay", delay);
            }
            flow.receiver.on_segment(self.now, &segment);
            let is_awaited = flow.receiver.received() >= flow.awaited;
            self.send_acks(packet.flow);
            if is_awaited {
                self.heard(packet.flow);
            }
        }
    }

    #[inline]
    pub fn send_data(&mut self, flow: u32) {
        let flow = &mut self.flows[flow as usize];
        while let Some(packet) = flow.poll_data(self.now, self.network.store_mut()) {
            self.network.inject(self.now, flow.routes[0], packet, &mut ());
            if !self.effort.spend() {
                return;
            }
        }
        flow.arm_sender(&mut self.events);
    }

    #[inline]
    fn send_acks(&mut self, flow: u32) {
        let flow = &mut self.flows[flow as usize];
        while let Some(packet) = flow.poll_ack(self.now, self.network.store_mut()) {
            self.network.inject(self.now, flow.routes[1], packet, &mut ());
        }
        flow.arm_receiver(&mut self.events);
    }

    fn sample(&mut self) {
        let Some(mut series) = self.series.take() else { return };
        series.sample(self);
        self.series = Some(series);
        self.events.push(self.now + self.scenario.record.interval, Event::Sample);
    }

    /// What is measured as a distribution begins now.
    #[inline(never)]
    fn end_warmup(&mut self) {
        self.network.end_warmup();
        for flow in &mut self.datagrams {
            flow.delay = Sojourn::new();
            flow.sent_before = flow.sent;
        }
        for flow in &mut self.flows {
            flow.delays = flow.delays.map(|_| Default::default());
            flow.sent_before = flow.sender.stats().segments_sent;
        }
        for activity in &mut self.activities {
            activity.times.retain(|(name, _)| *name != "delay");
        }
        if let Some(series) = &mut self.series {
            series.restart_sojourns();
        }
    }
}
