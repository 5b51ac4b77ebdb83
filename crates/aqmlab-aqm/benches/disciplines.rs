//! Nanoseconds for a packet through each discipline: one enqueue and one
//! dequeue on a queue that stands, with the counting that every run has.
//!
//! `cargo bench -p aqmlab-aqm`, or `make bench-disciplines` for the table in
//! the crate's README.

use std::hint::black_box;

use aqmlab_aqm::registry::entries;
use aqmlab_aqm::{LinkEnv, Queue, QueueConfig};
use aqmlab_core::{Ecn, Packet, Rate, Span, Stream, Time};
use criterion::{Criterion, criterion_group, criterion_main};

/// 10 Gbit/s: a packet of 1500 bytes takes 1.2 us.
const GAP: Span = Span::from_nanos(1200);

/// Number of flows and standing queue, in packets.
#[derive(Clone, Copy)]
struct Load {
    flows: u32,
    standing: u32,
}

struct Bench {
    queue: Queue,
    now: Time,
    load: Load,
    next_flow: u32,
}

impl Bench {
    fn new(name: &str, load: Load) -> Self {
        let env = LinkEnv::new(Rate::from_bps(10_000_000_000), Span::from_millis(20));
        let discipline = QueueConfig::named(name).expect("registered").build(&env);
        let queue = Queue::new(discipline, Stream::from_state(1));
        let mut bench = Bench { queue, now: Time::ZERO, load, next_flow: 0 };
        (0..load.standing).for_each(|_| bench.enqueue());
        bench
    }

    fn enqueue(&mut self) {
        let packet = Packet::new(1500, Ecn::NotEct).with_flow_hash(self.next_flow);
        self.next_flow = (self.next_flow + 1) % self.load.flows;
        self.queue.enqueue(packet, self.now);
    }

    /// One packet in, one out; timers as they come.
    fn step(&mut self) {
        self.now += GAP;
        while let Some(at) = self.queue.next_wakeup().filter(|at| *at <= self.now) {
            self.queue.on_wakeup(at);
        }
        self.enqueue();
        black_box(self.queue.dequeue(self.now));
        self.queue.take_dropped(|packet, _| {
            black_box(packet.arrival());
        });
    }
}

fn disciplines(c: &mut Criterion) {
    let one = Load { flows: 1, standing: 20 };
    let many = Load { flows: 1000, standing: 1000 };
    for (label, load) in [("1 flow", one), ("1000 flows", many)] {
        let mut group = c.benchmark_group(label);
        for entry in entries() {
            let mut bench = Bench::new(entry.name, load);
            group.bench_function(entry.name, |b| b.iter(|| bench.step()));
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = disciplines
}
criterion_main!(benches);
