//! Telephone calls: a packet of speech every 20 ms in talk spurts, and the call quality by the
//! E-model.
//!
//! Packets are played after a delay that adapts at talk spurts (module `playout`). Packets that
//! arrive in time are played in the order in which they were sent; later packets are as useless as
//! lost ones. Reported for each direction, as means over the group: `mos`,
//! `r_factor` (at the mean playout delay), `lost` and `late` (shares of the packets that were due).
//!
//! # Sources
//! ITU-T G.107 (module `emodel`), G.113 appendix I (codec impairments: G.711 with concealment,
//! G.729A with voice activity detection), G.711 and G.729, P.59 (mean talk spurt and pause), RFC
//! 3551 (20 ms per packet). The Recommendations themselves were not available. Several independent
//! programs contain the same codec constants, and the tests compare them with the table of 1999
//! that they were fitted to. P.59's two means have no such second source.
//!
//! # Differences
//! 1. The two directions talk independently.
//! 2. A packet that has not arrived after 3 s is lost. If no packet is played, R is 0.
//! 3. A packet overtaken by one of a later spurt has the playout delay of that spurt.

mod emodel;
mod playout;

use std::collections::VecDeque;

use aqmlab_core::{
    Auto, Component, Distribution, Error, Result, Sampler, Span, Stream, Time, choices, params,
};

use self::emodel::{Equipment, mos, rating};
use self::playout::Playout;
use super::Workload;
use super::ledger::Ledger;
use crate::workload::app::{App, Context, Direction, Tally};

choices! {
    /// Speech codec.
    pub enum Codec {
        /// 64 kbit/s, with concealment of losses.
        G711 = "g711",
        /// 8 kbit/s (G.729A).
        G729 = "g729",
    }
}

/// Properties of a codec for G.107.
#[derive(Clone)]
struct Coding {
    /// Bytes for 20 ms of speech.
    payload: u32,
    /// Look-ahead of the encoder.
    lookahead: Span,
    equipment: Equipment,
}

impl Codec {
    fn coding(self) -> Coding {
        let (payload, lookahead, impairment, robustness) = match self {
            Codec::G711 => (160, Span::ZERO, 0.0, 25.1),
            Codec::G729 => (20, Span::from_millis(5), 11.0, 19.0),
        };
        Coding { payload, lookahead, equipment: Equipment { impairment, robustness } }
    }
}

/// Duration of the speech in a packet.
const FRAME: Span = Span::from_millis(20);
/// Longest playout reserve.
const LONGEST: Span = Span::from_secs(10);
/// Bytes of the IP, UDP and RTP headers.
const HEADERS: u32 = 20 + 8 + 12;

params! {
    /// Telephone calls.
    pub struct VoipParams {
        /// Speech codec.
        codec: Codec = Codec::G711, source "ITU-T G.711, G.729";
        /// Length of a talk spurt.
        talk: Distribution<Span> = Distribution::exponential(Span::from_millis(1004)),
            source "ITU-T P.59";
        /// Pause between two talk spurts; `0s`: continuous speech.
        silence: Distribution<Span> = Distribution::exponential(Span::from_millis(1587)),
            source "ITU-T P.59";
        /// True if both sides talk; otherwise only one, along `path`.
        two_way: bool = true, source "this program";
        /// Playout reserve in addition to the delay of the first packet of the call; `auto`: adapts
        /// at talk spurts.
        playout: Auto<Span> = Auto::Auto, source "Ramjee and others 1994, algorithm 4";
    }
}

impl Component for VoipParams {
    const NAME: &'static str = "voip";
    const SUMMARY: &'static str = "Telephone calls, with their quality by the E-model";

    fn check(&self) -> Result<()> {
        match self.playout {
            Auto::Set(reserve) if reserve > LONGEST => {
                let allowed = format!("`auto`, or 0s to {LONGEST}");
                Err(Error::not_allowed(reserve, allowed).at("playout"))
            }
            _ => Ok(()),
        }
    }
}

impl Workload for VoipParams {
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let other = self.two_way.then(|| self.clone());
        Some(Box::new(Talker::new(self, Direction::Forward, other, streams)))
    }
}

/// One side of a call, with the speech it hears from the other.
#[derive(Clone)]
struct Talker {
    direction: Direction,
    /// Parameters of the other side, which this one starts.
    other: Option<VoipParams>,
    coding: Coding,
    talk: Sampler<Span>,
    silence: Sampler<Span>,
    flow: u32,
    /// Number of packets left in the spurt.
    left: u64,
    /// True if the next packet begins a spurt.
    begins: bool,
    ledger: Ledger,
    /// Start times of the current spurt, and of spurts without arrivals.
    spurts: VecDeque<Time>,
    playout: Playout,
    /// Sum of the playout delays of arrived packets, in seconds.
    delays: f64,
    played: u64,
    late: u64,
}

impl Talker {
    fn new(
        params: &VoipParams,
        direction: Direction,
        other: Option<VoipParams>,
        streams: &dyn Fn(&str) -> Stream,
    ) -> Self {
        Talker {
            direction,
            other,
            coding: params.codec.coding(),
            talk: Sampler::new(&params.talk, streams("talk")),
            silence: Sampler::new(&params.silence, streams("silence")),
            flow: 0,
            left: 0,
            begins: false,
            ledger: Ledger::default(),
            spurts: VecDeque::new(),
            playout: Playout::new(match params.playout {
                Auto::Auto => None,
                Auto::Set(reserve) => Some(reserve),
            }),
            delays: 0.0,
            played: 0,
            late: 0,
        }
    }

