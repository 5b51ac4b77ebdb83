//! PIE in floating point, as its RFC reads: `variant = rfc8033` of the
//! discipline `pie`.
//!
//! # Sources
//! RFC 8033: sections 4 (the basic scheme) and 5 (the optional elements),
//! appendices A and B (pseudo-code of either).
//!
//! # Differences
//! 1. The delay is zero from the moment when the link finds the queue empty;
//!    the pseudo-code would keep the delay of the last packet, however long
//!    ago that left.
//! 2. Where text and appendices differ: as long as the burst allowance lasts no
//!    probability accumulates (section 4.4 and appendix A; in appendix B it
//!    does), the measurement of the departure rate begins behind a packet
//!    (appendix B; in section 5.2 that packet counts), PIE becomes inactive
//!    below half the target (section 5.3; in appendix B at zero) and is active
//!    for the packet that finds a long queue (section 5.3; in appendix B for
//!    the next). `decay` chooses between the appendices.
//! 3. A long queue keeps PIE active. As written, section 5.3 and appendix B end
//!    the active state where they begin it, if the delay was never measured.
//! 4. The design without a dequeue module (section 5.2, figure 2) is left out.

use aqmlab_core::{Bytes, Limit, Packet, Span, Time};

use super::{Decay, DelaySource, Memory, PieParams, no_rate_sample};
use crate::discipline::{Backlog, Context, DropReason, LinkEnv, Note, QueueDiscipline};
use crate::fifo::Fifo;

/// Section 5.2: the average time that a threshold of bytes takes.
struct Meter {
    threshold: u64,
    weight: f64,
    cycle: Option<(Time, u64)>,
    average: Option<f64>,
}

impl Meter {
    fn new(threshold: Bytes) -> Self {
        let weight = threshold.get() as f64 / 65_536.0;
        Meter { threshold: threshold.get(), weight, cycle: None, average: None }
    }

    /// Appendix B, deque: a packet leaves and `backlog` bytes stay.
    fn departure(&mut self, now: Time, size: u32, backlog: u64) {
        if let Some((start, left)) = &mut self.cycle {
            *left += u64::from(size);
            if *left >= self.threshold {
                let sample = (now - *start).as_secs_f64();
                self.average = Some(match self.average {
                    None => sample,
                    Some(average) => sample * self.weight + average * (1.0 - self.weight),
                });
                self.cycle = None;
            }
        }
        if self.cycle.is_none() && backlog >= self.threshold {
            self.cycle = Some((now, 0));
        }
    }

    fn delay(&self, backlog: u64) -> f64 {
        self.average.map_or(0.0, |time| backlog as f64 * time / self.threshold as f64)
    }
}

/// The state machine.
pub(super) struct Pie<P> {
    fifo: Fifo<P>,
    limit: Limit,
    params: PieParams,
    env: LinkEnv,
    mean_packet: u64,
    next_update: Time,
    probability: f64,
    /// What derandomisation has added up since the last drop.
    accumulated: f64,
    burst_allowance: Span,
    /// The present and the last sample of the delay, in seconds.
    delay: f64,
    old_delay: f64,
    meter: Meter,
    is_active: bool,
    memory: Memory,
    ever_active: bool,
    ever_measured: bool,
}

impl<P: Packet> Pie<P> {
    pub fn new(params: &PieParams, env: &LinkEnv) -> Self {
        let is_active = params.activation.is_none();
        Pie {
            fifo: Fifo::default(),
            limit: params.limit.resolve(env.rate, env.base_rtt),
            next_update: Time::ZERO + params.tupdate,
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: params.max_burst,
            delay: 0.0,
            old_delay: 0.0,
            meter: Meter::new(params.dq_threshold),
            is_active,
            memory: Memory::default(),
            ever_active: is_active,
            ever_measured: false,
            mean_packet: params.mean_packet.unwrap_or(env.mtu).get(),
            env: *env,
            params: params.clone(),
        }
    }

    fn target(&self) -> f64 {
        self.params.target.as_secs_f64()
    }

    /// Whether the congestion has gone (section 4.4).
    fn is_calm(&self) -> bool {
        let half = self.target() / 2.0;
        self.probability == 0.0 && self.delay < half && self.old_delay < half
    }

