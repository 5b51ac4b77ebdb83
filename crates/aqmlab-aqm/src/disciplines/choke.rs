//! CHOKe: RED that first compares an arrival with a random packet.
//!
//! # Model
//! While RED's average queue is above its lower threshold, an arriving packet
//! is compared with one drawn at random from the queue. If both are of the
//! same flow both are dropped: a flow is hit in proportion to its arrivals and its share of the
//! queue, without per-flow state. If not, RED decides.
//!
//! # Sources
//! - Pan, Prabhakar and Psounis, "CHOKe: A Stateless Active Queue Management
//!   Scheme for Approximating Fair Bandwidth Allocation" (INFOCOM 2000).
//! - RED as in [`red`](crate::disciplines::red), for what follows when nothing matches.
//!
//! # Differences
//! 1. Packets are of one flow if their flow hashes are equal.
//! 2. The average has to be above the threshold, not at it, for a comparison,
//!    as in Linux; RED's own decision begins at it.
//! 3. Arrivals that match do not count in RED's distance between drops, as in
//!    Linux.
//! 4. With several candidates, one that has matched is out of the queue for
//!    those drawn after it.
//! 5. Matches are drops also with ECN, since their purpose is to free space.
//! 6. A change of parameters restarts the average, as in Linux. Packets beyond a smaller limit are
//!    dropped from the tail; Linux keeps those that a table of 2^n - 1 places has room for.
//!
//! The paper was not at hand: its thresholds and its number of candidates that
//! adapts itself (`candidates = auto`: 8 regions between the thresholds, two
//! candidates more in each) are as remembered.

use alloc::{string::String, string::ToString};

use aqmlab_core::words::{Dialect, Effect, Form, Given, Settings, Word};
use aqmlab_core::{Auto, Bytes, Component, Error, Limit, Packet, ParamType, Result, params};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::disciplines::red::{Red, RedParams};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};
use crate::red_burst;

params! {
    /// Parameters of CHOKe.
    pub struct ChokeParams {
        /// The average queue above which arrivals are compared.
        min_threshold: Limit = Limit::Packets(5), source "as for red; Pan et al. 2000 has 100";
        /// The average queue above which all arrivals are dropped.
        max_threshold: Limit = Limit::Packets(15), source "as for red; Pan et al. 2000 has 200";
        /// Number of queued packets that an arrival is compared with; `auto`: twice the
        /// number of the region (from 1) that holds the average queue.
        candidates: Auto<u64> = Auto::Set(1), in Auto::Set(1) => Auto::Set(1000),
            source "Pan et al. 2000: drop candidates, m; auto: self-adjusting CHOKe";
        /// The regions of equal width between the thresholds, for automatic candidates.
        regions: u64 = 8, in 1 => 1000, source "Pan et al. 2000: self-adjusting CHOKe, k";
        /// The weight of each arrival in the average, w_q.
        weight: f64 = 0.002, in 1e-9 => 1.0, source "Floyd and Jacobson 1993, section 6";
        /// RED's drop probability at the upper threshold.
        max_p: f64 = 0.1, in 0.0 => 1.0, source "as for red; Floyd 1997";
        /// Lets RED's probability grow to 1 between the upper threshold and twice that threshold.
        gentle: bool = false, source "Pan et al. 2000: all are dropped above it";
        /// The mean packet size, for idle times.
        mean_packet: Bytes = Bytes::new(500), in Bytes::new(1) => Bytes::new(1_000_000),
            source "as for red; ns-2, mean_pktsize_";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "as for red; ns-2, limit_";
        /// Marks ECN-capable packets instead of dropping them at random.
        ecn: bool = false, source "RFC 3168, section 5";
    } words TC
}

/// tc-choke(8). The average here is that of the paper, in floating point.
const TC: &[Dialect] = &[Dialect {
    kind: "choke",
    source: "tc-choke(8)",
    always: &["limit", "min_threshold", "max_threshold", "weight", "max_p", "mean_packet"],
    rate: Some(("bandwidth", "")),
    words: &[&[
        Word::value("limit", "limit", Form::Packets),
        Word::value("min", "min_threshold", Form::Packets),
        Word::value("max", "max_threshold", Form::Packets),
        Word::value("avpkt", "mean_packet", Form::Size),
        Word { word: "burst", effect: Effect::Derived { key: "weight", write: burst_of } },
        Word::value("probability", "max_p", Form::Plain),
        Word::ignored("bandwidth", true, "idle times are counted at the rate of the link"),
        Word::set("ecn", "ecn", "true"),
    ]],
    finish: Some(derive),
    ..Dialect::EMPTY
}];

/// Returns a threshold in packets.
fn packets(settings: &dyn Settings, key: &str) -> Option<f64> {
    match Limit::read(&settings.get(key)?.into())? {
        Limit::Packets(packets) => Some(packets as f64),
        _ => None,
    }
}

