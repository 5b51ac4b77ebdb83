//! Every workload: offered load, completion, and independence of random streams.

use aqmlab_sim::{RunResult, Scenario, run};
use proptest::prelude::*;

use crate::common::{BESIDE, Settings, mean, read_again, run_workload as result, value};

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

/// Gaps uniform around the mean: their variance is (vary x mean)^2 / 3.
#[test]
fn a_constant_bit_rate_may_vary_its_gaps() {
    let result = result(r#"{ kind = "cbr", rate = "1mbit", packet = "1000b", vary = 0.5 }"#, &[]);
    let datagrams = result.flows[0].datagrams.as_ref().unwrap();
    // 2500 gaps of 8 ms: the sum is within three deviations of 20 s.
    let deviation = 2500f64.sqrt() * 0.5 / 3f64.sqrt();
    assert!((datagrams.sent as f64 - 2501.0).abs() < 3.0 * deviation, "{}", datagrams.sent);
    assert_ne!(datagrams.sent, 2501);
    assert_eq!(datagrams.jitter, 0.0, "each waits for nothing");
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
fn a_response_takes_what_the_path_takes() {
    let workload = r#"{ kind = "requests", request = "300b", response = "10000b", think = "1s",
        server_delay = "5ms", requests = 3 }"#;
    let result = result(workload, &[]);
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
    let delivered = [0, 1].map(|flow: usize| result.flows[flow].delivered);
    assert_eq!(delivered, [900, 30_000]);
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
    let received: u64 = result.flows.iter().map(|flow| flow.delivered).sum();
    let rate = received as f64 * 8.0 / 100.0 / 200.0;
    assert!((rate / 50e3 - 1.0).abs() < 0.1, "{rate}");
}

/// Aggregated traffic varies over long times as over short ones: the variance of means over n
/// intervals falls with n^(2H-2), H = (3-1.5)/2, not with 1/n (Taqqu, Willinger and Sherman 1997).
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
    let workload = r#"{ kind = "probe", gap = "50ms" }"#;
    let idle = result(workload, &[]);
    let alone = mean(&idle.groups[0], "rtt");
    assert!((alone - (0.040 + 2.0 * 84.0 * 8.0 / 10e6)).abs() < 1e-6, "{alone}");
    assert_eq!((idle.groups[0].started, idle.groups[0].completed), (400, 399));
    let loaded = result(workload, &[("flows.bulk", BESIDE)]);
    let waited = mean(&loaded.groups[0], "rtt") - alone;
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
    let count = |name: &str| group.times_of(name).unwrap().count;
    // Long memory: the number varies more than that of a Poisson process.
    assert!((count("startup") as f64 / 6000.0 - 1.0).abs() < 0.1, "{}", count("startup"));
    // 9 % of the connections carry some four requests.
    let requests = group.started as f64 / count("startup") as f64;
    assert!((1.15..1.4).contains(&requests), "{requests}");
    assert!(group.completed as f64 > 0.99 * group.started as f64);
    let size = group.bytes as f64 / group.completed as f64;
    assert!((3_000.0..40_000.0).contains(&size), "{size}");
}

#[test]
fn a_call_sounds_well_until_there_is_a_queue() {
    let workload = r#"{ kind = "voip", codec = "g711" }"#;
    let alone = result(workload, &[("duration", "200s")]);
    assert_eq!(alone.flows.len(), 2, "one each way");
    // R of 91.5 without loss: mouth to ear in 20 + 20 + 20 ms and a little.
    assert!((value(&alone, "r_factor") - 91.52).abs() < 0.03, "{}", value(&alone, "r_factor"));
    // 38.75 % of the time there is speech, at 80 kbit/s.
    let rate: f64 = alone.flows.iter().map(|flow| flow.goodput).sum::<f64>() / 2.0;
    assert!((rate / (80e3 * 1.004 / 2.591) - 1.0).abs() < 0.2, "{rate}");

    let loaded = |playout| {
        let settings = [
            ("duration", "60s"),
            ("flows.app.workload.playout", playout),
            ("flows.bulk", BESIDE),
            ("flows.bulk.start", "10s"),
        ];
        result(workload, &settings)
    };
    // A player that adapts waits for what a fixed one is too early for.
    let (adapts, fixed) = (loaded("auto"), loaded("60ms"));
    assert!(value(&adapts, "late") < 0.1, "{}", value(&adapts, "late"));
    assert!(value(&fixed, "late") > 0.2, "{}", value(&fixed, "late"));
    for result in [&adapts, &fixed] {
        assert!(value(result, "mos") < 3.0, "{}", value(result, "mos"));
    }
    let late = [("flows.app.workload.playout", "11s")];
    let error = crate::common::refused(&crate::common::workload(workload), &late);
    assert!(error.contains("playout") && error.contains("`auto`, or 0s to 10s"), "{error}");
}

