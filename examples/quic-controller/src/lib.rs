//! A congestion controller of your own for noq, evaluated by `cargo test` (tests/network.rs).

use std::any::Any;
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::Controller;

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct MyController {
    /// Factor of the window at a congestion event.
    pub decrease: f64,
    window: u64,
    threshold: u64,
    mtu: u64,
    acked: u64,
    recovery: Option<Instant>,
}

impl Default for MyController {
    fn default() -> Self {
        MyController {
            decrease: 0.7,
            window: 12_000,
            threshold: u64::MAX,
            mtu: 1200,
            acked: 0,
            recovery: None,
        }
    }
}

impl Controller for MyController {
    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _pn: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        if app_limited || self.recovery.is_some_and(|start| sent <= start) {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes;
            return;
        }
        self.acked += bytes;
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window += self.mtu;
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        _is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if self.recovery.is_some_and(|start| sent <= start) {
            return;
        }
        self.recovery = Some(now);
        let factor = if is_persistent_congestion { 0.0 } else { self.decrease };
        self.window = ((self.window as f64 * factor) as u64).max(2 * self.mtu);
        self.threshold = self.window;
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        self.window = self.window.max(2 * self.mtu);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn initial_window(&self) -> u64 {
        Self::default().window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
