//! One run: links, flows and the events between them.

use aqmlab_core::{Bytes, Span, Stream, Time};

use crate::access::Accesses;
use crate::app::{Activity, AppSlot};
use crate::datagram::{DATAGRAMS, DatagramFlow};
use crate::events::{Event, EventQueue};
use crate::flow::{Flow, FlowSetup, NONE};
use crate::link::{Link, Setting, transmission_end};
use crate::packet::{SimPacket, Store, kind};
use crate::probe::Sojourn;
use crate::results::RunResult;
use crate::scenario::{FlowGroup, Level, Scenario, Start};
use crate::series::Series;
use crate::watch::{Effort, Stopped, Watch};
use crate::workload::WorkloadConfig;

/// The kernel's `psched_mtu` of an Ethernet link: 1500 bytes and a header.
pub(crate) const MTU: Bytes = Bytes::new(1514);

/// A run under way.
pub(crate) struct Simulation<'a> {
    pub scenario: &'a Scenario,
    pub replication: u64,
    pub now: Time,
    pub links: Vec<Link<SimPacket>>,
    accesses: Accesses,
    pub flows: Vec<Flow>,
    pub series: Option<Series>,
    pub events_handled: u64,
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
    pub events: EventQueue,
    pub store: Store,
    /// Finite flows and applications that have not finished; of the group that ends the run,
    /// if there is one.
    pub unfinished: usize,
    /// Whether there are flows without end: the run then lasts its duration.
    endless: bool,
}

/// Runs one replication of a scenario.
///
/// # Panics
/// If a packet was lost without being counted, a bug; and where [`try_run`] gives an error.
pub fn run(scenario: &Scenario, replication: u64) -> RunResult {
    try_run(scenario, replication, &Watch::default()).unwrap_or_else(|stopped| panic!("{stopped}"))
}

