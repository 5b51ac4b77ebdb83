//! One run of a benchmark scenario, for profilers:
//! `valgrind --tool=callgrind target/release/examples/steady`.

const B: &str = include_str!("../../../python/aqmlab/benchmarks/d-1gbit-droptail.toml");

fn main() {
    let scenario = aqmlab_sim::Scenario::parse(B, "steady", &[]).unwrap();
    let result = aqmlab_sim::run(&scenario, 0);
    println!("{} packets, {} events", result.delivered_packets(scenario.bottleneck), result.events);
}
