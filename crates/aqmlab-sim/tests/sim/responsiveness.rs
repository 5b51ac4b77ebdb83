//! Effects of load on other traffic: RPM, RRUL, games; and incast.

use aqmlab_sim::{GroupResult, RunResult};

use crate::common::{mean, run_workload as result, value};

const EULER: f64 = 0.577_215_664_901_532_9;

fn times<'a>(group: &'a GroupResult, name: &str) -> &'a aqmlab_sim::network::probe::TimeSummary {
    group.times_of(name).unwrap_or_else(|| panic!("no times of {name}"))
}

/// On links of this rate with this queue.
fn on(workload: &str, rate: &str, queue: &str) -> RunResult {
    let settings = [
        ("links.down.rate", rate),
        ("links.up.rate", rate),
        ("links.down.queue", queue),
        ("links.up.queue", queue),
        ("duration", "100s"),
    ];
    result(workload, &settings)
}

#[test]
fn responsiveness_is_that_of_the_path_and_its_queue() {
    // With separate queues, foreign probes do not wait; probes on a loaded connection wait for
    // CoDel's 5 ms and its variation.
    let fair = on("\"rpm\"", "50mbit", "fq_codel");
    assert!((1300.0..1500.0).contains(&value(&fair, "rpm_foreign")), "{:?}", fair.groups[0].values);
    assert!((800.0..1400.0).contains(&value(&fair, "rpm_loaded")), "{:?}", fair.groups[0].values);
    let halves = (value(&fair, "rpm_foreign") + value(&fair, "rpm_loaded")) / 2.0;
    assert!((value(&fair, "rpm") - halves).abs() < 1e-9);
    // A deep buffer makes seconds of it: less than 5 BDP would be 300 RPM.
    let deep = on("\"rpm\"", "10mbit", "droptail");
    assert!(value(&deep, "rpm") < 120.0, "{:?}", deep.groups[0].values);
    for result in [&fair, &deep] {
        let group = &result.groups[0];
        assert_eq!((group.started, group.completed), (1, 1));
        // Goodput is declared stable after 7 intervals at the earliest, and
        // responsiveness after four more.
        let seconds = value(result, "seconds");
        assert!((11.0..=20.0).contains(&seconds), "{seconds}");
        assert!((result.end.as_secs_f64() - seconds).abs() < 1e-9, "the run ends with it");
        let is_stable = value(result, "confidence") == 2.0;
        assert!(is_stable || seconds == 20.0);
    }
    assert!(value(&fair, "download") > 0.85 * 50e6 && value(&fair, "upload") > 0.85 * 50e6);
}

/// A lost segment holds back what an application reads, for seconds behind a deep queue, and lets
/// it go at once: neither is the goodput of the line.
#[test]
fn goodputs_are_what_the_line_carries() {
    for (rate, limit, profile) in
        [(10e6, 5000, "rfc"), (10e6, 1000, "linux-6"), (50e6, 1000, "rfc")]
    {
        // The test runs to its limit, and loses packets. From 29 s on the line of 5000 packets is
        // idle for a second: acknowledgements wait for 6 s.
        let test = "{ kind = \"rpm\", tolerance = 0.0001, limit = \"29500ms\" }";
        let (bits, limit) = (format!("{rate}bit"), format!("{limit}p"));
        let settings = [
            ("duration", "40s"),
            ("links.down.rate", &bits),
            ("links.up.rate", &bits),
            ("links.down.queue.limit", &limit),
            ("links.up.queue.limit", &limit),
            ("transport.profile", profile),
        ];
        let result = result(test, &settings);
        for way in ["download", "upload"] {
            let share = value(&result, way) / rate;
            assert!((0.7..=0.974).contains(&share), "{way} {share}: {rate} {limit} {profile}");
        }
    }
}

/// Without load there are no queues, and each time is a round trip.
#[test]
fn each_probe_takes_one_round_trip() {
    let rpm = r#"{ kind = "rpm", most = 1, load = "down", limit = "12s" }"#;
    let result = on(rpm, "10gbit", "droptail");
    let group = &result.groups[0];
    for kind in ["tcp_f", "tls_f", "http_f"] {
        let least = times(group, kind).quantiles[0];
        assert!((0.04..0.0402).contains(&least), "{kind} {least}");
    }
    // 60 s over 40 ms.
    assert!((value(&result, "rpm_foreign") - 1500.0).abs() < 15.0);
    assert_eq!(value(&result, "upload"), 0.0);
    // Fifty foreign probes a second, and as many others, from 1 s on.
    let probes = times(group, "http_f").count as f64;
    assert!((probes / (50.0 * (value(&result, "seconds") - 1.0)) - 1.0).abs() < 0.05, "{probes}");
}

/// A test that ends a millisecond later has the same intervals. The queue fills during the test, so
/// that each interval has another goodput.
#[test]
fn an_interval_that_ends_at_the_limit_counts() {
    let of = |limit: &str, name: &str| {
        let rpm = format!("{{ kind = \"rpm\", load = \"down\", limit = \"{limit}\" }}");
        value(&on(&rpm, "10mbit", "droptail"), name)
    };
    for (limit, later) in [("1s", "1001ms"), ("3s", "3001ms"), ("8s", "8001ms")] {
        assert_eq!(of(limit, "download"), of(later, "download"), "{limit}");
        assert!(of(limit, "download") > 0.0);
    }
}

