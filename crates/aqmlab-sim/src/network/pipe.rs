//! The way from a link's transmitter to its far end.
//!
//! Losses, duplication and delays act here, after the transmission: a packet
//! that is lost on the way has used the link, and no queue has dropped it.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use aqmlab_core::{Span, Stream, Time};

use super::Shared;
use super::carried::{Carried, Fate};
use super::events::LinkEvent;
use super::losses::Losses;
use crate::impairment::{
    ChanceState, DelayProcess, JitterState, Loss, LossState, PropagationConfig, SlotState,
};

/// What happened to packets on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PropagationCounts {
    /// Packets that were lost.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Packets that came twice, counted once.
    pub duplicated: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
}

impl PropagationCounts {
    /// What has happened since `before`, an earlier state.
    pub fn since(&self, before: &PropagationCounts) -> PropagationCounts {
        PropagationCounts {
            lost: self.lost - before.lost,
            lost_bytes: self.lost_bytes - before.lost_bytes,
            duplicated: self.duplicated - before.duplicated,
            reordered: self.reordered - before.reordered,
        }
    }
}

/// Propagation of packets.
pub(crate) enum Pipe<P> {
    /// All packets take the same time.
    Fixed(FixedPipe<P>),
    /// Packets take different times, get lost or are duplicated.
    Varied(Box<Varied<P>>),
}

/// Propagation that takes the same time for all packets, so that they keep their order.
pub(crate) struct FixedPipe<P> {
    pub delay: Span,
    packets: VecDeque<(Time, P)>,
}

impl<P: Carried> FixedPipe<P> {
    pub fn new(delay: Span) -> Self {
        FixedPipe { delay, packets: VecDeque::new() }
    }

    /// Takes a packet that is sent at `sent`; its arrival is an event of the link `index`.
    #[inline(always)]
    pub fn push(&mut self, packet: P, sent: Time, index: u32, shared: &mut Shared<P>) {
        let arrival = sent + self.delay;
        if self.packets.is_empty() {
            shared.events.push(arrival, LinkEvent::Delivery(index));
        }
        self.packets.push_back((arrival, packet));
    }

    /// Takes the packet that arrives now.
    #[inline(always)]
    pub fn pop(&mut self, index: u32, shared: &mut Shared<P>) -> Option<P> {
        let packet = self.packets.pop_front().map(|(_, packet)| packet);
        debug_assert!(packet.is_some(), "a delivery is pending for a packet");
        if let Some((time, _)) = self.packets.front() {
            shared.events.push(*time, LinkEvent::Delivery(index));
        }
        packet
    }

    /// Returns the number of packets in flight.
    pub fn held(&self) -> u64 {
        self.packets.len() as u64
    }
}

impl<P: Carried> Pipe<P> {
    /// `stream` draws for what is random on the way, by the name of its part; the run is over
    /// at `end`.
    pub fn new(config: &PropagationConfig, end: Time, stream: impl Fn(&str) -> Stream) -> Self {
        match config {
            PropagationConfig {
                delay: DelayProcess::Constant(delay),
                jitter: None,
                loss: None,
                duplicate,
                reordering: _,
                slot: None,
            } if duplicate.chance == 0.0 => Pipe::Fixed(FixedPipe::new(*delay)),
            _ => Pipe::Varied(Box::new(Varied::new(config.clone(), end, &stream))),
        }
    }

    /// Takes a packet whose transmission ends at `sent`, and whose arrival is an
    /// event of the link `index`; `losses` counts it if it is lost.
    #[inline(always)]
    pub fn push(
        &mut self,
        packet: P,
        sent: Time,
        index: u32,
        losses: &mut Losses,
        shared: &mut Shared<P>,
    ) {
        match self {
            Pipe::Fixed(pipe) => pipe.push(packet, sent, index, shared),
            Pipe::Varied(varied) => varied.push(packet, sent, index, losses, shared),
        }
    }

    /// Takes the packet that arrives now; `None` if another overtook it.
    #[inline(always)]
    pub fn pop(&mut self, index: u32, shared: &mut Shared<P>) -> Option<P> {
        match self {
            Pipe::Fixed(pipe) => pipe.pop(index, shared),
            Pipe::Varied(varied) => varied.pop(index, shared),
        }
    }

