//! Congestion window validation: what becomes of a window that is not used.
//!
//! # Sources
//! RFC 5681, section 4.1 (`restart_after_idle`). RFC 2861 as Linux has it:
//! `tcp_cwnd_restart` after an idle time, `tcp_cwnd_application_limited` while the
//! application sends less than the window. RFC 7661, sections 4.1 to 4.5.
//!
//! # Differences
//! 1. RFC 7661, section 4.4.2, would have bursts controlled while the window is
//!    not validated, by no specific method: that is `pacing`.
//! 2. RFC 7661, section 4.4.1, halves. Controls that keep another share of the amount in use keep
//!    that share; retransmitted data are subtracted in proportion.
//! 3. Nothing of it concerns controls that pace what follows an idle time (BBR,
//!    Prague; in Linux those with `cong_control`) or send at a constant rate.

use aqmlab_core::{Span, Time};

use super::RfcSender;
use crate::congestion::CongestionControl;
use crate::params::{TcpParams, WindowValidation};
use crate::recovery::Phase;
use crate::rtt::RttEstimator;

/// The parts of the sampling period that have a greatest sample each (RFC
/// 7661, section 4.5.1).
const PARTS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Keep,
    Restart,
    Decay,
    Validate,
}

#[derive(Clone, Debug)]
pub(super) struct Validation {
    rule: Rule,
    /// RFC 2861: the most in flight since the window was last full or reduced,
    /// and when that was.
    used: u64,
    since: Time,
    pipe_ack: PipeAck,
    /// Since when pipeACK is less than half of the window.
    unvalidated: Option<Time>,
    period: Span,
    /// In a recovery that began while the window was not validated: amount in use then, and bytes
    /// retransmitted since.
    recovery: Option<(u64, u64)>,
}

/// pipeACK: the greatest volume acknowledged in a round-trip time (section 4.2).
#[derive(Clone, Debug, Default)]
struct PipeAck {
    /// When the sample at hand began, and what had been delivered then.
    sample: Option<(Time, u64)>,
    /// Start of each part of the sampling period, and its largest sample; none while undefined.
    parts: [Option<(Time, u64)>; PARTS],
}

impl PipeAck {
    fn take(&mut self, now: Time, bytes: u64, period: Span) {
        match &mut self.parts[0] {
            Some((began, greatest)) if now < *began + period / PARTS as u64 => {
                *greatest = bytes.max(*greatest);
            }
            _ => {
                self.parts.rotate_right(1);
                self.parts[0] = Some((now, bytes));
            }
        }
    }
    /// The variable; without samples in the period 0, and none while undefined.
    fn value(&self, now: Time, period: Span) -> Option<u64> {
        self.parts[0]?;
        let recent = self.parts.iter().flatten().filter(|part| now <= part.0 + period);
        Some(recent.map(|part| part.1).max().unwrap_or(0))
    }
}

/// Section 4.2.
fn sampling_period(rtt: &RttEstimator) -> Span {
    (rtt.smoothed().unwrap_or(Span::ZERO) * 3).max(Span::from_secs(1))
}

impl Validation {
    pub fn new(params: &TcpParams) -> Self {
        let rule = match params.window_validation {
            WindowValidation::Off if params.restart_after_idle => Rule::Restart,
            WindowValidation::Off => Rule::Keep,
            WindowValidation::Rfc2861 => Rule::Decay,
            WindowValidation::Rfc7661 => Rule::Validate,
        };
        Validation {
            rule,
            used: 0,
            since: Time::ZERO,
            pipe_ack: PipeAck::default(),
            unvalidated: None,
            period: params.non_validated_period,
            recovery: None,
        }
    }

    /// A segment was sent again for the first time.
    pub fn on_repair(&mut self, bytes: u64) {
        if let Some((_, repaired)) = &mut self.recovery {
            *repaired += bytes;
        }
    }
    /// pipeACK is undefined again: after a timeout or a recovery.
    pub fn forget(&mut self) {
        self.pipe_ack = PipeAck::default();
        self.unvalidated = None;
        self.recovery = None;
    }
}

impl RfcSender {
    /// New data are there to be sent.
    #[inline]
    pub(super) fn validate_before_sending(&mut self, now: Time) {
        if self.validation.rule != Rule::Keep && self.last_sent > Time::ZERO {
            self.examine_idle_time(now);
        }
    }

    fn examine_idle_time(&mut self, now: Time) {
        let idle = now.saturating_since(self.last_sent);
        let is_idle = self.board.is_empty() && idle > self.rtt.rto();
        match self.validation.rule {
            Rule::Restart if is_idle => self.control.on_idle(self.initial_window()),
            Rule::Decay if is_idle => self.decay(now, idle),
            Rule::Validate => self.examine_period(now),
            _ => {}
        }
    }

    fn initial_window(&self) -> u64 {
        self.params.in_bytes(self.params.initial_window)
    }

    /// Slow start is to lead back to three quarters of the window (RFC 2861,
    /// section 3.1; RFC 7661, section 4.4.3).
    fn remember(&mut self) {
        let window = self.control.window();
        self.control.set_ssthresh(self.control.ssthresh().max(window / 4 * 3));
    }

