//! Segmentation offload (`tcp_tso_autosize`, `tcp_tso_should_defer`): several segments leave at
//! once, and some wait for more of the window, if that is not far.

use std::collections::VecDeque;

use super::LinuxSender;
use super::control::bbr::Bbr;
use super::output::Amount;
use super::state::CaState;

/// The largest packet that the host hands to its device.
const LARGEST: u64 = 65_536 - 321;
/// The host sends about a millisecond's worth at once (`sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
/// Close receivers get more: half as much for each 512 us (`tcp_tso_rtt_log`).
const RTT_SHIFT: u32 = 9;
/// A third of the window is worth sending (`tcp_tso_win_divisor`).
const WINDOW_SHARE: u64 = 3;
/// Bound of half a window, unless the window is as small (`TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;
const MILLISECOND: u64 = 1_000_000;
/// Buffers that are filled while none can leave; the first ones may change what leaves.
const IDLE: u32 = 2;

/// Where the buffers of data that are not sent yet end (`sk_write_queue`). The application fills
/// each up to the size that the kernel wants, the last one by later writes too. Sending a part of
/// the first one leaves its end where it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers {
    /// Buffers of the same size: where they begin, and the size.
    runs: VecDeque<(u64, u64)>,
    /// End of the first buffer, if it is beyond the data sent.
    end: u64,
    /// So much is in buffers; so much was there at the last push (`pushed_seq`).
    filled: u64,
    pushed: u64,
}

impl Buffers {
    /// The end of the buffer that begins with the first unsent byte, were it full.
    #[inline]
    fn end(&mut self, nxt: u64) -> u64 {
        if self.end <= nxt {
            while self.runs.get(1).is_some_and(|run| run.0 <= nxt) {
                self.runs.pop_front();
            }
            let (begin, size) = self.runs.front().copied().unwrap_or((nxt, u64::MAX >> 2));
            self.end = begin + (nxt.saturating_sub(begin) / size + 1) * size;
            if let Some(next) = self.runs.get(1) {
                self.end = self.end.min(next.0);
            }
        }
        self.end
    }
    /// More is written: the last buffer takes it up to this size, then others do. Returns where the
    /// one begins that is filled now.
    fn fill(&mut self, nxt: u64, size: u64) -> u64 {
        let filled = self.filled;
        let begin = match self.runs.back() {
            Some(&(begin, before)) if filled > nxt => {
                let mut last = (begin + (filled - 1 - begin) / before * before).max(nxt);
                if (nxt..filled).contains(&self.end) {
                    last = last.max(self.end);
                }
                let last = if filled - last < size { last } else { filled };
                if last == begin {
                    self.runs.pop_back();
                }
                if last == begin || before != size || !(last - begin).is_multiple_of(size) {
                    self.runs.push_back((last, size));
                }
                last
            }
            _ => {
                self.runs.clear();
                self.runs.push_back((nxt, size));
                nxt
            }
        };
        if begin == nxt {
            self.end = begin + size;
        }
        begin
    }
}

impl LinuxSender {
    /// Segments that are sent at once.
    pub(super) fn segments_at_once(&self) -> u32 {
        let state = &self.state;
        let least = if self.control.is_bbr() { Bbr::least_at_once(state) } else { 2 };
        let mut bytes = state.pacing_rate >> PACING_SHIFT;
        let far = state.min_rtt() >> RTT_SHIFT;
        if far < 32 && !self.sysctl.forgets {
            bytes = bytes.saturating_add(LARGEST >> far);
        }
        ((bytes.min(LARGEST) / u64::from(state.mss)) as u32).max(least)
    }

    /// Size of a buffer: a segment, or as many as half of the receiver's window holds.
    fn buffer_size(&self) -> u64 {
        let (window, mss) = (self.state.max_window, u64::from(self.state.mss));
        let half = if window > SMALL_WINDOW { window >> 1 } else { window };
        let most = if self.sysctl.offload { LARGEST.min(half) } else { mss };
        (most / mss).max(1) * mss
    }

