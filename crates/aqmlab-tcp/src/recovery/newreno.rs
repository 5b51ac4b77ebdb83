//! Recovery without SACK: one loss is mended each round trip (NewReno), or one
//! alone, and a second one in the same window waits for the timer (Reno).
//!
//! # Sources
//! RFC 6582, section 3.2; RFC 5681, section 3.2; RFC 3042. Reno: RFC 5681,
//! section 3.2, step 6, with ns-2's `bugFix_` (no second fast retransmit of data sent before
//! the last one, Floyd 1994).
//!
//! # Differences
//! 1. Without the heuristics of RFC 6582, section 4.
//! 2. Every partial acknowledgement restarts the timer (RFC 6298, rule 5.3),
//!    not the first alone.

use aqmlab_core::Time;

use super::{
    AckContext, Duplicates, LossRecovery, Phase, RecoveryQuirks, Retransmit, RetransmitReason,
};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::Ack;

pub(super) const RULES: RecoveryQuirks = RecoveryQuirks {
    duplicates: Duplicates::All,
    duplicates_widen_window: true,
    deflates_at_end: true,
    ..RecoveryQuirks::RFC6675
};
pub(super) const RENO: RecoveryQuirks =
    RecoveryQuirks { ends_early: true, deflates_at_end: false, ..RULES };

#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    /// No recovery begins before more than this is acknowledged.
    recover: Option<u64>,
    /// The additions to the window for segments that have left, and what
    /// partial acknowledgements took off again.
    inflation: i64,
    mss: u64,
}

impl NewReno {
    pub fn new(params: &TcpParams) -> Self {
        NewReno { recover: None, inflation: 0, mss: params.mss.get() }
    }
}

impl LossRecovery for NewReno {
    #[inline]
    fn on_ack(&mut self, _board: &mut Scoreboard, _ack: &Ack, _cx: &AckContext) -> u64 {
        0
    }
    fn on_duplicate(&mut self, _board: &mut Scoreboard, _ack: &Ack, cx: &AckContext) -> u64 {
        if let Phase::Recovery { .. } = cx.phase {
            self.inflation += self.mss as i64;
        }
        0
    }
    /// Section 3.2, step 3.
    fn on_partial_ack(&mut self, board: &mut Scoreboard, acked: u64) -> bool {
        board.head_lost();
        board.begin_recovery();
        self.inflation -= acked as i64;
        if acked >= self.mss {
            self.inflation += self.mss as i64;
        }
        true
    }
    /// Section 3.2, step 2.
    fn finds_loss(&self, board: &mut Scoreboard, _sacked: u64, is_third: bool) -> bool {
        is_third && self.recover.is_none_or(|recover| board.una() > recover)
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        self.recover = Some(board.nxt());
        board.begin_recovery();
        board.head_lost();
        self.inflation = (DUP_THRESH * self.mss) as i64;
    }
    fn end(&mut self, _board: &mut Scoreboard) {
        self.inflation = 0;
    }
    /// Section 3.2, step 4.
    fn on_timeout(&mut self, board: &mut Scoreboard, _rtt: &RttEstimator, _now: Time) {
        self.recover = Some(board.nxt());
        board.timeout(false);
        self.inflation = 0;
    }
    #[inline]
    fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64 {
        match phase {
            Phase::Loss { .. } => board.pipe(),
            Phase::Open | Phase::Reduction { .. } | Phase::Recovery { .. } => board.flight_size(),
        }
    }
    #[inline]
    fn window(&self, window: u64) -> u64 {
        window.saturating_add_signed(self.inflation)
    }
    fn next(
        &mut self,
        board: &mut Scoreboard,
        phase: Phase,
        choice: RetransmitReason,
    ) -> Option<Retransmit> {
        match (choice, phase) {
            (RetransmitReason::Head, _) | (RetransmitReason::BeforeNew, Phase::Loss { .. }) => {
                board.next_hole(true).map(Retransmit::at)
            }
            (RetransmitReason::BeforeNew | RetransmitReason::AfterNew, _) => None,
        }
    }
}
