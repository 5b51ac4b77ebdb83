//! Interface of applications: requests to their [`Host`], and notifications from it.
//!
//! An application learns the time and the fate of its packets from its host only. The simulator is
//! such a host, in virtual time.

use std::ops::{Deref, DerefMut};

use aqmlab_core::{Span, Stream, Time, cloneable};

pub use crate::endpoints::Direction;
use crate::endpoints::{Dscp, Volume};
use crate::network::probe::TimeHistogram;
use crate::workload::quantities::{Quantity, Scores};

cloneable!(pub trait CloneApp of App);

/// Application: opens flows, and receives notifications about them.
pub trait App: CloneApp + Send {
    /// Starts the application.
    fn start(&mut self, cx: &mut Context);
    /// Called at the time set by [`Context::wake_at`].
    fn on_timer(&mut self, _cx: &mut Context) {}
    /// Called when the opener of a connection receives the answer to its SYN.
    fn on_connected(&mut self, _flow: u32, _cx: &mut Context) {}
    /// Called when all bytes of a flow, all written bytes, or the number set by [`Host::expect`]
    /// have arrived.
    fn on_received(&mut self, _flow: u32, _cx: &mut Context) {}
    /// Called when a datagram arrives that was sent at `sent`; duplicates are not reported.
    fn on_datagram(&mut self, _flow: u32, _sent: Time, _cx: &mut Context) {}
    /// Reports scores of the application at `now`, by name. Results contain their means over the
    /// group.
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.score(self.tally(now), see);
    }
    /// Returns the sums at `now` that [`score`](App::score) needs; an application without any
    /// implements [`report`](App::report).
    fn tally(&self, _now: Time) -> Tally {
        Tally::default()
    }
    /// Reports the scores of a tally, or of the difference of two: those of the time between them.
    fn score(&self, _tally: Tally, _see: &mut dyn FnMut(&'static str, f64)) {}
    /// Returns whether playback has started; true for applications that play nothing.
    fn has_begun(&self) -> bool {
        true
    }
    /// Returns the direction of the data that [`report`](App::report) refers to; `None`: both.
    fn direction(&self) -> Option<Direction> {
        None
    }
    /// Ends the warm-up: reported numbers count from now on. A test with its own start ignores
    /// this.
    fn restart(&mut self, _now: Time) {}
}

/// Sums of an application since the start of its measurements.
pub type Tally = [f64; 4];

/// Source of random streams by name.
pub type Streams<'a> = dyn Fn(&str) -> Stream + 'a;

/// Constructor of an application, which requests its streams by name.
pub type Make<'a> = Box<dyn FnOnce(&Streams<'_>) -> Box<dyn App> + 'a>;

/// Counters and results of a group's applications.
#[derive(Clone, Default)]
pub struct Activity {
    /// Flows, requests or other items counted by the workload.
    pub started: u64,
    /// Number of completed items.
    pub completed: u64,
    /// Bytes of completed items.
    pub bytes: u64,
    /// Traffic of flows whose slots were reused, by [`Direction`].
    pub gone: [Volume; 2],
    /// Times by quantity.
    pub times: Vec<(Quantity, TimeHistogram)>,
    /// Scores of ended applications.
    pub scores: Scores,
}

impl Activity {
    /// Counts a completed item, and records its time under a name.
    pub fn complete(&mut self, bytes: u64, name: &'static str, time: Span) {
        self.completed += 1;
        self.bytes += bytes;
        self.record(name, time);
    }

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

/// Flow requested by an application.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Direction of the data.
    pub direction: Direction,
    /// Bytes to transfer; `None`: the bytes written.
    pub size: Option<u64>,
    /// True if the flow is short-lived, so that its number may be reused.
    pub is_transient: bool,
    /// Service class; `None`: that of the group.
    pub class: Option<Dscp>,
}

