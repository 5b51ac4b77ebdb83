//! SFB: Stochastic Fair BLUE, as in Linux's qdisc `sfb`.
//!
//! # Model
//! A filter of 8 levels with 16 bins each. A flow has one bin in every level,
//! chosen by four bits of its hash. A bin has a marking probability that rises
//! when a packet finds it long and falls when a packet finds it empty. A
//! packet is marked or dropped with the least probability of its bins, so that
//! a flow suffers only where all of its bins are shared with one that does not
//! give way. A flow whose least probability is 1 does not react: it is limited
//! to a rate of its own, the penalty box.
//!
//! # Sources
//! - Feng, Kandlur, Saha and Shin, "Stochastic Fair BLUE: A Queue Management
//!   Algorithm for Enforcing Fairness" (INFOCOM 2001).
//! - Linux's qdisc as recorded in the conformance vectors and their rules:
//!   integers, order of comparisons and draws, penalty box.
//!
//! # Differences
//! From the paper, and in common with Linux:
//! 1. A bin's probability changes by what an arriving packet finds there, not
//!    by losses and an idle link, and without a freeze time.
//! 2. Above a probability of 1/2 packets are also dropped instead of marked,
//!    with a probability that rises to 1.
//! 3. A packet all of whose bins hold `max` packets is dropped.
//! 4. A change of any parameter drops all packets in the queue and restarts bins and tokens, because
//!    it replaces the FIFO inside.
//! 5. Without tokens, every packet of a penalised flow restarts the wait for the next tokens: a
//!    flow with less than 1/`penalty_rate` between its packets gets none.
//!
//! From Linux:
//! 6. Bins are chosen by the packet's flow hash times a constant, mixed with a number from the
//!    discipline's stream once filters have changed; the first two hashes of a run are fixed.
//! 7. `ecn = false` drops where Linux marks; there marking is always on.

use alloc::{boxed::Box, collections::VecDeque, string::ToString};

use aqmlab_core::words::{Dialect, Form, Given, Settings, Word};
use aqmlab_core::{Component, Limit, Packet, Result, Span, Time, math, params};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of SFB.
    pub struct SfbParams {
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "Linux 6.1, sfb: the device's txqueuelen";
        /// Packets in a bin at which arrivals of its flows are dropped.
        max: u64 = 25, in 1 => 65_535, source "Linux 6.1, sfb";
        /// Packets in a bin from which on its probability rises.
        target: u64 = 20, in 1 => 65_535, source "Linux 6.1, sfb: bin_size";
        /// Increment of the probability of a long bin, in steps of 1/65535.
        increment: f64 = 0.0005, in 0.0 => 1.0, source "tc-sfb(8); the kernel alone: 1/1000";
        /// Decrement of the probability of an empty bin, in steps of 1/65535.
        decrement: f64 = 0.00005, in 0.0 => 1.0, source "tc-sfb(8); the kernel alone: 1/6000";
        /// Packets per second that flows which do not react share; 0: none.
        penalty_rate: u64 = 10, in 0 => 1_000_000_000, source "Linux 6.1, sfb";
        /// Burst of packets that pass the penalty box; 0: none.
        penalty_burst: u64 = 20, in 0 => 1_000_000_000, source "Linux 6.1, sfb";
        /// Lifetime of a filter before flows are hashed again; 0: no limit.
        rehash: Span = Span::from_secs(600), in Span::ZERO => Span::from_secs(1_000_000),
            source "Linux 6.1, sfb";
        /// Time before the change in which the next filter also counts flows that do not react;
        /// 0: none.
        warmup: Span = Span::from_secs(60), in Span::ZERO => Span::from_secs(1_000_000),
            source "Linux 6.1, sfb: db";
        /// Marks ECN-capable packets instead of dropping them at random.
        ecn: bool = true, source "Linux 6.1, sfb: always";
    } words TC
}

/// The words of SFB; tc-sfb(8) and iproute2's q_sfb.c.
const TC: &[Dialect] = &[Dialect {
    kind: "sfb",
    source: "tc-sfb(8)",
    // Without a limit it is that of the device's queue, which may be short: ifb has 32 packets.
    always: &["limit", "max", "target"],
    words: &[&[
        Word::value("rehash", "rehash", Form::Millis),
        Word::value("db", "warmup", Form::Millis),
        Word::value("limit", "limit", Form::Packets),
        Word::value("max", "max", Form::Plain),
        Word::value("target", "target", Form::Plain),
        Word::value("increment", "increment", Form::Plain),
        Word::value("decrement", "decrement", Form::Plain),
        Word::value("penalty_rate", "penalty_rate", Form::Plain),
        Word::value("penalty_burst", "penalty_burst", Form::Plain),
    ]],
    finish: Some(derive),
    ..Dialect::EMPTY
}];