    /// Sends what the application has written (`tcp_sendmsg`): a full buffer leaves while the next
    /// is being filled, all of them once they hold half of the receiver's window. Whether the
    /// window is in use is judged after each.
    pub(super) fn send_written(&mut self) {
        let all = self.state.written;
        let size = self.buffer_size();
        let mut idle = 0;
        while self.buffers.filled < all {
            let nxt = self.state.nxt;
            let begin = self.buffers.fill(nxt, size);
            if begin + size >= all || idle > IDLE {
                break;
            }
            self.buffers.filled = begin + size;
            self.state.written = begin + size;
            if self.state.written > self.buffers.pushed + (self.state.max_window >> 1) {
                self.buffers.pushed = self.state.written;
                self.push();
            } else if begin == nxt {
                self.write_xmit(Amount::Buffer);
            }
            idle = if self.state.nxt > nxt { 0 } else { idle + 1 };
        }
        self.state.written = all;
        (self.buffers.filled, self.buffers.pushed) = (all, all);
        self.push();
    }

    /// Returns the rest of the buffer that new data are taken from.
    #[inline]
    pub(super) fn buffer_left(&mut self, room: u32) -> u64 {
        let (nxt, written) = (self.state.nxt, self.state.written);
        let mut end = self.buffers.end(nxt);
        // Linux 6.12 fills a buffer up to what the window allows, from the next one.
        let wanted = nxt + u64::from(room) * u64::from(self.state.mss);
        if self.sysctl.grows && end < wanted && end < written {
            let next = self.buffers.end(end);
            end = wanted.min(next).min(written);
            self.buffers.end = end;
        }
        end.min(written) - nxt
    }

