//! Applications of a run, with the run as their host.

use std::sync::Arc;

use aqmlab_core::{Deadline, Time};
use aqmlab_tcp::Ack;

use super::events::Event;
use super::simulation::Simulation;
use crate::endpoints::flow::{Ends, Flow, FlowSetup, GONE, NONE, Opening};
use crate::endpoints::packet::Content;
use crate::endpoints::{End, EndpointSetup};
use crate::network::losses::Losses;
use crate::scenario::{Dscp, Level};
use crate::workload::app::{Activity, App, Context, Direction, Host, Make, Tally, Wanted};
use crate::workload::quantities::Scores;

/// Slot of an application.
#[derive(Clone)]
pub(crate) struct AppSlot {
    app: Option<Box<dyn App>>,
    group: u32,
    /// Member of the group that the application belongs to.
    member: u32,
    /// Name of its random streams.
    name: String,
    /// Number of flows and applications created, for the names of their streams.
    made: u64,
    wake_at: Deadline,
    has_ended: bool,
    /// Tally when the scores were last [taken](super::Run::take_scores).
    taken: Tally,
}

impl AppSlot {
    pub fn group(&self) -> u32 {
        self.group
    }
}

impl Host for Simulation {
    fn now(&self) -> Time {
        self.now
    }
    fn wake_at(&mut self, app: u32, time: Time) {
        self.apps[app as usize].wake_at = Deadline::at(time);
        self.events.push(time, Event::App as u32, app);
    }
    fn activity(&mut self, app: u32) -> &mut Activity {
        let group = self.apps[app as usize].group;
        &mut self.activities[group as usize]
    }
    fn open(&mut self, app: u32, wanted: Wanted) -> u32 {
        let flow = self.make_flow(app, wanted, Flow::new);
        self.open_flow(flow);
        flow
    }
    fn connect(&mut self, app: u32, is_transient: bool, class: Option<Dscp>) -> [u32; 2] {
        let wanted = |direction| Wanted { direction, size: None, is_transient, class };
        let to_server = self.make_flow(app, wanted(Direction::Backward), Flow::new);
        let to_client = self.make_flow(app, wanted(Direction::Forward), Flow::new);
        let flow = &mut self.flows[to_server as usize];
        if flow.tcp().is_some() {
            flow.opening = Some((to_client, Opening::Listen));
            flow.awaited = 0;
            self.record_pair(to_server, to_client);
        } else if self.pair(to_server, to_client) {
            self.record_pair(to_server, to_client);
        } else {
            self.open_flow(to_client);
        }
        self.open_flow(to_server);
        [to_server, to_client]
    }
    fn make_greedy(&mut self, flow: u32) {
        self.flows[flow as usize].size = None;
    }
    fn stop(&mut self, flow: u32) {
        self.take_back(flow);
        let state = &mut self.flows[flow as usize];
        let sent = state.goal;
        state.size = Some(sent);
        state.expects = sent;
        state.awaited = sent;
        if state.received() >= sent {
            // Deferred: applications must not be re-entered.
            self.events.push(self.now, Event::Heard as u32, flow);
        }
    }
    fn write(&mut self, flow: u32, bytes: u64) -> u64 {
        let state = &mut self.flows[flow as usize];
        state.source_mut().supply(bytes);
        state.goal += bytes;
        state.all_arrived = None;
        state.expects = state.goal;
        if state.opening.is_none() {
            state.awaited = state.goal;
        }
        let written = state.goal;
        self.send(flow, End::Source);
        written
    }
    fn expect(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.flows[flow as usize];
        debug_assert!(state.received() < bytes && bytes <= state.goal);
        state.expects = bytes;
        if state.opening.is_none() {
            state.awaited = bytes;
        }
    }
    fn take_back(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.goal = state.source_mut().cut();
    }
    fn sent(&self, flow: u32) -> u64 {
        self.flows[flow as usize].source().sent()
    }
    fn received(&self, flow: u32) -> u64 {
        self.flows[flow as usize].received()
    }
    fn arrived(&self, flow: u32) -> u64 {
        self.flows[flow as usize].delivered()
    }
    fn arrived_of(&self, flow: u32, index: u64) -> Option<u64> {
        self.flows[flow as usize].arrived_of(index)
    }
    fn close(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if let Ends::Datagrams(datagrams) = &mut state.ends {
            datagrams.tells = false;
            return;
        }
        state.is_open = false;
        state.app = GONE;
        if state.received() < state.goal {
            (state.expects, state.awaited) = (state.goal, state.goal);
        }
        state.source_mut().finish();
        if matches!(state.ends, Ends::Other(_)) {
            self.send(flow, End::Source);
        }
        let state = &mut self.flows[flow as usize];
        if let Some((answer, _)) = state.opening.take() {
            // The other side never sends.
            state.awaited = u64::MAX;
            self.flows[answer as usize].source_mut().abort();
        }
        if self.flows[flow as usize].is_finished() {
            self.drained(flow);
        }
    }
    fn datagrams(
        &mut self,
        app: u32,
        direction: Direction,
        tells: bool,
        class: Option<Dscp>,
    ) -> u32 {
        let wanted = Wanted { direction, size: None, is_transient: false, class };
        let index = self.make_flow(app, wanted, |setup| {
            Flow::datagrams(FlowSetup { size: None, is_open: false, ..setup }, tells)
        });
        if self.flows[index as usize].is_carried() {
            self.open_flow(index);
        }
        index
    }
    fn send_datagram(&mut self, index: u32, size: u32) {
        if !self.work.spend() {
            return; // A frame may have millions of packets: the run ends after this event.
        }
        let flow = &mut self.flows[index as usize];
        if let Ends::Datagrams(datagrams) = &mut flow.ends {
            datagrams.source.send(self.now, size);
            if datagrams.carrier.is_some() {
                return self.send(index, End::Source);
            }
        }
        while let Some(packet) = flow.poll(End::Source, self.now, self.network.store_mut()) {
            if let Some(recorder) = &mut self.recorder {
                recorder.sent(self.now, flow, &packet, self.network.store());
            }
            self.network.inject(self.now, flow.route(End::Source), packet, &mut self.recorder);
        }
    }
    fn spawn(&mut self, app: u32, make: Make<'_>) {
        let (group, member, name) = self.name_next(app);
        let app = make(&|key| self.stream(&format!("flows.{name}.workload.{key}")));
        let slot = self.place_app(app, group, member, name);
        self.start_app(slot);
    }
    fn end(&mut self, app: u32) {
        self.apps[app as usize].has_ended = true;
    }
}

