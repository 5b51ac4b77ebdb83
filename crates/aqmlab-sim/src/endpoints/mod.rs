//! Endpoints: senders and receivers of packets.
//!
//! A flow has two of them: a [`Source`], which sends data to a [`Sink`], which answers. An endpoint
//! is a state machine without clock, timer or socket: its host passes arriving packets and the
//! time, and polls for packets and the next deadline. Built in are [TCP](tcp), [TFRC](tfrc) and
//! [datagrams]; [`Endpoints`] adds those of other crates: `examples/rust-endpoint` is a complete
//! program.

pub mod custom;
pub mod datagrams;
mod dscp;
pub(crate) mod flow;
pub(crate) mod packet;

pub use self::custom::{
    BoxedEnds, ConnectionLog, EndpointConfig, EndpointParams, EndpointSetup, Endpoints, LogFile,
    MessageSink, MessageSource,
};
pub use self::dscp::Dscp;
use aqmlab_core::{Ecn, Time, catalogue};
use aqmlab_tcp::Stats;

catalogue! {
    dyn EndpointParams;
    what "endpoint", key "kind", example "tcp", default "tcp";
    presets &[], elsewhere (|_| None);
    // One line for each endpoint.
    tcp::TcpParams,
    tfrc::TfrcParams,
}

/// Message between endpoints of another crate, opaque to the simulator.
pub type Message = Box<[u8]>;

/// Packet sent by an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// Contents of the packet.
    pub payload: Message,
    /// Bytes on the wire with all headers, independent of the contents.
    pub size: u32,
    /// ECN codepoint.
    pub ecn: Ecn,
}

/// Packet received by an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// Contents of the packet.
    pub payload: Message,
    /// Bytes on the wire.
    pub size: u32,
    /// ECN codepoint on arrival.
    pub ecn: Ecn,
}

/// One end of a flow whose packets carry messages.
pub trait Endpoint: Send {
    /// Returns the next packet to send at `now`; called until `None`.
    fn poll(&mut self, now: Time) -> Option<Outgoing>;
    /// Handles a packet from the other end.
    fn on_packet(&mut self, now: Time, packet: Incoming);
    /// Returns the time of the next timer, if any.
    fn deadline(&self) -> Option<Time> {
        None
    }
    /// Handles the timer.
    fn on_deadline(&mut self, _now: Time) {}
    /// Reports the state that recordings contain.
    fn observe(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
}

/// End that sends data.
pub trait Source {
    /// Starts the source, which is polled from now on.
    fn open(&mut self, _now: Time) {}
    /// Adds bytes to send.
    fn supply(&mut self, bytes: u64);
    /// Discards unsent data. Returns the total of bytes.
    fn cut(&mut self) -> u64;
    /// Returns the bytes of data sent so far, each counted once.
    fn sent(&self) -> u64;
    /// Returns whether all data has arrived, as far as the source knows.
    fn is_finished(&self) -> bool;
    /// Sends a datagram that begins with `content` and has about `size` bytes on the wire, and is
    /// not sent again if it is lost.
    fn post(&mut self, _now: Time, _content: &[u8], _size: u32) {}
    /// Handles an unreachable peer. By default, discards unsent data.
    fn abort(&mut self) {
        self.cut();
    }
    /// Declares the end of the data. A transport may signal it.
    fn finish(&mut self) {}
    /// Returns whether the connection is open; called when a packet arrives.
    fn is_connected(&self) -> bool {
        true
    }
    /// Returns the counters of the transport, if any.
    fn stats(&self) -> Option<Stats> {
        None
    }
    /// Returns the reason of a failed connection.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// End that receives the data.
pub trait Sink {
    /// Returns the bytes of data that arrived without a gap.
    fn received(&self) -> u64;
    /// Returns the bytes of data that arrived, each counted at its first arrival, in order or not:
    /// the goodput.
    fn arrived(&self) -> u64;
    /// Returns the bytes that arrived without a gap of the data supplied with call `index` of
    /// [`Source::supply`]; `None` if all data is one stream.
    fn arrived_of(&self, _index: u64) -> Option<u64> {
        None
    }
    /// Returns the content of the next datagram that arrived.
    fn take(&mut self) -> Option<Message> {
        None
    }
}

/// Direction of a flow's data.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Direction {
    /// Along the group's `path`.
    #[default]
    Forward,
    /// Along its `return_path`.
    Backward,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "reverse",
        }
    }
}

/// End of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum End {
    /// The source.
    Source,
    /// The sink.
    Sink,
}

/// Traffic of a flow, with any endpoints.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Bytes on the wire that the source sent, including retransmissions.
    pub sent: u64,
    /// Bytes of data that arrived, each counted once.
    pub delivered: u64,
    /// Packets that reached an end of the flow, by [`End`]: acknowledgements at the source, data
    /// packets and SYNs at the sink.
    pub arrived: [u64; 2],
}

impl Volume {
    /// Adds the traffic of another flow.
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
