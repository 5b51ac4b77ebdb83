//! Transmission: selects the next segment.

use aqmlab_core::{Deadline, Time};

use super::RfcSender;
use crate::congestion::{CongestionControl, SentSample};
use crate::connection::ConnState;
use crate::recovery::{LossRecovery, Phase, Retransmit, RetransmitReason, Sent, SentAgain};
use crate::scoreboard::DUP_THRESH;
use crate::segment::DataSegment;

/// Segments that may follow the last one at once, without asking control and recovery for each, as
/// in the loop of Linux's `tcp_write_xmit`. An acknowledgement, a timeout or a write ends a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Full segments that end here or before may be sent.
    end: u64,
    /// True if the congestion window ends it.
    fills_window: bool,
}

impl RfcSender {
    /// Returns the next segment to be sent now: call until `None`.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<DataSegment> {
        if self.board.nxt() + self.mss <= self.burst.end {
            return Some(self.send_more(now));
        }
        if std::mem::take(&mut self.burst.fills_window) {
            self.window_is_full(now);
            return None;
        }
        // Most segments are new data while nothing is being mended.
        if self.conn.state == ConnState::Established && self.phase.is_open() && !self.tlp.due {
            if self.pacing_holds(now) {
                return None;
            }
            let len = self.new_data(now);
            return if len > 0 { Some(self.send_new(len, now)) } else { self.window_probe(now) };
        }
        self.poll_other(now)
    }

    #[inline(never)]
    fn poll_other(&mut self, now: Time) -> Option<DataSegment> {
        match self.conn.state {
            ConnState::Established => {
                if self.pacing_holds(now) {
                    return None;
                }
                if self.tlp.due { self.send_probe(now) } else { self.recovery_segment(now) }
            }
            ConnState::SynSent if self.syn_due => {
                self.syn_due = false;
                Some(self.conn.syn(now, self.ecn.is_on()))
            }
            _ => None,
        }
    }

    /// An empty segment that asks for the receiver's window, if that is due.
    fn window_probe(&mut self, now: Time) -> Option<DataSegment> {
        let seq = self.board.nxt();
        std::mem::take(&mut self.window_probe_due).then(|| DataSegment {
            seq,
            sent_at: now,
            ..DataSegment::default()
        })
    }

    /// Bookkeeping after transmitting a segment.
    #[inline(always)]
    fn sent(&mut self, now: Time, len: u64, prior_in_flight: u64, retransmission: bool) {
        self.control.on_sent(&SentSample {
            now,
            bytes: len,
            prior_in_flight,
            app_limited: self.board.delivery.is_app_limited(),
            retransmission,
        });
        if !self.sends_bursts {
            self.pace(now, len);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(len);
        }
        self.last_sent = now;
        if self.deadline.is_never() || self.persisting {
            self.persisting = false;
            self.deadline = Deadline::at(now + self.rtt.rto()); // RFC 6298, (5.1)
        }
    }

    /// Payload of the next segment of new data; 0 if the application or the receiver's window
    /// allows none.
    #[inline]
    pub(super) fn next_len(&self) -> u64 {
        let len = (self.conn.written - self.board.nxt()).min(self.mss);
        if self.board.nxt() + len > self.window_end { 0 } else { len }
    }

    /// Room for new data in the congestion window.
    #[inline(always)]
    pub(super) fn room(&self) -> u64 {
        let extra = match self.phase {
            Phase::Open if self.dup_acks > 0 => self.limited_transmit(),
            _ => 0,
        };
        let in_network = self.recovery.in_network(&self.board, self.phase);
        (self.cwnd() + extra).saturating_sub(in_network)
    }

    /// Allowance of duplicate acknowledgements before a recovery (RFC 3042).
    #[inline(never)]
    fn limited_transmit(&self) -> u64 {
        let widens = self.params.limited_transmit && self.rules.duplicates_widen_window;
        if widens { self.dup_acks.min(DUP_THRESH - 1) * self.mss } else { 0 }
    }

    /// The payload of new data to be sent now, as far as both windows allow; 0
    /// for none.
    #[inline(always)]
    fn new_data(&mut self, now: Time) -> u64 {
        let len = self.next_len();
        if len == 0 {
            self.window_limited = false;
            if self.board.nxt() == self.conn.written && self.board.pipe() < self.cwnd() {
                self.board.delivery.app_limited(self.board.pipe());
            }
            self.persist(now);
            self.validate_after_sending(now, false);
            return 0;
        }
        self.validate_before_sending(now);
        let room = self.room();
        if len > room {
            self.window_is_full(now);
            return 0;
        }
        if self.phase == Phase::Open {
            if self.dup_acks > 0 {
                self.limited += len;
            } else if self.sends_bursts {
                self.begin_burst(room);
            }
        }
        len
    }

    fn window_is_full(&mut self, now: Time) {
        self.window_limited = true;
        self.validate_after_sending(now, true);
    }

    /// Begins a burst where the congestion window has `room`: nothing but the two windows and the
    /// written data will decide about its segments.
    #[inline(always)]
    fn begin_burst(&mut self, room: u64) {
        let by_window = self.board.nxt() + room;
        let by_data = self.conn.written.min(self.window_end);
        self.burst =
            Burst { end: by_window.min(by_data), fills_window: by_window + self.mss <= by_data };
    }

    /// Sends a full segment of a burst, after the first.
    #[inline(always)]
    fn send_more(&mut self, now: Time) -> DataSegment {
        let (seq, len) = (self.board.nxt(), self.mss as u32);
        self.board.sent(len, now);
        self.schedule_probe(now);
        self.new_data_segment(seq, len, now)
    }

    /// Sends new data, independent of the window.
    #[inline(always)]
    pub(super) fn send_new(&mut self, len: u64, now: Time) -> DataSegment {
        let (seq, prior_in_flight) = (self.board.nxt(), self.board.pipe());
        self.board.sent(len as u32, now);
        if !self.phase.is_open() {
            self.recovery.on_sent(&Sent { len: len as u32, repair: None });
        }
        self.sent(now, len, prior_in_flight, false);
        self.schedule_probe(now);
        self.new_data_segment(seq, len as u32, now)
    }

    #[inline(always)]
    fn new_data_segment(&mut self, seq: u64, len: u32, now: Time) -> DataSegment {
        let (ecn, cwr) = self.ecn.of_new_data();
        DataSegment { ecn, cwr, ..self.conn.segment(seq, len, now, false) }
    }

    fn new_segment(&mut self, now: Time) -> Option<DataSegment> {
        let len = self.new_data(now);
        (len > 0).then(|| self.send_new(len, now))
    }

    /// RFC 6675, section 5, step C: while there is room, what NextSeg says.
    fn recovery_segment(&mut self, now: Time) -> Option<DataSegment> {
        if self.retransmit_head {
            self.retransmit_head = false;
            // RFC 6298 has the timer restarted when the first segment of a
            // recovery is sent again (5.4 for timeouts).
            self.deadline = Deadline::at(now + self.rtt.rto());
            let repair = self.recovery.next(&mut self.board, self.phase, RetransmitReason::Head)?;
            return Some(self.retransmit(repair, now, true));
        }
        if self.undo.holds_repairs() {
            return self.new_segment(now);
        }
        if self.recovery.in_network(&self.board, self.phase) + self.mss > self.cwnd() {
            self.window_limited = true;
            return None;
        }
        if let Some(repair) =
            self.recovery.next(&mut self.board, self.phase, RetransmitReason::BeforeNew)
        {
            return Some(self.retransmit(repair, now, false));
        }
        if let Some(segment) = self.new_segment(now) {
            return Some(segment);
        }
        let repair = self.recovery.next(&mut self.board, self.phase, RetransmitReason::AfterNew)?;
        Some(self.retransmit(repair, now, false))
    }

    pub(super) fn retransmit(
        &mut self,
        repair: Retransmit,
        now: Time,
        is_head: bool,
    ) -> DataSegment {
        let prior_in_flight = self.board.pipe();
        let first = self.board.record(repair.index).is_some_and(|record| !record.ambiguous);
        let (seq, len) = self.board.retransmit(repair.index, now, repair.advance);
        if first {
            self.validation.on_repair(u64::from(len));
        }
        self.sent(now, u64::from(len), prior_in_flight, true);
        let again = SentAgain { seq, now, nxt: self.board.nxt(), is_head };
        self.recovery.on_sent(&Sent { len, repair: Some(again) });
        self.undo.on_repair(seq + u64::from(len), now);
        self.conn.segment(seq, len, now, true)
    }
}