    /// What is sent from now on takes `delay`, but no packet overtakes another.
    pub fn set_delay(&mut self, to: Span, stream: Stream) {
        match self {
            Pipe::Fixed(pipe) if pipe.delay == to => {}
            Pipe::Fixed(pipe) => {
                let packets = std::mem::take(&mut pipe.packets);
                *self = Pipe::Varied(Box::new(Varied::of_fixed(packets, to, stream)));
            }
            Pipe::Varied(varied) => varied.delay = DelayProcess::Constant(to),
        }
    }

    /// What is sent from now on is lost so.
    pub fn set_loss(&mut self, loss: Option<Loss>, end: Time, stream: impl Fn(&str) -> Stream) {
        self.vary(stream("way")).loss =
            loss.map(|loss| LossState::new(loss, end, stream("outages")));
    }

    /// What is sent from now on may meet something: with this stream, if nothing has until now.
    fn vary(&mut self, stream: Stream) -> &mut Varied<P> {
        if let Pipe::Fixed(FixedPipe { delay, packets }) = self {
            let packets = std::mem::take(packets);
            *self = Pipe::Varied(Box::new(Varied::of_fixed(packets, *delay, stream)));
        }
        match self {
            Pipe::Varied(varied) => varied,
            Pipe::Fixed(_) => unreachable!("it is varied now"),
        }
    }

    /// Packets under way.
    pub fn held(&self) -> u64 {
        match self {
            Pipe::Fixed(pipe) => pipe.held(),
            Pipe::Varied(varied) => varied.packets.len() as u64,
        }
    }

    /// The counts so far, with the outcome of a transmission in progress.
    pub fn counts(&self) -> PropagationCounts {
        match self {
            Pipe::Fixed(_) => PropagationCounts::default(),
            Pipe::Varied(varied) => varied.counts,
        }
    }

    /// The counts of packets whose transmission has ended by `now`.
    pub fn counts_at(&self, now: Time) -> PropagationCounts {
        let mut counts = self.counts();
        if let Pipe::Varied(varied) = self
            && varied.last.0 > now
        {
            let before = varied.last.1;
            counts = PropagationCounts { reordered: counts.reordered, ..before };
        }
        counts
    }

    /// Checks that every packet is accounted for.
    ///
    /// # Panics
    /// If one is not: a bug.
    pub fn assert_conservation(&self, name: &str) {
        if let Pipe::Varied(varied) = self {
            let PropagationCounts { lost, duplicated, .. } = varied.counts;
            let out = varied.delivered + lost + varied.packets.len() as u64;
            assert_eq!(varied.entered + duplicated, out, "{name}: lost on the way, uncounted");
        }
    }
}

/// A packet under way. The order is that of arrival, the earliest greatest.
struct Travelling<P> {
    arrival: Time,
    number: u64,
    packet: P,
}

impl<P> Travelling<P> {
    fn key(&self) -> (Time, u64) {
        (self.arrival, self.number)
    }
}
impl<P> PartialEq for Travelling<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<P> Eq for Travelling<P> {}
impl<P> PartialOrd for Travelling<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Travelling<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// A way on which packets take different times, get lost or come twice.
pub(crate) struct Varied<P> {
    delay: DelayProcess,
    reordering: bool,
    loss: Option<LossState>,
    duplicate: Option<ChanceState>,
    jitter: Option<JitterState>,
    slot: Option<SlotState>,
    stream: Stream,
    packets: BinaryHeap<Travelling<P>>,
    /// When the pending event is due, if there is one.
    pending: Option<Time>,
    /// The latest arrival so far: nothing comes before it without reordering.
    latest: Time,
    /// Packets that came in, and the number of the next.
    entered: u64,
    next_number: u64,
    delivered: u64,
    /// One more than the largest number that was delivered.
    expected: u64,
    counts: PropagationCounts,
    /// The end of the last transmission, and the counts without it.
    last: (Time, PropagationCounts),
}