#[test]
fn probes_take_a_small_share_of_a_slow_link() {
    let result = on(r#"{ kind = "rpm", load = "down", tls = 0 }"#, "2mbit", "fq_codel");
    let group = &result.groups[0];
    // 5 % of 2 Mbit/s in pairs of 6000 bytes are 2.1 a second.
    let rate = times(group, "http_l").count as f64 / (value(&result, "seconds") - 1.0);
    assert!((1.3..2.2).contains(&rate), "{rate}");
    assert!(group.times_of("tls_f").is_none());
    assert!(value(&result, "rpm") > 100.0);
}

#[test]
fn rrul_loads_both_ways_and_tells_idle_from_loaded() {
    let test = r#"{ kind = "rrul", length = "20s", lead = "2s" }"#;
    let result = on(test, "10mbit", "fq_codel");
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed), (8, 8));
    assert!((result.end.as_secs_f64() - 24.0).abs() < 1e-9);
    // Four flows in each direction share 10 Mbit/s with the acknowledgements of the other
    // direction.
    for way in ["download", "upload"] {
        assert!((8e6..9.75e6).contains(&value(&result, way)), "{way} {}", value(&result, way));
    }
    // Ten probes of each of the four before there is load, and a hundred while.
    assert_eq!(times(group, "rtt_idle").count, 40);
    assert!((380..=404).contains(&times(group, "rtt").count), "{}", times(group, "rtt").count);
    let idle = mean(group, "rtt_idle");
    assert!((idle - 0.0403).abs() < 0.0005, "{idle}");
    let fair = mean(group, "rtt") - idle;
    let deep = on(test, "10mbit", "droptail");
    let deep = mean(&deep.groups[0], "rtt") - idle;
    assert!(fair < 0.02 && deep > 0.2, "{fair} {deep}");
    assert_eq!(result.flows.len(), 8 + 8, "flows, and probes there and back");
}

/// CAKE's tins keep the classes apart: bulk (CS1) has the least.
#[test]
fn rrul_flows_have_their_classes() {
    let classes = |test: &str| {
        let result = on(test, "10mbit", "cake");
        let flows = result.flows.iter().filter(|flow| flow.datagrams.is_none());
        flows.map(|flow| flow.delivered as f64).collect::<Vec<_>>()
    };
    let marked = classes(r#"{ kind = "rrul", length = "20s" }"#);
    let plain = classes("\"rrul-be\"");
    assert!(marked[1] < 0.5 * marked[0], "{marked:?}");
    assert!((plain[1] / plain[0] - 1.0).abs() < 0.1, "{plain:?}");
}

#[test]
fn games_send_as_published() {
    let result = result("\"game\"", &[("duration", "2000s")]);
    // The server's flow is opened first.
    let [down, up] = [0, 1].map(|flow: usize| result.flows[flow].datagrams.as_ref().unwrap());
    let [gap, size] = [
        2000.0 / down.sent as f64 / (0.055 + 0.006 * EULER),
        down.sent_bytes as f64 / down.sent as f64 / (120.0 + 36.0 * EULER + 28.0),
    ];
    assert!((gap - 1.0).abs() < 0.01 && (size - 1.0).abs() < 0.01, "{gap} {size}");
    let size = up.sent_bytes as f64 / up.sent as f64 / (45.0 + 5.7 * EULER + 28.0);
    // A scale of 6 bytes would give 1.0023; the error of this mean is 0.0004.
    assert!((up.sent as i64 - 50_000).abs() <= 1 && (size - 1.0).abs() < 0.0013, "{size}");
    assert_eq!(result.groups[0].values.len(), 4);
    assert!(result.groups[0].values.iter().all(|(_, value)| *value == 0.0));
}

/// All answers share the link: a query takes a round trip and their bytes.
#[test]
fn a_query_takes_what_its_answers_take() {
    let incast = r#"{ kind = "incast", senders = 10, response = "29200b", number = 20 }"#;
    let links = [("links.down.rate", "100mbit"), ("links.up.rate", "100mbit")];
    let result = result(incast, &links);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (20, 20, 20 * 292_000));
    assert_eq!(times(group, "response").count, 200);
    let bytes = 10.0 * 20.0 * 1500.0 * 8.0 / 100e6;
    // The first has handshakes, and windows of ten segments that two rounds need.
    let least = times(group, "query").quantiles[0];
    assert!((0.04 + bytes..0.045 + bytes).contains(&least), "{least} {bytes}");
    assert!(times(group, "query").max.as_secs_f64() < 0.13 + bytes);
    assert_eq!(result.flows.len(), 20);
}

/// The collapse of throughput: with a shallow buffer the last segments of some
/// answers are lost, and only timeouts of 200 ms bring them back.
#[test]
fn a_shallow_buffer_collapses() {
    let incast = r#"{ kind = "incast", senders = 40, response = "14600b", number = 20 }"#;
    let query = |limit: &str| {
        let overrides = [
            ("links.down.rate", "1gbit"),
            ("links.up.rate", "1gbit"),
            ("links.down.delay", "50us"),
            ("links.up.delay", "50us"),
            ("links.down.queue.limit", limit),
            ("flows.app.transport.min_rto", "200ms"),
        ];
        let result = result(incast, &overrides);
        assert_eq!(result.groups[0].completed, 20);
        mean(&result.groups[0], "query")
    };
    let (deep, shallow) = (query("1000p"), query("64p"));
    assert!(deep < 0.0065, "{deep}: 400 segments are 4.8 ms");
    assert!(shallow > 0.15, "{shallow}");
}