fn burst_of(settings: &dyn Settings) -> Option<String> {
    let weight: f64 = settings.get("weight")?.parse().ok()?;
    let exponent = (1..32_u32).find(|exponent| libm::pow(0.5, f64::from(*exponent)) == weight)?;
    let (min, max) = (packets(settings, "min_threshold")?, packets(settings, "max_threshold")?);
    red_burst::burst(min, max, u64::from(exponent)).map(|burst| burst.to_string())
}

/// The weight of a burst, as `choke_parse_opt` of iproute2 has it.
fn derive(settings: &mut dyn Settings, given: &Given<'_>) -> Result<()> {
    let Some(burst) = given.derived("burst") else { return Ok(()) };
    let min = packets(settings, "min_threshold");
    let min = min.ok_or_else(|| Error::new("`burst` needs `min` in packets").at("burst"))?;
    let exponent = red_burst::weight_exponent(min, red_burst::read(burst)?);
    let exponent = exponent.map_err(|error| error.at("burst"))?;
    settings.put("weight", &libm::pow(0.5, exponent as f64).to_string())
}

impl ChokeParams {
    fn red(&self) -> RedParams {
        RedParams {
            min_threshold: Auto::Set(self.min_threshold),
            max_threshold: Auto::Set(self.max_threshold),
            weight: Auto::Set(self.weight),
            max_p: self.max_p,
            gentle: self.gentle,
            wait: false,
            mean_packet: self.mean_packet,
            limit: self.limit,
            ecn: self.ecn,
            ..RedParams::default()
        }
    }
}

impl Component for ChokeParams {
    const NAME: &'static str = "choke";
    const SUMMARY: &'static str = "RED that drops an arrival and a random packet of the same flow";

    fn check(&self) -> Result<()> {
        self.red().check()
    }
}

impl OneMachine for ChokeParams {
    type Machine = OneQueue<Choke>;
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Choke {
    red: Red,
    candidates: Auto<u64>,
    regions: u64,
}

impl Choke {
    /// Number of candidates to draw.
    fn candidates(&self) -> u64 {
        self.candidates.or_else(|| {
            let region = (self.red.place() * self.regions as f64) as u64;
            2 * (region.min(self.regions - 1) + 1)
        })
    }

    /// Draws the candidates and drops those of the packet's flow.
    fn matches(&self, fifo: &mut Fifo, packet: &Packet, cx: &mut Context<'_>) -> bool {
        let mut found = false;
        for _ in 0..self.candidates() {
            let packets = fifo.backlog().packets;
            if packets == 0 {
                break;
            }
            // Multiply-shift: uniform but for less than 2^-32 times the queue.
            let index = ((u64::from(cx.random.next_u32()) * packets) >> 32) as usize;
            if fifo.get(index).is_some_and(|it| it.flow_hash() == packet.flow_hash()) {
                let candidate = fifo.remove(index).expect("just seen");
                cx.drop(candidate, Reason::Choke);
                found = true;
            }
        }
        found
    }
}

impl Aqm for Choke {
    type Params = ChokeParams;

    fn new(params: &ChokeParams, env: &LinkEnv) -> OneQueue<Self> {
        let OneQueue { room, aqm: red, .. } = Red::new(&params.red(), env);
        let ChokeParams { candidates, regions, .. } = *params;
        OneQueue::new(room, Choke { red, candidates, regions })
    }

    fn change(&mut self, new: Self, fifo: &mut Fifo, cx: &mut Context<'_>) {
        // Linux, choke_change: the average and the count restart; the oldest packets stay.
        self.red.change(new.red, fifo, cx);
        self.red.restart();
        (self.candidates, self.regions) = (new.candidates, new.regions);
    }

    fn trim(fifo: &mut Fifo, room: QueueLimit, cx: &mut Context<'_>) {
        fifo.trim_tail(room, cx);
    }

    fn enqueue(&mut self, fifo: &mut Fifo, _: QueueLimit, packet: Packet, cx: &mut Context<'_>) {
        if self.red.update(fifo, cx.now) && self.matches(fifo, &packet, cx) {
            cx.drop(packet, Reason::Choke);
        } else {
            self.red.take(fifo, packet, cx);
        }
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        self.red.dequeue(fifo, cx)
    }

