//! Changes of parameters where Linux has specific rules: which packets are dropped, from where and
//! for which reason, which state restarts and which continues. From the `change` functions of
//! net/sched of Linux 6.12 (dualpi2: 6.17).

mod harness;

use aqmlab_aqm::{Queue, QueueConfig, Reason, Transition};
use aqmlab_core::{Ecn, Span, Stream, Table, Time, Value};

use harness::*;

/// A queue that is changed by setting keys, as a scenario does.
struct Changing {
    config: QueueConfig,
    queue: Queue,
    next: u64,
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

impl Changing {
    fn new(queue: &str) -> Self {
        let config = config(queue);
        let queue = Queue::new(config.build(&env()), Stream::from_state(1));
        Changing { config, queue, next: 0 }
    }

    /// Packets of these flows come.
    fn offer(&mut self, flows: impl IntoIterator<Item = u32>, ecn: Ecn, now: Time) {
        for flow in flows {
            let packet = numbered(self.next, flow, 1500, ecn);
            self.next += 1;
            self.queue.enqueue(packet, now);
            self.queue.take_dropped(|_, _| ());
        }
    }

    /// Sets a key; gives the numbers of the packets that are dropped by that, and why.
    fn set(&mut self, key: &str, text: &str, now: Time) -> (Vec<u64>, Vec<Reason>) {
        let mut table: Table = self.config.to_table();
        table.insert(key, text.into());
        let to = QueueConfig::read(&Value::Table(table)).unwrap();
        assert_eq!(self.config.transition(&to).unwrap(), Transition::Change);
        self.queue.change(&to, &env(), now);
        self.config = to;
        let mut dropped = (Vec::new(), Vec::new());
        self.queue.take_dropped(|packet, reason| {
            dropped.0.push(packet.key);
            dropped.1.push(reason);
        });
        self.queue.assert_conservation(key);
        dropped
    }

    fn sees(&self, what: &str) -> f64 {
        let mut seen = f64::NAN;
        self.queue.observe(&mut |name, value| {
            if name == what {
                seen = value;
            }
        });
        seen
    }

