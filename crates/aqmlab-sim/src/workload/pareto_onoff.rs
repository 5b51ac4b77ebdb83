//! ns-2's Pareto on/off source: bursts at a constant rate, with lengths and
//! pauses from Pareto laws. Many of them together are self-similar.
//!
//! # Sources
//! ns-2.35, tools/pareto.cc (Application/Traffic/Pareto) and its manual,
//! section "Applications"; Willinger, Taqqu, Sherman and Wilson, Self-similarity
//! through high-variability (IEEE/ACM ToN 1997).
//!
//! # Differences
//! 1. Over TCP what is sent is `packet` bytes of payload each time, cut into
//!    segments; the rate counts those. ns-2's one-way TCP agents send one
//!    segment of a size of their own for each `packetSize_` bytes or part of
//!    them.

use aqmlab_core::{Bytes, Distribution, Rate, Sampler, Span, Stream, choices, params};

use super::Workload;
use crate::app::{App, Context, Direction};

choices! {
    /// What carries the packets.
    pub enum Carrier {
        /// Datagrams, whatever becomes of them.
        Udp = "udp",
        /// One connection that stays open.
        Tcp = "tcp",
    }
}

params! {
    /// A Pareto on/off source.
    pub struct ParetoOnOffParams {
        /// What carries the packets.
        over: Carrier = Carrier::Udp, source "this program";
        /// The rate in a burst.
        rate: Rate = Rate::from_bps(64_000),
            in Rate::from_bps(1) => Rate::from_bps(1_000_000_000_000),
            source "ns-2.35, rate_";
        /// The mean length of a burst.
        burst: Span = Span::from_millis(500), in Span::from_nanos(1) => Span::from_secs(100_000),
            source "ns-2.35, burst_time_";
        /// The mean pause between two.
        idle: Span = Span::from_millis(500), in Span::from_nanos(1) => Span::from_secs(100_000),
            source "ns-2.35, idle_time_";
        /// The shape of both laws; below 2 their variance is infinite.
        shape: f64 = 1.5, in 1.001 => 100.0, source "ns-2.35, shape_";
        /// Bytes of a packet: on the wire over UDP, of payload over TCP.
        packet: Bytes = Bytes::new(210), in Bytes::new(1) => Bytes::new(65_535),
            source "ns-2.35, packetSize_";
    }
}

impl Workload for ParetoOnOffParams {
    const NAME: &'static str = "pareto-onoff";
    const SUMMARY: &'static str = "ns-2's Pareto on/off source, over UDP or TCP";
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let interval = self.rate.transmission_time(self.packet).max(Span::from_nanos(1));
        let packets = self.burst.as_secs_f64() / interval.as_secs_f64();
        Some(Box::new(ParetoOnOff {
            over: self.over,
            packet: self.packet.get() as u32,
            interval,
            burst: Sampler::new(&Distribution::pareto(self.shape, packets), streams("burst")),
            idle: Sampler::new(&Distribution::pareto(self.shape, self.idle), streams("idle")),
            left: 0,
            flow: 0,
        }))
    }
}

struct ParetoOnOff {
    over: Carrier,
    packet: u32,
    interval: Span,
    /// Packets in a burst.
    burst: Sampler<f64>,
    idle: Sampler<Span>,
    left: u64,
    flow: u32,
}

impl ParetoOnOff {
    /// Time to the next packet: ns-2 has a pause before the first burst too.
    fn gap(&mut self) -> Span {
        let mut gap = self.interval;
        if self.left == 0 {
            self.left = (self.burst.draw() + 0.5).max(1.0) as u64;
            gap += self.idle.draw();
        }
        self.left -= 1;
        gap
    }
}

impl App for ParetoOnOff {
    fn start(&mut self, cx: &mut Context) {
        self.flow = match self.over {
            Carrier::Udp => cx.datagrams(Direction::Forward, false),
            Carrier::Tcp => cx.stream(Direction::Forward),
        };
        cx.wake_at(cx.now() + self.gap());
    }
    fn on_timer(&mut self, cx: &mut Context) {
        match self.over {
            Carrier::Udp => cx.send_datagram(self.flow, self.packet),
            Carrier::Tcp => {
                cx.write(self.flow, u64::from(self.packet));
            }
        }
        cx.wake_at(cx.now() + self.gap());
    }
}
