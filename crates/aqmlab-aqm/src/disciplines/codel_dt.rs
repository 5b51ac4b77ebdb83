//! CoDel-DT: CoDel that drops at the tail.
//!
//! # Model
//! The delay of a packet is predicted when it arrives, and CoDel's control law decides immediately:
//! it drops the arriving packet. That is easier to build into a modem whose queue is drained by
//! hardware. The prediction is the backlog over a departure rate, which is measured or follows from
//! the modem's rate shaper.
//!
//! # Sources
//! - CableLabs' patch for ns-2 (White, Padden, Hayakawa and Nichols, 2012 to
//!   2013), files `codeldt.cc` and `docsislink.cc`, read in public copies of it.
//! - Monga and Kumar (2016), section II.D, and the studies that they quote, only
//!   say that the decision moves to the enqueue. White, "Active queue
//!   management in DOCSIS 3.x cable modems" and its sequels were not at hand.
//!
//! # Differences
//! 1. The first measurement of the rate begins with the first queue that is
//!    long enough; there at the start of the run, idle time included.
//! 2. With `delay = shaper` the prediction counts from the start; there it is
//!    zero until a rate was measured too. Tokens that the modem has for the
//!    next transmissions are not counted: there are no request and grant here.
//! 3. The source takes 6 ms off the target for what request and grant add (as
//!    we read it: there is no comment). Here `access_delay` does, 0 by default.
//! 4. The default of `dq_threshold` is RFC 8033's, because the file with the patch's default was
//!    not at hand.
//! 5. Times are whole nanoseconds.

use alloc::{format, vec::Vec};

use aqmlab_core::{Bytes, Component, Limit, Packet, Rate, Span, Time, choices, params};

use crate::discipline::{Context, LinkEnv, Note, OneMachine, Reason};
use crate::disciplines::codel::{self, CodelParams, CodelSettings, CodelState};
use crate::docsis::TokenBucket;
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

choices! {
    /// Where the delay of an arriving packet is predicted from.
    pub enum Prediction {
        /// The backlog and a measured departure rate.
        Rate = "rate",
        /// The backlog and the modem's token bucket.
        TokenBucket = "shaper",
    }
}

params! {
    /// Parameters of CoDel-DT.
    pub struct CodelDtParams {
        /// The delay that a queue may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "CableLabs' ns-2 patch, simple-codeldt.tcl";
        /// Time for which the delay may exceed the target; about the largest common
        /// round-trip time.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "CableLabs' ns-2 patch, simple-codeldt.tcl";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-codel(8)";
        /// Source of the predicted delay.
        delay: Prediction = Prediction::Rate, source "CableLabs' ns-2 patch, codeldt.cc";
        /// Backlog needed to start a departure rate sample, and the amount that must leave
        /// to complete it.
        dq_threshold: Bytes = Bytes::new(16_384), in Bytes::new(1) => Bytes::new(1_000_000_000),
            source "CableLabs' ns-2 patch, codeldt.cc; the value: RFC 8033, section 5.2";
        /// Part of the target reserved for the wait for the medium.
        access_delay: Span = Span::ZERO, in Span::ZERO => Span::from_secs(100),
            source "CableLabs' ns-2 patch, codeldt.cc: 6 ms";
        /// Maximum Sustained Traffic Rate of the shaper; `none` for the rate of the link.
        sustained_rate: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(1_000_000_000_000_000)),
            source "CableLabs' ns-2 patch, docsislink.cc";
        /// Peak Traffic Rate of the shaper; `none` for the sustained rate.
        peak_rate: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(1_000_000_000_000_000)),
            source "CableLabs' ns-2 patch, docsislink.cc";
        /// Maximum Traffic Burst of the shaper: bytes that may be sent at the peak rate.
        traffic_burst: Bytes = Bytes::new(3044), in Bytes::new(0) => Bytes::new(1_000_000_000),
            source "RFC 8034, section 3; CableLabs' ns-3 model";
    }
}

impl Component for CodelDtParams {
    const NAME: &'static str = "codel_dt";
    const SUMMARY: &'static str = "CoDel at the tail: drops arrivals by their predicted delay";
}

impl OneMachine for CodelDtParams {
    type Machine = OneQueue<CodelDt>;
}

impl CodelDtParams {
    /// The recall, the first wait and the learned largest packet are those of ns-2's CoDel of
    /// 2013.
    fn law(&self, env: &LinkEnv) -> CodelSettings {
        let codel = CodelParams {
            target: self.target.saturating_sub(self.access_delay),
            interval: self.interval,
            variant: codel::CodelForm::Ns2Of2013,
            ..CodelParams::default()
        };
        CodelSettings::new(&codel, env)
    }
}

