//! Clock, waiting, priorities.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use aqmlab_core::Span;

use super::check;

/// Returns the monotonic clock in nanoseconds.
pub fn monotonic() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Returns the processor time of this process in nanoseconds.
pub fn processor() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the time of a clock that always exists.
fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result has room.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Measures the processor time of a short sleep in this thread: the median of several, 5 ms in all.
pub fn wake_up_cost() -> Span {
    const SLEEPS: usize = 17;
    let mut costs = [0; SLEEPS];
    for cost in &mut costs {
        let before = nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID);
        // A signal that ends a sleep makes it cheaper; the median excludes it.
        let _ = wait_for(&mut [], Some(Duration::from_micros(250)));
        *cost = nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID) - before;
    }
    costs.sort_unstable();
    Span::from_nanos(costs[SLEEPS / 2])
}

/// Time this thread has been runnable without running (`schedstat`, proc(5)).
pub struct RunDelay {
    file: File,
}

impl RunDelay {
    /// Opens the counter of the calling thread; `None` if the kernel does not report it.
    pub fn open() -> Option<Self> {
        #[allow(clippy::disallowed_methods)] // This crate is what touches the world.
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let mut delay = RunDelay { file };
        delay.count().map(|_| delay)
    }

    /// Returns the time since the start of the thread.
    pub fn read(&mut self) -> Span {
        Span::from_nanos(self.count().unwrap_or_default())
    }

    /// Reads the second of three numbers on a line: time run and time waited, in nanoseconds.
    fn count(&mut self) -> Option<u64> {
        let mut bytes = [0; 64];
        let size = self.file.read_at(&mut bytes, 0).ok()?;
        let mut words = bytes[..size].split(|byte| *byte == b' ');
        let word = words.nth(1).filter(|word| !word.is_empty())?;
        word.iter().try_fold(0, |number: u64, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })
    }
}

/// Returns whether this thread has a real-time priority.
pub fn is_real_time() -> bool {
    // SAFETY: the argument is a number.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy >= 0
        && [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK))
}

/// Waits until a descriptor is readable, or the timeout. Returns the readable descriptors.
pub fn wait<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut polled = fds.map(readable);
    wait_for(&mut polled, timeout)?;
    Ok(polled.map(|each| each.revents != 0))
}

/// Waits like [`wait`], for any number of descriptors.
pub fn wait_for(polled: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let time = timeout.map(|span| libc::timespec {
        tv_sec: span.as_secs() as _,
        tv_nsec: span.subsec_nanos() as _,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = polled.len() as libc::nfds_t;
    // SAFETY: the array and the time outlive the call.
    let done = unsafe { libc::ppoll(polled.as_mut_ptr(), count, time, std::ptr::null()) };
    match check(done) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            polled.iter_mut().for_each(|each| each.revents = 0);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Polled descriptor.
pub type Polled = libc::pollfd;

/// Returns the entry for [`wait_for`] that waits until the descriptor is readable.
pub fn readable(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Sets the most exact timers for this thread.
pub fn set_exact_timers() {
    // SAFETY: the arguments are numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Sets the scheduling policy of this thread.
fn set_policy(policy: libc::c_int, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter outlives the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &param) }).map(drop)
}

/// Requests real-time priority for this thread, not for its children.
pub fn set_real_time(priority: i32) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Requests real-time priority for this thread and its children.
pub fn set_real_time_for_all(priority: i32) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

/// Removes real-time priority.
pub fn unset_real_time() {
    let _ = set_policy(libc::SCHED_OTHER, 0);
}

/// Pins this thread to a processor.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: a set of zeros is empty; the set outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        libc::CPU_SET(cpu, &mut set);
        check(libc::sched_setaffinity(0, size_of_val(&set), &set)).map(drop)
    }
}
