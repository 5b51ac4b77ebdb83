//! CBR: a constant rate, independent of congestion.
//!
//! A baseline: what an unresponsive source does to a queue and to others. The
//! rate is that of all segments on the wire, with headers and with what is
//! sent again; losses, marks, delays and timeouts change nothing.
//!
//! # Sources
//! None; RFC 7567, section 3, describes the effect of such senders on networks.
//!
//! # Differences
//! 1. Lost data are retransmitted, as in any connection here: over a full link new data wait for
//!    retransmissions. A source of datagrams would leave the gap.
//! 2. The sender does not pace its first segments (`pacing_quantum`).

use aqmlab_core::{Component, Rate, params};

use super::control::{AckSample, CongestionControl, CongestionEvent, Setup};

params! {
    /// Parameters of a constant rate.
    pub struct CbrParams {
        /// The rate of all segments, in bits on the wire.
        rate: Rate = Rate::from_bps(1_000_000), in Rate::from_bps(1) => Rate::from_bps(10_000_000_000_000),
            source "the experiment's choice";
    }
}

impl Component for CbrParams {
    const NAME: &'static str = "cbr";
    const SUMMARY: &'static str = "a constant rate that responds to nothing";
}

/// More than any network holds, and far from overflow.
const NO_WINDOW: u64 = u64::MAX / 4;

/// The state of a constant rate: none.
#[derive(Clone, Debug)]
pub(crate) struct Cbr {
    rate: Rate,
}

impl Cbr {
    pub fn new(params: &CbrParams, _setup: &Setup) -> Self {
        Cbr { rate: params.rate }
    }
}

impl CongestionControl for Cbr {
    fn on_ack(&mut self, _sample: &AckSample) {}
    fn on_congestion(&mut self, _event: &CongestionEvent) {}
    fn on_undo(&mut self) {}
    #[inline]
    fn window(&self) -> u64 {
        NO_WINDOW
    }
    fn ssthresh(&self) -> u64 {
        NO_WINDOW
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
    fn recovers_by_itself(&self) -> bool {
        true
    }
}
