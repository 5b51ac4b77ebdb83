//! Flow queueing: one queue for each flow, a scheduler between them, and a
//! discipline inside each.
//!
//! [`hash`] finds the queue of a packet, [`drr`], [`rounds`] and [`ring`] say
//! which is served next. When the hash changes, the packets move to their new
//! queues in the order of the old queues' numbers; the state of the discipline
//! inside belongs to the queue and stays.

use alloc::vec::Vec;

use aqmlab_core::{Bytes, Limit, Packet, Span, Time};

pub(crate) mod drr;
pub(crate) mod drr_plain;
pub(crate) mod hash;
pub(crate) mod sfqcodel_round_robin;

use crate::discipline::{Backlog, Context, LinkEnv, Machine, QueueDiscipline, Reason};
use crate::disciplines::codel::Source;
use crate::disciplines::pie::linux::JIFFY;
use crate::fifo::Fifo;
use crate::fq::hash::{FlowClassifier, Sharing};

/// Linux (fq_codel_change, fq_pie_change, sfq_change): a smaller quantum, in bytes, counts as this one.
pub(crate) const LEAST_QUANTUM: u64 = 256;

/// AQM inside each flow's queue.
pub(crate) trait FlowAqm: Clone + Send + 'static {
    /// Settings shared by all flows.
    type Settings: Clone + Send + 'static;
    /// The state of a flow that has not been seen yet.
    fn new(settings: &Self::Settings) -> Self;
    /// Lets an arriving packet in, marked or not, or drops it; `backlog` are
    /// the flow's bytes before it.
    #[inline]
    fn enqueue(
        &mut self,
        _settings: &Self::Settings,
        packet: Packet,
        _backlog: u64,
        _cx: &mut Context<'_>,
    ) -> Option<Packet> {
        Some(packet)
    }
    /// Returns the next packet of this flow; `None` if the flow has no packet to send.
    fn dequeue(
        &mut self,
        settings: &Self::Settings,
        source: &mut FlowSource<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Packet>;
    /// So many packets of the flow were dropped from the full buffer.
    fn overflowed(&mut self, _settings: &Self::Settings, _packets: u64, _now: Time) {}
    /// An arriving packet of the flow did not fit into the buffer.
    fn refused(&mut self) {}
    /// After which times [`tick`](Self::tick) wants to be called.
    fn period(_settings: &Self::Settings) -> Option<Span> {
        None
    }
    /// Number of buckets that one run of the timer reaches; the others follow in runs a jiffy apart.
    fn buckets_at_once(_settings: &Self::Settings) -> u32 {
        u32::MAX
    }
    /// Ends a period in which the flow has `backlog` bytes. Returns true if the flow needs the next
    /// call even without arrivals.
    fn tick(&mut self, _settings: &Self::Settings, _backlog: u64) -> bool {
        false
    }
}

/// Nothing: a flow's queue is first in, first out.
#[derive(Clone)]
pub(crate) struct NoAqm;

impl FlowAqm for NoAqm {
    type Settings = ();

    fn new(_settings: &()) -> Self {
        NoAqm
    }
    #[inline]
    fn dequeue(
        &mut self,
        _settings: &(),
        source: &mut FlowSource<'_>,
        _cx: &mut Context<'_>,
    ) -> Option<Packet> {
        source.pop()
    }
}

/// Scheduler of flows.
pub(crate) trait FlowScheduler: Clone + Send + 'static {
    /// A scheduler of so many buckets, whose turns have so many bytes.
    fn new(buckets: u64, quantum: Bytes) -> Self;
    /// Other turns from now on.
    fn set_quantum(&mut self, _quantum: Bytes) {}
    /// Whether the scheduler has the bucket on its lists.
    fn is_active(&self, bucket: u32) -> bool;
    /// Adds a bucket that is not active and received a packet.
    fn activate(&mut self, bucket: u32);
    /// The bucket to be served next; `head` gives the size of a bucket's first
    /// packet, if it has one.
    fn pick(&mut self, head: impl Fn(u32) -> Option<u32>) -> Option<u32>;
    /// The bucket picked gave a packet of this size, and perhaps its last.
    fn served(&mut self, bucket: u32, size: u32, is_empty: bool);
    /// The bucket picked gave none.
    fn gave_none(&mut self, bucket: u32);
    /// The buckets on its lists.
    fn active(&self) -> impl Iterator<Item = u32>;
    /// Takes all buckets off its lists.
    fn clear(&mut self);
}

/// Parameters of a discipline that is an [`Fq`] with the AQM `I` in each flow's queue.
pub(crate) trait FlowQueues<I: FlowAqm> {
    /// Returns the parameters on the link of `env`.
    fn fq(&self, env: &LinkEnv) -> FqParams<'_, I::Settings>;
}

