//! What happens while packets pass: signals, the end of the command, requests, views.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aqmlab_core::{Result, Span, Time};

use crate::errors::failed;
use crate::live::Steward;
use crate::observe::TICK;
use crate::observe::control::Control;
use crate::observe::view::View;
use crate::params::EmulatorParams;
use crate::path::DataPath;
use crate::spaces::diversion::Diversion;
use crate::spaces::first::{DROPPED, SIGNAL, START};
use crate::sys::process::{Child, Pid, Signals};
use crate::sys::time::{pin, set_exact_timers, set_real_time, wait};
use crate::sys::{receive, send};

/// Signals that the emulator passes on, and SIGURG, which says that something is asked of it.
pub(crate) const HANDLED: [i32; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGURG,
];
/// How long a command may take to end when it was told to.
const PATIENCE: Span = Span::from_secs(2);

/// The first process of the new namespaces (`spaces::first`), as the emulator has it, which
/// ends it at the latest with itself.
pub(crate) struct First<'a> {
    child: Child,
    /// Can be read when it has ended.
    ended: OwnedFd,
    socket: OwnedFd,
    signals: &'a Signals,
}

impl<'a> First<'a> {
    /// That of this number, at the other end of the socket. It is told of these signals.
    pub(crate) fn new(pid: Pid, socket: OwnedFd, signals: &'a Signals) -> Result<Self> {
        let child = Child::new(pid);
        let ended = child.watch().map_err(|error| failed("pidfd_open", &error))?;
        Ok(First { child, ended, socket, signals })
    }

    /// Where it says what it has made.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Has it start what is to run, with what that has to know.
    pub(crate) fn start(&self, message: &[u8]) -> Result<()> {
        let sent = send(self.socket.as_fd(), &[&[START], message].concat(), None);
        sent.map_err(|error| failed("the first process", &error))
    }

    /// Ends it, if it does not end within this time: its exit status, and how many packets its
    /// devices have dropped because they were not read in time.
    pub(crate) fn end(self, patience: std::time::Duration) -> Result<(i32, u64)> {
        let _ = wait([self.ended.as_fd()], Some(patience));
        let ended = self.child.end().map_err(|error| failed("the first process", &error))?;
        Ok((ended.status(), told_drops(&self.socket)))
    }
}

/// Looks after signals and the first process.
pub(crate) struct Attendant<'a> {
    pub first: First<'a>,
    /// When patience is at an end.
    deadline: Time,
    /// When the links end.
    pub until: Time,
    /// What is done for packets in flight when the first process has ended.
    drain: Drain,
    /// What has packets take the path, if that ends before the path does.
    pub diversion: Option<Diversion>,
    /// When observers are told of the time next.
    tick: Time,
    view: View,
    control: Control,
}

impl<'a> Attendant<'a> {
    /// Looks after this process and a path, in which others see these links to the command
    /// and from it (among several hosts there are no such). `drain` is the longest time for
    /// packets in flight after the end.
    ///
    /// # Errors
    /// If `params.name` is not allowed.
    pub(crate) fn new(
        first: First<'a>,
        path: &DataPath,
        links: [Vec<u32>; 2],
        drain: Span,
        params: &EmulatorParams,
    ) -> Result<Self> {
        Ok(Attendant {
            first,
            deadline: Time::MAX,
            until: Time::MAX,
            drain: Drain::new(drain),
            diversion: None,
            tick: if path.has_tap() { Time::ZERO } else { Time::MAX },
            view: View::open(links.clone()),
            control: Control::open(params.name.as_deref(), links)?,
        })
    }
}

/// The time after the end of the command in which packets in flight arrive.
struct Drain {
    most: Span,
    course: Option<Draining>,
}

#[derive(Clone, Copy)]
struct Draining {
    /// When it ends in any case.
    end: Time,
    /// When it ends if nothing is in flight until then: answers take a moment.
    quiet: Time,
    /// When to look next.
    look: Time,
}

impl Drain {
    /// How long a path must be empty to be taken for drained.
    const QUIET: Span = Span::from_millis(5);
    /// How often it is looked at.
    const LOOK: Span = Span::from_millis(1);

    /// For so long at most; not at all for zero.
    fn new(most: Span) -> Self {
        Drain { most, course: None }
    }

    /// The command has ended. Whether to wait for packets.
    fn goes_on(&mut self, now: Time, is_empty: bool) -> bool {
        let begun = Draining { end: now + self.most, quiet: now + Self::QUIET, look: now };
        let course = self.course.get_or_insert(begun);
        if !is_empty {
            course.quiet = now + Self::QUIET;
        }
        course.look = now + Self::LOOK;
        now < course.end && now < course.quiet
    }
}

impl Steward for Attendant<'_> {
    fn watched(&self) -> [BorrowedFd<'_>; 2] {
        // What has ended can be read for ever.
        let First { signals, ended, .. } = &self.first;
        let ended = if self.drain.course.is_some() { signals.as_fd() } else { ended.as_fd() };
        [signals.as_fd(), ended]
    }

    fn attend(&mut self, now: Time, path: &mut DataPath) -> bool {
        if now >= self.tick {
            path.tick(now);
            self.tick = now + TICK;
        }
        self.view.attend(now, path.network());
        if now >= self.until {
            self.until = Time::MAX;
            let _ = send(self.first.socket.as_fd(), &[SIGNAL, libc::SIGHUP as u8], None);
            self.deadline = self.deadline.min(now + PATIENCE);
        }
        while let Some(signal) = self.first.signals.next() {
            if signal.number == libc::SIGURG {
                self.control.attend(now, path);
                continue;
            }
            if self.drain.course.is_some() {
                return false;
            }
            let ends = [libc::SIGTERM, libc::SIGHUP].contains(&signal.number);
            // What a terminal sends goes to the command without our help.
            if signal.is_sent || ends {
                let _ = send(self.first.socket.as_fd(), &[SIGNAL, signal.number as u8], None);
            }
            if ends {
                self.deadline = self.deadline.min(now + PATIENCE);
            }
        }
        if now >= self.deadline {
            self.first.child.signal(libc::SIGKILL);
            self.deadline = Time::MAX;
        }
        let has_ended = wait([self.first.ended.as_fd()], Some(std::time::Duration::ZERO));
        let has_ended = has_ended.is_ok_and(|[has_ended]| has_ended);
        if has_ended && let Some(diversion) = &mut self.diversion {
            diversion.stop();
        }
        !has_ended || self.drain.goes_on(now, path.under_way() == 0)
    }

    fn deadline(&self) -> Time {
        let look = self.drain.course.map_or(Time::MAX, |course| course.look);
        self.deadline.min(self.until).min(self.tick).min(self.view.deadline()).min(look)
    }
}

/// What the first process, which has ended, told of the drops of its devices.
fn told_drops(socket: &OwnedFd) -> u64 {
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

/// Takes what priority there is; says what was refused.
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
            "without real-time priority ({error}): other programs may delay packets"
        ));
    }
    remarks
}
