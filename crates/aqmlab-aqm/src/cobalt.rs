//! COBALT: CoDel and BLUE in one, as it runs in each flow of
//! [`cake`](crate::disciplines::cake) and [`fq_cobalt`](crate::disciplines::fq_cobalt), and in the
//! one queue of [`cobalt`](crate::disciplines::cobalt).
//!
//! # Model
//! CoDel's control law drops or marks while the delay of the packets that
//! leave is above the target, and its count decays by the same law when it is
//! not. BLUE adds a probability that rises when the buffer overflows and falls
//! when the queue runs empty, against flows that do not answer.
//!
//! # Sources
//! Linux's qdisc as recorded in the conformance vectors and their rules.

use aqmlab_core::{Packet, Span, Stream, Time, choices};

use crate::discipline::{Context, Reason};

choices! {
    /// Time for which the delay of a new flow may be above the target at first.
    pub enum InitialGrace {
        /// Not at all: the next packet is dropped at once, as Linux does.
        Linux = "linux",
        /// An interval, as the rest of the algorithm means it.
        LinuxInitfix = "linux-initfix",
    }
}

/// A time before any other, on the clock of [`clock`].
const LONG_AGO: i64 = -1_000_000_000_000;
/// BLUE's steps in Linux: 1/256 and 1/4096.
pub(crate) const UP: f64 = 1.0 / 256.0;
pub(crate) const DOWN: f64 = 1.0 / 4096.0;
/// Probability 1 in units of 2^-32.
const ONE: f64 = 4_294_967_296.0;
/// Counts below this have their inverse square root in a table.
const IN_TABLE: usize = 16;

fn clock(time: Time) -> i64 {
    time.as_nanos() as i64
}

/// A Newton step from `inverse` towards 1/sqrt(count), in units of 2^-32.
const fn newton_step(inverse: u32, count: u32) -> u32 {
    let inverse = inverse as u64;
    let square = (inverse * inverse) >> 32;
    let value = (3u64 << 32).wrapping_sub((count as u64).wrapping_mul(square)) >> 2;
    (value.wrapping_mul(inverse) >> 31) as u32
}

/// 1/sqrt(count) for small counts: four Newton steps each, from the last.
const TABLE: [u32; IN_TABLE] = {
    let mut table = [u32::MAX; IN_TABLE];
    let mut count = 1;
    while count < IN_TABLE {
        let mut inverse = table[count - 1];
        let mut step = 0;
        while step < 4 {
            inverse = newton_step(inverse, count as u32);
            step += 1;
        }
        table[count] = inverse;
        count += 1;
    }
    table
};

/// Constants of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub target: Span,
    pub interval: Span,
    /// Whether the first wait of a flow is nothing instead of an interval.
    hasty: bool,
    /// BLUE's steps in units of 2^-32.
    up: u32,
    down: u32,
}

impl Law {
    pub fn new(target: Span, interval: Span, variant: InitialGrace) -> Self {
        let hasty = variant == InitialGrace::Linux;
        Law { target, interval, hasty, up: 0, down: 0 }.with_blue(UP, DOWN)
    }

    /// Other steps of BLUE's probability.
    pub fn with_blue(self, up: f64, down: f64) -> Self {
        // `as` saturates: a step of 1 is the largest there is.
        Law { up: (up * ONE) as u32, down: (down * ONE) as u32, ..self }
    }
}

/// Decision on a packet. CoDel's part may mark a packet that BLUE drops: where the queue may not
/// drop it, the mark remains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Verdict {
    mark: bool,
    drop: Option<Reason>,
}

/// The state of one queue, over any storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CobaltState {
    count: u32,
    dropping: bool,
    /// When the next drop is due, or until when the state is of use.
    drop_next: i64,
    /// 1/sqrt(count) in units of 2^-32.
    inverse_sqrt: u32,
    /// BLUE's probability in units of 2^-32, and when it changed last.
    probability: u32,
    blue_timer: i64,
}

impl CobaltState {
    pub fn new(law: &Law) -> Self {
        CobaltState {
            count: 0,
            dropping: false,
            drop_next: LONG_AGO,
            inverse_sqrt: if law.hasty { 0 } else { u32::MAX },
            probability: 0,
            blue_timer: LONG_AGO,
        }
    }

    /// Linux, cobalt_control and reciprocal_scale: an interval of more than 4.29 s loses its higher
    /// bits.
    fn control_law(&self, law: &Law, time: i64) -> i64 {
        let interval = law.interval.as_nanos() as u32;
        let wait = (u64::from(interval) * u64::from(self.inverse_sqrt)) >> 32;
        time + wait as i64
    }

    /// The count has changed: the next drop is due so much later.
    fn schedule_next(&mut self, law: &Law) {
        self.inverse_sqrt = match TABLE.get(self.count as usize) {
            Some(inverse) => *inverse,
            None => newton_step(self.inverse_sqrt, self.count),
        };
        self.drop_next = self.control_law(law, self.drop_next);
    }

