//! Init process in the namespaces of a shell: creates the devices and everything else before the
//! command starts. Its later work is in `netns::init`.

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use aqmlab_core::Result;

use super::Options;
use crate::addresses::Block;
use crate::nat::run_keeper;
use crate::netns::broker::Broker;
use crate::netns::devices::{
    NAME, configure_far, configure_near, make_gateway, make_near, own_all_addresses,
};
use crate::netns::init::{FAR, NEAR, NOT_STARTED, START, execute, serve, start};
use crate::netns::{allow_pings, give_up, new_network, settle};
use crate::params::EmulatorParams;
use crate::sys::files::{self, RESOLV_CONF};
use crate::sys::process::{self, Pid, Signals, exit, fork_into, lead_foreground};
use crate::sys::time::set_real_time;
use crate::sys::{failed, receive, send, socket_pair};

/// Variable with the far end's address.
const FAR_VARIABLE: &str = "AQMLAB_FAR";

/// Input of the init process.
pub struct Inside<'a> {
    pub options: &'a Options,
    pub params: &'a EmulatorParams,
    /// Network namespace that the path is put in front of; `None`: a new one.
    pub attached: Option<&'a File>,
    /// Addresses of both ends.
    pub block: Block,
    /// True if the far end is in the namespace that the shell was started in, not in one of its own.
    pub far_is_here: bool,
    /// User and group outside, if there is a user namespace.
    pub mapped: Option<(u32, u32)>,
    pub socket: OwnedFd,
    /// Connection to the emulator's gateway filter, for traffic to the outside.
    pub gateway: Option<OwnedFd>,
    /// True if the far end resolves names.
    pub own_names: bool,
    /// True if the shell was started inside another shell.
    pub is_inside: bool,
    /// True if the command leads a process group of its own in the foreground of the terminal.
    pub leads: bool,
    pub signals: &'a Signals,
}

/// Resources created before the command starts.
struct Prepared {
    /// Keeps the namespace alive while open.
    _far_namespace: File,
    /// Starts the program of the far end on request.
    far: Option<OwnedFd>,
    /// Process that opens ports in the gateway.
    keeper: Option<Pid>,
    /// Creates devices for nested shells.
    broker: Option<Broker>,
}

impl Inside<'_> {
    /// Runs the process; never returns.
    pub fn run(self) -> ! {
        match self.prepare() {
            Ok(prepared) => self.serve(&prepared),
            Err(error) => give_up(&self.socket, &error),
        }
    }

    /// Creates namespaces and devices, and sends the devices to the emulator.
    fn prepare(&self) -> Result<Prepared> {
        settle(self.mapped, self.params.keep_capabilities)?;
        let mtu = self.params.mtu.get() as u32;
        if !self.far_is_here {
            new_network()?;
            let tun = make_gateway()?;
            configure_far(&tun, &self.block, mtu)?;
            self.tell(FAR, &tun)?;
        }
        let keeper = self.gateway.as_ref().map(|gateway| self.start_keeper(gateway)).transpose()?;
        let far_namespace =
            files::network().map_err(|error| failed("the network namespace", &error))?;
        let far = (!self.options.far.is_empty()).then(|| self.hold_far()).transpose()?;
        match self.attached {
            None => new_network()?,
            Some(namespace) => process::enter(namespace.as_fd())
                .map_err(|error| failed("the network namespace", &error))?,
        }
        let tun = make_near()?;
        configure_near(&tun, &self.block, mtu, self.attached.is_some())?;
        let broker = self.is_confined().then(|| {
            allow_pings();
            Broker::here()
        });
        let broker = broker.transpose()?;
        self.tell(NEAR, &tun)?;
        Ok(Prepared { _far_namespace: far_namespace, far, keeper, broker })
    }

    /// Returns the environment of the commands, with variables that describe the path, without IPv6
    /// if the system has none. Inside another shell, the far end remains that of the outermost path.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let (options, block) = (self.options, &self.block);
        let ours = |key: &OsString, prefix| key.as_encoded_bytes().starts_with(prefix);
        let has_far =
            self.is_inside && options.environment.iter().any(|(key, _)| key == FAR_VARIABLE);
        let is_kept = |key: &OsString| {
            let is_far = ours(key, FAR_VARIABLE.as_bytes()) || key == "MAHIMAHI_BASE";
            !ours(key, b"AQMLAB_NEAR") && (has_far || !is_far)
        };
        let mut all: Vec<_> =
            options.environment.iter().filter(|(key, _)| is_kept(key)).cloned().collect();
        let mut set = |key: &str, value: String| all.push((key.into(), value.into()));
        let has_v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
        if !has_far {
            set(FAR_VARIABLE, block.far().0.to_string());
            set("MAHIMAHI_BASE", block.far().0.to_string());
            if has_v6 {
                set("AQMLAB_FAR6", block.far().1.to_string());
            }
        }
        set("AQMLAB_NEAR", block.near().0.to_string());
        if has_v6 {
            set("AQMLAB_NEAR6", block.near().1.to_string());
        }
        all
    }

    /// Returns whether programs here are denied changes to the network.
    fn is_confined(&self) -> bool {
        self.mapped.is_some() && !self.params.keep_capabilities
    }

    /// Creates a process that starts the program of the far end on request. It exists from the
    /// start because the namespace may be inaccessible later.
    fn hold_far(&self) -> Result<OwnedFd> {
        let [ours, theirs] = socket_pair().map_err(|error| failed("a socket", &error))?;
        if fork_into(0).map_err(|error| failed("a process", &error))?.is_some() {
            return Ok(ours);
        }
        drop(ours);
        let environment = self.variables();
        match receive(theirs.as_fd()) {
            Ok((told, _)) if !told.is_empty() => {
                execute(&self.options.far, &environment, self.signals, self.is_confined())
            }
            _ => exit(NOT_STARTED),
        }
    }

    /// Configures the gateway namespace, and starts the process that opens ports there.
    fn start_keeper(&self, gateway: &OwnedFd) -> Result<Pid> {
        own_all_addresses()?;
        if self.own_names {
            let text = files::names_from(self.block.far().0);
            files::cover(RESOLV_CONF, &text).map_err(|error| failed(RESOLV_CONF, &error))?;
        }
        match fork_into(0).map_err(|error| failed("a process", &error))? {
            Some(pid) => Ok(pid),
            None => {
                // The emulator waits for this process.
                let _ = set_real_time(self.params.priority as i32);
                run_keeper(gateway);
                exit(0)
            }
        }
    }

    fn tell(&self, what: u8, tun: &crate::sys::device::Tun) -> Result<()> {
        send(self.socket.as_fd(), &[what], Some(tun.as_fd()))
            .map_err(|error| failed("the emulator", &error))
    }

    /// Starts the command on request, and waits for it.
    fn serve(&self, prepared: &Prepared) -> ! {
        let Prepared { far, keeper, broker, .. } = prepared;
        let environment = self.variables();
        let start = |_: &[u8]| {
            if let Some(far) = far {
                let _ = send(far.as_fd(), &[START], None);
            }
            if self.leads {
                lead_foreground();
            }
            start(&self.options.command, &environment, None, self.signals, self.is_confined())
        };
        serve(&self.socket, *keeper, broker.as_slice(), start, || files::dropped(NAME))
    }
}
