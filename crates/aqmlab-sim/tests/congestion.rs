//! Congestion controls over simulated links.

use aqmlab_core::Value;
use aqmlab_sim::Scenario;

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
