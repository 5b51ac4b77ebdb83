//! RED as Linux runs it: the average in integers, one comparison a packet.
//!
//! # Model
//! A moving average of the bytes in the queue decides. Below the lower threshold packets pass,
//! above the upper one all are dropped (or marked). In between, one random number is drawn per
//! drop. It bounds the number of packets times the height of the average above the threshold until
//! the next drop. Drops are thus evenly spread without a draw per packet.
//!
//! # Sources
//! - Linux's qdisc as recorded in the conformance vectors and their rules.
//! - Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//!   Avoidance" (1993): the correction for idle times (section 4), drops
//!   spread evenly (section 7).
//! - Floyd, Gummadi and Shenker, "Adaptive RED" (2001): `adaptive`.
//! - tc-red(8): the parameters.
//!
//! # Differences
//! From Linux:
//! 1. The weight is given as its exponent, or in words by tc's burst length.
//! 2. The idle table is made for the link's rate if no bandwidth is given;
//!    tc then takes 10 Mbit/s.
//! 3. A limit in packets counts packets. Thresholds are in bytes.
//! 4. `adaptive` works. tc (7.1) sends it in `TCA_RED_FLAGS`, where `__red_change` (6.1 to 6.18) does
//!    not look when it starts the timer.
//!
//! In common with Linux: a change of any parameter drops all packets in the queue and restarts the
//! average, because it replaces the FIFO inside. The average of an idle queue decays 15.625 times
//! slower than the 1993 paper means: tc makes the table in ticks of 64 ns
//! (`tc_red_eval_idle_damping`, /proc/net/psched), the kernel reads it in microseconds. A `max_p` of
//! 1 overflows in tc, as it does on x86: a probability between 1/2 and 1 follows from the thresholds.
//!
//! From ns-2 (see [`red`](crate::disciplines::red)):
//! 5. After an idle time the arriving packet gives no sample of the queue.
//! 6. There is no gentle slope above the upper threshold, and no wait after a
//!    drop: the distance is uniform from 1 to 1/p packets.

use alloc::{format, string::String, string::ToString};

use aqmlab_core::words::{Dialect, Effect, Form, Given, Settings, Word};
use aqmlab_core::{
    Bytes, Component, Error, Limit, Packet, ParamType, Rate, Result, Span, Time, params,
};

use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::disciplines::red::check_order;
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};
use crate::red_burst;

params! {
    /// Parameters of Linux's RED.
    pub struct RedLinuxParams {
        /// The average queue above which packets are dropped at random, in bytes.
        min_threshold: Limit = Limit::Bytes(Bytes::new(30_000)), source "tc-red(8), min; its example";
        /// The average queue from which all packets are dropped, in bytes.
        max_threshold: Limit = Limit::Bytes(Bytes::new(90_000)), source "tc-red(8), max; its example";
        /// Capacity of the queue.
        limit: Limit = Limit::Bytes(Bytes::new(400_000)), source "tc-red(8), limit; its example";
        /// The weight of each arrival in the average is 2 to the minus this.
        wlog: u64 = 5, in 1 => 31, source "Linux, Wlog; what tc makes of its example's burst 55";
        /// The drop probability just below the upper threshold.
        max_p: f64 = 0.02, in 0.0 => 1.0, source "tc-red(8), probability";
        /// The mean packet size, for idle times.
        mean_packet: Bytes = Bytes::new(1000), in Bytes::new(1) => Bytes::new(1_000_000),
            source "tc-red(8), avpkt";
        /// The rate, for idle times; `none`: the link's.
        bandwidth: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(1_000_000_000_000_000)),
            source "tc-red(8), bandwidth";
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = false, source "tc-red(8), ecn";
        /// Drops ECN-capable packets above the upper threshold instead of marking them.
        harddrop: bool = false, source "tc-red(8), harddrop";
        /// With `ecn`, packets that are not ECN-capable pass where others are marked.
        nodrop: bool = false, source "tc-red(8), nodrop";
        /// Adapts max_p to the average queue.
        adaptive: bool = false, source "tc-red(8), adaptive; Floyd, Gummadi and Shenker 2001";
    } words TC
}

