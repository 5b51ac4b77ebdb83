//! Applications at work: what a workload can ask of the run, and what it is
//! told.

use aqmlab_core::{Span, Time};

use crate::datagram::{DATAGRAMS, DatagramFlow, DatagramSetup};
use crate::events::Event;
use crate::flow::{Flow, NONE};
use crate::packet::SimPacket;
use crate::probe::Sojourn;
use crate::scenario::Level;
use crate::simulation::Simulation;

/// An application: it opens flows, and is told what becomes of them.
pub(crate) trait App {
    /// The application begins.
    fn start(&mut self, cx: &mut Context);
    /// The time of [`Context::wake_at`] has come.
    fn on_timer(&mut self, _cx: &mut Context) {}
    /// All bytes have arrived that [`Context::expect`] spoke of.
    fn on_received(&mut self, _flow: u32, _cx: &mut Context) {}
    /// The last byte of a flow that is not to be written to any more is
    /// acknowledged; the flow is gone.
    fn on_finished(&mut self, _flow: u32, _cx: &mut Context) {}
    /// A datagram has arrived that carries the time `stamp`.
    fn on_datagram(&mut self, _flow: u32, _stamp: Time, _size: u32, _cx: &mut Context) {}
    /// Numbers that sum up the application, by name: their means over the
    /// group are reported.
    fn report(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
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
    /// The member of the group that it is.
    member: u32,
    /// Flows that it has opened: the number is in the name of their streams.
    opened: u64,
    wake_at: Time,
}

/// What has become of a group's applications.
#[derive(Default)]
pub(crate) struct Activity {
    /// Flows, requests or whatever the workload counts.
    pub started: u64,
    pub completed: u64,
    /// Bytes of what was completed.
    pub bytes: u64,
    /// Times by name.
    pub times: Vec<(&'static str, Sojourn)>,
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
        self.times[place].1.record(time);
    }
}

/// The run as an application sees it.
pub(crate) struct Context<'a, 'b> {
    simulation: &'a mut Simulation<'b>,
    slot: u32,
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
    pub fn transfer(&mut self, direction: Direction, size: u64) -> u32 {
        self.activity().started += 1;
        let flow = self.simulation.open_flow(self.slot, direction, Some(size));
        let now = self.simulation.now;
        self.simulation.flows[flow as usize].sender.open(now);
        self.simulation.send_data(flow);
        flow
    }
    /// A connection that carries what is written; `None` of its own size.
    pub fn stream(&mut self, direction: Direction) -> u32 {
        let flow = self.simulation.open_flow(self.slot, direction, None);
        let now = self.simulation.now;
        self.simulation.flows[flow as usize].sender.open(now);
        self.simulation.send_data(flow);
        flow
    }
    /// Writes to a connection that [`stream`](Self::stream) made.
    pub fn write(&mut self, flow: u32, bytes: u64) {
        self.simulation.flows[flow as usize].sender.supply(bytes);
        self.simulation.send_data(flow);
    }
    /// A flow of datagrams; `tells`: every arrival is reported.
    pub fn datagrams(&mut self, direction: Direction) -> u32 {
        self.simulation.make_datagrams(self.slot, direction)
    }
    /// Has every arrival of a flow of datagrams reported.
    pub fn watch(&mut self, flow: u32) {
        self.simulation.datagrams[(flow & !DATAGRAMS) as usize].tells = true;
    }
    pub fn send_datagram(&mut self, flow: u32, size: u32) {
        self.send_stamped(flow, size, self.simulation.now);
    }
    /// Sends a datagram that carries another time than now.
    pub fn send_stamped(&mut self, flow: u32, size: u32, stamp: Time) {
        let datagrams = &mut self.simulation.datagrams[(flow & !DATAGRAMS) as usize];
        let packet = datagrams.packet(size, stamp);
        let first = datagrams.path[0] as usize;
        let Simulation { links, events, store, now, .. } = &mut *self.simulation;
        links[first].arrive(packet, *now, events, store);
    }
    /// The application is done.
    pub fn end(&mut self) {
        self.simulation.unfinished -= 1;
    }
}

impl Simulation<'_> {
    /// Makes the application of a member of a group, if it has one.
    pub fn make_app(&mut self, group: u32, member: u64, start: Time) {
        let config = &self.scenario.flows[group as usize];
        let streams =
            |name: &str| self.stream(&format!("flows.{}.{member}.workload.{name}", config.name));
        let app = config.workload.app(&streams);
        self.apps.push(AppSlot { app, group, member: member as u32, opened: 0, wake_at: start });
        self.events.push(start, Event::AppStart(self.apps.len() as u32 - 1));
    }

