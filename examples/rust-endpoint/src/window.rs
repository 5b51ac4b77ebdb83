//! A transport with a window, which grows by a packet a round trip and is halved once for the
//! losses of one. Each packet is acknowledged; what three later ones overtook is sent again.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_core::{Component, Ecn, Span, Time, params};
use aqmlab_sim::endpoints::{
    BoxedEnds, Endpoint, EndpointParams, EndpointSetup, Incoming, Message, Outgoing, Sink, Source,
};

params! {
    /// Parameters of the window.
    pub struct WindowParams {
        /// Packets by which it grows in a round trip.
        gain: f64 = 1.0, in 0.0 => 100.0, source "this example";
    }
}

impl Component for WindowParams {
    const NAME: &'static str = "window";
    const SUMMARY: &'static str = "a window that grows by packets and halves for losses";
}

impl EndpointParams for WindowParams {
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds {
        let (params, goal) = (self.clone(), setup.size.unwrap_or(u64::MAX));
        let sender =
            Sender { params, setup: setup.clone(), goal, window: 4.0, ..Sender::default() };
        (Box::new(sender), Box::new(Receiver { header: setup.header, ..Receiver::default() }))
    }
}

fn message(numbers: [u64; 3]) -> Message {
    numbers.map(u64::to_le_bytes).concat().into()
}

fn numbers(message: &Message) -> [u64; 3] {
    [0, 8, 16].map(|at| message[at..at + 8].try_into().map_or(0, u64::from_le_bytes))
}

/// Data: the first byte, the length, the packet that carried them last, and whether that is lost.
#[derive(Clone)]
struct Flight(u64, u32, u64, bool);

#[derive(Clone, Default)]
pub struct Sender {
    params: WindowParams,
    setup: EndpointSetup,
    /// Bytes to send, bytes sent at least once, and bytes delivered.
    goal: u64,
    sent: u64,
    acked: u64,
    window: f64,
    flights: VecDeque<Flight>,
    /// The next packet; the window has shrunk for losses before `answered`.
    next: u64,
    answered: u64,
    rtt: Span,
    since: Time,
}

impl Endpoint for Sender {
    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        let under_way = self.flights.iter().filter(|flight| !flight.3).count();
        let has_room = (under_way as f64) < self.window.max(1.0);
        if has_room && under_way == self.flights.len() && self.sent < self.goal {
            let length = (self.goal - self.sent).min(u64::from(self.setup.mss)) as u32;
            self.flights.push_back(Flight(self.sent, length, 0, true));
            self.sent += u64::from(length);
        }
        let mut lost = self.flights.iter_mut().filter(|flight| has_room && flight.3);
        let Flight(byte, length, packet, is_lost) = lost.next()?;
        (*packet, *is_lost) = (self.next, false);
        (self.next, self.since) = (self.next + 1, now);
        let payload = message([*byte, *packet, now.as_nanos()]);
        Some(Outgoing { payload, size: self.setup.header + *length, ecn: Ecn::NotEct })
    }
    fn on_packet(&mut self, now: Time, packet: Incoming) {
        let [acked, arrived, sent] = numbers(&packet.payload);
        self.acked = self.acked.max(acked);
        self.rtt = (now - Time::from_nanos(sent)).max(self.rtt * 7 / 8);
        self.window += self.params.gain / self.window.max(1.0);
        self.flights.retain(|flight| flight.0 >= acked && flight.2 != arrived);
        for Flight(.., packet, is_lost) in &mut self.flights {
            let is_new = *packet + 3 <= arrived && !std::mem::replace(is_lost, true);
            if is_new && *packet >= self.answered {
                self.window /= 2.0;
                self.answered = self.next;
            }
        }
        self.since = now;
    }
    fn deadline(&self) -> Option<Time> {
        let is_waiting = !self.flights.is_empty();
        is_waiting.then(|| self.since + self.rtt * 4 + Span::from_millis(200))
    }
    fn on_deadline(&mut self, now: Time) {
        (self.since, self.window, self.answered) = (now, 1.0, self.next);
        self.flights.iter_mut().for_each(|flight| flight.3 = true);
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("window_packets", self.window);
    }
}

impl Source for Sender {
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
        self.acked >= self.goal
    }
}

#[derive(Clone, Default)]
pub struct Receiver {
    header: u32,
    received: u64,
    beyond: BTreeMap<u64, u64>,
    answer: Option<[u64; 3]>,
}

impl Endpoint for Receiver {
    fn poll(&mut self, _now: Time) -> Option<Outgoing> {
        let payload = message(self.answer.take()?);
        Some(Outgoing { payload, size: self.header, ecn: Ecn::NotEct })
    }
    fn on_packet(&mut self, _now: Time, packet: Incoming) {
        let [byte, number, sent] = numbers(&packet.payload);
        self.beyond.insert(byte, byte + u64::from(packet.size - self.header));
        while let Some(first) = self.beyond.first_entry().filter(|e| *e.key() <= self.received) {
            self.received = self.received.max(first.remove());
        }
        self.answer = Some([self.received, number, sent]);
    }
}

impl Sink for Receiver {
    fn received(&self) -> u64 {
        self.received
    }
    fn arrived(&self) -> u64 {
        self.received + self.beyond.iter().map(|(start, end)| end - start).sum::<u64>()
    }
}
