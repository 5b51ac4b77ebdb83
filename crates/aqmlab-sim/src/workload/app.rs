//! Applications: what a workload makes for each member of a group, what it
//! can ask of its [`Host`], and what it is told.
//!
//! An application knows neither how its packets travel nor what time it is
//! but by asking: the simulator is such a host, in virtual time.

use aqmlab_core::{Span, Stream, Time};

pub use crate::endpoints::Direction;
use crate::endpoints::{Dscp, Volume};
use crate::network::probe::TimeHistogram;
use crate::workload::quantities::{Quantity, Scores};

/// An application: it opens flows, and is told what becomes of them.
pub trait App: Send {
    /// The application begins.
    fn start(&mut self, cx: &mut Context);
    /// The time of [`Context::wake_at`] has come.
    fn on_timer(&mut self, _cx: &mut Context) {}
    /// A connection's opener has the answer to its SYN.
    fn on_connected(&mut self, _flow: u32, _cx: &mut Context) {}
    /// All bytes of a flow have arrived, or all that were written to it, or as
    /// many as [`Context::expect`] said.
    fn on_received(&mut self, _flow: u32, _cx: &mut Context) {}
    /// A datagram has arrived that was sent at `sent`; of the copies that links make only the first
    /// is reported.
    fn on_datagram(&mut self, _flow: u32, _sent: Time, _cx: &mut Context) {}
    /// Numbers that sum up the application at `now`, by name: their means over
    /// the group are reported.
    fn report(&self, _now: Time, _see: &mut dyn FnMut(&'static str, f64)) {}
    /// Direction of the data that [`report`](App::report) is about; `None` if it is about both.
    fn direction(&self) -> Option<Direction> {
        None
    }
    /// The warm-up is over: what is reported counts from now on. A test with a beginning of its
    /// own leaves it as it is.
    fn restart(&mut self, _now: Time) {}
}

/// Gives random streams by name.
pub type Streams<'a> = dyn Fn(&str) -> Stream + 'a;

/// Makes an application, which asks for its streams by name.
pub type Make<'a> = Box<dyn FnOnce(&Streams<'_>) -> Box<dyn App> + 'a>;

/// What has become of a group's applications.
#[derive(Default)]
pub struct Activity {
    /// Flows, requests or whatever the workload counts.
    pub started: u64,
    /// Those that came to their end.
    pub completed: u64,
    /// Bytes of what was completed.
    pub bytes: u64,
    /// Traffic of flows whose places others have taken, by [`Direction`].
    pub gone: [Volume; 2],
    /// Times by quantity.
    pub times: Vec<(Quantity, TimeHistogram)>,
    /// Numbers of the applications that have ended.
    pub scores: Scores,
}

impl Activity {
    /// Records a time under a name.
    pub fn record(&mut self, name: &'static str, time: Span) {
        self.record_of(Quantity::of(name), time);
    }

    /// Records the one-way delay of a packet.
    pub fn record_delay(&mut self, direction: Direction, delay: Span) {
        self.record_of(Quantity::delay(direction), delay);
    }

    fn record_of(&mut self, quantity: Quantity, time: Span) {
        let place = match self.times.iter().position(|(known, _)| *known == quantity) {
            Some(place) => place,
            None => {
                self.times.push((quantity, TimeHistogram::new()));
                self.times.len() - 1
            }
        };
        self.times[place].1.note(time);
    }
}

/// What a host opens for an application.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Which way the data go.
    pub direction: Direction,
    /// Bytes to transfer; `None` for what is written.
    pub size: Option<u64>,
    /// Whether it comes and goes: another may have its number afterwards.
    pub is_transient: bool,
    /// The class of service; `None`: the group's.
    pub class: Option<Dscp>,
}

/// Who runs applications, each of which has a number. Nothing that an
/// application asks for tells it something before it returns.
pub trait Host {
    /// The time.
    fn now(&self) -> Time;
    /// Asks for [`App::on_timer`], in place of what was asked for.
    fn wake_at(&mut self, app: u32, time: Time);
    /// What is recorded of the application's group.
    fn activity(&mut self, app: u32) -> &mut Activity;
    /// Opens a connection that carries data one way.
    fn open(&mut self, app: u32, wanted: Wanted) -> u32;
    /// Opens a connection that carries data both ways: the flow from the client, which opens
    /// it, to the server, and that from there.
    fn connect(&mut self, app: u32, is_transient: bool, class: Option<Dscp>) -> [u32; 2];
    /// Has a connection always have something to send, until it is [stopped](Host::stop).
    fn make_greedy(&mut self, flow: u32);
    /// Nothing new is sent over a greedy connection, which this ends.
    fn stop(&mut self, flow: u32);
    /// Writes to a connection; how many bytes were written so far.
    fn write(&mut self, flow: u32, bytes: u64) -> u64;
    /// Asks for [`App::on_received`] when so many bytes have arrived.
    fn expect(&mut self, flow: u32, bytes: u64);
    /// Takes back what was written and is not sent.
    fn take_back(&mut self, flow: u32);
    /// Bytes that have been sent.
    fn sent(&self, flow: u32) -> u64;
    /// Bytes that have arrived without a gap.
    fn received(&self, flow: u32) -> u64;
    /// Bytes that have arrived, each counted once, whether in order or not.
    fn arrived(&self, flow: u32) -> u64;
    /// Nothing more will be written, or be told of datagrams.
    fn close(&mut self, flow: u32);
    /// Opens a flow of datagrams; with `tells`, every arrival is told.
    fn datagrams(
        &mut self,
        app: u32,
        direction: Direction,
        tells: bool,
        class: Option<Dscp>,
    ) -> u32;
    /// Sends a datagram of this size on the wire.
    fn send_datagram(&mut self, flow: u32, size: u32);
    /// Starts another application of the same member of the group.
    fn spawn(&mut self, app: u32, make: Make<'_>);
    /// The application is done: it is told nothing more.
    fn end(&mut self, app: u32);
}

/// More bytes than any run can send.
pub const ENDLESS: u64 = 1 << 50;

/// The run as an application sees it.
pub struct Context<'a> {
    host: &'a mut dyn Host,
    app: u32,
    /// When the timer was due of which it is told, if that is not now.
    due: Option<Time>,
    /// The class of service of the flows made next; `None`: the group's.
    pub class: Option<Dscp>,
}

