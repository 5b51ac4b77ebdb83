//! QUIC flows in scenarios.

use aqmlab_core::Value;
use aqmlab_sim::scenario::parse_value;
use aqmlab_sim::{Outside, RunResult, Scenario, run};

/// A flow of TCP and one of QUIC over one queue.
const BESIDE: &str = r#"
    duration = "20s"
    links.down = { rate = "20mbit", delay = "20ms", queue = "fq_codel" }
    links.up = { rate = "20mbit", delay = "20ms" }
    flows.tcp = { path = "down", return_path = "up" }
    flows.quic = { path = "down", return_path = "up", endpoint = "quic" }
    transport = { congestion_control = "cubic" }
"#;

fn read(text: &str, set: &[(&str, &str)]) -> aqmlab_core::Result<Scenario> {
    let set: Vec<(String, Value)> =
        set.iter().map(|(key, value)| (key.to_string(), parse_value(value))).collect();
    let endpoints = aqmlab_quic::endpoints()?;
    Scenario::parse_with(text, "x.toml", &set, Outside::endpoints(&endpoints))
}

fn run_with(text: &str, set: &[(&str, &str)]) -> RunResult {
    run(&read(text, set).unwrap(), 0)
}

const STACKS: [&str; 2] = ["noq", "quinn"];

/// Runs both flows, that of QUIC with this library.
fn beside(stack: &str, set: &[(&str, &str)]) -> RunResult {
    let stack = format!("\"{stack}\"");
    run_with(BESIDE, &[&[("flows.quic.endpoint.stack", &*stack)], set].concat())
}

/// Text of the note about failed connections, if any.
fn failure(result: &RunResult) -> Option<&str> {
    let note = result.findings.iter().find(|found| found.note.id == "connection-failed");
    note.map(|found| &*found.note.text)
}

#[test]
fn each_stack_fills_its_share_beside_tcp() {
    for stack in STACKS {
        let result = beside(stack, &[]);
        let [tcp, quic] = &result.flows[..] else { panic!("two flows") };
        let utilisation = result.links[0].utilisation;
        assert!(utilisation > 0.95, "{stack}: {utilisation}");
        assert!((0.85..1.1).contains(&(quic.goodput / tcp.goodput)), "{stack}: {}", quic.goodput);
    }
}

/// Loss, jitter and reordering in the forward direction, loss in the reverse one.
const HARD: [(&str, &str); 6] = [
    ("links.down.loss", "0.02"),
    ("links.up.loss", "0.02"),
    ("links.down.duplicate", "0.02"),
    ("links.down.jitter", "{ spread = \"3ms\" }"),
    ("links.down.reordering", "true"),
    ("until", "\"quic\""),
];

#[test]
fn every_byte_arrives_through_loss_and_reordering() {
    for stack in STACKS {
        for controller in ["new_reno", "cubic"] {
            let endpoint = format!(
                "{{ kind = \"quic\", stack = \"{stack}\", controller = \"{controller}\" }}"
            );
            let mut set = HARD.to_vec();
            set.extend([("flows.quic.endpoint", &*endpoint), ("flows.quic.size", "\"500000b\"")]);
            let result = run_with(BESIDE, &set);
            let quic = &result.flows[1];
            assert_eq!(quic.delivered, 500_000, "{endpoint}");
            let (completion, finish) = (quic.completion.unwrap(), quic.finish.unwrap());
            assert!(quic.start + completion < finish, "{endpoint}");
            let sent = quic.goodput * completion.as_secs_f64() / 8.0;
            assert!((sent / 500_000.0 - 1.0).abs() < 1e-9, "{endpoint}: {sent}");
            assert!(quic.stats.unwrap().retransmissions > 0, "{endpoint}");
            assert_eq!(failure(&result), None, "{endpoint}");
            assert_eq!(result.digest(), run_with(BESIDE, &set).digest(), "{endpoint}");
        }
    }
}

/// The default queue of CoDel marks ECN-capable packets: none is dropped, and the sender reacts.
#[test]
fn marks_reach_the_sender() {
    for stack in STACKS {
        let dropped = |ecn: &str| {
            let set = [("flows.quic.endpoint.ecn", ecn), ("flows.tcp.size", "\"1kb\"")];
            let result = beside(stack, &set);
            let reductions = result.flows[1].stats.unwrap().fast_retransmits;
            let counts = &result.links[0].counts;
            assert!(reductions > 2, "{stack}: {reductions}");
            assert!(result.links[0].utilisation > 0.9, "{stack}: {}", result.links[0].utilisation);
            (counts.dropped_total() > 0, counts.marked_total() > 0)
        };
        assert_eq!(dropped("true"), (false, true), "{stack}");
        assert_eq!(dropped("false"), (true, false), "{stack}");
    }
}

