//! Ends of a flow: those of TCP in the flow itself, and others behind pointers.

use aqmlab_core::{Ecn, Span, Time};

use aqmlab_tcp::params::{EcnMode, Stack};
use aqmlab_tcp::{Receiver, Sender, TcpParams};

use super::NONE;
use crate::endpoints::custom::BoxedEnds;
use crate::endpoints::datagrams::{DatagramSink, DatagramSource, Sent};
use crate::endpoints::packet::{Arrived, Packed, SimPacket, Store};
use crate::endpoints::{End, Incoming, MessageSink, MessageSource, Outgoing};

/// Both ends. Nearly all are TCP's, and used for every packet: they are stored in the flow itself.
#[derive(Clone)]
pub(crate) enum Ends {
    Tcp(Tcp),
    Datagrams(Datagrams),
    Other(Other),
}

/// Ends of a TCP connection.
#[derive(Clone)]
pub(crate) struct Tcp {
    pub sender: Sender,
    pub receiver: Receiver,
    /// Bytes of all headers of a packet.
    pub(super) header: u32,
    pub(super) mss: u64,
    /// True if data packets carry their sending times, for timestamps or measurements.
    pub(super) has_times: bool,
    /// Default window, advertised while the receive buffer is empty.
    pub usual: u64,
    /// True if acknowledgements have the counter of accurate ECN.
    pub(super) counts_marks: bool,
    /// ECN field of acknowledgements.
    pub(super) ack_ecn: Ecn,
}

/// Returns the ECN field of acknowledgements. Controls with TCP_CONG_NEEDS_ECN set that of all packets
/// of their socket: Linux's DCTCP (`tcp_assign_congestion_control`, `tcp_ecn_send`; RFC 8257,
/// sections 3.6 and 4.1), and TCP Prague.
pub(super) fn ack_ecn(transport: &TcpParams) -> Ecn {
    let is_capable = transport.ecn != EcnMode::Off
        && match transport.congestion_control.name() {
            "dctcp" => transport.machine() != Stack::Rfc,
            name => name == "prague",
        };
    if is_capable { transport.ecn_codepoint.into() } else { Ecn::NotEct }
}

/// Ends of a flow of datagrams.
#[derive(Clone)]
pub(crate) struct Datagrams {
    pub source: DatagramSource,
    pub sink: DatagramSink,
    /// True if every arrival is reported to the application.
    pub tells: bool,
    /// Ends of the connection that carries the datagrams, if they are not packets of their own.
    pub carrier: Option<Box<Other>>,
    /// Sending times of arrivals over the connection that are not yet reported.
    pub carried: Vec<Time>,
}

/// Ends whose packets carry messages: TFRC's, and those of other crates.
#[derive(Clone)]
pub(crate) struct Other {
    pub source: Box<dyn MessageSource>,
    pub sink: Box<dyn MessageSink>,
    /// Number of packets that the source sent.
    pub(super) sent: u64,
    /// True if the connection is open.
    pub(super) is_connected: bool,
    /// Flow of the other direction of the same connection, or [`NONE`]. A packet that arrives at
    /// the sink of either is answered by the source of the other.
    pub(super) partner: u32,
}

impl Ends {
    /// Returns the ends behind pointers: of the flow, or of the connection that carries its
    /// datagrams.
    pub(super) fn pointed(&self) -> Option<&Other> {
        match self {
            Ends::Tcp(_) => None,
            Ends::Datagrams(datagrams) => datagrams.carrier.as_deref(),
            Ends::Other(other) => Some(other),
        }
    }

    /// Returns the ends behind pointers for changes.
    pub(super) fn pointed_mut(&mut self) -> Option<&mut Other> {
        match self {
            Ends::Tcp(_) => None,
            Ends::Datagrams(datagrams) => datagrams.carrier.as_deref_mut(),
            Ends::Other(other) => Some(other),
        }
    }

