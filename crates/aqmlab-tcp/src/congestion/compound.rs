//! Compound TCP: Reno's window and one that yields to queues.
//!
//! The sender's window is cwnd + dwnd. cwnd is Reno's; dwnd, the delay window,
//! grows fast while queues are short and gives way when they fill, so that it
//! uses what Reno alone would leave on fast and long paths.
//!
//! # Sources
//! M. Sridharan, K. Tan, D. Bansal and D. Thaler, "Compound TCP: A New TCP
//! Congestion Control for High-Speed and Long Distance Networks",
//! draft-sridharan-tcpm-ctcp-02 (2008); K. Tan, J. Song, Q. Zhang and M.
//! Sridharan, "A Compound TCP Approach for High-Speed and Long Distance
//! Networks", INFOCOM 2006. The rules and numbers were taken from what two
//! public ports of it do that cite both, one for Linux (Castellani, Hemminger
//! and Andrew) and one for ns-3; the texts themselves were not at hand, so
//! sections are not cited. Where the ports differ (lambda) ns-3's is followed,
//! which is made after the draft.
//!
//! # Differences
//! 1. A round with fewer than three measurements leaves dwnd as it is, as in
//!    both ports.
//! 2. dwnd is part of the window only in congestion avoidance: it is 0 in slow
//!    start and after timeouts.
//! 3. gamma adapts once a loss, from the last round's diff of the Reno window alone, and restarts
//!    after a timeout. The base round-trip time is the least of the connection and does not
//!    restart.

