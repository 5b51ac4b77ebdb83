//! The outside for a command, without a change to the machine: `--nat`.
//!
//! # Model
//! The far end of the path is in a gateway namespace of our own, to which every
//! address belongs, so the gateway's kernel terminates connections and takes
//! datagrams in as if it were their destination. Before the first packet to a
//! port gets there, a socket for that port is made in the gateway by a process
//! that is there, and handed to the *relay*, a thread of the emulator that
//! opens its own connections from the machine's namespace. Nothing of this
//! needs a firewall, forwarding, or privileges outside.
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

mod relay;

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};

use aqmlab_core::Result;

use self::relay::{Door, Relay};
use crate::addresses::Block;
use crate::offload;
use crate::path::Departure;
use crate::shell::failed;
use crate::sys::socket::transparent;
use crate::sys::{receive, send, socket_pair};
use crate::wire::{Headers, TCP, UDP, be16, parse};

/// Where packets to the far end's own address go.
#[derive(Clone, Copy, Debug)]
pub struct Inward {
    /// The far end's addresses.
    pub far: [Ipv6Addr; 2],
    /// The machine's own name server, if it is one for itself only.
    pub name_server: Option<IpAddr>,
}

/// Looks at what leaves for the gateway, and has doors opened there.
pub struct Gate {
    keeper: OwnedFd,
    block: Block,
    known: HashSet<(u8, u16), BuildHasherDefault<Ports>>,
    doors: Sender<Door>,
    wake: OwnedFd,
}

impl Gate {
    /// Starts the relay. `keeper` leads to the process in the gateway.
    ///
    /// # Errors
    /// If there can be no socket.
    pub fn open(keeper: OwnedFd, block: Block, name_server: Option<IpAddr>) -> Result<Self> {
        let [wake, woken] = socket_pair().map_err(|error| failed("a socket", &error))?;
        let (doors, new_doors) = channel();
        let (v4, v6) = block.far();
        let inward = Inward { far: [v4.to_ipv6_mapped(), v6], name_server };
        std::thread::spawn(move || Relay::new(inward, new_doors, woken).run());
        Ok(Gate { keeper, block, known: HashSet::default(), doors, wake })
    }

    /// Whether a packet may go to the gateway. If it is the first to a port,
    /// this waits until there is somebody to take it.
    pub fn admits(&mut self, departure: &Departure<'_>) -> bool {
        let is_tcp = [offload::TCP_V4, offload::TCP_V6].contains(&departure.offload.kind);
        if is_tcp && departure.packets > 1 {
            return true; // No connection begins with a large packet.
        }
        let joined;
        let packet = match departure.parts {
            [whole, []] => whole,
            parts => {
                joined = parts.concat();
                &joined
            }
        };
        let Ok(headers) = parse(packet) else { return true };
        if ![TCP, UDP].contains(&headers.protocol) {
            return self.is_inside(&headers, packet);
        }
        let Some(transport) = packet.get(usize::from(headers.transport)..) else { return true };
        let is_opening = match headers.protocol {
            TCP => transport.get(13).is_some_and(|flags| flags & 0x12 == 0x02),
            _ => !headers.is_fragment,
        };
        if is_opening && transport.len() >= 4 {
            let port = be16(transport, 2);
            if self.known.insert((headers.protocol, port)) {
                self.ask(headers.protocol, port);
            }
        }
        true
    }

    /// Whether it is for the far end itself.
    fn is_inside(&self, headers: &Headers, packet: &[u8]) -> bool {
        match headers.is_v6 {
            true => packet[24..40] == self.block.far().1.octets(),
            false => packet[16..20] == self.block.far().0.octets(),
        }
    }

    fn ask(&self, protocol: u8, port: u16) {
        let [high, low] = port.to_be_bytes();
        let asked = send(self.keeper.as_fd(), &[protocol, high, low], None);
        let answer = asked.and_then(|()| receive(self.keeper.as_fd()));
        // Without a socket there is a server of the user's own, or none.
        if let Ok((_, Some(socket))) = answer
            && self.doors.send(Door { is_stream: protocol == TCP, port, socket }).is_ok()
        {
            let _ = send(self.wake.as_fd(), &[1], None);
        }
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

/// A hash of a protocol and a port that is always the same.
#[derive(Default)]
pub struct Ports(u64);

impl std::hash::Hasher for Ports {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum << 8 | u64::from(*byte));
    }
}
