//! BLUE: one marking probability, moved by losses and by an idle link.
//!
//! # Model
//! Packets are marked or dropped with a probability that knows nothing of the
//! queue's length. It rises when the buffer overflows and falls when the link
//! has nothing to send, in each case at most once in a freeze time, so that
//! senders can answer before it moves again.
//!
//! # Sources
//! - Feng, Kandlur, Saha and Shin, "BLUE: A New Class of Active Queue
//!   Management Algorithms" (University of Michigan, CSE-TR-387-99, 1999).
//! - Feng, Shin, Kandlur and Saha, "The BLUE Active Queue Management
//!   Algorithms" (IEEE/ACM Transactions on Networking, 2002): the variant with
//!   a threshold below the limit.
//! - Feng, "Parameters for Blue" (unpublished note): a freeze time of a
//!   typical round-trip time, an increment that takes the probability from 0 to
//!   1 in the seconds or minutes in which loads change, and a decrement much
//!   smaller than that.
//! - The ns-3 port of Feng's ns-1.1 code: `idle_repeats`.
//!
//! The papers were not at hand: the defaults keep the rules of the note (0 to 1
//! in 50 freeze times, a tenth of that down), and are believed to be one of
//! the settings of the paper's experiments. ns-3 has 0.0025 and 0.00025.
//!
//! # Differences
//! 1. A packet that does not fit is dropped for that and not drawn for.
//! 2. The link counts as idle when it asks for a packet and the queue is empty: once per idle
//!    period, and once per packet dropped during it, so that a probability of 1 does not last. With
//!    `idle_repeats` a long idle period counts once per freeze time, added up when it ends.
//! 3. A loss is an overflow only; the packets dropped by chance are the signal
//!    and do not raise the probability.

use aqmlab_core::{Component, Limit, Packet, Span, Time, params};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of BLUE.
    pub struct BlueParams {
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-pfifo(8), as for droptail";
        /// Increment of the probability at an overflow, d1.
        increment: f64 = 0.02, in 0.0 => 1.0, source "by the rule of Feng, Parameters for Blue";
        /// Decrement of the probability when the link is idle, d2.
        decrement: f64 = 0.002, in 0.0 => 1.0, source "by the rule of Feng, Parameters for Blue";
        /// The time that has to pass between two changes.
        freeze_time: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(1000),
            source "Feng, Parameters for Blue: about 100 ms";
        /// A queue above which an arrival counts as an overflow although it fits; `none`:
        /// overflows only.
        threshold: Option<Limit> = None, source "Feng et al. 2002, the event Qlen > L";
        /// Whether a long idle period lowers the probability once in every freeze time.
        idle_repeats: bool = false, source "the ns-3 port of Feng's code";
        /// Marks ECN-capable packets instead of dropping them at random.
        ecn: bool = false, source "Feng et al. 1999: marks or drops";
    }
}

impl Component for BlueParams {
    const NAME: &'static str = "blue";
    const SUMMARY: &'static str =
        "one drop probability, raised by overflows, lowered by idle times";
}

impl OneMachine for BlueParams {
    type Machine = OneQueue<Blue>;

    fn slowest(&self, _env: &LinkEnv) -> Option<(&'static str, Span)> {
        let step = self.increment.min(self.decrement).max(1e-6);
        Some(("a tenth of the probability", self.freeze_time.scaled(0.1 / step)))
    }
}

/// The probability and when it may change.
#[derive(Clone)]
pub(crate) struct Blue {
    params: BlueParams,
    /// Resolved.
    threshold: Option<Limit>,
    probability: f64,
    /// The last change; `None` before the first.
    changed_at: Option<Time>,
    /// The link found the queue empty.
    is_idle: bool,
}

impl Blue {
    fn step(&mut self, now: Time, step: f64) {
        if self.changed_at.is_none_or(|last| now - last > self.params.freeze_time) {
            self.probability = (self.probability + step).clamp(0.0, 1.0);
            self.changed_at = Some(now);
        }
    }
    fn raise(&mut self, now: Time) {
        self.step(now, self.params.increment);
    }
    fn lower(&mut self, now: Time) {
        self.step(now, -self.params.decrement);
    }
    /// An idle time ends: all the freeze times in it count.
    fn catch_up(&mut self, now: Time) {
        let Some(last) = self.changed_at else { return };
        let BlueParams { freeze_time, decrement, .. } = self.params;
        let times = (now - last).as_nanos() / freeze_time.as_nanos();
        self.probability = (self.probability - times as f64 * decrement).max(0.0);
        self.changed_at = Some(last + freeze_time * times);
    }
}

impl Aqm for Blue {
    type Params = BlueParams;

