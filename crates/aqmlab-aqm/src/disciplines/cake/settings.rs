//! The parameters of CAKE.

use alloc::{format, string::String, string::ToString, vec::Vec};

use aqmlab_core::framing::CAKE_WORDS;
use aqmlab_core::params::ParamType;
use aqmlab_core::words::{Dialect, Form, Given, Settings, Word};
use aqmlab_core::{Bytes, Error, FramingParams, Limit, Rate, Result, Span, Value, choices, params};

use super::ack_filter::AckFilter;
use super::shaper::bytes_per_second;
use super::tin::{Plan, Tin};
use super::tins::{Diffserv, Share, TinTuning};
use crate::cobalt::{InitialGrace, Law};
use crate::discipline::LinkEnv;
use crate::fq::hash::{FlowClassifier, Hashing, Key, Method};

choices! {
    /// Flow isolation: the units that have queues and share the link.
    pub enum CakeIsolation {
        /// One queue for all.
        FlowBlind = "flow-blind",
        /// A queue for each host that sends.
        SrcHost = "src-host",
        /// A queue for each host that receives.
        DstHost = "dst-host",
        /// A queue for each pair of hosts.
        Hosts = "hosts",
        /// A queue for each flow.
        Flow = "flow",
        /// The same, and hosts that send share first.
        DualSrcHost = "dual-src-host",
        /// The same, and hosts that receive share first.
        DualDstHost = "dual-dst-host",
        /// The same, and hosts on both sides share first.
        Triple = "triple",
    }
}

impl CakeIsolation {
    pub(super) fn key(self) -> Key {
        match self {
            CakeIsolation::FlowBlind => Key::Nothing,
            CakeIsolation::SrcHost => Key::SrcHost,
            CakeIsolation::DstHost => Key::DstHost,
            CakeIsolation::Hosts => Key::Hosts,
            _ => Key::Flow,
        }
    }
    /// Whether the hosts that send, and those that receive, share first.
    pub(super) fn counts_hosts(self) -> [bool; 2] {
        match self {
            CakeIsolation::DualSrcHost => [true, false],
            CakeIsolation::DualDstHost => [false, true],
            CakeIsolation::Triple => [true, true],
            _ => [false, false],
        }
    }
}

/// A rate, or `unlimited`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Bandwidth(pub Option<Rate>);

impl ParamType for Bandwidth {
    const KIND: &'static str = "rate";
    fn allowed() -> String {
        format!("{}, or `unlimited`", Rate::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "unlimited" => Some(Bandwidth(None)),
            other => Rate::read(other).map(|rate| Bandwidth(Some(rate))),
        }
    }
    fn to_text(&self) -> String {
        self.0.map_or_else(|| "unlimited".into(), |rate| rate.to_string())
    }
    fn is_word(&self) -> bool {
        self.0.is_none()
    }
}

/// A round-trip time: a time, or the name of the distance it is usual for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Rtt(pub Span);

/// The names that tc-cake(8) has, and what tc makes of them.
const DISTANCES: [(&str, Span); 8] = [
    ("datacentre", Span::from_micros(100)),
    ("lan", Span::from_millis(1)),
    ("metro", Span::from_millis(10)),
    ("regional", Span::from_millis(30)),
    ("internet", Span::from_millis(100)),
    ("oceanic", Span::from_millis(300)),
    ("satellite", Span::from_secs(1)),
    ("interplanetary", Span::from_secs(1000)),
];

