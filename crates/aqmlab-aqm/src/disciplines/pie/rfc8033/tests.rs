//! PIE's updates, safeguards and optional elements, computed manually.

use aqmlab_core::Ecn;

use super::*;
use crate::queue::Queue;
use crate::testing::{self, TestPacket, assert_near, at, env, fill, ids, queue_of, seen};

fn with(change: impl FnOnce(&mut PieParams)) -> Pie {
    let mut params = PieParams::default();
    change(&mut params);
    Pie::new(&params, &env()).aqm
}

fn queue(pie: Pie) -> Queue {
    queue_of(3, OneQueue { aqm: pie.clone(), ..Pie::new(&pie.params, &env()) })
}

/// A queue of ten packets without a limit, with a probability that stays.
fn steady(mut pie: Pie, probability: f64) -> Queue {
    (pie.probability, pie.delay, pie.old_delay) = (probability, 1.0, 1.0);
    pie.burst_allowance = Span::ZERO;
    let room = QueueLimit::new(Limit::Unlimited, None, &env());
    let mut queue = OneQueue::new(room, pie);
    (0..10).for_each(|_| queue.fifo.push(Packet::of_ecn(Ecn::NotEct)));
    queue_of(3, queue)
}

/// Arrivals that are dropped or marked out of `count`, counted from 1.
fn chosen(pie: Pie, probability: f64, ecn: Ecn, count: u64) -> Vec<u64> {
    let chosen = testing::chosen(&mut steady(pie, probability), ecn, count);
    chosen.into_iter().map(|(number, _)| number).collect()
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
        assert_eq!(super::divisor(Tuning::Rfc8033, probability), divisor, "{probability}");
        let draft = super::divisor(Tuning::Draft, probability);
        assert_eq!(draft, f64::min(divisor, 8.0), "{probability}");
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
        assert_near(pie.next_probability(), expected);
    }
    let mut pie = with(|params| params.cap = false);
    (pie.probability, pie.old_delay, pie.delay) = (0.5, 0.015, 0.035);
    assert_near(pie.next_probability(), 0.5 + 0.125 * 0.02 + 1.25 * 0.02);
    // Appendix B decays below half the target too.
    let mut pie = with(|params| params.decay = Decay::HalfTarget);
    (pie.probability, pie.old_delay, pie.delay) = (0.5, 0.005, 0.005);
    assert_near(pie.next_probability(), (0.5 - 0.125 * 0.01) * 0.98);
    pie.old_delay = 0.008;
    assert_near(pie.next_probability(), 0.5 - 0.125 * 0.01 - 1.25 * 0.003);
}

#[test]
fn a_run_of_samples_moves_the_probability() {
    // Packets that waited 10, 25 and 40 ms, each before an update.
    let mut queue = queue(with(|_| ()));
    fill(&mut queue, 4, Ecn::NotEct);
    let mut expected = (0.125 * -0.005 + 1.25 * 0.01) / 2048.0;
    for (wait, update) in [(10, 15), (25, 30), (40, 45)] {
        queue.dequeue(at(wait)).unwrap();
        queue.on_wakeup(at(update));
        assert_near(seen(&queue, "drop_probability"), expected);
        assert_near(seen(&queue, "delay_estimate"), wait as f64 / 1e3);
        // The next wait is 15 ms longer.
        let step = 0.125 * (wait as f64 / 1e3) + 1.25 * 0.015;
        expected += step / divisor(Tuning::Rfc8033, expected);
    }
    // An idle link has no delay.
    queue.dequeue(at(46)).unwrap();
    assert!(queue.dequeue(at(50)).is_none());
    assert_eq!(seen(&queue, "delay_estimate"), 0.0);
}

#[test]
fn a_cycle_measures_the_time_of_its_threshold() {
    let mut meter = DepartureMeter::new(Bytes::new(16_384));
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
    assert_near(meter.average.unwrap(), 0.066);
    // Half as fast: a quarter of the new, three of the old.
    for i in 1..=11 {
        meter.departure(at(72 + 12 * i), 1500, 16_384);
    }
    assert_near(meter.average.unwrap(), 0.25 * 0.132 + 0.75 * 0.066);
    assert_near(meter.delay(32_768), 2.0 * (0.25 * 0.132 + 0.75 * 0.066));
}

