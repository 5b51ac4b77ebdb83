//! Access to other networks without changes to the machine: `--nat`.
//!
//! # Model
//! The far end of the path is in a gateway namespace that owns every address, so the gateway's
//! kernel terminates connections and accepts datagrams as if it were their destination. Before the
//! first packet to a port reaches it, a process inside the gateway opens a socket for that port (a
//! *gateway socket*) and passes it to the *relay*. The relay is a thread of the emulator that opens
//! connections of its own in the machine's namespace. Packets to a port without a gateway socket
//! are passed to the relay, which injects them once the socket exists; packets to other ports do
//! not wait. This needs no firewall, no forwarding, and no privileges outside.
//!
//! The far end's own address represents the machine's loopback address, so servers there can be
//! reached, including name servers.
//!
//! # Differences from translation
//! 1. Each connection is split in two: congestion control on the path is between the command and
//!    the gateway. The gateway accepts a connection before the destination does, and resets it if
//!    the destination refuses.
//! 2. Only TCP and UDP pass, and ICMP errors about datagrams (`unreachable`). Other packets to the
//!    outside are counted as without a route.
//! 3. The first packets to a port may be overtaken by packets that arrive while its gateway socket
//!    is being opened.
//! 4. A datagram that arrives whole is not fragmented outside, as if it had the flag DF: if it
//!    exceeds the path MTU there, the command gets an ICMP error. One that arrives in fragments may
//!    be fragmented again.

mod relay;
mod streams;
mod unreachable;

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use aqmlab_core::Result;

use self::relay::Relay;
use crate::addresses::Block;
use crate::packet::offload::{self, Offload};
use crate::packet::wire::{Headers, ICMP, ICMP_V6, TCP, UDP, be16, parse};
use crate::path::Departure;
use crate::sys::device::Tun;
use crate::sys::epoll::{raise_descriptors, set_nonblocking};
use crate::sys::socket::{raw_packets, transparent};
use crate::sys::{failed, receive, send, socket_pair};

/// Destination of packets to the far end's own address.
#[derive(Clone, Copy, Debug)]
pub struct Inward {
    /// Addresses of the far end.
    pub far: [Ipv6Addr; 2],
    /// Name server of the machine, if it listens on a loopback address only.
    pub name_server: Option<IpAddr>,
}

/// Number of descriptors requested: two for each of half a million connections.
const DESCRIPTORS: u64 = 1 << 20;

/// State of a port: unknown, gateway socket requested, packets may pass.
const UNKNOWN: u8 = 0;
const ASKED: u8 = 1;
const OPEN: u8 = 2;

aqmlab_aqm::named! {
    /// Failure of the gateway, with the sentence about `{count}` of them.
    pub enum Failure {
        /// A connection without descriptors for it.
        ConnectionReset = "{count} connections to the outside were reset: {left}",
        /// A packet without a descriptor for its socket.
        PacketDropped = "{count} packets to the outside were dropped: {left}",
        /// A packet beyond the limit of those that wait for a gateway socket.
        TooManyHeld = "{count} packets to the outside were dropped: {held} MiB already waited for a socket",
        /// A packet for whose socket the kernel had no port or no memory.
        NoSocket = "{count} packets to the outside were dropped: the kernel opened no socket for them",
        /// A pair of datagram endpoints closed to free its descriptor.
        Forgotten = "{count} pairs of ends of datagrams were forgotten early: {left}",
        /// A connection that the kernel did not hand over.
        NotAccepted = "the kernel refused {count} times to accept a connection to the outside",
    }
}

/// State shared by the gateway filter and the relay.
struct Shared {
    /// State of ports, by protocol (TCP first) and port.
    ports: Vec<AtomicU8>,
    failures: [AtomicU64; Failure::ALL.len()],
}

impl Shared {
    fn new() -> Self {
        let ports = (0..2 << 16).map(|_| AtomicU8::new(UNKNOWN)).collect();
        Shared { ports, failures: Default::default() }
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
    fn count(&self, failure: Failure, count: u64) {
        self.failures[failure as usize].fetch_add(count, Ordering::Relaxed);
    }
}

/// Packet waiting for a gateway socket.
struct Held {
    key: (u8, u16),
    offload: Offload,
    bytes: Vec<u8>,
}

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send to the gateway.
    Passes,
    /// Passed to the relay.
    Held,
    /// Dropped: no route.
    NoRoute,
}

/// Filters departures to the gateway, and requests gateway sockets.
pub struct GatewayFilter {
    block: Block,
    shared: Arc<Shared>,
    held: Sender<Held>,
    wake: OwnedFd,
    descriptors: u64,
}

impl GatewayFilter {
    /// Starts the relay. `keeper` is the connection to the process in the gateway, whose device is
    /// `far`.
    ///
    /// # Errors
    /// Returns an error if no socket can be created.
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
        Ok(GatewayFilter { block, shared, held, wake, descriptors })
    }

    /// Decides about a packet to the gateway. Packets to a port without a gateway socket are passed
    /// to the relay.
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
        // If the pipe is full, the relay has wake-ups pending already.
        let _ = send(self.wake.as_fd(), &[1], None);
        Verdict::Held
    }

    /// Returns true if the packet is addressed to the far end itself.
    fn is_inside(&self, headers: &Headers, packet: &[u8]) -> bool {
        match headers.is_v6 {
            true => packet[24..40] == self.block.far().1.octets(),
            false => packet[16..20] == self.block.far().0.octets(),
        }
    }

    /// Returns the failures of the gateway, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let left = format!("there were no descriptors left (limit {})", self.descriptors);
        let held = (relay::MOST_HELD >> 20).to_string();
        let counts = self.shared.failures.iter().map(|count| count.load(Ordering::Relaxed));
        let counted = Failure::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0);
        let sentence = |(failure, count): (Failure, u64)| {
            let text = failure.name().replace("{count}", &count.to_string());
            text.replace("{left}", &left).replace("{held}", &held)
        };
        counted.map(sentence).collect()
    }
}

/// Runs the process inside the gateway: opens sockets and passes them to the relay until the
/// emulator exits.
pub fn run_keeper(emulator: &OwnedFd) {
    while let Ok((text, _)) = receive(emulator.as_fd()) {
        let [protocol, high, low] = text[..] else { return };
        let port = u16::from_be_bytes([high, low]);
        let socket = match protocol {
            ICMP | ICMP_V6 => raw_packets(protocol == ICMP_V6),
            _ => transparent(protocol == TCP, port),
        };
        let socket = socket.ok();
        let is_made = u8::from(socket.is_some());
        if send(emulator.as_fd(), &[is_made], socket.as_ref().map(AsFd::as_fd)).is_err() {
            return;
        }
    }
}
