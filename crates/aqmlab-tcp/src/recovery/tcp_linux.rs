//! The recovery of ns-2's TCP-Linux, for studies that used its congestion
//! controls.
//!
//! Forward acknowledgement: what lies more than three segments below the
//! highest segment reported is lost. A retransmission is lost when new data
//! that were sent after it are reported, or the fifth retransmission after it
//! has arrived. When a recovery ends the scoreboard is empty: what was reported
//! above its end is forgotten, counts as in flight again, and is sent once more
//! when something still higher is reported. Until what is in flight has come down
//! to the window, one segment is sent for two acknowledgements. Every acknowledgement
//! restarts the retransmission timer.
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

use super::{AckContext, LossRecovery, Phase, Repair};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::Ack;

/// A retransmission that may be in the network.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    at: Time,
    /// The next new byte at that time.
    nxt: u64,
    /// Its number among the retransmissions.
    number: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct TcpLinux {
    /// The highest segment reported.
    fack: u64,
    /// First transmissions below were judged.
    edge: u64,
    /// In the order in which they were sent.
    repairs: VecDeque<Sent>,
    /// Retransmissions so far, and the number of the latest that has arrived.
    made: u64,
    arrived: u64,
    /// What is in flight, and what may be while it comes down to the window.
    pipe: u64,
    allowed: u64,
    mss: u64,
}

impl TcpLinux {
    pub fn new(params: &TcpParams) -> Self {
        TcpLinux {
            fack: 0,
            edge: 0,
            repairs: VecDeque::new(),
            made: 0,
            arrived: 0,
            pipe: 0,
            allowed: 0,
            mss: params.mss.get(),
        }
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
    fn take_sack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        let sacked = board.sack(&ack.sack, cx.now);
        self.take_news(board);
        self.find_losses(board);
        self.pipe = board.pipe();
        self.allowed = self.allowed.min(self.pipe + self.mss);
        sacked
    }
    fn on_duplicate(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> bool {
        self.take_sack(board, ack, cx) > 0
    }
    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64) -> bool {
        false
    }
    fn duplicates_restart_timer(&self) -> bool {
        true
    }
    fn counts_duplicates(&self) -> bool {
        false
    }
    fn finds_loss(&self, board: &mut Scoreboard, _sacked: u64) -> bool {
        board.next_lost().is_some()
    }
    fn flight_at_loss(&self, _board: &Scoreboard, _limited: u64, window: u64) -> u64 {
        window
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        self.pipe = board.pipe();
        self.allowed = self.pipe + self.mss;
    }
    fn end(&mut self, board: &mut Scoreboard) -> bool {
        board.forget_all();
        self.allowed = 0;
        self.forget(board);
        false
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
    fn least_window(&self) -> u64 {
        self.allowed
    }
    #[inline]
    fn on_sent(&mut self, len: u32, _replaces: bool) {
        self.pipe += u64::from(len);
        self.allowed = self.allowed.min(self.pipe.saturating_sub(self.mss).max(self.mss));
    }
    fn limited_transmit(&self, _dup_acks: u64) -> u64 {
        0
    }
    fn head(&mut self, board: &mut Scoreboard) -> Option<Repair> {
        board.next_lost().map(Repair::at)
    }
    fn first_choice(&mut self, board: &mut Scoreboard, _phase: Phase) -> Option<Repair> {
        board.next_lost().map(Repair::at)
    }
    fn on_repaired(&mut self, seq: u64, nxt: u64, now: Time) {
        self.made += 1;
        self.repairs.push_back(Sent { seq, at: now, nxt, number: self.made });
    }
}
