//! Properties of every registered discipline and preset under any traffic: packets are conserved,
//! order is kept within a flow, the limit is respected, the link is never idle beside a queue
//! (unless a shaper holds packets back, and then it reports until when), timers go forward, and
//! runs repeat.

mod harness;

use aqmlab_aqm::{Backlog, Context, Queue, QueueDiscipline};
use aqmlab_core::{Ecn, Packet, Span, Stream, Time};
use proptest::prelude::*;

use harness::*;

/// Runs the queue with a copy of it from time to time; what then happens to the original has no
/// effect on the copy.
fn run_cloned(queue: &str, arrivals: &[Arrival]) -> Vec<Event> {
    link_to(queue).run_with(arrivals, |link, id, now| {
        if id % 50 == 49 {
            let copy = link.queue.clone();
            let mut original = std::mem::replace(&mut link.queue, copy);
            for _ in 0..5 {
                original.dequeue(now);
            }
            original.enqueue(numbered(u64::MAX, 7, 100, Ecn::Ect0), now);
        }
    })
}

/// Every fourth variant keeps all promises. Variants of a discipline take as long as each other, so
/// quarters take equal times side by side.
fn keep_promises(arrivals: &[Arrival], first: usize) -> Result<(), TestCaseError> {
    for queue in variants().into_iter().skip(first).step_by(4) {
        let events = link_to(&queue).run(arrivals);
        check_order(&queue, arrivals, &events, |arrival| lane(&queue, arrival));
        // Packets that pass an idle link in one step.
        let passing = Link { passes: true, ..link_to(&queue) };
        prop_assert_eq!(&events, &passing.run(arrivals), "{} differs", queue);
        prop_assert_eq!(&events, &run_cloned(&queue, arrivals), "{} copied", queue);
        let custom = adapted_config(&config(&queue)).build_checked(&env());
        let adapted = link(&queue, custom).run(arrivals);
        prop_assert_eq!(events, adapted, "{} differs behind the checks", queue);
    }
    Ok(())
}

proptest! {
    // 64 cases, unless the variable PROPTEST_CASES says otherwise.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn the_first_quarter_keeps_its_promises(arrivals in traffic()) {
        keep_promises(&arrivals, 0)?;
    }

    #[test]
    fn the_second_quarter_keeps_its_promises(arrivals in traffic()) {
        keep_promises(&arrivals, 1)?;
    }

    #[test]
    fn the_third_quarter_keeps_its_promises(arrivals in traffic()) {
        keep_promises(&arrivals, 2)?;
    }

    #[test]
    fn the_fourth_quarter_keeps_its_promises(arrivals in traffic()) {
        keep_promises(&arrivals, 3)?;
    }
}

/// Random operations until there were 10^8 of them; takes about a minute:
/// `cargo test --release -p aqmlab-aqm --test properties -- --ignored`.
#[test]
#[ignore = "long: run once for each release"]
fn a_hundred_million_operations() {
    let mut random = Stream::for_component(20_261_121, 0, "hammer");
    let mut operations = 0;
    while operations < 100_000_000 {
        for queue in variants() {
            let arrivals: Vec<Arrival> = (0..2000)
                .map(|_| Arrival {
                    gap: Span::from_nanos(match random.next_u32() % 300 {
                        0..100 => 0,
                        100..299 => u64::from(random.next_u32() % 2_000_000),
                        _ => u64::from(random.next_u32() % 300_000_000),
                    }),
                    flow: random.next_u32() % 6,
                    size: 40 + random.next_u32() % 1461,
                    ecn: (random.next_u32() % 4) as u8,
                })
                .collect();
            let events = link_to(&queue).run(&arrivals);
            check_order(&queue, &arrivals, &events, |arrival| lane(&queue, arrival));
            // Each packet arrives and has one end.
            operations += arrivals.len() + events.len();
        }
    }
    println!("{operations} operations");
}

