//! First in, first out: the storage under most disciplines.

use alloc::collections::VecDeque;

use aqmlab_core::{Bytes, Limit, Packet};

use crate::discipline::{Backlog, Context, LinkEnv, Reason};

/// Capacity of a queue: a limit, and often one in bytes as well.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimit {
    packets: u64,
    bytes: u64,
}

impl QueueLimit {
    /// The room of a queue on the link of `env`.
    pub fn new(limit: Limit, byte_limit: Option<Bytes>, env: &LinkEnv) -> Self {
        let bytes = byte_limit.map_or(u64::MAX, Bytes::get);
        match limit.resolve(env.rate, env.base_rtt) {
            Limit::Packets(packets) => QueueLimit { packets, bytes },
            Limit::Bytes(limit) => QueueLimit { packets: u64::MAX, bytes: bytes.min(limit.get()) },
            Limit::Bdp(_) | Limit::Unlimited => QueueLimit { packets: u64::MAX, bytes },
        }
    }
    /// True if a packet of `size` bytes fits.
    #[inline]
    pub fn admits(self, queued: Backlog, size: u32) -> bool {
        queued.packets < self.packets && queued.bytes + u64::from(size) <= self.bytes
    }
    /// True if the backlog is above the limit, which was larger before.
    pub fn is_exceeded(self, queued: Backlog) -> bool {
        queued.packets > self.packets || queued.bytes > self.bytes
    }
}

/// Packets in order of arrival, with their bytes counted.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Fifo {
    /// Adds a packet at the tail.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.size());
        self.packets.push_back(packet);
    }
    /// Adds a packet at the tail, or drops it if there is no room for it.
    #[inline]
    pub fn push_within(&mut self, room: QueueLimit, packet: Packet, cx: &mut Context<'_>) {
        if room.admits(self.backlog(), packet.size()) {
            self.push(packet);
        } else {
            cx.drop(packet, Reason::Overlimit);
        }
    }
    /// Drops from the head what there is no room for: the limit was larger before.
    pub fn trim(&mut self, room: QueueLimit, cx: &mut Context<'_>) {
        while room.is_exceeded(self.backlog())
            && let Some(head) = self.pop()
        {
            cx.drop(head, Reason::Overlimit);
        }
    }
    /// The same from the tail.
    pub fn trim_tail(&mut self, room: QueueLimit, cx: &mut Context<'_>) {
        while room.is_exceeded(self.backlog())
            && let Some(tail) = self.pop_tail()
        {
            cx.drop(tail, Reason::Overlimit);
        }
    }
    /// Drops all packets.
    pub fn purge(&mut self, cx: &mut Context<'_>) {
        self.trim(QueueLimit { packets: 0, bytes: 0 }, cx);
    }
    /// Takes the packet at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }
    /// Takes the packet at the tail.
    #[inline]
    pub fn pop_tail(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }
    /// The packet at the head.
    #[inline]
    pub fn head(&self) -> Option<&Packet> {
        self.packets.front()
    }
    /// The packet at a place, counted from the head.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Packet> {
        self.packets.get(index)
    }
    /// Takes the packet at a place out; the others keep their order.
    pub fn remove(&mut self, index: usize) -> Option<Packet> {
        let packet = self.packets.remove(index)?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }
    /// True if the queue is empty.
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
