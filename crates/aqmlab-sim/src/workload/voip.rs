//! Telephone calls: a packet of speech each 20 ms, in talk spurts, and how the
//! call sounds by the E-model.
//!
//! What arrives is played with a fixed delay: that of the first packet, and
//! `playout`. Packets that come later than that are as good as lost. Reported
//! for each direction, as means over the group: `mos`, `r_factor`, `lost` and
//! `late` (shares of the packets whose turn has come).
//!
//! # Sources
//! ITU-T G.107 (rating: sections 7.4 for delay, 7.5 for loss, annex B for the
//! MOS), G.113 appendix I (what the codecs cost: G.711 with concealment, G.729A
//! with voice activity detection), G.711 and G.729, P.59 (mean talk spurt and
//! pause), RFC 3551 (20 ms in a packet). The Recommendations themselves were
//! not at hand. The formulas and the codecs' constants are the same in several
//! independent programs, and the tests hold them against the table of 1999 that
//! they were fitted to; for P.59's two means there was no such second source.
//!
//! # Differences
//! 1. Echo is cancelled: of the delay's impairments only Idd counts. All other
//!    inputs have their defaults, which give R = 93.2.
//! 2. Loss counts as random (BurstR = 1).
//! 3. The two directions talk independently.

use aqmlab_core::{Distribution, Sampler, Span, Stream, Time, choices, params};

use super::Workload;
use super::ledger::Ledger;
use crate::workload::app::{App, Context, Direction};

choices! {
    /// What encodes the speech.
    pub enum Codec {
        /// 64 kbit/s, with concealment of losses.
        G711 = "g711",
        /// 8 kbit/s (G.729A).
        G729 = "g729",
    }
}

/// What a codec does, for G.107.
struct Coding {
    /// Bytes in 20 ms.
    payload: u32,
    /// Speech that it looks at before it encodes.
    lookahead: Span,
    /// Its impairment Ie, and its robustness Bpl against loss.
    impairment: f64,
    robustness: f64,
}

impl Codec {
    fn coding(self) -> Coding {
        match self {
            Codec::G711 => {
                Coding { payload: 160, lookahead: Span::ZERO, impairment: 0.0, robustness: 25.1 }
            }
            Codec::G729 => Coding {
                payload: 20,
                lookahead: Span::from_millis(5),
                impairment: 11.0,
                robustness: 19.0,
            },
        }
    }
}

/// Speech in a packet.
const FRAME: Span = Span::from_millis(20);
/// IP, UDP and RTP.
const HEADERS: u32 = 20 + 8 + 12;

params! {
    /// Telephone calls.
    pub struct VoipParams {
        /// The codec.
        codec: Codec = Codec::G711, source "ITU-T G.711, G.729";
        /// Length of a talk spurt.
        talk: Distribution<Span> = Distribution::exponential(Span::from_millis(1004)),
            source "ITU-T P.59";
        /// Pause between two; `0s` for speech without end.
        silence: Distribution<Span> = Distribution::exponential(Span::from_millis(1587)),
            source "ITU-T P.59";
        /// Whether both sides talk, or only one along `path`.
        two_way: bool = true, source "this program";
        /// How much longer than the first packet another may take.
        playout: Span = Span::from_millis(60), in Span::ZERO => Span::from_secs(10),
            source "this program";
    }
}

impl Workload for VoipParams {
    const NAME: &'static str = "voip";
    const SUMMARY: &'static str = "Telephone calls, with their quality by the E-model";
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        let other = self.two_way.then(|| self.clone());
        Some(Box::new(Talker::new(self, Direction::Forward, other, streams)))
    }
}

