//! Host of the simulator's applications with real sockets: one thread for each group.
//!
//! # Model
//! A workload is a state machine that requests connections, datagrams and timers from its [`Host`],
//! and receives notifications. This host has sockets in the two network namespaces of the group,
//! and uses the monotonic clock. Both ends of a connection are in this process: bytes written at
//! one end are counted when the other end reads them. The sender opens a connection that carries
//! data in one direction; the client, which is on the receivers' host, opens a connection that
//! carries data in both. A member of a group without applications (`bulk`) is one connection
//! without notifications.
//!
//! # Differences from the simulator
//! 1. Data written and not yet sent cannot be discarded completely: the kernel buffers up to
//!    [`UNSENT`] bytes of it.
//! 2. With data in both directions, a flow finishes when its last byte is read, not when that byte
//!    is acknowledged.
//! 3. A datagram has at least 44 bytes on the wire.
//! 4. Received data are counted when read, in order: the kernel does not report bytes that wait
//!    behind a gap.

mod sockets;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use aqmlab_core::{Bytes, Stream, Time};
use aqmlab_sim::GroupResult;
use aqmlab_sim::endpoints::Dscp;
use aqmlab_sim::workload::app::{Activity, App, Context, Direction, ENDLESS, Host, Make, Wanted};
use aqmlab_sim::workload::quantities::worse_times_first;

use super::play::{End, Stage};
use crate::sys::epoll::{Epoll, parts, raise_descriptors, token};
use crate::sys::socket::set_traffic_class;
use crate::sys::tcp::set_control;

/// Limit of unsent bytes in the kernel, for connections whose writer may discard unsent data.
pub const UNSENT: u32 = 16 << 10;
/// Size of a write or read.
const CHUNK: usize = 128 << 10;
/// Chunks, datagrams or timers per turn.
const TURN: usize = 64;
/// Bytes of the IPv4 and UDP headers, and the header of a datagram: flow, number in the flow,
/// sending time.
const HEADERS: u32 = 28;
const HEAD: usize = 16;
/// Limit of descriptors; a connection needs two.
const DESCRIPTORS: u64 = 1 << 18;
/// Interval of checks for the end of the run.
const LOOK: Duration = Duration::from_millis(20);

/// Kinds of descriptors.
const LISTENER: u32 = 0;
const DATAGRAMS: u32 = 1;
const CLIENT: u32 = 2;
const SERVER: u32 = 3;

struct Slot {
    app: Option<Box<dyn App>>,
    member: u64,
    name: String,
    /// Number of flows and applications created.
    made: u64,
    wake_at: Option<Time>,
    has_ended: bool,
}

/// One direction of a connection, or a flow of datagrams.
struct Flow {
    /// Application that owns the flow; `None` in a group without applications.
    app: Option<u32>,
    /// True until it is closed; closed flows are neither reported nor recorded.
    tells: bool,
    start: Time,
    size: Option<u64>,
    /// True if the application may write more.
    is_open: bool,
    goal: u64,
    written: u64,
    received: u64,
    expects: u64,
    is_awaited: bool,
    /// Carrier of the data.
    carrier: Carrier,
    direction: Direction,
    row: Option<usize>,
}

#[derive(Clone, Copy)]
enum Carrier {
    /// Index of the connection, and whether its client writes.
    Stream(usize, bool),
    Socket(usize),
}

struct HostConnection {
    /// Sockets, until both sides have ended.
    client: Option<Arc<TcpStream>>,
    server: Option<Arc<TcpStream>>,
    is_connected: bool,
    /// Flows written by the client and by the server.
    flows: [Option<u32>; 2],
    /// True if the stream read by the client, or by the server, has ended.
    ended: [bool; 2],
    /// DSCP and ECN field.
    class: u8,
}

/// All applications of a group.
pub struct Apps {
    stage: Arc<Stage>,
    group: usize,
    /// Time as seen by applications; constant during a notification.
    now: Time,
    slots: Vec<Slot>,
    flows: Vec<Flow>,
    connections: Vec<HostConnection>,
    /// Connections not accepted yet, by opener and port.
    unaccepted: HashMap<(bool, u16), usize>,
    listeners: Vec<TcpListener>,
    /// Receiving datagram sockets by end, then sending ones.
    receivers: Vec<UdpSocket>,
    senders: Vec<UdpSocket>,
    epoll: Epoll,
    timers: BTreeSet<(Time, u32)>,
    heard: VecDeque<u32>,
    /// Descriptors that may still be ready after their turn.
    again: Vec<u64>,
    activity: Activity,
    room: Vec<u8>,
    /// Number of running applications of each member.
    alive: Vec<u64>,
}

