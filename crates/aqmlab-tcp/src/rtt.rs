//! Round-trip times, and the retransmission timeout (RFC 6298).
//!
//! The weights of RFC 6298 are for one measurement a round-trip time (its section 3; RFC
//! 7323, section 4.2): with one for each acknowledgement of a large window the variation is
//! forgotten within it. So the timeout is made of one segment at a time: the next is sent
//! after the last was acknowledged. The smoothed round-trip time that controls, pacing and
//! probes go by has every measurement, as in Linux.

use aqmlab_core::{Span, Time};

use crate::params::TcpParams;

/// Smoothed round-trip time, and the timeout.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// The average of all measurements.
    smoothed: Option<Span>,
    /// SRTT and RTTVAR of the timeout, once there is a measurement.
    timed: Option<(Span, Span)>,
    /// What was sent before is not timed for them, unless `every_ack`.
    timed_from: Time,
    /// The least of all measurements, and of those of data.
    least: Option<Span>,
    least_of_data: Option<Span>,
    rto: Span,
    granularity: Span,
    min: Span,
    max: Span,
    every_ack: bool,
}

impl RttEstimator {
    pub fn new(params: &TcpParams) -> Self {
        RttEstimator {
            smoothed: None,
            timed: None,
            timed_from: Time::ZERO,
            least: None,
            least_of_data: None,
            // (2.1) until a round-trip time has been measured.
            rto: params.initial_rto,
            granularity: params.clock_granularity,
            min: params.min_rto,
            max: params.max_rto,
            every_ack: params.time_every_ack,
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
        if self.every_ack || now - rtt >= self.timed_from {
            self.time(now, rtt);
        } else {
            self.undo_back_off();
        }
    }

    /// (2.2), (2.3): one measurement for the timeout.
    fn time(&mut self, now: Time, rtt: Span) {
        let (srtt, variation) = match self.timed {
            None => (rtt, rtt / 2),
            // alpha = 1/8, beta = 1/4; the variation first.
            Some((srtt, variation)) => {
                let error = Span::from_nanos(srtt.as_nanos().abs_diff(rtt.as_nanos()));
                ((srtt * 7 + rtt) / 8, (variation * 3 + error) / 4)
            }
        };
        self.timed = Some((srtt, variation));
        self.timed_from = now;
        self.rto = self.timeout(srtt, variation);
    }

    /// (5.5) the timer ran out.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max);
    }

    /// The timeout was spurious, or something new was measured: what was measured holds again.
    pub fn undo_back_off(&mut self) {
        if let Some((srtt, variation)) = self.timed {
            self.rto = self.timeout(srtt, variation);
        }
    }

    fn timeout(&self, srtt: Span, variation: Span) -> Span {
        let rto = srtt + self.granularity.max(variation * 4);
        rto.clamp(self.min, self.max) // (2.4), (2.5)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_timeout_follows_rfc_6298() {
        let params = TcpParams { min_rto: Span::from_millis(200), ..TcpParams::default() };
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
        let mut rtt = RttEstimator::new(&TcpParams::default());
        for number in 1..100 {
            rtt.sample(at(20 * number), Span::from_millis(20));
        }
        assert_eq!(rtt.rto(), Span::from_secs(1));
    }

    /// A thousand acknowledgements a round trip, which doubles every two: as many measurements
    /// as that leave hardly a variation, one a round trip leaves room for the next one.
    #[test]
    fn a_large_window_does_not_shorten_the_history() {
        let params = TcpParams { min_rto: Span::from_millis(1), ..TcpParams::default() };
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

    /// Linux's: a thousand measurements leave the floor alone, `clock_granularity`.
    #[test]
    fn with_every_acknowledgement_the_variation_is_soon_forgotten() {
        let params = TcpParams {
            time_every_ack: true,
            clock_granularity: Span::from_millis(200),
            ..TcpParams::default()
        };
        let mut rtt = RttEstimator::new(&params);
        rtt.first_sample(at(100), Span::from_millis(900));
        for number in 0..1000 {
            rtt.sample(at(1000) + Span::from_micros(number), Span::from_millis(900));
        }
        assert_eq!(rtt.rto(), Span::from_millis(1100));
    }

    #[test]
    fn the_base_of_controls_is_that_of_data() {
        let mut rtt = RttEstimator::new(&TcpParams::default());
        rtt.first_sample(at(50), Span::from_millis(50));
        assert_eq!((rtt.min(), rtt.min_of_data()), (Some(Span::from_millis(50)), None));
        rtt.sample(at(110), Span::from_millis(60));
        assert_eq!(rtt.min_of_data(), Some(Span::from_millis(60)));
        assert_eq!(rtt.min(), Some(Span::from_millis(50)));
    }
}
