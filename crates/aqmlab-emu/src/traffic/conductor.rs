//! The applications of a group with real sockets: the host that the simulator
//! is in virtual time.
//!
//! # Model
//! One thread, the conductor, has all applications of a group, and tells each
//! of what happens, one thing at a time. A timer's time is that which it was
//! set to, and what has arrived has the time at which it was read: the
//! conductor's own delay is in none of them, but in what applications do about
//! it. Random streams have the simulator's names, so that draws are the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aqmlab_core::{Bytes, Time};
use aqmlab_sim::scenario::Dscp;
use aqmlab_sim::workload::app::{
    Activity, App, Context, Direction, ENDLESS, Host, Make, Wanted, add_score,
};

use super::connection::{DATAGRAM_HEAD, Exchange, HEADERS, Happening, Heard, Line, Wire};
use super::play::{End, Stage};
use crate::sys::tcp::set_class;

/// An application's place.
struct Slot {
    app: Option<Box<dyn App>>,
    /// What its streams are called.
    name: String,
    /// Flows and applications that it has made.
    made: u64,
    wake_at: Option<Time>,
    has_ended: bool,
}

/// A flow, as the conductor knows it.
struct Flow {
    /// The application; none when it is closed, or runs by itself.
    app: Option<u32>,
    /// There is no application: the flow counts as one that is to end.
    is_alone: bool,
    start: Time,
    size: Option<u64>,
    goal: u64,
    /// So many bytes are awaited; `None`: the application has been told.
    expects: Option<u64>,
    wire: Sending,
}

/// Its sending end.
enum Sending {
    Bytes(Arc<Line>),
    Datagrams(Arc<Heard>, UdpSocket, Vec<u8>),
}

/// The host of a group's applications.
pub struct Conductor {
    exchange: Arc<Exchange>,
    happenings: Receiver<Happening>,
    now: Time,
    apps: Vec<Slot>,
    flows: Vec<Flow>,
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    /// When members begin, the last first.
    starts: Vec<(Time, u64)>,
    activity: Activity,
    /// Applications that have not ended.
    active: u64,
}

impl Conductor {
    /// The conductor of a group, whose servers listen.
    pub fn new(stage: &Arc<Stage>, group: usize, starts: &[Time]) -> io::Result<Self> {
        let (told, happenings) = channel();
        let wires = Mutex::new(Vec::new());
        let exchange = Arc::new(Exchange { stage: Arc::clone(stage), group, wires, told });
        exchange.serve(End::Sender)?;
        exchange.serve(End::Receiver)?;
        let mut starts: Vec<(Time, u64)> = starts.iter().copied().zip(0..).collect();
        starts.sort_unstable_by_key(|start| Reverse(*start));
        Ok(Conductor {
            exchange,
            happenings,
            now: Time::ZERO,
            apps: Vec::new(),
            flows: Vec::new(),
            timers: BinaryHeap::new(),
            starts,
            activity: Activity::default(),
            active: 0,
        })
    }

    /// Ends [`run`](Self::run).
    pub fn ender(&self) -> impl FnOnce() + Send + use<> {
        let told = self.exchange.told.clone();
        move || {
            let _ = told.send(Happening::End);
        }
    }