/// The departure rate, as the patch measures it.
#[derive(Clone, Debug)]
struct RateMeter {
    threshold: u64,
    /// When the running measurement began, and what has left since.
    running: Option<(Time, u64)>,
    /// Bytes per second.
    rate: Option<f64>,
}

impl RateMeter {
    /// A packet leaves and `backlog` bytes stay.
    #[inline]
    fn departed(&mut self, now: Time, size: u32, backlog: u64) {
        if backlog >= self.threshold && self.running.is_none() {
            self.running = Some((now, 0));
        }
        let Some((start, bytes)) = &mut self.running else { return };
        *bytes += u64::from(size);
        let elapsed = now - *start;
        if *bytes < self.threshold || elapsed == Span::ZERO {
            return;
        }
        let sample = *bytes as f64 / elapsed.as_secs_f64();
        self.rate = Some(self.rate.map_or(sample, |rate| 0.5 * rate + 0.5 * sample));
        self.running = (backlog > self.threshold).then_some((now, 0));
    }
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct CodelDt {
    params: CodelDtParams,
    law: CodelSettings,
    state: CodelState,
    meter: RateMeter,
    shaper: TokenBucket,
    /// The largest packet seen: a queue of at most this size is never too long.
    largest: u64,
    predicted: Span,
    longest: Span,
    link_rate: Rate,
}

impl CodelDt {
    /// Predicts the time to send `bytes`.
    fn predict(&mut self, now: Time, bytes: u64) -> Span {
        let seconds = match self.params.delay {
            Prediction::Rate => self.meter.rate.map_or(0.0, |rate| bytes as f64 / rate),
            Prediction::TokenBucket => self.shaper.expected_delay(now, bytes),
        };
        Span::from_secs_f64(seconds)
    }
}

impl Aqm for CodelDt {
    type Params = CodelDtParams;

    fn new(params: &CodelDtParams, env: &LinkEnv) -> OneQueue<Self> {
        let CodelDtParams { sustained_rate, peak_rate, traffic_burst, .. } = *params;
        let law = params.law(env);
        let codel = CodelDt {
            state: CodelState::default(),
            meter: RateMeter { threshold: params.dq_threshold.get(), running: None, rate: None },
            shaper: TokenBucket::new(sustained_rate, peak_rate, traffic_burst, env),
            largest: law.smallest_backlog,
            law,
            predicted: Span::ZERO,
            longest: Span::ZERO,
            link_rate: env.rate,
            params: params.clone(),
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), codel)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        (self.law, self.params, self.link_rate) = (new.law, new.params, new.link_rate);
        self.meter.threshold = new.meter.threshold;
        self.shaper.change(&new.shaper);
    }

    fn admit(&mut self, fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let (bytes, size) = (fifo.backlog().bytes, u64::from(packet.size()));
        self.largest = self.largest.max(size);
        self.predicted = self.predict(cx.now, bytes + size);
        let is_small = bytes <= self.largest;
        if self.state.drops_arrival(&self.law, cx.now, self.predicted, is_small) {
            cx.drop(packet, Reason::Codel);
            return None;
        }
        Some(packet)
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop()?;
        self.longest = self.longest.max(cx.now - packet.arrival());
        let backlog = fifo.backlog().bytes;
        match self.params.delay {
            Prediction::Rate => self.meter.departed(cx.now, packet.size(), backlog),
            Prediction::TokenBucket => self.shaper.departed(cx.now, packet.size(), backlog),
        }
        Some(packet)
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        self.state.observe(see);
        see("delay_estimate", self.predicted.as_secs_f64());
        if self.params.delay == Prediction::Rate {
            see("departure_rate", self.meter.rate.unwrap_or(0.0));
        }
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = match self.params.delay {
            Prediction::TokenBucket => self.shaper.notes(),
            Prediction::Rate => Vec::new(),
        };
        let target = self.params.target.saturating_sub(self.params.access_delay);
        if self.longest <= self.params.target {
            return notes;
        }
        notes.extend(codel::target_below_packet(target, self.largest, self.link_rate));
        if self.params.delay == Prediction::TokenBucket || self.meter.rate.is_some() {
            return notes;
        }
        notes.push(Note {
            id: "codel-dt-no-rate-sample",
            text: format!(
                "CoDel-DT never measured a departure rate: a measurement needs {} to be queued, \
                 and on a link of {} that never happened. Without a rate it predicts no delay, \
                 so it worked as a drop-tail queue. Lower `dq_threshold`, or set \
                 `delay = shaper`.",
                self.params.dq_threshold, self.link_rate
            ),
        });
        notes
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Ecn;

    use super::*;
    use crate::testing::{TestPacket, env, queue_on, slow};

    fn shaped() -> CodelDtParams {
        CodelDtParams {
            delay: Prediction::TokenBucket,
            traffic_burst: Bytes::new(0),
            ..Default::default()
        }
    }

    /// Arrivals every millisecond at a queue from which nothing leaves: the
    /// times, in ms, at which one is dropped.
    fn drops(params: &CodelDtParams, millis: std::ops::Range<u64>) -> Vec<u64> {
        let mut queue = queue_on(&slow(), params);
        let mut drops = Vec::new();
        for ms in millis {
            queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO + Span::from_millis(ms));
            queue.take_dropped(|_, reason| {
                assert_eq!(reason, Reason::Codel);
                drops.push(ms);
            });
        }
        drops
    }

