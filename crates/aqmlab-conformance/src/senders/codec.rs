//! Recordings as shipped with the package: columns of small numbers, each as the difference from a
//! prediction, which general compression then makes short.

use aqmlab_core::varint::{self, put};
use aqmlab_core::{Error, ParamType, Result, Span, Time, Value};

use super::case::{Acknowledged, Case, Event, Settings};
use super::ends::Outcome;
use super::path::Path;
use aqmlab_tcp::Recovery;
use aqmlab_tcp::params::Stack;
use aqmlab_tcp::segment::{Ack, SackBlocks, Timestamps};

/// The recorded clock moves in such steps, in nanoseconds.
const STEP: u64 = 256;
/// Timestamps are in milliseconds.
const MILLI: u64 = 1_000_000;

/// The columns, by their numbers.
mod column {
    pub const KIND: usize = 0;
    pub const TIME: usize = 1;
    pub const REST: usize = 2;
    pub const BYTES: usize = 3;
    pub const SEQ: usize = 4;
    pub const LEN: usize = 5;
    pub const ACK: usize = 6;
    pub const WINDOW: usize = 7;
    pub const SACK: usize = 8;
    pub const VALUE: usize = 9;
    pub const ECHO: usize = 10;
    pub const CWND: usize = 11;
    pub const SSTHRESH: usize = 12;
    pub const SRTT: usize = 13;
    pub const NUMBER: usize = 14;
}
use column::NUMBER;

/// What an event is, and with which parts.
mod kind {
    pub const WRITE: u64 = 0;
    pub const SENT: u64 = 1;
    pub const ACKNOWLEDGED: u64 = 2;
    pub const SYN: u64 = 4;
    pub const ECE: u64 = 8;
    pub const STAMPED: u64 = 16;
    pub const STATE: u64 = 32;
    pub const FINITE: u64 = 64;
    // Flags of segments that are sent.
    pub const PUSH: u64 = 4;
    pub const LOST: u64 = 8;
    pub const MARKED: u64 = 16;
    pub const CWR: u64 = 32;
}

/// What the next numbers are near: the last of each column.
type Last = [u64; NUMBER];

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}
/// A number with a sign, small ones small.
fn fold(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[derive(Default)]
struct Writer {
    columns: [Vec<u8>; NUMBER],
    last: Last,
}

impl Writer {
    fn number(&mut self, column: usize, number: u64) {
        put(&mut self.columns[column], number);
    }
    fn change(&mut self, column: usize, number: u64) {
        let change = number.wrapping_sub(self.last[column]) as i64;
        self.number(column, fold(change));
        self.last[column] = number;
    }

    fn event(&mut self, event: &Event) {
        let passed = event.at().as_nanos() - self.last[column::TIME];
        self.last[column::TIME] += passed;
        let kind = match event {
            Event::Write { .. } => kind::WRITE,
            Event::Sent { push, cwr, lost, marked, .. } => {
                let flags = [
                    (*push, kind::PUSH),
                    (*cwr, kind::CWR),
                    (*lost, kind::LOST),
                    (*marked, kind::MARKED),
                ];
                kind::SENT + flags.iter().map(|(has, flag)| u64::from(*has) * flag).sum::<u64>()
            }
            Event::Acknowledged(seen) => {
                let flags = [
                    (seen.ack.syn, kind::SYN),
                    (seen.ack.ece, kind::ECE),
                    (seen.ack.timestamps.is_some(), kind::STAMPED),
                    (seen.cwnd.is_some(), kind::STATE),
                    (seen.ssthresh.is_some(), kind::FINITE),
                ];
                let flags = flags.iter().map(|(has, flag)| u64::from(*has) * flag);
                kind::ACKNOWLEDGED + flags.sum::<u64>()
            }
        };
        self.number(column::KIND, kind);
        self.number(column::TIME, passed / STEP);
        self.number(column::REST, passed % STEP);
        match event {
            Event::Write { bytes, .. } => self.number(column::BYTES, *bytes),
            Event::Sent { seq, len, .. } => {
                self.change(column::SEQ, *seq);
                self.change(column::LEN, u64::from(*len));
                self.last[column::SEQ] += u64::from(*len);
            }
            Event::Acknowledged(seen) => self.acknowledged(seen),
        }
    }
    fn acknowledged(&mut self, seen: &Acknowledged) {
        let ack = &seen.ack;
        self.change(column::ACK, ack.ack);
        self.change(column::WINDOW, ack.window);
        let blocks = ack.sack.as_slice();
        self.number(column::SACK, blocks.len() as u64);
        for &(start, end) in blocks {
            self.number(column::SACK, fold(start.wrapping_sub(ack.ack) as i64));
            self.number(column::SACK, end - start);
        }
        if let Some(times) = ack.timestamps {
            self.change(column::VALUE, times.value.as_nanos() / MILLI);
            self.change(column::ECHO, times.echo.as_nanos() / MILLI);
        }
        if let Some(cwnd) = seen.cwnd {
            self.change(column::CWND, cwnd);
            self.change(column::SRTT, seen.srtt.as_nanos() / 1000);
        }
        if let Some(ssthresh) = seen.ssthresh {
            self.change(column::SSTHRESH, ssthresh);
        }
    }
}

struct Reader<'a> {
    columns: [&'a [u8]; NUMBER],
    last: Last,
}

fn damaged() -> Error {
    Error::new("the packed recording is damaged")
}
fn take(bytes: &mut &[u8]) -> Result<u64> {
    varint::take(bytes).ok_or_else(damaged)
}
fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let len = take(bytes)? as usize;
    let (first, rest) = bytes.split_at_checked(len).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(first)
}
fn take_text(bytes: &mut &[u8]) -> Result<String> {
    String::from_utf8(take_bytes(bytes)?.to_vec()).map_err(|_| damaged())
}
fn take_choice<T: ParamType>(bytes: &mut &[u8]) -> Result<T> {
    T::read(&Value::from(take_text(bytes)?.as_str())).ok_or_else(damaged)
}
fn unfold(number: u64) -> i64 {
    ((number >> 1) as i64) ^ -((number & 1) as i64)
}

