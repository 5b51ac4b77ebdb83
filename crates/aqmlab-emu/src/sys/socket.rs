//! Sockets that accept traffic addressed to other machines, and datagrams with their original
//! destination address.

use std::io;
use std::mem::{size_of_val, zeroed};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{check, open_socket, owned};

/// Opens a socket for all addresses of both IP versions at this port: a listener or a datagram
/// socket. Returns `AddrInUse` if the port has a server.
pub fn transparent(is_stream: bool, port: u16) -> io::Result<OwnedFd> {
    let kind = if is_stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    let socket = open_socket(libc::AF_INET6, kind | libc::SOCK_NONBLOCK, 0)?;
    // SAFETY: the arguments are numbers; the address is complete and outlives the call.
    unsafe {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0)?;
        set(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)?;
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)?;
        if !is_stream {
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            set(&socket, libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE, 1)?;
            set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE, 1)?;
            report_traffic_class(&socket, false)?;
            report_traffic_class(&socket, true)?;
        }
        let address = raw(&SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0));
        let size = size_of_val(&address) as libc::socklen_t;
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size))?;
        if is_stream {
            // The kernel caps the backlog at net.core.somaxconn.
            check(libc::listen(socket.as_raw_fd(), libc::c_int::MAX))?;
        }
        Ok(socket)
    }
}

/// Opens a socket that sends complete IP packets with any source address.
pub fn raw_packets(is_v6: bool) -> io::Result<OwnedFd> {
    let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
    open_socket(family, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::IPPROTO_RAW)
}

/// Sends a complete IP packet to its destination.
pub fn send_packet(socket: BorrowedFd<'_>, packet: &[u8], to: IpAddr) -> io::Result<()> {
    with_raw(&SocketAddr::new(to, 0), |address, size| {
        let (start, length) = (packet.as_ptr().cast(), packet.len());
        // SAFETY: the packet and the address outlive the call.
        check(unsafe {
            libc::sendto(socket.as_raw_fd(), start, length, libc::MSG_NOSIGNAL, address, size) as _
        })
        .map(drop)
    })
}

/// Makes the kernel refuse to send datagrams that exceed the path MTU (`EMSGSIZE`), or fragment
/// them.
pub fn set_fragmentation(socket: &impl AsRawFd, is_v6: bool, may: bool) -> io::Result<()> {
    let (level, option) = match is_v6 {
        true => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
        false => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    };
    // The values are the same for both versions.
    let value = if may { libc::IP_PMTUDISC_DONT } else { libc::IP_PMTUDISC_DO };
    set(socket, level, option, value)
}

/// Level and type of the option, and of the control message, with the DSCP and ECN field.
const fn traffic_class(is_v6: bool) -> (i32, i32) {
    match is_v6 {
        true => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        false => (libc::IPPROTO_IP, libc::IP_TOS),
    }
}

/// Sets the DSCP and ECN field of sent datagrams.
pub fn set_traffic_class(socket: &impl AsRawFd, is_v6: bool, class: u8) -> io::Result<()> {
    let (level, option) = traffic_class(is_v6);
    set(socket, level, option, libc::c_int::from(class))
}

/// Makes [`receive_from`] report the DSCP and ECN field.
pub fn report_traffic_class(socket: &impl AsRawFd, is_v6: bool) -> io::Result<()> {
    let (level, option) = match is_v6 {
        true => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
        false => (libc::IPPROTO_IP, libc::IP_RECVTOS),
    };
    set(socket, level, option, 1)
}

/// Returns the path MTU of a connected socket.
pub fn path_mtu(socket: &impl AsRawFd, is_v6: bool) -> Option<u16> {
    let (level, option) = match is_v6 {
        true => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
        false => (libc::IPPROTO_IP, libc::IP_MTU),
    };
    let mut mtu: libc::c_int = 0;
    get(socket, level, option, &mut mtu).ok().and_then(|()| u16::try_from(mtu).ok())
}

