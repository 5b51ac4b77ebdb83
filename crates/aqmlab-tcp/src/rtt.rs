//! Round-trip times, and the retransmission timeout.
//!
//! # Sources
//! RFC 6298. Its weights are for one measurement a round-trip time (section 3; RFC 7323,
//! section 4.2): with one for each acknowledgement of a large window the variation is
//! forgotten within it. So the timeout is made of one segment at a time: the next is sent
//! after the last was acknowledged. The smoothed round-trip time that controls, pacing and
//! probes use averages every measurement.

use aqmlab_core::{Span, Time};

use crate::params::{RetransmissionTimer, TcpParams};

/// Smoothed round-trip time, and the timeout.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// The average of all measurements.
    smoothed: Option<Span>,
    /// What the timeout is made of, once there is a measurement.
    timed: Option<Timed>,
    /// Data sent before belong to the previous round-trip time.
    round_from: Time,
    /// The least of all measurements, and of those of data.
    least: Option<Span>,
    least_of_data: Option<Span>,
    rto: Span,
    granularity: Span,
    min: Span,
    max: Span,
    kind: RetransmissionTimer,
}

/// SRTT and variation in the arithmetic of each timer.
#[derive(Clone, Copy, Debug)]
enum Timed {
    /// SRTT and RTTVAR.
    Standard { srtt: Span, variation: Span },
    /// Eight times the round-trip time and four times the variation, in ticks.
    Ticks { srtt: u64, variation: u64 },
}

impl RttEstimator {
    pub fn new(params: &TcpParams) -> Self {
        RttEstimator {
            smoothed: None,
            timed: None,
            round_from: Time::ZERO,
            least: None,
            least_of_data: None,
            // (2.1) until a round-trip time has been measured.
            rto: params.initial_rto,
            granularity: params.clock_granularity,
            min: params.min_rto,
            max: params.max_rto,
            kind: params.retransmission_timer,
        }
    }

    /// The handshake's.
    pub fn first_sample(&mut self, now: Time, rtt: Span) {
        self.least = Some(rtt);
        self.smoothed = Some(rtt);
        self.time(now, rtt);
    }

    /// A segment of data was acknowledged.
    pub fn sample(&mut self, now: Time, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.least_of_data = Some(self.least_of_data.map_or(rtt, |least| least.min(rtt)));
        self.smoothed = Some(self.smoothed.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        self.time(now, rtt);
    }

    /// (2.2), (2.3): a measurement for the timeout.
    fn time(&mut self, now: Time, rtt: Span) {
        let new_round = self.timed.is_none() || now - rtt >= self.round_from;
        self.timed = Some(match self.timed {
            None => self.first_timed(now, rtt),
            Some(Timed::Standard { srtt, variation }) if new_round => {
                // alpha = 1/8, beta = 1/4; the variation first.
                let variation = (variation * 3 + distance(srtt, rtt)) / 4;
                Timed::Standard { srtt: (srtt * 7 + rtt) / 8, variation }
            }
            Some(Timed::Ticks { srtt, variation }) if new_round => {
                let error = self.ticks(now, rtt) as i64 - (srtt >> 3) as i64;
                let more = error.abs() - (variation >> 2) as i64;
                Timed::Ticks {
                    srtt: (srtt as i64 + error).max(1) as u64,
                    variation: (variation as i64 + more).max(1) as u64,
                }
            }
            Some(timed) => timed,
        });
        if new_round {
            self.round_from = now;
        }
        self.undo_back_off();
    }

    /// ns-2's `rtt_update`: ticks of the clock that pass between sending and now.
    fn ticks(&self, now: Time, rtt: Span) -> u64 {
        let tick = self.granularity.as_nanos();
        let sent = (now - rtt).as_nanos();
        (now.as_nanos() / tick - sent / tick).max(1)
    }

    fn first_timed(&self, now: Time, rtt: Span) -> Timed {
        match self.kind {
            RetransmissionTimer::Ns2 => {
                let ticks = self.ticks(now, rtt);
                Timed::Ticks { srtt: ticks << 3, variation: ticks << 1 }
            }
            _ => Timed::Standard { srtt: rtt, variation: rtt / 2 },
        }
    }

    /// (5.5) the timer ran out.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max);
    }

    /// Restores the measured timeout: the last timeout was spurious, or there is a new measurement.
    pub fn undo_back_off(&mut self) {
        if let Some(timed) = self.timed {
            let rto = match timed {
                Timed::Standard { srtt, variation } => srtt + self.granularity.max(variation * 4),
                Timed::Ticks { srtt, variation } => {
                    self.granularity * (((variation << 3) + srtt) >> 3)
                }
            };
            self.rto = rto.clamp(self.min, self.max); // (2.4), (2.5)
        }
    }

