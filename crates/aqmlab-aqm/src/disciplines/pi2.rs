//! PI2: one queue, and a controller whose output is squared.
//!
//! # Model
//! A proportional integral controller moves a base probability p' by the
//! delay of the queue. Packets are dropped or marked with p'^2, which answers
//! the square root in the throughput of classic senders, so that the gains
//! need no table as in PIE. With `coupled`, packets of scalable senders share
//! the queue and are marked with k p'. On overload, k p' from 1 on, all
//! packets are dropped with p'^2, and scalable ones that are not are marked.
//!
//! # Sources
//! - De Schepper, Bondarenko, Tsang and Briscoe, "PI2: A Linearized AQM for
//!   both Classic and Scalable TCP" (CoNEXT 2016): the squared output, and the
//!   same queue for both kinds of senders.
//! - RFC 9332, appendix A: update, overload and defaults.
//!
//! # Differences
//! 1. From RFC 9332: one queue, so the L4S queue's own AQM is left out.
//! 2. Defaults, and the decision when a packet leaves, are those of the RFC.
//! 3. The probability is drawn, as a comparison of two draws with p';
//!    `derandomize` takes the recurrence of the RFC instead, which keeps one
//!    count for each kind of packet.
//! 4. There is no shortest queue below which nothing is dropped.

use alloc::{vec, vec::Vec};

use aqmlab_core::{Component, Ecn, Limit, Packet, Span, Time, params};

use crate::discipline::{Context, LinkEnv, Note, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of PI2.
    pub struct Pi2Params {
        /// The delay to keep.
        target: Span = Span::from_millis(15), in Span::ZERO => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// Time between two updates of the base probability, Tupdate.
        tupdate: Span = Span::from_millis(16), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// Integral gain in Hz.
        alpha: f64 = 0.16, in 0.0 => 1e3, source "RFC 9332, appendix A.1";
        /// Proportional gain in Hz.
        beta: f64 = 3.2, in 0.0 => 1e3, source "RFC 9332, appendix A.1";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(10_000), source "tc-dualpi2(8)";
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = true, source "RFC 9332, appendix A.1";
        /// Marks ECT(1) and CE packets with the base probability times `coupling`.
        coupled: bool = false, source "CoNEXT 2016; RFC 9332, section 2.1";
        /// Coupling factor k; when k times the base probability reaches 1, packets are
        /// dropped instead of marked.
        coupling: f64 = 2.0, in 1.0 => 255.0, source "RFC 9332, appendix A";
        /// Spaces drops and marks evenly instead of at random.
        derandomize: bool = false, source "RFC 9332, appendix A.1, recur";
    }
}

impl Component for Pi2Params {
    const NAME: &'static str = "pi2";
    const SUMMARY: &'static str = "PI squared: a controller moves the root of the drop probability";
}

impl OneMachine for Pi2Params {
    type Machine = OneQueue<Pi2>;
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Pi2 {
    params: Pi2Params,
    next_update: Time,
    /// The base probability p'.
    base: f64,
    /// The delay at the last update, in seconds.
    delay: f64,
    /// What the recurrences for p'^2 and k p' have added up.
    counts: [f64; 2],
    /// Updates that left it in overload, and all.
    overloads: u64,
    updates: u64,
}

/// RFC 9332, figure 4, recur: true as often as `likelihood` says.
pub(crate) fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    let hit = *count > 1.0;
    if hit {
        *count -= 1.0;
    }
    hit
}

impl Pi2 {
    fn squared(&mut self, cx: &mut Context<'_>) -> bool {
        let base = self.base;
        if self.params.derandomize {
            return recur(&mut self.counts[0], base * base);
        }
        cx.random.uniform() < base && cx.random.uniform() < base
    }

    fn linear(&mut self, likelihood: f64, cx: &mut Context<'_>) -> bool {
        if self.params.derandomize {
            return recur(&mut self.counts[1], likelihood);
        }
        cx.random.uniform() < likelihood
    }

    /// Gives the packet back, marked or not, unless it is dropped.
    fn signal(&mut self, mut packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let ecn = packet.ecn();
        let likelihood = self.base * self.params.coupling;
        let overload = likelihood >= 1.0;
        let scalable = self.params.ecn && self.params.coupled && matches!(ecn, Ecn::Ect1 | Ecn::Ce);
        if scalable && !overload {
            if self.linear(likelihood, cx) {
                cx.mark(&mut packet, Reason::Pi2);
            }
            return Some(packet);
        }
        let hit = self.squared(cx);
        if hit && (overload || !self.params.ecn || !ecn.is_capable()) {
            cx.drop(packet, Reason::Pi2);
            return None;
        }
        if hit || scalable {
            cx.mark(&mut packet, Reason::Pi2);
        }
        Some(packet)
    }
}

