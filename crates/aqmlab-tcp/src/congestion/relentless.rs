//! Relentless: the window falls by exactly the lost data.
//!
//! A baseline between Reno and no control at all: it grows as Reno does, and
//! takes each lost segment for one that had no room. In equilibrium one
//! segment a round trip is lost, so the window is 1/p segments, where Reno's
//! is about the root of 1.5/p: fairness is left to the queue.
//!
//! # Sources
//! M. Mathis, "Relentless Congestion Control", PFLDNeT 2009, and
//! draft-mathis-iccrg-relentless-tcp-00 (known to us by their statements as
//! others quote them, not line by line); RFC 5681 for the growth.
//!
//! # Differences
//! 1. The window grows by a segment for each window of bytes that arrive, in
//!    recoveries as well: with a loss a round trip in equilibrium it would
//!    hardly ever grow else.
//! 2. Data with CE count as lost if the marks are counted (accurate ECN), and each echo, of either
//!    kind, as one segment more.
//! 3. Losses of a timeout are not subtracted: the window is one segment then (RFC 5681, section
//!    3.1), and ssthresh keeps its value.

use aqmlab_core::{Component, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::slow_start::SlowStartKind;
use super::window::Window;

params! {
    /// Parameters of Relentless.
    pub struct RelentlessParams {
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
    }
}

impl Component for RelentlessParams {
    const NAME: &'static str = "relentless";
    const SUMMARY: &'static str =
        "Reno's growth; the window shrinks by the number of lost segments (Mathis 2009)";
}

/// The state of Relentless.
#[derive(Clone, Debug)]
pub(crate) struct Relentless {
    window: Window,
}

impl Relentless {
    pub fn new(params: &RelentlessParams, setup: &Setup) -> Self {
        Relentless { window: Window::new(params.slow_start, setup) }
    }
}

impl CongestionControl for Relentless {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let window = &mut self.window;
        let no_room = if sample.in_loss { 0 } else { sample.lost } + sample.ce_bytes;
        if no_room > 0 {
            window.cwnd = (window.cwnd - no_room as f64).max(2.0 * window.mss);
            window.ssthresh = window.window();
        }
        if window.in_slow_start() {
            if Window::counts(sample) {
                window.slow_start(sample);
            }
        } else if sample.window_limited {
            window.grow(1.0, sample.delivered.saturating_sub(sample.ce_bytes));
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let kept = match event.kind {
            // Losses are subtracted when acknowledgements report them.
            Congestion::Loss | Congestion::Timeout { .. } => self.window.cwnd,
            // Counted marks have been subtracted: this is for an echo.
            Congestion::Ecn => self.window.cwnd - self.window.mss,
        };
        self.window.reduce(event, kept);
    }

    fn on_undo(&mut self) {
        self.window.on_undo();
    }

    fn on_idle(&mut self, restart_window: u64) {
        self.window.on_idle(restart_window);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window.window()
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.window.set_ssthresh(ssthresh);
    }
    fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }
    /// The losses determine the window: PRR has no effect.
    fn recovers_by_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, event, transport};

    fn relentless() -> Relentless {
        Relentless::new(&RelentlessParams::default(), &transport().setup(10_000, 0))
    }

    #[test]
    fn the_window_falls_by_what_was_lost() {
        let mut control = relentless();
        control.on_congestion(&event(Congestion::Loss, 10_000));
        assert_eq!((control.window(), control.ssthresh()), (10_000, 10_000));
        let news = AckSample { lost: 3000, in_recovery: true, ..ack(0) };
        control.on_ack(&news);
        assert_eq!((control.window(), control.ssthresh()), (7000, 7000));
        control.on_ack(&AckSample { lost: 9000, ..news });
        assert_eq!(control.window(), 2000, "not below two segments");
        control.on_undo();
        assert_eq!(control.window(), 10_000);
    }

    #[test]
    fn marks_count_as_losses_and_an_echo_as_one_segment() {
        let mut control = relentless();
        control.on_ack(&AckSample { ece: true, ce_bytes: 2000, ..ack(2000) });
        assert_eq!(control.window(), 8000);
        control.on_congestion(&event(Congestion::Ecn, 8000));
        assert_eq!(control.window(), 7000);
    }

    #[test]
    fn what_a_timeout_takes_for_lost_is_not_subtracted() {
        let mut control = relentless();
        control.on_congestion(&event(Congestion::Timeout { first: true }, 10_000));
        assert_eq!((control.window(), control.ssthresh()), (1000, 10_000));
        control.on_ack(&AckSample { lost: 9000, in_loss: true, ..ack(1000) });
        assert_eq!(control.window(), 2000, "slow start goes on");
    }

    /// A segment more each round trip and a segment less for each loss: with one
    /// of a hundred lost the window becomes a hundred segments, from above and
    /// from below.
    #[test]
    fn the_window_is_the_distance_of_losses() {
        for start in [20_000.0, 300_000.0] {
            let mut control = relentless();
            control.window.cwnd = start;
            control.window.ssthresh = 1;
            for count in 1..200_000 {
                let lost = if count % 100 == 0 { 1000 } else { 0 };
                control.on_ack(&AckSample { lost, in_recovery: lost > 0, ..ack(1000) });
            }
            let segments = control.window.segments();
            assert!((segments - 100.0).abs() < 2.0, "{start}: {segments}");
        }
    }
}
