//! Polling of any number of descriptors, and the limit of descriptors of a process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::time::wait;
use super::{check, owned};

/// Polled descriptors, each with a number.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Creates an empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the argument is a number.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(owned)?;
        Ok(Epoll { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256] })
    }

    /// Adds a descriptor, reported as `number` whenever it becomes readable or writable or ends
    /// (edge-triggered). Closing the descriptor removes it.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: number };
        // SAFETY: the event outlives the call.
        let done = unsafe {
            let (epoll, fd) = (self.fd.as_raw_fd(), fd.as_raw_fd());
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)
        };
        check(done).map(drop)
    }

    /// Waits, and appends the numbers of ready descriptors to `found`.
    pub fn wait(&mut self, timeout: Duration, found: &mut Vec<u64>) -> io::Result<()> {
        let (most, mut millis) = (self.events.len() as i32, timeout.as_millis() as i32);
        if !timeout.subsec_nanos().is_multiple_of(1_000_000) {
            // epoll timeouts have a resolution of milliseconds.
            wait([self.fd.as_fd()], Some(timeout))?;
            millis = 0;
        }
        // SAFETY: the buffer has room for the requested number of events.
        let count = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), most, millis)
        };
        let count = match check(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        found.extend(self.events[..count as usize].iter().map(|event| event.u64));
        Ok(())
    }
}

/// Returns the number of a descriptor: its kind, and its number in that kind.
pub fn token(kind: u32, number: u32) -> u64 {
    u64::from(kind) << 32 | u64::from(number)
}

/// Returns the kind and the number of a token.
pub fn parts(token: u64) -> (u32, u32) {
    ((token >> 32) as u32, token as u32)
}

/// Makes reads and writes of a descriptor fail instead of blocking.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the arguments are numbers.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Raises the limit of descriptors to `wanted`, or as far as permitted. Returns the limit.
pub fn raise_descriptors(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the result has room; the new limits outlive the calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur < wanted {
            let most = limit.rlim_max.max(wanted);
            let higher = libc::rlimit { rlim_cur: wanted, rlim_max: most };
            // Only root may exceed the hard limit.
            if libc::setrlimit(libc::RLIMIT_NOFILE, &higher) < 0 {
                let allowed = libc::rlimit { rlim_cur: limit.rlim_max.min(wanted), ..limit };
                libc::setrlimit(libc::RLIMIT_NOFILE, &allowed);
            }
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
    }
    limit.rlim_cur
}