impl Reader<'_> {
    fn number(&mut self, column: usize) -> Result<u64> {
        take(&mut self.columns[column])
    }
    fn change(&mut self, column: usize) -> Result<u64> {
        let change = unfold(self.number(column)?);
        self.last[column] = self.last[column].wrapping_add(change as u64);
        Ok(self.last[column])
    }

    fn event(&mut self) -> Result<Event> {
        let kind = self.number(column::KIND)?;
        let steps = self.number(column::TIME)?;
        let rest = self.number(column::REST)?;
        self.last[column::TIME] += steps * STEP + rest;
        let at = Time::from_nanos(self.last[column::TIME]);
        Ok(match kind & 3 {
            kind::WRITE => Event::Write { at, bytes: self.number(column::BYTES)? },
            kind::SENT => {
                let seq = self.change(column::SEQ)?;
                let len = self.change(column::LEN)?;
                self.last[column::SEQ] += len;
                let has = |flag| kind & flag != 0;
                Event::Sent {
                    at,
                    seq,
                    len: len as u32,
                    push: has(kind::PUSH),
                    cwr: has(kind::CWR),
                    lost: has(kind::LOST),
                    marked: has(kind::MARKED),
                }
            }
            kind::ACKNOWLEDGED => Event::Acknowledged(self.acknowledged(at, kind)?),
            _ => return Err(damaged()),
        })
    }
    fn acknowledged(&mut self, at: Time, kind: u64) -> Result<Acknowledged> {
        let has = |flag| kind & flag != 0;
        let mut ack = Ack {
            ack: self.change(column::ACK)?,
            syn: has(kind::SYN),
            window: self.change(column::WINDOW)?,
            ece: has(kind::ECE),
            ..Ack::default()
        };
        let mut sack = SackBlocks::default();
        for _ in 0..self.number(column::SACK)? {
            let start = ack.ack.wrapping_add(unfold(self.number(column::SACK)?) as u64);
            sack.push(start, start + self.number(column::SACK)?);
        }
        ack.sack = sack;
        if has(kind::STAMPED) {
            let value = Time::from_nanos(self.change(column::VALUE)? * MILLI);
            let echo = Time::from_nanos(self.change(column::ECHO)? * MILLI);
            ack.timestamps = Some(Timestamps { value, echo });
        }
        let mut seen = Acknowledged { at, ack, cwnd: None, ssthresh: None, srtt: Span::ZERO };
        if has(kind::STATE) {
            seen.cwnd = Some(self.change(column::CWND)?);
            seen.srtt = Span::from_micros(self.change(column::SRTT)?);
        }
        if has(kind::FINITE) {
            seen.ssthresh = Some(self.change(column::SSTHRESH)?);
        }
        Ok(seen)
    }
}

/// Numbers that grow, as differences.
fn put_list(bytes: &mut Vec<u8>, numbers: &[u64]) {
    put(bytes, numbers.len() as u64);
    let mut last = 0;
    for &number in numbers {
        put(bytes, number - last);
        last = number;
    }
}
fn take_list(bytes: &mut &[u8]) -> Result<Vec<u64>> {
    let mut last = 0;
    (0..take(bytes)?)
        .map(|_| {
            last += take(bytes)?;
            Ok(last)
        })
        .collect()
}
/// Pairs with growing first numbers.
fn put_pairs(bytes: &mut Vec<u8>, pairs: impl ExactSizeIterator<Item = (u64, u64)> + Clone) {
    put_list(bytes, &pairs.clone().map(|(first, _)| first).collect::<Vec<_>>());
    pairs.for_each(|(_, second)| put(bytes, second));
}
fn take_pairs(bytes: &mut &[u8]) -> Result<Vec<(u64, u64)>> {
    take_list(bytes)?.into_iter().map(|first| Ok((first, take(bytes)?))).collect()
}