/// Losses count when packets are to be played: those of the last seconds of a short run do, and
/// those before the warm-up do not.
#[test]
fn losses_of_a_call_are_those_of_the_measured_time() {
    let workload = r#"{ kind = "voip" }"#;
    let lost = |settings: &Settings| {
        let calls = [("flows.app.count", "40"), ("duration", "8s")];
        value(&result(workload, &[&calls, settings].concat()), "lost")
    };
    let short = lost(&[("links.down.loss", "20%")]);
    assert!((short - 0.2).abs() < 0.03, "{short}");
    let stops = "[{ at = '4s', key = 'links.down.loss', value = 'none' }]";
    let after =
        lost(&[("links.down.loss", "20%"), ("changes", stops), ("record.warmup", "4200ms")]);
    // A call of which nothing had arrived before the warm-up ended has no playout time yet.
    assert!(after < 0.002, "{after}");
}

/// One of each, as its page in the guide has it.
fn every_workload() -> Vec<&'static str> {
    vec![
        r#"{ kind = "cbr", rate = "500kbit" }"#,
        r#"{ kind = "pareto-onoff", rate = "500kbit", packet = "1000b" }"#,
        r#"{ kind = "pareto-onoff", rate = "500kbit", packet = "1000b", over = "tcp" }"#,
        r#"{ kind = "transfers", size = "lognormal(sigma=1.5, mean=30kb)", gap = "exponential(150ms)" }"#,
        r#"{ kind = "requests", response = "weibull(shape=0.5, mean=20kb)", think = "exponential(300ms)" }"#,
        r#"{ kind = "requests", response = "100kb", gap = "uniform(0s, 1s)", requests = "uniform(1, 3)", think = "10ms" }"#,
        r#"{ kind = "requests", streams = 6, think = "exponential(300ms)", server_delay = "exponential(9ms)" }"#,
        r#"{ kind = "packmime", rate = 8.0 }"#,
        r#"{ kind = "sessions", on = "exponential(500ms)", off = "uniform(0s, 1s)" }"#,
        r#"{ kind = "probe" }"#,
        r#"{ kind = "voip", codec = "g729" }"#,
        r#"{ kind = "page", hosts = 2, think = "exponential(300ms)" }"#,
        r#"{ kind = "page", connections = 1, streams = 100, keep = "all", tls = 2 }"#,
        r#"{ kind = "rfc7928-web" }"#,
        r#"{ kind = "video", rate = "500kbit", variation = "lognormal(sigma=0.3, mean=1)" }"#,
        r#"{ kind = "video", rate = "500kbit", over = "tcp" }"#,
        r#"{ kind = "dash", segment = "1s", start_with = "1s" }"#,
        r#"{ kind = "dash", adaptation = "bola", segment = "1s", variation = "uniform(0.5, 1.5)" }"#,
        r#"{ kind = "dash", adaptation = "bba", segment = "1s" }"#,
        r#"{ kind = "game" }"#,
        r#"{ kind = "incast", senders = 8, think = "exponential(100ms)", server_delay = "uniform(0s, 1ms)" }"#,
        r#"{ kind = "rrul", lead = "1s", length = "15s", flows = 2 }"#,
        r#"{ kind = "rrul-be", lead = "1s", length = "15s" }"#,
        r#"{ kind = "rpm" }"#,
        r#"{ kind = "rpm", load = "up", tls = 0 }"#,
    ]
}

