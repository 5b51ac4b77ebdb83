//! Explicit congestion notification at the sender.
//!
//! # Sources
//! RFC 3168, sections 6.1.2 and 6.1.5 (classic); RFC 8257, section 3.4; RFC 9768 (accurate:
//! counters of packets and bytes received with CE).
//!
//! # Differences
//! 1. Both ends have the same parameters, and a retransmitted SYN asks for ECN as the first does:
//!    RFC 3168, section 6.1.1.1, and RFC 9768, section 3.1.4.1, allow that.
//! 2. With a window of one segment an echo does not stop new data until the
//!    retransmission timer runs out (RFC 3168, section 6.1.2).

use aqmlab_core::{Ecn, Time};

use super::RfcSender;
use crate::congestion::{AckSample, Congestion};
use crate::params::{EcnMode, TcpParams};
use crate::recovery::Phase;
use crate::segment::{Ack, CeCount};

/// What the sender knows of congestion marks.
#[derive(Clone, Debug)]
pub(super) struct EcnState {
    mode: EcnMode,
    /// Codepoint of new data.
    codepoint: Ecn,
    /// Marks reported so far.
    seen: CeCount,
    /// SND.NXT at the last reduction: echoes for data up to here belong to the same window of data.
    reduced_at: Option<u64>,
    /// The same of the last reduction for an echo.
    echoed_at: u64,
    cwr_due: bool,
}

impl EcnState {
    pub fn new(params: &TcpParams) -> Self {
        EcnState {
            mode: params.ecn,
            codepoint: match params.ecn {
                EcnMode::Off => Ecn::NotEct,
                _ => params.ecn_codepoint.into(),
            },
            seen: CeCount::default(),
            reduced_at: None,
            echoed_at: 0,
            cwr_due: false,
        }
    }

    /// Returns true unless ECN is off.
    pub fn is_on(&self) -> bool {
        self.mode != EcnMode::Off
    }

    /// Changes the mode and the codepoint of new data.
    pub fn change(&mut self, params: &TcpParams) {
        let EcnState { mode, codepoint, .. } = EcnState::new(params);
        (self.mode, self.codepoint) = (mode, codepoint);
    }

    /// Takes the echo of an acknowledgement.
    #[inline]
    pub fn take(&mut self, ack: &Ack, news: &mut AckSample) {
        match self.mode {
            EcnMode::Off => {}
            EcnMode::Classic | EcnMode::Dctcp => news.ece = ack.ece,
            EcnMode::Accurate => {
                let marked = self.seen.take(ack.ce);
                news.ece = marked.packets > 0;
                (news.ce_packets, news.ce_bytes) = (marked.packets, marked.bytes);
            }
        }
    }

    /// The window was reduced after data up to `nxt` had been sent.
    pub fn reduced(&mut self, nxt: u64) {
        self.reduced_at = Some(nxt);
        // RFC 8257, section 3.4: CWR is set as by RFC 3168.
        self.cwr_due = matches!(self.mode, EcnMode::Classic | EcnMode::Dctcp);
    }

    /// Returns true if the window was reduced for an echo after this byte had been sent.
    pub fn has_reduced_for(&self, byte: u64) -> bool {
        byte < self.echoed_at
    }

    /// The codepoint and the CWR flag of a segment of new data.
    #[inline]
    pub fn of_new_data(&mut self) -> (Ecn, bool) {
        (self.codepoint, std::mem::take(&mut self.cwr_due))
    }
}

impl RfcSender {
    /// Section 6.1.2: once a window of data.
    pub(super) fn on_ecn_echo(&mut self, now: Time, delivered: u64) {
        let same_window = self.ecn.reduced_at.is_some_and(|point| self.board.una() <= point);
        if same_window {
            return;
        }
        let flight_size = self.flight_at_loss(self.limited);
        self.conn.stats.ecn_reductions += 1;
        let in_use = self.in_use_at_loss(now, flight_size);
        self.tell_congestion(now, Congestion::Ecn, in_use);
        self.ecn.echoed_at = self.board.nxt();
        self.validation.forget();
        if self.begin_reduction(delivered) {
            self.phase = Phase::Reduction { point: self.board.nxt() };
        }
    }
}
