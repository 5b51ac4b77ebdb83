//! TFRC's sender (RFC 5348, section 4): computes a rate from feedback, and sends evenly at that
//! rate.

use aqmlab_core::{Ecn, Span, Time};

use super::equation;
use super::{Data, Feedback, TfrcParams};
use crate::endpoints::{Endpoint, EndpointSetup, Incoming, Outgoing, Source};

/// `t_mbi`: maximum interval between packets in seconds (section 4.3).
pub(super) const LONGEST: f64 = 64.0;
/// q and q2: weight of the previous value in averages (sections 4.3 and 4.5).
const KEPT: f64 = 0.9;
/// The nofeedback timer without a round-trip time, in seconds (section 4.2).
const FIRST_TIMER: f64 = 2.0;
/// Minimum round-trip time in computations, in seconds.
const SHORTEST: f64 = 1e-6;
/// Number of kept values of `X_recv_set` (section 8.2.2).
const RATES: usize = 3;

/// State after the first feedback.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Round-trip time R in seconds.
    rtt: f64,
    /// `R_sqmean`, the average of the square root of the round-trip time.
    root: f64,
    /// Square root of the last sample.
    sample: f64,
    /// Loss event rate p.
    losses: f64,
    /// `tld`: time at which the rate was last doubled.
    doubled: Time,
}

/// Sender of data.
#[derive(Clone, Default)]
pub struct TfrcSource {
    /// Bytes of data of a full packet, s, and of headers.
    size: u32,
    header: u32,
    ecn: Ecn,
    has_damping: bool,
    /// Bytes to send, and bytes sent.
    goal: u64,
    sent: u64,
    /// Number of the next packet; highest number that has arrived, plus one; number of packets that
    /// have arrived.
    number: u64,
    answered: u64,
    packets: u64,
    /// X, the allowed rate in bytes per second.
    pub(super) allowed: f64,
    path: Option<Path>,
    /// `X_recv_set`: receive rates, with the times of their reports.
    pub(super) received: Vec<(Time, f64)>,
    /// Time of the last packet, or of the start.
    since: Option<Time>,
    has_sent: bool,
    /// Nofeedback timer, and whether no packet was sent since it was set.
    timer: Option<Time>,
    is_idle: bool,
    /// True if a packet without data is due.
    asks: bool,
    /// Times at which the sender was not data-limited, and the interval of the next feedback
    /// (section 8.2.1).
    busy: [Option<Time>; 2],
    covered: Time,
    expected: Time,
}

impl TfrcSource {
    /// Creates a sender.
    pub fn new(params: &TfrcParams, setup: &EndpointSetup) -> Self {
        TfrcSource {
            size: setup.mss,
            header: setup.header,
            ecn: if params.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            has_damping: params.damping,
            goal: setup.size.unwrap_or(u64::MAX),
            allowed: f64::from(setup.mss),
            received: vec![(Time::ZERO, f64::INFINITY)],
            is_idle: true,
            ..TfrcSource::default()
        }
    }

    fn segment(&self) -> f64 {
        f64::from(self.size)
    }

    /// Returns the minimum rate, a packet per `t_mbi`.
    fn least(&self) -> f64 {
        self.segment() / LONGEST
    }

    /// Returns `initial_rate` (section 4.2), with the initial window of RFC 3390.
    fn initial(&self, rtt: f64) -> f64 {
        let window = (4 * self.size).min((2 * self.size).max(4380));
        f64::from(window) / rtt
    }

    /// Returns `X_inst`, the sending rate (section 4.5).
    fn rate(&self) -> f64 {
        match self.path {
            Some(path) if self.has_damping => {
                (self.allowed * path.root / path.sample).max(self.least())
            }
            _ => self.allowed,
        }
    }

