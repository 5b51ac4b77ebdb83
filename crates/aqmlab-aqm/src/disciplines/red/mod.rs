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
//! - Floyd, Gummadi and Shenker, "Adaptive RED: An Algorithm for Increasing
//!   the Robustness of RED's Active Queue Management" (2001):
//!   `adaptive = floyd`, and what `auto` computes.
//! - Feng, Kandlur, Saha and Shin, "A Self-Configuring RED Gateway" (INFOCOM
//!   1999): `adaptive = feng`.
//! - Zhou, Yeung and Li, "Nonlinear RED: A simple yet efficient active queue
//!   management scheme" (Computer Networks, 2006): `shape = quadratic`.
//! - ns-2's RED as recorded in the conformance vectors: `gentle`, `wait`, the
//!   order of comparisons and draws. ns-2.35's defaults: the preset `red-ns2`.
//! - Järvinen et al., "Harsh RED" (2012), with the parameters of Järvinen and
//!   Kojo (2014), table I: the presets `hred` and `hred-aggressive`.
//!
//! # Differences
//! 1. None from ns-2 where the vectors reach: the floating-point operations
//!    are in the same order.
//! 2. The queue may be measured in packets or bytes, by the unit of the
//!    thresholds; a limit in another unit is measured in its own. A limit in
//!    bytes is ns-2's: the last packet admitted may go beyond it.
//! 3. Feng's paper does not say on which side of the thresholds the average
//!    starts: it is above, as in ns-3 (and in ns-2 if the memory is zero), so
//!    the first packet divides `max_p` by `feng_alpha`.
//! 4. Nonlinear RED has no gentle mode in its paper. Here the line above the
//!    upper threshold begins where the curve ends, at 1.5 `max_p`; in ns-3 it
//!    begins at `max_p`.
//! 5. ns-2's weight -1 takes a round-trip time of three times the link's
//!    delay (with one transmission) where that is more than 100 ms. A queue
//!    here does not know the link's delay: `auto_rtt` says it.
//! 6. An automatic lower threshold is at most a third of an upper one that is
//!    given.
//! 7. ns-2's `cautious_`, for experiments and off there, is left out, and
//!    with it `idle_pktsize_`.

use alloc::format;

mod adapt;
mod automatic;
mod average;
mod decision;

use aqmlab_core::{
    Auto, Bytes, Component, Error, Limit, Packet, Result, Span, Time, choices, params,
};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};
use automatic::RedSettings;
use average::Average;
use decision::{Decision, Fate};

choices! {
    /// Adaptation of max_p.
    pub enum Adaptive {
        /// None: max_p is constant.
        None = "none",
        /// Adaptive RED: by a little every interval, to keep the average in the middle.
        Floyd = "floyd",
        /// Self-configuring RED: by a factor when the average passes a threshold.
        Feng = "feng",
    }
}

choices! {
    /// How the probability grows between the thresholds.
    pub enum Shape {
        /// To max_p, in proportion.
        Linear = "linear",
        /// To 1.5 max_p, with the square: Nonlinear RED.
        Quadratic = "quadratic",
    }
}

choices! {
    /// Packet dropped when the limit or the average requires a drop.
    pub enum Victim {
        /// The arriving one.
        Arriving = "arriving",
        /// The one behind the head.
        Front = "front",
        /// Any one in the queue, or the arriving one.
        Random = "random",
    }
}

choices! {
    /// The unit of thresholds that are both automatic.
    pub enum Unit {
        /// Packets.
        Packets = "packets",
        /// Bytes: mean packets times their size.
        Bytes = "bytes",
    }
}

