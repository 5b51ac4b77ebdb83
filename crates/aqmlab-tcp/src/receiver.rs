//! The receiving end: reassembly and acknowledgements.
//!
//! # Sources
//! RFC 9293 (cumulative acknowledgement, window), RFC 5681, section 4.2, and
//! RFC 1122, section 4.2.3.2 (delayed acknowledgements), RFC 2018 (SACK), RFC
//! 3168, RFC 8257, section 3.2, and RFC 9768 (ECN).
//!
//! # Differences
//! 1. The application reads immediately, so the window is the receiver's capacity, counted from the
//!    cumulative acknowledgement. The capacity is constant, or grows (`rcvbuf_autotune`).
//! 2. A lost SYN-ACK is sent again when the SYN comes again, not by a timer.

use aqmlab_core::{Auto, Deadline, Ecn, Limit, Span, Time};

use crate::linux::receiver::{Arrival, DelayedAck, Due};
use crate::params::{EcnMode, Stack, TcpParams};
pub use crate::rcvbuf_autotune::PacketMemory;
use crate::rcvbuf_autotune::{Held, RightSizing, Room};
use crate::reassembly::Reassembly;
use crate::segment::{Ack, CeCount, DataSegment, SackBlocks, Timestamps};

/// The first byte that is missing, and when something arrived beyond it first and last.
#[derive(Clone, Copy, Debug)]
struct ReorderGap {
    at: u64,
    since: Time,
    until: Time,
}

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// RCV.NXT: all bytes before have arrived.
    next: u64,
    /// Data beyond it.
    beyond: Reassembly,
    /// What the last segment has put in order with Linux: read after the acknowledgement.
    unread: Held,
    /// The end of the first packet of it.
    read_first: u64,
    hole: Option<ReorderGap>,
    duplicates: u64,
    /// A window that does not change; else what lets it grow.
    window: u64,
    sizing: Option<Box<RightSizing>>,
    mss: u64,
    sack: bool,
    delayed_ack: u64,
    ack_delay: Span,
    /// With `stack` of Linux: when it acknowledges.
    linux: Option<Box<DelayedAck>>,
    /// Segments still to be acknowledged each at once, and how many at a time.
    quick: u64,
    quick_acks: u64,
    /// Bytes in order that are not acknowledged yet.
    unacknowledged: u64,
    /// Time by which they must be acknowledged.
    deadline: Deadline,
    /// Acknowledgements to be sent now: out of order, each segment has one.
    due: bool,
    syn_ack_due: bool,
    ecn: EcnMode,
    /// ECE is set: until CWR comes, or, as DCTCP.CE, until a segment comes
    /// without CE.
    ece: bool,
    /// Acknowledgement to be sent first.
    earlier: Option<Ack>,
    ce: CeCount,
    /// Marks since the last acknowledgement, and whether the last segment had
    /// one.
    new_marks: u64,
    was_marked: bool,
    /// The duplicate to be reported with the next acknowledgement.
    duplicate: Option<(u64, u64)>,
    dsack: bool,
    timestamps: bool,
    /// TS.Recent, and Last.ACK.sent (RFC 7323, section 4.3).
    recent: Time,
    last_ack: u64,
}

