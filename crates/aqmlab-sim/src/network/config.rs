//! Configuration of a link.

use aqmlab_aqm::QueueConfig;
use aqmlab_core::{Bytes, Framing, Rate, Span};

use super::egress::{DriverParams, ShaperParams};
use crate::impairment::PropagationConfig;
use crate::rate::RateProcess;

/// A link of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Name of the link.
    pub name: String,
    /// Rate; the mean if it changes.
    pub rate: Rate,
    /// Propagation delay; the mean if it changes.
    pub delay: Span,
    /// Rate over time.
    pub process: RateProcess,
    /// Size of packets on the wire.
    pub framing: Framing,
    /// Propagation: delay, jitter, loss, duplication.
    pub way: PropagationConfig,
    /// Medium that several links share: the index of the first of them.
    pub medium: Option<u32>,
    /// Queue discipline.
    pub queue: QueueConfig,
    /// Shaper between queue and driver.
    pub shaper: Option<ShaperParams>,
    /// Driver with a FIFO between shaper and transmitter.
    pub driver: Option<DriverParams>,
    /// Thresholds of the backlog whose excursions are measured.
    pub thresholds: Vec<Bytes>,
}

impl LinkConfig {
    /// Returns the rate at which the link serves its queue: its own or, if that is lower, the one
    /// that the shaper or the discipline itself shapes to.
    pub fn service_rate(&self) -> Rate {
        let of_shaper = self.shaper.iter().flat_map(|shaper| [Some(shaper.rate), shaper.ceil]);
        let shaped = of_shaper.chain([self.queue.shapes_to()]).flatten();
        shaped.fold(self.rate, Rate::min)
    }
}
