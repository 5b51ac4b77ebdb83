//! The outside for a command, without a change to the machine: `--nat`.
//!
//! # Model
//! The far end of the path is in a gateway namespace of our own, to which every
//! address belongs, so the gateway's kernel terminates connections and takes
//! datagrams in as if it were their destination. Before the first packet to a
//! port gets there, a socket for that port (a *door*) is made in the gateway by a
//! process that is there, and handed to the *relay*, a thread of the emulator that
//! opens its own connections from the machine's namespace. Packets to a port
//! without a door are handed to the relay, which lets them in when there is one; those
//! to other ports do not wait. Nothing of this needs a firewall, forwarding, or
//! privileges outside.
//!
//! The far end's own address stands for the machine's loopback address, so
//! servers there can be reached, name servers too.
//!
//! # Differences from translation
//! 1. A connection is two: congestion control on the path is between the
//!    command and the gateway, and a connection is accepted before it is known
//!    whether its destination takes it; if not, it is reset.
//! 2. Only TCP and UDP pass; what else goes outside is counted as without a
//!    route.
//! 3. The first packets to a port may be overtaken by those that come while its door is
//!    opened.

mod relay;
mod streams;

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use aqmlab_core::Result;

use self::relay::Relay;
use crate::addresses::Block;
use crate::errors::failed;
use crate::packet::offload::{self, Offload};
use crate::packet::wire::{Headers, TCP, UDP, be16, parse};
use crate::path::Departure;
use crate::sys::device::Tun;
use crate::sys::epoll::{raise_descriptors, set_nonblocking};
use crate::sys::socket::transparent;
use crate::sys::{receive, send, socket_pair};

/// Where packets to the far end's own address go.
#[derive(Clone, Copy, Debug)]
pub struct Inward {
    /// The far end's addresses.
    pub far: [Ipv6Addr; 2],
    /// The machine's own name server, if it is one for itself only.
    pub name_server: Option<IpAddr>,
}

/// So many descriptors are asked for: two for each of half a million connections.
const DESCRIPTORS: u64 = 1 << 20;

/// What is known of a port: nothing, that a door is being made, that packets may pass.
const UNKNOWN: u8 = 0;
const ASKED: u8 = 1;
const OPEN: u8 = 2;

/// What the gate and the relay both know.
struct Shared {
    /// By protocol, TCP first, and port.
    ports: Vec<AtomicU8>,
    refused_connections: AtomicU64,
    refused_packets: AtomicU64,
    forgotten: AtomicU64,
    failed_accepts: AtomicU64,
}

impl Shared {
    fn new() -> Self {
        let ports = (0..2 << 16).map(|_| AtomicU8::new(UNKNOWN)).collect();
        let [refused_connections, refused_packets, forgotten, failed_accepts] = Default::default();
        Shared { ports, refused_connections, refused_packets, forgotten, failed_accepts }
    }
    fn port(&self, (protocol, port): (u8, u16)) -> &AtomicU8 {
        &self.ports[usize::from(protocol != TCP) << 16 | usize::from(port)]
    }
    fn state(&self, key: (u8, u16)) -> u8 {
        self.port(key).load(Ordering::Acquire)
    }
    fn set(&self, key: (u8, u16), state: u8) {
        self.port(key).store(state, Ordering::Release);
    }
    fn refuse_connection(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }
    fn refuse_packets(&self, count: u64) {
        self.refused_packets.fetch_add(count, Ordering::Relaxed);
    }
    fn note_forgotten(&self, count: u64) {
        self.forgotten.fetch_add(count, Ordering::Relaxed);
    }
    fn note_failed_accept(&self) {
        self.failed_accepts.fetch_add(1, Ordering::Relaxed);
    }
}

/// A packet that waits for a door.
struct Held {
    key: (u8, u16),
    offload: Offload,
    bytes: Vec<u8>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to the gateway.
    Passes,
    /// The relay has it.
    Held,
    /// There is no way for it.
    NoRoute,
}

/// Looks at what leaves for the gateway, and has doors opened there.
pub struct Gate {
    block: Block,
    shared: Arc<Shared>,
    held: Sender<Held>,
    wake: OwnedFd,
    descriptors: u64,
}