    fn tell(&mut self, slot: u32, what: impl FnOnce(&mut dyn App, &mut Context)) {
        // Nothing that an application asks for calls another, or itself.
        let mut app = self.apps[slot as usize].app.take().expect("it is not being told already");
        what(&mut *app, &mut Context { simulation: self, slot });
        self.apps[slot as usize].app = Some(app);
    }

    pub fn start_app(&mut self, slot: u32) {
        self.tell(slot, |app, cx| app.start(cx));
    }

    /// An application's timer event came; an earlier or later one may have
    /// been asked for since.
    pub fn app_timer(&mut self, slot: u32) {
        if self.apps[slot as usize].wake_at == self.now {
            self.apps[slot as usize].wake_at = Time::MAX;
            self.tell(slot, |app, cx| app.on_timer(cx));
        }
    }

    /// A flow for an application. Where no record names flows, it takes the
    /// place of one that is gone.
    fn open_flow(&mut self, slot: u32, direction: Direction, size: Option<u64>) -> u32 {
        let AppSlot { group, member, opened, .. } = self.apps[slot as usize];
        self.apps[slot as usize].opened += 1;
        let config = &self.scenario.flows[group as usize];
        let name = format!("flows.{}.{member}.{opened}.hash", config.name);
        let place = self.free_flows[group as usize][direction as usize].pop();
        let index = place.unwrap_or(self.flows.len() as u32);
        let mut setup = self.setup_flow(index, group, u64::from(member), &name);
        setup.size = Some(size.unwrap_or(0));
        setup.start = self.now;
        setup.app = slot;
        setup.is_open = size.is_none();
        if direction == Direction::Backward {
            setup.turn();
        }
        let flow = Flow::new(setup);
        match place {
            Some(place) => self.flows[place as usize] = flow,
            None => self.flows.push(flow),
        }
        index
    }

    fn make_datagrams(&mut self, slot: u32, direction: Direction) -> u32 {
        let AppSlot { group, member, opened, .. } = self.apps[slot as usize];
        self.apps[slot as usize].opened += 1;
        let config = &self.scenario.flows[group as usize];
        let name = format!("flows.{}.{member}.{opened}.hash", config.name);
        let index = self.datagrams.len() as u32;
        let mut setup = self.setup_flow(index, group, u64::from(member), &name);
        if direction == Direction::Backward {
            setup.turn();
        }
        self.datagrams.push(DatagramFlow::new(DatagramSetup {
            index,
            group,
            app: slot,
            tells: false,
            path: setup.path,
            start: self.now,
            hash: setup.hashes[0],
            hosts: setup.hosts,
            class: setup.class,
        }));
        index | DATAGRAMS
    }

    /// A connection of an application, or of a group without, is open.
    pub fn connected(&mut self, flow: u32) {
        let flow = &self.flows[flow as usize];
        self.activities[flow.group as usize].record("startup", self.now - flow.start);
    }

    /// All that a sender has is acknowledged.
    pub fn drained(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.is_open {
            return;
        }
        flow.finish = Some(self.now);
        let (group, app, time) = (flow.group as usize, flow.app, self.now - flow.start);
        let activity = &mut self.activities[group];
        activity.completed += 1;
        activity.bytes += flow.size.unwrap_or(0);
        activity.record("completion", time);
        if app == NONE {
            self.unfinished -= 1;
            return;
        }
        self.tell(app, |app, cx| app.on_finished(index, cx));
        if self.scenario.record.level == Level::Summary {
            let turned = self.flows[index as usize].is_turned;
            self.free_flows[group][usize::from(turned)].push(index);
        }
    }

    /// A datagram has come to the end of its path.
    pub fn datagram_arrived(&mut self, packet: &SimPacket) {
        let flow = &mut self.datagrams[(packet.flow & !DATAGRAMS) as usize];
        flow.receive(self.now, packet);
        if flow.tells {
            let stamp = Time::from_nanos(packet.seq);
            let (app, flow, size) = (flow.app, packet.flow, packet.size);
            self.tell(app, |app, cx| app.on_datagram(flow, stamp, size, cx));
        }
    }

    /// The numbers that the applications of a group sum up to, as means.
    pub fn reports(&self, group: u32) -> Vec<(&'static str, f64)> {
        let mut sums: Vec<(&'static str, f64, f64)> = Vec::new();
        let of_group = self.apps.iter().filter(|slot| slot.group == group);
        for app in of_group.filter_map(|slot| slot.app.as_ref()) {
            app.report(
                &mut |name, value| match sums.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, sum, count)) => {
                        *sum += value;
                        *count += 1.0;
                    }
                    None => sums.push((name, value, 1.0)),
                },
            );
        }
        sums.into_iter().map(|(name, sum, count)| (name, sum / count)).collect()
    }
}
