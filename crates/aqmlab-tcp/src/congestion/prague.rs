//! TCP Prague: DCTCP for the Internet.
//!
//! As in DCTCP, the window falls by half of the average share of marks. These rules make it suit
//! paths with other flows: it grows with every unmarked
//! acknowledgement, also in the round trip of a reduction; it is paced; and
//! with short round-trip times it grows and yields as if they were 25 ms, so
//! that a near flow does not take all from a far one. It is made for queues
//! that mark ECT(1) at once ([`dualpi2`]'s low-latency queue), with `ecn =
//! accurate` and `ecn_codepoint = ect1`.
//!
//! [`dualpi2`]: https://www.rfc-editor.org/rfc/rfc9332
//!
//! The window has a fraction, and what may be in flight is whole segments: the
//! next larger number, which moves by one segment an acknowledgement. The pacing
//! rate follows the fraction, also below two segments, so that the amount sent has no steps.
//!
//! # Sources
//! RFC 9331, section 4.3 (requirements); draft-briscoe-iccrg-prague-
//! congestion-control-04, sections 2.3.2 (moving average), 2.4.1 to 2.4.4 (loss,
//! decrease, increase, round-trip times) and 2.5.1 (pacing); where it leaves
//! things open, and for whole segments, the reference implementation
//! `net/ipv4/tcp_prague.c` (L4STeam/linux), of which three generations are known
//! here: of 2019 to 2022 (`cwnd_cnt`), version 0.6 of 2023 (`frac_cwnd`), and
//! version 0.7 of 2024.
//!
//! # Differences
//! 1. A loss or timeout takes the whole window down at once; in the
//!    implementation it falls by one segment an acknowledgement, which sends
//!    about as much.
//! 2. Round-trip times are scaled by the square of their share of the target
//!    (RTT_CONTROL_RATE of the implementation, its default; version 0.7 has no
//!    other); the other two ways of version 0.6 are not there.
//! 3. `classic_fallback` (RFC 9331, section 4.3, item 3 requires one in
//!    uncontrolled environments; the implementation has it off, and so has this)
//!    keeps its score in real numbers, and smooths delays from the first sample
//!    on; the implementation has logarithms in integers.
//! 4. Segments are sent one by one: no bursts of a quarter of a millisecond.
//! 5. Of version 0.7 not there: a window kept as a rate up to four segments, a
//!    pacing rate that is 3 % higher in one half of a round trip and lower in the
//!    other, smaller segments below 1 Mbit/s, and an average of marks that starts
//!    with nothing (the first mark halves the window in all versions).
//! 6. Version 0.6 grows only if the window was full (`tcp_is_cwnd_limited`). Below two segments the
//!    pace prevents that, and its window stays there for good; here it grows.

mod classic;
mod whole;

use aqmlab_core::{Component, Rate, Span, Time, params};

use classic::ClassicQueue;
pub use whole::Rounding;
use whole::Whole;

use super::bbr_parts::Wire;
use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::dctcp::Marks;
use super::slow_start::SlowStartKind;
use super::window::Window;

params! {
    /// Parameters of Prague.
    pub struct PragueParams {
        /// The weight of each round trip in the average of marks.
        g: f64 = 0.0625, in 1e-6 => 1.0, source "tcp_prague.c: PRAGUE_SHIFT_G, 1/16";
        /// The round-trip time that shorter ones behave like; `none`: each its own.
        rtt_virt: Option<Span> = Some(Span::from_millis(25)),
            in Some(Span::from_nanos(1)) => Some(Span::from_secs(100)),
            source "tcp_prague.c: prague_rtt_target";
        /// Round trips after slow start from which on `rtt_virt` holds.
        rtt_transition: u64 = 500, in 0 => 1_000_000,
            source "tcp_prague.c: DEFAULT_RTT_TRANSITION (4 in version 0.7)";
        /// Rounding of the fractional window to whole segments.
        rounding: Rounding = Rounding::Up,
            source "tcp_prague.c: frac_cwnd, since 2023; carry: cwnd_cnt, 2019 to 2022";
        /// Whether the response to marks is about Reno's where the delay and its variation
        /// suggest a classic queue.
        classic_fallback: bool = false, source "tcp_prague.c: prague_ecn_fallback";
        /// Factor of the window at a loss.
        beta: f64 = 0.5, in 0.01 => 0.99, source "RFC 9331, section 4.3: as Reno; CUBIC: 0.7";
    }
}

