//! TUN devices, and configuration of network interfaces by `ioctl`.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::zeroed;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::{check, open_socket};
use crate::packet::offload::{self, Offload};

/// Offloads of Linux's `if_tun.h` for a program that reads large packets.
const TUN_F_CSUM: libc::c_uint = 0x01;
const TUN_F_TSO4: libc::c_uint = 0x02;
const TUN_F_TSO6: libc::c_uint = 0x04;
const TUN_F_TSO_ECN: libc::c_uint = 0x08;
const TUN_F_USO4: libc::c_uint = 0x20;
const TUN_F_USO6: libc::c_uint = 0x40;

/// TUN device; removed when this is dropped and no process has it open.
pub struct Tun {
    file: File,
    /// Device name.
    pub name: String,
}

impl Tun {
    /// Creates a device in this process' network namespace. Returns `ResourceBusy` if the name
    /// exists.
    pub fn create(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = options.open("/dev/net/tun")?;
        let mut request = request(name);
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
        request.ifr_ifru.ifru_flags = flags as i16;
        // SAFETY: the request is complete and outlives the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &request) })?;
        let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        let all = tcp | TUN_F_USO4 | TUN_F_USO6;
        let offer = |bits: libc::c_uint| {
            let bits = libc::c_ulong::from(bits);
            // SAFETY: the argument is a number.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, bits) })
        };
        // Kernels before 6.2 do not segment UDP.
        offer(all).or_else(|_| offer(tcp))?;
        Ok(Tun { file, name: name.to_string() })
    }

    /// Returns whether this process may create a device in its network namespace.
    pub fn permitted() -> bool {
        // A name pattern selects an unused name; the device is removed at once.
        !Tun::create("aqmlabtry%d").is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
    }

    /// Returns the device created by another process.
    pub fn from_fd(fd: OwnedFd, name: &str) -> Self {
        Tun { file: File::from(fd), name: name.to_string() }
    }

    /// Duplicates the handle of the device.
    pub fn another(&self) -> io::Result<Self> {
        Ok(Tun { file: self.file.try_clone()?, name: self.name.clone() })
    }