/// tc-red(8). Without `bandwidth` tc takes 10 Mbit/s, and here it is that of the link.
const TC: &[Dialect] = &[Dialect {
    kind: "red",
    source: "tc-red(8)",
    always: &["limit", "min_threshold", "max_threshold", "mean_packet", "wlog"],
    rate: Some(("bandwidth", "bandwidth")),
    words: &[&[
        Word::value("limit", "limit", Form::Size),
        Word::value("min", "min_threshold", Form::Size),
        Word::value("max", "max_threshold", Form::Size),
        Word::value("avpkt", "mean_packet", Form::Size),
        Word { word: "burst", effect: Effect::Derived { key: "wlog", write: burst_of } },
        Word::value("probability", "max_p", Form::Plain),
        Word::value("bandwidth", "bandwidth", Form::Rate),
        Word::set("ecn", "ecn", "true"),
        Word::set("harddrop", "harddrop", "true"),
        Word::set("nodrop", "nodrop", "true"),
        Word::set("adaptive", "adaptive", "true"),
        Word::set("adaptative", "adaptive", "true"),
        Word::refused("qevent", true, "there are no filters"),
        Word::refused("block", true, "there are no filters"),
    ]],
    finish: Some(derive),
    ..Dialect::EMPTY
}];

/// Returns a number of bytes among the settings.
fn bytes(settings: &dyn Settings, key: &str) -> Option<u64> {
    Bytes::read(&settings.get(key)?.into()).map(Bytes::get)
}

/// Returns the thresholds in packets of the mean size.
fn thresholds(settings: &dyn Settings) -> Option<[f64; 2]> {
    let packet = bytes(settings, "mean_packet")? as f64;
    let in_packets = |key| bytes(settings, key).map(|bytes| bytes as f64 / packet);
    Some([in_packets("min_threshold")?, in_packets("max_threshold")?])
}

fn put_bytes(settings: &mut dyn Settings, key: &str, bytes: Option<u64>) -> Result<()> {
    bytes.map_or(Ok(()), |bytes| settings.put(key, &format!("{bytes}b")))
}

fn burst_of(settings: &dyn Settings) -> Option<String> {
    let [min, max] = thresholds(settings)?;
    let wlog = settings.get("wlog")?.parse().ok()?;
    red_burst::burst(min, max, wlog).map(|burst| burst.to_string())
}

/// Derives missing values as `red_parse_opt` of iproute2 does.
fn derive(settings: &mut dyn Settings, given: &Given<'_>) -> Result<()> {
    let [has_limit, has_min, has_max, has_packet] =
        ["limit", "min_threshold", "max_threshold", "mean_packet"].map(|key| given.has(key));
    if !has_max && (has_min || has_limit) {
        let max = match has_min {
            true => bytes(settings, "min_threshold").map(|min| 3 * min),
            false => bytes(settings, "limit").map(|limit| limit / 4),
        };
        put_bytes(settings, "max_threshold", max)?;
    }
    if !has_min && (has_max || has_limit) {
        let min = bytes(settings, "max_threshold").map(|max| max / 3);
        put_bytes(settings, "min_threshold", min)?;
    }
    let burst = given.derived("burst");
    let is_derived = burst.is_some() || has_limit || has_min || has_max || has_packet;
    let Some([min, max]) = thresholds(settings).filter(|_| is_derived) else { return Ok(()) };
    if burst.is_none() && given.has("wlog") {
        return Ok(());
    }
    let burst = burst.map_or(Ok(red_burst::usual_burst(min, max)), red_burst::read)?;
    let wlog = red_burst::weight_exponent(min, burst).map_err(|error| error.at("burst"))?;
    settings.put("wlog", &wlog.to_string())
}

impl Component for RedLinuxParams {
    const NAME: &'static str = "red_linux";
    const SUMMARY: &'static str = "random early detection in Linux's integers";

    fn check(&self) -> Result<()> {
        let (low, high) = (self.min_threshold, self.max_threshold);
        for (key, threshold) in [("min_threshold", low), ("max_threshold", high)] {
            // Linux, red_check_params: scaled, it has to fit.
            let end = 1 << (31 - self.wlog);
            match threshold {
                Limit::Bytes(bytes) if bytes.get() >= end => {
                    let allowed = format!("less than {end}b with `wlog` {}", self.wlog);
                    return Err(Error::not_allowed(threshold, allowed).at(key));
                }
                Limit::Bytes(_) | Limit::Bdp(_) => {}
                _ => return Err(Error::not_allowed(threshold, "bytes").at(key)),
            }
        }
        if self.nodrop && !self.ecn {
            return Err(Error::not_allowed("true", "false without `ecn`").at("nodrop"));
        }
        check_order(low, high)
    }
}

