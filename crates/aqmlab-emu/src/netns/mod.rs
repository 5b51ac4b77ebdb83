//! New namespaces, the devices in them, and their init process.

pub(crate) mod broker;
pub(crate) mod devices;
pub(crate) mod diversion;
pub(crate) mod init;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aqmlab_core::{Error, Result};

use self::devices::start_loopback;
use self::init::ERROR;
use crate::sys::process::{
    die_with_parent, exit, identity, keep_capabilities, may_make_namespaces, own_mounts, unshare,
};
use crate::sys::{failed, files, receive, send};

/// Checks that this process has one thread: a forked copy would inherit locks of other threads.
pub(crate) fn only_one_thread() -> Result<()> {
    let threads = files::threads();
    if threads > 1 {
        let problem = format!("a shell cannot be started by a process with {threads} threads");
        return Err(Error::new(problem).hint("start it with `aqmlab shell`"));
    }
    Ok(())
}

/// Returns the user and group to map, if a user namespace is needed: for users who may not create a
/// device here, and for root without permission to create namespaces, as in a container.
pub(crate) fn mapped_user(has_device: bool) -> Option<(u32, u32)> {
    (!has_device || !may_make_namespaces()).then(identity)
}

/// Returns the error for forbidden namespaces, with a hint.
pub(crate) fn no_namespaces(error: &io::Error) -> Error {
    let problem = format!("the kernel refuses namespaces: {error}");
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run it as root, or let users make user namespaces: sysctls \
             kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; \
             in a container: `--security-opt seccomp=unconfined --device /dev/net/tun`, or \
             `--cap-add SYS_ADMIN --cap-add NET_ADMIN --device /dev/net/tun`"
        }
        Some(libc::ENOSPC | libc::EUSERS) => "sysctl user.max_user_namespaces is too small",
        _ => return Error::new(problem),
    };
    Error::new(problem).hint(hint)
}

/// Returns the error for a step in new namespaces. Ubuntu creates user namespaces for programs without
/// an AppArmor profile, but refuses everything in them
/// (`kernel.apparmor_restrict_unprivileged_userns`).
fn refused(what: &str, error: &io::Error, is_user: bool) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_user => no_namespaces(error),
        _ => failed(what, error),
    }
}

/// Completes the new namespaces of this process, which ends with the emulator. In a user namespace
/// for this user and group, its programs keep their capabilities if `keeps`.
pub(crate) fn settle(mapped: Option<(u32, u32)>, keeps: bool) -> Result<()> {
    if let Some((user, group)) = mapped {
        map_user(user, group)?;
    }
    own_mounts().map_err(|error| refused("a mount namespace", &error, mapped.is_some()))?;
    if mapped.is_some() && keeps {
        keep_capabilities().map_err(|error| failed("capabilities", &error))?;
    }
    die_with_parent().map_err(|error| failed("prctl", &error))
}

/// Tells the emulator that the setup failed, and ends this process.
pub(crate) fn give_up(socket: &OwnedFd, error: &Error) -> ! {
    let _ = send(socket.as_fd(), &[&[ERROR], error.to_string().as_bytes()].concat(), None);
    exit(1)
}

/// Receives the next report on the setup of `whom`.
pub(crate) fn next_report(socket: &OwnedFd, whom: &str) -> Result<(u8, Option<OwnedFd>)> {
    let (text, fd) =
        receive(socket.as_fd()).map_err(|error| failed(&format!("the {whom}"), &error))?;
    match text.split_first() {
        Some((&ERROR, text)) => Err(Error::new(String::from_utf8_lossy(text).into_owned())),
        Some((what, _)) => Ok((*what, fd)),
        None => Err(Error::new(format!("the process of the {whom} ended during its setup"))),
    }
}

/// Permits pings in this network namespace to the user, who has no capabilities.
pub(crate) fn allow_pings() {
    let (_, group) = identity();
    // Read-only in some systems: pings then need a capability.
    let _ = files::set("/proc/sys/net/ipv4/ping_group_range", &format!("{group} {group}"));
}

/// Moves into a new network namespace with a loopback device.
pub(crate) fn new_network() -> Result<()> {
    unshare(libc::CLONE_NEWNET).map_err(|error| failed("a network namespace", &error))?;
    start_loopback()
}

/// Maps the user of this process to the same user in the new namespace.
fn map_user(user: u32, group: u32) -> Result<()> {
    let write = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        files::set(&path, &text).map_err(|error| {
            let is_refused = error.raw_os_error() == Some(libc::EPERM);
            if is_refused && user == 0 {
                // user_namespaces(7): since Linux 5.12.
                return failed(&path, &error).hint(
                    "root without CAP_SETFCAP may not be root in a namespace: run it as \
                     another user; in a container: `--cap-add SETFCAP`",
                );
            }
            refused(&path, &error, true)
        })
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    debug_assert_eq!(identity(), (user, group));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_in_a_namespace_has_the_remedy_for_namespaces() {
        for number in [libc::EPERM, libc::EACCES] {
            let error = io::Error::from_raw_os_error(number);
            let text = refused("/proc/self/uid_map", &error, true).to_string();
            assert!(text.contains("kernel.apparmor_restrict_unprivileged_userns=0"), "{text}");
            let text = refused("a mount namespace", &error, false).to_string();
            assert!(text.starts_with("a mount namespace: "), "{text}");
        }
    }
}