    /// Section 5.3: whether the queue is long enough to make PIE active.
    fn is_long(&self) -> bool {
        let Some(part) = self.params.activation else { return true };
        let Backlog { packets, bytes } = self.fifo.backlog();
        match self.limit {
            Limit::Packets(limit) => packets as f64 >= part * limit as f64,
            Limit::Bytes(limit) => bytes as f64 >= part * limit.get() as f64,
            Limit::Bdp(_) | Limit::Unlimited => unreachable!("resolved, and checked"),
        }
    }

    /// Appendix B, enque: PIE begins anew.
    fn activate(&mut self, now: Time) {
        (self.is_active, self.ever_active) = (true, true);
        (self.probability, self.accumulated, self.old_delay) = (0.0, 0.0, 0.0);
        self.burst_allowance = self.params.max_burst;
        self.meter.average = None;
        self.meter.cycle = Some((now, 0));
    }

    /// Whether an arriving packet is chosen.
    fn is_chosen(&mut self, packet: &P, cx: &mut Context<'_, P>) -> bool {
        // Section 4.4: bursts pass.
        if !self.is_active || self.burst_allowance > Span::ZERO {
            return false;
        }
        // Section 4.1: the link must not run empty.
        let short_delay = self.old_delay < self.target() / 2.0 && self.probability < 0.2;
        if short_delay || self.fifo.backlog().bytes <= 2 * self.mean_packet {
            return false;
        }
        let p = match self.params.by_size {
            true => self.probability * f64::from(packet.size()) / self.mean_packet as f64,
            false => self.probability,
        };
        if !self.params.derandomize {
            return p > 0.0 && cx.random.uniform() < p;
        }
        // Section 5.4.
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += p;
        if self.accumulated < self.params.prob_low {
            false
        } else {
            self.accumulated >= self.params.prob_high || cx.random.uniform() < p
        }
    }

    /// Sections 4.2 and 5.5: the probability after an update.
    fn next_probability(&self) -> f64 {
        let target = self.target();
        let change = self.params.alpha * (self.delay - target)
            + self.params.beta * (self.delay - self.old_delay);
        let mut change = change / tuning(self.probability);
        if self.params.cap && self.probability >= 0.1 {
            change = change.min(0.02);
        }
        let mut probability = self.probability + change;
        let decays = match self.params.decay {
            Decay::Zero => self.delay == 0.0 && self.old_delay == 0.0,
            Decay::HalfTarget => self.delay.max(self.old_delay) < target / 2.0,
        };
        if decays {
            probability *= 0.98;
        }
        probability.clamp(0.0, 1.0)
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Pie<P> {
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_, P>) {
        let Backlog { packets, bytes } = self.fifo.backlog();
        if !self.limit.admits(packets, bytes, u64::from(packet.size())) {
            self.accumulated = 0.0;
            cx.drop(packet, DropReason::Overlimit);
            return;
        }
        let is_long = self.is_long();
        if is_long && !self.is_active {
            self.activate(cx.now);
        }
        let is_chosen = self.is_chosen(&packet, cx);
        if self.is_calm() {
            self.burst_allowance = self.params.max_burst;
            self.is_active = is_long;
        }
        if is_chosen {
            self.accumulated = 0.0;
            let is_capable = self.params.ecn && packet.ecn().is_capable();
            if !is_capable || self.probability >= self.params.max_ecn {
                self.memory.ecn_drops += u64::from(is_capable);
                cx.drop(packet, DropReason::Pie);
                return;
            }
            self.memory.marks += 1;
            cx.mark(&mut packet, DropReason::Pie);
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let packet = self.fifo.pop();
        let sojourn = packet.as_ref().map_or(Span::ZERO, |packet| cx.now - packet.arrival());
        self.memory.longest = self.memory.longest.max(sojourn);
        match self.params.delay {
            DelaySource::Timestamps => self.delay = sojourn.as_secs_f64(),
            DelaySource::Rate => {
                if let Some(packet) = packet.as_ref().filter(|_| self.is_active) {
                    self.meter.departure(cx.now, packet.size(), self.fifo.backlog().bytes);
                    self.ever_measured |= self.meter.average.is_some();
                }
            }
        }
        packet
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    /// Sections 4.2 to 4.4: the update of the probability.
    fn on_wakeup(&mut self, _cx: &mut Context<'_, P>) {
        self.next_update += self.params.tupdate;
        if !self.is_active {
            return;
        }
        if self.params.delay == DelaySource::Rate {
            self.delay = self.meter.delay(self.fifo.backlog().bytes);
        }
        self.probability = self.next_probability();
        self.old_delay = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.params.tupdate);
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
        see("delay_estimate", self.delay);
        see("burst_allowance", self.burst_allowance.as_secs_f64());
        see("accumulated_probability", self.accumulated);
        if self.params.delay == DelaySource::Rate {
            let rate = |time| self.params.dq_threshold.get() as f64 / time;
            see("departure_rate", self.meter.average.map_or(0.0, rate));
        }
        if self.params.activation.is_some() {
            see("active", f64::from(u8::from(self.is_active)));
        }
    }

    fn notes(&self) -> Vec<Note> {
        let params = &self.params;
        let mut notes = self.memory.notes(params, &self.env);
        if self.memory.longest <= params.target {
            return notes;
        }
        if !self.ever_active {
            notes.push(Note {
                id: "pie-inactive",
                text: format!(
                    "PIE was never active: the queue never reached {} of its limit of {}, so it \
                     worked as a drop-tail queue, although packets waited longer than its target \
                     of {}. Set `limit` to a buffer that fits the link, or `activation = none`.",
                    params.activation.unwrap_or_default(),
                    self.limit,
                    params.target
                ),
            });
        } else if params.delay == DelaySource::Rate && !self.ever_measured {
            notes.push(no_rate_sample(Limit::Bytes(params.dq_threshold), None, self.env.rate));
        }
        notes
    }
}

/// By what the steps are divided while the probability is small (section 4.2).
fn tuning(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Ecn, Stream};

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env};

