//! Every workload: what it offers, that it completes, and that it leaves the
//! random numbers of others alone.

use aqmlab_core::Value;
use aqmlab_sim::{GroupResult, RunResult, Scenario, run};

/// One link each way; the group `app` has the workload.
fn scenario_text(workload: &str) -> String {
    format!(
        r#"
        duration = "20s"
        [links.down]
        rate = "10mbit"
        delay = "20ms"
        queue = {{ discipline = "droptail", limit = "1000p" }}
        [links.up]
        rate = "10mbit"
        delay = "20ms"
        queue = {{ discipline = "droptail", limit = "1000p" }}
        [flows.app]
        path = "down"
        return_path = "up"
        workload = {workload}
        "#
    )
}

fn scenario(workload: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, Value)> =
        overrides.iter().map(|(key, value)| (key.to_string(), Value::from(*value))).collect();
    Scenario::parse(&scenario_text(workload), "workload", &overrides).unwrap()
}

fn result(workload: &str, overrides: &[(&str, &str)]) -> RunResult {
    run(&scenario(workload, overrides), 0)
}

fn mean(group: &GroupResult, name: &str) -> f64 {
    let times = group.times.iter().find(|(known, _)| *known == name);
    times.unwrap_or_else(|| panic!("no times of {name}")).1.mean
}

