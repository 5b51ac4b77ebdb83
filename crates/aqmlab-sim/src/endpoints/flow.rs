//! A flow: two endpoints, and the routes between them.

use aqmlab_core::{Deadline, Ecn, Packet, Span, Time};
use aqmlab_tcp::params::EcnMode;
use aqmlab_tcp::{Stats, TcpParams};

use super::custom::BoxedEnds;
use super::datagrams::{DatagramSink, DatagramSource};
use super::packet::{Arrived, Header, Packed, SimPacket, Store};
use super::tcp::{TcpSink, TcpSource};
use super::{
    Direction, End, Endpoint, EndpointConfig, EndpointSetup, Incoming, MessageSink, MessageSource,
    Outgoing, Sink, Source, Volume,
};
use crate::network::RouteId;

/// No application: the flow runs by itself.
pub(crate) const NONE: u32 = u32::MAX;
/// An application that is gone.
pub(crate) const GONE: u32 = u32::MAX - 1;

/// The two ends. Nearly all are TCP's, and asked for every packet: they stand
/// in the flow itself.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Ends {
    Tcp(Tcp),
    Datagrams(Datagrams),
    Other(Other),
}

/// The ends of a connection.
pub(crate) struct Tcp {
    pub source: TcpSource,
    pub sink: TcpSink,
    header: u32,
    mss: u64,
    /// Data carry when they were sent: for timestamps, or to be measured.
    has_times: bool,
    /// The window that acknowledgements advertise as long as nothing fills it.
    pub usual: u64,
    /// Acknowledgements have the counter of accurate ECN.
    counts_marks: bool,
}

/// The ends of a flow of datagrams.
pub(crate) struct Datagrams {
    pub source: DatagramSource,
    pub sink: DatagramSink,
    /// The application wants to be told of every arrival.
    pub tells: bool,
}

/// Ends whose packets carry messages: TFRC's, and those of other crates.
pub(crate) struct Other {
    pub source: Box<dyn MessageSource>,
    pub sink: Box<dyn MessageSink>,
    /// Packets that the source sent.
    sent: u64,
    /// The connection is open.
    is_connected: bool,
    /// Flow of the other direction of the same connection, or [`NONE`]. A packet that arrives at
    /// the sink of either is answered by the source of the other.
    partner: u32,
}

/// One flow.
pub(crate) struct Flow {
    /// Which group of the scenario it belongs to.
    pub group: u32,
    pub ends: Ends,
    /// The route from source to sink, and the one back.
    routes: [RouteId; 2],
    /// Bytes to transfer; `None` without end.
    pub size: Option<u64>,
    pub start: Time,
    /// When the last byte was acknowledged.
    pub finish: Option<Time>,
    /// The application that it belongs to, or [`NONE`].
    pub app: u32,
    /// The application may write more.
    pub is_open: bool,
    /// It comes and goes: it has no row in the results unless all have.
    pub is_transient: bool,
    /// Direction of its data.
    pub direction: Direction,
    /// The bytes that are to arrive: all, or what is written so far.
    pub goal: u64,
    /// The application wants to be told when so many have: the goal, unless it
    /// asked for less.
    pub expects: u64,
    /// With so many bytes received there is something to do: [`Opening`], or
    /// what the application expects.
    pub awaited: u64,
    /// What had been counted when the warm-up ended, of a flow that had begun by then.
    before: Option<Box<tally::Before>>,
    /// Bytes on the wire that its source sent, those sent again among them.
    pub sent_bytes: u64,
    /// Packets that reached each [`End`].
    pub arrived: [u64; 2],
    /// The other direction of its connection, which is being opened.
    pub opening: Option<(u32, Opening)>,
    index: u32,
    /// Hashes of the two directions, as queues see them.
    pub hashes: [u32; 2],
    /// The source's and the sink's host.
    pub hosts: [u32; 2],
    pub class: u8,
    /// What the one-way delays of data packets sum up to, if they are measured.
    pub delays: Option<Delays>,
    timers: [Pending; 2],
}

/// One-way delays of a flow's data packets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Delays {
    count: u64,
    sum: u128,
    pub max: Span,
}

impl Delays {
    fn add(&mut self, delay: Span) {
        self.count += 1;
        self.sum += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }
    /// The mean in seconds; NaN without packets.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64 * 1e-9
    }
}

/// How far the opening of a connection has come that carries data both ways.
/// Its two directions are flows; the SYN of the first, its SYN-ACK and the
/// first data after them are the handshake of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// The passive side waits for the SYN.
    Listen,
    /// It has the SYN, and waits for what answers its SYN-ACK.
    SynReceived,
}

