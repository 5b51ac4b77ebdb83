//! Diversion of an interface's packets through the path, without changes to its configuration.
//!
//! # Model
//! Two TUN devices without addresses, and four programs in the kernel:
//!
//! 1. the first diverts packets sent by the interface to the *near* device;
//! 2. the second diverts packets received by the interface to the *far* device;
//! 3. the third receives packets that the emulator writes to the near device, and passes them on as
//!    received by the interface;
//! 4. the fourth receives packets that the emulator writes to the far device, and sends them
//!    through the interface to the neighbour given by the machine's routes.
//!
//! The emulator reads both devices. Programs three and four mark packets, so that the first two let
//! them pass.
//!
//! Not diverted: protocols other than IP, multicast and broadcast frames, frames for other
//! machines, tagged frames, IPv6 link-local addresses and neighbour discovery.
//!
//! The programs are attached while this process holds their links open.

use std::io;
use std::os::fd::OwnedFd;

use aqmlab_core::{Error, Result};

use crate::sys::bpf::{
    BpfProgram, Code, INGRESS, If, REDIRECT, REDIRECT_NEIGH, SKB_CHANGE_HEAD, SKB_STORE_BYTES, Side,
};
use crate::sys::device::{Interface, Tun};
use crate::sys::failed;
use crate::sys::files::interfaces;
use crate::sys::socket::listen_local;

/// Mark of packets that have traversed the path.
const MARK: i32 = i32::from_be_bytes(*b"aqml");
/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;
/// Bytes of an Ethernet header.
const HEADER: i32 = 14;
/// Field offsets in `struct __sk_buff`.
const KIND: i16 = 4;
const MARKED: i16 = 8;
const PROTOCOL: i16 = 16;
const HAS_TAG: i16 = 20;
/// Packet type: addressed to another machine.
const OTHERS: i32 = 3;
/// Results of programs: continue without this program; drop.
const NEXT: i32 = -1;
const DROP: i32 = 2;

/// Interface of this namespace that a path can be put in front of.
pub(crate) struct Target {
    name: String,
    index: libc::c_int,
    address: [u8; 6],
    /// MTU of the interface.
    pub mtu: u32,
    /// Held open to prevent a second path at this interface.
    _lock: OwnedFd,
}

impl Target {
    /// Finds the interface of this name.
    ///
    /// # Errors
    /// Returns an error if the interface does not exist, is not an Ethernet interface, or has a
    /// path already.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let at = |error: Error| error.at("interface");
        let known = interfaces();
        if !known.iter().any(|each| each == name) {
            return Err(at(Error::unknown("interface", name, known.iter().map(String::as_str))));
        }
        let broken = |error: io::Error| at(failed(name, &error));
        let interface = Interface::named(name).map_err(broken)?;
        let (kind, address) = interface.hardware().map_err(broken)?;
        if kind != ETHERNET {
            let hint = "a path can be put in front of interfaces with Ethernet frames";
            let error = Error::new("this interface has no Ethernet frames").given(name);
            return Err(at(error.hint(hint)));
        }
        let lock = listen_local(&format!("aqmlab-attached-{name}"));
        let lock = lock.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                at(Error::new("this interface has a path already").given(name))
            }
            _ => broken(error),
        })?;
        let mtu = interface.mtu().map_err(broken)?;
        Ok(Target { name: name.to_string(), index: interface.index, address, mtu, _lock: lock })
    }

    /// Diverts the interface's packets through the emulator, which reads and writes the devices.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot, or does not permit it.
    pub(crate) fn divert(self, near: &Tun, far: &Tun) -> Result<Diversion> {
        let name = self.name.clone();
        let index = |tun: &Tun| Interface::named(&tun.name).map(|it| it.index);
        let load = |code: Code| code.load_program();
        let attach = || -> io::Result<Diversion> {
            let [near, far] = [index(near)?, index(far)?];
            let [to_host, to_network] =
                [load(to_host(self.index, self.address))?, load(to_network(self.index))?];
            let writes = [to_host.attach(near, Side::In)?, to_network.attach(far, Side::In)?];
            let at = |program: BpfProgram, side| program.attach(self.index, side);
            let reads = [at(load(take(far))?, Side::In)?, at(load(take(near))?, Side::Out)?];
            Ok(Diversion { reads: reads.into(), _writes: writes, _target: self })
        };
        attach().map_err(|error| refused(&error).given(name))
    }
}

