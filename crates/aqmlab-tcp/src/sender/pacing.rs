//! Pacing: segments leave at a rate, not as fast as the window allows.
//!
//! # Sources
//! The rates of window-based controls and the first segments that are not
//! paced are those of Linux (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`,
//! and the quantum of its `fq` queue).
//!
//! # Differences
//! 1. Each segment is paced by itself; Linux sends some together.
//! 2. Time that was not used is not made up for.

use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::{Bytes, Deadline, Rate, Span, Time};

use super::RfcSender;
use crate::congestion::CongestionControl;
use crate::connection::ConnState;
use crate::params::TcpParams;

/// When the next segment may leave.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// True if the sender paces controls without a rate.
    always: bool,
    /// Percent of a window per round-trip time: in slow start, and later.
    slow_start: u64,
    avoidance: u64,
    /// Bytes that may still leave at once.
    quantum: u64,
    header: u64,
    /// When the next segment may leave.
    next: Time,
    /// What the division left: a fraction of a nanosecond, times the rate.
    remainder: u64,
    /// The sender waits for `next`.
    pub waiting: bool,
}

impl Pacer {
    pub fn new(params: &TcpParams) -> Self {
        Pacer {
            always: params.pacing,
            slow_start: params.pacing_slow_start,
            avoidance: params.pacing_avoidance,
            quantum: params.in_bytes(params.pacing_quantum),
            header: params.header.get(),
            next: Time::ZERO,
            remainder: 0,
            waiting: false,
        }
    }

    /// Changes the parameters. A segment that waits leaves at the new rate, if it is higher.
    pub fn change(&mut self, now: Time, params: &TcpParams, rate: Option<Rate>) {
        let Pacer { always, slow_start, avoidance, .. } = Pacer::new(params);
        (self.always, self.slow_start, self.avoidance) = (always, slow_start, avoidance);
        let bytes = Bytes::new(params.mss.get() + params.header.get());
        let soon = now + rate.map_or(Span::ZERO, |rate| rate.transmission_time(bytes));
        if rate.is_some() || !always {
            self.next = self.next.min(soon);
        }
    }

    /// A segment with this payload leaves at this rate.
    fn on_sent(&mut self, now: Time, len: u64, rate: Rate) {
        let bytes = len + self.header;
        if self.quantum > 0 {
            self.quantum = self.quantum.saturating_sub(len);
            return;
        }
        if self.next < now {
            self.next = now;
            self.remainder = 0;
        }
        let rate = rate.as_bps().max(1);
        let scaled = u128::from(bytes * 8) * u128::from(NANOS_PER_SEC) + u128::from(self.remainder);
        self.remainder = (scaled % u128::from(rate)) as u64;
        let nanos = u64::try_from(scaled / u128::from(rate)).unwrap_or(u64::MAX);
        // An hour is as good as never, and does not overflow.
        self.next += Span::from_nanos(nanos).min(Span::from_secs(3600));
    }

    /// When the sender has to be asked again.
    pub fn deadline(&self) -> Deadline {
        if self.waiting { Deadline::at(self.next) } else { Deadline::NEVER }
    }
}

impl RfcSender {
    /// The rate at which segments leave, if they are paced.
    #[inline]
    pub fn pacing_rate(&self) -> Option<Rate> {
        match self.control.pacing_rate() {
            None if self.pacer.always => self.window_rate(),
            rate => rate,
        }
    }

    /// So many percent of the window in a round-trip time.
    fn window_rate(&self) -> Option<Rate> {
        let srtt = self.rtt.smoothed()?.max(Span::from_nanos(1));
        let window = self.cwnd();
        let slow_start = window < self.control.ssthresh() / 2;
        let percent = if slow_start { self.pacer.slow_start } else { self.pacer.avoidance };
        let bits = u128::from(window) * 8 * u128::from(percent) * u128::from(NANOS_PER_SEC) / 100;
        let rate = bits / u128::from(srtt.as_nanos());
        Some(Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX)))
    }

    /// True if pacing delays the next segment.
    #[inline]
    pub(super) fn pacing_holds(&mut self, now: Time) -> bool {
        if self.pacer.next <= now {
            self.pacer.waiting = false;
            return false;
        }
        self.pacer.waiting = self.has_segment();
        true
    }

    #[inline]
    pub(super) fn pace(&mut self, now: Time, len: u64) {
        if let Some(rate) = self.pacing_rate() {
            self.pacer.on_sent(now, len, rate);
        }
    }

    /// Whether the windows would let a segment leave.
    fn has_segment(&mut self) -> bool {
        debug_assert_eq!(self.conn.state, ConnState::Established);
        if self.tlp.due || !self.phase.is_open() {
            return true; // maybe: asked for in vain at most once
        }
        let len = self.next_len();
        let fits = len <= self.room();
        self.window_limited |= len > 0 && !fits;
        len > 0 && fits
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Limit;

    use super::*;

    fn pacer() -> Pacer {
        let pacing_quantum = Limit::Bytes(Bytes::new(1000));
        Pacer::new(&TcpParams { pacing_quantum, ..TcpParams::rfc() })
    }

    /// 1040 bytes at 3 bit/s less than 1 Gbit/s: over many segments the time
    /// is that of all their bits.
    #[test]
    fn the_rate_is_exact_over_any_time() {
        let mut pacer = pacer();
        let rate = Rate::from_bps(999_999_997);
        let start = Time::from_nanos(5);
        pacer.on_sent(start, 1000, rate);
        assert_eq!(pacer.next, Time::ZERO, "the quantum leaves at once");
        pacer.on_sent(start, 1000, rate);
        let mut now = pacer.next;
        for _ in 1..100_000 {
            pacer.on_sent(now, 1000, rate);
            now = pacer.next;
        }
        let nanos = 100_000u128 * 1040 * 8 * 1_000_000_000 / 999_999_997;
        assert_eq!(u128::from((now - start).as_nanos()), nanos);
    }

    #[test]
    fn time_that_was_not_used_is_lost() {
        let mut pacer = pacer();
        let rate = Rate::from_bps(8 * 1040 * 1000); // one segment a millisecond
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        pacer.on_sent(at(0), 1000, rate);
        pacer.on_sent(at(0), 1000, rate);
        assert_eq!(pacer.next, at(1));
        pacer.on_sent(at(50), 1000, rate);
        assert_eq!(pacer.next, at(51));
    }
}