impl Component for PragueParams {
    const NAME: &'static str = "prague";
    const SUMMARY: &'static str = "DCTCP for the Internet: paced, less dependent on the RTT (L4S)";
}

/// MINIMUM_RATE of version 0.7, bit/s.
const LEAST_RATE: f64 = 100e3;

/// The state of Prague.
#[derive(Clone, Debug)]
pub(crate) struct Prague {
    window: Window,
    whole: Whole,
    in_flight: u64,
    marks: Marks,
    /// True if a queue on the path marks.
    saw_ce: bool,
    rtt_virt: Option<Span>,
    rtt_transition: u64,
    beta: f64,
    classic: Option<ClassicQueue>,
    srtt: Option<Span>,
    /// Round trips since slow start.
    rounds: u64,
    alpha_updated: Time,
    reduced: Option<Time>,
    /// In the recovery from a loss, as opposed to a reduction for marks.
    repairs: bool,
    wire: Wire,
}

impl Prague {
    pub fn new(params: &PragueParams, setup: &Setup) -> Self {
        let window = Window::new(SlowStartKind::Standard, setup);
        Prague {
            whole: Whole::new(params.rounding, &window),
            window,
            in_flight: 0,
            marks: Marks::new(1.0, params.g),
            saw_ce: false,
            rtt_virt: params.rtt_virt,
            rtt_transition: params.rtt_transition,
            beta: params.beta,
            classic: params.classic_fallback.then(ClassicQueue::default),
            srtt: None,
            rounds: 0,
            alpha_updated: Time::ZERO,
            reduced: None,
            repairs: false,
            wire: Wire::new(setup),
        }
    }

    fn in_slow_start(&self) -> bool {
        self.window() < self.window.ssthresh
    }
    /// The time that a round trip is to be like, if it is shorter.
    fn virtual_rtt(&self) -> Option<Span> {
        let old_enough = !self.in_slow_start() && self.rounds >= self.rtt_transition;
        self.rtt_virt.filter(|target| old_enough && self.srtt.is_some_and(|srtt| srtt < *target))
    }
    /// Whether a virtual round-trip time has passed.
    fn has_passed(&self, since: Time, now: Time) -> bool {
        self.virtual_rtt().is_none_or(|target| now.saturating_since(since) >= target)
    }

    /// Once a round trip, or as soon as a virtual one has passed.
    fn update_alpha(&mut self, now: Time, round_start: bool) {
        let due = match self.virtual_rtt() {
            Some(target) => now.saturating_since(self.alpha_updated) >= target,
            None => round_start,
        };
        if due && self.saw_ce {
            self.marks.update();
            self.alpha_updated = now;
        } else if due {
            self.marks.forget();
        }
        self.rounds += u64::from(round_start && !self.in_slow_start());
    }

