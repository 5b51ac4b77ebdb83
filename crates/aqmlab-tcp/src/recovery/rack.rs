//! RACK: losses are found by time.
//!
//! A segment is lost if one that was sent later has arrived, and a round-trip
//! time and a reordering window have passed since. Retransmissions are judged
//! as any other, so that their loss is found without a timeout.
//!
//! # Sources
//! RFC 8985, section 6.2 (steps 1 to 5) and section 6.3.
//!
//! # Differences
//! 1. Segments wait in two queues, each in the order of sending: first transmissions (the
//!    scoreboard) and retransmissions. Segments are judged once, and within the reordering window
//!    the first and the last are remembered: the cost of an acknowledgement is proportional to the
//!    segments newly delivered or lost.
//! 2. New data that were sent at the same moment as a retransmission do not
//!    count as sent after it, although their sequence numbers are higher:
//!    clocks of the simulator stand still while a burst is sent.
//! 3. What a timeout does not mark is marked by the following acknowledgements.

use std::collections::VecDeque;

use aqmlab_core::{Deadline, Span, Time};

use super::{AckContext, LossRecovery, Phase, RecoveryQuirks, Sent};
use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Record, Scoreboard};
use crate::segment::Ack;

/// Recoveries without a duplicate that make the reordering window small again.
const PERSIST: u32 = 16;

/// Duplicates are counted for limited transmit alone: time decides.
pub(super) const RULES: RecoveryQuirks =
    RecoveryQuirks { goes_by_time: true, ..RecoveryQuirks::RFC6675 };

#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Send time and end of the most recently sent delivered segment.
    newest: (Time, u64),
    /// True if that was a retransmission.
    newest_is_repair: bool,
    /// The round-trip time that was measured last.
    rtt: Span,
    /// The highest sequence number delivered.
    fack: u64,
    reordering_seen: bool,
    /// Until this is acknowledged, further duplicates are of the same round.
    dsack_round: Option<u64>,
    /// The reordering window in quarters of the least round-trip time.
    multiple: u64,
    persist: u32,
    /// The current acknowledgement made the window larger.
    has_grown: bool,
    /// First transmissions below were judged.
    edge: u64,
    /// Segments below were sent before the newest delivered one, and the last of them that was late
    /// at the latest check.
    passed: u64,
    last_late: u64,
    /// Retransmissions: the segment and when it was sent.
    repairs: VecDeque<(u64, Time)>,
    /// When a segment that is late will be lost.
    deadline: Deadline,
    limited_transmit: bool,
}

impl Rack {
    pub fn new(params: &TcpParams) -> Self {
        Rack {
            newest: (Time::ZERO, 0),
            newest_is_repair: false,
            rtt: Span::ZERO,
            fack: 0,
            reordering_seen: false,
            dsack_round: None,
            multiple: 1,
            persist: 0,
            has_grown: false,
            edge: 0,
            passed: 0,
            last_late: 0,
            repairs: VecDeque::new(),
            deadline: Deadline::NEVER,
            limited_transmit: params.limited_transmit,
        }
    }

    /// Steps 2 and 3: processes delivered segments, in order or not. Step 3 goes by sequence
    /// number, in any order of SACK blocks; step 2 by send time, so that of several
    /// round-trip times the latest transmission's remains.
    fn take_news(&mut self, news: &mut [Record], ack: &Ack, now: Time, rtt: &RttEstimator) {
        news.sort_unstable_by_key(|record| record.seq);
        let mut latest = Time::ZERO;
        for record in news {
            if record.end() > self.fack {
                self.fack = record.end();
            } else if record.end() < self.fack && !record.ambiguous {
                self.reordering_seen = true;
            }
            let since = now - record.sent_at;
            if record.ambiguous {
                // The acknowledgement may be of an earlier transmission.
                let echo_is_older = ack.timestamps.is_some_and(|ts| ts.echo < record.sent_at);
                if echo_is_older || rtt.min().is_some_and(|min| since < min) {
                    continue;
                }
            }
            if record.sent_at >= latest {
                (latest, self.rtt) = (record.sent_at, since);
            }
            if (record.sent_at, record.end()) > self.newest {
                self.newest = (record.sent_at, record.end());
                self.newest_is_repair = record.ambiguous;
            }
        }
    }

    /// Step 4: duplicates make the reordering window larger.
    fn take_dsack(&mut self, board: &Scoreboard, ack: &Ack) {
        if self.dsack_round.is_some_and(|round| board.una() >= round) {
            self.dsack_round = None;
        }
        self.has_grown = self.dsack_round.is_none() && ack.dsack().is_some();
        if self.has_grown {
            self.dsack_round = Some(board.nxt());
            self.multiple += 1;
            self.persist = PERSIST;
        }
    }