    /// Returns true if it waits for more of the window; sets `limited` if the window is the reason.
    pub(super) fn defers(&self, left: u64, most: u32, limited: &mut bool) -> bool {
        let state = &self.state;
        if state.ca_state >= CaState::Recovery || state.nanos > state.paced_until + MILLISECOND {
            return false;
        }
        let mss = u64::from(state.mss);
        let receiver = state.window_end() - state.nxt;
        let congestion = u64::from(state.cwnd - state.in_flight()) * mss;
        let room = receiver.min(congestion);
        let is_last = state.nxt + left >= state.written;
        let share = state.window.min(u64::from(state.cwnd) * mss) / WINDOW_SHARE;
        if room >= u64::from(most) * mss || (!is_last && room >= left) || room >= share {
            return false;
        }
        let Some(head) = self.queue.head() else { return false };
        let srtt = state.srtt8 * (1000 >> 3);
        let expected = head.sent + srtt;
        // Linux 5.4 waits for an acknowledgement that is half a round trip away.
        let soon = if self.sysctl.forgets { srtt >> 1 } else { (srtt >> 1).min(MILLISECOND) };
        if expected > state.nanos + soon {
            return false;
        }
        *limited |= congestion < receiver && congestion <= left;
        true
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Bytes;

    use super::*;
    use crate::params::{Profile, TcpParams};
    use crate::segment::Ack;
    use crate::testing::{RTT, at};

    #[test]
    fn what_is_cut_off_a_buffer_leaves_its_end_and_later_writes_fill_the_last() {
        let mut buffers = Buffers::default();
        let write = |buffers: &mut Buffers, nxt, size, bytes| {
            let begin = buffers.fill(nxt, size);
            buffers.filled += bytes;
            (begin, buffers.end(nxt))
        };
        buffers.filled = 1;
        assert_eq!(write(&mut buffers, 1, 40, 100), (1, 41));
        assert_eq!((buffers.end(60), buffers.end(70)), (81, 81));
        // The last one, from 81, has 20 of 40 bytes.
        assert_eq!(write(&mut buffers, 70, 40, 10), (81, 81));
        assert_eq!(buffers.end(81), 121);
        // It was cut at 100, and may hold 60 now.
        assert_eq!(write(&mut buffers, 100, 60, 10), (100, 160));
        // With all sent the next one begins there; the last is full, so another begins.
        assert_eq!(write(&mut buffers, 121, 10, 30), (121, 131));
        assert_eq!(write(&mut buffers, 121, 5, 1), (151, 131));
        assert_eq!((buffers.end(141), buffers.end(151)), (151, 156));
    }

    /// A sender with so many bytes for a receiver with this window.
    fn opened(profile: Profile, mss: u64, offload: bool, window: u64, bytes: u64) -> LinuxSender {
        let mut params = TcpParams::of_profile(profile).unwrap();
        params.segmentation_offload = offload;
        params.mss = Bytes::new(mss);
        let mut sender = LinuxSender::new(&params, Some(bytes), 1);
        sender.open(at(0));
        sender.poll(at(0));
        sender.on_ack(at(0) + RTT, &Ack { syn: true, window, ..Ack::default() });
        sender
    }
    fn lengths(sender: &mut LinuxSender, millis: u64) -> Vec<u32> {
        std::iter::from_fn(|| sender.poll(at(millis))).map(|segment| segment.len).collect()
    }

    /// tcp_mss_split_point: the second buffer leaves as far as the receiver's window goes.
    #[test]
    fn a_buffer_is_cut_at_the_window_and_without_offload_at_a_segment() {
        let mut together = opened(Profile::Linux61, 1388, true, 8688, 100_000);
        assert_eq!(lengths(&mut together, 100), [1388, 1388, 1388, 1388, 1388, 1388, 360]);
        let mut single = opened(Profile::Linux61, 1388, false, 8688, 100_000);
        assert_eq!(lengths(&mut single, 100), [1388; 6]);
    }

    /// tcp_send_loss_probe: what waits for more of the window leaves as far as the window goes.
    #[test]
    fn a_tail_loss_probe_is_a_packet_or_at_least_a_segment() {
        let mut sender = opened(Profile::Linux61, 1448, true, 65_535, 100_000);
        assert_eq!(lengths(&mut sender, 100).len(), 10);
        let mut probe = |cwnd| {
            sender.state.cwnd = cwnd;
            sender.write_xmit(Amount::Probe);
            lengths(&mut sender, 200).len()
        };
        assert_eq!((probe(14), probe(12)), (2, 1));
    }

    /// tcp_write_wakeup: a probe of a window that is too small for a segment fills it. The rest of
    /// that buffer leaves as it is.
    #[test]
    fn a_probe_fills_the_window() {
        let mut sender = opened(Profile::Linux61, 1448, false, 2896, 6000);
        assert_eq!(lengths(&mut sender, 100), [1448, 1448]);
        sender.on_ack(at(200), &Ack { ack: 2896, window: 300, ..Ack::default() });
        assert_eq!(lengths(&mut sender, 200), [0; 0]);
        let due = sender.next_timeout().unwrap();
        sender.on_timeout(due);
        assert_eq!(lengths(&mut sender, 500), [300]);
        sender.on_ack(due + RTT, &Ack { ack: 3196, window: 8000, ..Ack::default() });
        assert_eq!(lengths(&mut sender, 600), [1148, 1448, 208]);
    }
    /// tcp_sendmsg, tcp_cwnd_validate: a window that was not full for a timeout shrinks halfway to
    /// the initial one at the first segment of a write, not to all of the write.
    #[test]
    fn an_unused_window_shrinks_at_the_first_segment_of_a_write() {
        let mut sender = opened(Profile::Linux61, 1000, false, 65_535, 20_000);
        sender.sysctl.tail_probe = false;
        assert_eq!(lengths(&mut sender, 100).len(), 10);
        for number in 1..=20 {
            let millis = if number > 10 { 300 } else { 200 };
            let ack = Ack { ack: 1000 * number, window: 65_535, ..Ack::default() };
            sender.on_ack(at(millis), &ack);
        }
        assert_eq!(lengths(&mut sender, 300).len(), 10);
        let before = sender.state.cwnd;
        sender.write(100);
        assert_eq!(lengths(&mut sender, 350), [100]);
        sender.write(14_000);
        assert_eq!(lengths(&mut sender, 620).len(), 14);
        assert_eq!((before, sender.state.cwnd), (30, 20));
    }
}
