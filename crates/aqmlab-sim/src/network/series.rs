//! Recording level `series`: samples of links at regular times.

use aqmlab_core::{Span, Time};

use super::Network;
use super::packet::NetworkPacket;
use super::wire::Meter;

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A link, by index.
    Link(u32),
    /// A flow, by index over all flows.
    Flow(u32),
    /// What carries the packets, in real time.
    Emulator,
}

/// One number of one sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time of the change.
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
    /// How often their rates had changed then.
    rate_changes: Vec<u32>,
}

impl LinkSeries {
    /// The links' sums of sojourn times have begun again.
    pub fn restart_sojourns(&mut self) {
        for link in &mut self.links {
            link.sojourns = (0, 0.0);
        }
    }

    /// Takes a sample of every link.
    pub fn sample<P: NetworkPacket>(
        &mut self,
        time: Time,
        network: &mut Network<P>,
        to: &mut Vec<Sample>,
    ) {
        let elapsed = time.saturating_since(self.last).as_secs_f64();
        if self.links.is_empty() {
            self.links = network.links().map(|_| LinkCounts::default()).collect();
            let meters = network.links().map(|link| link.meter());
            self.capacity = meters.map(|meter| meter.map(|meter| (meter, 0.0))).collect();
            self.rate_changes = network.links().map(|link| link.rate_changes).collect();
        }
        for (index, link) in network.links_mut().enumerate() {
            let subject = Subject::Link(index as u32);
            let mut see = |quantity, value| to.push(Sample { time, subject, quantity, value });
            let backlog = link.queue.backlog();
            see("backlog_packets", backlog.packets as f64);
            see("backlog_bytes", backlog.bytes as f64);
            let counts = link.counts(time);
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
                if self.rate_changes[index] != link.rate_changes {
                    self.rate_changes[index] = link.rate_changes;
                    *meter = link.meter().expect("what had one has one");
                }
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

/// Bits per second between two byte counts; 0 over no time.
pub(crate) fn rate(now: u64, before: u64, elapsed: f64) -> f64 {
    if elapsed > 0.0 { (now - before) as f64 * 8.0 / elapsed } else { 0.0 }
}
