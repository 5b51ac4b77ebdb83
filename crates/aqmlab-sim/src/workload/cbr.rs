//! A constant bit rate in datagrams that nobody answers: load that does not
//! respond to congestion.
//!
//! # Sources
//! RFC 7928, sections 5.3 and 9.1; ns-2's Application/Traffic/CBR.
//!
//! # Differences
//! 1. The gaps are exact: what a packet's time leaves of a nanosecond is
//!    carried on to the next.

use aqmlab_core::{Bytes, Rate, Stream, params};

use super::Workload;
use crate::app::{App, Context, Direction};
use crate::link::MAX_PACKET;
use crate::wire::Transmitter;

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
    }
}

impl Workload for CbrParams {
    const NAME: &'static str = "cbr";
    const SUMMARY: &'static str = "Datagrams at a constant bit rate that respond to nothing";
    fn app(&self, _streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let pace = Transmitter::new(self.rate);
        Some(Box::new(Cbr { pace, packet: self.packet.get() as u32, flow: 0 }))
    }
}

struct Cbr {
    pace: Transmitter,
    packet: u32,
    flow: u32,
}

impl App for Cbr {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(Direction::Forward, false);
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        cx.send_datagram(self.flow, self.packet);
        cx.wake_at(cx.now() + self.pace.transmit(self.packet));
    }
}