impl Aqm for Pi2 {
    type Params = Pi2Params;

    fn new(params: &Pi2Params, env: &LinkEnv) -> OneQueue<Self> {
        let pi2 = Pi2 {
            next_update: Time::ZERO + params.tupdate,
            base: 0.0,
            delay: 0.0,
            counts: [0.0; 2],
            overloads: 0,
            updates: 0,
            params: params.clone(),
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), pi2)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        self.params = new.params;
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let packet = fifo.pop()?;
            if let Some(packet) = self.signal(packet, cx) {
                return Some(packet);
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, fifo: &Fifo, cx: &mut Context<'_>) {
        self.next_update += self.params.tupdate;
        let delay = fifo.head().map_or(0.0, |head| (cx.now - head.arrival()).as_secs_f64());
        let error = delay - self.params.target.as_secs_f64();
        let change = self.params.alpha * error + self.params.beta * (delay - self.delay);
        self.base = (self.base + change).clamp(0.0, 1.0);
        self.delay = delay;
        self.updates += 1;
        self.overloads += u64::from(self.base * self.params.coupling >= 1.0);
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("base_probability", self.base);
        see("drop_probability", self.base * self.base);
        see("delay_estimate", self.delay);
    }

    fn notes(&self) -> Vec<Note> {
        if self.overloads * 10 <= self.updates {
            return Vec::new();
        }
        vec![Note {
            id: "pi2-overload",
            text: "PI2 was overloaded for more than a tenth of the time: packets were dropped \
                   independently of their ECN field."
                .into(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;
    use crate::testing::{
        TestPacket, assert_near, assert_overload, assert_shares, env, fill, queue, queue_of, seen,
    };

    /// A queue with a base probability that stays.
    fn at(base: f64, params: &Pi2Params) -> Queue {
        let params = Pi2Params { limit: Limit::Unlimited, ..params.clone() };
        let mut pi2 = Pi2::new(&params, &env());
        pi2.aqm.base = base;
        queue_of(1, pi2)
    }

    #[test]
    fn the_update_follows_the_equation() {
        let mut queue = queue(&Pi2Params::default());
        fill(&mut queue, 1, Ecn::NotEct);
        // 0.16 * 1 ms + 3.2 * 16 ms, then 0.16 * 17 ms + 3.2 * 16 ms more.
        for (millis, base) in [(16, 0.051_36), (32, 0.051_36 + 0.053_92)] {
            queue.on_wakeup(Time::ZERO + Span::from_millis(millis));
            assert_near(seen(&queue, "base_probability"), base);
        }
    }

    #[test]
    fn classic_packets_meet_the_square_and_scalable_ones_the_product() {
        for derandomize in [false, true] {
            let coupled = Pi2Params { coupled: true, derandomize, ..Pi2Params::default() };
            let alone = Pi2Params { coupled: false, ..coupled.clone() };
            let no_ecn = Pi2Params { ecn: false, ..coupled.clone() };
            for (params, ecn, drops, marks) in [
                (&coupled, Ecn::NotEct, 0.09, 0.0),
                (&coupled, Ecn::Ect0, 0.0, 0.09),
                (&coupled, Ecn::Ect1, 0.0, 0.6),
                (&alone, Ecn::Ect1, 0.0, 0.09),
                (&no_ecn, Ecn::Ect1, 0.09, 0.0),
            ] {
                assert_shares(at(0.3, params), ecn, drops, marks);
            }
        }
    }

    #[test]
    fn overload_drops_every_kind_of_packet() {
        assert_overload(|| at(0.6, &Pi2Params { coupled: true, ..Pi2Params::default() }));
    }

    #[test]
    fn derandomised_drops_come_at_even_distances() {
        let params = Pi2Params { derandomize: true, ..Pi2Params::default() };
        let mut queue = at(0.5, &params);
        let mut drops = Vec::new();
        for number in 1..=17 {
            queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
            queue.dequeue(Time::ZERO);
            queue.take_dropped(|_, _| drops.push(number));
        }
        assert_eq!(drops, [5, 9, 13, 17]);
    }
}
