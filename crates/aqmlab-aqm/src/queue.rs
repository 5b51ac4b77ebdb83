//! A discipline with its counts: the base code that checks conservation, so
//! that no discipline has to.

use alloc::{boxed::Box, vec::Vec};

use aqmlab_core::{Framing, Packet, Result, Stream, Time};

use crate::discipline::{
    Backlog, Context, Headers, LinkEnv, Note, QueueConfig, QueueDiscipline, Reason, Sink,
};

/// Counts of the packets of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Packets offered to the queue.
    pub arrived: u64,
    /// Bytes of these packets.
    pub arrived_bytes: u64,
    /// Packets that left the queue for the link.
    pub delivered: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped: [u64; Reason::COUNT],
    /// Bytes dropped, for all reasons.
    pub dropped_bytes: u64,
    /// Packets marked, by reason.
    pub marked: [u64; Reason::COUNT],
}

impl Counts {
    /// Returns the number of packets dropped, for all reasons.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
    /// Returns the number of packets marked, for all reasons.
    pub fn marked_total(&self) -> u64 {
        self.marked.iter().sum()
    }
    /// Returns the counts since `before`, an earlier state. Packets queued at that time count as
    /// arrived: arrived = delivered + dropped + queued again.
    pub fn since(&self, before: &Counts) -> Counts {
        let less = |now: &[u64; Reason::COUNT], then: &[u64; Reason::COUNT]| {
            core::array::from_fn(|reason| now[reason] - then[reason])
        };
        Counts {
            arrived: self.arrived - before.delivered - before.dropped_total(),
            arrived_bytes: self.arrived_bytes - before.delivered_bytes - before.dropped_bytes,
            delivered: self.delivered - before.delivered,
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            dropped: less(&self.dropped, &before.dropped),
            dropped_bytes: self.dropped_bytes - before.dropped_bytes,
            marked: less(&self.marked, &before.marked),
        }
    }
}

/// Sizes that a discipline counts in place of the packets' own.
///
/// # Source
/// tc-stab(8): `__qdisc_calculate_pkt_len` of Linux's sch_api writes the size that every discipline
/// below reads.
#[derive(Clone)]
struct SizeTable {
    framing: Framing,
    /// Position and size of each queued packet, by the position that it has in the queue.
    own: Vec<(u32, u32)>,
    unused: Vec<u32>,
}

impl SizeTable {
    fn enter(&mut self, packet: &mut Packet) {
        let own = (packet.position, packet.size());
        packet.set_size(self.framing.wire_size(own.1));
        packet.position = self.unused.pop().unwrap_or_else(|| {
            self.own.push(own);
            self.own.len() as u32 - 1
        });
        self.own[packet.position as usize] = own;
    }
    fn leave(&mut self, packet: &mut Packet) {
        let (position, size) = self.own[packet.position as usize];
        self.unused.push(packet.position);
        packet.position = position;
        packet.set_size(size);
    }
    /// The packet's own size.
    fn of(&self, packet: &Packet) -> u64 {
        self.own[packet.position as usize].1.into()
    }
}

/// A queue discipline, its random stream and its counts.
///
/// After every call the owner takes the dropped packets back with
/// [`Queue::take_dropped`].
#[derive(Clone)]
pub struct Queue {
    discipline: Box<dyn QueueDiscipline>,
    random: Stream,
    sink: Sink,
    /// Packets that arrived, and neither left nor were dropped.
    backlog: Backlog,
    /// Bytes that a shaper has taken and holds.
    held: u64,
    /// Counts of delivered and dropped packets.
    gone: Counts,
    sizes: Option<Box<SizeTable>>,
}

impl Queue {
    /// Returns a queue that draws from `random`.
    pub fn new(discipline: Box<dyn QueueDiscipline>, random: Stream) -> Self {
        Queue {
            discipline,
            random,
            sink: Sink::default(),
            backlog: Backlog::default(),
            held: 0,
            gone: Counts::default(),
            sizes: None,
        }
    }

    /// Makes the discipline count the sizes that packets have with this framing, as tc-stab(8)
    /// does. The counts of the queue are in the packets' own sizes. The queue must be empty.
    #[must_use]
    pub fn with_size_table(mut self, framing: Framing) -> Self {
        self.sizes = Some(Box::new(SizeTable { framing, own: Vec::new(), unused: Vec::new() }));
        self
    }

