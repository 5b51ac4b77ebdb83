//! Segmentation offload (`tcp_tso_autosize`, `tcp_tso_should_defer`): several segments leave at
//! once, and some wait for more of the window, if that is not far.

use super::LinuxSender;
use super::control::bbr::Bbr;
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

/// The buffer that new data are taken from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    /// End of the buffer.
    end: u64,
    /// Size of the buffers.
    size: u64,
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

    /// Returns the rest of the buffer that new data are taken from. The application's data fill
    /// buffers of whole segments, each as large as half of the receiver's window; segments sent
    /// while it writes are cut off the buffer that it fills.
    pub(super) fn buffer_left(&mut self, room: u32) -> u64 {
        let state = &self.state;
        let mss = u64::from(state.mss);
        if self.buffer.size == 0 || self.is_writing {
            let window = state.max_window;
            let half = if window > SMALL_WINDOW { window >> 1 } else { window };
            self.buffer.size = (LARGEST.min(half) / mss).max(1) * mss;
        }
        if self.is_writing {
            self.buffer.end = state.nxt + self.buffer.size;
        }
        while self.buffer.end <= state.nxt {
            self.buffer.end += self.buffer.size;
        }
        let left = self.buffer.end.min(state.written) - state.nxt;
        // Linux 6.12 fills a buffer up to what the window allows.
        let wanted = if self.sysctl.grows { u64::from(room) * mss } else { 0 };
        left.max(wanted.min(state.written - state.nxt))
    }

    /// All data are written: the last buffer holds the unsent rest.
    pub(super) fn end_writing(&mut self) {
        if std::mem::take(&mut self.is_writing) {
            self.buffer.end = self.state.nxt + self.buffer.size;
        }
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
        let is_last = self.buffer.end >= state.written;
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
