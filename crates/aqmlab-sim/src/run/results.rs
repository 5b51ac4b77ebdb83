//! What is left of a run.

use aqmlab_core::{Span, Time};
use aqmlab_tcp::Stats;

use super::app::{Activity, Volume};
use super::diagnosis::{Finding, diagnose};
use super::simulation::Simulation;
use crate::endpoints::datagram::{DATAGRAMS, DatagramSummary};
use crate::network::LinkResult;
use crate::network::losses::FlowLosses;
use crate::network::probe::SojournSummary;
use crate::network::series::{Sample, Subject};
use crate::scenario::Level;

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
    /// By flow, group after group; flows of datagrams after the others. Those
    /// that applications open and close are left out at level `summary`.
    pub flows: Vec<FlowResult>,
    /// By group of flows, in the order of the scenario.
    pub groups: Vec<GroupResult>,
    /// What a reader has to know.
    pub findings: Vec<Finding>,
    /// At levels `series` and `packets`.
    pub samples: Vec<Sample>,
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
    /// Bytes on the wire that its sender sent, over the same time; NaN where it is not known.
    pub throughput: f64,
    /// The sender's counts; of datagrams those sent, and the bytes that arrived.
    pub stats: Stats,
    /// Segments or datagrams sent after the warm-up.
    pub sent_since: u64,
    /// Its packets that queues dropped after the warm-up, on all links.
    pub losses: FlowLosses,
    /// One-way delays of the data packets, if they are measured: the mean in
    /// seconds, and the largest.
    pub delays: Option<(f64, Span)>,
    /// Of a flow of datagrams.
    pub datagrams: Option<DatagramSummary>,
}

