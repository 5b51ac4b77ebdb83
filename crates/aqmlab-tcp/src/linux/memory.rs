//! The send buffer (`net/core/stream.c`, `tcp_sendmsg`): unacknowledged data take memory. When the
//! buffer is full the application waits until a third of it is free.
//! Neighbours that SACK reports share the memory of one packet's head (`tcp_shift_skb_data`).
//!
//! With `send_buffer = auto` it grows with the window, as the kernel's does unless the application
//! asks for a size (`tcp_sndbuf_expand`).

use aqmlab_core::Auto;

use super::LinuxSender;
use crate::params::{Stack, TcpParams};

/// Memory of a packet without its payload: head and metadata (`SKB_TRUESIZE` of `MAX_TCP_HEADER`),
/// which 6.1 rounds up to the next power of two.
const OVERHEAD: u64 = 896;
const OVERHEAD_61: u64 = 1280;
/// Segments of a packet with segmentation offload.
const OFFLOADED: u64 = 44;
/// The largest buffer of `auto` (`tcp_wmem`), segments for which it has room at least, and the memory
/// of a packet beside its head's: these are rounded up to a power of two together with the payload.
const MAX: u64 = 4_194_304;
const LEAST: u32 = 10;
const DESCRIPTION: u64 = 256;
const HEAD: u64 = OVERHEAD - DESCRIPTION;

/// A send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    size: u64,
    /// True if the size grows.
    grows: bool,
    /// Memory of a segment, and what of it is not payload.
    segment: u64,
    head: u64,
    mss: u64,
}

impl Memory {
    /// The one that these parameters ask for, if any.
    pub fn new(params: &TcpParams) -> Option<Self> {
        let overhead = match params.stack {
            Stack::Linux54 | Stack::Linux61 => OVERHEAD_61,
            _ => OVERHEAD,
        };
        let together = if params.segmentation_offload { OFFLOADED } else { 1 };
        let mss = params.mss.get();
        let (size, grows) = match params.send_buffer {
            Auto::Auto => (0, true),
            Auto::Set(size) => (size?.get(), false),
        };
        let head = overhead / together;
        Some(Memory { size, grows, segment: mss + head, head, mss })
    }
    /// Grows to hold so many segments.
    fn expand(&mut self, segments: u64) {
        let segment = (self.mss + HEAD).next_power_of_two() + DESCRIPTION;
        self.size = self.size.max((segments * segment).min(MAX));
    }
    /// Bytes of payload that fill it, if so many segments have no head of their own: it takes a
    /// segment as long as it is not full.
    pub fn most(&self, joined: u64) -> u64 {
        (self.size + joined * self.head).div_ceil(self.segment) * self.mss
    }
    /// Whether an application that waits is woken while so many bytes are in it.
    fn is_writable(&self, bytes: u64, joined: u64) -> bool {
        let used = bytes.div_ceil(self.mss) * self.segment - joined * self.head;
        used + used / 2 <= self.size
    }
}

impl LinuxSender {
    /// Lets a buffer grow that is to grow: to twice the window, with BBR to three times of it.
    pub(super) fn expand_buffer(&mut self) {
        let Some(memory) = self.memory.as_mut().filter(|memory| memory.grows) else { return };
        let segments = self.state.cwnd.max(LEAST).max(self.state.reordering + 1);
        let windows = if self.control.is_bbr() { 3 } else { 2 };
        memory.expand(windows * u64::from(segments));
        self.state.cwnd_stamp = self.state.jiffies;
    }

    /// The application writes as much of its data as fits.
    pub(super) fn fill(&mut self) {
        let most = self.memory.map_or(u64::MAX / 2, |memory| memory.most(self.queue.joined()));
        let end = (self.conn.written + 1).min(self.state.una.max(1) + most);
        // With offload no segment takes them out again (`transmit`).
        if self.memory.is_some() && !self.sysctl.offload && end > self.state.written {
            let from = self.state.written.saturating_sub(1);
            self.pushes.fill(from, self.state.max_window >> 1);
        }
        self.state.written = self.state.written.max(end);
    }

    /// An acknowledgement has freed memory: the application goes on, if it waits and is woken.
    #[inline]
    pub(super) fn wake_writer(&mut self) {
        if self.state.written <= self.conn.written {
            self.refill();
        }
    }
    fn refill(&mut self) {
        // tcp_should_expand_sndbuf
        if self.state.in_flight() < self.state.cwnd {
            self.expand_buffer();
        }
        let kept = self.state.written - self.state.una;
        if !self.memory.is_some_and(|memory| memory.is_writable(kept, self.queue.joined())) {
            return;
        }
        self.check_app_limited();
        self.has_written = true;
        self.fill();
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Bytes;

    use super::*;
    use crate::params::Profile;

    fn memory(profile: Profile, size: u64) -> Memory {
        let params = TcpParams::of_profile(profile).unwrap();
        let send_buffer = Auto::Set(Some(Bytes::new(size)));
        Memory::new(&TcpParams { send_buffer, ..params }).unwrap()
    }

    #[test]
    fn four_megabytes_are_1790_segments_of_the_newer_kernel_and_1538_of_the_older() {
        assert_eq!(memory(Profile::Linux6, 4_194_304).most(0), 1790 * 1448);
        assert_eq!(memory(Profile::Linux61, 4_194_304).most(0), 1538 * 1448);
    }

    #[test]
    fn the_application_is_woken_when_a_third_is_free() {
        let memory = memory(Profile::Linux6, 3 * 2344);
        assert!(!memory.is_writable(3 * 1448, 0));
        assert!(memory.is_writable(2 * 1448, 0));
        // Three segments without two heads take 5240 bytes: not a third is free.
        assert!(!memory.is_writable(3 * 1448, 2) && memory.is_writable(3 * 1448, 3));
    }

    /// tcp_init_buffer_space: room for two windows of ten segments of 4352 bytes; later of more.
    #[test]
    fn the_buffer_grows_with_the_window_up_to_four_megabytes() {
        let params = TcpParams::of_profile(Profile::Linux6).unwrap();
        let mut sender =
            LinuxSender::new(&TcpParams { send_buffer: Auto::Auto, ..params }, None, 0);
        let sizes = [(10, 87_040), (9, 87_040), (100, 870_400), (1000, MAX)].map(|(cwnd, size)| {
            sender.state.cwnd = cwnd;
            sender.expand_buffer();
            (sender.memory.unwrap().size, size)
        });
        assert!(sizes.iter().all(|(found, expected)| found == expected), "{sizes:?}");
    }

    #[test]
    fn shared_heads_leave_room() {
        let memory = memory(Profile::Linux6, 4_194_304);
        // 1000 heads of 896 bytes are 382.3 segments of 2344.
        assert_eq!(memory.most(1000), 2172 * 1448);
    }
}
