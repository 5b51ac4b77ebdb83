//! Acknowledgement times of Linux's receiver (`tcp_event_data_recv`, `__tcp_ack_snd_check`,
//! `tcp_send_delayed_ack`): immediately at first, then for every second segment or after a delay
//! that follows the gaps between arrivals.

use aqmlab_core::{Span, Time};

use super::clock::{Clock, runs_out};
use crate::params::{Stack, TcpParams};
use crate::rcvbuf_autotune::Room;

/// The longest delay in jiffies.
const LONGEST: u64 = 200;
/// Acknowledgements of a congestion mark, or of a retransmission, that follow each other at once.
const AFTER_MARK: u64 = 2;
/// The default segment and the smallest (TCP_MSS_DEFAULT, TCP_MIN_MSS).
const DEFAULT_SEGMENT: u64 = 536;
const LEAST_SEGMENT: u64 = 88;
/// TCP's header, and the option of timestamps.
const HEADER: u64 = 20;
const TIMESTAMPS: u64 = 12;
/// Out of order, so many acknowledgements leave at once before they are compressed; so many are
/// compressed into one, for at most this long or a twentieth of a round trip, and the slack of the
/// timer (`tcp_comp_sack_slack_ns`).
const DUPLICATES: u64 = 3;
const COMPRESSED: u64 = 44;
const COMPRESSION: Span = Span::from_millis(1);
const SLACK: Span = Span::from_micros(100);

/// When the next acknowledgement leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// Once the application has read (`tcp_cleanup_rbuf`).
    Read,
    At(Time),
}

/// A segment that brought something new.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub len: u64,
    pub push: bool,
    /// The first missing byte, and bytes in order since the last acknowledgement.
    pub next: u64,
    pub unacknowledged: u64,
    /// True if data had arrived beyond it, and if some still have.
    pub had_gap: bool,
    pub has_gap: bool,
    /// The window has grown.
    pub grew: bool,
    /// True for the first mark since the sender has answered the last one, and for a probable
    /// retransmission: a segment without ECT after some with it (`__tcp_ecn_check_ce`).
    pub hurries: bool,
    /// An acknowledgement is due in any case (`ICSK_ACK_NOW`).
    pub due: bool,
}

/// The blocks that acknowledgements report, the latest first (`selective_acks`). The kernel forgets
/// older ones: what joins a forgotten block is a block of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportedBlocks {
    kept: [(u64, u64); ReportedBlocks::MAX],
    count: usize,
}

impl ReportedBlocks {
    /// TCP_NUM_SACKS, and TCP_SACK_BLOCKS_EXPECTED.
    const MAX: usize = 4;
    const EXPECTED: usize = 2;

    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.kept[..self.count]
    }
    fn joins((start, end): (u64, u64), other: (u64, u64)) -> bool {
        other.0 <= end && start <= other.1
    }
    fn place(&self, data: (u64, u64)) -> usize {
        let joins = |block: &(u64, u64)| ReportedBlocks::joins(*block, data);
        self.as_slice().iter().position(joins).unwrap_or(self.count)
    }
    /// Extends the block that data join. Returns whether it is none of those that are surely
    /// reported.
    pub fn extend(&mut self, data: (u64, u64)) -> bool {
        let place = self.place(data);
        if place < self.count {
            let block = &mut self.kept[place];
            *block = (block.0.min(data.0), block.1.max(data.1));
        }
        place >= ReportedBlocks::EXPECTED
    }
    /// Data arrive out of order (`tcp_sack_new_ofo_skb`, `tcp_sack_maybe_coalesce`).
    pub fn add(&mut self, mut data: (u64, u64)) {
        let mut place = self.place(data);
        let is_known = place < self.count;
        if is_known {
            data = (data.0.min(self.kept[place].0), data.1.max(self.kept[place].1));
        } else {
            place = place.min(ReportedBlocks::MAX - 1);
            self.count = place + 1;
        }
        self.kept.copy_within(..place, 1);
        let (mut count, mut index) = (1, 1);
        while is_known && index < self.count {
            let block = self.kept[index];
            index += 1;
            if ReportedBlocks::joins(data, block) {
                data = (data.0.min(block.0), data.1.max(block.1));
            } else {
                self.kept[count] = block;
                count += 1;
            }
        }
        if is_known {
            self.count = count;
        }
        self.kept[0] = data;
    }
    /// All before `next` has arrived (`tcp_sack_remove`).
    pub fn remove(&mut self, next: u64) {
        let mut count = 0;
        for index in 0..self.count {
            if self.kept[index].0 > next {
                self.kept[count] = self.kept[index];
                count += 1;
            }
        }
        self.count = count;
    }
}

