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
use crate::segment::{Ack, CeCount, DataSegment, SackBlocks, Timestamps, is_outdated};

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
    has_syn: bool,
    syn_ack_due: bool,
    ecn: EcnMode,
    /// ECE is set: until CWR comes, or, as DCTCP.CE, until a segment comes
    /// without CE.
    ece: bool,
    /// True if data have arrived with ECT.
    has_ect: bool,
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
        Receiver::with_packets(params, PacketMemory::of(params.stack))
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
            has_syn: false,
            syn_ack_due: false,
            ecn: params.ecn,
            ece: false,
            has_ect: false,
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
            // Until the handshake is over the first one is echoed, and decides about ECN (Linux:
            // tcp_check_req, tcp_ecn_create_request; RFC 9768, section 3.1.5).
            if !std::mem::replace(&mut self.has_syn, true) {
                self.recent = segment.sent_at;
                if !segment.cwr {
                    self.decline_ecn();
                }
            }
            self.syn_ack_due = true;
            if let Some(sizing) = &mut self.sizing {
                sizing.on_syn(now);
            }
            if let Some(linux) = &mut self.linux {
                linux.on_syn(now);
            }
            return;
        }
        // Linux, tcp_validate_incoming: PAWS, and what ends before the last acknowledgement.
        let is_old = || self.timestamps && is_outdated(self.recent, segment.sent_at);
        if self.linux.is_some() && (segment.end() < self.last_ack || is_old()) {
            self.refuse(segment);
            return;
        }
        let hurries = self.ecn != EcnMode::Off && self.take_mark(now, segment);
        // RFC 7323, section 5.3: not what lies before the window (R2; Linux: tcp_sequence).
        if segment.seq <= self.last_ack && segment.end() >= self.last_ack {
            self.recent = self.recent.max(segment.sent_at);
        }
        if self.linux.is_some() {
            self.on_segment_linux(now, segment, hurries);
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

    /// Drops a segment; an acknowledgement reports what had arrived before (Linux, `tcp_send_dupack`).
    #[cold]
    fn refuse(&mut self, segment: &DataSegment) {
        self.duplicates += u64::from(segment.end() <= self.next);
        self.duplicate = self.arrived_part(segment);
        if let Some(linux) = &mut self.linux {
            linux.on_refused(self.duplicate.is_some());
        }
        self.due = true;
    }

    /// The part of a segment that had arrived in order.
    fn arrived_part(&self, segment: &DataSegment) -> Option<(u64, u64)> {
        let end = segment.end().min(self.next);
        (segment.seq < end).then_some((segment.seq, end))
    }

    /// The same, with Linux's rules of when to acknowledge.
    fn on_segment_linux(&mut self, now: Time, segment: &DataSegment, hurries: bool) {
        self.duplicate = self.arrived_part(segment);
        let due = if segment.end() <= self.next {
            self.duplicates += 1;
            if let Some(linux) = &mut self.linux {
                linux.on_duplicate();
            }
            Some(Due::Now)
        } else if segment.seq <= self.next {
            self.take_in_order(now, segment, hurries)
        } else {
            self.take_beyond(now, segment, hurries)
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
    fn take_in_order(&mut self, now: Time, segment: &DataSegment, hurries: bool) -> Option<Due> {
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
            hurries,
            due: self.due,
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
    fn take_beyond(&mut self, now: Time, segment: &DataSegment, hurries: bool) -> Option<Due> {
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
        let arrival = Arrival {
            len: u64::from(segment.len),
            push: segment.push,
            next: self.next,
            unacknowledged: self.unacknowledged,
            had_gap: true,
            has_gap: true,
            grew,
            hurries,
            due: self.due,
        };
        self.linux.as_mut().and_then(|linux| linux.on_gap(now, arrival, leaves))
    }

    /// Whether the connection uses ECN.
    pub fn uses_ecn(&self) -> bool {
        self.ecn != EcnMode::Off
    }
    /// Opens the connection without ECN.
    pub fn decline_ecn(&mut self) {
        self.ecn = EcnMode::Off;
    }
    /// Changes the mode of ECN.
    pub fn change(&mut self, before: &TcpParams, after: &TcpParams) {
        if before.ecn != after.ecn {
            self.ecn = after.ecn;
            self.ece &= self.uses_ecn();
        }
    }

    /// Returns whether the following segments are to be acknowledged at once.
    fn take_mark(&mut self, now: Time, segment: &DataSegment) -> bool {
        let marked = segment.ecn == Ecn::Ce;
        // RFC 3168, section 6.1.5: not of what lies outside of the window.
        let counts = segment.end() > self.next;
        let mut is_first = false;
        match self.ecn {
            EcnMode::Off => {}
            // RFC 3168, section 6.1.3.
            EcnMode::Classic => {
                self.ece &= !segment.cwr;
                self.due |= segment.cwr && self.linux.is_some();
                is_first = marked && !self.ece && counts;
                self.ece |= marked && counts;
            }
            EcnMode::Dctcp => {
                self.due |= segment.cwr && self.linux.is_some();
                if counts {
                    self.take_dctcp_mark(now, marked);
                }
            }
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
        let lacks_ect = segment.ecn == Ecn::NotEct;
        let is_again = counts && lacks_ect && self.has_ect && self.ecn != EcnMode::Accurate;
        self.has_ect |= counts && !lacks_ect;
        is_first || is_again
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
        self.next = end;
        if !self.beyond.is_empty() {
            self.duplicate = self.duplicate.or_else(|| self.beyond.known_before(end));
            self.next = self.beyond.advance(end);
        }
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
        if let Some(known) = self.beyond.store(start, end) {
            self.duplicates += u64::from(known == (start, end));
            self.duplicate = Some(known);
        }
    }

    /// The acknowledgement to be sent now, if one is due.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<Ack> {
        if self.syn_ack_due {
            self.syn_ack_due = false;
            return Some(Ack { syn: true, ece: self.uses_ecn(), ..self.ack(now) });
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
mod tests;
