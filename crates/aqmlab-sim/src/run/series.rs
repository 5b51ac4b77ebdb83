//! Recording level `series`: a sample of everything at regular times.

use aqmlab_core::Time;

use super::simulation::Simulation;
use crate::endpoints::datagram::DATAGRAMS;
use crate::network::series::{LinkSeries, Sample, Subject, rate};

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
        self.links.sample(time, &mut simulation.network, &mut self.samples);
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
