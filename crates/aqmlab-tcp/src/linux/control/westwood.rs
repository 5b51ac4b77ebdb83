//! Westwood+ (`net/ipv4/tcp_westwood.c`): bytes a jiffy.

use super::super::clock::jiffies_of;
use super::super::state::State;
use super::{Algorithm, Event, bits};

/// The least time over which bandwidth is measured, and what round-trip times begin with, in
/// jiffies.
const LEAST: u64 = 50;
const INITIAL: u64 = 20_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Westwood {
    raw: u32,
    bandwidth: u32,
    began: u64,
    bytes: u32,
    una: u64,
    accounted: u32,
    rtt: u64,
    min_rtt: u64,
    first: bool,
    forget: bool,
}

fn filtered(old: u32, new: u32) -> u32 {
    old.wrapping_mul(7).wrapping_add(new) >> 3
}

impl Westwood {
    fn update_window(&mut self, state: &State) {
        if self.first {
            self.una = state.una;
            self.first = false;
        }
        let passed = state.jiffies - self.began;
        if self.rtt == 0 || passed <= self.rtt.max(LEAST) {
            return;
        }
        let sample = self.bytes / passed as u32;
        if self.raw == 0 && self.bandwidth == 0 {
            (self.raw, self.bandwidth) = (sample, sample);
        } else {
            self.raw = filtered(self.raw, sample);
            self.bandwidth = filtered(self.bandwidth, self.raw);
        }
        self.bytes = 0;
        self.began = state.jiffies;
    }
    /// What a duplicate, delayed or partial acknowledgement stands for.
    fn counted(&mut self, state: &State) -> u32 {
        let mut acked = (state.una - self.una) as u32;
        if acked == 0 {
            self.accounted += state.mss;
            acked = state.mss;
        }
        if acked > state.mss {
            if self.accounted >= acked {
                self.accounted -= acked;
                acked = state.mss;
            } else {
                acked -= self.accounted;
                self.accounted = 0;
            }
        }
        acked
    }
    fn pipe(&self, state: &State) -> u32 {
        (self.bandwidth.wrapping_mul(self.min_rtt as u32) / state.mss).max(2)
    }
}

impl Algorithm for Westwood {
    fn init(&mut self, state: &mut State) {
        *self = Westwood {
            began: state.jiffies,
            una: state.una,
            rtt: INITIAL,
            min_rtt: INITIAL,
            first: true,
            forget: true,
            ..Westwood::default()
        };
    }
    fn measured(&mut self, _state: &mut State, rtt: i64) {
        if rtt > 0 {
            self.rtt = jiffies_of(rtt as u64);
        }
    }
    fn acknowledged(&mut self, state: &mut State, slow: bool) {
        self.update_window(state);
        let acked = match slow {
            true => self.counted(state),
            false => (state.una - self.una) as u32,
        };
        self.bytes = self.bytes.wrapping_add(acked);
        self.una = state.una;
        self.min_rtt = if self.forget { self.rtt } else { self.min_rtt.min(self.rtt) };
        self.forget = false;
    }
    fn event(&mut self, state: &mut State, event: Event) {
        match event {
            Event::ReductionComplete => {
                state.ssthresh = self.pipe(state);
                state.cwnd = state.ssthresh;
            }
            Event::Loss => {
                state.ssthresh = self.pipe(state);
                self.forget = true;
            }
            _ => {}
        }
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("bandwidth_bps", bits(f64::from(self.bandwidth) * 1000.0));
    }
}

#[cfg(test)]
mod tests {
    use crate::congestion::CongestionConfig;
    use crate::linux::control::LinuxControl;
    use crate::params::{Profile, Recovery, TcpParams};
    use crate::segment::Ack;
    use crate::testing::{RTT, at};

    /// tcp_westwood_ack: a duplicate counts as a segment only on the slow path, which one without
    /// SACK and with the same window does not take (tcp_rcv_established).
    #[test]
    fn repetitions_do_not_count_as_delivered() {
        let mut params = TcpParams::of_profile(Profile::Linux61).unwrap();
        params.congestion_control = CongestionConfig::named("westwood").unwrap();
        params.recovery = Recovery::NewReno;
        let mut sender = crate::linux::LinuxSender::new(&params, Some(100_000), 1);
        sender.open(at(0));
        let answer = Ack { syn: true, window: 65_535, ..Ack::default() };
        sender.on_ack(at(0) + RTT, &answer);
        while sender.poll(at(0) + RTT).is_some() {}
        let mut count = |ack, window| {
            sender.on_ack(at(0) + RTT * 2, &Ack { ack, window, ..Ack::default() });
            let LinuxControl::Westwood(westwood) = &sender.control else { panic!("another") };
            westwood.bytes
        };
        let mss = params.mss.get() as u32;
        assert_eq!(count(params.mss.get(), 65_535), 0, "the first one only says where it begins");
        assert_eq!(count(params.mss.get(), 65_535), 0);
        assert_eq!(count(params.mss.get(), 60_000), mss);
        assert_eq!(count(params.mss.get(), 70_000), 2 * mss);
    }
}