/// Runs applications, each identified by a number. Requests of an application cause no notification
/// before they return.
pub trait Host {
    /// The time.
    fn now(&self) -> Time;
    /// Requests [`App::on_timer`] at `time`, which replaces an earlier request.
    fn wake_at(&mut self, app: u32, time: Time);
    /// Returns the counters of the application's group.
    fn activity(&mut self, app: u32) -> &mut Activity;
    /// Opens a connection that carries data in one direction.
    fn open(&mut self, app: u32, wanted: Wanted) -> u32;
    /// Opens a connection that carries data in both directions. Returns the flow from the client,
    /// which opens it, to the server, and the flow from the server.
    fn connect(&mut self, app: u32, is_transient: bool, class: Option<Dscp>) -> [u32; 2];
    /// Makes a connection greedy: it always has data to send, until it is [stopped](Host::stop).
    fn make_greedy(&mut self, flow: u32);
    /// Stops new data of a greedy connection, which ends it. [`App::on_received`] follows when all
    /// sent data has arrived (possibly at once).
    fn stop(&mut self, flow: u32);
    /// Writes to a connection. [`App::on_received`] follows when the bytes have arrived. Returns
    /// the total of bytes written.
    fn write(&mut self, flow: u32, bytes: u64) -> u64;
    /// Requests [`App::on_received`] when `bytes` of the written bytes have arrived (more than have
    /// arrived now), which replaces an earlier request.
    fn expect(&mut self, flow: u32, bytes: u64);
    /// Discards written data that is not sent.
    fn take_back(&mut self, flow: u32);
    /// Returns the bytes of a flow that have been sent. Data written to a filled flow follows them.
    fn sent(&self, flow: u32) -> u64;
    /// Returns the bytes of a flow that have arrived without a gap, available to its application.
    fn received(&self, flow: u32) -> u64;
    /// Returns the bytes of a flow that have arrived, each counted once, in order or not: the basis
    /// of goodput.
    fn arrived(&self, flow: u32) -> u64;
    /// Returns the bytes of write `index` that have arrived without a gap; `None` if all data is
    /// one stream.
    fn arrived_of(&self, _flow: u32, _index: u64) -> Option<u64> {
        None
    }
    /// Closes a flow: writing ends, and the flow ends when all data is acknowledged. For a connection
    /// that is being opened, close both flows, the client's first. A closed flow of datagrams stops
    /// reporting arrivals.
    fn close(&mut self, flow: u32);
    /// Opens a flow of datagrams; with `tells`, every arrival is reported.
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
    /// Ends the application and its notifications.
    fn end(&mut self, app: u32);
}

/// More bytes than any run can transfer.
pub const ENDLESS: u64 = 1 << 50;

/// Interface of an application to its host: the methods of [`Host`] for flows, and requests for this
/// application.
pub struct Context<'a> {
    host: &'a mut dyn Host,
    app: u32,
    /// Due time of the timer being reported, if earlier than now.
    due: Option<Time>,
    /// Service class of flows created next; `None`: that of the group.
    pub class: Option<Dscp>,
}

impl<'a> Context<'a> {
    /// Creates the context of an application.
    pub fn new(host: &'a mut dyn Host, app: u32) -> Self {
        Context { host, app, due: None, class: None }
    }
    /// Creates the context of an application that is notified of its timer late.
    pub fn late(host: &'a mut dyn Host, app: u32, due: Time) -> Self {
        Context { due: Some(due), ..Context::new(host, app) }
    }
    /// Requests [`App::on_timer`] at `time`, which replaces an earlier request.
    pub fn wake_at(&mut self, time: Time) {
        self.host.wake_at(self.app, time);
    }
    /// Requests [`App::on_timer`] after `gap` from now, or from the due time of the current timer:
    /// with a clock that reports timers late, the delays of consecutive timers do not add up.
    pub fn wake_after(&mut self, gap: Span) {
        let from = self.due.unwrap_or_else(|| self.now());
        self.wake_at(from + gap);
    }
    /// Returns the counters of the group.
    pub fn activity(&mut self) -> &mut Activity {
        self.host.activity(self.app)
    }
    fn open(&mut self, direction: Direction, size: Option<u64>, is_transient: bool) -> u32 {
        self.host.open(self.app, Wanted { direction, size, is_transient, class: self.class })
    }
    /// Transfers `size` bytes over a new connection.
    pub fn transfer(&mut self, size: u64) -> u32 {
        self.open(Direction::Forward, Some(size), true)
    }
    /// Starts a transfer that always has data to send, until it is stopped.
    pub fn greedy(&mut self) -> u32 {
        let flow = self.transfer(ENDLESS);
        self.host.make_greedy(flow);
        flow
    }
    /// Opens a connection that carries written data in one direction until the end of the run.
    pub fn stream(&mut self, direction: Direction) -> u32 {
        self.open(direction, None, false)
    }
    /// Opens a connection that carries written data in both directions. Returns two flows: from the
    /// client, which opens it, to the server, and from the server along the group's `path`.
    pub fn connect(&mut self, is_transient: bool) -> [u32; 2] {
        self.host.connect(self.app, is_transient, self.class)
    }
    /// Writes more than any run can transfer: see [`Host::take_back`].
    pub fn fill(&mut self, flow: u32) {
        self.host.write(flow, ENDLESS);
    }
    /// Starts another application of the same group member, which requests its streams by name.
    pub fn spawn(&mut self, make: impl FnOnce(&Streams<'_>) -> Box<dyn App>) {
        self.host.spawn(self.app, Box::new(make));
    }
    /// Opens a flow of datagrams; with `tells`, every arrival is reported.
    pub fn datagrams(&mut self, direction: Direction, tells: bool) -> u32 {
        self.host.datagrams(self.app, direction, tells, self.class)
    }
    /// Ends the application and its notifications.
    pub fn end(&mut self) {
        self.host.end(self.app);
    }
}

impl<'a> Deref for Context<'a> {
    type Target = dyn Host + 'a;
    fn deref(&self) -> &Self::Target {
        self.host
    }
}

impl DerefMut for Context<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.host
    }
}