params! {
    /// Parameters of RED.
    pub struct RedParams {
        /// Average queue above which packets are dropped at random; `auto`: half the bytes
        /// that the link sends in `target_delay`, at least 5 mean packets.
        min_threshold: Auto<Limit> = Auto::Set(Limit::Packets(5)),
            source "ns-2, thresh_; Floyd 1997; auto: Floyd et al. 2001, section 6";
        /// The average queue at which the drop probability is max_p; `auto`: three times
        /// min_threshold.
        max_threshold: Auto<Limit> = Auto::Set(Limit::Packets(15)),
            source "ns-2, maxthresh_; Floyd 1997; auto: Floyd et al. 2001, section 6";
        /// The weight of each arrival in the average, w_q; `auto`: an average over ten times
        /// `auto_rtt`.
        weight: Auto<f64> = Auto::Set(0.002), in Auto::Set(1e-9) => Auto::Set(1.0),
            source "Floyd and Jacobson 1993, section 6; auto: Floyd et al. 2001, section 5";
        /// The queueing delay that automatic thresholds aim at.
        target_delay: Span = Span::from_millis(5), in Span::from_micros(1) => Span::from_secs(100),
            source "Floyd et al. 2001, section 6; ns-2, targetdelay_";
        /// The round-trip time that an automatic weight assumes; 10ms is ns-2's weight -2.
        auto_rtt: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "Floyd et al. 2001, section 5; ns-2, q_weight_";
        /// The unit of the thresholds if both are automatic.
        auto_unit: Unit = Unit::Bytes, source "ns-2, queue_in_bytes_";
        /// Growth of the drop probability between the thresholds.
        shape: Shape = Shape::Linear, source "Zhou, Yeung and Li 2006";
        /// The drop probability at the upper threshold.
        max_p: f64 = 0.1, in 0.0 => 1.0, source "ns-2, 1/linterm_; Floyd 1997";
        /// Whether the probability grows from max_p to 1 between the upper threshold and
        /// twice that threshold.
        gentle: bool = true, source "Floyd 2000, gentle_ in ns-2";
        /// Whether a drop is followed by a wait of 1/p packets before the next.
        wait: bool = true, source "ns-2, wait_; false is Floyd and Jacobson 1993, section 7";
        /// The mean packet size: for idle times, and for probabilities by size.
        mean_packet: Bytes = Bytes::new(500), in Bytes::new(1) => Bytes::new(1_000_000),
            source "ns-2, mean_pktsize_";
        /// Drops larger packets with a larger probability.
        by_size: bool = false, source "ns-2, bytes_";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "ns-2, limit_";
        /// Packet dropped at the limit and above the thresholds.
        victim: Victim = Victim::Arriving, source "ns-2, drop_tail_, drop_front_, drop_rand_";
        /// Marks ECN-capable packets instead of dropping them at random.
        ecn: bool = false, source "RFC 3168, section 5; ns-2, setbit_";
        /// Probability up to which packets are marked rather than dropped; `none`: any, and
        /// no mark above the thresholds.
        mark_p: Option<f64> = None, in Some(0.0) => Some(1.0), source "ns-2, use_mark_p_ and mark_p_";
        /// Algorithm that adapts max_p; `none`: max_p is fixed.
        adaptive: Adaptive = Adaptive::None,
            source "Floyd, Gummadi and Shenker 2001; Feng et al. 1999; ns-2, feng_adaptive_";
        /// Increment of max_p when the average is high (floyd).
        alpha: f64 = 0.01, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
        /// Factor of max_p when the average is low (floyd).
        beta: f64 = 0.9, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
        /// The least time between two changes of max_p by floyd.
        adapt_interval: Span = Span::from_millis(500), in Span::from_micros(1) => Span::from_secs(1000),
            source "Floyd, Gummadi and Shenker 2001, section 4";
        /// The largest max_p of floyd.
        top: f64 = 0.5, in 0.0 => 1.0, source "Floyd, Gummadi and Shenker 2001, section 4";
        /// The least max_p of floyd; `auto`: 0.01, on fast links one packet in the window of a flow
        /// with a round-trip time of 100 ms.
        bottom: Auto<f64> = Auto::Set(0.01), in Auto::Set(0.0) => Auto::Set(1.0),
            source "Floyd, Gummadi and Shenker 2001, section 4; auto: ns-2, bottom_ 0";
        /// Divisor of max_p when the average falls below min_threshold (feng).
        feng_alpha: f64 = 3.0, in 1.0 => 1000.0, source "Feng et al. 1999; ns-2, alpha_";
        /// Factor of max_p when the average rises above max_threshold (feng).
        feng_beta: f64 = 2.0, in 1.0 => 1000.0, source "Feng et al. 1999; ns-2, beta_";
    }
}

impl Component for RedParams {
    const NAME: &'static str = "red";
    const SUMMARY: &'static str = "random early detection by the average queue, as in ns-2";

