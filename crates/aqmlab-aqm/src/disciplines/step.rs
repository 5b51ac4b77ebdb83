//! A step: packets are marked whenever the queue is above a threshold.
//!
//! # Model
//! The queue as it is, not an average, is compared with a threshold K, and
//! above it every ECN-capable packet is marked: what switches do for DCTCP,
//! whose senders take the share of marks as the measure of congestion. It is
//! RED (WRED) with both thresholds at K and a weight of 1.
//!
//! # Sources
//! - RFC 8257, section 3.1: the comparison on arrival.
//! - Alizadeh et al., "Data Center TCP (DCTCP)" (SIGCOMM 2010): K is more than
//!   a seventh of the bandwidth-delay product (section 3.4); 20 packets at
//!   1 Gbit/s and 65 at 10 Gbit/s.
//!
//! # Differences
//! 1. What happens to packets that are not ECN-capable RFC 8257 leaves to the
//!    switch: `not_ect` drops them above the threshold as RED does, or leaves
//!    them to the limit.
//! 2. A threshold in time is, on arrival, the backlog that the link sends in that time at its first
//!    rate; on departure it is the packet's sojourn time. A threshold in length applies, on
//!    departure, to the remaining queue.

use alloc::string::String;

use aqmlab_core::{
    Component, Error, Limit, Packet, ParamType, Result, Span, Value, choices, params,
};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

/// A queue length or a time in the queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Threshold {
    /// Packets, bytes or bandwidth-delay products.
    Length(Limit),
    /// A time.
    Delay(Span),
}

impl ParamType for Threshold {
    const KIND: &'static str = "threshold";
    fn allowed() -> String {
        "a queue in packets (20p), bytes (30000b), bandwidth-delay products (0.2bdp) or time (1ms)"
            .into()
    }
    fn read(value: &Value) -> Option<Self> {
        Limit::read(value)
            .map(Threshold::Length)
            .or_else(|| Span::read(value).map(Threshold::Delay))
    }
    fn to_text(&self) -> String {
        match self {
            Threshold::Length(limit) => limit.to_text(),
            Threshold::Delay(span) => span.to_text(),
        }
    }
}

choices! {
    /// Time at which the queue is compared with the threshold.
    pub enum Moment {
        /// When a packet arrives.
        Enqueue = "enqueue",
        /// When a packet leaves.
        Dequeue = "dequeue",
    }
}

choices! {
    /// Action above the threshold for packets that are not ECN-capable.
    pub enum NotEct {
        /// Drops them.
        Drop = "drop",
        /// Nothing.
        Pass = "pass",
    }
}

params! {
    /// Parameters of step marking.
    pub struct StepParams {
        /// The queue above which packets are marked, K: a length or a time.
        threshold: Threshold = Threshold::Length(Limit::Packets(20)),
            source "RFC 8257, section 3.1; 20 packets: Alizadeh et al. 2010, for 1 Gbit/s";
        /// Time at which the queue is compared with the threshold.
        mark_at: Moment = Moment::Enqueue, source "RFC 8257, section 3.1: on arrival";
        /// Action above the threshold for packets that are not ECN-capable.
        not_ect: NotEct = NotEct::Drop, source "RFC 3168, section 5: as RED; left open by RFC 8257";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-pfifo(8), as for droptail";
    }
}

impl Component for StepParams {
    const NAME: &'static str = "step";
    const SUMMARY: &'static str = "marks while the queue is above a threshold, for DCTCP";

    fn check(&self) -> Result<()> {
        if self.threshold == Threshold::Length(Limit::Unlimited) {
            return Err(Error::not_allowed("unlimited", Threshold::allowed()).at("threshold"));
        }
        Ok(())
    }
}

impl OneMachine for StepParams {
    type Machine = OneQueue<Step>;
}

/// The state machine: the parameters, with the threshold resolved.
#[derive(Clone)]
pub(crate) struct Step(StepParams);

impl Step {
    /// Returns the packet, marked or not, unless it is dropped.
    fn signal(&self, fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let is_above = match self.0.threshold {
            Threshold::Length(length) => fifo.backlog().exceeds(length),
            Threshold::Delay(delay) => cx.now - packet.arrival() > delay,
        };
        let is_spared = !packet.ecn().is_capable() && self.0.not_ect == NotEct::Pass;
        match is_above && !is_spared {
            true => cx.signal(packet, true, Reason::Step),
            false => Some(packet),
        }
    }
}

impl Aqm for Step {
    type Params = StepParams;

    fn new(params: &StepParams, env: &LinkEnv) -> OneQueue<Self> {
        let threshold = match (params.threshold, params.mark_at) {
            (Threshold::Delay(delay), Moment::Enqueue) => {
                Threshold::Length(Limit::Bytes(env.rate.bytes_in(delay)))
            }
            (Threshold::Length(length), _) => {
                Threshold::Length(length.resolve(env.rate, env.base_rtt))
            }
            (delay, Moment::Dequeue) => delay,
        };
        let step = Step(StepParams { threshold, ..params.clone() });
        OneQueue::new(QueueLimit::new(params.limit, None, env), step)
    }