#[test]
fn a_constant_bit_rate_is_constant() {
    let result = result(r#"{ kind = "cbr", rate = "1mbit", packet = "1000b" }"#, &[]);
    let datagrams = result.flows[0].datagrams.as_ref().unwrap();
    // At 0, 8 ms and so on up to 20 s.
    assert_eq!(datagrams.sent, 2501);
    assert_eq!(datagrams.sent - datagrams.received, 3, "20.8 ms on the way");
    // Alone, each takes its transmission and the propagation delay.
    assert!((datagrams.delay.mean - 0.0208).abs() < 1e-9, "{}", datagrams.delay.mean);
    assert!((mean(&result.groups[0], "delay") - 0.0208).abs() < 1e-9);
    assert_eq!(datagrams.jitter, 0.0);
}

#[test]
fn too_much_of_it_fills_the_buffer_and_is_lost() {
    let result = result(
        r#"{ kind = "cbr", rate = "20mbit", packet = "1000b" }"#,
        &[("links.down.queue.limit", "50p")],
    );
    let datagrams = result.flows[0].datagrams.as_ref().unwrap();
    let lost = result.links[0].counts.dropped_total();
    assert!((lost as f64 / datagrams.sent as f64 - 0.5).abs() < 0.01);
    assert!(datagrams.sent - datagrams.received - lost <= 50 + 26, "the rest is on its way");
    assert!((result.flows[0].goodput / 10e6 - 1.0).abs() < 0.01, "{}", result.flows[0].goodput);
    assert!((datagrams.delay.quantiles[0] - (0.020 + 51.0 * 0.0008)).abs() < 0.001);
}

#[test]
fn transfers_come_at_their_times_and_all_complete() {
    let result =
        result(r#"{ kind = "transfers", size = "14600b", gap = "100ms", number = 50 }"#, &[]);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (50, 50, 50 * 14_600));
    // SYN and SYN-ACK, of 40 bytes each.
    assert!((mean(group, "startup") - 0.040064).abs() < 1e-9, "{}", mean(group, "startup"));
    assert!(mean(group, "completion") > 0.080 && mean(group, "completion") < 0.2);
    assert!(result.flows.is_empty(), "places are used again");
    // The last starts at 5 s, and the run ends with it.
    assert!((result.end.as_secs_f64() - 5.1).abs() < 0.1, "{:?}", result.end);
}

#[test]
fn closed_transfers_follow_one_another() {
    let workload =
        r#"{ kind = "transfers", size = "14600b", gap = "100ms", number = 20, timing = "closed" }"#;
    let result = result(workload, &[("record.level", "series")]);
    assert_eq!(result.groups[0].completed, 20);
    let flows = &result.flows;
    assert_eq!(flows.len(), 20, "all have a row where there are records");
    for pair in flows.windows(2) {
        let gap = pair[1].start - pair[0].finish.unwrap();
        assert_eq!(gap.as_nanos(), 100_000_000);
    }
}

/// Places are used again, with packets of those that had them before still on
/// their way: nothing that is measured changes.
#[test]
fn using_places_again_changes_nothing() {
    let workload = r#"{ kind = "transfers", gap = { exponential = "4ms" },
        size = { pareto = { shape = 1.2, mean = "3kb", cap = "1mb" } } }"#;
    let lossy = ("links.down.queue.limit", "20p");
    let scenarios = ["summary", "series"]
        .map(|level| result(&workload.replace('\n', " "), &[lossy, ("record.level", level)]));
    let counts = scenarios.each_ref().map(|result| {
        let group = &result.groups[0];
        let down = result.links[0].counts;
        (group.started, group.completed, group.bytes, down, result.events)
    });
    assert_eq!(counts[0].0, counts[1].0);
    assert!(counts[0].0 > 4500, "{}", counts[0].0);
    assert!(counts[0].3.dropped_total() > 100);
    let close = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.01;
    assert!(close(counts[0].1, counts[1].1), "{counts:?}");
    assert!(close(counts[0].3.arrived, counts[1].3.arrived), "{counts:?}");
}

#[test]
fn a_workload_is_a_name_or_a_table() {
    let by_name = scenario("\"cbr\"", &[]);
    assert_eq!(by_name, scenario("{ kind = \"cbr\" }", &[]));
    assert_eq!(scenario("\"cbr\"", &[("flows.app.workload.rate", "1mbit")]), by_name);
    assert_ne!(scenario("\"cbr\"", &[("flows.app.workload.rate", "2mbit")]), by_name);
}

#[test]
fn a_response_takes_what_the_path_takes() {
    let workload = r#"{ kind = "requests", request = "300b", response = "10000b", think = "1s",
        server_delay = "5ms", requests = 3 }"#
        .replace('\n', " ");
    let result = result(&workload, &[]);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (3, 3, 30_000));
    let ms = |bytes: f64| bytes * 8.0 / 10e6 * 1e3;
    // SYN, SYN-ACK, and the request: 20 ms each, and the server's 5 ms.
    let startup = 65.0 + ms(40.0) * 2.0 + ms(340.0);
    assert!((mean(group, "startup") * 1e3 - startup).abs() < 1e-3, "{}", mean(group, "startup"));
    // 7 segments fit the initial window. The first response has the handshake
    // in it.
    let response = 45.0 + ms(340.0) + ms(10_000.0 + 7.0 * 40.0);
    let handshake = 40.0 + ms(40.0) * 2.0;
    let expected = response + handshake / 3.0;
    assert!((mean(group, "response") * 1e3 - expected).abs() < 0.02, "{}", mean(group, "response"));
    let life = handshake + 3.0 * response + 2000.0;
    assert!((mean(group, "completion") * 1e3 - life).abs() < 0.1, "{}", mean(group, "completion"));
    assert_eq!(result.flows.len(), 2, "a connection that stays has a row for each direction");
    // The run ends with the last byte: what would acknowledge the last
    // exchange does not arrive.
    let acked = [0, 1].map(|flow: usize| result.flows[flow].stats.bytes_acked);
    assert_eq!(acked, [600, 20_000]);
}

/// The study of 2015: a request for 800 kB every 0.2 s, on a link that has
/// room for a third of them.
#[test]
fn requests_that_do_not_wait_for_one_another_pile_up() {
    let workload = r#"{ kind = "requests", response = "800000b", requests = 1, gap = "200ms" }"#;
    let result = result(workload, &[]);
    let group = &result.groups[0];
    assert_eq!(group.started, 100);
    assert!(group.completed < 34 && group.completed > 2, "{}", group.completed);
    assert!(result.links[0].utilisation > 0.98);
}

/// ns-2's mean rate: the share of the time that is burst.
#[test]
fn pareto_sources_have_their_mean_rate() {
    let workload = r#"{ kind = "pareto-onoff", rate = "100kbit", packet = "500b", shape = 1.9 }"#;
    let result = result(
        workload,
        &[("flows.app.count", "200"), ("duration", "100s"), ("links.down.rate", "100mbit")],
    );
    let received: u64 = result.flows.iter().map(|flow| flow.stats.bytes_acked).sum();
    let rate = received as f64 * 8.0 / 100.0 / 200.0;
    assert!((rate / 50e3 - 1.0).abs() < 0.1, "{rate}");
}