    fn check(&self) -> Result<()> {
        for (key, threshold) in
            [("min_threshold", self.min_threshold), ("max_threshold", self.max_threshold)]
        {
            if threshold == Auto::Set(Limit::Unlimited) {
                return Err(Error::not_allowed("unlimited", "a threshold of some length").at(key));
            }
        }
        let (Auto::Set(low), Auto::Set(high)) = (self.min_threshold, self.max_threshold) else {
            return Ok(());
        };
        check_order(low, high)
    }
}

/// Checks that the lower threshold is below the upper one.
pub(crate) fn check_order(low: Limit, high: Limit) -> Result<()> {
    let allowed = match (low, high) {
        (Limit::Packets(low), Limit::Packets(high)) if low < high => return Ok(()),
        (Limit::Bytes(low), Limit::Bytes(high)) if low < high => return Ok(()),
        (Limit::Bdp(low), Limit::Bdp(high)) if low < high => return Ok(()),
        (Limit::Packets(_), Limit::Packets(_))
        | (Limit::Bytes(_), Limit::Bytes(_))
        | (Limit::Bdp(_), Limit::Bdp(_)) => "less than",
        _ => "the same unit as",
    };
    let allowed = format!("{allowed} max_threshold = {high}");
    Err(Error::not_allowed(low, allowed).at("min_threshold"))
}

impl OneMachine for RedParams {
    type Machine = OneQueue<Red>;

    fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
        if self.adaptive == Adaptive::Floyd {
            // From the largest max_p to the least, one step in an interval.
            let bottom = self.bottom.or_else(|| 0.01).max(1e-3);
            let steps = libm::log(bottom / self.top) / libm::log(self.beta.clamp(0.01, 0.999));
            return Some(("max_p", self.adapt_interval.scaled(steps)));
        }
        let weight = RedSettings::new(self, env).weight;
        Some(("the average queue", env.rate.transmission_time(env.mtu).scaled(1.0 / weight)))
    }
}

/// Seconds as ns-2 has them.
fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 * 1e-9
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Red {
    limit: Limit,
    victim: Victim,
    average: Average,
    decision: Decision,
}

impl Red {
    /// The average begins at zero, and what depends on it.
    pub fn restart(&mut self) {
        self.average.value = 0.0;
        self.decision.restart();
    }

    /// Updates the average for an arriving packet. Returns true if it is above the lower threshold.
    pub fn update(&mut self, fifo: &Fifo, now: Time) -> bool {
        self.average.update(now, fifo.backlog());
        self.decision.adapt(now, self.average.value);
        self.average.value > self.decision.settings.min
    }

    /// Where the average is between the thresholds: 0 at the lower one, 1 at
    /// the upper one, and beyond.
    pub fn place(&self) -> f64 {
        self.decision.place(self.average.value)
    }

    /// Takes a packet in or not, after [`update`](Self::update).
    pub fn take(&mut self, fifo: &mut Fifo, mut packet: Packet, cx: &mut Context<'_>) {
        let length = self.average.length(fifo.backlog());
        let fate = self.decision.decide(self.average.value, length, &packet, cx);
        if fate == Fate::Mark {
            cx.mark(&mut packet, Reason::RedEarly);
        }
        match fate {
            // ns-2 drops when the queue holds its limit, for any packet size.
            _ if fifo.backlog().reaches(self.limit) => {
                self.decision.restart_count();
                self.drop_one_of(fifo, packet, Reason::Overlimit, cx);
            }
            Fate::Drop(Reason::RedForced) => {
                self.drop_one_of(fifo, packet, Reason::RedForced, cx);
            }
            Fate::Drop(reason) => cx.drop(packet, reason),
            Fate::Pass | Fate::Mark => fifo.push(packet),
        }
    }

    /// A packet has to go: the arriving one, or one in the queue for it.
    fn drop_one_of(&self, fifo: &mut Fifo, packet: Packet, reason: Reason, cx: &mut Context<'_>) {
        fifo.push(packet);
        let packets = fifo.backlog().packets;
        let index = match self.victim {
            Victim::Arriving => packets - 1,
            Victim::Front => (packets - 1).min(1),
            // Multiply-shift: uniform but for less than 2^-32 times the queue.
            Victim::Random => (u64::from(cx.random.next_u32()) * packets) >> 32,
        };
        let victim = fifo.remove(index as usize).expect("the queue holds that many");
        cx.drop(victim, reason);
    }
}

