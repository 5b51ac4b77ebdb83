//! Propagation from a link's transmitter to its far end.
//!
//! Losses, duplication and delays act after the transmission: a lost packet has used the link, and
//! was not dropped by a queue.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use aqmlab_core::{Packet, Span, Stream, Time};

use super::Shared;
use super::losses::Losses;
use super::packet::{LossCause, PacketStore};
use crate::impairment::{DelayProcess, JitterState, Loss, LossState, PropagationConfig, SlotState};

/// Counts of packets in propagation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PropagationCounts {
    /// Lost packets.
    pub lost: u64,
    /// Bytes of lost packets.
    pub lost_bytes: u64,
    /// Duplicated packets.
    pub duplicated: u64,
    /// Packets that arrived after a packet sent later.
    pub reordered: u64,
}

impl PropagationCounts {
    /// Returns the counts since `before`, an earlier state.
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
#[derive(Clone)]
pub(crate) enum Propagation {
    /// Constant delay.
    Fixed(FixedDelay),
    /// Variable delay, loss or duplication.
    Impaired(Box<ImpairedPath>),
}

/// Propagation with the same delay for all packets, which keep their order.
#[derive(Clone)]
pub(crate) struct FixedDelay {
    pub delay: Span,
    packets: VecDeque<(Time, Packet)>,
}

impl FixedDelay {
    pub fn new(delay: Span) -> Self {
        FixedDelay { delay, packets: VecDeque::new() }
    }

    /// Sends a packet at `sent`, and schedules its arrival as an event of the link `index`.
    #[inline(always)]
    pub fn push<S: PacketStore>(
        &mut self,
        packet: Packet,
        sent: Time,
        index: u32,
        shared: &mut Shared<S>,
    ) {
        let arrival = sent + self.delay;
        if self.packets.is_empty() {
            shared.events.push(arrival, shared.delivery, index);
        }
        self.packets.push_back((arrival, packet));
    }

    /// Removes the packet that arrives now. Its event, the next of all, becomes that of the packet
    /// behind it.
    #[inline(always)]
    pub fn pop<S: PacketStore>(&mut self, shared: &mut Shared<S>) -> Option<Packet> {
        let first = self.packets.pop_front();
        let (arrival, packet) = first.expect("a delivery is pending for a packet");
        debug_assert_eq!(shared.events.next().time(), arrival, "its delivery is the next event");
        match self.packets.front() {
            Some((time, _)) => shared.events.postpone(*time),
            None => {
                shared.events.pop();
            }
        }
        Some(packet)
    }

    /// Returns the number of packets in flight.
    pub fn held(&self) -> u64 {
        self.packets.len() as u64
    }
}

impl Propagation {
    /// Creates the propagation of a link. `stream` returns the random stream of a part by name; the
    /// run ends at `end`.
    pub fn new(config: &PropagationConfig, end: Time, stream: impl Fn(&str) -> Stream) -> Self {
        let PropagationConfig { delay, jitter, loss, duplicate, reordering, slot } = config;
        let state = |loss| LossState::new(loss, end, stream("outages"));
        if let DelayProcess::Constant(delay) = delay
            && (jitter, loss, slot) == (&None, &None, &None)
            && duplicate.chance == 0.0
        {
            return Propagation::Fixed(FixedDelay::new(*delay));
        }
        Propagation::Impaired(Box::new(ImpairedPath {
            loss: loss.clone().map(state),
            duplicate: (duplicate.chance > 0.0).then(|| state(Loss::Random(duplicate.clone()))),
            jitter: jitter.clone().map(JitterState::new),
            slot: slot.clone().map(SlotState::new),
            delay: delay.clone(),
            reordering: *reordering,
            ..ImpairedPath::new(Span::ZERO, VecDeque::new(), stream("way"))
        }))
    }

