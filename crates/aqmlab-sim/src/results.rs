//! What is left of a run.

use aqmlab_aqm::{Backlog, Counts};
use aqmlab_core::{Span, Time};
use aqmlab_tcp::Stats;

use crate::diagnosis::{Finding, diagnose};
use crate::egress::DriverSummary;
use crate::pipe::PathCounts;
use crate::probe::{Excursions, PacketRecord, SojournSummary};
use crate::series::Sample;
use crate::simulation::Simulation;

/// The results of one run.
pub struct RunResult {
    /// Which replication it was.
    pub replication: u64,
    /// The virtual time at its end.
    pub end: Time,
    /// Events handled.
    pub events: u64,
    /// By link, in the order of the scenario.
    pub links: Vec<LinkResult>,
    /// By flow, group after group.
    pub flows: Vec<FlowResult>,
    /// What a reader has to know.
    pub findings: Vec<Finding>,
    /// At levels `series` and `packets`.
    pub samples: Vec<Sample>,
}

/// What happened at a link.
pub struct LinkResult {
    /// Packets and bytes that arrived, left, were dropped and marked.
    pub counts: Counts,
    /// Time in queue of the packets that were sent.
    pub sojourn: SojournSummary,
    /// The largest backlog.
    pub backlog_max: Backlog,
    /// The mean backlog over time, in bytes.
    pub backlog_mean: f64,
    /// Share of what the link offered since the first packet that was used.
    pub utilisation: f64,
    /// What happened to packets on the way to the far end.
    pub way: PathCounts,
    /// What passed the driver behind the queue, if the link has one (or a shaper).
    pub driver: Option<DriverSummary>,
    /// Backlog above thresholds.
    pub excursions: Vec<Excursions>,
    /// At level `packets`.
    pub packets: Vec<PacketRecord>,
}

/// What became of a flow.
pub struct FlowResult {
    /// Its group, by index.
    pub group: u32,
    /// Its number in the group.
    pub index: u32,
    /// When it began.
    pub start: Time,
    /// When its last byte was acknowledged.
    pub finish: Option<Time>,
    /// Bytes it had to transfer; `None` without end.
    pub size: Option<u64>,
    /// Bytes acknowledged, over the time it was active, in bit/s.
    pub goodput: f64,
    /// The sender's counts.
    pub stats: Stats,
}

impl RunResult {
    pub(crate) fn of(simulation: Simulation) -> Self {
        let end = simulation.now;
        let findings = diagnose(&simulation);
        let links = simulation.links.into_iter().map(|link| LinkResult {
            counts: link.queue.counts(),
            sojourn: link.probe.sojourn.summary(),
            backlog_max: link.probe.backlog_max,
            backlog_mean: link.probe.backlog_mean(end),
            utilisation: link.utilisation(end),
            way: link.way(),
            driver: link.egress.map(|egress| egress.summary),
            excursions: link.probe.excursions,
            packets: link.probe.packets.unwrap_or_default(),
        });
        let mut last_group = (u32::MAX, 0);
        let flows = simulation.flows.iter().map(|flow| {
            let index = if last_group.0 == flow.group { last_group.1 + 1 } else { 0 };
            last_group = (flow.group, index);
            let active = flow.finish.unwrap_or(end).saturating_since(flow.start);
            let stats = flow.sender.stats();
            FlowResult {
                group: flow.group,
                index,
                start: flow.start,
                finish: flow.finish,
                size: flow.size,
                goodput: stats.bytes_acked as f64 * 8.0
                    / active.max(Span::from_nanos(1)).as_secs_f64(),
                stats,
            }
        });
        RunResult {
            replication: simulation.replication,
            end,
            events: simulation.events_handled,
            findings,
            links: links.collect(),
            flows: flows.collect(),
            samples: simulation.series.map(|series| series.samples).unwrap_or_default(),
        }
    }

    /// Packets that reached the end of the link `bottleneck`.
    pub fn delivered_packets(&self, bottleneck: usize) -> u64 {
        self.links[bottleneck].counts.delivered
    }
}