impl Receiver {
    /// A receiver that waits for a SYN.
    pub fn new(params: &TcpParams) -> Self {
        Receiver::with_packets(params, PacketMemory::default())
    }
    /// A receiver that waits for a SYN, with Linux's rules behind an interface whose packets take
    /// this memory.
    pub fn with_packets(params: &TcpParams, packets: PacketMemory) -> Self {
        let sizing = (params.receive_window == Auto::Auto)
            .then(|| Box::new(RightSizing::new(params, packets)));
        Receiver {
            next: 0,
            beyond: Reassembly::new(packets.shared),
            unread: Held::default(),
            read_first: 0,
            hole: None,
            duplicates: 0,
            window: params.in_bytes(params.receive_window.or_else(|| Limit::Unlimited)),
            sizing,
            mss: params.mss.get(),
            sack: params.sends_sack(),
            delayed_ack: params.delayed_ack,
            ack_delay: params.ack_delay,
            linux: (params.stack != Stack::Rfc && params.delayed_ack == 2)
                .then(|| Box::new(DelayedAck::new(params))),
            quick: params.quick_acks,
            quick_acks: params.quick_acks,
            unacknowledged: 0,
            deadline: Deadline::NEVER,
            due: false,
            syn_ack_due: false,
            ecn: params.ecn,
            ece: false,
            earlier: None,
            ce: CeCount::default(),
            new_marks: 0,
            was_marked: false,
            duplicate: None,
            dsack: params.dsack && params.sends_sack(),
            timestamps: params.timestamps,
            recent: Time::ZERO,
            last_ack: 0,
        }
    }