/// Derives the other one of `max` and `target`, as `sfb_parse_opt` of iproute2 does.
fn derive(settings: &mut dyn Settings, given: &Given<'_>) -> Result<()> {
    let number = |key| settings.get(key).and_then(|text| text.parse::<u64>().ok());
    let (key, value) = match (given.has("max"), given.has("target")) {
        (true, false) => ("target", number("max").map(|max| (max * 4).div_ceil(5))),
        (false, true) => ("max", number("target").map(|target| (target * 5 + 1) / 4)),
        _ => return Ok(()),
    };
    value.map_or(Ok(()), |value| settings.put(key, &value.to_string()))
}

impl Component for SfbParams {
    const NAME: &'static str = "sfb";
    const SUMMARY: &'static str = "stochastic fair BLUE: a filter detects unresponsive flows";
}

impl OneMachine for SfbParams {
    type Machine = OneQueue<Sfb>;
}

const LEVELS: usize = 8;
const BINS: usize = 16;
/// Probability 1.
const ONE: u32 = 65_535;

/// The kernel's clock: whole milliseconds.
fn clock(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}
fn millis(span: Span) -> u64 {
    span.as_nanos() / 1_000_000
}

#[derive(Clone, Copy, Default)]
struct Bin {
    probability: u32,
    packets: u32,
}

/// One set of bins with its hash.
#[derive(Clone, Default)]
struct Filter {
    levels: [[Bin; BINS]; LEVELS],
    /// Mixed into the hash; 0: the hash as it is.
    salt: u32,
}

/// What a packet found in its bins.
struct Found {
    probability: u32,
    packets: u32,
}

impl Filter {
    fn hash(&self, flow: u32) -> u32 {
        let hash = flow.wrapping_add(1).wrapping_mul(2_654_435_761);
        if self.salt == 0 {
            return hash;
        }
        // Every bit of the hash has to depend on every bit of the flow.
        let mut mixed = hash ^ self.salt;
        mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85EB_CA6B);
        mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xC2B2_AE35);
        mixed ^ (mixed >> 16)
    }

    /// The bins of a flow, one of each level.
    #[inline]
    fn bins(&mut self, hash: u32) -> impl Iterator<Item = &mut Bin> {
        let index = move |level: usize| (hash >> (4 * level)) as usize % BINS;
        self.levels.iter_mut().enumerate().map(move |(level, bins)| &mut bins[index(level)])
    }

    /// Moves the probabilities of a packet's bins by how long these are.
    fn update(&mut self, hash: u32, steps: &Steps) -> Found {
        let mut least = Found { probability: ONE, packets: u32::MAX };
        for bin in self.bins(hash) {
            if bin.packets == 0 {
                bin.probability = bin.probability.saturating_sub(steps.decrement);
            } else if bin.packets >= steps.target {
                bin.probability = (bin.probability + steps.increment).min(ONE);
            }
            least.probability = least.probability.min(bin.probability);
            least.packets = least.packets.min(bin.packets);
        }
        least
    }

    fn count(&mut self, hash: u32) {
        self.bins(hash).for_each(|bin| bin.packets += 1);
    }
    fn uncount(&mut self, hash: u32) {
        self.bins(hash).for_each(|bin| bin.packets -= 1);
    }
}

/// How a bin's probability moves.
#[derive(Clone)]
struct Steps {
    target: u32,
    increment: u32,
    decrement: u32,
}

/// What flows that do not react may still send.
#[derive(Clone)]
struct PenaltyBox {
    rate: u64,
    burst: u64,
    tokens: u64,
    /// Time of the last update of the tokens.
    counted_at: u64,
}

impl PenaltyBox {
    fn admits(&mut self, now: u64) -> bool {
        if self.rate == 0 || self.burst == 0 {
            return false;
        }
        if self.tokens == 0 {
            let age = (now - self.counted_at).min(10_000);
            self.tokens = (age * self.rate / 1000).min(self.burst);
            self.counted_at = now;
            if self.tokens == 0 {
                return false;
            }
        }
        self.tokens -= 1;
        true
    }
}

