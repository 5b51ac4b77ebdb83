//! First in, first out: the storage under most disciplines.

use std::collections::VecDeque;

use aqmlab_core::{Limit, Packet};

use crate::discipline::{Backlog, Context, DropReason};

/// Packets in order of arrival, with their bytes counted.
#[derive(Debug)]
pub struct Fifo<P> {
    packets: VecDeque<P>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Packet> Fifo<P> {
    /// Adds a packet at the tail.
    #[inline]
    pub fn push(&mut self, packet: P) {
        self.bytes += u64::from(packet.size());
        self.packets.push_back(packet);
    }
    /// Adds a packet at the tail, or drops it if `limit` has no room for it.
    #[inline]
    pub fn push_within(&mut self, limit: Limit, packet: P, cx: &mut Context<'_, P>) {
        let Backlog { packets, bytes } = self.backlog();
        if limit.admits(packets, bytes, u64::from(packet.size())) {
            self.push(packet);
        } else {
            cx.drop(packet, DropReason::Overlimit);
        }
    }
    /// Takes the packet at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }
    /// Takes the packet at the tail.
    #[inline]
    pub fn pop_tail(&mut self) -> Option<P> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }
    /// The packet at the head.
    #[inline]
    pub fn head(&self) -> Option<&P> {
        self.packets.front()
    }
    /// The packet at a place, counted from the head.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&P> {
        self.packets.get(index)
    }
    /// Takes the packet at a place out; the others keep their order.
    pub fn remove(&mut self, index: usize) -> Option<P> {
        let packet = self.packets.remove(index)?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }
    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Packets and bytes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
}
