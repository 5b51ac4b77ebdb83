//! CoDel: controlled delay.
//!
//! # Model
//! Packets are dropped (or marked) as they leave, once the time they spent
//! in the queue has stayed above `target` for `interval`, and then again at
//! times that come closer with the square root of the number of drops.
//!
//! The state machine is in `state.rs`; what the variants do differently, in `form.rs`.
//!
//! # Sources
//! - RFC 8289, sections 5.2 to 5.6 (the pseudo-code).
//! - `variant = linux`: the arithmetic of Linux's qdisc, as recorded in the
//!   conformance vectors.
//! - `variant = ns2-2012`, `ns2-2013`: the ns-2 implementations of May 2012 and
//!   of 2013, as recorded in the conformance vectors.
//! - Järvinen and Kojo (2014), section VI, on the variants of the recall.
//!
//! # Differences
//! 1. `variant = no-recall` is not used by any implementation: it shows the effect of the recall.

use alloc::{format, vec::Vec};

use aqmlab_core::words::{Dialect, Form, Word};
use aqmlab_core::{Bytes, Component, Limit, Packet, Rate, Span, choices, params};

use crate::discipline::{Context, LinkEnv, Note, OneMachine};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

mod form;
mod linux;
mod selector;
mod state;

pub use selector::DsSelector;
pub(crate) use state::{CodelSettings, CodelState, Source};

choices! {
    /// With which `count` the dropping state begins when it was left not long
    /// ago; and, for other implementations than the RFC's, what else they do
    /// differently.
    pub enum CodelForm {
        /// RFC 8289: the drops of the last dropping state, within 16 intervals.
        Rfc8289 = "rfc8289",
        /// The same with Linux's arithmetic: a clock of 1024 ns and an inverse
        /// square root that takes one Newton step for each drop.
        Linux = "linux",
        /// ns-2 of May 2012: count - 1, within 16 intervals.
        Ns2Of2012 = "ns2-2012",
        /// ns-2 of 2013: count - 2, within 8 intervals; a shorter first wait.
        Ns2Of2013 = "ns2-2013",
        /// Always from 1.
        NoRecall = "no-recall",
    }
}

params! {
    /// Parameters of CoDel.
    pub struct CodelParams {
        /// Acceptable standing delay (sojourn time).
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "RFC 8289, section 4.4";
        /// Time for which the delay may exceed the target; about the largest common
        /// round-trip time.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8289, section 4.3";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-codel(8)";
        /// Additional limit in bytes; `none`: no additional limit.
        byte_limit: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 40)),
            source "mahimahi, as for droptail";
        /// Initial count when a dropping state follows soon after another.
        variant: CodelForm = CodelForm::Rfc8289, source "RFC 8289, section 5.5; Järvinen and Kojo, section VI";
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = false, source "RFC 8289, section 5.5, comment; tc-codel(8)";
        /// Mark ECN-capable packets that waited longer than this; `none` for never.
        ce_threshold: Option<Span> = None, in Some(Span::ZERO) => Some(Span::from_secs(100)),
            source "tc-codel(8)";
    } words TC
}

/// The words of tc-codel(8) that tc-fq_codel(8) has too.
pub(crate) const TC_WORDS: &[Word] = &[
    Word::value("limit", "limit", Form::Packets),
    Word::value("target", "target", Form::Time),
    Word::value("interval", "interval", Form::Time),
    Word::value("ce_threshold", "ce_threshold", Form::Time),
    Word::set("ecn", "ecn", "true"),
    Word::set("noecn", "ecn", "false"),
];

/// tc-codel(8).
const TC: &[Dialect] = &[Dialect {
    kind: "codel",
    source: "tc-codel(8)",
    fixed: &[("variant", "linux")],
    words: &[TC_WORDS],
    ..Dialect::EMPTY
}];

impl Component for CodelParams {
    const NAME: &'static str = "codel";
    const SUMMARY: &'static str = "controlled delay: drops at dequeue while the delay stays high";
}

impl OneMachine for CodelParams {
    type Machine = OneQueue<Codel>;
    const FIXED: &'static [&'static str] = &["variant"];
}