    /// Plays until the run is over, and enters what became of it into the books.
    pub fn run(mut self) -> io::Result<()> {
        let stage = Arc::clone(&self.exchange.stage);
        let mut is_told = false;
        loop {
            if self.active == 0 && self.starts.is_empty() && !is_told {
                is_told = true;
                self.enter();
                stage.group_done(self.exchange.group);
            }
            let due = self.due().unwrap_or(stage.end).min(stage.end);
            let left = due.saturating_since(stage.now());
            match self.happenings.recv_timeout(Duration::from_nanos(left.as_nanos())) {
                Ok(Happening::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(happening) => self.happened(happening),
                Err(RecvTimeoutError::Timeout) if due >= stage.end => break,
                Err(RecvTimeoutError::Timeout) => self.timer(due),
            }
        }
        self.now = stage.now();
        self.enter();
        stage.group_entered();
        Ok(())
    }

    /// When the next timer is due, or the next member begins.
    fn due(&mut self) -> Option<Time> {
        let wake_at = |app: u32| self.apps[app as usize].wake_at;
        while self.timers.peek().is_some_and(|Reverse((time, app))| wake_at(*app) != Some(*time)) {
            self.timers.pop();
        }
        let timer = self.timers.peek().map(|Reverse((time, _))| *time);
        timer.into_iter().chain(self.starts.last().map(|(time, _)| *time)).min()
    }

    fn timer(&mut self, due: Time) {
        self.now = due;
        if self.starts.last().is_some_and(|(time, _)| *time == due) {
            let (_, member) = self.starts.pop().expect("just seen");
            return self.begin(member);
        }
        if let Some(Reverse((_, app))) = self.timers.pop() {
            self.apps[app as usize].wake_at = None;
            self.tell(app, |app, cx| app.on_timer(cx));
        }
    }

    fn begin(&mut self, member: u64) {
        let stage = Arc::clone(&self.exchange.stage);
        let group = stage.group(self.exchange.group);
        let name = format!("{}.{member}", group.name);
        let streams = |key: &str| stage.stream(&format!("flows.{name}.workload.{key}"));
        if let Some(app) = group.workload.app(&streams) {
            let app = self.place(app, name.clone());
            return self.tell(app, |app, cx| app.start(cx));
        }
        let size = group.size.map(Bytes::get);
        self.activity.started += 1;
        self.active += 1;
        let flow = self.make_line(None, size);
        if size.is_none() {
            self.line(flow).supply(ENDLESS);
        }
        self.line(flow).close();
        self.exchange.open(End::Sender, flow, None, size, None);
    }

    fn place(&mut self, app: Box<dyn App>, name: String) -> u32 {
        let (app, made, wake_at, has_ended) = (Some(app), 0, None, false);
        self.apps.push(Slot { app, name, made, wake_at, has_ended });
        self.active += 1;
        self.apps.len() as u32 - 1
    }

    fn tell(&mut self, slot: u32, what: impl FnOnce(&mut dyn App, &mut Context)) {
        let Some(mut app) = self.apps[slot as usize].app.take() else { return };
        what(&mut *app, &mut Context::new(self, slot));
        let place = &mut self.apps[slot as usize];
        if place.has_ended {
            place.wake_at = None;
            self.active -= 1;
            let scores = &mut self.activity.scores;
            app.report(self.now, &mut |name, value| add_score(scores, name, value));
        } else {
            place.app = Some(app);
        }
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Connected(flow, at) => {
                self.now = at;
                let state = &self.flows[flow as usize];
                if state.size.is_some() {
                    self.activity.record("startup", at.saturating_since(state.start));
                }
                if let Some(app) = state.app {
                    self.tell(app, |app, cx| app.on_connected(flow, cx));
                }
            }
            Happening::Received(flow, at) => {
                self.now = at;
                self.received(flow, at);
            }
            Happening::Datagram(flow, sent, at) => {
                self.now = at;
                if let Some(app) = self.flows[flow as usize].app {
                    self.tell(app, |app, cx| app.on_datagram(flow, sent, cx));
                }
            }
            Happening::End => {}
        }
    }

    fn received(&mut self, flow: u32, at: Time) {
        let state = &mut self.flows[flow as usize];
        let Sending::Bytes(line) = &state.wire else { return };
        if state.expects.is_none_or(|bytes| line.received() < bytes) {
            return;
        }
        state.expects = None;
        if let Some(size) = state.size {
            self.activity.completed += 1;
            self.activity.bytes += size;
            self.activity.record("completion", at.saturating_since(state.start));
        }
        self.active -= u64::from(state.is_alone);
        if let Some(app) = state.app {
            self.tell(app, |app, cx| app.on_received(flow, cx));
        }
    }

    /// Asks to be told when so many bytes of a flow have arrived.
    fn await_bytes(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.flows[flow as usize];
        state.expects = Some(bytes);
        if let Sending::Bytes(line) = &state.wire
            && line.expect(bytes)
        {
            // An application is not told while it asks for something.
            let _ = self.exchange.told.send(Happening::Received(flow, self.now));
        }
    }

    fn make_line(&mut self, app: Option<u32>, size: Option<u64>) -> u32 {
        if let Some(app) = app {
            self.apps[app as usize].made += 1;
        }
        let line = Arc::new(Line::default());
        let goal = size.unwrap_or(0);
        line.supply(goal);
        line.expect(if goal > 0 { goal } else { u64::MAX });
        let flow = self.exchange.add(Wire::Bytes(Arc::clone(&line)));
        let (expects, wire) = (size, Sending::Bytes(line));
        let (is_alone, start) = (app.is_none(), self.now);
        self.flows.push(Flow { app, is_alone, start, size, goal, expects, wire });
        flow
    }

    fn line(&self, flow: u32) -> &Line {
        match &self.flows[flow as usize].wire {
            Sending::Bytes(line) => line,
            Sending::Datagrams(..) => unreachable!("nothing is written to a flow of datagrams"),
        }
    }

    /// Enters what became of the group into the books.
    fn enter(&self) {
        let mut scores = self.activity.scores.clone();
        for app in self.apps.iter().filter_map(|slot| slot.app.as_ref()) {
            app.report(self.now, &mut |name, value| add_score(&mut scores, name, value));
        }
        let values = scores.into_iter().map(|(name, sum, count)| (name, sum / count)).collect();
        self.exchange.stage.books().enter(self.exchange.group, &self.activity, values);
    }
}

