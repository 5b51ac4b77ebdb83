//! Relentless: the window falls by what was lost, and by no more.
//!
//! A baseline between Reno and no control at all: it grows as Reno does, and
//! takes each lost segment for one that had no room. In equilibrium one
//! segment a round trip is lost, so the window is 1/p segments, where Reno's
//! is about the root of 1.5/p: it leaves it to the queue to say what is fair.
//!
//! # Sources
//! M. Mathis, "Relentless Congestion Control", PFLDNeT 2009, and
//! draft-mathis-iccrg-relentless-tcp-00 (known to us by their statements as
//! others quote them, not line by line); RFC 5681 for the growth.
//!
//! # Differences
//! 1. Growth is counted in bytes, so that delayed acknowledgements do not slow
//!    it down.
//! 2. What comes with CE counts as lost if the marks are counted (accurate
//!    ECN); a classic echo counts as one segment.
//! 3. What a timeout takes for lost is not subtracted: the window is one
//!    segment then (RFC 5681, section 3.1), and ssthresh what it was before.

use aqmlab_core::params;

use super::slow_start::{SlowStart, SlowStartKind};
use super::{AckSample, Congestion, CongestionControl, CongestionEvent, ControlParams, Setup};

params! {
    /// Parameters of Relentless.
    pub struct RelentlessParams {
        /// How slow start ends.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
    }
}

impl ControlParams for RelentlessParams {
    const NAME: &'static str = "relentless";
    const SUMMARY: &'static str = "Reno's growth; the window falls by what was lost (Mathis 2009)";
}

/// The state of Relentless.
#[derive(Clone, Debug)]
pub(crate) struct Relentless {
    /// In bytes.
    cwnd: f64,
    ssthresh: u64,
    mss: u64,
    slow_start: SlowStart,
    /// Both before the last loss or timeout.
    before: (f64, u64),
}

impl Relentless {
    pub fn new(params: &RelentlessParams, setup: &Setup) -> Self {
        let (cwnd, ssthresh) = (setup.initial_window as f64, setup.initial_ssthresh);
        Relentless {
            cwnd,
            ssthresh,
            mss: setup.mss,
            slow_start: SlowStart::new(params.slow_start, setup),
            before: (cwnd, ssthresh),
        }
    }

    /// So much had no room.
    fn reduce(&mut self, bytes: u64) {
        self.cwnd = (self.cwnd - bytes as f64).max((2 * self.mss) as f64);
        self.ssthresh = self.cwnd as u64;
    }
}

impl CongestionControl for Relentless {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let no_room = if sample.in_loss { 0 } else { sample.lost } + sample.ce_bytes;
        if no_room > 0 {
            self.reduce(no_room);
        }
        if sample.acked == 0 || sample.ece || sample.in_recovery || !sample.window_limited {
            return;
        }
        if (self.cwnd as u64) < self.ssthresh {
            let step = self.slow_start.on_ack(sample, self.cwnd as u64);
            self.cwnd += step.growth as f64;
            if step.exit {
                self.ssthresh = self.cwnd as u64;
            }
        } else {
            // RFC 5681, section 3.1: a segment for each window of bytes.
            self.cwnd += self.mss as f64 * sample.acked as f64 / self.cwnd;
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.slow_start.on_congestion(matches!(event.kind, Congestion::Timeout { .. }));
        if !matches!(event.kind, Congestion::Timeout { first: false }) {
            self.before = (self.cwnd, self.ssthresh);
        }
        match event.kind {
            // The losses are counted as acknowledgements tell of them.
            Congestion::Loss => self.ssthresh = self.cwnd as u64,
            // With accurate ECN `on_ack` has counted the marks: one segment is
            // what it answers to a classic echo.
            Congestion::Ecn => self.reduce(self.mss),
            Congestion::Timeout { first } => {
                if first {
                    self.ssthresh = (self.cwnd as u64).max(2 * self.mss);
                }
                self.cwnd = self.mss as f64;
            }
        }
    }

    fn on_undo(&mut self) {
        let (cwnd, ssthresh) = self.before;
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.cwnd as u64
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    /// The window is what the losses leave: there is nothing for PRR to do.
    fn recovers_by_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, event, transport};
    use super::*;

    fn relentless() -> Relentless {
        Relentless::new(&RelentlessParams::default(), &Setup::new(&transport(), 10_000, 0))
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

    /// A segment of a hundred is lost: the window becomes a hundred segments
    /// from above and from below.
    #[test]
    fn the_window_is_the_reciprocal_of_the_loss_rate() {
        for start in [20_000, 300_000] {
            let mut control = relentless();
            control.cwnd = f64::from(start);
            control.ssthresh = 1;
            for count in 1..200_000 {
                let lost = if count % 100 == 0 { 1000 } else { 0 };
                control.on_ack(&AckSample { lost, ..ack(1000) });
            }
            let segments = control.cwnd / 1000.0;
            assert!((segments - 100.0).abs() < 2.0, "{start}: {segments}");
        }
    }
}