    /// Returns the earliest time of the next packet: `t_ipi` after the last one (section 4.6).
    fn next_departure(&self) -> Option<Time> {
        let since = self.since?;
        if !self.has_sent {
            return Some(since);
        }
        let gap = Span::from_secs_f64(self.segment() / self.rate());
        Some(since + gap.max(Span::from_nanos(1)))
    }

    fn largest_received(&self) -> f64 {
        self.received.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// "Update X_recv_set": keeps the values of the last two round-trip times.
    fn update_received(&mut self, now: Time, rate: f64, rtt: f64) {
        self.received.push((now, rate));
        let longest = Span::from_secs_f64(2.0 * rtt);
        self.received.retain(|(since, _)| now.saturating_since(*since) <= longest);
        if self.received.len() > RATES {
            self.received.remove(0);
        }
    }

    /// "Maximize X_recv_set": keeps only the largest.
    fn maximize_received(&mut self, now: Time, rate: f64) {
        self.received.push((now, rate));
        self.received.retain(|(_, rate)| rate.is_finite());
        self.received = vec![(now, self.largest_received())];
    }

    /// Step 4 of section 4.3, without its first `If`.
    fn update_allowed(&mut self, now: Time, limit: f64) {
        let Some(path) = self.path else { return };
        if path.losses > 0.0 {
            let fair = equation::rate(self.segment(), path.rtt, path.losses);
            self.allowed = fair.min(limit).max(self.least());
        } else if now.saturating_since(path.doubled) >= Span::from_secs_f64(path.rtt) {
            self.allowed = (2.0 * self.allowed).min(limit).max(self.initial(path.rtt));
            self.path = Some(Path { doubled: now, ..path });
        }
    }

    /// Returns whether the sender was data-limited during the whole interval that feedback on a
    /// packet sent at `echo` covers (section 8.2.1).
    fn was_data_limited(&mut self, now: Time, echo: Time, rtt: f64) -> bool {
        let age = now.saturating_since(echo) + Span::from_secs_f64(rtt);
        self.covered = echo;
        self.expected = now;
        let is_in = |busy: &Option<Time>| {
            busy.is_some_and(|busy| busy <= echo && now.saturating_since(busy) < age)
        };
        let was_limited = !self.busy.iter().any(is_in);
        let [first, second] = self.busy;
        if first.is_none_or(|first| first <= echo) && second.is_some_and(|second| second > echo) {
            self.busy[0] = second;
        }
        was_limited
    }

    /// Records that a packet has left while more data wait for their time: the rate is the limit.
    fn note_busy(&mut self, now: Time) {
        let [first, second] = self.busy;
        if first.is_none_or(|first| first <= self.covered) {
            self.busy[0] = Some(now);
        } else if second.is_none_or(|second| second <= self.expected) {
            self.busy[1] = Some(now);
        }
    }

    fn set_timer(&mut self, now: Time) {
        let rtt = self.path.map_or(0.0, |path| path.rtt);
        let span = (4.0 * rtt).max(2.0 * self.segment() / self.allowed);
        self.timer = Some(now + Span::from_secs_f64(span));
        self.is_idle = true;
    }

    /// Processes feedback (section 4.3).
    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        let echo = Time::from_nanos(feedback.echo);
        let sample = now.saturating_since(echo).saturating_sub(Span::from_nanos(feedback.delay));
        let sample = sample.as_secs_f64().max(SHORTEST);
        let (losses, root) = (feedback.losses, libm::sqrt(sample));
        let Some(path) = self.path else {
            self.path = Some(Path { rtt: sample, root, sample: root, losses, doubled: now });
            self.allowed = self.initial(sample);
            return self.set_timer(now);
        };
        let average = |before: f64, sample: f64| KEPT * before + (1.0 - KEPT) * sample;
        let (rtt, mean) = (average(path.rtt, sample), average(path.root, root));
        self.path = Some(Path { rtt, root: mean, sample: root, losses, ..path });
        let was_limited = self.was_data_limited(now, echo, rtt);
        let mut limit = 2.0;
        if !(was_limited && feedback.rate > 0.0) {
            self.update_received(now, feedback.rate, rtt);
        } else if losses > path.losses {
            self.received.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
            self.maximize_received(now, 0.85 * feedback.rate);
            limit = 1.0;
        } else {
            self.maximize_received(now, feedback.rate);
        }
        self.update_allowed(now, limit * self.largest_received());
        self.set_timer(now);
    }

