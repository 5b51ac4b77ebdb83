//! RED: random early detection, with the choices that ns-2 made.
//!
//! # Model
//! A moving average of the queue length decides: below the lower threshold
//! packets pass, above it they are dropped (or marked) at random with a
//! probability that grows with the average, above the upper one (or, gentle,
//! above twice the upper one) all are dropped.
//!
//! # Sources
//! - Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//!   Avoidance" (1993): the average with its correction for idle times
//!   (section 4), the count that spreads drops evenly (section 7).
//! - Floyd, Gummadi and Shenker, "Adaptive RED" (2001): `adaptive`.
//! - ns-2's RED as recorded in the conformance vectors: `gentle`, `wait`, the
//!   order of comparisons and draws.
//! - Järvinen et al., "Harsh RED" (2012), with the parameters of Järvinen and
//!   Kojo (2014), table I: the presets `hred` and `hred-aggressive`.
//!
//! # Differences
//! 1. None from ns-2 where the vectors reach: the floating-point operations
//!    are in the same order.
//! 2. The queue may be measured in packets or bytes, by the unit of the
//!    thresholds; a limit in another unit is measured in its own.

use aqmlab_core::{Bytes, Error, Limit, Packet, Result, Span, Time, params};

use crate::discipline::{Backlog, Context, Discipline, DropReason, LinkEnv, QueueDiscipline};
use crate::fifo::Fifo;

params! {
    /// Parameters of RED.
    pub struct RedParams {
        /// The average queue above which packets are dropped at random.
        min_threshold: Limit = Limit::Packets(5), source "ns-2, thresh_; Floyd 1997";
        /// The average queue at which the drop probability is max_p.
        max_threshold: Limit = Limit::Packets(15), source "ns-2, maxthresh_; Floyd 1997";
        /// The weight of each arrival in the average, w_q.
        weight: f64 = 0.002, in 1e-9 => 1.0, source "Floyd and Jacobson 1993, section 6";
        /// The drop probability at the upper threshold.
        max_p: f64 = 0.1, in 0.0 => 1.0, source "ns-2, 1/linterm_; Floyd 1997";
        /// Whether the probability grows from max_p to 1 between the upper threshold and twice it.
        gentle: bool = true, source "Floyd 2000, gentle_ in ns-2";
        /// Whether a drop is followed by a wait of 1/p packets before the next.
        wait: bool = true, source "ns-2, wait_; false is Floyd and Jacobson 1993, section 7";
        /// The mean packet size: for idle times, and for probabilities by size.
        mean_packet: Bytes = Bytes::new(500), in Bytes::new(1) => Bytes::new(1_000_000),
            source "ns-2, mean_pktsize_";
        /// Whether larger packets are dropped with a larger probability.
        by_size: bool = false, source "ns-2, bytes_";
        /// How much the queue holds.
        limit: Limit = Limit::Packets(1000), source "ns-2, limit_";
        /// Whether ECN-capable packets are marked instead of dropped at random.
        ecn: bool = false, source "RFC 3168, section 5; ns-2, setbit_";
        /// Probability up to which packets are marked rather than dropped; `none`: any, and
        /// no mark above the thresholds.
        mark_p: Option<f64> = None, source "ns-2, use_mark_p_ and mark_p_";
        /// Whether max_p adapts itself.
        adaptive: bool = false, source "Floyd, Gummadi and Shenker 2001";
        /// What is added to max_p when the average is high.
        alpha: f64 = 0.01, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
        /// What max_p is multiplied with when the average is low.
        beta: f64 = 0.9, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
        /// The least time between two changes of max_p.
        adapt_interval: Span = Span::from_millis(500), in Span::from_micros(1) => Span::from_secs(1000),
            source "Floyd, Gummadi and Shenker 2001, section 4";
        /// The largest max_p.
        top: f64 = 0.5, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
        /// The least max_p.
        bottom: f64 = 0.01, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
    }
}

impl Discipline for RedParams {
    const NAME: &'static str = "red";
    const SUMMARY: &'static str = "random early detection by the average queue, as in ns-2";

    fn check(&self) -> Result<()> {
        let (low, high) = (self.min_threshold, self.max_threshold);
        let in_order = match (low, high) {
            (Limit::Packets(low), Limit::Packets(high)) => low < high,
            (Limit::Bytes(low), Limit::Bytes(high)) => low < high,
            (Limit::Bdp(low), Limit::Bdp(high)) => low < high,
            _ => {
                let allowed = format!("the same unit as max_threshold = {high}");
                return Err(Error::not_allowed(low, allowed).at("min_threshold"));
            }
        };
        if in_order {
            Ok(())
        } else {
            let allowed = format!("less than max_threshold = {high}");
            Err(Error::not_allowed(low, allowed).at("min_threshold"))
        }
    }

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        Box::new(Red::new(self, env))
    }
}

