//! One run of a benchmark scenario, for profilers:
//! `valgrind --tool=callgrind target/release/examples/steady d cubic duration=2s`.
//! Runs the named scenario, (b), (c) or (d), with the named congestion control and further
//! settings.

const SCENARIOS: [(&str, &str); 3] = [
    ("b", include_str!("../../../tools/bench/b-10mbit-codel.toml")),
    ("c", include_str!("../../../tools/bench/c-100mbit-codel.toml")),
    ("d", include_str!("../../../tools/bench/d-1gbit-droptail.toml")),
];

#[allow(clippy::disallowed_methods)] // a program, not the engine, reads its arguments
fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "d".into());
    let control = arguments.next().unwrap_or_else(|| "reno".into());
    let (_, text) = SCENARIOS.into_iter().find(|(each, _)| *each == name).expect("b, c or d");
    let mut overrides = vec![("transport.congestion_control".to_string(), control.into())];
    overrides.extend(arguments.map(|setting| {
        let (key, value) = setting.split_once('=').expect("KEY=VALUE");
        (key.to_string(), aqmlab_sim::scenario::parse_value(value))
    }));
    let scenario = aqmlab_sim::Scenario::parse(text, "steady", &overrides).unwrap();
    let result = aqmlab_sim::run(&scenario, 0);
    let down = &result.links[scenario.bottleneck].counts;
    let up = &result.links[1 - scenario.bottleneck].counts;
    println!(
        "{} packets of {}, {} acknowledgements, {} events",
        result.delivered_packets(scenario.bottleneck),
        down.arrived,
        up.delivered,
        result.events
    );
}