    /// Enqueues an arriving packet.
    #[inline]
    pub fn enqueue(&mut self, mut packet: Packet, now: Time) {
        packet.set_arrival(now);
        self.enqueue_stamped(packet, now, &());
    }

    /// Enqueues a packet whose arrival time is `now`, with access to the headers of packets.
    #[inline]
    pub fn enqueue_stamped(&mut self, packet: Packet, now: Time, headers: &dyn Headers) {
        debug_assert!(packet.arrival() == now);
        self.took(packet.size());
        if self.sizes.is_some() {
            return self.enqueue_resized(packet, now, headers);
        }
        self.offer(packet, now, headers);
    }

    // Apart, so that the usual packet is not changed and need not be copied.
    #[inline(never)]
    fn enqueue_resized(&mut self, mut packet: Packet, now: Time, headers: &dyn Headers) {
        if let Some(sizes) = &mut self.sizes {
            sizes.enter(&mut packet);
        }
        self.offer(packet, now, headers);
    }

    #[inline(always)]
    fn offer(&mut self, packet: Packet, now: Time, headers: &dyn Headers) {
        let (random, sink) = (&mut self.random, &mut self.sink);
        let mut cx = Context { now, random, headers, held: self.held, sink };
        self.discipline.enqueue(packet, &mut cx);
    }