/// What became of the applications of a group.
pub struct GroupResult {
    /// Flows or requests that were started.
    pub started: u64,
    /// Those that came to their end.
    pub completed: u64,
    /// Bytes that these transferred.
    pub bytes: u64,
    /// Bytes acknowledged of all its flows, or of datagrams arrived.
    pub delivered_bytes: u64,
    /// Bytes on the wire that its senders sent, if that is known.
    pub sent_bytes: Option<u64>,
    /// Times by name: `completion` and `startup` of flows, `delay` of
    /// datagrams, and what the workload measures.
    pub times: Vec<(&'static str, SojournSummary)>,
    /// Packets of its flows that queues dropped after the warm-up.
    pub losses: FlowLosses,
    /// What the workload has to say besides: the means over the group.
    pub values: Vec<(&'static str, f64)>,
}

impl RunResult {
    pub(crate) fn of(mut simulation: Simulation) -> Self {
        let end = simulation.now;
        let findings = diagnose(&simulation);
        let groups = groups(&simulation);
        let flows = flows(&simulation, end);
        let named = simulation.flows.len() as u32;
        // Datagrams come after the others.
        let place =
            |flow: u32| if flow & DATAGRAMS == 0 { flow } else { named + (flow & !DATAGRAMS) };
        let mut samples = simulation.series.take().map(|series| series.samples).unwrap_or_default();
        for sample in &mut samples {
            if let Subject::Flow(flow) = &mut sample.subject {
                *flow = place(*flow);
            }
        }
        let records = simulation.network.links_mut().filter_map(|link| link.probe.packets.as_mut());
        for packet in records.flatten() {
            packet.flow = place(packet.flow);
        }
        let events = simulation.events_handled();
        RunResult {
            replication: simulation.replication,
            end,
            events,
            findings,
            links: simulation.network.into_results(end),
            flows,
            groups,
            samples,
        }
    }

    /// Packets that reached the end of the link `bottleneck`.
    pub fn delivered_packets(&self, bottleneck: usize) -> u64 {
        self.links[bottleneck].counts.delivered
    }
}

/// The rows of the flows that can be named: all where places are not used
/// again.
fn flows(simulation: &Simulation, end: Time) -> Vec<FlowResult> {
    let mut next = vec![0; simulation.scenario.flows.len()];
    let mut number = |group: u32| {
        next[group as usize] += 1;
        next[group as usize] - 1
    };
    let rate = |bytes: u64, active: Span| {
        bytes as f64 * 8.0 / active.max(Span::from_nanos(1)).as_secs_f64()
    };
    let is_named = simulation.scenario.record.level != Level::Summary;
    let connections = simulation.flows.iter().enumerate();
    let mut rows: Vec<FlowResult> = connections
        .filter(|(_, flow)| is_named || !flow.is_transient)
        .map(|(place, flow)| {
            let active = flow.finish.unwrap_or(end).saturating_since(flow.start);
            let stats = flow.sender.stats();
            FlowResult {
                group: flow.group,
                index: number(flow.group),
                start: flow.start,
                finish: flow.finish,
                size: flow.size,
                goodput: rate(stats.bytes_acked, active),
                throughput: rate(flow.sent_bytes, active),
                stats,
                sent_since: stats.segments_sent - flow.sent_before,
                losses: losses(simulation, place as u32),
                delays: flow.delays.map(|delays| (delays.mean(), delays.max)),
                datagrams: None,
            }
        })
        .collect();
    rows.extend(simulation.datagrams.iter().enumerate().map(|(place, flow)| FlowResult {
        group: flow.group,
        index: number(flow.group),
        start: flow.start,
        finish: None,
        size: None,
        goodput: rate(flow.received_bytes, end.saturating_since(flow.start)),
        throughput: rate(flow.sent_bytes, end.saturating_since(flow.start)),
        stats: Stats {
            segments_sent: flow.sent,
            bytes_acked: flow.received_bytes,
            ..Stats::default()
        },
        sent_since: flow.sent - flow.sent_before,
        losses: losses(simulation, place as u32 | DATAGRAMS),
        delays: Some((flow.delay.mean(), flow.delay.max())),
        datagrams: Some(flow.summary()),
    }));
    rows
}

/// What queues dropped of a flow.
fn losses(simulation: &Simulation, flow: u32) -> FlowLosses {
    let mut sum = FlowLosses::default();
    simulation.network.links().for_each(|link| sum.add(link.probe.losses.of(flow)));
    sum
}

/// What queues dropped of the flows of a group, those that are gone too: a
/// place is used again by flows of the same group.
fn group_losses(simulation: &Simulation, group: u32) -> FlowLosses {
    let connections = simulation.flows.iter().map(|flow| flow.group).zip(0..);
    let datagrams = simulation.datagrams.iter().map(|flow| flow.group).zip(DATAGRAMS..);
    let mut sum = FlowLosses::default();
    for (_, flow) in connections.chain(datagrams).filter(|(of, _)| *of == group) {
        sum.add(losses(simulation, flow));
    }
    sum
}

/// What all flows of a group have sent and delivered, those that are gone too.
fn volume(simulation: &Simulation, group: u32) -> Volume {
    let mut sum = simulation.activities[group as usize].gone;
    let connections = simulation.flows.iter().filter(|flow| flow.group == group);
    connections.for_each(|flow| sum.add(flow.volume()));
    let datagrams = simulation.datagrams.iter().filter(|flow| flow.group == group);
    datagrams.for_each(|flow| {
        sum.add(Volume { sent: flow.sent_bytes, delivered: flow.received_bytes });
    });
    sum
}

fn groups(simulation: &Simulation) -> Vec<GroupResult> {
    let of = |(number, activity): (usize, &Activity)| {
        let mut times: Vec<(&'static str, SojournSummary)> =
            activity.times.iter().map(|(name, times)| (*name, times.summary())).collect();
        let mut datagrams =
            simulation.datagrams.iter().filter(|flow| flow.group as usize == number);
        if let Some(first) = datagrams.next() {
            let mut delay = first.delay.clone();
            datagrams.for_each(|flow| delay.add(&flow.delay));
            times.push(("delay", delay.summary()));
        }
        let volume = volume(simulation, number as u32);
        GroupResult {
            started: activity.started,
            completed: activity.completed,
            bytes: activity.bytes,
            delivered_bytes: volume.delivered,
            sent_bytes: Some(volume.sent),
            times,
            values: simulation.reports(number as u32),
            losses: group_losses(simulation, number as u32),
        }
    };
    simulation.activities.iter().enumerate().map(of).collect()
}