#[test]
fn sessions_send_for_their_time_and_pause() {
    let workload = r#"{ kind = "sessions", on = "2s", off = "3s", number = 3 }"#;
    let lasting =
        |duration| result(workload, &[("record.level", "series"), ("duration", duration)]);
    assert_eq!(lasting("11s").flows[2].size, None, "it is still sending");
    let result = lasting("20s");
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed), (3, 3));
    // All that was sent arrives, and the flows end with it; the run ends
    // before the last acknowledgements.
    let acked: u64 = result.flows.iter().map(|flow| flow.delivered).sum();
    assert!(acked <= group.bytes && group.bytes < acked + 100 * 1460, "{acked}");
    let starts: Vec<f64> = result.flows.iter().map(|flow| flow.start.as_secs_f64()).collect();
    assert_eq!(starts, [0.0, 5.0, 10.0]);
    for flow in &result.flows[..2] {
        let lasted = (flow.finish.unwrap() - flow.start).as_secs_f64();
        assert!((2.0..4.0).contains(&lasted), "{lasted}");
        assert!(flow.size >= Some(flow.delivered), "{:?}", flow.size);
    }
}

#[test]
fn every_workload_is_tried_here() {
    let presets = aqmlab_sim::workload::PRESETS.iter().map(|preset| preset.name);
    let entries = aqmlab_sim::workload::entries().into_iter().map(|entry| entry.name);
    for name in presets.chain(entries.filter(|name| *name != "bulk")) {
        let name = format!("\"{name}\"");
        assert!(every_workload().iter().any(|workload| workload.contains(&name)), "{name}");
    }
}

/// With a bulk flow beside it, and a queue that drops.
fn beside_bulk(workload: &str, seed: u64, limit: u64, level: &str) -> Scenario {
    let (seed, limit) = (seed.to_string(), format!("{limit}p"));
    let settings = [
        ("seed", &*seed),
        ("links.down.queue.limit", &limit),
        ("links.down.rate", "3mbit"),
        ("flows.app.count", "3"),
        ("flows.bulk", BESIDE),
        ("flows.bulk.start", "{ uniform = ['0s', '5s'] }"),
        ("record.level", level),
    ];
    crate::common::scenario(&crate::common::workload(workload), &settings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `run` checks at every queue that no packet is lost uncounted. This test checks that arrivals
    /// at the endpoints equal packets sent minus drops and packets in flight, and that nothing
    /// completes that was not started.
    #[test]
    fn nothing_is_lost_and_nothing_made_up(
        workload in prop::sample::select(every_workload()),
        seed in 0u64..1000,
        limit in 5u64..60,
    ) {
        let scenario = beside_bulk(workload, seed, limit, "packets");
        let result = run(&scenario, 0);
        prop_assert_eq!(run(&read_again(&scenario), 0).digest(), result.digest());
        for group in &result.groups {
            prop_assert!(group.completed <= group.started);
        }
        let arrivals: u64 = result.groups[0].started + result.flows.len() as u64;
        prop_assert!(arrivals > 3, "nothing happened");
        let mut offered = vec![[0u64; 2]; result.flows.len()];
        for (link, of) in result.links.iter().zip(0..) {
            let gone = link.packets.iter().filter(|packet| packet.dropped.is_none());
            // The last of them may be in transmission.
            prop_assert!((0..=1).contains(&(gone.count() as u64 - link.counts.delivered)));
            for packet in &link.packets {
                offered[packet.flow as usize][of] += 1;
            }
        }
        for (flow, seen) in result.flows.iter().zip(&offered) {
            if let Some(datagrams) = &flow.datagrams {
                prop_assert!(datagrams.received <= datagrams.sent);
                // Packets still queued have no record.
                let seen = seen[0] + seen[1];
                prop_assert!(seen <= datagrams.sent && datagrams.sent - seen <= limit + 1);
            } else {
                prop_assert!(flow.finish.is_none() || flow.finish.unwrap() > flow.start);
                let completed = flow.completion.map(|completion| flow.start + completion);
                prop_assert!(flow.finish.is_none() || completed <= flow.finish);
                if let (Some(size), Some(_)) = (flow.size, flow.finish) {
                    prop_assert_eq!(flow.delivered, size);
                }
            }
        }
    }

    /// All that is started completes once the load ends.
    #[test]
    fn all_transfers_and_requests_complete(seed in 0u64..1000, limit in 3u64..60) {
        for workload in [
            r#"{ kind = "transfers", size = "pareto(shape=1.3, mean=20kb, cap=300kb)",
                gap = "exponential(100ms)", number = 40 }"#,
            r#"{ kind = "requests", response = "pareto(shape=1.3, mean=20kb, cap=300kb)",
                gap = "exponential(200ms)", number = 20, requests = "uniform(1, 4)",
                think = "exponential(200ms)", server_delay = "exponential(5ms)" }"#,
        ] {
            let (seed, limit) = (seed.to_string(), format!("{limit}p"));
            let result = result(workload, &[
                ("seed", &seed),
                ("duration", "1000s"),
                ("links.down.rate", "2mbit"),
                ("links.up.rate", "100kbit"),
                ("links.down.queue.limit", &limit),
                ("links.up.queue.limit", &limit),
            ]);
            let group = &result.groups[0];
            prop_assert_eq!(group.completed, group.started);
            prop_assert!(group.started >= 20);
            prop_assert!(result.end.as_secs_f64() < 999.0);
        }
    }
}

