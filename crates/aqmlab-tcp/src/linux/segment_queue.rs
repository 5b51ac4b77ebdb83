//! Unacknowledged segments in the order of sequence numbers, and linked in the order of sending.

use std::collections::VecDeque;

/// Flags of a segment.
pub(crate) mod tag {
    /// Reported by SACK.
    pub const SACKED: u8 = 1;
    /// Sent again, and that transmission is in the network.
    pub const RETRANSMITTED: u8 = 2;
    /// Taken for lost.
    pub const LOST: u8 = 4;
    /// Sent again at any time.
    pub const EVER: u8 = 8;
    /// Sent again.
    pub const AGAIN: u8 = RETRANSMITTED | EVER;
    /// In the buffer of the segment before it.
    pub const JOINED: u8 = 16;
    /// Sent in one packet with the segment before it: they are sent again together.
    pub const PART: u8 = 32;
}

/// No place.
const NONE: u64 = u64::MAX;

/// A segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub seq: u64,
    pub len: u32,
    pub tags: u8,
    pub app_limited: bool,
    /// Time of the last transmission in nanoseconds.
    pub sent: u64,
    /// The connection then: when its flight began and when data were delivered last, in
    /// microseconds (0: counted already), and how many had been.
    pub flight_began: u64,
    pub delivered_at: u64,
    pub delivered: u64,
    /// Segments lost by then, and segments in flight with it.
    pub lost: u32,
    pub in_flight: u32,
    earlier: u64,
    later: u64,
}

impl Segment {
    pub fn new(seq: u64, len: u32) -> Self {
        Segment { seq, len, earlier: NONE, later: NONE, ..Segment::default() }
    }
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
    #[inline]
    pub fn micros(&self) -> u64 {
        self.sent / 1000
    }
    #[inline]
    pub fn has(&self, tags: u8) -> bool {
        self.tags & tags != 0
    }
}

/// The segments. A place is a number that a segment keeps as long as it is here.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    segments: VecDeque<Segment>,
    first: u64,
    earliest: u64,
    latest: u64,
    joined: u64,
}

impl Queue {
    pub fn new() -> Self {
        Queue { segments: VecDeque::new(), first: 0, earliest: NONE, latest: NONE, joined: 0 }
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// The place of the first segment.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }
    /// The place after the last segment.
    #[inline]
    pub fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }
    #[inline]
    pub fn head(&self) -> Option<&Segment> {
        self.segments.front()
    }
    #[inline]
    pub fn at(&self, place: u64) -> &Segment {
        &self.segments[(place - self.first) as usize]
    }
    #[inline]
    pub fn at_mut(&mut self, place: u64) -> &mut Segment {
        &mut self.segments[(place - self.first) as usize]
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.segments.iter_mut()
    }
    /// The place of the first segment that ends after this number.
    pub fn place_of(&self, seq: u64) -> u64 {
        self.first + self.segments.partition_point(|segment| segment.end() <= seq) as u64
    }

    /// New data: the last in both orders.
    pub fn push(&mut self, segment: Segment) -> u64 {
        let place = self.end();
        self.segments.push_back(segment);
        self.link_last(place);
        place
    }
    /// The first segment is acknowledged.
    pub fn pop(&mut self) {
        self.unlink(self.first);
        let gone = self.segments.pop_front();
        self.first += 1;
        if gone.is_some_and(|gone| gone.has(tag::SACKED | tag::JOINED)) {
            self.part(self.first);
        }
    }

    /// A segment is reported by SACK now: the buffer of a reported one before it takes its
    /// payload, and then that of one after it (`tcp_shift_skb_data`).
    pub fn join(&mut self, place: u64) {
        let is_after_reported = place > self.first && self.at(place - 1).has(tag::SACKED);
        if !is_after_reported || !self.join_one(place) || place + 1 == self.end() {
            return;
        }
        if self.at(place + 1).has(tag::SACKED) {
            self.join_one(place + 1);
        }
    }
    fn join_one(&mut self, place: u64) -> bool {
        let fits = self.at(place).len == self.at(place - 1).len;
        if fits && !self.at(place).has(tag::JOINED) {
            self.at_mut(place).tags |= tag::JOINED;
            self.joined += 1;
        }
        fits
    }
    /// The segment before this one has left their buffer.
    fn part(&mut self, place: u64) {
        if place < self.end() && self.at(place).has(tag::JOINED) {
            self.at_mut(place).tags &= !tag::JOINED;
            self.joined -= 1;
        }
    }
    /// Number of segments without a buffer of their own.
    pub fn joined(&self) -> u64 {
        self.joined
    }

