//! Which segment is sent next.

use aqmlab_core::Time;

use super::{Sender, State};
use crate::congestion::{CongestionControl, SentSample};
use crate::recovery::{LossRecovery, Phase, Repair};
use crate::segment::DataSegment;

impl Sender {
    /// The segment to be sent now, if there is one: call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<DataSegment> {
        match self.state {
            State::Established => self.poll_data(now),
            State::SynSent if self.syn_due => {
                self.syn_due = false;
                let retransmission = self.syn_retransmitted;
                Some(DataSegment {
                    syn: true,
                    retransmission,
                    sent_at: now,
                    ..DataSegment::default()
                })
            }
            _ => None,
        }
    }

    #[inline]
    fn poll_data(&mut self, now: Time) -> Option<DataSegment> {
        if self.pacing_holds(now) {
            return None;
        }
        if self.window_probe_due {
            self.window_probe_due = false;
            let seq = self.board.nxt();
            return Some(DataSegment { seq, sent_at: now, ..DataSegment::default() });
        }
        let prior_in_flight = self.board.pipe();
        let segment = match self.phase {
            _ if self.tlp.due => self.send_probe(now),
            Phase::Open | Phase::Reduction { .. } => self.new_segment(now),
            Phase::Recovery { .. } | Phase::Loss { .. } => self.recovery_segment(now),
        }?;
        self.control.on_sent(&SentSample {
            now,
            bytes: u64::from(segment.len),
            prior_in_flight,
            app_limited: self.board.delivery.is_app_limited(),
            retransmission: segment.retransmission,
        });
        self.pace(now, segment.len);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(u64::from(segment.len));
        }
        self.stats.segments_sent += 1;
        self.stats.retransmissions += u64::from(segment.retransmission);
        self.last_sent = now;
        if self.deadline == Time::MAX || self.persisting {
            self.persisting = false;
            self.deadline = now + self.rtt.rto(); // RFC 6298, (5.1)
        }
        if !segment.retransmission {
            self.schedule_probe(now);
        }
        Some(segment)
    }

    /// The payload of the next segment of new data; 0 if the application or
    /// the receiver's window has no more.
    #[inline]
    pub(super) fn next_len(&self) -> u64 {
        let len = (self.size - self.board.nxt()).min(self.mss);
        if self.board.nxt() + len > self.window_end { 0 } else { len }
    }

    /// Whether the congestion window has room for new data.
    #[inline]
    pub(super) fn fits_window(&self, len: u64) -> bool {
        let open = self.phase == Phase::Open;
        let extra = if open { self.recovery.limited_transmit(self.dup_acks) } else { 0 };
        self.recovery.in_network(&self.board, self.phase) + len <= self.cwnd() + extra
    }

    /// New data, as far as both windows allow.
    #[inline]
    fn new_segment(&mut self, now: Time) -> Option<DataSegment> {
        let seq = self.board.nxt();
        let len = self.next_len();
        if len == 0 {
            self.window_limited = false;
            if seq == self.size && self.board.pipe() < self.cwnd() {
                self.board.delivery.app_limited(self.board.pipe());
            }
            self.persist(now);
            return None;
        }
        self.restart_after_idle(now);
        if !self.fits_window(len) {
            self.window_limited = true;
            return None;
        }
        if self.phase == Phase::Open && self.dup_acks > 0 {
            self.limited += len;
        }
        Some(self.send_new(len, now))
    }

    /// RFC 5681, section 4.1: after an idle time the window begins anew.
    #[inline]
    fn restart_after_idle(&mut self, now: Time) {
        if self.params.restart_after_idle
            && self.board.is_empty()
            && self.last_sent > Time::ZERO
            && now.saturating_since(self.last_sent) > self.rtt.rto()
        {
            self.control.on_idle(self.params.in_bytes(self.params.initial_window));
        }
    }

    /// Sends new data, whatever the window.
    #[inline]
    pub(super) fn send_new(&mut self, len: u64, now: Time) -> DataSegment {
        let seq = self.board.nxt();
        self.board.sent(len as u32, now);
        self.recovery.on_sent(len as u32, false);
        let (ecn, cwr) = self.ecn.of_new_data();
        DataSegment { seq, len: len as u32, ecn, cwr, sent_at: now, ..DataSegment::default() }
    }

    /// RFC 6675, section 5, step C: while there is room, what NextSeg says.
    fn recovery_segment(&mut self, now: Time) -> Option<DataSegment> {
        if self.retransmit_head {
            self.retransmit_head = false;
            // RFC 6298 has the timer restarted when the first segment of a
            // recovery is sent again (5.4 for timeouts).
            self.deadline = now + self.rtt.rto();
            let repair = self.recovery.head(&mut self.board)?;
            return Some(self.retransmit(repair, now, true));
        }
        if self.undo.holds_repairs() {
            return self.new_segment(now);
        }
        if self.recovery.in_network(&self.board, self.phase) + self.mss > self.cwnd() {
            self.window_limited = true;
            return None;
        }
        if let Some(repair) = self.recovery.first_choice(&mut self.board, self.phase) {
            return Some(self.retransmit(repair, now, false));
        }
        if let Some(segment) = self.new_segment(now) {
            return Some(segment);
        }
        let repair = self.recovery.last_choice(&mut self.board, self.phase)?;
        Some(self.retransmit(repair, now, false))
    }

    pub(super) fn retransmit(&mut self, repair: Repair, now: Time, replaces: bool) -> DataSegment {
        let (seq, len) = self.board.retransmit(repair.index, now, repair.advance);
        self.recovery.on_sent(len, replaces);
        self.recovery.on_repaired(seq, now);
        self.undo.on_repair(now);
        DataSegment { seq, len, retransmission: true, sent_at: now, ..DataSegment::default() }
    }
}
