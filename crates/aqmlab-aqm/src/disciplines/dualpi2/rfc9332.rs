//! DualPI2 as RFC 9332 gives it: `variant = rfc9332` of the discipline
//! `dualpi2`.
//!
//! # Sources
//! RFC 9332, appendix A: the second pass (A.2) over the pseudo-code of the
//! first (A.1), and section 4.2.3 for what happens when marking saturates.
//!
//! # Differences
//! 1. Th_len counts the packet that leaves: the comments of figure 7 (nothing
//!    is marked in a queue of one packet) and not its order of lines.
//! 2. On overload every L4S packet that is not dropped is marked, as the text
//!    says; the recurrence of line 8h would add more than 1 with each packet.
//! 3. `drop_overload = false` is the policy "delay on saturation" of section
//!    4.2.3: p' stops at 1/k.
//! 4. A mark counts as `step` if the ramp asks for more than the coupling.
//! 5. A queue in bytes is full if it has no room for a full packet, as in the
//!    RFC; one in packets if it has the number.
//! 6. The time-shifted FIFO never waits for an empty queue; the pseudo-code
//!    leaves that out.

use alloc::vec::Vec;

use aqmlab_core::{Limit, Packet, Span, Time};

use super::{DualPi2Params, Queues, Seen, Taken};
use crate::discipline::{Backlog, Context, LinkEnv, Note, QueueDiscipline, Reason};
use crate::disciplines::pi2::recur;

/// Constants of a run (figure 2).
#[derive(Clone)]
struct Constants {
    target: f64,
    tupdate: Span,
    alpha: f64,
    beta: f64,
    k: f64,
    /// The highest base probability.
    most: f64,
    min_threshold: Span,
    max_threshold: Span,
    range: f64,
    th_len: u64,
    drop_overload: bool,
    derandomize: bool,
}

impl Constants {
    fn new(params: &DualPi2Params) -> Self {
        let tupdate = params.tupdate();
        let rtt_max = params.rtt_max.as_secs_f64();
        let (min_threshold, range) = match params.step {
            Some(step) => (step, Span::ZERO),
            None => (params.min_threshold, params.range),
        };
        let k = params.coupling as f64;
        Constants {
            target: params.target.as_secs_f64(),
            tupdate,
            alpha: params.alpha.unwrap_or(0.1 * tupdate.as_secs_f64() / (rtt_max * rtt_max)),
            beta: params.beta.unwrap_or(0.3 / rtt_max),
            k,
            most: if params.drop_overload { 1.0 } else { 1.0 / k },
            min_threshold,
            max_threshold: min_threshold + range,
            range: range.as_secs_f64(),
            th_len: params.th_len,
            drop_overload: params.drop_overload,
            derandomize: params.derandomize,
        }
    }

    /// Figure 5, laqm: the native probability of an L4S packet.
    fn native(&self, delay: Span) -> f64 {
        if delay >= self.max_threshold {
            1.0
        } else if delay > self.min_threshold {
            (delay - self.min_threshold).as_secs_f64() / self.range
        } else {
            0.0
        }
    }
}

/// The probabilities, and what the recurrences have added up.
#[derive(Clone, Default)]
struct Signals {
    /// The base probability p'.
    base: f64,
    /// The delay at the last update, in seconds.
    delay: f64,
    classic_count: f64,
    l4s_count: f64,
}

impl Signals {
    /// Figure 8, the update of p'.
    fn update(&mut self, law: &Constants, delay: f64) {
        let change = law.alpha * (delay - law.target) + law.beta * (delay - self.delay);
        self.base = (self.base + change).clamp(0.0, law.most);
        self.delay = delay;
    }
    /// p_C.
    fn classic(&self) -> f64 {
        self.base * self.base
    }
    /// p_CL.
    fn coupled(&self, law: &Constants) -> f64 {
        self.base * law.k
    }
    /// True if p_CL has reached p_Lmax, which is when p_C reaches p_Cmax.
    fn is_overload(&self, law: &Constants) -> bool {
        law.drop_overload && self.coupled(law) >= 1.0
    }
}

