//! Flow: two endpoints, and the routes between them.

mod ends;
mod tally;

use std::borrow::Cow;

use aqmlab_core::{Deadline, Ecn, Packet, Span, Time};
use aqmlab_tcp::params::EcnMode;
use aqmlab_tcp::{Receiver, Sender, Stats, TcpParams};

use crate::endpoints::custom::BoxedEnds;
use crate::endpoints::datagrams::{DatagramSink, DatagramSource};
use crate::endpoints::packet::{Arrived, Header, SimPacket, Store};
use crate::endpoints::{
    ConnectionLog, Direction, End, EndpointConfig, EndpointSetup, Source, Volume, tcp,
};
use crate::network::RouteId;
use crate::network::probe::TimeSum;
use ends::Other;
pub(crate) use ends::{Datagrams, Ends, Tcp};

/// Marks a flow without an application.
pub(crate) const NONE: u32 = u32::MAX;
/// Marks a flow of an ended application.
pub(crate) const GONE: u32 = u32::MAX - 1;

/// Bytes are written to a flow only if it has an end for them.
const WRITTEN: &str = "nothing is written to a flow of datagrams";

/// Flow of the simulation.
#[derive(Clone)]
pub(crate) struct Flow {
    /// Group of the scenario, by index.
    pub group: u32,
    pub ends: Ends,
    /// Route from source to sink, and the route back.
    routes: [RouteId; 2],
    /// Bytes to transfer; `None`: no end.
    pub size: Option<u64>,
    pub start: Time,
    /// Time at which the last byte was acknowledged.
    pub finish: Option<Time>,
    /// Time at which the last byte written so far arrived.
    pub all_arrived: Option<Time>,
    /// Application that owns the flow, or [`NONE`].
    pub app: u32,
    /// True if the application may write more.
    pub is_open: bool,
    /// True for a short-lived flow, which has a row in the results only if all flows have.
    pub is_transient: bool,
    /// Direction of the data.
    pub direction: Direction,
    /// Bytes that must arrive: all, or those written so far.
    pub goal: u64,
    /// Number of received bytes at which the application is notified: the goal, or less on request.
    pub expects: u64,
    /// Number of received bytes at which an action follows: [`Opening`], or a notification.
    pub awaited: u64,
    /// Counters at the end of the warm-up, if the flow had started.
    before: Option<Box<tally::Then>>,
    /// Counters when a change stopped the flow.
    stopped: Option<Box<tally::Then>>,
    /// Bytes on the wire that the source sent, including retransmissions.
    pub sent_bytes: u64,
    /// Packets that reached each [`End`].
    pub arrived: [u64; 2],
    /// Other direction of a connection that is being opened.
    pub opening: Option<(u32, Opening)>,
    index: u32,
    /// Number in its group, in the order in which flows are made, as in the tables; not meaningful
    /// for flows of datagrams.
    pub number: u32,
    /// Hashes of the two directions, for queues.
    pub hashes: [u32; 2],
    /// Hosts of source and sink.
    pub hosts: [u32; 2],
    pub class: u8,
    /// One-way delays of data packets, if measured.
    pub delays: Option<TimeSum>,
    timers: [Pending; 2],
}

/// State of opening a connection with data in both directions. Its directions are two flows, which
/// share a handshake: the SYN of the first, its SYN-ACK and the first data after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// The passive side waits for the SYN.
    Listen,
    /// The passive side has received the SYN, and waits for the answer to its SYN-ACK.
    SynReceived,
}

/// Times of a timer's pending events, the next first; limited to the earliest ones. An event may be
/// early, because the deadline has moved: it is then scheduled again. A timer that alternates
/// between near and far deadlines (pacing, retransmission) therefore does not leave an event each
/// time.
#[derive(Clone, Copy)]
struct Pending([Deadline; 3]);

impl Default for Pending {
    fn default() -> Self {
        Pending([Deadline::NEVER; 3])
    }
}

impl Pending {
    /// Returns whether an event must be scheduled: none is pending at or before this time.
    #[inline]
    fn asks_for(&mut self, deadline: Time) -> bool {
        let deadline = Deadline::at(deadline);
        let [first, second, _] = self.0;
        if deadline >= first {
            return false;
        }
        self.0 = [deadline, first, second];
        true
    }
    /// Removes an event that has fired.
    #[inline]
    fn came(&mut self, now: Time) {
        let [first, second, third] = self.0;
        if Deadline::at(now) == first {
            self.0 = [second, third, Deadline::NEVER];
        }
    }
}