use aqmlab_core::{Component, Error, Result, Span, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::slow_start::SlowStartKind;
use super::window::Window;

params! {
    /// Parameters of Compound TCP.
    pub struct CompoundParams {
        /// alpha: in a round-trip time without queues the window grows by alpha window^k.
        alpha: f64 = 0.125, in 0.001 => 10.0, source "Tan et al. 2006";
        /// beta: which share of the window is lost at a loss.
        beta: f64 = 0.5, in 0.01 => 0.99, source "Tan et al. 2006";
        /// k.
        k: f64 = 0.75, in 0.0 => 1.0, source "Tan et al. 2006";
        /// eta: segments by which dwnd shrinks for each queued segment.
        eta: f64 = 1.0, in 0.0 => 100.0, source "both ports";
        /// gamma: dwnd shrinks when so many segments wait; where it begins if it adapts.
        gamma: f64 = 30.0, in 0.0 => 1e6, source "Tan et al. 2006: 30";
        /// Adapts gamma to buffers, between `gamma_low` and `gamma`.
        gamma_tuning: bool = true, source "draft-sridharan-tcpm-ctcp-02";
        /// lambda: the share of the last measurement in a gamma that adapts.
        lambda: f64 = 0.8, in 0.0 => 1.0, source "the port for ns-3; the one for Linux: 0.5";
        /// The least gamma.
        gamma_low: f64 = 5.0, in 0.0 => 1e6, source "draft-sridharan-tcpm-ctcp-02: 5";
        /// Exit rule of slow start.
        slow_start: SlowStartKind = SlowStartKind::Standard, source "RFC 5681, section 3.1";
    }
}

impl Component for CompoundParams {
    const NAME: &'static str = "compound";
    const SUMMARY: &'static str =
        "Compound TCP: Reno and a delay window (draft-sridharan-tcpm-ctcp-02)";

    fn check(&self) -> Result<()> {
        if self.gamma_low <= self.gamma {
            return Ok(());
        }
        let allowed = format!("at most gamma = {}", self.gamma);
        Err(Error::not_allowed(self.gamma_low, allowed).at("gamma_low"))
    }
}

/// Tuning: gamma is to be this share of what Reno alone keeps in the queue.
const SHARE_OF_QUEUE: f64 = 0.75;

/// The state of Compound TCP.
#[derive(Clone, Debug)]
pub(crate) struct Compound {
    /// Reno's window.
    window: Window,
    /// The delay window in bytes.
    dwnd: f64,
    dwnd_before: f64,
    params: CompoundParams,
    gamma: f64,
    /// Number of Reno's segments that waited in the last round.
    diff_reno: Option<f64>,
    /// The least round-trip time of this round, and how many were measured.
    least: Span,
    samples: u32,
}

impl Compound {
    pub fn new(params: &CompoundParams, setup: &Setup) -> Self {
        Compound {
            window: Window::new(params.slow_start, setup),
            dwnd: 0.0,
            dwnd_before: 0.0,
            params: params.clone(),
            gamma: params.gamma,
            diff_reno: None,
            least: Span::MAX,
            samples: 0,
        }
    }

    fn total(&self) -> f64 {
        self.window.cwnd + self.dwnd
    }

    /// A round has ended with enough measurements.
    fn adapt(&mut self, base: Span) {
        let waiting = 1.0 - base.as_secs_f64() / self.least.as_secs_f64();
        let segments = self.total() / self.window.mss;
        let diff = segments * waiting;
        self.diff_reno = Some(self.window.segments() * waiting);
        let step = if diff < self.gamma {
            // Reno adds a segment itself.
            (self.params.alpha * libm::pow(segments, self.params.k) - 1.0).max(0.0)
        } else {
            -self.params.eta * diff
        };
        self.dwnd = (self.dwnd + step * self.window.mss).max(0.0);
    }

    fn tune_gamma(&mut self) {
        if let (true, Some(diff)) = (self.params.gamma_tuning, self.diff_reno.take()) {
            let sample = SHARE_OF_QUEUE * diff;
            let lambda = self.params.lambda;
            let gamma = (1.0 - lambda) * self.gamma + lambda * sample;
            self.gamma = gamma.max(self.params.gamma_low).min(self.params.gamma);
        }
    }
}

impl CongestionControl for Compound {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let grows = Window::may_grow(sample);
        if sample.round_start {
            let counts = self.samples > 2 && grows && !self.window.in_slow_start();
            if let (Some(base), true) = (sample.min_rtt, counts) {
                self.adapt(base);
            }
            self.least = Span::MAX;
            self.samples = 0;
        }
        if let Some(rtt) = sample.rtt {
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
        let total = self.total();
        self.window.on_ack(sample, |window| {
            // Reno's segment comes once a round of the whole window.
            window.cwnd += window.mss * sample.counted() as f64 / total;
        });
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.tune_gamma();
        let share = self.window.cwnd / self.total();
        let flight = self.total().min(event.flight_size as f64);
        if !matches!(event.kind, Congestion::Timeout { first: false }) {
            self.dwnd_before = self.dwnd;
        }
        // Of all, 1 - beta is kept; Reno's part is halved, dwnd is the rest.
        let reno = flight * share / 2.0;
        self.window.reduce(event, reno);
        self.dwnd = match event.kind {
            Congestion::Timeout { .. } => {
                self.gamma = self.params.gamma;
                0.0
            }
            _ => (flight * (1.0 - self.params.beta) - self.window.cwnd).max(0.0),
        };
    }

    fn on_undo(&mut self) {
        self.window.on_undo();
        self.dwnd = self.dwnd.max(self.dwnd_before);
    }

    fn on_idle(&mut self, restart_window: u64) {
        let share = (restart_window as f64 / self.total()).min(1.0);
        self.window.cwnd *= share;
        self.dwnd *= share;
    }

    fn on_recovery_exit(&mut self, in_flight: u64) {
        self.window.on_recovery_exit(in_flight);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.total() as u64
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.window.set_ssthresh(ssthresh);
    }
    fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("dwnd", self.dwnd);
        see("gamma", self.gamma);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, round, transport};

    fn in_avoidance(segments: u64) -> Compound {
        let params = CompoundParams::default();
        let mut compound = Compound::new(&params, &transport().setup(segments * 1000, 0));
        compound.window.ssthresh = 0;
        compound
    }

    /// 256 segments: 256^0.75 / 8 = 8 segments a round-trip time, one of them
    /// Reno's; below 16 segments the delay window stays 0.
    #[test]
    fn without_queues_the_window_grows_by_alpha_times_a_power() {
        let mut compound = in_avoidance(256);
        round(&mut compound, 100.0);
        assert_eq!(compound.dwnd, 0.0, "a round is measured first");
        let before = compound.total();
        round(&mut compound, 100.0);
        let growth = (compound.total() - before) / 1000.0;
        assert!((growth - 8.0).abs() < 0.1, "{growth}");
        let mut small = in_avoidance(10);
        (0..3).for_each(|_| round(&mut small, 100.0));
        assert_eq!(small.dwnd, 0.0);
        assert!((12_500.0..13_000.0).contains(&small.total()));
    }

    /// 100 segments of which dwnd is 60: at 150 ms 33 wait, more than gamma.
    #[test]
    fn the_delay_window_yields_to_queues() {
        let mut compound = in_avoidance(40);
        compound.dwnd = 60_000.0;
        round(&mut compound, 150.0);
        let before = compound.dwnd;
        round(&mut compound, 150.0);
        let given = (before - compound.dwnd) / 1000.0;
        assert!((given - 101.0 / 3.0).abs() < 0.5, "{given}");
        (0..3).for_each(|_| round(&mut compound, 400.0));
        assert_eq!(compound.dwnd, 0.0, "never below nothing: then it is Reno");
    }

    #[test]
    fn a_loss_halves_both_together() {
        let mut compound = in_avoidance(40);
        compound.dwnd = 60_000.0;
        compound.on_congestion(&event(Congestion::Loss, 100_000));
        assert_eq!((compound.window(), compound.dwnd), (50_000, 30_000.0));
        compound.on_undo();
        assert_eq!((compound.window(), compound.dwnd), (100_000, 60_000.0));
        compound.on_congestion(&event(Congestion::Timeout { first: true }, 100_000));
        assert_eq!((compound.window(), compound.dwnd), (1000, 0.0));
    }

    /// 30 segments at 200 ms: 15 wait, so gamma moves by four fifths of its distance to 11.25.
    #[test]
    fn gamma_adapts_to_the_queue() {
        let mut compound = in_avoidance(30);
        (0..2).for_each(|_| round(&mut compound, 200.0));
        let waiting = compound.diff_reno.unwrap();
        assert!((waiting - 15.0).abs() < 1.0, "{waiting}");
        compound.on_congestion(&event(Congestion::Loss, 30_000));
        let adapted = 6.0 + 0.8 * 0.75 * waiting;
        assert!((compound.gamma - adapted).abs() < 1e-9, "{}", compound.gamma);
        compound.on_congestion(&event(Congestion::Loss, 30_000));
        assert!((compound.gamma - adapted).abs() < 1e-9, "a measurement is used once");
        for _ in 0..9 {
            compound.diff_reno = Some(0.0);
            compound.on_congestion(&event(Congestion::Loss, 30_000));
        }
        assert_eq!(compound.gamma, 5.0);
        compound.on_congestion(&event(Congestion::Timeout { first: true }, 30_000));
        assert_eq!(compound.gamma, 30.0);
    }
}