impl Simulation {
    /// Creates the application of a group's member.
    pub fn make_app(&mut self, group: u32, member: u64, start: Time) {
        let scenario = Arc::clone(&self.scenario);
        let config = &scenario.flows[group as usize];
        let name = format!("{}.{member}", config.name);
        let streams = |key: &str| self.stream(&format!("flows.{name}.workload.{key}"));
        if let Some(app) = config.workload.app(&streams) {
            let slot = self.place_app(app, group, member as u32, name);
            self.events.push(start, Event::AppStart as u32, slot);
        }
    }

    fn place_app(&mut self, app: Box<dyn App>, group: u32, member: u32, name: String) -> u32 {
        let app = Some(app);
        let (made, wake_at, has_ended, taken) = (0, Deadline::NEVER, false, Tally::default());
        let slot = AppSlot { app, group, member, name, made, wake_at, has_ended, taken };
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

    /// Returns group, member and name for the next object an application creates.
    fn name_next(&mut self, slot: u32) -> (u32, u32, String) {
        let slot = &mut self.apps[slot as usize];
        slot.made += 1;
        (slot.group, slot.member, format!("{}.{}", slot.name, slot.made - 1))
    }

    fn tell(&mut self, slot: u32, what: impl FnOnce(&mut dyn App, &mut Context)) {
        // Requests of an application cause no notifications.
        let mut app = self.apps[slot as usize].app.take().expect("it is not being told already");
        what(&mut *app, &mut Context::new(self, slot));
        match self.apps[slot as usize].has_ended {
            true => {
                self.ended(slot, &*app);
                self.free_apps.push(slot);
            }
            false => self.apps[slot as usize].app = Some(app),
        }
    }

    /// Stops an application. Its slot is not reused, because events for it may be pending.
    pub(super) fn stop_app(&mut self, slot: u32) {
        if let Some(app) = self.apps[slot as usize].app.take() {
            self.ended(slot, &*app);
        }
    }

    /// Counts the end of an application.
    fn ended(&mut self, slot: u32, app: &dyn App) {
        let place = &mut self.apps[slot as usize];
        (place.has_ended, place.wake_at) = (true, Deadline::NEVER);
        let group = place.group;
        self.activities[group as usize].scores.add(app, self.now);
        self.unfinished -= usize::from(self.is_awaited(group));
    }

    #[inline(never)]
    pub fn start_app(&mut self, slot: u32) {
        if self.apps[slot as usize].app.is_none() {
            return; // Stopped before its start.
        }
        self.tell(slot, |app, cx| app.start(cx));
    }

    /// Handles a timer event of an application, which may have requested another time since.
    #[inline(never)]
    pub fn app_timer(&mut self, slot: u32) {
        if self.apps[slot as usize].wake_at == Deadline::at(self.now) {
            self.apps[slot as usize].wake_at = Deadline::NEVER;
            self.tell(slot, |app, cx| app.on_timer(cx));
        }
    }

    /// Creates a flow for an application. Reuses the slot of an ended flow unless a recording names
    /// flows.
    fn make_flow(
        &mut self,
        slot: u32,
        wanted: Wanted,
        make: impl FnOnce(FlowSetup<'_>) -> Flow,
    ) -> u32 {
        let Wanted { direction, size, is_transient, class } = wanted;
        let (group, member, name) = self.name_next(slot);
        let place = match is_transient {
            true => self.free_flows[group as usize][direction as usize].pop(),
            false => None,
        };
        let index = place.unwrap_or(self.flows.len() as u32);
        let scenario = Arc::clone(&self.scenario);
        let stream = format!("flows.{name}.hash");
        let mut setup = self.setup_flow(&scenario, index, group, member, &stream);
        setup.size = Some(size.unwrap_or(0));
        setup.start = self.now;
        setup.app = slot;
        setup.is_open = size.is_none();
        setup.is_transient = is_transient;
        setup.class = class.map_or(setup.class, |class| class.0);
        if direction == Direction::Backward {
            setup.turn();
        }
        let flow = make(setup);
        // In the tables flows of datagrams are last.
        self.numbers[group as usize] -= u32::from(flow.is_of_datagrams());
        match place {
            Some(place) => {
                let before = std::mem::replace(&mut self.flows[place as usize], flow);
                let gone = &mut self.activities[group as usize].gone;
                gone[direction as usize].add(before.volume());
            }
            None => self.flows.push(flow),
        }
        index
    }

    fn record_pair(&mut self, opening: u32, back: u32) {
        if let Some(recorder) = &mut self.recorder {
            let of = |index: u32| (index, &self.flows[index as usize]);
            recorder.paired(self.now, of(opening), of(back));
        }
    }

    /// Makes two flows the directions of one connection, if their endpoint has such.
    fn pair(&mut self, opening: u32, back: u32) -> bool {
        let flow = &self.flows[opening as usize];
        let group = &self.scenario.flows[flow.group as usize];
        let [high, low] = flow.hashes.map(u64::from);
        let setup = EndpointSetup {
            size: Some(0),
            is_open: true,
            mss: group.transport.mss.get() as u32,
            header: group.transport.header.get() as u32,
            seed: high << 32 | low,
            log: self.log(flow.group, flow.number),
        };
        let Some([there, again]) = group.endpoint.pair(&setup) else { return false };
        self.flows[opening as usize].join(there, back, true);
        self.flows[back as usize].join(again, opening, false);
        true
    }

    /// Lets the source of the other direction answer a packet that arrived at a flow's sink.
    #[cold]
    #[inline(never)]
    pub fn answer(&mut self, index: u32) {
        let Some(source) = self.flows[index as usize].partner() else { return };
        let flow = &mut self.flows[source as usize];
        let has_connected = flow.has_connected();
        let is_drained = flow.finish.is_none() && flow.is_finished();
        if has_connected {
            self.connected(source);
        }
        if is_drained {
            self.drained(source);
        }
        self.send(source, End::Source);
    }

    fn open_flow(&mut self, flow: u32) {
        self.flows[flow as usize].source_mut().open(self.now);
        self.send(flow, End::Source);
    }

    /// Handles the arrival of the awaited bytes of a flow.
    #[inline(never)]
    pub fn heard(&mut self, index: u32) {
        let now = self.now;
        if let Some((other, opening)) = self.flows[index as usize].opening {
            let ece = self.flows[index as usize].tcp().is_some_and(|tcp| tcp.receiver.uses_ecn());
            let answer = &mut self.flows[other as usize];
            if opening == Opening::Listen {
                // The SYN that this would send is the SYN-ACK of the first direction, so it is
                // dropped; but its timer runs.
                answer.source_mut().open(now);
                self.arm(other, End::Source);
                let flow = &mut self.flows[index as usize];
                flow.opening = Some((other, Opening::SynReceived));
                flow.awaited = 1;
                return;
            }
            let tcp = answer.tcp_mut().expect("only TCP has a handshake");
            let window = tcp.receive_window();
            if !ece {
                tcp.decline_ecn();
            }
            tcp.sender.on_ack(now, &Ack { syn: true, ece, window, ..Ack::default() });
            let flow = &mut self.flows[index as usize];
            flow.opening = None;
            flow.awaited = flow.expects;
        }
        let flow = &mut self.flows[index as usize];
        if flow.received() < flow.expects {
            return;
        }
        flow.awaited = u64::MAX;
        if flow.received() >= flow.goal {
            flow.all_arrived = Some(now);
        }
        if let Some(size) = flow.size {
            let activity = &mut self.activities[flow.group as usize];
            activity.complete(size, "completion", now - flow.start);
        }
        if flow.app < GONE {
            let app = flow.app;
            self.tell(app, |app, cx| app.on_received(index, cx));
        }
    }

    /// Handles an opened connection, of an application or of a group without.
    #[inline(never)]
    pub fn connected(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        let app = flow.app;
        // A connection closed before it opened is not a flow of its own.
        if !flow.is_open && app != GONE {
            self.activities[flow.group as usize].record("startup", self.now - flow.start);
        }
        if app < GONE {
            self.tell(app, |app, cx| app.on_connected(index, cx));
        }
    }

    /// Handles the acknowledgement of all data of a sender.
    #[inline(never)]
    pub fn drained(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.is_open {
            return;
        }
        flow.finish = Some(self.now);
        self.count_bulk_flow(index, Losses::left);
        let flow = &self.flows[index as usize];
        if flow.app == NONE {
            let group = flow.group;
            self.unfinished -= usize::from(self.is_awaited(group));
        } else if flow.is_transient && self.scenario.record.level == Level::Summary {
            // The two directions of a connection are gone together.
            let partner = flow.partner();
            if partner.is_none_or(|other| self.flows[other as usize].finish.is_some()) {
                for gone in [Some(index), partner].into_iter().flatten() {
                    let flow = &self.flows[gone as usize];
                    self.free_flows[flow.group as usize][flow.direction as usize].push(gone);
                }
            }
        }
    }

    /// Handles a datagram at the end of its route, and notifies the application if it requested
    /// that.
    #[inline(never)]
    pub fn datagram_arrived(&mut self, index: u32, content: Content) {
        let flow = &mut self.flows[index as usize];
        let Ends::Datagrams(datagrams) = &mut flow.ends else { return };
        let (tells, app) = (datagrams.tells, flow.app);
        if let Content::Datagram { sent, .. } = content {
            if tells {
                let sent = Time::from_nanos(sent);
                self.tell(app, |app, cx| app.on_datagram(index, sent, cx));
            }
            return;
        }
        for sent in std::mem::take(&mut datagrams.carried) {
            if tells {
                self.tell(app, |app, cx| app.on_datagram(index, sent, cx));
            }
        }
        self.send(index, End::Sink);
    }

    /// Starts the measurements of applications.
    pub(super) fn end_warmup_of_apps(&mut self) {
        let now = self.now;
        for slot in &mut self.apps {
            slot.taken = Tally::default();
            slot.app.iter_mut().for_each(|app| app.restart(now));
        }
    }

    /// Returns the scores of each group's applications since the last call.
    pub fn take_scores(&mut self, now: Time) -> Vec<Scores> {
        let mut scores = vec![Scores::default(); self.activities.len()];
        for slot in &mut self.apps {
            let Some(app) = slot.app.as_deref() else { continue };
            let tally = app.tally(now);
            let before = std::mem::replace(&mut slot.taken, tally);
            let since = std::array::from_fn(|place| tally[place] - before[place]);
            scores[slot.group as usize].add_tally(app, since);
        }
        scores
    }

    /// Returns the scores of a group's applications.
    pub fn scores(&self, group: u32) -> Scores {
        let mut scores = self.activities[group as usize].scores.clone();
        let of_group = self.apps.iter().filter(|slot| slot.group == group);
        let apps = of_group.filter_map(|slot| slot.app.as_deref());
        apps.for_each(|app| scores.add(app, self.now));
        scores
    }
}
