//! PI: a proportional integral controller keeps the queue at a reference.
//!
//! # Model
//! At a fixed rate the drop probability moves by the distance of the queue
//! from its reference and by how that has changed:
//! p(k) = p(k-1) + a (q(k) - reference) - b (q(k-1) - reference), between 0
//! and 1. Arriving packets are dropped or marked with it. Unlike RED's, the
//! probability does not depend on the queue's length once that is steady.
//!
//! # Sources
//! - Hollot, Misra, Towsley and Gong, "On Designing Improved Controllers for
//!   AQM Routers Supporting TCP Flows" (INFOCOM 2001): the controller and its
//!   gains.
//! - ns-2's PI queue, for its defaults (the paper's gains at 170 Hz), and for
//!   lengths in bytes. The paper was not at hand.
//!
//! # Differences
//! 1. The paper designs the gains for a network: these are for 3750 packets a
//!    second, at least 60 flows and round-trip times up to 246 ms. Elsewhere
//!    they are as slow or as nervous as they happen to be.
//! 2. A packet that does not fit is dropped for that and not drawn for.
//! 3. The first update is one period after the start; ns-2's at the start
//!    itself leaves the probability at 0 as well.

use alloc::format;

use aqmlab_core::{Bytes, Component, Error, Limit, Packet, Result, Span, Time, params};

use crate::discipline::{Backlog, Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of PI.
    pub struct PiParams {
        /// The queue to keep; bytes are counted in mean packets.
        reference: Limit = Limit::Packets(50), source "ns-2, qref_ and queue_in_bytes_";
        /// The gain of the queue now, per packet.
        a: f64 = 1.822e-5, in 0.0 => 1.0, source "Hollot et al. 2001; ns-2, a_";
        /// The gain of the queue one period before, per packet; less than `a`.
        b: f64 = 1.816e-5, in 0.0 => 1.0, source "Hollot et al. 2001; ns-2, b_";
        /// Update frequency of the probability, in Hz.
        frequency: f64 = 170.0, in 0.01 => 1e6, source "ns-2, w_";
        /// The mean packet size: for lengths in bytes, and for probabilities by size.
        mean_packet: Bytes = Bytes::new(500), in Bytes::new(1) => Bytes::new(1_000_000),
            source "ns-2, mean_pktsize_";
        /// Drops larger packets with a larger probability.
        by_size: bool = false, source "ns-2, bytes_";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "as for red";
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = false, source "Hollot et al. 2001: marks; ns-2, setbit_";
    }
}

impl Component for PiParams {
    const NAME: &'static str = "pi";
    const SUMMARY: &'static str = "a proportional integral controller keeps a queue length";

    fn check(&self) -> Result<()> {
        if self.reference == Limit::Unlimited {
            return Err(Error::not_allowed("unlimited", "a queue of some length").at("reference"));
        }
        if self.b >= self.a {
            let allowed = format!("less than a = {}: else nothing brings the queue back", self.a);
            return Err(Error::not_allowed(self.b, allowed).at("b"));
        }
        Ok(())
    }
}

impl OneMachine for PiParams {
    type Machine = OneQueue<Pi>;
}

/// The parameters as the controller uses them.
#[derive(Clone)]
struct PiSettings {
    /// In packets, or in bytes by mean packets.
    reference: f64,
    in_bytes: bool,
    mean_packet: f64,
    gains: (f64, f64),
    by_size: bool,
    ecn: bool,
    period: Span,
}

impl PiSettings {
    fn new(params: &PiParams, env: &LinkEnv) -> Self {
        let mean_packet = params.mean_packet.get() as f64;
        let (reference, in_bytes) = match params.reference.resolve(env.rate, env.base_rtt) {
            Limit::Packets(packets) => (packets as f64, false),
            Limit::Bytes(bytes) => (bytes.get() as f64 / mean_packet, true),
            Limit::Bdp(_) | Limit::Unlimited => unreachable!("`check` refuses these"),
        };
        PiSettings {
            reference,
            in_bytes,
            mean_packet,
            gains: (params.a, params.b),
            by_size: params.by_size,
            ecn: params.ecn,
            period: Span::from_secs_f64(1.0 / params.frequency),
        }
    }

    fn length(&self, Backlog { packets, bytes }: Backlog) -> f64 {
        if self.in_bytes { bytes as f64 / self.mean_packet } else { packets as f64 }
    }