/// The traffic above must be able to find something: disciplines that signal
/// do so, and all run into their limits.
#[test]
fn the_traffic_makes_disciplines_act() {
    let arrivals: Vec<Arrival> = (0..6000)
        .map(|i| Arrival { gap: Span::from_micros(1000), flow: i % 6, size: 1500, ecn: 0 })
        .collect();
    for variant in variants() {
        let config = config(&format!("{variant} limit=200p"));
        let mut queue = Queue::new(config.build_checked(&env()), Stream::from_state(1));
        let (mut now, mut free) = (Time::ZERO, Time::ZERO);
        for (id, arrival) in arrivals.iter().enumerate() {
            now += arrival.gap;
            while let Some(wakeup) = queue.next_wakeup().filter(|wakeup| *wakeup <= now) {
                queue.on_wakeup(wakeup);
            }
            let Arrival { flow, size, .. } = *arrival;
            let packet = numbered(id as u64, flow, size, Ecn::NotEct);
            queue.enqueue(packet, now);
            if free <= now {
                let sent = queue.dequeue(now);
                free = now + Span::from_micros(if sent.is_some() { 1200 } else { 0 });
            }
            queue.take_dropped(|_, _| ());
        }
        let counts = queue.counts();
        let signals: u64 = aqmlab_aqm::Reason::ALL
            .iter()
            .filter(|reason| reason.is_signal())
            .map(|reason| counts.dropped[*reason as usize])
            .sum();
        let passes = ["not_ect=pass", "nodrop=true"].iter().any(|set| variant.contains(set));
        let gives_signals = config.gives_signals() && !passes;
        assert_eq!(signals > 0, gives_signals, "{variant}: {counts:?}");
    }
}

/// Disciplines with a fault, to see that the checks see it.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    LastInFirstOut,
    Loses,
    Idles,
    NoLimit,
    MarksAll,
}

#[derive(Clone)]
struct Faulty {
    packets: Vec<Packet>,
    fault: Fault,
    calls: u32,
}

impl QueueDiscipline for Faulty {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if self.fault == Fault::Loses && packet.key == 40 {
            return;
        }
        let mut packet = packet;
        if self.fault == Fault::MarksAll {
            cx.mark(&mut packet, aqmlab_aqm::Reason::User);
        }
        if self.fault != Fault::NoLimit && self.packets.len() as u64 == LIMIT {
            cx.drop(packet, aqmlab_aqm::Reason::Overlimit);
        } else {
            self.packets.push(packet);
        }
    }
    fn dequeue(&mut self, _cx: &mut Context<'_>) -> Option<Packet> {
        self.calls += 1;
        if self.packets.is_empty() || (self.fault == Fault::Idles && self.calls == 20) {
            return None;
        }
        Some(match self.fault {
            Fault::LastInFirstOut => self.packets.pop()?,
            _ => self.packets.remove(0),
        })
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.packets.iter().map(|packet| u64::from(packet.size())).sum();
        Backlog { packets: self.packets.len() as u64, bytes }
    }
}

fn run_faulty(fault: Fault) {
    let arrivals: Vec<Arrival> = (0..200)
        .map(|i| Arrival { gap: Span::from_micros(600), flow: i % 6, size: 1500, ecn: 0 })
        .collect();
    let faulty = Box::new(Faulty { packets: Vec::new(), fault, calls: 0 });
    let events = link("faulty", faulty).run(&arrivals);
    check_order("faulty", &arrivals, &events, |_| 0);
}

#[test]
fn faults_are_found() {
    for (fault, expected) in [
        (Fault::LastInFirstOut, "after"),
        (Fault::Loses, "packets lost"),
        (Fault::Idles, "idle beside a queue"),
        (Fault::NoLimit, "limit 60"),
        (Fault::MarksAll, "not ECN-capable"),
    ] {
        let panic = std::panic::catch_unwind(|| run_faulty(fault)).expect_err(expected);
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).expect("a message");
        assert!(text.contains(expected), "{text}");
    }
}
