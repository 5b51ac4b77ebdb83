//! Tail loss probe: if no acknowledgement arrives, a segment is sent before the retransmission
//! timer expires, so that its acknowledgement reports losses.
//!
//! # Sources
//! RFC 8985, section 7.
//!
//! # Differences
//! 1. A probe of new data may exceed the congestion window.

use aqmlab_core::{Deadline, Span, Time};

use super::RfcSender;
use crate::congestion::Congestion;
use crate::params::Recovery;
use crate::params::TcpParams;
use crate::recovery::{Phase, Retransmit};
use crate::segment::{Ack, DataSegment};

#[derive(Clone, Debug)]
pub(super) struct TailProbe {
    enabled: bool,
    max_ack_delay: Span,
    /// When a probe is due.
    pub at: Deadline,
    /// A probe is to be sent now.
    pub due: bool,
    /// SND.NXT after the probe that is not acknowledged yet, and whether it
    /// was sent before.
    sent: Option<(u64, bool)>,
    /// A round-trip time was measured since the last probe.
    measured: bool,
}

impl TailProbe {
    pub fn new(params: &TcpParams) -> Self {
        TailProbe {
            enabled: params.recovery == Recovery::Rack && params.tail_loss_probe,
            max_ack_delay: params.max_ack_delay,
            at: Deadline::NEVER,
            due: false,
            sent: None,
            measured: true,
        }
    }
    #[inline]
    pub fn on_round_trip(&mut self) {
        self.measured = true;
    }
    pub fn stop(&mut self) {
        self.at = Deadline::NEVER;
        self.due = false;
        self.sent = None;
    }
}

impl RfcSender {
    /// Section 7.2: new data were sent, or something was delivered.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Time) {
        if self.tlp.enabled {
            self.tlp.at = self.probe_time(now);
        }
    }

    fn probe_time(&self, now: Time) -> Deadline {
        let quiet = self.board.is_empty() || self.board.sacked_segments > 0;
        if quiet || !self.phase.is_open() || self.tlp.sent.is_some() || !self.tlp.measured {
            return Deadline::NEVER;
        }
        let timeout = match self.rtt.smoothed() {
            Some(srtt) if self.board.flight_size() <= self.mss => srtt * 2 + self.tlp.max_ack_delay,
            Some(srtt) => srtt * 2,
            None => Span::from_secs(1),
        };
        Deadline::at(now + timeout).min(self.deadline)
    }

    /// The probe timer ran out.
    pub(super) fn on_probe_timeout(&mut self) {
        self.tlp.at = Deadline::NEVER;
        self.tlp.due = true;
    }

    /// Section 7.3: new data if there are, or else the last segment.
    pub(super) fn send_probe(&mut self, now: Time) -> Option<DataSegment> {
        self.tlp.due = false;
        let len = self.next_len();
        let segment = match len {
            0 => {
                let index = self.board.last()?;
                self.retransmit(Retransmit { index, advance: false }, now, false)
            }
            len => self.send_new(len, now),
        };
        self.conn.stats.tail_probes += 1;
        self.tlp.sent = Some((self.board.nxt(), len == 0));
        self.tlp.measured = false;
        self.tlp.at = Deadline::NEVER;
        self.deadline = Deadline::at(now + self.rtt.rto());
        Some(segment)
    }

    /// Section 7.4: what became of the probe. Called with every
    /// acknowledgement, after it was taken.
    #[inline]
    pub(super) fn judge_probe(&mut self, now: Time, ack: &Ack, duplicate: bool) {
        let Some((end, repeated)) = self.tlp.sent else { return };
        if ack.ack < end {
            return;
        }
        let reported = ack.dsack().is_some_and(|block| block.1 == end);
        if !repeated || reported || (duplicate && ack.sack.is_empty()) {
            self.tlp.sent = None; // nothing was lost
        } else if ack.ack > end {
            // The probe has mended the loss of the last segment.
            self.tlp.sent = None;
            if self.phase == Phase::Open {
                let flight_size = self.flight_at_loss(0);
                self.tell_congestion(now, Congestion::Loss, flight_size);
            }
        }
    }
}
