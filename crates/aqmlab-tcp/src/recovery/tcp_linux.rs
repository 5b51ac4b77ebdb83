//! The recovery of ns-2's TCP-Linux, for studies that used its congestion
//! controls.
//!
//! Forward acknowledgement: segments more than three below the highest reported one are lost. A
//! retransmission is lost when new data sent after it are reported, or when the fifth
//! retransmission after it has been delivered. At the end of a recovery the scoreboard is cleared:
//! segments reported above that point count as in flight again, and are retransmitted when still
//! higher ones are reported. Until the amount in flight has come down to the window, one segment is
//! sent for two acknowledgements. Every acknowledgement restarts the retransmission timer.
//!
//! # Sources
//! X. Wei and P. Cao, "NS-2 TCP-Linux: an NS-2 TCP implementation with
//! congestion control algorithms from Linux" (WNS2 2006); ns-2.35, `Agent/TCP/Linux`.
//!
//! # Differences
//! 1. A loss found after a timeout does not reduce the window again before all
//!    that was sent until then is acknowledged.

use std::collections::VecDeque;

use aqmlab_core::Time;

use super::{AckContext, Duplicates, LossRecovery, Phase, RecoveryQuirks, Sent, SentAgain};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::Ack;

pub(super) const RULES: RecoveryQuirks = RecoveryQuirks {
    duplicates: Duplicates::Reporting,
    duplicates_restart_timer: true,
    window_was_in_flight: true,
    goes_by_time: true,
    ..RecoveryQuirks::RFC6675
};

/// A retransmission that may be in the network.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    seq: u64,
    at: Time,
    /// The next new byte at that time.
    nxt: u64,
    /// Sequence among the retransmissions.
    number: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TcpLinux {
    /// The highest segment reported.
    fack: u64,
    /// First transmissions below were judged.
    edge: u64,
    /// In the order in which they were sent.
    repairs: VecDeque<Retransmission>,
    /// Retransmissions so far, and the number of the latest that has arrived.
    made: u64,
    arrived: u64,
    /// Bytes in flight, and their bound while they approach the window.
    pipe: u64,
    allowed: u64,
    mss: u64,
}

impl TcpLinux {
    pub fn new(params: &TcpParams) -> Self {
        TcpLinux { mss: params.mss.get(), ..TcpLinux::default() }
    }

    fn forget(&mut self, board: &Scoreboard) {
        self.repairs.clear();
        self.fack = board.una();
        self.edge = board.una();
    }

    /// What the acknowledgement at hand delivers.
    fn take_news(&mut self, board: &Scoreboard) {
        for record in &board.news {
            if record.seq >= board.una() {
                self.fack = self.fack.max(record.seq);
            }
            if record.retransmitted {
                let found = self.repairs.iter().rfind(|sent| sent.seq == record.seq);
                self.arrived = self.arrived.max(found.map_or(0, |sent| sent.number));
            }
        }
    }

    fn find_losses(&mut self, board: &mut Scoreboard) {
        self.edge = self.edge.max(board.una());
        let mut index = board.index_of(self.edge);
        while let Some(record) = board.record(index).copied() {
            if record.seq + (DUP_THRESH + 1) * self.mss > self.fack {
                break;
            }
            if !record.sacked && !record.lost {
                board.mark_lost(index);
            }
            self.edge = record.end();
            index += 1;
        }
        while let Some(sent) = self.repairs.front().copied() {
            let index = board.index_of(sent.seq);
            let is_sent = board.record(index).is_some_and(|record| {
                record.seq == sent.seq && record.sent_at == sent.at && !record.sacked
            });
            if is_sent {
                let is_lost = sent.nxt <= self.fack || sent.number + DUP_THRESH + 1 < self.arrived;
                if !is_lost {
                    break;
                }
                board.mark_lost(index);
            }
            self.repairs.pop_front();
        }
    }
}

