//! Live video: frames at a constant or variable bit rate, as in a call, a camera or live
//! television.
//!
//! Each frame is sent at once, as a burst. Over UDP a frame is useful only if all its packets
//! arrive before its playback time: a fixed delay after its sending time, equal to the delay of the
//! first frame plus `buffer`; `missed` is the share of the other frames. Over TCP no frame is
//! missed, but playback stalls when the buffer is empty, until it contains `buffer` again: `stalls`
//! is the number of stalls, `stalled` their share of the time.
//!
//! Recorded is the time of each `frame` (from its sending time to its last byte); over TCP also
//! `join` (from the start to the first picture) and `stall`. `started` and `completed` count
//! frames.
//!
//! # Sources
//! RFC 7928, sections 7.2 (bursty video frames) and 9.1; RFC 3550 (RTP).
//!
//! # Differences
//! 1. The encoder does not adapt to the network: for adaptive video see `dash`.
//! 2. Until the first frame arrives, frames that take longer than 3 s are missed.

use std::collections::VecDeque;

use aqmlab_core::{
    Bytes, Component, Distribution, Rate, Result, Sampler, Span, Stream, Time, params,
};

use super::pareto_onoff::Carrier;
use super::player::{Player, Resumed};
use super::{Workload, check_variation};
use crate::workload::agenda::Messages;
use crate::workload::app::{App, Context, Direction};

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
            Carrier::Udp => Box::new(VideoDatagrams {
                camera,
                packet: self.packet.get() as u32,
                buffer: self.buffer,
                flow: 0,
                waiting: VecDeque::new(),
                plays_after: None,
                missed: 0,
                shown: 0,
            }),
            Carrier::Tcp => Box::new(VideoConnection {
                camera,
                flow: 0,
                frames: Messages::default(),
                player: Player::new(self.buffer, self.buffer),
                began: Time::ZERO,
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

/// Records a complete frame.
fn completed(bytes: u64, time: Span, cx: &mut Context) {
    let activity = cx.activity();
    activity.completed += 1;
    activity.bytes += bytes;
    activity.record("frame", time);
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
    /// Incomplete frames whose playback time is not reached.
    waiting: VecDeque<Frame>,
    /// Delay from sending to playback.
    plays_after: Option<Span>,
    missed: u64,
    shown: u64,
}

/// Time after which a frame is missed, until the first frame arrives.
const GIVEN_UP: Span = Span::from_secs(3);

impl VideoDatagrams {
    /// Returns the number of frames whose playback time is reached.
    fn overdue(&self, now: Time) -> usize {
        let delay = self.plays_after.unwrap_or(GIVEN_UP);
        self.waiting.iter().take_while(|frame| frame.sent + delay < now).count()
    }

    /// Drops incomplete frames whose playback time is reached.
    fn give_up(&mut self, now: Time) {
        let overdue = self.overdue(now);
        self.waiting.drain(..overdue);
        self.missed += overdue as u64;
    }
}

impl App for VideoDatagrams {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(Direction::Forward, true);
        self.on_timer(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        self.give_up(cx.now());
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
        self.give_up(cx.now());
        let Ok(place) = self.waiting.binary_search_by_key(&sent, |frame| frame.sent) else {
            return; // Too late.
        };
        let frame = &mut self.waiting[place];
        frame.packets -= 1;
        if frame.packets > 0 {
            return;
        }
        let time = cx.now() - sent;
        let bytes = frame.bytes;
        self.waiting.remove(place);
        self.plays_after.get_or_insert(time + self.buffer);
        self.shown += 1;
        completed(bytes, time, cx);
    }
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let missed = self.missed + self.overdue(now) as u64;
        if missed + self.shown > 0 {
            see("missed", missed as f64 / (missed + self.shown) as f64);
        }
    }
    fn restart(&mut self, now: Time) {
        self.give_up(now);
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
    began: Time,
}

impl App for VideoConnection {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.stream(Direction::Forward);
        self.began = cx.now();
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
            completed(bytes, now - made, cx);
            match self.player.arrived(now, self.camera.interval, false) {
                Some(Resumed::Join) => cx.activity().record("join", now - self.began),
                Some(Resumed::Stall(length)) => cx.activity().record("stall", length),
                None => {}
            }
        }
    }
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let player = self.player.at(now);
        see("stalls", player.stalls as f64);
        see("stalled", player.stalled_share());
    }
    fn restart(&mut self, now: Time) {
        self.player.restart(now);
    }
}