    /// The window that acknowledgements advertise, in bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        self.sizing.as_ref().map_or(self.window, |sizing| sizing.window())
    }
    /// Bytes that arrived in order: what the application has.
    pub fn received(&self) -> u64 {
        self.next
    }
    /// Bytes that have arrived, each counted once, whether in order or not.
    pub fn arrived(&self) -> u64 {
        self.next + self.beyond.bytes()
    }
    fn held(&self) -> Held {
        Held {
            bytes: self.beyond.bytes() + self.unread.bytes,
            heads: self.beyond.heads() + self.unread.heads,
        }
    }
    /// For how long data have arrived beyond the first byte that is still missing; zero if none is.
    pub fn held_up(&self) -> Span {
        let open = self.hole.filter(|hole| hole.at == self.next && !self.beyond.is_empty());
        open.map_or(Span::ZERO, |hole| hole.until - hole.since)
    }
    /// Segments that had arrived before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// A segment arrives.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, segment: &DataSegment) {
        if segment.syn {
            self.syn_ack_due = true;
            if let Some(sizing) = &mut self.sizing {
                sizing.on_syn(now);
            }
            if let Some(linux) = &mut self.linux {
                linux.on_syn(now);
            }
            return;
        }
        if self.ecn != EcnMode::Off {
            self.take_mark(now, segment);
        }
        if segment.seq <= self.last_ack {
            self.recent = self.recent.max(segment.sent_at);
        }
        if self.linux.is_some() {
            self.on_segment_linux(now, segment);
            return;
        }
        let (had_gap, is_new) = (!self.beyond.is_empty(), segment.end() > self.next);
        if segment.end() <= self.next {
            // RFC 9293, section 3.10.7.4: nothing new is answered at once.
            self.duplicates += 1;
            self.duplicate = (segment.len > 0).then_some((segment.seq, segment.end()));
            self.due = true;
            self.quick = self.quick_acks;
        } else if segment.seq <= self.next {
            self.advance(segment.end());
            // RFC 5681, section 4.2: at once if it fills all or part of a
            // gap, else at least every second full segment.
            self.unacknowledged += u64::from(segment.len);
            self.due |= had_gap || self.unacknowledged >= self.delayed_ack * self.mss;
            self.due |= self.quick > 0;
            self.quick = self.quick.saturating_sub(1);
            if !self.due && self.deadline.is_never() {
                self.deadline = Deadline::at(now + self.ack_delay);
            }
        } else {
            self.store(now, segment.seq, segment.end());
            self.due = true;
        }
        let held = self.held();
        if let Some(sizing) = self.sizing.as_mut().filter(|_| is_new) {
            self.due |= sizing.on_data(now, segment, self.next, held);
            sizing.on_read(now, self.next, self.next);
        }
    }

    /// The same, with Linux's rules of when to acknowledge.
    fn on_segment_linux(&mut self, now: Time, segment: &DataSegment) {
        let due = if segment.end() <= self.next {
            self.duplicates += 1;
            self.duplicate = (segment.len > 0).then_some((segment.seq, segment.end()));
            if let Some(linux) = &mut self.linux {
                linux.on_duplicate();
            }
            Some(Due::Now)
        } else if segment.seq <= self.next {
            self.take_in_order(now, segment)
        } else {
            self.take_beyond(now, segment)
        };
        match due {
            Some(Due::Now) => self.due = true,
            Some(Due::Read) => {
                self.read(now);
                self.due = true;
            }
            Some(Due::At(at)) => self.deadline = self.deadline.min(Deadline::at(at)),
            None => {}
        }
    }

    /// The first missing byte comes, and perhaps more (Linux, `tcp_data_queue`).
    fn take_in_order(&mut self, now: Time, segment: &DataSegment) -> Option<Due> {
        let (had_gap, before, heads) = (!self.beyond.is_empty(), self.next, self.beyond.heads());
        self.read_first = segment.end();
        self.advance(segment.end());
        let heads = 1 + heads - self.beyond.heads();
        self.unread = Held { bytes: self.next - before, heads };
        let (held, sizing) = (self.held(), &mut self.sizing);
        let grew =
            sizing.as_mut().is_some_and(|sizing| sizing.on_data(now, segment, segment.end(), held));
        self.unacknowledged = self.next - self.last_ack;
        let arrival = Arrival {
            len: u64::from(segment.len),
            push: segment.push,
            next: self.next,
            unacknowledged: self.unacknowledged,
            had_gap,
            has_gap: !self.beyond.is_empty(),
            grew,
        };
        let open = Room { is_open: true, is_tight: false };
        let room = || sizing.as_ref().map_or(open, |sizing| sizing.room_for_last(held));
        self.linux.as_mut().map(|linux| linux.on_data(now, arrival, room))
    }

    /// Data arrive out of order (Linux, `tcp_data_queue_ofo`).
    ///
    /// Data that extend neither of the two latest blocks could push one out of the compressed
    /// acknowledgement: that leaves first, as it is, and these have none of their own
    /// (`tcp_sack_new_ofo_skb`; `tcp_send_ack` ends a scheduled one).
    fn take_beyond(&mut self, now: Time, segment: &DataSegment) -> Option<Due> {
        let data = (segment.seq, segment.end());
        let linux = self.linux.as_mut()?;
        let leaves = linux.blocks.extend(data) && linux.is_compressing();
        if leaves {
            self.earlier = Some(self.send(now));
        }
        let mut held = self.held();
        self.store(now, segment.seq, segment.end());
        // The memory of a packet of its own counts after the window grows.
        if self.beyond.heads() == held.heads {
            held = self.held();
        }
        // Without SACK a larger window would hide that acknowledgements are duplicates.
        let sizing = self.sizing.as_mut().filter(|_| self.sack);
        let grew = sizing.is_some_and(|sizing| sizing.on_data(now, segment, self.next, held));
        let linux = self.linux.as_mut().filter(|_| !leaves)?;
        Some(linux.on_gap(now, self.next, grew))
    }

    /// Changes the mode of ECN.
    pub fn change(&mut self, params: &TcpParams) {
        self.ecn = params.ecn;
        self.ece &= params.ecn != EcnMode::Off;
    }

    fn take_mark(&mut self, now: Time, segment: &DataSegment) {
        let marked = segment.ecn == Ecn::Ce;
        // RFC 3168, section 6.1.5: not of what lies outside of the window.
        let counts = segment.end() > self.next;
        match self.ecn {
            EcnMode::Off => {}
            // RFC 3168, section 6.1.3.
            EcnMode::Classic => {
                self.ece &= !segment.cwr;
                if let Some(linux) = self.linux.as_mut().filter(|_| marked && !self.ece) {
                    linux.on_mark();
                }
                self.due |= segment.cwr && self.linux.is_some();
                self.ece |= marked && counts;
            }
            EcnMode::Dctcp if counts => self.take_dctcp_mark(now, marked),
            EcnMode::Dctcp => {}
            // RFC 9768, sections 3.2.1 and 3.2.2.5.1.
            EcnMode::Accurate => {
                if marked {
                    self.ce.packets += 1;
                    self.ce.bytes += u64::from(segment.len);
                    self.new_marks += 1;
                    // Acknowledged at once: the first mark after none, and every
                    // second one.
                    self.due |= !self.was_marked || self.new_marks >= 2;
                }
                self.was_marked = marked;
            }
        }
    }

    /// RFC 8257, section 3.2: at a change an acknowledgement is sent at once, and
    /// before it one of what waits for its own, with the flag as it was then.
    fn take_dctcp_mark(&mut self, now: Time, marked: bool) {
        if marked == self.ece {
            return;
        }
        if self.unacknowledged > 0 {
            self.earlier = Some(self.ack(now));
            self.unacknowledged = 0;
        }
        self.ece = marked;
        self.due = true;
    }

    /// All bytes before `end` are here; so may be blocks beyond.
    #[inline]
    fn advance(&mut self, end: u64) {
        self.next = if self.beyond.is_empty() { end } else { self.beyond.advance(end) };
        if let Some(linux) = &mut self.linux {
            linux.blocks.remove(self.next);
        }
    }

    /// Keeps what arrived out of order.
    fn store(&mut self, now: Time, start: u64, end: u64) {
        let since = self.hole.filter(|hole| hole.at == self.next).map_or(now, |hole| hole.since);
        self.hole = Some(ReorderGap { at: self.next, since, until: now });
        if let Some(linux) = &mut self.linux {
            linux.blocks.add((start, end));
        }
        if self.beyond.store(start, end) {
            self.duplicates += 1;
            self.duplicate = Some((start, end));
        }
    }

    /// The acknowledgement to be sent now, if one is due.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<Ack> {
        if self.syn_ack_due {
            self.syn_ack_due = false;
            return Some(Ack { syn: true, ..self.ack(now) });
        }
        if self.earlier.is_some() {
            return self.earlier.take();
        }
        if !self.due && !self.read(now) {
            return None;
        }
        self.due = false;
        Some(self.send(now))
    }

    /// Returns an acknowledgement of all that has come; nothing else is due then.
    #[inline(always)]
    fn send(&mut self, now: Time) -> Ack {
        self.unacknowledged = 0;
        self.new_marks = 0;
        self.deadline = Deadline::NEVER;
        if let Some(linux) = &mut self.linux {
            linux.on_sent();
        }
        self.ack(now)
    }

    /// The application reads the data in order. Returns whether that frees so much room that an
    /// acknowledgement reports it (Linux, `tcp_cleanup_rbuf`).
    #[inline]
    fn read(&mut self, now: Time) -> bool {
        if self.unread.bytes == 0 {
            return false;
        }
        self.unread = Held::default();
        let held = self.held();
        self.sizing.as_mut().is_some_and(|sizing| {
            sizing.on_read(now, self.read_first, self.next);
            sizing.has_grown(self.next, held)
        })
    }

    #[inline(always)]
    fn ack(&mut self, now: Time) -> Ack {
        let duplicate = self.duplicate.take().filter(|_| self.dsack);
        let sack = match duplicate.is_some() || (self.sack && !self.beyond.is_empty()) {
            true => self.sack_blocks(duplicate),
            false => SackBlocks::default(),
        };
        self.last_ack = self.next;
        let (mut window, held) = (self.window, self.held());
        if let Some(sizing) = &mut self.sizing {
            let is_tight;
            (window, is_tight) = sizing.advertise(self.next, held);
            if let Some(linux) = &mut self.linux {
                linux.on_window(window, is_tight);
            }
        }
        let timestamps = self.timestamps.then_some(Timestamps { value: now, echo: self.recent });
        Ack { ack: self.next, syn: false, window, sack, ece: self.ece, ce: self.ce, timestamps }
    }

    /// RFC 2018, section 4: the block with the latest segment first, then
    /// those reported most recently; before them a duplicate (RFC 2883,
    /// section 4).
    fn sack_blocks(&self, duplicate: Option<(u64, u64)>) -> SackBlocks {
        let mut sack = SackBlocks::default();
        if let Some((start, end)) = duplicate {
            sack.push(start, end);
        }
        // RFC 2018, section 3: beside timestamps there is room for three.
        let most =
            SackBlocks::MAX - usize::from(self.timestamps) - usize::from(duplicate.is_some());
        match &self.linux {
            Some(linux) => {
                let blocks = linux.blocks.as_slice().iter().take(most);
                blocks.for_each(|(start, end)| sack.push(*start, *end));
            }
            None => {
                self.beyond.latest().take(most).for_each(|(start, end)| sack.push(start, end));
            }
        }
        sack
    }

    /// When a delayed acknowledgement has to be sent.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        self.deadline.time()
    }

    /// The time of [`next_timeout`](Self::next_timeout) has come.
    pub fn on_timeout(&mut self, now: Time) {
        if self.deadline.has_come(now) {
            self.deadline = Deadline::NEVER;
            self.due = true;
            if let Some(linux) = &mut self.linux {
                linux.on_timeout();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        Receiver::new(&TcpParams::rfc())
    }
    fn segment(number: u64) -> DataSegment {
        DataSegment { seq: number * 1460, len: 1460, ..DataSegment::default() }
    }
    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_block_too_many_sends_the_compressed_acknowledgement() {
        let params = TcpParams::of_profile(crate::params::Profile::Linux6).unwrap();
        let mut receiver = Receiver::new(&params);
        receiver.on_segment(at(0), &DataSegment { syn: true, ..segment(0) });
        receiver.poll(at(0));
        for number in 0..16 {
            receiver.on_segment(at(40), &segment(number));
            receiver.poll(at(40));
        }
        let blocks = |ack: Ack| ack.sack.as_slice().len();
        // Every second one is missing. Three are acknowledged at once, the fourth waits.
        for (number, count) in [(17, 1), (19, 2), (21, 3)] {
            receiver.on_segment(at(50), &segment(number));
            assert_eq!(blocks(receiver.poll(at(50)).unwrap()), count);
        }
        receiver.on_segment(at(50), &segment(23));
        assert_eq!(receiver.poll(at(50)), None);
        // The next block: what waited leaves without it.
        receiver.on_segment(at(50), &segment(25));
        let ack = receiver.poll(at(50)).unwrap();
        let first = ack.sack.as_slice()[0];
        assert_eq!((first, blocks(ack)), ((23 * 1460, 24 * 1460), 3));
        assert_eq!(receiver.poll(at(50)), None);
        // Nothing is due for it, until one that extends its block comes.
        assert_eq!(receiver.next_timeout(), None);
        receiver.on_segment(at(50), &segment(26));
        let due = at(51) + Span::from_micros(100);
        assert_eq!((receiver.poll(at(50)), receiver.next_timeout()), (None, Some(due)));
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_the_timer_does() {
        let mut receiver = receiver();
        receiver.on_segment(at(0), &segment(0));
        assert_eq!(receiver.poll(at(0)), None);
        assert_eq!(receiver.next_timeout(), Some(at(200)));
        receiver.on_segment(at(10), &segment(1));
        assert_eq!(receiver.poll(at(10)).unwrap().ack, 2 * 1460);
        assert_eq!(receiver.next_timeout(), None);
        receiver.on_segment(at(20), &segment(2));
        assert_eq!(receiver.poll(at(20)), None);
        receiver.on_timeout(at(220));
        assert_eq!(receiver.poll(at(220)).unwrap().ack, 3 * 1460);
    }

    #[test]
    fn a_gap_is_reported_at_once_and_so_is_its_end() {
        let mut receiver = receiver();
        receiver.on_segment(at(0), &segment(1));
        let ack = receiver.poll(at(0)).unwrap();
        assert_eq!((ack.ack, ack.sack.as_slice()), (0, &[(1460, 2920)][..]));
        receiver.on_segment(at(1), &segment(4));
        receiver.on_segment(at(2), &segment(2));
        let ack = receiver.poll(at(2)).unwrap();
        assert_eq!(ack.sack.as_slice(), [(1460, 4380), (5840, 7300)], "the latest first");
        receiver.on_segment(at(3), &segment(0));
        assert_eq!(receiver.poll(at(3)).unwrap().ack, 4380);
        receiver.on_segment(at(4), &segment(3));
        let ack = receiver.poll(at(4)).unwrap();
        assert_eq!((ack.ack, ack.sack.is_empty()), (7300, true));
    }

    /// RFC 2018, section 3: 40 bytes of options hold four blocks, or three and timestamps.
    #[test]
    fn timestamps_leave_room_for_three_blocks() {
        for (timestamps, most) in [(false, 4), (true, 3)] {
            let params = TcpParams { timestamps, dsack: true, ..TcpParams::rfc() };
            let mut receiver = Receiver::new(&params);
            let blocks = [1, 3, 5, 7, 9, 9].map(|number| {
                receiver.on_segment(at(0), &segment(number));
                receiver.poll(at(0)).unwrap().sack.as_slice().len()
            });
            assert_eq!(blocks, [1, 2, 3, most, most, most], "timestamps {timestamps}");
        }
    }

    #[test]
    fn each_byte_counts_when_it_first_arrives() {
        let mut receiver = receiver();
        let counts = [(0, 1, 1), (2, 1, 2), (4, 1, 3), (4, 1, 3), (1, 3, 4), (0, 3, 4), (3, 5, 5)];
        for (number, in_order, arrived) in counts {
            receiver.on_segment(at(0), &segment(number));
            let bytes = [receiver.received(), receiver.arrived()];
            assert_eq!(bytes, [1460 * in_order, 1460 * arrived], "{number}");
        }
        // A longer segment over received data adds the missing part.
        receiver.on_segment(at(0), &DataSegment { len: 2 * 1460, ..segment(6) });
        receiver.on_segment(at(0), &DataSegment { len: 4 * 1460, ..segment(5) });
        assert_eq!(receiver.arrived(), 9 * 1460);
    }

    #[test]
    fn a_hole_is_open_from_the_first_that_arrives_beyond_it() {
        let mut receiver = receiver();
        let mut held_up = |millis, number| {
            receiver.on_segment(at(millis), &segment(number));
            receiver.held_up()
        };
        assert_eq!(held_up(1, 0), Span::ZERO);
        assert_eq!(held_up(5, 2), Span::ZERO);
        assert_eq!(held_up(9, 4), Span::from_millis(4));
        // The first hole is filled; of the second nothing has come since.
        assert_eq!(held_up(10, 1), Span::ZERO);
        assert_eq!(held_up(20, 6), Span::ZERO);
        assert_eq!(held_up(50, 7), Span::from_millis(30));
        held_up(60, 3);
        assert_eq!(held_up(61, 5), Span::ZERO);
    }

    fn marked(number: u64) -> DataSegment {
        DataSegment { ecn: Ecn::Ce, ..segment(number) }
    }

    /// RFC 3168, section 6.1.3.
    #[test]
    fn ece_is_set_until_cwr_comes() {
        let params = TcpParams { ecn: EcnMode::Classic, delayed_ack: 1, ..TcpParams::rfc() };
        let mut receiver = Receiver::new(&params);
        let mut ece = |segment: DataSegment| {
            receiver.on_segment(at(0), &segment);
            receiver.poll(at(0)).unwrap().ece
        };
        assert!(!ece(segment(0)));
        assert!(ece(marked(1)));
        assert!(ece(segment(2)), "again, until CWR");
        assert!(!ece(DataSegment { cwr: true, ..segment(3) }));
        assert!(ece(DataSegment { cwr: true, ..marked(4) }), "a new mark beside CWR counts");
        assert!(!ece(DataSegment { cwr: true, ..segment(5) }));
        assert!(!ece(marked(5)), "outside of the window");
    }

    /// RFC 8257, section 3.2, figure 1.
    #[test]
    fn each_change_is_told_at_once_and_what_came_before_by_itself() {
        let params = TcpParams { ecn: EcnMode::Dctcp, delayed_ack: 4, ..TcpParams::rfc() };
        let mut receiver = Receiver::new(&params);
        let mut told = |segment: DataSegment| -> Vec<(u64, bool)> {
            receiver.on_segment(at(0), &segment);
            let acks = std::iter::from_fn(|| receiver.poll(at(0)));
            acks.map(|ack| (ack.ack / 1460, ack.ece)).collect()
        };
        assert_eq!(told(segment(0)), []);
        assert_eq!(told(marked(1)), [(1, false), (2, true)]);
        assert_eq!(told(marked(2)), []);
        assert_eq!(told(DataSegment { cwr: true, ..marked(3) }), [], "CWR changes nothing");
        assert_eq!(told(segment(4)), [(4, true), (5, false)]);
        assert_eq!(told(marked(5)), [(6, true)], "nothing waits");
        assert_eq!(told(segment(5)), [(6, true)], "outside of the window");
        for number in 6..9 {
            assert_eq!(told(marked(number)), []);
        }
        assert_eq!(told(marked(9)), [(10, true)], "every fourth");
    }

    /// RFC 9768, section 3.2.2.5.1.
    #[test]
    fn marks_are_counted_and_the_first_and_every_second_is_told_at_once() {
        let params = TcpParams { ecn: EcnMode::Accurate, delayed_ack: 8, ..TcpParams::rfc() };
        let mut receiver = Receiver::new(&params);
        let mut told = |segment: DataSegment| {
            receiver.on_segment(at(0), &segment);
            receiver.poll(at(0)).map(|ack| (ack.ce.packets, ack.ce.bytes))
        };
        assert_eq!(told(segment(0)), None);
        assert_eq!(told(marked(1)), Some((1, 1460)), "a change");
        assert_eq!(told(marked(2)), None);
        assert_eq!(told(marked(3)), Some((3, 4380)), "two marks");
        assert_eq!(told(segment(4)), None);
        assert_eq!(told(marked(5)), Some((4, 5840)), "a change again");
    }

    /// RFC 1122, section 4.2.3.2: the delay runs from the first segment that waits; later short
    /// segments do not restart it.
    #[test]
    fn the_delay_runs_from_the_first_segment_that_waits() {
        let mut receiver = receiver();
        for (number, millis) in [(0, 0), (1, 150)] {
            let seq = 100 * number;
            let short = DataSegment { seq, len: 100, ..DataSegment::default() };
            receiver.on_segment(at(millis), &short);
            assert_eq!(receiver.poll(at(millis)), None, "it waits for a full segment");
            assert_eq!(receiver.next_timeout(), Some(at(200)));
        }
        receiver.on_timeout(at(200));
        assert_eq!(receiver.next_timeout(), None, "it is due");
        assert_eq!(receiver.poll(at(200)).map(|ack| ack.ack), Some(200));
        let third = DataSegment { seq: 200, len: 100, ..DataSegment::default() };
        receiver.on_segment(at(300), &third);
        assert_eq!(receiver.next_timeout(), Some(at(500)), "a new delay");
    }

    #[test]
    fn what_came_before_is_answered_at_once() {
        let mut receiver = receiver();
        receiver.on_segment(at(0), &segment(0));
        receiver.on_segment(at(0), &segment(0));
        assert_eq!(receiver.poll(at(0)).unwrap().ack, 1460);
        assert_eq!(receiver.duplicates(), 1);
    }
}
