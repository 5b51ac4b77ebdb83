//! Recording level `series`: a sample of everything at regular times.

use aqmlab_core::{Span, Time};

use crate::carried::Carried;
use crate::datagram::DATAGRAMS;
use crate::link::Link;
use crate::simulation::Simulation;
use crate::wire::Meter;

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A link, by index.
    Link(u32),
    /// A flow, by index over all flows.
    Flow(u32),
}

/// One number of one sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// Of what.
    pub subject: Subject,
    /// Which quantity.
    pub quantity: &'static str,
    /// Its value.
    pub value: f64,
}

/// What had happened at a link at the sample before.
#[derive(Clone, Copy, Default)]
struct LinkCounts {
    arrived_bytes: u64,
    delivered_bytes: u64,
    sojourns: (u64, f64),
}

/// What samples of links need of the ones before.
#[derive(Default)]
pub struct LinkSeries {
    last: Time,
    links: Vec<LinkCounts>,
    /// Of links whose rate changes: what counts their capacity, and the count.
    capacity: Vec<Option<(Meter, f64)>>,
}

impl LinkSeries {
    /// The links' sums of sojourn times have begun again.
    pub fn restart_sojourns(&mut self) {
        for link in &mut self.links {
            link.sojourns = (0, 0.0);
        }
    }

    /// Takes a sample of every link.
    pub fn sample<P: Carried>(&mut self, time: Time, links: &mut [Link<P>], to: &mut Vec<Sample>) {
        let elapsed = time.saturating_since(self.last).as_secs_f64();
        self.links.resize(links.len(), LinkCounts::default());
        if self.capacity.is_empty() {
            let meters = links.iter().map(Link::meter);
            self.capacity = meters.map(|meter| meter.map(|meter| (meter, 0.0))).collect();
        }
        for (index, link) in links.iter_mut().enumerate() {
            let subject = Subject::Link(index as u32);
            let mut see = |quantity, value| to.push(Sample { time, subject, quantity, value });
            let backlog = link.queue.backlog();
            see("backlog_packets", backlog.packets as f64);
            see("backlog_bytes", backlog.bytes as f64);
            let counts = link.queue.counts();
            see("dropped", counts.dropped_total() as f64);
            see("marked", counts.marked_total() as f64);
            let before = self.links[index];
            see("ingress_bps", rate(counts.arrived_bytes, before.arrived_bytes, elapsed));
            see("throughput_bps", rate(counts.delivered_bytes, before.delivered_bytes, elapsed));
            see("delivered_bytes", counts.delivered_bytes as f64);
            let sojourns = link.probe.sojourn.total();
            let (packets, seconds) =
                (sojourns.0 - before.sojourns.0, sojourns.1 - before.sojourns.1);
            if packets > 0 {
                see("sojourn_mean_s", seconds / packets as f64);
                see("sojourn_max_s", std::mem::take(&mut link.probe.recent_max).as_secs_f64());
            }
            self.links[index] = LinkCounts {
                arrived_bytes: counts.arrived_bytes,
                delivered_bytes: counts.delivered_bytes,
                sojourns,
            };
            if let Some((meter, before)) = &mut self.capacity[index] {
                let bits = meter.bits(time + Span::from_nanos(1));
                see("capacity_bps", if elapsed > 0.0 { (bits - *before) / elapsed } else { 0.0 });
                *before = bits;
            }
            link.queue.observe(&mut see);
            if let Some(egress) = &link.egress {
                egress.observe(&mut see);
            }
        }
        self.last = time;
    }
}

/// The samples so far.
#[derive(Default)]
pub(crate) struct Series {
    pub samples: Vec<Sample>,
    last: Time,
    links: LinkSeries,
    acknowledged: Vec<u64>,
    received: Vec<u64>,
}

impl Series {
    /// The links' sums of sojourn times have begun again.
    pub fn restart_sojourns(&mut self) {
        self.links.restart_sojourns();
    }

    pub fn sample(&mut self, simulation: &mut Simulation) {
        let time = simulation.now;
        let elapsed = time.saturating_since(self.last).as_secs_f64();
        self.last = time;
        self.acknowledged.resize(simulation.flows.len(), 0);
        self.received.resize(simulation.datagrams.len(), 0);
        self.links.sample(time, &mut simulation.links, &mut self.samples);
        if !simulation.scenario.record.flows {
            return;
        }
        for (index, flow) in simulation.flows.iter().enumerate() {
            let is_gone = flow.is_transient && flow.finish.is_some();
            if time < flow.start || is_gone {
                continue;
            }
            let subject = Subject::Flow(index as u32);
            let samples = &mut self.samples;
            let mut see = |quantity, value| samples.push(Sample { time, subject, quantity, value });
            see("cwnd_bytes", flow.sender.cwnd() as f64);
            see("in_flight_bytes", flow.sender.bytes_in_flight() as f64);
            if let Some(srtt) = flow.sender.srtt() {
                see("smoothed_rtt_s", srtt.as_secs_f64());
            }
            flow.sender.observe(&mut see);
            let acknowledged = flow.sender.stats().bytes_acked;
            see("goodput_bps", rate(acknowledged, self.acknowledged[index], elapsed));
            self.acknowledged[index] = acknowledged;
        }
        for (index, flow) in simulation.datagrams.iter().enumerate() {
            let subject = Subject::Flow(index as u32 | DATAGRAMS);
            let value = rate(flow.received_bytes, self.received[index], elapsed);
            self.samples.push(Sample { time, subject, quantity: "goodput_bps", value });
            self.received[index] = flow.received_bytes;
        }
    }
}

/// Bits per second between two byte counts; 0 over no time.
fn rate(now: u64, before: u64, elapsed: f64) -> f64 {
    if elapsed > 0.0 { (now - before) as f64 * 8.0 / elapsed } else { 0.0 }
}