/// What many of them send together varies over long times as over short ones:
/// the variance of means over n intervals falls with n^(2H-2), H = (3-1.5)/2,
/// and not with 1/n (Taqqu, Willinger and Sherman 1997).
#[test]
fn pareto_sources_are_self_similar() {
    let workload = r#"{ kind = "pareto-onoff", rate = "64kbit", packet = "200b" }"#;
    let result = result(
        workload,
        &[
            ("flows.app.count", "100"),
            ("duration", "600s"),
            ("links.down.rate", "1gbit"),
            ("record.level", "packets"),
        ],
    );
    let mut counts = vec![0.0; 5000];
    for packet in &result.links[0].packets {
        // From 100 s on, in steps of 100 ms.
        let step = (packet.end.as_secs_f64() - 100.0) / 0.1;
        if step >= 0.0 && (step as usize) < counts.len() {
            counts[step as usize] += 1.0;
        }
    }
    let variance = |n: usize| {
        let means: Vec<f64> =
            counts.chunks(n).map(|chunk| chunk.iter().sum::<f64>() / n as f64).collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / means.len() as f64
    };
    // From 2 s to 20 s.
    let slope = libm::log10(variance(200) / variance(20));
    let hurst = 1.0 + slope / 2.0;
    assert!((0.62..0.92).contains(&hurst), "{hurst}");
}

#[test]
fn over_tcp_a_source_gives_way() {
    let udp = r#"{ kind = "pareto-onoff", rate = "300kbit", packet = "1000b", over = "udp" }"#;
    let tcp = udp.replace("udp", "tcp");
    let overload = [
        ("flows.app.count", "20"),
        ("links.down.rate", "1mbit"),
        ("links.down.queue.limit", "50p"),
        ("duration", "100s"),
    ];
    let share = |workload: &str| {
        let result = result(workload, &overload);
        assert_eq!(result.flows.len(), 20);
        let counts = result.links[0].counts;
        assert!(result.links[0].utilisation > 0.95);
        counts.dropped_total() as f64 / counts.arrived as f64
    };
    let (udp, tcp) = (share(udp), share(&tcp));
    assert!(udp > 0.6, "{udp}");
    assert!(tcp < 0.3, "{tcp}");
}

#[test]
fn a_probe_measures_the_queue_of_others() {
    let bulk = r#"
        [flows.bulk]
        path = "down"
        return_path = "up"
        [flows.app]"#;
    let workload = r#"{ kind = "probe", gap = "50ms" }"#;
    let idle = result(workload, &[]);
    let alone = mean(&idle.groups[0], "rtt");
    assert!((alone - (0.040 + 2.0 * 84.0 * 8.0 / 10e6)).abs() < 1e-6, "{alone}");
    assert_eq!((idle.groups[0].started, idle.groups[0].completed), (400, 399));
    let text = scenario_text(workload).replace("[flows.app]", bulk);
    let loaded = run(&Scenario::parse(&text, "loaded", &[]).unwrap(), 0);
    let waited = mean(&loaded.groups[1], "rtt") - alone;
    let queued = loaded.links[0].sojourn.mean;
    assert!((waited / queued - 1.0).abs() < 0.1, "{waited} {queued}");
    assert!(waited > 0.1);
}

#[test]
fn packmime_opens_its_connections_a_second() {
    let result = result(
        r#"{ kind = "packmime", rate = 20.0 }"#,
        &[("duration", "300s"), ("links.down.rate", "100mbit")],
    );
    let group = &result.groups[0];
    let count = |name: &str| group.times.iter().find(|(known, _)| *known == name).unwrap().1.count;
    // Long memory: the number varies more than that of a Poisson process.
    assert!((count("startup") as f64 / 6000.0 - 1.0).abs() < 0.1, "{}", count("startup"));
    // 9 % of the connections carry some four requests.
    let requests = group.started as f64 / count("startup") as f64;
    assert!((1.15..1.4).contains(&requests), "{requests}");
    assert!(group.completed as f64 > 0.99 * group.started as f64);
    let size = group.bytes as f64 / group.completed as f64;
    assert!((3_000.0..40_000.0).contains(&size), "{size}");
}
