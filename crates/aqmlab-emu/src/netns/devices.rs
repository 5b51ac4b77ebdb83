//! Devices at the two ends of a path, and their addresses.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use aqmlab_core::{Error, Result};

use crate::addresses::Block;
use crate::sys::device::{Interface, Tun, addresses_v4};
use crate::sys::{failed, files};

/// Name of the near end, in the command's namespace. Names of far ends have a number appended.
pub const NAME: &str = "aqmlab";
/// Name of the far end in a gateway.
const GATEWAY: &str = "aqmlab0";
/// Name of that device in the emulator's own records.
pub const GATEWAY_PORT: &str = "far";
/// Queue length of a device in packets. A large packet counts as one; the kernel drops packets
/// beyond the limit.
const QUEUE: u32 = 16_384;

/// Reason for the lack of a device.
pub enum NoDevice {
    /// The user may not create a device in this namespace.
    NotPermitted,
    /// Any other error.
    Other(Error),
}

impl NoDevice {
    fn of(error: &io::Error) -> Self {
        let (problem, hint) = match error.raw_os_error() {
            Some(libc::EPERM) => return NoDevice::NotPermitted,
            Some(libc::EACCES) => (
                "this user may not open it",
                "`chmod 0666 /dev/net/tun` as root, the default of most systems",
            ),
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => (
                "there is no such device",
                "`modprobe tun` as root; in a container: `--device /dev/net/tun`",
            ),
            _ => return NoDevice::Other(failed("a TUN device", error)),
        };
        NoDevice::Other(Error::new(format!("/dev/net/tun: {problem}")).hint(hint))
    }

    /// Returns the error; if it is about the permission, that one.
    pub fn or(self, not_permitted: impl FnOnce() -> Error) -> Error {
        match self {
            NoDevice::NotPermitted => not_permitted(),
            NoDevice::Other(error) => error,
        }
    }
}

/// Creates the far end in this process' namespace, with an unused block of addresses.
pub fn make_far() -> std::result::Result<(Tun, Block), NoDevice> {
    let addresses = addresses().map_err(NoDevice::Other)?;
    // Nested shells use a block inside the outer shell's block.
    let own = addresses.iter().find(|(name, ..)| name == NAME);
    let own = own.and_then(|(_, address, bits)| Block::of(*address, *bits));
    let around = own.unwrap_or(Block::ALL);
    for number in around.numbers() {
        let Some(block) = around.inner(number) else { break };
        if addresses.iter().any(|(_, address, _)| block.holds(*address)) {
            continue;
        }
        match Tun::create(&format!("{NAME}{number}")) {
            Ok(tun) => return Ok((tun, block)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(NoDevice::of(&error)),
        }
    }
    let problem = match around.numbers().is_empty() {
        true => "shells are nested too deep: no addresses are left",
        false => "no addresses are left for another shell here",
    };
    Err(NoDevice::Other(Error::new(problem)))
}

/// Returns the IPv4 addresses of this namespace, with interfaces and prefix lengths.
fn addresses() -> Result<Vec<(String, Ipv4Addr, u32)>> {
    addresses_v4().map_err(|error| failed("the list of addresses", &error))
}

/// Returns whether this namespace belongs to a command behind a path.
pub fn is_inside() -> Result<bool> {
    Ok(addresses()?.iter().any(|(name, ..)| name == NAME))
}

/// Returns a block for the gateway of a shell started in this namespace: one not in use here.
pub fn gateway_block() -> Result<Block> {
    let addresses = addresses()?;
    let mut blocks = Block::ALL.numbers().filter_map(|number| Block::ALL.inner(number));
    let is_free = |block: &Block| !addresses.iter().any(|(_, address, _)| block.holds(*address));
    blocks.find(is_free).ok_or_else(|| Error::new("no addresses are left for a shell here"))
}

/// Creates the far end in a gateway.
pub fn make_gateway() -> Result<Tun> {
    let not_permitted = || Error::new("the kernel permits no TUN device in a user namespace");
    Tun::create(GATEWAY).map_err(|error| NoDevice::of(&error).or(not_permitted))
}

/// Assigns all addresses to the gateway, so that it represents the outside.
pub fn own_all_addresses() -> Result<()> {
    Interface::named("lo")
        .and_then(|loopback| loopback.own_all())
        .map_err(|error| failed("the addresses of the gateway", &error))
}

/// Creates the near end in this process' namespace.
pub fn make_near() -> Result<Tun> {
    let not_permitted = |error: &io::Error| failed("the device of the command", error);
    Tun::create(NAME).map_err(|error| match error.raw_os_error() {
        // `attach --pid`: other namespaces are new.
        Some(libc::EBUSY) => Error::new("this network namespace has a path already"),
        _ => NoDevice::of(&error).or(|| not_permitted(&error)),
    })
}

/// Creates an end of a path in front of an interface, with the first unused name.
pub fn make_bare(end: &str) -> Result<Tun> {
    for number in 0..100 {
        match Tun::create(&format!("{NAME}-{end}{number}")) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => {
                let not_permitted = || failed("a TUN device", &error).hint("run it as root");
                return Err(NoDevice::of(&error).or(not_permitted));
            }
            Ok(tun) => return Ok(tun),
        }
    }
    Err(Error::new("no name is left for another TUN device"))
}

