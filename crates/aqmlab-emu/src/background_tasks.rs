//! Background tasks of the event loop: signals, the end of the command, requests, statistics.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aqmlab_core::{Result, Span, Time};

use crate::netns::diversion::Diversion;
use crate::netns::init::{DROPPED, SIGNAL, START};
use crate::observe::TICK;
use crate::observe::control::Control;
use crate::observe::view::View;
use crate::params::EmulatorParams;
use crate::path::DataPath;
use crate::sys::process::{Child, Pid, Signals};
use crate::sys::time::{pin, set_exact_timers, set_real_time, wait};
use crate::sys::{failed, receive, send};

/// Signals that the emulator forwards, and SIGURG, which announces a request.
pub(crate) const HANDLED: [i32; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGURG,
];
/// Time allowed for a command to end after a signal to end.
const PATIENCE: Span = Span::from_secs(2);

/// Emulator's connection to the init process of the new namespaces (`netns::init`), which ends at
/// the latest when this is dropped.
pub(crate) struct InitProcess<'a> {
    child: Child,
    /// Readable when the process has ended.
    ended: OwnedFd,
    /// Socket on which the process reports its setup.
    pub(crate) socket: OwnedFd,
    signals: &'a Signals,
}

impl<'a> InitProcess<'a> {
    /// Connects to process `pid` at the other end of the socket, which receives these signals.
    pub(crate) fn new(pid: Pid, socket: OwnedFd, signals: &'a Signals) -> Result<Self> {
        let child = Child::new(pid);
        let ended = child.watch().map_err(|error| failed("pidfd_open", &error))?;
        Ok(InitProcess { child, ended, socket, signals })
    }

    /// Starts the command, with this message.
    pub(crate) fn start(&self, message: &[u8]) -> Result<()> {
        let sent = send(self.socket.as_fd(), &[&[START], message].concat(), None);
        sent.map_err(|error| failed("the init process", &error))
    }

    /// Ends the process, forcibly after this time. Returns its exit status, and the number of
    /// packets that its devices dropped because they were not read in time.
    pub(crate) fn end(self, patience: std::time::Duration) -> Result<(i32, u64)> {
        let _ = wait([self.ended.as_fd()], Some(patience));
        let status = self.child.end().map_err(|error| failed("the init process", &error))?;
        Ok((status, reported_drops(&self.socket)))
    }
}

/// Handles signals and the init process.
pub(crate) struct ProcessTasks<'a> {
    pub init: InitProcess<'a>,
    /// Time at which the processes are killed.
    deadline: Time,
    /// Time at which the links end, and the command with exit status 0.
    pub until: Time,
    /// True if the links have ended at that time.
    pub links_ended: bool,
    /// Time at which the links stop; the processes may end later.
    pub end: Time,
    /// Time at which the warm-up ends.
    warmup: Time,
    /// Handling of packets in flight after the end of the init process.
    drain: Drain,
    /// Diversion of packets into the path, if it ends before the path does.
    pub diversion: Option<Diversion>,
    /// Time of the next observer tick.
    tick: Time,
    view: View,
    control: Control,
}

impl<'a> ProcessTasks<'a> {
    /// Creates the tasks of this process and a path. Observers see these links to and from the
    /// command (none with several hosts). `drain` is the longest time for packets in flight after
    /// the end.
    ///
    /// # Errors
    /// Returns an error if `params.name` is not allowed.
    pub(crate) fn new(
        init: InitProcess<'a>,
        path: &DataPath,
        links: [Vec<u32>; 2],
        drain: Span,
        params: &EmulatorParams,
    ) -> Result<Self> {
        Ok(ProcessTasks {
            init,
            deadline: Time::MAX,
            until: Time::MAX,
            links_ended: false,
            end: Time::MAX,
            warmup: Time::MAX,
            drain: Drain::new(drain),
            diversion: None,
            tick: if path.has_tap() { Time::ZERO } else { Time::MAX },
            view: View::open(links.clone()),
            control: Control::open(params.name.as_deref(), links)?,
        })
    }

    /// Sets the end of the warm-up; at zero no event is needed.
    pub(crate) fn set_warmup(&mut self, end: Time) {
        self.warmup = if end > Time::ZERO { end } else { Time::MAX };
    }

    /// Returns the descriptors to poll in addition to the devices.
    pub(crate) fn watched(&self) -> [BorrowedFd<'_>; 2] {
        // The descriptor of an ended process remains readable.
        let InitProcess { signals, ended, .. } = &self.init;
        let ended = if self.drain.draining.is_some() { signals.as_fd() } else { ended.as_fd() };
        [signals.as_fd(), ended]
    }

