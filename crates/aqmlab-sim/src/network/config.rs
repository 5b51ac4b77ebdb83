//! What a link is.

use aqmlab_aqm::QueueConfig;
use aqmlab_core::{Bytes, Framing, Rate, Span};

use super::egress::{DriverParams, ShaperParams};
use crate::impairment::PropagationConfig;
use crate::rate::RateProcess;

/// A link of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Its name.
    pub name: String,
    /// Its rate; the mean if it changes.
    pub rate: Rate,
    /// Its propagation delay; the mean if it changes.
    pub delay: Span,
    /// Its rate as it is stated.
    pub process: RateProcess,
    /// What packets take on the wire.
    pub framing: Framing,
    /// What happens to packets on their way.
    pub way: PropagationConfig,
    /// The medium on which it sends, if other links are there too: the index of
    /// the first of them.
    pub medium: Option<u32>,
    /// Its queue.
    pub queue: QueueConfig,
    /// A token bucket behind the queue.
    pub shaper: Option<ShaperParams>,
    /// A driver with a FIFO of its own behind that.
    pub driver: Option<DriverParams>,
    /// Backlogs whose excursions are measured.
    pub thresholds: Vec<Bytes>,
}