/// What a reader has to know where a full packet takes longer than the target
/// (RFC 8289, section 5.6, comment).
pub(crate) fn target_below_packet(target: Span, largest: u64, rate: Rate) -> Option<Note> {
    let packet = rate.transmission_time(Bytes::new(largest));
    (packet >= target).then(|| Note {
        id: "codel-target-below-packet",
        text: format!(
            "A packet of {largest} bytes takes {packet} on a link of {rate}, no less than CoDel's \
             target of {target}. On a link this slow, CoDel accepts one full-size packet, and any \
             longer queue counts as above the target: delays stay above it."
        ),
    })
}

/// CoDel over one queue.
#[derive(Clone)]
pub(crate) struct Codel {
    law: CodelSettings,
    state: CodelState,
    largest: u64,
    /// The sojourn time of the last packet, and the longest.
    sojourn: Span,
    longest: Span,
    target: Span,
    link_rate: Rate,
}

/// The queue as a source, with what the variants learn of it.
struct Single<'a> {
    fifo: &'a mut Fifo,
    largest: &'a mut u64,
}

impl Source for Single<'_> {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        self.fifo.pop()
    }
    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }
    #[inline]
    fn largest(&mut self) -> &mut u64 {
        self.largest
    }
}

impl Aqm for Codel {
    type Params = CodelParams;

    fn new(params: &CodelParams, env: &LinkEnv) -> OneQueue<Self> {
        let law = CodelSettings::new(params, env);
        let codel = Codel {
            state: CodelState::new(&law),
            largest: law.smallest_backlog,
            law,
            sojourn: Span::ZERO,
            longest: Span::ZERO,
            target: params.target,
            link_rate: env.rate,
        };
        OneQueue::new(QueueLimit::new(params.limit, params.byte_limit, env), codel)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        (self.law, self.target, self.link_rate) = (new.law, new.target, new.link_rate);
    }

    fn enqueue(&mut self, fifo: &mut Fifo, room: QueueLimit, packet: Packet, cx: &mut Context<'_>) {
        fifo.push_within(room, packet, cx);
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let mut source = Single { fifo, largest: &mut self.largest };
        let packet = self.state.dequeue(&self.law, &mut source, cx);
        self.sojourn = packet.as_ref().map_or(Span::ZERO, |packet| cx.now - packet.arrival());
        self.longest = self.longest.max(self.sojourn);
        packet
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        self.state.observe(see);
        see("sojourn", self.sojourn.as_secs_f64());
    }

    fn notes(&self) -> Vec<Note> {
        let note = target_below_packet(self.target, self.largest, self.link_rate);
        note.filter(|_| self.longest > self.target).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Time;

    use super::*;
    use crate::testing::{TestPacket, late_drops, queue};

    /// The RFC's pseudo-code with delays of 10 ms, a packet a millisecond: the
    /// times, in ms, at which one is dropped.
    #[test]
    fn drops_come_closer_with_the_root_of_their_number() {
        let drops = late_drops(queue(&CodelParams::default()), 350);
        // Above the target at 10 ms, dropped an interval later, and then
        // after 100 / sqrt n ms: 210, 280.7, 338.4.
        assert_eq!(drops, [110, 210, 281, 339]);
    }

    /// codel_dequeue, codel_time_before: drops of two bursts with a pause of so many seconds between
    /// them, as the kernel's code decided.
    #[test]
    fn linux_takes_up_an_old_count_after_some_pauses() {
        for (pause, drops) in [(10, [4, 4]), (2400, [4, 6]), (4500, [4, 4])] {
            let params = CodelParams { variant: CodelForm::Linux, ..CodelParams::default() };
            let mut queue = queue(&params);
            let dropped = [0, pause].map(|second| {
                let mut now = Time::ZERO + Span::from_secs(second);
                (0..300).for_each(|_| queue.enqueue(Packet::of_flow(0), now));
                let before = queue.counts().dropped_total();
                while queue.dequeue(now).is_some() {
                    now += Span::from_micros(1200);
                    queue.take_dropped(|_, _| ());
                }
                queue.counts().dropped_total() - before
            });
            assert_eq!(dropped, drops, "{pause}");
        }
    }
}
