//! One run of a benchmark scenario, for profilers, with the congestion control
//! that is named: `valgrind --tool=callgrind target/release/examples/steady cubic`.

const B: &str = include_str!("../../../python/aqmlab/benchmarks/d-1gbit-droptail.toml");

#[allow(clippy::disallowed_methods)] // a program, not the engine, reads its arguments
fn main() {
    let control = std::env::args().nth(1).unwrap_or_else(|| "reno".into());
    let overrides = [("transport.congestion_control".to_string(), control.into())];
    let scenario = aqmlab_sim::Scenario::parse(B, "steady", &overrides).unwrap();
    let result = aqmlab_sim::run(&scenario, 0);
    println!("{} packets, {} events", result.delivered_packets(scenario.bottleneck), result.events);
}