/// Parameters that a running [`Fq`] cannot take.
pub(crate) const FIXED: &[&str] = &["flows", "variant", "isolation", "hashing", "ways"];

impl<P: FlowQueues<I>, I: FlowAqm, S: FlowScheduler> Machine<P> for Fq<I, S> {
    fn new(params: &P, env: &LinkEnv) -> Self {
        Fq::with(params.fq(env))
    }

    fn change(&mut self, params: &P, env: &LinkEnv, cx: &mut Context<'_>) {
        self.rewrite(params.fq(env), cx);
    }
}

/// Action when an arriving packet does not fit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Overflow {
    /// The arriving packet is dropped.
    Tail,
    /// The flow with the most bytes loses packets from its head: up to
    /// `batch`, or half of its bytes (RFC 8290, section 4.1.3).
    LongestFlow { batch: u64, memory_limit: u64 },
    /// The flow with the most bytes loses packets, from its head or its tail,
    /// until the arriving one fits (McKenney 1990: its buffer is stolen).
    Steal { from_head: bool },
}

/// One flow's queue.
#[derive(Clone)]
struct Bucket<I> {
    fifo: Fifo,
    inner: I,
    /// True if the bucket is on the list that the timer visits.
    is_awake: bool,
}

/// The parameters of flow queueing; `S` are those of the discipline inside.
pub(crate) struct FqParams<'a, S> {
    pub sharing: &'a Sharing,
    pub buckets: u64,
    /// Bytes that a flow may send in its turn, for schedulers that count bytes.
    pub quantum: Bytes,
    pub settings: S,
    /// Resolved.
    pub limit: Limit,
    pub overflow: Overflow,
    /// The largest packet to begin with, for inner disciplines that learn it.
    pub largest: u64,
}

/// The generic discipline.
#[derive(Clone)]
pub(crate) struct Fq<I: FlowAqm, S> {
    buckets: Vec<Bucket<I>>,
    classifier: FlowClassifier,
    scheduler: S,
    settings: I::Settings,
    limit: Limit,
    overflow: Overflow,
    total: Backlog,
    /// The largest packet seen, for inner disciplines that learn it.
    largest: u64,
    timer: Option<Timer>,
    /// Packets between their old and new buckets.
    moving: Fifo,
}

/// The timer of the inner disciplines.
#[derive(Clone)]
struct Timer {
    period: Span,
    next: Time,
    /// The first bucket that the next run reaches.
    from: u32,
    /// The buckets whose state may change at the next tick.
    awake: Vec<u32>,
}

impl<I: FlowAqm, S: FlowScheduler> Fq<I, S> {
    pub fn with(params: FqParams<'_, I::Settings>) -> Self {
        let FqParams { sharing, buckets, quantum, settings, limit, overflow, largest } = params;
        let bucket = || Bucket { fifo: Fifo::default(), inner: I::new(&settings), is_awake: false };
        let timer = I::period(&settings).map(|period| Timer {
            period,
            next: Time::ZERO + period,
            from: 0,
            awake: Vec::new(),
        });
        Fq {
            buckets: (0..buckets).map(|_| bucket()).collect(),
            classifier: FlowClassifier::of(sharing, buckets),
            scheduler: S::new(buckets, quantum),
            settings,
            limit,
            overflow,
            total: Backlog::default(),
            largest,
            timer,
            moving: Fifo::default(),
        }
    }

    fn is_over_limit(&self) -> bool {
        let over = match self.limit {
            Limit::Packets(limit) => self.total.packets > limit,
            Limit::Bytes(limit) => self.total.bytes > limit.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        };
        over || self.is_over_memory()
    }

    fn is_over_memory(&self) -> bool {
        match self.overflow {
            Overflow::LongestFlow { memory_limit, .. } => self.total.bytes > memory_limit,
            Overflow::Tail | Overflow::Steal { .. } => false,
        }
    }

    /// Why a packet goes if there are too many.
    fn overflow_reason(&self) -> Reason {
        if self.is_over_memory() { Reason::Overmemory } else { Reason::Overlimit }
    }

    /// The bucket with the most bytes; of equals the one with the lowest number.
    fn longest(&self) -> Option<u32> {
        let most = |index: &u32| {
            let fifo = &self.buckets[*index as usize].fifo;
            // Packets may have no bytes, and active buckets no packets.
            (fifo.backlog().bytes, !fifo.is_empty(), core::cmp::Reverse(*index))
        };
        self.scheduler.active().max_by_key(most)
    }

    /// True if an arriving packet of this size fits.
    pub fn has_room(&self, size: u32) -> bool {
        self.limit.admits(self.total.packets, self.total.bytes, u64::from(size))
    }