    /// Sends a packet whose transmission ends at `sent`, and schedules its arrival as an event of
    /// the link `index`; `losses` counts it if it is lost.
    #[inline(always)]
    pub fn push<S: PacketStore>(
        &mut self,
        packet: Packet,
        sent: Time,
        index: u32,
        losses: &mut Losses,
        shared: &mut Shared<S>,
    ) {
        match self {
            Propagation::Fixed(path) => path.push(packet, sent, index, shared),
            Propagation::Impaired(path) => path.push(packet, sent, index, losses, shared),
        }
    }

    /// Removes the packet that arrives now, and its event, the next of all; `None` if a packet
    /// overtook it.
    #[inline(always)]
    pub fn pop<S: PacketStore>(&mut self, index: u32, shared: &mut Shared<S>) -> Option<Packet> {
        match self {
            Propagation::Fixed(path) => path.pop(shared),
            Propagation::Impaired(path) => {
                shared.events.pop();
                path.pop(index, shared)
            }
        }
    }

    /// Changes the delay of packets sent from now on; none overtakes another.
    pub fn set_delay(&mut self, to: Span, stream: Stream) {
        if !matches!(self, Propagation::Fixed(path) if path.delay == to) {
            self.vary(stream).delay = DelayProcess::Constant(to);
        }
    }

    /// Changes the loss process of packets sent from now on.
    pub fn set_loss(&mut self, loss: Option<Loss>, end: Time, stream: impl Fn(&str) -> Stream) {
        self.vary(stream("way")).loss =
            loss.map(|loss| LossState::new(loss, end, stream("outages")));
    }

    /// Changes to an impaired path for packets sent from now on, with this stream unless it is
    /// impaired already.
    fn vary(&mut self, stream: Stream) -> &mut ImpairedPath {
        if let Propagation::Fixed(FixedDelay { delay, packets }) = self {
            let path = ImpairedPath::new(*delay, std::mem::take(packets), stream);
            *self = Propagation::Impaired(Box::new(path));
        }
        match self {
            Propagation::Impaired(path) => path,
            Propagation::Fixed(_) => unreachable!("it is path now"),
        }
    }

    /// Returns the number of packets in flight.
    pub fn held(&self) -> u64 {
        match self {
            Propagation::Fixed(path) => path.held(),
            Propagation::Impaired(path) => path.packets.len() as u64,
        }
    }

    /// Returns the counts so far, including the outcome of a transmission in progress.
    pub fn counts(&self) -> PropagationCounts {
        match self {
            Propagation::Fixed(_) => PropagationCounts::default(),
            Propagation::Impaired(path) => path.counts,
        }
    }

    /// Returns the counts of packets whose transmission has ended by `now`.
    pub fn counts_at(&self, now: Time) -> PropagationCounts {
        let mut counts = self.counts();
        if let Propagation::Impaired(path) = self
            && path.last.0 > now
        {
            let before = path.last.1;
            counts = PropagationCounts { reordered: counts.reordered, ..before };
        }
        counts
    }