impl OneMachine for RedLinuxParams {
    type Machine = OneQueue<RedLinux>;

    fn slowest(&self, env: &LinkEnv) -> Option<(&'static str, Span)> {
        if self.adaptive {
            // max_P from 0.5 to 0.01, times 0.9 in an interval.
            return Some(("max_p", ADAPT_INTERVAL * 37));
        }
        let packets = (1u64 << self.wlog) as f64;
        Some(("the average queue", env.rate.transmission_time(env.mtu).scaled(packets)))
    }
}

const ADAPT_INTERVAL: Span = Span::from_millis(500);

/// The kernel's tick before a time (1 ms, `CONFIG_HZ=1000`): its timers count from there.
fn jiffy(time: Time) -> Time {
    Time::from_nanos(time.as_nanos() / 1_000_000 * 1_000_000)
}

/// The highest threshold: scaled, it has to fit.
const MOST_BYTES: u64 = u32::MAX as u64;
/// The largest entry of the idle table: the average is as good as gone.
const LONGEST_SHIFT: u8 = 31;
/// tc's clock: ticks of 64 ns.
const TICKS_PER_SEC: u64 = 15_625_000;

/// How the average decays on an idle link: by how many powers of two after
/// so many cells of idle time.
#[derive(Clone)]
struct IdleTable {
    shifts: [u8; 256],
    /// A cell is this power of two, in ticks for tc and in microseconds for the kernel.
    cell_log: u32,
}

impl IdleTable {
    /// tc's table, `tc_red_eval_idle_damping`: the decay if mean packets had found an empty queue
    /// all the time.
    fn new(wlog: u32, mean_packet: Bytes, rate: Rate) -> Self {
        // tc_calc_xmittime rounds up. A link may start without a rate.
        let packet = (mean_packet.get() * 8 * TICKS_PER_SEC).div_ceil(rate.as_bps().max(1));
        let per_tick = -libm::log(1.0 - 1.0 / (1u64 << wlog) as f64) / packet as f64;
        let most = f64::from(LONGEST_SHIFT);
        let fits = |log: &u32| most / per_tick / ((1u64 << log) as f64) < 512.0;
        let cell_log = (0..u32::from(LONGEST_SHIFT)).find(fits).unwrap_or(LONGEST_SHIFT.into());
        let mut shifts = [LONGEST_SHIFT; 256];
        for (cell, shift) in shifts.iter_mut().enumerate().take(255) {
            *shift = (((cell as u64) << cell_log) as f64 * per_tick).min(most) as u8;
        }
        IdleTable { shifts, cell_log }
    }
}

/// The moving average of the bytes in the queue.
#[derive(Clone)]
struct LinuxAverage {
    /// Scaled by 2^wlog.
    scaled: u64,
    wlog: u32,
    table: IdleTable,
    /// Since when the link is idle.
    idle_since: Option<Time>,
}

impl LinuxAverage {
    fn new(params: &RedLinuxParams, env: &LinkEnv) -> Self {
        let wlog = params.wlog as u32;
        let rate = params.bandwidth.unwrap_or(env.rate);
        LinuxAverage {
            scaled: 0,
            wlog,
            table: IdleTable::new(wlog, params.mean_packet, rate),
            idle_since: Some(Time::ZERO),
        }
    }

    /// The scaled average after the idle time since `since`.
    fn decayed(&self, since: Time, now: Time) -> u64 {
        let cell_log = self.table.cell_log;
        let idle = ((now - since).as_nanos() / 1000).min(255 << cell_log);
        match self.table.shifts[(idle >> cell_log) as usize] {
            // Less than a halving: a line instead of the exponential.
            0 => {
                let less = (u128::from(self.scaled) * u128::from(idle)) >> cell_log;
                let half = self.scaled >> 1;
                match u64::try_from(less) {
                    Ok(less) if less < half => self.scaled - less,
                    _ => half,
                }
            }
            shift => self.scaled >> shift,
        }
    }

    fn update(&mut self, now: Time, backlog_bytes: u64) {
        self.scaled = match self.idle_since.take() {
            Some(since) => self.decayed(since, now),
            None => self.scaled - (self.scaled >> self.wlog) + backlog_bytes,
        };
    }

    fn bytes(&self) -> f64 {
        self.scaled as f64 / (1u64 << self.wlog) as f64
    }
}

