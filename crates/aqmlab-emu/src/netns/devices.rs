//! Devices at the two ends of a path, and their addresses.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use aqmlab_core::{Error, Result};

use crate::addresses::Block;
use crate::errors::failed;
use crate::sys::device::{Interface, Tun, addresses_v4};
use crate::sys::files;

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

/// Creates the far end in this process' namespace, with an unused block of addresses.
pub fn make_far() -> std::result::Result<(Tun, Block), NoDevice> {
    let addresses =
        addresses_v4().map_err(|error| NoDevice::Other(failed("the list of addresses", &error)))?;
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
            Err(error) => return Err(no_device(&error)),
        }
    }
    let problem = match around.numbers().is_empty() {
        true => "shells are nested too deep: no addresses are left",
        false => "no addresses are left for another shell here",
    };
    Err(NoDevice::Other(Error::new(problem)))
}

/// Returns whether this namespace belongs to a command behind a path.
pub fn is_inside() -> Result<bool> {
    let addresses = addresses_v4().map_err(|error| failed("the list of addresses", &error))?;
    Ok(addresses.iter().any(|(name, ..)| name == NAME))
}

/// Returns a block for the gateway of a shell started in this namespace: one not in use here.
pub fn gateway_block() -> Result<Block> {
    let addresses = addresses_v4().map_err(|error| failed("the list of addresses", &error))?;
    let mut blocks = Block::ALL.numbers().filter_map(|number| Block::ALL.inner(number));
    let is_free = |block: &Block| !addresses.iter().any(|(_, address, _)| block.holds(*address));
    blocks.find(is_free).ok_or_else(|| Error::new("no addresses are left for a shell here"))
}

/// Creates the far end in a gateway.
pub fn make_gateway() -> Result<Tun> {
    Tun::create(GATEWAY).map_err(|error| match no_device(&error) {
        NoDevice::NotPermitted => {
            Error::new("the kernel permits no TUN device in a user namespace")
        }
        NoDevice::Other(error) => error,
    })
}

/// Assigns all addresses to the gateway, so that it represents the outside.
pub fn own_all_addresses() -> Result<()> {
    Interface::named("lo")
        .and_then(|loopback| loopback.own_all())
        .map_err(|error| failed("the addresses of the gateway", &error))
}

/// Creates the near end in this process' namespace.
pub fn make_near() -> Result<Tun> {
    Tun::create(NAME).map_err(|error| match no_device(&error) {
        NoDevice::NotPermitted => failed("the device of the command", &error),
        NoDevice::Other(error) => error,
    })
}

/// Creates an end of a path in front of an interface, with the first unused name.
pub fn make_bare(end: &str) -> Result<Tun> {
    for number in 0..100 {
        match Tun::create(&format!("{NAME}-{end}{number}")) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => {
                return Err(match no_device(&error) {
                    NoDevice::NotPermitted => failed("a TUN device", &error).hint("run it as root"),
                    NoDevice::Other(error) => error,
                });
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

fn no_device(error: &io::Error) -> NoDevice {
    match error.raw_os_error() {
        Some(libc::EPERM) => NoDevice::NotPermitted,
        Some(libc::EACCES) => NoDevice::Other(
            Error::new("/dev/net/tun: this user may not open it")
                .hint("`chmod 0666 /dev/net/tun` as root, the default of most systems"),
        ),
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => NoDevice::Other(
            Error::new("/dev/net/tun: there is no such device")
                .hint("`modprobe tun` as root; in a container: `--device /dev/net/tun`"),
        ),
        _ => NoDevice::Other(failed("a TUN device", error)),
    }
}

/// Assigns addresses to the far end.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn configure_far(tun: &Tun, block: &Block, mtu: u32) -> Result<()> {
    configure(&tun.name, mtu, |interface| {
        interface.add_v4(block.far().0, block.v4_bits)?;
        // Machines without IPv6 have no IPv6 here either.
        let _ = interface.add_v6(block.far().1, block.v6_bits);
        Ok(())
    })
}

/// Assigns addresses to the near end, and routes everything through it. Packets of nested shells
/// are forwarded; the namespace belongs to the emulator.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn configure_near(tun: &Tun, block: &Block, mtu: u32) -> Result<()> {
    configure(&tun.name, mtu, |interface| {
        interface.add_v4(block.near().0, block.v4_bits)?;
        interface.route_v4(Ipv4Addr::UNSPECIFIED, 0)?;
        if interface.add_v6(block.near().1, block.v6_bits).is_ok() {
            let _ = interface.route_v6(Ipv6Addr::UNSPECIFIED, 0);
        }
        Ok(())
    })?;
    // Read-only in some containers: then shells do not nest there.
    let _ = files::set("/proc/sys/net/ipv4/ip_forward", "1");
    let _ = files::set("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    Ok(())
}

/// Assigns addresses to the near end in an existing namespace, and diverts traffic of the default
/// route by two more specific routes. Addresses and routes are removed with the device.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn configure_attached(tun: &Tun, block: &Block, mtu: u32) -> Result<()> {
    configure(&tun.name, mtu, |interface| {
        interface.add_v4(block.near().0, block.v4_bits)?;
        for half in [0, 128] {
            interface.route_v4(Ipv4Addr::new(half, 0, 0, 0), 1)?;
        }
        if interface.add_v6(block.near().1, block.v6_bits).is_ok() {
            for half in [0, 0x8000] {
                let _ = interface.route_v6(Ipv6Addr::new(half, 0, 0, 0, 0, 0, 0, 0), 1);
            }
        }
        Ok(())
    })
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
