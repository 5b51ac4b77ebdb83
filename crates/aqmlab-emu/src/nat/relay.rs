//! Thread that carries bytes between the gateway and the outside.
//!
//! The thread never blocks: epoll reports readable and writable descriptors, and connections take
//! turns. Descriptors are counted. When none is left, the relay closes the datagram sockets idle
//! for longest; if that does not free enough, it refuses and counts new connections and datagrams.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::streams::{Pair, ROOM, Turn};
use super::unreachable::{self, Problem};
use super::{Failure, Held, Inward, OPEN, Shared, UNKNOWN};
use crate::packet::wire::{ICMP, ICMP_V6, TCP, UDP};
use crate::sys::device::Tun;
use crate::sys::epoll::{Epoll, parts, set_nonblocking, token};
use crate::sys::socket::{
    Datagram, begin_connection, path_mtu, receive_from, report_traffic_class, reset_at_close,
    send_from, send_packet, set_fragmentation, set_traffic_class,
};
use crate::sys::time::monotonic;
use crate::sys::{receive, send};

const SECOND: u64 = 1_000_000_000;
/// Timeout for opening an outside connection.
const PATIENCE: u64 = 20 * SECOND;
/// Idle timeout of datagram endpoint pairs (RFC 4787, REQ-5), and of gateway sockets without any.
const LIFE: u64 = 120 * SECOND;
/// Interval of the checks for idle sockets, and of retries to accept waiting connections.
const SWEEP: Duration = Duration::from_millis(500);
/// Port of name servers.
const DNS: u16 = 53;
/// Descriptors reserved for other purposes.
const RESERVED: usize = 64;
/// Limit of the bytes of packets waiting for gateway sockets. A busy machine runs the keeper late,
/// and then hundreds of connections begun at once wait for one port: dropping some would be a loss
/// that the path never had.
pub const MOST_HELD: usize = 64 << 20;
/// Datagrams of one socket, or connections of one listener, per turn.
const TURNS: usize = 256;

impl Inward {
    /// Returns the outside destination of packets that the command sent to `address`.
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

/// Kinds of descriptors; the number of a gateway socket has protocol and port.
const FILTER: u32 = 0;
const KEEPER: u32 = 1;
const GATEWAY_SOCKET: u32 = 2;
const OUTSIDE: u32 = 3;
const PAIR: u32 = 4;

/// Returns the token of the gateway socket of a protocol and port.
fn socket_token((protocol, port): (u8, u16)) -> u64 {
    token(GATEWAY_SOCKET, u32::from(protocol) << 16 | u32::from(port))
}

/// Gateway socket for one port, at all addresses.
enum Socket {
    Listener(TcpListener),
    Datagrams(OwnedFd),
}

struct GatewaySocket {
    socket: Socket,
    last: u64,
}

/// Both endpoints of datagrams: sender, and destination address and port.
type Ends = (SocketAddrV6, Ipv6Addr, u16);

/// Outside socket for one endpoint pair.
struct Outside {
    socket: UdpSocket,
    ends: Ends,
    last: u64,
    /// Size of the last datagram sent.
    size: usize,
    /// Whether the kernel may fragment datagrams.
    may_fragment: bool,
    /// DSCP and ECN field of the last datagram sent.
    class: u8,
}

impl Outside {
    /// Sends a datagram. Returns the reason if it, or an earlier one, was not delivered.
    fn send(&mut self, bytes: &[u8], class: u8, may_fragment: bool) -> Option<Problem> {
        if may_fragment != self.may_fragment {
            self.may_fragment = may_fragment;
            let _ = set_fragmentation(&self.socket, self.is_v6(), may_fragment);
        }
        if class != self.class {
            self.class = class;
            let _ = set_traffic_class(&self.socket, self.is_v6(), class);
        }
        self.size = bytes.len();
        let error = self.socket.send(bytes).err()?;
        let problem = self.problem(&error);
        // The error may be about an earlier datagram; the kernel reports it once.
        let _ = self.socket.send(bytes);
        problem
    }
    fn problem(&self, error: &io::Error) -> Option<Problem> {
        Problem::of(error, || path_mtu(&self.socket, self.is_v6()))
    }
    fn is_v6(&self) -> bool {
        self.socket.peer_addr().is_ok_and(|address| address.is_ipv6())
    }
}

/// Items with numbers that epoll can hold. A number is reused only after the events that may refer to
/// it.
struct Numbered<T> {
    all: Vec<Option<T>>,
    free: Vec<u32>,
    freed: Vec<u32>,
}

impl<T> Numbered<T> {
    fn new() -> Self {
        Numbered { all: Vec::new(), free: Vec::new(), freed: Vec::new() }
    }
    /// Returns the number of the next item.
    fn next(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            (self.all.len() - 1) as u32
        })
    }
    fn take(&mut self, number: u32) -> Option<T> {
        let taken = self.all.get_mut(number as usize)?.take()?;
        self.freed.push(number);
        Some(taken)
    }
    fn get(&mut self, number: u32) -> Option<&mut T> {
        self.all.get_mut(number as usize)?.as_mut()
    }
    fn settle(&mut self) {
        self.free.append(&mut self.freed);
    }
}