/// Setup of a flow.
pub(crate) struct FlowSetup<'a> {
    pub index: u32,
    pub number: u32,
    pub group: u32,
    pub transport: Cow<'a, TcpParams>,
    pub endpoint: &'a EndpointConfig,
    pub routes: [RouteId; 2],
    pub size: Option<u64>,
    pub start: Time,
    pub app: u32,
    pub is_open: bool,
    pub is_transient: bool,
    pub direction: Direction,
    pub hashes: [u32; 2],
    pub seed: u64,
    pub hosts: [u32; 2],
    pub class: u8,
    pub delays: bool,
    pub log: Option<ConnectionLog>,
}

impl FlowSetup<'_> {
    /// Reverses the flow: data use the group's return path.
    pub fn turn(&mut self) {
        self.routes.reverse();
        self.hosts.reverse();
        self.direction = Direction::Backward;
    }

    fn endpoint_setup(&self, size: Option<u64>, is_open: bool) -> EndpointSetup {
        let (mss, header) = (self.transport.mss.get() as u32, self.transport.header.get() as u32);
        EndpointSetup { size, is_open, mss, header, seed: self.seed, log: self.log.clone() }
    }

    fn ends(&self) -> Ends {
        let transport = &*self.transport;
        let (mss, header) = (transport.mss.get(), transport.header.get() as u32);
        if !self.endpoint.is_tcp() {
            let setup = self.endpoint_setup(self.size, self.is_open);
            return Ends::Other(Other::new(self.endpoint.build(&setup)));
        }
        let receiver = Receiver::new(transport);
        Ends::Tcp(Tcp {
            sender: Sender::new(transport, self.size, self.seed),
            usual: receiver.window(),
            receiver,
            header,
            mss,
            has_times: transport.timestamps || self.delays,
            counts_marks: transport.ecn == EcnMode::Accurate,
            ack_ecn: ends::ack_ecn(transport),
        })
    }
}

impl Flow {
    /// Creates a flow of bytes.
    pub fn new(setup: FlowSetup) -> Self {
        let ends = setup.ends();
        Self::with(setup, ends)
    }

    /// Creates a flow of datagrams.
    pub fn datagrams(setup: FlowSetup, tells: bool) -> Self {
        let (source, sink) = (DatagramSource::default(), DatagramSink::default());
        let carrier = setup.endpoint.datagrams(&setup.endpoint_setup(Some(0), true));
        let carrier = carrier.map(|ends| Box::new(Other::new(ends)));
        let ends = Datagrams { source, sink, tells, carrier, carried: Vec::new() };
        Self::with(setup, Ends::Datagrams(ends))
    }

    fn with(setup: FlowSetup, ends: Ends) -> Self {
        let goal = setup.size.unwrap_or(0);
        Flow {
            group: setup.group,
            ends,
            routes: setup.routes,
            size: setup.size.filter(|_| !setup.is_open),
            start: setup.start,
            finish: None,
            all_arrived: None,
            app: setup.app,
            is_open: setup.is_open,
            is_transient: setup.is_transient,
            direction: setup.direction,
            goal,
            expects: goal,
            awaited: if goal > 0 { goal } else { u64::MAX },
            before: None,
            stopped: None,
            sent_bytes: 0,
            arrived: [0; 2],
            opening: None,
            index: setup.index,
            number: setup.number,
            hashes: setup.hashes,
            hosts: setup.hosts,
            class: setup.class,
            delays: setup.delays.then(TimeSum::default),
            timers: [Pending::default(); 2],
        }
    }