/// Runs the applications of a group, starting at `starts`, in a new thread.
pub fn play(stage: &Arc<Stage>, group: usize, starts: Vec<Time>) -> io::Result<()> {
    let mut apps = Apps::new(stage, group, starts.len())?;
    stage.stats().awaited += 1;
    stage.spawn(move |stage| {
        let done = apps.run(starts);
        let played = apps.played();
        let mut stats = stage.stats();
        stats.groups[group] = played;
        stats.awaited -= 1;
        drop(stats);
        stage.tell();
        done
    });
    Ok(())
}

impl Apps {
    fn new(stage: &Arc<Stage>, group: usize, members: usize) -> io::Result<Self> {
        raise_descriptors(DESCRIPTORS);
        let epoll = Epoll::new()?;
        let (mut listeners, mut receivers) = (Vec::new(), Vec::new());
        for (number, end) in [(0, End::Sender), (1, End::Receiver)] {
            stage.enter(group, end)?;
            let listener = TcpListener::bind(stage.address(group, end))?;
            set_control(&listener, &stage.controls[group])?;
            listener.set_nonblocking(true)?;
            epoll.add(listener.as_fd(), token(LISTENER, number))?;
            let receiver = UdpSocket::bind(stage.address(group, end))?;
            receiver.set_nonblocking(true)?;
            epoll.add(receiver.as_fd(), token(DATAGRAMS, number))?;
            listeners.push(listener);
            receivers.push(receiver);
        }
        Ok(Apps {
            stage: Arc::clone(stage),
            group,
            now: Time::ZERO,
            slots: Vec::new(),
            flows: Vec::new(),
            connections: Vec::new(),
            unaccepted: HashMap::new(),
            listeners,
            receivers,
            senders: Vec::new(),
            epoll,
            timers: BTreeSet::new(),
            heard: VecDeque::new(),
            again: Vec::new(),
            activity: Activity::default(),
            room: vec![0; CHUNK],
            alive: vec![0; members],
        })
    }