/// Common random numbers: what a group draws does not depend on the others,
/// nor on the queue.
#[test]
fn workloads_do_not_disturb_one_another() {
    let starts = |result: &RunResult| -> Vec<_> {
        let flows = result.flows.iter().filter(|flow| flow.group == 0);
        flows.map(|flow| (flow.start, flow.size)).collect()
    };
    let transfers = every_workload()[3];
    let reference = run(&beside_bulk(transfers, 1, 30, "series"), 0);
    assert!(starts(&reference).len() > 300);
    let others = [run(&beside_bulk(transfers, 1, 10, "series"), 0), {
        let more = [
            ("flows.web", BESIDE),
            ("flows.web.workload", "packmime"),
            ("flows.app.count", "3"),
            ("record.level", "series"),
        ];
        result(transfers, &more)
    }];
    for other in others {
        assert_eq!(starts(&reference), starts(&other));
    }
}

/// Every example in the guide runs, and there is one of every workload.
#[test]
fn the_examples_of_the_guide_run() {
    let guide = include_str!("../../../../docs/workloads.md");
    let examples: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a block ends"))
        .collect();
    for entry in aqmlab_sim::workload::entries() {
        assert!(guide.contains(&format!("\n## {}\n", entry.name)), "{}", entry.name);
        let name = format!("\"{}\"", entry.name);
        let has_example = examples.iter().any(|example| example.contains(&name));
        assert!(has_example || entry.name == "bulk", "{name}");
    }
    for example in examples {
        let scenario = crate::common::scenario(example, &[]);
        let result = run(&scenario, 0);
        for (group, config) in result.groups.iter().zip(&scenario.flows) {
            let arrived = result.flows.iter().any(|flow| flow.delivered > 0);
            assert!(group.completed > 0 || arrived, "{}", config.name);
        }
    }
}

/// With all options of endpoints: timestamps, ECN, pacing, early probes.
#[test]
fn every_transport_carries_every_workload() {
    for profile in ["ns2-sack1", "rfc-newreno", "linux-6", "windows", "linux-l4s"] {
        for workload in every_workload() {
            let result = result(
                workload,
                &[
                    ("flows.app.transport.profile", profile),
                    ("links.down.rate", "2mbit"),
                    ("links.down.queue.limit", "20p"),
                    ("links.up.rate", "200kbit"),
                ],
            );
            let group = &result.groups[0];
            let arrived: u64 = result.flows.iter().map(|flow| flow.delivered).sum();
            let arrived = arrived.max(group.bytes);
            assert!(group.completed > 5 || arrived > 20_000, "{profile}, {workload}");
            assert!(group.completed > 0 || group.started == 0, "{profile}, {workload}");
        }
    }
}
