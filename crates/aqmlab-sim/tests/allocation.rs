//! In the steady state packets need no allocations: a run of twice the duration has no additional
//! ones.

use std::alloc::System;

use aqmlab_core::Value;
use aqmlab_sim::{Scenario, run};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const BULK: &str = r#"
    duration = "10s"
    bottleneck = "down"
    [links.down]
    rate = "100mbit"
    delay = "10ms"
    queue = { discipline = "codel", limit = "1000p", ecn = true }
    [links.up]
    rate = "100mbit"
    delay = "10ms"
    [transport]
    profile = "rfc"
    [flows.bulk]
    count = 10
    path = "down"
    return_path = "up"
"#;

/// Packets and allocations of a run.
fn cost(duration: &str, settings: &[(&str, &str)]) -> (u64, u64) {
    let mut overrides = vec![("duration".to_string(), Value::from(duration))];
    for (key, value) in settings {
        overrides.push((format!("transport.{key}"), Value::from(*value)));
    }
    let scenario = Scenario::parse(BULK, "bulk", &overrides).unwrap();
    let region = Region::new(ALLOCATOR);
    let result = run(&scenario, 0);
    let change = region.change();
    (
        result.delivered_packets(scenario.bottleneck),
        (change.allocations + change.reallocations) as u64,
    )
}

// One test: the counts are the process's.
#[test]
fn packets_cost_no_allocations() {
    let all: [&[(&str, &str)]; 8] = [
        &[],
        &[("recovery", "sack1")],
        &[("recovery", "newreno")],
        &[("recovery", "rack"), ("prr", "true"), ("dsack", "true")],
        &[("ecn", "accurate")],
        &[("pacing", "true")],
        &[("profile", "linux-6")],
        &[("profile", "linux-6"), ("receive_window", "auto")],
    ];
    for settings in all {
        let (packets, allocations) = cost("10s", settings);
        let (twice, more) = cost("20s", settings);
        assert!(allocations > 0 && twice > packets + 50_000, "{settings:?}");
        // Queues that reach a new height, histograms with a new maximum.
        assert!(more < allocations + 30, "{settings:?}: {allocations}, {more}");
    }
}
