//! A recorded connection.

use aqmlab_core::{Bytes, Error, Result, Span, Table, Time, Value};

use super::ends::Outcome;
use super::path::Path;
use aqmlab_tcp::Recovery;
use aqmlab_tcp::params::{EcnMode, Stack, TcpParams};
use aqmlab_tcp::segment::{Ack, SackBlocks, Timestamps};

/// A jiffy.
const JIFFY: i64 = 1_000_000;
/// Segments whose time is not that of their timestamp: the first ones, while the host finds the
/// route.
const UNSURE: usize = 12;
/// Delay after the last event from which on a segment counts as sent by a timer.
const BY_TIMER: u64 = 100_000;

/// An acknowledgement that the recorded sender was given, and its state just before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledged {
    /// Time of the change.
    pub at: Time,
    /// The acknowledgement.
    pub ack: Ack,
    /// The window in segments, if it was recorded.
    pub cwnd: Option<u64>,
    /// The threshold in segments; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// The smoothed round-trip time.
    pub srtt: Span,
}

/// Event of a recorded connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// The application handed over data.
    Write {
        /// Time of the change.
        at: Time,
        /// Number of bytes.
        bytes: u64,
    },
    /// An acknowledgement came.
    Acknowledged(Acknowledged),
    /// A data segment was sent.
    Sent {
        /// Time of the change.
        at: Time,
        /// First byte, from 0.
        seq: u64,
        /// Payload.
        len: u32,
        /// True for PSH.
        push: bool,
        /// True for CWR.
        cwr: bool,
        /// True if the path lost it.
        lost: bool,
        /// True if the path marked it.
        marked: bool,
    },
}

impl Event {
    /// Returns the time of the event.
    pub fn at(&self) -> Time {
        match self {
            Event::Write { at, .. } | Event::Sent { at, .. } => *at,
            Event::Acknowledged(acknowledged) => acknowledged.at,
        }
    }
}

/// How the sender was set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The congestion control.
    pub control: String,
    /// The kernel.
    pub stack: Stack,
    /// The payload of a full segment.
    pub mss: u64,
    /// Loss detection: RACK, by the number of segments reported above, or without SACK.
    pub recovery: Recovery,
    /// True if both ends send timestamps.
    pub timestamps: bool,
    /// True if ECN was negotiated.
    pub ecn: bool,
    /// True if spurious timeouts are detected (`tcp_frto`).
    pub frto: bool,
    /// True if tail loss probes are sent (`tcp_early_retrans`).
    pub tail_loss_probe: bool,
    /// Whether the host had segmentation offload.
    pub offload: bool,
    /// True if windows are reduced after idle times (`tcp_slow_start_after_idle`).
    pub after_idle: bool,
}

impl Settings {
    /// The parameters of our sender.
    ///
    /// # Errors
    /// Returns an error if the control is unknown.
    pub fn params(&self) -> Result<TcpParams> {
        let profile = match self.stack {
            Stack::Linux61 => "linux-6.1",
            _ => "linux-6.12",
        };
        let mut table = Table::new();
        table.insert("profile", Value::from(profile));
        table.insert("congestion_control", Value::from(self.control.as_str()));
        let mut params = TcpParams::default();
        params.read(&table)?;
        params.mss = Bytes::new(self.mss);
        params.recovery = self.recovery;
        params.prr = self.recovery.has_pipe();
        params.timestamps = self.timestamps;
        params.ecn = if self.ecn { EcnMode::Classic } else { EcnMode::Off };
        params.frto = self.frto;
        params.segmentation_offload = self.offload;
        params.tail_loss_probe = self.tail_loss_probe;
        if !self.after_idle {
            params.window_validation = aqmlab_tcp::params::WindowValidation::Off;
        }
        Ok(params)
    }
}

/// Other properties of a recorded connection.
#[derive(Clone, Debug)]
pub struct Around {
    /// The table `path`.
    pub path: Table,
    /// The receiver's buffer in bytes, if it was set.
    pub receive_buffer: Option<u64>,
    /// How the connection went.
    pub outcome: Outcome,
}

/// A recorded connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name.
    pub name: String,
    /// Settings of the connection.
    pub settings: Settings,
    /// Events in order.
    pub events: Vec<Event>,
    /// Bounds of the elapsed part of a jiffy at the beginning of the connection, from the
    /// timestamps sent; in nanoseconds.
    pub phase: Option<(i64, i64)>,
    /// Path between sender and receiver.
    pub path: Path,
    /// The receiver's buffer, if it was not that of the others.
    pub receive_buffer: Option<u64>,
    /// How the connection went.
    pub outcome: Outcome,
}

