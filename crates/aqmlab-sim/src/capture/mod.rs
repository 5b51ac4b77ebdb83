//! Runs in the formats of other programs, written while they go on: every packet in a
//! file for Wireshark (`pcapng`), what senders do in one for tools of QUIC (`qlog`).
//!
//! # What packets there are
//! Each packet once, when its sender sends it, at the interface of the first link of its route; or
//! with chosen links all packets that come to these. The first is what a capture at the hosts
//! would hold: Wireshark's analysis then finds no retransmission that is none.
//!
//! Virtual time 0 is the beginning of 1970, and all else follows from the scenario: a file has the
//! same bytes each time. Hosts are in 10.0.0.0/8, in the order in which they appear. The side
//! that accepts a connection has a port for its group of flows, from 50000.
//!
//! # Differences
//! From what hosts would send, beside those of the transports:
//! 1. Payload is zeros and not in the file; its length is, and checksums count it.
//! 2. SYNs have their options (MSS, SACK permitted, timestamps, window scale) and say what ECN
//!    is used, though the simulator does not negotiate. The simulator's SYNs and acknowledgements
//!    have the size `transport.header`: a packet whose options need more is longer in the file by
//!    these, one that needs less has its simulated length.
//! 3. A fourth SACK block that has no room beside timestamps is left out.
//! 4. Accurate ECN has its counter of packets in the header (ACE), and not the option for bytes.
//! 5. A connection with data both ways has one handshake and one pair of ports; its data carry the
//!    acknowledgement that went before them. At a chosen link they carry the last one that
//!    was sent before they came there.
//! 6. There is no FIN; a packet of more than 65,535 bytes states no length.

mod connections;
mod headers;
mod output;
pub mod pcapng;
mod qlog;

use std::io::Write;

use aqmlab_core::Time;

use self::connections::Connections;
use self::output::Output;
pub use self::output::Unwritten;
use self::pcapng::Interface;
use self::qlog::Qlog;
use crate::endpoints::flow::Flow;
use crate::endpoints::packet::{SimPacket, Store};
use crate::network::Observer;
use crate::scenario::Scenario;

/// What is recorded of a run besides its results.
#[derive(Default)]
pub struct Recorder {
    packets: Option<Packets>,
    qlog: Option<Qlog>,
}

/// Packets, in the format pcapng.
struct Packets {
    output: Output,
    connections: Connections,
    /// By link, the interface of those that are recorded.
    interfaces: Vec<Option<u32>>,
    /// All packets at these links, and not only those that are new.
    all: bool,
    /// The next packet that comes to a link has just been sent.
    is_new: bool,
    headers: Vec<u8>,
}

impl Recorder {
    /// Records packets of a scenario into `to`, which is called `file`: as they are sent, or those
    /// that come to `links` (indices), if there are any.
    #[must_use]
    pub fn with_packets(
        mut self,
        scenario: &Scenario,
        links: &[usize],
        file: String,
        to: Box<dyn Write + Send>,
    ) -> Self {
        let mut output = Output::new(file, to);
        output.add(|bytes| pcapng::section(bytes, Some(&told(scenario))));
        let mut count = 0;
        let mut interface = |(index, name): (usize, &str)| {
            let chosen = links.is_empty() || links.contains(&index);
            chosen.then(|| {
                let what = match links.is_empty() {
                    true => format!("what senders put into the link {name}"),
                    false => format!("what comes to the link {name}"),
                };
                let interface = Interface {
                    name,
                    comment: &what,
                    link_type: pcapng::LINKTYPE_IPV4,
                    most: pcapng::MOST_KEPT,
                };
                output.add(|bytes| pcapng::interface(bytes, &interface));
                count += 1;
                count - 1
            })
        };
        let names = scenario.links.iter().map(|link| link.name.as_str());
        self.packets = Some(Packets {
            interfaces: names.enumerate().map(&mut interface).collect(),
            output,
            connections: Connections::new(&scenario.flows),
            all: !links.is_empty(),
            is_new: false,
            headers: Vec::new(),
        });
        self
    }

    /// Records what senders of TCP do into `to`, which is called `file`.
    #[must_use]
    pub fn with_qlog(
        mut self,
        scenario: &Scenario,
        file: String,
        to: Box<dyn Write + Send>,
    ) -> Self {
        self.qlog = Some(Qlog::new(scenario, file, to));
        self
    }

    /// A flow has made a packet, which comes to its first link next.
    #[inline(never)]
    pub(crate) fn sent(&mut self, now: Time, flow: &Flow, packet: &SimPacket, store: &Store) {
        if let Some(packets) = &mut self.packets {
            packets.connections.sent(now, flow, packet, store);
            packets.is_new = true;
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.sent(now, flow, packet, store);
        }
    }

    /// A packet comes to the source of its flow.
    #[cold]
    #[inline(never)]
    pub(crate) fn received(&mut self, now: Time, flow: &Flow, packet: &SimPacket, store: &Store) {
        if let Some(qlog) = &mut self.qlog {
            qlog.received(now, flow, packet, store);
        }
    }

    /// The source of a flow, by index, knows what has happened, and has sent nothing yet.
    #[inline(never)]
    pub(crate) fn judged(&mut self, now: Time, index: u32, flow: &mut Flow) {
        if let Some(qlog) = &mut self.qlog {
            qlog.judged(now, index, flow);
        }
    }

    /// The source of a flow, by index, has sent what it could.
    #[inline(never)]
    pub(crate) fn settled(&mut self, now: Time, index: u32, flow: &Flow) {
        if let Some(qlog) = &mut self.qlog {
            qlog.settled(now, index, flow);
        }
    }

    /// Two flows, by index, are the directions of a connection that the first opens.
    pub(crate) fn paired(&mut self, now: Time, first: (u32, &Flow), second: (u32, &Flow)) {
        if let Some(packets) = &mut self.packets {
            packets.connections.pair(first, second);
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.know(now, first.0, first.1);
            qlog.know(now, second.0, second.1);
        }
    }

    /// Writes what is not written yet.
    ///
    /// # Errors
    /// If not all could be written.
    pub fn finish(self) -> Result<(), Unwritten> {
        let packets = self.packets.map_or(Ok(()), |packets| packets.output.finish());
        self.qlog.map_or(Ok(()), Qlog::finish).and(packets)
    }
}

impl Observer<SimPacket> for Option<Box<Recorder>> {
    #[inline(always)]
    fn entered(&mut self, now: Time, link: u32, packet: &SimPacket, store: &Store) {
        if let Some(recorder) = self {
            recorder.entered(now, link, packet, store);
        }
    }
}

impl Recorder {
    #[inline(never)]
    fn entered(&mut self, now: Time, link: u32, packet: &SimPacket, store: &Store) {
        let Some(packets) = &mut self.packets else { return };
        let is_new = std::mem::take(&mut packets.is_new);
        let interface = packets.interfaces.get(link as usize).copied().flatten();
        let Some(interface) = interface.filter(|_| packets.all || is_new) else { return };
        packets.headers.clear();
        let length = packets.connections.write(packet, store, &mut packets.headers);
        let kept = &packets.headers;
        packets.output.add(|bytes| pcapng::packet(bytes, interface, now, kept, length));
    }
}

/// What a reader of the file wants to know.
fn told(scenario: &Scenario) -> String {
    let groups = scenario.flows.iter().zip(0..);
    let ports: Vec<String> = groups
        .map(|(group, index)| format!("{} {}", Connections::port(index), group.name))
        .collect();
    format!("simulated; time 0 is 1970-01-01; ports of groups of flows: {}", ports.join(", "))
}
