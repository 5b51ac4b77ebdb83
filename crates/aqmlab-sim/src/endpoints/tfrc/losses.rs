//! Measurement of the loss event rate by a receiver (RFC 5348, section 5).

use std::collections::{BTreeSet, VecDeque};

/// Number of later packets whose arrival makes a missing packet lost, `NDUPACK` (section 5.1).
const LATER: u32 = 3;
/// Minimum weight of old intervals, `THRESHOLD` (section 5.5).
const THRESHOLD: f64 = 0.25;
/// Limit of remembered lost packets, which may arrive late.
const REMEMBERED: usize = 1024;

/// Result of an arrival.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DataArrival {
    /// True if the packet is not a duplicate.
    pub is_new: bool,
    /// True if a loss event began.
    pub is_event: bool,
}

/// Number of a packet, and its arrival time in seconds.
type Arrived = (f64, f64);

/// Gap between two packets that arrived consecutively.
#[derive(Clone)]
struct Hole {
    first: u64,
    last: u64,
    before: Arrived,
    after: Arrived,
    /// Number of packets above the gap that have arrived.
    later: u32,
}

impl Hole {
    /// Returns the expected arrival time of a missing packet, `T_loss` (section 5.2).
    fn time(&self, number: u64) -> f64 {
        let ((before, begin), (after, end)) = (self.before, self.after);
        begin + (end - begin) * (number as f64 - before) / (after - before)
    }
}

/// Closed loss interval: number of packets, and discount `DF_i`.
#[derive(Clone, Copy)]
struct Interval {
    packets: f64,
    discount: f64,
}

/// Arrived packets and loss events.
#[derive(Clone, Default)]
pub struct LossHistory {
    /// Number of averaged intervals, n.
    count: usize,
    has_discounts: bool,
    /// Highest number that arrived, plus one, and its arrival time.
    next: u64,
    latest: Arrived,
    /// Gaps in ascending order.
    holes: VecDeque<Hole>,
    lost: BTreeSet<u64>,
    /// Packet that began the current loss event, and its expected arrival time.
    start: Option<(u64, f64)>,
    /// Closed intervals, `I_1` to `I_n`.
    intervals: VecDeque<Interval>,
}

impl LossHistory {
    /// Creates an empty history that averages `count` intervals, with or without history
    /// discounting.
    pub fn new(count: usize, has_discounts: bool) -> Self {
        LossHistory { count, has_discounts, latest: (-1.0, 0.0), ..LossHistory::default() }
    }

    /// Returns the highest number that has arrived, plus one.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Records the arrival of a packet at `now` seconds, with or without a mark; the round-trip
    /// time is `rtt` seconds. At the first loss event, `first` returns the packets of the interval
    /// before it; its argument is true if the event began with the very first packet (section
    /// 6.3.1).
    pub fn arrive(
        &mut self,
        number: u64,
        now: f64,
        is_marked: bool,
        rtt: f64,
        first: &dyn Fn(bool) -> f64,
    ) -> DataArrival {
        if !self.note(number, now) {
            return DataArrival { is_new: self.lost.remove(&number), is_event: false };
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
        DataArrival { is_new: true, is_event }
    }

    /// Records a packet. Returns true if it was expected: neither considered lost nor received
    /// before.
    fn note(&mut self, number: u64, now: f64) -> bool {
        let after = (number as f64, now);
        if number >= self.next {
            if number > self.next {
                let (first, last) = (self.next, number - 1);
                // Before the first arrival the packet rate is unknown.
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

    /// Records a lost or marked packet. Returns whether it begins a loss event (section 5.2).
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

    /// Returns the weight of an interval (section 5.4).
    fn weight(&self, index: usize) -> f64 {
        let (i, n) = (index as f64, self.count as f64);
        if i < n / 2.0 { 1.0 } else { 2.0 * (n - i) / (n + 2.0) }
    }

    /// Returns packets and weight of the closed intervals.
    fn closed(&self) -> (f64, f64) {
        let weigh = |(packets, weights), (index, interval): (usize, &Interval)| {
            let weight = self.weight(index) * interval.discount;
            (packets + weight * interval.packets, weights + weight)
        };
        self.intervals.iter().enumerate().fold((0.0, 0.0), weigh)
    }

    /// Returns the general discount factor `DF` for a current interval of this many packets.
    fn discount(&self, current: f64) -> f64 {
        let (packets, weights) = self.closed();
        let twice = 2.0 * packets / weights;
        if self.has_discounts && current > twice { (twice / current).max(THRESHOLD) } else { 1.0 }
    }

    /// Returns the loss event rate p, 0 before the first loss event.
    pub fn rate(&self) -> f64 {
        let Some((start, _)) = self.start else { return 0.0 };
        let current = (self.next - start) as f64;
        let factor = self.discount(current);
        let (mut packets, mut weights) = (self.weight(0) * current, self.weight(0));
        // `I_0` to `I_(k-1)`: all except the oldest of the k closed intervals.
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