impl Case {
    /// Reads the table of events, whose columns `settings` leaves open are taken from it: the
    /// size of segments, timestamps and ECN.
    ///
    /// # Errors
    /// Returns an error that names the line that cannot be read.
    pub fn read(name: &str, settings: Settings, around: &Around, text: &str) -> Result<Case> {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let columns = Columns::of(head)?;
        let mut case = Case {
            name: name.to_string(),
            settings,
            events: Vec::new(),
            phase: None,
            path: Path::default(),
            receive_buffer: around.receive_buffer,
            outcome: around.outcome,
        };
        let (mut stamps, mut sent, mut lost) = (0, 0, Vec::new());
        let (mut end, mut of_new) = (0, None);
        for (number, line) in lines.enumerate() {
            let place = format!("line {}", number + 2);
            let before = case.events.len();
            let kind = line.split(',').nth(1).unwrap_or_default();
            if kind == "lost" {
                lost.push(sent);
            }
            if let Some(Event::Sent { lost, marked, .. }) = case.events.last_mut() {
                *lost |= kind == "lost";
                *marked |= kind == "marked";
            }
            let stamp = case.take_line(&columns, line).map_err(|error| error.at(&place))?;
            let mut is_new = false;
            if let Some(Event::Sent { seq, len, .. }) = case.events[before..].first() {
                sent += 1;
                is_new = *seq >= end;
                end = end.max(seq + u64::from(*len));
            }
            if let Some((at, stamp)) = stamp {
                stamps += 1;
                // The first ones are recorded later than they bear.
                if stamps > UNSURE {
                    narrow(&mut case.phase, at, stamp);
                    if is_new {
                        narrow(&mut of_new, at, stamp);
                    }
                }
            }
        }
        // All but new data may bear the time at which pacing would have let it leave.
        if case.phase.is_some_and(|(least, most)| least > most) {
            case.phase = of_new;
        }
        let longest = case.events.iter().filter_map(|event| match event {
            Event::Sent { len, .. } => Some(u64::from(*len)),
            _ => None,
        });
        case.path = Path::read(&around.path, &lost)?;
        case.settings.mss = longest.max().unwrap_or(case.settings.mss);
        Ok(case)
    }

    /// Parses a line; returns the timestamp of a sent segment.
    fn take_line(&mut self, columns: &Columns, line: &str) -> Result<Option<(Time, u64)>> {
        let row = Row { columns, cells: line.split(',').collect() };
        let at = Time::from_nanos(row.number("t_ns")?);
        match row.text("event")? {
            "write" => self.events.push(Event::Write { at, bytes: row.number("length")? }),
            "out" => {
                let len = row.number("length")? as u32;
                if len > 0 {
                    let seq = row.number("seq")?.saturating_sub(1);
                    let flags = row.text("flags")?;
                    self.events.push(Event::Sent {
                        at,
                        seq,
                        len,
                        push: flags.contains('P'),
                        cwr: flags.contains('C'),
                        lost: false,
                        marked: false,
                    });
                }
                return Ok(row.optional("ts_value")?.map(|stamp| (at, stamp)));
            }
            "in" => {
                let acknowledged = row.acknowledged(at)?;
                if acknowledged.ack.syn {
                    self.settings.timestamps = acknowledged.ack.timestamps.is_some();
                    self.settings.ecn = acknowledged.ack.ece;
                }
                self.events.push(Event::Acknowledged(acknowledged));
            }
            _ => {} // what the path does
        }
        Ok(None)
    }

    /// Whether the control is BBR, whose gain cycle begins at random.
    pub(super) fn is_bbr(&self) -> bool {
        self.settings.control == "bbr"
    }
    /// Other places of the clocks that the recording allows as well: within a microsecond, between
    /// the bounds that few timestamps leave (without any, anywhere in a jiffy), and in the wheel, as
    /// a timer's wait is not seen if events lie in it.
    pub(super) fn clocks(&self) -> impl Iterator<Item = (Span, u64)> {
        let (phase, jiffies) = self.clock();
        let timers = || self.timers().next().map_or((0, JIFFY), |_| (0, 0));
        let (least, most) = self.phase.unwrap_or_else(timers);
        let between = (most - least).clamp(0, JIFFY) as u64;
        let centre = if between > 0 { JIFFY as u64 - between / 2 } else { 0 };
        let anywhere = (1..16).map(move |part| centre + part * between / 16);
        let within = (1..8).map(|eighth| eighth * 125);
        let of_phase = anywhere.chain(within).map(move |more| {
            let phase = (phase.as_nanos() + more) % JIFFY as u64;
            (Span::from_nanos(phase), jiffies)
        });
        let of_wheel = (1..8).chain((1..8).map(|more| 8 * more));
        of_phase.chain(of_wheel.map(move |more| (phase, jiffies + more)))
    }
    /// Where the kernel's clocks were when the connection began: how much of a jiffy had
    /// passed, and how many jiffies past a multiple of 4096.
    pub fn clock(&self) -> (Span, u64) {
        let stamps = self.phase.map(|(least, most)| ((least + most) / 2).clamp(0, JIFFY - 1));
        let phase = stamps.or_else(|| self.phase_of_timers()).unwrap_or(0);
        (Span::from_nanos(phase as u64), self.jiffies(phase))
    }
    /// Jiffies begin when timers run out.
    fn phase_of_timers(&self) -> Option<i64> {
        self.timers().next().map(|(at, _)| (JIFFY - at.as_nanos() as i64 % JIFFY) % JIFFY)
    }
    /// Timers with a longer wait run out at multiples of 8, 64 or 512 jiffies.
    fn jiffies(&self, phase: i64) -> u64 {
        let of_grain = |(at, wait): (Time, Span)| {
            let grain = match wait.as_nanos() / JIFFY as u64 {
                0..64 => return None,
                64..504 => 8,
                504..4032 => 64,
                _ => 512,
            };
            let jiffy = (at.as_nanos() as i64 + phase + JIFFY / 2) / JIFFY;
            Some((grain, (-jiffy).rem_euclid(grain) as u64))
        };
        let found = self.timers().filter_map(of_grain).max_by_key(|(grain, _)| *grain);
        found.map_or(0, |(_, jiffies)| jiffies)
    }
    /// Segments that a timer sent, with the time since the last event.
    fn timers(&self) -> impl Iterator<Item = (Time, Span)> {
        let mut last = Time::ZERO;
        self.events.iter().filter_map(move |event| {
            let before = std::mem::replace(&mut last, event.at());
            let wait = event.at() - before;
            let by_timer = matches!(event, Event::Sent { .. }) && wait.as_nanos() > BY_TIMER;
            by_timer.then_some((event.at(), wait))
        })
    }
}