    #[inline(never)]
    pub(super) fn poll_others(
        &mut self,
        of: End,
        now: Time,
        store: &mut Store,
    ) -> Option<(u32, Ecn, Packed)> {
        let other = match self {
            Ends::Tcp(_) => return None,
            Ends::Datagrams(Datagrams { source, carrier, .. }) => {
                let datagram = (of == End::Source).then(|| source.poll()).flatten();
                let Some(other) = carrier else {
                    let (datagram, size) = datagram?;
                    return Some((size, Ecn::NotEct, store.datagram(datagram)));
                };
                if let Some((datagram, size)) = datagram {
                    other.source.post(now, &datagram.to_bytes(size), size);
                }
                other
            }
            Ends::Other(other) => other,
        };
        let outgoing = match of {
            End::Source => other.source.poll(now),
            End::Sink => other.sink.poll(now),
        };
        let Outgoing { payload, size, ecn } = outgoing?;
        other.sent += u64::from(of == End::Source);
        Some((size, ecn, store.message(now, payload)))
    }

    #[inline(never)]
    pub(super) fn receive_others(&mut self, now: Time, packet: Arrived, store: &mut Store) -> bool {
        let (size, ecn, to) = (packet.size(), packet.ecn(), packet.to());
        let (other, datagrams) = match self {
            Ends::Tcp(_) => {
                store.discard(packet);
                return false;
            }
            Ends::Datagrams(Datagrams { carrier: None, sink, .. }) => {
                let sent = store.take_datagram(packet);
                return sent.is_some_and(|sent| sink.arrive(now, sent, size));
            }
            Ends::Datagrams(Datagrams { carrier: Some(other), sink, carried, .. }) => {
                (&mut **other, Some((sink, carried)))
            }
            Ends::Other(other) => (other, None),
        };
        let Some(payload) = store.take_message(packet) else { return false };
        let incoming = Incoming { payload, size, ecn };
        if to == End::Source {
            other.source.on_packet(now, incoming);
            return datagrams.is_none() && other.has_connected();
        }
        other.sink.on_packet(now, incoming);
        let Some((sink, carried)) = datagrams else { return other.partner != NONE };
        while let Some(bytes) = other.sink.take() {
            let Some((sent, size)) = Sent::from_bytes(&bytes) else { continue };
            carried.push(sent.at);
            sink.arrive(now, sent, size);
        }
        true
    }
}

impl Other {
    pub(super) fn new((source, sink): BoxedEnds) -> Self {
        Other { source, sink, sent: 0, is_connected: false, partner: NONE }
    }

    /// Returns the next deadline of an end.
    pub(super) fn deadline(&self, of: End) -> Option<Time> {
        match of {
            End::Source => self.source.deadline(),
            End::Sink => self.sink.deadline(),
        }
    }

    /// Handles the deadline of an end.
    pub(super) fn on_deadline(&mut self, of: End, now: Time) {
        match of {
            End::Source => self.source.on_deadline(now),
            End::Sink => self.sink.on_deadline(now),
        }
    }

    pub(super) fn is_cloneable(&self) -> bool {
        self.source.boxed_clone().is_some() && self.sink.boxed_clone().is_some()
    }

    pub(super) fn has_connected(&mut self) -> bool {
        self.source.is_connected() && !std::mem::replace(&mut self.is_connected, true)
    }
}

impl Tcp {
    /// Changes the transport of both ends. Segments may be due afterwards.
    pub fn change(&mut self, now: Time, before: &TcpParams, after: &TcpParams, seed: u64) {
        self.sender.change(now, before, after, seed);
        self.receiver.change(before, after);
        self.ack_ecn = if self.receiver.uses_ecn() { ack_ecn(after) } else { Ecn::NotEct };
    }

    /// Opens the connection without ECN at the receiver.
    pub fn decline_ecn(&mut self) {
        self.receiver.decline_ecn();
        (self.ack_ecn, self.counts_marks) = (Ecn::NotEct, false);
    }

    /// Returns whether the receive window, not the congestion window, limits the sender: they
    /// differ by less than a segment.
    pub fn is_held_by_receiver(&self) -> bool {
        self.sender.cwnd() + self.mss > self.receive_window()
    }

    /// Returns the advertised window of the receiver.
    pub fn receive_window(&self) -> u64 {
        self.receiver.window()
    }

    /// Returns how long data have arrived beyond a gap that is still open, if that exceeds this
    /// number of round trips.
    pub fn held_up(&self, round_trips: u64) -> Option<Span> {
        let held_up = self.receiver.held_up();
        self.sender.srtt().filter(|srtt| held_up > *srtt * round_trips).map(|_| held_up)
    }
}