/// The state, in jiffies.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayedAck {
    clock: Clock,
    least: u64,
    most_quick: u64,
    /// ATO, the delay; 0 before the first data; and its bound beside the timeout.
    delay: u64,
    most_delay: u64,
    quick: u64,
    /// Time of the last data.
    last: u64,
    /// A full segment, as far as is known (`rcv_mss`), and the largest there may be.
    segment: u64,
    mss: u64,
    /// A shorter segment that may be full too (`last_seg_size`), and its header.
    shorter: u64,
    header: u64,
    sack: bool,
    pushed: bool,
    /// When the delayed acknowledgement leaves.
    timer: Option<u64>,
    /// When the timer expires that was set last, even if its acknowledgement has left.
    armed: Time,
    pub blocks: ReportedBlocks,
    compressed: u64,
    /// The next acknowledgement is for nothing new.
    unscheduled: bool,
    duplicates: u64,
    duplicates_of: u64,
    syn_at: Time,
    /// The window that was advertised last.
    window: u64,
    /// The round-trip time of the handshake.
    rtt: Option<Span>,
}

impl DelayedAck {
    pub fn new(params: &TcpParams) -> Self {
        DelayedAck {
            clock: Clock::new(Span::ZERO, 0),
            least: (params.ack_delay.as_nanos() / 1_000_000).max(1),
            most_quick: params.quick_acks,
            // Since 6.12 (tcp_event_data_recv, tcp_delack_timer_handler).
            most_delay: match params.stack.or_newest() {
                Stack::Linux612 => LONGEST,
                _ => u64::MAX,
            },
            // tcp_initialize_rcv_mss
            segment: params.mss.get().clamp(LEAST_SEGMENT, DEFAULT_SEGMENT),
            mss: params.mss.get(),
            header: HEADER + if params.timestamps { TIMESTAMPS } else { 0 },
            sack: params.sends_sack(),
            window: u64::MAX,
            ..DelayedAck::default()
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
    fn bounded(&self, delay: u64) -> u64 {
        delay.min(self.rto()).min(self.most_delay)
    }
    fn acknowledge_quickly(&mut self, most: u64) {
        // tcp_incr_quickack
        let half = self.window / (2 * self.segment);
        self.quick = self.quick.max(if half == 0 { 2 } else { half }.min(most));
    }
    /// Whether a segment is a full one, and whether a write of the application ends in it
    /// (`tcp_measure_rcv_mss`): of shorter ones two of the same length in a row are full, if they are
    /// not short or have no PSH.
    fn measure_segment(&mut self, now: Time, &Arrival { len, push, .. }: &Arrival) {
        self.rtt.get_or_insert(now.saturating_since(self.syn_at));
        let last = std::mem::take(&mut self.shorter);
        if len >= self.segment {
            self.segment = len.min(self.mss);
            self.pushed |= push;
            return;
        }
        let least = if push { DEFAULT_SEGMENT } else { LEAST_SEGMENT };
        if len + self.header >= least + HEADER {
            self.shorter = len;
            if len == last {
                self.segment = len;
                return;
            }
        }
        self.pushed = true;
    }
    fn measure(&mut self, now: Time, arrival: &Arrival) {
        let now_jiffies = self.jiffies(now);
        self.measure_segment(now, arrival);
        if self.delay == 0 {
            self.acknowledge_quickly(self.most_quick);
            self.delay = self.least;
        } else {
            let gap = now_jiffies - self.last;
            if gap <= self.least / 2 {
                self.delay = (self.delay >> 1) + self.least / 2;
            } else if gap < self.delay {
                self.delay = self.bounded((self.delay >> 1) + gap);
            } else if gap > self.rto() {
                self.acknowledge_quickly(self.most_quick);
            }
        }
        self.last = now_jiffies;
    }

    /// Data arrive in order (`__tcp_ack_snd_check`).
    pub fn on_data(&mut self, now: Time, arrival: Arrival, room: impl FnOnce() -> Room) -> Due {
        self.measure(now, &arrival);
        if arrival.hurries {
            self.hurry();
        }
        if arrival.grew {
            self.quick |= 1;
        }
        let is_second = arrival.unacknowledged > self.segment;
        if is_second {
            let room = room();
            if room.is_tight {
                self.quick = 0;
            }
            if room.is_open {
                return Due::Now;
            }
        }
        if self.quick > 0
            || arrival.due
            || (arrival.had_gap && !arrival.has_gap)
            || (arrival.has_gap && !self.sack)
        {
            return Due::Now;
        }
        let due = match arrival.has_gap {
            true => self.beside_gap(now, arrival.next),
            false => self.delayed(now),
        };
        // What ends a write is acknowledged once it is read.
        match due {
            Due::At(_) if is_second || (self.pushed && !arrival.has_gap) => Due::Read,
            due => due,
        }
    }
    /// Data arrive out of order (`tcp_data_queue_ofo`) and have an acknowledgement unless one `leaves`
    /// that was compressed.
    pub fn on_gap(&mut self, now: Time, arrival: Arrival, leaves: bool) -> Option<Due> {
        if arrival.hurries {
            self.hurry();
        }
        self.measure_segment(now, &arrival);
        if arrival.grew {
            self.quick |= 1;
        }
        if leaves {
            return None;
        }
        if !self.sack || arrival.due {
            return Some(Due::Now);
        }
        Some(self.beside_gap(now, arrival.next))
    }
    /// The first acknowledgements that data are missing leave at once.
    fn beside_gap(&mut self, now: Time, next: u64) -> Due {
        if self.quick > 0 || self.compressed >= COMPRESSED {
            return Due::Now;
        }
        if self.duplicates_of != next {
            self.duplicates_of = next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES {
            self.duplicates += 1;
            return Due::Now;
        }
        self.compressed += 1;
        let share = self.rtt.map_or(Span::ZERO, |rtt| Span::from_nanos(rtt.as_nanos() / 20));
        let due = now + share.min(COMPRESSION) + SLACK;
        // The timer of an acknowledgement that has left sends it too (`tcp_delack_timer_handler`).
        Due::At(if self.armed > now { due.min(self.armed) } else { due })
    }
    /// A window is advertised, perhaps with more than half of the buffer taken
    /// (`__tcp_select_window`).
    pub fn on_window(&mut self, window: u64, is_tight: bool) {
        self.window = window;
        if is_tight {
            self.quick = 0;
        }
    }
    /// True if acknowledgements of data out of order wait to leave as one.
    pub fn is_compressing(&self) -> bool {
        self.compressed > 0
    }
    /// Data arrive that had arrived before.
    pub fn on_duplicate(&mut self) {
        self.acknowledge_quickly(self.most_quick);
        self.delay = self.least;
    }
    /// A segment was dropped, perhaps one that had arrived before. Its acknowledgement is none of
    /// those at once (`tcp_dec_quickack_mode`), unless one was scheduled.
    pub fn on_refused(&mut self, is_duplicate: bool) {
        if is_duplicate {
            self.on_duplicate();
        }
        self.unscheduled = self.timer.is_none() && self.compressed == 0;
    }
    /// `tcp_enter_quickack_mode`
    fn hurry(&mut self) {
        self.acknowledge_quickly(AFTER_MARK);
        self.delay = self.least;
    }

    fn delayed(&mut self, now: Time) -> Due {
        let now = self.jiffies(now);
        let mut delay = self.delay;
        if delay > self.least {
            delay = delay.min(self.rtt_jiffies().max(self.least));
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
        self.armed = self.clock.begin(runs_out(now, expires));
        Due::At(self.armed)
    }

    /// The time of a delayed acknowledgement has come.
    pub fn on_timeout(&mut self) {
        if self.compressed == 0 {
            self.delay = self.bounded(self.delay << 1);
        }
    }
    /// An acknowledgement leaves.
    pub fn on_sent(&mut self) {
        self.timer = None;
        self.pushed = false;
        self.compressed = 0;
        if !std::mem::take(&mut self.unscheduled) && self.quick > 0 {
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
    use crate::testing::at;

    const SEGMENT: Arrival = Arrival {
        len: 1448,
        push: false,
        next: 1448,
        unacknowledged: 1448,
        had_gap: false,
        has_gap: false,
        grew: false,
        hurries: false,
        due: false,
    };

    fn acks() -> DelayedAck {
        DelayedAck::new(&TcpParams::of_profile(Profile::Linux6).unwrap())
    }
    /// After sixteen segments from this time on, each acknowledged at once.
    fn after_quick_acks(millis: u64) -> DelayedAck {
        past_quick_acks(acks(), SEGMENT, millis)
    }
    fn past_quick_acks(mut acks: DelayedAck, segment: Arrival, millis: u64) -> DelayedAck {
        acks.on_syn(at(0));
        for n in 0..16 {
            assert_eq!(acks.on_data(at(millis + n), segment, room), Due::Now, "segment {n}");
            acks.on_sent();
        }
        acks
    }
    fn gap(acks: &mut DelayedAck, now: Time, next: u64) -> Due {
        acks.on_gap(now, Arrival { next, ..SEGMENT }, false).unwrap()
    }
    fn room() -> Room {
        Room { is_open: true, is_tight: false }
    }

    /// The blocks that the kernel reports of every second segment, and then of the missing ones from
    /// the first on.
    #[test]
    fn the_kernel_forgets_the_fifth_block() {
        let mut blocks = ReportedBlocks::default();
        for start in [10, 30, 50, 70, 90] {
            assert_eq!(blocks.extend((start, start + 10)), start >= 50, "{start}");
            blocks.add((start, start + 10));
        }
        assert_eq!(blocks.as_slice(), [(90, 100), (70, 80), (50, 60), (30, 40)]);
        blocks.add((20, 30));
        assert_eq!(blocks.as_slice(), [(20, 40), (90, 100), (70, 80), (50, 60)]);
        blocks.add((40, 50));
        assert_eq!(blocks.as_slice(), [(20, 60), (90, 100), (70, 80)]);
        blocks.remove(70);
        assert_eq!(blocks.as_slice(), [(90, 100)]);
    }

    #[test]
    fn after_the_first_sixteen_every_second_is_acknowledged() {
        let mut acks = after_quick_acks(40);
        assert_eq!(acks.on_data(at(60), SEGMENT, room), Due::At(at(101)), "after 40 jiffies");
        let second = Arrival { unacknowledged: 2896, ..SEGMENT };
        assert_eq!(acks.on_data(at(61), second, room), Due::Now);
    }

    #[test]
    fn the_delay_follows_the_gaps_and_doubles_when_it_was_missed() {
        let mut acks = after_quick_acks(100);
        acks.on_data(at(130), SEGMENT, room);
        acks.on_timeout();
        acks.on_sent();
        // 80 ms now, of which a gap of 50 makes 90; a round trip of 100 ms allows it.
        assert_eq!(acks.on_data(at(180), SEGMENT, room), Due::At(at(272)));
    }

    #[test]
    fn growth_of_the_window_and_short_segments_are_acknowledged_at_once() {
        let mut acks = after_quick_acks(0);
        assert_eq!(acks.on_data(at(17), Arrival { grew: true, ..SEGMENT }, room), Due::Now);
        acks.on_sent();
        let short = Arrival { len: 200, unacknowledged: 200, ..SEGMENT };
        assert_eq!(acks.on_data(at(18), short, room), Due::Read);
        acks.on_sent();
        assert_eq!(acks.on_data(at(19), Arrival { push: true, ..SEGMENT }, room), Due::Read);
        acks.on_sent();
        // Two segments with little room: the application has to read first, and nothing hurries.
        let second = Arrival { unacknowledged: 2896, grew: true, ..SEGMENT };
        let tight = || Room { is_open: false, is_tight: true };
        assert_eq!(acks.on_data(at(20), second, tight), Due::Read);
    }

    /// tcp_initialize_rcv_mss
    #[test]
    fn every_second_small_segment_is_acknowledged() {
        let params = TcpParams::of_profile(Profile::Linux6).unwrap();
        let params = TcpParams { mss: aqmlab_core::Bytes::new(188), ..params };
        let small = Arrival { len: 188, unacknowledged: 188, ..SEGMENT };
        let mut acks = past_quick_acks(DelayedAck::new(&params), small, 40);
        assert_eq!(acks.on_data(at(60), small, room), Due::At(at(101)));
        let second = Arrival { unacknowledged: 376, ..small };
        assert_eq!(acks.on_data(at(60), second, room), Due::Now);
    }

    /// tcp_measure_rcv_mss
    #[test]
    fn two_shorter_segments_of_one_length_are_full_ones() {
        let mut acks = after_quick_acks(0);
        let short = Arrival { len: 700, push: true, unacknowledged: 700, ..SEGMENT };
        assert_eq!(acks.on_data(at(17), short, room), Due::Read);
        acks.on_sent();
        assert_eq!(acks.on_data(at(18), short, room), Due::At(at(59)));
        let second = Arrival { unacknowledged: 1400, ..short };
        assert_eq!(acks.on_data(at(19), second, room), Due::Now);
    }

    #[test]
    fn the_delay_has_a_bound_since_linux_6_12() {
        for (profile, most) in [(Profile::Linux612, 200), (Profile::Linux61, 320)] {
            let mut acks = DelayedAck::new(&TcpParams::of_profile(profile).unwrap());
            acks.rtt = Some(Span::from_millis(300));
            acks.delay = 40;
            (0..3).for_each(|_| acks.on_timeout());
            assert_eq!(acks.delay, most);
        }
    }

    #[test]
    fn a_small_window_is_acknowledged_at_once_for_half_of_its_segments() {
        let mut acks = acks();
        acks.on_window(8 * 1448, false);
        for n in 0..4 {
            assert_eq!(acks.on_data(at(n), SEGMENT, room), Due::Now, "segment {n}");
            acks.on_sent();
        }
        assert_eq!(acks.on_data(at(5), SEGMENT, room), Due::At(at(46)));
    }

    #[test]
    fn the_fourth_out_of_order_waits_for_those_after_it() {
        let mut acks = after_quick_acks(40);
        for _ in 0..3 {
            assert_eq!(gap(&mut acks, at(60), 5000), Due::Now);
            acks.on_sent();
        }
        assert_eq!(gap(&mut acks, at(60), 5000), Due::At(at(61) + SLACK));
        assert_eq!(gap(&mut acks, at(60), 6448), Due::Now, "another hole");
        // A timer still runs for an acknowledgement that has left: it sends what waits.
        assert_eq!(acks.on_data(at(70), SEGMENT, room), Due::At(at(111)));
        acks.on_sent();
        for _ in 0..3 {
            gap(&mut acks, at(110), 9000);
        }
        assert_eq!(gap(&mut acks, at(110), 9000), Due::At(at(111)));
        assert_eq!(gap(&mut acks, at(111), 9000), Due::At(at(112) + SLACK));
    }
}
