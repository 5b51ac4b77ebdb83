//! Datagram endpoints, without acknowledgements or retransmissions; arrivals are measured.

use aqmlab_core::{Span, Time};

use crate::network::probe::{TimeHistogram, TimeSummary};

/// Results of a flow of datagrams. Of duplicates, only the first arrival counts.
#[derive(Clone, Debug, Default)]
pub struct DatagramSummary {
    /// Number of packets sent.
    pub sent: u64,
    /// Bytes sent, on the wire.
    pub sent_bytes: u64,
    /// Number of packets that arrived.
    pub received: u64,
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// One-way delays of arrived packets.
    pub delay: TimeSummary,
    /// Smoothed difference of consecutive delays, in seconds.
    pub jitter: f64,
}

/// Contents of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Sending time.
    pub at: Time,
    /// Number in the flow.
    pub number: u32,
}

impl Sent {
    /// Contents of a datagram of a connection, with the size of the packet it stands for.
    pub(crate) fn to_bytes(self, size: u32) -> [u8; 16] {
        let words = u128::from(self.at.as_nanos()) << 64 | u128::from(self.number) << 32;
        (words | u128::from(size)).to_be_bytes()
    }
    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<(Self, u32)> {
        let words = u128::from_be_bytes(*bytes.first_chunk()?);
        let at = Time::from_nanos((words >> 64) as u64);
        Some((Sent { at, number: (words >> 32) as u32 }, words as u32))
    }
}

/// Sends the datagrams of an application.
#[derive(Clone, Default)]
pub struct DatagramSource {
    /// Datagram waiting to be polled: its size and sending time.
    waiting: Option<(u32, Time)>,
    /// Number of packets sent.
    pub sent: u64,
}

impl DatagramSource {
    /// Queues a packet of this size, to be polled at once.
    pub fn send(&mut self, now: Time, size: u32) {
        debug_assert!(self.waiting.is_none(), "the previous datagram has been polled");
        self.waiting = Some((size, now));
    }

    /// Returns the waiting packet with its size.
    pub(crate) fn poll(&mut self) -> Option<(Sent, u32)> {
        let (size, at) = self.waiting.take()?;
        self.sent += 1;
        Some((Sent { at, number: self.sent as u32 - 1 }, size))
    }
}

/// Detects duplicates of numbered packets: a sliding window over the highest numbers, like RFC
/// 6479's against replays. A packet older than the window counts as new, so that without
/// duplication no packet is mistaken for a duplicate.
#[derive(Clone, Default)]
struct Copies {
    /// Highest number seen, plus one.
    next: u32,
    seen: [u64; Self::WORDS as usize],
}

impl Copies {
    const WORDS: u32 = 16;
    const SIZE: u32 = 64 * Self::WORDS;

    /// Records a number. Returns whether it is new.
    fn is_new(&mut self, number: u32) -> bool {
        if number >= self.next {
            // The slots of skipped numbers are free again.
            for free in self.next..=number.min(self.next.saturating_add(Self::SIZE)) {
                self.seen[(free / 64 % Self::WORDS) as usize] &= !(1 << (free % 64));
            }
            self.next = number.saturating_add(1);
        } else if self.next - number > Self::SIZE {
            return true;
        }
        let word = &mut self.seen[(number / 64 % Self::WORDS) as usize];
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Measures arrivals, without duplicates.
#[derive(Clone, Default)]
pub struct DatagramSink {
    copies: Copies,
    /// Number of packets that arrived.
    pub received: u64,
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// One-way delays.
    pub delay: TimeHistogram,
    last_delay: Span,
    jitter: f64,
}

impl DatagramSink {
    /// Measures an arriving packet of `size` bytes. Returns whether it is no duplicate.
    pub fn arrive(&mut self, now: Time, Sent { at, number }: Sent, size: u32) -> bool {
        if !self.copies.is_new(number) {
            return false;
        }
        let delay = now - at;
        if self.received > 0 {
            // RFC 3550, section 6.4.1.
            let change = (delay.as_secs_f64() - self.last_delay.as_secs_f64()).abs();
            self.jitter += (change - self.jitter) / 16.0;
        }
        self.last_delay = delay;
        self.received += 1;
        self.received_bytes += u64::from(size);
        self.delay.note(delay);
        true
    }

    /// Returns the results of a flow that sent `sent` packets and `sent_bytes` bytes.
    pub fn summary(&self, sent: u64, sent_bytes: u64) -> DatagramSummary {
        DatagramSummary {
            sent,
            sent_bytes,
            received: self.received,
            received_bytes: self.received_bytes,
            delay: self.delay.summary(),
            jitter: self.jitter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once() {
        let mut copies = Copies::default();
        let mut news = |numbers: &[u32]| -> Vec<bool> {
            numbers.iter().map(|number| copies.is_new(*number)).collect()
        };
        assert_eq!(
            news(&[0, 0, 1, 3, 2, 2, 3, 1]),
            [true, false, true, true, true, false, false, false]
        );
        // Far ahead the window is empty, and skipped numbers may still arrive once.
        assert_eq!(
            news(&[5000, 5000, 4999, 4999, 3977, 3977]),
            [true, false, true, false, true, false]
        );
        assert_eq!(news(&[3976, 3976]), [true, true], "older than the window");
        for number in 5001..20_000 {
            assert_eq!(news(&[number, number, number - 1]), [true, false, false], "{number}");
        }
        assert_eq!(news(&[u32::MAX - 1, u32::MAX - 1]), [true, false]);
    }
}
