//! Results of a run.

use aqmlab_core::{ParamType, Span, Time};
use aqmlab_tcp::Stats;
use aqmlab_tcp::params::Stack;

use super::diagnosis::{Finding, diagnose};
use super::simulation::Simulation;
use crate::endpoints::datagrams::DatagramSummary;
use crate::endpoints::flow::{Ends, Flow};
use crate::endpoints::{Direction, Volume};
use crate::network::LinkResult;
use crate::network::losses::FlowLosses;
use crate::network::probe::{TimeHistogram, TimeSummary};
use crate::network::series::{Sample, Subject};
use crate::scenario::Level;
use crate::workload::app::Activity;
use crate::workload::quantities::{Quantity, worse_times_first};

/// Results of one run.
pub struct RunResult {
    /// Replication number.
    pub replication: u64,
    /// Where packets were counted.
    pub observed: Observed,
    /// Virtual time at the end.
    pub end: Time,
    /// Warm-up excluded from measurements. Zero without a warm-up, and in a run that ended within
    /// it.
    pub warmup: Span,
    /// Events handled.
    pub events: u64,
    /// Results by link, in the order of the scenario.
    pub links: Vec<LinkResult>,
    /// Results by flow, group after group; flows of datagrams are last. At level `summary`, flows
    /// that applications open and close are omitted.
    pub flows: Vec<FlowResult>,
    /// Results by group of flows, in the order of the scenario.
    pub groups: Vec<GroupResult>,
    /// Notes for the reader.
    pub findings: Vec<Finding>,
    /// Samples, at levels `series` and `packets`.
    pub samples: Vec<Sample>,
    /// Row in `flows` of each flow number in records passed to a sink.
    pub flow_rows: Vec<u32>,
}

/// Where the packets of a run were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Observed {
    /// On links alone: the ends are programs.
    Links,
    /// On links, and by applications at the ends of the flows: what happens to a flow's packets in
    /// between is not known.
    Ends,
    /// Everywhere.
    Everywhere,
}

/// Results of a flow.
#[derive(Default)]
pub struct FlowResult {
    /// Group, by index.
    pub group: u32,
    /// Number in the group.
    pub index: u32,
    /// Start time.
    pub start: Time,
    /// Time at which the last byte was acknowledged.
    pub finish: Option<Time>,
    /// Time from the start to the arrival of the last byte, or with real packets to its
    /// acknowledgement; `None` if more data may follow.
    pub completion: Option<Span>,
    /// Time of the change of the scenario that stopped it.
    pub stopped: Option<Time>,
    /// Bytes to transfer; `None`: no limit.
    pub size: Option<u64>,
    /// Data bytes that arrived (each counted once), in bit/s, over the time the flow was active
    /// after the warm-up: from its start until its last byte arrived or a change stopped it. NaN if
    /// it was not.
    pub goodput: f64,
    /// Rate in bit/s of bytes on the wire that the sender sent in that time; NaN if not known.
    pub throughput: f64,
    /// Data packets that the source sent after the warm-up, including retransmissions. The following
    /// fields cover the same time.
    pub sent: u64,
    /// Data bytes that arrived, each counted once.
    pub delivered: u64,
    /// TCP stack that ran: a name of `transport.stack`, or `kernel` for real packets.
    pub stack: Option<&'static str>,
    /// Counters of a TCP sender.
    pub stats: Option<Stats>,
    /// Direction of the data.
    pub direction: Direction,
    /// Packets that reached the flow's ends, by [`End`](crate::endpoints::End): acknowledgements,
    /// then data packets and SYNs.
    pub arrived: [u64; 2],
    /// Packets of the flow dropped by queues or lost on links, over all links.
    pub losses: FlowLosses,
    /// One-way delays of the data packets, if measured: mean in seconds, and maximum.
    pub delays: Option<(f64, Span)>,
    /// Summary of a flow of datagrams.
    pub datagrams: Option<DatagramSummary>,
}

