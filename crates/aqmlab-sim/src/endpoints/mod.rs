//! Endpoints: what sends packets into the network, and takes what comes out.
//!
//! A flow has two of them: a [`Source`], from which data go to a [`Sink`],
//! and what the sink answers to the source. An endpoint is a state machine
//! without clock, timer or socket: it is given the packets that arrive and the
//! time, and asked for packets and for its next deadline. [TCP](tcp) is one,
//! [TFRC](tfrc) another, [datagrams] a third, and [`Endpoints`] adds those of
//! other crates: `examples/rust-endpoint` is a whole program.

pub mod custom;
pub mod datagrams;
mod dscp;
pub(crate) mod flow;
pub(crate) mod packet;

pub use self::custom::{
    BoxedEnds, CustomEndpoint, EndpointParams, EndpointSetup, Endpoints, MessageSink, MessageSource,
};
pub use self::dscp::Dscp;
use aqmlab_core::{Ecn, Lookup, Params, Result, Time, Value, catalogue};
use aqmlab_tcp::Stats;

/// What the parameters of an endpoint that is in here have to offer.
pub(crate) trait BuiltIn: Params {
    /// The name in scenario files.
    const NAME: &'static str;
    /// One line that says what it is.
    const SUMMARY: &'static str;
    /// Checks what no single parameter shows.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

catalogue! {
    /// What the flows of a group run over.
    pub enum EndpointConfig of BuiltIn, or dyn CustomEndpoint;
    what "endpoint", key "kind", example "tcp";
    presets &[], elsewhere (|_| None);
    each each;
    // One line an endpoint.
    Tcp(tcp::TcpParams),
    Tfrc(tfrc::TfrcParams),
}

impl EndpointConfig {
    /// Reads what stands under `endpoint` in a group of flows: a name, or a
    /// table with `kind` and parameters.
    ///
    /// # Errors
    /// For unknown names and keys, and values that are not allowed.
    pub fn read(value: &Value, others: &dyn Lookup<dyn CustomEndpoint>) -> Result<Self> {
        catalogue::read(value, others)
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig::Tcp(tcp::TcpParams::default())
    }
}

/// What endpoints of another crate tell each other: bytes that only these
/// two understand.
pub type Message = Box<[u8]>;

/// A packet that an endpoint sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing<T = Message> {
    /// What it carries.
    pub payload: T,
    /// Bytes on the wire, all headers among them. What it carries does not count.
    pub size: u32,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// A packet that has come to an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming<T = Message> {
    /// What it carries.
    pub payload: T,
    /// Bytes on the wire.
    pub size: u32,
    /// Its ECN codepoint, as it is now.
    pub ecn: Ecn,
}

/// One end of a flow, which sends packets that carry `Sends`, and takes such
/// that carry `Takes`.
pub trait Endpoint<Sends = Message, Takes = Message>: Send {
    /// The next packet that is to be sent at `now`; asked until there is none.
    fn poll(&mut self, now: Time) -> Option<Outgoing<Sends>>;
    /// A packet from the other end has come.
    fn on_packet(&mut self, now: Time, packet: Incoming<Takes>);
    /// When there is something to do though nothing comes.
    fn deadline(&self) -> Option<Time> {
        None
    }
    /// The deadline has come.
    fn on_deadline(&mut self, _now: Time) {}
    /// Names the state that recordings show.
    fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
}

/// The end that has data to send.
pub trait Source {
    /// It begins: it is polled from now on, and not before.
    fn open(&mut self, _now: Time) {}
    /// There are so many bytes more to send.
    fn supply(&mut self, bytes: u64);
    /// Nothing new is sent any more: how many bytes there are, then.
    fn cut(&mut self) -> u64;
    /// Bytes of data that were sent so far, each counted once.
    fn sent(&self) -> u64;
    /// Whether all that there is has arrived, and it knows.
    fn is_finished(&self) -> bool;
    /// Nobody is there: it is never answered. By default it sends nothing new.
    fn abort(&mut self) {
        self.cut();
    }
    /// No more bytes are supplied. A transport that signals the end of the data does so.
    fn finish(&mut self) {}
    /// Whether the connection is open; asked when a packet arrives.
    fn is_connected(&self) -> bool {
        true
    }
    /// Counts of the transport, if it has any.
    fn stats(&self) -> Option<Stats> {
        None
    }
    /// Why the connection failed, if it did.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// The end that takes the data.
pub trait Sink {
    /// Bytes of data that have arrived without a gap.
    fn received(&self) -> u64;
    /// Bytes of data that have arrived, each counted once when it first arrives, whether in order
    /// or not: the goodput.
    fn arrived(&self) -> u64;
}

/// Direction in which the data of a flow travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Direction {
    /// Along the group's `path`.
    Forward,
    /// Along its `return_path`.
    Backward,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "reverse",
        }
    }
}

/// Which end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum End {
    /// The source.
    Source,
    /// The sink.
    Sink,
}

/// Traffic of a flow, whatever its endpoints are.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Bytes on the wire that the source sent, retransmissions included.
    pub sent: u64,
    /// Bytes of data that have arrived, each counted once.
    pub delivered: u64,
    /// Packets that reached an end of the flow, by [`End`]: acknowledgements at the source, data
    /// packets and SYNs at the sink.
    pub arrived: [u64; 2],
}

impl Volume {
    /// Adds that of another flow.
    pub fn add(&mut self, other: Volume) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        (0..2).for_each(|end| self.arrived[end] += other.arrived[end]);
    }

    /// Returns the traffic since `before`, an earlier state.
    pub(crate) fn since(&self, before: &Volume) -> Volume {
        Volume {
            sent: self.sent - before.sent,
            delivered: self.delivered - before.delivered,
            arrived: [0, 1].map(|end| self.arrived[end] - before.arrived[end]),
        }
    }
}