    /// Additive increase: a segment for each unmarked window, or its share in a
    /// virtual round-trip time, twice: the window is smaller by it as well.
    fn increase(&mut self, unmarked: u64) {
        let share = match (self.virtual_rtt(), self.srtt) {
            (Some(target), Some(srtt)) => srtt.as_secs_f64() / target.as_secs_f64(),
            _ => 1.0,
        };
        self.window.cwnd += share * share * self.window.mss * unmarked as f64 / self.base();
    }
    /// Base of increases and reductions.
    fn base(&self) -> f64 {
        match self.whole.rounding {
            Rounding::Carry => self.whole.bytes(),
            _ => self.window.cwnd,
        }
    }
    /// Returns whether the pace keeps fewer segments in flight than the window, which is at least two.
    fn is_held_by_pace(&self) -> bool {
        self.whole.rounding == Rounding::Up && self.window.segments() < 2.0
    }
    /// Half of the average of marks, or of what a classic queue asks for.
    fn answer_marks(&mut self, event: &CongestionEvent) {
        let least = self.classic.map_or(0.0, |classic| classic.least_alpha());
        let kept = self.window.cwnd - self.marks.alpha().max(least) / 2.0 * self.base();
        self.window.reduce(event, kept);
        if self.whole.rounding == Rounding::Up {
            // Below two segments the pacing rate holds back.
            let seconds = self.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
            self.window.cwnd = kept.max(LEAST_RATE / self.wire.bits(1.0) * seconds);
        }
        self.whole.step_again(self.window.cwnd);
        // It is no slow start if the whole number was the smaller one.
        self.window.ssthresh = self.window.ssthresh.min(self.window());
    }
}