impl<'a> Context<'a> {
    /// That of the application of this number.
    pub fn new(host: &'a mut dyn Host, app: u32) -> Self {
        Context { host, app, due: None, class: None }
    }
    /// That of an application which is told of its timer after it was due.
    pub fn late(host: &'a mut dyn Host, app: u32, due: Time) -> Self {
        Context { due: Some(due), ..Context::new(host, app) }
    }
    /// The time.
    pub fn now(&self) -> Time {
        self.host.now()
    }
    /// Asks for [`App::on_timer`] at `time`, in place of what was asked for.
    pub fn wake_at(&mut self, time: Time) {
        self.host.wake_at(self.app, time);
    }
    /// Asks for [`App::on_timer`] so long after now, or after this timer was due: where a clock
    /// tells of timers late, the delays of a sequence of them do not add up.
    pub fn wake_after(&mut self, gap: Span) {
        let from = self.due.unwrap_or_else(|| self.now());
        self.wake_at(from + gap);
    }
    /// What is recorded of the group.
    pub fn activity(&mut self) -> &mut Activity {
        self.host.activity(self.app)
    }
    fn open(&mut self, direction: Direction, size: Option<u64>, is_transient: bool) -> u32 {
        self.host.open(self.app, Wanted { direction, size, is_transient, class: self.class })
    }
    /// Transfers `size` bytes over a connection of their own.
    pub fn transfer(&mut self, size: u64) -> u32 {
        self.open(Direction::Forward, Some(size), true)
    }
    /// A transfer that always has something to send, until it is stopped.
    pub fn greedy(&mut self) -> u32 {
        let flow = self.transfer(ENDLESS);
        self.host.make_greedy(flow);
        flow
    }
    /// Nothing new is sent over a greedy connection, which this ends; [`App::on_received`] follows when all that was has
    /// arrived (maybe at once).
    pub fn stop(&mut self, flow: u32) {
        self.host.stop(flow);
    }
    /// A connection for what is written one way, that stays to the end.
    pub fn stream(&mut self, direction: Direction) -> u32 {
        self.open(direction, None, false)
    }
    /// A connection for what is written both ways, as two flows: from the
    /// client, which opens it, to the server, and back along the group's
    /// `path`.
    pub fn connect(&mut self, is_transient: bool) -> [u32; 2] {
        self.host.connect(self.app, is_transient, self.class)
    }
    /// Writes to a connection; [`App::on_received`] follows when the bytes
    /// have arrived. Returns how many were written so far.
    pub fn write(&mut self, flow: u32, bytes: u64) -> u64 {
        self.host.write(flow, bytes)
    }
    /// Asks for [`App::on_received`] when this many bytes of those written
    /// have arrived (more than have by now), in place of what was asked for.
    pub fn expect(&mut self, flow: u32, bytes: u64) {
        self.host.expect(flow, bytes);
    }
    /// Writes more than any run can send: see [`Context::take_back`].
    pub fn fill(&mut self, flow: u32) {
        self.host.write(flow, ENDLESS);
    }
    /// Takes back what was written and is not sent, for good.
    pub fn take_back(&mut self, flow: u32) {
        self.host.take_back(flow);
    }
    /// Bytes of a flow that have been sent: what is put into a flow that was
    /// filled follows them.
    pub fn sent(&self, flow: u32) -> u64 {
        self.host.sent(flow)
    }
    /// Bytes of a flow that have arrived without a gap: what its application has.
    pub fn received(&self, flow: u32) -> u64 {
        self.host.received(flow)
    }
    /// Bytes of a flow that have arrived, each counted once, whether in order or not: what its
    /// goodput consists of.
    pub fn arrived(&self, flow: u32) -> u64 {
        self.host.arrived(flow)
    }
    /// Nothing more will be written: the flow goes when all is acknowledged. Of
    /// a connection that is being opened both flows have to be closed, that of
    /// the client first. Of a flow of datagrams nothing more is told.
    pub fn close(&mut self, flow: u32) {
        self.host.close(flow);
    }
    /// Starts another application of the same member of the group.
    /// It is given its streams by name.
    pub fn spawn(&mut self, make: impl FnOnce(&Streams<'_>) -> Box<dyn App>) {
        self.host.spawn(self.app, Box::new(make));
    }
    /// A flow of datagrams; with `tells`, every arrival is reported.
    pub fn datagrams(&mut self, direction: Direction, tells: bool) -> u32 {
        self.host.datagrams(self.app, direction, tells, self.class)
    }
    /// Sends a datagram of this size on the wire.
    pub fn send_datagram(&mut self, flow: u32, size: u32) {
        self.host.send_datagram(flow, size);
    }
    /// The application is done: it is told nothing more.
    pub fn end(&mut self) {
        self.host.end(self.app);
    }
}