#[test]
fn wrong_scenarios_are_refused() {
    for (endpoint, expected) in [
        ("{ kind = \"quic\", stack = \"quin\" }", "one of noq, quinn"),
        ("{ kind = \"quic\", controller = \"reno\" }", "one of new_reno, cubic, bbr, bbr3"),
        (
            "{ kind = \"quic\", stack = \"quinn\", controller = \"bbr3\" }",
            "one of new_reno, cubic, bbr with stack `quinn`",
        ),
        ("{ kind = \"quic\", max_mtu = \"1300b\", initial_mtu = \"1400b\" }", "initial_mtu"),
        ("{ kind = \"quic\", window = 1 }", "unknown key"),
        ("\"quick\"", "known: tcp, tfrc, quic"),
    ] {
        let error = read(BESIDE, &[("flows.quic.endpoint", endpoint)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{endpoint}: {error}");
        assert!(error.contains("flows.quic.endpoint"), "{error}");
    }
}

/// A connection that nothing answers fails with its reason, time and seed.
#[test]
fn a_failure_is_a_note() {
    for stack in STACKS {
        let idle = ("flows.quic.endpoint.idle_timeout", "\"2s\"");
        let result = beside(stack, &[idle, ("links.up.loss", "1.0"), ("seed", "77")]);
        let text = failure(&result).unwrap_or_else(|| panic!("{stack}: {:?}", result.findings));
        let expected =
            format!("1 of 1 connections failed. The first: {stack}:cubic: `timed out` at ");
        assert!(text.contains(&expected), "{text}");
        assert!(text.contains("seed 77, replication 0"), "{text}");
    }
}

/// Transfers, requests and pages complete.
#[test]
fn applications_run_over_it() {
    for stack in STACKS {
        for workload in [
            r#"{ kind = "transfers", size = "20kb", gap = "100ms", number = 20 }"#,
            r#"{ kind = "requests", response = "20kb", requests = 5, think = "100ms" }"#,
            r#"{ kind = "requests", response = "20kb", requests = 20, streams = 8 }"#,
            r#"{ kind = "page", number = 3, tls = 0 }"#,
            r#"{ kind = "page", number = 3, tls = 0, connections = 1, streams = 100 }"#,
        ] {
            let set = [("flows.quic.workload", workload), ("until", "\"quic\"")];
            let result = beside(stack, &set);
            let quic = &result.groups[1];
            assert!(quic.completed >= 1 && quic.completed == quic.started, "{stack} {workload}");
            assert_eq!(failure(&result), None, "{stack} {workload}");
        }
    }
}

/// Datagrams travel in a connection: they have their rate, are not sent again, and CoDel marks them.
#[test]
fn datagrams_have_a_rate_and_are_not_sent_again() {
    for stack in STACKS {
        let run = |set: &[(&str, &str)]| {
            let mut all = vec![
                ("flows.quic.endpoint.datagrams", "true"),
                ("flows.quic.workload", r#"{ kind = "cbr", rate = "2mbit", packet = "1000b" }"#),
                ("flows.tcp.size", "\"1kb\""),
            ];
            all.extend(set);
            beside(stack, &all)
        };
        let flow = |result: &RunResult| result.groups[1].traffic[0].unwrap().delivered_bytes as f64;
        let clean = run(&[]);
        // 2 Mbit/s for 20 s but the last packets in flight; sizes on the wire are within two bytes.
        assert!((flow(&clean) / 5e6 - 1.0).abs() < 0.01, "{stack}: {}", flow(&clean));
        let bytes = clean.links[0].counts.arrived_bytes as f64;
        assert!((bytes / 5e6 - 1.0).abs() < 0.02, "{stack}: {bytes}");
        // Slower than what congestion control allows at this loss.
        let lossy =
            run(&[("links.down.loss", "0.02"), ("flows.quic.workload.rate", "\"500kbit\"")]);
        let share = flow(&lossy) / 1.25e6;
        assert!((0.96..0.995).contains(&share), "{stack}: {share}");
        // Beyond the link's rate the congestion control of the connection drops at the sender.
        let full = run(&[("flows.quic.workload.rate", "\"30mbit\"")]);
        assert!(full.links[0].counts.dropped_total() < 50, "{stack}");
        assert!(full.links[0].utilisation > 0.9, "{stack}: {}", full.links[0].utilisation);
        let large = run(&[("flows.quic.workload.packet", "\"5000b\"")]);
        let text = failure(&large).unwrap();
        assert!(text.contains("datagram of 4942 bytes: datagram too large"), "{stack}");
    }
}

/// A request and its response share a connection. After the handshake and the exchange, two round
/// trips in all, nothing is left of it.
#[test]
fn a_request_and_its_response_share_a_connection() {
    for (stack, handshake) in [("noq", 0.07), ("quinn", 0.045)] {
        let workload =
            r#"{ kind = "requests", response = "1kb", requests = 1, gap = "200ms", number = 20 }"#;
        let set = [("flows.quic.workload", workload), ("flows.tcp.start", "\"19s\"")];
        let result = beside(stack, &set);
        let quic = &result.groups[1];
        assert_eq!((quic.started, quic.completed), (20, 20), "{stack}");
        let mean = |name: &str| quic.times_of(name).unwrap().mean;
        assert!((0.08..handshake + 0.042).contains(&mean("response")), "{stack}");
        // Each host's packets are those of the flow that it has data for.
        let traffic = quic.traffic.map(|direction| direction.unwrap());
        assert!(traffic.iter().all(|flow| flow.arrived[0] == 0), "{stack}: {traffic:?}");
        assert_eq!(traffic.map(|flow| flow.delivered_bytes), [20 * 1024, 20 * 300], "{stack}");
    }
}

/// With a stream each, requests in flight at a time share round trips, and a lost packet delays only
/// its own.
#[test]
fn requests_in_flight_have_streams() {
    let times = |endpoint: &str, streams: u32, loss: &str| {
        let workload = format!(
            r#"{{ kind = "requests", response = "1kb", requests = 400, think = "0s", streams = {streams} }}"#
        );
        let set = [
            ("flows.quic.endpoint", endpoint),
            ("flows.quic.workload", &*workload),
            ("links.down.loss", loss),
            ("flows.tcp.start", "\"19s\""),
            ("until", "\"quic\""),
        ];
        let result = run_with(BESIDE, &set);
        let quic = &result.groups[1];
        assert_eq!(quic.completed, 400, "{endpoint}, {streams}");
        ["completion", "response"].map(|name| quic.times_of(name).unwrap().mean)
    };
    for stack in STACKS {
        let endpoint = format!("{{ kind = \"quic\", stack = \"{stack}\" }}");
        // 400 round trips of 40 ms, in turn and eight at a time.
        let [[alone, _], [together, response]] = [1, 8].map(|n| times(&endpoint, n, "0.0"));
        assert!((16.0..16.5).contains(&alone), "{stack}: {alone}");
        assert!((2.0..2.3).contains(&together), "{stack}: {together}");
        assert!(response < 0.043, "{stack}: {response}");
        let [_, lossy] = times(&endpoint, 8, "0.03");
        let [_, one_stream] = times("\"tcp\"", 8, "0.03");
        assert!(lossy < 0.9 * one_stream, "{stack}: {lossy}, TCP {one_stream}");
    }
}

/// Both controllers of BBR run, and the results say that they cannot be repeated.
#[test]
fn bbr_runs_are_noted_as_not_reproducible() {
    for (stack, controller) in [("noq", "bbr3"), ("quinn", "bbr"), ("noq", "cubic")] {
        let endpoint =
            format!("{{ kind = \"quic\", stack = \"{stack}\", controller = \"{controller}\" }}");
        let result = run_with(BESIDE, &[("flows.quic.endpoint", &endpoint)]);
        let quic = &result.flows[1];
        assert!(quic.goodput > 2e6, "{endpoint}: {}", quic.goodput);
        let noted = result.findings.iter().any(|found| found.note.id == "not-reproducible");
        assert_eq!(noted, controller != "cubic", "{endpoint}");
    }
}

/// The same bytes in another thread: no state is shared between runs.
#[test]
fn threads_do_not_change_a_run() {
    let mut set = HARD.to_vec();
    set.push(("flows.quic.size", "\"300000b\""));
    let alone = run_with(BESIDE, &set).digest();
    let digests = std::thread::scope(|scope| {
        [(), ()]
            .map(|()| scope.spawn(|| run_with(BESIDE, &set).digest()))
            .map(|thread| thread.join().unwrap())
    });
    assert_eq!(digests, [alone; 2]);
}

/// The end of a closed connection stays in recordings; its expired timer does not turn time back.
#[test]
fn timers_of_closed_connections_are_not_in_the_past() {
    let text = r#"
        duration = "3s"
        links.down = { rate = "10mbit", delay = "20ms", queue = "codel", loss = 0.005 }
        links.up = { rate = "10mbit", delay = "20ms" }
        flows.bulk = { path = "down", return_path = "up" }
        [flows.a]
        count = 3
        path = "down"
        return_path = "up"
        endpoint = "quic"
        workload = { kind = "page", tls = 0, think = "exponential(300ms)" }
    "#;
    let result = run_with(text, &[("record.level", "\"series\"")]);
    assert!(result.samples.windows(2).all(|pair| pair[0].time <= pair[1].time));
}