/// One side of a call, with what the other hears of it.
struct Talker {
    direction: Direction,
    /// Of the other side, which this one starts.
    other: Option<VoipParams>,
    coding: Coding,
    talk: Sampler<Span>,
    silence: Sampler<Span>,
    playout: Span,
    flow: u32,
    /// Packets of the spurt that are still to come.
    left: u64,
    ledger: Ledger,
    /// The delay with which packets are played.
    plays_after: Option<Span>,
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
            playout: params.playout,
            flow: 0,
            left: 0,
            ledger: Ledger::default(),
            plays_after: None,
            played: 0,
            late: 0,
        }
    }

    /// Time to the next packet: one frame, and a pause where a spurt ended.
    fn gap(&mut self) -> Span {
        let mut gap = FRAME;
        if self.left == 0 {
            gap += self.silence.draw();
            self.left = (self.talk.draw().as_nanos() / FRAME.as_nanos()).max(1);
        }
        self.left -= 1;
        gap
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
        cx.send_datagram(self.flow, HEADERS + self.coding.payload);
        cx.wake_after(self.gap());
    }
    fn on_datagram(&mut self, _flow: u32, sent: Time, cx: &mut Context) {
        if !self.ledger.arrived(sent) {
            return;
        }
        let delay = cx.now() - sent;
        let plays_after = *self.plays_after.get_or_insert(delay + self.playout);
        match delay <= plays_after {
            true => self.played += 1,
            false => self.late += 1,
        }
    }
    fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let lost = self.ledger.lost(now);
        let due = (self.played + self.late + lost) as f64;
        if due == 0.0 {
            return; // Nothing was due after the warm-up.
        }
        let missed = (self.late + lost) as f64 / due;
        let rating = match self.plays_after.filter(|_| self.played > 0) {
            Some(after) => rating(after + FRAME + self.coding.lookahead, missed, &self.coding),
            None => 0.0, // Nothing was heard.
        };
        see("mos", mos(rating));
        see("r_factor", rating);
        see("lost", lost as f64 / due);
        see("late", self.late as f64 / due);
    }
    fn direction(&self) -> Option<Direction> {
        Some(self.direction)
    }
    fn restart(&mut self, now: Time) {
        (self.played, self.late) = (0, 0);
        self.ledger.restart(now);
    }
}

/// The rating R of a call with this delay from mouth to ear and share of loss.
fn rating(delay: Span, loss: f64, coding: &Coding) -> f64 {
    let percent = 100.0 * loss;
    let equipment =
        coding.impairment + (95.0 - coding.impairment) * percent / (percent + coding.robustness);
    93.2 - delay_impairment(delay) - equipment
}

/// Idd: nothing up to 100 ms.
fn delay_impairment(delay: Span) -> f64 {
    let x = libm::log2(delay.as_secs_f64() / 0.1);
    if x <= 0.0 {
        return 0.0;
    }
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// The mean opinion score, from 1 (bad) to 4.5.
fn mos(rating: f64) -> f64 {
    let r = rating.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What G.113, appendix I tabulated in 1999 for random loss, before there
    /// was a formula. G.711's was rounded to fives.
    #[test]
    fn losses_cost_what_was_tabulated() {
        let cost = |codec: Codec, percent: f64| {
            93.2 - rating(Span::ZERO, percent / 100.0, &codec.coding())
        };
        for (percent, tabulated) in [
            (0.0, 11.0),
            (0.5, 13.0),
            (1.0, 15.0),
            (1.5, 17.0),
            (2.0, 19.0),
            (3.0, 23.0),
            (4.0, 26.0),
            (8.0, 36.0),
            (16.0, 49.0),
        ] {
            let cost = cost(Codec::G729, percent);
            assert!((cost - tabulated).abs() < 0.6, "G.729 at {percent} %: {cost}");
        }
        for (percent, tabulated) in [
            (0.0, 0.0),
            (1.0, 5.0),
            (2.0, 7.0),
            (3.0, 10.0),
            (5.0, 15.0),
            (7.0, 20.0),
            (10.0, 25.0),
            (15.0, 35.0),
            (20.0, 45.0),
        ] {
            let cost = cost(Codec::G711, percent);
            assert!((cost - tabulated).abs() < 3.0, "G.711 at {percent} %: {cost}");
        }
    }

    /// Values of G.107, annex B, and of its curve of Idd.
    #[test]
    fn the_rating_is_that_of_the_e_model() {
        for (rating, score) in
            [(93.2, 4.41), (90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (50.0, 2.58)]
        {
            assert!((mos(rating) - score).abs() < 0.01, "{rating}: {}", mos(rating));
        }
        assert_eq!((mos(-5.0), mos(120.0)), (1.0, 4.5));
        for (millis, idd) in [(100, 0.0), (150, 0.16), (400, 24.1)] {
            let measured = delay_impairment(Span::from_millis(millis));
            assert!((measured - idd).abs() < 0.1, "{millis} ms: {measured}");
        }
        let none = Span::ZERO;
        assert_eq!(rating(none, 0.0, &Codec::G711.coding()), 93.2);
        assert!((rating(none, 0.0, &Codec::G729.coding()) - 82.2).abs() < 1e-9);
        // At a loss of Bpl per cent half of what is left is gone.
        let half = rating(none, 0.19, &Codec::G729.coding());
        assert!((half - (82.2 - 42.0)).abs() < 1e-9, "{half}");
    }
}
