//! Timers (`tcp_timer.c`): one in the wheel, for timeouts, probes and reordering, and pacing's.

use aqmlab_core::Time;

use super::LinuxSender;
use super::clock::{jiffies_of, runs_out};
use super::output::Amount;
use super::rack::LEAST_TIMEOUT;
use super::state::{CaState, Pending};
use crate::connection::ConnState;
use crate::segment::DataSegment;

impl LinuxSender {
    /// Sets the timer, so many jiffies from now.
    pub(super) fn set_timer(&mut self, what: Pending, wait: u64) {
        let wait = wait.min(self.state.rto_max);
        self.pending = Some(what);
        let expires = self.state.jiffies + wait;
        if self.looked_at.is_none() || expires != self.expires {
            self.looked_at = Some(runs_out(self.state.jiffies, expires));
        }
        self.expires = expires;
    }
    /// The same, from when pacing lets something leave.
    pub(super) fn set_paced_timer(&mut self, what: Pending, wait: u64) {
        let paced = self.state.paced_until.saturating_sub(self.state.nanos) / 1_000_000;
        self.set_timer(what, wait + paced);
    }

    /// Microseconds until the timeout of the first segment.
    fn timeout_left(&self) -> i64 {
        let rto = (self.state.rto * 1000) as i64;
        match self.queue.head() {
            Some(head) => head.micros() as i64 + rto - self.state.micros as i64,
            None => rto,
        }
    }

    /// Restarts the timeout.
    pub(super) fn restart_timer(&mut self) {
        if self.state.packets_out == 0 {
            self.pending = None;
            return;
        }
        let wait = match self.pending {
            Some(Pending::Reordering | Pending::Probe) => {
                jiffies_of(self.timeout_left().max(1) as u64)
            }
            _ => self.state.rto,
        };
        self.set_paced_timer(Pending::Timeout, wait);
    }
    pub(super) fn set_probe_or_timeout(&mut self) {
        if !self.schedule_probe(true) {
            self.restart_timer();
        }
    }

    /// A tail loss probe after two round trips; whether one is due at all.
    pub(super) fn schedule_probe(&mut self, advancing: bool) -> bool {
        let state = &self.state;
        if !self.sysctl.tail_probe
            || !self.sysctl.sack
            || state.packets_out == 0
            || !matches!(state.ca_state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut wait = if state.srtt8 > 0 {
            let alone = state.packets_out == 1;
            let more = if alone { state.rto_min * 1000 } else { LEAST_TIMEOUT };
            jiffies_of((state.srtt8 >> 2) + more)
        } else {
            1000
        };
        let left = if advancing { (state.rto * 1000) as i64 } else { self.timeout_left() };
        if left > 0 {
            wait = wait.min(jiffies_of(left as u64));
        }
        self.set_paced_timer(Pending::Probe, wait);
        true
    }

    /// Returns the time at which [`on_timeout`](Self::on_timeout) must be called.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        let timer = self.looked_at.map(|jiffy| self.clock.begin(jiffy));
        match (timer, self.pace_timer) {
            (Some(timer), Some(pace)) => Some(timer.min(pace)),
            (timer, pace) => timer.or(pace),
        }
    }

    /// The time of [`next_timeout`](Self::next_timeout) has come.
    pub fn on_timeout(&mut self, now: Time) {
        self.refresh(now);
        if self.pace_timer.is_some_and(|at| at <= now) {
            self.pace_timer = None;
            self.on_pace();
        }
        if self.looked_at.is_some_and(|jiffy| jiffy <= self.state.jiffies) {
            self.looked_at = None;
            self.look_at_timer();
            self.settle_control();
        }
    }

    fn on_pace(&mut self) {
        if self.conn.state != ConnState::Established {
            return;
        }
        if self.state.lost_out > self.state.retrans_out && self.state.cwnd > self.state.in_flight()
        {
            self.retransmit_lost();
        }
        self.write_xmit(Amount::All);
    }

    fn look_at_timer(&mut self) {
        let Some(pending) = self.pending else { return };
        if self.expires > self.state.jiffies {
            self.looked_at = Some(runs_out(self.state.jiffies, self.expires));
            return;
        }
        match pending {
            Pending::Reordering => self.on_reordering_timeout(),
            Pending::Probe => self.on_probe_timeout(),
            Pending::Timeout => {
                self.pending = None;
                self.on_retransmission_timeout();
            }
            Pending::WindowProbe => {
                self.pending = None;
                self.probe_window();
            }
        }
    }

    /// Sends a new segment, or retransmits the last one.
    fn on_probe_timeout(&mut self) {
        if self.state.probe_end == 0 && self.send_probe() {
            self.state.probe_end = self.state.nxt;
            self.conn.stats.tail_probes += 1;
            self.pending = None;
        }
        self.restart_timer();
    }
    fn send_probe(&mut self) -> bool {
        self.state.probe_repeats = false;
        let state = &self.state;
        let len = (state.written - state.nxt).min(u64::from(state.mss));
        if len > 0 && state.nxt + len <= state.window_end() {
            let before = state.packets_out;
            self.write_xmit(Amount::Probe);
            return self.state.packets_out > before;
        }
        if self.queue.is_empty() || !self.transmit_last() {
            return false;
        }
        self.state.probe_repeats = true;
        true
    }

    fn on_retransmission_timeout(&mut self) {
        self.conn.stats.timeouts += 1;
        if self.conn.state == ConnState::SynSent {
            self.conn.syn_repeats += 1;
            let now = self.clock.time(self.state.nanos);
            self.transmit_syn(now);
        } else {
            if self.state.packets_out == 0 {
                return;
            }
            self.enter_loss();
            self.state.timeouts += 1;
            self.retransmit(self.queue.first(), 1);
        }
        let opens = self.conn.state == ConnState::SynSent;
        if !opens || self.conn.syn_repeats > self.sysctl.linear_syns {
            self.backoff += 1;
            self.state.rto = (self.state.rto * 2).min(self.state.rto_max);
        }
        self.set_timer(Pending::Timeout, self.state.rto);
    }

    /// Time until the next probe of a closed window.
    pub(super) fn probe_wait(&self) -> u64 {
        let base = self.state.rto.max(self.state.rto_min);
        (base << self.backoff.min(16)).min(self.state.rto_max)
    }
    fn probe_window(&mut self) {
        if self.state.packets_out > 0 || self.state.nxt >= self.state.written {
            return;
        }
        let room = self.state.window_end().saturating_sub(self.state.nxt);
        let len = self.buffer_left(0).min(u64::from(self.state.mss));
        // tcp_write_wakeup: as much as the receiver takes. What pacing holds back waits.
        if (1..len).contains(&room) {
            self.send_new(room);
            self.backoff = 0;
            return;
        }
        self.outbox.push_back(DataSegment {
            seq: self.state.nxt - 1,
            ecn: self.ecn(false),
            sent_at: self.clock.time(self.state.nanos),
            echo: self.conn.echo,
            ..DataSegment::default()
        });
        self.backoff += 1;
        self.set_timer(Pending::WindowProbe, self.probe_wait());
    }
    /// An acknowledgement came while nothing was in flight.
    pub(super) fn on_probe_answered(&mut self) {
        if self.state.nxt == self.state.written {
            return;
        }
        let len = self.buffer_left(0);
        if self.state.nxt + len <= self.state.window_end() {
            self.backoff = 0;
            self.pending = None;
        } else {
            self.set_timer(Pending::WindowProbe, self.probe_wait());
        }
    }
}
