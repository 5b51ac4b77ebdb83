//! Undo of spurious recoveries: segments declared lost were only late, and the window is restored.
//!
//! # Sources
//! RFC 5682 (F-RTO, sections 2.1 and 3.1); RFC 3522 and RFC 4015 (Eifel, by
//! timestamps); RFC 2883 and RFC 3708 (by duplicate SACK: all that was sent
//! again had arrived before).
//!
//! # Differences
//! 1. F-RTO with SACK takes a timeout for spurious as soon as something is
//!    reported that was not sent again, as Linux does; RFC 5682 waits for the
//!    second acknowledgement.
//! 2. Windows are restored (RFC 5682, section 3); RFC 4015 would adapt the timer as well.

use aqmlab_core::Time;

use super::RfcSender;
use crate::congestion::CongestionControl;
use crate::params::Recovery;
use crate::params::TcpParams;
use crate::recovery::{LossRecovery, Phase};
use crate::scoreboard::Record;
use crate::segment::Ack;

/// F-RTO's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrtoStep {
    Off,
    /// After the timeout: the first acknowledgement decides whether to go on.
    First,
    /// New data were sent: the second decides.
    Second,
}

#[derive(Clone, Debug)]
pub(super) struct SpuriousDetection {
    frto: bool,
    /// Spurious recoveries can be detected.
    possible: bool,
    /// Also after a timeout in a recovery.
    frto_in_recovery: bool,
    /// Data reported before the timeout are known.
    sack: bool,
    step: FrtoStep,
    /// There is a loss or a timeout that may turn out to be none, which began
    /// with this byte; whether it was a timeout.
    episode: Option<(u64, bool)>,
    /// Segments sent again in it, without those whose duplicates came.
    repairs: u64,
    first_repair: Option<Time>,
    /// The end of the highest segment that was ever sent again.
    repaired: u64,
}

impl SpuriousDetection {
    pub fn new(params: &TcpParams) -> Self {
        SpuriousDetection {
            frto: params.frto,
            // RFC 5682, section 2.1.
            frto_in_recovery: matches!(params.recovery, Recovery::NewReno | Recovery::Reno),
            possible: params.frto || params.dsack || params.timestamps,
            // Sack1 forgets at a timeout what had arrived.
            sack: params.recovery.has_pipe(),
            step: FrtoStep::Off,
            episode: None,
            repairs: 0,
            first_repair: None,
            repaired: 0,
        }
    }

    /// `recovering`: the timeout occurred in a recovery. Later arrivals may then be from that
    /// recovery and do not concern the timeout (RFC 5682, section 3.1).
    pub fn begin(&mut self, una: u64, timeout: bool, recovering: bool) {
        self.episode = self.possible.then_some((una, timeout));
        // Retransmissions of the recovery before may still be in flight: their
        // acknowledgements prove nothing.
        if una >= self.repaired {
            self.repairs = 0;
            self.first_repair = None;
        }
        let examined = timeout && self.frto && (self.frto_in_recovery || !recovering);
        self.step = if examined { FrtoStep::First } else { FrtoStep::Off };
    }
    /// The window was reduced again: the earlier reduction is final.
    pub fn close(&mut self) {
        self.episode = None;
        self.step = FrtoStep::Off;
    }
    /// A segment up to `end` is sent again.
    pub fn on_repair(&mut self, end: u64, now: Time) {
        self.repairs += 1;
        self.repaired = self.repaired.max(end);
        self.first_repair.get_or_insert(now);
    }
    /// True if only new data may be sent.
    pub fn holds_repairs(&self) -> bool {
        self.step == FrtoStep::Second
    }
}

impl RfcSender {
    /// Detects a spurious recovery by an acknowledgement.
    #[inline]
    pub(super) fn look_for_undo(&mut self, ack: &Ack, advanced: bool) {
        if let Some((marker, timeout)) = self.undo.episode {
            self.examine(ack, advanced, marker, timeout);
        }
    }

    fn examine(&mut self, ack: &Ack, advanced: bool, marker: u64, timeout: bool) {
        if self.by_duplicates(ack, marker)
            || (advanced && self.by_timestamp(ack))
            || self.by_frto(advanced)
        {
            self.undo(timeout);
        }
    }

    /// All that was sent again had arrived before (RFC 3708, section 2).
    fn by_duplicates(&mut self, ack: &Ack, marker: u64) -> bool {
        let reported = ack.dsack().is_some_and(|block| block.0 >= marker);
        if !reported || self.undo.repairs == 0 {
            return false;
        }
        self.undo.repairs -= 1;
        self.undo.repairs == 0
    }

    /// The segment that moved the acknowledgement on was sent before anything
    /// was sent again (RFC 3522, section 3.2).
    fn by_timestamp(&self, ack: &Ack) -> bool {
        !self.phase.is_open()
            && ack.timestamps.is_some_and(|times| {
                self.undo.first_repair.is_some_and(|first_repair| times.echo < first_repair)
            })
    }

    fn by_frto(&mut self, advanced: bool) -> bool {
        let Phase::Loss { point } = self.phase else { return false };
        let step = std::mem::replace(&mut self.undo.step, FrtoStep::Off);
        if step == FrtoStep::Off {
            return false;
        }
        let original = |record: &Record| !record.ambiguous && record.end() <= point;
        if self.undo.sack && self.board.news.iter().any(original) {
            return true;
        }
        match step {
            // RFC 5682, section 2.1, step 3.b: it acknowledges data that were not retransmitted.
            FrtoStep::Second => advanced && !self.undo.sack,
            // Step 2.b: two segments of new data.
            _ => {
                if advanced && self.board.una() < point && self.next_len() > 0 {
                    self.undo.step = FrtoStep::Second;
                }
                false
            }
        }
    }

    fn undo(&mut self, timeout: bool) {
        self.undo.close();
        self.control.on_undo();
        self.board.undo_losses();
        self.recovery.on_undo(&self.board);
        self.phase = Phase::Open;
        self.validation.forget();
        self.prr = None;
        self.retransmit_head = false;
        self.dup_acks = 0;
        self.limited = 0;
        if timeout {
            self.rtt.undo_back_off();
            self.timed_out = None;
        }
        self.conn.stats.undone += 1;
    }
}