/// Returns whether a datagram exceeded the path MTU.
pub fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Returns the address of a socket whose name exists in one network namespace only.
fn local(name: &str) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: a zeroed address is valid.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    // A first byte of zero: the name is not in a file system.
    let most = address.sun_path.len() - 1;
    for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let head = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    (address, (head + 1 + name.len().min(most)) as libc::socklen_t)
}

fn local_socket() -> io::Result<OwnedFd> {
    open_socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)
}

/// Listens at a name that exists in this network namespace only.
pub fn listen_local(name: &str) -> io::Result<OwnedFd> {
    let (socket, (address, size)) = (local_socket()?, local(name));
    // SAFETY: the address is complete and outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
    // SAFETY: the arguments are numbers.
    check(unsafe { libc::listen(socket.as_raw_fd(), 16) })?;
    Ok(socket)
}

/// Connects to the listener at a name in this network namespace.
pub fn connect_local(name: &str) -> io::Result<OwnedFd> {
    let (socket, (address, size)) = (local_socket()?, local(name));
    // SAFETY: the address is complete and outlives the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(socket)
}

/// Accepts a connection.
pub fn accept(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let none = std::ptr::null_mut();
    // SAFETY: the call returns no address.
    let fd = unsafe {
        libc::accept4(socket.as_raw_fd(), none, std::ptr::null_mut(), libc::SOCK_CLOEXEC)
    };
    check(fd).map(owned)
}

/// Returns the process at the other end of a local connection; 0 if it is outside the process
/// namespace of this one (unix(7), `SO_PEERCRED`).
pub fn peer_process(socket: BorrowedFd<'_>) -> io::Result<libc::pid_t> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    get(&socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut peer).map(|()| peer.pid)
}

/// Sets an option, whose value has the kernel's type.
pub(super) fn set<T: Copy>(
    socket: &impl AsRawFd,
    level: i32,
    option: i32,
    value: T,
) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value outlives the call.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), size)
    };
    check(done).map(drop)
}

/// Reads an option into a value of the kernel's type, as far as the kernel has it.
pub(super) fn get<T: Copy>(
    socket: &impl AsRawFd,
    level: i32,
    option: i32,
    value: &mut T,
) -> io::Result<()> {
    let mut size = size_of_val(value) as libc::socklen_t;
    // SAFETY: the value and its size outlive the call; callers pass plain data.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut *value).cast(), &mut size)
    };
    check(done).map(drop)
}

fn raw(address: &SocketAddrV6) -> libc::sockaddr_in6 {
    // SAFETY: a zeroed address is valid.
    let mut raw: libc::sockaddr_in6 = unsafe { zeroed() };
    raw.sin6_family = libc::AF_INET6 as _;
    raw.sin6_port = address.port().to_be();
    raw.sin6_addr.s6_addr = address.ip().octets();
    raw
}

/// Received datagram.
pub struct Datagram {
    /// Size in the buffer.
    pub size: usize,
    /// Sender.
    pub from: SocketAddrV6,
    /// Destination address; unspecified if the socket does not report it.
    pub to: Ipv6Addr,
    /// DSCP and ECN field.
    pub class: u8,
    /// True if it arrived in fragments.
    pub in_fragments: bool,
}

/// Receives a datagram with its original destination address.
pub fn receive_from(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<Datagram> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0u64; 16];
    // SAFETY: a zeroed header is valid and empty; all pointers outlive the call; control messages
    // are read by the macros.
    unsafe {
        let mut from: libc::sockaddr_in6 = zeroed();
        let mut message: libc::msghdr = zeroed();
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of_val(&from) as _;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let size = check(libc::recvmsg(socket.as_raw_fd(), &mut message, 0) as _)? as usize;
        let (mut to, mut class, mut in_fragments) = (Ipv6Addr::UNSPECIFIED, 0, false);
        let mut head = libc::CMSG_FIRSTHDR(&message);
        while !head.is_null() {
            match ((*head).cmsg_level, (*head).cmsg_type) {
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = libc::CMSG_DATA(head).cast::<libc::in6_pktinfo>().read_unaligned();
                    to = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                }
                // A byte of IPv4, an integer of IPv6.
                (libc::IPPROTO_IP, libc::IP_TOS) => class = *libc::CMSG_DATA(head),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    class = libc::CMSG_DATA(head).cast::<libc::c_int>().read_unaligned() as u8;
                }
                // Absent for datagrams that arrive whole.
                (libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE)
                | (libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE) => in_fragments = true,
                _ => {}
            }
            head = libc::CMSG_NXTHDR(&message, head);
        }
        let address = Ipv6Addr::from(from.sin6_addr.s6_addr);
        let from = SocketAddrV6::new(address, u16::from_be(from.sin6_port), 0, 0);
        Ok(Datagram { size, from, to, class, in_fragments })
    }
}

