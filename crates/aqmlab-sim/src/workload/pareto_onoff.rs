//! ns-2's Pareto on/off source: bursts at a constant rate, with Pareto-distributed lengths and
//! pauses. The sum of many sources is self-similar.
//!
//! # Sources
//! ns-2.35, tools/pareto.cc (Application/Traffic/Pareto) and its manual,
//! section "Applications"; Willinger, Taqqu, Sherman and Wilson, Self-similarity
//! through high-variability (IEEE/ACM ToN 1997).
//!
//! # Differences
//! 1. Over TCP each write is `packet` bytes of payload, split into segments; the rate counts
//!    payload. ns-2's one-way TCP agents send one segment of their own size for each `packetSize_`
//!    bytes or part of them.

use aqmlab_core::{Bytes, Component, Distribution, Rate, Sampler, Span, Stream, choices, params};

use super::Workload;
use crate::workload::app::{App, Context, Direction};

choices! {
    /// Transport of the packets.
    pub enum Carrier {
        /// Datagrams, sent regardless of losses.
        Udp = "udp",
        /// One persistent connection.
        Tcp = "tcp",
    }
}

params! {
    /// Pareto on/off source.
    pub struct ParetoOnOffParams {
        /// Transport of the packets.
        over: Carrier = Carrier::Udp, source "this program";
        /// Rate in a burst.
        rate: Rate = Rate::from_bps(64_000),
            in Rate::from_bps(1) => Rate::from_bps(1_000_000_000_000),
            source "ns-2.35, rate_";
        /// Mean length of a burst.
        burst: Span = Span::from_millis(500), in Span::from_nanos(1) => Span::from_secs(100_000),
            source "ns-2.35, burst_time_";
        /// Mean pause between bursts.
        idle: Span = Span::from_millis(500), in Span::from_nanos(1) => Span::from_secs(100_000),
            source "ns-2.35, idle_time_";
        /// Shape of both distributions; below 2 their variance is infinite.
        shape: f64 = 1.5, in 1.001 => 100.0, source "ns-2.35, shape_";
        /// Bytes of a packet: on the wire over UDP, of payload over TCP.
        packet: Bytes = Bytes::new(210), in Bytes::new(1) => Bytes::new(65_535),
            source "ns-2.35, packetSize_";
    }
}

impl Component for ParetoOnOffParams {
    const NAME: &'static str = "pareto-onoff";
    const SUMMARY: &'static str = "ns-2's Pareto on/off source, over UDP or TCP";
}

impl Workload for ParetoOnOffParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(ParetoOnOff::new(self, streams)))
    }
}

#[derive(Clone)]
struct ParetoOnOff {
    over: Carrier,
    packet: u32,
    interval: Span,
    /// Number of packets in a burst.
    burst: Sampler<f64>,
    idle: Sampler<Span>,
    left: u64,
    flow: u32,
}

impl ParetoOnOff {
    fn new(params: &ParetoOnOffParams, streams: &dyn Fn(&str) -> Stream) -> Self {
        let ParetoOnOffParams { over, rate, burst, idle, shape, packet } = *params;
        let interval = rate.transmission_time(packet).max(Span::from_nanos(1));
        let packets = burst.as_secs_f64() / interval.as_secs_f64();
        ParetoOnOff {
            over,
            packet: packet.get() as u32,
            interval,
            burst: Sampler::new(&Distribution::pareto(shape, packets), streams("burst")),
            idle: Sampler::new(&Distribution::pareto(shape, idle), streams("idle")),
            left: 0,
            flow: 0,
        }
    }

