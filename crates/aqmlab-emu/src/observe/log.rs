//! What mm-link writes down: opportunities, arrivals, departures and drops.
//!
//! # Sources
//! mahimahi's `link_queue.cc` (what is written) and its `mm-throughput-graph`
//! and `mm-delay-graph` (what is read). Lines that begin with `#` say what the
//! log is of; then, with the time in milliseconds since the beginning, which
//! the base timestamp is taken from:
//!
//! | line | |
//! |---|---|
//! | `T # BYTES` | an opportunity for so many bytes |
//! | `T + BYTES` | a packet has come |
//! | `T - BYTES MS` | a packet has left, after so long |
//! | `T d PACKETS BYTES` | packets were dropped |
//!
//! Bytes count mahimahi's header of 4, which is the link's overhead here.
//!
//! # Differences
//! 1. Every drop has its line, those at dequeue too, which mahimahi leaves
//!    out; packets that are lost on the way of the link count as dropped.
//! 2. If there are more than [`MOST_LINES`] opportunities in a millisecond
//!    they share one line with the sum of their bytes.
//! 3. mahimahi's links have traces and no delay. Of a link without a trace
//!    there is one opportunity at each tick, with all that the link offered
//!    since the one before; departures are at the far end of a link.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aqmlab_core::{Framing, Packet, Time};
use aqmlab_sim::network::{Capacity, QueuedLink};
use aqmlab_sim::rate::{Cursor, Opportunities};

use super::LogFile;
use super::background::Background;
use crate::packet::handle::Handle;

const NANOS_PER_MILLI: u64 = 1_000_000;
/// Of one millisecond: 12 Gbit/s.
const MOST_LINES: u64 = 1000;

/// A log under way.
pub struct Log {
    /// The link, by index.
    pub link: u32,
    file: Background,
    offer: Offer,
    framing: Framing,
}

/// What the link offers.
pub enum Offer {
    /// Opportunities of so many bytes.
    Trace { trace: Arc<Opportunities>, cursor: Cursor, opportunity: u64 },
    /// Something else, which the link counts; the bytes so far.
    Counted { capacity: Option<Capacity>, bytes: u64 },
}

impl Offer {
    /// Opportunities of `opportunity` bytes at the times of a trace.
    pub fn trace(trace: Arc<Opportunities>, opportunity: u64) -> Self {
        Offer::Trace { trace, cursor: Cursor::start(), opportunity }
    }
}

impl Default for Offer {
    fn default() -> Self {
        Offer::Counted { capacity: None, bytes: 0 }
    }
}

impl Log {
    /// Begins it: its time 0 is now.
    pub fn create(file: &LogFile, offer: Offer, framing: Framing) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        // A command line may have a newline in it; a line of the log it must not make.
        let shown = |line: &String| line.replace('\n', "\\n").replace('\r', "\\r");
        let mut head: String =
            file.head.iter().map(|line| format!("# {}\n", shown(line))).collect();
        head += &format!("# init timestamp: {now}\n# base timestamp: 0\n");
        let background = Background::create(&file.file, head.into_bytes(), None)?;
        Ok(Log { link: file.link, file: background, offer, framing })
    }

    /// Writes the opportunities of a trace up to `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let Offer::Trace { trace, cursor, opportunity } = &mut self.offer else { return };
        loop {
            let (time, count) = cursor.peek(trace);
            if time > now {
                return;
            }
            let (lines, bytes) = match count {
                0..=MOST_LINES => (count, *opportunity),
                _ => (1, count.saturating_mul(*opportunity)),
            };
            for _ in 0..lines {
                line(&mut self.file, time, b'#', [Some(bytes), None]);
            }
            cursor.advance(trace);
        }
    }

    #[inline]
    fn line(&mut self, time: Time, what: u8, numbers: [Option<u64>; 2]) {
        line(&mut self.file, time, what, numbers);
    }

    fn size(&self, handle: &Handle) -> u64 {
        u64::from(self.framing.wire_size(handle.size))
    }

    pub fn arrived(&mut self, time: Time, handle: &Handle) {
        self.catch_up(time);
        self.line(time, b'+', [Some(self.size(handle)), None]);
    }

    pub fn departed(&mut self, time: Time, handle: &Handle) {
        self.catch_up(time);
        let milli = |time: Time| time.as_nanos() / NANOS_PER_MILLI;
        let delay = milli(time) - milli(handle.arrival());
        self.line(time, b'-', [Some(self.size(handle)), Some(delay)]);
    }

    pub fn dropped(&mut self, time: Time, handle: &Handle) {
        self.catch_up(time);
        self.line(time, b'd', [Some(1), Some(self.size(handle))]);
    }

    /// So that a log can be followed, and little is missing if all is killed.
    pub fn tick(&mut self, now: Time, link: &QueuedLink<Handle>) {
        self.catch_up(now);
        if let Offer::Counted { capacity, bytes } = &mut self.offer {
            let capacity = capacity.get_or_insert_with(|| link.capacity());
            let before = std::mem::replace(bytes, capacity.bytes(now) as u64);
            line(&mut self.file, now, b'#', [Some(*bytes - before), None]);
        }
        self.file.flush();
    }

    pub fn finish(mut self, end: Time) -> Result<(), String> {
        self.catch_up(end);
        self.file.close()
    }
}

#[inline]
fn line(file: &mut Background, time: Time, what: u8, numbers: [Option<u64>; 2]) {
    let line = file.buffer();
    number(line, time.as_nanos() / NANOS_PER_MILLI);
    line.extend_from_slice(&[b' ', what]);
    for each in numbers.into_iter().flatten() {
        line.push(b' ');
        number(line, each);
    }
    line.push(b'\n');
    file.settle();
}

/// Appends a number in decimal.
#[inline]
fn number(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_decimal() {
        for value in [0, 9, 10, 1504, u64::MAX] {
            let mut text = Vec::new();
            number(&mut text, value);
            assert_eq!(text, value.to_string().into_bytes());
        }
    }

    #[test]
    fn opportunities_repeat_and_very_many_share_a_line() {
        let folder = std::env::temp_dir().join(format!("aqmlab-log-{}", std::process::id()));
        let trace = "1\n1\n".to_string() + &"3\n".repeat(1001);
        let trace = Arc::new(Opportunities::parse(trace.as_bytes(), "trace").unwrap());
        let file = LogFile { link: 0, file: folder.clone(), head: vec!["a link".into()] };
        let mut log =
            Log::create(&file, Offer::trace(trace, 1504), Framing { overhead: 4, ..Framing::NONE })
                .unwrap();
        log.catch_up(Time::from_nanos(2 * NANOS_PER_MILLI));
        log.finish(Time::from_nanos(5 * NANOS_PER_MILLI)).unwrap();
        let text = std::fs::read_to_string(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2]), ("# a link", "# base timestamp: 0"));
        assert!(lines[1].starts_with("# init timestamp: "));
        let all = format!("3 # {}", 1001 * 1504);
        assert_eq!(lines[3..], ["1 # 1504", "1 # 1504", &all, "4 # 1504", "4 # 1504"]);
    }
}
