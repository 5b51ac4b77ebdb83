//! The closed loop: our sender and our receiver, with Linux's rules, over a recorded path.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use aqmlab_core::{Auto, Bytes, Ecn, Result, Span, Time};

use super::case::{Case, Event};
use crate::endpoint::Sender;
use crate::params::{EcnMode, TcpParams};
use crate::receiver::Receiver;
use crate::segment::{Ack, DataSegment};

/// The receivers of the recordings had buffers of 16 MB.
const BUFFER: u64 = 1 << 24;
/// Bytes of IP and TCP, without options and with timestamps.
const HEADERS: u64 = 40;
const WITH_TIMESTAMPS: u64 = 52;
/// What never ends is given up.
const AT_MOST: Time = Time::from_nanos(120_000_000_000);

/// How a connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When all was acknowledged; `None` if that took more than two minutes.
    pub all_acknowledged: Option<Time>,
    /// Data segments sent again.
    pub retransmitted: u64,
}

impl Outcome {
    /// Whether the time is within a hundredth, and the retransmissions within two or two
    /// hundredths.
    pub fn is_close_to(&self, other: &Outcome) -> bool {
        let (Some(one), Some(two)) = (self.all_acknowledged, other.all_acknowledged) else {
            return self.all_acknowledged == other.all_acknowledged;
        };
        let apart = one.as_nanos().abs_diff(two.as_nanos());
        let more = self.retransmitted.abs_diff(other.retransmitted);
        apart * 100 <= two.as_nanos() && (more <= 2 || more * 50 <= other.retransmitted)
    }
}

/// What is under way.
#[derive(Clone, Copy, Debug)]
enum Packet {
    Data(DataSegment),
    Ack(Ack),
    Write(u64),
}

struct Loop<'a> {
    case: &'a Case,
    header: u64,
    sender: Sender,
    receiver: Receiver,
    /// Packets by arrival; equal times in the order of sending.
    arrivals: BinaryHeap<Reverse<(Time, u64)>>,
    packets: VecDeque<Option<Packet>>,
    first: u64,
    /// When the transmissions end of those that wait or are in transmission.
    waiting: VecDeque<Time>,
    segments: u64,
    acks: u64,
}

impl Case {
    /// The parameters of both ends in the closed loop.
    fn closed_params(&self) -> Result<TcpParams> {
        let mut params = self.settings.params()?;
        params.receive_window = Auto::Auto;
        params.receive_buffer = Bytes::new(self.receive_buffer.unwrap_or(BUFFER));
        params.receive_buffer_max = params.receive_buffer;
        if self.settings.ecn && self.settings.control == "dctcp" {
            params.ecn = EcnMode::Dctcp;
        }
        params.dsack = params.recovery.has_pipe();
        Ok(params)
    }

    /// Plays the whole connection again, with both ends ours.
    ///
    /// # Errors
    /// If the control is not one of ours.
    pub fn close(&self) -> Result<Outcome> {
        let params = self.closed_params()?;
        let header = if params.timestamps { WITH_TIMESTAMPS } else { HEADERS };
        let mut sender = Sender::new(&params, Some(0), 0);
        let best = super::best_take(self)?;
        if let Some(linux) = sender.linux() {
            linux.set_clock(best.clock.0, best.clock.1);
            linux.set_phases(&best.phases);
        }
        let mut closed = Loop {
            case: self,
            header,
            sender,
            receiver: Receiver::new(&params),
            arrivals: BinaryHeap::new(),
            packets: VecDeque::new(),
            first: 0,
            waiting: VecDeque::new(),
            segments: 0,
            acks: 0,
        };
        let mut size = 0;
        for event in &self.events {
            if let Event::Write { at, bytes } = *event {
                size += bytes;
                closed.push(at, Packet::Write(bytes));
            }
        }
        Ok(closed.run(size))
    }
}