impl CongestionControl for Prague {
    /// The first window is paced by the handshake's round-trip time.
    fn on_connected(&mut self, _now: Time, rtt: Option<Span>) {
        self.srtt = rtt;
    }

    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        self.srtt = sample.smoothed_rtt;
        self.saw_ce |= sample.ece;
        self.marks.count(sample);
        if let Some(classic) = &mut self.classic {
            if let Some(rtt) = sample.rtt {
                classic.sample(rtt, self.window.segments());
            }
            if sample.round_start && self.saw_ce {
                classic.judge(sample.min_rtt);
            }
        }
        self.update_alpha(sample.now, sample.round_start);
        self.repairs &= sample.in_recovery;
        self.in_flight = sample.in_flight;
        let unmarked = sample.counted().saturating_sub(sample.ce_bytes);
        let limited = sample.window_limited || self.is_held_by_pace();
        if unmarked > 0 && !self.repairs && limited {
            if self.in_slow_start() {
                self.window.slow_start(&AckSample { acked: unmarked, ..*sample });
                self.whole.jump(self.window.cwnd);
                return;
            }
            self.increase(unmarked);
        }
        self.whole.step(self.window.cwnd);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.kind {
            Congestion::Ecn => {
                // Not more often than once in a virtual round-trip time.
                if self.reduced.is_none_or(|last| self.has_passed(last, event.now)) {
                    self.reduced = Some(event.now);
                    self.answer_marks(event);
                }
            }
            Congestion::Loss | Congestion::Timeout { .. } => {
                self.window.reduce(event, self.window.in_use(event) * self.beta);
                self.whole.jump(self.window.cwnd);
                self.repairs = event.kind == Congestion::Loss;
            }
        }
    }

    fn on_undo(&mut self) {
        self.window.on_undo();
        self.whole.jump(self.window.cwnd);
        self.repairs = false;
    }

    #[inline]
    fn window(&self) -> u64 {
        match self.whole.rounding {
            Rounding::None => self.window.window(),
            _ => self.whole.bytes() as u64,
        }
    }
    fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }
    /// A window in a round-trip time; two in slow start.
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let srtt = self.srtt.filter(|srtt| *srtt > Span::ZERO)?;
        let windows = if self.window() < self.window.ssthresh / 2 { 2.0 } else { 1.0 };
        let window = match self.whole.rounding {
            Rounding::Carry => self.whole.bytes().max(self.in_flight as f64),
            _ => self.window.cwnd,
        };
        Some(self.wire.rate(windows * window / srtt.as_secs_f64()))
    }
    /// The window is the amount in flight, in recoveries as well.
    fn recovers_by_itself(&self) -> bool {
        true
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("alpha", self.marks.alpha());
        if let Some(classic) = &self.classic {
            see("classic_score", classic.score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at, event, transport};

    fn prague(cwnd: u64) -> Prague {
        let mut prague = Prague::new(&PragueParams::default(), &transport().setup(cwnd, 0));
        prague.window.ssthresh = cwnd;
        prague
    }
    /// Acknowledges segments one by one for some round trips of this length, one
    /// in `every` with CE; reductions come as the sender has them, once a round.
    fn run(prague: &mut Prague, rtt: Span, rounds: u64, every: u64) {
        let (mut now, mut count) = (Time::ZERO, 0);
        for _ in 0..rounds {
            let segments = (prague.window() / 1000).max(1);
            let mut told = false;
            for index in 0..segments {
                now += rtt / segments;
                count += 1;
                let ce = u64::from(count % every == 0);
                prague.on_ack(&AckSample {
                    now,
                    round_start: index == 0,
                    ece: ce > 0,
                    ce_packets: ce,
                    ce_bytes: 1000 * ce,
                    smoothed_rtt: Some(rtt),
                    ..ack(1000)
                });
                if ce > 0 && !told {
                    told = true;
                    let echo = event(Congestion::Ecn, prague.window());
                    prague.on_congestion(&CongestionEvent { now, ..echo });
                }
            }
        }
    }

    /// A share p of marks, evenly: each round trip adds 1 - p segments and takes
    /// p/2 of the window, which so is 2 (1 - p) / p segments.
    #[test]
    fn the_window_is_two_over_the_share_of_marks() {
        for (start, every) in [(20_000, 50), (300_000, 50), (20_000, 20)] {
            let mut prague = prague(start);
            run(&mut prague, Span::from_millis(50), 2000, every);
            let expected = 2.0 * (every as f64 - 1.0);
            let ratio = prague.window.cwnd / 1000.0 / expected;
            assert!((ratio - 1.0).abs() < 0.05, "{start} {every}: {ratio}");
            assert!((prague.marks.alpha() * every as f64 - 1.0).abs() < 0.3);
        }
    }

    /// The same share of marks gives a near flow the rate of a far one, 5 ms
    /// and 25 ms: a fifth of the window, and somewhat more, as a reduction waits
    /// for the first mark after 25 ms. Without, the windows are the same.
    #[test]
    fn short_round_trips_behave_like_the_virtual_one() {
        let window = |rtt, rtt_virt| {
            let mut prague = prague(50_000);
            prague.rtt_virt = rtt_virt;
            run(&mut prague, Span::from_millis(rtt), 20_000, 100);
            prague.window.cwnd
        };
        let target = Some(Span::from_millis(25));
        let ratio = window(25, target) / window(5, target);
        assert!((3.5..5.2).contains(&ratio), "{ratio}");
        let ratio = window(25, None) / window(5, None);
        assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn growth_is_the_square_of_the_share_after_the_transition() {
        let mut prague = prague(10_000);
        let news = AckSample { smoothed_rtt: Some(Span::from_millis(5)), ..ack(1000) };
        prague.on_ack(&news);
        assert_eq!(prague.window.cwnd, 10_100.0, "a young flow has its own");
        prague.rounds = 500;
        let before = prague.window.cwnd;
        prague.on_ack(&news);
        let expected = 1e6 / before / 25.0;
        assert!((prague.window.cwnd - before - expected).abs() < 1e-9);
    }

    #[test]
    fn marked_bytes_add_nothing_and_unmarked_ones_do_after_a_reduction() {
        let mut prague = prague(10_000);
        prague.on_congestion(&event(Congestion::Ecn, 10_000));
        assert_eq!(prague.window.cwnd, 5000.0, "the first mark halves: alpha is 1");
        prague.on_ack(&marked());
        assert_eq!(prague.window.cwnd, 5000.0);
        prague.on_ack(&AckSample { in_recovery: true, ..ack(1000) });
        assert_eq!(prague.window.cwnd, 5200.0);
    }

    fn marked() -> AckSample {
        AckSample { ece: true, ce_packets: 1, ce_bytes: 1000, ..ack(1000) }
    }
    /// Amount in flight after a number of marked acknowledgements.
    fn whole(prague: &mut Prague, acks: u64) -> Vec<u64> {
        let mut after = || {
            prague.on_ack(&marked());
            prague.window()
        };
        (0..acks).map(|_| after()).collect()
    }

    #[test]
    fn what_may_be_in_flight_falls_by_a_segment_an_acknowledgement_and_is_rounded_up() {
        let mut prague = prague(10_000);
        prague.marks = Marks::new(0.5, 0.0625);
        prague.on_congestion(&event(Congestion::Ecn, 10_000));
        assert_eq!(prague.window.cwnd, 7500.0);
        assert_eq!(prague.window(), 9000);
        assert_eq!(whole(&mut prague, 3), [8000, 8000, 8000]);
        assert!(!prague.in_slow_start());
        for _ in 0..5 {
            prague.on_ack(&ack(1000)); // a seventh or an eighth of a segment each
        }
        assert_eq!((prague.window.cwnd as u64, prague.window()), (8144, 9000));
    }

    /// An acknowledgement that reports marks moves it once.
    #[test]
    fn one_acknowledgement_moves_one_segment() {
        let mut prague = prague(10_000);
        prague.window.cwnd = 10_001.0;
        prague.on_ack(&marked());
        assert_eq!(prague.window(), 11_000);
        prague.on_congestion(&event(Congestion::Ecn, 10_000));
        assert_eq!(prague.window(), 9000);
    }

    /// Versions of 2019 to 2022: shares of the whole window, applied in whole segments.
    #[test]
    fn a_carried_fraction_moves_the_window_when_it_is_a_segment() {
        let params = PragueParams { rounding: Rounding::Carry, ..PragueParams::default() };
        let mut prague = Prague::new(&params, &transport().setup(10_000, 0));
        prague.window.ssthresh = 10_000;
        prague.marks = Marks::new(0.1, 0.0625);
        prague.srtt = Some(Span::from_millis(10));
        prague.on_congestion(&event(Congestion::Ecn, 10_000));
        assert_eq!((prague.window.cwnd, prague.window()), (9500.0, 10_000));
        assert!(!prague.in_slow_start());
        assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(10 * 1040 * 8 * 100)));
        prague.on_congestion(&event(Congestion::Ecn, 10_000));
        assert_eq!((prague.window.cwnd, prague.window()), (9000.0, 9000));
        for _ in 0..8 {
            prague.on_ack(&ack(1000));
        }
        assert_eq!(prague.window(), 9000);
        prague.on_ack(&ack(1000));
        assert_eq!((prague.window.cwnd.round(), prague.window()), (10_000.0, 10_000));
        for _ in 0..100 {
            prague.on_ack(&marked());
            prague.on_congestion(&event(Congestion::Ecn, 10_000));
        }
        assert_eq!((prague.window.cwnd, prague.window()), (2000.0, 2000));
    }

    #[test]
    fn without_rounding_the_window_is_what_may_be_in_flight() {
        let mut prague = prague(10_000);
        prague.whole.rounding = Rounding::None;
        prague.marks = Marks::new(0.5, 0.0625);
        prague.on_congestion(&event(Congestion::Ecn, 10_000));
        assert_eq!(prague.window(), 7500);
    }

    /// Two segments stay in flight; the pace falls to 100 kbit/s.
    #[test]
    fn below_two_segments_the_pace_holds_back() {
        let mut prague = prague(4000);
        let smoothed_rtt = Some(Span::from_millis(10));
        for _ in 0..2 {
            prague.on_ack(&AckSample { smoothed_rtt, ..marked() });
            prague.on_congestion(&event(Congestion::Ecn, 4000));
        }
        assert_eq!((prague.window.cwnd, prague.window()), (1000.0, 2000));
        assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(1040 * 8 * 100)));
        assert!(!prague.in_slow_start());
        for _ in 0..20 {
            prague.on_congestion(&event(Congestion::Ecn, 4000));
        }
        let rate = prague.pacing_rate().unwrap().as_bps();
        assert!((99_999..=100_000).contains(&rate), "{rate}");
    }

    /// The pace never lets two segments be in flight, so that the window is never full.
    #[test]
    fn below_two_segments_it_grows_without_a_full_window() {
        let mut prague = prague(4000);
        prague.on_ack(&marked());
        for _ in 0..20 {
            prague.on_congestion(&event(Congestion::Ecn, 4000));
        }
        let open = AckSample { window_limited: false, ..ack(1000) };
        let mut acknowledged = 0;
        while prague.window.segments() < 2.0 {
            prague.on_ack(&open);
            acknowledged += 1;
            assert!(acknowledged < 10, "{}", prague.window.cwnd);
        }
        let cwnd = prague.window.cwnd;
        prague.on_ack(&open);
        assert_eq!(prague.window.cwnd, cwnd);
    }

    #[test]
    fn losses_halve_and_hold_until_they_are_repaired() {
        let mut prague = prague(20_000);
        prague.on_congestion(&event(Congestion::Loss, 20_000));
        assert_eq!((prague.window(), prague.ssthresh()), (10_000, 10_000));
        prague.on_ack(&AckSample { in_recovery: true, ..ack(1000) });
        assert_eq!(prague.window(), 10_000);
        prague.on_ack(&ack(1000));
        assert_eq!((prague.window.cwnd, prague.window()), (10_100.0, 11_000));
        prague.on_congestion(&event(Congestion::Timeout { first: true }, 10_100));
        assert_eq!((prague.window(), prague.ssthresh()), (1000, 5050));
        prague.on_undo();
        assert_eq!((prague.window.cwnd, prague.ssthresh()), (10_100.0, 10_000));
        assert_eq!(prague.window(), 11_000);
    }

    #[test]
    fn alpha_waits_for_the_first_mark() {
        let mut prague = prague(20_000);
        for round in 0..20 {
            prague.on_ack(&AckSample { round_start: true, now: at(round), ..ack(1000) });
        }
        assert_eq!(prague.marks.alpha(), 1.0);
    }

    /// 20 segments of 1000 bytes, with 40 more each, in 10 ms.
    #[test]
    fn a_window_leaves_in_a_round_trip_and_two_in_slow_start() {
        let mut prague = prague(20_000);
        assert_eq!(prague.pacing_rate(), None);
        prague.srtt = Some(Span::from_millis(10));
        let bits = 20.0 * 1040.0 * 8.0 / 0.01;
        assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(bits as u64)));
        prague.window.ssthresh = 100_000;
        assert_eq!(prague.pacing_rate(), Some(Rate::from_bps(2 * bits as u64)));
    }

    #[test]
    fn a_classic_queue_is_answered_with_a_third_of_the_window() {
        let mut prague = prague(20_000);
        prague.marks = Marks::new(0.01, 0.0625);
        prague.on_congestion(&event(Congestion::Ecn, 20_000));
        assert_eq!(prague.window.cwnd, 19_900.0);
        prague.classic = Some(ClassicQueue { score: 9.0, ..ClassicQueue::default() });
        prague.on_congestion(&event(Congestion::Ecn, 20_000));
        assert_eq!(prague.window.cwnd, 19_900.0 * (1.0 - 0.3125));
    }

    #[test]
    fn after_an_undo_the_window_grows_again() {
        let grown = |undone: bool| {
            let mut prague = prague(20_000);
            prague.on_congestion(&event(Congestion::Loss, 20_000));
            if undone {
                prague.on_undo();
            }
            let before = prague.window.cwnd;
            prague.on_ack(&AckSample { in_recovery: true, window_limited: true, ..ack(1000) });
            prague.window.cwnd - before
        };
        assert!(grown(true) > 0.0);
        assert_eq!(grown(false), 0.0);
    }

    #[test]
    fn two_segments_are_not_held_by_the_pace() {
        for (cwnd, is_held) in [(2000, false), (1999, true)] {
            let mut prague = prague(20_000);
            prague.window.cwnd = f64::from(cwnd);
            assert_eq!(prague.is_held_by_pace(), is_held, "{cwnd}");
        }
    }
}
