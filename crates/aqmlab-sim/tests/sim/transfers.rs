//! The workload `transfers`: times and sizes of its flows, and that all of them complete.

use crate::common::{mean, on_line, run_workload as result};

/// A handshake of 40-byte packets and seven segments with 40 bytes of headers each, at 10 Mbit/s
/// and 20 ms. The acknowledgement of the seventh is delayed by 200 ms.
#[test]
fn a_flow_is_active_until_its_last_byte_arrives() {
    let result = on_line(&[("flows.bulk.size", "10000b")]);
    let flow = &result.flows[0];
    let completion = flow.completion.unwrap().as_secs_f64();
    assert!((completion - 0.068_288).abs() < 1e-9, "{completion}");
    assert!((flow.goodput * completion / 80_000.0 - 1.0).abs() < 1e-9, "{}", flow.goodput);
    assert!((mean(&result.groups[0], "completion") / completion - 1.0).abs() < 1e-9);
    assert!((flow.finish.unwrap() - flow.start).as_secs_f64() > 0.28);
}

/// The client closes its connections when it has the response.
#[test]
fn connections_of_applications_are_active_until_their_last_byte_arrives() {
    let workload = r#"{ kind = "requests", requests = 1, gap = "1s", number = 3 }"#;
    let result = result(workload, &[("record.level", "series")]);
    let ended: Vec<_> = result.flows.iter().filter(|flow| flow.finish.is_some()).collect();
    assert!(ended.len() >= 4, "two connections, each with two directions");
    for flow in ended {
        let (completion, finish) = (flow.completion.unwrap(), flow.finish.unwrap());
        assert!(flow.start + completion < finish, "{completion:?}");
        let expected = flow.delivered as f64 * 8.0 / completion.as_secs_f64();
        assert!((flow.goodput / expected - 1.0).abs() < 1e-9, "{}", flow.goodput);
    }
}

#[test]
fn transfers_come_at_their_times_and_all_complete() {
    let result =
        result(r#"{ kind = "transfers", size = "14600b", gap = "100ms", number = 50 }"#, &[]);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (50, 50, 50 * 14_600));
    // SYN and SYN-ACK, of 40 bytes each.
    assert!((mean(group, "startup") - 0.040064).abs() < 1e-9, "{}", mean(group, "startup"));
    // And ten segments after it, which fit the initial window.
    assert!((mean(group, "completion") - 0.072064).abs() < 1e-6, "{}", mean(group, "completion"));
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
    let lasted = mean(&result.groups[0], "completion");
    for pair in flows.windows(2) {
        let gap = (pair[1].start - pair[0].start).as_secs_f64() - lasted;
        assert!((gap - 0.1).abs() < 1e-6, "{gap}");
    }
}

/// Reusing slots while packets of their former flows are in flight changes no measurement.
#[test]
fn using_places_again_changes_nothing() {
    let workload = r#"{ kind = "transfers", gap = { exponential = "4ms" },
        size = { pareto = { shape = 1.2, mean = "3kb", cap = "1mb" } } }"#;
    let lossy = ("links.down.queue.limit", "20p");
    let scenarios =
        ["summary", "series"].map(|level| result(workload, &[lossy, ("record.level", level)]));
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
fn gaps_may_be_given_one_by_one() {
    let workload = r#"{ kind = "transfers", size = { list = ["1kb", "5kb"] }, number = 3,
        gap = { list = ["1s", "2s", "500ms"] } }"#;
    let result = result(workload, &[("record.level", "series"), ("flows.app.start", "1s")]);
    let flows: Vec<_> =
        result.flows.iter().map(|flow| (flow.start.as_secs_f64(), flow.size)).collect();
    assert_eq!(flows, [(2.0, Some(1024)), (4.0, Some(5120)), (4.5, Some(1024))]);
}

/// Some transfers are in progress whenever a run ends. The note is about those of a finite workload,
/// and about those that are many.
#[test]
fn a_run_says_that_its_transfers_have_not_finished() {
    let note = |settings: &str, duration: &str| {
        let workload = format!("{{ kind = \"transfers\", {settings} }}");
        let findings = result(&workload, &[("duration", duration)]).findings;
        let found = findings.into_iter().find(|found| found.note.id == "unfinished-transfers");
        found.map(|found| found.note.text)
    };
    let ten = r#"size = "10mb", gap = "1s", number = 10"#;
    let text = note(ten, "20s").expect("80 s are needed");
    assert!(text.contains("of 10 transfers had not finished"), "{text}");
    assert_eq!(note(ten, "500s"), None);
    let many = note(r#"size = "125kb", gap = "50ms""#, "60s");
    assert!(many.is_some(), "twice what the link carries");
    assert_eq!(note(r#"size = "125kb", gap = "500ms""#, "60s"), None);
}