    /// The bytes of a bucket, and of the one that has the most.
    pub fn bytes_and_most(&self, bucket: u32) -> (u64, u64) {
        let bytes = |index: u32| self.buckets[index as usize].fifo.backlog().bytes;
        (bytes(bucket), self.longest().map_or(0, bytes))
    }

    /// Whether an arriving packet of this size fits, perhaps after another
    /// had to give way.
    fn makes_room(&mut self, size: u64, cx: &mut Context<'_>) -> bool {
        loop {
            if self.limit.admits(self.total.packets, self.total.bytes, size) {
                return true;
            }
            match self.overflow {
                Overflow::LongestFlow { .. } => return true,
                Overflow::Steal { from_head } if self.limit.admits(0, 0, size) => {
                    self.steal(from_head, cx);
                }
                Overflow::Steal { .. } | Overflow::Tail => return false,
            }
        }
    }

    /// Drops a packet of the flow with the most bytes.
    fn steal(&mut self, from_head: bool, cx: &mut Context<'_>) {
        let longest = self.longest().expect("packets are in active buckets");
        let bucket = &mut self.buckets[longest as usize];
        let packet = if from_head { bucket.fifo.pop() } else { bucket.fifo.pop_tail() };
        let packet = packet.expect("it has the most bytes");
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size());
        bucket.inner.overflowed(&self.settings, 1, cx.now);
        cx.drop(packet, Reason::Overlimit);
    }

    /// Adds a packet, which is counted already, to its bucket.
    fn put(&mut self, index: u32, packet: Packet) {
        let bucket = &mut self.buckets[index as usize];
        bucket.fifo.push(packet);
        if let Some(timer) = &mut self.timer
            && !bucket.is_awake
        {
            bucket.is_awake = true;
            timer.awake.push(index);
        }
        if !self.scheduler.is_active(index) {
            self.scheduler.activate(index);
        }
    }

    /// Puts all packets where the new hash wants them.
    fn rehash(&mut self) {
        self.scheduler.clear();
        for bucket in &mut self.buckets {
            while let Some(packet) = bucket.fifo.pop() {
                self.moving.push(packet);
            }
        }
        while let Some(packet) = self.moving.pop() {
            let index = self.bucket_of(&packet);
            self.put(index, packet);
        }
    }

    /// The bucket of a packet.
    #[inline]
    pub fn bucket_of(&mut self, packet: &Packet) -> u32 {
        let scheduler = &self.scheduler;
        self.classifier.bucket(packet, |bucket| !scheduler.is_active(bucket))
    }

    /// Drops a batch from the head of the flow with the most bytes.
    fn drop_from_fattest(&mut self, batch: u64, cx: &mut Context<'_>) {
        let reason = self.overflow_reason();
        let longest = self.longest().expect("packets are in active buckets");
        let longest = &mut self.buckets[longest as usize];
        let enough = longest.fifo.backlog().bytes / 2;
        let (mut packets, mut dropped) = (0, 0);
        while packets < batch
            && dropped < enough.max(1)
            && let Some(packet) = longest.fifo.pop()
        {
            packets += 1;
            dropped += u64::from(packet.size());
            cx.drop(packet, reason);
        }
        longest.inner.overflowed(&self.settings, packets, cx.now);
        self.total.packets -= packets;
        self.total.bytes -= dropped;
    }
}

/// One flow's queue as a source.
pub(crate) struct FlowSource<'a> {
    fifo: &'a mut Fifo,
    total: &'a mut Backlog,
    largest: &'a mut u64,
}

impl FlowSource<'_> {
    /// The bytes of this flow alone.
    #[inline]
    pub fn flow_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }
}

impl Source for FlowSource<'_> {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.fifo.pop()?;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size());
        Some(packet)
    }
    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }
    #[inline]
    fn own_bytes(&self) -> u64 {
        self.flow_bytes()
    }
    #[inline]
    fn largest(&mut self) -> &mut u64 {
        self.largest
    }
}

impl<I: FlowAqm, S: FlowScheduler> Fq<I, S> {
    /// Writes other parameters; buckets, sharing and the largest packet stay. What a smaller limit
    /// has no room for is taken out as if it were sent, and dropped (Linux, fq_codel_change and
    /// fq_pie_change); where arriving packets steal room from the longest queue, it loses them.
    pub fn rewrite(&mut self, params: FqParams<'_, I::Settings>, cx: &mut Context<'_>) {
        self.classifier.set_perturb(params.sharing.hashing.perturb, cx.now);
        self.scheduler.set_quantum(params.quantum);
        if let (Some(timer), Some(period)) = (&mut self.timer, I::period(&params.settings)) {
            timer.period = period;
        }
        (self.settings, self.limit, self.overflow) =
            (params.settings, params.limit, params.overflow);
        while self.is_over_limit() {
            if let Overflow::Steal { from_head } = self.overflow {
                self.steal(from_head, cx);
                continue;
            }
            let reason = self.overflow_reason();
            let Some(packet) = self.dequeue(cx) else { break };
            cx.drop(packet, reason);
        }
    }
}