fn put_path(bytes: &mut Vec<u8>, path: &Path) {
    let (delay, back) = (path.delay.as_nanos(), path.return_delay.as_nanos());
    for number in [path.rate, delay, back, path.limit, path.mark_above] {
        put(bytes, number);
    }
    for list in [&path.lost, &path.marked, &path.acks_lost] {
        put_list(bytes, list);
    }
    put_pairs(bytes, path.late.iter().map(|(number, late)| (*number, late.as_nanos())));
    let blackouts = path.blackouts.iter();
    put_pairs(bytes, blackouts.map(|(from, to)| (from.as_nanos(), to.as_nanos())));
    put_pairs(bytes, path.rates.iter().map(|(from, rate)| (from.as_nanos(), *rate)));
}
fn take_path(bytes: &mut &[u8]) -> Result<Path> {
    let mut path = Path {
        rate: take(bytes)?,
        delay: Span::from_nanos(take(bytes)?),
        return_delay: Span::from_nanos(take(bytes)?),
        limit: take(bytes)?,
        mark_above: take(bytes)?,
        lost: take_list(bytes)?,
        marked: take_list(bytes)?,
        acks_lost: take_list(bytes)?,
        ..Path::default()
    };
    let late = take_pairs(bytes)?.into_iter();
    path.late = late.map(|(number, late)| (number, Span::from_nanos(late))).collect();
    let blackouts = take_pairs(bytes)?.into_iter();
    path.blackouts = blackouts.map(|(a, b)| (Time::from_nanos(a), Time::from_nanos(b))).collect();
    let rates = take_pairs(bytes)?.into_iter();
    path.rates = rates.map(|(from, rate)| (Time::from_nanos(from), rate)).collect();
    Ok(path)
}

/// The settings that are either so or not.
fn switches(settings: &Settings) -> [bool; 6] {
    let Settings { timestamps, ecn, frto, tail_loss_probe, offload, after_idle, .. } = *settings;
    [timestamps, ecn, frto, tail_loss_probe, offload, after_idle]
}

impl Case {
    /// The recording as bytes, for [`Case::unpack`].
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_text(&mut bytes, &self.name);
        put_text(&mut bytes, &self.settings.control);
        put_text(&mut bytes, &self.settings.stack.to_text());
        put_text(&mut bytes, &self.settings.recovery.to_text());
        put(&mut bytes, self.settings.mss);
        for is_so in switches(&self.settings) {
            put(&mut bytes, u64::from(is_so));
        }
        put(&mut bytes, u64::from(self.phase.is_some()));
        let (least, most) = self.phase.unwrap_or_default();
        put(&mut bytes, fold(least));
        put(&mut bytes, fold(most));
        put_path(&mut bytes, &self.path);
        put(&mut bytes, self.receive_buffer.unwrap_or(0));
        put(&mut bytes, self.outcome.all_acknowledged.map_or(0, Time::as_nanos));
        put(&mut bytes, self.outcome.retransmitted);
        let mut writer = Writer::default();
        self.events.iter().for_each(|event| writer.event(event));
        put(&mut bytes, self.events.len() as u64);
        for column in writer.columns {
            put(&mut bytes, column.len() as u64);
            bytes.extend(column);
        }
        bytes
    }

    /// Reads the first of several packed recordings, and goes on to the next.
    ///
    /// # Errors
    /// Returns an error if the bytes were not written by [`Case::pack`].
    pub fn unpack(bytes: &mut &[u8]) -> Result<Case> {
        let (name, control) = (take_text(bytes)?, take_text(bytes)?);
        let stack = take_choice::<Stack>(bytes)?;
        let recovery = take_choice::<Recovery>(bytes)?;
        let mss = take(bytes)?;
        let mut so = [false; 6];
        for is_so in &mut so {
            *is_so = take(bytes)? == 1;
        }
        let [timestamps, ecn, frto, tail_loss_probe, offload, after_idle] = so;
        let has_phase = take(bytes)? == 1;
        let phase = (unfold(take(bytes)?), unfold(take(bytes)?));
        let path = take_path(bytes)?;
        let receive_buffer = Some(take(bytes)?).filter(|bytes| *bytes > 0);
        let all_acknowledged = Some(take(bytes)?).filter(|at| *at > 0).map(Time::from_nanos);
        let outcome = Outcome { all_acknowledged, retransmitted: take(bytes)? };
        let number = take(bytes)?;
        let mut reader = Reader { columns: [&[]; NUMBER], last: [0; NUMBER] };
        for column in &mut reader.columns {
            *column = take_bytes(bytes)?;
        }
        let events = (0..number).map(|_| reader.event()).collect::<Result<_>>()?;
        Ok(Case {
            name,
            settings: Settings {
                control,
                stack,
                mss,
                recovery,
                timestamps,
                ecn,
                frto,
                tail_loss_probe,
                offload,
                after_idle,
            },
            events,
            phase: has_phase.then_some(phase),
            path,
            receive_buffer,
            outcome,
        })
    }
}
