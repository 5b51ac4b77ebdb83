//! The Sack1 of ns-2, for studies that used it.
//!
//! # Sources
//! K. Fall and S. Floyd, "Simulation-based Comparisons of Tahoe, Reno, and
//! SACK TCP", 1996; ns-2's `sack1`.
//!
//! # Differences
//! From RFC 6675: half of the window is kept at a loss, not half of what is in
//! flight; the number of segments in the network is estimated from the number
//! of acknowledgements; any hole is a loss once a recovery has begun; reports
//! are forgotten at a timeout and not taken until it is over.

use aqmlab_core::Time;

use super::{AckContext, LossRecovery, Phase, Repair};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::Ack;

#[derive(Clone, Debug)]
pub(crate) struct Sack1 {
    /// Its own estimate of what is in the network during a recovery.
    pipe: u64,
    mss: u64,
    limited_transmit: bool,
}

impl Sack1 {
    pub fn new(params: &TcpParams) -> Self {
        Sack1 { pipe: 0, mss: params.mss.get(), limited_transmit: params.limited_transmit }
    }
}

impl LossRecovery for Sack1 {
    #[inline]
    fn take_sack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        match cx.phase {
            Phase::Loss { .. } => 0,
            Phase::Open | Phase::Reduction { .. } | Phase::Recovery { .. } => {
                board.sack(&ack.sack, cx.now)
            }
        }
    }
    #[inline]
    fn times_repaired(&self) -> bool {
        true
    }
    fn on_duplicate(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> bool {
        self.pipe = self.pipe.saturating_sub(self.mss);
        self.take_sack(board, ack, cx) > 0
    }
    /// The lost segment and its retransmission have left.
    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64) -> bool {
        self.pipe = self.pipe.saturating_sub(2 * self.mss);
        false
    }
    fn flight_at_loss(&self, _board: &Scoreboard, _limited: u64, window: u64) -> u64 {
        window
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        self.pipe = board.flight_size().saturating_sub(DUP_THRESH * self.mss);
        board.begin_recovery();
        board.head_lost();
    }
    fn on_timeout(&mut self, board: &mut Scoreboard, _rtt: &RttEstimator, _now: Time) {
        board.timeout(false);
    }
    #[inline]
    fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64 {
        match phase {
            Phase::Open | Phase::Reduction { .. } => board.flight_size(),
            Phase::Recovery { .. } => self.pipe,
            Phase::Loss { .. } => board.pipe(),
        }
    }
    #[inline]
    fn limited_transmit(&self, dup_acks: u64) -> u64 {
        if self.limited_transmit { dup_acks.min(DUP_THRESH - 1) * self.mss } else { 0 }
    }
    /// Any hole counts as lost (rule 3 of RFC 6675 in the place of rule 1).
    fn first_choice(&mut self, board: &mut Scoreboard, phase: Phase) -> Option<Repair> {
        let lost_only = matches!(phase, Phase::Loss { .. });
        board.next_hole(lost_only).map(Repair::at)
    }
    #[inline]
    fn on_sent(&mut self, len: u32, replaces: bool) {
        if replaces {
            self.pipe = self.pipe.saturating_sub(self.mss);
        }
        self.pipe += u64::from(len);
    }
}
