//! TUN devices, and configuration of network interfaces.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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

/// Configures an interface in this process' network namespace, by netlink: `ioctl` restricts some
/// settings to real root.
pub struct Interface {
    name: String,
    /// Interface index.
    pub index: libc::c_int,
}

impl Interface {
    /// Returns the interface of this name.
    pub fn named(name: &str) -> io::Result<Self> {
        let text = CString::new(name)?;
        // SAFETY: the name ends with a zero.
        match unsafe { libc::if_nametoindex(text.as_ptr()) } {
            0 => Err(io::Error::last_os_error()),
            index => Ok(Interface { name: name.to_string(), index: index as libc::c_int }),
        }
    }

    /// Changes flags or attributes of the interface; flags other than `flags` are cleared if there
    /// are any.
    fn change(&self, flags: libc::c_int, attributes: &[Vec<u8>]) -> io::Result<()> {
        // `ifinfomsg`: family, type, index, flags, and which of them change (0: all that are given).
        let numbers = [0, self.index, flags, 0].map(libc::c_int::to_ne_bytes);
        let body = [numbers.concat(), attributes.concat()].concat();
        ask_netlink(libc::RTM_NEWLINK, 0, &body)
    }

    /// Sets the MTU, and the queue length in packets.
    pub fn set_sizes(&self, mtu: u32, queue: u32) -> io::Result<()> {
        let sizes = [(libc::IFLA_MTU, mtu), (libc::IFLA_TXQLEN, queue)];
        self.change(0, &sizes.map(|(kind, size)| attribute(kind, &size.to_ne_bytes())))
    }

    /// Activates the interface.
    pub fn set_up(&self) -> io::Result<()> {
        self.change(libc::IFF_UP | libc::IFF_RUNNING, &[])
    }

    /// Adds an address; the kernel adds the route to its prefix.
    pub fn add(&self, address: IpAddr, bits: u32) -> io::Result<()> {
        let (family, octets) = raw_address(address);
        // `ifaddrmsg`: family, prefix length, flags, scope, index.
        let head = [&[family, bits as u8, 0, 0], &self.index.to_ne_bytes()[..]].concat();
        let both = [libc::IFA_LOCAL, libc::IFA_ADDRESS].map(|kind| attribute(kind, &octets));
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        ask_netlink(libc::RTM_NEWADDR, flags, &[head, both.concat()].concat())
    }

    /// Routes packets to this prefix through the interface; 0 bits: the default route.
    pub fn route(&self, to: IpAddr, bits: u8) -> io::Result<()> {
        // The metric that `ioctl` gives to routes of IPv6.
        let metric = to.is_ipv6().then_some(1);
        let scope = if to.is_ipv6() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        self.add_route(to, bits, [libc::RTPROT_BOOT, scope, libc::RTN_UNICAST], metric)
    }

    /// Makes every address without another route a local address, so that the machine accepts
    /// packets to it.
    pub fn own_all(&self) -> io::Result<()> {
        let kind = [libc::RTPROT_STATIC, libc::RT_SCOPE_HOST, libc::RTN_LOCAL];
        self.add_route(Ipv4Addr::UNSPECIFIED.into(), 0, kind, None)?;
        // Machines without IPv6 have no IPv6 here either.
        let _ = self.add_route(Ipv6Addr::UNSPECIFIED.into(), 0, kind, None);
        Ok(())
    }

    /// Adds a route to the main table. `kind`: protocol, scope and type.
    fn add_route(
        &self,
        to: IpAddr,
        bits: u8,
        [protocol, scope, kind]: [u8; 3],
        metric: Option<u32>,
    ) -> io::Result<()> {
        let (family, octets) = raw_address(to);
        // `rtmsg`: family, lengths, TOS, table, protocol, scope, type, flags.
        let mut body = vec![family, bits, 0, 0, libc::RT_TABLE_MAIN, protocol, scope, kind];
        body.extend([0; 4]);
        body.extend(attribute(libc::RTA_DST, &octets));
        body.extend(attribute(libc::RTA_OIF, &self.index.to_ne_bytes()));
        let metric = metric.map(|metric| attribute(libc::RTA_PRIORITY, &metric.to_ne_bytes()));
        body.extend(metric.into_iter().flatten());
        ask_netlink(libc::RTM_NEWROUTE, libc::NLM_F_CREATE, &body)
    }

    /// Returns the hardware type (`ARPHRD_...`) and the hardware address.
    pub fn hardware(&self) -> io::Result<(u16, [u8; 6])> {
        let request = self.ask(libc::SIOCGIFHWADDR as _)?;
        // SAFETY: the kernel has filled in a hardware address.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let bytes = std::array::from_fn(|place| address.sa_data[place] as u8);
        Ok((address.sa_family, bytes))
    }

    /// Returns the MTU.
    pub fn mtu(&self) -> io::Result<u32> {
        let request = self.ask(libc::SIOCGIFMTU as _)?;
        // SAFETY: the kernel has filled in the MTU.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
    }

    fn ask(&self, number: libc::Ioctl) -> io::Result<libc::ifreq> {
        let socket = open_socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let mut request = request(&self.name);
        // SAFETY: the request is complete and outlives the call, which fills it in.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), number, &mut request) })?;
        Ok(request)
    }
}

/// Returns the family and the bytes of an address.
fn raw_address(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// Encodes an attribute of a netlink message, whose length is a multiple of 4.
fn attribute(kind: libc::c_ushort, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
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
