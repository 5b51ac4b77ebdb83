//! A path in front of an interface of this network namespace.
//!
//! The near and the far end are devices in this namespace, to which the packets of the interface
//! are diverted (`netns::diversion`). The path ends when the command ends.

use std::os::fd::AsFd;

use aqmlab_core::{Bytes, Error, Result};

use super::{Options, Shell};
use crate::background_tasks::InitProcess;
use crate::errors::failed;
use crate::netns::devices::{configure_bare, make_bare};
use crate::netns::diversion::Target;
use crate::netns::init::{ERROR, READY, serve, start};
use crate::netns::no_namespaces;
use crate::sys::process::{Signals, die_with_parent, exit, fork_into, own_mounts};
use crate::sys::{files, receive, send, socket_pair};

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
            let prepared = own_mounts().and_then(|()| die_with_parent());
            let told = match &prepared {
                Ok(()) => send(theirs.as_fd(), &[READY], None),
                Err(error) => {
                    let text = [&[ERROR], error.to_string().as_bytes()].concat();
                    send(theirs.as_fd(), &text, None)
                }
            };
            if prepared.is_err() || told.is_err() {
                exit(1);
            }
            let command =
                |_: &[u8]| start(&options.command, &options.environment, None, signals, false);
            serve(&theirs, None, &[], command, || files::dropped(&near))
        };
        drop(theirs);
        let init = InitProcess::new(pid, socket, signals)?;
        match receive(init.socket().as_fd())
            .map_err(|error| failed("the command", &error))?
            .0
            .split_first()
        {
            Some((&READY, _)) => {}
            Some((&ERROR, text)) => {
                return Err(Error::new(String::from_utf8_lossy(text).into_owned()));
            }
            _ => return Err(Error::new("the process of the command ended during its setup")),
        }
        let mtu = Bytes::new(u64::from(target.mtu));
        Ok(Shell { init, ports, gateway: None, target: Some(target), mtu, depth: 0 })
    }
}