/// Sends a datagram with this source address, DSCP and ECN field.
pub fn send_from(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    from: Ipv6Addr,
    to: &SocketAddrV6,
    class: u8,
) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    let mut control = [0u64; 8];
    // SAFETY: as in `receive_from`; there is room for two control messages.
    unsafe {
        let info = libc::in6_pktinfo {
            ipi6_addr: libc::in6_addr { s6_addr: from.octets() },
            ipi6_ifindex: 0,
        };
        let class = libc::c_int::from(class);
        let sizes = [size_of_val(&info) as u32, size_of_val(&class) as u32];
        let mut address = raw(to);
        let mut message: libc::msghdr = zeroed();
        message.msg_name = (&raw mut address).cast();
        message.msg_namelen = size_of_val(&address) as _;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = sizes.iter().map(|size| libc::CMSG_SPACE(*size)).sum::<u32>() as _;
        let head = libc::CMSG_FIRSTHDR(&message);
        (*head).cmsg_level = libc::IPPROTO_IPV6;
        (*head).cmsg_type = libc::IPV6_PKTINFO;
        (*head).cmsg_len = libc::CMSG_LEN(sizes[0]) as _;
        libc::CMSG_DATA(head).cast::<libc::in6_pktinfo>().write_unaligned(info);
        let head = libc::CMSG_NXTHDR(&message, head);
        let is_v6 = to.ip().to_ipv4_mapped().is_none();
        ((*head).cmsg_level, (*head).cmsg_type) = traffic_class(is_v6);
        (*head).cmsg_len = libc::CMSG_LEN(sizes[1]) as _;
        libc::CMSG_DATA(head).cast::<libc::c_int>().write_unaligned(class);
        check(libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as _).map(drop)
    }
}

/// Begins a connection without blocking. Once it is writable, it is open or has failed
/// (`take_error`).
pub fn begin_connection(to: &SocketAddr) -> io::Result<TcpStream> {
    begin_connection_as(to, |_| Ok(()))
}

/// Begins a connection of a socket that the caller prepares.
pub fn begin_connection_as(
    to: &SocketAddr,
    prepare: impl FnOnce(&OwnedFd) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = open_socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)?;
    prepare(&socket)?;
    let done = with_raw(to, |address, size| {
        // SAFETY: the address is complete and outlives the call.
        check(unsafe { libc::connect(socket.as_raw_fd(), address, size) })
    });
    done.map(drop).or_else(|error| match error.raw_os_error() {
        Some(libc::EINPROGRESS) => Ok(()),
        _ => Err(error),
    })?;
    Ok(TcpStream::from(socket))
}

/// Calls `function` with the kernel's form of an address, and its size.
fn with_raw<T>(
    to: &SocketAddr,
    function: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> T,
) -> T {
    match to {
        SocketAddr::V4(to) => {
            // SAFETY: a zeroed address is valid.
            let mut address: libc::sockaddr_in = unsafe { zeroed() };
            address.sin_family = libc::AF_INET as _;
            address.sin_port = to.port().to_be();
            address.sin_addr.s_addr = u32::from(*to.ip()).to_be();
            function((&raw const address).cast(), size_of_val(&address) as _)
        }
        SocketAddr::V6(to) => {
            let address = raw(to);
            function((&raw const address).cast(), size_of_val(&address) as _)
        }
    }
}

/// Makes the connection end with a reset, like a refused one.
pub fn reset_at_close(socket: BorrowedFd<'_>) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = set(&socket, libc::SOL_SOCKET, libc::SO_LINGER, linger);
}