    fn with(change: impl FnOnce(&mut PieParams)) -> Pie<TestPacket> {
        let mut params = PieParams::default();
        change(&mut params);
        Pie::new(&params, &env())
    }

    fn queue(pie: Pie<TestPacket>) -> Queue<TestPacket> {
        Queue::new(Box::new(pie), Stream::from_state(3))
    }

    fn seen(queue: &Queue<TestPacket>, name: &str) -> f64 {
        let mut found = None;
        queue.observe(&mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} instead of {b}");
    }

    /// Which of so many arrivals are dropped or marked, at a standing queue
    /// of ten packets; counted from 1.
    fn chosen(mut pie: Pie<TestPacket>, probability: f64, ecn: Ecn, count: u64) -> Vec<u64> {
        (pie.probability, pie.delay, pie.old_delay) = (probability, 1.0, 1.0);
        (pie.burst_allowance, pie.limit) = (Span::ZERO, Limit::Unlimited);
        for _ in 0..10 {
            pie.fifo.push(TestPacket::new(Ecn::NotEct));
        }
        let mut queue = queue(pie);
        let mut chosen = Vec::new();
        for number in 1..=count {
            let marks = queue.counts().marked_total();
            queue.enqueue(TestPacket::new(ecn), Time::ZERO);
            let mut dropped = false;
            queue.take_dropped(|_, _| dropped = true);
            if dropped || queue.counts().marked_total() > marks {
                chosen.push(number);
            }
        }
        chosen
    }

    #[test]
    fn steps_are_smaller_while_the_probability_is_small() {
        let table = [
            (0.0, 2048.0),
            (5e-6, 512.0),
            (5e-5, 128.0),
            (5e-4, 32.0),
            (5e-3, 8.0),
            (0.05, 2.0),
            (0.1, 1.0),
        ];
        for (probability, divisor) in table {
            assert_eq!(tuning(probability), divisor, "{probability}");
        }
    }

