//! The thread that carries bytes between the gateway and the outside.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6, TcpListener, TcpStream,
    UdpSocket,
};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use super::Inward;
use crate::sys::receive;
use crate::sys::socket::{receive_from, reset_at_close, send_from};
use crate::sys::time::{monotonic, readable, wait_for};

/// A socket in the gateway for one port, at all addresses.
pub struct Door {
    pub is_stream: bool,
    pub port: u16,
    pub socket: OwnedFd,
}

/// How long a connection outside may take to be made.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long datagrams of a pair of ends may pause before they are forgotten
/// (RFC 4787, REQ-5).
const UDP_LIFE: u64 = 120 * 1_000_000_000;
/// How often that is looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// The name server's port.
const DNS: u16 = 53;

impl Inward {
    /// Where what the command sent to `address` goes.
    fn outside(&self, address: Ipv6Addr, port: u16) -> SocketAddr {
        let is_far = self.far.contains(&address);
        let ip = match (is_far, self.name_server) {
            (true, Some(server)) if port == DNS => server,
            (true, _) if address.to_ipv4_mapped().is_none() => Ipv6Addr::LOCALHOST.into(),
            (true, _) => Ipv4Addr::LOCALHOST.into(),
            (false, _) => IpAddr::from(address).to_canonical(),
        };
        SocketAddr::new(ip, port)
    }
}

/// Both ends of datagrams: who sent them, to which address and port.
type Ends = (SocketAddrV6, Ipv6Addr, u16);

/// A socket outside for one pair of ends.
struct Outside {
    socket: UdpSocket,
    last: u64,
}

/// Everything that is open.
pub struct Relay {
    inward: Inward,
    new_doors: Receiver<Door>,
    woken: OwnedFd,
    listeners: Vec<TcpListener>,
    /// By port.
    datagrams: BTreeMap<u16, OwnedFd>,
    outside: BTreeMap<Ends, Outside>,
}

impl Relay {
    pub fn new(inward: Inward, new_doors: Receiver<Door>, woken: OwnedFd) -> Self {
        let (listeners, datagrams, outside) = Default::default();
        Relay { inward, new_doors, woken, listeners, datagrams, outside }
    }

    /// Runs until the gate is gone.
    pub fn run(mut self) {
        let mut bytes = vec![0; 65_536];
        loop {
            let mut polled = vec![readable(self.woken.as_fd())];
            polled.extend(self.listeners.iter().map(|each| readable(each.as_fd())));
            polled.extend(self.datagrams.values().map(|each| readable(each.as_fd())));
            polled.extend(self.outside.values().map(|each| readable(each.socket.as_fd())));
            if wait_for(&mut polled, Some(SWEEP)).is_err() {
                return;
            }
            let mut ready = polled.iter().map(|each| each.revents != 0);
            let mut is_ready = || ready.next().expect("one each");
            let has_news = is_ready();
            let Relay { inward, listeners, datagrams, outside, .. } = &mut self;
            for listener in listeners.iter().filter(|_| is_ready()) {
                accept(listener, *inward);
            }
            let now = monotonic();
            let arrived: Vec<bool> = datagrams.values().map(|_| is_ready()).collect();
            for (ends, each) in outside.iter_mut() {
                if is_ready() {
                    each.last = now;
                    back(&each.socket, &datagrams[&ends.2], ends, &mut bytes);
                }
            }
            for ((port, door), _) in datagrams.iter().zip(arrived).filter(|(_, ready)| *ready) {
                forward(door, *port, *inward, outside, now, &mut bytes);
            }
            outside.retain(|_, each| now - each.last < UDP_LIFE);
            if has_news && !self.take_doors() {
                return;
            }
        }
    }

    /// Takes the new doors in; whether there may be more.
    fn take_doors(&mut self) -> bool {
        let is_open = receive(self.woken.as_fd()).is_ok_and(|(text, _)| !text.is_empty());
        for door in self.new_doors.try_iter() {
            match door.is_stream {
                true => self.listeners.push(TcpListener::from(door.socket)),
                false => drop(self.datagrams.insert(door.port, door.socket)),
            }
        }
        is_open
    }
}

/// Takes the waiting connections of a listener, each for a thread of its own.
fn accept(listener: &TcpListener, inward: Inward) {
    while let Ok((inside, _)) = listener.accept() {
        let _ = inside.set_nonblocking(false);
        // Whom the command meant is what the gateway takes itself for.
        let Ok(SocketAddr::V6(meant)) = inside.local_addr() else { continue };
        let to = inward.outside(*meant.ip(), meant.port());
        let connect = move || match TcpStream::connect_timeout(&to, PATIENCE) {
            Ok(outside) => relay(inside, outside),
            Err(_) => reset_at_close(inside.as_fd()),
        };
        let _ = thread::Builder::new().stack_size(256 << 10).spawn(connect);
    }
}

/// Carries bytes both ways until both are at their end.
fn relay(inside: TcpStream, outside: TcpStream) {
    let (inside, outside) = (Arc::new(inside), Arc::new(outside));
    for socket in [&inside, &outside] {
        let _ = socket.set_nodelay(true);
    }
    let (from, to) = (Arc::clone(&outside), Arc::clone(&inside));
    let back = thread::Builder::new().stack_size(256 << 10).spawn(move || carry(&from, &to));
    carry(&inside, &outside);
    if let Ok(back) = back {
        let _ = back.join();
    }
}

/// Carries bytes one way. An end is passed on, a failure to both.
fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    let mut bytes = vec![0; 128 << 10];
    let carried = loop {
        match from.read(&mut bytes) {
            Ok(0) => break to.shutdown(Shutdown::Write),
            Ok(size) => {
                if let Err(error) = to.write_all(&bytes[..size]) {
                    break Err(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    if carried.is_err() {
        for socket in [from, to] {
            reset_at_close(socket.as_fd());
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Sends the datagrams of a door on their way outside.
fn forward(
    door: &OwnedFd,
    port: u16,
    inward: Inward,
    outside: &mut BTreeMap<Ends, Outside>,
    now: u64,
    bytes: &mut [u8],
) {
    while let Ok(datagram) = receive_from(door.as_fd(), bytes) {
        let ends = (datagram.from, datagram.to, port);
        let each = match outside.entry(ends) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match connected(inward.outside(datagram.to, port)) {
                Ok(socket) => entry.insert(Outside { socket, last: now }),
                Err(_) => continue,
            },
        };
        each.last = now;
        let _ = each.socket.send(&bytes[..datagram.size]);
    }
}

/// A socket for datagrams to and from this address only.
fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Sends what has come from outside back to the command.
fn back(socket: &UdpSocket, door: &OwnedFd, ends: &Ends, bytes: &mut [u8]) {
    while let Ok(size) = socket.recv(bytes) {
        let _ = send_from(door.as_fd(), &bytes[..size], ends.1, &ends.0);
    }
}