    /// (5.7) the SYN had to be sent again: data begin with at least 3 s.
    pub fn after_syn_timeout(&mut self, initial: Span) {
        self.rto = initial.max(Span::from_secs(3)).min(self.max);
    }

    pub fn rto(&self) -> Span {
        self.rto
    }

    pub fn min(&self) -> Option<Span> {
        self.least
    }

    /// The base round-trip time for controls. A SYN is small and takes less time on a slow
    /// link than data do; Linux's controls begin after it as well.
    pub fn min_of_data(&self) -> Option<Span> {
        self.least_of_data
    }

    pub fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    /// RTTVAR: the mean deviation, as the timer has it.
    pub fn variation(&self) -> Option<Span> {
        self.timed.map(|timed| match timed {
            Timed::Standard { variation, .. } => variation,
            Timed::Ticks { variation, .. } => self.granularity * variation / 4,
        })
    }
}

fn distance(one: Span, other: Span) -> Span {
    Span::from_nanos(one.as_nanos().abs_diff(other.as_nanos()))
}

#[cfg(test)]
mod tests {
    /// ns-2's `rtt_update` computed manually, ticks of 10 ms: 53 ms from 12 to 65 ms are 5 ticks,
    /// so that 8 srtt = 40, 4 rttvar = 10 and the timeout is (10 * 8 + 40) / 8 = 15 ticks; then 8
    /// ticks: the error is 3, 43 and 10 + 3 - 2 = 11, and (88 + 43) / 8 = 16.
    #[test]
    fn ticks_are_whole_as_in_ns2() {
        let params = TcpParams {
            retransmission_timer: RetransmissionTimer::Ns2,
            clock_granularity: Span::from_millis(10),
            min_rto: Span::from_millis(10),
            ..TcpParams::rfc()
        };
        let mut rtt = RttEstimator::new(&params);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        rtt.first_sample(at(65), Span::from_millis(53));
        assert_eq!(rtt.rto(), Span::from_millis(150));
        rtt.sample(at(165), Span::from_millis(76));
        assert_eq!(rtt.rto(), Span::from_millis(160));
    }

    use super::*;
    use crate::testing::at;

    #[test]
    fn the_timeout_follows_rfc_6298() {
        let params = TcpParams { min_rto: Span::from_millis(200), ..TcpParams::rfc() };
        let mut rtt = RttEstimator::new(&params);
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.first_sample(at(100), Span::from_millis(100));
        assert_eq!(rtt.rto(), Span::from_millis(300)); // 100 + 4 x 50
        rtt.sample(at(200), Span::from_millis(100));
        assert_eq!(rtt.rto(), Span::from_millis(250)); // 100 + 4 x 37.5
        rtt.sample(at(380), Span::from_millis(180));
        // variation (3 x 37.5 + 80) / 4 = 48.125, smoothed 110
        assert_eq!(rtt.rto(), Span::from_micros(302_500));
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Span::from_secs(60));
    }

    #[test]
    fn a_steady_round_trip_time_is_bounded_by_the_least_timeout() {
        let mut rtt = RttEstimator::new(&TcpParams::rfc());
        for number in 1..100 {
            rtt.sample(at(20 * number), Span::from_millis(20));
        }
        assert_eq!(rtt.rto(), Span::from_secs(1));
    }

    /// A thousand acknowledgements a round trip, which doubles every two: as many measurements
    /// as that leave hardly a variation, one a round trip leaves room for the next one.
    #[test]
    fn a_large_window_does_not_shorten_the_history() {
        let params = TcpParams { min_rto: Span::from_millis(1), ..TcpParams::rfc() };
        let mut rtt = RttEstimator::new(&params);
        rtt.first_sample(at(100), Span::from_millis(100));
        let (mut now, mut last) = (at(100), Span::from_millis(100));
        for longest in [140, 200, 280, 400].map(Span::from_millis) {
            for number in 1..=1000 {
                let time = last + (longest - last) * number / 1000;
                rtt.sample(now + time, time);
            }
            assert!(rtt.rto() > longest + longest / 10, "{:?} {longest:?}", rtt.rto());
            (now, last) = (now + longest, longest);
        }
    }

    #[test]
    fn the_base_of_controls_is_that_of_data() {
        let mut rtt = RttEstimator::new(&TcpParams::rfc());
        rtt.first_sample(at(50), Span::from_millis(50));
        assert_eq!((rtt.min(), rtt.min_of_data()), (Some(Span::from_millis(50)), None));
        rtt.sample(at(110), Span::from_millis(60));
        assert_eq!(rtt.min_of_data(), Some(Span::from_millis(60)));
        assert_eq!(rtt.min(), Some(Span::from_millis(50)));
    }
}
