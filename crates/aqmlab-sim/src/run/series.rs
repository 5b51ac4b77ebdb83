//! Recording level `series`: samples at regular times.

use aqmlab_core::Time;

use super::simulation::Simulation;
use crate::endpoints::flow::Flow;
use crate::network::log::Log;
use crate::network::series::{LinkSeries, Sample, Subject, rate};

/// Samples so far.
#[derive(Clone, Default)]
pub(crate) struct Series {
    pub samples: Log<Sample>,
    last: Time,
    links: LinkSeries,
    /// By flow, delivered bytes at the previous sample.
    delivered: Vec<u64>,
}

impl Series {
    /// Adapts to a reset of the links' sums of sojourn times.
    pub fn restart_sojourns(&mut self) {
        self.links.restart_sojourns();
    }

    pub fn sample(&mut self, simulation: &mut Simulation) {
        let time = simulation.now;
        let elapsed = time.saturating_since(self.last).as_secs_f64();
        self.last = time;
        self.delivered.resize(simulation.flows.len(), 0);
        let samples = &mut self.samples;
        self.links.sample(time, &mut simulation.network, |sample| samples.push(sample));
        if !simulation.scenario.record.flows {
            return;
        }
        // Flows of datagrams are last.
        for of_datagrams in [false, true] {
            for (index, flow) in simulation.flows.iter().enumerate() {
                let is_gone = flow.is_transient && flow.finish.is_some();
                if flow.is_of_datagrams() == of_datagrams && time >= flow.start && !is_gone {
                    self.sample_flow(index, flow, time, elapsed);
                }
            }
        }
    }

    fn sample_flow(&mut self, index: usize, flow: &Flow, time: Time, elapsed: f64) {
        let subject = Subject::Flow(index as u32);
        let samples = &mut self.samples;
        let mut see = |quantity, value| samples.push(Sample { time, subject, quantity, value });
        flow.observe(&mut see);
        let delivered = flow.delivered();
        see("goodput_bps", rate(delivered, self.delivered[index], elapsed));
        self.delivered[index] = delivered;
    }
}