    /// Reads a packet into `bytes`. Returns its offload header and length; `None` if no packet is
    /// waiting.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<Option<(Offload, usize)>> {
        let mut head = [0u8; offload::SIZE];
        let parts = [
            libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() },
            libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() },
        ];
        // SAFETY: both parts are valid for writes of their lengths.
        let size = unsafe { libc::readv(self.file.as_raw_fd(), parts.as_ptr(), 2) };
        match check(size as _) {
            Ok(size) if size as usize >= head.len() => {
                Ok(Some((Offload::from_bytes(&head), size as usize - head.len())))
            }
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a packet consisting of two parts.
    pub fn write(&self, offload: Offload, packet: [&[u8]; 2]) -> io::Result<()> {
        let head = offload.to_bytes();
        let part =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
        let parts = [part(&head), part(packet[0]), part(packet[1])];
        let count = if packet[1].is_empty() { 2 } else { 3 };
        // SAFETY: all parts are valid for reads of their lengths.
        let size = unsafe { libc::writev(self.file.as_raw_fd(), parts.as_ptr(), count) };
        check(size as _).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns a request for the interface of this name.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: a zeroed request is valid, without an interface.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let most = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..most].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// `in6_ifreq` of Linux's `ipv6.h`.
#[repr(C)]
struct AddressRequest6 {
    address: libc::in6_addr,
    prefix: u32,
    index: libc::c_int,
}

/// `in6_rtmsg` of Linux's `ipv6_route.h`.
#[repr(C)]
struct RouteRequest6 {
    destination: libc::in6_addr,
    source: libc::in6_addr,
    gateway: libc::in6_addr,
    kind: u32,
    destination_bits: u16,
    source_bits: u16,
    metric: u32,
    info: libc::c_ulong,
    flags: u32,
    index: libc::c_int,
}

/// Configures an interface in this process' network namespace.
pub struct Interface {
    name: String,
    v4: OwnedFd,
    v6: Option<OwnedFd>,
}

impl Interface {
    /// Returns the interface of this name.
    pub fn named(name: &str) -> io::Result<Self> {
        let socket = |family| open_socket(family, libc::SOCK_DGRAM, 0);
        let v6 = socket(libc::AF_INET6).ok();
        Ok(Interface { name: name.to_string(), v4: socket(libc::AF_INET)?, v6 })
    }

    fn call<T>(socket: &OwnedFd, number: libc::Ioctl, request: &T) -> io::Result<()> {
        let number = number as _;
        // SAFETY: each caller passes the type that belongs to the request number.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), number, request as *const T) }).map(drop)
    }

    fn set(&self, number: libc::Ioctl, change: impl FnOnce(&mut libc::ifreq)) -> io::Result<()> {
        let mut request = request(&self.name);
        change(&mut request);
        Self::call(&self.v4, number, &request)
    }

    /// Sets the MTU, and the queue length in packets. (Uses netlink: `ioctl` restricts the second
    /// to real root.)
    pub fn set_sizes(&self, mtu: u32, queue: u32) -> io::Result<()> {
        let index = self.index()?;
        let mut body = vec![0; 4]; // `ifinfomsg`: family, type
        body.extend(index.to_ne_bytes());
        body.extend([0; 8]); // flags, which of them change: none
        body.extend(attribute(libc::IFLA_MTU, mtu));
        body.extend(attribute(libc::IFLA_TXQLEN, queue));
        ask_netlink(libc::RTM_NEWLINK, 0, &body)
    }

    /// Makes every address without another route a local address, so that the machine accepts
    /// packets to it.
    pub fn own_all(&self) -> io::Result<()> {
        let index = self.index()? as u32;
        let own = |family: libc::c_int| {
            // `rtmsg`: family, lengths, TOS, table, protocol, scope, type, flags.
            let mut body = vec![family as u8, 0, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC];
            body.extend([libc::RT_SCOPE_HOST, libc::RTN_LOCAL, 0, 0, 0, 0]);
            body.extend(attribute(libc::RTA_OIF, index));
            let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
            ask_netlink(libc::RTM_NEWROUTE, flags, &body)
        };
        own(libc::AF_INET)?;
        // Machines without IPv6 have no IPv6 here either.
        let _ = own(libc::AF_INET6);
        Ok(())
    }

    /// Activates the interface.
    pub fn set_up(&self) -> io::Result<()> {
        let flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        self.set(libc::SIOCSIFFLAGS as _, |request| request.ifr_ifru.ifru_flags = flags)
    }

    /// Returns the hardware type (`ARPHRD_...`) and the hardware address.
    pub fn hardware(&self) -> io::Result<(u16, [u8; 6])> {
        let mut request = request(&self.name);
        self.ask(libc::SIOCGIFHWADDR as _, &mut request)?;
        // SAFETY: the kernel has filled in a hardware address.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let bytes = std::array::from_fn(|place| address.sa_data[place] as u8);
        Ok((address.sa_family, bytes))
    }

    /// Returns the MTU.
    pub fn mtu(&self) -> io::Result<u32> {
        let mut request = request(&self.name);
        self.ask(libc::SIOCGIFMTU as _, &mut request)?;
        // SAFETY: the kernel has filled in the MTU.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
    }

    fn ask(&self, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: the request is complete and outlives the call, which fills it in.
        check(unsafe { libc::ioctl(self.v4.as_raw_fd(), number, request as *mut _) }).map(drop)
    }

    /// Returns the interface index.
    pub fn index(&self) -> io::Result<libc::c_int> {
        let name = CString::new(self.name.as_str())?;
        // SAFETY: the name ends with a zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index as libc::c_int) }
    }

    /// Adds an IPv4 address; the kernel adds the route to its prefix.
    pub fn add_v4(&self, address: Ipv4Addr, bits: u32) -> io::Result<()> {
        let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - bits).unwrap_or(0));
        self.set(libc::SIOCSIFADDR as _, |it| it.ifr_ifru.ifru_addr = socket_address(address))?;
        self.set(libc::SIOCSIFNETMASK as _, |it| it.ifr_ifru.ifru_netmask = socket_address(mask))
    }

    /// Adds an IPv6 address, like [`add_v4`](Self::add_v4).
    pub fn add_v6(&self, address: Ipv6Addr, bits: u32) -> io::Result<()> {
        let address = libc::in6_addr { s6_addr: address.octets() };
        let request = AddressRequest6 { address, prefix: bits, index: self.index()? };
        Self::call(self.v6()?, libc::SIOCSIFADDR as _, &request)
    }

    /// Routes IPv4 packets to this prefix through the interface; 0 bits: the default route.
    pub fn route_v4(&self, to: Ipv4Addr, bits: u32) -> io::Result<()> {
        let name = CString::new(self.name.as_str())?;
        let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - bits).unwrap_or(0));
        let any = socket_address(Ipv4Addr::UNSPECIFIED);
        // SAFETY: a zeroed route is valid.
        let mut route: libc::rtentry = unsafe { zeroed() };
        (route.rt_dst, route.rt_gateway) = (socket_address(to), any);
        route.rt_genmask = socket_address(mask);
        route.rt_flags = libc::RTF_UP;
        route.rt_dev = name.as_ptr().cast_mut();
        Self::call(&self.v4, libc::SIOCADDRT as _, &route)
    }

    /// Routes IPv6 packets to this prefix through the interface, like [`route_v4`](Self::route_v4).
    pub fn route_v6(&self, to: Ipv6Addr, bits: u16) -> io::Result<()> {
        let any = libc::in6_addr { s6_addr: [0; 16] };
        let request = RouteRequest6 {
            destination: libc::in6_addr { s6_addr: to.octets() },
            source: any,
            gateway: any,
            kind: 0,
            destination_bits: bits,
            source_bits: 0,
            metric: 1,
            info: 0,
            flags: u32::from(libc::RTF_UP),
            index: self.index()?,
        };
        Self::call(self.v6()?, libc::SIOCADDRT as _, &request)
    }

    fn v6(&self) -> io::Result<&OwnedFd> {
        self.v6.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
    }
}

