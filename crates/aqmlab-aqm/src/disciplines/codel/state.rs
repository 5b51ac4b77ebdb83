//! The state machine of CoDel, over any storage.

use aqmlab_core::{Packet, Span, Time, math};

use super::form::{Clock, DropCounting, Recall, Root, Variant};
use super::{CodelParams, DsSelector, linux};
use crate::discipline::{Context, LinkEnv, Reason};

/// What the algorithm needs to know of the parameters, computed once; times
/// are those of [`Settings::clock`].
#[derive(Clone, Debug)]
pub(crate) struct CodelSettings {
    target: f64,
    interval: f64,
    form: Variant,
    ecn: bool,
    ce_threshold: Option<f64>,
    /// The packets that the threshold is for; all without one.
    ce_selector: Option<DsSelector>,
    /// A delay less than this is below every threshold, however the clock
    /// rounds: most packets need no more than this comparison. Nothing for
    /// variants that look at every packet.
    surely_short: Span,
    /// A queue that holds no more than this is never too long.
    pub smallest_backlog: u64,
    /// The queue is one of many, as ns-2's sfqCoDel has them.
    bucket: bool,
    /// One of many queues is compared with it by itself, and not all together.
    alone: bool,
}

impl CodelSettings {
    pub fn new(params: &CodelParams, env: &LinkEnv) -> Self {
        // Linux's clock runs in units of 1024 ns: so do its parameters.
        let form = params.variant.form();
        let on_clock = |span: Span| match form.clock {
            Clock::Units => (span.as_nanos() >> 10) as f64,
            Clock::Seconds => span.as_nanos() as f64 / 1e9,
        };
        let lowest = params.ce_threshold.map_or(params.target, |mark| mark.min(params.target));
        let surely_short = if form.learns { Span::ZERO } else { lowest };
        CodelSettings {
            // Two units of Linux's clock are more than any rounding.
            surely_short: surely_short.saturating_sub(Span::from_nanos(2 * 1024)),
            target: on_clock(params.target),
            interval: on_clock(params.interval),
            form,
            ecn: params.ecn,
            ce_threshold: params.ce_threshold.map(on_clock),
            ce_selector: None,
            // ns-2 learns the largest packet, from 256 bytes.
            smallest_backlog: if form.learns { 256 } else { env.mtu.get() },
            bucket: false,
            alone: false,
        }
    }

    /// With a threshold for some packets only.
    pub fn selecting(self, ce_selector: Option<DsSelector>) -> Self {
        CodelSettings { ce_selector, ..self }
    }

    /// For one of many queues that is compared with a full packet by itself.
    pub fn alone(self, alone: bool) -> Self {
        CodelSettings { alone, ..self }
    }

    /// For a bucket of ns-2's sfqCoDel: a large count does not decay, and a
    /// bucket found empty forgets nothing.
    pub fn in_a_bucket(self) -> Self {
        CodelSettings { bucket: true, ..self }
    }

    /// The clock that the algorithm reads: Linux's units, which are whole
    /// numbers, or the seconds in floating point of ns-2 and the pseudo-code.
    #[inline]
    fn clock(&self, time: Time) -> f64 {
        match self.form.clock {
            Clock::Units => (time.as_nanos() >> 10) as f64,
            Clock::Seconds => time.as_nanos() as f64 * 1e-9,
        }
    }
}

/// Source of packets for CoDel: a single queue, or one of many.
pub(crate) trait Source {
    /// The next packet.
    fn pop(&mut self) -> Option<Packet>;
    /// The backlog that is compared with the smallest, after the pop.
    fn backlog_bytes(&self) -> u64;
    /// Part of the backlog in the current queue, if there are several.
    fn own_bytes(&self) -> u64 {
        self.backlog_bytes()
    }
    /// The largest packet seen, for variants that learn it.
    fn largest(&mut self) -> &mut u64;
}

/// The state of the algorithm (RFC 8289, section 5.3), over any storage.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodelState {
    /// When the delay will have been above target for an interval.
    first_above: Option<f64>,
    /// When the next packet is dropped.
    drop_next: Option<f64>,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Linux's 1/sqrt(count) in units of 2^-16.
    inverse_sqrt: u16,
}

