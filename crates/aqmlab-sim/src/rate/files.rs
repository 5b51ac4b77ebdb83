//! Parsers of files that describe links: mahimahi's delivery opportunities, and two columns of time
//! and value. The caller reads the files from disk.
//!
//! # Sources
//! - mahimahi's `link_queue.cc` (Netravali et al. 2015): one whole number per line, the millisecond
//!   of an opportunity. It rejects decreasing times and a trace whose last time is 0, and repeats
//!   the trace with the last time as period.
//!
//! # Differences
//! 1. Blank lines, lines that begin with `#`, Windows line ends and a byte order mark are ignored;
//!    mahimahi rejects them.

use aqmlab_core::{Error, Result, Span, Time};

use super::Scale;
use super::schedule::Schedule;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Returns the digest of a file's content as text: FNV-1a with 128 bits.
pub(super) fn digest(content: &[u8]) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let fold = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
    format!("{:032x}", content.iter().fold(BASIS, fold))
}

/// Returns the lines with content, with their numbers.
fn lines(content: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    content
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && line[0] != b'#')
        .map(|(index, line)| (index + 1, line))
}

/// Returns an error about a line of a file.
fn wrong(file: &str, number: usize, line: &[u8], allowed: impl std::fmt::Display) -> Error {
    const SHOWN: usize = 40;
    let mut given = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
    if line.len() > SHOWN {
        given.push_str("...");
    }
    Error::not_allowed(given, allowed).in_file(&format!("{file}:{number}"))
}

/// Delivery opportunities of a link, from a file in mahimahi's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Opportunities {
    /// Milliseconds with opportunities.
    times: Vec<u32>,
    /// Number of opportunities up to and including each of them.
    totals: Vec<u64>,
}

impl Opportunities {
    /// Parses a file's content.
    ///
    /// # Errors
    /// Returns an error that names the first invalid line.
    pub fn parse(content: &[u8], file: &str) -> Result<Self> {
        let (mut times, mut totals) = (Vec::new(), Vec::new());
        let mut total = 0;
        for (number, line) in lines(content) {
            let time = whole_number(line).ok_or_else(|| {
                let most = u32::MAX;
                wrong(file, number, line, format!("a whole number of ms from 0 to {most}"))
            })?;
            total += 1;
            match times.last() {
                Some(last) if time < *last => {
                    let allowed = format!("a time not before that of the line before, {last}");
                    return Err(wrong(file, number, line, allowed));
                }
                Some(last) if time == *last => *totals.last_mut().expect("as many") = total,
                _ => {
                    times.push(time);
                    totals.push(total);
                }
            }
        }
        match times.last() {
            None => Err(Error::new("the file contains no delivery opportunity").in_file(file)),
            Some(0) => {
                let problem = "expected a last time above 0: it is the period of the trace";
                Err(Error::new(problem).given(0).in_file(file))
            }
            Some(_) => Ok(Opportunities { times, totals }),
        }
    }

    /// Returns the period in milliseconds.
    pub fn period(&self) -> u64 {
        u64::from(*self.times.last().expect("not empty"))
    }
    /// Returns the number of opportunities per period.
    pub fn total(&self) -> u64 {
        *self.totals.last().expect("not empty")
    }
    /// Returns the number of opportunities before `time`.
    pub fn before(&self, time: Time) -> u64 {
        let Some((cycle, phase)) = self.place(time) else { return 0 };
        let index = self.times.partition_point(|ms| u64::from(*ms) < phase);
        cycle * self.total() + index.checked_sub(1).map_or(0, |index| self.totals[index])
    }

    /// Returns the repetition that contains `time`, and the millisecond in it, from 1 to the
    /// period; `None` at time zero.
    fn place(&self, time: Time) -> Option<(u64, u64)> {
        let before = time.as_nanos().div_ceil(NANOS_PER_MILLI).checked_sub(1)?;
        Some((before / self.period(), before % self.period() + 1))
    }
}

