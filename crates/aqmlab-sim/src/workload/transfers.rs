//! Finite flows: each transfers a size drawn from a distribution, over a new connection.
//!
//! The completion time of a flow is the time from its SYN to the arrival of its last byte; its
//! start-up time, from the SYN until data may be sent (RFC 7928, sections 2.1 and 2.2).
//!
//! # Sources
//! RFC 7928, sections 2.1, 2.2 and 5.1.2.
//!
//! # Differences
//! 1. The side that sends the data opens the connection. With requests before
//!    the data, see `requests`.

use aqmlab_core::{
    Bytes, Component, Distribution, Error, Result, Sampler, Span, Stream, choices, params,
};

use super::Workload;
use crate::workload::app::{App, Context};

choices! {
    /// Reference of the gaps between flows.
    pub enum Timing {
        /// From start to start, regardless of the flows' progress.
        Open = "open",
        /// From the end of one flow to the start of the next.
        Closed = "closed",
    }
}

params! {
    /// Finite flows.
    pub struct TransfersParams {
        /// Bytes that each flow transfers.
        size: Distribution<Bytes> = Distribution::constant(Bytes::new(100_000)),
            source "this program";
        /// Time between two flows; `exponential` makes their starts a Poisson process.
        gap: Distribution<Span> = Distribution::constant(Span::from_secs(1)),
            source "this program";
        /// Reference of the gaps: from start to start, or from an end to the next start.
        timing: Timing = Timing::Open, source "this program";
        /// Number of flows; `none`: no end.
        number: Option<u64> = None, in Some(1) => Some(100_000_000), source "this program";
    }
}

impl Component for TransfersParams {
    const NAME: &'static str = "transfers";
    const SUMMARY: &'static str = "Flows that start and end, with sizes from a distribution";

    fn check(&self) -> Result<()> {
        check_size(&self.size).map_err(|error| error.at("size"))?;
        check_gap(&self.gap).map_err(|error| error.at("gap"))
    }
}

impl Workload for TransfersParams {
    fn is_finite(&self) -> bool {
        self.number.is_some()
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Transfers {
            size: Sampler::new(&self.size, streams("size")),
            gap: Sampler::new(&self.gap, streams("gap")),
            is_open: self.timing == Timing::Open,
            left: self.number.unwrap_or(u64::MAX),
            active: 0,
        }))
    }
}

/// Gaps that are always nothing would never let time pass.
pub(super) fn check_gap(gap: &Distribution<Span>) -> Result<()> {
    if gap.mean() >= 1.0 {
        return Ok(());
    }
    Err(Error::not_allowed(format!("{gap:?}"), "a mean of at least 1ns: time has to pass"))
}

/// Sizes of no bytes at all transfer nothing.
pub(super) fn check_size(size: &Distribution<Bytes>) -> Result<()> {
    if size.mean() >= 1.0 {
        return Ok(());
    }
    Err(Error::not_allowed(format!("{size:?}"), "a mean of at least 1b"))
}

/// The most that is ever sent at once: no run is long enough for it, and a
/// connection can count many of them.
const MAX_SIZE: u64 = 1 << 50;

/// At least one byte: a flow without packets measures nothing.
pub(super) fn draw_size(sampler: &mut Sampler<Bytes>) -> u64 {
    sampler.draw().get().clamp(1, MAX_SIZE)
}

#[derive(Clone)]
struct Transfers {
    size: Sampler<Bytes>,
    gap: Sampler<Span>,
    is_open: bool,
    left: u64,
    active: u64,
}

impl App for Transfers {
    fn start(&mut self, cx: &mut Context) {
        let first = self.gap.draw();
        cx.wake_after(first);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        self.left -= 1;
        self.active += 1;
        let size = draw_size(&mut self.size);
        cx.activity().started += 1;
        cx.transfer(size);
        if self.is_open && self.left > 0 {
            cx.wake_after(self.gap.draw());
        }
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        cx.close(flow);
        self.active -= 1;
        if self.left == 0 && self.active == 0 {
            cx.end();
        } else if !self.is_open {
            cx.wake_after(self.gap.draw());
        }
    }
}