/// Timestamps are the milliseconds of the clock: each bounds the phase on both sides.
fn narrow(phase: &mut Option<(i64, i64)>, at: Time, stamp: u64) {
    let least = stamp as i64 * JIFFY - at.as_nanos() as i64;
    let (known_least, known_most) = phase.unwrap_or((i64::MIN, i64::MAX));
    *phase = Some((known_least.max(least), known_most.min(least + JIFFY)));
}

/// Positions of the columns.
struct Columns(Vec<String>);

impl Columns {
    fn of(head: &str) -> Result<Columns> {
        let columns = Columns(head.split(',').map(str::to_string).collect());
        for name in ["t_ns", "event", "seq", "length", "ack", "flags", "window", "sack", "cwnd"] {
            columns.place(name)?;
        }
        Ok(columns)
    }
    fn place(&self, name: &str) -> Result<usize> {
        let place = self.0.iter().position(|column| column == name);
        place.ok_or_else(|| Error::new(format!("there is no column `{name}`")))
    }
}

/// A line.
struct Row<'a> {
    columns: &'a Columns,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn text(&self, name: &str) -> Result<&'a str> {
        let cell = self.cells.get(self.columns.place(name)?);
        cell.copied().ok_or_else(|| Error::new(format!("nothing for column `{name}`")))
    }
    fn optional(&self, name: &str) -> Result<Option<u64>> {
        let text = self.text(name)?;
        if text.is_empty() {
            return Ok(None);
        }
        let number =
            text.parse().map_err(|_| Error::not_allowed(text, "a whole number").at(name))?;
        Ok(Some(number))
    }
    fn number(&self, name: &str) -> Result<u64> {
        self.optional(name)?.ok_or_else(|| Error::new(format!("nothing for column `{name}`")))
    }

    fn acknowledged(&self, at: Time) -> Result<Acknowledged> {
        let flags = self.text("flags")?;
        let stamp = |millis: u64| Time::from_nanos(millis * JIFFY as u64);
        let timestamps = match (self.optional("ts_value")?, self.optional("ts_echo")?) {
            (Some(value), Some(echo)) => {
                Some(Timestamps { value: stamp(value), echo: stamp(echo) })
            }
            _ => None,
        };
        let ack = Ack {
            ack: self.number("ack")?.saturating_sub(1),
            syn: flags.contains('S'),
            window: self.number("window")?,
            sack: self.blocks()?,
            ece: flags.contains('E'),
            timestamps,
            ..Ack::default()
        };
        Ok(Acknowledged {
            at,
            ack,
            cwnd: self.optional("cwnd")?,
            ssthresh: self.optional("ssthresh")?,
            srtt: Span::from_micros(self.optional("srtt_us")?.unwrap_or(0)),
        })
    }
    /// `first-last+1` of each block, separated by blanks.
    fn blocks(&self) -> Result<SackBlocks> {
        let mut blocks = SackBlocks::default();
        for text in self.text("sack")?.split([' ', ';']).filter(|text| !text.is_empty()) {
            let wrong = || Error::not_allowed(text, "first-last+1").at("sack");
            let (first, end) = text.split_once('-').ok_or_else(wrong)?;
            let first: u64 = first.parse().map_err(|_| wrong())?;
            let end: u64 = end.parse().map_err(|_| wrong())?;
            blocks.push(first.saturating_sub(1), end.saturating_sub(1));
        }
        Ok(blocks)
    }
}