impl Aqm for Red {
    type Params = RedParams;

    fn new(params: &RedParams, env: &LinkEnv) -> OneQueue<Self> {
        let settings = RedSettings::new(params, env);
        let red = Red {
            limit: params.limit.resolve(env.rate, env.base_rtt),
            victim: params.victim,
            average: Average::new(&settings),
            decision: Decision::new(params, &settings),
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), red)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        (self.limit, self.victim) = (new.limit, new.victim);
        self.average.change(new.average);
        self.decision.change(new.decision);
    }

    fn enqueue(&mut self, fifo: &mut Fifo, _: QueueLimit, packet: Packet, cx: &mut Context<'_>) {
        self.update(fifo, cx.now);
        self.take(fifo, packet, cx);
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop();
        if packet.is_none() {
            self.average.idle_since = Some(cx.now);
        }
        packet
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("average_queue", self.average.value);
        see("drop_probability", self.decision.base_probability(self.average.value).max(0.0));
        see("max_p", self.decision.max_p);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Ecn;

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{self, TestPacket, env, seeded, seen};

    const EARLY: usize = Reason::RedEarly as usize;
    const FORCED: usize = Reason::RedForced as usize;

    /// The average is the queue as it is; drops come as soon as they may.
    fn plain() -> RedParams {
        RedParams {
            weight: Auto::Set(1.0),
            wait: false,
            gentle: false,
            mean_packet: Bytes::new(1000),
            max_p: 0.5,
            ..RedParams::default()
        }
    }
    fn bytes(bytes: u64) -> Auto<Limit> {
        Auto::Set(Limit::Bytes(Bytes::new(bytes)))
    }
    fn queue(params: &RedParams, seed: u64) -> Queue {
        seeded(&env(), params, seed * 7919)
    }
    /// Offers packets one after another and sends none.
    fn offer(queue: &mut Queue, packets: &[Packet]) {
        testing::offer(queue, packets.iter().cloned());
    }
    /// In how many of 4000 runs the last packet is dropped at random.
    fn share_of_drops(params: &RedParams, packets: &[Packet]) -> f64 {
        let (last, first) = packets.split_last().unwrap();
        let mut dropped = 0;
        for seed in 0..4000 {
            let mut queue = queue(params, seed);
            offer(&mut queue, first);
            assert_eq!(queue.counts().dropped_total(), 0);
            offer(&mut queue, std::slice::from_ref(last));
            dropped += queue.counts().dropped[EARLY];
        }
        dropped as f64 / 4000.0
    }

    /// The fourth packet finds 4500 bytes between 3000 and 9000: p_b = 1/8. The
    /// third was the first above, so that the count is 2 packets.
    #[test]
    fn the_queue_is_measured_in_bytes() {
        let mut params =
            RedParams { min_threshold: bytes(3000), max_threshold: bytes(9000), ..plain() };
        let full = Packet::of_size(1500);
        let mut packets = vec![full; 4];
        let p = share_of_drops(&params, &packets);
        assert!((p - 1.0 / 6.0).abs() < 0.02, "{p}");
        // 3000 bytes are 3 mean packets, and the packet is 1.5 of them.
        params.by_size = true;
        let p = share_of_drops(&params, &packets);
        assert!((p - 0.3).abs() < 0.025, "{p}");
        packets[3] = Packet::of_size(400);
        // 1900 bytes are 1 mean packet: 1/7, for 0.4 of one.
        let p = share_of_drops(&params, &packets);
        assert!((p - 0.4 / 7.0).abs() < 0.012, "{p}");
    }

    #[test]
    fn one_packet_is_no_queue_but_its_bytes_are() {
        // From the second packet above a threshold on RED may drop, and
        // with max_p = 1 and an average above the upper one it does.
        let packets = vec![Packet::of_size(1500); 3];
        let by = |min_threshold, max_threshold| {
            let mut queue = queue(&RedParams { min_threshold, max_threshold, ..plain() }, 1);
            offer(&mut queue, &packets);
            queue.counts().dropped[FORCED]
        };
        let one = |packets| Auto::Set(Limit::Packets(packets));
        assert_eq!(by(bytes(100), bytes(1500)), 2);
        assert_eq!(by(one(1), one(2)), 1);
    }

    #[test]
    fn up_to_mark_p_packets_are_marked_and_nothing_is_forced() {
        let limit = |packets| Auto::Set(Limit::Packets(packets));
        let params = RedParams {
            min_threshold: limit(2),
            max_threshold: limit(12),
            max_p: 1.0,
            ecn: true,
            ..plain()
        };
        let capable = vec![Packet::of_ecn(Ecn::Ect0); 200];
        // p_b is 0.1 for each packet above two; the queue cannot pass twelve.
        for (mark_p, least) in [(Some(0.25), 5), (Some(0.75), 10), (Some(1.1), 200)] {
            let mut marking = queue(&RedParams { mark_p, ..params.clone() }, 3);
            offer(&mut marking, &capable);
            let counts = marking.counts();
            assert_eq!(counts.dropped[FORCED], 0);
            assert!(counts.marked[EARLY] > 0, "{mark_p:?}: {counts:?}");
            let dropped = counts.dropped[EARLY] > 0;
            assert_eq!(dropped, least < 200, "{mark_p:?}: {counts:?}");
            // Below mark_p all arrivals stay.
            assert!(marking.backlog().packets >= least, "{mark_p:?}");
        }
        // Without it marks end where the average passes the upper threshold.
        let mut forced = queue(&params, 3);
        offer(&mut forced, &capable);
        let counts = forced.counts();
        assert_eq!((forced.backlog().packets, counts.dropped[EARLY]), (12, 0));
        assert_eq!(counts.dropped[FORCED], 188);
        // Packets that are not capable are dropped in either case.
        let mut dropping = queue(&RedParams { mark_p: Some(1.1), ..params }, 3);
        offer(&mut dropping, &vec![Packet::of_ecn(Ecn::NotEct); 200]);
        assert_eq!((dropping.counts().marked[EARLY], dropping.counts().dropped[FORCED]), (0, 0));
        assert!(dropping.backlog().packets <= 13, "{:?}", dropping.backlog());
    }

    /// Thresholds 5 and 15, a weight of 1: max_p as arrivals leave it.
    #[test]
    fn max_p_adapts_at_arrivals() {
        let max_p = |adaptive, arrivals: usize| {
            let mut queue = queue(&RedParams { adaptive, max_p: 0.12, gentle: true, ..plain() }, 1);
            for _ in 0..arrivals {
                queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO + Span::from_secs(1));
                queue.take_dropped(|_, _| ());
            }
            seen(&queue, "max_p")
        };
        assert_eq!(max_p(Adaptive::None, 100), 0.12);
        // Below 5 + 4 packets, once in half a second.
        assert_eq!(max_p(Adaptive::Floyd, 5), 0.12 * 0.9);
        // Below at once, and later above: 40 arrivals are enough.
        assert!((max_p(Adaptive::Feng, 1) - 0.04).abs() < 1e-15);
        assert!((max_p(Adaptive::Feng, 40) - 0.08).abs() < 1e-15);
    }

    #[test]
    fn forced_drops_take_their_victim() {
        let packets: Vec<Packet> = (0..5).map(Packet::of_flow).collect();
        let limit = |packets| Auto::Set(Limit::Packets(packets));
        // Room for four, or an average of four above the upper threshold.
        let full = RedParams { limit: Limit::Packets(4), ..RedParams::default() };
        let above = RedParams { min_threshold: limit(3), max_threshold: limit(4), ..plain() };
        for (params, reason) in [(full, Reason::Overlimit), (above, Reason::RedForced)] {
            let dropped = |victim, seed| {
                let mut queue = queue(&RedParams { victim, ..params.clone() }, seed);
                packets.iter().for_each(|it| queue.enqueue(it.clone(), Time::ZERO));
                let mut dropped = None;
                queue.take_dropped(|it, why| dropped = Some((it.flow_hash(), why)));
                queue.assert_conservation("red");
                dropped.unwrap()
            };
            assert_eq!(dropped(Victim::Arriving, 1), (4, reason));
            assert_eq!(dropped(Victim::Front, 1), (1, reason));
            let mut times = [0; 5];
            (0..1000).for_each(|seed| times[dropped(Victim::Random, seed).0 as usize] += 1);
            assert!(times.iter().all(|count| (150..250).contains(count)), "{times:?}");
        }
    }
}
