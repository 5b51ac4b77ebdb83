//! Live video: frames at a constant or variable bit rate, as in a call, a camera or live
//! television.
//!
//! Each frame is sent at once, as a burst. Over UDP a frame is useful only if all its packets
//! arrive before its playback time: a fixed delay after its sending time, equal to the delay of the
//! first frame plus `buffer`; `missed` is the share of the other frames, late or lost. Over TCP no
//! frame is missed, but playback stalls when the buffer is empty, until it contains `buffer` again:
//! `stalls` is the number of stalls, `stalled` their share of the time; a player that never starts
//! has neither.
//!
//! Recorded is the time of each `frame` (from its sending time to its last byte), including frames
//! that are complete too late; over TCP also `join` (from the start to the first picture) and
//! `stall`. `started` and `completed` count frames.
//!
//! # Sources
//! RFC 7928, sections 7.2 (bursty video frames) and 9.1; RFC 3550 (RTP).
//!
//! # Differences
//! 1. The encoder does not adapt to the network: for adaptive video see `dash`.
//! 2. A frame that is incomplete after 3 s, and after its playback time, is lost. Until the first
//!    frame arrives, playback times are unknown: only these frames are missed.

use std::collections::VecDeque;

use aqmlab_core::{
    Bytes, Component, Distribution, Rate, Result, Sampler, Span, Stream, Time, params,
};

use super::pareto_onoff::Carrier;
use super::player::Player;
use super::{Workload, check_variation};
use crate::workload::agenda::Messages;
use crate::workload::app::{App, Context, Direction, Tally};

params! {
    /// Live video frames.
    pub struct VideoParams {
        /// Transport of the frames.
        over: Carrier = Carrier::Udp, source "this program";
        /// Mean rate of the video, without headers.
        rate: Rate = Rate::from_bps(2_500_000),
            in Rate::from_bps(1000) => Rate::from_bps(1_000_000_000_000),
            source "this program";
        /// Frames per second.
        fps: f64 = 30.0, in 0.1 => 1000.0, source "this program";
        /// Interval of intra frames, in frames; 1: all frames are alike.
        gop: u64 = 30, in 1 => 100_000, source "this program";
        /// Size of an intra frame relative to other frames.
        intra: f64 = 5.0, in 1.0 => 1000.0, source "this program";
        /// Random factor of the size of each frame; its mean should be 1.
        variation: Distribution<f64> = Distribution::constant(1.0), source "this program";
        /// Bytes of video in a packet, over UDP.
        packet: Bytes = Bytes::new(1200), in Bytes::new(1) => Bytes::new(65_000),
            source "RFC 9000, section 14.1: a size that passes everywhere";
        /// Delay allowed for a frame in addition to that of the first frame; over TCP, buffered
        /// video at the start and after a stall.
        buffer: Span = Span::from_millis(200), in Span::ZERO => Span::from_secs(3600),
            source "this program";
    }
}

/// Bytes of the IP, UDP and RTP headers.
const HEADERS: u32 = 20 + 8 + 12;

impl Component for VideoParams {
    const NAME: &'static str = "video";
    const SUMMARY: &'static str = "Live video frames, at a constant or variable rate";

    fn check(&self) -> Result<()> {
        check_variation(&self.variation)
    }
}

impl Workload for VideoParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let camera = Camera::new(self, streams);
        Some(match self.over {
            Carrier::Udp => Box::new(VideoDatagrams::new(self, camera)),
            Carrier::Tcp => Box::new(VideoConnection {
                camera,
                flow: 0,
                frames: Messages::default(),
                player: Player::new(self.buffer, self.buffer),
            }),
        })
    }
}

/// Source of the frames.
#[derive(Clone)]
struct Camera {
    interval: Span,
    /// Bytes of an intra frame, and of other frames.
    sizes: [f64; 2],
    gop: u64,
    variation: Sampler<f64>,
    made: u64,
}

impl Camera {
    fn new(params: &VideoParams, streams: &dyn Fn(&str) -> Stream) -> Self {
        let mean = params.rate.as_bytes_per_sec() / params.fps;
        let gop = params.gop as f64;
        let other = mean * gop / (gop - 1.0 + params.intra);
        Camera {
            interval: Span::from_secs_f64(1.0 / params.fps),
            sizes: [other * params.intra, other],
            gop: params.gop,
            variation: Sampler::new(&params.variation, streams("variation")),
            made: 0,
        }
    }

    /// Returns the bytes of the next frame.
    fn frame(&mut self) -> u64 {
        let mean = self.sizes[usize::from(!self.made.is_multiple_of(self.gop))];
        self.made += 1;
        libm::round(mean * self.variation.draw()).clamp(1.0, 1e9) as u64
    }
}

/// Frame in flight.
#[derive(Clone)]
struct Frame {
    sent: Time,
    bytes: u64,
    packets: u64,
}

#[derive(Clone)]
struct VideoDatagrams {
    camera: Camera,
    packet: u32,
    buffer: Span,
    flow: u32,
    /// Incomplete frames, in order of their sending times.
    waiting: VecDeque<Frame>,
    /// Number of them whose playback time has passed: counted as missed.
    late: usize,
    /// Delay from sending to playback.
    plays_after: Option<Span>,
    missed: u64,
    shown: u64,
}

/// Time after which an incomplete frame is lost, if its playback time has passed.
const GIVEN_UP: Span = Span::from_secs(3);

impl VideoDatagrams {
    fn new(params: &VideoParams, camera: Camera) -> Self {
        VideoDatagrams {
            camera,
            packet: params.packet.get() as u32,
            buffer: params.buffer,
            flow: 0,
            waiting: VecDeque::new(),
            late: 0,
            plays_after: None,
            missed: 0,
            shown: 0,
        }
    }