/// Activates such an end, without an address.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn configure_bare(tun: &Tun, mtu: u32) -> Result<()> {
    configure(&tun.name, mtu, |_| Ok(()))
}

/// Assigns addresses to the far end.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn configure_far(tun: &Tun, block: &Block, mtu: u32) -> Result<()> {
    configure(&tun.name, mtu, |interface| {
        interface.add(block.far().0.into(), block.v4_bits)?;
        // Machines without IPv6 have no IPv6 here either.
        let _ = interface.add(block.far().1.into(), block.v6_bits);
        Ok(())
    })
}

/// Assigns addresses to the near end, and routes everything through it. In an existing namespace
/// (`is_attached`), two more specific routes divert the traffic of the default route; addresses and
/// routes are removed with the device. A new namespace belongs to the emulator: packets of nested
/// shells are forwarded.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn configure_near(tun: &Tun, block: &Block, mtu: u32, is_attached: bool) -> Result<()> {
    // First bytes of the routes, and the length of their prefix.
    let (halves, bits): (&[u8], u8) = if is_attached { (&[0, 128], 1) } else { (&[0], 0) };
    configure(&tun.name, mtu, |interface| {
        interface.add(block.near().0.into(), block.v4_bits)?;
        for half in halves {
            interface.route(Ipv4Addr::new(*half, 0, 0, 0).into(), bits)?;
        }
        if interface.add(block.near().1.into(), block.v6_bits).is_ok() {
            for half in halves {
                let to = Ipv6Addr::from(u128::from(*half) << 120);
                let _ = interface.route(to.into(), bits);
            }
        }
        Ok(())
    })?;
    if !is_attached {
        // Read-only in some containers: then shells do not nest there.
        let _ = files::set("/proc/sys/net/ipv4/ip_forward", "1");
        let _ = files::set("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    }
    Ok(())
}

/// Activates the loopback device of a new namespace.
pub fn start_loopback() -> Result<()> {
    Interface::named("lo")
        .and_then(|loopback| loopback.set_up())
        .map_err(|error| failed("the loopback device", &error))
}

fn configure(
    name: &str,
    mtu: u32,
    addresses: impl FnOnce(&Interface) -> io::Result<()>,
) -> Result<()> {
    let configured = Interface::named(name).and_then(|interface| {
        interface.set_sizes(mtu, QUEUE)?;
        // No link-local address: such a path has two ends and no neighbours.
        let _ = files::set(&format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1");
        interface.set_up()?;
        addresses(&interface)
    });
    configured.map_err(|error| failed(name, &error))
}
