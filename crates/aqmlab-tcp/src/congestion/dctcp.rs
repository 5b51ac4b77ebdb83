//! DCTCP: the window falls by the share of marks.
//!
//! DCTCP measures the share of a window's bytes that arrived with CE, averages it over round trips,
//! and gives up half of the average: slight congestion costs little. It needs a queue that marks
//! above a threshold, and a receiver that counts the marks (`ecn = dctcp` or `accurate`). The rest
//! is Reno's.
//!
//! # Sources
//! RFC 8257, sections 3.2 to 3.5 and 4.2; M. Alizadeh et al., "Data Center TCP
//! (DCTCP)", SIGCOMM 2010, section 3.3, for what the window does at a step.
//!
//! # Differences
//! 1. With `ecn = accurate` acknowledgements count the marked bytes, which the
//!    receiver of section 3.2 (`ecn = dctcp`) tells by ECE flags. With `ecn =
//!    classic` the receiver echoes until CWR, as RFC 3168 has it, and what is
//!    acknowledged with ECE counts as marked (section 3.3, step 3): too many
//!    bytes.
//! 2. The window falls at the first echo of a window of data, by the alpha of
//!    the windows before it, as in Linux; section 3.3 has it fall at the end of
//!    the window in which alpha was updated (step 9).
//! 3. Bytes that only SACK reports count when they are acknowledged.
//! 4. Segments acknowledged towards the next one stay counted after a mark; Linux restarts the
//!    count.

use aqmlab_core::{Component, params};

use super::control::{AckSample, Congestion, CongestionControl, CongestionEvent, Setup};
use super::reno::{Reno, RenoParams};
use super::window::by_field;

params! {
    /// Parameters of DCTCP.
    pub struct DctcpParams {
        /// The weight of each window in the average of marks.
        g: f64 = 0.0625, in 1e-6 => 1.0, source "RFC 8257, section 4.2: 1/16";
        /// The average of marks at the beginning.
        initial_alpha: f64 = 1.0, in 0.0 => 1.0, source "RFC 8257, section 3.3";
    }
}

impl Component for DctcpParams {
    const NAME: &'static str = "dctcp";
    const SUMMARY: &'static str = "the window falls by the share of marks (RFC 8257)";
}

/// The state of DCTCP.
#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    /// Section 4.1: an additional action on top of Reno.
    reno: Reno,
    marks: Marks,
}

/// The average share of marked bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// DCTCP.Alpha.
    alpha: f64,
    g: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked.
    acked: u64,
    marked: u64,
}

impl Marks {
    pub fn new(alpha: f64, g: f64) -> Self {
        Marks { alpha, g, acked: 0, marked: 0 }
    }
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
    /// Section 3.3, steps 1 to 3.
    pub fn count(&mut self, sample: &AckSample) {
        self.acked += sample.acked;
        self.marked += match sample.ce_packets {
            0 if sample.ece => sample.acked,
            _ => sample.ce_bytes,
        };
    }
    /// Steps 5, 6 and 8: the window of observation ends.
    pub fn update(&mut self) {
        if self.acked > 0 {
            // Marks may be reported before the marked data are acknowledged.
            let share = (self.marked as f64 / self.acked as f64).min(1.0);
            self.alpha += self.g * (share - self.alpha);
        }
        self.forget();
    }
    /// The bytes so far do not count.
    pub fn forget(&mut self) {
        self.acked = 0;
        self.marked = 0;
    }
}

impl Dctcp {
    pub fn new(params: &DctcpParams, setup: &Setup) -> Self {
        Dctcp {
            reno: Reno::new(&RenoParams::default(), setup),
            marks: Marks::new(params.initial_alpha, params.g),
        }
    }
}

impl CongestionControl for Dctcp {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        self.marks.count(sample);
        if sample.round_start {
            self.marks.update(); // step 4
        }
        self.reno.on_ack(sample); // section 3.4
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.kind {
            // Step 9.
            Congestion::Ecn => {
                let kept = 1.0 - self.marks.alpha() / 2.0;
                self.reno.reduce_to((self.reno.window() as f64 * kept) as u64);
            }
            // Section 3.5.
            Congestion::Loss | Congestion::Timeout { .. } => self.reno.on_congestion(event),
        }
    }

    by_field!(reno);
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("alpha", self.marks.alpha());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, event, transport};

    fn dctcp() -> Dctcp {
        Dctcp::new(&DctcpParams::default(), &transport().setup(20_000, 0))
    }
    /// A window of data, of which so many bytes came with CE.
    fn window(dctcp: &mut Dctcp, acked: u64, ce_bytes: u64) {
        let ce = AckSample {
            ece: ce_bytes > 0,
            ce_bytes,
            ce_packets: ce_bytes.div_ceil(1000),
            ..ack(0)
        };
        dctcp.on_ack(&AckSample { acked: acked / 2, ..ce });
        dctcp.on_ack(&AckSample { acked: acked / 2, round_start: true, ..ack(0) });
    }

    /// From a to the share M: M + (a - M) (15/16)^n after n windows.
    #[test]
    fn alpha_goes_to_the_share_of_marks() {
        let mut dctcp = dctcp();
        for count in 1..200 {
            window(&mut dctcp, 20_000, 5000);
            let expected = 0.25 + 0.75 * libm::pow(15.0 / 16.0, f64::from(count));
            assert!((dctcp.marks.alpha - expected).abs() < 1e-12, "{count}");
        }
        for _ in 0..500 {
            window(&mut dctcp, 20_000, 0);
        }
        assert!(dctcp.marks.alpha < 1e-12, "to nothing without marks");
    }

    #[test]
    fn the_window_falls_by_half_of_alpha_and_a_loss_halves_it() {
        let mut dctcp = dctcp();
        dctcp.marks.alpha = 0.1;
        dctcp.on_congestion(&event(Congestion::Ecn, 20_000));
        assert_eq!((dctcp.window(), dctcp.ssthresh()), (19_000, 19_000));
        dctcp.on_congestion(&event(Congestion::Loss, 19_000));
        assert_eq!((dctcp.window(), dctcp.ssthresh()), (9500, 9500));
        dctcp.marks.alpha = 1.0;
        dctcp.on_congestion(&event(Congestion::Ecn, 9500));
        assert_eq!(dctcp.window(), 4750, "all marked: half, as Reno");
        dctcp.on_congestion(&event(Congestion::Timeout { first: true }, 4750));
        assert_eq!(dctcp.window(), 1000);
    }
}