/// Results of the applications of a group after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupResult {
    /// Number of flows or requests started.
    pub started: u64,
    /// Number of flows or requests completed.
    pub completed: u64,
    /// Bytes transferred by completed ones.
    pub bytes: u64,
    /// Traffic by [`Direction`]: always forward; reverse if any flow has that direction.
    pub traffic: [Option<Traffic>; 2],
    /// TCP stack of the senders, as in [`FlowResult`].
    pub stack: Option<&'static str>,
    /// Times by quantity: `completion` and `startup` of flows, `delay` of packets, and the
    /// workload's quantities. For a quantity with two directions, the worse is first.
    pub times: Vec<(Quantity, TimeSummary)>,
    /// Scores of the workload as means over the group. For a quantity with two directions, the
    /// worse is first.
    pub values: Vec<(Quantity, f64)>,
}

impl GroupResult {
    /// Returns the times of a quantity; of the worse direction if it has two.
    pub fn times_of(&self, name: &str) -> Option<&TimeSummary> {
        self.times.iter().find(|(quantity, _)| quantity.name == name).map(|(_, times)| times)
    }

    /// Returns a score; of the worse direction if it has two.
    pub fn value_of(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(quantity, _)| quantity.name == name).map(|(_, value)| *value)
    }
}

/// Traffic of a group's flows with the same direction, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes on the wire that the senders sent, if known.
    pub sent_bytes: Option<u64>,
    /// Data bytes that arrived, each counted once.
    pub delivered_bytes: u64,
    /// Packets that reached the flows' ends, as in [`FlowResult::arrived`].
    pub arrived: [u64; 2],
    /// Lost packets: data and acknowledgements.
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
        let mut samples =
            simulation.series.take().map(|series| series.samples.into_vec()).unwrap_or_default();
        for sample in &mut samples {
            if let Subject::Flow(flow) = &mut sample.subject {
                *flow = place(*flow);
            }
        }
        let events = simulation.events_handled();
        let mut links = simulation.network.into_results(end);
        for packet in links.iter_mut().flat_map(|link| &mut link.packets) {
            packet.flow = place(packet.flow);
        }
        RunResult {
            replication: simulation.replication,
            observed: Observed::Everywhere,
            end,
            warmup: simulation.warmup,
            events,
            findings,
            links,
            flows,
            groups,
            samples,
            flow_rows: rows,
        }
    }

    /// Returns the packets that reached the end of the link `bottleneck`.
    pub fn delivered_packets(&self, bottleneck: usize) -> u64 {
        self.links[bottleneck].counts.delivered
    }
}

