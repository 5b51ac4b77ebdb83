//! Delivery rates (draft-cheng-iccrg-delivery-rate-estimation-02).
//!
//! For each segment in flight there is a record of the connection when it was
//! sent, in a queue that runs beside the scoreboard's. Records are kept only
//! if the congestion control needs rates.
//!
//! # Differences
//! 1. Data are counted in payload bytes.
//! 2. Losses since a segment was sent are counted as well, for BBR
//!    (draft-ietf-ccwg-bbr, section 4.1).

use std::collections::VecDeque;

use aqmlab_core::{Span, Time};

use crate::congestion::{LostSegment, RateSample};
use crate::losses::Losses;

/// The connection when a segment was last sent (section 3.1.2).
#[derive(Clone, Copy, Debug, Default)]
struct SendRecord {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    /// With the segment itself.
    in_flight: u64,
    app_limited: bool,
}

/// A segment as the scoreboard knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    pub end: u64,
    pub len: u64,
    pub sent_at: Time,
}

/// The newest segment that the acknowledgement at hand delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    record: SendRecord,
    segment: SentSegment,
    send_elapsed: Span,
}

/// Delivery counters, and the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    /// All bytes delivered and taken for lost.
    pub delivered: u64,
    pub lost: u64,
    keep: bool,
    records: VecDeque<SendRecord>,
    delivered_at: Time,
    /// When the most recently delivered segment was sent.
    first_sent_at: Time,
    /// The application is the limit until more than this is delivered.
    app_limited_until: u64,
    newest: Option<Newest>,
    /// Losses for logs.
    pub log: Losses,
    /// Losses not reported to the control yet.
    losses: Vec<LostSegment>,
}

impl Delivery {
    pub fn new(keep: bool) -> Self {
        Delivery { keep, ..Delivery::default() }
    }
    /// Begins or ends to keep records. Those of the `segments` in flight are taken now, as if they
    /// were sent now.
    pub fn keep_records(&mut self, keep: bool, segments: usize, now: Time) {
        if keep == self.keep {
            return;
        }
        self.keep = keep;
        self.records.clear();
        self.newest = None;
        self.losses.clear();
        if keep {
            let record = self.record(now, 0, 0);
            self.records.resize(segments, record);
        }
    }
    pub fn keeps_records(&self) -> bool {
        self.keep
    }
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    fn record(&mut self, now: Time, in_flight: u64, len: u32) -> SendRecord {
        if in_flight == 0 {
            // Section 3.2: a flight begins.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendRecord {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: in_flight + u64::from(len),
            app_limited: self.is_app_limited(),
        }
    }
    /// New data are sent while this much is in flight.
    #[inline]
    pub fn on_sent(&mut self, now: Time, in_flight: u64, len: u32) {
        if self.keep {
            let record = self.record(now, in_flight, len);
            self.records.push_back(record);
        }
    }
    /// The segment at a place of the scoreboard is sent again.
    pub fn on_retransmitted(&mut self, index: usize, now: Time, in_flight: u64, len: u32) {
        if self.keep {
            self.records[index] = self.record(now, in_flight, len);
        }
    }

    /// The segment at a place of the scoreboard has arrived (section 3.3).
    #[inline]
    pub fn on_delivered(&mut self, index: usize, segment: SentSegment, now: Time) {
        self.delivered += segment.len;
        if !self.keep {
            return;
        }
        self.delivered_at = now;
        let record = self.records[index];
        let newer = self.newest.is_none_or(|newest| {
            (segment.sent_at, segment.end) > (newest.segment.sent_at, newest.segment.end)
        });
        if newer {
            let send_elapsed = segment.sent_at.saturating_since(record.first_sent_at);
            self.newest = Some(Newest { record, segment, send_elapsed });
            self.first_sent_at = segment.sent_at;
        }
    }
    /// A part of the first segment has arrived.
    pub fn on_delivered_part(&mut self, bytes: u64) {
        self.delivered += bytes;
    }
    /// The first segment leaves the scoreboard.
    #[inline]
    pub fn pop(&mut self) {
        if self.keep {
            self.records.pop_front();
        }
    }

    /// A transmission of the segment at this place is taken for lost.
    pub fn on_lost(&mut self, index: usize, seq: u64, len: u32) {
        self.lost += u64::from(len);
        self.log.add(seq, len);
        if self.keep {
            let record = self.records[index];
            self.losses.push(LostSegment {
                bytes: u64::from(len),
                tx_in_flight: record.in_flight,
                lost: self.lost - record.lost,
                app_limited: record.app_limited,
            });
        }
    }
    /// The losses since the last call, oldest first.
    pub fn take_losses(&mut self, mut see: impl FnMut(&LostSegment)) {
        self.losses.iter().for_each(&mut see);
        self.losses.clear();
    }

    /// There is nothing to send, though the window would allow it (section
    /// 3.4).
    pub fn app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Each segment has a record, if records are kept.
    #[cfg(test)]
    pub fn check(&self, segments: usize) {
        assert_eq!(self.records.len(), if self.keep { segments } else { 0 });
    }