    /// Runs until the end of the run.
    fn run(&mut self, starts: Vec<Time>) -> io::Result<()> {
        let mut starts: VecDeque<(Time, u64)> = starts.into_iter().zip(0..).collect();
        starts.make_contiguous().sort_unstable();
        let mut warmup = Some(self.stage.warmup).filter(|end| *end > Time::ZERO);
        let mut found = Vec::new();
        while !self.stage.is_over() {
            let now = self.look();
            if warmup.is_some_and(|end| now >= end) {
                warmup = None;
                self.restart(now);
            }
            while starts.front().is_some_and(|(start, _)| *start <= now)
                && let Some((_, member)) = starts.pop_front()
            {
                self.begin(member);
            }
            self.fire();
            while let Some(flow) = self.heard.pop_front() {
                self.look();
                self.hear(flow);
            }
            let first = |times: Option<&(Time, _)>| times.map(|(time, _)| *time);
            let next = [self.timers.first().map(|(time, _)| *time), first(starts.front()), warmup];
            let next = next.into_iter().flatten().min().unwrap_or(self.stage.end);
            let left = Duration::from_nanos(next.saturating_since(self.stage.now()).as_nanos());
            let most = if self.again.is_empty() { LOOK } else { Duration::ZERO };
            self.epoll.wait(left.min(most), &mut found)?;
            found.append(&mut self.again);
            for event in found.drain(..) {
                self.look();
                let (kind, number) = parts(event);
                let number = number as usize;
                match kind {
                    LISTENER => self.accept(number)?,
                    DATAGRAMS => self.receive(number),
                    CLIENT => self.client(number),
                    SERVER => self.server(number),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Fires due timers.
    fn fire(&mut self) {
        for _ in 0..TURN {
            let Some((time, slot)) = self.timers.first().copied() else { return };
            if time > self.look() {
                return;
            }
            self.timers.pop_first();
            if self.slots[slot as usize].wake_at == Some(time) {
                self.slots[slot as usize].wake_at = None;
                self.tell_late(slot, time, |app, cx| app.on_timer(cx));
            }
        }
    }

    /// Reads the clock.
    fn look(&mut self) -> Time {
        self.now = self.stage.now();
        self.now
    }

    /// Ends the warm-up.
    fn restart(&mut self, now: Time) {
        self.activity = Activity::default();
        self.slots.iter_mut().filter_map(|slot| slot.app.as_mut()).for_each(|app| app.restart(now));
    }

    /// Returns the results of the applications.
    fn played(&self) -> GroupResult {
        let mut scores = self.activity.scores.clone();
        let apps = self.slots.iter().filter_map(|slot| slot.app.as_deref());
        apps.for_each(|app| scores.add(app, self.now));
        let Activity { started, completed, bytes, times, .. } = &self.activity;
        let mut summaries: Vec<_> =
            times.iter().map(|(quantity, times)| (*quantity, times.summary())).collect();
        worse_times_first(&mut summaries);
        GroupResult {
            started: *started,
            completed: *completed,
            bytes: *bytes,
            times: summaries,
            values: scores.means(),
            ..GroupResult::default()
        }
    }

    fn streams(&self, name: String) -> impl Fn(&str) -> Stream + use<> {
        let stage = Arc::clone(&self.stage);
        move |key| stage.stream(&format!("flows.{name}.workload.{key}"))
    }

    /// Starts a member of the group.
    fn begin(&mut self, member: u64) {
        let config = self.stage.group(self.group);
        let name = format!("{}.{member}", config.name);
        if let Some(app) = config.workload.app(&self.streams(name.clone())) {
            return self.place(app, member, name);
        }
        let size = config.params.size.map(Bytes::get);
        self.activity.started += 1;
        let flow = self.connection(None, End::Sender, Some(size.unwrap_or(ENDLESS)), None);
        self.set_size(flow, size);
    }

    fn place(&mut self, app: Box<dyn App>, member: u64, name: String) {
        let app = Some(app);
        self.slots.push(Slot { app, member, name, made: 0, wake_at: None, has_ended: false });
        self.alive[member as usize] += 1;
        let slot = self.slots.len() as u32 - 1;
        self.tell(slot, |app, cx| app.start(cx));
    }

    fn tell(&mut self, slot: u32, what: impl FnOnce(&mut dyn App, &mut Context)) {
        self.tell_late(slot, self.now, what);
    }

    /// Notifies an application of an event that was due at `due`.
    fn tell_late(&mut self, slot: u32, due: Time, what: impl FnOnce(&mut dyn App, &mut Context)) {
        // Ended applications receive no notifications.
        let Some(mut app) = self.slots[slot as usize].app.take() else { return };
        what(&mut *app, &mut Context::late(self, slot, due));
        let place = &mut self.slots[slot as usize];
        if !place.has_ended {
            place.app = Some(app);
            return;
        }
        place.wake_at = None;
        self.activity.scores.add(&*app, self.now);
        let alive = &mut self.alive[place.member as usize];
        *alive -= 1;
        if *alive == 0 {
            self.stage.member_done(self.group);
        }
    }

    fn name_next(&mut self, app: u32) -> String {
        let slot = &mut self.slots[app as usize];
        slot.made += 1;
        format!("{}.{}", slot.name, slot.made - 1)
    }

    /// Notifies an application that the awaited bytes have arrived.
    fn hear(&mut self, number: u32) {
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        if !flow.is_awaited || flow.received < flow.expects {
            return;
        }
        flow.is_awaited = false;
        if let Some(size) = flow.size {
            self.activity.completed += 1;
            self.activity.bytes += size;
            self.activity.record("completion", now - flow.start);
        }
        if let Some(app) = flow.app.filter(|_| flow.tells) {
            self.tell(app, |app, cx| app.on_received(number, cx));
        }
    }

    /// Sets the total size of a flow, as far as it is known.
    fn set_size(&mut self, flow: u32, size: Option<u64>) {
        let state = &mut self.flows[flow as usize];
        state.size = size;
        if let Some(row) = state.row {
            self.stage.stats().set_size(row, size);
        }
    }

    /// Returns the DSCP and ECN field of this service class, or of that of the group.
    fn class_of(&self, class: Option<Dscp>) -> u8 {
        class.unwrap_or(self.stage.group(self.group).params.class).0 << 2
    }

    fn add_flow(
        &mut self,
        app: Option<u32>,
        size: Option<u64>,
        carrier: Carrier,
        direction: Direction,
    ) -> u32 {
        let goal = size.unwrap_or(0);
        self.flows.push(Flow {
            app,
            tells: true,
            start: self.now,
            size,
            is_open: size.is_none(),
            goal,
            written: 0,
            received: 0,
            expects: goal,
            is_awaited: size.is_some(),
            carrier,
            direction,
            row: None,
        });
        self.flows.len() as u32 - 1
    }
}

impl Host for Apps {
    fn now(&self) -> Time {
        self.now
    }
    fn wake_at(&mut self, app: u32, time: Time) {
        self.slots[app as usize].wake_at = Some(time);
        self.timers.insert((time, app));
    }
    fn activity(&mut self, _app: u32) -> &mut Activity {
        &mut self.activity
    }
    fn open(&mut self, app: u32, wanted: Wanted) -> u32 {
        self.name_next(app);
        let opener = match wanted.direction {
            Direction::Forward => End::Sender,
            Direction::Backward => End::Receiver,
        };
        self.connection(Some(app), opener, wanted.size, wanted.class)
    }
    fn connect(&mut self, app: u32, _is_transient: bool, class: Option<Dscp>) -> [u32; 2] {
        self.name_next(app);
        self.name_next(app);
        let to_server = self.connection(Some(app), End::Receiver, None, class);
        let Carrier::Stream(number, _) = self.flows[to_server as usize].carrier else {
            return [to_server, to_server];
        };
        let to_client =
            self.add_flow(Some(app), None, Carrier::Stream(number, false), Direction::Forward);
        if let Some(connection) = self.connections.get_mut(number) {
            connection.flows[1] = Some(to_client);
        }
        [to_server, to_client]
    }
    fn make_greedy(&mut self, flow: u32) {
        self.set_size(flow, None);
        self.keep_unsent(flow);
    }
    fn stop(&mut self, flow: u32) {
        self.take_back(flow);
        self.set_size(flow, Some(self.flows[flow as usize].goal));
        let state = &mut self.flows[flow as usize];
        state.expects = state.goal;
        state.is_awaited = true;
        if state.received >= state.goal {
            // Deferred: applications must not be re-entered.
            self.heard.push_back(flow);
        }
        self.pump(flow);
    }
    fn write(&mut self, flow: u32, bytes: u64) -> u64 {
        let state = &mut self.flows[flow as usize];
        state.goal += bytes;
        state.expects = state.goal;
        state.is_awaited = true;
        let written = state.goal;
        self.pump(flow);
        written
    }
    fn expect(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.flows[flow as usize];
        state.expects = bytes;
        state.is_awaited = true;
    }
    fn take_back(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.goal = state.written;
    }
    fn sent(&self, flow: u32) -> u64 {
        self.flows[flow as usize].written
    }
    fn received(&self, flow: u32) -> u64 {
        self.flows[flow as usize].received
    }
    fn arrived(&self, flow: u32) -> u64 {
        self.received(flow)
    }
    fn close(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.tells = false;
        state.is_open = false;
        self.pump(flow);
    }
    fn datagrams(
        &mut self,
        app: u32,
        direction: Direction,
        tells: bool,
        class: Option<Dscp>,
    ) -> u32 {
        self.name_next(app);
        let (from, to) = match direction {
            Direction::Forward => (End::Sender, End::Receiver),
            Direction::Backward => (End::Receiver, End::Sender),
        };
        let open = || -> io::Result<UdpSocket> {
            self.stage.enter(self.group, from)?;
            let socket = UdpSocket::bind((*self.stage.address(self.group, from).ip(), 0))?;
            socket.connect(self.stage.address(self.group, to))?;
            set_traffic_class(&socket, false, self.class_of(class))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let number = self.senders.len();
        match open() {
            Ok(socket) => self.senders.push(socket),
            Err(error) => self.failed(&error),
        }
        let row = self.stage.stats().open_datagrams(self.group, direction, self.now);
        let flow = self.add_flow(Some(app), None, Carrier::Socket(number), direction);
        let state = &mut self.flows[flow as usize];
        (state.row, state.tells) = (Some(row), tells);
        flow
    }
    fn send_datagram(&mut self, flow: u32, size: u32) {
        let state = &self.flows[flow as usize];
        let Carrier::Socket(number) = state.carrier else { return };
        let Some(socket) = self.senders.get(number) else { return };
        let length = (size.saturating_sub(HEADERS) as usize).max(HEAD);
        let bytes = &mut self.room[..length];
        let stats = state.row.map(|row| (row, self.stage.stats()));
        let number =
            stats.map_or(0, |(row, mut stats)| stats.datagram_sent(row, length as u32 + HEADERS));
        bytes[..8].copy_from_slice(&(u64::from(number) << 32 | u64::from(flow)).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.now.as_nanos().to_le_bytes());
        // A datagram that does not fit in the kernel's buffer is lost.
        let _ = socket.send(bytes);
    }
    fn spawn(&mut self, app: u32, make: Make<'_>) {
        let name = self.name_next(app);
        let member = self.slots[app as usize].member;
        let app = make(&self.streams(name.clone()));
        self.place(app, member, name);
    }
    fn end(&mut self, app: u32) {
        self.slots[app as usize].has_ended = true;
    }
}