    /// Returns the next packet to send, for a link that is free.
    #[inline]
    pub fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let mut cx = Context::new(now, &mut self.random, &mut self.sink);
        let mut packet = self.discipline.dequeue(&mut cx);
        // Not taken out of the option and put in again: that would be copies.
        if let Some(packet) = &mut packet {
            if let Some(sizes) = &mut self.sizes {
                sizes.leave(packet);
            }
            self.gave(packet.size());
        }
        packet
    }

    /// Counts a packet of this size that arrives at an idle link, if it is sent at once and changes
    /// no state of the discipline. Returns false if it must be enqueued.
    #[inline]
    pub fn lets_pass(&mut self, size: u32) -> bool {
        let passes = self.discipline.passes(size);
        if passes {
            self.gone.delivered += 1;
            self.gone.delivered_bytes += u64::from(size);
        }
        passes
    }

    #[inline(always)]
    fn took(&mut self, size: u32) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(size);
    }

    #[inline(always)]
    fn gave(&mut self, size: u32) {
        self.gone.delivered += 1;
        self.gone.delivered_bytes += u64::from(size);
        self.left(size);
    }

    /// A packet of this size is not in the queue any more. (A discipline that gives more than it
    /// took is found at the end: see [`assert_conservation`](Self::assert_conservation).)
    #[inline(always)]
    fn left(&mut self, size: u32) {
        self.backlog.packets = self.backlog.packets.wrapping_sub(1);
        self.backlog.bytes = self.backlog.bytes.wrapping_sub(u64::from(size));
    }

    /// Returns the time of the discipline's timer.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.discipline.next_wakeup()
    }

    /// See [`QueueDiscipline::has_fixed_timer`].
    pub fn has_fixed_timer(&self) -> bool {
        self.discipline.has_fixed_timer()
    }

    /// Handles the discipline's timer.
    pub fn on_wakeup(&mut self, now: Time) {
        let mut cx = Context::new(now, &mut self.random, &mut self.sink);
        cx.held = self.held;
        self.discipline.on_wakeup(&mut cx);
    }

    /// States the bytes of the packet that a TBF has taken and holds.
    pub fn hold(&mut self, bytes: u64) {
        self.held = bytes;
    }

    /// Passes the packets dropped since the last call to `each`, in order.
    #[inline(always)]
    pub fn take_dropped(&mut self, each: impl FnMut(Packet, Reason)) {
        // Asked after every call, and seldom so.
        if !self.sink.dropped.is_empty() {
            self.drain_dropped(each);
        }
    }

    #[inline(never)]
    fn drain_dropped(&mut self, mut each: impl FnMut(Packet, Reason)) {
        let mut dropped = core::mem::take(&mut self.sink.dropped);
        for (mut packet, reason) in dropped.drain(..) {
            if let Some(sizes) = &mut self.sizes {
                sizes.leave(&mut packet);
            }
            self.gone.dropped[reason as usize] += 1;
            self.gone.dropped_bytes += u64::from(packet.size());
            self.left(packet.size());
            each(packet, reason);
        }
        self.sink.dropped = dropped;
    }

    /// Records which packets are marked from now on, for [`take_marks`](Self::take_marks).
    pub fn record_marks(&mut self) {
        self.sink.marks.get_or_insert_default();
    }

    /// Returns the keys of the packets marked since the last call, in order, if they are
    /// [recorded](Self::record_marks).
    pub fn take_marks(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.sink.marks.iter_mut().flat_map(|marks| marks.drain(..))
    }

    /// Gives the discipline other parameters, to which there is a
    /// [`change`](crate::Transition::Change) from its own; take the
    /// [dropped](Self::take_dropped) packets afterwards.
    pub fn change(&mut self, to: &QueueConfig, env: &LinkEnv, now: Time) {
        let mut cx = Context::new(now, &mut self.random, &mut self.sink);
        to.change_checked(&mut *self.discipline, env, &mut cx);
    }

    /// Dequeues all packets, in the discipline's order and with their arrival times, and passes
    /// them to `each`. [Take the dropped packets](Self::take_dropped) afterwards. For a discipline
    /// that shapes, the times that it waits for are taken as reached. Returns what the discipline
    /// keeps.
    fn drain(&mut self, now: Time, mut each: impl FnMut(Packet)) -> Backlog {
        let mut time = now;
        while self.discipline.backlog().packets > 0 {
            let mut cx = Context::new(time, &mut self.random, &mut self.sink);
            if let Some(packet) = self.discipline.dequeue(&mut cx) {
                each(packet);
                continue;
            }
            match self.discipline.next_wakeup() {
                Some(next) if next > time && self.discipline.backlog().packets > 0 => time = next,
                _ => break,
            }
        }
        self.discipline.backlog()
    }

    /// Replaces the discipline. The new one gets the packets that the old one gives, in its order
    /// and with their arrival times; [take the dropped packets](Self::take_dropped) afterwards. A
    /// discipline that shapes gives them as if the times had come that it waits for. Packets that
    /// the old discipline keeps count as dropped for want of room, and are returned.
    pub fn replace(&mut self, mut discipline: Box<dyn QueueDiscipline>, now: Time) -> Backlog {
        let mut packets = Vec::new();
        let mut kept = self.drain(now, |packet| packets.push(packet));
        if let Some(sizes) = &self.sizes {
            let dropped = self.sink.dropped.iter().map(|(packet, _)| packet);
            let known = packets.iter().chain(dropped).map(|packet| sizes.of(packet));
            kept.bytes = self.backlog.bytes - known.sum::<u64>();
        }
        self.gone.dropped[Reason::Overlimit as usize] += kept.packets;
        self.gone.dropped_bytes += kept.bytes;
        self.backlog.packets = self.backlog.packets.wrapping_sub(kept.packets);
        self.backlog.bytes = self.backlog.bytes.wrapping_sub(kept.bytes);
        // Its timers run as if it had been there, empty, all the time.
        while let Some(time) = discipline.next_wakeup().filter(|time| *time <= now) {
            let mut cx = Context::new(time, &mut self.random, &mut self.sink);
            discipline.on_wakeup(&mut cx);
            if discipline.next_wakeup() == Some(time) {
                break;
            }
        }
        let mut cx = Context::new(now, &mut self.random, &mut self.sink);
        packets.into_iter().for_each(|packet| discipline.enqueue(packet, &mut cx));
        self.discipline = discipline;
        kept
    }

    /// At the end of a run, passes the arrival time of every packet that is still queued to `each`.
    /// Returns the number of packets that the discipline keeps.
    pub fn into_queued(mut self, now: Time, mut each: impl FnMut(Time)) -> u64 {
        if self.discipline.list(&mut |packet| each(packet.arrival())) {
            return 0;
        }
        let kept = self.drain(now, |packet| each(packet.arrival()));
        self.take_dropped(|packet, _| each(packet.arrival()));
        kept.packets
    }

    /// Returns the backlog by the discipline; its bytes by the counts where the discipline counts
    /// other sizes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        let backlog = self.discipline.backlog();
        let bytes = if self.sizes.is_some() { self.backlog.bytes } else { backlog.bytes };
        Backlog { bytes, ..backlog }
    }

    /// Returns the backlog by the counts, without a call of the discipline.
    /// [Take the dropped packets](Self::take_dropped) first.
    #[inline]
    pub fn counted(&self) -> Backlog {
        self.backlog
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        let packets = self.gone.delivered + self.gone.dropped_total();
        let bytes = self.gone.delivered_bytes + self.gone.dropped_bytes;
        Counts {
            arrived: self.backlog.packets.wrapping_add(packets),
            arrived_bytes: self.backlog.bytes.wrapping_add(bytes),
            marked: self.sink.marked,
            ..self.gone
        }
    }

    /// See [`QueueDiscipline::observe`].
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.discipline.observe(see);
    }

    /// See [`QueueDiscipline::check_clone`].
    ///
    /// # Errors
    /// Returns an error if the discipline cannot be cloned.
    pub fn check_clone(&self) -> Result<()> {
        self.discipline.check_clone()
    }

    /// See [`QueueDiscipline::notes`].
    pub fn notes(&self) -> Vec<Note> {
        self.discipline.notes()
    }

    /// Checks that arrived = delivered + dropped + queued, in packets and in
    /// bytes. Also in release builds: a queue that loses packets without
    /// saying so makes every result worthless.
    ///
    /// # Panics
    /// Panics if packets or bytes are missing: a bug of the discipline.
    pub fn assert_conservation(&self, name: &str) {
        let Backlog { packets, bytes } = self.backlog();
        let counts = self.counts();
        let accounted = counts.delivered + counts.dropped_total() + packets;
        assert_eq!(counts.arrived, accounted, "{name}: packets not conserved: {counts:?}");
        let accounted = counts.delivered_bytes + counts.dropped_bytes + bytes;
        assert_eq!(counts.arrived_bytes, accounted, "{name}: bytes not conserved: {counts:?}");
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::framing::LinkLayer;
    use aqmlab_core::{Bytes, Limit};

    use super::*;
    use crate::discipline::Discipline;
    use crate::disciplines::{droptail::DropTailParams, drr::DrrParams};
    use crate::testing::{TestPacket, drain, env, queue};

    /// Two packets of 1000 bytes are queued at the end of the warm-up; one is sent before it and
    /// one after it, and two arrive after it.
    #[test]
    fn counts_since_a_time_include_the_packets_queued_then() {
        let mut queue = queue(&DropTailParams::default());
        let arrive = |queue: &mut Queue| queue.enqueue(Packet::of_size(1000), Time::ZERO);
        (0..3).for_each(|_| arrive(&mut queue));
        queue.dequeue(Time::ZERO);
        let before = queue.counts();
        (0..2).for_each(|_| arrive(&mut queue));
        queue.dequeue(Time::ZERO);
        let since = queue.counts().since(&before);
        assert_eq!((since.arrived, since.arrived_bytes), (4, 4000));
        assert_eq!((since.delivered, since.delivered_bytes), (1, 1000));
        assert_eq!(since.arrived, since.delivered + queue.backlog().packets);
    }

    /// Acknowledgements of 52 bytes are two cells of ADSL, 106 bytes: two in a turn of 212 bytes
    /// and not four; the owner has the packets as they were.
    #[test]
    fn a_size_table_is_for_the_discipline_alone() {
        let params = DrrParams {
            quantum: Some(Bytes::new(212)),
            limit: Limit::Bytes(Bytes::new(424)),
            ..DrrParams::default()
        };
        let mut queue = queue(&params).with_size_table(LinkLayer::PppoeLlcsnap.framing());
        for (number, flow) in [1, 1, 1, 2, 2].into_iter().enumerate() {
            let mut packet = Packet::of_flow(flow).with_size(52);
            packet.position = number as u32;
            queue.enqueue(packet, Time::ZERO);
        }
        let mut dropped = Vec::new();
        queue.take_dropped(|packet, _| dropped.push((packet.position, packet.size())));
        assert_eq!(dropped, [(2, 52)], "the third does not fit beside the fifth");
        assert_eq!(queue.backlog(), Backlog { packets: 4, bytes: 208 });
        queue.replace(params.build(&env()), Time::ZERO);
        assert_eq!(queue.backlog(), Backlog { packets: 4, bytes: 208 });
        let order = drain(&mut queue);
        let order: Vec<_> = order.iter().map(|packet| (packet.position, packet.size())).collect();
        assert_eq!(order, [0, 1, 3, 4].map(|position| (position, 52)));
        queue.assert_conservation("queue");
    }
}
