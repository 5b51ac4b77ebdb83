//! Round-trip probes: small packets echoed at once, which measure the round-trip time under load
//! (`rtt`), like `ping` and flent's UDP probes.
//!
//! # Sources
//! RFC 2681 (round-trip delay).

use std::collections::VecDeque;

use aqmlab_core::{Bytes, Component, Distribution, Result, Sampler, Span, Stream, Time, params};

use super::Workload;
use super::transfers::check_gap;
use crate::workload::app::{App, Context, Direction};

params! {
    /// Round-trip probes.
    pub struct ProbeParams {
        /// Time between two packets.
        gap: Distribution<Span> = Distribution::constant(Span::from_millis(200)),
            source "this program";
        /// Size of a packet on the wire.
        packet: Bytes = Bytes::new(84), in Bytes::new(1) => Bytes::new(65_535),
            source "iputils' ping: 56 bytes of data, ICMP and IP";
    }
}

impl Component for ProbeParams {
    const NAME: &'static str = "probe";
    const SUMMARY: &'static str = "Small packets that are echoed at once: latency under load";

    fn check(&self) -> Result<()> {
        check_gap(&self.gap).map_err(|error| error.at("gap"))
    }
}

impl Workload for ProbeParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Probe {
            gap: Sampler::new(&self.gap, streams("gap")),
            echo: Echo::new(self.packet.get() as u32),
        }))
    }
}

#[derive(Clone)]
struct Probe {
    gap: Sampler<Span>,
    echo: Echo,
}

impl App for Probe {
    fn start(&mut self, cx: &mut Context) {
        self.echo.open(cx);
        let first = self.gap.draw();
        cx.wake_after(first);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        cx.activity().started += 1;
        self.echo.send(cx);
        cx.wake_after(self.gap.draw());
    }
    fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) {
        if let Some((_, round_trip)) = self.echo.on_datagram(flow, sent, cx) {
            cx.activity().complete(self.echo.packet.into(), "rtt", round_trip);
        }
    }
}

/// Probe packets and their echoes in flight.
#[derive(Clone, Default)]
pub(super) struct Echo {
    packet: u32,
    there: u32,
    back: u32,
    /// Sending times of packets without an echo.
    asked: VecDeque<Time>,
    /// Sending time of each echo, with that of the packet it answers.
    echoes: VecDeque<(Time, Time)>,
}

/// Limit of packets and of echoes in flight; older ones count as lost.
const UNDER_WAY: usize = 4096;

impl Echo {
    pub fn new(packet: u32) -> Self {
        Echo { packet, ..Echo::default() }
    }
    pub fn open(&mut self, cx: &mut Context) {
        self.there = cx.datagrams(Direction::Forward, true);
        self.back = cx.datagrams(Direction::Backward, true);
    }
    pub fn has(&self, flow: u32) -> bool {
        flow == self.there || flow == self.back
    }
    pub fn send(&mut self, cx: &mut Context) {
        bounded(&mut self.asked, cx.now());
        cx.send_datagram(self.there, self.packet);
    }
    /// Echoes an arrived packet. For an echo, returns the sending time of its packet and the
    /// round-trip time. Duplicates are ignored.
    pub fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) -> Option<(Time, Span)> {
        if flow == self.there {
            bounded(&mut self.echoes, (cx.now(), sent));
            cx.send_datagram(self.back, self.packet);
            return None;
        }
        // Of echoes sent at the same time the first. (Which one a binary search of a ring finds
        // depends on where the ring begins in memory, and so on copies of the run.)
        let place = self.echoes.partition_point(|(echoed, _)| *echoed < sent);
        self.echoes.get(place).filter(|(echoed, _)| *echoed == sent)?;
        let (_, asked) = self.echoes.remove(place)?;
        let waiting = self.asked.partition_point(|each| *each < asked);
        self.asked.get(waiting).filter(|each| **each == asked)?;
        self.asked.remove(waiting);
        Some((asked, cx.now() - asked))
    }
    pub fn close(&self, cx: &mut Context) {
        cx.close(self.there);
        cx.close(self.back);
    }
}

/// Appends to the packets in flight, and drops the oldest beyond the limit.
fn bounded<T>(under_way: &mut VecDeque<T>, new: T) {
    under_way.push_back(new);
    if under_way.len() > UNDER_WAY {
        under_way.pop_front();
    }
}