    /// True if both count lengths in the same unit.
    fn counts_as(&self, other: &PiSettings) -> bool {
        (self.in_bytes, self.mean_packet) == (other.in_bytes, other.mean_packet)
    }
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Pi {
    settings: PiSettings,
    next_update: Time,
    /// The queue at the last update.
    length: f64,
    probability: f64,
}

impl Aqm for Pi {
    type Params = PiParams;

    fn new(params: &PiParams, env: &LinkEnv) -> OneQueue<Self> {
        let settings = PiSettings::new(params, env);
        let next_update = Time::ZERO + settings.period;
        let pi = Pi { settings, next_update, length: 0.0, probability: 0.0 };
        OneQueue::new(QueueLimit::new(params.limit, None, env), pi)
    }

    fn change(&mut self, new: Self, fifo: &mut Fifo, _: &mut Context<'_>) {
        if !new.settings.counts_as(&self.settings) {
            // The last length in what lengths are counted in now.
            self.length = new.settings.length(fifo.backlog());
        }
        self.settings = new.settings;
    }

    #[inline(always)]
    fn admit(&mut self, _fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let mut probability = self.probability;
        if self.settings.by_size {
            probability *= f64::from(packet.size()) / self.settings.mean_packet;
        }
        match cx.random.uniform() < probability {
            true => cx.signal(packet, self.settings.ecn, Reason::Pi),
            false => Some(packet),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, fifo: &Fifo, _cx: &mut Context<'_>) {
        let PiSettings { gains: (a, b), reference, period, .. } = self.settings;
        let length = self.settings.length(fifo.backlog());
        let step = a * (length - reference) - b * (self.length - reference);
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        self.length = length;
        self.next_update += period;
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Ecn;

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, queue, seen};

    const PI: usize = Reason::Pi as usize;
    /// Brings the queue to this many packets and lets the timer run out.
    fn update_at(queue: &mut Queue, packets: u64) -> f64 {
        let now = queue.next_wakeup().unwrap();
        while queue.backlog().packets < packets {
            queue.enqueue(Packet::of_ecn(Ecn::NotEct), now);
            queue.take_dropped(|_, _| ());
        }
        while queue.backlog().packets > packets {
            queue.dequeue(now);
        }
        queue.on_wakeup(now);
        seen(queue, "drop_probability")
    }

    /// a = 1.822e-5, b = 1.816e-5, in units of 1e-5.
    #[test]
    fn the_probability_follows_the_law() {
        let in_bytes = PiParams {
            reference: Limit::Bytes(Bytes::new(75_000)),
            mean_packet: Bytes::new(1500),
            ..PiParams::default()
        };
        for params in [PiParams::default(), in_bytes] {
            let mut queue = queue(&params);
            for (packets, expected) in [
                // -50 a + 50 b, which is below 0.
                (0, 0.0),
                // -30 a + 50 b.
                (20, 36.14),
                // 10 a + 30 b.
                (60, 108.84),
                // 10 (a - b).
                (60, 108.9),
                // -10 a - 10 b.
                (40, 72.52),
                (50, 90.68),
                // Steady at the reference.
                (50, 90.68),
                (0, 0.0),
            ] {
                let measured = update_at(&mut queue, packets);
                assert!((measured * 1e5 - expected).abs() < 1e-9, "{measured}, not {expected}e-5");
            }
        }
    }

    #[test]
    fn updates_come_170_times_a_second() {
        let mut queue = queue(&PiParams::default());
        for _ in 0..170 {
            let now = queue.next_wakeup().unwrap();
            queue.on_wakeup(now);
        }
        let after = queue.next_wakeup().unwrap() - Time::ZERO;
        assert!((after.as_secs_f64() - 171.0 / 170.0).abs() < 1e-6, "{after:?}");
    }

    #[test]
    fn by_size_the_probability_is_that_of_a_mean_packet() {
        let mut counts = [0; 2];
        for (count, size) in counts.iter_mut().zip([250, 1000]) {
            // A probability of 0.3 that stays.
            let gains = PiParams { a: 0.006, b: 0.0, by_size: true, ..PiParams::default() };
            let limit = Limit::Packets(100_000);
            let mut queue = queue(&PiParams { limit, ..gains });
            let p = update_at(&mut queue, 100);
            assert!((p - 0.3).abs() < 1e-12, "{p}");
            for _ in 0..10_000 {
                queue.enqueue(Packet::of_size(size), Time::ZERO);
                queue.take_dropped(|_, _| ());
            }
            *count = queue.counts().dropped[PI];
        }
        assert!(counts[0].abs_diff(1500) < 150 && counts[1].abs_diff(6000) < 200, "{counts:?}");
    }
}