    fn reordering_window(&self, board: &Scoreboard, rtt: &RttEstimator, phase: Phase) -> Span {
        let repairing = matches!(phase, Phase::Recovery { .. } | Phase::Loss { .. });
        if !self.reordering_seen && (repairing || board.sacked_segments >= DUP_THRESH) {
            return Span::ZERO;
        }
        let least = rtt.min().unwrap_or(Span::ZERO);
        (least * self.multiple / 4).min(rtt.smoothed().unwrap_or(Span::ZERO))
    }

    /// The last first transmission that is neither in the list nor lost and was sent before the
    /// newest delivered one; it exists, at the edge. Transmissions are in the order of their times.
    fn last_late<'a>(&mut self, board: &'a Scoreboard) -> &'a Record {
        self.passed = self.passed.max(self.edge);
        let mut index = board.index_of(self.passed);
        while let Some(record) = board.record(index) {
            if !is_settled(record) {
                if (record.sent_at, record.end()) >= self.newest {
                    break;
                }
                self.last_late = record.seq;
            }
            self.passed = record.end();
            index += 1;
        }
        let mut index = board.index_of(self.last_late.max(self.edge));
        loop {
            let record = board.record(index).expect("there is one at the edge");
            if !is_settled(record) {
                self.last_late = record.seq;
                return record;
            }
            index -= 1;
        }
    }

    /// Looks at all segments for the last that is late.
    #[cfg(test)]
    fn check(&self, board: &Scoreboard, last: u64) {
        let records = (0..).map_while(|index| board.record(index));
        let late = records
            .filter(|record| !is_settled(record) && (record.sent_at, record.end()) < self.newest);
        assert_eq!(late.last().map(|record| record.seq), Some(last));
    }

    /// Step 5: segments sent sufficiently long before the newest delivered one are lost.
    fn detect(&mut self, board: &mut Scoreboard, rtt: &RttEstimator, now: Time, phase: Phase) {
        let wait = self.rtt + self.reordering_window(board, rtt, phase);
        self.deadline = Deadline::NEVER;
        let mut latest = Time::ZERO;
        self.edge = self.edge.max(board.una());
        let mut index = board.index_of(self.edge);
        while let Some(record) = board.record(index).copied() {
            if !is_settled(&record) {
                if (record.sent_at, record.end()) >= self.newest {
                    break;
                }
                if record.sent_at + wait > now {
                    let last = self.last_late(board);
                    latest = last.sent_at + wait;
                    #[cfg(test)]
                    self.check(board, last.seq);
                    break;
                }
                board.mark_lost(index);
            }
            self.edge = record.end();
            index += 1;
        }
        while let Some(&(seq, sent_at)) = self.repairs.front() {
            let index = board.index_of(seq);
            let record = board
                .record(index)
                .filter(|record| record.seq == seq && record.sent_at == sent_at && !record.sacked);
            // Otherwise acknowledged, or sent yet another time.
            if let Some(record) = record {
                let earlier = match self.newest_is_repair {
                    true => (sent_at, record.end()) < self.newest,
                    false => sent_at < self.newest.0,
                };
                if !earlier {
                    break;
                }
                if sent_at + wait > now {
                    latest = latest.max(sent_at + wait);
                    break;
                }
                board.mark_lost(index);
            }
            self.repairs.pop_front();
        }
        if latest > Time::ZERO {
            self.deadline = Deadline::at(latest);
        }
    }
}

/// True if the fate of a segment's first transmission is known.
fn is_settled(record: &Record) -> bool {
    record.sacked || record.lost || record.ambiguous
}