impl Host for Conductor {
    fn now(&self) -> Time {
        self.now
    }
    fn wake_at(&mut self, app: u32, time: Time) {
        self.apps[app as usize].wake_at = Some(time);
        self.timers.push(Reverse((time, app)));
    }
    fn activity(&mut self, _app: u32) -> &mut Activity {
        &mut self.activity
    }
    fn open(&mut self, app: u32, wanted: Wanted) -> u32 {
        let Wanted { direction, size, class, .. } = wanted;
        let flow = self.make_line(Some(app), size);
        self.exchange.open(from(direction), flow, None, size, class.map(|class| class.0));
        flow
    }
    fn connect(&mut self, app: u32, _is_transient: bool, class: Option<Dscp>) -> [u32; 2] {
        let [there, back] = [self.make_line(Some(app), None), self.make_line(Some(app), None)];
        let class = class.map(|class| class.0);
        self.exchange.open(End::Receiver, there, Some(back), None, class);
        [there, back]
    }
    fn make_greedy(&mut self, flow: u32) {
        self.flows[flow as usize].size = None;
    }
    fn stop(&mut self, flow: u32) {
        let sent = self.line(flow).cut();
        self.line(flow).close();
        let state = &mut self.flows[flow as usize];
        (state.goal, state.size) = (sent, Some(sent));
        self.await_bytes(flow, sent);
    }
    fn write(&mut self, flow: u32, bytes: u64) -> u64 {
        let state = &mut self.flows[flow as usize];
        state.goal += bytes;
        let goal = state.goal;
        self.line(flow).supply(bytes);
        self.await_bytes(flow, goal);
        goal
    }
    fn expect(&mut self, flow: u32, bytes: u64) {
        self.await_bytes(flow, bytes);
    }
    fn take_back(&mut self, flow: u32) {
        self.flows[flow as usize].goal = self.line(flow).cut();
    }
    fn sent(&self, flow: u32) -> u64 {
        self.line(flow).written()
    }
    fn received(&self, flow: u32) -> u64 {
        self.line(flow).received()
    }
    fn close(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.app = None;
        match &state.wire {
            Sending::Bytes(line) => line.close(),
            Sending::Datagrams(heard, ..) => heard.tells.store(false, Ordering::SeqCst),
        }
    }
    fn datagrams(
        &mut self,
        app: u32,
        direction: Direction,
        tells: bool,
        class: Option<Dscp>,
    ) -> u32 {
        self.apps[app as usize].made += 1;
        let (stage, group) = (&self.exchange.stage, self.exchange.group);
        let class = class.unwrap_or(stage.group(group).class).0;
        let socket = match socket(stage, group, from(direction), class) {
            Ok(socket) => socket,
            Err(error) => panic!("a socket for datagrams: {error}"),
        };
        let book = stage.books().open_datagrams(group, self.now);
        let heard = Arc::new(Heard { book, tells: AtomicBool::new(tells) });
        let flow = self.exchange.add(Wire::Datagrams(Arc::clone(&heard)));
        let wire = Sending::Datagrams(heard, socket, Vec::new());
        let (app, start) = (Some(app), self.now);
        let (is_alone, size, goal, expects) = (false, None, 0, None);
        self.flows.push(Flow { app, is_alone, start, size, goal, expects, wire });
        flow
    }
    fn send_datagram(&mut self, flow: u32, size: u32) {
        let stage = &self.exchange.stage;
        let Sending::Datagrams(heard, socket, bytes) = &mut self.flows[flow as usize].wire else {
            return;
        };
        let payload = (size.saturating_sub(HEADERS) as usize).max(DATAGRAM_HEAD);
        bytes.resize(payload, 0);
        let head = [u64::from(flow), self.now.as_nanos()].map(u64::to_le_bytes).concat();
        bytes[..DATAGRAM_HEAD].copy_from_slice(&head);
        stage.books().datagram_sent(heard.book, payload as u32 + HEADERS);
        // A full queue of the kernel loses it, as a full queue anywhere.
        let _ = socket.send(bytes);
    }
    fn spawn(&mut self, app: u32, make: Make<'_>) {
        let slot = &mut self.apps[app as usize];
        slot.made += 1;
        let name = format!("{}.{}", slot.name, slot.made - 1);
        let stage = Arc::clone(&self.exchange.stage);
        let app = make(&|key| stage.stream(&format!("flows.{name}.workload.{key}")));
        let app = self.place(app, name);
        self.tell(app, |app, cx| app.start(cx));
    }
    fn end(&mut self, app: u32) {
        self.apps[app as usize].has_ended = true;
    }
}

/// The host from which data go.
fn from(direction: Direction) -> End {
    match direction {
        Direction::Forward => End::Sender,
        Direction::Backward => End::Receiver,
    }
}

/// A socket at a host for datagrams to the other.
fn socket(stage: &Stage, group: usize, from: End, class: u8) -> io::Result<UdpSocket> {
    let to = if from == End::Sender { End::Receiver } else { End::Sender };
    stage.enter(group, from)?;
    let socket = UdpSocket::bind((*stage.address(group, from).ip(), 0))?;
    socket.connect(stage.address(group, to))?;
    set_class(&socket, class)?;
    Ok(socket)
}
