//! Recovery without SACK: one loss is mended each round trip (NewReno), or one
//! alone, and a second one in the same window waits for the timer (Reno).
//!
//! # Sources
//! RFC 6582, section 3.2; RFC 5681, section 3.2; RFC 3042. Reno: RFC 5681,
//! section 3.2, step 6, with ns-2's `bugFix_` (no second fast retransmit of
//! what was sent before the last one, Floyd 1994).
//!
//! # Differences
//! 1. Without the heuristics of RFC 6582, section 4.
//! 2. Every partial acknowledgement restarts the timer (RFC 6298, rule 5.3),
//!    not the first alone.

use aqmlab_core::Time;

use super::{AckContext, LossRecovery, Phase, Recovery, Repair};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::Ack;

#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    /// No recovery begins before more than this is acknowledged.
    recover: Option<u64>,
    /// The additions to the window for segments that have left, and what
    /// partial acknowledgements took off again.
    inflation: i64,
    mss: u64,
    limited_transmit: bool,
    /// Reno: the first acknowledgement of new data ends a recovery.
    ends_early: bool,
}

impl NewReno {
    pub fn new(params: &TcpParams) -> Self {
        NewReno {
            recover: None,
            inflation: 0,
            mss: params.mss.get(),
            limited_transmit: params.limited_transmit,
            ends_early: params.recovery == Recovery::Reno,
        }
    }
}

impl LossRecovery for NewReno {
    #[inline]
    fn take_sack(&mut self, _board: &mut Scoreboard, _ack: &Ack, _cx: &AckContext) -> u64 {
        0
    }
    fn on_duplicate(&mut self, _board: &mut Scoreboard, _ack: &Ack, cx: &AckContext) -> bool {
        if let Phase::Recovery { .. } = cx.phase {
            self.inflation += self.mss as i64;
        }
        true
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
    #[inline]
    fn ends_early(&self) -> bool {
        self.ends_early
    }
    /// Section 3.2, step 2.
    fn may_begin(&self, board: &Scoreboard) -> bool {
        self.recover.is_none_or(|recover| board.una() > recover)
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        self.recover = Some(board.nxt());
        board.begin_recovery();
        board.head_lost();
        self.inflation = (DUP_THRESH * self.mss) as i64;
    }
    fn end(&mut self, _board: &mut Scoreboard) -> bool {
        self.inflation = 0;
        !self.ends_early
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
    fn inflation(&self) -> i64 {
        self.inflation
    }
    #[inline]
    fn limited_transmit(&self, dup_acks: u64) -> u64 {
        if self.limited_transmit { dup_acks.min(DUP_THRESH - 1) * self.mss } else { 0 }
    }
    fn first_choice(&mut self, board: &mut Scoreboard, phase: Phase) -> Option<Repair> {
        match phase {
            Phase::Loss { .. } => board.next_hole(true).map(Repair::at),
            Phase::Open | Phase::Reduction { .. } | Phase::Recovery { .. } => None,
        }
    }
}
