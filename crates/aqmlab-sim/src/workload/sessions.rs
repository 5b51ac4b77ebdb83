//! On/off greedy flows: each sends as fast as possible for a time over a new connection, then
//! pauses.
//!
//! Several of them cause congestion that starts and ends at set times: the phases of RFC 7928,
//! section 8.2.5.
//!
//! # Differences
//! 1. RFC 7928 specifies the number of flows in each phase, not how others stop. Here a session
//!    ends like a `close`: data already sent is still delivered. The next session is a new
//!    connection.

use aqmlab_core::{Component, Distribution, Result, Sampler, Span, Stream, params};

use super::{Workload, transfers::check_gap};
use crate::workload::app::{App, Context};

params! {
    /// On/off greedy flows.
    pub struct SessionsParams {
        /// Duration of a flow.
        on: Distribution<Span> = Distribution::constant(Span::from_secs(20)),
            source "RFC 7928, section 8.2.5: phases of 20 s";
        /// Time from the end of a flow to the next.
        off: Distribution<Span> = Distribution::constant(Span::from_secs(20)),
            source "RFC 7928, section 8.2.5: phases of 20 s";
        /// Number of consecutive flows; `none`: no end.
        number: Option<u64> = None, in Some(1) => Some(100_000_000), source "this program";
    }
}

impl Component for SessionsParams {
    const NAME: &'static str = "sessions";
    const SUMMARY: &'static str = "Greedy flows that alternately send and pause";

    fn check(&self) -> Result<()> {
        check_gap(&self.on).map_err(|error| error.at("on"))
    }
}

impl Workload for SessionsParams {
    fn is_finite(&self) -> bool {
        self.number.is_some()
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Sessions {
            on: Sampler::new(&self.on, streams("on")),
            off: Sampler::new(&self.off, streams("off")),
            left: self.number.unwrap_or(u64::MAX),
            flow: None,
            active: 0,
        }))
    }
}

#[derive(Clone)]
struct Sessions {
    on: Sampler<Span>,
    off: Sampler<Span>,
    left: u64,
    /// Current flow.
    flow: Option<u32>,
    /// Flows whose last bytes have not arrived.
    active: u64,
}

impl Sessions {
    fn begin(&mut self, cx: &mut Context) {
        self.left -= 1;
        self.active += 1;
        cx.activity().started += 1;
        self.flow = Some(cx.greedy());
        cx.wake_after(self.on.draw().max(Span::from_nanos(1)));
    }
}

impl App for Sessions {
    fn start(&mut self, cx: &mut Context) {
        self.begin(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        let Some(flow) = self.flow.take() else { return self.begin(cx) };
        if self.left > 0 {
            cx.wake_after(self.off.draw().max(Span::from_nanos(1)));
        }
        cx.stop(flow);
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        cx.close(flow);
        self.active -= 1;
        if self.left == 0 && self.active == 0 {
            cx.end();
        }
    }
}