    /// Checks that every packet is accounted for.
    ///
    /// # Panics
    /// Panics if a packet is unaccounted for: a bug.
    pub fn assert_conservation(&self, name: &str) {
        if let Propagation::Impaired(path) = self {
            let PropagationCounts { lost, duplicated, .. } = path.counts;
            let out = path.delivered + lost + path.packets.len() as u64;
            assert_eq!(
                path.entered + duplicated,
                out,
                "{name}: packets lost without being counted"
            );
        }
    }
}

/// Packet in flight, ordered by arrival, the earliest being the greatest.
#[derive(Clone)]
struct InFlight {
    arrival: Time,
    number: u64,
    packet: Packet,
}

impl InFlight {
    fn key(&self) -> (Time, u64) {
        (self.arrival, self.number)
    }
}
impl PartialEq for InFlight {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for InFlight {}
impl PartialOrd for InFlight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for InFlight {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Path with variable delay, loss or duplication.
#[derive(Clone)]
pub(crate) struct ImpairedPath {
    delay: DelayProcess,
    reordering: bool,
    loss: Option<LossState>,
    /// Packets that are duplicated, drawn like losses.
    duplicate: Option<LossState>,
    jitter: Option<JitterState>,
    slot: Option<SlotState>,
    stream: Stream,
    packets: BinaryHeap<InFlight>,
    /// Time of the pending event, if any.
    pending: Option<Time>,
    /// Latest arrival so far: without reordering, no packet arrives earlier.
    latest: Time,
    /// Number of packets sent, which is the number of the last and of its duplicate.
    entered: u64,
    delivered: u64,
    /// Largest delivered number.
    newest: u64,
    counts: PropagationCounts,
    /// End of the last transmission, and the counts without it.
    last: (Time, PropagationCounts),
}

impl ImpairedPath {
    /// Creates the path with packets in flight that had this constant delay.
    fn new(delay: Span, packets: VecDeque<(Time, Packet)>, stream: Stream) -> Self {
        let number = packets.len() as u64;
        let in_flight = packets.into_iter().zip(1..);
        let in_flight =
            in_flight.map(|((arrival, packet), number)| InFlight { arrival, number, packet });
        let packets: BinaryHeap<_> = in_flight.collect();
        ImpairedPath {
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
            delivered: 0,
            newest: 0,
            counts: PropagationCounts::default(),
            last: (Time::ZERO, PropagationCounts::default()),
        }
    }

    #[inline(never)]
    fn push<S: PacketStore>(
        &mut self,
        packet: Packet,
        sent: Time,
        index: u32,
        losses: &mut Losses,
        shared: &mut Shared<S>,
    ) {
        self.entered += 1;
        self.last = (sent, self.counts);
        if self.loss.as_mut().is_some_and(|loss| loss.next(sent, &mut self.stream)) {
            self.counts.lost += 1;
            self.counts.lost_bytes += u64::from(packet.size());
            losses.lost(&packet, sent);
            shared.accounting.ends(packet, LossCause::Lost);
            return;
        }
        if self.duplicate.as_mut().is_some_and(|twice| twice.next(sent, &mut self.stream)) {
            self.counts.duplicated += 1;
            let copy = shared.accounting.copy(&packet);
            self.send(copy, sent);
        }
        self.send(packet, sent);
        self.await_first(index, shared);
    }

    fn send(&mut self, packet: Packet, sent: Time) {
        let delay = self.delay.at(sent);
        let delay = match &mut self.jitter {
            Some(jitter) => jitter.next(delay, &mut self.stream),
            None => Some(delay),
        };
        let mut arrival = sent + delay.unwrap_or_default();
        if !self.reordering && delay.is_some() {
            arrival = arrival.max(self.latest);
            self.latest = arrival;
        }
        if let Some(slot) = &mut self.slot {
            arrival = slot.arrival(arrival, packet.size(), &mut self.stream);
        }
        self.packets.push(InFlight { arrival, number: self.entered, packet });
    }

    /// Schedules an event at the first arrival. An event scheduled for another time has no effect.
    fn await_first<S: PacketStore>(&mut self, index: u32, shared: &mut Shared<S>) {
        if let Some(first) = self.packets.peek()
            && self.pending.is_none_or(|pending| first.arrival < pending)
        {
            self.pending = Some(first.arrival);
            shared.events.push(first.arrival, shared.delivery, index);
        }
    }

    #[inline(never)]
    fn pop<S: PacketStore>(&mut self, index: u32, shared: &mut Shared<S>) -> Option<Packet> {
        if self.pending != Some(shared.now) {
            return None;
        }
        self.pending = None;
        let first = self.packets.pop();
        self.await_first(index, shared);
        let first = first?;
        self.delivered += 1;
        self.counts.reordered += u64::from(first.number < self.newest);
        self.newest = self.newest.max(first.number);
        Some(first.packet)
    }
}
