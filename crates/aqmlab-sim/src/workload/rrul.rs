//! Realtime response under load: flent's test. Bulk flows in both directions, and round-trip times
//! of small packets during them.
//!
//! Probes run from the start. The flows start after `lead` and run for `length`; the test ends
//! after another `lead`. Recorded are the round-trip times without flows (`rtt_idle`) and with them
//! (`rtt`), over all probes. Reported are the goodputs `download` (along the group's `path`) and
//! `upload` of all flows together, in bit/s. `started`, `completed` and bytes refer to the flows.
//!
//! # Sources
//! flent, tests rrul and rrul_be: four flows in each direction in the classes CS0, CS1, CS5 and EF;
//! UDP round trips in EF, CS1 and CS0, and ICMP's.
//!
//! # Differences
//! 1. UDP probes are sent every `gap`, like ICMP's; netperf sends one when it receives the previous
//!    answer, and stops at the first loss.
//! 2. The class of a flow applies to both directions.

use aqmlab_core::{Bytes, Component, Error, Result, Span, Stream, Time, params};

use super::Workload;
use super::probe::Echo;
use crate::endpoints::Dscp;
use crate::workload::agenda::Agenda;
use crate::workload::app::{App, Context, Direction};

params! {
    /// Flent's test of the response under load.
    pub struct RrulParams {
        /// Bulk flows in each direction.
        flows: u64 = 4, in 1 => 10_000, source "flent, rrul";
        /// Service classes of the flows, in turn.
        classes: Vec<Dscp> = vec![Dscp(0), Dscp(8), Dscp(40), Dscp(46)], source "flent, rrul";
        /// Service classes of the probes, one probe for each; ICMP's is the last.
        probes: Vec<Dscp> = vec![Dscp(46), Dscp(8), Dscp(0), Dscp(0)], source "flent, rrul";
        /// Time between two packets of a probe.
        gap: Span = Span::from_millis(200), in Span::from_micros(1) => Span::from_secs(3600),
            source "flent, step size";
        /// Size of a probe on the wire.
        packet: Bytes = Bytes::new(84), in Bytes::new(1) => Bytes::new(65_535),
            source "iputils' ping: 56 bytes of data, ICMP and IP";
        /// Time with probes only, before the flows and after them.
        lead: Span = Span::from_secs(5), in Span::ZERO => Span::from_secs(10_000_000),
            source "flent, delay";
        /// Duration of the flows.
        length: Span = Span::from_secs(60), in Span::from_millis(1) => Span::from_secs(10_000_000),
            source "flent, length";
    }
}

impl Component for RrulParams {
    const NAME: &'static str = "rrul";
    const SUMMARY: &'static str =
        "Flent's response under load: bulk flows in both directions, and probes";

    fn check(&self) -> Result<()> {
        for (key, classes) in [("classes", &self.classes), ("probes", &self.probes)] {
            if classes.is_empty() {
                return Err(Error::not_allowed("[]", "at least one class").at(key));
            }
        }
        Ok(())
    }
}

impl Workload for RrulParams {
    fn is_finite(&self) -> bool {
        true
    }

    fn app(&self, _streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let echo = |_: &Dscp| Echo::new(self.packet.get() as u32);
        Some(Box::new(Test {
            echoes: self.probes.iter().map(echo).collect(),
            params: self.clone(),
            flows: Vec::new(),
            agenda: Agenda::default(),
            load: None,
            seen: Time::ZERO,
            bytes: [0; 2],
        }))
    }
}

#[derive(Clone)]
enum RrulTask {
    Probe,
    Load,
    Unload,
    End,
}

#[derive(Clone)]
struct Test {
    params: RrulParams,
    echoes: Vec<Echo>,
    flows: Vec<(Direction, u32)>,
    agenda: Agenda<RrulTask>,
    /// Start time of the flows.
    load: Option<Time>,
    /// Time of the last count, and the bytes down and up at that time.
    seen: Time,
    bytes: [u64; 2],
}

impl Test {
    fn load(&mut self, cx: &mut Context) {
        self.load = Some(cx.now());
        for direction in [Direction::Forward, Direction::Backward] {
            for class in self.params.classes.iter().cycle().take(self.params.flows as usize) {
                cx.class = Some(*class);
                let flow = cx.stream(direction);
                cx.fill(flow);
                self.flows.push((direction, flow));
            }
        }
        cx.activity().started += self.flows.len() as u64;
    }

    /// Counts the arrived bytes.
    fn count(&mut self, cx: &Context) {
        let of = |way: Direction| self.flows.iter().filter(move |(each, _)| *each == way);
        self.bytes = [Direction::Forward, Direction::Backward]
            .map(|way| of(way).map(|(_, flow)| cx.arrived(*flow)).sum());
        self.seen = cx.now();
    }

    fn unload(&mut self, cx: &mut Context) {
        self.count(cx);
        let activity = cx.activity();
        activity.completed += self.flows.len() as u64;
        activity.bytes += self.bytes.iter().sum::<u64>();
        for (_, flow) in self.flows.drain(..) {
            cx.take_back(flow);
            cx.close(flow);
        }
    }
}

impl App for Test {
    fn start(&mut self, cx: &mut Context) {
        for (echo, class) in self.echoes.iter_mut().zip(&self.params.probes) {
            cx.class = Some(*class);
            echo.open(cx);
        }
        let RrulParams { lead, length, .. } = self.params;
        let start = cx.now();
        self.agenda.add(start + lead, RrulTask::Load, cx);
        self.agenda.add(start + lead + length, RrulTask::Unload, cx);
        self.agenda.add(start + lead + length + lead, RrulTask::End, cx);
        self.agenda.add(start, RrulTask::Probe, cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        while let Some(step) = self.agenda.due(cx) {
            match step {
                RrulTask::Load => self.load(cx),
                RrulTask::Unload => self.unload(cx),
                RrulTask::Probe => {
                    self.echoes.iter_mut().for_each(|echo| echo.send(cx));
                    if !self.flows.is_empty() {
                        self.count(cx);
                    }
                    self.agenda.add(cx.now() + self.params.gap, RrulTask::Probe, cx);
                }
                RrulTask::End => {
                    self.echoes.iter().for_each(|echo| echo.close(cx));
                    return cx.end();
                }
            }
        }
    }
    fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) {
        let echo = self.echoes.iter_mut().find(|echo| echo.has(flow)).expect("it is of a probe");
        let Some((asked, round_trip)) = echo.on_datagram(flow, sent, cx) else { return };
        match self.load {
            Some(load) if asked > load + self.params.length => {}
            Some(load) if asked >= load => cx.activity().record("rtt", round_trip),
            _ => cx.activity().record("rtt_idle", round_trip),
        }
    }
    fn report(&self, _now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let Some(load) = self.load.filter(|load| self.seen > *load) else { return };
        let length = (self.seen - load).as_secs_f64();
        see("download", self.bytes[0] as f64 * 8.0 / length);
        see("upload", self.bytes[1] as f64 * 8.0 / length);
    }
}