    /// Returns whether the flow can be copied, which only ends and controls of other crates and
    /// languages may refuse.
    pub fn is_cloneable(&self) -> bool {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.sender.is_cloneable(),
            ends => ends.pointed().is_none_or(Other::is_cloneable),
        }
    }

    /// Returns whether a packet belongs to this flow, not to a former flow of the slot: their
    /// hashes differ.
    #[inline]
    pub fn owns(&self, packet: &Packet) -> bool {
        packet.flow_hash() == self.hashes[usize::from(packet.to() == End::Source)]
    }

    /// Returns the route of packets from this end.
    #[inline(always)]
    pub fn route(&self, of: End) -> RouteId {
        self.routes[of as usize]
    }

    /// Returns the next packet that one of the ends sends now.
    #[inline(always)]
    pub fn poll(&mut self, of: End, now: Time, store: &mut Store) -> Option<Packet> {
        let (size, ecn, content) = match (&mut self.ends, of) {
            (Ends::Tcp(tcp), End::Source) => {
                let segment = tcp.sender.poll(now)?;
                let (size, ecn) = (tcp.header + segment.len, segment.ecn);
                (size, ecn, store.segment(now, segment, tcp.has_times))
            }
            (Ends::Tcp(tcp), End::Sink) => {
                let ack = tcp.receiver.poll(now)?;
                let size = tcp.header + ack.sack.option_bytes();
                if ack.syn && !ack.ece {
                    tcp.decline_ecn();
                }
                // Accurate ECN reports a SYN-ACK that is not ECN-capable (`capture::connections`).
                let ecn = if ack.syn && tcp.counts_marks { Ecn::NotEct } else { tcp.ack_ecn };
                (size, ecn, store.ack(ack, tcp.usual, tcp.counts_marks))
            }
            (ends, of) => ends.poll_others(of, now, store)?,
        };
        let [source, sink] = self.hosts;
        let (to, hosts) = match of {
            End::Source => {
                self.sent_bytes += u64::from(size);
                (End::Sink, [source, sink])
            }
            End::Sink => (End::Source, [sink, source]),
        };
        let hash = self.hashes[of as usize];
        let header = Header { flow: self.index, hash, hosts, class: self.class, to };
        Some(Packet::sent(header, size, ecn, content))
    }

    /// Handles a packet at the end of its route. Returns, at the source, whether the packet opened
    /// the connection; at the sink of datagrams, whether it is not a duplicate or a connection carries them; at another sink,
    /// whether the flow has a partner.
    #[inline(always)]
    pub fn receive(&mut self, now: Time, packet: Arrived, store: &mut Store) -> bool {
        match (&mut self.ends, packet.to()) {
            (Ends::Tcp(tcp), End::Source) => {
                let is_syn = packet.content().is_syn();
                if let Some(ack) = store.take_ack(packet, tcp.usual) {
                    tcp.sender.on_ack(now, &ack);
                }
                is_syn
            }
            (Ends::Tcp(tcp), End::Sink) => {
                if let Some(segment) = store.take_segment(packet, tcp.header) {
                    tcp.receiver.on_segment(now, &segment);
                }
                false
            }
            (ends, _) => ends.receive_others(now, packet, store),
        }
    }

    /// Records the one-way delay of a data packet before it is received.
    #[inline]
    pub fn delayed(&mut self, now: Time, packet: &Packet, store: &Store) -> Option<Span> {
        let delays = self.delays.as_mut()?;
        let delay = now - store.sent_at(packet.content())?;
        delays.add(delay);
        Some(delay)
    }

    /// Returns the traffic so far.
    pub fn volume(&self) -> Volume {
        Volume { sent: self.sent_bytes, delivered: self.delivered(), arrived: self.arrived }
    }

    /// Returns the bytes of data that arrived, each counted once.
    pub fn delivered(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.receiver.arrived(),
            Ends::Datagrams(datagrams) => datagrams.sink.received_bytes,
            Ends::Other(other) => other.sink.arrived(),
        }
    }

    /// Returns the bytes of write `index` that arrived without a gap; `None` if all data is one
    /// stream.
    pub fn arrived_of(&self, index: u64) -> Option<u64> {
        match &self.ends {
            Ends::Other(other) => other.sink.arrived_of(index),
            Ends::Tcp(_) | Ends::Datagrams(_) => None,
        }
    }

    /// Returns the data packets that the source sent, including retransmissions.
    pub fn sent(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.sender.stats().segments_sent,
            Ends::Datagrams(datagrams) => datagrams.source.sent,
            Ends::Other(other) => other.sent,
        }
    }

    /// Returns the counters of the transport.
    pub fn stats(&self) -> Option<Stats> {
        match &self.ends {
            Ends::Tcp(tcp) => Some(tcp.sender.stats()),
            ends => ends.pointed()?.source.stats(),
        }
    }

    /// Returns the reason of a failed connection.
    pub fn failure(&self) -> Option<String> {
        self.ends.pointed()?.source.failure()
    }

    /// Returns mean (in seconds) and maximum of the one-way delays, if measured.
    pub fn delay_summary(&self) -> Option<(f64, Span)> {
        match &self.ends {
            Ends::Datagrams(Datagrams { sink, .. }) => Some((sink.delay.mean(), sink.delay.max())),
            _ => self.delays.map(|delays| (delays.mean(), delays.max)),
        }
    }

    /// Flow of the other direction of the same connection.
    pub fn partner(&self) -> Option<u32> {
        self.ends.pointed().map(|other| other.partner).filter(|partner| *partner != NONE)
    }

    /// Makes the flow one direction of a connection whose other direction is `partner`. Only the
    /// opening end reports when the connection opens.
    pub fn join(&mut self, ends: BoxedEnds, partner: u32, is_opening: bool) {
        let other = Other { partner, is_connected: !is_opening, ..Other::new(ends) };
        self.ends = Ends::Other(other);
    }

    /// Returns whether the connection opened since the last call.
    pub fn has_connected(&mut self) -> bool {
        match &mut self.ends {
            Ends::Other(other) => other.has_connected(),
            Ends::Tcp(_) | Ends::Datagrams(_) => false,
        }
    }

    /// Returns the ends of a TCP flow.
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.ends {
            Ends::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Returns the ends of a TCP flow for changes.
    pub fn tcp_mut(&mut self) -> Option<&mut Tcp> {
        match &mut self.ends {
            Ends::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Returns whether a connection carries the flow's datagrams.
    pub fn is_carried(&self) -> bool {
        matches!(&self.ends, Ends::Datagrams(datagrams) if datagrams.carrier.is_some())
    }

    /// Returns whether the flow consists of datagrams.
    #[inline]
    pub fn is_of_datagrams(&self) -> bool {
        matches!(self.ends, Ends::Datagrams(_))
    }

    /// Returns the end to which bytes are written.
    pub fn source(&self) -> &dyn Source {
        match &self.ends {
            Ends::Tcp(tcp) => &tcp.sender,
            ends => &*ends.pointed().expect(WRITTEN).source,
        }
    }

    /// Returns the end to which bytes are written, for changes.
    pub fn source_mut(&mut self) -> &mut dyn Source {
        match &mut self.ends {
            Ends::Tcp(tcp) => &mut tcp.sender,
            ends => &mut *ends.pointed_mut().expect(WRITTEN).source,
        }
    }

    /// Reports the state of the source that recordings contain.
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        match &self.ends {
            Ends::Tcp(tcp) => tcp::observe(&tcp.sender, see),
            ends => ends.pointed().into_iter().for_each(|other| other.source.observe(see)),
        }
    }

    /// Returns whether all data has arrived, as far as the source knows.
    #[inline]
    pub fn is_finished(&self) -> bool {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.sender.is_finished(),
            Ends::Other(other) => other.source.is_finished(),
            Ends::Datagrams(_) => false,
        }
    }

    /// Returns the time at which the last byte arrived; `None` if more data may follow.
    pub fn completed(&self) -> Option<Time> {
        self.all_arrived.filter(|_| !self.is_open)
    }

    /// Returns the bytes that arrived without a gap; 0 for datagrams.
    #[inline]
    pub fn received(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.receiver.received(),
            Ends::Other(other) => other.sink.received(),
            Ends::Datagrams(_) => 0,
        }
    }

    /// Returns the next deadline of an end.
    #[inline]
    fn deadline(&self, of: End) -> Option<Time> {
        match (&self.ends, of) {
            (Ends::Tcp(tcp), End::Source) => tcp.sender.next_timeout(),
            (Ends::Tcp(tcp), End::Sink) => tcp.receiver.next_timeout(),
            (ends, of) => ends.pointed()?.deadline(of),
        }
    }

    /// Handles the deadline of an end.
    #[inline]
    pub fn on_deadline(&mut self, of: End, now: Time) {
        match (&mut self.ends, of) {
            (Ends::Tcp(tcp), End::Source) => tcp.sender.on_timeout(now),
            (Ends::Tcp(tcp), End::Sink) => tcp.receiver.on_timeout(now),
            (ends, of) => {
                ends.pointed_mut().into_iter().for_each(|other| other.on_deadline(of, now));
            }
        }
    }

    /// Returns the time of an event to schedule, so that one is pending no later than the deadline.
    #[inline]
    pub fn arm(&mut self, of: End) -> Option<Time> {
        let deadline = self.deadline(of)?;
        self.timers[of as usize].asks_for(deadline).then_some(deadline)
    }

    /// Handles a timer's event. Returns whether the timer has expired.
    pub fn is_due(&mut self, of: End, now: Time) -> bool {
        self.timers[of as usize].came(now);
        self.deadline(of).is_some_and(|deadline| deadline <= now)
    }
}