    /// A packet leaves now, marked or not, unless it is dropped: then it comes
    /// back with the reason. The last packet of a queue is not dropped. No
    /// delay up to `harmless` is too long.
    pub fn release(
        &mut self,
        law: &Law,
        harmless: Span,
        mut packet: Packet,
        is_last: bool,
        may_mark: bool,
        cx: &mut Context<'_>,
    ) -> Result<Packet, (Packet, Reason)> {
        let sojourn = cx.now - packet.arrival();
        let is_late = sojourn > law.target && sojourn > harmless;
        let may_mark = may_mark && packet.ecn().is_capable();
        let verdict = self.judge(law, cx.now, is_late, may_mark, cx.random);
        if verdict.mark {
            cx.mark(&mut packet, Reason::Cobalt);
        }
        match verdict.drop.filter(|_| !is_last) {
            Some(reason) => Err((packet, reason)),
            None => Ok(packet),
        }
    }

    /// Decides on a departing packet.
    fn judge(
        &mut self,
        law: &Law,
        now: Time,
        is_late: bool,
        may_mark: bool,
        random: &mut Stream,
    ) -> Verdict {
        let now = clock(now);
        let mut due = self.count > 0 && now >= self.drop_next;
        let mut is_past = now > self.drop_next;
        let mut verdict = Verdict::default();
        if is_late && !self.dropping {
            self.drop_next = self.control_law(law, now);
        }
        self.dropping = is_late;
        if is_late && self.count == 0 {
            self.count = 1;
        }
        if due && self.dropping {
            verdict.mark = may_mark;
            verdict.drop = (!may_mark).then_some(Reason::Cobalt);
            self.count = self.count.saturating_add(1);
            self.schedule_next(law);
            is_past = now > self.drop_next;
        } else {
            while due {
                self.count -= 1;
                self.schedule_next(law);
                is_past = now > self.drop_next;
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        if self.probability > 0 && random.next_u32() < self.probability {
            verdict.drop = verdict.drop.or(Some(Reason::Blue));
        }
        if self.count == 0 {
            self.drop_next = now + law.interval.as_nanos() as i64;
        } else if is_past && verdict.drop.is_none() {
            self.drop_next = now;
        }
        verdict
    }

    /// The buffer overflowed and the queue lost a packet.
    pub fn overflowed(&mut self, law: &Law, now: Time) {
        let now = clock(now);
        if self.may_turn_blue(law, now) {
            self.probability = self.probability.saturating_add(law.up);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty.
    pub fn ran_empty(&mut self, law: &Law, now: Time) {
        let now = clock(now);
        if self.probability > 0 && self.may_turn_blue(law, now) {
            self.probability = self.probability.saturating_sub(law.down);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.schedule_next(law);
        }
    }

    /// BLUE's probability changes at most once in a target.
    fn may_turn_blue(&self, law: &Law, now: i64) -> bool {
        now - self.blue_timer > law.target.as_nanos() as i64
    }

    /// True if the state has decayed to that of a new flow.
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.probability == 0 && self.count == 0 && clock(now) >= self.drop_next
    }

    /// CoDel's count.
    pub fn count(&self) -> f64 {
        self.count.into()
    }

    /// True if CoDel's part drops.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// BLUE's probability.
    pub fn probability(&self) -> f64 {
        f64::from(self.probability) / ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux, reciprocal_scale: 5 s less 2^32 ns.
    #[test]
    fn an_interval_of_more_than_32_bits_is_truncated() {
        let law = Law::new(Span::from_millis(5), Span::from_secs(5), InitialGrace::LinuxInitfix);
        assert_eq!(CobaltState::new(&law).control_law(&law, 7), 7 + 5_000_000_000 - (1 << 32) - 1);
    }

    #[test]
    fn a_packet_that_blue_drops_may_carry_a_mark() {
        let law = Law::new(Span::from_millis(5), Span::from_millis(100), InitialGrace::Linux);
        let overflow = Time::ZERO + Span::from_millis(10);
        let late = overflow + Span::from_millis(1);
        let judge = |seed| {
            let mut state = CobaltState::new(&law);
            state.overflowed(&law, overflow);
            state.judge(&law, late, true, true, &mut Stream::from_state(seed))
        };
        // BLUE drops one packet of 256.
        let dropped: Vec<_> =
            (0..10_000).map(judge).filter(|verdict| verdict.drop.is_some()).collect();
        assert!((20..60).contains(&dropped.len()), "{}", dropped.len());
        let both = Verdict { mark: true, drop: Some(Reason::Blue) };
        assert!(dropped.iter().all(|verdict| *verdict == both), "{dropped:?}");
    }
}
