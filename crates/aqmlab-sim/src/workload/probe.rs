//! Small packets that are sent back at once: the round-trip time that others
//! see while there is load (`rtt`). As `ping` does, and as flent's UDP probes.
//!
//! # Sources
//! RFC 2681 (round-trip delay).

use std::collections::VecDeque;

use aqmlab_core::{Bytes, Distribution, Result, Sampler, Span, Stream, Time, params};

use super::Workload;
use super::transfers::check_gap;
use crate::app::{App, Context, Direction};

params! {
    /// Packets that are sent back.
    pub struct ProbeParams {
        /// Time between two packets.
        gap: Distribution<Span> = Distribution::constant(Span::from_millis(200)),
            source "this program";
        /// Size of a packet on the wire.
        packet: Bytes = Bytes::new(84), in Bytes::new(1) => Bytes::new(65_535),
            source "iputils' ping: 56 bytes of data, ICMP and IP";
    }
}

impl Workload for ProbeParams {
    const NAME: &'static str = "probe";
    const SUMMARY: &'static str = "Packets that are sent back at once: latency under load";
    fn check(&self) -> Result<()> {
        check_gap(&self.gap).map_err(|error| error.at("gap"))
    }
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Probe {
            gap: Sampler::new(&self.gap, streams("gap")),
            packet: self.packet.get() as u32,
            there: 0,
            back: 0,
            echoes: VecDeque::new(),
        }))
    }
}

struct Probe {
    gap: Sampler<Span>,
    packet: u32,
    there: u32,
    back: u32,
    /// When each echo was sent, and what it answers.
    echoes: VecDeque<(Time, Time)>,
}

/// So many echoes may be on their way; older ones are lost.
const ECHOES: usize = 4096;

impl App for Probe {
    fn start(&mut self, cx: &mut Context) {
        self.there = cx.datagrams(Direction::Forward, true);
        self.back = cx.datagrams(Direction::Backward, true);
        let first = self.gap.draw();
        cx.wake_at(cx.now() + first);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        cx.activity().started += 1;
        cx.send_datagram(self.there, self.packet);
        cx.wake_at(cx.now() + self.gap.draw());
    }
    fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) {
        if flow == self.there {
            self.echoes.push_back((cx.now(), sent));
            if self.echoes.len() > ECHOES {
                self.echoes.pop_front();
            }
            cx.send_datagram(self.back, self.packet);
        } else if let Ok(place) = self.echoes.binary_search_by_key(&sent, |(echoed, _)| *echoed)
            && let Some((_, asked)) = self.echoes.remove(place)
        {
            let round_trip = cx.now() - asked;
            let activity = cx.activity();
            activity.completed += 1;
            activity.bytes += u64::from(self.packet);
            activity.record("rtt", round_trip);
        }
    }
}
