//! Link logs in the format of mm-link: opportunities, arrivals, departures and drops.
//!
//! # Sources
//! mahimahi's `link_queue.cc` (written format), `mm-throughput-graph` and `mm-delay-graph` (parsed
//! format). Lines that begin with `#` describe the log. The other lines start with the time in
//! milliseconds since the beginning, from which the base timestamp is subtracted:
//!
//! | line | |
//! |---|---|
//! | `T # BYTES` | opportunity for BYTES bytes |
//! | `T + BYTES` | packet arrival |
//! | `T - BYTES MS` | packet departure after a delay of MS |
//! | `T d PACKETS BYTES` | dropped packets |
//!
//! Bytes include mahimahi's header of 4 bytes, which is the link's overhead here.
//!
//! # Differences
//! 1. Every drop has its line, including drops at dequeue, which mahimahi omits. Packets lost in
//!    transit on the link count as dropped.
//! 2. More than [`MOST_LINES`] opportunities in a millisecond share one line with the sum of their
//!    bytes.
//! 3. mahimahi's links have traces and no delay. A link without a trace logs one opportunity at
//!    each tick, with all bytes offered since the tick before. Departures are at the far end of a
//!    link.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aqmlab_core::{Framing, Packet, Time};
use aqmlab_sim::network::{Capacity, QueuedLink};
use aqmlab_sim::rate::{Cursor, Opportunities};

use super::LogFile;
use super::background::Background;
use crate::path::Passage;

const NANOS_PER_MILLI: u64 = 1_000_000;
/// Lines per millisecond: 12 Gbit/s.
const MOST_LINES: u64 = 1000;

/// Log being written.
pub struct Log {
    /// Link, by index.
    pub link: u32,
    file: Background,
    offer: Offer,
    framing: Framing,
}

/// Source of a link's opportunities.
pub enum Offer {
    /// Opportunities of a fixed size at the times of a trace.
    Trace { trace: Arc<Opportunities>, cursor: Cursor, opportunity: u64 },
    /// Capacity counted by the link, with the bytes logged so far.
    Counted { capacity: Option<Capacity>, bytes: u64 },
}

impl Offer {
    /// Creates opportunities of `opportunity` bytes at the times of a trace.
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
    /// Creates the log; its time 0 is now.
    pub fn create(file: &LogFile, offer: Offer, framing: Framing) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        // A command line may contain newlines; the log must not.
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

    pub fn saw(&mut self, time: Time, what: Passage, handle: &Packet) {
        self.catch_up(time);
        let size = u64::from(self.framing.wire_size(handle.size()));
        let milli = |time: Time| time.as_nanos() / NANOS_PER_MILLI;
        let (sign, numbers) = match what {
            Passage::Arrived => (b'+', [Some(size), None]),
            Passage::Departed => (b'-', [Some(size), Some(milli(time) - milli(handle.arrival()))]),
            Passage::Gone(_) => (b'd', [Some(1), Some(size)]),
        };
        line(&mut self.file, time, sign, numbers);
    }

    /// Flushes, so that readers can follow the log and little is lost if the process is killed.
    pub fn tick(&mut self, now: Time, link: &QueuedLink) {
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