/// Runs one replication of a scenario, as long as it makes progress.
///
/// # Errors
/// If it does not: see [`Watch`].
///
/// # Panics
/// If a packet was lost without being counted: a bug.
pub fn try_run(scenario: &Scenario, replication: u64, watch: &Watch) -> Result<RunResult, Stopped> {
    let mut simulation = Simulation::new(scenario, replication, watch);
    simulation.run()?;
    Ok(RunResult::of(simulation))
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, replication: u64, watch: &Watch) -> Self {
        let mut simulation = Simulation {
            scenario,
            replication,
            now: Time::ZERO,
            links: Vec::new(),
            accesses: Accesses::draw(scenario, |path| {
                Stream::for_component(scenario.seed, replication, path)
            }),
            flows: Vec::new(),
            series: (scenario.record.level != Level::Summary).then(Series::default),
            events_handled: 0,
            effort: Effort::new(watch),
            events: EventQueue::new(scenario.simultaneous),
            datagrams: Vec::new(),
            apps: Vec::new(),
            free_apps: Vec::new(),
            activities: scenario.flows.iter().map(|_| Activity::default()).collect(),
            free_flows: scenario.flows.iter().map(|_| Default::default()).collect(),
            store: Store::default(),
            unfinished: 0,
            endless: false,
        };
        simulation.make_links();
        for (number, group) in scenario.flows.iter().enumerate() {
            simulation.make_flows(number as u32, group);
        }
        simulation
    }

    pub fn stream(&self, path: &str) -> Stream {
        Stream::for_component(self.scenario.seed, self.replication, path)
    }

    fn make_links(&mut self) {
        let end = Time::ZERO + self.scenario.duration;
        let setting = Setting { replication: self.replication, mtu: MTU, end };
        self.links = Link::all(self.scenario, &setting);
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
            path: self.accesses.path(&config.path, group, member),
            return_path: self.accesses.path(&config.return_path, group, member),
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

    fn run(&mut self) -> Result<(), Stopped> {
        for link in &mut self.links {
            link.start(&mut self.events);
        }
        if self.series.is_some() {
            self.events.push(Time::ZERO, Event::Sample(0));
        }
        if self.scenario.record.warmup > Span::ZERO {
            self.events.push(Time::ZERO + self.scenario.record.warmup, Event::WarmupEnd(0));
        }
        let end = Time::ZERO + self.scenario.duration;
        while let Some((time, event)) = self.events.pop() {
            if time > end {
                break;
            }
            debug_assert!(time >= self.now, "time goes forward");
            if time > self.now {
                self.effort.advance();
            }
            self.now = time;
            self.events_handled += 1;
            self.effort.show(time, event);
            self.handle(event);
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
        self.finish();
        Ok(())
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::TransmissionEnd(link) => {
                let (events, store) = (&mut self.events, &mut self.store);
                transmission_end(&mut self.links, link, now, events, store);
            }
            Event::Delivery(link) => self.deliver(link),
            Event::Wakeup(link) => {
                self.links[link as usize].wakeup(now, &mut self.events, &mut self.store);
            }
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
            Event::Sample(_) => self.sample(),
            Event::WarmupEnd(_) => self.end_warmup(),
            Event::Heard(flow) => {
                if self.flows[flow as usize].awaited != u64::MAX {
                    self.heard(flow);
                }
            }
        }
    }

    /// A packet comes out of a link: into the next, or to its endpoint.
    #[inline]
    fn deliver(&mut self, link: u32) {
        let delivered = match self.links.get_mut(link as usize) {
            Some(link) => link.deliver(self.now, &mut self.events),
            None => self.accesses.deliver(link, &mut self.events),
        };
        let Some(mut packet) = delivered else { return };
        packet.hop += 1;
        if packet.flow & DATAGRAMS != 0 {
            return self.deliver_datagram(packet);
        }
        let flow = &mut self.flows[packet.flow as usize];
        let path = if packet.is(kind::ACK) { &flow.return_path } else { &flow.path };
        if let Some(&next) = path.get(usize::from(packet.hop)) {
            match self.links.get_mut(next as usize) {
                Some(link) => link.arrive(packet, self.now, &mut self.events, &mut self.store),
                None => self.accesses.arrive(next, packet, self.now, &mut self.events),
            }
        } else if !flow.owns(&packet) {
            self.store.forget(&packet);
        } else if packet.is(kind::ACK) {
            let ack = flow.ack_of(&packet, &mut self.store);
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
            let segment = flow.segment_of(&packet, &mut self.store);
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

    #[inline(never)]
    fn deliver_datagram(&mut self, packet: SimPacket) {
        let flow = &self.datagrams[(packet.flow & !DATAGRAMS) as usize];
        match flow.path.get(usize::from(packet.hop)) {
            Some(&next) => match self.links.get_mut(next as usize) {
                Some(link) => link.arrive(packet, self.now, &mut self.events, &mut self.store),
                None => self.accesses.arrive(next, packet, self.now, &mut self.events),
            },
            None => self.datagram_arrived(&packet),
        }
    }

    #[inline]
    pub fn send_data(&mut self, flow: u32) {
        let flow = &mut self.flows[flow as usize];
        let first = flow.path[0] as usize;
        while let Some(packet) = flow.poll_data(self.now, &mut self.store) {
            self.links[first].arrive(packet, self.now, &mut self.events, &mut self.store);
            if !self.effort.spend() {
                return;
            }
        }
        flow.arm_sender(&mut self.events);
    }

    #[inline]
    fn send_acks(&mut self, flow: u32) {
        let flow = &mut self.flows[flow as usize];
        let first = flow.return_path[0] as usize;
        while let Some(packet) = flow.poll_ack(self.now, &mut self.store) {
            self.links[first].arrive(packet, self.now, &mut self.events, &mut self.store);
        }
        flow.arm_receiver(&mut self.events);
    }

    fn sample(&mut self) {
        let Some(mut series) = self.series.take() else { return };
        series.sample(self);
        self.series = Some(series);
        self.events.push(self.now + self.scenario.record.interval, Event::Sample(0));
    }

    /// What is measured as a distribution begins now.
    #[inline(never)]
    fn end_warmup(&mut self) {
        for link in &mut self.links {
            link.end_warmup();
        }
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

    /// Closes the books; in release builds too.
    fn finish(&mut self) {
        for link in &mut self.links {
            link.finish(self.now);
        }
    }
}