impl ParamType for Rtt {
    const KIND: &'static str = "time";
    fn allowed() -> String {
        let names = DISTANCES.map(|(name, _)| name).join(", ");
        format!("{}, or one of {names}", Span::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        let named = |text: &str| DISTANCES.into_iter().find(|(name, _)| *name == text);
        match value {
            Value::Text(text) if named(text).is_some() => named(text).map(|(_, rtt)| Rtt(rtt)),
            other => Span::read(other).map(Rtt),
        }
    }
    fn to_text(&self) -> String {
        self.0.to_string()
    }
}

params! {
    /// Parameters of CAKE.
    pub struct CakeParams {
        /// The rate that packets leave with at most; `unlimited`: the link's.
        bandwidth: Bandwidth = Bandwidth(None),
            in Bandwidth(Some(Rate::from_bps(512))) => Bandwidth(Some(Rate::from_bps(1 << 50))),
            source "tc-cake(8), bandwidth";
        /// Whether the bandwidth follows the arrival rate, starting from the given one (for
        /// a shaper behind the bottleneck).
        autorate_ingress: bool = false, source "tc-cake(8), autorate-ingress";
        /// Mapping of DSCPs to tins.
        diffserv: Diffserv = Diffserv::Diffserv3, source "tc-cake(8), priority queue parameters";
        /// Flow isolation: the units that have queues and share the link.
        isolation: CakeIsolation = CakeIsolation::Triple, source "tc-cake(8), flow isolation parameters";
        /// Time for which a flow's delay may exceed the target; about the largest common
        /// round-trip time.
        interval: Rtt = Rtt(Span::from_millis(100)),
            in Rtt(Span::from_micros(1)) => Rtt(Span::from_secs(3600)),
            source "tc-cake(8), rtt and its keywords";
        /// The sojourn time that a flow's queue may keep standing; `none`: an interval's 20th.
        target: Option<Span> = None, in Some(Span::from_nanos(1)) => Some(Span::from_secs(100)),
            source "tc-cake(8); set with rtt by tc";
        /// Total capacity of all queues; `none`: four intervals at the bandwidth, at least
        /// 4 MB and at most 10240 of the largest packets.
        limit: Option<Limit> = None, source "tc-cake(8), memlimit; Linux for the default";
        /// The flow queues of a tin.
        flows: u64 = 1024, in 1 => 65_536, source "fixed in Linux";
        /// Bytes that a flow may send before the next is served; now and then one less. `none`:
        /// 1514, or with a shaper the tin's bytes in 1/4096 s, from 300 to 1514.
        quantum: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1_000_000)),
            source "fixed in Linux";
        /// Acknowledgements that are dropped in favour of later ones.
        ack_filter: AckFilter = AckFilter::None, source "tc-cake(8), ack-filter";
        /// Whether the DSCP is cleared.
        wash: bool = false, source "tc-cake(8), wash";
        /// Counts dropped packets as sent: for a link before the queue.
        ingress: bool = false, source "tc-cake(8), ingress";
        /// Linux's COBALT as it is, or with its first interval as it is meant.
        /// COBALT as Linux has it, or with its first interval as it is meant.
        variant: InitialGrace = InitialGrace::Linux, source "conformance vectors";
    } with {
        /// Size of packets on the link.
        framing: FramingParams = FramingParams::default();
        /// How flows are hashed into queues.
        hashing: Hashing = Hashing { hashing: Method::SetAssociative, ..Hashing::default() };
    } words TC
}

const NO_OFFLOADS: &str = "packets are never aggregated";
const NO_NAT: &str = "hosts are those of the flows, whatever their addresses outside";

/// tc-cake(8).
const TC: &[Dialect] = &[Dialect {
    kind: "cake",
    source: "tc-cake(8)",
    fixed: &[("variant", "linux")],
    words: &[
        &[
            Word::set("unlimited", "bandwidth", "unlimited"),
            Word::value("bandwidth", "bandwidth", Form::Rate),
            Word::set("autorate-ingress", "autorate_ingress", "true"),
            Word::set("besteffort", "diffserv", "besteffort"),
            Word::set("precedence", "diffserv", "precedence"),
            Word::set("diffserv3", "diffserv", "diffserv3"),
            Word::set("diffserv4", "diffserv", "diffserv4"),
            Word::set("diffserv8", "diffserv", "diffserv8"),
            Word::set("flowblind", "isolation", "flow-blind"),
            Word::set("srchost", "isolation", "src-host"),
            Word::set("dsthost", "isolation", "dst-host"),
            Word::set("hosts", "isolation", "hosts"),
            Word::set("flows", "isolation", "flow"),
            Word::set("dual-srchost", "isolation", "dual-src-host"),
            Word::set("dual-dsthost", "isolation", "dual-dst-host"),
            Word::set("triple-isolate", "isolation", "triple"),
            Word::set("datacentre", "interval", "100us"),
            Word::set("lan", "interval", "1ms"),
            Word::set("metro", "interval", "10ms"),
            Word::set("regional", "interval", "30ms"),
            Word::set("internet", "interval", "100ms"),
            Word::set("oceanic", "interval", "300ms"),
            Word::set("satellite", "interval", "1s"),
            Word::set("interplanetary", "interval", "1000s"),
            Word::value("rtt", "interval", Form::Time),
            Word::value("memlimit", "limit", Form::Size),
            Word::set("ack-filter", "ack_filter", "conservative"),
            Word::set("ack-filter-aggressive", "ack_filter", "aggressive"),
            Word::set("no-ack-filter", "ack_filter", "none"),
            Word::set("wash", "wash", "true"),
            Word::set("nowash", "wash", "false"),
            Word::set("ingress", "ingress", "true"),
            Word::set("egress", "ingress", "false"),
            Word::ignored("nat", false, NO_NAT),
            Word::ignored("nonat", false, NO_NAT),
            Word::ignored("split-gso", false, NO_OFFLOADS),
            Word::ignored("no-split-gso", false, NO_OFFLOADS),
            Word::refused("fwmark", true, "packets have no mark of a firewall"),
        ],
        CAKE_WORDS,
    ],
    finish: Some(add_to_raw),
    ..Dialect::EMPTY
}];

/// After `raw`, `overhead` adds to the size with the device's header (`TCA_CAKE_RAW` in
/// `cake_change`): `tc qdisc show` prints `raw overhead 0` for a queue without keywords.
fn add_to_raw(settings: &mut dyn Settings, given: &Given<'_>) -> Result<()> {
    if !given.has_word("raw") || settings.get("link_layer").as_deref() != Some("raw") {
        return Ok(());
    }
    match settings.get("overhead").as_deref().unwrap_or("none") {
        "none" => Ok(()),
        "0b" => settings.put("overhead", "none"),
        other => Err(Error::not_allowed(other, "0 after `raw`, which counts the device's header")
            .at("overhead")),
    }
}

