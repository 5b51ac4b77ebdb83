//! Processes, namespaces, signals.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{check, owned};

/// Process ID.
pub type Pid = libc::pid_t;

/// Forks a child in new namespaces (`CLONE_NEW...`); returns `None` in the child. The process must
/// have a single thread.
pub fn fork_into(namespaces: libc::c_int) -> io::Result<Option<Pid>> {
    let flags = (namespaces | libc::SIGCHLD) as libc::c_ulong;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: without a new stack and without shared memory, the child continues here in a copy of
    // the process, as after a fork; no other thread exists that could hold a lock.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    check(pid as _).map(|pid| (pid != 0).then_some(pid))
}

/// Moves this process into new namespaces.
pub fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: the argument is a number.
    check(unsafe { libc::unshare(namespaces) }).map(drop)
}

/// Moves this process into an existing network namespace.
pub fn enter(network: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Returns the effective user and group of this process.
pub fn identity() -> (u32, u32) {
    // SAFETY: these calls cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Makes the kernel kill this process when its parent ends.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: the arguments are numbers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) }).map(drop)
}

/// `capget`'s and `capset`'s structures, version 3.
#[repr(C)]
struct CapabilityHead {
    version: u32,
    pid: libc::c_int,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Returns the capabilities of this process.
fn capabilities() -> io::Result<(CapabilityHead, [CapabilityData; 2])> {
    const VERSION_3: u32 = 0x2008_0522;
    let mut head = CapabilityHead { version: VERSION_3, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: both structures are those of this version and outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &mut head, data.as_mut_ptr()) as _ })?;
    Ok((head, data))
}

/// Returns whether this process may create namespaces other than user namespaces.
pub fn may_make_namespaces() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    capabilities().is_ok_and(|(_, data)| data[0].effective >> CAP_SYS_ADMIN & 1 == 1)
}

/// Makes started programs keep the capabilities that this process has in its user namespace.
/// Without this, users other than root lose all of them at the first program.
pub fn keep_capabilities() -> io::Result<()> {
    let (mut head, mut data) = capabilities()?;
    // SAFETY: both structures are those of this version and outlive the calls.
    unsafe {
        data.iter_mut().for_each(|each| each.inheritable = each.permitted);
        check(libc::syscall(libc::SYS_capset, &mut head, data.as_ptr()) as _)?;
        for capability in 0..64u32 {
            if data[capability as usize / 32].permitted >> (capability % 32) & 1 == 1 {
                let raise = libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong;
                let capability = libc::c_ulong::from(capability);
                check(libc::prctl(libc::PR_CAP_AMBIENT, raise, capability, 0, 0))?;
            }
        }
    }
    Ok(())
}

/// Permanently removes the capabilities to change the network, or the processes that may, from
/// started programs. This includes root, which gets all capabilities with every program.
pub fn confine() -> io::Result<()> {
    const NET_ADMIN: libc::c_ulong = 12;
    const SYS_PTRACE: libc::c_ulong = 19;
    const SYS_ADMIN: libc::c_ulong = 21;
    for capability in [NET_ADMIN, SYS_PTRACE, SYS_ADMIN] {
        // SAFETY: the arguments are numbers.
        check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) })?;
    }
    Ok(())
}

/// Separates mounts of this namespace from others, and shows its own processes in `/proc` where
/// permitted.
pub fn own_mounts() -> io::Result<()> {
    let (root, proc_) = (c"/".as_ptr(), c"/proc".as_ptr());
    let none = std::ptr::null();
    // SAFETY: all strings are null-terminated.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        check(libc::mount(none, root, none, private, none.cast()))?;
        let safe = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        // Forbidden in some containers; the old mount then remains.
        libc::mount(c"proc".as_ptr(), proc_, c"proc".as_ptr(), safe, none.cast());
    }
    Ok(())
}

/// Mounts a file system of this kind at a place, or a file over another.
pub fn mount(what: &str, place: &str, kind: Option<&str>) -> io::Result<()> {
    let text = |text: &str| CString::new(text).map_err(io::Error::from);
    let (what, place) = (text(what)?, text(place)?);
    let kind = kind.map(text).transpose()?;
    let flags = if kind.is_some() { 0 } else { libc::MS_BIND };
    let kind = kind.as_ref().map_or(std::ptr::null(), |kind| kind.as_ptr());
    // SAFETY: all strings are null-terminated and outlive the call.
    let done = unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) };
    check(done).map(drop)
}

