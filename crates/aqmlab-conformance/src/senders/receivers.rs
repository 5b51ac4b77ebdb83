//! The receivers of the recorded connections, given what their senders sent: the acknowledgements
//! compared.
//!
//! A recording has what the sender saw. A segment arrives once the recorded path has delivered it:
//! a queue with its rate, a delay, and more delay for late segments; an acknowledgement left a
//! delay before it came.

use aqmlab_core::{Ecn, Result, Span, Time};
use aqmlab_tcp::{Ack, DataSegment, Receiver};

use super::{Case, Event};

/// Acknowledgements may leave so much earlier or later: the path is known to some packets' times.
const TOLERANCE: u64 = 150_000;
const MILLI: u64 = 1_000_000;
/// Bytes of a SYN's options beside timestamps.
const SYN_OPTIONS: u32 = 8;
/// The clock of the replay at the SYN: times of a receiver are not zero.
const BEGIN: u64 = 1_000 * MILLI;

/// Agreement of our receiver with a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckComparison {
    /// Acknowledgements recorded.
    pub acks: u64,
    /// Acknowledgements that ours sent in the same place, with the same number, blocks and flags, at
    /// the same time.
    pub acks_equal: u64,
    /// Acknowledgements with the same window as well.
    pub windows_equal: u64,
    /// Acknowledgements that ours sent beyond, or less.
    pub excess: i64,
}

impl AckComparison {
    /// True if all acknowledgements are equal, apart from their windows.
    pub fn is_equal(&self) -> bool {
        self.acks == self.acks_equal && self.excess == 0
    }
}

/// Gives a recording to the receiver of its kernel.
///
/// # Errors
/// Returns an error if the control is unknown.
pub fn compare(case: &Case) -> Result<AckComparison> {
    let clock = HostClock::of(case);
    let ours = play(case.arrivals(&clock), case.receiver()?);
    let seen = case.events.iter().filter_map(|event| match event {
        Event::Acknowledged(seen) => Some(seen),
        _ => None,
    });
    let lost = &case.path.acks_lost;
    let arrives = |(number, _): &(u64, _)| lost.binary_search(number).is_err();
    let ours: Vec<_> = (0..).zip(ours).filter(arrives).map(|(_, ack)| ack).collect();
    let (mut comparison, mut end) = (AckComparison::default(), Time::ZERO);
    for (place, seen) in seen.enumerate() {
        comparison.acks += 1;
        end = clock.at(seen.at) + Span::from_nanos(TOLERANCE);
        let Some((at, ack)) = ours.get(place) else { continue };
        let apart = (at.as_nanos() + case.path.return_delay.as_nanos())
            .abs_diff(clock.at(seen.at).as_nanos());
        let echoes = ack.ece == seen.ack.ece;
        let is_equal = echoes && (ack.ack, ack.sack) == (seen.ack.ack, seen.ack.sack);
        if is_equal && apart < TOLERANCE {
            comparison.acks_equal += 1;
            comparison.windows_equal += u64::from(ack.window == seen.ack.window);
        }
    }
    // The recording ends once all data is acknowledged.
    let recorded = ours.iter().filter(|(at, _)| *at + case.path.return_delay <= end).count();
    comparison.excess = recorded as i64 - comparison.acks as i64;
    Ok(comparison)
}

/// The clock of the replay: its milliseconds begin where the host's did, and that of the SYN's
/// arrival at [`BEGIN`].
struct HostClock {
    later: u64,
}

impl HostClock {
    fn of(case: &Case) -> HostClock {
        let phase = case.clock().0.as_nanos();
        let syn = case.path.delay.as_nanos() + phase;
        HostClock { later: phase + BEGIN - syn / MILLI * MILLI }
    }
    fn at(&self, recorded: Time) -> Time {
        Time::from_nanos(recorded.as_nanos() + self.later)
    }
}

impl Case {
    /// The segments that arrive, in order.
    fn arrivals(&self, clock: &HostClock) -> Vec<(Time, DataSegment)> {
        let (mut free, mut number, mut echo) = (Time::ZERO, 0, 0);
        let mut arrived = vec![(
            clock.at(Time::ZERO + self.transmission(self.path.rate, SYN_OPTIONS) + self.path.delay),
            DataSegment { syn: true, cwr: self.settings.ecn, ..DataSegment::default() },
        )];
        for event in &self.events {
            let &Event::Sent { at, seq, len, push, cwr, lost, marked } = event else {
                if let Event::Acknowledged(seen) = event {
                    echo = seen.ack.timestamps.map_or(echo, |times| times.value.as_nanos());
                    if seen.ack.syn {
                        // The third segment of the handshake.
                        free = seen.at + self.transmission(self.path.rate, 0);
                    }
                }
                continue;
            };
            number += 1;
            if lost {
                continue;
            }
            let in_force = self.path.rates.iter().rev().find(|(from, _)| *from <= at);
            let rate = in_force.map_or(self.path.rate, |(_, rate)| *rate);
            free = free.max(at) + self.transmission(rate, len);
            let late = self.path.late.iter().find(|(late, _)| *late == number);
            let late = late.map_or(Span::ZERO, |(_, late)| *late);
            let ecn = if marked { Ecn::Ce } else { Ecn::Ect0 };
            arrived.push((
                clock.at(free + self.path.delay + late),
                DataSegment {
                    seq,
                    len,
                    push,
                    cwr,
                    ecn,
                    sent_at: clock.at(at),
                    echo: Time::from_nanos(BEGIN + echo),
                    ..DataSegment::default()
                },
            ));
        }
        arrived.sort_by_key(|(at, _)| *at);
        arrived
    }

    /// Time that a segment takes; a rate of 0 is without limit.
    fn transmission(&self, rate: u64, len: u32) -> Span {
        let bits = u64::from(len + self.header()) * 8;
        Span::from_nanos((bits * 1_000_000_000).checked_div(rate).unwrap_or(0))
    }
}

/// Returns the acknowledgements of a receiver, with the times at which they leave.
fn play(arrivals: Vec<(Time, DataSegment)>, mut receiver: Receiver) -> Vec<(Time, Ack)> {
    let mut sent = Vec::new();
    let mut take = |receiver: &mut Receiver, now: Time| {
        while let Some(ack) = receiver.poll(now) {
            sent.push((now, ack));
        }
    };
    let last = arrivals.last().map_or(Time::ZERO, |(at, _)| *at) + Span::from_millis(1000);
    let ends = (last, DataSegment::default());
    for (at, segment) in arrivals.into_iter().chain([ends]) {
        while let Some(due) = receiver.next_timeout().filter(|due| *due <= at) {
            receiver.on_timeout(due);
            take(&mut receiver, due);
        }
        if segment.syn || segment.len > 0 {
            receiver.on_segment(at, &segment);
            take(&mut receiver, at);
        }
    }
    sent
}
