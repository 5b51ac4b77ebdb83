//! Adaptive video over HTTP (DASH, HLS): a player fetches segments one by one, each at a rate that
//! it selects from a ladder.
//!
//! Segments are requested over one persistent connection, the first at the start. The player waits
//! while the buffer has no room for a segment within `buffer`. Playback starts with `start_with` in
//! the buffer, and resumes after a stall with `resume_with`.
//!
//! Recorded are the times of each `segment` (from the request to its last byte), `join` (from the
//! SYN to the first picture) and each `stall`. Reported for each player, as means over the group,
//! are `stalls` (number), `stalled` (share of the time since playback started; a player that never
//! starts has neither), `bitrate` (mean of the fetched segments, bit/s) and `switches` (number of
//! segments at another rate than the one before). `started` and `completed` count segments.
//!
//! # Sources
//! ISO/IEC 23009-1 (segments, ladder); for the choice of rates see `rates.rs`.
//!
//! # Differences
//! 1. Segments are never abandoned, and the user never seeks.
//! 2. The manifest is not fetched; audio is part of the video.

use aqmlab_core::{
    Bytes, Component, Distribution, Error, Rate, Result, Sampler, Span, Stream, Time, choices,
    params,
};

use self::rates::Chooser;
use super::player::Player;
use super::{Workload, check_variation, written};
use crate::workload::app::{App, Context};

mod rates;

choices! {
    /// Algorithm that chooses the rate of a segment.
    pub enum Adaptation {
        /// FESTIVE's estimate: the throughput of the last segments.
        Throughput = "throughput",
        /// BOLA: based on the buffer.
        Bola = "bola",
        /// BBA-0: based on the buffer.
        Bba = "bba",
    }
}

params! {
    /// Adaptive video over HTTP.
    pub struct DashParams {
        /// Algorithm that chooses the rate of a segment.
        adaptation: Adaptation = Adaptation::Throughput, source "this program";
        /// Available rates, in rising order.
        ladder: Vec<Rate> =
            written("[145kbit, 365kbit, 730kbit, 1100kbit, 2mbit, 3mbit, 4500kbit, 6mbit, 7800kbit]"),
            source "Apple, HLS authoring specification, H.264";
        /// Duration of a segment.
        segment: Span = Span::from_secs(4), in Span::from_millis(10) => Span::from_secs(600),
            source "this program";
        /// Random factor of the size of a segment; its mean should be 1.
        variation: Distribution<f64> = Distribution::constant(1.0), source "this program";
        /// Capacity of the player's buffer.
        buffer: Span = Span::from_secs(30), in Span::from_millis(20) => Span::from_secs(36_000),
            source "this program";
        /// Buffered video at which playback starts.
        start_with: Span = Span::from_secs(4), in Span::ZERO => Span::from_secs(36_000),
            source "this program: a segment";
        /// Buffered video at which playback resumes after a stall.
        resume_with: Span = Span::from_secs(4), in Span::ZERO => Span::from_secs(36_000),
            source "this program: a segment";
        /// Number of segments in the throughput estimate of `throughput`: their harmonic mean.
        window: u64 = 20, in 1 => 10_000, source "Jiang, Sekar and Zhang 2012, section 4.2";
        /// Share of the estimated throughput that is used.
        safety: f64 = 0.85, in 0.01 => 10.0, source "Jiang, Sekar and Zhang 2012, section 4.3";
        /// Weight of a full buffer relative to a high rate, with `bola`: gamma p.
        gamma: f64 = 5.0, in 0.01 => 1000.0,
            source "Spiteri, Urgaonkar and Sitaraman 2016, evaluation";
        /// Share of the buffer, less a segment, below which `bba` selects the lowest rate.
        reservoir: f64 = 0.375, in 0.0 => 1.0,
            source "Huang et al. 2014, section 4: 90 of 240 s";
        /// Share of the buffer, less a segment, from which `bba` selects the highest rate.
        cushion_end: f64 = 0.9, in 0.0 => 1.0,
            source "Huang et al. 2014, section 4: 216 of 240 s";
        /// Bytes of a request.
        request: Bytes = Bytes::new(300), in Bytes::new(1) => Bytes::new(1_000_000),
            source "this program";
        /// Duration of the video; `none`: no end.
        length: Option<Span> = None, in Some(Span::from_nanos(1)) => Some(Span::from_secs(10_000_000)),
            source "this program";
    }
}

impl Component for DashParams {
    const NAME: &'static str = "dash";
    const SUMMARY: &'static str = "Adaptive video over HTTP: bit rate, stalls, switches";