impl LossRecovery for Rack {
    fn on_ack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        let sacked = board.sack(&ack.sack, cx.now);
        let mut news = std::mem::take(&mut board.news);
        self.take_news(&mut news, ack, cx.now, cx.rtt);
        board.news = news;
        self.take_dsack(board, ack);
        self.detect(board, cx.rtt, cx.now, cx.phase);
        sacked
    }
    /// Also retransmissions of the previous recovery that were lost again: losses in two windows
    /// are two signs of congestion (RFC 5681, section 4.3).
    fn finds_loss(&self, board: &mut Scoreboard, _sacked: u64, _is_third: bool) -> bool {
        board.head_is_lost() || board.next_lost().is_some()
    }
    fn begin(&mut self, _board: &mut Scoreboard) {}
    fn end(&mut self, _board: &mut Scoreboard) {
        // Step 4.
        if self.has_grown {
            return;
        }
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }
    /// Section 6.3: the first segment and overdue ones are lost.
    fn on_timeout(&mut self, board: &mut Scoreboard, rtt: &RttEstimator, now: Time) {
        let measured = match self.rtt {
            Span::ZERO => rtt.smoothed().unwrap_or(Span::ZERO), // the SYN's
            rtt => rtt,
        };
        let wait = measured + self.reordering_window(board, rtt, Phase::Open);
        let mut index = 0;
        while let Some(record) = board.record(index).copied() {
            let due = index == 0 || record.sent_at + wait <= now;
            let in_network = !record.lost || record.retransmitted;
            if !record.sacked && in_network && due {
                board.mark_lost(index);
            }
            index += 1;
        }
        self.deadline = Deadline::NEVER;
    }
    #[inline]
    fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64 {
        match phase {
            Phase::Open | Phase::Reduction { .. } if !self.limited_transmit => board.flight_size(),
            _ => board.pipe(),
        }
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.repairs.extend(sent.repair.map(|repair| (repair.seq, repair.now)));
    }
    #[inline]
    fn deadline(&self) -> Deadline {
        self.deadline
    }
    fn on_deadline(&mut self, board: &mut Scoreboard, cx: &AckContext) {
        self.detect(board, cx.rtt, cx.now, cx.phase);
    }
    fn on_undo(&mut self, board: &Scoreboard) {
        self.edge = board.una();
        self.passed = self.edge;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Timestamps;
    use crate::testing::at;

    /// Step 2: of a retransmission, unless the echo is older.
    #[test]
    fn an_echo_tells_which_transmission_has_arrived() {
        let params = TcpParams::rfc();
        let mut board = Scoreboard::by_time(1000);
        board.sent(1000, at(100));
        board.retransmit(0, at(200), true);
        let record = *board.record(0).unwrap();
        for (echo, counts) in [(199, false), (200, true)] {
            let mut rack = Rack::new(&params);
            let timestamps = Some(Timestamps { value: at(250), echo: at(echo) });
            let ack = Ack { timestamps, ..Ack::default() };
            rack.take_news(&mut [record], &ack, at(300), &RttEstimator::new(&params));
            assert_eq!(rack.newest == (at(200), 1000), counts, "{echo}");
        }
    }

    /// Step 3: SACK lists the latest block first (RFC 2018, section 4), which is no reordering.
    #[test]
    fn blocks_in_any_order_are_no_reordering() {
        let params = TcpParams::rfc();
        let mut board = Scoreboard::by_time(1000);
        let mut rack = Rack::new(&params);
        (100..106).for_each(|millis| board.sent(1000, at(millis)));
        let cx = AckContext { now: at(300), phase: Phase::Open, rtt: &RttEstimator::new(&params) };
        let mut ack = Ack::default();
        ack.sack.push(4000, 5000);
        ack.sack.push(1000, 3000);
        rack.on_ack(&mut board, &ack, &cx);
        assert_eq!((rack.fack, rack.reordering_seen), (5000, false));
        let mut later = Ack::default();
        later.sack.push(3000, 5000);
        rack.on_ack(&mut board, &later, &cx);
        assert!(rack.reordering_seen);
    }

    /// Step 2: segments in the order of their send times.
    #[test]
    fn the_round_trip_time_is_of_the_latest_transmission() {
        let params = TcpParams::rfc();
        let mut board = Scoreboard::by_time(1000);
        let mut rack = Rack::new(&params);
        (0..2).for_each(|_| board.sent(1000, at(100)));
        board.retransmit(0, at(150), true);
        let mut news = [*board.record(0).unwrap(), *board.record(1).unwrap()];
        rack.take_news(&mut news, &Ack::default(), at(300), &RttEstimator::new(&params));
        assert_eq!(rack.rtt, Span::from_millis(150));
    }

    /// Step 4: each round with a duplicate adds a quarter of the least
    /// round-trip time, up to a whole smoothed one; 16 recoveries without one
    /// take it back.
    #[test]
    fn duplicates_widen_the_reordering_window_for_sixteen_recoveries() {
        let params = TcpParams::rfc();
        let mut rtt = RttEstimator::new(&params);
        rtt.first_sample(Time::ZERO + Span::from_millis(100), Span::from_millis(100));
        let mut board = Scoreboard::by_time(1000);
        let mut rack = Rack::new(&params);
        rack.reordering_seen = true;
        let mut duplicate = Ack::default();
        duplicate.sack.push(0, 1000);
        let window = |rack: &Rack, board: &Scoreboard| {
            rack.reordering_window(board, &rtt, Phase::Open).as_nanos() / 1_000_000
        };
        assert_eq!(window(&rack, &board), 25);
        for round in 1..=4 {
            board.sent(1000, at(round));
            duplicate.ack = board.nxt();
            rack.take_dsack(&board, &duplicate);
            rack.end(&mut board); // with the duplicate
            rack.take_dsack(&board, &duplicate); // of the same round
            assert_eq!(window(&rack, &board), (25 * (round + 1)).min(100));
            board.acknowledge(duplicate.ack, at(100 + round));
        }
        for _ in 0..15 {
            rack.end(&mut board);
            assert_eq!(window(&rack, &board), 100);
        }
        rack.end(&mut board);
        assert_eq!(window(&rack, &board), 25);
    }
}