impl Loop<'_> {
    fn push(&mut self, at: Time, packet: Packet) {
        let number = self.first + self.packets.len() as u64;
        self.packets.push_back(Some(packet));
        self.arrivals.push(Reverse((at, number)));
    }

    fn run(mut self, size: u64) -> Outcome {
        self.sender.open(Time::ZERO);
        self.poll(Time::ZERO);
        let mut now = Time::ZERO;
        while self.sender.stats().bytes_acked < size {
            let arrival = self.arrivals.peek().map(|Reverse((at, _))| *at);
            let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
            let Some(next) = timers.into_iter().chain([arrival]).flatten().min() else { break };
            now = now.max(next);
            if now > AT_MOST {
                break;
            }
            if arrival.is_some_and(|at| at <= now) {
                self.arrive(now);
            } else if timers[0].is_some_and(|at| at <= now) {
                self.sender.on_timeout(now);
            } else {
                self.receiver.on_timeout(now);
            }
            self.poll(now);
        }
        let done = self.sender.stats().bytes_acked >= size;
        Outcome {
            all_acknowledged: done.then_some(now),
            retransmitted: self.sender.stats().retransmissions,
        }
    }

    fn arrive(&mut self, now: Time) {
        let Some(Reverse((_, number))) = self.arrivals.pop() else { return };
        let packet = self.packets[(number - self.first) as usize].take();
        while self.packets.front().is_some_and(Option::is_none) {
            self.packets.pop_front();
            self.first += 1;
        }
        match packet {
            Some(Packet::Data(segment)) => self.receiver.on_segment(now, &segment),
            Some(Packet::Ack(ack)) => {
                if ack.syn {
                    // The kernel's third segment of the handshake is empty.
                    self.transmit(now, 0);
                }
                self.sender.on_ack(now, &ack);
            }
            Some(Packet::Write(bytes)) => self.sender.supply(bytes),
            None => {}
        }
    }

    fn poll(&mut self, now: Time) {
        while let Some(segment) = self.sender.poll(now) {
            self.send(now, segment);
        }
        while let Some(ack) = self.receiver.poll(now) {
            self.acks += u64::from(!ack.syn);
            if ack.syn || self.case.path.acks_lost.binary_search(&self.acks).is_err() {
                self.push(now + self.case.path.return_delay, Packet::Ack(ack));
            }
        }
    }

    /// Packets that wait or are in transmission; one whose transmission ends now still is.
    fn waiting(&mut self, now: Time) -> u64 {
        while self.waiting.front().is_some_and(|end| *end < now) {
            self.waiting.pop_front();
        }
        self.waiting.len() as u64
    }
    /// A packet joins the queue; returns when its transmission ends, at the rate of now.
    fn transmit(&mut self, now: Time, payload: u32) -> Time {
        let path = &self.case.path;
        let begin = self.waiting.back().copied().unwrap_or(now).max(now);
        let rate = path.rates.iter().rev().find(|(from, _)| *from <= now);
        let rate = rate.map_or(path.rate, |(_, rate)| *rate);
        let bits = (u64::from(payload) + self.header) * 8;
        let time = (bits * 1_000_000_000).checked_div(rate).unwrap_or(0);
        let end = begin + Span::from_nanos(time);
        self.waiting.push_back(end);
        end
    }

    /// A segment goes through the queue, the link and the delay.
    fn send(&mut self, now: Time, mut segment: DataSegment) {
        let path = &self.case.path;
        let number = if segment.len > 0 {
            self.segments += 1;
            self.segments
        } else {
            0
        };
        let dark = path.blackouts.iter().any(|(from, to)| (*from..*to).contains(&now));
        if number > 0 && (dark || path.lost.binary_search(&number).is_ok()) {
            return;
        }
        let waiting = self.waiting(now);
        let path = &self.case.path;
        if path.limit > 0 && waiting >= path.limit {
            return;
        }
        let marks = path.mark_above > 0 && waiting >= path.mark_above;
        if (marks || path.marked.binary_search(&number).is_ok()) && segment.ecn != Ecn::NotEct {
            segment.ecn = Ecn::Ce;
        }
        let end = self.transmit(now, segment.len);
        let path = &self.case.path;
        let late = path.late.binary_search_by_key(&number, |(number, _)| *number);
        let late = late.map_or(Span::ZERO, |place| path.late[place].1);
        self.push(end + path.delay + late, Packet::Data(segment));
    }
}