/// When the pending events of a timer are due, the next first: of more than
/// these the latest are forgotten. An event may come early (the deadline moved
/// on meanwhile): it is asked for again then. A timer that alternates between
/// near and far deadlines (pacing, retransmission) so does not leave an event
/// behind each time.
#[derive(Clone, Copy)]
struct Pending([Deadline; 3]);

impl Default for Pending {
    fn default() -> Self {
        Pending([Deadline::NEVER; 3])
    }
}

impl Pending {
    /// Whether an event has to be asked for: none is pending so early.
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
    /// An event came.
    #[inline]
    fn came(&mut self, now: Time) {
        let [first, second, third] = self.0;
        if Deadline::at(now) == first {
            self.0 = [second, third, Deadline::NEVER];
        }
    }
}

/// What a flow is made of.
pub(crate) struct FlowSetup<'a> {
    pub index: u32,
    pub group: u32,
    pub transport: &'a TcpParams,
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
}

impl FlowSetup<'_> {
    /// Has the data go along the group's return path.
    pub fn turn(&mut self) {
        self.routes.reverse();
        self.hosts.reverse();
        self.direction = Direction::Backward;
    }

    fn ends(&self) -> Ends {
        let transport = self.transport;
        let (mss, header) = (transport.mss.get(), transport.header.get() as u32);
        let setup = EndpointSetup {
            size: self.size,
            is_open: self.is_open,
            mss: mss as u32,
            header,
            seed: self.seed,
        };
        match self.endpoint {
            EndpointConfig::Tcp(_) => {
                let sink = TcpSink::new(transport);
                Ends::Tcp(Tcp {
                    source: TcpSource::new(transport, self.size, self.seed),
                    usual: sink.receiver.window(),
                    sink,
                    header,
                    mss,
                    has_times: transport.timestamps || self.delays,
                    counts_marks: transport.ecn == EcnMode::Accurate,
                })
            }
            EndpointConfig::Tfrc(params) => {
                let (source, sink) = params.build(&setup);
                Ends::other((Box::new(source), Box::new(sink)))
            }
            EndpointConfig::Custom(custom) => Ends::other(custom.config().build(&setup)),
        }
    }
}

impl Flow {
    /// A flow of bytes.
    pub fn new(setup: FlowSetup) -> Self {
        let ends = setup.ends();
        Self::with(setup, ends)
    }

