//! Acknowledgement times of Linux's receiver (`tcp_event_data_recv`, `__tcp_ack_snd_check`,
//! `tcp_send_delayed_ack`): immediately at first, then for every second segment or after a delay
//! that follows the gaps between arrivals.

use aqmlab_core::{Span, Time};

use super::clock::{Clock, runs_out};
use crate::params::TcpParams;

/// The longest delay, and the longest of all for a sender that does not push, in jiffies.
const LONGEST: u64 = 200;
const LONGEST_UNPUSHED: u64 = 500;
/// Acknowledgements of a congestion mark that follow each other at once.
const AFTER_MARK: u64 = 2;
/// Out of order, so many acknowledgements leave at once before they are compressed; so many are
/// compressed into one, for at most this long or a twentieth of a round trip.
const DUPLICATES: u64 = 3;
const COMPRESSED: u64 = 44;
const COMPRESSION: Span = Span::from_millis(1);

/// When the next acknowledgement leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    At(Time),
}

/// A segment that brought something new in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub len: u64,
    /// Bytes in order since the last acknowledgement.
    pub unacknowledged: u64,
    /// True if data had arrived beyond it, and if some still have.
    pub had_gap: bool,
    pub has_gap: bool,
    /// The window has grown.
    pub grew: bool,
}

/// The state, in jiffies.
#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    clock: Clock,
    least: u64,
    most_quick: u64,
    /// ATO, the delay; 0 before the first data.
    delay: u64,
    quick: u64,
    /// Time of the last data.
    last: u64,
    /// The largest segment so far, and the largest there may be.
    segment: u64,
    mss: u64,
    sack: bool,
    pushed: bool,
    /// When the delayed acknowledgement leaves.
    timer: Option<u64>,
    compressed: u64,
    duplicates: u64,
    duplicates_of: u64,
    syn_at: Time,
    /// The round-trip time of the handshake.
    rtt: Option<Span>,
}

impl DelayedAck {
    pub fn new(params: &TcpParams) -> Self {
        DelayedAck {
            clock: Clock::new(Span::ZERO, 0),
            least: (params.ack_delay.as_nanos() / 1_000_000).max(1),
            most_quick: params.quick_acks,
            delay: 0,
            quick: 0,
            last: 0,
            segment: 536,
            mss: params.mss.get(),
            sack: params.sends_sack(),
            pushed: false,
            timer: None,
            compressed: 0,
            duplicates: 0,
            duplicates_of: 0,
            syn_at: Time::ZERO,
            rtt: None,
        }
    }

    pub fn on_syn(&mut self, now: Time) {
        self.syn_at = now;
    }
    fn jiffies(&self, now: Time) -> u64 {
        self.clock.jiffies(self.clock.nanos(now))
    }
    fn rtt_jiffies(&self) -> u64 {
        self.rtt.map_or(0, |rtt| rtt.as_nanos().div_ceil(1_000_000))
    }
    /// The retransmission timeout of the receiver's own.
    fn rto(&self) -> u64 {
        let rtt = self.rtt_jiffies();
        rtt + (2 * rtt).max(200)
    }
    fn acknowledge_quickly(&mut self, most: u64) {
        self.quick = self.quick.max(most);
    }
    fn measure(&mut self, now: Time, len: u64) {
        let now_jiffies = self.jiffies(now);
        if self.rtt.is_none() {
            self.rtt = Some(now.saturating_since(self.syn_at));
        }
        if len >= self.segment {
            self.segment = len.min(self.mss);
        } else {
            self.pushed = true;
        }
        if self.delay == 0 {
            self.acknowledge_quickly(self.most_quick);
            self.delay = self.least;
        } else {
            let gap = now_jiffies - self.last;
            if gap <= self.least / 2 {
                self.delay = (self.delay >> 1) + self.least / 2;
            } else if gap < self.delay {
                self.delay = ((self.delay >> 1) + gap).min(self.rto());
            } else if gap > self.rto() {
                self.acknowledge_quickly(self.most_quick);
            }
        }
        self.last = now_jiffies;
    }