    /// Returns the time to the next packet; like ns-2, with a pause before the first burst.
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
        cx.wake_after(self.gap());
    }
    fn on_timer(&mut self, cx: &mut Context) {
        match self.over {
            Carrier::Udp => cx.send_datagram(self.flow, self.packet),
            Carrier::Tcp => {
                cx.write(self.flow, u64::from(self.packet));
            }
        }
        cx.wake_after(self.gap());
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Params;

    use super::*;

    const STEP: f64 = 0.01;
    const N: usize = 50_000;

    /// Returns the lengths of bursts and pauses in seconds: means of 0.5 s, a packet every 10 ms.
    fn bursts_and_pauses(shape: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut params = ParetoOnOffParams { shape, ..Default::default() };
        params.set("rate", &"160kbit".into()).unwrap();
        params.set("packet", &"200b".into()).unwrap();
        let streams = |key: &str| Stream::for_component(seed, 0, key);
        let mut source = ParetoOnOff::new(&params, &streams);
        let (mut bursts, mut pauses) = (Vec::new(), Vec::new());
        while pauses.len() <= N {
            let pause = source.gap().saturating_sub(source.interval).as_secs_f64();
            if pause > 0.0 {
                pauses.push(pause);
                bursts.push(0.0);
            }
            *bursts.last_mut().unwrap() += STEP;
        }
        // The last burst is incomplete.
        (bursts[..N].to_vec(), pauses[..N].to_vec())
    }

    /// Returns the tail probability of a Pareto distribution with a mean of 0.5 s.
    fn share_above(x: f64, shape: f64) -> f64 {
        let least = 0.5 * (shape - 1.0) / shape;
        libm::pow(least / x.max(least), shape)
    }

    /// Kolmogorov-Smirnov distance times the square root of the sample size: values above 1.63 have
    /// a probability of 1 %. For bursts, which are whole packets, it is evaluated at the middle
    /// between two, where it can only be smaller.
    #[test]
    fn bursts_and_pauses_follow_paretos_law() {
        let distance = |mut sample: Vec<f64>, half: f64, shape: f64| {
            sample.sort_unstable_by(f64::total_cmp);
            let n = sample.len() as f64;
            let gaps = sample.iter().enumerate().filter_map(|(i, x)| {
                let is_last = sample.get(i + 1).is_none_or(|next| next - x > half);
                is_last.then(|| (1.0 - share_above(x + half, shape) - (i + 1) as f64 / n).abs())
            });
            gaps.fold(0.0, f64::max) * libm::sqrt(n)
        };
        for (shape, seed) in [(1.5, 1), (1.2, 2), (3.0, 4)] {
            let (bursts, pauses) = bursts_and_pauses(shape, seed);
            for (sample, half) in [(bursts, STEP / 2.0), (pauses, 0.0)] {
                let found = distance(sample.clone(), half, shape);
                assert!(found < 1.63, "shape {shape}: {found}");
                let other = distance(sample, half, shape + 0.05);
                assert!(
                    other > 1.63,
                    "shape {shape}: not distinguished from {}: {other}",
                    shape + 0.05
                );
            }
        }
    }

    /// Correlation of being above the median, within four deviations of 0. With the law of their
    /// lengths, independent bursts and pauses determine the process (Cox, Renewal Theory, 1962).
    #[test]
    fn bursts_and_pauses_are_independent() {
        let (bursts, pauses) = bursts_and_pauses(2.5, 4);
        let [bursts, pauses] = [bursts, pauses].map(|sample| {
            let mut sorted = sample.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let is_above = |length: &f64| f64::from(u8::from(*length > sorted[N / 2]));
            sample.iter().map(is_above).collect::<Vec<_>>()
        });
        for (one, other) in [
            (&pauses[..], &bursts[..]),
            (&bursts[..N - 1], &pauses[1..]),
            (&bursts[..N - 1], &bursts[1..]),
            (&pauses[..N - 1], &pauses[1..]),
        ] {
            let mean = |sample: &[f64]| sample.iter().sum::<f64>() / sample.len() as f64;
            let both: Vec<f64> = one.iter().zip(other).map(|(one, other)| one * other).collect();
            let [p, q] = [mean(one), mean(other)];
            let correlation = (mean(&both) - p * q) / libm::sqrt(p * (1.0 - p) * q * (1.0 - q));
            assert!(correlation.abs() < 4.0 / libm::sqrt(N as f64), "{correlation}");
        }
    }
}