/// Thread that connects the gateway to the outside.
pub struct Relay {
    inward: Inward,
    shared: Arc<Shared>,
    /// Far end, for packets that waited for a gateway socket.
    far: Tun,
    packets: Receiver<Held>,
    woken: OwnedFd,
    keeper: OwnedFd,
    /// Sockets for ICMP errors to the command: of IPv4, of IPv6.
    errors: [Option<OwnedFd>; 2],
    epoll: Epoll,
    /// Sockets requested from the keeper, in order, and requests not yet sent.
    asked: VecDeque<(u8, u16)>,
    to_ask: VecDeque<(u8, u16)>,
    /// Packets waiting for a gateway socket.
    held: HashMap<(u8, u16), Vec<Held>>,
    held_bytes: usize,
    gateway_sockets: BTreeMap<(u8, u16), GatewaySocket>,
    outside: Numbered<Outside>,
    by_ends: HashMap<Ends, u32>,
    pairs: Numbered<Pair>,
    /// Tokens of descriptors with more work that epoll does not report again.
    again: Vec<u64>,
    /// Number of descriptors in use, and its limit.
    open: usize,
    most: usize,
    room: Vec<u8>,
}

impl Relay {
    /// Creates the relay. `keeper` is the connection to the process in the gateway; `most` limits
    /// the number of descriptors.
    pub fn new(
        inward: Inward,
        shared: Arc<Shared>,
        far: Tun,
        packets: Receiver<Held>,
        [woken, keeper]: [OwnedFd; 2],
        most: usize,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        for (fd, kind) in [(&woken, FILTER), (&keeper, KEEPER)] {
            set_nonblocking(fd.as_fd())?;
            epoll.add(fd.as_fd(), token(kind, 0))?;
        }
        Ok(Relay {
            inward,
            shared,
            far,
            packets,
            woken,
            keeper,
            epoll,
            errors: [None, None],
            asked: VecDeque::new(),
            to_ask: [(ICMP, 0), (ICMP_V6, 0)].into(),
            held: HashMap::new(),
            held_bytes: 0,
            gateway_sockets: BTreeMap::new(),
            outside: Numbered::new(),
            by_ends: HashMap::new(),
            pairs: Numbered::new(),
            again: Vec::new(),
            open: 0,
            most: most.saturating_sub(RESERVED),
            room: vec![0; ROOM],
        })
    }

