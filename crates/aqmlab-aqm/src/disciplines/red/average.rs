//! The moving average of the queue length (Floyd and Jacobson 1993,
//! section 4).

use aqmlab_core::Time;

use super::automatic::Settings;
use super::seconds;
use crate::discipline::Backlog;

pub(super) struct Average {
    pub value: f64,
    weight: f64,
    in_bytes: bool,
    /// Mean packets that the link sends in a second.
    packets_per_second: f64,
    /// Since when the link is idle.
    pub idle_since: Option<Time>,
}

impl Average {
    pub fn new(settings: &Settings) -> Self {
        Average {
            value: 0.0,
            weight: settings.weight,
            in_bytes: settings.in_bytes,
            packets_per_second: settings.packets_per_second,
            idle_since: Some(Time::ZERO),
        }
    }

    /// The queue length in the average's unit.
    pub fn length(&self, backlog: Backlog) -> u64 {
        if self.in_bytes { backlog.bytes } else { backlog.packets }
    }

    pub fn update(&mut self, now: Time, backlog: Backlog) {
        if let Some(since) = self.idle_since.take() {
            // As if that many small packets had found an empty queue.
            let idle = seconds(now) - seconds(since);
            let passed = (self.packets_per_second * idle) as u64;
            for _ in 0..passed {
                self.value *= 1.0 - self.weight;
                if self.value == 0.0 {
                    break;
                }
            }
        }
        self.value *= 1.0 - self.weight;
        self.value += self.weight * self.length(backlog) as f64;
    }
}