    #[inline(always)]
    fn admit(&mut self, fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        match self.0.mark_at {
            Moment::Enqueue => self.signal(fifo, packet, cx),
            Moment::Dequeue => Some(packet),
        }
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let packet = fifo.pop()?;
            let packet = match self.0.mark_at {
                Moment::Enqueue => Some(packet),
                Moment::Dequeue => self.signal(fifo, packet, cx),
            };
            if packet.is_some() {
                return packet;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Bytes, Ecn, Params, Time};

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{fill, queue};

    const STEP: usize = Reason::Step as usize;
    fn with(threshold: Threshold, mark_at: Moment) -> StepParams {
        StepParams { threshold, mark_at, ..StepParams::default() }
    }
    /// Sends all packets, one every 1.2 ms as at 10 Mbit/s. Returns the positions of marked
    /// packets.
    fn marked(queue: &mut Queue) -> Vec<usize> {
        let sent = (0..).map_while(|i| queue.dequeue(Time::from_nanos(i * 1_200_000)));
        let places = sent.enumerate().filter(|(_, packet)| packet.ecn() == Ecn::Ce);
        places.map(|(place, _)| place).collect()
    }

    /// Ten packets at once: number i finds i of 1500 bytes, and leaves 9 - i.
    #[test]
    fn the_threshold_is_one_of_packets_bytes_or_time() {
        let packets = Threshold::Length(Limit::Packets(3));
        let bytes = |bytes| Threshold::Length(Limit::Bytes(Bytes::new(bytes)));
        let delay = |micros| Threshold::Delay(Span::from_micros(micros));
        for (threshold, mark_at, expected) in [
            // More than the threshold, not as much as it.
            (packets, Moment::Enqueue, 4..10),
            (packets, Moment::Dequeue, 0..6),
            (bytes(4499), Moment::Enqueue, 3..10),
            (bytes(4500), Moment::Enqueue, 4..10),
            (bytes(4500), Moment::Dequeue, 0..6),
            // 3.6 ms are 4500 bytes; the fourth packet waits as long.
            (delay(3600), Moment::Enqueue, 4..10),
            (delay(3599), Moment::Enqueue, 3..10),
            (delay(3600), Moment::Dequeue, 4..10),
            (delay(3599), Moment::Dequeue, 3..10),
        ] {
            let mut queue = queue(&with(threshold, mark_at));
            fill(&mut queue, 10, Ecn::Ect0);
            let marked = marked(&mut queue);
            assert_eq!(marked, expected.collect::<Vec<_>>(), "{threshold:?} {mark_at:?}");
            assert_eq!(queue.counts().marked[STEP] as usize, marked.len());
        }
    }

    /// Nothing is averaged: one packet below the threshold ends the marks.
    #[test]
    fn the_mark_depends_on_this_moment_only() {
        let mut queue = queue(&with(Threshold::Length(Limit::Packets(3)), Moment::Enqueue));
        fill(&mut queue, 100, Ecn::Ect1);
        while queue.backlog().packets > 3 {
            queue.dequeue(Time::ZERO);
        }
        let before = queue.counts().marked[STEP];
        fill(&mut queue, 1, Ecn::Ect1);
        assert_eq!(queue.counts().marked[STEP], before);
        fill(&mut queue, 1, Ecn::Ect1);
        assert_eq!(queue.counts().marked[STEP], before + 1);
    }

    #[test]
    fn packets_that_cannot_be_marked_are_dropped_or_left_alone() {
        let threshold = Threshold::Length(Limit::Packets(3));
        for mark_at in [Moment::Enqueue, Moment::Dequeue] {
            let mut dropping = queue(&with(threshold, mark_at));
            fill(&mut dropping, 10, Ecn::NotEct);
            marked(&mut dropping);
            dropping.take_dropped(|_, _| ());
            let counts = dropping.counts();
            assert_eq!((counts.delivered, counts.dropped[STEP]), (4, 6), "{mark_at:?}");

            let params = StepParams { not_ect: NotEct::Pass, ..with(threshold, mark_at) };
            let mut passing = queue(&params);
            fill(&mut passing, 10, Ecn::NotEct);
            assert!(marked(&mut passing).is_empty());
            assert_eq!(passing.counts().delivered, 10);
        }
    }

    #[test]
    fn the_limit_holds_for_all() {
        let limit = Limit::Packets(5);
        let mut queue = queue(&StepParams { limit, ..StepParams::default() });
        fill(&mut queue, 9, Ecn::Ect0);
        let counts = queue.counts();
        assert_eq!(counts.dropped[Reason::Overlimit as usize], 4);
        assert_eq!(counts.marked_total(), 0);
    }

    #[test]
    fn a_threshold_reads_as_a_length_or_a_time() {
        let read = |text: &str| {
            let mut params = StepParams::default();
            params.set("threshold", &text.into()).map(|()| params.threshold)
        };
        assert_eq!(read("65p").unwrap(), Threshold::Length(Limit::Packets(65)));
        assert_eq!(read("0.2bdp").unwrap(), Threshold::Length(Limit::Bdp(0.2)));
        assert_eq!(read("500us").unwrap(), Threshold::Delay(Span::from_micros(500)));
        assert!(read("65").unwrap_err().to_string().contains("1ms"));
        for threshold in [read("65p"), read("500us")].map(Result::unwrap) {
            assert_eq!(Threshold::read(&threshold.to_text().as_str().into()), Some(threshold));
        }
    }
}
