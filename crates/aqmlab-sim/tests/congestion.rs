//! Congestion controls over simulated links.

use aqmlab_core::Value;
use aqmlab_sim::{RunResult, Scenario, run};

const BULK: &str = r#"
    duration = "20s"
    bottleneck = "down"
    [links.down]
    rate = "10mbit"
    delay = "20ms"
    queue = { discipline = "droptail", limit = "100p" }
    [links.up]
    rate = "10mbit"
    delay = "20ms"
    [transport]
    congestion_control = "reno"
    [flows.bulk]
    path = "down"
    return_path = "up"
"#;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, Value)> =
        settings.iter().map(|(key, text)| (key.to_string(), (*text).into())).collect();
    Scenario::parse(BULK, "bulk", &overrides).unwrap()
}

/// A name in the file becomes a table when a key is set in it; a flow's own
/// table without a name goes on from what holds for all.
#[test]
fn parameters_of_a_control_are_set_by_dotted_keys() {
    let for_all = scenario(&[("transport.congestion_control.beta_ecn", "0.8")]);
    let named = scenario(&[
        ("transport.congestion_control", "reno"),
        ("transport.congestion_control.beta_ecn", "0.8"),
    ]);
    let of_flow = scenario(&[("flows.bulk.transport.congestion_control.beta_ecn", "0.8")]);
    assert_ne!(for_all, scenario(&[]));
    assert_eq!(for_all, named);
    assert_eq!(for_all, of_flow);
    let back = Scenario::from_table(for_all.to_table(), "canonical", &[]).unwrap();
    assert_eq!(back, for_all);
}

/// One bulk flow over 10 Mbit/s with 40 ms, and a queue that is large enough
/// for none to be lost unless the control wants it so.
fn alone(control: &str, queue: &str, settings: &[(&str, &str)]) -> RunResult {
    let mut all = vec![
        ("duration", "60s"),
        ("transport.congestion_control", control),
        ("queue.limit", queue),
    ];
    all.extend_from_slice(settings);
    run(&scenario(&all), 0)
}

/// The mean number of segments in the queue.
fn standing_queue(result: &RunResult) -> f64 {
    result.links[0].backlog_mean / 1500.0
}

/// Each control fills the link on its own: its window is above the
/// bandwidth-delay product of 33 segments most of the time.
#[test]
fn every_control_fills_a_link() {
    for entry in aqmlab_tcp::congestion::entries() {
        let result = alone(entry.name, "100p", &[]);
        let utilisation = result.links[0].utilisation;
        println!("{} {} {}", entry.name, utilisation, standing_queue(&result));
        assert!(utilisation > 0.9, "{}: {utilisation}", entry.name);
    }
}

/// Brakmo and Peterson: between alpha and beta segments wait.
#[test]
fn vegas_keeps_alpha_to_beta_segments_in_the_queue() {
    for (alpha, beta) in [("2", "4"), ("1", "3"), ("10", "12")] {
        let result = alone(
            "vegas",
            "1000p",
            &[
                ("transport.congestion_control.beta", beta),
                ("transport.congestion_control.alpha", alpha),
            ],
        );
        let queue = standing_queue(&result);
        println!("vegas {alpha} {beta} {queue}");
        let (alpha, beta): (f64, f64) = (alpha.parse().unwrap(), beta.parse().unwrap());
        assert!((alpha - 1.0..beta + 1.0).contains(&queue), "{alpha} {beta}: {queue}");
        assert_eq!(result.links[0].counts.dropped_total(), 0);
    }
}

/// LEDBAT keeps its target of delay in the queue.
#[test]
fn ledbat_keeps_its_target() {
    for (control, target, low, high) in [
        ("ledbat", "100ms", 0.080, 0.105),
        ("ledbat", "25ms", 0.02, 0.027),
        ("ledbat++", "60ms", 0.03, 0.065),
    ] {
        let result = alone(
            control,
            "1000p",
            &[("duration", "120s"), ("transport.congestion_control.target", target)],
        );
        let sojourn = result.links[0].sojourn.mean;
        println!("{control} {target} {sojourn} {}", result.links[0].utilisation);
        assert!((low..high).contains(&sojourn), "{control} {target}: {sojourn}");
        assert_eq!(result.links[0].counts.dropped_total(), 0, "{control}");
    }
}

/// Jain's index of what the flows got.
fn jain(result: &RunResult) -> f64 {
    let shares: Vec<f64> = result.flows.iter().map(|flow| flow.stats.bytes_acked as f64).collect();
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn two_flows_of_a_kind_share_a_link() {
    for entry in aqmlab_tcp::congestion::entries() {
        let result = alone(
            entry.name,
            "100p",
            &[("duration", "300s"), ("flows.bulk.count", "2"), ("queue", "codel")],
        );
        println!("{} {} {}", entry.name, jain(&result), result.links[0].utilisation);
    }
}