    /// Data arrive in order.
    pub fn on_data(&mut self, now: Time, arrival: Arrival) -> Due {
        self.measure(now, arrival.len);
        if arrival.grew {
            self.quick |= 1;
        }
        // What does not fill a segment is read, and acknowledged, at once.
        let at_once = arrival.unacknowledged > self.segment
            || self.quick > 0
            || arrival.had_gap
            || arrival.has_gap
            || arrival.len < self.segment;
        if at_once { Due::Now } else { self.delayed(now) }
    }
    /// Data arrive out of order; `next` is the first missing byte.
    pub fn on_gap(&mut self, now: Time, next: u64, grew: bool) -> Due {
        if !self.sack {
            return Due::Now;
        }
        if grew {
            self.quick |= 1;
        }
        if self.duplicates_of != next {
            self.duplicates_of = next;
            self.duplicates = 0;
        }
        if self.quick > 0 || self.compressed >= COMPRESSED {
            return Due::Now;
        }
        if self.duplicates < DUPLICATES {
            self.duplicates += 1;
            return Due::Now;
        }
        self.compressed += 1;
        let share = self.rtt.map_or(Span::ZERO, |rtt| Span::from_nanos(rtt.as_nanos() / 20));
        Due::At(now + share.min(COMPRESSION))
    }
    /// Whether acknowledgements of data out of order wait for one.
    pub fn is_compressing(&self) -> bool {
        self.compressed > 0
    }
    /// Data arrive that had arrived before.
    pub fn on_duplicate(&mut self) {
        self.acknowledge_quickly(self.most_quick);
        self.delay = self.least;
    }
    /// The first mark since the sender has answered the last one.
    pub fn on_mark(&mut self) {
        self.acknowledge_quickly(AFTER_MARK);
        self.delay = self.least;
    }

    fn delayed(&mut self, now: Time) -> Due {
        let now = self.jiffies(now);
        let mut delay = self.delay;
        if delay > self.least {
            let most = if self.pushed { LONGEST } else { LONGEST_UNPUSHED };
            let rtt = self.rtt_jiffies().max(self.least);
            delay = delay.min(most).min(rtt);
        }
        let delay = delay.min(LONGEST);
        let mut expires = now + delay;
        if let Some(timer) = self.timer {
            if timer <= now + (delay >> 2) {
                return Due::Now;
            }
            expires = expires.min(timer);
        }
        self.timer = Some(expires);
        Due::At(self.clock.begin(runs_out(now, expires)))
    }

    /// The time of a delayed acknowledgement has come.
    pub fn on_timeout(&mut self) {
        if self.compressed == 0 {
            self.delay = (self.delay << 1).min(self.rto());
        }
    }
    /// An acknowledgement leaves.
    pub fn on_sent(&mut self) {
        self.timer = None;
        self.pushed = false;
        self.compressed = 0;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.least;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Profile;

    const SEGMENT: Arrival =
        Arrival { len: 1448, unacknowledged: 1448, had_gap: false, has_gap: false, grew: false };

    fn acks() -> DelayedAck {
        DelayedAck::new(&TcpParams::of_profile(Profile::Linux6).unwrap())
    }
    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_first_sixteen_are_acknowledged_at_once_and_then_every_second() {
        let mut acks = acks();
        acks.on_syn(at(0));
        for n in 0..16 {
            assert_eq!(acks.on_data(at(40 + n), SEGMENT), Due::Now, "segment {n}");
            acks.on_sent();
        }
        assert_eq!(acks.on_data(at(60), SEGMENT), Due::At(at(101)), "after 40 jiffies");
        let second = Arrival { unacknowledged: 2896, ..SEGMENT };
        assert_eq!(acks.on_data(at(61), second), Due::Now);
    }

    #[test]
    fn the_delay_follows_the_gaps_and_doubles_when_it_was_missed() {
        let mut acks = acks();
        acks.on_syn(at(0));
        for n in 0..16 {
            acks.on_data(at(100 + n), SEGMENT);
            acks.on_sent();
        }
        acks.on_data(at(130), SEGMENT);
        acks.on_timeout();
        acks.on_sent();
        // 80 ms now, of which a gap of 50 makes 90; a round trip of 100 ms allows it.
        assert_eq!(acks.on_data(at(180), SEGMENT), Due::At(at(272)));
    }

    #[test]
    fn growth_of_the_window_and_short_segments_are_acknowledged_at_once() {
        let mut acks = acks();
        for n in 0..16 {
            acks.on_data(at(n), SEGMENT);
            acks.on_sent();
        }
        assert_eq!(acks.on_data(at(17), Arrival { grew: true, ..SEGMENT }), Due::Now);
        acks.on_sent();
        let short = Arrival { len: 200, unacknowledged: 200, ..SEGMENT };
        assert_eq!(acks.on_data(at(18), short), Due::Now);
    }

    #[test]
    fn the_fourth_out_of_order_waits_for_those_after_it() {
        let mut acks = acks();
        acks.on_syn(at(0));
        for n in 0..16 {
            acks.on_data(at(40 + n), SEGMENT);
            acks.on_sent();
        }
        for _ in 0..3 {
            assert_eq!(acks.on_gap(at(60), 5000, false), Due::Now);
            acks.on_sent();
        }
        assert_eq!(acks.on_gap(at(60), 5000, false), Due::At(at(61)));
        assert_eq!(acks.on_gap(at(60), 6448, false), Due::Now, "another hole");
    }
}