/// Links of the four programs.
pub(crate) struct Diversion {
    reads: Vec<OwnedFd>,
    _writes: [OwnedFd; 2],
    _target: Target,
}

impl Diversion {
    /// Stops diverting packets; packets in the path still arrive.
    pub(crate) fn stop(&mut self) {
        self.reads.clear();
    }
}

fn refused(error: &io::Error) -> Error {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run it as root, with CAP_BPF and CAP_NET_ADMIN outside user namespaces"
        }
        Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => {
            "this option needs Linux 6.6 or later"
        }
        _ => return failed("a program for the interface", error).at("interface"),
    };
    failed("a program for the interface", error).at("interface").hint(hint)
}

/// Builds the first and the second program, which divert packets to a device.
fn take(device: libc::c_int) -> Code {
    let code = Code::default()
        .copy(6, 1)
        .load(0, 6, MARKED)
        .jump(If::Equal32, 0, MARK, "ours")
        .load(0, 6, KIND)
        .jump(If::Equal, 0, OTHERS, "pass")
        .load(0, 6, HAS_TAG)
        .jump(If::Other, 0, 0, "pass")
        // The lowest bit of an address marks groups.
        .byte(0)
        .jump(If::Common, 0, 1, "pass")
        .load(0, 6, PROTOCOL)
        .jump(If::Equal, 0, i32::from(0x0800u16.to_be()), "take")
        .jump(If::Other, 0, i32::from(0x86ddu16.to_be()), "pass")
        // IPv6: fe80::/10 as source or destination, and ICMPv6 types 133 to 137.
        .half(HEADER + 8)
        .mask(0, 0xffc0)
        .jump(If::Equal, 0, 0xfe80, "pass")
        .half(HEADER + 24)
        .mask(0, 0xffc0)
        .jump(If::Equal, 0, 0xfe80, "pass")
        .byte(HEADER + 6)
        .jump(If::Other, 0, 58, "take")
        .byte(HEADER + 40)
        .jump(If::Less, 0, 133, "take")
        .jump(If::Greater, 0, 137, "take");
    code.set(0, NEXT)
        .exit()
        .label("take")
        .set(1, device)
        .set(2, 0)
        .call(REDIRECT)
        .exit()
        .label("ours")
        .set(1, 0)
        .store(6, MARKED, 1)
        .label("pass")
        .set(0, NEXT)
        .exit()
}

/// Marks a packet of a device, and reserves space for an Ethernet header.
fn framed() -> Code {
    Code::default()
        .copy(6, 1)
        .set(1, MARK)
        .store(6, MARKED, 1)
        .load(7, 6, PROTOCOL)
        .copy(1, 6)
        .set(2, HEADER)
        .set(3, 0)
        .call(SKB_CHANGE_HEAD)
        .jump(If::Other, 0, 0, "drop")
}

/// Builds the third program: passes packets on as received by the interface.
fn to_host(interface: libc::c_int, address: [u8; 6]) -> Code {
    let [a, b, c, d, e, f] = address;
    framed()
        // To this machine, from an unassigned address.
        .put(10, -16, i32::from_le_bytes([a, b, c, d]))
        .put(10, -12, i32::from_le_bytes([e, f, 2, 0]))
        .put(10, -8, 0)
        .store_half(10, -4, 7)
        .copy(1, 6)
        .set(2, 0)
        .copy(3, 10)
        .plus(3, -16)
        .set(4, HEADER)
        .set(5, 0)
        .call(SKB_STORE_BYTES)
        .jump(If::Other, 0, 0, "drop")
        .set(1, interface)
        .set(2, INGRESS)
        .call(REDIRECT)
        .exit()
        .label("drop")
        .set(0, DROP)
        .exit()
}

/// Builds the fourth program: sends packets to the neighbour given by the machine's routes.
fn to_network(interface: libc::c_int) -> Code {
    framed()
        .set(1, interface)
        .set(2, 0)
        .set(3, 0)
        .set(4, 0)
        .call(REDIRECT_NEIGH)
        .exit()
        .label("drop")
        .set(0, DROP)
        .exit()
}
