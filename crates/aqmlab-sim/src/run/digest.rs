//! Digest of the results of a run.

use super::results::{FlowResult, RunResult};
use crate::endpoints::Direction;
use crate::network::LinkResult;
use crate::network::losses::FlowLosses;
use crate::network::probe::TimeSummary;
use crate::network::series::Subject;
use crate::workload::quantities::Quantity;

impl RunResult {
    /// Returns the FNV-1a hash of the tables of a run. The number of events is excluded: it is
    /// internal to the engine.
    pub fn digest(&self) -> u64 {
        let mut sum = Digest(0xcbf2_9ce4_8422_2325);
        sum.words(&[self.replication, self.end.as_nanos()]);
        self.links.iter().for_each(|link| sum.link(link));
        self.flows.iter().for_each(|flow| sum.flow(flow));
        for group in &self.groups {
            sum.words(&[group.started, group.completed, group.bytes]);
            for traffic in group.traffic.iter().flatten() {
                sum.words(&[traffic.sent_bytes.unwrap_or(u64::MAX), traffic.delivered_bytes]);
                sum.words(&traffic.arrived);
                sum.losses(&traffic.losses);
            }
            group.times.iter().for_each(|(quantity, times)| {
                sum.quantity(quantity);
                sum.times(times);
            });
            group.values.iter().for_each(|(quantity, value)| {
                sum.quantity(quantity);
                sum.number(*value);
            });
        }
        for finding in &self.findings {
            sum.text(&format!("{finding:?}"));
        }
        for sample in &self.samples {
            let subject = match sample.subject {
                Subject::Link(index) => u64::from(index),
                Subject::Flow(index) => u64::from(index) | 1 << 32,
                Subject::Emulator => u64::MAX,
            };
            sum.words(&[sample.time.as_nanos(), subject]);
            sum.text(sample.quantity);
            sum.number(sample.value);
        }
        sum.0
    }
}

struct Digest(u64);

impl Digest {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| word.to_le_bytes().iter().for_each(|byte| self.byte(*byte)));
    }
    fn text(&mut self, text: &str) {
        text.bytes().chain([0]).for_each(|byte| self.byte(byte));
    }
    fn number(&mut self, number: f64) {
        // All NaN values are equal.
        self.words(&[if number.is_nan() { u64::MAX } else { number.to_bits() }]);
    }
    fn quantity(&mut self, quantity: &Quantity) {
        self.text(quantity.name);
        self.text(quantity.direction.map_or("", Direction::name));
    }
    fn times(&mut self, times: &TimeSummary) {
        self.words(&[times.count, times.min.as_nanos(), times.max.as_nanos()]);
        self.number(times.mean);
        times.quantiles.iter().for_each(|quantile| self.number(*quantile));
        times.buckets.iter().for_each(|(value, count)| self.words(&[*value, *count]));
    }
    fn losses(&mut self, losses: &FlowLosses) {
        for lost in [&losses.queues, &losses.links] {
            self.words(&[lost.data, lost.acks, lost.syns]);
        }
    }
    fn link(&mut self, link: &LinkResult) {
        let counts = &link.counts;
        self.words(&[counts.arrived, counts.arrived_bytes, counts.delivered]);
        self.words(&[counts.delivered_bytes, counts.dropped_bytes, link.dropped_queued]);
        self.words(&counts.dropped);
        self.words(&counts.marked);
        self.times(&link.sojourn);
        self.times(&link.loss_intervals);
        self.words(&[link.backlog_max.packets, link.backlog_max.bytes]);
        self.number(link.backlog_mean[0]);
        self.number(link.backlog_mean[1]);
        self.number(link.capacity);
        self.number(link.utilisation);
        let way = &link.way;
        self.words(&[way.lost, way.lost_bytes, way.duplicated, way.reordered]);
        if let Some(driver) = &link.driver {
            self.words(&[driver.times.count, driver.times.max.as_nanos(), driver.max_bytes]);
            self.number(driver.times.mean());
        }
        self.words(&[link.loss_events]);
        self.number(link.loss_event_flows);
        self.number(link.loss_event_bulk_flows);
        for excursions in &link.excursions {
            self.words(&[excursions.threshold.get(), excursions.count]);
            self.words(&[excursions.longest.as_nanos(), excursions.total.as_nanos()]);
        }
        for packet in &link.packets {
            self.words(&[u64::from(packet.flow), u64::from(packet.size)]);
            self.words(&[packet.arrival.as_nanos(), packet.end.as_nanos()]);
            self.text(&format!("{} {:?} {}", packet.is_ack, packet.dropped, packet.ce));
        }
    }
    fn flow(&mut self, flow: &FlowResult) {
        let finish = flow.finish.map_or(u64::MAX, |finish| finish.as_nanos());
        self.words(&[u64::from(flow.group), u64::from(flow.index)]);
        self.words(&[flow.start.as_nanos(), finish, flow.size.unwrap_or(u64::MAX)]);
        self.number(flow.goodput);
        self.number(flow.throughput);
        let stats = flow.stats.unwrap_or_default();
        self.words(&[flow.sent, stats.retransmissions, stats.timeouts]);
        self.words(&[stats.fast_retransmits, stats.tail_probes, stats.undone]);
        self.words(&[stats.ecn_reductions, flow.delivered]);
        self.words(&flow.arrived);
        self.words(&[flow.direction as u64]);
        self.losses(&flow.losses);
        if let Some((mean, max)) = flow.delays {
            self.number(mean);
            self.words(&[max.as_nanos()]);
        }
        if let Some(datagrams) = &flow.datagrams {
            self.words(&[datagrams.sent, datagrams.sent_bytes]);
            self.words(&[datagrams.received, datagrams.received_bytes]);
            self.times(&datagrams.delay);
            self.number(datagrams.jitter);
        }
    }
}
