//! Queues in words: those of tc(8), and their own.

use std::collections::HashMap;

use aqmlab_aqm::registry::{PRESETS, entries};
use aqmlab_aqm::{Discipline, QueueConfig};
use aqmlab_core::catalogue::{say_in_dialect, say_in_words};
use aqmlab_core::framing::Octets;
use aqmlab_core::{Bytes, ParamSpec, ParamType, Rate, Span, Stream, Value};

fn read(text: &str) -> QueueConfig {
    QueueConfig::read(&text.into()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn problem(text: &str) -> String {
    QueueConfig::read(&text.into()).expect_err(text).to_string()
}

/// The settings that differ from the defaults.
fn changed(config: &QueueConfig) -> HashMap<String, String> {
    let usual = QueueConfig::named(config.name()).unwrap();
    let text = |(key, value): (&str, Value)| (key.to_string(), value.to_string());
    let usual: Vec<_> = usual.settings().into_iter().map(text).collect();
    config.settings().into_iter().map(text).filter(|pair| !usual.contains(pair)).collect()
}

/// A text, its discipline, and the settings that differ from the defaults.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Lines as people write them, and as `tc qdisc show` prints them.
const LINES: &[Case] = &[
    ("fq_codel limit=1000p", "fq_codel", &[("limit", "1000p")]),
    ("fq_codel limit 1000p", "fq_codel", &[("limit", "1000p")]),
    ("fq-codel limit 1000", "fq_codel", &[("limit", "1000p")]),
    ("droptail limit 100", "droptail", &[("limit", "100p")]),
    ("pfifo limit 100", "droptail", &[("limit", "100p")]),
    ("bfifo limit 64k", "droptail", &[("limit", "65536b")]),
    ("pfifo_head_drop limit 7", "droptail", &[("limit", "7p"), ("drop", "head")]),
    (
        "cake bandwidth 18mbit pppoe-ptm nat ack-filter",
        "cake",
        &[("bandwidth", "18mbit"), ("link_layer", "pppoe-ptm"), ("ack_filter", "conservative")],
    ),
    (
        "cake bandwidth 20Mbit autorate-ingress besteffort dual-srchost nonat wash ingress \
         ack-filter-aggressive split-gso rtt 30.0ms ethernet ether-vlan memlimit 8Mb",
        "cake",
        &[
            ("bandwidth", "20mbit"),
            ("autorate_ingress", "true"),
            ("diffserv", "besteffort"),
            ("isolation", "dual-src-host"),
            ("wash", "true"),
            ("ingress", "true"),
            ("ack_filter", "aggressive"),
            ("interval", "30ms"),
            ("link_layer", "ethernet"),
            ("overhead", "42b"),
            ("limit", "8388608b"),
        ],
    ),
    (
        "cake flows metro diffserv4 flows=512",
        "cake",
        &[("isolation", "flow"), ("interval", "10ms"), ("diffserv", "diffserv4"), ("flows", "512")],
    ),
    (
        "qdisc cake 8001: root refcnt 2 bandwidth 100Mbit diffserv3 triple-isolate nonat nowash \
         no-ack-filter split-gso rtt 100ms noatm overhead 38 mpu 84",
        "cake",
        &[("bandwidth", "100mbit"), ("framing", "none"), ("overhead", "38b"), ("mpu", "84b")],
    ),
    (
        "qdisc cake 8006: dev eth0 root refcnt 2 bandwidth 9Mbit diffserv3 triple-isolate nonat \
         nowash no-ack-filter split-gso rtt 100ms raw overhead 0",
        "cake",
        &[("bandwidth", "9mbit")],
    ),
    (
        "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms \
         interval 100ms memory_limit 32Mb ecn drop_batch 64",
        "fq_codel",
        &[],
    ),
    (
        "codel target 4ms interval 30ms ecn ce_threshold 1ms",
        "codel",
        &[("target", "4ms"), ("interval", "30ms"), ("ecn", "true"), ("ce_threshold", "1ms")],
    ),
    (
        "tc qdisc replace dev eth0 root handle 1: pie limit 100 target 20ms alpha 3 beta 10 bytemode",
        "pie",
        &[
            ("limit", "100p"),
            ("target", "20ms"),
            ("alpha", "0.1875"),
            ("beta", "0.625"),
            ("by_size", "true"),
        ],
    ),
    (
        "qdisc fq_pie 8001: root refcnt 2 limit 10240p flows 1024 target 15.0ms tupdate 16.0ms alpha \
         2 beta 20 quantum 1514b memory_limit 32Mb ecn_prob 12 dq_rate_estimator",
        "fq_pie",
        &[("tupdate", "16ms"), ("ecn_prob", "12"), ("delay", "rate")],
    ),
    (
        "sfq perturb 10 divisor 2048 headdrop",
        "sfq",
        &[("perturb", "10s"), ("divisor", "2048"), ("headdrop", "true")],
    ),
    (
        "qdisc sfq 8002: root refcnt 2 limit 127p quantum 1514b depth 127 divisor 1024 perturb 10sec",
        "sfq",
        &[("quantum", "1514b"), ("perturb", "10s")],
    ),
    // tc-red(8)'s example; what follows from limit alone: max a quarter, min a third of that.
    (
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn adaptive bandwidth 10Mbit",
        "red_linux",
        &[("ecn", "true"), ("adaptive", "true"), ("bandwidth", "10mbit")],
    ),
    (
        "red limit 120k avpkt 1000 ecn",
        "red_linux",
        &[
            ("limit", "122880b"),
            ("max_threshold", "30720b"),
            ("min_threshold", "10240b"),
            ("ecn", "true"),
            ("wlog", "4"),
        ],
    ),
    (
        "red min 5000 burst 20 avpkt 1000 limit 60kb",
        "red_linux",
        &[
            ("min_threshold", "5000b"),
            ("max_threshold", "15000b"),
            ("limit", "61440b"),
            ("wlog", "6"),
        ],
    ),
    ("red min_threshold=7p max_p=0.2", "red", &[("min_threshold", "7p"), ("max_p", "0.2")]),
    (
        "hred limit=90p",
        "red",
        &[
            ("limit", "90p"),
            ("min_threshold", "3p"),
            ("max_threshold", "40p"),
            ("weight", "0.02"),
            ("max_p", "0.65"),
            ("mean_packet", "1500b"),
        ],
    ),
    (
        "choke limit 500 min 20 max 60 burst 40 bandwidth 10mbit",
        "choke",
        &[
            ("limit", "500p"),
            ("min_threshold", "20p"),
            ("max_threshold", "60p"),
            ("weight", "0.03125"),
        ],
    ),
    (
        "sfb db 5000 rehash 30000 target 15",
        "sfb",
        &[("warmup", "5s"), ("rehash", "30s"), ("target", "15"), ("max", "19")],
    ),
    // What tc makes of one of the two: 4/5, rounded up, and 5/4.
    ("sfb max 60", "sfb", &[("max", "60"), ("target", "48")]),
    ("sfb max 60 target 20", "sfb", &[("max", "60")]),
    ("sfb limit 100", "sfb", &[("limit", "100p")]),
    (
        "dualpi2 coupling_factor 3 step_thresh 5pkt any_ect overflow classic_protection 20% variant=linux",
        "dualpi2",
        &[
            ("coupling", "3"),
            ("step_packets", "5"),
            ("classifier", "any-ect"),
            ("drop_overload", "false"),
            ("c_protection", "20"),
            ("variant", "linux"),
        ],
    ),
    ("dualpi2 step_thresh 2ms l4s_ect", "dualpi2", &[("step", "2ms")]),
    (
        "dualpi2 variant=linux step_thresh 2p",
        "dualpi2",
        &[("variant", "linux"), ("step_packets", "2")],
    ),
    (
        "dualpi2 max_rtt 200ms typical_rtt 20ms",
        "dualpi2",
        &[("target", "20ms"), ("tupdate", "20ms"), ("alpha", "0.05"), ("beta", "1.5")],
    ),
    (
        "dualpi2 typical_rtt 30ms target 1ms",
        "dualpi2",
        &[
            ("target", "30ms"),
            ("tupdate", "30ms"),
            ("alpha", "0.09259259259259259"),
            ("beta", "1.6666666666666667"),
        ],
    ),
    (
        "fq_codel ce_threshold 1ms ce_threshold_selector 1/0x3",
        "fq_codel",
        &[("ce_threshold", "1ms"), ("ce_threshold_selector", "0x1/0x3")],
    ),
    ("blue increment 0.05 noecn", "blue", &[("increment", "0.05")]),
];

#[test]
fn lines_mean_what_tc_means() {
    for (text, name, expected) in LINES {
        let config = read(text);
        let expected = expected.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!((config.name(), changed(&config)), (*name, expected.collect()), "{text}");
    }
}

#[test]
fn errors_name_the_word_and_what_is_allowed() {
    for (text, expected) in [
        ("fq_codle limit 5", "`fq_codle`: unknown queue discipline"),
        ("fq_codle limit 5", "did you mean `fq_codel`?"),
        ("fq_codel targte 2ms", "`targte`: unknown word of fq_codel; known: limit, target,"),
        ("fq_codel targte 2ms", "did you mean `target`?"),
        ("fq_codel target soon", "target: `soon`: expected a time"),
        ("fq_codel target", "`target` needs a value"),
        ("cake bandwith 5mbit", "did you mean `bandwidth`?"),
        ("cake bandwidth 5", "bandwidth: `5`: expected a rate with its unit"),
        ("cake bandwidth 5mbps", "not mbps, which is bytes per second to tc"),
        ("cake fwmark 0xff", "fwmark: `0xff`: not modelled: packets have no mark"),
        ("cake overhead 257", "expected a whole number of bytes from -64 to 256"),
        ("cake raw overhead 18", "overhead: `18b`: expected 0 after `raw`"),
        ("fq_pie memory_limit 1Mb", "memory_limit: `1Mb`: expected 33554432: Linux's default"),
        ("sfq redflowlimit 5000", "not modelled: SFQ has no RED"),
        ("red min 30000 max 90000 avpkt 1000 burst 20 limit 400000", "a burst of at least 30"),
        ("red min 30000 mxa 90000", "`mxa`: unknown word of red; known: limit, min, max,"),
        ("fq_codel ce_threshold_selector 0x1", "`0x1`: expected a value and a mask"),
        (
            "dualpi2 max_rtt 10ms typical_rtt 20ms",
            "typical_rtt: `20ms`: expected no more than `max_rtt`",
        ),
        ("dualpi2 max_rtt 10s", "max_rtt: `10s`: expected a shorter time"),
        ("dualpi2 memlimit 1000000", "not modelled: the memory of packets"),
        ("dualpi2 step_thresh 2p", "step_packets: `2`: expected none unless `variant = linux`"),
        ("tc qdisc add dev eth0 root", "expected the name of a queue discipline"),
        ("tc qdisc add dev eth0 root netem delay 10ms", "keys of the link"),
    ] {
        assert!(problem(text).contains(expected), "{text}: {}", problem(text));
    }
}

fn below(draw: &mut Stream, end: u64) -> u64 {
    draw.next_u64() % end
}

/// A random value of a parameter; `None` where its kind says too little.
fn random(draw: &mut Stream, spec: &ParamSpec) -> Option<String> {
    if !spec.choices.is_empty() && spec.kind != "name or table" {
        return Some(spec.choices[below(draw, spec.choices.len() as u64) as usize].into());
    }
    let round = below(draw, 3);
    let mut between = |low: u64, high: u64| {
        let most = low.saturating_add(10_u64.pow(below(draw, 8) as u32 + 1)).min(high);
        low + below(draw, most - low + 1)
    };
    let ends = |low: &str, high: &str| {
        let (low, high) = spec.range.clone().unwrap_or((low.into(), high.into()));
        (Value::from(low), Value::from(high))
    };
    Some(match spec.kind {
        "time" => {
            let (low, high) = ends("1us", "100s");
            let nanos = between(Span::read(&low)?.as_nanos(), Span::read(&high)?.as_nanos());
            // tc takes whole microseconds or milliseconds.
            let unit = [1, 1000, 1_000_000][round as usize];
            format!("{}ns", (nanos / unit * unit).max(Span::read(&low)?.as_nanos()))
        }
        "rate" => {
            let (low, high) = ends("1bit", "1gbit");
            let low = Rate::read(&low).map_or(1, Rate::as_bps);
            format!("{}bit", between(low, Rate::read(&high)?.as_bps()))
        }
        "size" => {
            let (low, high) = ends("1b", "1gb");
            format!("{}b", between(Bytes::read(&low)?.get(), Bytes::read(&high)?.get()))
        }
        "bytes" => {
            let (low, high) = ends("0b", "100b");
            let (low, high) = (Octets::read(&low)?.0, Octets::read(&high)?.0);
            (low + between(0, (high - low) as u64) as i64).to_string()
        }
        "limit" => match round {
            0 => format!("{}b", between(1, 1_000_000)),
            _ => format!("{}p", between(1, 100_000)),
        },
        "whole number" => {
            let (low, high) = ends("0", "1000");
            between(u64::read(&low)?, u64::read(&high)?).to_string()
        }
        "number" => {
            let (low, high) = ends("0", "1");
            let (low, high) = (f64::read(&low)?, f64::read(&high)?.min(2.0));
            match round {
                0 => (low + draw.uniform() * (high - low)).to_string(),
                1 => libm::pow(0.5, 1.0 + below(draw, 12) as f64).clamp(low, high).to_string(),
                _ => ((low + draw.uniform() * (high - low)) * 16.0).floor().max(low).to_string(),
            }
        }
        _ => return None,
    })
}

/// Random parameters of each discipline: their words read back as the same parameters, and so do
/// the words for tc where nothing is left out.
#[test]
fn what_is_printed_reads_back() {
    let mut draw = Stream::for_component(20_270_101, 0, "words");
    let mut in_words_of_tc: HashMap<String, usize> = HashMap::new();
    let presets = PRESETS.iter().map(|preset| (preset.name, preset.params::<dyn Discipline>()));
    let all = entries().into_iter().map(|entry| (entry.name, entry.params));
    for (name, params) in all.chain(presets) {
        for _ in 0..1000 {
            let mut config = QueueConfig::named(name).unwrap();
            let boldness = [0.1, 0.4, 1.0][below(&mut draw, 3) as usize];
            for spec in &params {
                if draw.uniform() < boldness
                    && let Some(text) = random(&mut draw, spec)
                {
                    // What only the range of another kind refuses stays as it is.
                    let _ = config.set(spec.name, &Value::from(text.as_str()));
                }
            }
            if config.check().is_err() {
                continue;
            }
            let text = say_in_words(&config);
            assert_eq!(read(&text), config, "{text}");
            let Some(said) = say_in_dialect(&config) else { continue };
            if said.left_out.is_empty() && said.fixed.is_empty() {
                assert_eq!(read(&said.words), config, "{}", said.words);
                *in_words_of_tc.entry(name.to_string()).or_default() += 1;
            }
        }
    }
    let linux =
        ["droptail", "red_linux", "codel", "pie", "fq_codel", "fq_pie", "cake", "sfq", "sfb"];
    for name in linux.into_iter().chain(["choke", "dualpi2"]) {
        let count = in_words_of_tc.get(name).copied().unwrap_or_default();
        assert!(count > 5, "{name}: only {count} of 1000 in the words of tc");
    }
}

#[test]
fn what_is_printed_is_what_people_write() {
    for (text, expected, left_out) in [
        ("droptail", "pfifo limit 1000", ""),
        ("droptail limit 30kb", "bfifo limit 30720", ""),
        ("droptail limit=2bdp", "pfifo", "limit"),
        ("codel variant linux", "codel", ""),
        ("codel target=2ms limit=30000b", "codel target 2ms", "limit"),
        ("fq_codel target=2ms limit=600p ecn=false", "fq_codel limit 600 target 2ms noecn", ""),
        ("cake bandwidth=9500kbit diffserv=besteffort", "cake bandwidth 9.5mbit besteffort", ""),
        ("cake link_layer=docsis interval=30ms", "cake regional docsis", ""),
        ("pie alpha=0.25 delay=rate", "pie alpha 4 dq_rate_estimator", ""),
        ("pie alpha=0.3", "pie", "alpha"),
        ("sfq perturb=10s", "sfq perturb 10", ""),
        ("red_linux ecn", "red min 30000 max 90000 limit 400000 burst 50 avpkt 1000 ecn", ""),
        ("sfb", "sfb limit 1000 max 25 target 20", ""),
    ] {
        let said = say_in_dialect(&read(text)).unwrap();
        let missing: Vec<&str> = said.left_out.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            (said.words.as_str(), missing.join(" ").as_str()),
            (expected, left_out),
            "{text}"
        );
    }
    assert!(say_in_dialect(&read("pi2")).is_none());
    assert_eq!(say_in_words(&read("pi2 target=5ms")), "pi2 target=5ms");
    assert_eq!(say_in_dialect(&read("red_linux")).unwrap().rate, Some("bandwidth"));
}
