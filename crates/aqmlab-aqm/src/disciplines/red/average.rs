//! The moving average of the queue length (Floyd and Jacobson 1993,
//! section 4).

use aqmlab_core::Time;

use super::automatic::RedSettings;
use super::seconds;
use crate::discipline::Backlog;

/// Packets of an idle time that the average forgets step by step, as ns-2 does; those beyond are
/// one power: a fast link sends more in an idle second than anybody can wait for.
const ONE_BY_ONE: u64 = 100_000;

#[derive(Clone)]
pub(super) struct Average {
    pub value: f64,
    settings: RedSettings,
    /// Since when the link is idle.
    pub idle_since: Option<Time>,
}

impl Average {
    pub fn new(settings: &RedSettings) -> Self {
        Average { value: 0.0, settings: settings.clone(), idle_since: Some(Time::ZERO) }
    }

    /// Writes other parameters. An average in another unit is converted by the mean packet.
    pub fn change(&mut self, new: Average) {
        let mean_packet = new.settings.mean_packet;
        match (self.settings.in_bytes, new.settings.in_bytes) {
            (false, true) => self.value *= mean_packet,
            (true, false) => self.value /= mean_packet,
            _ => (),
        }
        self.settings = new.settings;
    }

    /// The queue length in the average's unit.
    pub fn length(&self, backlog: Backlog) -> u64 {
        if self.settings.in_bytes { backlog.bytes } else { backlog.packets }
    }

    pub fn update(&mut self, now: Time, backlog: Backlog) {
        let RedSettings { weight, packets_per_second, .. } = self.settings;
        if let Some(since) = self.idle_since.take() {
            // As if that many small packets had found an empty queue.
            let idle = seconds(now) - seconds(since);
            let passed = (packets_per_second * idle) as u64;
            for _ in 0..passed.min(ONE_BY_ONE) {
                self.value *= 1.0 - weight;
                if self.value == 0.0 {
                    break;
                }
            }
            let left = passed.saturating_sub(ONE_BY_ONE);
            if left > 0 && self.value > 0.0 {
                self.value *= libm::pow(1.0 - weight, left as f64);
            }
        }
        self.value *= 1.0 - weight;
        self.value += weight * self.length(backlog) as f64;
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Auto, Span};

    use super::super::RedParams;
    use super::*;
    use crate::testing::env;

    /// A second of a hundred gigabit per second in packets of a byte; a thousand of them.
    #[test]
    fn a_long_idle_time_of_a_fast_link_is_over_at_once() {
        let second = Time::ZERO + Span::from_secs(1);
        for (weight, packets_per_second, expected) in
            [(1e-9, 12.5e9, libm::exp(-12.5)), (1e-17, 1e15, 1.0), (0.002, 1e15, 0.0)]
        {
            let params = RedParams { weight: Auto::Set(weight), ..RedParams::default() };
            let mut average = Average::new(&RedSettings::new(&params, &env()));
            average.value = 40.0;
            average.settings.packets_per_second = packets_per_second;
            average.update(second, Backlog::default());
            let value = average.value / 40.0;
            assert!((value - expected).abs() <= expected * 1e-5, "{weight}: {value}");
        }
    }
}
