//! Steady: a constant window.
//!
//! # Sources
//! The walk in CONTRIBUTING.md.
//!
//! # Differences
//! None.

use aqmlab_core::{Component, params};

use super::control::{AckSample, CongestionControl, CongestionEvent, Setup};

params! {
    /// Parameters of Steady.
    pub struct SteadyParams {
        /// The window in segments.
        segments: u64 = 20, in 1 => 1_000_000, source "the walk in CONTRIBUTING.md";
    }
}

impl Component for SteadyParams {
    const NAME: &'static str = "steady";
    const SUMMARY: &'static str = "a constant window";
}

/// State of Steady.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    window: u64,
    most: u64,
    ssthresh: u64,
}

impl Steady {
    pub fn new(params: &SteadyParams, setup: &Setup) -> Self {
        let window = params.segments * setup.mss;
        Steady { window, most: window, ssthresh: setup.initial_ssthresh }
    }
}

impl CongestionControl for Steady {
    /// After an idle time, the window is unchanged.
    fn on_ack(&mut self, _sample: &AckSample) {
        self.window = self.most;
    }
    fn on_congestion(&mut self, _event: &CongestionEvent) {}
    fn on_undo(&mut self) {}
    fn on_idle(&mut self, restart_window: u64) {
        self.window = self.window.min(restart_window);
    }
    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{event, transport};
    use super::super::{Congestion, CongestionConfig, Control};
    use super::*;

    #[test]
    fn losses_change_nothing() {
        let config = CongestionConfig::named("steady").unwrap();
        let mut control = Control::new(&config, &transport().setup(10_000, 0));
        control.on_congestion(&event(Congestion::Loss, 20_000));
        assert_eq!(control.window(), 20_000);
    }
}
