//! PSH within the application's data (`forced_push` and `tcp_push` of `tcp_sendmsg`): at a full segment
//! with which more than half of the receiver's largest window is written since the last one, and
//! where the buffer was full.
//!
//! # Differences
//! 1. Retransmissions have PSH only where a write ends.
//! 2. Without a bound of the send buffer the window counts that is known when a segment is sent, not
//!    when it is written.

use std::collections::VecDeque;

/// Places of PSH in data that are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushes {
    /// Data in the buffer: from where on they were written together, and half of the largest window
    /// at that time.
    fills: VecDeque<(u64, u64)>,
    /// The last PSH before the data that are sent next (`pushed_seq`).
    last: u64,
}

impl Pushes {
    /// Data from `from` on go into the buffer.
    pub fn fill(&mut self, from: u64, half: u64) {
        self.fills.push_back((from, half));
    }
    /// The handshake tells the window for which the first data are written.
    pub fn open(&mut self, half: u64) {
        self.fills.iter_mut().for_each(|fill| fill.1 = half);
    }
    /// Returns whether PSH is set in new data from `seq` to `end`, which may be a full segment, when
    /// the application writes `write` bytes at a time.
    #[inline]
    pub fn at(&mut self, (seq, end): (u64, u64), is_full: bool, write: u64, half: u64) -> bool {
        while self.fills.get(1).is_some_and(|fill| fill.0 <= seq) {
            self.fills.pop_front();
        }
        let half = self.fills.front().map_or(half, |fill| fill.1);
        let was_full = self.fills.get(1).is_some_and(|fill| fill.0 == end);
        let written = end / write * write;
        if written > seq {
            self.last = written;
        } else if was_full || (is_full && end > self.last + half) {
            self.last = end;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The segments with PSH of a recorded connection of 6.12 (tcp-vectors, cubic-6.12_bulk) whose
    /// data were written for a window of 65535 bytes: the 23rd, 46th, 69th.
    #[test]
    fn half_of_the_window_is_pushed() {
        let mut pushes = Pushes::default();
        pushes.fill(0, 0);
        pushes.open(65_535 / 2);
        let found: Vec<_> = segments(&mut pushes, 70, u64::MAX, 1 << 30).collect();
        assert_eq!(found, [23, 46, 69]);
    }

    /// Writes of 131072 bytes end in segments 91, 182 and so on, and restart the count.
    #[test]
    fn the_end_of_a_write_restarts_the_count() {
        let mut pushes = Pushes::default();
        let found: Vec<_> = segments(&mut pushes, 120, 131_072, 65_535 / 2).collect();
        assert_eq!(found, [23, 46, 69, 114]);
    }

    #[test]
    fn what_filled_the_buffer_is_pushed() {
        let mut pushes = Pushes::default();
        pushes.fill(0, 1 << 30);
        pushes.fill(5 * 1448, 1448);
        assert_eq!(segments(&mut pushes, 10, u64::MAX, 1).collect::<Vec<_>>(), [5, 7, 9]);
    }

    fn segments(pushes: &mut Pushes, to: u64, write: u64, half: u64) -> impl Iterator<Item = u64> {
        (1..=to).filter(move |n| pushes.at(((n - 1) * 1448, n * 1448), true, write, half))
    }
}
