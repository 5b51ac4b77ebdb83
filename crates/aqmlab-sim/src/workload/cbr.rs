//! Constant bit rate of datagrams without answers: load that does not respond to congestion.
//!
//! # Sources
//! RFC 7928, sections 5.3 and 9.1; ns-2's Application/Traffic/CBR.
//!
//! # Differences
//! 1. The gaps are exact: fractions of a nanosecond are carried over to the next packet. With
//!    `vary`, their mean is exact.

use aqmlab_core::{Bytes, Component, Rate, Span, Stream, params};

use super::Workload;
use crate::network::MAX_PACKET;
use crate::network::wire::RateClock;
use crate::workload::app::{App, Context, Direction};

params! {
    /// Datagrams at a constant rate.
    pub struct CbrParams {
        /// Bits per second on the wire.
        rate: Rate = Rate::from_bps(1_000_000),
            in Rate::from_bps(1) => Rate::from_bps(1_000_000_000_000),
            source "this program";
        /// Size of a packet on the wire.
        packet: Bytes = Bytes::new(1000), in Bytes::new(1) => Bytes::new(MAX_PACKET),
            source "this program";
        /// Largest deviation of the gap between two packets, as a share of its mean;
        /// uniform.
        vary: f64 = 0.0, in 0.0 => 1.0, source "ns-2, CBR's random_: 0.5";
    }
}

impl Component for CbrParams {
    const NAME: &'static str = "cbr";
    const SUMMARY: &'static str =
        "Datagrams at a constant bit rate that do not respond to congestion";
}

impl Workload for CbrParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let pace = RateClock::new(self.rate);
        let packet = self.packet.get() as u32;
        Some(Box::new(Cbr { pace, packet, vary: self.vary, gaps: streams("gap"), flow: 0 }))
    }
}

#[derive(Clone)]
struct Cbr {
    pace: RateClock,
    packet: u32,
    vary: f64,
    gaps: Stream,
    flow: u32,
}

impl App for Cbr {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(Direction::Forward, false);
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        cx.send_datagram(self.flow, self.packet);
        let mut gap = self.pace.transmit(self.packet);
        if self.vary > 0.0 {
            let factor = 1.0 + self.vary * (2.0 * self.gaps.uniform() - 1.0);
            gap = Span::from_secs_f64(gap.as_secs_f64() * factor);
        }
        cx.wake_after(gap);
    }
}