    /// Bytes delivered when the newest segment was sent that the current acknowledgement delivers.
    pub fn prior_delivered(&self) -> Option<u64> {
        self.newest.map(|newest| newest.record.delivered)
    }

    /// The sample of the acknowledgement at hand (section 3.3), unless it
    /// delivered nothing or in less than a round-trip time.
    pub fn sample(&mut self, now: Time, min_rtt: Option<Span>) -> Option<RateSample> {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let Newest { record, segment, send_elapsed } = self.newest.take()?;
        let ack_elapsed = self.delivered_at.saturating_since(record.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval == Span::ZERO || min_rtt.is_some_and(|min_rtt| interval < min_rtt) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - record.delivered,
            interval,
            app_limited: record.app_limited,
            prior_delivered: record.delivered,
            lost: self.lost - record.lost,
            tx_in_flight: record.in_flight,
            rtt: now - segment.sent_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Scoreboard;
    use crate::segment::SackBlocks;
    use crate::testing::at;
    fn millis(millis: u64) -> Span {
        Span::from_millis(millis)
    }
    fn board() -> Scoreboard {
        Scoreboard::new(1000, Delivery::new(true))
    }

    /// Four segments in 3 ms, acknowledged one every 2 ms after 10 ms: the rate is that of
    /// delivery, the interval the longer of the two.
    #[test]
    fn a_sample_is_as_slow_as_the_slower_of_sending_and_arriving() {
        let mut board = board();
        for number in 0..4 {
            board.sent(1000, at(number));
        }
        board.acknowledge(1000, at(10));
        let first = board.delivery.sample(at(10), None).unwrap();
        // The flight began with it at 0, so 10 ms for 1000 bytes.
        assert_eq!((first.delivered, first.interval, first.rtt), (1000, millis(10), millis(10)));
        board.acknowledge(2000, at(12));
        board.acknowledge(4000, at(16));
        let last = board.delivery.sample(at(16), None).unwrap();
        assert_eq!((last.delivered, last.interval, last.rtt), (4000, millis(16), millis(13)));
        assert_eq!((last.prior_delivered, last.tx_in_flight), (0, 4000));
        // Sent at 16 when 4000 were delivered at 16; arrives in 10 ms.
        board.sent(1000, at(16));
        board.sent(1000, at(20));
        board.acknowledge(6000, at(30));
        let sample = board.delivery.sample(at(30), None).unwrap();
        assert_eq!((sample.delivered, sample.interval), (2000, millis(14)));
        assert_eq!(sample.bytes_per_sec(), 2000.0 / 0.014);
        assert_eq!(board.delivery.sample(at(31), None), None, "nothing new");
    }

    #[test]
    fn what_selective_reports_deliver_counts_once_and_losses_since_are_known() {
        let mut board = board();
        for number in 0..5 {
            board.sent(1000, at(number));
        }
        let mut blocks = SackBlocks::default();
        blocks.push(1000, 4000);
        board.sack(&blocks, at(10));
        let sample = board.delivery.sample(at(10), None).unwrap();
        // IsLost: more than two segments above the first.
        assert_eq!((sample.delivered, sample.lost), (3000, 1000));
        let mut lost = Vec::new();
        board.delivery.take_losses(|segment| lost.push(*segment));
        assert_eq!((lost.len(), lost[0].bytes, lost[0].tx_in_flight), (1, 1000, 1000));
        let index = board.next_hole(true).unwrap();
        board.retransmit(index, at(11), true);
        board.acknowledge(5000, at(21));
        let sample = board.delivery.sample(at(21), None).unwrap();
        assert_eq!(board.delivery.delivered, 5000);
        // The newest is the retransmission, sent when 3000 were delivered.
        assert_eq!((sample.prior_delivered, sample.delivered, sample.lost), (3000, 2000, 0));
        assert_eq!(sample.rtt, millis(10));
    }

    /// Section 3.4: the limited phase covers all data in flight when it began, and ends with the
    /// first segment after them.
    #[test]
    fn the_limited_phase_lasts_until_all_that_was_in_flight_is_delivered() {
        let mut board = board();
        for _ in 0..4 {
            board.sent(1000, at(0));
        }
        board.delivery.app_limited(board.pipe());
        for delivered in 1..=4 {
            board.acknowledge(1000 * delivered, at(10 + delivered));
            board.delivery.sample(at(10 + delivered), None);
            assert!(board.delivery.is_app_limited(), "{delivered} of 4 segments");
        }
        board.sent(1000, at(15));
        board.acknowledge(5000, at(25));
        let sample = board.delivery.sample(at(25), None).unwrap();
        assert!(sample.app_limited, "sent in the limited phase");
        assert!(!board.delivery.is_app_limited());
    }

    /// Section 3.3: an interval below the least round-trip time is no sample.
    #[test]
    fn too_short_an_interval_is_no_sample() {
        let mut board = board();
        board.sent(1000, at(0));
        board.acknowledge(1000, at(10));
        assert_eq!(board.delivery.sample(at(10), Some(millis(11))), None);
    }
}