/// The limit; by default 250 ms at the rate of the link.
fn limit(params: &DualPi2Params, env: &LinkEnv) -> Limit {
    let buffer = env.rate.bytes_in(Span::from_millis(250)).max(env.mtu);
    params.limit.unwrap_or(Limit::Bytes(buffer)).resolve(env.rate, env.base_rtt)
}

/// The state machine.
#[derive(Clone)]
pub(super) struct DualPi2Rfc {
    queues: Queues,
    limit: Limit,
    mtu: u64,
    law: Constants,
    signals: Signals,
    next_update: Time,
    seen: Seen,
}

impl DualPi2Rfc {
    pub fn new(params: &DualPi2Params, env: &LinkEnv) -> Self {
        let law = Constants::new(params);
        DualPi2Rfc {
            queues: Queues::new(params, env.mtu.get()),
            limit: limit(params, env),
            mtu: env.mtu.get(),
            signals: Signals::default(),
            next_update: Time::ZERO + law.tupdate,
            law,
            seen: Seen::default(),
        }
    }

    pub fn change(&mut self, params: &DualPi2Params, env: &LinkEnv, cx: &mut Context<'_>) {
        self.queues.change(params, self.mtu);
        self.limit = limit(params, env);
        self.law = Constants::new(params);
        while self.queues.total().exceeds(self.limit) {
            self.queues.drop_head(cx);
        }
    }

    /// Figure 7 after the scheduler: the packet, marked or not, unless it is
    /// dropped.
    fn signal(&mut self, taken: Taken, cx: &mut Context<'_>) -> Option<Packet> {
        let Taken { mut packet, is_l4s, .. } = taken;
        let (law, signals) = (&self.law, &mut self.signals);
        let (coupled, classic) = (signals.coupled(law), signals.classic());
        let overload = signals.is_overload(law);
        let native = match is_l4s && !overload && self.queues.l4s.backlog().packets >= law.th_len {
            true => law.native(cx.now - packet.arrival()),
            false => 0.0,
        };
        let likelihood = if is_l4s && !overload { native.max(coupled) } else { classic };
        let count = if is_l4s { &mut signals.l4s_count } else { &mut signals.classic_count };
        let hit = match law.derandomize {
            true => recur(count, likelihood),
            false => cx.random.uniform() < likelihood,
        };
        if hit && (overload || !packet.ecn().is_capable()) {
            cx.drop(packet, Reason::Pi2);
            return None;
        }
        if hit || (is_l4s && overload) {
            let reason = if native > coupled { Reason::Step } else { Reason::Pi2 };
            cx.mark(&mut packet, reason);
        }
        Some(packet)
    }
}