    /// Runs until the gateway filter is dropped.
    pub fn run(mut self) {
        let mut found = Vec::new();
        let mut next_sweep = monotonic();
        self.ask();
        loop {
            let wait = if self.again.is_empty() { SWEEP } else { Duration::ZERO };
            if self.epoll.wait(wait, &mut found).is_err() {
                return;
            }
            found.append(&mut self.again);
            let now = monotonic();
            for token in found.drain(..) {
                let (kind, which) = parts(token);
                match kind {
                    FILTER if !self.take_packets() => return,
                    KEEPER => self.hear_keeper(now),
                    GATEWAY_SOCKET => self.serve_socket((which >> 16) as u8, which as u16, now),
                    OUTSIDE => self.bring_back(which, now),
                    PAIR => self.carry(which),
                    _ => {}
                }
            }
            self.outside.settle();
            self.pairs.settle();
            if now >= next_sweep {
                next_sweep = now + SWEEP.as_nanos() as u64;
                self.sweep(now);
            }
        }
    }

    /// Receives the packets held by the gateway filter. Returns whether the filter still exists.
    fn take_packets(&mut self) -> bool {
        let is_open = loop {
            match receive(self.woken.as_fd()) {
                Ok((text, _)) if text.is_empty() => break false,
                Ok(_) => {}
                Err(error) => break error.kind() == io::ErrorKind::WouldBlock,
            }
        };
        while let Ok(held) = self.packets.try_recv() {
            let key = held.key;
            if self.shared.state(key) == OPEN {
                self.let_in(&held);
                continue;
            }
            if self.held_bytes + held.bytes.len() > MOST_HELD {
                self.shared.count(Failure::TooManyHeld, 1);
                continue;
            }
            self.held_bytes += held.bytes.len();
            let waiting = self.held.entry(key).or_default();
            if waiting.is_empty() {
                self.to_ask.push_back(key);
            }
            waiting.push(held);
        }
        self.ask();
        is_open
    }

    /// Returns the packets that wait for a gateway socket, which no longer wait.
    fn take_held(&mut self, key: (u8, u16)) -> Vec<Held> {
        let waiting = self.held.remove(&key).unwrap_or_default();
        self.held_bytes -= waiting.iter().map(|held| held.bytes.len()).sum::<usize>();
        waiting
    }

    fn let_in(&self, held: &Held) {
        let _ = self.far.write(held.offload, [&held.bytes, &[]]);
    }