#[test]
fn the_burst_allowance_shrinks_at_updates_and_returns_when_calm() {
    let mut queue = queue(with(|_| ()));
    let allowance = |queue: &Queue| seen(queue, "burst_allowance");
    // A first packet that waits for 40 ms, another for 200 ms.
    fill(&mut queue, 3, Ecn::NotEct);
    queue.dequeue(at(40)).unwrap();
    for i in 1..=10 {
        queue.on_wakeup(at(40 + 15 * i));
        assert_near(allowance(&queue), 0.150 - 0.015 * i as f64);
    }
    // Not calm: the probability is above zero.
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(191));
    assert_eq!(allowance(&queue), 0.0);
    // Calm is a matter of the next arrival after two short samples.
    while queue.dequeue(at(200)).is_some() {}
    let mut update = 205;
    while seen(&queue, "drop_probability") > 0.0 {
        queue.on_wakeup(at(update));
        update += 15;
    }
    assert_eq!(allowance(&queue), 0.0);
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(update));
    assert_eq!(allowance(&queue), 0.150);
    // While it lasts nothing is dropped at any probability.
    let mut pie = with(|_| ());
    (pie.probability, pie.delay, pie.old_delay) = (1.0, 1.0, 1.0);
    pie.burst_allowance = Span::from_nanos(1);
    let mut queue = self::queue(pie);
    fill(&mut queue, 100, Ecn::NotEct);
    assert_eq!(queue.backlog().packets, 100);
}

#[test]
fn the_safeguards_are_strict() {
    // Two packets of 1500 bytes are not more than two of 1514.
    let mut pie = with(|params| params.derandomize = false);
    (pie.probability, pie.delay, pie.old_delay) = (1.0, 1.0, 1.0);
    pie.burst_allowance = Span::ZERO;
    let mut queue = queue(pie);
    fill(&mut queue, 5, Ecn::NotEct);
    assert_eq!(queue.backlog().packets, 3);
    // A short delay protects up to a probability of 0.2.
    for (probability, old_delay, protected) in
        [(0.19, 0.007, true), (0.2, 0.007, false), (0.19, 0.0075, false)]
    {
        let mut pie = with(|params| params.derandomize = false);
        (pie.probability, pie.old_delay, pie.delay) = (probability, old_delay, 1.0);
        pie.burst_allowance = Span::ZERO;
        let mut queue = self::queue(pie);
        fill(&mut queue, 200, Ecn::NotEct);
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
        let pie = with(|params| (params.ecn, params.max_ecn) = (true, max_ecn));
        let mut queue = steady(pie, probability);
        testing::chosen(&mut queue, Ecn::Ect0, 1000);
        let counts = queue.counts();
        (counts.marked_total() > 0, counts.dropped_total() > 0, ids(&queue))
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
    fill(&mut queue, 10, Ecn::NotEct);
    // Inactive: updates do nothing. The tenth packet found nine.
    queue.on_wakeup(at(15));
    assert_eq!((seen(&queue, "active"), seen(&queue, "burst_allowance")), (0.0, 0.15));
    // The eleventh finds ten; the measurement begins with it, and 11
    // packets later there is a rate: 11 in 66 ms, so 10 in 60 ms.
    for i in 0..11 {
        queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(16 + 6 * i));
        queue.dequeue(at(16 + 6 * (i + 1))).unwrap();
        assert_eq!(seen(&queue, "active"), 1.0);
    }
    assert_near(seen(&queue, "departure_rate"), 16_384.0 / 0.066);
    queue.on_wakeup(at(90));
    assert_near(seen(&queue, "delay_estimate"), 15_000.0 * 0.066 / 16_384.0);
    // Back below the third, but the probability is not zero.
    while queue.dequeue(at(100)).is_some() {}
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(100));
    assert_eq!(seen(&queue, "active"), 1.0);
    for i in 0..20 {
        queue.on_wakeup(at(105 + 15 * i));
    }
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(400));
    assert_eq!((seen(&queue, "active"), seen(&queue, "burst_allowance")), (0.0, 0.15));
    // With timestamps the packet that left has waited.
    let mut pie = make();
    pie.params.delay = DelaySource::Timestamps;
    let mut queue = self::queue(pie);
    fill(&mut queue, 12, Ecn::NotEct);
    queue.dequeue(at(20)).unwrap();
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), at(20));
    assert_eq!(seen(&queue, "active"), 1.0);
    queue.on_wakeup(at(30));
    assert_near(seen(&queue, "burst_allowance"), 0.135);
    assert!(seen(&queue, "drop_probability") > 0.0);
    assert!(queue.notes().is_empty());
}

#[test]
fn the_sum_is_cleared_by_a_full_buffer_and_with_activation() {
    let mut pie = with(|params| params.limit = Limit::Packets(1));
    pie.accumulated = 0.5;
    let mut queue = queue(pie);
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
    assert_eq!(seen(&queue, "accumulated"), 0.5);
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
    assert_eq!(seen(&queue, "accumulated"), 0.0);
    let mut pie = with(|params| params.activation = Some(0.0));
    (pie.accumulated, pie.old_delay, pie.delay) = (0.5, 0.005, 0.015);
    let mut queue = self::queue(pie);
    queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
    assert_eq!(seen(&queue, "accumulated"), 0.0);
    // With the last delay zero: (1/8 * 0 + 1.25 * 15 ms) / 2048.
    queue.on_wakeup(at(15));
    assert_near(seen(&queue, "drop_probability"), 1.25 * 0.015 / 2048.0);
}
