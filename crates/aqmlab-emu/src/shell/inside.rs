//! Init process in the namespaces of a shell: creates the devices and everything else before the
//! command starts. Its later work is in `netns::init`.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use aqmlab_core::Result;

use super::{Options, variables};
use crate::addresses::Block;
use crate::errors::failed;
use crate::nat::run_keeper;
use crate::netns::broker::Broker;
use crate::netns::devices::{
    NAME, configure_attached, configure_far, configure_near, make_gateway, make_near,
    own_all_addresses,
};
use crate::netns::init::{FAR, NEAR, NOT_STARTED, START, execute, serve, start};
use crate::netns::{allow_pings, give_up, new_network, settle};
use crate::sys::files::{self, RESOLV_CONF};
use crate::sys::process::{self, Pid, Program, Signals, exit, fork_into, lead_foreground};
use crate::sys::time::set_real_time;
use crate::sys::{receive, send, socket_pair};

/// Location of the far end.
#[derive(Clone, Copy)]
pub enum FarEnd {
    /// The namespace that the shell was started in; the far end has this block.
    Here(Block),
    /// A namespace of its own.
    Gateway(Block),
}

/// Input of the init process.
pub struct Inside<'a> {
    pub options: &'a Options,
    /// Network namespace that the path is put in front of; `None`: a new one.
    pub attached: Option<&'a File>,
    pub mtu: u32,
    pub priority: i32,
    /// True if the command keeps the capabilities that it has in a user namespace.
    pub keeps: bool,
    pub far: FarEnd,
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
    block: Block,
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
        settle(self.mapped, self.keeps)?;
        let mtu = self.mtu;
        let block = match self.far {
            FarEnd::Here(block) => block,
            FarEnd::Gateway(block) => {
                new_network()?;
                let tun = make_gateway()?;
                configure_far(&tun, &block, mtu)?;
                self.tell(FAR, &tun)?;
                block
            }
        };
        let keeper =
            self.gateway.as_ref().map(|gateway| self.start_keeper(gateway, &block)).transpose()?;
        let far_namespace =
            files::network().map_err(|error| failed("the network namespace", &error))?;
        let far = (!self.options.far.is_empty()).then(|| self.hold_far(&block)).transpose()?;
        let configure = match self.attached {
            None => {
                new_network()?;
                configure_near
            }
            Some(namespace) => {
                let entered = process::enter(namespace.as_fd());
                entered.map_err(|error| failed("the network namespace", &error))?;
                configure_attached
            }
        };
        let tun = make_near()?;
        configure(&tun, &block, mtu)?;
        let broker = self.is_confined().then(|| {
            allow_pings();
            Broker::here()
        });
        let broker = broker.transpose()?;
        self.tell(NEAR, &tun)?;
        Ok(Prepared { block, _far_namespace: far_namespace, far, keeper, broker })
    }

    /// Returns whether programs here are denied changes to the network.
    fn is_confined(&self) -> bool {
        self.mapped.is_some() && !self.keeps
    }

    /// Creates a process that starts the program of the far end on request. It exists from the
    /// start because the namespace may be inaccessible later.
    fn hold_far(&self, block: &Block) -> Result<OwnedFd> {
        let [ours, theirs] = socket_pair().map_err(|error| failed("a socket", &error))?;
        if fork_into(0).map_err(|error| failed("a process", &error))?.is_some() {
            return Ok(ours);
        }
        drop(ours);
        let words = &self.options.far;
        let environment = variables(self.options, block, self.is_inside);
        match (receive(theirs.as_fd()), Program::new(words, &environment)) {
            (Ok((told, _)), Ok(program)) if !told.is_empty() => {
                execute(&program, words, self.signals, self.is_confined())
            }
            _ => exit(NOT_STARTED),
        }
    }

    /// Configures the gateway namespace, and starts the process that opens ports there.
    fn start_keeper(&self, gateway: &OwnedFd, block: &Block) -> Result<Pid> {
        own_all_addresses()?;
        if self.own_names {
            let text = format!("nameserver {}\n", block.far().0);
            files::cover(RESOLV_CONF, &text).map_err(|error| failed(RESOLV_CONF, &error))?;
        }
        match fork_into(0).map_err(|error| failed("a process", &error))? {
            Some(pid) => Ok(pid),
            None => {
                // The emulator waits for this process.
                let _ = set_real_time(self.priority);
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
        let Prepared { block, far, keeper, broker, .. } = prepared;
        let environment = variables(self.options, block, self.is_inside);
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
