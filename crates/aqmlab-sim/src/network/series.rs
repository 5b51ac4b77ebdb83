//! Recording level `series`: samples of links at regular times.

use aqmlab_core::{Span, Time};

use super::Network;
use super::packet::PacketStore;
use super::wire::Capacity;

/// Subject of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A link, by index.
    Link(u32),
    /// A flow, by index over all flows.
    Flow(u32),
    /// Emulator that carries the packets in real time.
    Emulator,
}

/// Single value of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time of the sample.
    pub time: Time,
    /// Subject of the sample.
    pub subject: Subject,
    /// Name of the quantity.
    pub quantity: &'static str,
    /// Value of the quantity.
    pub value: f64,
}

/// Counters of a link at the previous sample.
#[derive(Clone)]
struct LinkCounts {
    arrived_bytes: u64,
    delivered_bytes: u64,
    sojourns: (u64, f64),
    /// Capacity meter and its count, if the rate varies.
    capacity: Option<(Capacity, f64)>,
    rate_changes: u32,
}

/// State needed from earlier samples of links.
#[derive(Clone, Default)]
pub struct LinkSeries {
    last: Time,
    links: Vec<LinkCounts>,
}

impl LinkSeries {
    /// Adapts to a reset of the links' sums of sojourn times.
    pub fn restart_sojourns(&mut self) {
        for link in &mut self.links {
            link.sojourns = (0, 0.0);
        }
    }

    /// Samples every link.
    pub fn sample<S: PacketStore>(
        &mut self,
        time: Time,
        network: &mut Network<S>,
        mut to: impl FnMut(Sample),
    ) {
        let elapsed = time.saturating_since(self.last).as_secs_f64();
        if self.links.is_empty() {
            self.links.extend(network.links().map(|link| LinkCounts {
                arrived_bytes: 0,
                delivered_bytes: 0,
                sojourns: (0, 0.0),
                capacity: link.meter().map(|meter| (meter, 0.0)),
                rate_changes: link.rate_changes,
            }));
        }
        for ((index, link), last) in (0..).zip(network.links_mut()).zip(&mut self.links) {
            let subject = Subject::Link(index);
            let mut see = |quantity, value| to(Sample { time, subject, quantity, value });
            let backlog = link.queue.backlog();
            see("backlog_packets", backlog.packets as f64);
            see("backlog_bytes", backlog.bytes as f64);
            let counts = link.counts(time);
            see("dropped", counts.dropped_total() as f64);
            see("marked", counts.marked_total() as f64);
            see("ingress_bps", rate(counts.arrived_bytes, last.arrived_bytes, elapsed));
            see("throughput_bps", rate(counts.delivered_bytes, last.delivered_bytes, elapsed));
            see("delivered_bytes", counts.delivered_bytes as f64);
            let sojourns = link.probe.sojourn.total();
            let (packets, seconds) = (sojourns.0 - last.sojourns.0, sojourns.1 - last.sojourns.1);
            if packets > 0 {
                see("sojourn_mean_s", seconds / packets as f64);
                see("sojourn_max_s", std::mem::take(&mut link.probe.recent_max).as_secs_f64());
            }
            last.arrived_bytes = counts.arrived_bytes;
            last.delivered_bytes = counts.delivered_bytes;
            last.sojourns = sojourns;
            if let Some((meter, before)) = &mut last.capacity {
                if last.rate_changes != link.rate_changes {
                    last.rate_changes = link.rate_changes;
                    *meter = link.meter().expect("a meter is permanent");
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

/// Returns the rate in bit/s between two byte counts; 0 over no time.
pub(crate) fn rate(now: u64, before: u64, elapsed: f64) -> f64 {
    if elapsed > 0.0 { (now - before) as f64 * 8.0 / elapsed } else { 0.0 }
}