    /// Runs due tasks; called when a descriptor is readable and periodically. Returns false to stop.
    pub(crate) fn attend(&mut self, now: Time, path: &mut DataPath) -> bool {
        if now >= self.warmup {
            self.warmup = Time::MAX;
            path.end_warmup(now);
        }
        if now >= self.end {
            return false;
        }
        if now >= self.tick {
            path.tick(now);
            self.tick = now + TICK;
        }
        self.view.attend(now, &path.network);
        if now >= self.until {
            (self.until, self.links_ended) = (Time::MAX, true);
            let _ = send(self.init.socket.as_fd(), &[SIGNAL, libc::SIGHUP as u8], None);
            self.deadline = self.deadline.min(now + PATIENCE);
        }
        while let Some(signal) = self.init.signals.next() {
            if signal.number == libc::SIGURG {
                self.control.attend(now, path);
                continue;
            }
            if self.drain.draining.is_some() {
                return false;
            }
            let ends = [libc::SIGTERM, libc::SIGHUP].contains(&signal.number);
            // The terminal sends its signals to the command itself.
            if signal.is_sent || ends {
                let _ = send(self.init.socket.as_fd(), &[SIGNAL, signal.number as u8], None);
            }
            if ends {
                self.deadline = self.deadline.min(now + PATIENCE);
            }
        }
        if now >= self.deadline {
            self.init.child.signal(libc::SIGKILL);
            self.deadline = Time::MAX;
        }
        let has_ended = wait([self.init.ended.as_fd()], Some(std::time::Duration::ZERO));
        let has_ended = has_ended.is_ok_and(|[has_ended]| has_ended);
        if has_ended && let Some(diversion) = &mut self.diversion {
            diversion.stop();
        }
        !has_ended || self.drain.goes_on(now, path.under_way() == 0)
    }

    /// Returns the latest time of the next call of `attend`; [`Time::MAX`]: none.
    pub(crate) fn deadline(&self) -> Time {
        let look = self.drain.draining.map_or(Time::MAX, |draining| draining.look);
        let own = [self.deadline, self.until, self.end, self.warmup, self.tick, look];
        own.into_iter().fold(self.view.deadline(), Time::min)
    }
}

/// Interval after the end of the command in which packets in flight arrive.
struct Drain {
    most: Span,
    draining: Option<Draining>,
}

#[derive(Clone, Copy)]
struct Draining {
    /// Latest end of the interval.
    end: Time,
    /// End of the interval if the path stays empty until then, which leaves time for answers.
    quiet: Time,
    /// Time of the next check.
    look: Time,
}

impl Drain {
    /// Time for which the path must be empty.
    const QUIET: Span = Span::from_millis(5);
    /// Interval of checks.
    const LOOK: Span = Span::from_millis(1);

    /// Creates an interval of at most `most`; zero: none.
    fn new(most: Span) -> Self {
        Drain { most, draining: None }
    }

    /// Called after the end of the command. Returns whether to wait for packets.
    fn goes_on(&mut self, now: Time, is_empty: bool) -> bool {
        let begun = Draining { end: now + self.most, quiet: now + Self::QUIET, look: now };
        let draining = self.draining.get_or_insert(begun);
        if !is_empty {
            draining.quiet = now + Self::QUIET;
        }
        draining.look = now + Self::LOOK;
        now < draining.end && now < draining.quiet
    }
}

/// Returns the drop count reported by the init process before its end.
fn reported_drops(socket: &OwnedFd) -> u64 {
    let is_readable = wait([socket.as_fd()], Some(std::time::Duration::ZERO));
    let told = match is_readable {
        Ok([true]) => receive(socket.as_fd()).map(|(text, _)| text).unwrap_or_default(),
        _ => Vec::new(),
    };
    match told.split_first() {
        Some((&DROPPED, count)) => count.try_into().map_or(0, u64::from_ne_bytes),
        _ => 0,
    }
}

/// Requests the priority and processor. Returns a remark for each refusal.
pub(crate) fn prioritise(params: &EmulatorParams) -> Vec<String> {
    set_exact_timers();
    let mut remarks = Vec::new();
    if let Some(cpu) = params.cpu
        && let Err(error) = pin(usize::try_from(cpu).unwrap_or(usize::MAX))
    {
        remarks.push(format!("not bound to processor {cpu}: {error}"));
    }
    if params.priority > 0
        && let Err(error) = set_real_time(params.priority as i32)
    {
        remarks.push(format!(
            "without real-time priority ({error}): other programs may delay packets; to permit it, put \
             `USER - rtprio {0}` into /etc/security/limits.conf and log in again (`ulimit -r` then says {0}); in \
             a container: `--cap-add SYS_NICE`",
            params.priority
        ));
    }
    remarks
}