    /// RFC 2861: halved for each timeout that nothing was sent, down to the
    /// restart window.
    fn decay(&mut self, now: Time, idle: Span) {
        self.remember();
        let least = self.control.window().min(self.initial_window());
        let (mut window, mut passed) = (self.control.window(), self.rtt.rto());
        while passed < idle && window > least {
            window /= 2;
            passed += self.rtt.rto();
        }
        self.control.on_idle(window.max(least));
        (self.validation.used, self.validation.since) = (0, now);
    }

    /// All data were sent, or as much as the window allowed.
    #[inline]
    pub(super) fn validate_after_sending(&mut self, now: Time, full: bool) {
        if self.validation.rule == Rule::Decay && (full || self.last_sent == now) {
            self.examine_use(now, full);
        }
    }

    /// RFC 2861: half of the part unused for a timeout is given up. In slow start more than half of
    /// the window counts as all of it, as in Linux.
    fn examine_use(&mut self, now: Time, full: bool) {
        let window = self.control.window();
        let doubles = window < self.control.ssthresh() && window < 2 * self.board.pipe();
        if full || doubles {
            (self.validation.used, self.validation.since) = (0, now);
            return;
        }
        self.validation.used = self.validation.used.max(self.board.pipe());
        if self.phase == Phase::Open && now >= self.validation.since + self.rtt.rto() {
            let used = self.validation.used.max(self.initial_window());
            if used < window {
                self.remember();
                self.control.on_idle(u64::midpoint(window, used));
            }
            (self.validation.used, self.validation.since) = (0, now);
        }
    }

    /// An acknowledgement delivers data; `before` were delivered before it.
    #[inline]
    pub(super) fn validate_delivery(&mut self, now: Time, before: u64) {
        if self.validation.rule == Rule::Validate {
            self.sample_pipe(now, before);
        }
    }

    /// RFC 7661, section 4.2: a sample each round-trip time, none in recoveries. The phase is
    /// looked at with each, for then both are of the same round trip: in slow start the window is
    /// just twice as large.
    fn sample_pipe(&mut self, now: Time, before: u64) {
        let pipe_ack = &mut self.validation.pipe_ack;
        if !self.phase.is_open() {
            pipe_ack.sample = None;
            return;
        }
        let srtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
        match pipe_ack.sample {
            Some((began, _)) if now < began + srtt => {}
            Some((_, delivered)) => {
                pipe_ack.take(now, before - delivered, sampling_period(&self.rtt));
                pipe_ack.sample = Some((now, before));
                self.examine_phase(now, now);
            }
            None => pipe_ack.sample = Some((now, before)),
        }
    }

    /// Section 4.3: whether pipeACK has come down to less than half of the
    /// window, as it did at `since`.
    fn examine_phase(&mut self, now: Time, since: Time) {
        let pipe_ack = self.validation.pipe_ack.value(now, sampling_period(&self.rtt));
        let validated = pipe_ack.is_none_or(|bytes| 2 * bytes >= self.control.window());
        self.validation.unvalidated =
            if validated { None } else { self.validation.unvalidated.or(Some(since)) };
    }

    /// Sections 4.4.3 and 4.5.2: half of the window is given up for each period
    /// in which it was not validated.
    fn examine_period(&mut self, now: Time) {
        let period = sampling_period(&self.rtt);
        if self.board.is_empty() {
            // Less than a round-trip time may have been acknowledged, and nothing since.
            let pipe_ack = &mut self.validation.pipe_ack;
            if let Some((_, delivered)) = pipe_ack.sample.take() {
                let bytes = self.board.delivery.delivered - delivered;
                pipe_ack.take(self.last_sent, bytes, period);
            }
            self.examine_phase(now, now.min(self.last_sent + period));
        }
        while let Some(since) = self.validation.unvalidated
            && now > since + self.validation.period
        {
            self.validation.unvalidated = Some(since + self.validation.period);
            self.remember();
            let least = self.initial_window();
            self.control.on_idle((self.control.window() / 2).max(least));
        }
    }

    /// Section 4.4.1: amount in use at a loss or an ECN echo. If the window is not validated,
    /// pipeACK may exceed the amount in flight.
    pub(super) fn in_use_at_loss(&mut self, now: Time, flight_size: u64) -> u64 {
        if self.validation.unvalidated.is_none() {
            return flight_size;
        }
        let pipe_ack = self.validation.pipe_ack.value(now, sampling_period(&self.rtt));
        let in_use = flight_size.max(pipe_ack.unwrap_or(0));
        self.validation.recovery = Some((in_use, 0));
        in_use
    }

    /// The end of a recovery.
    pub(super) fn validate_after_recovery(&mut self) {
        if self.validation.rule != Rule::Validate {
            return;
        }
        if let Some((in_use, repaired)) = self.validation.recovery {
            // (in_use - R) / 2, at least a segment.
            let kept = u128::from(self.control.window())
                * u128::from(in_use.saturating_sub(repaired))
                / u128::from(in_use.max(1));
            let window = (kept as u64).max(self.mss);
            self.control.on_idle(window);
            self.control.set_ssthresh(window);
        }
        self.validation.forget();
    }
}
