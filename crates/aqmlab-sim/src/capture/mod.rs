//! Captures of runs in the formats of other programs: every packet in a file for Wireshark
//! (`pcapng`), sender events in a file for QUIC tools (`qlog`), and what endpoints log themselves
//! (`logs`).
//!
//! # Captured packets
//! Each packet is captured once, when its sender sends it, at the interface of the first link of
//! its route; or, with selected links, whenever it arrives at one of them. The default corresponds
//! to captures at the hosts: Wireshark's analysis then finds no false retransmissions.
//!
//! Virtual time 0 is the beginning of 1970, and the scenario determines everything else: a file has
//! the same bytes each time. Hosts are in 10.0.0.0/8, in order of appearance. The side that accepts
//! a connection uses a port for its group of flows, from 50000.
//!
//! # Differences
//! In addition to those of the transports, packets differ from those of real hosts:
//! 1. The payload is zeros and not stored; lengths and checksums include it.
//! 2. SYNs have their options (MSS, SACK permitted, timestamps, window scale) and announce the ECN
//!    variant, although the simulator does not negotiate. The simulator's SYNs and acknowledgements
//!    have the size `transport.header`. A packet with longer options is longer in the file; one
//!    with shorter options has its simulated length.
//! 3. A fourth SACK block is omitted if timestamps leave no room.
//! 4. Accurate ECN has its packet counter in the header (ACE), but not the option with byte
//!    counters.
//! 5. A connection with data in both directions has one handshake and one pair of ports; its data
//!    packets carry the previous acknowledgement. At a selected link they carry the last
//!    acknowledgement sent before they arrived there.
//! 6. FIN is not modelled; a packet of more than 65,535 bytes has no length field.

mod connections;
mod headers;
mod logs;
mod output;
pub mod pcapng;
mod qlog;

use std::io::{self, Write};

use aqmlab_core::{Packet, Time};

use self::connections::Connections;
use self::logs::Logs;
use self::output::Output;
pub use self::output::Unwritten;
use self::pcapng::Interface;
use self::qlog::Qlog;
use crate::endpoints::ConnectionLog;
use crate::endpoints::flow::Flow;
use crate::endpoints::packet::Store;
use crate::network::Observer;
use crate::scenario::Scenario;

/// Recorder of a run's packets and sender events.
#[derive(Default)]
pub struct Recorder {
    packets: Option<Packets>,
    qlog: Option<Qlog>,
    logs: Option<Logs>,
}

/// Packet capture in the pcapng format.
struct Packets {
    output: Output,
    connections: Connections,
    /// By link: its interface, if captured.
    interfaces: Vec<Option<u32>>,
    /// True to capture all packets at these links; otherwise only newly sent ones.
    all: bool,
    /// True if the next packet at a link was just sent.
    is_new: bool,
    headers: Vec<u8>,
}

/// # Panics
/// Always: runs in steps, which can be copied, are not recorded.
impl Clone for Recorder {
    fn clone(&self) -> Self {
        unreachable!("a recorded run is not copied")
    }
}