/// Probability 1 in units of max_p, which can itself not be reached.
const ONE: u64 = 1 << 32;
/// To the nearest, as there.
const PERCENT: u64 = (ONE + 50) / 100;

enum LinuxFate {
    Pass,
    Early,
    Forced,
}

/// The random decision.
#[derive(Clone)]
struct LinuxDecision {
    wlog: u32,
    min: u64,
    max: u64,
    max_p: u64,
    /// What a draw is divided by.
    divisor: u64,
    /// Bound on count times height until the next drop.
    reach: u64,
    /// Packets since the last drop; `None` when the average was outside.
    count: Option<u64>,
}

impl LinuxDecision {
    fn new(params: &RedLinuxParams, env: &LinkEnv) -> Self {
        let bytes = |limit: Limit| match limit.resolve(env.rate, env.base_rtt) {
            Limit::Bytes(bytes) => bytes.get().min(MOST_BYTES),
            Limit::Packets(_) | Limit::Bdp(_) | Limit::Unlimited => unreachable!("checked"),
        };
        let (min, max) = (bytes(params.min_threshold), bytes(params.max_threshold));
        let mut decision = LinuxDecision {
            wlog: params.wlog as u32,
            min,
            max,
            max_p: (params.max_p * ONE as f64) as u64,
            divisor: 1,
            reach: 0,
            count: None,
        };
        if decision.max_p >= ONE {
            // tc's 2^32 is 0 in 32 bits on x86, for which red_set_parms takes the distance of the
            // thresholds times 2^-Plog: tc_red_eval_P, the first power of two above the distance.
            let plog = u64::BITS - decision.width().leading_zeros();
            decision.max_p = decision.width() * ((ONE - 1) >> plog);
        }
        decision.divisor = (decision.max_p / decision.width()).max(1);
        decision
    }

    /// Two thresholds in bandwidth-delay products can be the same byte.
    fn width(&self) -> u64 {
        (self.max - self.min).max(1)
    }

    fn draw(&mut self, cx: &mut Context<'_>) {
        self.reach = u64::from(cx.random.next_u32()) / self.divisor;
    }

    fn decide(&mut self, scaled: u64, cx: &mut Context<'_>) -> LinuxFate {
        if scaled < self.min << self.wlog {
            self.count = None;
            return LinuxFate::Pass;
        }
        if scaled >= self.max << self.wlog {
            self.count = None;
            return LinuxFate::Forced;
        }
        let Some(count) = self.count else {
            self.count = Some(0);
            self.draw(cx);
            return LinuxFate::Pass;
        };
        let count = count + 1;
        self.count = Some(count);
        let height = (scaled - (self.min << self.wlog)) >> self.wlog;
        if height.saturating_mul(count) < self.reach {
            return LinuxFate::Pass;
        }
        self.count = Some(0);
        self.draw(cx);
        LinuxFate::Early
    }

    /// Adaptive RED: keeps the average between two and three fifths.
    fn adapt(&mut self, scaled: u64) {
        let (average, fifth) = (scaled >> self.wlog, (self.max - self.min) / 5);
        if average > self.min + 3 * fifth && self.max_p <= 50 * PERCENT {
            self.max_p += PERCENT.min(self.max_p / 4);
        } else if average < self.min + 2 * fifth && self.max_p >= PERCENT {
            self.max_p = self.max_p / 10 * 9;
        }
        // Here the kernel rounds to the nearest, at the start it truncates.
        self.divisor = ((self.max_p + self.width() / 2) / self.width()).max(1);
    }
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct RedLinux {
    average: LinuxAverage,
    decision: LinuxDecision,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    next_adaption: Option<Time>,
}

impl Aqm for RedLinux {
    type Params = RedLinuxParams;

    fn new(params: &RedLinuxParams, env: &LinkEnv) -> OneQueue<Self> {
        let red = RedLinux {
            average: LinuxAverage::new(params, env),
            decision: LinuxDecision::new(params, env),
            ecn: params.ecn,
            harddrop: params.harddrop,
            nodrop: params.nodrop,
            next_adaption: params.adaptive.then_some(Time::ZERO + ADAPT_INTERVAL),
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), red)
    }