    fn check(&self) -> Result<()> {
        let rises = self.ladder.windows(2).all(|pair| pair[0] < pair[1]);
        if self.ladder.is_empty() || !rises || self.ladder[0].as_bps() == 0 {
            let allowed = "at least one rate, in rising order";
            return Err(Error::not_allowed(format!("{:?}", self.ladder), allowed).at("ladder"));
        }
        if self.buffer < self.segment + self.segment {
            let allowed = format!("at least two segments, of {} each", self.segment);
            return Err(Error::not_allowed(self.buffer, allowed).at("buffer"));
        }
        for (key, level) in [("start_with", self.start_with), ("resume_with", self.resume_with)] {
            if level > self.buffer.saturating_sub(self.segment) {
                let allowed = format!("at most the buffer of {} less a segment", self.buffer);
                return Err(Error::not_allowed(level, allowed).at(key));
            }
        }
        if self.reservoir >= self.cushion_end {
            let allowed = format!("less than cushion_end, {}", self.cushion_end);
            return Err(Error::not_allowed(self.reservoir, allowed).at("reservoir"));
        }
        check_variation(&self.variation)
    }
}

impl Workload for DashParams {
    fn is_finite(&self) -> bool {
        self.length.is_some()
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let left = self.length.map(|all| all.as_nanos().div_ceil(self.segment.as_nanos()));
        Some(Box::new(Viewer {
            chooser: Chooser::new(self),
            variation: Sampler::new(&self.variation, streams("variation")),
            player: Player::new(self.start_with, self.resume_with),
            left: left.unwrap_or(u64::MAX),
            flows: [0; 2],
            asked: Time::ZERO,
            rung: None,
            size: 0,
            bits: 0.0,
            fetched: 0,
            switches: 0,
        }))
    }
}

/// Player with its server.
#[derive(Clone)]
struct Viewer {
    chooser: Chooser,
    variation: Sampler<f64>,
    player: Player,
    /// Number of segments to fetch.
    left: u64,
    /// Flows to the server, and to the client.
    flows: [u32; 2],
    asked: Time,
    /// Rate of the current segment, by its index in the ladder, and its bytes.
    rung: Option<usize>,
    size: u64,
    /// Sum of the rates of fetched segments.
    bits: f64,
    fetched: u64,
    switches: u64,
}

impl Viewer {
    /// Requests the next segment, or waits for room in the buffer.
    fn go_on(&mut self, cx: &mut Context) {
        let now = cx.now();
        let level = self.player.level(now);
        let DashParams { segment, buffer, ref ladder, request, .. } = self.chooser.params;
        let excess = (level + segment).saturating_sub(buffer);
        if excess > Span::ZERO {
            return cx.wake_at(now + excess);
        }
        let rung = self.chooser.choose(level, self.rung);
        self.switches += u64::from(self.rung.is_some_and(|before| before != rung));
        self.rung = Some(rung);
        let mean = ladder[rung].as_bytes_per_sec() * segment.as_secs_f64();
        self.size = libm::round(mean * self.variation.draw()).clamp(1.0, 1e12) as u64;
        self.asked = now;
        cx.activity().started += 1;
        cx.write(self.flows[0], request.get());
    }

    fn fetched(&mut self, cx: &mut Context) {
        let now = cx.now();
        let time = now - self.asked;
        let activity = cx.activity();
        activity.complete(self.size, "segment", time);
        self.chooser.seen(self.size, time);
        let DashParams { segment, ladder, .. } = &self.chooser.params;
        self.bits += self.rung.map_or(0.0, |rung| ladder[rung].as_bps() as f64);
        self.fetched += 1;
        self.left -= 1;
        self.player.arrived(now, *segment, self.left == 0, activity);
        match self.left {
            // Playback of the buffered media continues.
            0 => cx.wake_at(now + self.player.level(now)),
            _ => self.go_on(cx),
        }
    }
}

impl App for Viewer {
    fn start(&mut self, cx: &mut Context) {
        self.player.opened = cx.now();
        self.flows = cx.connect(false);
        self.go_on(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        if self.left > 0 {
            return self.go_on(cx);
        }
        self.flows.into_iter().for_each(|flow| cx.close(flow));
        cx.end();
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        if flow == self.flows[0] {
            cx.write(self.flows[1], self.size);
        } else {
            self.fetched(cx);
        }
    }
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.player.report(now, see);
        if self.fetched > 0 {
            see("bitrate", self.bits / self.fetched as f64);
        }
        see("switches", self.switches as f64);
    }
    fn has_begun(&self) -> bool {
        self.player.began.is_some()
    }
    fn restart(&mut self, now: Time) {
        self.player.restart(now);
        (self.bits, self.fetched, self.switches) = (0.0, 0, 0);
    }
}