fn whole_number(text: &[u8]) -> Option<u32> {
    // `parse` accepts a sign.
    let digits = Some(text).filter(|text| text.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Position in [`Opportunities`], which repeat for ever.
#[derive(Clone, Debug)]
pub struct Cursor {
    cycle: u64,
    index: usize,
}

impl Cursor {
    /// Creates the position before the first opportunity.
    pub fn start() -> Self {
        Cursor { cycle: 0, index: 0 }
    }
    /// Returns the time of the next opportunities, and their number.
    pub fn peek(&self, trace: &Opportunities) -> (Time, u64) {
        let before = self.index.checked_sub(1).map_or(0, |index| trace.totals[index]);
        let ms = self.cycle * trace.period() + u64::from(trace.times[self.index]);
        let time = Time::from_nanos(ms.saturating_mul(NANOS_PER_MILLI));
        (time, trace.totals[self.index] - before)
    }
    /// Skips the next opportunities.
    pub fn advance(&mut self, trace: &Opportunities) {
        self.index += 1;
        if self.index == trace.times.len() {
            self.index = 0;
            self.cycle += 1;
        }
    }
    /// Skips the opportunities before `time`.
    pub fn seek(&mut self, trace: &Opportunities, time: Time) {
        if self.peek(trace).0 < time {
            let (cycle, phase) = trace.place(time).expect("later than another");
            self.cycle = cycle;
            self.index = trace.times.partition_point(|ms| u64::from(*ms) < phase);
        }
    }
}

/// Parses two columns, seconds and a number, separated by spaces, tabs, a comma or a semicolon. The
/// first line may contain names. Times are relative to the first.
///
/// # Errors
/// Returns an error that names the first invalid line.
pub(super) fn parse_columns(content: &[u8], file: &str, scale: &Scale) -> Result<Schedule> {
    const LONGEST: f64 = 1e7;
    let mut steps: Vec<(Span, u64)> = Vec::new();
    let (mut origin, mut last) = (None, f64::NEG_INFINITY);
    for row in rows(content, file) {
        let row = row?;
        let fail = |allowed: &str| row.wrong(allowed);
        let numbers = row.two_numbers();
        let (time, value) =
            numbers.ok_or_else(|| fail("two columns: time in seconds, and a number from 0"))?;
        let origin = *origin.get_or_insert(time);
        if time < 0.0 || time - origin > LONGEST {
            return Err(fail("a time from 0, at most 10000000 seconds after the first"));
        }
        let start = Span::from_secs_f64(time - origin);
        if time <= last || steps.last().is_some_and(|(before, _)| start <= *before) {
            return Err(fail(&format!("a time later than that of the line before, {last}")));
        }
        last = time;
        let scaled = (value * scale.unit).round();
        if !(value >= 0.0 && scaled <= scale.most as f64) {
            return Err(fail(&format!("a value from 0 to {}", scale.most as f64 / scale.unit)));
        }
        steps.push((start, scaled as u64));
    }
    if steps.is_empty() {
        return Err(Error::new("the file contains no line of time and value").in_file(file));
    }
    Ok(Schedule::new(steps, scale.repeats))
}

/// Returns the fields of a line, separated by commas, semicolons, spaces or tabs.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c == ',' || c == ';' || c.is_ascii_whitespace();
    line.split(is_between).filter(|field| !field.is_empty())
}

/// Line of a file of columns.
pub(crate) struct Row<'a> {
    file: &'a str,
    number: usize,
    line: &'a str,
}

impl<'a> Row<'a> {
    /// Returns a field by its column, from 0.
    pub fn field(&self, index: usize) -> Result<&'a str> {
        let missing = || self.wrong(format!("at least {} columns", index + 1));
        fields(self.line).nth(index).ok_or_else(missing)
    }

    /// Returns the number in a column, from 0.
    pub fn number(&self, index: usize) -> Result<f64> {
        let number = self.field(index)?.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.wrong(format!("a number in column {}", index + 1)))
    }

    /// Returns the numbers of a line that has two fields.
    fn two_numbers(&self) -> Option<(f64, f64)> {
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        let mut numbers = fields(self.line).map(number);
        let pair = (numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(pair)
    }

    /// Returns an error about this line.
    pub fn wrong(&self, allowed: impl std::fmt::Display) -> Error {
        wrong(self.file, self.number, self.line.as_bytes(), allowed)
    }
}

/// Returns the lines of a file of columns; the first may contain names.
pub(super) fn rows<'a>(content: &'a [u8], file: &'a str) -> impl Iterator<Item = Result<Row<'a>>> {
    lines(content)
        .enumerate()
        .filter(|(index, (_, line))| *index > 0 || !line[0].is_ascii_alphabetic())
        .map(move |(_, (number, line))| match std::str::from_utf8(line) {
            Ok(line) => Ok(Row { file, number, line }),
            Err(_) => Err(wrong(file, number, line, "text")),
        })
}

#[cfg(test)]
mod tests;
