//! The Sack1 of ns-2, for studies that used it.
//!
//! # Sources
//! K. Fall and S. Floyd, "Simulation-based Comparisons of Tahoe, Reno, and
//! SACK TCP", 1996; ns-2's `sack1`.
//!
//! # Differences
//! From RFC 6675: a loss halves the window, not the amount in
//! flight; the number of segments in the network is estimated from the number
//! of acknowledgements; any hole is a loss once a recovery has begun; reports
//! are forgotten at a timeout and not taken until it is over.

use aqmlab_core::Time;

use super::{
    AckContext, Duplicates, LossRecovery, Phase, RecoveryQuirks, Retransmit, RetransmitReason, Sent,
};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::Ack;

pub(super) const RULES: RecoveryQuirks = RecoveryQuirks {
    duplicates: Duplicates::Reporting,
    duplicates_widen_window: true,
    window_was_in_flight: true,
    times_repaired: true,
    syn_is_data: true,
    ..RecoveryQuirks::RFC6675
};

#[derive(Clone, Debug)]
pub(crate) struct Sack1 {
    /// Sack1's estimate of the data in the network during a recovery.
    pipe: u64,
    mss: u64,
}

impl Sack1 {
    pub fn new(params: &TcpParams) -> Self {
        Sack1 { pipe: 0, mss: params.mss.get() }
    }
}

impl LossRecovery for Sack1 {
    #[inline]
    fn on_ack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        match cx.phase {
            Phase::Loss { .. } => 0,
            Phase::Open | Phase::Reduction { .. } | Phase::Recovery { .. } => {
                board.sack(&ack.sack, cx.now)
            }
        }
    }
    fn on_duplicate(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        self.pipe = self.pipe.saturating_sub(self.mss);
        self.on_ack(board, ack, cx)
    }
    /// The lost segment and its retransmission have left.
    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64) -> bool {
        self.pipe = self.pipe.saturating_sub(2 * self.mss);
        false
    }
    fn finds_loss(&self, _board: &mut Scoreboard, _sacked: u64, is_third: bool) -> bool {
        is_third
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
    /// Any hole counts as lost (rule 3 of RFC 6675 instead of rule 1).
    fn next(
        &mut self,
        board: &mut Scoreboard,
        phase: Phase,
        choice: RetransmitReason,
    ) -> Option<Retransmit> {
        let lost_only = match choice {
            RetransmitReason::Head => true,
            RetransmitReason::BeforeNew => matches!(phase, Phase::Loss { .. }),
            RetransmitReason::AfterNew => return None,
        };
        board.next_hole(lost_only).map(Retransmit::at)
    }
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if sent.repair.is_some_and(|repair| repair.is_head) {
            self.pipe = self.pipe.saturating_sub(self.mss);
        }
        self.pipe += u64::from(sent.len);
    }
}