impl Gate {
    /// Starts the relay. `keeper` leads to the process in the gateway, whose device is `far`.
    ///
    /// # Errors
    /// If there can be no socket.
    pub fn open(
        keeper: OwnedFd,
        far: &Tun,
        block: Block,
        name_server: Option<IpAddr>,
    ) -> Result<Self> {
        let about = |error: io::Error| failed("the relay to the outside", &error);
        let [wake, woken] = socket_pair().map_err(about)?;
        set_nonblocking(wake.as_fd()).map_err(about)?;
        let (held, packets) = channel();
        let (v4, v6) = block.far();
        let inward = Inward { far: [v4.to_ipv6_mapped(), v6], name_server };
        let shared = Arc::new(Shared::new());
        let descriptors = raise_descriptors(DESCRIPTORS);
        let (both, far, most) =
            (Arc::clone(&shared), far.another().map_err(about)?, descriptors as usize);
        let relay = Relay::new(inward, both, far, packets, [woken, keeper], most).map_err(about)?;
        std::thread::spawn(move || relay.run());
        Ok(Gate { block, shared, held, wake, descriptors })
    }

    /// Whether a packet may go to the gateway. One to a port that nobody takes packets at yet
    /// is handed to the relay.
    pub fn admits(&mut self, departure: &Departure<'_>) -> Verdict {
        let is_tcp = [offload::TCP_V4, offload::TCP_V6].contains(&departure.offload.kind);
        if is_tcp && departure.packets > 1 {
            return Verdict::Passes; // No connection begins with a large packet.
        }
        let joined;
        let packet = match departure.parts {
            [whole, []] => whole,
            parts => {
                joined = parts.concat();
                &joined
            }
        };
        let Ok(headers) = parse(packet) else { return Verdict::Passes };
        if ![TCP, UDP].contains(&headers.protocol) {
            return if self.is_inside(&headers, packet) {
                Verdict::Passes
            } else {
                Verdict::NoRoute
            };
        }
        let Some(transport) = packet.get(usize::from(headers.transport)..) else {
            return Verdict::Passes;
        };
        let is_opening = match headers.protocol {
            TCP => transport.get(13).is_some_and(|flags| flags & 0x12 == 0x02),
            _ => !headers.is_fragment,
        };
        if !is_opening || transport.len() < 4 {
            return Verdict::Passes;
        }
        let key = (headers.protocol, be16(transport, 2));
        if self.shared.state(key) == OPEN {
            return Verdict::Passes;
        }
        let (before, order) = (UNKNOWN, Ordering::AcqRel);
        let _ = self.shared.port(key).compare_exchange(before, ASKED, order, Ordering::Acquire);
        let held = Held { key, offload: departure.offload, bytes: packet.to_vec() };
        if self.held.send(held).is_err() {
            return Verdict::NoRoute;
        }
        // One that does not fit in is one of many that wait to be heard.
        let _ = send(self.wake.as_fd(), &[1], None);
        Verdict::Held
    }

    /// Whether it is for the far end itself.
    fn is_inside(&self, headers: &Headers, packet: &[u8]) -> bool {
        match headers.is_v6 {
            true => packet[24..40] == self.block.far().1.octets(),
            false => packet[16..20] == self.block.far().0.octets(),
        }
    }

    /// What was refused, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let limit = format!("there were no descriptors left (limit {})", self.descriptors);
        let said = [
            (&self.shared.refused_connections, "connections to the outside were reset"),
            (&self.shared.refused_packets, "packets to the outside were dropped"),
            (&self.shared.forgotten, "pairs of ends of datagrams were forgotten early"),
        ];
        let mut remarks: Vec<String> = said
            .into_iter()
            .filter(|(number, _)| count(number) > 0)
            .map(|(number, what)| format!("{} {what}: {limit}", count(number)))
            .collect();
        if count(&self.shared.failed_accepts) > 0 {
            let times = count(&self.shared.failed_accepts);
            remarks.push(format!(
                "the kernel refused {times} times to accept a connection to the outside"
            ));
        }
        remarks
    }
}

/// What the process in the gateway does: makes sockets and hands them out,
/// until the emulator is gone.
pub fn keep_gate(emulator: &OwnedFd) {
    while let Ok((text, _)) = receive(emulator.as_fd()) {
        let [protocol, high, low] = text[..] else { return };
        let port = u16::from_be_bytes([high, low]);
        let socket = transparent(protocol == TCP, port).ok();
        let is_made = u8::from(socket.is_some());
        if send(emulator.as_fd(), &[is_made], socket.as_ref().map(AsFd::as_fd)).is_err() {
            return;
        }
    }
}
