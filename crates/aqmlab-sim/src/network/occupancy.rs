//! Little's law, checked at every link.
//!
//! The number of packets in a stage of a link, integrated over time, equals the sum of the times
//! that packets spend in it: of those that left, those dropped, and those still inside. It holds
//! for every order of service and for any finite time (Stidham, "A Last Word on L = lambda W",
//! Operations Research 22, 1974), so an inequality is a fault of the measurement or of the
//! discipline, not chance.
//!
//! The two sides are counted separately:
//! - An [`Occupancy`] counts only *that* a packet of some size enters or leaves, and when. It
//!   yields the mean backlog.
//! - A [`Waits`] sums the time that each packet carries from its arrival. It yields the sojourn
//!   times.
//!
//! The integral needs no update while the number is constant: with `n` packets inside at time `t`
//! it is `n t` plus the sum of departure times, minus the sum of arrival times (summation by
//! parts).

use aqmlab_aqm::Backlog;
use aqmlab_core::{Span, Time};

/// Backlog of one stage, integrated over time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Occupancy {
    /// Sum of departure times minus sum of arrival times, in nanoseconds.
    packets: i128,
    /// Sums of these times, each multiplied by the size of the packet.
    bytes: i128,
}

impl Occupancy {
    /// Records an arrival.
    #[inline(always)]
    pub fn enter(&mut self, now: Time, size: u32) {
        self.packets -= i128::from(now.as_nanos());
        self.bytes -= byte_time(now, size);
    }

    /// Records a departure.
    #[inline(always)]
    pub fn leave(&mut self, now: Time, size: u32) {
        self.packets += i128::from(now.as_nanos());
        self.bytes += byte_time(now, size);
    }

    /// Records an arrival with a simultaneous departure.
    #[inline(always)]
    pub fn exchange(&mut self, now: Time, entering: u32, leaving: u32) {
        if entering != leaving {
            self.bytes += byte_time(now, leaving) - byte_time(now, entering);
        }
    }

    /// Records many departures.
    pub fn leave_all(&mut self, now: Time, gone: Backlog) {
        self.packets += i128::from(now.as_nanos()) * i128::from(gone.packets);
        self.bytes += i128::from(now.as_nanos()) * i128::from(gone.bytes);
    }

    /// Returns the integral from time zero to `now`, in packet-nanoseconds and byte-nanoseconds.
    pub fn integral(&self, now: Time, backlog: Backlog) -> [i128; 2] {
        let now = i128::from(now.as_nanos());
        let inside = [i128::from(backlog.packets), i128::from(backlog.bytes)];
        [inside[0] * now + self.packets, inside[1] * now + self.bytes]
    }
}

#[inline(always)]
fn byte_time(now: Time, size: u32) -> i128 {
    // One multiplication of 64 bits.
    (u128::from(now.as_nanos()) * u128::from(size)) as i128
}

/// Total of the times that packets spent in a stage, over the whole run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Waits {
    sum: u128,
    /// Upper bound of the total for packets with unknown times.
    unknown: u128,
}

impl Waits {
    /// Adds the time of a packet.
    pub fn add(&mut self, wait: Span) {
        self.sum += u128::from(wait.as_nanos());
    }

    /// Adds a sum of times in nanoseconds.
    pub fn add_sum(&mut self, sum: u128) {
        self.sum += sum;
    }

    /// Adds another total.
    pub fn add_all(&mut self, other: Waits) {
        self.sum += other.sum;
        self.unknown += other.unknown;
    }

    /// Adds packets that left at `now` after an unknown time.
    pub fn add_unknown(&mut self, packets: u64, now: Time) {
        self.unknown += u128::from(packets) * u128::from(now.as_nanos());
    }

    /// Checks Little's law: see the [module](self).
    ///
    /// # Panics
    /// Panics if the law does not hold: a bug.
    pub fn assert_equal(&self, integral: i128, link: &str, stage: &str) {
        let known = self.sum as i128;
        let range = known..=known + self.unknown as i128;
        assert!(
            range.contains(&integral),
            "{link}: Little's law does not hold in the {stage}: the backlog over time is {integral} \
             packet-nanoseconds, the times of the packets add up to {known}",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any arrivals and departures, the integral equals that of the backlog, step by step.
        #[test]
        fn the_integral_is_that_of_the_steps(
            steps in prop::collection::vec((0u64..1_000_000, 1u32..70_000, any::<bool>()), 0..200),
        ) {
            let (mut occupancy, mut waits) = (Occupancy::default(), Waits::default());
            let mut inside: Vec<(Time, u32)> = Vec::new();
            let (mut now, mut areas) = (Time::ZERO, [0i128; 2]);
            let backlog = |inside: &[(Time, u32)]| Backlog {
                packets: inside.len() as u64,
                bytes: inside.iter().map(|(_, size)| u64::from(*size)).sum(),
            };
            for (pause, size, enters) in steps {
                let Backlog { packets, bytes } = backlog(&inside);
                areas[0] += i128::from(packets * pause);
                areas[1] += i128::from(bytes * pause);
                now += Span::from_nanos(pause);
                if enters {
                    occupancy.enter(now, size);
                    inside.push((now, size));
                } else if !inside.is_empty() {
                    // From any position.
                    let (arrival, size) = inside.swap_remove(size as usize % inside.len());
                    occupancy.leave(now, size);
                    waits.add(now - arrival);
                }
                prop_assert_eq!(occupancy.integral(now, backlog(&inside)), areas);
            }
            inside.iter().for_each(|(arrival, _)| waits.add(now - *arrival));
            waits.assert_equal(areas[0], "link", "queue");
        }
    }
}
