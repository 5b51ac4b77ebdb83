//! Arrivals in bursts, as over media with slotted access.

use aqmlab_core::{Bytes, Error, Result, Span, Stream, Time, params};

params! {
    /// Slots in which packets arrive; packets between slots wait for the next.
    pub struct SlotParams {
        /// Minimum time until a slot.
        min: Span = Span::from_millis(1), in Span::ZERO => Span::from_secs(3600),
            source "tc-netem(8), slot MIN_DELAY";
        /// Maximum time until a slot; `none`: equal to `min`.
        max: Option<Span> = None, in Some(Span::ZERO) => Some(Span::from_secs(3600)),
            source "tc-netem(8), slot MAX_DELAY";
        /// Packets per slot; `none`: no limit.
        packets: Option<u64> = None, in Some(1) => Some(1_000_000_000),
            source "tc-netem(8), slot packets";
        /// Bytes after which a slot ends; `none`: no limit.
        bytes: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 40)),
            source "tc-netem(8), slot bytes";
    }
}

impl SlotParams {
    fn longest(&self) -> Span {
        self.max.unwrap_or(self.min)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.longest() < self.min {
            let allowed = format!("from `min`, {}, to {}", self.min, Span::from_secs(3600));
            return Err(Error::not_allowed(self.longest(), allowed).at("max"));
        }
        if self.longest() == Span::ZERO {
            return Err(Error::not_allowed(self.min, "more than 0: time has to pass").at("min"));
        }
        Ok(())
    }
}

/// State of slots.
#[derive(Clone)]
pub(crate) struct SlotState {
    params: SlotParams,
    /// Time of the slot.
    next: Time,
    /// Remaining capacity of the slot.
    packets: u64,
    bytes: u64,
}

impl SlotState {
    pub fn new(params: SlotParams) -> Self {
        let mut state = SlotState { params, next: Time::ZERO, packets: 0, bytes: 0 };
        state.refill();
        state
    }

    /// Returns the arrival time of a packet that would arrive at `time`. Times must not decrease.
    pub fn arrival(&mut self, time: Time, size: u32, stream: &mut Stream) -> Time {
        if self.next < time {
            self.begin(time, stream);
        }
        let arrival = self.next;
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(size));
        if self.packets == 0 || self.bytes == 0 {
            self.begin(arrival, stream);
        }
        arrival
    }

    /// Starts the next slot after `time`.
    fn begin(&mut self, time: Time, stream: &mut Stream) {
        self.next = time + stream.uniform_span(self.params.min, self.params.longest());
        self.refill();
    }

    fn refill(&mut self) {
        self.packets = self.params.packets.unwrap_or(u64::MAX);
        self.bytes = self.params.bytes.map_or(u64::MAX, Bytes::get);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Params;

    use super::*;

    fn state(text: &str) -> SlotState {
        let value = crate::scenario::parse_value(text);
        let params = SlotParams::from_table(value.as_table().unwrap()).unwrap();
        params.check().unwrap();
        SlotState::new(params)
    }

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// Computed manually: slots of 10 ms begin when a packet arrives after the last.
    #[test]
    fn packets_wait_for_their_slot() {
        let mut stream = Stream::from_state(1);
        let mut slots = state("{ min = '10ms', packets = 2 }");
        let mut arrivals = |times: &[u64]| -> Vec<Time> {
            times.iter().map(|time| slots.arrival(at(time * 1000), 100, &mut stream)).collect()
        };
        // At 1 ms no slot is open: one at 11 ms takes two packets, the third waits for the next.
        let waited = arrivals(&[1, 5, 6, 21, 22]);
        assert_eq!(waited, [11, 11, 21, 21, 31].map(|ms| at(ms * 1000)));
        assert_eq!(arrivals(&[100]), [at(110_000)]);
    }

    #[test]
    fn a_slot_is_over_after_so_many_bytes() {
        let mut stream = Stream::from_state(1);
        let mut slots = state("{ min = '10ms', bytes = '250b' }");
        let arrivals = [0, 0, 0, 0].map(|_| slots.arrival(at(1), 100, &mut stream));
        // 300 bytes: a packet that starts within the limit belongs to the slot, as in netem.
        assert_eq!(arrivals, [10_001, 10_001, 10_001, 20_001].map(at));
    }

    /// Sparse packets wait (min + max) / 2; dense ones leave at `packets` per slot.
    #[test]
    fn slots_have_their_laws() {
        let mut stream = Stream::from_state(3);
        let mut slots = state("{ min = '2ms', max = '10ms' }");
        let waits = (1..20_000u64).map(|n| {
            let time = at(n * 20_000);
            (slots.arrival(time, 100, &mut stream) - time).as_secs_f64()
        });
        let mean = waits.sum::<f64>() / 19_999.0;
        assert!((mean - 0.006).abs() < 0.0001, "{mean}");

        let mut slots = state("{ min = '2ms', max = '10ms', packets = 5 }");
        let last = (0..50_000).map(|_| slots.arrival(at(1), 100, &mut stream)).last().unwrap();
        let rate = 50_000.0 / (last - Time::ZERO).as_secs_f64();
        assert!((rate - 5.0 / 0.006).abs() < 8.0, "{rate}");
    }
}