impl CakeParams {
    /// A tin, empty.
    pub(super) fn tin(&self, plan: Plan) -> Tin {
        let classifier = FlowClassifier::new(self.isolation.key(), &self.hashing, self.flows);
        Tin::new(plan, classifier, self.flows, self.isolation.counts_hosts())
    }

    /// The target that is kept where a tin's rate allows it.
    pub(super) fn target(&self) -> Span {
        // iproute2, cake_parse_opt: whole microseconds.
        let micros = (self.interval.0.as_nanos() / 20_000).max(1);
        self.target.unwrap_or(Span::from_micros(micros))
    }

    /// The tins at this bandwidth.
    pub(super) fn plans(&self, env: &LinkEnv) -> Vec<Plan> {
        let plan = |share: Share| {
            let tuning = TinTuning::new(share.rate, self.target(), self.interval.0, env.mtu);
            Plan {
                law: Law::new(tuning.target, tuning.interval, self.variant),
                quantum: self.quantum.map_or(tuning.quantum, Bytes::get),
                mtu_time: tuning.mtu_time,
                weight: share.weight,
                rate: share.rate,
            }
        };
        self.diffserv.shares(self.bandwidth.0).into_iter().map(plan).collect()
    }

    pub(super) fn limit(&self, env: &LinkEnv) -> Limit {
        let Some(limit) = self.limit else {
            let most = 10_240 * env.mtu.get();
            let usual = self.bandwidth.0.map_or(u64::MAX, |rate| {
                let interval = self.interval.0.as_nanos() / 1000;
                let bytes = bytes_per_second(rate).wrapping_mul(interval) / 250_000;
                u64::from(bytes as u32).max(4 << 20) // 64 bits there, then 32
            });
            return Limit::Bytes(Bytes::new(usual.min(most)));
        };
        limit.resolve(self.bandwidth.0.unwrap_or(env.rate), env.base_rtt)
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Params;

    use super::*;
    use crate::testing::env;

    fn set(key: &str, text: &str) -> CakeParams {
        let mut params = CakeParams::default();
        params.set(key, &text.into()).unwrap();
        params
    }

    #[test]
    fn distances_set_interval_and_target() {
        for (name, interval, target) in [
            ("datacentre", Span::from_micros(100), Span::from_micros(5)),
            ("metro", Span::from_millis(10), Span::from_micros(500)),
            ("internet", Span::from_millis(100), Span::from_millis(5)),
            ("interplanetary", Span::from_secs(1000), Span::from_secs(50)),
            ("40ms", Span::from_millis(40), Span::from_millis(2)),
            ("59us", Span::from_micros(59), Span::from_micros(2)),
            ("10us", Span::from_micros(10), Span::from_micros(1)),
        ] {
            let params = set("interval", name);
            assert_eq!((params.interval.0, params.target()), (interval, target), "{name}");
        }
        let error = CakeParams::default().set("interval", &"lunar".into()).unwrap_err();
        assert!(error.to_string().contains("regional"), "{error}");
    }

    #[test]
    fn the_bandwidth_is_a_rate_or_unlimited() {
        assert_eq!(set("bandwidth", "20mbit").bandwidth.0, Some(Rate::from_bps(20_000_000)));
        assert_eq!(set("bandwidth", "unlimited").bandwidth.0, None);
        assert!(CakeParams::default().set("bandwidth", &"100bit".into()).is_err());
        assert!(CakeParams::default().set("bandwidth", &"none".into()).is_err());
    }

    #[test]
    fn memory_is_four_intervals_within_bounds() {
        let bytes = |params: CakeParams| match params.limit(&env()) {
            Limit::Bytes(bytes) => bytes.get(),
            limit => panic!("{limit}"),
        };
        assert_eq!(bytes(CakeParams::default()), 10_240 * 1514);
        assert_eq!(bytes(set("bandwidth", "10mbit")), 4 << 20);
        // 200 Mbit/s for 400 ms.
        assert_eq!(bytes(set("bandwidth", "200mbit")), 10_000_000);
        assert_eq!(bytes(set("bandwidth", "1gbit")), 10_240 * 1514);
        // 2^32 bytes and a little more.
        let long = CakeParams { interval: Rtt(Span::from_secs(1)), ..set("bandwidth", "8600mbit") };
        assert_eq!(bytes(long), 5_032_704);
        // 2^64 bytes/s times microseconds.
        let interval = Rtt(Span::from_micros(1 << 17));
        let bandwidth = Bandwidth(Some(Rate::from_bps(1 << 50)));
        assert_eq!(bytes(CakeParams { interval, bandwidth, ..CakeParams::default() }), 4 << 20);
        assert_eq!(bytes(set("limit", "64kb")), 65_536);
    }
}