impl CodelState {
    pub fn new(law: &CodelSettings) -> Self {
        // ns-2 begins as if the delay had been too long for ever: a first
        // packet that has waited (in a bucket, for others) is dropped.
        CodelState { first_above: law.form.learns.then_some(0.0), ..CodelState::default() }
    }

    /// So many packets were dropped because a buffer was full (RFC 8290,
    /// section 4.1.3, and Linux: they count).
    pub fn dropped_elsewhere(&mut self, packets: u64) {
        self.count = self.count.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
    }

    /// RFC 8289, section 5.6: takes a packet and sees whether the delay has
    /// been above target for long enough.
    fn take(
        &mut self,
        law: &CodelSettings,
        now: f64,
        source: &mut impl Source,
    ) -> (Option<Packet>, bool) {
        match source.pop() {
            Some(packet) => {
                let ok_to_drop = self.is_ok_to_drop(law, now, &packet, source);
                (Some(packet), ok_to_drop)
            }
            None => {
                self.ran_empty(law);
                (None, false)
            }
        }
    }

    #[inline]
    fn ran_empty(&mut self, law: &CodelSettings) {
        if !law.bucket {
            self.first_above = None;
        }
    }

    /// Whether the delay, of which `packet` is the sample, has been above
    /// target for long enough.
    #[inline]
    fn is_ok_to_drop(
        &mut self,
        law: &CodelSettings,
        now: f64,
        packet: &Packet,
        source: &mut impl Source,
    ) -> bool {
        let sojourn = now - law.clock(packet.arrival());
        if law.form.learns {
            let largest = source.largest();
            *largest = (*largest).max(u64::from(packet.size()));
        }
        let smallest = if law.form.learns { *source.largest() } else { law.smallest_backlog };
        let backlog = if law.alone { source.own_bytes() } else { source.backlog_bytes() };
        self.is_long_above(law, now, sojourn, backlog <= smallest)
    }

