//! Measurements of single packets: one-way delays, the backlog over time, the intervals between
//! losses; also starts of flows and ends of runs.

use crate::common::{BESIDE, LINE, Settings, on_line, read_again};
use aqmlab_core::{Span, Time};
use aqmlab_sim::RunResult;

/// Two transfers over two queues.
const BULK: &Settings = &[
    ("duration", "60s"),
    ("links", "{}"),
    ("links.access", "{ rate = '10mbit', delay = '5ms' }"),
    ("links.down", "{ rate = '2mbit', delay = '20ms', queue = 'droptail' }"),
    ("links.down.queue.limit", "30p"),
    ("links.up", "{ rate = '2mbit', delay = '20ms' }"),
    ("flows.bulk.count", "2"),
    ("flows.bulk.path", "['access', 'down']"),
    ("flows.bulk.size", "1mb"),
    ("flows.bulk.delays", "true"),
];

fn scenario(settings: &Settings) -> aqmlab_core::Result<aqmlab_sim::Scenario> {
    crate::common::parse(LINE, &[BULK, settings].concat())
}

fn result(settings: &Settings) -> RunResult {
    on_line(&[BULK, settings].concat())
}

fn seconds(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}

/// Packet records are consistent: the times at both links plus the propagation delays equal the
/// one-way delays.
#[test]
fn one_way_delays_are_those_of_the_recorded_packets() {
    let result = result(&[("record.level", "packets")]);
    let transmission = |bytes: u32, bps: f64| f64::from(bytes) * 8.0 / bps;
    let (mut sum, mut count, mut largest) = (0.0, 0u64, 0.0f64);
    // Both links are FIFOs: the n-th packet that left the first without being
    // dropped at the second is the n-th that left that.
    let arrivals: Vec<_> = result.links[1].packets.iter().collect();
    let mut sent: Vec<_> = result.links[0].packets.iter().collect();
    sent.sort_by_key(|packet| packet.end);
    let mut came: Vec<_> = arrivals.clone();
    came.sort_by_key(|packet| packet.arrival);
    assert_eq!(sent.len(), came.len());
    for (first, second) in sent.iter().zip(&came) {
        assert_eq!((first.flow, first.size), (second.flow, second.size));
        if second.dropped.is_some() || second.size == 40 {
            continue; // SYNs are not measured
        }
        let left = second.end + Span::from_millis(20);
        let delay = (left - first.arrival).as_secs_f64() + transmission(second.size, 2e6);
        sum += delay;
        count += 1;
        largest = largest.max(delay);
    }
    let delays = result.groups[0].times_of("delay").unwrap();
    assert_eq!(delays.count, count);
    assert!((delays.mean - sum / count as f64).abs() < 1e-8, "{} {}", delays.mean, sum);
    assert!((delays.max.as_secs_f64() - largest).abs() < 1e-8);
    assert_eq!(delays.buckets.iter().map(|bucket| bucket.1).sum::<u64>(), count);
    // The flows' own means make up that of the group.
    let own: Vec<_> = result.flows.iter().map(|flow| flow.delays.unwrap()).collect();
    let shares = result.flows.iter().map(|flow| flow.sent as f64);
    let weighted: f64 = own.iter().zip(shares).map(|((mean, _), share)| mean * share).sum();
    let total: f64 = result.flows.iter().map(|flow| flow.sent as f64).sum();
    assert!((weighted / total / delays.mean - 1.0).abs() < 0.01, "but for what was dropped");
    assert_eq!(own.iter().map(|(_, max)| *max).max(), Some(delays.max));
}

#[test]
fn measuring_changes_nothing_else() {
    let (with, without) = (result(&[]), result(&[("flows.bulk.delays", "false")]));
    assert!(without.flows[0].delays.is_none());
    assert!(without.groups[0].times_of("delay").is_none());
    assert_eq!(with.end, without.end);
    assert_eq!(with.events, without.events);
    for (one, other) in with.flows.iter().zip(&without.flows) {
        assert_eq!((one.finish, one.stats), (other.finish, other.stats));
    }
    let timestamps = result(&[("transport.timestamps", "true")]);
    let delays = timestamps.groups[0].times_of("delay").unwrap();
    assert!(delays.count >= 2 * 719, "{}", delays.count);
}