    /// Returns the time to the next packet: one frame, plus a pause after the end of a spurt.
    fn gap(&mut self) -> Span {
        let mut gap = FRAME;
        if self.left == 0 {
            gap += self.silence.draw();
            self.begins = true;
            self.left = (self.talk.draw().as_nanos() / FRAME.as_nanos()).max(1);
        }
        self.left -= 1;
        gap
    }

    /// Handles the arrival of the packet sent at `sent`.
    fn arrived(&mut self, sent: Time, now: Time) {
        if !self.ledger.arrived(sent, now) {
            return;
        }
        while self.spurts.get(1).is_some_and(|next| *next <= sent) {
            self.spurts.pop_front();
        }
        let spurt = self.spurts.front().copied().unwrap_or(Time::ZERO);
        let delay = now - sent;
        let plays_after = self.playout.arrived(delay, spurt);
        self.delays += plays_after.as_secs_f64();
        match delay <= plays_after {
            true => self.played += 1,
            false => self.late += 1,
        }
    }
}

impl App for Talker {
    fn start(&mut self, cx: &mut Context) {
        self.flow = cx.datagrams(self.direction, true);
        if let Some(params) = self.other.take() {
            cx.spawn(|streams| Box::new(Talker::new(&params, Direction::Backward, None, streams)));
        }
        cx.wake_after(self.gap());
    }
    fn on_timer(&mut self, cx: &mut Context) {
        self.ledger.sent(cx.now());
        if std::mem::take(&mut self.begins) {
            self.spurts.push_back(cx.now());
        }
        cx.send_datagram(self.flow, HEADERS + self.coding.payload);
        cx.wake_after(self.gap());
    }
    fn on_datagram(&mut self, _flow: u32, sent: Time, cx: &mut Context) {
        self.arrived(sent, cx.now());
    }
    fn tally(&self, now: Time) -> Tally {
        let lost = self.ledger.lost(now, self.playout.plays_after());
        [self.played as f64, self.late as f64, lost as f64, self.delays]
    }
    fn score(&self, [played, late, lost, delays]: Tally, see: &mut dyn FnMut(&'static str, f64)) {
        let arrived = played + late;
        let due = arrived + lost;
        if due <= 0.0 {
            return; // No packet was due, or those that arrived had counted as lost before.
        }
        let missed = ((late + lost) / due).max(0.0);
        let rating = if played > 0.0 {
            let played_after = Span::from_secs_f64(delays / arrived);
            let delay = played_after + FRAME + self.coding.lookahead;
            rating(delay, missed, self.coding.equipment)
        } else {
            0.0 // No packet was played.
        };
        see("mos", mos(rating));
        see("r_factor", rating);
        see("lost", (lost / due).clamp(0.0, 1.0));
        see("late", (late / due).clamp(0.0, 1.0));
    }
    fn direction(&self) -> Option<Direction> {
        Some(self.direction)
    }
    fn restart(&mut self, now: Time) {
        (self.played, self.late, self.delays) = (0, 0, 0.0);
        self.ledger.restart(now, self.playout.plays_after());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ledger::GIVEN_UP;

    #[test]
    fn an_overtaken_packet_is_played_if_it_arrives_in_time() {
        let streams = |key: &str| Stream::for_component(1, 0, key);
        let params = VoipParams::default();
        let mut talker = Talker::new(&params, Direction::Forward, None, &streams);
        let ms = |millis: u64| Time::ZERO + Span::from_millis(millis);
        (0..5).for_each(|packet| talker.ledger.sent(ms(20 * packet)));
        // The first takes 40 ms: the spurt is played 100 ms after it is sent.
        for (sent, now) in [(0, 40), (40, 80), (20, 119), (80, 120), (60, 161)] {
            talker.arrived(ms(sent), ms(now));
        }
        assert_eq!((talker.played, talker.late, talker.ledger.lost(ms(5000), GIVEN_UP)), (4, 1, 0));
    }

    #[test]
    fn a_packet_that_counts_as_lost_and_arrives_later_is_missed_once() {
        let streams = |key: &str| Stream::for_component(1, 0, key);
        let params = VoipParams::default();
        let mut talker = Talker::new(&params, Direction::Forward, None, &streams);
        let ms = |millis: u64| Time::ZERO + Span::from_millis(millis);
        [0, 20].iter().for_each(|sent| talker.ledger.sent(ms(*sent)));
        talker.arrived(ms(0), ms(40));
        let scores = |talker: &Talker, tally| {
            let mut scores = Vec::new();
            talker.score(tally, &mut |name, value| scores.push((name, value)));
            scores
        };
        let before = talker.tally(ms(200));
        assert!(scores(&talker, before).contains(&("lost", 0.5)), "played 100 ms after it is sent");
        talker.arrived(ms(20), ms(250));
        let after = talker.tally(ms(300));
        assert!(scores(&talker, after).contains(&("late", 0.5)));
        let since = std::array::from_fn(|place| after[place] - before[place]);
        assert_eq!(scores(&talker, since), [], "no packet was due");
    }
}