/// Seconds as ns-2 has them.
fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 * 1e-9
}

/// A threshold as a number, and whether it is in bytes.
fn threshold(limit: Limit, env: &LinkEnv) -> (f64, bool) {
    match limit.resolve(env.rate, env.base_rtt) {
        Limit::Packets(packets) => (packets as f64, false),
        Limit::Bytes(bytes) => (bytes.get() as f64, true),
        Limit::Bdp(_) | Limit::Unlimited => (f64::INFINITY, true),
    }
}

/// The moving average of the queue length.
struct Average {
    value: f64,
    weight: f64,
    in_bytes: bool,
    /// Mean packets that the link sends in a second.
    packets_per_second: f64,
    /// Since when the link is idle.
    idle_since: Option<Time>,
}

impl Average {
    fn new(params: &RedParams, env: &LinkEnv) -> Self {
        Average {
            value: 0.0,
            weight: params.weight,
            in_bytes: threshold(params.min_threshold, env).1,
            packets_per_second: env.rate.as_bps() as f64 / (8.0 * params.mean_packet.get() as f64),
            idle_since: Some(Time::ZERO),
        }
    }

    /// The queue length in the average's unit.
    fn length(&self, backlog: Backlog) -> u64 {
        if self.in_bytes { backlog.bytes } else { backlog.packets }
    }

    fn update(&mut self, now: Time, backlog: Backlog) {
        if let Some(since) = self.idle_since.take() {
            // As if that many small packets had found an empty queue.
            let idle = seconds(now) - seconds(since);
            let passed = (self.packets_per_second * idle) as u64;
            for _ in 0..passed {
                self.value *= 1.0 - self.weight;
                if self.value == 0.0 {
                    break;
                }
            }
        }
        self.value *= 1.0 - self.weight;
        self.value += self.weight * self.length(backlog) as f64;
    }
}

/// The random decision.
struct Decision {
    min: f64,
    max: f64,
    max_p: f64,
    /// The line above the upper threshold in gentle mode: slope and offset.
    gentle: Option<(f64, f64)>,
    wait: bool,
    by_size: bool,
    mean_packet: f64,
    ecn: bool,
    mark_p: Option<f64>,
    adapt: Option<Adapt>,
    /// Packets and bytes since the last drop.
    count: u64,
    count_bytes: u64,
    /// The average has been above the lower threshold before.
    old: bool,
}

struct Adapt {
    alpha: f64,
    beta: f64,
    interval: f64,
    top: f64,
    bottom: f64,
    last_change: f64,
}

#[derive(PartialEq)]
enum Fate {
    Pass,
    Mark,
    Drop(DropReason),
}

impl Decision {
    fn new(params: &RedParams, env: &LinkEnv) -> Self {
        let (min, max) =
            (threshold(params.min_threshold, env).0, threshold(params.max_threshold, env).0);
        let line = ((1.0 - params.max_p) / max, 2.0 * params.max_p - 1.0);
        Decision {
            min,
            max,
            max_p: params.max_p,
            gentle: params.gentle.then_some(line),
            wait: params.wait,
            by_size: params.by_size,
            mean_packet: params.mean_packet.get() as f64,
            ecn: params.ecn,
            mark_p: params.mark_p,
            adapt: params.adaptive.then_some(Adapt {
                alpha: params.alpha,
                beta: params.beta,
                interval: params.adapt_interval.as_secs_f64(),
                top: params.top,
                bottom: params.bottom,
                last_change: 0.0,
            }),
            count: 0,
            count_bytes: 0,
            old: false,
        }
    }

    /// Adaptive RED (2001), section 4: keeps the average in the middle.
    fn adapt(&mut self, now: Time, average: f64) {
        let Some(adapt) = &mut self.adapt else { return };
        let now = seconds(now);
        if now <= adapt.last_change + adapt.interval {
            return;
        }
        let part = 0.4 * (self.max - self.min);
        if average < self.min + part && self.max_p > adapt.bottom {
            self.max_p *= adapt.beta;
            adapt.last_change = now;
        } else if average > self.max - part && self.max_p < adapt.top {
            self.max_p += adapt.alpha.min(self.max_p / 4.0);
            adapt.last_change = now;
        }
    }