    fn observe(&self, fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        self.red.observe(fifo, see);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Time;

    use super::*;
    use crate::discipline::Discipline;
    use crate::queue::Queue;
    use crate::testing::{self, TestPacket, env, seeded};

    const CHOKE: usize = Reason::Choke as usize;

    /// The average is the queue as it is, and RED drops nothing.
    fn plain() -> ChokeParams {
        ChokeParams {
            min_threshold: Limit::Packets(2),
            max_threshold: Limit::Packets(1000),
            weight: 1.0,
            max_p: 0.0,
            ..ChokeParams::default()
        }
    }
    fn queue(params: &ChokeParams, seed: u64) -> Queue {
        seeded(&env(), params, seed)
    }
    fn offer(queue: &mut Queue, flows: &[u32]) {
        testing::offer(queue, flows.iter().copied().map(Packet::of_flow));
    }

    #[test]
    fn a_match_costs_both_packets() {
        let mut queue = queue(&plain(), 1);
        // Up to the threshold nothing is compared: the third finds two.
        offer(&mut queue, &[7, 7, 7]);
        assert_eq!(queue.backlog().packets, 3);
        offer(&mut queue, &[7]);
        assert_eq!((queue.backlog().packets, queue.counts().dropped[CHOKE]), (2, 2));
        offer(&mut queue, &[7]);
        assert_eq!((queue.backlog().packets, queue.counts().dropped[CHOKE]), (3, 2));
    }

    #[test]
    fn packets_of_other_flows_are_left_alone() {
        let mut queue = queue(&plain(), 1);
        let flows: Vec<u32> = (0..100).collect();
        offer(&mut queue, &flows);
        assert_eq!(queue.backlog().packets, 100);
    }

    #[test]
    fn every_place_in_the_queue_is_drawn_equally_often() {
        for flow in 1..=4 {
            let mut matched = 0;
            for seed in 0..2000 {
                let mut queue = queue(&plain(), seed * 7919);
                offer(&mut queue, &[1, 2, 3, 4, flow]);
                matched += queue.counts().dropped[CHOKE] / 2;
            }
            assert!((430..570).contains(&matched), "flow {flow}: {matched} of 2000");
        }
    }

    #[test]
    fn the_packets_that_stay_keep_their_order() {
        let mut queue = queue(&plain(), 3);
        offer(&mut queue, &[1, 2, 9, 3, 4]);
        while queue.counts().dropped[CHOKE] == 0 {
            offer(&mut queue, &[9]);
        }
        let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO));
        let left: Vec<u32> = left.map(|it| it.flow_hash()).filter(|flow| *flow != 9).collect();
        assert_eq!(left, [1, 2, 3, 4]);
    }

    #[test]
    fn several_candidates_may_all_match() {
        let mut queue = queue(&ChokeParams { candidates: Auto::Set(3), ..plain() }, 1);
        offer(&mut queue, &[7, 7, 7, 7]);
        // The fourth took all three with it.
        assert_eq!((queue.backlog().packets, queue.counts().dropped[CHOKE]), (0, 4));
        // At most as many candidates are drawn as packets are queued.
        let params = ChokeParams { candidates: Auto::Set(1000), ..plain() };
        let mut queue = self::queue(&params, 1);
        offer(&mut queue, &[7, 7, 7, 7]);
        assert_eq!((queue.backlog().packets, queue.counts().dropped[CHOKE]), (0, 4));
    }

    /// From 2 to 18 packets there are four regions of 4; the average is the
    /// queue.
    #[test]
    fn automatic_candidates_go_by_the_region_of_the_average() {
        let params = ChokeParams {
            max_threshold: Limit::Packets(18),
            candidates: Auto::Auto,
            regions: 4,
            ..plain()
        };
        for (length, candidates) in [(3, 2), (5, 2), (6, 4), (9, 4), (10, 6), (14, 8), (17, 8)] {
            let mut choke = Choke::new(&params, &env()).aqm;
            let mut fifo = Fifo::default();
            (0..length).for_each(|flow| fifo.push(Packet::of_flow(flow)));
            choke.red.update(&fifo, Time::ZERO);
            assert_eq!(choke.candidates(), candidates, "{length} packets");
        }
    }

    #[test]
    fn without_a_match_red_decides() {
        let params = ChokeParams { max_threshold: Limit::Packets(4), ..plain() };
        let mut queue = queue(&params, 1);
        offer(&mut queue, &[0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(queue.backlog().packets, 4);
        assert_eq!(queue.counts().dropped[Reason::RedForced as usize], 3);
    }

    /// Share delivered of a flow that sends 4 packets while 8 others send one each; the link sends
    /// 8 packets in that time.
    fn share_of_the_greedy(params: &impl Discipline) -> f64 {
        let flows = [0, 1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8].into_iter().cycle().take(60_000);
        testing::share_of_the_first(testing::queue(params), flows)
    }

    #[test]
    fn a_greedy_flow_loses_more_than_under_red() {
        let red = share_of_the_greedy(&ChokeParams::default().red());
        let choke = share_of_the_greedy(&ChokeParams::default());
        let params = ChokeParams { candidates: Auto::Set(4), ..ChokeParams::default() };
        let more = share_of_the_greedy(&params);
        assert!((red - 1.0 / 3.0).abs() < 0.03, "red {red}");
        assert!(choke < red - 0.05, "red {red}, choke {choke}");
        assert!(more < choke - 0.02, "choke {choke}, four candidates {more}");
    }
}
