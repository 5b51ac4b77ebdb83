//! Processes, namespaces, signals.

use std::ffi::{CString, OsString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use super::{check, owned};

/// A process, by its number.
pub type Pid = libc::pid_t;

/// Makes a child as `fork` does, in new namespaces (`CLONE_NEW...`): `None` in
/// the child. Only for a process of one thread.
pub fn fork_into(namespaces: libc::c_int) -> io::Result<Option<Pid>> {
    let flags = (namespaces | libc::SIGCHLD) as libc::c_ulong;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: without a stack of its own and without shared memory the child
    // goes on here in a copy of everything, as after a fork; no other thread
    // exists that could hold a lock.
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

/// This process' user and group, as it acts.
pub fn identity() -> (u32, u32) {
    // SAFETY: these calls cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Lets the kernel kill this process when its parent ends.
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

/// Those of this process.
fn capabilities() -> io::Result<(CapabilityHead, [CapabilityData; 2])> {
    const VERSION_3: u32 = 0x2008_0522;
    let mut head = CapabilityHead { version: VERSION_3, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: both structures are those of this version and outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &mut head, data.as_mut_ptr()) as _ })?;
    Ok((head, data))
}

/// Whether this process may make other namespaces than user namespaces.
pub fn may_make_namespaces() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    capabilities().is_ok_and(|(_, data)| data[0].effective >> CAP_SYS_ADMIN & 1 == 1)
}

/// Lets programs that are started keep the capabilities that this process has
/// in its own user namespace: without them a user other than root would lose
/// all at the first program.
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

/// Takes away for good what a program that is started could change the network with, or the
/// processes that may: also from a user who gets all capabilities with every program, root.
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

/// Keeps mounts of this namespace from the others, and shows its own
/// processes in `/proc` where that is permitted.
pub fn own_mounts() -> io::Result<()> {
    let (root, proc_) = (c"/".as_ptr(), c"/proc".as_ptr());
    let none = std::ptr::null();
    // SAFETY: all texts end with a zero.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        check(libc::mount(none, root, none, private, none.cast()))?;
        let safe = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        // In a container this may be forbidden; the old one then stays.
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
    // SAFETY: all texts end with a zero and outlive the call.
    let done = unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) };
    check(done).map(drop)
}

/// Takes away what was mounted last at a place; what is in use of it stays.
pub fn unmount(place: &str) -> io::Result<()> {
    let place = CString::new(place)?;
    // SAFETY: the text ends with a zero and outlives the call.
    check(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// The signals of a set, blocked in this thread, as a descriptor.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// Whether a process sent it, and not the kernel for a terminal.
    pub is_sent: bool,
}

impl Signals {
    /// Blocks these signals and waits for them.
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

    /// The signal that has come, if there is one.
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: a record of zeros is valid, and has room for one.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of_val(&info);
            let read = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            (read == size as isize)
                .then_some(Signal { number: info.ssi_signo as i32, is_sent: info.ssi_code <= 0 })
        }
    }

    /// The descriptor, to wait for.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// Lets signals through as before.
    pub fn restore(&self) {
        // SAFETY: the set is the one that was in force.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Gives signals their default meaning: the interpreter ignores some, and a
/// program that is started would go on ignoring them.
pub fn default_signal(number: i32) {
    // SAFETY: the default action is no function of ours.
    unsafe { libc::signal(number, libc::SIG_DFL) };
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.restore();
    }
}

/// A child, which does not outlive this.
pub struct Child {
    pid: Option<Pid>,
}

impl Child {
    /// The child of this number.
    pub fn new(pid: Pid) -> Self {
        Child { pid: Some(pid) }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        self.pid.into_iter().for_each(|pid| kill(pid, signal));
    }

    /// A descriptor that can be read when it has ended.
    pub fn watch(&self) -> io::Result<OwnedFd> {
        // SAFETY: the arguments are numbers.
        check(unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid.unwrap_or(0), 0) } as _)
            .map(owned)
    }

    /// Ends it, unless it has ended, and says how it did.
    pub fn end(mut self) -> io::Result<Ended> {
        self.signal(libc::SIGKILL);
        let pid = self.pid.take().expect("it ends once");
        wait_for(pid)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            kill(pid, libc::SIGKILL);
            let _ = wait_for(pid);
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// The exit status that says so, as shells do.
    pub fn status(self) -> i32 {
        match self {
            Ended::Status(status) => status,
            Ended::Signal(signal) => 128 + signal,
        }
    }
}

/// Takes in a child that has ended; `None` if none has. `pid` -1 is any.
pub fn reap(pid: Pid) -> io::Result<Option<(Pid, Ended)>> {
    let mut status = 0;
    // SAFETY: there is room for the status.
    let pid = check(unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) })?;
    let ended = match libc::WIFSIGNALED(status) {
        true => Ended::Signal(libc::WTERMSIG(status)),
        false => Ended::Status(libc::WEXITSTATUS(status)),
    };
    Ok((pid != 0).then_some((pid, ended)))
}

/// Waits until a child has ended.
fn wait_for(pid: Pid) -> io::Result<Ended> {
    loop {
        let mut status = 0;
        // SAFETY: there is room for the status.
        match check(unsafe { libc::waitpid(pid, &mut status, 0) }) {
            Ok(_) if libc::WIFSIGNALED(status) => {
                return Ok(Ended::Signal(libc::WTERMSIG(status)));
            }
            Ok(_) => return Ok(Ended::Status(libc::WEXITSTATUS(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends a signal; a process that is gone is no error.
pub fn kill(pid: Pid, signal: i32) {
    // SAFETY: the arguments are numbers.
    unsafe { libc::kill(pid, signal) };
}

/// A program with its arguments and its environment, ready to be started.
pub struct Program {
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// The program is looked for in the `PATH` of this process.
    pub fn new(words: &[OsString], environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let text = |bytes: Vec<u8>| CString::new(bytes).map_err(io::Error::from);
        let words = words.iter().map(|word| text(word.as_bytes().to_vec()));
        let pair = |(key, value): &(OsString, OsString)| {
            text([key.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let environment = environment.iter().map(pair).collect::<io::Result<_>>()?;
        Ok(Program { words: words.collect::<io::Result<_>>()?, environment })
    }

    /// Becomes the program; comes back only if that failed.
    pub fn execute(&self) -> io::Error {
        let pointers = |texts: &[CString]| {
            let ends = texts.iter().map(|text| text.as_ptr());
            ends.chain([std::ptr::null()]).collect::<Vec<*const c_char>>()
        };
        let (words, environment) = (pointers(&self.words), pointers(&self.environment));
        // SAFETY: both lists end with a null, and live until the call is over.
        unsafe { libc::execvpe(words[0], words.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// The process group that the terminal listens to, if there is a terminal.
pub fn foreground() -> Option<Pid> {
    // SAFETY: the argument is a number.
    let group = unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) };
    (group > 0).then_some(group)
}

/// Lets the terminal listen to this process group again. A shell that had
/// control of jobs is gone now, and its group with it.
pub fn set_foreground(group: Pid) {
    // SAFETY: the handler is none of ours, and is put back.
    unsafe {
        // The kernel would stop a process in the background for asking.
        let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::tcsetpgrp(libc::STDIN_FILENO, group);
        libc::signal(libc::SIGTTOU, before);
    }
}

/// Ends this process at once: no destructors, no handlers.
pub fn exit(status: i32) -> ! {
    // SAFETY: it ends here.
    unsafe { libc::_exit(status) }
}