    /// What happens to an arriving packet, the limit apart.
    fn decide<P: Packet>(
        &mut self,
        average: f64,
        length: u64,
        packet: &P,
        cx: &mut Context<'_, P>,
    ) -> Fate {
        self.count += 1;
        self.count_bytes += u64::from(packet.size());
        if average < self.min || length <= 1 {
            self.old = false;
            return Fate::Pass;
        }
        let most = if self.gentle.is_some() { 2.0 * self.max } else { self.max };
        if average >= most && self.mark_p.is_none() {
            self.restart_count();
            return Fate::Drop(DropReason::RedForced);
        }
        if !self.old {
            self.old = true;
            self.count = 1;
            self.count_bytes = u64::from(packet.size());
            return Fate::Pass;
        }
        let base = self.base_probability(average);
        if cx.random.uniform32() > self.spread(base, packet.size()) {
            return Fate::Pass;
        }
        self.restart_count();
        let may_mark = self.mark_p.is_none_or(|limit| base < limit);
        if self.ecn && packet.ecn().is_capable() && may_mark {
            Fate::Mark
        } else {
            Fate::Drop(DropReason::RedEarly)
        }
    }

    fn restart_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }

    /// The probability by the average alone, p_b.
    fn base_probability(&self, average: f64) -> f64 {
        let width = self.max - self.min;
        let p = match self.gentle {
            Some((slope, offset)) if average >= self.max => slope * average + offset,
            None if average >= self.max => 1.0,
            _ => ((1.0 / width) * average + (-self.min / width)) * self.max_p,
        };
        p.min(1.0)
    }

    /// The probability that makes the distance between drops uniform instead
    /// of geometric, p_a (Floyd and Jacobson 1993, section 7).
    fn spread(&self, base: f64, size: u32) -> f64 {
        let count = if self.by_size {
            (self.count_bytes as f64 / self.mean_packet).floor()
        } else {
            self.count as f64
        };
        let reached = count * base;
        let mut p = match (self.wait, reached) {
            (true, reached) if reached < 1.0 => 0.0,
            (true, reached) if reached < 2.0 => base / (2.0 - reached),
            (false, reached) if reached < 1.0 => base / (1.0 - reached),
            _ => 1.0,
        };
        if self.by_size && p < 1.0 {
            p = p * f64::from(size) / self.mean_packet;
        }
        p.min(1.0)
    }
}

/// The state machine.
pub(crate) struct Red<P> {
    pub(crate) fifo: Fifo<P>,
    limit: Limit,
    average: Average,
    decision: Decision,
}

impl<P: Packet> Red<P> {
    pub fn new(params: &RedParams, env: &LinkEnv) -> Self {
        Red {
            fifo: Fifo::default(),
            limit: params.limit.resolve(env.rate, env.base_rtt),
            average: Average::new(params, env),
            decision: Decision::new(params, env),
        }
    }

    /// A packet arrives: updates the average, and says whether it is above
    /// the lower threshold.
    pub fn update(&mut self, now: Time) -> bool {
        self.average.update(now, self.fifo.backlog());
        self.decision.adapt(now, self.average.value);
        self.average.value > self.decision.min
    }

    /// Takes a packet in or not, after [`update`](Self::update).
    pub fn admit(&mut self, mut packet: P, cx: &mut Context<'_, P>) {
        let length = self.average.length(self.fifo.backlog());
        let fate = self.decision.decide(self.average.value, length, &packet, cx);
        if fate == Fate::Mark {
            cx.mark(&mut packet, DropReason::RedEarly);
        }
        if self.is_full() {
            self.decision.restart_count();
            cx.drop(packet, DropReason::Overlimit);
        } else if let Fate::Drop(reason) = fate {
            cx.drop(packet, reason);
        } else {
            self.fifo.push(packet);
        }
    }

    /// ns-2 drops when the queue holds its limit, whatever the packet's size.
    fn is_full(&self) -> bool {
        let Backlog { packets, bytes } = self.fifo.backlog();
        match self.limit {
            Limit::Packets(limit) => packets >= limit,
            Limit::Bytes(limit) => bytes >= limit.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Red<P> {
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_, P>) {
        self.update(cx.now);
        self.admit(packet, cx);
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let packet = self.fifo.pop();
        if packet.is_none() {
            self.average.idle_since = Some(cx.now);
        }
        packet
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("average_queue", self.average.value);
        see("drop_probability", self.decision.base_probability(self.average.value).max(0.0));
        see("max_p", self.decision.max_p);
    }
}
