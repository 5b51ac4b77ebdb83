//! Senders whose congestion control, pacing and ECN change during a run.

use crate::common::{BESIDE, LINE, Settings, repeated, seen, set};
use aqmlab_core::{Span, Time};
use aqmlab_sim::Run;
use aqmlab_sim::network::series::Subject;

/// State machines of the sender.
const STACKS: [&str; 2] = ["rfc", "linux-6.12"];

/// A bulk flow, and pages with connections of their own, over 10 Mbit/s.
fn scene(settings: &Settings, replication: u64) -> Run {
    let scene = [
        ("duration", "12s"),
        ("links.down.queue", "fq_codel"),
        ("links.up.rate", "100mbit"),
        ("transport.profile", "linux-6"),
        ("flows.web", BESIDE),
        ("flows.web.workload", "page"),
    ];
    Run::new(crate::common::scenario(LINE, &[&scene, settings].concat()), replication)
}

fn alone(stack: &str) -> Run {
    scene(&[("transport.stack", stack), ("flows.web.start", "11s")], 0)
}

fn seconds(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

/// Bytes of the first flow that arrive in the next second.
fn delivered_next(run: &mut Run) -> u64 {
    let before = run.delivered()[0];
    run.advance(run.time() + Span::from_secs(1)).unwrap();
    run.delivered()[0] - before
}

const CONTROL: &str = "flows.bulk.transport.congestion_control";
const STEERED: &str = "{ algorithm = \"steered\", window = \"10p\" }";

#[test]
fn a_window_and_a_rate_are_set_from_outside() {
    for stack in STACKS {
        let mut run = alone(stack);
        run.advance(seconds(2.0)).unwrap();
        set(&mut run, CONTROL, STEERED);
        delivered_next(&mut run);
        // Ten segments in each round trip of 40 ms and their transmission.
        let windowed = delivered_next(&mut run);
        assert!((300_000..=362_000).contains(&windowed), "{stack}: {windowed}");
        set(&mut run, &format!("{CONTROL}.pacing_rate"), "\"4mbit\"");
        set(&mut run, &format!("{CONTROL}.window"), "\"unlimited\"");
        delivered_next(&mut run);
        let paced = delivered_next(&mut run);
        let expected = 4e6 / 8.0 * 1448.0 / 1500.0;
        assert!((paced as f64 / expected - 1.0).abs() < 0.01, "{stack}: {paced}");
        // After a rate of nothing the next segment does not wait for its time.
        set(&mut run, &format!("{CONTROL}.pacing_rate"), "\"100bit\"");
        assert!(delivered_next(&mut run) < 200_000);
        set(&mut run, &format!("{CONTROL}.pacing_rate"), "\"8mbit\"");
        assert!(delivered_next(&mut run) > 800_000, "{stack}");
        let subject = Subject::Flow(0);
        let acked = seen(&run, subject, "acked_bytes").expect("steered senders report it");
        assert!(acked > 1_500_000.0, "{stack}: the counters continue: {acked}");
        assert!(seen(&run, subject, "min_rtt_s").unwrap() >= 0.04, "{stack}");
    }
}

/// Each control follows each other one, and the run is that of the saved scenario.
#[test]
fn any_control_follows_any_other() {
    let controls: Vec<_> = aqmlab_tcp::congestion::entries();
    let names = || controls.iter().map(|entry| entry.name).filter(|name| *name != "prague");
    for (index, first) in names().enumerate() {
        for stack in STACKS {
            let control = ("transport.congestion_control", first);
            let mut steps = scene(&[("transport.stack", stack), control], 1);
            for step in 1..=5 {
                steps.advance(seconds(f64::from(step) * 1.7)).unwrap();
                let next = names().cycle().nth(index + step as usize * 4).unwrap();
                set(&mut steps, CONTROL, &format!("\"{next}\""));
                set(&mut steps, "flows.web.transport.pacing", ["true", "false"][step as usize % 2]);
            }
            let copy = steps.fork().unwrap();
            let moved = delivered_next(&mut steps);
            steps.restore(&copy);
            assert_eq!(moved, delivered_next(&mut steps), "{first} {stack}");
            assert!(moved > 10_000, "{first} {stack}: {moved}");
            repeated(steps);
        }
    }
}

/// Windows neither collapse nor explode at the change, as with `setsockopt(TCP_CONGESTION)`.
#[test]
fn another_control_continues_with_the_window() {
    for stack in STACKS {
        let mut run = alone(stack);
        run.advance(seconds(4.0)).unwrap();
        let window = |run: &Run| seen(run, Subject::Flow(0), "cwnd_bytes").unwrap();
        let before = window(&run);
        set(&mut run, CONTROL, "\"reno\"");
        run.step().unwrap();
        run.step().unwrap();
        let after = window(&run);
        assert!((after - before).abs() <= 3.0 * 1448.0, "{stack}: {before} to {after}");
        assert!(delivered_next(&mut run) > 1_000_000, "{stack}");
    }
}

#[test]
fn marks_begin_and_end_with_ecn() {
    for stack in STACKS {
        let mut run = alone(stack);
        let marked = |run: &Run| seen(run, Subject::Link(0), "marked").unwrap();
        run.advance(seconds(3.0)).unwrap();
        assert_eq!(marked(&run), 0.0);
        set(&mut run, "flows.bulk.transport.ecn", "\"classic\"");
        run.advance(seconds(6.0)).unwrap();
        let with = marked(&run);
        assert!(with > 0.0, "{stack}");
        set(&mut run, "flows.bulk.transport.ecn", "\"off\"");
        run.advance(seconds(6.5)).unwrap();
        let ended = marked(&run);
        run.advance(seconds(10.0)).unwrap();
        assert_eq!(marked(&run), ended, "{stack}");
    }
}

/// Connections that the pages of the group open later have the new control.
#[test]
fn later_connections_have_the_new_transport() {
    let mut run = scene(&[], 0);
    set(&mut run, "flows.web.transport.congestion_control", "{ algorithm = \"steered\" }");
    let (mut steered, mut pages) = (0, 0);
    for step in 1..120 {
        run.advance(seconds(f64::from(step) / 10.0)).unwrap();
        let groups: Vec<u32> = run.flows().map(|flow| flow.group).collect();
        run.observe(&mut |subject, name, _| {
            let Subject::Flow(flow) = subject else { return };
            steered += u32::from(groups[flow as usize] == 1 && name == "acks");
            pages += u32::from(groups[flow as usize] == 1 && name == "cwnd_bytes");
        });
    }
    assert!(pages > 0 && steered == pages, "{steered} of {pages}");
}

/// A change of one flow leaves the others as they are; a later one of the group reaches all.
#[test]
fn one_flow_of_a_group_is_steered() {
    for stack in STACKS {
        let settings =
            [("transport.stack", stack), ("flows.web.start", "11s"), ("flows.bulk.count", "3")];
        let mut run = scene(&settings, 0);
        let window = |run: &Run, flow| seen(run, Subject::Flow(flow), "cwnd_bytes").unwrap();
        run.advance(seconds(1.0)).unwrap();
        set(&mut run, "flows.bulk.1.transport.congestion_control", STEERED);
        run.advance(seconds(2.0)).unwrap();
        assert_eq!(window(&run, 1), 14_480.0, "{stack}");
        assert!(seen(&run, Subject::Flow(0), "acks").is_none());
        set(&mut run, CONTROL, &STEERED.replace("10p", "20p"));
        set(&mut run, "flows.bulk.2.transport.congestion_control.window", "\"5p\"");
        run.advance(seconds(3.0)).unwrap();
        let windows = [0, 1, 2].map(|flow| window(&run, flow));
        assert_eq!(windows, [28_960.0, 28_960.0, 7_240.0], "{stack}");
        // Equal for the group, but not for its last flow.
        set(&mut run, CONTROL, &STEERED.replace("10p", "20p"));
        set(&mut run, "flows.late", BESIDE);
        run.advance(seconds(4.0)).unwrap();
        assert_eq!(window(&run, 2), 28_960.0, "{stack}");
        repeated(run);
    }
}

#[test]
fn acknowledgements_are_recorded_on_request() {
    for stack in STACKS {
        let mut run = alone(stack);
        run.advance(seconds(1.0)).unwrap();
        assert!(run.samples("bulk", None).unwrap_err().to_string().contains("act()"));
        set(&mut run, CONTROL, STEERED);
        assert!(run.samples("bulk", None).unwrap().is_empty());
        run.advance(seconds(2.0)).unwrap();
        let count = |run: &Run, name| seen(run, Subject::Flow(0), name).unwrap();
        assert_eq!(run.samples("bulk", Some(0)).unwrap().len() as f64, count(&run, "acks"));
        set(&mut run, CONTROL, &STEERED.replace("10p", "9p"));
        let names = ["acks", "acked_bytes", "rtt_samples"];
        let before = names.map(|name| count(&run, name));
        run.advance(seconds(3.0)).unwrap();
        let after = names.map(|name| count(&run, name));
        let samples = run.samples("bulk", None).unwrap();
        let found = [
            samples.len() as f64,
            samples.iter().map(|ack| ack.delivered as f64).sum(),
            samples.iter().filter(|ack| ack.rtt.is_some()).count() as f64,
        ];
        assert_eq!(found, [0, 1, 2].map(|of| after[of] - before[of]), "{stack}");
        assert!(
            samples.iter().all(|ack| ack.rate.is_some_and(|rate| !rate.app_limited)),
            "{stack}"
        );
        assert!(samples.iter().all(|ack| ack.in_flight <= 14_480), "{stack}");
        assert!(samples.is_sorted_by_key(|ack| ack.now) && samples[0].now >= seconds(2.0));
        assert!(run.samples("bulk", Some(0)).unwrap().is_empty());
    }
}