    /// The numbers of the packets in the order in which they are sent.
    fn drain(&mut self, now: Time) -> Vec<u64> {
        std::iter::from_fn(|| self.queue.dequeue(now)).map(|packet| packet.key).collect()
    }
}

/// A queue behind a link of 10 Mbit/s after so many packets left, with one more at every n-th of the
/// arrivals.
fn at_work(queue: &str, packets: u64, nth: u64) -> (Changing, Time) {
    let mut queue = Changing::new(queue);
    let mut now = Time::ZERO;
    for round in 0..packets {
        now = Time::ZERO + Span::from_micros(1200) * round;
        while let Some(wakeup) = queue.queue.next_wakeup().filter(|wakeup| *wakeup <= now) {
            queue.queue.on_wakeup(wakeup);
        }
        queue.offer([0].repeat(if round % nth == 0 { 2 } else { 1 }), Ecn::NotEct, now);
        queue.queue.dequeue(now);
        queue.queue.take_dropped(|_, _| ());
    }
    (queue, now)
}

/// The same at 1.2 times the rate of the link, until CoDel drops.
fn codel_at_work(queue: &str) -> (Changing, Time) {
    at_work(queue, 2000, 5)
}

/// codel_change: the parameters are written, the variables stay, a smaller limit drops the head.
#[test]
fn codel_goes_on_and_loses_its_head() {
    for variant in ["rfc8289", "linux", "ns2-2013"] {
        let (mut queue, now) = codel_at_work(&format!("codel variant={variant}"));
        let (count, backlog) = (queue.sees("count"), queue.queue.backlog().packets);
        assert!(count > 3.0 && backlog > 20, "{variant}: {count}, {backlog}");
        assert_eq!(queue.set("target", "6ms", now).0, []);
        assert_eq!((queue.sees("count"), queue.sees("dropping")), (count, 1.0), "{variant}");
        let (dropped, reasons) = queue.set("limit", "10p", now);
        assert_eq!(dropped.len() as u64, backlog - 10);
        assert!(reasons.iter().all(|reason| *reason == Reason::Overlimit));
        let rest = queue.drain(now);
        assert!(dropped.is_sorted() && dropped.last() < rest.first(), "{variant}");
        assert_eq!(queue.sees("count"), count);
    }
}

/// fq_codel_change: excess packets are dequeued, from all flows in turn.
#[test]
fn fq_codel_loses_what_it_would_have_sent() {
    let mut queue = Changing::new("fq_codel variant=linux");
    queue.offer([0, 0, 0, 0, 1, 1, 1, 1], Ecn::NotEct, Time::ZERO);
    let (dropped, reasons) = queue.set("limit", "4p", ms(1));
    assert_eq!(dropped, [0, 1, 4, 5], "a quantum is two packets at first");
    assert_eq!(reasons, [Reason::Overlimit; 4]);
    let (dropped, reasons) = queue.set("memory_limit", "3000b", ms(1));
    assert_eq!((dropped.len(), reasons), (2, vec![Reason::Overmemory; 2]));
}

/// pie_change: a smaller limit drops the head, and the timer goes on as it was. 100 jiffies of the
/// kernel's timers end at the next multiple of 8 (calc_index).
#[test]
fn pie_keeps_its_probability_and_its_timer() {
    for (variant, period) in [("linux", 104), ("rfc8033", 100)] {
        let pie = format!("pie variant={variant} max_burst=0s");
        let (mut queue, now) = at_work(&pie, 3000, 4);
        let (probability, next) = (queue.sees("drop_probability"), queue.queue.next_wakeup());
        assert!(probability > 0.01, "{variant}: {probability}");
        queue.set("tupdate", "100ms", now);
        assert_eq!(queue.sees("drop_probability"), probability);
        assert_eq!(queue.queue.next_wakeup(), next, "{variant}");
        queue.queue.on_wakeup(next.unwrap());
        assert_eq!(queue.queue.next_wakeup(), Some(next.unwrap() + Span::from_millis(period)));
        let (dropped, _) = queue.set("limit", "3p", now);
        assert!(dropped.is_sorted() && dropped.last() < queue.drain(now).first());
    }
}

/// red_change: all packets go with the child qdisc, the average is zero, the timer starts.
#[test]
fn red_linux_begins_anew_and_loses_its_packets() {
    let mut queue = Changing::new("red_linux adaptive=true wlog=1");
    queue.offer([0; 30], Ecn::NotEct, ms(100));
    assert!(queue.sees("average_queue") > 10_000.0);
    let (dropped, reasons) = queue.set("max_p", "0.5", ms(130));
    assert_eq!(dropped.len(), 30);
    assert!(reasons.iter().all(|reason| *reason == Reason::Overlimit));
    assert_eq!((queue.sees("average_queue"), queue.sees("max_p")), (0.0, 0.5));
    assert_eq!(queue.queue.next_wakeup(), Some(ms(630)));
    // mod_timer: jiffies + HZ/2, of whole milliseconds.
    queue.set("max_p", "0.4", ms(130) + Span::from_micros(709));
    assert_eq!(queue.queue.next_wakeup(), Some(ms(630)));
}

/// choke_change: the average is zero; the packets stay, the oldest of them with a smaller limit.
#[test]
fn choke_forgets_the_average_and_keeps_the_oldest() {
    let mut queue = Changing::new("choke weight=0.5 min_threshold=100p max_threshold=200p");
    queue.offer(0..30, Ecn::NotEct, Time::ZERO);
    assert!(queue.sees("average_queue") > 20.0);
    assert_eq!(queue.set("max_p", "0.5", ms(1)).0, []);
    assert_eq!(queue.sees("average_queue"), 0.0);
    let (dropped, _) = queue.set("limit", "27p", ms(1));
    assert_eq!(dropped, [29, 28, 27]);
}

/// sfb_change: packets are dropped with the child qdisc; bins, tokens and hash restart.
#[test]
fn sfb_begins_anew_and_loses_its_packets() {
    let mut queue = Changing::new("sfb target=1 max=1000 increment=1");
    queue.offer([7; 25], Ecn::NotEct, Time::ZERO);
    assert_eq!(queue.sees("penalty_tokens"), 0.0);
    let (dropped, _) = queue.set("decrement", "0.1", ms(1));
    assert_eq!(dropped.len(), 21, "the first, and the burst of 20");
    assert_eq!((queue.sees("penalty_tokens"), queue.sees("max_bin_packets")), (20.0, 0.0));
    queue.offer([7], Ecn::NotEct, ms(2));
    assert_eq!(queue.queue.backlog().packets, 1);
}

/// sfq_change: the longest bucket loses its tail.
#[test]
fn sfq_takes_from_the_longest() {
    let mut queue = Changing::new("sfq");
    queue.offer([1, 2, 2, 2, 2, 3], Ecn::NotEct, Time::ZERO);
    let (dropped, reasons) = queue.set("limit", "3p", ms(1));
    assert_eq!((dropped, reasons), (vec![4, 3, 2], vec![Reason::Overlimit; 3]));
    // perturb_timer: from now on, with a new hash at once.
    queue.set("perturb", "1s", ms(500));
    assert_eq!(queue.queue.next_wakeup(), Some(ms(1500)));
    queue.set("quantum", "3000b", ms(700));
    assert_eq!(queue.queue.next_wakeup(), Some(ms(1700)));
}

/// sfq_alloc: a queue has the slots for buckets in use that its first limit allowed.
#[test]
fn sfq_keeps_its_slots() {
    for (limit, later, sent) in [("4p", "10p", vec![0, 1, 2, 3]), ("10p", "4p", vec![2, 3, 4, 5])] {
        let mut queue = Changing::new(&format!("sfq limit={limit}"));
        queue.offer([1, 2, 3, 4], Ecn::NotEct, Time::ZERO);
        assert_eq!(queue.set("limit", later, ms(1)).0, []);
        queue.offer([5, 6], Ecn::NotEct, ms(1));
        assert_eq!(queue.drain(ms(1)), sent, "{limit}");
    }
}

/// dualpi2_change: the classic queue loses its head first; the credit restarts only if the shares
/// change (dualpi2_calculate_c_protection).
#[test]
fn dualpi2_takes_from_the_classic_queue() {
    for variant in ["linux", "rfc9332"] {
        let mut queue = Changing::new(&format!("dualpi2 variant={variant} limit=100p"));
        queue.offer([0; 4], Ecn::Ect1, Time::ZERO);
        queue.offer([1; 4], Ecn::NotEct, Time::ZERO);
        let initial = queue.sees("credit");
        queue.queue.dequeue(Time::ZERO);
        let credit = queue.sees("credit");
        assert_ne!(credit, initial);
        queue.set("target", "10ms", ms(1));
        assert_eq!(queue.sees("credit"), credit);
        queue.set("c_protection", "20", ms(1));
        assert!((queue.sees("credit") - 1514.0 * -0.6).abs() < 1e-6, "{}", queue.sees("credit"));
        let (dropped, _) = queue.set("limit", "2p", ms(1));
        assert_eq!(dropped, [4, 5, 6, 7, 1], "{variant}");
        assert_eq!(queue.drain(ms(1)), [2, 3]);
    }
}

/// Packets that came before there was a least queue for the step meet it.
#[test]
fn dualpi2_knows_which_packets_came_before() {
    let mut queue = Changing::new("dualpi2 variant=linux step=1ms");
    queue.offer([0; 3], Ecn::Ect1, Time::ZERO);
    queue.set("min_qlen_step", "1000", ms(1));
    queue.offer([0; 3], Ecn::Ect1, ms(1));
    let marks: Vec<bool> = std::iter::from_fn(|| queue.queue.dequeue(ms(5)))
        .map(|packet| packet.ecn() == Ecn::Ce)
        .collect();
    assert_eq!(marks, [true, true, true, false, false, false]);
}

/// fifo_init: only the limit is written; queued packets are sent.
#[test]
fn droptail_keeps_what_it_has() {
    let mut queue = Changing::new("droptail");
    queue.offer([0; 10], Ecn::NotEct, Time::ZERO);
    assert_eq!(queue.set("limit", "4p", ms(1)).0, []);
    queue.offer([0], Ecn::NotEct, ms(1));
    assert_eq!(queue.drain(ms(1)), (0..10).collect::<Vec<u64>>());
}

/// cake_change and cake_reconfigure: flows and their COBALT go on; a smaller limit is met when the
/// next packet comes; tins that are no longer used lose their packets.
#[test]
fn cake_is_reconfigured() {
    let (mut queue, now) = codel_at_work("cake bandwidth=9mbit diffserv=besteffort");
    let backlog = queue.queue.backlog().packets;
    assert!(backlog > 30, "{backlog}");
    assert_eq!(queue.sees("dropping_flows"), 1.0);
    for (key, text) in [("bandwidth", "8mbit"), ("isolation", "flow"), ("overhead", "38b")] {
        assert_eq!(queue.set(key, text, now).0, [], "{key}");
        assert_eq!(queue.sees("dropping_flows"), 1.0);
    }
    assert_eq!(queue.set("limit", "20p", now).0, []);
    queue.offer([0], Ecn::NotEct, now);
    assert_eq!(queue.queue.backlog().packets, 20);
    assert!(queue.queue.counts().dropped[Reason::Overlimit as usize] > 10);

    // Flow 4 is CS4 here (class 36 is AF42): in diffserv4 it is video, the third tin.
    let mut queue = Changing::new("cake diffserv=diffserv4");
    queue.offer([0, 0, 4, 4, 4], Ecn::NotEct, Time::ZERO);
    let (dropped, reasons) = queue.set("diffserv", "besteffort", ms(1));
    assert_eq!((dropped, reasons), (vec![2, 3, 4], vec![Reason::Overlimit; 3]));
    assert_eq!(queue.drain(ms(1)), [0, 1]);
}

/// cake_clear_tin: a tin that is not used loses its packets, but not the state of its flows. Flow 0
/// is in the third of the tins of diffserv8.
#[test]
fn cake_keeps_the_flows_of_unused_tins() {
    let (mut queue, now) = codel_at_work("cake bandwidth=9mbit diffserv=diffserv8");
    let backlog = queue.queue.backlog().packets;
    assert_eq!(queue.sees("dropping_flows"), 1.0);
    let (dropped, _) = queue.set("diffserv", "besteffort", now);
    assert_eq!((dropped.len() as u64, queue.sees("dropping_flows")), (backlog, 0.0));
    for diffserv in ["diffserv3", "diffserv8"] {
        queue.set("diffserv", diffserv, now);
    }
    queue.offer([0], Ecn::NotEct, now);
    assert_eq!((queue.queue.backlog().packets, queue.sees("dropping_flows")), (1, 1.0));
}

/// cake_reconfigure clears the tins from the lowest: flows 2, 4 and 0 are in the fifth, the fourth
/// and the third of diffserv8.
#[test]
fn cake_clears_the_lowest_tin_first() {
    let mut queue = Changing::new("cake diffserv=diffserv8");
    queue.offer([2, 4, 0], Ecn::NotEct, ms(0));
    assert_eq!(queue.set("diffserv", "besteffort", ms(1)).0, [2, 1, 0]);
}

/// cake_hash: packets of all flows are in the first queue, even if it belonged to one of them.
#[test]
fn cake_has_one_queue_if_it_is_blind() {
    let mut queue = Changing::new("cake diffserv=besteffort isolation=flow");
    queue.offer([1024], Ecn::NotEct, ms(0));
    queue.set("isolation", "flow-blind", ms(0));
    queue.offer([7], Ecn::NotEct, ms(0));
    assert_eq!(queue.sees("active_flows"), 1.0);
}

/// The hosts' counts of bulk flows stay where hosts do not share: flows 0 and 1 of one host get as
/// much as flow 2 of another.
#[test]
fn cake_remembers_the_hosts() {
    let mut queue = Changing::new("cake diffserv=besteffort isolation=dual-src-host");
    queue.offer((0..3).cycle().take(90), Ecn::NotEct, ms(0));
    assert_eq!((0..9).filter_map(|_| queue.queue.dequeue(ms(0))).count(), 9);
    queue.set("isolation", "flow", ms(0));
    queue.set("isolation", "dual-src-host", ms(0));
    let sent = (0..24).map(|_| queue.queue.dequeue(ms(0)).unwrap().flow_hash());
    let second = sent.filter(|flow| *flow == 2).count();
    assert!((11..=13).contains(&second), "{second}");
}

/// cake_enqueue: a packet that comes while the estimate is not used ends its window.
#[test]
fn cake_forgets_what_came_before_a_pause() {
    let next_departure = |packets| {
        let mut queue = Changing::new("cake bandwidth=8mbit autorate_ingress=true");
        queue.offer((0..packets).map(|_| 0), Ecn::NotEct, ms(100));
        queue.set("autorate_ingress", "false", ms(100));
        queue.offer([0], Ecn::NotEct, ms(100));
        queue.set("autorate_ingress", "true", ms(100));
        queue.drain(ms(1000));
        queue.offer([0; 2], Ecn::NotEct, ms(1100));
        assert_eq!(queue.drain(ms(1100)).len(), 1);
        queue.queue.next_wakeup().unwrap()
    };
    assert_eq!(next_departure(40), next_departure(1));
}

/// cake_reconfigure keeps the times of the next packets. An unlimited queue has that of the last
/// arrival at an empty queue; a queue that was shaped holds its next packet.
#[test]
fn cake_continues_its_schedule() {
    let mut queue = Changing::new("cake diffserv=besteffort interval=3600s");
    queue.offer([0; 100], Ecn::NotEct, Time::ZERO);
    assert_eq!(queue.queue.next_wakeup(), None);
    queue.set("bandwidth", "8mbit", ms(100));
    // 1.5 ms a packet: what would have been sent by now.
    assert_eq!(queue.drain(ms(100)).len(), 67);
    queue.set("bandwidth", "unlimited", ms(100));
    assert_eq!(queue.drain(ms(100)), []);
    let next = ms(100) + Span::from_micros(500);
    assert_eq!(queue.queue.next_wakeup(), Some(next));
    assert_eq!(queue.drain(next).len(), 33);
}

/// Without a limit, the turns of eight tins continue at the tin that the shaper served last.
#[test]
fn cake_continues_at_its_tin() {
    let mut queue = Changing::new("cake diffserv=precedence bandwidth=8mbit");
    queue.offer([5], Ecn::NotEct, Time::ZERO);
    assert_eq!(queue.drain(Time::ZERO), [0]);
    queue.offer([0, 6], Ecn::NotEct, Time::ZERO);
    queue.set("bandwidth", "unlimited", Time::ZERO);
    assert_eq!(queue.drain(ms(2)), [2, 1]);
}

/// A bandwidth that was measured stays, unless another is given.
#[test]
fn cake_keeps_the_rate_that_it_measured() {
    let mut queue = Changing::new("cake bandwidth=50mbit autorate_ingress=true");
    // How long the second of two packets waits.
    let held = |queue: &mut Changing, now: Time| {
        queue.drain(now);
        queue.offer([0; 2], Ecn::NotEct, now);
        assert!(queue.queue.dequeue(now).is_some() && queue.queue.dequeue(now).is_none());
        (queue.queue.next_wakeup().unwrap() - now).as_nanos() / 1000
    };
    for round in 0..4000 {
        // Not as a clock: a window ends with a packet that is later than usual.
        let now = Time::ZERO + Span::from_micros(2000 * round + 400 * (round % 2));
        queue.offer([0], Ecn::NotEct, now);
        queue.queue.dequeue(now);
    }
    // 6 Mbit/s arrive: 15/16 of that are 2.1 ms for a packet; at 50 Mbit/s 0.24 ms.
    let slow = held(&mut queue, ms(9_000));
    assert!((1_900..2_600).contains(&slow), "{slow} us");
    queue.set("wash", "true", ms(10_000));
    let still = held(&mut queue, ms(10_000));
    assert!((1_900..3_000).contains(&still), "{still} us");
    // Another is given, and holds until the next window ends.
    queue.drain(ms(11_000));
    queue.offer([0; 2], Ecn::NotEct, ms(11_000));
    queue.set("bandwidth", "100mbit", ms(11_000));
    assert!(queue.queue.dequeue(ms(11_000)).is_some());
    assert!(queue.queue.dequeue(ms(11_000)).is_none());
    let fast = queue.queue.next_wakeup().unwrap() - ms(11_000);
    assert!(fast < Span::from_micros(200), "{fast}");
}

/// The estimate is kept while it is not used: it began with the first bandwidth (cake_init).
#[test]
fn cake_measures_from_its_first_rate() {
    let mut queue = Changing::new("cake bandwidth=8mbit");
    queue.set("bandwidth", "80mbit", ms(1));
    queue.set("autorate_ingress", "true", ms(1));
    queue.offer([0; 2], Ecn::NotEct, ms(2000));
    assert_eq!(queue.drain(ms(2000)), [0]);
    // 15/16 of 255/256 of 8 Mbit/s.
    let wait = (queue.queue.next_wakeup().unwrap() - ms(2000)).as_nanos() / 1000;
    assert!((1_500..1_700).contains(&wait), "{wait} us");
}

/// ns-2 and ns-3 keep the state when an attribute is set, and so do these: what has adapted itself
/// stays, and an average in another unit is converted.
#[test]
fn red_keeps_what_it_has_learned() {
    let mut queue = Changing::new("red adaptive=floyd weight=0.5 mean_packet=1500b limit=60p");
    for round in 0..2000 {
        let now = Time::ZERO + Span::from_millis(1) * round;
        queue.offer([0], Ecn::NotEct, now);
        if round % 6 != 0 {
            queue.queue.dequeue(now);
        }
    }
    let (max_p, average) = (queue.sees("max_p"), queue.sees("average_queue"));
    assert!(max_p > 0.1 && average > 5.0, "{max_p}, {average}");
    queue.set("gentle", "false", ms(2_000));
    queue.set("min_threshold", "4p", ms(2_000));
    assert_eq!((queue.sees("max_p"), queue.sees("average_queue")), (max_p, average));
    queue.set("max_p", "0.3", ms(2_000));
    assert_eq!(queue.sees("max_p"), 0.3);
}
