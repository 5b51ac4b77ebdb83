//! Impairments of packets between the transmitter and the far end, as stated in a scenario, with
//! their random draws.
//!
//! # Sources
//! - tc-netem(8) and Linux's `sch_netem.c`: `loss random`, `loss gemodel p r
//!   1-h 1-k`, `duplicate`, `delay TIME JITTER distribution`, `reorder`; iproute2's
//!   `pareto.c` and `paretonormal.c`: the Pareto table is that of shape 3,
//!   shifted to mean 0 and scaled by 4/3, cut off at 4; the other is a quarter
//!   of the normal one and three quarters of it, at the same quantile.
//! - mahimahi's mm-onoff (its loss_queue.cc): a link with outages.
//! - Gilbert (1960) and Elliott (1963), "Estimates of Error Rates for Codes
//!   on Burst-Noise Channels".
//!
//! # Differences
//! 1. Packets that netem would reorder due to jitter keep their order unless `reordering` is set: a
//!    packet arrives no earlier than the one before it. netem needs a FIFO as child for that, or a
//!    `rate`.
//! 2. `correlation` preserves mean and distribution: with that probability a packet has the draw of
//!    the one before it, otherwise a new one, so the autocorrelation at a distance of k packets is
//!    correlation^k. netem computes a weighted sum of the last number and a new one, which draws
//!    all values towards the middle: its `loss 1% 25%` loses two packets in a million (by its
//!    formula), and its jitter, which takes that number modulo the spread or the length of a table,
//!    has almost no correlation.
//! 3. Distributions are computed, not looked up in tables of 16 bits. The normal distribution is
//!    truncated at 4 deviations; netem's table ends at -4 and 3.52.
//! 4. A lost packet is not duplicated, and its duplicate not lost; in netem a simultaneous loss and
//!    duplication result in one packet, and losses of duplicates are drawn separately.
//! 5. Slots begin at the time of the packet that has to wait for one, as in netem; their lengths
//!    are uniform, and netem's tables are not modelled. Packets keep their order. netem with a delay
//!    draws the slot again at each event until it is later than the delay of the next packet.
//! 6. mahimahi truncates the times of outages to whole milliseconds; the simulator does not.

mod delay;
mod jitter;
mod loss;
mod slot;

use aqmlab_core::Stream;

pub use self::delay::{DelayCsvParams, DelayProcess, DelayStepsParams};
pub(crate) use self::jitter::JitterState;
pub use self::jitter::{Distribution, JitterParams};
pub(crate) use self::loss::LossState;
pub use self::loss::{
    Chance, ChanceParams, GilbertElliottParams, ListedLossParams, Loss, OutageParams,
};
pub use self::slot::SlotParams;
pub(crate) use self::slot::SlotState;

/// Propagation of a link as stated in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct PropagationConfig {
    /// Delay.
    pub delay: DelayProcess,
    /// Random delay in addition.
    pub jitter: Option<JitterParams>,
    /// Loss process.
    pub loss: Option<Loss>,
    /// Duplication.
    pub duplicate: ChanceParams,
    /// True if packets may overtake each other.
    pub reordering: bool,
    /// Slots of arrivals.
    pub slot: Option<SlotParams>,
}

/// Limit of the correlation: at 1 all packets would have the outcome of the first.
const MAX_CORRELATION: f64 = 0.9999;

/// Correlated draws: each is the previous one with some probability, otherwise a new one.
///
/// The draws have the distribution of independent ones, and an autocorrelation of correlation^k at a
/// distance of k draws.
#[derive(Clone, Default)]
struct Draws {
    last: Option<f64>,
}

impl Draws {
    fn next(
        &mut self,
        correlation: f64,
        stream: &mut Stream,
        new: impl FnOnce(&mut Stream) -> f64,
    ) -> f64 {
        if correlation == 0.0 {
            return new(stream);
        }
        let last = self.last.filter(|_| stream.uniform() < correlation);
        let value = last.unwrap_or_else(|| new(stream));
        self.last = Some(value);
        value
    }
}