    /// Whether the delay has been above target for long enough.
    #[inline]
    fn is_long_above(&mut self, law: &CodelSettings, now: f64, delay: f64, is_small: bool) -> bool {
        if delay < law.target || is_small {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.first_wait(law, now));
                false
            }
            Some(first_above) if law.form.later_than => now > first_above,
            Some(first_above) => now >= first_above,
        }
    }

    /// The decision at the other end of the queue, for `codel_dt`: whether a
    /// packet that arrives is dropped, by the delay that is predicted for it.
    pub fn drops_arrival(
        &mut self,
        law: &CodelSettings,
        now: Time,
        delay: Span,
        is_small: bool,
    ) -> bool {
        let now = law.clock(now);
        if !self.is_long_above(law, now, delay.as_secs_f64(), is_small) {
            self.dropping = false;
            return false;
        }
        if !self.dropping {
            self.enter(law, now);
            return true;
        }
        // The time is set on entering the state, always.
        let due = self.drop_next.filter(|due| now >= *due);
        if let Some(due) = due {
            self.increment(law);
            self.drop_next = Some(self.control_law(law, due));
        }
        due.is_some()
    }

    /// Time for which the delay may be above the target.
    fn first_wait(&self, law: &CodelSettings, now: f64) -> f64 {
        let within = law.form.shorter_wait.filter(|_| self.count > 1);
        match within.is_some_and(|intervals| self.left_within(law, now, intervals)) {
            true => over_sqrt(law.interval, self.count),
            false => law.interval,
        }
    }

    /// Whether the last drop was due less than so many intervals ago.
    fn left_within(&self, law: &CodelSettings, now: f64, intervals: f64) -> bool {
        let within = intervals * law.interval;
        self.drop_next.is_some_and(|due| match law.form.clock {
            Clock::Units => linux::is_before(now - due, within),
            Clock::Seconds => now - due < within,
        })
    }

    /// RFC 8289, section 5.4: when the next drop is due after `time`.
    fn control_law(&self, law: &CodelSettings, time: f64) -> f64 {
        time + match law.form.root {
            Root::Estimate => linux::over_sqrt(law.interval, self.inverse_sqrt),
            Root::Exact => over_sqrt(law.interval, self.count),
        }
    }

    /// The root follows the count.
    fn step_root(&mut self, law: &CodelSettings) {
        if law.form.root == Root::Estimate {
            self.inverse_sqrt = linux::newton_step(self.inverse_sqrt, self.count);
        }
    }

    fn increment(&mut self, law: &CodelSettings) {
        self.count += 1;
        self.step_root(law);
    }

    /// RFC 8289, section 5.5: the packet that leaves now.
    #[inline]
    pub fn dequeue(
        &mut self,
        law: &CodelSettings,
        source: &mut impl Source,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        let Some(mut packet) = source.pop() else {
            self.ran_empty(law);
            self.dropping = false;
            return None;
        };
        if cx.now - packet.arrival() < law.surely_short {
            self.first_above = None;
            self.dropping = false;
            return Some(packet);
        }
        let now = law.clock(cx.now);
        if self.is_ok_to_drop(law, now, &packet, source) {
            packet = self.signal(law, now, packet, source, cx)?;
        } else {
            self.dropping = false;
        }
        self.ce_threshold(law, now, &mut packet, cx);
        Some(packet)
    }

    /// The delay has been above target for long enough: what leaves now.
    #[inline(never)]
    fn signal(
        &mut self,
        law: &CodelSettings,
        now: f64,
        mut packet: Packet,
        source: &mut impl Source,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        if self.dropping {
            return self.drop_while_due(law, now, packet, source, cx);
        }
        self.enter(law, now);
        if law.ecn && packet.ecn().is_capable() {
            cx.mark(&mut packet, Reason::Codel);
            Some(packet)
        } else {
            cx.drop(packet, Reason::Codel);
            self.take(law, now, source).0
        }
    }

    /// In the dropping state: drops all packets that are due.
    fn drop_while_due(
        &mut self,
        law: &CodelSettings,
        now: f64,
        mut packet: Packet,
        source: &mut impl Source,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        // The time is set on entering the state, always.
        while let Some(due) = self.drop_next.filter(|due| self.dropping && now >= *due) {
            if law.form.counts == DropCounting::Always {
                self.increment(law);
            }
            if law.ecn && packet.ecn().is_capable() {
                cx.mark(&mut packet, Reason::Codel);
                self.drop_next = Some(self.control_law(law, due));
                return Some(packet);
            }
            cx.drop(packet, Reason::Codel);
            let (next, ok_to_drop) = self.take(law, now, source);
            if ok_to_drop {
                if law.form.counts == DropCounting::IfNextIsLate {
                    self.increment(law);
                }
                self.drop_next = Some(self.control_law(law, due));
            } else {
                self.dropping = false;
            }
            packet = next?;
        }
        Some(packet)
    }

    /// The dropping state begins: the count is recalled or starts from 1.
    fn enter(&mut self, law: &CodelSettings, now: f64) {
        self.dropping = true;
        let recalled = (law.form.recall)(&Recall {
            count: self.count,
            last_count: self.last_count,
            bucket: law.bucket,
            left_within: &|intervals| self.left_within(law, now, intervals),
        });
        match recalled {
            Some(count) => {
                self.count = count;
                self.step_root(law);
            }
            None => {
                self.count = 1;
                self.inverse_sqrt = u16::MAX;
            }
        }
        self.last_count = self.count;
        self.drop_next = Some(self.control_law(law, now));
    }

    #[inline]
    fn ce_threshold(
        &self,
        law: &CodelSettings,
        now: f64,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) {
        if let Some(threshold) = law.ce_threshold
            && now - law.clock(packet.arrival()) > threshold
            && law.ce_selector.is_none_or(|selector| selector.selects(packet))
            && packet.ecn().is_capable()
        {
            cx.mark(packet, Reason::Codel);
        }
    }

    /// What the state shows in recordings.
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("count", f64::from(self.count));
        see("dropping", f64::from(u8::from(self.dropping)));
    }
}

/// `interval / sqrt(count)`.
fn over_sqrt(interval: f64, count: u32) -> f64 {
    interval / math::sqrt(f64::from(count))
}
