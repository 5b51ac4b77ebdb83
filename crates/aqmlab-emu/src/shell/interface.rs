//! A path in front of an interface of this network namespace.
//!
//! The near and the far end are devices in this namespace, to which the packets of the interface
//! are diverted (`netns::diversion`). The path ends when the command ends.

use std::os::fd::AsFd;

use aqmlab_core::{Bytes, Result};

use super::{Options, Shell};
use crate::background_tasks::InitProcess;
use crate::errors::failed;
use crate::netns::devices::{configure_bare, make_bare};
use crate::netns::diversion::Target;
use crate::netns::init::{READY, serve, start};
use crate::netns::{give_up, next_report, no_namespaces, settle};
use crate::sys::process::{Signals, exit, fork_into};
use crate::sys::{files, send, socket_pair};

impl<'a> Shell<'a> {
    /// Creates the devices and the process of the command; packets are not diverted yet.
    pub(super) fn at_interface(
        name: &str,
        options: &'a Options,
        signals: &'a Signals,
    ) -> Result<Self> {
        let target = Target::named(name)?;
        let ports = [make_bare("near")?, make_bare("far")?];
        for port in &ports {
            configure_bare(port, target.mtu)?;
        }
        let [socket, theirs] = socket_pair().map_err(|error| failed("a socket", &error))?;
        let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        let Some(pid) = fork_into(namespaces).map_err(|error| no_namespaces(&error))? else {
            let near = ports[0].name.clone();
            drop((target, ports, socket));
            settle(None, false).unwrap_or_else(|error| give_up(&theirs, &error));
            if send(theirs.as_fd(), &[READY], None).is_err() {
                exit(1);
            }
            let command =
                |_: &[u8]| start(&options.command, &options.environment, None, signals, false);
            serve(&theirs, None, &[], command, || files::dropped(&near))
        };
        drop(theirs);
        let init = InitProcess::new(pid, socket, signals)?;
        next_report(init.socket(), "command")?;
        let mtu = Bytes::new(u64::from(target.mtu));
        Ok(Shell { init, ports, gateway: None, target: Some(target), mtu, depth: 0 })
    }
}
