//! The send buffer (`net/core/stream.c`, `tcp_sendmsg`): unacknowledged data take memory. When the
//! buffer is full the application waits until a third of it is free.
//! Neighbours that SACK reports share the memory of one packet's head (`tcp_shift_skb_data`).
//!
//! # Differences
//! 1. The buffer has its largest size from the beginning. The kernel's grows with twice the
//!    window, so that it is not the limit before it has that size.

use super::LinuxSender;
use crate::params::{Stack, TcpParams};

/// Memory of a packet without its payload: head and metadata (`SKB_TRUESIZE` of `MAX_TCP_HEADER`),
/// which 6.1 rounds up to the next power of two.
const OVERHEAD: u64 = 896;
const OVERHEAD_61: u64 = 1280;
/// Segments of a packet with segmentation offload.
const OFFLOADED: u64 = 44;

/// A send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    size: u64,
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
        let size = params.send_buffer?.get();
        let head = overhead / together;
        Some(Memory { size, segment: mss + head, head, mss })
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
    /// The application writes as much of its data as fits.
    pub(super) fn fill(&mut self) {
        let most = self.memory.map_or(u64::MAX / 2, |memory| memory.most(self.queue.joined()));
        let end = (self.conn.written + 1).min(self.state.una.max(1) + most);
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
        Memory::new(&TcpParams { send_buffer: Some(Bytes::new(size)), ..params }).unwrap()
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

    #[test]
    fn shared_heads_leave_room() {
        let memory = memory(Profile::Linux6, 4_194_304);
        // 1000 heads of 896 bytes are 382.3 segments of 2344.
        assert_eq!(memory.most(1000), 2172 * 1448);
    }
}