    #[test]
    fn arrivals_are_dropped_by_the_control_law() {
        // The third packet, at 2 ms, is the first behind more than one: 18 ms
        // are predicted. An interval later one is dropped, then after
        // 100 / sqrt n ms each, from when the last was due: at 202, 272.7,
        // 330.4, 380.4, 425.2 and 466.0 ms.
        assert_eq!(drops(&shaped(), 0..500), [102, 202, 273, 331, 381, 426, 466]);
        // A target of 1 s is reached by 167 packets, at 166 ms.
        let late = CodelDtParams { target: Span::from_secs(1), ..shaped() };
        assert_eq!(drops(&late, 0..300), [266]);
    }

    #[test]
    fn two_packets_are_never_too_many() {
        // At 2 Mbit/s one of 1500 bytes takes 6 ms, more than the target.
        let mut queue = queue_on(&slow(), &shaped());
        for i in 0..200 {
            let now = Time::ZERO + Span::from_millis(6) * i;
            queue.enqueue(Packet::of_ecn(Ecn::NotEct), now);
            if i > 1 {
                queue.dequeue(now);
            }
        }
        assert_eq!(queue.counts().dropped_total(), 0);
    }

    #[test]
    fn the_meter_averages_samples_by_half() {
        let mut meter = RateMeter { threshold: 4500, running: None, rate: None };
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        // Nothing is measured from a short queue.
        meter.departed(at(0), 1500, 3000);
        assert!(meter.running.is_none());
        // The packet that starts a measurement counts: 4500 bytes in 12 ms.
        for (ms, backlog) in [(6, 9000), (12, 7500), (18, 6000)] {
            meter.departed(at(ms), 1500, backlog);
        }
        assert_eq!(meter.rate, Some(375_000.0));
        // The next goes on where it ended: 4500 bytes in 18 ms. A backlog of
        // the threshold itself does not start another.
        for (ms, backlog) in [(24, 6000), (30, 6000), (36, 4500)] {
            meter.departed(at(ms), 1500, backlog);
        }
        assert_eq!(meter.rate, Some(0.5 * 375_000.0 + 0.5 * 250_000.0));
        assert!(meter.running.is_none());
    }

    #[test]
    fn the_predicted_delay_is_the_backlog_with_the_packet_over_the_rate() {
        let mut codel = CodelDt::new(&CodelDtParams::default(), &slow()).aqm;
        assert_eq!(codel.predict(Time::ZERO, 50_000), Span::ZERO, "no rate yet");
        codel.meter.rate = Some(250_000.0);
        assert_eq!(codel.predict(Time::ZERO, 3_000), Span::from_millis(12));
        // The shaper has 3044 bytes to send at its peak rate.
        let params = CodelDtParams {
            delay: Prediction::TokenBucket,
            peak_rate: Some(Rate::from_bps(20_000_000)),
            ..Default::default()
        };
        let mut codel = CodelDt::new(&params, &slow()).aqm;
        let expected = 3044.0 / 2_500_000.0 + 1956.0 / 250_000.0;
        assert_eq!(codel.predict(Time::ZERO, 5_000), Span::from_secs_f64(expected));
    }

    #[test]
    fn what_the_medium_adds_comes_off_the_target() {
        // 5 ms is more than one packet of 1500 bytes takes at 3 Mbit/s, 4 ms;
        // a queue of three takes 12 ms: above 20 - 10 ms, below 20 ms.
        let env = LinkEnv { rate: Rate::from_bps(3_000_000), ..env() };
        for (access_delay, dropped) in [(Span::ZERO, false), (Span::from_millis(10), true)] {
            let params = CodelDtParams { target: Span::from_millis(20), access_delay, ..shaped() };
            let mut queue = queue_on(&env, &params);
            for i in 0..100 {
                let now = Time::ZERO + Span::from_millis(4) * i;
                queue.enqueue(Packet::of_ecn(Ecn::NotEct), now);
                if queue.backlog().packets > 2 {
                    queue.dequeue(now);
                }
            }
            queue.take_dropped(|_, _| ());
            assert_eq!(queue.counts().dropped_total() > 0, dropped);
        }
    }
}