/// In which filters a packet is counted, and where.
type Counted = [Option<u32>; 2];

/// The state machine.
#[derive(Clone)]
pub(crate) struct Sfb {
    /// One for each packet in the queue.
    counted: VecDeque<Counted>,
    max: u32,
    steps: Steps,
    penalty: PenaltyBox,
    ecn: bool,
    rehash: u64,
    warmup: u64,
    filters: Box<[Filter; 2]>,
    /// The filter that decides.
    active: usize,
    active_since: u64,
    /// The other one is being filled.
    warming: bool,
    /// What the last arrival found.
    last_probability: u32,
}

impl Sfb {
    /// Begins now, with new hashes.
    fn restart(&mut self, cx: &mut Context<'_>) {
        let now = clock(cx.now);
        (self.active_since, self.penalty.counted_at) = (now, now);
        self.filters.iter_mut().for_each(|filter| filter.salt = cx.random.next_u32() | 1);
    }

    /// Begins to fill the other filter, or changes over to it.
    fn change_filters(&mut self, cx: &mut Context<'_>) {
        if self.rehash == 0 {
            return;
        }
        let (now, end) = (clock(cx.now), self.active_since + self.rehash);
        if now > end {
            // sfb_swap_slot: only the hash is new; bins keep their probabilities and packets.
            self.filters[self.active].salt = cx.random.next_u32() | 1;
            self.active ^= 1;
            self.active_since = now;
            self.warming = false;
        } else if self.warmup > 0 && now + self.warmup > end {
            self.warming = true;
        }
    }

    /// Decides on a packet that fits: returns a reason to drop it, or whether it is marked.
    fn decide(
        &mut self,
        packet: &Packet,
        counted: &mut Counted,
        cx: &mut Context<'_>,
    ) -> core::result::Result<bool, Reason> {
        let flow = packet.flow_hash();
        // sfb_enqueue reads the slot first: the packet that finds the time over is still counted
        // in the old filter, by its new hash.
        let slot = self.active;
        self.change_filters(cx);
        let filter = &mut self.filters[slot];
        let hash = filter.hash(flow);
        counted[slot] = Some(hash);
        let Found { probability, packets } = filter.update(hash, &self.steps);
        self.last_probability = probability;
        if packets >= self.max {
            return Err(Reason::SfbBucket);
        }
        if probability == ONE {
            if self.warming {
                let other = &mut self.filters[slot ^ 1];
                let hash = other.hash(flow);
                counted[slot ^ 1] = Some(hash);
                other.update(hash, &self.steps);
            }
            let admitted = self.penalty.admits(clock(cx.now));
            return if admitted { Ok(false) } else { Err(Reason::SfbPenalty) };
        }
        let drawn = cx.random.next_u32() & ONE;
        if drawn >= probability {
            return Ok(false);
        }
        let half = ONE / 2;
        let too_much = probability > half && drawn < 2 * (probability - half);
        if too_much || !(self.ecn && packet.ecn().is_capable()) {
            return Err(Reason::SfbEarly);
        }
        Ok(true)
    }
}

impl Aqm for Sfb {
    type Params = SfbParams;

