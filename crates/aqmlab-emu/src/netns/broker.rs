//! Broker of devices for shells nested in a shell whose command has no capabilities.
//!
//! The far end of a nested shell is a device in the namespace of the command that starts it, which
//! that command may not create. The init process of the outer shell creates it on request, through
//! a socket whose name exists in that network namespace only. The broker only provides devices with
//! a free address block inside the shell's own block, and only to processes of the shell: others in
//! the network namespace (`nsenter --net`) are refused. A device ends with its requester.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use aqmlab_core::{Error, Result};

use super::devices::{configure_far, is_inside, make_far};
use crate::addresses::Block;
use crate::sys::device::Tun;
use crate::sys::process::enter;
use crate::sys::socket::{accept, connect_local, listen_local, peer_process};
use crate::sys::time::wait;
use crate::sys::{failed, files, receive, send};

/// Name of the socket, in the command's network namespace.
const NAME: &str = "aqmlab-broker";
/// Answers: a device, or an error message.
const MADE: u8 = b'M';
const REFUSED: u8 = b'R';
/// Timeout for the request after a connection.
const PATIENCE: Duration = Duration::from_millis(200);

/// Creates devices in one network namespace.
pub(crate) struct Broker {
    listener: OwnedFd,
    namespace: File,
}

impl Broker {
    /// Creates the broker for this process' network namespace.
    pub(crate) fn here() -> Result<Self> {
        let listener = listen_local(NAME).map_err(|error| failed("a socket", &error))?;
        let namespace =
            files::network().map_err(|error| failed("the network namespace", &error))?;
        Ok(Broker { listener, namespace })
    }

    /// Serves one request.
    pub(crate) fn serve(&self) {
        let Ok(client) = accept(self.listener.as_fd()) else { return };
        let is_asked = wait([client.as_fd()], Some(PATIENCE)).is_ok_and(|[ready]| ready);
        let asked =
            if is_asked { receive(client.as_fd()).unwrap_or_default().0 } else { Vec::new() };
        let Ok(mtu) = <[u8; 4]>::try_from(asked) else { return };
        let is_ours = peer_process(client.as_fd()).is_ok_and(|pid| pid != 0);
        let made = match is_ours {
            true => self.make(u32::from_le_bytes(mtu)),
            false => Err("only the processes of this shell get devices".to_string()),
        };
        // The requester may have exited.
        let _ = match made {
            Ok((tun, block)) => {
                let address = block.far().0.octets();
                let text = [&[MADE, block.v4_bits as u8], &address[..], tun.name.as_bytes()];
                send(client.as_fd(), &text.concat(), Some(tun.as_fd()))
            }
            Err(problem) => send(client.as_fd(), &[&[REFUSED], problem.as_bytes()].concat(), None),
        };
    }

    fn make(&self, mtu: u32) -> std::result::Result<(Tun, Block), String> {
        enter(self.namespace.as_fd()).map_err(|error| error.to_string())?;
        let not_permitted = || Error::new("no device is permitted");
        let made = make_far().map_err(|problem| problem.or(not_permitted).to_string());
        let (tun, block) = made?;
        configure_far(&tun, &block, mtu).map_err(|error| error.to_string())?;
        Ok((tun, block))
    }
}

impl AsFd for Broker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Returns whether an enclosing shell creates devices.
pub(crate) fn is_there() -> bool {
    is_inside().is_ok_and(|inside| inside) && connect_local(NAME).is_ok()
}

/// Requests a far end with addresses from the enclosing shell; `None` without one.
///
/// # Errors
/// Returns the message of the enclosing shell if it creates no device.
pub(crate) fn ask(mtu: u32) -> Result<Option<(Tun, Block)>> {
    if !is_inside()? {
        return Ok(None);
    }
    let Ok(socket) = connect_local(NAME) else { return Ok(None) };
    let broken = |error: io::Error| failed("the shell around this one", &error);
    send(socket.as_fd(), &mtu.to_le_bytes(), None).map_err(broken)?;
    let (text, fd) = receive(socket.as_fd()).map_err(broken)?;
    match (&text[..], fd) {
        ([MADE, bits, a, b, c, d, name @ ..], Some(fd)) => {
            let block = Block::of(Ipv4Addr::new(*a, *b, *c, *d), u32::from(*bits));
            let name = String::from_utf8_lossy(name);
            let made = block.map(|block| (Tun::from_fd(fd, &name), block));
            made.ok_or_else(|| broken(io::ErrorKind::InvalidData.into())).map(Some)
        }
        ([REFUSED, words @ ..], _) => Err(Error::new(String::from_utf8_lossy(words).into_owned())),
        _ => Err(broken(io::ErrorKind::UnexpectedEof.into())),
    }
}
