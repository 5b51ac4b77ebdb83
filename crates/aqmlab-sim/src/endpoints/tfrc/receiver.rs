//! TFRC's receiver (RFC 5348, section 6): measures losses and the rate, and reports them.

use std::collections::VecDeque;

use aqmlab_core::{Ecn, Span, Time};

use super::equation;
use super::losses::LossHistory;
use super::{Data, Feedback, TfrcParams};
use crate::endpoints::{Endpoint, EndpointSetup, Incoming, Outgoing, Sink};

/// Number of interval ends that are kept. The timer ends one interval per round-trip time, and each
/// new loss event another.
const ENDS: usize = 16;

/// Receiver of data.
#[derive(Clone, Default)]
pub struct TfrcSink {
    /// Bytes of data of a full packet, s, and of headers.
    size: f64,
    header: u32,
    losses: LossHistory,
    /// Packets and bytes of data that arrived, each counted once.
    packets: u64,
    bytes: u64,
    /// Largest number of sent bytes among the packets that arrived.
    end: u64,
    /// Last packet that arrived, and its arrival time; `None` at the beginning.
    last: Option<(Data, Time)>,
    /// Sender's round-trip time, from the packet with the highest number.
    rtt: f64,
    /// Round-trip time when the timer was set, `R_(m-1)`.
    rtt_before: f64,
    /// Highest rate measured so far.
    fastest: f64,
    /// Loss event rate at its last computation, `p_prev`.
    reported: f64,
    /// Ends of intervals, with the bytes received until then.
    ends: VecDeque<(Time, u64)>,
    /// True if data has arrived since the last feedback.
    has_news: bool,
    timer: Option<Time>,
    /// True if the timer expired without new data: the next packet is answered at once.
    owes: bool,
    answer: Option<Feedback>,
}

impl TfrcSink {
    /// Creates a receiver.
    pub fn new(params: &TfrcParams, setup: &EndpointSetup) -> Self {
        TfrcSink {
            size: f64::from(setup.mss),
            header: setup.header,
            losses: LossHistory::new(params.intervals as usize, params.discounting),
            ..TfrcSink::default()
        }
    }

    /// Returns the receive rate since the most recent end of an interval at least `R_(m-1)` ago
    /// (section 6.2, step 2); since the first one if none is that old.
    fn measured(&self, now: Time) -> f64 {
        let age = Span::from_secs_f64(self.rtt_before);
        let old = self.ends.iter().rev().find(|(end, _)| now.saturating_since(*end) >= age);
        let Some(&(since, before)) = old.or(self.ends.front()) else { return 0.0 };
        let time = now.saturating_since(since).as_secs_f64();
        if time > 0.0 { (self.bytes - before) as f64 / time } else { 0.0 }
    }

    /// Ends an interval.
    fn end_interval(&mut self, now: Time, bytes: u64) {
        self.ends.push_back((now, bytes));
        if self.ends.len() > ENDS {
            self.ends.pop_front();
        }
    }

    /// Adds the timer expirations of a pause without arrivals. The last but one is the earliest
    /// used in a measurement (one to two round-trip times ago).
    fn catch_up(&mut self, now: Time, before: u64) {
        let Some(&(last, _)) = self.ends.back() else { return };
        let period = Span::from_secs_f64(self.rtt).as_nanos().max(1);
        let times = now.saturating_since(last).as_nanos() / period;
        if times > 1 {
            let end = last + Span::from_nanos((times - 1) * period);
            self.end_interval(end, before);
        }
    }

    /// Creates a report (section 6.2), with the loss event rate p.
    fn report(&mut self, now: Time, losses: f64) {
        let Some((last, arrived)) = self.last else { return };
        let rate = self.measured(now);
        self.fastest = self.fastest.max(rate);
        self.reported = losses;
        self.answer = Some(Feedback {
            echo: last.sent,
            delay: now.saturating_since(arrived).as_nanos(),
            rate,
            losses,
            next: self.losses.next(),
            packets: self.packets,
        });
        self.end_interval(now, self.bytes);
        self.has_news = false;
        self.rtt_before = self.rtt;
        // Without a round-trip time, every packet is answered (section 6.3).
        self.owes = self.rtt == 0.0;
        self.timer = (!self.owes).then(|| now + Span::from_secs_f64(self.rtt));
    }

    /// Returns the first loss interval (section 6.3.1): the one for which the equation gives the
    /// highest rate received so far; half a packet per round-trip time if the first packet was
    /// lost.
    fn first_interval(size: f64, rtt: f64, fastest: f64, is_null: bool) -> f64 {
        if rtt == 0.0 {
            // No time has passed: f(p) = 2 for half a packet per round-trip time, for any
            // round-trip time.
            return 1.0 / equation::losses_for(1.0, 1.0, 0.5);
        }
        let least = 0.5 * size / rtt;
        let target = if is_null { least } else { fastest.max(least) };
        1.0 / equation::losses_for(size, rtt, target)
    }
}

impl Endpoint for TfrcSink {
    fn poll(&mut self, _now: Time) -> Option<Outgoing> {
        let payload = self.answer.take()?.message();
        Some(Outgoing { payload, size: self.header, ecn: Ecn::NotEct })
    }

    fn on_packet(&mut self, now: Time, packet: Incoming) {
        let Some(data) = Data::read(&packet.payload) else { return };
        let length = u64::from(packet.size - self.header);
        let is_first = self.last.is_none();
        let is_highest = data.number >= self.losses.next();
        let rtt = if is_highest { data.rtt } else { self.rtt };
        let (size, fastest) = (self.size, self.fastest.max(self.measured(now)));
        let first = |is_null| Self::first_interval(size, rtt, fastest, is_null);
        let is_marked = packet.ecn == Ecn::Ce;
        let arrival = self.losses.arrive(data.number, now.as_secs_f64(), is_marked, rtt, &first);
        if !arrival.is_new {
            return;
        }
        self.rtt = rtt;
        if self.owes {
            self.catch_up(now, self.bytes);
        }
        self.packets += 1;
        self.bytes += length;
        self.end = self.end.max(data.end);
        self.last = Some((data, now));
        self.has_news = true;
        if is_first || self.owes {
            self.report(now, self.losses.rate());
        } else if arrival.is_event {
            let losses = self.losses.rate();
            if losses > self.reported {
                self.report(now, losses);
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.timer
    }

    fn on_deadline(&mut self, now: Time) {
        if self.has_news {
            let losses = self.losses.rate();
            self.report(now, losses);
        } else {
            self.end_interval(now, self.bytes);
            self.owes = true;
            self.timer = None;
        }
    }
}

impl Sink for TfrcSink {
    /// Returns the received position of the data; lost data is never repeated.
    fn received(&self) -> u64 {
        self.end
    }
    fn arrived(&self) -> u64 {
        self.bytes
    }
}
