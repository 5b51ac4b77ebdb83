//! In the steady state packets need no allocations: a run of twice the duration has no additional
//! ones.

#[path = "sim/common/mod.rs"]
mod common;

use std::alloc::System;

use aqmlab_sim::run;
use common::{LINE, Settings};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Packets and allocations of a run.
fn cost(duration: &str, settings: &Settings) -> (u64, u64) {
    let bulk = [
        ("duration", duration),
        ("links.down.rate", "100mbit"),
        ("links.down.delay", "10ms"),
        ("links.down.queue", "{ discipline = 'codel', limit = '1000p', ecn = true }"),
        ("links.up.rate", "100mbit"),
        ("links.up.delay", "10ms"),
        ("flows.bulk.count", "10"),
    ];
    let scenario = common::scenario(LINE, &[&bulk, settings].concat());
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
    let all: [&Settings; 8] = [
        &[],
        &[("transport.recovery", "sack1")],
        &[("transport.recovery", "newreno")],
        &[("transport.recovery", "rack"), ("transport.prr", "true"), ("transport.dsack", "true")],
        &[("transport.ecn", "accurate")],
        &[("transport.pacing", "true")],
        &[("transport.profile", "linux-6")],
        &[("transport.profile", "linux-6"), ("transport.receive_window", "auto")],
    ];
    for settings in all {
        let (packets, allocations) = cost("10s", settings);
        let (twice, more) = cost("20s", settings);
        assert!(allocations > 0 && twice > packets + 50_000, "{settings:?}");
        // Queues that reach a new height, histograms with a new maximum.
        assert!(more < allocations + 30, "{settings:?}: {allocations}, {more}");
    }
}