impl<P: Carried> Varied<P> {
    fn new(config: PropagationConfig, end: Time, stream: &impl Fn(&str) -> Stream) -> Self {
        Varied {
            loss: config.loss.map(|loss| LossState::new(loss, end, stream("outages"))),
            duplicate: ChanceState::new(&config.duplicate),
            jitter: config.jitter.map(JitterState::new),
            slot: config.slot.map(SlotState::new),
            delay: config.delay,
            reordering: config.reordering,
            stream: stream("way"),
            packets: BinaryHeap::new(),
            pending: None,
            latest: Time::ZERO,
            entered: 0,
            next_number: 0,
            delivered: 0,
            expected: 0,
            counts: PropagationCounts::default(),
            last: (Time::ZERO, PropagationCounts::default()),
        }
    }

    /// With what was under way with a delay that was always the same until now.
    fn of_fixed(packets: VecDeque<(Time, P)>, delay: Span, stream: Stream) -> Self {
        let number = packets.len() as u64;
        let travelling = packets.into_iter().zip(0..);
        let travelling =
            travelling.map(|((arrival, packet), number)| Travelling { arrival, number, packet });
        let packets: BinaryHeap<_> = travelling.collect();
        Varied {
            loss: None,
            duplicate: None,
            jitter: None,
            slot: None,
            delay: DelayProcess::Constant(delay),
            reordering: false,
            stream,
            pending: packets.peek().map(|first| first.arrival),
            latest: packets.iter().map(|last| last.arrival).max().unwrap_or(Time::ZERO),
            packets,
            entered: number,
            next_number: number,
            delivered: 0,
            expected: 0,
            counts: PropagationCounts::default(),
            last: (Time::ZERO, PropagationCounts::default()),
        }
    }

    #[inline(never)]
    fn push(
        &mut self,
        packet: P,
        sent: Time,
        index: u32,
        losses: &mut Losses,
        shared: &mut Shared<P>,
    ) {
        self.entered += 1;
        self.last = (sent, self.counts);
        if self.loss.as_mut().is_some_and(|loss| loss.next(sent, &mut self.stream)) {
            self.counts.lost += 1;
            self.counts.lost_bytes += u64::from(packet.size());
            losses.lost(&packet, sent);
            shared.custody.ends(packet, Fate::Lost);
            return;
        }
        if self.duplicate.as_mut().is_some_and(|twice| twice.next(&mut self.stream)) {
            self.counts.duplicated += 1;
            let copy = shared.custody.copy(&packet);
            self.send(copy, sent);
        }
        self.send(packet, sent);
        self.await_first(index, shared);
    }

    fn send(&mut self, packet: P, sent: Time) {
        let mut delay = self.delay.at(sent);
        if let Some(jitter) = &mut self.jitter {
            delay = jitter.next(delay, &mut self.stream);
        }
        let mut arrival = sent + delay;
        if !self.reordering {
            arrival = arrival.max(self.latest);
            self.latest = arrival;
        }
        if let Some(slot) = &mut self.slot {
            arrival = slot.arrival(arrival, packet.size(), &mut self.stream);
        }
        self.packets.push(Travelling { arrival, number: self.next_number, packet });
        self.next_number += 1;
    }

    /// Asks for an event at the first arrival. One that was asked for earlier
    /// and is due later finds nothing then.
    fn await_first(&mut self, index: u32, shared: &mut Shared<P>) {
        if let Some(first) = self.packets.peek()
            && self.pending.is_none_or(|pending| first.arrival < pending)
        {
            self.pending = Some(first.arrival);
            shared.events.push(first.arrival, LinkEvent::Delivery(index));
        }
    }

    #[inline(never)]
    fn pop(&mut self, index: u32, shared: &mut Shared<P>) -> Option<P> {
        if self.pending != Some(shared.now) {
            return None;
        }
        self.pending = None;
        let first = self.packets.pop();
        self.await_first(index, shared);
        let first = first?;
        self.delivered += 1;
        self.counts.reordered += u64::from(first.number < self.expected);
        self.expected = self.expected.max(first.number + 1);
        Some(first.packet)
    }
}