impl Recorder {
    /// Captures packets of a scenario in `to`, which is named `file`: when they are sent, or when
    /// they arrive at `links` (indices), if any.
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
        let has_payload = scenario.flows.iter().any(|group| group.endpoint.is_udp());
        let most = if has_payload { u32::from(u16::MAX) } else { pcapng::MOST_KEPT };
        let mut count = 0;
        let mut interface = |(index, name): (usize, &str)| {
            let chosen = links.is_empty() || links.contains(&index);
            chosen.then(|| {
                let what = match links.is_empty() {
                    true => format!("packets sent into the link {name}"),
                    false => format!("packets arriving at the link {name}"),
                };
                let interface =
                    Interface { name, comment: &what, link_type: pcapng::LINKTYPE_IPV4, most };
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

    /// Logs events of TCP senders in `to`, which is named `file`.
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

    /// Lets endpoints of other crates write logs of their own. `create` returns the file for a name
    /// (the flow that opens the connection, and the end: `web.0-client`), and its writer.
    #[must_use]
    pub fn with_logs<F>(mut self, create: F) -> Self
    where
        F: Fn(&str) -> (String, io::Result<Box<dyn Write + Send>>) + Send + Sync + 'static,
    {
        self.logs = Some(Logs::new(Box::new(create)));
        self
    }

    /// Returns the log of a connection, named as the flow that opens it.
    pub(crate) fn log(&self, name: String) -> Option<ConnectionLog> {
        self.logs.as_ref().map(|logs| logs.of(name))
    }

    /// Captures a packet created by a flow, which arrives at its first link next.
    #[inline(never)]
    pub(crate) fn sent(&mut self, now: Time, flow: &Flow, packet: &Packet, store: &Store) {
        if let Some(packets) = &mut self.packets {
            packets.connections.sent(now, flow, packet, store);
            packets.is_new = true;
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.sent(now, flow, packet, store);
        }
    }

    /// Logs a packet that arrives at the source of its flow.
    #[cold]
    #[inline(never)]
    pub(crate) fn received(&mut self, now: Time, flow: &Flow, packet: &Packet, store: &Store) {
        if let Some(qlog) = &mut self.qlog {
            qlog.received(now, flow, packet, store);
        }
    }

    /// Called when the source of a flow, by index, has processed an event, before it sends.
    #[inline(never)]
    pub(crate) fn judged(&mut self, now: Time, index: u32, flow: &mut Flow) {
        if let Some(qlog) = &mut self.qlog {
            qlog.judged(now, index, flow);
        }
    }

    /// Called when the source of a flow, by index, has sent.
    #[inline(never)]
    pub(crate) fn settled(&mut self, now: Time, index: u32, flow: &Flow) {
        if let Some(qlog) = &mut self.qlog {
            qlog.settled(now, index, flow);
        }
    }

    /// Joins two flows, by index, as the directions of a connection that the first opens.
    pub(crate) fn paired(&mut self, now: Time, first: (u32, &Flow), second: (u32, &Flow)) {
        if let Some(packets) = &mut self.packets {
            packets.connections.pair(first, second);
        }
        if let Some(qlog) = self.qlog.as_mut().filter(|_| first.1.tcp().is_some()) {
            qlog.know(now, first.0, first.1);
            qlog.know(now, second.0, second.1);
        }
    }

    /// Writes the remaining data.
    ///
    /// # Errors
    /// Returns an error if not all data could be written.
    pub fn finish(self) -> Result<(), Unwritten> {
        let packets = self.packets.map_or(Ok(()), |packets| packets.output.finish());
        let logs = self.logs.map_or(Ok(()), Logs::finish);
        self.qlog.map_or(Ok(()), Qlog::finish).and(packets).and(logs)
    }
}

impl Observer<Store> for Option<Box<Recorder>> {
    #[inline(always)]
    fn entered(&mut self, now: Time, link: u32, packet: &Packet, store: &Store) {
        if let Some(recorder) = self {
            recorder.entered(now, link, packet, store);
        }
    }
}

impl Recorder {
    #[inline(never)]
    fn entered(&mut self, now: Time, link: u32, packet: &Packet, store: &Store) {
        let Some(packets) = &mut self.packets else { return };
        let is_new = std::mem::take(&mut packets.is_new);
        let interface = packets.interfaces.get(link as usize).copied().flatten();
        let Some(interface) = interface.filter(|_| packets.all || is_new) else { return };
        packets.headers.clear();
        let length = packets.connections.write(packet, store, &mut packets.headers);
        let kept = [&packets.headers[..], &[]];
        packets.output.add(|bytes| pcapng::packet(bytes, interface, now, kept, length, None));
    }
}

/// Returns the comment of a capture file.
fn told(scenario: &Scenario) -> String {
    let groups = scenario.flows.iter().zip(0..);
    let ports: Vec<String> = groups
        .map(|(group, index)| format!("{} {}", Connections::port(index), group.name))
        .collect();
    format!("simulated; time 0 is 1970-01-01; ports of groups of flows: {}", ports.join(", "))
}