    #[test]
    fn updates_follow_the_equation_the_cap_and_the_decay() {
        // p, last delay, delay (ms): 1/8 (d - 15 ms) + 1.25 (d - d'), divided.
        let cases = [
            (0.0, 0.0, 35.0, (0.125 * 0.02 + 1.25 * 0.035) / 2048.0),
            (0.05, 20.0, 20.0, 0.05 + 0.125 * 0.005 / 2.0),
            (0.5, 20.0, 10.0, 0.5 - 0.125 * 0.005 - 1.25 * 0.01),
            // The cap holds from 0.1 on and for rises only.
            (0.5, 15.0, 35.0, 0.52),
            (0.099, 15.0, 115.0, 0.099 + (0.125 * 0.1 + 1.25 * 0.1) / 2.0),
            (0.5, 115.0, 15.0, 0.5 - 1.25 * 0.1),
            // Only two delays of zero decay.
            (0.5, 0.0, 0.0, (0.5 - 0.125 * 0.015) * 0.98),
            (0.5, 5.0, 5.0, 0.5 - 0.125 * 0.01),
            // Nothing is added for long delays: the rule of 250 ms is Linux's.
            (0.05, 300.0, 300.0, 0.05 + 0.125 * 0.285 / 2.0),
            (0.999, 300.0, 300.0, 1.0),
            (1e-9, 0.0, 0.0, 0.0),
        ];
        let mut pie = with(|_| ());
        for (probability, old, delay, expected) in cases {
            pie.probability = probability;
            (pie.old_delay, pie.delay) = (old / 1e3, delay / 1e3);
            close(pie.next_probability(), expected);
        }
        let mut pie = with(|params| params.cap = false);
        (pie.probability, pie.old_delay, pie.delay) = (0.5, 0.015, 0.035);
        close(pie.next_probability(), 0.5 + 0.125 * 0.02 + 1.25 * 0.02);
        // Appendix B decays below half the target too.
        let mut pie = with(|params| params.decay = Decay::HalfTarget);
        (pie.probability, pie.old_delay, pie.delay) = (0.5, 0.005, 0.005);
        close(pie.next_probability(), (0.5 - 0.125 * 0.01) * 0.98);
        pie.old_delay = 0.008;
        close(pie.next_probability(), 0.5 - 0.125 * 0.01 - 1.25 * 0.003);
    }