#[test]
fn intervals_between_losses_span_the_first_to_the_last() {
    let result = result(&[("record.level", "packets")]);
    let down = &result.links[1];
    let drops: Vec<Time> = down
        .packets
        .iter()
        .filter(|packet| packet.dropped.is_some())
        .map(|packet| packet.end)
        .collect();
    assert!(drops.len() > 10);
    let intervals = &down.loss_intervals;
    assert_eq!(intervals.count, drops.len() as u64 - 1);
    let span = (*drops.iter().max().unwrap() - *drops.iter().min().unwrap()).as_secs_f64();
    assert!((intervals.mean * intervals.count as f64 - span).abs() < 1e-6);
    assert_eq!(result.links[0].loss_intervals.count, 0);
    assert!(result.links[0].loss_intervals.mean.is_nan());
}

#[test]
fn a_run_may_end_with_one_group_of_flows() {
    let long = ("flows.long", BESIDE);
    let until = result(&[long, ("until", "bulk")]);
    let last = until.flows.iter().filter_map(|flow| flow.finish).max().unwrap();
    assert_eq!(until.end, last);
    assert!(until.end < Time::ZERO + Span::from_secs(60));
    let end = result(&[long]).end;
    assert_eq!(end, Time::ZERO + Span::from_secs(60), "without, the endless one decides");
    for (group, expected) in [("long", "has an end"), ("bulks", "`bulk`")] {
        let error = scenario(&[long, ("until", group)]).unwrap_err().to_string();
        assert!(error.contains("until") && error.contains(expected), "{error}");
    }
}

