//! Video, live and fetched: manually computed times, and stalls.

use aqmlab_sim::{GroupResult, RunResult};

use crate::common::{BESIDE, mean, run_workload as result, value};

fn count(group: &GroupResult, name: &str) -> u64 {
    group.times_of(name).map_or(0, |times| times.count)
}

#[test]
fn frames_come_in_bursts_of_their_packets() {
    let alike = r#"{ kind = "video", rate = "2500kbit", fps = 25.0, gop = 1 }"#;
    let result = result(alike, &[]);
    let group = &result.groups[0];
    // 12,500 bytes are 10 packets and one of 500 bytes, with 40 of headers each.
    let time = 0.020 + (12_500.0 + 11.0 * 40.0) * 8.0 / 10e6;
    assert!((mean(group, "frame") - time).abs() < 1e-6, "{}", mean(group, "frame"));
    assert_eq!((group.started, group.completed), (501, 500), "the last is on its way");
    assert_eq!(group.bytes, 500 * 12_500);
    assert_eq!(value(&result, "missed"), 0.0);
    // Each packet waits for those before it: the p-th of a burst p times.
    let burst = 11.0 * 1240.0 * 8.0 / 10e6;
    assert!((result.links[0].sojourn.max.as_secs_f64() - 10.0 / 11.0 * burst).abs() < 1e-4);
}

#[test]
fn intra_frames_are_larger_and_the_mean_stays() {
    let rate = |settings: &str| -> (f64, RunResult) {
        let video = format!("{{ kind = \"video\", rate = \"2mbit\", fps = 25.0, {settings} }}");
        let result = result(&video, &[("duration", "200s"), ("links.down.rate", "1gbit")]);
        (result.groups[0].bytes as f64 * 8.0 / result.groups[0].completed as f64 * 25.0, result)
    };
    let (constant, _) = rate("gop = 50, intra = 8.0");
    assert!((constant / 2e6 - 1.0).abs() < 1e-3, "{constant}");
    let (variable, varied) = rate(r#"gop = 50, variation = "lognormal(sigma=0.5, mean=1)""#);
    assert!((variable / 2e6 - 1.0).abs() < 0.03, "{variable}");
    let (_, same) = rate("gop = 50");
    let largest = |result: &RunResult| result.groups[0].times[0].1.max;
    assert!(largest(&varied) > largest(&same));
}

#[test]
fn frames_that_come_late_are_missed() {
    let video = r#"{ kind = "video", rate = "2mbit", buffer = "50ms" }"#;
    let missed = |queue| {
        let bulk = [("queue", queue), ("flows.bulk", BESIDE), ("flows.bulk.start", "10s")];
        value(&result(video, &bulk), "missed")
    };
    let (droptail, fq) = (missed("droptail"), missed("fq_codel"));
    // Half of the time there is a queue of seconds.
    assert!((0.4..0.55).contains(&droptail), "{droptail}");
    assert!(fq < 0.02, "{fq}");
}

/// Twice what the link carries: it plays half of the time. A segment carries
/// 1460 bytes in 1500.
#[test]
fn over_tcp_it_stands_still_instead() {
    let video = r#"{ kind = "video", over = "tcp", rate = "2mbit", buffer = "1s" }"#;
    let slow = [("links.down.rate", "1mbit"), ("duration", "300s")];
    let result = result(video, &slow);
    let stalled = value(&result, "stalled");
    let expected = 1.0 - 1460.0 / 1500.0 / 2.0;
    assert!((stalled - expected).abs() < 0.01, "{stalled} {expected}");
    let stalls = value(&result, "stalls");
    let group = &result.groups[0];
    // A buffer of 1 s lasts 1/(1 - 0.487) s and comes again in 1/0.487 s, or
    // with more at once where a lost packet held it up.
    assert!((60.0..=75.0).contains(&stalls), "{stalls}");
    assert!(count(group, "stall") as f64 >= stalls - 1.0);
    // The first second of it takes two, and a handshake.
    let join = mean(group, "join");
    assert!((2.0..2.2).contains(&join), "{join}");
    let fast = crate::common::run_workload(video, &[]);
    assert_eq!((value(&fast, "stalls"), value(&fast, "stalled")), (0.0, 0.0));
    // The thirtieth frame is sent 29/30 s after the first.
    assert!((mean(&fast.groups[0], "join") - (29.0 / 30.0 + 0.027)).abs() < 0.005);
}

/// One rate, twice what the link carries: each segment of 4 s takes twice that.
#[test]
fn a_rate_that_is_too_high_stalls() {
    let dash = r#"{ kind = "dash", ladder = ["2mbit"] }"#;
    let result = result(dash, &[("links.down.rate", "1mbit"), ("duration", "400s")]);
    let takes = 8.0 * 1500.0 / 1460.0 + 0.05;
    let segment = mean(&result.groups[0], "segment");
    assert!((segment / takes - 1.0).abs() < 0.01, "{segment} {takes}");
    let stalled = value(&result, "stalled");
    assert!((stalled - (1.0 - 4.0 / takes)).abs() < 0.01, "{stalled}");
    assert!((mean(&result.groups[0], "stall") - (takes - 4.0)).abs() < 0.1);
    assert_eq!((value(&result, "bitrate"), value(&result, "switches")), (2e6, 0.0));
}

#[test]
fn players_take_the_rate_that_the_link_has() {
    let ladder = r#"ladder = ["1mbit", "2mbit", "4mbit", "8mbit"]"#;
    let watch = |adaptation: &str, link: &str| {
        let dash = format!("{{ kind = \"dash\", adaptation = \"{adaptation}\", {ladder} }}");
        let result = result(&dash, &[("links.down.rate", link), ("duration", "600s")]);
        assert_eq!(value(&result, "stalls"), 0.0, "{adaptation} {link}");
        (value(&result, "bitrate"), value(&result, "switches"))
    };
    // 0.85 of 3 Mbit/s, less headers: 2 Mbit/s, and the first at 1.
    let (rate, switches) = watch("throughput", "3mbit");
    assert!((rate / 2e6 - 1.0).abs() < 0.01 && switches == 1.0, "{rate} {switches}");
    // The buffer makes the rate alternate between 2 and 4 Mbit/s, so that the mean is the link's
    // capacity.
    for adaptation in ["bola", "bba"] {
        let (rate, switches) = watch(adaptation, "3mbit");
        assert!((2.5e6..3.0e6).contains(&rate), "{adaptation} {rate}");
        assert!(switches > 3.0, "{adaptation} {switches}");
    }
    for adaptation in ["throughput", "bola", "bba"] {
        let (rate, _) = watch(adaptation, "40mbit");
        assert!(rate > 7.5e6, "{adaptation} {rate}");
    }
}

#[test]
fn a_video_ends() {
    let dash = r#"{ kind = "dash", length = "60s", ladder = ["1mbit"] }"#;
    let result = result(dash, &[("duration", "500s")]);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (15, 15, 15 * 500_000));
    // The SYN, and a segment: then it plays to its end.
    let join = mean(group, "join");
    assert!((result.end.as_secs_f64() - join - 60.0).abs() < 1e-6, "{:?}", result.end);
    // Accumulated values remain available.
    assert_eq!((value(&result, "bitrate"), value(&result, "stalls")), (1e6, 0.0));
}
