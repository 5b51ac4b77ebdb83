//! The loss event rate, as a receiver measures it (RFC 5348, section 5).

use std::collections::{BTreeSet, VecDeque};

/// Packets with higher numbers whose arrival makes a missing one lost, `NDUPACK` (section 5.1).
const LATER: u32 = 3;
/// Old intervals do not count less than this share of theirs, `THRESHOLD` (section 5.5).
const THRESHOLD: f64 = 0.25;
/// Lost packets that are remembered, in case one arrives late.
const REMEMBERED: usize = 1024;

/// What a packet's arrival came to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// It was not there before.
    pub is_new: bool,
    /// A loss event began.
    pub is_event: bool,
}

/// A packet's number, and when it arrived in seconds.
type Arrived = (f64, f64);

/// Missing packets between two that arrived one after the other.
struct Hole {
    first: u64,
    last: u64,
    before: Arrived,
    after: Arrived,
    /// Packets above it that have arrived.
    later: u32,
}

impl Hole {
    /// When a packet of it would have arrived, `T_loss` (section 5.2).
    fn time(&self, number: u64) -> f64 {
        let ((before, begin), (after, end)) = (self.before, self.after);
        begin + (end - begin) * (number as f64 - before) / (after - before)
    }
}

/// A closed loss interval: its packets, and its discount `DF_i`.
#[derive(Clone, Copy)]
struct Interval {
    packets: f64,
    discount: f64,
}

/// Which packets arrived, and the loss events.
pub struct Losses {
    /// How many intervals are averaged, n.
    count: usize,
    has_discounts: bool,
    /// One more than the highest number that arrived, and when that was.
    next: u64,
    latest: Arrived,
    /// From low numbers to high ones.
    holes: VecDeque<Hole>,
    lost: BTreeSet<u64>,
    /// The packet that began the current loss event, and when it would have arrived.
    start: Option<(u64, f64)>,
    /// `I_1` to `I_n`.
    intervals: VecDeque<Interval>,
}

impl Losses {
    /// Nothing has arrived. So many intervals are averaged, with or without history discounting.
    pub fn new(count: usize, has_discounts: bool) -> Self {
        Losses {
            count,
            has_discounts,
            next: 0,
            latest: (-1.0, 0.0),
            holes: VecDeque::new(),
            lost: BTreeSet::new(),
            start: None,
            intervals: VecDeque::new(),
        }
    }

    /// One more than the highest number that has arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A packet has arrived at `now` seconds, with or without a mark; the round-trip time is `rtt`
    /// seconds. `first` is asked for the packets of the interval before the first loss event, and
    /// told whether it began with the very first packet (section 6.3.1).
    pub fn arrive(
        &mut self,
        number: u64,
        now: f64,
        is_marked: bool,
        rtt: f64,
        first: &dyn Fn(bool) -> f64,
    ) -> Arrival {
        if !self.note(number, now) {
            return Arrival { is_new: self.lost.remove(&number), is_event: false };
        }
        for hole in self.holes.iter_mut().take_while(|hole| hole.last < number) {
            hole.later += 1;
        }
        let mut is_event = false;
        let is_gone = |hole: &Hole| hole.later >= LATER || (is_marked && hole.last < number);
        while self.holes.front().is_some_and(is_gone) {
            let Some(hole) = self.holes.pop_front() else { break };
            for missing in hole.first..=hole.last {
                is_event |= self.congestion(missing, hole.time(missing), rtt, first);
                self.lost.insert(missing);
                if self.lost.len() > REMEMBERED {
                    self.lost.pop_first();
                }
            }
        }
        if is_marked {
            is_event |= self.congestion(number, now, rtt, first);
        }
        Arrival { is_new: true, is_event }
    }

    /// Notes a packet; whether it was awaited: neither taken for lost nor received before.
    fn note(&mut self, number: u64, now: f64) -> bool {
        let after = (number as f64, now);
        if number >= self.next {
            if number > self.next {
                let (first, last) = (self.next, number - 1);
                // Before the first packet to arrive nothing is known of the pace.
                let before = if first == 0 { (-1.0, now) } else { self.latest };
                self.holes.push_back(Hole { first, last, before, after, later: 0 });
            }
            self.next = number + 1;
            self.latest = after;
            return true;
        }
        let holds = |hole: &Hole| (hole.first..=hole.last).contains(&number);
        let Some(place) = self.holes.iter().position(holds) else { return false };
        let Some(hole) = self.holes.remove(place) else { return false };
        if number < hole.last {
            self.holes.insert(place, Hole { first: number + 1, ..hole });
        }
        if number > hole.first {
            self.holes.insert(place, Hole { last: number - 1, ..hole });
        }
        true
    }

    /// A packet was lost or marked; whether that begins a loss event (section 5.2).
    fn congestion(&mut self, number: u64, at: f64, rtt: f64, first: &dyn Fn(bool) -> f64) -> bool {
        let packets = match self.start {
            Some((start, since)) if number <= start || at <= since + rtt => return false,
            Some((start, _)) => number as f64 - start as f64,
            None => first(number == 0),
        };
        let factor = if self.start.is_some() { self.discount(packets) } else { 1.0 };
        for interval in &mut self.intervals {
            interval.discount *= factor;
        }
        self.intervals.push_front(Interval { packets, discount: 1.0 });
        self.intervals.truncate(self.count);
        self.start = Some((number, at));
        true
    }

    /// The weight of an interval (section 5.4).
    fn weight(&self, index: usize) -> f64 {
        let (i, n) = (index as f64, self.count as f64);
        if i < n / 2.0 { 1.0 } else { 2.0 * (n - i) / (n + 2.0) }
    }

    /// Packets and weight of the closed intervals.
    fn closed(&self) -> (f64, f64) {
        let weigh = |(packets, weights), (index, interval): (usize, &Interval)| {
            let weight = self.weight(index) * interval.discount;
            (packets + weight * interval.packets, weights + weight)
        };
        self.intervals.iter().enumerate().fold((0.0, 0.0), weigh)
    }

    /// The general discount factor `DF`, when the current interval has so many packets.
    fn discount(&self, current: f64) -> f64 {
        let (packets, weights) = self.closed();
        let twice = 2.0 * packets / weights;
        if self.has_discounts && current > twice { (twice / current).max(THRESHOLD) } else { 1.0 }
    }

    /// The loss event rate p, 0 before the first loss event.
    pub fn rate(&self) -> f64 {
        let Some((start, _)) = self.start else { return 0.0 };
        let current = (self.next - start) as f64;
        let factor = self.discount(current);
        let (mut packets, mut weights) = (self.weight(0) * current, self.weight(0));
        // `I_0` to `I_(k-1)`: all but the oldest of the k that are closed.
        let kept = self.intervals.len() - 1;
        for (index, interval) in self.intervals.iter().take(kept).enumerate() {
            let weight = self.weight(index + 1) * interval.discount * factor;
            packets += weight * interval.packets;
            weights += weight;
        }
        let (before, before_weights) = self.closed();
        (weights / packets).min(before_weights / before).min(1.0)
    }
}