    /// Handles the expiration of the nofeedback timer (section 4.4).
    fn on_silence(&mut self, now: Time) {
        let received = self.largest_received();
        let halved = (self.allowed / 2.0).max(self.least());
        match self.path {
            None if !self.is_idle => self.allowed = halved,
            None => {}
            Some(path) => {
                let recovery = self.initial(path.rtt);
                let is_low = match path.losses > 0.0 {
                    true => received < recovery,
                    false => self.allowed < 2.0 * recovery,
                };
                let fair = equation::rate(self.segment(), path.rtt, path.losses);
                if self.is_idle && is_low {
                    // Below this rate, a pause does not reduce the rate.
                } else if path.losses == 0.0 {
                    self.allowed = halved;
                } else {
                    let half = if fair > 2.0 * received { received } else { fair / 2.0 };
                    let limit = half.max(self.least());
                    self.received = vec![(now, limit / 2.0)];
                    self.update_allowed(now, limit);
                }
            }
        }
        self.asks = self.sent >= self.goal && self.answered < self.number;
        self.set_timer(now);
    }
}

impl Endpoint for TfrcSource {
    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        let has_data = self.sent < self.goal && self.next_departure()? <= now;
        if !has_data && !std::mem::take(&mut self.asks) {
            return None;
        }
        let length = (self.goal - self.sent).min(u64::from(self.size)) as u32;
        self.sent += u64::from(length);
        (self.since, self.has_sent, self.is_idle) = (Some(now), true, false);
        if self.timer.is_none() {
            self.timer = Some(now + Span::from_secs_f64(FIRST_TIMER));
        }
        if self.sent < self.goal {
            self.note_busy(now);
        }
        let rtt = self.path.map_or(0.0, |path| path.rtt);
        let data = Data { number: self.number, sent: now.as_nanos(), rtt, end: self.sent };
        self.number += 1;
        Some(Outgoing { payload: data.message(), size: self.header + length, ecn: self.ecn })
    }

    fn on_packet(&mut self, now: Time, packet: Incoming) {
        let Some(feedback) = Feedback::read(&packet.payload) else { return };
        if feedback.packets <= self.packets {
            return;
        }
        self.packets = feedback.packets;
        self.answered = feedback.next;
        self.on_feedback(now, &feedback);
    }

    fn deadline(&self) -> Option<Time> {
        if self.is_finished() {
            return None;
        }
        let departure = self.next_departure().filter(|_| self.sent < self.goal);
        [departure, self.timer].into_iter().flatten().min()
    }

    fn on_deadline(&mut self, now: Time) {
        if self.timer.is_some_and(|timer| timer <= now) {
            self.on_silence(now);
        }
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("rate_bps", 8.0 * self.rate());
        if let Some(path) = self.path {
            see("smoothed_rtt_s", path.rtt);
            see("loss_event_rate", path.losses);
        }
    }
}

impl Source for TfrcSource {
    fn open(&mut self, now: Time) {
        self.since = Some(now);
        self.received = vec![(now, f64::INFINITY)];
    }
    fn supply(&mut self, bytes: u64) {
        self.goal = self.goal.saturating_add(bytes);
    }
    fn cut(&mut self) -> u64 {
        self.goal = self.sent;
        self.goal
    }
    fn sent(&self) -> u64 {
        self.sent
    }
    fn is_finished(&self) -> bool {
        self.sent >= self.goal && self.answered >= self.number
    }
}