    /// A flow of datagrams.
    pub fn datagrams(setup: FlowSetup, tells: bool) -> Self {
        let (source, sink) = (DatagramSource::default(), DatagramSink::default());
        Self::with(setup, Ends::Datagrams(Datagrams { source, sink, tells }))
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
            app: setup.app,
            is_open: setup.is_open,
            is_transient: setup.is_transient,
            direction: setup.direction,
            goal,
            expects: goal,
            awaited: if goal > 0 { goal } else { u64::MAX },
            before: None,
            sent_bytes: 0,
            arrived: [0; 2],
            opening: None,
            index: setup.index,
            hashes: setup.hashes,
            hosts: setup.hosts,
            class: setup.class,
            delays: setup.delays.then(Delays::default),
            timers: [Pending::default(); 2],
        }
    }

    /// Whether a packet is of this flow, and not of one that had its place
    /// before: it bears the flow's hash.
    #[inline]
    pub fn owns(&self, packet: &Packet) -> bool {
        packet.flow_hash() == self.hashes[usize::from(packet.to() == End::Source)]
    }

    /// The route along which packets of this end go.
    #[inline(always)]
    pub fn route(&self, of: End) -> RouteId {
        self.routes[of as usize]
    }

    /// The next packet that one of the ends sends now.
    #[inline(always)]
    pub fn poll(&mut self, of: End, now: Time, store: &mut Store) -> Option<Packet> {
        let (size, ecn, content) = match (&mut self.ends, of) {
            (Ends::Tcp(tcp), End::Source) => {
                let Outgoing { payload, size, ecn } = tcp.source.poll(now)?;
                (size, ecn, store.segment(now, payload, tcp.has_times))
            }
            (Ends::Tcp(tcp), End::Sink) => {
                let Outgoing { payload, size, ecn } = tcp.sink.poll(now)?;
                (size, ecn, store.ack(payload, tcp.usual, tcp.counts_marks))
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
    /// the connection; at the sink of datagrams, whether it is not a duplicate; at another sink,
    /// whether the flow has a partner.
    #[inline(always)]
    pub fn receive(&mut self, now: Time, packet: Arrived, store: &mut Store) -> bool {
        let (size, ecn) = (packet.size(), packet.ecn());
        match (&mut self.ends, packet.to()) {
            (Ends::Tcp(tcp), End::Source) => {
                let is_syn = packet.content().is_syn();
                if let Some(payload) = store.take_ack(packet, tcp.usual) {
                    tcp.source.on_packet(now, Incoming { payload, size, ecn });
                }
                is_syn
            }
            (Ends::Tcp(tcp), End::Sink) => {
                if let Some(payload) = store.take_segment(packet, tcp.header) {
                    tcp.sink.on_packet(now, Incoming { payload, size, ecn });
                }
                false
            }
            (ends, _) => ends.receive_others(now, packet, store),
        }
    }

    /// A data packet is about to be received that is measured: its one-way delay.
    #[inline]
    pub fn delayed(&mut self, now: Time, packet: &Packet, store: &Store) -> Option<Span> {
        let delays = self.delays.as_mut()?;
        let delay = now - store.sent_at(packet.content())?;
        delays.add(delay);
        Some(delay)
    }

    /// Traffic so far.
    pub fn volume(&self) -> Volume {
        Volume { sent: self.sent_bytes, delivered: self.delivered(), arrived: self.arrived }
    }

    /// Bytes of data that have arrived, each counted once.
    pub fn delivered(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.sink.arrived(),
            Ends::Datagrams(datagrams) => datagrams.sink.received_bytes,
            Ends::Other(other) => other.sink.arrived(),
        }
    }

    /// Data packets that its source sent, those sent again among them.
    pub fn sent(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.source.sender.stats().segments_sent,
            Ends::Datagrams(datagrams) => datagrams.source.sent,
            Ends::Other(other) => other.sent,
        }
    }

    /// Counts of the transport.
    pub fn stats(&self) -> Option<Stats> {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.source.stats(),
            Ends::Other(other) => other.source.stats(),
            Ends::Datagrams(_) => None,
        }
    }

    /// Why the connection failed, if it did.
    pub fn failure(&self) -> Option<String> {
        match &self.ends {
            Ends::Other(other) => other.source.failure(),
            Ends::Tcp(_) | Ends::Datagrams(_) => None,
        }
    }

    /// The mean in seconds and the largest of its one-way delays, if they are measured.
    pub fn delay_summary(&self) -> Option<(f64, Span)> {
        match &self.ends {
            Ends::Datagrams(Datagrams { sink, .. }) => Some((sink.delay.mean(), sink.delay.max())),
            _ => self.delays.map(|delays| (delays.mean(), delays.max)),
        }
    }

    /// Flow of the other direction of the same connection.
    pub fn partner(&self) -> Option<u32> {
        match &self.ends {
            Ends::Other(other) => Some(other.partner).filter(|partner| *partner != NONE),
            Ends::Tcp(_) | Ends::Datagrams(_) => None,
        }
    }

    /// Makes the flow one direction of a connection whose other direction is `partner`. Only the
    /// opening end reports when the connection opens.
    pub fn join(&mut self, ends: BoxedEnds, partner: u32, is_opening: bool) {
        self.ends = Ends::other(ends);
        if let Ends::Other(other) = &mut self.ends {
            other.partner = partner;
            other.is_connected = !is_opening;
        }
    }

    /// Returns whether the connection opened since the last call.
    pub fn has_connected(&mut self) -> bool {
        match &mut self.ends {
            Ends::Other(other) => other.has_connected(),
            Ends::Tcp(_) | Ends::Datagrams(_) => false,
        }
    }

    /// Its ends, if it is one of TCP.
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.ends {
            Ends::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn tcp_mut(&mut self) -> Option<&mut Tcp> {
        match &mut self.ends {
            Ends::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Whether it is one of datagrams.
    #[inline]
    pub fn is_of_datagrams(&self) -> bool {
        matches!(self.ends, Ends::Datagrams(_))
    }

    /// The end that bytes are written to.
    pub fn source(&self) -> &dyn Source {
        match &self.ends {
            Ends::Tcp(tcp) => &tcp.source,
            Ends::Other(other) => &*other.source,
            Ends::Datagrams(_) => unreachable!("nothing is written to a flow of datagrams"),
        }
    }

    /// The same, to be changed.
    pub fn source_mut(&mut self) -> &mut dyn Source {
        match &mut self.ends {
            Ends::Tcp(tcp) => &mut tcp.source,
            Ends::Other(other) => &mut *other.source,
            Ends::Datagrams(_) => unreachable!("nothing is written to a flow of datagrams"),
        }
    }

    /// Names the state of its source that recordings show.
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.source.observe(see),
            Ends::Other(other) => other.source.observe(see),
            Ends::Datagrams(datagrams) => datagrams.source.observe(see),
        }
    }

    /// Whether all that there is has arrived, and the source knows.
    #[inline]
    pub fn is_finished(&self) -> bool {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.source.is_finished(),
            Ends::Other(other) => other.source.is_finished(),
            Ends::Datagrams(_) => false,
        }
    }

    /// Bytes that have arrived without a gap; of datagrams nobody waits for any.
    #[inline]
    pub fn received(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.sink.received(),
            Ends::Other(other) => other.sink.received(),
            Ends::Datagrams(_) => 0,
        }
    }

    /// When one of the ends has something to do.
    #[inline]
    fn deadline(&self, of: End) -> Option<Time> {
        match (&self.ends, of) {
            (Ends::Tcp(tcp), End::Source) => tcp.source.deadline(),
            (Ends::Tcp(tcp), End::Sink) => tcp.sink.deadline(),
            (Ends::Other(other), End::Source) => other.source.deadline(),
            (Ends::Other(other), End::Sink) => other.sink.deadline(),
            (Ends::Datagrams(_), _) => None,
        }
    }

    /// Its deadline has come.
    #[inline]
    pub fn on_deadline(&mut self, of: End, now: Time) {
        match (&mut self.ends, of) {
            (Ends::Tcp(tcp), End::Source) => tcp.source.on_deadline(now),
            (Ends::Tcp(tcp), End::Sink) => tcp.sink.on_deadline(now),
            (Ends::Other(other), End::Source) => other.source.on_deadline(now),
            (Ends::Other(other), End::Sink) => other.sink.on_deadline(now),
            (Ends::Datagrams(_), _) => {}
        }
    }

    /// When an event has to be asked for, so that one is pending no later than
    /// the deadline.
    #[inline]
    pub fn arm(&mut self, of: End) -> Option<Time> {
        let deadline = self.deadline(of)?;
        self.timers[of as usize].asks_for(deadline).then_some(deadline)
    }

    /// A timer's event came; whether the timer really ran out.
    pub fn is_due(&mut self, of: End, now: Time) -> bool {
        self.timers[of as usize].came(now);
        self.deadline(of).is_some_and(|deadline| deadline <= now)
    }
}