    fn change(&mut self, new: Self, fifo: &mut Fifo, cx: &mut Context<'_>) {
        // Linux, __red_change: the packets go with their child qdisc, the average is zero, the
        // link idle, and the timer starts.
        fifo.purge(cx);
        *self = new;
        self.average.idle_since = Some(cx.now);
        self.next_adaption = self.next_adaption.map(|_| jiffy(cx.now) + ADAPT_INTERVAL);
    }

    fn enqueue(
        &mut self,
        fifo: &mut Fifo,
        room: QueueLimit,
        mut packet: Packet,
        cx: &mut Context<'_>,
    ) {
        self.average.update(cx.now, fifo.backlog().bytes);
        let signal = match self.decision.decide(self.average.scaled, cx) {
            LinuxFate::Pass => None,
            LinuxFate::Early => Some((Reason::RedEarly, self.ecn)),
            LinuxFate::Forced => Some((Reason::RedForced, self.ecn && !self.harddrop)),
        };
        let passes = |may_mark| may_mark && self.nodrop && !packet.ecn().is_capable();
        if let Some((reason, may_mark)) = signal.filter(|&(_, may_mark)| !passes(may_mark)) {
            let Some(marked) = cx.signal(packet, may_mark, reason) else { return };
            packet = marked;
        }
        fifo.push_within(room, packet, cx);
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop();
        if packet.is_none() {
            self.average.idle_since.get_or_insert(cx.now);
        }
        packet
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.next_adaption
    }

    fn on_wakeup(&mut self, _fifo: &Fifo, cx: &mut Context<'_>) {
        if let Some(next) = &mut self.next_adaption {
            *next += ADAPT_INTERVAL;
        }
        // The stored average waits for the next arrival.
        let scaled = match self.average.idle_since {
            Some(since) => self.average.decayed(since, cx.now),
            None => self.average.scaled,
        };
        self.decision.adapt(scaled);
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        let LinuxDecision { min, max, .. } = self.decision;
        let max_p = self.decision.max_p as f64 / ONE as f64;
        let average = self.average.bytes();
        let height = (average - min as f64) / (max as f64 - min as f64);
        let probability = if average >= max as f64 { 1.0 } else { height.max(0.0) * max_p };
        see("average_queue", average);
        see("drop_probability", probability);
        see("max_p", max_p);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{drain, env, fill, queue};
    use aqmlab_core::{Ecn, Params};

    #[test]
    fn a_probability_of_one_overflows_in_tc() {
        let max_p = |max_p| {
            let params = RedLinuxParams { max_p, ..RedLinuxParams::default() };
            LinuxDecision::new(&params, &env()).max_p
        };
        assert_eq!(max_p(0.5), ONE / 2);
        // 60000 bytes, Plog 16.
        assert_eq!(max_p(1.0), 60_000 * 65_535);
    }

    #[test]
    fn a_link_may_start_without_a_rate() {
        let table = IdleTable::new(9, Bytes::new(1000), Rate::from_bps(0));
        assert_eq!(table.shifts[1], 0, "the average keeps its value");
    }

    #[test]
    fn what_cannot_be_marked_passes_with_nodrop() {
        let sent = |nodrop, harddrop, ecn, codepoint| {
            let (min_threshold, max_threshold) =
                (Limit::Bytes(Bytes::new(1)), Limit::Bytes(Bytes::new(2)));
            let red = RedLinuxParams {
                min_threshold,
                max_threshold,
                wlog: 1,
                nodrop,
                harddrop,
                ecn,
                ..RedLinuxParams::default()
            };
            let mut queue = queue(&red);
            fill(&mut queue, 20, codepoint);
            drain(&mut queue).len()
        };
        assert_eq!(sent(true, false, true, Ecn::NotEct), 20);
        assert_eq!(sent(true, false, true, Ecn::Ect0), 20);
        for (nodrop, harddrop) in [(false, false), (true, true)] {
            assert!(sent(nodrop, harddrop, true, Ecn::NotEct) < 3);
        }
    }

    #[test]
    fn what_linux_refuses_is_an_error() {
        let refused = |key: &str, text: &str| {
            let mut params = RedLinuxParams::default();
            params.set("wlog", &"9".into()).unwrap();
            params.set(key, &text.into()).unwrap();
            params.check().unwrap_err().to_string()
        };
        let error = refused("max_threshold", "4194304b");
        assert!(error.contains("less than 4194304b with `wlog` 9"), "{error}");
        assert!(refused("nodrop", "true").contains("false without `ecn`"));
    }
}
