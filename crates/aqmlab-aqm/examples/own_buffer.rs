//! FQ-CoDel over a custom buffer: `cargo run -p aqmlab-aqm --example own_buffer`.
//!
//! The program has a pool of frames of fixed size, as a driver has a ring. The discipline handles
//! packet descriptors, whose key is the index of the frame: it decides which frame is sent next,
//! which are dropped, and which are marked. The program frees the frames of packets that were sent
//! or dropped. Frames are not copied.

use aqmlab_aqm::disciplines::fq_codel::FqCodelParams;
use aqmlab_aqm::{Context, Discipline, LinkEnv, QueueDiscipline, Reason, Sink};
use aqmlab_core::{Bytes, Ecn, Limit, Packet, Rate, Span, Stream, Time};

const FRAME: usize = 1514;

/// Frames of fixed size, and which of them are free.
struct Pool {
    frames: Vec<[u8; FRAME]>,
    free: Vec<usize>,
}

impl Pool {
    fn new(frames: usize) -> Self {
        Pool { frames: vec![[0; FRAME]; frames], free: (0..frames).rev().collect() }
    }
    /// A free frame with this flow number at its beginning.
    fn fill(&mut self, flow: u32) -> Option<usize> {
        let place = self.free.pop()?;
        self.frames[place][..4].copy_from_slice(&flow.to_be_bytes());
        Some(place)
    }
    fn flow(&self, place: usize) -> u32 {
        u32::from_be_bytes(self.frames[place][..4].try_into().expect("four bytes"))
    }
    fn free(&mut self, place: usize) {
        self.free.push(place);
    }
}

/// The queue of the program.
struct Port {
    pool: Pool,
    discipline: Box<dyn QueueDiscipline>,
    random: Stream,
    sink: Sink,
    dropped: u64,
}

impl Port {
    fn new(rate: Rate, frames: usize) -> Self {
        let env =
            LinkEnv::new(rate, Span::from_millis(100)).with_sizes(Bytes::new(FRAME as u64), 0);
        let limit = Limit::Packets(frames as u64);
        Port {
            pool: Pool::new(frames + 1),
            discipline: FqCodelParams { limit, ..FqCodelParams::default() }.build(&env),
            random: Stream::from_state(1),
            sink: Sink::default(),
            dropped: 0,
        }
    }

    /// A frame of a flow comes; what there is no room for is not taken in.
    fn receive(&mut self, flow: u32, ecn: Ecn, now: Time) {
        let Some(place) = self.pool.fill(flow) else { return };
        let mut packet = Packet::new(FRAME as u32, ecn).with_flow_hash(flow).with_key(place as u64);
        packet.set_arrival(now);
        let mut cx = Context::new(now, &mut self.random, &mut self.sink);
        self.discipline.enqueue(packet, &mut cx);
        self.free_dropped();
    }

    /// The line is free: the flow of the frame that goes out, and how long it waited.
    fn send(&mut self, now: Time) -> Option<(u32, Span)> {
        let mut cx = Context::new(now, &mut self.random, &mut self.sink);
        let packet = self.discipline.dequeue(&mut cx);
        self.free_dropped();
        let packet = packet?;
        let place = packet.key as usize;
        let flow = self.pool.flow(place);
        self.pool.free(place);
        Some((flow, now - packet.arrival()))
    }

    fn free_dropped(&mut self) {
        for (packet, _) in self.sink.take_dropped() {
            self.pool.free(packet.key as usize);
            self.dropped += 1;
        }
    }
}

/// Results of the two flows.
struct Outcome {
    /// Frames sent of the flow that loads the line, and of the one that does not.
    sent: [u64; 2],
    /// The longest time that a frame of each waited.
    longest: [Span; 2],
    dropped: u64,
    marked: u64,
}

/// Ten seconds of a line of 10 Mbit/s: a flow at one and a half times that, and
/// one that sends a frame every 20 ms.
fn run(ecn: Ecn) -> Outcome {
    let rate = Rate::from_bps(10_000_000);
    let service = rate.transmission_time(Bytes::new(FRAME as u64));
    let mut port = Port::new(rate, 1000);
    let (mut bulk, mut sparse, mut free) = (Time::ZERO, Time::ZERO, Time::ZERO);
    let mut outcome = Outcome { sent: [0; 2], longest: [Span::ZERO; 2], dropped: 0, marked: 0 };
    while free < Time::ZERO + Span::from_secs(10) {
        let now = bulk.min(sparse).min(free);
        if now == bulk {
            port.receive(0, ecn, now);
            bulk += service * 2 / 3;
        } else if now == sparse {
            port.receive(1, ecn, now);
            sparse += Span::from_millis(20);
        } else {
            if let Some((flow, waited)) = port.send(now) {
                outcome.sent[flow as usize] += 1;
                let longest = &mut outcome.longest[flow as usize];
                *longest = waited.max(*longest);
            }
            free += service;
        }
    }
    outcome.dropped = port.dropped;
    outcome.marked = port.sink.marked(Reason::Codel);
    let held = port.discipline.backlog().packets as usize;
    assert_eq!(port.pool.free.len() + held, port.pool.frames.len(), "every frame is somewhere");
    outcome
}

fn main() {
    let Outcome { sent, longest, dropped, marked } = run(Ecn::NotEct);
    println!("bulk    {:6} frames, at most {} in the queue", sent[0], longest[0]);
    println!("sparse  {:6} frames, at most {} in the queue", sent[1], longest[1]);
    println!("dropped {dropped:6}, marked {marked}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sparse flow has its own queue: it waits for one frame, or two.
    #[test]
    fn the_sparse_flow_does_not_wait_and_frames_come_back() {
        let Outcome { sent, longest, dropped, marked } = run(Ecn::NotEct);
        assert_eq!(sent[1], 500);
        assert!(longest[1] < Span::from_millis(3), "{}", longest[1]);
        assert!(longest[0] > Span::from_millis(5) && sent[0] > 7000, "{sent:?}");
        assert!(dropped > 100 && marked == 0, "{dropped} {marked}");
    }

    #[test]
    fn capable_packets_are_marked_instead() {
        let outcome = run(Ecn::Ect0);
        assert!(outcome.marked > 100, "{}", outcome.marked);
    }
}
