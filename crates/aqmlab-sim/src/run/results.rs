//! What is left of a run.

use aqmlab_core::{ParamType, Span, Time};
use aqmlab_tcp::Stats;
use aqmlab_tcp::params::Stack;

use super::diagnosis::{Finding, diagnose};
use super::simulation::Simulation;
use crate::endpoints::datagrams::DatagramSummary;
use crate::endpoints::flow::{Ends, Flow, NONE};
use crate::endpoints::{Direction, Volume};
use crate::network::LinkResult;
use crate::network::losses::FlowLosses;
use crate::network::probe::{TimeHistogram, TimeSummary};
use crate::network::records::Records;
use crate::network::series::{Sample, Subject};
use crate::scenario::Level;
use crate::workload::app::Activity;
use crate::workload::quantities::{Quantity, worse_times_first};

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
    /// Bytes of data that arrived, each counted once, over the time it was active after the
    /// warm-up, in bit/s; NaN if it
    /// had finished by then. All that follows is of that time, too.
    pub goodput: f64,
    /// Bytes on the wire that its sender sent, over the same time; NaN where it is not known.
    pub throughput: f64,
    /// Data packets that its source sent, those sent again among them.
    pub sent: u64,
    /// Bytes of data that arrived, each counted once.
    pub delivered: u64,
    /// TCP's state machine that ran: a name of `transport.stack`, or `kernel` for real packets.
    pub stack: Option<&'static str>,
    /// The sender's counts, of TCP.
    pub stats: Option<Stats>,
    /// Direction of its data.
    pub direction: Direction,
    /// Packets that reached its ends, by [`End`](crate::endpoints::End): acknowledgements, then
    /// data packets and SYNs.
    pub arrived: [u64; 2],
    /// Its packets that did not arrive, dropped by queues or lost on links; of all links.
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
    /// Traffic of its flows by [`Direction`]: forward always, reverse if any flow has that direction.
    pub traffic: [Option<Traffic>; 2],
    /// State machine of its TCP senders, as in [`FlowResult`].
    pub stack: Option<&'static str>,
    /// Times by quantity: `completion` and `startup` of flows, `delay` of packets, and what the
    /// workload measures; of the directions of a quantity the worse first.
    pub times: Vec<(Quantity, TimeSummary)>,
    /// Scores of the workload, means over the group; of the directions of a quantity the worse
    /// first.
    pub values: Vec<(Quantity, f64)>,
}

impl GroupResult {
    /// Times of a quantity, of the worse direction if it has two.
    pub fn times_of(&self, name: &str) -> Option<&TimeSummary> {
        self.times.iter().find(|(quantity, _)| quantity.name == name).map(|(_, times)| times)
    }

    /// A score, of the worse direction if it has two.
    pub fn value_of(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(quantity, _)| quantity.name == name).map(|(_, value)| *value)
    }
}

/// Traffic of the flows of a group whose data have the same direction, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes on the wire that the senders sent, if known.
    pub sent_bytes: Option<u64>,
    /// Bytes of data that arrived, each counted once.
    pub delivered_bytes: u64,
    /// Packets that reached the flows' ends, as in [`FlowResult::arrived`].
    pub arrived: [u64; 2],
    /// Packets that did not arrive, data and acknowledgements.
    pub losses: FlowLosses,
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
                direction: flow.direction,
                arrived: measured.volume.arrived,
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

/// Losses of a flow at all links.
fn losses(simulation: &Simulation, flow: u32) -> FlowLosses {
    let mut sum = FlowLosses::default();
    simulation.network.links().for_each(|link| sum.add(link.probe.losses.of(flow, simulation.now)));
    sum
}

/// The flows of a group whose data have this direction, with their places.
fn flows_of(
    simulation: &Simulation,
    group: u32,
    direction: Direction,
) -> impl Iterator<Item = (&Flow, u32)> {
    let flows = simulation.flows.iter().zip(0..);
    flows.filter(move |(flow, _)| flow.group == group && flow.direction == direction)
}