impl LossRecovery for TcpLinux {
    fn on_ack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        let sacked = board.sack(&ack.sack, cx.now);
        self.take_news(board);
        self.find_losses(board);
        self.pipe = board.pipe();
        self.allowed = self.allowed.min(self.pipe + self.mss);
        sacked
    }
    fn finds_loss(&self, board: &mut Scoreboard, _sacked: u64, _is_third: bool) -> bool {
        board.next_lost().is_some()
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        self.pipe = board.pipe();
        self.allowed = self.pipe + self.mss;
    }
    fn end(&mut self, board: &mut Scoreboard) {
        board.forget_all();
        self.allowed = 0;
        self.forget(board);
    }
    fn on_timeout(&mut self, board: &mut Scoreboard, _rtt: &RttEstimator, _now: Time) {
        board.timeout(true);
        self.allowed = 0;
        self.repairs.clear();
        self.edge = board.nxt();
    }
    #[inline]
    fn in_network(&self, board: &Scoreboard, _phase: Phase) -> u64 {
        board.pipe()
    }
    /// The window shrinks gradually.
    #[inline]
    fn window(&self, window: u64) -> u64 {
        window.max(self.allowed)
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.pipe += u64::from(sent.len);
        self.allowed = self.allowed.min(self.pipe.saturating_sub(self.mss).max(self.mss));
        if let Some(SentAgain { seq, now, nxt, .. }) = sent.repair {
            self.made += 1;
            self.repairs.push_back(Retransmission { seq, at: now, nxt, number: self.made });
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Span;

    use super::super::RetransmitReason;
    use super::*;

    /// A connection with segments of 1000 bytes.
    struct TestConnection {
        board: Scoreboard,
        recovery: TcpLinux,
        rtt: RttEstimator,
        now: Time,
    }

    impl TestConnection {
        fn new(segments: u64) -> Self {
            let params = TcpParams { mss: aqmlab_core::Bytes::new(1000), ..TcpParams::rfc() };
            let board = Scoreboard::by_time(1000);
            let mut connection = TestConnection {
                board,
                recovery: TcpLinux::new(&params),
                rtt: RttEstimator::new(&params),
                now: Time::ZERO,
            };
            connection.send(segments);
            connection
        }
        fn send(&mut self, segments: u64) {
            self.now += Span::from_millis(1);
            for _ in 0..segments {
                self.board.sent(1000, self.now);
            }
        }
        /// An acknowledgement that reports one segment.
        fn report(&mut self, segment: u64) {
            self.now += Span::from_millis(1);
            self.board.news.clear();
            let mut ack = Ack { ack: self.board.una(), ..Ack::default() };
            ack.sack.push(segment * 1000, segment * 1000 + 1000);
            let cx = AckContext { now: self.now, phase: Phase::Open, rtt: &self.rtt };
            self.recovery.on_duplicate(&mut self.board, &ack, &cx);
        }
        fn lost(&self) -> Vec<u64> {
            let records = (0..).map_while(|index| self.board.record(index));
            let lost = records.filter(|each| each.lost && !each.retransmitted && !each.sacked);
            lost.map(|each| each.seq / 1000).collect()
        }
        /// Retransmits the first lost segment.
        fn repair(&mut self) {
            self.now += Span::from_millis(1);
            let phase = Phase::Recovery { point: self.board.nxt() };
            let repair =
                self.recovery.next(&mut self.board, phase, RetransmitReason::Head).unwrap();
            let (seq, len) = self.board.retransmit(repair.index, self.now, repair.advance);
            let (now, nxt) = (self.now, self.board.nxt());
            let repair = Some(SentAgain { seq, now, nxt, is_head: false });
            self.recovery.on_sent(&Sent { len, repair });
        }
    }

    #[test]
    fn a_retransmission_is_lost_when_later_data_are_reported() {
        let mut connection = TestConnection::new(5);
        connection.report(4);
        connection.repair();
        assert_eq!(connection.lost(), [0; 0]);
        connection.send(2); // segments 5 and 6
        connection.report(5);
        assert_eq!(connection.lost(), [0, 1], "and a first transmission by the other rule");
    }

    #[test]
    fn a_retransmission_is_lost_when_the_fifth_after_it_has_arrived() {
        let mut connection = TestConnection::new(12);
        connection.report(11);
        assert_eq!(connection.lost(), [0, 1, 2, 3, 4, 5, 6, 7]);
        for _ in 0..7 {
            connection.repair();
        }
        connection.report(4);
        assert_eq!(connection.lost(), [7]);
        connection.report(5);
        assert_eq!(connection.lost(), [0, 7]);
    }

    #[test]
    fn the_end_of_a_recovery_forgets_what_was_reported() {
        let mut connection = TestConnection::new(10);
        connection.report(8);
        assert_eq!(connection.lost(), [0, 1, 2, 3, 4]);
        connection.board.acknowledge(5000, connection.now);
        connection.recovery.end(&mut connection.board);
        assert_eq!((connection.lost(), connection.board.pipe()), (vec![], 5000));
        assert_eq!(connection.board.sacked_segments, 0);
        // Segment 8 had arrived: it is taken for lost with the others.
        connection.send(4);
        connection.report(13);
        assert_eq!(connection.lost(), [5, 6, 7, 8, 9]);
        connection.board.check();
    }

    /// Half of the acknowledgements send nothing until the window is reached.
    #[test]
    fn the_window_comes_down_by_one_segment_for_two_acknowledgements() {
        let mut connection = TestConnection::new(20);
        connection.report(4);
        connection.recovery.begin(&mut connection.board);
        let mut sent = 0;
        for segment in 5..17 {
            connection.report(segment);
            while connection.board.pipe() + 1000 <= connection.recovery.window(0) {
                connection.board.sent(1000, connection.now);
                connection.recovery.on_sent(&Sent { len: 1000, repair: None });
                sent += 1;
            }
        }
        assert!((5..=7).contains(&sent), "{sent} of 12");
    }
}