/// Returns the rows of the flows: all of them, unless slots are reused.
fn flows(simulation: &Simulation, end: Time) -> Vec<FlowResult> {
    let mut next = vec![0; simulation.scenario.flows.len()];
    let mut number = |group: u32| {
        next[group as usize] += 1;
        next[group as usize] - 1
    };
    let rate = |bytes: u64, active: Span| bytes as f64 * 8.0 / active.as_secs_f64();
    let is_named = simulation.scenario.record.level != Level::Summary;
    let named = in_order(simulation).filter(|(_, flow)| is_named || !flow.is_transient);
    named
        .map(|(place, flow)| {
            let measured = flow.measured();
            let rated = flow.rated(end);
            let over = |of: fn(&Volume) -> u64| {
                rated.map_or(f64::NAN, |(volume, active)| rate(of(&volume), active))
            };
            FlowResult {
                group: flow.group,
                index: number(flow.group),
                start: flow.start,
                finish: flow.finish,
                completion: flow.completed().map(|completed| completed - flow.start),
                stopped: flow.stopped(),
                size: flow.size,
                goodput: over(|volume| volume.delivered),
                throughput: over(|volume| volume.sent),
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

/// Returns all flows with their slots, in row order: flows of datagrams are last.
fn in_order(simulation: &Simulation) -> impl Iterator<Item = (usize, &Flow)> {
    let of = |kind: bool| {
        let flows = simulation.flows.iter().enumerate();
        flows.filter(move |(_, flow)| flow.is_of_datagrams() == kind)
    };
    of(false).chain(of(true))
}

/// Returns the row of each flow, if all flows have one.
fn rows(simulation: &Simulation) -> Vec<u32> {
    let mut rows = vec![0; simulation.flows.len()];
    for (row, (place, _)) in (0..).zip(in_order(simulation)) {
        rows[place] = row;
    }
    rows
}

/// Returns the name of the TCP stack of a group's senders.
fn stack(simulation: &Simulation, group: u32) -> &'static str {
    Stack::choices()[simulation.scenario.flows[group as usize].transport.machine() as usize]
}

/// Returns the losses of a flow at all links.
fn losses(simulation: &Simulation, flow: u32) -> FlowLosses {
    let mut sum = FlowLosses::default();
    simulation.network.links().for_each(|link| sum.add(link.probe.losses.of(flow, simulation.now)));
    sum
}

/// Returns the flows of a group with this direction, with their slots.
fn flows_of(
    simulation: &Simulation,
    group: u32,
    direction: Direction,
) -> impl Iterator<Item = (&Flow, u32)> {
    let flows = simulation.flows.iter().zip(0..);
    flows.filter(move |(flow, _)| flow.group == group && flow.direction == direction)
}

/// Returns the traffic of all flows of a group in one direction, including ended ones.
pub(super) fn volume(simulation: &Simulation, group: u32, direction: Direction) -> Volume {
    let mut sum = simulation.activities[group as usize].gone[direction as usize];
    flows_of(simulation, group, direction).for_each(|(flow, _)| sum.add(flow.volume()));
    sum
}

/// Returns the traffic of a group in one direction after the warm-up; `None` if the direction is
/// reverse and no flow has it.
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
    // Slots are reused by flows of the same group and direction.
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

/// Counters of a group at the end of the warm-up.
#[derive(Clone, Copy, Default)]
pub(super) struct GroupBefore {
    started: u64,
    completed: u64,
    bytes: u64,
    /// Traffic by [`Direction`].
    volumes: [Volume; 2],
}

/// Returns the current counters of all groups.
pub(super) fn counted(simulation: &Simulation) -> Vec<GroupBefore> {
    let of = |(number, activity): (usize, &Activity)| GroupBefore {
        started: activity.started,
        completed: activity.completed,
        bytes: activity.bytes,
        volumes: Direction::ALL.map(|direction| volume(simulation, number as u32, direction)),
    };
    simulation.activities.iter().enumerate().map(of).collect()
}

/// Returns the times measured by a group, and the one-way delays of its packets by direction.
fn times(simulation: &Simulation, group: u32) -> Vec<(Quantity, TimeSummary)> {
    let measured = &simulation.activities[group as usize].times;
    let is_delay = |quantity: &Quantity| quantity.name == Quantity::delay(Direction::Forward).name;
    let others = measured.iter().filter(|(quantity, _)| !is_delay(quantity));
    let mut times: Vec<_> = others.map(|(quantity, times)| (*quantity, times.summary())).collect();
    for direction in Direction::ALL {
        let quantity = Quantity::delay(direction);
        let of_data = measured.iter().filter(|(known, _)| *known == quantity);
        let own = flows_of(simulation, group, direction);
        // A flow that sent nothing, such as the speech of a silent side, has no delay to be lost.
        let of_datagrams = own.filter_map(|(flow, _)| match &flow.ends {
            Ends::Datagrams(of) if flow.measured().sent > 0 => Some(&of.sink.delay),
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
        // Groups that start later had no counts at that time.
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
            values: simulation.scores(number as u32).means(),
        }
    };
    simulation.activities.iter().enumerate().map(of).collect()
}
