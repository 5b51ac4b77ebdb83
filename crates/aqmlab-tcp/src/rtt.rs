//! The retransmission timeout (RFC 6298).

use aqmlab_core::Span;

use crate::params::TcpParams;

/// Smoothed round-trip time, its variation, and the timeout made of them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// SRTT and RTTVAR, once there is a measurement.
    smoothed: Option<(Span, Span)>,
    /// The least of all samples.
    least: Option<Span>,
    rto: Span,
    granularity: Span,
    min: Span,
    max: Span,
}

impl RttEstimator {
    pub fn new(params: &TcpParams) -> Self {
        RttEstimator {
            smoothed: None,
            least: None,
            // (2.1) until a round-trip time has been measured.
            rto: params.initial_rto,
            granularity: params.clock_granularity,
            min: params.min_rto,
            max: params.max_rto,
        }
    }

    pub fn sample(&mut self, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        let (srtt, variation) = match self.smoothed {
            // (2.2) the first measurement.
            None => (rtt, rtt / 2),
            // (2.3) alpha = 1/8, beta = 1/4; the variation first.
            Some((srtt, variation)) => {
                let error = Span::from_nanos(srtt.as_nanos().abs_diff(rtt.as_nanos()));
                ((srtt * 7 + rtt) / 8, (variation * 3 + error) / 4)
            }
        };
        self.smoothed = Some((srtt, variation));
        self.rto = self.timeout(srtt, variation);
    }

    /// (5.5) the timer ran out.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max);
    }

    /// The timeout was spurious: what was measured holds again.
    pub fn undo_back_off(&mut self) {
        if let Some((srtt, variation)) = self.smoothed {
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

    pub fn smoothed(&self) -> Option<Span> {
        self.smoothed.map(|(srtt, _)| srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298() {
        let params = TcpParams { min_rto: Span::from_millis(200), ..TcpParams::default() };
        let mut rtt = RttEstimator::new(&params);
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.sample(Span::from_millis(100));
        assert_eq!(rtt.rto(), Span::from_millis(300)); // 100 + 4 x 50
        rtt.sample(Span::from_millis(100));
        assert_eq!(rtt.rto(), Span::from_millis(250)); // 100 + 4 x 37.5
        rtt.sample(Span::from_millis(180));
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
        for _ in 0..100 {
            rtt.sample(Span::from_millis(20));
        }
        assert_eq!(rtt.rto(), Span::from_secs(1));
    }
}