impl Ends {
    /// Ends whose packets carry messages.
    fn other((source, sink): BoxedEnds) -> Self {
        Ends::Other(Other { source, sink, sent: 0, is_connected: false, partner: NONE })
    }

    #[inline(never)]
    fn poll_others(&mut self, of: End, now: Time, store: &mut Store) -> Option<(u32, Ecn, Packed)> {
        match (self, of) {
            (Ends::Tcp(_), _) | (Ends::Datagrams(_), End::Sink) => None,
            (Ends::Datagrams(datagrams), End::Source) => {
                let Outgoing { payload, size, ecn } = datagrams.source.poll(now)?;
                Some((size, ecn, store.datagram(payload)))
            }
            (Ends::Other(other), of) => {
                let outgoing = match of {
                    End::Source => other.source.poll(now),
                    End::Sink => other.sink.poll(now),
                };
                let Outgoing { payload, size, ecn } = outgoing?;
                other.sent += u64::from(of == End::Source);
                Some((size, ecn, store.message(now, payload)))
            }
        }
    }

    #[inline(never)]
    fn receive_others(&mut self, now: Time, packet: Arrived, store: &mut Store) -> bool {
        let (size, ecn, to) = (packet.size(), packet.ecn(), packet.to());
        match self {
            Ends::Tcp(_) => store.discard(packet),
            Ends::Datagrams(datagrams) => {
                let Some(payload) = store.take_datagram(packet) else { return false };
                let before = datagrams.sink.received;
                datagrams.sink.on_packet(now, Incoming { payload, size, ecn });
                return datagrams.sink.received > before;
            }
            Ends::Other(other) => {
                let Some(payload) = store.take_message(packet) else { return false };
                let incoming = Incoming { payload, size, ecn };
                match to {
                    End::Source => {
                        other.source.on_packet(now, incoming);
                        return other.has_connected();
                    }
                    End::Sink => {
                        other.sink.on_packet(now, incoming);
                        return other.partner != NONE;
                    }
                }
            }
        }
        false
    }
}

impl Other {
    fn has_connected(&mut self) -> bool {
        self.source.is_connected() && !std::mem::replace(&mut self.is_connected, true)
    }
}

impl Tcp {
    /// Whether the receiver's window, and not the congestion window, holds the
    /// sender back: less than a segment lies between the two.
    pub fn is_held_by_receiver(&self) -> bool {
        self.source.sender.cwnd() + self.mss > self.receive_window()
    }

    /// The window that the receiver advertises.
    pub fn receive_window(&self) -> u64 {
        self.sink.receiver.window()
    }

    /// For how long data have arrived beyond a hole that is still open, if that is more than so
    /// many round trips.
    pub fn held_up(&self, round_trips: u64) -> Option<Span> {
        let held_up = self.sink.receiver.held_up();
        self.source.sender.srtt().filter(|srtt| held_up > *srtt * round_trips).map(|_| held_up)
    }
}

#[path = "tally.rs"]
mod tally;
