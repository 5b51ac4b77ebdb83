//! Waiting for any number of descriptors, and how many a process may have.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::time::wait;
use super::{check, owned};

/// Descriptors that are waited for, each with a number.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Of none.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the argument is a number.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(owned)?;
        Ok(Epoll { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256] })
    }

    /// Tells of this descriptor, by `number`, each time that it becomes readable or writable
    /// or ends; not again while it stays so. Closing it ends that.
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

    /// Waits; the numbers of those about which there is something to tell.
    pub fn wait(&mut self, timeout: Duration, found: &mut Vec<u64>) -> io::Result<()> {
        let (most, mut millis) = (self.events.len() as i32, timeout.as_millis() as i32);
        if !timeout.subsec_nanos().is_multiple_of(1_000_000) {
            // epoll counts milliseconds only.
            wait([self.fd.as_fd()], Some(timeout))?;
            millis = 0;
        }
        // SAFETY: there is room for as many events as are asked for.
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

/// Lets a descriptor's reads and writes fail rather than wait.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the arguments are numbers.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Lets this process have up to `wanted` descriptors, or as many as it may; how many.
pub fn raise_descriptors(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: there is room for the answer; the new limits outlive the calls.
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
