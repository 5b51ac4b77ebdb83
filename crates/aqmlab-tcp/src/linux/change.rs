//! Other parameters during a connection (`tcp_set_congestion_control`, sysctls).

use aqmlab_core::Time;
use aqmlab_core::time::NANOS_PER_SEC;

use super::control::{Algorithm, LinuxControl};
use super::{LinuxSender, Sysctl};
use crate::connection::ConnState;
use crate::params::{EcnMode, TcpParams};

/// Windows in segments of controls without one.
const MOST: u32 = 1 << 30;

impl LinuxSender {
    /// Changes the parameters that [`TcpParams::check_change`] allows. Another congestion control
    /// starts with the window and the threshold of the connection (`tcp_reinit_congestion_control`).
    pub fn change(&mut self, now: Time, before: &TcpParams, params: &TcpParams, seed: u64) {
        self.refresh(now);
        if params.ecn != before.ecn {
            self.state.ecn = params.ecn != EcnMode::Off;
        }
        self.sysctl = Sysctl::new(params);
        let is_open = self.conn.state == ConnState::Established;
        let is_same = params.congestion_control == before.congestion_control;
        let external = self.control.as_external().filter(|_| !is_same);
        let is_steered = external.is_some_and(|external| external.steer(&mut self.state, params));
        if !is_same && !is_steered {
            self.restart_control(now, params, seed, is_open);
        }
        self.state.pacing_percent = (params.pacing_slow_start, params.pacing_avoidance);
        if !self.control.has_rate() {
            self.state.paces = params.pacing;
            self.state.update_pacing_rate();
        }
        self.pace_again();
        if is_open {
            self.push();
        }
    }

    fn restart_control(&mut self, now: Time, params: &TcpParams, seed: u64, is_open: bool) {
        if !is_open {
            self.control = LinuxControl::new(params, &params.first_setup(seed));
            return;
        }
        // A control without a window: the next one starts with the data in flight.
        if self.state.cwnd >= MOST {
            self.state.cwnd = self.state.packets_out.max(self.state.initial_window);
        }
        let mut setup = params.setup(self.cwnd(), seed);
        setup.initial_ssthresh = self.ssthresh();
        self.control = LinuxControl::new(params, &setup);
        self.state.prior_ssthresh = 0;
        self.control.start(&mut self.state, now);
    }

    /// A segment that waits leaves at the new rate, if it is higher.
    fn pace_again(&mut self) {
        let state = &mut self.state;
        let gap = u64::from(state.mss) * NANOS_PER_SEC / state.pacing_rate.max(1);
        state.paced_until = state.paced_until.min(state.nanos + gap);
        if self.pace_timer.take().is_some() && state.paces && state.paced_until > state.nanos {
            self.pace_timer = Some(self.clock.time(state.paced_until));
        }
    }
}
