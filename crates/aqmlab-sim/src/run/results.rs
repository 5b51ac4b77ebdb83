//! What is left of a run.

use aqmlab_core::{ParamType, Span, Time};
use aqmlab_tcp::Stats;
use aqmlab_tcp::params::Stack;

use super::diagnosis::{Finding, diagnose};
use super::simulation::Simulation;
use crate::endpoints::Volume;
use crate::endpoints::datagrams::DatagramSummary;
use crate::endpoints::flow::{Ends, Flow, NONE};
use crate::network::LinkResult;
use crate::network::losses::FlowLosses;
use crate::network::probe::TimesSummary;
use crate::network::records::Records;
use crate::network::series::{Sample, Subject};
use crate::scenario::Level;
use crate::workload::app::Activity;

/// The results of one run.
pub struct RunResult {
    /// Which replication it was.
    pub replication: u64,
    /// The virtual time at its end.
    pub end: Time,
    /// What was left out at its beginning: what is measured counts from then on. Zero without a
    /// warm-up, and in a run that ended within it.
    pub warmup: Span,
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
    /// The row in `flows` of each flow, as records that a sink has taken number them.
    pub flow_rows: Vec<u32>,
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
    /// Bytes acknowledged, over the time it was active after the warm-up, in bit/s; NaN if it
    /// had finished by then. All that follows is of that time, too.
    pub goodput: f64,
    /// Bytes on the wire that its sender sent, over the same time; NaN where it is not known.
    pub throughput: f64,
    /// Data packets that its source sent, those sent again among them.
    pub sent: u64,
    /// Bytes acknowledged, or of datagrams arrived.
    pub delivered: u64,
    /// TCP's state machine that ran: a name of `transport.stack`, or `kernel` for real packets.
    pub stack: Option<&'static str>,
    /// The sender's counts, of TCP.
    pub stats: Option<Stats>,
    /// Its packets that queues dropped after the warm-up, on all links.
    pub losses: FlowLosses,
    /// One-way delays of the data packets, if they are measured: the mean in
    /// seconds, and the largest.
    pub delays: Option<(f64, Span)>,
    /// Of a flow of datagrams.
    pub datagrams: Option<DatagramSummary>,
}

/// What became of the applications of a group after the warm-up.
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
    pub times: Vec<(&'static str, TimesSummary)>,
    /// State machine of its TCP senders, as in [`FlowResult`].
    pub stack: Option<&'static str>,
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
        let rows = rows(&simulation);
        let place = |flow: u32| rows[flow as usize];
        let mut samples = simulation.series.take().map(|series| series.samples).unwrap_or_default();
        for sample in &mut samples {
            if let Subject::Flow(flow) = &mut sample.subject {
                *flow = place(*flow);
            }
        }
        let records = simulation.network.links_mut().filter_map(|link| link.probe.packets.as_mut());
        for packet in records.flat_map(Records::kept) {
            packet.flow = place(packet.flow);
        }
        let events = simulation.events_handled();
        RunResult {
            replication: simulation.replication,
            end,
            warmup: simulation.warmup,
            events,
            findings,
            links: simulation.network.into_results(end),
            flows,
            groups,
            samples,
            flow_rows: rows,
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
    let named = in_order(simulation).filter(|(_, flow)| is_named || !flow.is_transient);
    named
        .map(|(place, flow)| {
            let measured = flow.measured();
            let active = flow.measured_time(end);
            let over = |bytes: u64| active.map_or(f64::NAN, |active| rate(bytes, active));
            FlowResult {
                group: flow.group,
                index: number(flow.group),
                start: flow.start,
                finish: flow.finish,
                size: flow.size,
                goodput: over(measured.volume.delivered),
                throughput: over(measured.volume.sent),
                sent: measured.sent,
                delivered: measured.volume.delivered,
                stack: flow.tcp().map(|_| stack(simulation, flow.group)),
                stats: measured.stats,
                losses: losses(simulation, place as u32),
                delays: flow.delay_summary(),
                datagrams: flow.datagram_summary(),
            }
        })
        .collect()
}

/// All flows with their places, in the order of the rows: those of datagrams
/// come after the others.
fn in_order(simulation: &Simulation) -> impl Iterator<Item = (usize, &Flow)> {
    let of = |kind: bool| {
        let flows = simulation.flows.iter().enumerate();
        flows.filter(move |(_, flow)| flow.is_of_datagrams() == kind)
    };
    of(false).chain(of(true))
}

/// The row of each flow where all have one.
fn rows(simulation: &Simulation) -> Vec<u32> {
    let mut rows = vec![0; simulation.flows.len()];
    for (row, (place, _)) in (0..).zip(in_order(simulation)) {
        rows[place] = row;
    }
    rows
}

/// Name of the state machine of a group's TCP senders.
fn stack(simulation: &Simulation, group: u32) -> &'static str {
    Stack::choices()[simulation.scenario.flows[group as usize].transport.machine() as usize]
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
    let mut sum = FlowLosses::default();
    let flows = simulation.flows.iter().zip(0..).filter(|(flow, _)| flow.group == group);
    flows.for_each(|(_, flow)| sum.add(losses(simulation, flow)));
    sum
}