impl<I, S> QueueDiscipline for Fq<I, S>
where
    I: FlowAqm,
    S: FlowScheduler,
{
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let size = u64::from(packet.size());
        let index = self.bucket_of(&packet);
        if !self.makes_room(size, cx) {
            self.buckets[index as usize].inner.refused();
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        let bucket = &mut self.buckets[index as usize];
        let backlog = bucket.fifo.backlog().bytes;
        let Some(packet) = bucket.inner.enqueue(&self.settings, packet, backlog, cx) else {
            return;
        };
        self.total.packets += 1;
        self.total.bytes += size;
        self.put(index, packet);
        if let Overflow::LongestFlow { batch, .. } = self.overflow
            && self.is_over_limit()
        {
            self.drop_from_fattest(batch, cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let buckets = &self.buckets;
            let head = |i: u32| buckets[i as usize].fifo.head().map(Packet::size);
            let picked = self.scheduler.pick(head)?;
            let bucket = &mut self.buckets[picked as usize];
            let mut source = FlowSource {
                fifo: &mut bucket.fifo,
                total: &mut self.total,
                largest: &mut self.largest,
            };
            match bucket.inner.dequeue(&self.settings, &mut source, cx) {
                Some(packet) => {
                    self.scheduler.served(picked, packet.size(), bucket.fifo.is_empty());
                    return Some(packet);
                }
                None => self.scheduler.gave_none(picked),
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.classifier.next_change_or(self.timer.as_ref().map(|timer| timer.next))
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        if self.classifier.change_if_due(cx.now, cx.random) {
            self.rehash();
        }
        let Some(timer) = self.timer.as_mut().filter(|timer| timer.next <= cx.now) else { return };
        let from = timer.from;
        let end = from.saturating_add(I::buckets_at_once(&self.settings));
        let is_last = end as usize >= self.buckets.len();
        timer.from = if is_last { 0 } else { end };
        timer.next += if is_last { timer.period } else { JIFFY };
        timer.awake.retain(|index| {
            if !(from..end).contains(index) {
                return true;
            }
            let bucket = &mut self.buckets[*index as usize];
            let backlog = bucket.fifo.backlog().bytes;
            bucket.is_awake = bucket.inner.tick(&self.settings, backlog) || backlog > 0;
            bucket.is_awake
        });
    }

    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let active = self.buckets.iter().filter(|bucket| !bucket.fifo.is_empty()).count();
        see("active_flows", active as f64);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Stream;

    use super::drr::Drr;
    use super::*;
    use crate::discipline::Sink;
    use crate::testing::{TestPacket, at};

    /// Counts the runs of the timer that reach it.
    #[derive(Clone)]
    struct Counting(u32);

    impl FlowAqm for Counting {
        type Settings = ();
        fn new((): &()) -> Self {
            Counting(0)
        }
        fn dequeue(
            &mut self,
            (): &(),
            source: &mut FlowSource<'_>,
            _: &mut Context<'_>,
        ) -> Option<Packet> {
            source.pop()
        }
        fn period((): &()) -> Option<Span> {
            Some(Span::from_millis(15))
        }
        fn buckets_at_once((): &()) -> u32 {
            2
        }
        fn tick(&mut self, (): &(), _: u64) -> bool {
            self.0 += 1;
            true
        }
    }

    #[test]
    fn runs_of_the_timer_take_turns_with_the_buckets() {
        let mut fq = Fq::<Counting, Drr>::with(FqParams {
            sharing: &Sharing::default(),
            buckets: 3,
            quantum: Bytes::new(1514),
            settings: (),
            limit: Limit::Unlimited,
            overflow: Overflow::Tail,
            largest: 0,
        });
        (0..3).for_each(|index| fq.put(index, Packet::of_flow(index)));
        let (mut random, mut sink) = (Stream::from_state(1), Sink::default());
        for (millis, runs) in [(15, [1, 1, 0]), (16, [1, 1, 1]), (31, [2, 2, 1]), (32, [2, 2, 2])] {
            assert_eq!(fq.next_wakeup(), Some(at(millis)));
            fq.on_wakeup(&mut Context::new(at(millis), &mut random, &mut sink));
            assert_eq!([0, 1, 2].map(|index| fq.buckets[index].inner.0), runs);
        }
    }
}