/// Unmounts the last mount at a place; objects in use remain.
pub fn unmount(place: &str) -> io::Result<()> {
    let place = CString::new(place)?;
    // SAFETY: the string is null-terminated and outlives the call.
    check(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Set of signals, blocked in this thread, as a descriptor.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// Received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Signal number.
    pub number: i32,
    /// True if a process sent it; false if the kernel sent it for a terminal.
    pub is_sent: bool,
}

impl Signals {
    /// Blocks these signals, and reports them by the descriptor.
    pub fn block(numbers: &[i32]) -> io::Result<Self> {
        // SAFETY: the sets are initialised before use and outlive the calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for number in numbers {
                check(libc::sigaddset(&mut set, *number))?;
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before))?;
            let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(Signals { fd: owned(fd), before })
        }
    }

    /// Returns the next received signal, if any.
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: a zeroed record is valid, and has room for one signal.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of_val(&info);
            let read = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            (read == size as isize)
                .then_some(Signal { number: info.ssi_signo as i32, is_sent: info.ssi_code <= 0 })
        }
    }

    /// Returns the descriptor for polling.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// Restores the previous signal mask.
    pub fn restore(&self) {
        // SAFETY: the set is the previous mask.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Restores the default action of a signal: the interpreter ignores some signals, and started
/// programs would inherit that.
pub fn default_signal(number: i32) {
    // SAFETY: the default action is not a function of this program.
    unsafe { libc::signal(number, libc::SIG_DFL) };
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Child process, killed when this is dropped.
pub struct Child {
    pid: Option<Pid>,
}

impl Child {
    /// Takes ownership of a child process.
    pub fn new(pid: Pid) -> Self {
        Child { pid: Some(pid) }
    }

    /// Sends a signal to the child.
    pub fn signal(&self, signal: i32) {
        self.pid.into_iter().for_each(|pid| kill(pid, signal));
    }

    /// Returns a descriptor that is readable when the child has ended.
    pub fn watch(&self) -> io::Result<OwnedFd> {
        // SAFETY: the arguments are numbers.
        check(unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid.unwrap_or(0), 0) } as _)
            .map(owned)
    }

    /// Kills the child unless it has ended. Returns its exit status.
    pub fn end(mut self) -> io::Result<i32> {
        self.signal(libc::SIGKILL);
        let pid = self.pid.take().expect("it ends once");
        Ok(wait_for(pid, 0)?.expect("it waits for the end").1)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            kill(pid, libc::SIGKILL);
            let _ = wait_for(pid, 0);
        }
    }
}

/// Reaps an ended child: its exit status by the shell's conventions. `None` if none has ended.
pub fn reap() -> io::Result<Option<(Pid, i32)>> {
    wait_for(-1, libc::WNOHANG)
}

/// Waits for the end of a child (-1: any), unless the options forbid that.
fn wait_for(pid: Pid, options: libc::c_int) -> io::Result<Option<(Pid, i32)>> {
    loop {
        let mut status = 0;
        // SAFETY: the status has room for the result.
        let pid = match check(unsafe { libc::waitpid(pid, &mut status, options) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let status = match libc::WIFSIGNALED(status) {
            true => 128 + libc::WTERMSIG(status),
            false => libc::WEXITSTATUS(status),
        };
        return Ok((pid != 0).then_some((pid, status)));
    }
}

/// Sends a signal; a missing process is no error.
pub fn kill(pid: Pid, signal: i32) {
    // SAFETY: the arguments are numbers.
    unsafe { libc::kill(pid, signal) };
}

/// Foreground process group of the terminal, if there is a terminal. On drop it is in the
/// foreground again: a shell with job control and its group have ended.
pub struct Foreground(Option<Pid>);

impl Foreground {
    /// Returns that of the terminal of this process.
    pub fn here() -> Self {
        Foreground(foreground())
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        self.0.filter(|group| foreground() != Some(*group)).into_iter().for_each(set_foreground);
    }
}

/// Returns whether this process is in the foreground process group of its terminal.
pub fn is_foreground() -> bool {
    // SAFETY: the call cannot fail.
    foreground() == Some(unsafe { libc::getpgrp() })
}

/// Moves this process into its own process group, in the foreground of the terminal.
pub fn lead_foreground() {
    // SAFETY: the arguments are numbers.
    unsafe { libc::setpgid(0, 0) };
    // SAFETY: the call cannot fail.
    set_foreground(unsafe { libc::getpid() });
}

fn set_foreground(group: Pid) {
    // SAFETY: the handler is not a function of this program, and is restored.
    unsafe {
        // The kernel would stop a background process for the request.
        let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::tcsetpgrp(libc::STDIN_FILENO, group);
        libc::signal(libc::SIGTTOU, before);
    }
}

fn foreground() -> Option<Pid> {
    // SAFETY: the argument is a number.
    let group = unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) };
    (group > 0).then_some(group)
}

/// Exits immediately, without destructors or handlers.
pub fn exit(status: i32) -> ! {
    // SAFETY: the process ends here.
    unsafe { libc::_exit(status) }
}