/// What all flows of a group have sent and delivered, those that are gone too.
pub(super) fn volume(simulation: &Simulation, group: u32) -> Volume {
    let mut sum = simulation.activities[group as usize].gone;
    let flows = simulation.flows.iter().filter(|flow| flow.group == group);
    flows.for_each(|flow| sum.add(flow.volume()));
    sum
}

/// What a group had counted when the warm-up ended.
#[derive(Clone, Copy, Default)]
pub(super) struct GroupBefore {
    started: u64,
    completed: u64,
    bytes: u64,
    volume: Volume,
}

/// What the groups have counted so far.
pub(super) fn counted(simulation: &Simulation) -> Vec<GroupBefore> {
    let now = simulation.now;
    // Flows without an application count from the start on, also those that begin later.
    let later = |number: usize| {
        let of_group = simulation.flows.iter().filter(|flow| flow.group as usize == number);
        of_group.filter(|flow| flow.app == NONE && flow.start >= now).count() as u64
    };
    let of = |(number, activity): (usize, &Activity)| GroupBefore {
        started: activity.started - later(number),
        completed: activity.completed,
        bytes: activity.bytes,
        volume: volume(simulation, number as u32),
    };
    simulation.activities.iter().enumerate().map(of).collect()
}

fn groups(simulation: &Simulation) -> Vec<GroupResult> {
    let of = |(number, activity): (usize, &Activity)| {
        let mut times: Vec<(&'static str, TimesSummary)> =
            activity.times.iter().map(|(name, times)| (*name, times.summary())).collect();
        let own = simulation.flows.iter().filter(|flow| flow.group as usize == number);
        let mut delays = own.clone().filter_map(|flow| match &flow.ends {
            Ends::Datagrams(datagrams) => Some(&datagrams.sink.delay),
            _ => None,
        });
        if let Some(first) = delays.next() {
            let mut delay = first.clone();
            delays.for_each(|other| delay.add(other));
            times.push(("delay", delay.summary()));
        }
        let volume = volume(simulation, number as u32);
        // Groups that begin later have counted nothing by then.
        let before = simulation.before.get(number).copied().unwrap_or_default();
        GroupResult {
            started: activity.started - before.started,
            completed: activity.completed - before.completed,
            bytes: activity.bytes - before.bytes,
            delivered_bytes: volume.delivered - before.volume.delivered,
            sent_bytes: Some(volume.sent - before.volume.sent),
            times,
            stack: own
                .clone()
                .any(|flow| flow.tcp().is_some())
                .then(|| stack(simulation, number as u32)),
            values: simulation.reports(number as u32),
            losses: group_losses(simulation, number as u32),
        }
    };
    simulation.activities.iter().enumerate().map(of).collect()
}