    #[test]
    fn a_run_of_samples_moves_the_probability() {
        // Packets that waited 10, 25 and 40 ms, each before an update.
        let mut queue = queue(with(|_| ()));
        for _ in 0..4 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        }
        let mut expected = (0.125 * -0.005 + 1.25 * 0.01) / 2048.0;
        for (wait, update) in [(10, 15), (25, 30), (40, 45)] {
            queue.dequeue(at(wait)).unwrap();
            queue.on_wakeup(at(update));
            close(seen(&queue, "drop_probability"), expected);
            close(seen(&queue, "delay_estimate"), wait as f64 / 1e3);
            // The next wait is 15 ms longer.
            let step = 0.125 * (wait as f64 / 1e3) + 1.25 * 0.015;
            expected += step / tuning(expected);
        }
        // An idle link has no delay.
        queue.dequeue(at(46)).unwrap();
        assert!(queue.dequeue(at(50)).is_none());
        assert_eq!(seen(&queue, "delay_estimate"), 0.0);
    }

    #[test]
    fn a_cycle_measures_the_time_of_its_threshold() {
        let mut meter = Meter::new(Bytes::new(16_384));
        // Too short a queue starts nothing.
        meter.departure(at(0), 1500, 16_383);
        assert!(meter.cycle.is_none());
        meter.departure(at(6), 1500, 16_384);
        for i in 1..=10 {
            meter.departure(at(6 + 6 * i), 1500, 16_384);
            assert!(meter.average.is_none());
        }
        // The eleventh packet behind the first makes 16 500 bytes: 66 ms.
        meter.departure(at(72), 1500, 16_384);
        close(meter.average.unwrap(), 0.066);
        // Half as fast: a quarter of the new, three of the old.
        for i in 1..=11 {
            meter.departure(at(72 + 12 * i), 1500, 16_384);
        }
        close(meter.average.unwrap(), 0.25 * 0.132 + 0.75 * 0.066);
        close(meter.delay(32_768), 2.0 * (0.25 * 0.132 + 0.75 * 0.066));
    }

    #[test]
    fn the_burst_allowance_shrinks_at_updates_and_returns_when_calm() {
        let mut queue = queue(with(|_| ()));
        let allowance = |queue: &Queue<TestPacket>| seen(queue, "burst_allowance");
        // A first packet that waits for 40 ms, another for 200 ms.
        for _ in 0..3 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        }
        queue.dequeue(at(40)).unwrap();
        for i in 1..=10 {
            queue.on_wakeup(at(40 + 15 * i));
            close(allowance(&queue), 0.150 - 0.015 * i as f64);
        }
        // Not calm: the probability is above zero.
        queue.enqueue(TestPacket::new(Ecn::NotEct), at(191));
        assert_eq!(allowance(&queue), 0.0);
        // Calm is a matter of the next arrival after two short samples.
        while queue.dequeue(at(200)).is_some() {}
        let mut update = 205;
        while seen(&queue, "drop_probability") > 0.0 {
            queue.on_wakeup(at(update));
            update += 15;
        }
        assert_eq!(allowance(&queue), 0.0);
        queue.enqueue(TestPacket::new(Ecn::NotEct), at(update));
        assert_eq!(allowance(&queue), 0.150);
        // While it lasts nothing is dropped, whatever the probability.
        let mut pie = with(|_| ());
        (pie.probability, pie.delay, pie.old_delay) = (1.0, 1.0, 1.0);
        pie.burst_allowance = Span::from_nanos(1);
        let mut queue = self::queue(pie);
        for _ in 0..100 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        }
        assert_eq!(queue.backlog().packets, 100);
    }

    #[test]
    fn the_safeguards_are_strict() {
        // Two packets of 1500 bytes are not more than two of 1514.
        let mut pie = with(|params| params.derandomize = false);
        (pie.probability, pie.delay, pie.old_delay) = (1.0, 1.0, 1.0);
        pie.burst_allowance = Span::ZERO;
        let mut queue = queue(pie);
        for _ in 0..5 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        }
        assert_eq!(queue.backlog().packets, 3);
        // A short delay protects up to a probability of 0.2.
        for (probability, old_delay, protected) in
            [(0.19, 0.007, true), (0.2, 0.007, false), (0.19, 0.0075, false)]
        {
            let mut pie = with(|params| params.derandomize = false);
            (pie.probability, pie.old_delay, pie.delay) = (probability, old_delay, 1.0);
            pie.burst_allowance = Span::ZERO;
            let mut queue = self::queue(pie);
            for _ in 0..200 {
                queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
            }
            assert_eq!(queue.backlog().packets == 200, protected, "{probability} {old_delay}");
        }
    }

    #[test]
    fn drops_are_kept_apart_and_not_too_far() {
        // With p = 0.1 none follows within 0.85 / p, and one by 8.5 / p.
        let drops = chosen(with(|_| ()), 0.1, Ecn::NotEct, 5000);
        let gaps: Vec<u64> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (9..=86).contains(gap)), "{:?}", &gaps[..60]);
        // A mean of 8 packets without a draw and 1/p with: one in 18.
        assert!((250..=310).contains(&drops.len()), "{}", drops.len());
        // Two draws of 1 would be needed below the threshold of 1.
        let low = chosen(with(|params| params.prob_low = 1.01), 1.0, Ecn::NotEct, 6);
        assert_eq!(low, [2, 4, 6]);
        // The high threshold drops without a draw: every fourth of 1/4.
        let high = chosen(with(|params| params.prob_high = 1.0), 0.25, Ecn::NotEct, 1000);
        assert!(high.windows(2).all(|pair| pair[1] - pair[0] == 4), "{:?}", &high[..20]);
    }

    #[test]
    fn ecn_packets_are_marked_below_the_threshold_only() {
        let marks = |probability, max_ecn| {
            let mut pie = with(|params| (params.ecn, params.max_ecn) = (true, max_ecn));
            (pie.probability, pie.delay, pie.old_delay) = (probability, 1.0, 1.0);
            (pie.burst_allowance, pie.limit) = (Span::ZERO, Limit::Unlimited);
            for _ in 0..10 {
                pie.fifo.push(TestPacket::new(Ecn::NotEct));
            }
            let mut queue = queue(pie);
            for _ in 0..1000 {
                queue.enqueue(TestPacket::new(Ecn::Ect0), Time::ZERO);
            }
            let ids: Vec<_> = queue.notes().iter().map(|note| note.id).collect();
            queue.take_dropped(|_, _| ());
            let counts = queue.counts();
            (counts.marked_total() > 0, counts.dropped_total() > 0, ids)
        };
        assert_eq!(marks(0.099, 0.1), (true, false, vec![]));
        assert_eq!(marks(0.1, 0.1), (false, true, vec!["pie-ecn-drops"]));
        assert_eq!(marks(0.5, 0.6), (true, false, vec![]));
    }

    #[test]
    fn larger_packets_are_dropped_more_by_size() {
        // 1500 bytes of a mean of 750: twice the probability.
        let base = |params: &mut PieParams| {
            params.derandomize = false;
            params.mean_packet = Some(Bytes::new(750));
        };
        let count = |by_size| {
            let pie = with(|params| {
                base(params);
                params.by_size = by_size;
            });
            chosen(pie, 0.2, Ecn::NotEct, 900).len()
        };
        assert!((150..210).contains(&count(false)), "{}", count(false));
        assert!((330..390).contains(&count(true)), "{}", count(true));
    }

    #[test]
    fn a_third_of_the_limit_makes_it_active() {
        let make = || {
            with(|params| {
                params.activation = Some(1.0 / 3.0);
                params.limit = Limit::Packets(30);
                params.delay = DelaySource::Rate;
            })
        };
        let mut queue = queue(make());
        for _ in 0..10 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        }
        // Inactive: updates do nothing. The tenth packet found nine.
        queue.on_wakeup(at(15));
        assert_eq!((seen(&queue, "active"), seen(&queue, "burst_allowance")), (0.0, 0.15));
        // The eleventh finds ten; the measurement begins with it, and 11
        // packets later there is a rate: 11 in 66 ms, so 10 in 60 ms.
        for i in 0..11 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), at(16 + 6 * i));
            queue.dequeue(at(16 + 6 * (i + 1))).unwrap();
            assert_eq!(seen(&queue, "active"), 1.0);
        }
        close(seen(&queue, "departure_rate"), 16_384.0 / 0.066);
        queue.on_wakeup(at(90));
        close(seen(&queue, "delay_estimate"), 15_000.0 * 0.066 / 16_384.0);
        // Back below the third, but the probability is not zero.
        while queue.dequeue(at(100)).is_some() {}
        queue.enqueue(TestPacket::new(Ecn::NotEct), at(100));
        assert_eq!(seen(&queue, "active"), 1.0);
        for i in 0..20 {
            queue.on_wakeup(at(105 + 15 * i));
        }
        queue.enqueue(TestPacket::new(Ecn::NotEct), at(400));
        assert_eq!((seen(&queue, "active"), seen(&queue, "burst_allowance")), (0.0, 0.15));
        // With timestamps the packet that left has waited.
        let mut pie = make();
        pie.params.delay = DelaySource::Timestamps;
        let mut queue = self::queue(pie);
        for _ in 0..12 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        }
        queue.dequeue(at(20)).unwrap();
        queue.enqueue(TestPacket::new(Ecn::NotEct), at(20));
        assert_eq!(seen(&queue, "active"), 1.0);
        queue.on_wakeup(at(30));
        close(seen(&queue, "burst_allowance"), 0.135);
        assert!(seen(&queue, "drop_probability") > 0.0);
        assert!(queue.notes().is_empty());
    }

    #[test]
    fn the_sum_is_cleared_by_a_full_buffer_and_with_activation() {
        let mut pie = with(|params| params.limit = Limit::Packets(1));
        pie.accumulated = 0.5;
        let mut queue = queue(pie);
        queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        assert_eq!(seen(&queue, "accumulated_probability"), 0.5);
        queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        assert_eq!(seen(&queue, "accumulated_probability"), 0.0);
        let mut pie = with(|params| params.activation = Some(0.0));
        (pie.accumulated, pie.old_delay, pie.delay) = (0.5, 0.005, 0.015);
        let mut queue = self::queue(pie);
        queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
        assert_eq!(seen(&queue, "accumulated_probability"), 0.0);
        // With the last delay zero: (1/8 * 0 + 1.25 * 15 ms) / 2048.
        queue.on_wakeup(at(15));
        close(seen(&queue, "drop_probability"), 1.25 * 0.015 / 2048.0);
    }
}