    /// The segment at a place takes in the one after it, which leaves its place to those after.
    pub fn merge(&mut self, place: u64) -> Segment {
        let next = place + 1;
        self.unlink(next);
        let index = (next - self.first) as usize;
        let gone = self.segments.remove(index).expect("there is one after it");
        let moved = |link: &mut u64| *link -= u64::from(*link != NONE && *link > next);
        for segment in &mut self.segments {
            moved(&mut segment.earlier);
            moved(&mut segment.later);
        }
        moved(&mut self.earliest);
        moved(&mut self.latest);
        self.at_mut(place).len += gone.len;
        gone
    }

    fn link_last(&mut self, place: u64) {
        let last = self.latest;
        let segment = self.at_mut(place);
        (segment.earlier, segment.later) = (last, NONE);
        match last {
            NONE => self.earliest = place,
            last => self.at_mut(last).later = place,
        }
        self.latest = place;
    }
    /// Takes a segment out of the order of sending, if it is there.
    pub fn unlink(&mut self, place: u64) {
        let Segment { earlier, later, .. } = *self.at(place);
        if earlier == NONE && self.earliest != place {
            return;
        }
        match earlier {
            NONE => self.earliest = later,
            earlier => self.at_mut(earlier).later = later,
        }
        match later {
            NONE => self.latest = earlier,
            later => self.at_mut(later).earlier = earlier,
        }
        let segment = self.at_mut(place);
        (segment.earlier, segment.later) = (NONE, NONE);
    }
    /// Sent again: the last in the order of sending.
    pub fn move_last(&mut self, place: u64) {
        self.unlink(place);
        self.link_last(place);
    }
    /// The place of the one that was sent first.
    #[inline]
    pub fn earliest(&self) -> Option<u64> {
        (self.earliest != NONE).then_some(self.earliest)
    }
    /// The place of the one that was sent after this one.
    #[inline]
    pub fn later(&self, place: u64) -> Option<u64> {
        let later = self.at(place).later;
        (later != NONE).then_some(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &Queue) -> Vec<u64> {
        std::iter::successors(queue.earliest(), |place| queue.later(*place)).collect()
    }

    #[test]
    fn reported_neighbours_share_a_buffer() {
        let mut queue = Queue::new();
        (0..6).for_each(|n| {
            queue.push(Segment::new(n * 10, 10));
        });
        let report = |queue: &mut Queue, place: u64| {
            queue.at_mut(place).tags |= tag::SACKED;
            queue.join(place);
            queue.joined()
        };
        assert_eq!(report(&mut queue, 1), 0);
        assert_eq!(report(&mut queue, 2), 1);
        // Not into one after it.
        assert_eq!(report(&mut queue, 4), 1);
        assert_eq!(report(&mut queue, 3), 3, "the hole between two");
        assert_eq!(report(&mut queue, 0), 3);
        // The rest of a buffer keeps its head.
        for left in [3, 2, 1, 0, 0, 0] {
            queue.pop();
            assert_eq!(queue.joined(), left);
        }
    }

    #[test]
    fn what_is_sent_again_goes_last_and_what_leaves_is_gone() {
        let mut queue = Queue::new();
        for n in 0..4 {
            queue.push(Segment::new(n * 10, 10));
        }
        queue.move_last(1);
        assert_eq!(order(&queue), [0, 2, 3, 1]);
        queue.unlink(3);
        queue.unlink(3);
        assert_eq!(order(&queue), [0, 2, 1]);
        queue.pop();
        queue.pop();
        assert_eq!((order(&queue), queue.first()), (vec![2], 2));
        queue.move_last(3);
        assert_eq!(order(&queue), [2, 3]);
        assert_eq!(queue.merge(2).seq, 30);
        assert_eq!((order(&queue), queue.at(2).len), (vec![2], 20));
        queue.push(Segment::new(40, 10));
        assert_eq!(order(&queue), [2, 3]);
        assert_eq!((queue.place_of(39), queue.place_of(40), queue.place_of(99)), (2, 3, 4));
    }
}
