//! A datagram whenever the metronome beats.
//!
//! # Sources
//! The walk in CONTRIBUTING.md.
//!
//! # Differences
//! None.

use aqmlab_core::{Bytes, Component, Span, Stream, params};

use super::Workload;
use crate::workload::app::{App, Context, Direction};

params! {
    /// Datagrams at regular times.
    pub struct MetronomeParams {
        /// The time from one to the next.
        beat: Span = Span::from_millis(500), in Span::from_micros(1) => Span::from_secs(3600),
            source "the walk in CONTRIBUTING.md";
        /// Size of a packet on the wire.
        packet: Bytes = Bytes::new(200), in Bytes::new(1) => Bytes::new(1500),
            source "the walk in CONTRIBUTING.md";
    }
}

impl Component for MetronomeParams {
    const NAME: &'static str = "metronome";
    const SUMMARY: &'static str = "Datagrams at regular times";
}

impl Workload for MetronomeParams {
    fn app(&self, _streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let packet = self.packet.get() as u32;
        Some(Box::new(Metronome { beat: self.beat, packet, flow: 0 }))
    }
}

#[derive(Clone)]
struct Metronome {
    beat: Span,
    packet: u32,
    flow: u32,
}

impl App for Metronome {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(Direction::Forward, false);
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        cx.send_datagram(self.flow, self.packet);
        cx.wake_after(self.beat);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, run};

    #[test]
    fn it_beats_from_the_start_to_the_end() {
        let text = "duration = \"10s\"\n\
                    [links.down]\nrate = \"10mbit\"\n[links.up]\nrate = \"10mbit\"\n\
                    [flows.app]\npath = \"down\"\nreturn_path = \"up\"\nworkload = \"metronome\"\n";
        let scenario = Scenario::parse(text, "walk", &[]).unwrap();
        let result = run(&scenario, 0);
        assert_eq!(result.flows[0].datagrams.as_ref().unwrap().sent, 21);
    }
}
