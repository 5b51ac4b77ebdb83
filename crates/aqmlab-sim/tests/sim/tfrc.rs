//! TFRC over simulated links (RFC 5348).

use aqmlab_sim::endpoints::tfrc::equation;
use aqmlab_sim::{Outside, RunResult, Scenario, run};

const TFRC: &str = r#"
    [flows.tfrc]
    path = "down"
    return_path = "up"
    endpoint = "tfrc"
"#;

fn text(link: &str, flows: &str, duration: u64) -> String {
    format!(
        r#"
        duration = "{duration}s"
        [links.down]
        delay = "25ms"
        {link}
        [links.up]
        rate = "1gbit"
        delay = "25ms"
        [transport]
        mss = "1000b"
        congestion_control = "reno"
        {flows}
        "#
    )
}

fn over(link: &str, flows: &str, duration: u64) -> RunResult {
    crate::common::result(&text(link, flows, duration), &[])
}

/// Checks that each sent packet has arrived, was lost or is in flight: at most 64 packets, and
/// those in the next feedback.
fn is_conserved(result: &RunResult) {
    let (flow, link) = (&result.flows[0], &result.links[0]);
    let gone = link.counts.dropped_total() + link.way.lost;
    let arrived = flow.delivered / 1000;
    assert!(arrived + gone <= flow.sent, "{arrived} and {gone} of {}", flow.sent);
    assert!(flow.sent - arrived - gone < 600, "{arrived} and {gone} of {}", flow.sent);
}

/// Alone, with random losses. Losses within a round trip are one event, so it is a little more.
#[test]
fn losses_give_the_rate_of_the_equation() {
    for (losses, duration) in [(0.003, 200), (0.01, 300), (0.03, 400), (0.1, 600)] {
        let link = format!("rate = \"1gbit\"\nloss = \"{}%\"", 100.0 * losses);
        let result = over(&link, TFRC, duration);
        let ratio = result.flows[0].goodput / (8.0 * equation::rate(1000.0, 0.05, losses));
        assert!((0.85..1.15 / (1.0 - losses)).contains(&ratio), "{losses}: {ratio}");
        is_conserved(&result);
    }
}

/// A single flow fills the link with any queue.
#[test]
fn it_fills_a_link() {
    for queue in ["{ discipline = \"droptail\", limit = \"60p\" }", "\"codel\"", "\"pie\""] {
        let result = over(&format!("rate = \"10mbit\"\nqueue = {queue}"), TFRC, 60);
        assert!(result.links[0].utilisation > 0.9, "{queue}: {}", result.links[0].utilisation);
        is_conserved(&result);
    }
}

/// RFC 5348, section 1: "reasonably fair", within a factor of two; with marks nothing is dropped.
#[test]
fn it_shares_a_queue_with_newreno() {
    for ecn in [false, true] {
        for queue in ["red", "codel"] {
            let link = format!(
                "rate = \"10mbit\"\nqueue = {{ discipline = \"{queue}\", limit = \"1000p\", ecn = {ecn} }}"
            );
            let classic = if ecn { "classic" } else { "off" };
            let flows = format!(
                r#"
                [flows.tfrc]
                path = "down"
                return_path = "up"
                endpoint = {{ kind = "tfrc", ecn = {ecn} }}
                [flows.tcp]
                path = "down"
                return_path = "up"
                transport.ecn = "{classic}"
                "#
            );
            let result = over(&link, &flows, 80);
            let ratio = result.flows[0].goodput / result.flows[1].goodput;
            let counts = &result.links[0].counts;
            assert!((0.5..2.0).contains(&ratio), "{queue}, {ecn}: {ratio}");
            assert!(result.links[0].utilisation > 0.85, "{queue}, {ecn}");
            let marks = counts.marked_total();
            assert_eq!(marks > 0, ecn);
            assert!(!ecn || counts.dropped_total() < marks, "{queue}");
        }
    }
}

/// A transfer over a path that loses a tenth ends with its last packet, and has nine tenths.
#[test]
fn a_transfer_ends_though_packets_are_lost() {
    let flows = format!("{TFRC}size = \"1000000b\"\n");
    let result = over("rate = \"10mbit\"\nloss = \"10%\"", &flows, 3600);
    let flow = &result.flows[0];
    assert!(flow.finish.is_some());
    assert!((850_000..950_000).contains(&flow.delivered), "{}", flow.delivered);
    assert!((1000..1010).contains(&flow.sent), "{}", flow.sent);
}

#[test]
fn what_tfrc_has_no_use_for_is_rejected() {
    let refused = |more: &str| {
        let flows = format!("{TFRC}{more}\n");
        let text = text("rate = \"10mbit\"", &flows, 10);
        crate::common::parse(&text, &[]).unwrap_err()
    };
    let error = refused("workload = \"voip\"");
    assert_eq!(error.key, "flows.tfrc.workload");
    assert!(error.problem.contains("bulk flows"), "{}", error.problem);
    let error = refused("transport.congestion_control = \"cubic\"");
    assert_eq!(error.key, "flows.tfrc.transport.congestion_control");
    assert!(error.problem.contains("`mss` and `header`"), "{}", error.problem);
}

/// The canonical form states the keys of `transport` that TFRC uses, and no others.
#[test]
fn the_canonical_form_can_be_read() {
    let text = text("rate = \"1mbit\"", TFRC, 10);
    let scenario = crate::common::scenario(&text, &[]);
    let again = Scenario::from_table(scenario.to_table(), "again", &[], Outside::default());
    let again = again.unwrap();
    assert_eq!(again.to_json(), scenario.to_json());
    assert_eq!(run(&again, 0).flows[0].goodput, run(&scenario, 0).flows[0].goodput);
}