    fn new(params: &SfbParams, env: &LinkEnv) -> OneQueue<Self> {
        let step = |value: f64| math::round(value * f64::from(ONE)) as u32;
        let sfb = Sfb {
            counted: VecDeque::new(),
            max: params.max as u32,
            steps: Steps {
                target: params.target as u32,
                increment: step(params.increment),
                decrement: step(params.decrement),
            },
            penalty: PenaltyBox {
                rate: params.penalty_rate,
                burst: params.penalty_burst,
                tokens: params.penalty_burst,
                counted_at: 0,
            },
            ecn: params.ecn,
            rehash: millis(params.rehash),
            warmup: millis(params.warmup),
            filters: Box::new([Filter::default(), Filter { salt: 1, ..Filter::default() }]),
            active: 0,
            active_since: 0,
            warming: false,
            last_probability: 0,
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), sfb)
    }

    fn change(&mut self, new: Self, fifo: &mut Fifo, cx: &mut Context<'_>) {
        // Linux, sfb_change: packets are dropped with the child qdisc, and all state restarts.
        fifo.purge(cx);
        *self = new;
        self.restart(cx);
    }

    fn enqueue(
        &mut self,
        fifo: &mut Fifo,
        room: QueueLimit,
        mut packet: Packet,
        cx: &mut Context<'_>,
    ) {
        if !room.admits(fifo.backlog(), packet.size()) {
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        let mut counted = Counted::default();
        match self.decide(&packet, &mut counted, cx) {
            Err(reason) => return cx.drop(packet, reason),
            Ok(true) => cx.mark(&mut packet, Reason::SfbEarly),
            Ok(false) => (),
        }
        for (filter, hash) in self.filters.iter_mut().zip(counted) {
            if let Some(hash) = hash {
                filter.count(hash);
            }
        }
        self.counted.push_back(counted);
        fifo.push(packet);
    }

    fn dequeue(&mut self, fifo: &mut Fifo, _cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop()?;
        let counted = self.counted.pop_front().expect("one for each packet");
        for (filter, hash) in self.filters.iter_mut().zip(counted) {
            if let Some(hash) = hash {
                filter.uncount(hash);
            }
        }
        Some(packet)
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        let bins = self.filters[self.active].levels.as_flattened();
        let most = |value: fn(&Bin) -> u32| f64::from(bins.iter().map(value).max().unwrap_or(0));
        see("drop_probability", f64::from(self.last_probability) / f64::from(ONE));
        see("max_bin_probability", most(|bin| bin.probability) / f64::from(ONE));
        see("max_bin_packets", most(|bin| bin.packets));
        see("penalty_tokens", self.penalty.tokens as f64);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Stream;

    use super::*;
    use crate::discipline::{QueueDiscipline, Sink};
    use crate::queue::{Counts, Queue};
    use crate::testing::{TestPacket, at, env, queue};

    /// Bins that do not like a second packet at all.
    fn strict() -> SfbParams {
        SfbParams { target: 1, max: 1000, increment: 1.0, ..SfbParams::default() }
    }

    fn offer(queue: &mut Queue, flow: u32, millis: u64) -> Counts {
        queue.enqueue(Packet::of_flow(flow), at(millis));
        queue.take_dropped(|_, _| ());
        queue.counts()
    }

    #[test]
    fn a_flow_that_does_not_react_gets_the_burst_and_then_the_rate() {
        let mut queue = queue(&strict());
        let dropped = |counts: Counts| counts.dropped[Reason::SfbPenalty as usize];
        // The first packet finds empty bins, the next 20 the burst.
        for _ in 0..21 {
            assert_eq!(dropped(offer(&mut queue, 7, 0)), 0);
        }
        assert_eq!(dropped(offer(&mut queue, 7, 0)), 1);
        // 10 packets a second: one token after 100 ms, and not after 99.
        assert_eq!(dropped(offer(&mut queue, 7, 100)), 1);
        assert_eq!(dropped(offer(&mut queue, 7, 199)), 2);
        // That refusal restarts the wait.
        assert_eq!(dropped(offer(&mut queue, 7, 200)), 3);
        assert_eq!(dropped(offer(&mut queue, 7, 300)), 3);
        // A flow that shares no level's bin is not concerned.
        let counts = offer(&mut queue, 8, 300);
        assert_eq!(counts.dropped_total(), 3);
    }

    #[test]
    fn no_rate_or_no_burst_is_no_penalty_box() {
        for (rate, burst) in [(0, 20), (10, 0)] {
            let params = SfbParams { penalty_rate: rate, penalty_burst: burst, ..strict() };
            let mut queue = queue(&params);
            offer(&mut queue, 7, 0);
            let counts = offer(&mut queue, 7, 5000);
            assert_eq!(counts.dropped[Reason::SfbPenalty as usize], 1);
        }
    }

    #[test]
    fn at_most_ten_seconds_of_tokens_are_counted() {
        let mut penalty = PenaltyBox { rate: 10, burst: 1000, tokens: 0, counted_at: 0 };
        assert!(penalty.admits(1_000_000));
        assert_eq!(penalty.tokens, 99);
    }

    /// Calls the state machine itself, to look into it.
    struct Bare {
        queue: OneQueue<Sfb>,
        random: Stream,
        sink: Sink,
    }
    impl Bare {
        fn new(params: &SfbParams) -> Self {
            let (random, sink) = (Stream::from_state(5), Sink::default());
            Bare { queue: Sfb::new(params, &env()), random, sink }
        }
        fn enqueue(&mut self, flow: u32, millis: u64) {
            let mut cx = Context::new(at(millis), &mut self.random, &mut self.sink);
            self.queue.enqueue(Packet::of_flow(flow), &mut cx);
        }
        fn dequeue(&mut self, millis: u64) {
            let mut cx = Context::new(at(millis), &mut self.random, &mut self.sink);
            self.queue.dequeue(&mut cx);
        }
        /// Packets counted in each filter, in the first level.
        fn counted(&self) -> [u32; 2] {
            [0, 1].map(|i| self.queue.aqm.filters[i].levels[0].iter().map(|bin| bin.packets).sum())
        }
    }

    fn turns(warmup: u64) -> SfbParams {
        let (rehash, warmup) = (Span::from_secs(1), Span::from_millis(warmup));
        SfbParams { rehash, warmup, ..strict() }
    }

    #[test]
    fn filters_take_turns_and_the_next_one_is_warm() {
        // Flow 7 does not react from its second packet on: sfb_enqueue, p_min >= SFB_MAX_PROB.
        let mut bare = Bare::new(&turns(100));
        (0..4).for_each(|_| bare.enqueue(7, 890));
        bare.enqueue(7, 900);
        assert_eq!((bare.counted(), bare.queue.aqm.warming), ([5, 0], false));
        bare.enqueue(8, 901);
        assert_eq!((bare.counted(), bare.queue.aqm.warming), ([6, 0], true), "flow 8 reacts");
        bare.enqueue(7, 901);
        assert_eq!((bare.counted(), bare.queue.aqm.active), ([7, 1], 0));
        bare.enqueue(7, 1000);
        assert_eq!((bare.counted(), bare.queue.aqm.active), ([8, 2], 0));
        // The packet at which the filters change meets the old bins, by another hash.
        let salts = |sfb: &Sfb| [0, 1].map(|filter| sfb.filters[filter].salt);
        let before = salts(&bare.queue.aqm);
        bare.enqueue(9, 1001);
        assert_eq!(
            (bare.counted(), bare.queue.aqm.active, bare.queue.aqm.warming),
            ([9, 2], 1, false)
        );
        assert!(salts(&bare.queue.aqm)[0] != before[0] && salts(&bare.queue.aqm)[1] == before[1]);
        // Probabilities stay: the old ones, and what the warm-up made of the new ones.
        let most = |sfb: &Sfb, filter: usize| {
            let bins = sfb.filters[filter].levels.as_flattened();
            bins.iter().map(|bin| bin.probability).max()
        };
        assert_eq!((most(&bare.queue.aqm, 0), most(&bare.queue.aqm, 1)), (Some(ONE), Some(ONE)));
        bare.enqueue(7, 1002);
        assert_eq!(bare.counted(), [9, 3]);
        // Each packet is taken from the bins in which it was counted.
        (0..10).for_each(|_| bare.dequeue(1002));
        let bins = bare.queue.aqm.filters.iter().flat_map(|filter| filter.levels.as_flattened());
        assert!(bins.into_iter().all(|bin| bin.packets == 0));
    }

    #[test]
    fn without_a_warmup_the_next_filter_starts_empty() {
        let mut bare = Bare::new(&turns(0));
        (0..5).for_each(|_| bare.enqueue(7, 1000));
        assert_eq!((bare.counted(), bare.queue.aqm.warming), ([5, 0], false));
        bare.enqueue(7, 1001);
        bare.enqueue(7, 1002);
        assert_eq!(bare.counted(), [6, 1]);
    }

    #[test]
    fn a_warmup_longer_than_the_lifetime_never_ends() {
        let mut bare = Bare::new(&turns(5000));
        bare.enqueue(7, 0);
        assert!(bare.queue.aqm.warming);
    }

    #[test]
    fn flows_that_share_a_bin_are_separated_by_the_next_hash() {
        let mut filter = Filter::default();
        // Equal in the low bits, so in the same bin of the first level.
        let same = |filter: &Filter| {
            (0..64).filter(|i| filter.hash(16 * i) % 16 == filter.hash(0) % 16).count()
        };
        assert_eq!(same(&filter), 64);
        filter.salt = 12345;
        assert!(same(&filter) < 16, "{}", same(&filter));
    }
}