/// Encodes a numeric attribute of a netlink message.
fn attribute(kind: libc::c_ushort, value: u32) -> Vec<u8> {
    [&8u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &value.to_ne_bytes()].concat()
}

/// Sends a request for a change to the kernel, and reads the answer.
fn ask_netlink(kind: libc::c_ushort, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence number, port
    message.extend(body);
    let netlink = open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let mut socket = File::from(netlink);
    socket.write_all(&message)?;
    // The answer is a 16-byte header and the error; 0: none.
    let mut answer = [0u8; 512];
    let size = socket.read(&mut answer)?;
    let error = answer[..size].get(16..20).and_then(|bytes| bytes.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: a zeroed address is valid, and both structs have the same size.
    unsafe {
        let mut v4: libc::sockaddr_in = zeroed();
        v4.sin_family = libc::AF_INET as _;
        v4.sin_addr.s_addr = u32::from(address).to_be();
        std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(v4)
    }
}

/// Returns the IPv4 addresses in this process' network namespace, with interface names and prefix
/// lengths.
pub fn addresses_v4() -> io::Result<Vec<(String, Ipv4Addr, u32)>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    let mut found = Vec::new();
    // SAFETY: the list is read as the manual specifies, and freed once.
    unsafe {
        check(libc::getifaddrs(&mut first))?;
        let read = |address: *const libc::sockaddr| {
            let is_v4 = !address.is_null() && i32::from((*address).sa_family) == libc::AF_INET;
            is_v4.then(|| u32::from_be((*address.cast::<libc::sockaddr_in>()).sin_addr.s_addr))
        };
        let mut next = first;
        while !next.is_null() {
            let entry = &*next;
            if let (Some(address), Some(mask)) = (read(entry.ifa_addr), read(entry.ifa_netmask)) {
                let name = std::ffi::CStr::from_ptr(entry.ifa_name).to_string_lossy();
                found.push((name.into_owned(), Ipv4Addr::from(address), mask.leading_ones()));
            }
            next = entry.ifa_next;
        }
        libc::freeifaddrs(first);
    }
    Ok(found)
}
