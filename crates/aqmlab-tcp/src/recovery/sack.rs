//! Recovery with SACK: lost segments no longer count against the window.
//!
//! # Sources
//! RFC 6675 (sections 4 and 5); RFC 2018.
//!
//! # Differences
//! 1. The third duplicate acknowledgement takes the first segment for lost, so
//!    that it and its repair are not both counted in `pipe`, as step 4.4 of
//!    section 5 literally has it.
//! 2. Segments before a recovery are sent while `pipe`, and not FlightSize, is
//!    below the window: that is limited transmit as section 5, step 3 has it.
//! 3. Reneging is detected when the receiver acknowledges up to the reported data and not beyond:
//!    all reports are forgotten then, and not at a timeout (section 5.1 allows both).

use aqmlab_core::Time;

use super::{AckContext, LossRecovery, Phase, Retransmit, RetransmitReason};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::segment::Ack;

#[derive(Clone, Debug)]
pub(crate) struct Sack {
    /// RescueRxt: more has to be acknowledged before the last segment may be
    /// sent again for rescue.
    rescue_rxt: u64,
    limited_transmit: bool,
}

impl Sack {
    pub fn new(params: &TcpParams) -> Self {
        Sack { rescue_rxt: 0, limited_transmit: params.limited_transmit }
    }
}

impl LossRecovery for Sack {
    #[inline]
    fn on_ack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        board.sack(&ack.sack, cx.now)
    }
    /// Section 5, steps 1 and 2.
    fn finds_loss(&self, board: &mut Scoreboard, sacked: u64, is_third: bool) -> bool {
        is_third || (sacked > 0 && board.head_is_lost())
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        board.begin_recovery();
        board.head_lost();
        self.rescue_rxt = board.head_end(); // step 4.3
    }
    fn on_timeout(&mut self, board: &mut Scoreboard, _rtt: &RttEstimator, _now: Time) {
        board.timeout(true);
    }
    #[inline]
    fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64 {
        match phase {
            Phase::Open | Phase::Reduction { .. } if !self.limited_transmit => board.flight_size(),
            _ => board.pipe(),
        }
    }
    fn next(
        &mut self,
        board: &mut Scoreboard,
        phase: Phase,
        choice: RetransmitReason,
    ) -> Option<Retransmit> {
        if choice != RetransmitReason::AfterNew {
            return board.next_hole(true).map(Retransmit::at);
        }
        let Phase::Recovery { point } = phase else { return None };
        if let Some(index) = board.next_hole(false) {
            return Some(Retransmit::at(index));
        }
        if board.una() <= self.rescue_rxt {
            return None;
        }
        self.rescue_rxt = point;
        board.last_hole().map(|index| Retransmit { index, advance: false })
    }
}