    /// Requests gateway sockets from the keeper, while it accepts requests.
    fn ask(&mut self) {
        while let Some(key) = self.to_ask.pop_front() {
            if !self.has_room(1) {
                self.refuse_door(key);
                continue;
            }
            let [high, low] = key.1.to_be_bytes();
            match send(self.keeper.as_fd(), &[key.0, high, low], None) {
                Ok(()) => self.asked.push_back(key),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.to_ask.push_front(key);
                    return;
                }
                Err(_) => self.refuse_door(key),
            }
        }
    }

    fn refuse_door(&mut self, key: (u8, u16)) {
        let waiting = self.take_held(key);
        self.shared.count(Failure::PacketDropped, waiting.len() as u64);
        self.shared.set(key, UNKNOWN);
    }

    fn hear_keeper(&mut self, now: u64) {
        while let Ok((text, socket)) = receive(self.keeper.as_fd()) {
            if text.is_empty() {
                break;
            }
            let Some(key) = self.asked.pop_front() else { break };
            if let ICMP | ICMP_V6 = key.0 {
                self.errors[usize::from(key.0 == ICMP_V6)] = socket;
                continue;
            }
            // Without a socket, the port has a server of the user's own, or none.
            if let Some(socket) = socket {
                if self.epoll.add(socket.as_fd(), socket_token(key)).is_err() {
                    self.refuse_door(key);
                    continue;
                }
                let socket = match key.0 {
                    TCP => Socket::Listener(TcpListener::from(socket)),
                    _ => Socket::Datagrams(socket),
                };
                self.open += 1;
                self.gateway_sockets.insert(key, GatewaySocket { socket, last: now });
            }
            let waiting = self.take_held(key);
            waiting.iter().for_each(|held| self.let_in(held));
            self.shared.set(key, OPEN);
        }
        self.ask();
    }

    /// Serves new connections or datagrams at a gateway socket.
    fn serve_socket(&mut self, protocol: u8, port: u16, now: u64) {
        for _ in 0..TURNS {
            let Some(entry) = self.gateway_sockets.get_mut(&(protocol, port)) else { return };
            let has_more = match &entry.socket {
                Socket::Listener(listener) => match listener.accept() {
                    Ok((inside, _)) => {
                        entry.last = now;
                        self.open_pair(inside, now);
                        true
                    }
                    Err(error) => {
                        // Connections that cannot be accepted now wait for the next sweep.
                        if error.kind() != io::ErrorKind::WouldBlock {
                            self.shared.count(Failure::NotAccepted, 1);
                        }
                        false
                    }
                },
                Socket::Datagrams(socket) => match receive_from(socket.as_fd(), &mut self.room) {
                    Ok(datagram) => {
                        entry.last = now;
                        self.forward(&datagram, port, now);
                        true
                    }
                    Err(error) => error.kind() != io::ErrorKind::WouldBlock,
                },
            };
            if !has_more {
                return;
            }
        }
        self.again.push(socket_token((protocol, port)));
    }

    /// Returns whether `count` more descriptors are available; closes idle datagram sockets if
    /// needed.
    fn has_room(&mut self, count: usize) -> bool {
        if self.open + count > self.most {
            self.forget_oldest();
        }
        self.open + count <= self.most
    }

    /// Closes the tenth of the datagram sockets that has been idle for longest.
    fn forget_oldest(&mut self) {
        let all = self.outside.all.iter().enumerate();
        let mut ages: Vec<(u64, u32)> =
            all.filter_map(|(at, each)| Some((each.as_ref()?.last, at as u32))).collect();
        ages.sort_unstable();
        ages.truncate(ages.len().div_ceil(10));
        self.shared.count(Failure::Forgotten, ages.len() as u64);
        for (_, which) in ages {
            self.forget(which);
        }
    }

    fn forget(&mut self, which: u32) {
        if let Some(each) = self.outside.take(which) {
            self.by_ends.remove(&each.ends);
            self.open -= 1;
        }
    }

    fn open_pair(&mut self, inside: std::net::TcpStream, now: u64) {
        if !self.has_room(2) {
            reset_at_close(inside.as_fd());
            self.shared.count(Failure::ConnectionReset, 1);
            return;
        }
        // The socket's local address is the destination that the command used.
        let Ok(SocketAddr::V6(meant)) = inside.local_addr() else { return };
        let to = self.inward.outside(*meant.ip(), meant.port());
        let made = inside.set_nonblocking(true).and_then(|()| begin_connection(&to));
        let Ok(outside) = made else {
            reset_at_close(inside.as_fd());
            return;
        };
        let which = self.pairs.next();
        let number = token(PAIR, which);
        let pair = Pair::new(inside, outside, now);
        let added = pair.ends().iter().try_for_each(|end| self.epoll.add(end.as_fd(), number));
        self.pairs.all[which as usize] = Some(pair);
        self.open += 2;
        if added.is_err() {
            self.end_pair(which);
        }
    }

    fn carry(&mut self, which: u32) {
        let Some(pair) = self.pairs.get(which) else { return };
        match pair.carry(&mut self.room) {
            Turn::Waits => {}
            Turn::MayGoOn => self.again.push(token(PAIR, which)),
            Turn::Over => self.end_pair(which),
        }
    }

    fn end_pair(&mut self, which: u32) {
        if self.pairs.take(which).is_some() {
            self.open -= 2;
        }
    }

    /// Sends a datagram from the buffer to the outside.
    fn forward(&mut self, datagram: &Datagram, port: u16, now: u64) {
        let (size, ends) = (datagram.size, (datagram.from, datagram.to, port));
        let which = match self.by_ends.get(&ends).copied() {
            Some(which) => which,
            None if !self.has_room(1) => return self.shared.count(Failure::PacketDropped, 1),
            None => {
                let socket = match connected(self.inward.outside(ends.1, ends.2)) {
                    Ok(socket) => socket,
                    Err(error) => {
                        return match Problem::of(&error, || None) {
                            Some(problem) => self.report(problem, ends, size),
                            None => self.shared.count(Failure::NoSocket, 1),
                        };
                    }
                };
                let which = self.outside.next();
                if self.epoll.add(socket.as_fd(), token(OUTSIDE, which)).is_err() {
                    self.outside.freed.push(which);
                    return self.shared.count(Failure::NoSocket, 1);
                }
                let made =
                    Outside { socket, ends, last: now, size: 0, may_fragment: false, class: 0 };
                self.outside.all[which as usize] = Some(made);
                self.by_ends.insert(ends, which);
                self.open += 1;
                which
            }
        };
        if let Some(each) = self.outside.get(which) {
            each.last = now;
            let (bytes, earlier) = (&self.room[..size], each.size);
            if let Some(problem) = each.send(bytes, datagram.class, datagram.in_fragments) {
                let size = if let Problem::TooBig(_) = problem { size } else { earlier };
                self.report(problem, ends, size);
            }
        }
    }

    /// Sends the command an ICMP error about a datagram of `size` bytes.
    fn report(&self, problem: Problem, (from, to, port): Ends, size: usize) {
        let is_v6 = from.ip().to_ipv4_mapped().is_none();
        let Some(socket) = &self.errors[usize::from(is_v6)] else { return };
        let about = unreachable::UnreachableDatagram { from, to: (to, port), size };
        let packet = unreachable::packet(problem, &about, self.inward.far);
        let _ = send_packet(socket.as_fd(), &packet, IpAddr::from(*from.ip()).to_canonical());
    }

    /// Returns datagrams from the outside to the command.
    fn bring_back(&mut self, which: u32, now: u64) {
        let Some(each) = self.outside.all.get_mut(which as usize).and_then(Option::as_mut) else {
            return;
        };
        each.last = now;
        let (from, to, port) = each.ends;
        let (mut problem, mut has_more) = (None, true);
        for _ in 0..TURNS {
            let datagram = match receive_from(each.socket.as_fd(), &mut self.room) {
                Ok(datagram) => datagram,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    has_more = false;
                    break;
                }
                // An earlier datagram was not delivered.
                Err(error) => {
                    problem = each.problem(&error).or(problem);
                    continue;
                }
            };
            if let Some(GatewaySocket { socket: Socket::Datagrams(socket), last }) =
                self.gateway_sockets.get_mut(&(UDP, port))
            {
                *last = now;
                let bytes = &self.room[..datagram.size];
                let _ = send_from(socket.as_fd(), bytes, to, &from, datagram.class);
            }
        }
        let size = each.size;
        if let Some(problem) = problem {
            self.report(problem, (from, to, port), size);
        }
        if has_more {
            self.again.push(token(OUTSIDE, which));
        }
    }

    /// Closes idle and timed-out sockets, and retries.
    fn sweep(&mut self, now: u64) {
        for which in 0..self.outside.all.len() as u32 {
            if self.outside.get(which).is_some_and(|each| now.saturating_sub(each.last) > LIFE) {
                self.forget(which);
            }
        }
        for which in 0..self.pairs.all.len() as u32 {
            let is_late =
                |pair: &Pair| pair.is_opening && now.saturating_sub(pair.began) > PATIENCE;
            if let Some(pair) = self.pairs.get(which).filter(|pair| is_late(pair)) {
                pair.fail();
                self.end_pair(which);
            }
        }
        let mut left = Vec::new();
        for (key, socket) in &self.gateway_sockets {
            if now.saturating_sub(socket.last) > LIFE {
                left.push(*key);
            } else if matches!(socket.socket, Socket::Listener(_)) {
                // Connections that could not be accepted may be waiting.
                self.again.push(socket_token(*key));
            }
        }
        for key in left {
            self.shared.set(key, UNKNOWN);
            self.gateway_sockets.remove(&key);
            self.open -= 1;
        }
    }
}

/// Opens a socket for datagrams to and from this address only.
fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    set_fragmentation(&socket, to.is_ipv6(), false)?;
    report_traffic_class(&socket, to.is_ipv6())?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