#[test]
fn flows_may_begin_each_at_a_time_of_its_own() {
    let start = |text| {
        let result = result(&[("flows.bulk.start", text)]);
        result.flows.iter().map(|flow| seconds(flow.start)).collect::<Vec<_>>()
    };
    let each = start(r#"{ each = ["1s", "5s"] }"#);
    assert_ne!(each[0], each[1]);
    assert!(each.iter().all(|start| (1.0..5.0).contains(start)), "{each:?}");
    let one = start(r#"{ uniform = ["1s", "5s"] }"#);
    assert_eq!(one[0], one[1]);
}

/// Two flows that start together over queues of their own are one flow twice.
#[test]
fn several_flows_start_apart_by_default() {
    let own = |settings: &Settings| {
        let lone = [
            ("flows.bulk.path", "down"),
            ("links.down.queue", "fq_codel"),
            ("links.down.rate", "20mbit"),
            ("flows.bulk.size", "none"),
            ("duration", "20s"),
        ];
        result(&[&lone, settings].concat())
    };
    let sent = |result: &RunResult| result.flows.iter().map(|flow| flow.sent).collect::<Vec<_>>();
    let together = own(&[("flows.bulk.start", "0s")]);
    assert!(together.flows.iter().all(|flow| flow.start == Time::ZERO));
    assert_eq!(sent(&together)[0], sent(&together)[1], "copies");
    let apart = own(&[]);
    let starts: Vec<_> = apart.flows.iter().map(|flow| seconds(flow.start)).collect();
    assert!(starts.iter().all(|start| (0.0..1.0).contains(start)), "{starts:?}");
    assert_ne!(starts[0], starts[1]);
    assert_ne!(sent(&apart)[0], sent(&apart)[1]);
    assert_ne!(starts[0], seconds(own(&[("seed", "2")]).flows[0].start), "a draw from the seed");
    let lone = own(&[("flows.bulk.count", "1")]);
    assert_eq!(lone.flows[0].start, Time::ZERO);
    let word = scenario(&[("flows.bulk.start", "auto")]).unwrap();
    assert_eq!(word, scenario(&[]).unwrap());
    assert!(word.to_json().contains(r#""start":{"each":["0s","1s"]}"#), "{}", word.to_json());
    let late = "{ path = 'down', return_path = 'up', count = 3 }";
    let change = format!("[{{ at = '5s', key = 'flows.late', value = {late} }}]");
    let result = result(&[("changes", &change)]);
    let late: Vec<_> = result.flows[2..].iter().map(|flow| seconds(flow.start)).collect();
    assert!(late.len() == 3 && late.iter().all(|start| (5.0..6.0).contains(start)), "{late:?}");
}

#[test]
fn starts_read_back_as_they_were() {
    let each = ("flows.bulk.start", "{ each = ['1s', '5s'] }");
    read_again(&scenario(&[each, ("until", "bulk")]).unwrap());
    let both = ("flows.bulk.start", "{ uniform = ['1s', '2s'], each = ['1s', '5s'] }");
    let error = scenario(&[both]).unwrap_err().to_string();
    assert!(error.contains("expected two times"), "{error}");
    let error = scenario(&[("flows.bulk.start", "5")]).unwrap_err().to_string();
    assert!(error.contains("a random time, or `auto`"), "{error}");
}

/// Access delays, drawn in turn, add to both directions.
#[test]
fn flows_have_round_trip_times_of_their_own() {
    let access = [("flows.bulk.count", "3"), ("links.down.rate", "100mbit")];
    let lone = [access[0], access[1], ("flows.bulk.size", "1kb"), ("flows.bulk.start", "1s")];
    let settings: Vec<_> =
        lone.into_iter().chain([("flows.bulk.access_delay", "list(0s, 10ms, 70ms)")]).collect();
    let result = result(&settings);
    for (flow, own) in result.flows.iter().zip([0.0, 0.01, 0.07]) {
        let (mean, max) = flow.delays.expect("measured");
        assert!((mean - max.as_secs_f64()).abs() < 1e-9, "one segment");
        // 25 ms of links and some transmission of 1 kB, perhaps behind the others'.
        assert!((0.0..0.004).contains(&(mean - 0.025 - own)), "{own}: {mean}");
    }
    // The SYN and its answer: 45 ms, and twice its own.
    let startup = result.groups[0].times_of("startup").unwrap();
    let (least, most) = (startup.min.as_secs_f64(), startup.max.as_secs_f64());
    assert!((0.0..0.001).contains(&(least - 0.045)), "{least}");
    assert!((0.0..0.001).contains(&(most - 0.185)), "{most}");
    let rtt = |settings: &Settings| scenario(settings).unwrap().base_rtt_over(1);
    assert_eq!(rtt(&[]), Span::from_millis(45));
    assert_eq!(rtt(&settings), Span::from_millis(45 + 140));
    assert_eq!(rtt(&[("flows.bulk.access_delay", "uniform(0s, 10ms)")]), Span::from_millis(65));
}

/// The same as a link of the same delay and no rate that matters.
#[test]
fn a_delay_of_flows_is_a_link_without_a_queue() {
    let own = result(&[("flows.bulk.access_delay", "10ms")]);
    let linked = result(&[
        ("links.far", "{ rate = '1000000gbit', delay = '10ms' }"),
        ("flows.bulk.path", "['access', 'down', 'far']"),
        ("flows.bulk.return_path", "['up', 'far']"),
    ]);
    assert_eq!(own.links[1].counts, linked.links[1].counts);
    for (one, other) in own.flows.iter().zip(&linked.flows) {
        assert_eq!(one.sent, other.sent);
        let (one, other) = (seconds(one.finish.unwrap()), seconds(other.finish.unwrap()));
        assert!((one - other).abs() < 1e-6, "{one} {other}");
    }
}

#[test]
fn a_delay_of_flows_reads_back_and_is_checked() {
    let with = scenario(&[("flows.bulk.access_delay", "uniform(5ms, 100ms)")]).unwrap();
    read_again(&with);
    assert!(!scenario(&[]).unwrap().to_json().contains("access_delay"));
    let error = scenario(&[("flows.bulk.access_delay", "2h")]).unwrap_err().to_string();
    assert!(error.contains("access_delay"), "{error}");
    let error = scenario(&[("flows.bulk.access_delay", "4000s")]).unwrap_err().to_string();
    assert!(error.contains("at most 3600s"), "{error}");
}

/// The timestamp of a paced Linux sender is the time at which a segment should have left. Timeouts
/// send before that: the one-way delay counts from when a packet did leave.
#[test]
fn no_delay_of_a_paced_sender_is_shorter_than_the_path() {
    let paced = [
        ("transport.profile", "linux-6"),
        ("transport.pacing", "true"),
        ("transport.min_rto", "1ms"),
        ("transport.max_rto", "5ms"),
    ];
    let result = result(&paced);
    let delays = result.groups[0].times_of("delay").unwrap();
    assert!(result.flows.iter().any(|flow| flow.stats.unwrap().timeouts > 10));
    let path = Span::from_millis(25);
    assert!(delays.count > 100 && delays.min > path, "{}", delays.min);
}
