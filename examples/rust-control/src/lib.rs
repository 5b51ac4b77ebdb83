//! Adds a segment each round-trip time; congestion leaves a share of the window.

use aqmlab_core::{Component, params};
use aqmlab_tcp::congestion::{
    AckSample, Congestion, CongestionControl, CongestionEvent, ControlParams, ExternalControl,
    Setup,
};

params! {
    /// The parameters of my control.
    pub struct MyControlParams {
        /// The share of the window that is kept.
        kept: f64 = 0.5, in 0.0 => 1.0, source "RFC 5681, section 3.1";
    }
}

aqmlab_tcp::export!(MyControl: MyControlParams);

impl Component for MyControlParams {
    const NAME: &'static str = "my_control";
    const SUMMARY: &'static str =
        "adds a segment each round-trip time; congestion leaves a share of the window";
}

impl ControlParams for MyControlParams {
    fn build(&self, setup: &Setup) -> Box<dyn ExternalControl> {
        Box::new(MyControl::new(self, setup))
    }
}

#[derive(Clone, Debug)]
pub struct MyControl {
    kept: f64,
    mss: u64,
    window: u64,
    ssthresh: u64,
    before: (u64, u64),
    /// Acknowledged since the window grew last.
    counted: u64,
}

impl MyControl {
    pub fn new(params: &MyControlParams, setup: &Setup) -> Self {
        let (window, ssthresh) = (setup.initial_window, setup.initial_ssthresh);
        let before = (window, ssthresh);
        MyControl { kept: params.kept, mss: setup.mss, window, ssthresh, before, counted: 0 }
    }
}

impl CongestionControl for MyControl {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.acked == 0 || ack.ece || ack.in_recovery || !ack.window_limited {
            return;
        }
        if self.window < self.ssthresh {
            self.window += ack.acked.min(self.mss);
            return;
        }
        self.counted += ack.counted();
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.mss;
        }
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        let in_use = event.flight_size.min(self.window);
        let kept = ((self.kept * in_use as f64) as u64).max(2 * self.mss);
        self.counted = 0;
        let again = event.kind == Congestion::Timeout { first: false };
        if !again {
            self.before = (self.window, self.ssthresh);
            self.ssthresh = kept;
        }
        let timeout = matches!(event.kind, Congestion::Timeout { .. });
        self.window = if timeout { self.mss } else { kept };
    }
    fn on_undo(&mut self) {
        self.window = self.window.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }
    fn on_idle(&mut self, restart_window: u64) {
        self.window = self.window.min(restart_window);
    }
    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(2 * self.mss);
    }
    fn on_recovery_exit(&mut self, in_flight: u64) {
        self.window = self.ssthresh.min(in_flight.max(self.mss) + self.mss);
    }
    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}