    fn new(params: &BlueParams, env: &LinkEnv) -> OneQueue<Self> {
        let blue = Blue {
            threshold: params.threshold.map(|limit| limit.resolve(env.rate, env.base_rtt)),
            params: params.clone(),
            probability: 0.0,
            changed_at: None,
            is_idle: false,
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), blue)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        let Blue { probability, changed_at, is_idle, .. } = *self;
        *self = Blue { probability, changed_at, is_idle, ..new };
    }

    fn enqueue(
        &mut self,
        fifo: &mut Fifo,
        room: QueueLimit,
        mut packet: Packet,
        cx: &mut Context<'_>,
    ) {
        if core::mem::take(&mut self.is_idle) && self.params.idle_repeats {
            self.catch_up(cx.now);
        }
        let backlog = fifo.backlog();
        if !room.admits(backlog, packet.size()) {
            self.raise(cx.now);
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        if self.threshold.is_some_and(|threshold| backlog.exceeds(threshold)) {
            self.raise(cx.now);
        }
        if cx.random.uniform() < self.probability {
            let Some(marked) = cx.signal(packet, self.params.ecn, Reason::Blue) else { return };
            packet = marked;
        }
        fifo.push(packet);
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop();
        if packet.is_none() {
            self.is_idle = true;
            self.lower(cx.now);
        }
        packet
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, assert_near, at, env, queue, seen};
    use aqmlab_core::Ecn;

    /// Offers packets (`+`) and asks for them (`-`) at times in microseconds; compares the
    /// probability after each.
    fn play(params: &BlueParams, steps: &[(char, u64, f64)]) -> Queue {
        let mut queue = queue(params);
        for &(step, micros, expected) in steps {
            let now = Time::from_nanos(micros * 1000);
            match step {
                '+' => queue.enqueue(Packet::of_ecn(Ecn::NotEct), now),
                _ => drop(queue.dequeue(now)),
            }
            queue.take_dropped(|_, _| ());
            assert_near(seen(&queue, "drop_probability"), expected);
        }
        queue
    }

    /// Room for one packet.
    fn one() -> BlueParams {
        BlueParams { limit: Limit::Packets(1), ..BlueParams::default() }
    }

    /// Two freeze times are over in the idle time, and half of the third: the other half is left.
    #[test]
    fn a_freeze_time_goes_on_over_an_idle_one() {
        let params = BlueParams { decrement: 0.01, ..BlueParams::default() };
        let mut control = Blue::new(&params, &env()).aqm;
        (control.probability, control.changed_at) = (0.5, Some(at(0)));
        control.catch_up(at(250));
        assert_near(control.probability, 0.48);
        control.raise(at(300));
        assert_near(control.probability, 0.48);
        control.raise(at(301));
        assert_near(control.probability, 0.5);
    }

    /// The time has to be more than the freeze time of 100 ms.
    #[test]
    fn overflows_raise_and_idle_links_lower_once_in_a_freeze_time() {
        let two = BlueParams { limit: Limit::Packets(2), ..BlueParams::default() };
        let overflows = [(0, 0.0), (0, 0.0), (0, 0.02), (50_000, 0.02), (100_000, 0.02)];
        let later = [(100_001, 0.04), (200_001, 0.04)];
        let steps: Vec<_> =
            overflows.into_iter().chain(later).map(|(at, p)| ('+', at, p)).collect();
        let queue = play(&two, &steps);
        assert_eq!(queue.counts().dropped[Reason::Overlimit as usize], 5);
        let idle = [(0, 0.02), (50_000, 0.02), (100_000, 0.02), (100_001, 0.018)];
        let idle = idle.into_iter().chain([(200_001, 0.018), (200_002, 0.016)]);
        let full = [('+', 0, 0.0), ('+', 0, 0.02)];
        let steps: Vec<_> = full.into_iter().chain(idle.map(|(at, p)| ('-', at, p))).collect();
        play(&one(), &steps);
    }

    #[test]
    fn the_probability_stays_within_0_and_1() {
        let steps = [('+', 0, 0.0), ('+', 0, 0.7), ('+', 200_000, 1.0), ('-', 200_000, 1.0)];
        let idle = [('-', 400_000, 0.4), ('-', 600_000, 0.0), ('-', 800_000, 0.0)];
        let params = BlueParams { increment: 0.7, decrement: 0.6, ..one() };
        play(&params, &[&steps[..], &idle].concat());
    }

    #[test]
    fn a_probability_of_1_does_not_last() {
        let params = BlueParams { increment: 1.0, decrement: 0.1, ..one() };
        let steps = [('+', 0, 0.0), ('+', 0, 1.0), ('-', 0, 1.0), ('-', 1200, 1.0)];
        let mut queue = play(&params, &steps);
        // The link asks after every arrival, as it is idle.
        for i in 1..=200 {
            queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(10 * i));
            queue.dequeue(at(10 * i));
            queue.take_dropped(|_, _| ());
        }
        assert!(queue.counts().delivered > 20, "{:?}", queue.counts());
    }

    /// The probability falls at 150 ms, and in the next 550 ms five times more or not at all. The queue
    /// is not idle at the end: nothing to catch up with.
    #[test]
    fn a_long_idle_time_counts_once_or_in_every_freeze_time() {
        for (idle_repeats, p) in [(false, 0.018), (true, 0.008)] {
            let full = [('+', 0, 0.0), ('+', 0, 0.02), ('-', 0, 0.02), ('-', 150_000, 0.018)];
            let then = [('+', 700_000, p), ('-', 700_000, p), ('+', 2_000_000, p)];
            play(&BlueParams { idle_repeats, ..one() }, &[&full[..], &then].concat());
        }
    }

    #[test]
    fn a_threshold_raises_before_anything_is_lost() {
        let threshold = Some(Limit::Packets(2));
        let params = BlueParams { threshold, increment: 0.01, ..BlueParams::default() };
        let queue = play(&params, &[('+', 0, 0.0), ('+', 0, 0.0), ('+', 0, 0.0), ('+', 0, 0.01)]);
        assert_eq!(queue.counts().dropped[Reason::Overlimit as usize], 0);
    }
}