    /// Returns the number of incomplete frames whose playback time has passed since they were last
    /// counted.
    fn overdue(&self, now: Time) -> usize {
        let delay = self.plays_after.unwrap_or(GIVEN_UP);
        self.waiting.range(self.late..).take_while(|frame| frame.sent + delay < now).count()
    }

    /// Counts frames whose playback time has passed as missed, and drops lost ones.
    fn pass(&mut self, now: Time) {
        let overdue = self.overdue(now);
        self.missed += overdue as u64;
        self.late += overdue;
        while self.late > 0 && self.waiting[0].sent + GIVEN_UP < now {
            self.waiting.pop_front();
            self.late -= 1;
        }
    }

    /// Handles the arrival of a packet of the frame sent at `sent`. Returns the bytes of the frame
    /// and its delay, if it is complete.
    fn arrived(&mut self, sent: Time, now: Time) -> Option<(u64, Span)> {
        self.pass(now);
        let place = self.waiting.binary_search_by_key(&sent, |frame| frame.sent).ok()?;
        self.waiting[place].packets -= 1;
        if self.waiting[place].packets > 0 {
            return None;
        }
        let bytes = self.waiting.remove(place)?.bytes;
        let delay = now - sent;
        self.plays_after.get_or_insert(delay + self.buffer);
        match place < self.late {
            true => self.late -= 1,
            false => self.shown += 1,
        }
        Some((bytes, delay))
    }
}

impl App for VideoDatagrams {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(Direction::Forward, true);
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        self.pass(cx.now());
        let bytes = self.camera.frame();
        let packets = bytes.div_ceil(u64::from(self.packet));
        cx.activity().started += 1;
        for number in 0..packets {
            let payload = u64::from(self.packet).min(bytes - number * u64::from(self.packet));
            cx.send_datagram(self.flow, HEADERS + payload as u32);
        }
        self.waiting.push_back(Frame { sent: cx.now(), bytes, packets });
        cx.wake_after(self.camera.interval);
    }
    fn on_datagram(&mut self, _flow: u32, sent: Time, cx: &mut Context) {
        if let Some((bytes, delay)) = self.arrived(sent, cx.now()) {
            cx.activity().complete(bytes, "frame", delay);
        }
    }
    fn tally(&self, now: Time) -> Tally {
        let missed = self.missed + self.overdue(now) as u64;
        [missed as f64, self.shown as f64, 0.0, 0.0]
    }
    fn score(&self, [missed, shown, ..]: Tally, see: &mut dyn FnMut(&'static str, f64)) {
        if missed + shown > 0.0 {
            see("missed", missed / (missed + shown));
        }
    }
    fn restart(&mut self, now: Time) {
        self.pass(now);
        (self.missed, self.shown) = (0, 0);
    }
}

#[derive(Clone)]
struct VideoConnection {
    camera: Camera,
    flow: u32,
    /// Sending time and bytes of each frame.
    frames: Messages<(Time, u64)>,
    player: Player,
}

impl App for VideoConnection {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.stream(Direction::Forward);
        self.player.opened = cx.now();
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        let bytes = self.camera.frame();
        cx.activity().started += 1;
        self.frames.write(self.flow, bytes, [(bytes, (cx.now(), bytes))], cx);
        cx.wake_after(self.camera.interval);
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        while let Some((made, bytes)) = self.frames.arrived(flow, cx) {
            let now = cx.now();
            let activity = cx.activity();
            activity.complete(bytes, "frame", now - made);
            self.player.arrived(now, self.camera.interval, false, activity);
        }
    }
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.player.report(now, see);
    }
    fn has_begun(&self) -> bool {
        self.player.began.is_some()
    }
    fn restart(&mut self, now: Time) {
        self.player.restart(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    /// Frames of a packet each, sent at these milliseconds.
    fn sent(frames: &[u64]) -> VideoDatagrams {
        let params = VideoParams::default();
        let camera = Camera::new(&params, &|key| Stream::for_component(1, 0, key));
        let mut video = VideoDatagrams::new(&params, camera);
        let frame = |sent: &u64| Frame { sent: Time::ZERO + ms(*sent), bytes: 1, packets: 1 };
        video.waiting.extend(frames.iter().map(frame));
        video
    }

    fn missed(video: &VideoDatagrams, now: u64) -> f64 {
        let mut missed = f64::NAN;
        video.report(Time::ZERO + ms(now), &mut |_, value| missed = value);
        missed
    }

    #[test]
    fn a_late_frame_is_missed_and_has_a_delay_and_a_lost_one_has_none() {
        let mut video = sent(&[0, 40, 80, 120]);
        let mut arrived = |sent, now| video.arrived(Time::ZERO + ms(sent), Time::ZERO + ms(now));
        assert_eq!(arrived(0, 20), Some((1, ms(20))), "played 220 ms after they are sent");
        assert_eq!(arrived(80, 300), Some((1, ms(220))), "in time, beside an overdue one");
        assert_eq!(arrived(40, 3040), Some((1, ms(3000))), "late");
        assert_eq!(arrived(120, 3121), None, "lost");
        assert_eq!(missed(&video, 3121), 0.5);
    }

    #[test]
    fn a_frame_counts_as_missed_once_at_its_playback_time() {
        let mut video = sent(&[0, 40]);
        video.arrived(Time::ZERO, Time::ZERO + ms(20));
        assert_eq!([260, 261].map(|now| missed(&video, now)), [0.0, 0.5]);
        video.restart(Time::ZERO + ms(300));
        video.arrived(Time::ZERO + ms(40), Time::ZERO + ms(400));
        assert!(missed(&video, 400).is_nan(), "its playback time was before");
    }
}
