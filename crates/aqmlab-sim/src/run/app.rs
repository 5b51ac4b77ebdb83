//! Applications at work: what a workload can ask of the run, and what it is
//! told.

use aqmlab_core::{Span, Stream, Time};
use aqmlab_tcp::Ack;

use super::events::Event;
use super::simulation::Simulation;
use crate::endpoints::datagram::{DATAGRAMS, DatagramFlow, DatagramSetup};
use crate::endpoints::flow::{Flow, GONE, NONE, Opening};
use crate::endpoints::packet::SimPacket;
use crate::network::probe::Sojourn;
use crate::scenario::{Dscp, Level};

/// An application: it opens flows, and is told what becomes of them.
pub(crate) trait App {
    /// The application begins.
    fn start(&mut self, cx: &mut Context);
    /// The time of [`Context::wake_at`] has come.
    fn on_timer(&mut self, _cx: &mut Context) {}
    /// A connection's opener has the answer to its SYN.
    fn on_connected(&mut self, _flow: u32, _cx: &mut Context) {}
    /// All bytes of a flow have arrived, or all that were written to it, or as
    /// many as [`Context::expect`] said.
    fn on_received(&mut self, _flow: u32, _cx: &mut Context) {}
    /// A datagram has arrived that was sent at `sent`.
    fn on_datagram(&mut self, _flow: u32, _sent: Time, _cx: &mut Context) {}
    /// Numbers that sum up the application at `now`, by name: their means over
    /// the group are reported.
    fn report(&self, _now: Time, _see: &mut dyn FnMut(&'static str, f64)) {}
}

/// Which way data go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Along the group's `path`.
    Forward,
    /// Along its `return_path`.
    Backward,
}

/// An application's place.
pub(crate) struct AppSlot {
    app: Option<Box<dyn App>>,
    group: u32,
    /// The member of the group that it is, or belongs to.
    member: u32,
    /// What its streams are called.
    name: String,
    /// Flows and applications that it has made: their numbers are in the
    /// names of their streams.
    made: u64,
    wake_at: Time,
    has_ended: bool,
}

/// What has become of a group's applications.
#[derive(Default)]
pub(crate) struct Activity {
    /// Flows, requests or whatever the workload counts.
    pub started: u64,
    pub completed: u64,
    /// Bytes of what was completed.
    pub bytes: u64,
    /// Of flows whose places others have taken.
    pub gone: Volume,
    /// Times by name.
    pub times: Vec<(&'static str, Sojourn)>,
    /// Numbers by name of the applications that have ended: sums and counts.
    pub scores: Vec<(&'static str, f64, f64)>,
}

/// Bytes of flows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Volume {
    /// Sent on the wire.
    pub sent: u64,
    /// Acknowledged, or of datagrams arrived.
    pub delivered: u64,
}

impl AppSlot {
    pub fn group(&self) -> u32 {
        self.group
    }
}

impl Volume {
    pub fn add(&mut self, other: Volume) {
        self.sent += other.sent;
        self.delivered += other.delivered;
    }
}

/// Adds a number of an application to those of the same name.
fn add_score(scores: &mut Vec<(&'static str, f64, f64)>, name: &'static str, value: f64) {
    match scores.iter_mut().find(|(known, ..)| *known == name) {
        Some((_, sum, count)) => {
            *sum += value;
            *count += 1.0;
        }
        None => scores.push((name, value, 1.0)),
    }
}

impl Activity {
    pub fn record(&mut self, name: &'static str, time: Span) {
        let place = match self.times.iter().position(|(known, _)| *known == name) {
            Some(place) => place,
            None => {
                self.times.push((name, Sojourn::new()));
                self.times.len() - 1
            }
        };
        self.times[place].1.note(time);
    }
}

/// More bytes than any run can send.
const ENDLESS: u64 = 1 << 50;

/// The run as an application sees it.
pub(crate) struct Context<'a, 'b> {
    simulation: &'a mut Simulation<'b>,
    slot: u32,
    /// The class of service of the flows made next; `None`: the group's.
    pub class: Option<Dscp>,
}

impl Context<'_, '_> {
    pub fn now(&self) -> Time {
        self.simulation.now
    }
    /// Asks for [`App::on_timer`] at `time`, in place of what was asked for.
    pub fn wake_at(&mut self, time: Time) {
        self.simulation.apps[self.slot as usize].wake_at = time;
        self.simulation.events.push(time, Event::App(self.slot));
    }
    /// What is recorded of the group.
    pub fn activity(&mut self) -> &mut Activity {
        let group = self.simulation.apps[self.slot as usize].group;
        &mut self.simulation.activities[group as usize]
    }
    /// Transfers `size` bytes over a connection of their own.
    pub fn transfer(&mut self, size: u64) -> u32 {
        let flow = self.make_flow(Direction::Forward, Some(size), true);
        self.simulation.open(flow);
        flow
    }
    /// A transfer that always has something to send, until it is stopped.
    pub fn greedy(&mut self) -> u32 {
        let flow = self.transfer(ENDLESS);
        self.simulation.flows[flow as usize].size = None;
        flow
    }
    /// Nothing new is sent over a greedy connection, which this ends; [`App::on_received`] follows when all that was has
    /// arrived (maybe at once).
    pub fn stop(&mut self, flow: u32) {
        self.take_back(flow);
        let state = &mut self.simulation.flows[flow as usize];
        let sent = state.goal;
        state.size = Some(sent);
        state.expects = sent;
        state.awaited = sent;
        if state.receiver.received() >= sent {
            // An application is not told while it asks for something.
            self.simulation.events.push(self.simulation.now, Event::Heard(flow));
        }
    }
    /// A connection for what is written one way, that stays to the end.
    pub fn stream(&mut self, direction: Direction) -> u32 {
        let flow = self.make_flow(direction, None, false);
        self.simulation.open(flow);
        flow
    }
    /// A connection for what is written both ways, as two flows: from the
    /// client, which opens it, to the server, and back along the group's
    /// `path`.
    pub fn connect(&mut self, is_transient: bool) -> [u32; 2] {
        let to_server = self.make_flow(Direction::Backward, None, is_transient);
        let to_client = self.make_flow(Direction::Forward, None, is_transient);
        let flow = &mut self.simulation.flows[to_server as usize];
        flow.opening = Some((to_client, Opening::Listen));
        flow.awaited = 0;
        self.simulation.open(to_server);
        [to_server, to_client]
    }
    /// Writes to a connection; [`App::on_received`] follows when the bytes
    /// have arrived. Returns how many were written so far.
    pub fn write(&mut self, flow: u32, bytes: u64) -> u64 {
        let state = &mut self.simulation.flows[flow as usize];
        state.sender.supply(bytes);
        state.goal += bytes;
        state.expects = state.goal;
        if state.opening.is_none() {
            state.awaited = state.goal;
        }
        let written = state.goal;
        self.simulation.send_data(flow);
        written
    }
    /// Asks for [`App::on_received`] when this many bytes of those written
    /// have arrived (more than have by now), in place of what was asked for.
    pub fn expect(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.simulation.flows[flow as usize];
        debug_assert!(state.receiver.received() < bytes && bytes <= state.goal);
        state.expects = bytes;
        if state.opening.is_none() {
            state.awaited = bytes;
        }
    }
    /// Writes more than any run can send: see [`Context::take_back`].
    pub fn fill(&mut self, flow: u32) {
        self.write(flow, ENDLESS);
    }
    /// Takes back what was written and is not sent, for good.
    pub fn take_back(&mut self, flow: u32) {
        let state = &mut self.simulation.flows[flow as usize];
        state.goal = state.sender.cut();
    }
    /// Bytes of a flow that have been sent: what is put into a flow that was
    /// filled follows them.
    pub fn sent(&self, flow: u32) -> u64 {
        self.simulation.flows[flow as usize].sender.sent_bytes()
    }
    /// Bytes of a flow that have arrived.
    pub fn received(&self, flow: u32) -> u64 {
        self.simulation.flows[flow as usize].receiver.received()
    }
    /// Nothing more will be written: the flow goes when all is acknowledged. Of
    /// a connection that is being opened both flows have to be closed, that of
    /// the client first. Of a flow of datagrams nothing more is told.
    pub fn close(&mut self, flow: u32) {
        if flow & DATAGRAMS != 0 {
            self.simulation.datagrams[(flow & !DATAGRAMS) as usize].tells = false;
            return;
        }
        let state = &mut self.simulation.flows[flow as usize];
        state.is_open = false;
        state.app = GONE;
        if let Some((answer, _)) = state.opening.take() {
            // Nobody waits for the answer: the other side never sends.
            state.awaited = u64::MAX;
            self.simulation.flows[answer as usize].sender.abort();
        }
        let state = &self.simulation.flows[flow as usize];
        if state.sender.is_finished() {
            self.simulation.drained(flow);
        }
    }
    /// Starts another application of the same member of the group.
    /// It is given its streams by name.
    pub fn spawn(&mut self, make: impl FnOnce(&dyn Fn(&str) -> Stream) -> Box<dyn App>) {
        self.simulation.spawn(self.slot, make);
    }
    /// A flow of datagrams; with `tells`, every arrival is reported.
    pub fn datagrams(&mut self, direction: Direction, tells: bool) -> u32 {
        let flow = self.simulation.make_datagrams(self.slot, direction, tells);
        if let Some(class) = self.class {
            self.simulation.datagrams[(flow & !DATAGRAMS) as usize].class = class.0;
        }
        flow
    }
    fn make_flow(&mut self, direction: Direction, size: Option<u64>, is_transient: bool) -> u32 {
        let flow = self.simulation.make_flow(self.slot, direction, size, is_transient);
        if let Some(class) = self.class {
            self.simulation.flows[flow as usize].class = class.0;
        }
        flow
    }
    pub fn send_datagram(&mut self, flow: u32, size: u32) {
        if !self.simulation.effort.spend() {
            return; // A frame may be millions of packets: the run ends after this event.
        }
        let Simulation { datagrams, network, now, .. } = &mut *self.simulation;
        let flow = &mut datagrams[(flow & !DATAGRAMS) as usize];
        network.inject(*now, flow.route, flow.packet(size, *now), &mut ());
    }
    /// The application is done: it is told nothing more.
    pub fn end(&mut self) {
        self.simulation.apps[self.slot as usize].has_ended = true;
    }
}

impl Simulation<'_> {
    /// Makes the application of a member of a group.
    pub fn make_app(&mut self, group: u32, member: u64, start: Time) {
        let config = &self.scenario.flows[group as usize];
        let name = format!("{}.{member}", config.name);
        let streams = |key: &str| self.stream(&format!("flows.{name}.workload.{key}"));
        if let Some(app) = config.workload.app(&streams) {
            let slot = self.place_app(app, group, member as u32, name);
            self.events.push(start, Event::AppStart(slot));
        }
    }

    fn place_app(&mut self, app: Box<dyn App>, group: u32, member: u32, name: String) -> u32 {
        let app = Some(app);
        let (made, wake_at, has_ended) = (0, Time::MAX, false);
        let slot = AppSlot { app, group, member, name, made, wake_at, has_ended };
        self.unfinished += usize::from(self.is_awaited(group));
        match self.free_apps.pop() {
            Some(place) => {
                self.apps[place as usize] = slot;
                place
            }
            None => {
                self.apps.push(slot);
                self.apps.len() as u32 - 1
            }
        }
    }

    fn spawn(&mut self, parent: u32, make: impl FnOnce(&dyn Fn(&str) -> Stream) -> Box<dyn App>) {
        let (group, member, name) = self.name_next(parent);
        let app = make(&|key| self.stream(&format!("flows.{name}.workload.{key}")));
        let slot = self.place_app(app, group, member, name);
        self.start_app(slot);
    }

    /// Group, member and name of what an application makes next.
    fn name_next(&mut self, slot: u32) -> (u32, u32, String) {
        let slot = &mut self.apps[slot as usize];
        slot.made += 1;
        (slot.group, slot.member, format!("{}.{}", slot.name, slot.made - 1))
    }

    fn tell(&mut self, slot: u32, what: impl FnOnce(&mut dyn App, &mut Context)) {
        // Nothing that an application asks for tells it something.
        let mut app = self.apps[slot as usize].app.take().expect("it is not being told already");
        what(&mut *app, &mut Context { simulation: self, slot, class: None });
        let place = &mut self.apps[slot as usize];
        if place.has_ended {
            let scores = &mut self.activities[place.group as usize].scores;
            app.report(self.now, &mut |name, value| add_score(scores, name, value));
            place.wake_at = Time::MAX;
            let group = place.group;
            self.unfinished -= usize::from(self.is_awaited(group));
            self.free_apps.push(slot);
        } else {
            place.app = Some(app);
        }
    }

    #[inline(never)]
    pub fn start_app(&mut self, slot: u32) {
        self.tell(slot, |app, cx| app.start(cx));
    }

    /// An application's timer event came; an earlier or later one may have
    /// been asked for since.
    #[inline(never)]
    pub fn app_timer(&mut self, slot: u32) {
        if self.apps[slot as usize].wake_at == self.now {
            self.apps[slot as usize].wake_at = Time::MAX;
            self.tell(slot, |app, cx| app.on_timer(cx));
        }
    }

    /// A flow for an application. Where no record names flows, it takes the
    /// place of one that is gone.
    fn make_flow(
        &mut self,
        slot: u32,
        direction: Direction,
        size: Option<u64>,
        is_transient: bool,
    ) -> u32 {
        let (group, member, name) = self.name_next(slot);
        let place = match is_transient {
            true => self.free_flows[group as usize][direction as usize].pop(),
            false => None,
        };
        let index = place.unwrap_or(self.flows.len() as u32);
        let mut setup = self.setup_flow(index, group, member, &format!("flows.{name}.hash"));
        setup.size = Some(size.unwrap_or(0));
        setup.start = self.now;
        setup.app = slot;
        setup.is_open = size.is_none();
        setup.is_transient = is_transient;
        if direction == Direction::Backward {
            setup.turn();
        }
        let flow = Flow::new(setup);
        match place {
            Some(place) => {
                let before = std::mem::replace(&mut self.flows[place as usize], flow);
                self.activities[group as usize].gone.add(before.volume());
            }
            None => self.flows.push(flow),
        }
        index
    }

    fn open(&mut self, flow: u32) {
        self.flows[flow as usize].sender.open(self.now);
        self.send_data(flow);
    }

    fn make_datagrams(&mut self, slot: u32, direction: Direction, tells: bool) -> u32 {
        let (group, member, name) = self.name_next(slot);
        let index = self.datagrams.len() as u32;
        let mut setup = self.setup_flow(index, group, member, &format!("flows.{name}.hash"));
        if direction == Direction::Backward {
            setup.turn();
        }
        self.datagrams.push(DatagramFlow::new(DatagramSetup {
            index,
            group,
            app: slot,
            tells,
            route: setup.routes[0],
            start: self.now,
            hash: setup.hashes[0],
            hosts: setup.hosts,
            class: setup.class,
        }));
        index | DATAGRAMS
    }

    /// What a flow waited for has arrived.
    #[inline(never)]
    pub fn heard(&mut self, index: u32) {
        let now = self.now;
        if let Some((other, opening)) = self.flows[index as usize].opening {
            let answer = &mut self.flows[other as usize];
            if opening == Opening::Listen {
                // The SYN that this would send is the SYN-ACK of the first
                // direction: it is not taken. But its timer runs.
                answer.sender.open(now);
                answer.arm_sender(&mut self.events);
                let flow = &mut self.flows[index as usize];
                flow.opening = Some((other, Opening::SynReceived));
                flow.awaited = 1;
                return;
            }
            let window = answer.receiver.window();
            answer.sender.on_ack(now, &Ack { syn: true, window, ..Ack::default() });
            let flow = &mut self.flows[index as usize];
            flow.opening = None;
            flow.awaited = flow.expects;
        }
        let flow = &mut self.flows[index as usize];
        if flow.receiver.received() < flow.expects {
            return;
        }
        flow.awaited = u64::MAX;
        if let Some(size) = flow.size {
            let activity = &mut self.activities[flow.group as usize];
            activity.completed += 1;
            activity.bytes += size;
            activity.record("completion", now - flow.start);
        }
        if flow.app < GONE {
            let app = flow.app;
            self.tell(app, |app, cx| app.on_received(index, cx));
        }
    }

    /// A connection of an application, or of a group without, is open.
    #[inline(never)]
    pub fn connected(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        let app = flow.app;
        // One that was closed meanwhile is not a flow of its own.
        if !flow.is_open && app != GONE {
            self.activities[flow.group as usize].record("startup", self.now - flow.start);
        }
        if app < GONE {
            self.tell(app, |app, cx| app.on_connected(index, cx));
        }
    }

    /// All that a sender has is acknowledged.
    #[inline(never)]
    pub fn drained(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.is_open {
            return;
        }
        flow.finish = Some(self.now);
        if flow.app == NONE {
            let group = flow.group;
            self.unfinished -= usize::from(self.is_awaited(group));
        } else if flow.is_transient && self.scenario.record.level == Level::Summary {
            self.free_flows[flow.group as usize][usize::from(flow.is_turned)].push(index);
        }
    }

    /// A datagram has come to the end of its path.
    pub fn datagram_arrived(&mut self, packet: &SimPacket) {
        let flow = &mut self.datagrams[(packet.flow & !DATAGRAMS) as usize];
        flow.receive(self.now, packet);
        if flow.tells {
            let stamp = Time::from_nanos(packet.seq);
            let (app, flow) = (flow.app, packet.flow);
            self.tell(app, |app, cx| app.on_datagram(flow, stamp, cx));
        }
    }

    /// The numbers that the applications of a group sum up to, as means.
    pub fn reports(&self, group: u32) -> Vec<(&'static str, f64)> {
        let mut sums = self.activities[group as usize].scores.clone();
        let of_group = self.apps.iter().filter(|slot| slot.group == group);
        for app in of_group.filter_map(|slot| slot.app.as_ref()) {
            app.report(self.now, &mut |name, value| add_score(&mut sums, name, value));
        }
        sums.into_iter().map(|(name, sum, count)| (name, sum / count)).collect()
    }
}
