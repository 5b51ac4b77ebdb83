//! Other parameters during a connection.

use aqmlab_core::Time;

use super::output::Burst;
use super::{RfcSender, sends_bursts};
use crate::congestion::{CongestionControl, Control};
use crate::connection::ConnState;
use crate::params::TcpParams;

/// Larger windows are those of controls without one: the next control starts with the data in flight.
const MOST: u64 = 1 << 40;

impl RfcSender {
    /// Changes the parameters that [`TcpParams::check_change`] allows. Another congestion control
    /// starts with the window and the threshold of the one before, as with
    /// `setsockopt(TCP_CONGESTION)` of Linux.
    pub fn change(&mut self, now: Time, before: &TcpParams, params: &TcpParams, seed: u64) {
        self.ecn.change(params);
        let is_same = params.congestion_control == before.congestion_control;
        self.params = params.clone();
        if !is_same && !self.control.steer(&params.congestion_control, self.mss) {
            self.seed = seed;
            self.restart_control(now);
        }
        self.burst = Burst::default();
        self.sends_bursts = sends_bursts(&self.control, params);
        let rate = self.control.pacing_rate();
        self.pacer.change(now, params, rate);
    }

    fn restart_control(&mut self, now: Time) {
        let (mut window, ssthresh) = (self.control.window(), self.control.ssthresh());
        if window > MOST {
            window = self.board.flight_size().max(self.params.in_bytes(self.params.initial_window));
        }
        let is_open = self.conn.state == ConnState::Established;
        let mut setup = self.params.setup(window.max(self.mss), self.seed);
        if is_open {
            setup.initial_ssthresh = ssthresh;
        } else {
            setup.initial_window = self.params.in_bytes(self.params.initial_window);
        }
        self.control = Control::new(&self.params.congestion_control, &setup);
        let segments = self.board.segments();
        self.board.delivery.keep_records(self.control.needs_rate_samples(), segments, now);
        self.lost_told = self.board.delivery.lost;
        if is_open {
            self.control.on_connected(now, self.rtt.smoothed());
        }
    }
}