impl QueueDiscipline for DualPi2Rfc {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let Backlog { packets, bytes } = self.queues.total();
        self.seen.arrived += 1;
        if !self.limit.admits(packets, bytes, self.mtu.max(u64::from(packet.size()))) {
            cx.drop(packet, Reason::Overlimit);
        } else if self.queues.is_l4s(packet.ecn()) {
            self.seen.l4s += 1;
            self.queues.l4s.push(packet);
        } else {
            self.queues.classic.push(packet);
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let taken = self.queues.take(cx.now)?;
            let credit = taken.credit;
            if let Some(packet) = self.signal(taken, cx) {
                self.queues.credit += credit;
                return Some(packet);
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.next_update += self.law.tupdate;
        let (classic, l4s) = self.queues.ages(cx.now);
        self.signals.update(&self.law, classic.max(l4s).as_secs_f64());
        self.seen.updates += 1;
        self.seen.overloads += u64::from(self.signals.is_overload(&self.law));
    }

    fn backlog(&self) -> Backlog {
        self.queues.total()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("base_probability", self.signals.base);
        see("classic_probability", self.signals.classic());
        see("l4s_probability", self.signals.coupled(&self.law).min(1.0));
        see("delay_estimate", self.signals.delay);
        self.queues.observe(see);
    }

    fn notes(&self) -> Vec<Note> {
        super::notes(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Bytes, Ecn};

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{
        TestPacket, assert_near, assert_overload, assert_shares, env, fill, queue_of, seen,
    };

    fn with(change: impl FnOnce(&mut DualPi2Params)) -> DualPi2Rfc {
        let mut params = DualPi2Params::default();
        change(&mut params);
        DualPi2Rfc::new(&params, &env())
    }

    #[test]
    fn the_constants_follow_from_the_parameters() {
        let law = with(|_| ()).law;
        assert_eq!(law.tupdate, Span::from_millis(15));
        assert!((law.alpha - 0.15).abs() < 1e-12 && (law.beta - 3.0).abs() < 1e-12);
        // A third of RTT_max is less than the target.
        let law = with(|params| params.rtt_max = Span::from_millis(30)).law;
        assert_eq!(law.tupdate, Span::from_millis(10));
        assert!((law.alpha - 0.1 * 0.01 / 0.0009).abs() < 1e-12, "{}", law.alpha);
        assert!((law.beta - 10.0).abs() < 1e-12, "{}", law.beta);
        // 16 ms: the rounded gains of the RFC's text are 0.16 and 3.2.
        let law = with(|params| {
            params.tupdate = Some(Span::from_millis(16));
            (params.alpha, params.beta) = (Some(0.16), Some(3.2));
        });
        assert_eq!((law.law.alpha, law.law.beta), (0.16, 3.2));
    }

    #[test]
    fn the_ramp_rises_from_its_threshold_to_its_end() {
        let ramp = with(|_| ()).law;
        let step = with(|params| params.step = Some(Span::from_millis(1))).law;
        let native = |law: &Constants, micros| law.native(Span::from_micros(micros));
        for (micros, expected) in
            [(800, 0.0), (900, 0.25), (1000, 0.5), (1199, 0.9975), (1200, 1.0)]
        {
            assert!((native(&ramp, micros) - expected).abs() < 1e-9, "{micros}");
        }
        assert_eq!((native(&step, 999), native(&step, 1000)), (0.0, 1.0));
    }

    #[test]
    fn the_update_takes_the_older_head_and_stays_within_its_bounds() {
        let mut queue = queue_of(1, with(|_| ()));
        queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO + Span::from_millis(10));
        queue.enqueue(Packet::of_ecn(Ecn::Ect1), Time::ZERO + Span::from_millis(12));
        let base = |queue: &Queue| seen(queue, "base_probability");
        // The classic head is 10 ms old, then 25: 0.15 (d - 15) + 3 (d - d').
        queue.on_wakeup(Time::ZERO + Span::from_millis(20));
        let first = -0.15 * 0.005 + 3.0 * 0.01;
        assert_near(base(&queue), first);
        queue.on_wakeup(Time::ZERO + Span::from_millis(35));
        let second = first + 0.15 * 0.01 + 3.0 * 0.015;
        assert_near(base(&queue), second);
        // Without the classic packet the L4S head is the older: 24 ms.
        queue.dequeue(Time::ZERO + Span::from_millis(35)).unwrap();
        queue.dequeue(Time::ZERO + Span::from_millis(35)).unwrap();
        queue.enqueue(Packet::of_ecn(Ecn::Ect1), Time::ZERO + Span::from_millis(36));
        queue.on_wakeup(Time::ZERO + Span::from_millis(60));
        let third = second + 0.15 * 0.009 + 3.0 * -0.001;
        assert_near(base(&queue), third);
        queue.on_wakeup(Time::ZERO + Span::from_secs(10));
        assert_eq!(base(&queue), 1.0);
        let mut capped = with(|params| params.drop_overload = false);
        capped.signals.update(&capped.law, 10.0);
        assert_eq!(capped.signals.base, 0.5);
    }

    /// A queue with a base probability that stays.
    fn at(base: f64, change: impl FnOnce(&mut DualPi2Params)) -> Queue {
        let mut dualpi2 = with(change);
        dualpi2.signals.base = base;
        queue_of(1, dualpi2)
    }

    #[test]
    fn classic_packets_meet_the_square_and_l4s_packets_the_product() {
        for derandomize in [true, false] {
            for (ecn, drops, marks) in
                [(Ecn::NotEct, 0.09, 0.0), (Ecn::Ect0, 0.0, 0.09), (Ecn::Ect1, 0.0, 0.6)]
            {
                let queue = at(0.3, |params| params.derandomize = derandomize);
                assert_shares(queue, ecn, drops, marks);
            }
        }
    }

    #[test]
    fn overload_drops_every_kind_and_marks_the_rest_of_l4s() {
        assert_overload(|| at(0.6, |_| ()));
        // p_C >= p_Cmax = 1/4 is p' >= 1/2: at the threshold, and with delay instead of drops.
        assert_shares(at(0.5, |_| ()), Ecn::Ect0, 0.25, 0.0);
        assert_shares(at(0.5, |params| params.drop_overload = false), Ecn::Ect0, 0.0, 0.25);
    }

    #[test]
    fn marks_come_at_even_distances() {
        let mut queue = at(0.125, |_| ());
        let mut marks = Vec::new();
        for number in 1..=17 {
            queue.enqueue(Packet::of_ecn(Ecn::Ect1), Time::ZERO);
            if queue.dequeue(Time::ZERO).unwrap().ecn() == Ecn::Ce {
                marks.push(number);
            }
        }
        // The sum of quarters has to exceed 1.
        assert_eq!(marks, [5, 9, 13, 17]);
    }

    /// Marks of ten L4S packets that arrive together and leave together after `wait`.
    fn marked(dualpi2: DualPi2Rfc, wait: Span) -> Vec<bool> {
        let mut queue = queue_of(1, dualpi2);
        fill(&mut queue, 10, Ecn::Ect1);
        let leave = std::iter::from_fn(|| queue.dequeue(Time::ZERO + wait));
        let marks = leave.map(|packet| packet.ecn() == Ecn::Ce).collect();
        assert_eq!(queue.counts().marked_total(), queue.counts().marked[Reason::Step as usize]);
        marks
    }

    #[test]
    fn the_last_packet_of_an_l4s_queue_is_not_marked() {
        // The first at probability 1 fills the count only.
        let all = |th_len| with(|params| params.th_len = th_len);
        let marks = marked(all(1), Span::from_millis(2));
        assert_eq!(marks, [vec![false], vec![true; 8], vec![false]].concat());
        let marks = marked(all(0), Span::from_millis(2));
        assert_eq!(marks, [vec![false], vec![true; 9]].concat());
        let marks = marked(all(4), Span::from_millis(2));
        assert_eq!(marks, [vec![false], vec![true; 5], vec![false; 4]].concat());
        // Half up the ramp every second one is.
        let marks = marked(all(0), Span::from_millis(1));
        assert_eq!(marks.iter().filter(|mark| **mark).count(), 4);
    }

    #[test]
    fn the_combination_is_the_larger_of_the_two() {
        // Coupled 0.75 against 0.5 of the ramp: 0.75, not the sum.
        let mut queue = at(0.375, |_| ());
        fill(&mut queue, 100, Ecn::Ect1);
        while queue.dequeue(Time::ZERO + Span::from_millis(1)).is_some() {}
        assert_eq!(queue.counts().marked[Reason::Pi2 as usize], 74);
        assert_eq!(queue.counts().marked_total(), 74);
    }

    #[test]
    fn a_buffer_of_250_ms_keeps_room_for_a_full_packet() {
        // 10 Mbit/s: 312 500 bytes. 207 packets of 1500 bytes leave 2000, room
        // for one of 1514; 208 do not.
        let mut queue = queue_of(1, with(|_| ()));
        fill(&mut queue, 300, Ecn::NotEct);
        assert_eq!(queue.backlog().packets, 208);
        for (bytes, packets) in [(3013, 1), (3014, 2)] {
            let limit = Some(Limit::Bytes(Bytes::new(bytes)));
            let mut queue = queue_of(1, with(|params| params.limit = limit));
            fill(&mut queue, 5, Ecn::NotEct);
            assert_eq!(queue.backlog().packets, packets, "{bytes}");
        }
    }
}