/// Traffic of all flows of a group in one direction, those that are gone included.
pub(super) fn volume(simulation: &Simulation, group: u32, direction: Direction) -> Volume {
    let mut sum = simulation.activities[group as usize].gone[direction as usize];
    flows_of(simulation, group, direction).for_each(|(flow, _)| sum.add(flow.volume()));
    sum
}

/// Traffic of a group in one direction after the warm-up; `None` if no flow has that direction,
/// unless it is forward.
fn traffic(
    simulation: &Simulation,
    group: u32,
    direction: Direction,
    before: &Volume,
) -> Option<Traffic> {
    let mut flows = flows_of(simulation, group, direction).peekable();
    if direction == Direction::Backward && flows.peek().is_none() {
        return None;
    }
    // Places are used again by flows of the same group and direction.
    let mut lost = FlowLosses::default();
    flows.for_each(|(_, place)| lost.add(losses(simulation, place)));
    let volume = volume(simulation, group, direction).since(before);
    Some(Traffic {
        sent_bytes: Some(volume.sent),
        delivered_bytes: volume.delivered,
        arrived: volume.arrived,
        losses: lost,
    })
}

/// What a group had counted when the warm-up ended.
#[derive(Clone, Copy, Default)]
pub(super) struct GroupBefore {
    started: u64,
    completed: u64,
    bytes: u64,
    /// By [`Direction`].
    volumes: [Volume; 2],
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
        volumes: Direction::ALL.map(|direction| volume(simulation, number as u32, direction)),
    };
    simulation.activities.iter().enumerate().map(of).collect()
}

/// Times that a group measured, and the one-way delays of its packets by direction.
fn times(simulation: &Simulation, group: u32) -> Vec<(Quantity, TimeSummary)> {
    let measured = &simulation.activities[group as usize].times;
    let is_delay = |quantity: &Quantity| quantity.name == Quantity::delay(Direction::Forward).name;
    let others = measured.iter().filter(|(quantity, _)| !is_delay(quantity));
    let mut times: Vec<_> = others.map(|(quantity, times)| (*quantity, times.summary())).collect();
    for direction in Direction::ALL {
        let quantity = Quantity::delay(direction);
        let of_data = measured.iter().filter(|(known, _)| *known == quantity);
        let own = flows_of(simulation, group, direction);
        let of_datagrams = own.filter_map(|(flow, _)| match &flow.ends {
            Ends::Datagrams(datagrams) => Some(&datagrams.sink.delay),
            _ => None,
        });
        let sum = of_data.map(|(_, times)| times).chain(of_datagrams).fold(None, |sum, times| {
            let mut sum: TimeHistogram = sum.unwrap_or_default();
            sum.add(times);
            Some(sum)
        });
        times.extend(sum.map(|sum| (quantity, sum.summary())));
    }
    worse_times_first(&mut times);
    times
}

fn groups(simulation: &Simulation) -> Vec<GroupResult> {
    let of = |(number, activity): (usize, &Activity)| {
        let mut own = simulation.flows.iter().filter(|flow| flow.group as usize == number);
        let has_tcp = own.any(|flow| flow.tcp().is_some());
        // Groups that begin later have counted nothing by then.
        let before = simulation.before.get(number).copied().unwrap_or_default();
        GroupResult {
            started: activity.started - before.started,
            completed: activity.completed - before.completed,
            bytes: activity.bytes - before.bytes,
            traffic: Direction::ALL.map(|direction| {
                let before = &before.volumes[direction as usize];
                traffic(simulation, number as u32, direction, before)
            }),
            times: times(simulation, number as u32),
            stack: has_tcp.then(|| stack(simulation, number as u32)),
            values: simulation.reports(number as u32),
        }
    };
    simulation.activities.iter().enumerate().map(of).collect()
}
