//! One end of a connection as an endpoint of the simulator.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aqmlab_core::{Ecn, ParamType, Time};
use aqmlab_sim::endpoints::{
    BoxedEnds, Endpoint, EndpointSetup, Incoming, Message, MessageSink, MessageSource, Outgoing,
    Sink, Source,
};
use aqmlab_tcp::Stats;
use bytes::{Bytes, BytesMut};

use crate::clock::{instant, time};
use crate::own::Own;
use crate::params::QuicParams;
use crate::stack::{Datagrams, Event, Stack};

/// Bytes that QUIC adds to a datagram: flags, connection ID, packet number, type and length of the
/// frame, tag (RFC 9000, section 17.3.1; RFC 9221, section 4).
const OVERHEAD: u32 = 1 + 8 + 2 + 3 + 16;

/// The data of all streams.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Unidirectional stream to the peer, until its end is sent.
struct Outbound {
    /// `None` until the peer allows one more stream.
    id: Option<u64>,
    /// Bytes to write; `u64::MAX` without end.
    left: u64,
    /// True if nothing more is supplied.
    is_complete: bool,
}

/// Unidirectional stream of the peer.
#[derive(Clone, Copy, Default)]
struct Inbound {
    id: u64,
    received: u64,
    has_ended: bool,
}

/// One end. In a connection with data in both directions, each supply of data has a stream of its
/// own, and an empty stream marks the end. Otherwise all data is one stream.
pub struct Host<S> {
    stack: S,
    /// Library and controller, for messages.
    name: String,
    now: Time,
    has_panicked: bool,
    header: u32,
    uses_ecn: bool,
    outbox: VecDeque<(Message, Ecn)>,
    buffer: Vec<u8>,
    deadline: Option<Time>,
    counts: Stats,
    is_client: bool,
    /// Both ends have data.
    is_duplex: bool,
    is_connected: bool,
    failure: Option<String>,
    /// Streams to write, in order.
    outbound: Vec<Outbound>,
    /// Streams opened whose end the peer has not acknowledged.
    unacknowledged: u64,
    written: u64,
    /// All data has been supplied.
    is_complete: bool,
    /// The connection was closed at this end.
    is_closing: bool,
    /// Streams of the peer, in order.
    inbound: Vec<Inbound>,
    /// Number of them that have been read to their end.
    ended: usize,
    received: u64,
    /// Datagrams to send when the connection is open.
    datagrams: Vec<Bytes>,
}

impl<S: Stack + 'static> Host<S> {
    /// Makes both ends of a flow: the client has its data.
    pub fn ends(params: &QuicParams, own: Option<&Own>, setup: &EndpointSetup) -> BoxedEnds {
        let [client, server] =
            [true, false].map(|is_client| Self::new(params, own, setup, is_client));
        (Box::new(client), Box::new(server))
    }

    /// Makes the ends of a connection with data in both directions.
    pub fn pair(params: &QuicParams, own: Option<&Own>, setup: &EndpointSetup) -> [BoxedEnds; 2] {
        let [client, server] = [true, false].map(|is_client| {
            let mut host = Self::new(params, own, setup, is_client);
            host.is_duplex = true;
            Arc::new(Mutex::new(host))
        });
        [(&client, &server), (&server, &client)].map(|(from, to)| -> BoxedEnds {
            (Box::new(Sending(Arc::clone(from))), Box::new(Receiving(Arc::clone(to))))
        })
    }
}

impl<S: Stack> Host<S> {
    fn new(params: &QuicParams, own: Option<&Own>, setup: &EndpointSetup, is_client: bool) -> Self {
        let is_complete = is_client && setup.size.is_some() && !setup.is_open;
        let left = if is_client { setup.size.unwrap_or(u64::MAX) } else { 0 };
        let first = Outbound { id: None, left, is_complete };
        Host {
            name: match own {
                Some(own) => own.name().to_string(),
                None => format!("{}:{}", params.stack.to_text(), params.controller.to_text()),
            },
            now: Time::ZERO,
            has_panicked: false,
            stack: S::new(params, own, setup, is_client),
            header: params.header.get() as u32,
            uses_ecn: params.ecn,
            outbox: VecDeque::new(),
            buffer: Vec::new(),
            deadline: None,
            counts: Stats::default(),
            is_client,
            is_duplex: false,
            is_connected: false,
            failure: None,
            outbound: (left > 0 || is_complete).then_some(first).into_iter().collect(),
            unacknowledged: 0,
            written: 0,
            is_complete,
            is_closing: false,
            inbound: Vec::new(),
            ended: 0,
            received: 0,
            datagrams: Vec::new(),
        }
    }

    /// Cuts a batch into its datagrams.
    fn enqueue(&mut self, batch: Datagrams) {
        let ecn = if self.uses_ecn { batch.ecn } else { Ecn::NotEct };
        for datagram in self.buffer[..batch.size].chunks(batch.segment) {
            self.outbox.push_back((datagram.into(), ecn));
        }
    }

    /// Makes the next datagrams.
    fn transmit(&mut self) {
        self.buffer.clear();
        match self.stack.transmit(instant(self.now), &mut self.buffer) {
            Some(batch) => self.enqueue(batch),
            // Polled last after every call: the timers are those of the state reached. A timer of a
            // connection that was not polled when it expired is due now.
            None => self.deadline = self.stack.timeout().map(|at| time(at).max(self.now)),
        }
    }

    fn handle(&mut self, packet: Incoming) {
        self.buffer.clear();
        let data = BytesMut::from(Bytes::from(packet.payload));
        let answer = self.stack.handle(instant(self.now), packet.ecn, data, &mut self.buffer);
        if let Some(batch) = answer {
            self.enqueue(batch);
        }
        self.settle(self.now);
        if self.written > 0 {
            self.counts = self.stack.counts();
        }
    }

    /// Handles the events of the connection, and writes as much as it accepts.
    fn settle(&mut self, now: Time) {
        while let Some(event) = self.stack.event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Lost(reason) => self.fail(now, &reason),
                Event::Opened => self.accept(now),
                Event::Readable(id) => {
                    if let Ok(place) = self.inbound.binary_search_by_key(&id, |each| each.id) {
                        self.read(place, now);
                    }
                }
                Event::Finished => self.unacknowledged -= 1,
                Event::Writable | Event::Other => {}
            }
        }
        self.write();
        let is_done = self.is_finished() && (self.is_read() || !self.is_duplex);
        if is_done && self.is_client && !self.is_closing {
            self.is_closing = true;
            self.stack.close(instant(now));
        }
    }

    /// Calls the stack. A panic of the library or its controller fails the connection, not the run:
    /// the stack is not called again.
    fn guarded<T: Default>(&mut self, now: Time, call: impl FnOnce(&mut Self) -> T) -> T {
        self.now = now;
        if self.has_panicked {
            return T::default();
        }
        catch_unwind(AssertUnwindSafe(|| call(self))).unwrap_or_else(|panic| {
            self.has_panicked = true;
            self.outbox.clear();
            self.deadline = None;
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            self.fail(now, &format!("panic: {}", text.unwrap_or("no message")));
            T::default()
        })
    }

    /// Keeps the first reason.
    fn fail(&mut self, now: Time, reason: &str) {
        let reason = || format!("{}: `{reason}` at {:.6} s", self.name, now.as_secs_f64());
        self.failure.get_or_insert_with(reason);
    }

    /// Takes new streams of the peer.
    fn accept(&mut self, now: Time) {
        while let Some(id) = self.stack.accept() {
            self.inbound.push(Inbound { id, ..Inbound::default() });
            self.read(self.inbound.len() - 1, now);
        }
    }

    fn read(&mut self, place: usize, now: Time) {
        let stream = &mut self.inbound[place];
        match self.stack.read(stream.id) {
            Ok((bytes, is_end)) => {
                stream.received += bytes;
                self.received += bytes;
                self.ended += usize::from(is_end && !stream.has_ended);
                stream.has_ended |= is_end;
            }
            Err(reason) => self.fail(now, &reason),
        }
    }

    /// True if all data of the peer has been read, in a connection with data in both directions.
    fn is_read(&self) -> bool {
        let last = self.inbound.last();
        self.ended == self.inbound.len() && last.is_some_and(|each| each.received == 0)
    }

    /// Writes as much as the connection accepts, and the ends of complete streams.
    fn write(&mut self) {
        if !self.is_connected || self.failure.is_some() {
            return;
        }
        for datagram in std::mem::take(&mut self.datagrams) {
            let size = datagram.len();
            if let Err(reason) = self.stack.send_datagram(datagram) {
                self.fail(self.now, &format!("a datagram of {size} bytes: {reason}"));
            }
        }
        let (mut place, mut is_allowed) = (0, true);
        while place < self.outbound.len() {
            let stream = &mut self.outbound[place];
            if stream.id.is_none() && is_allowed {
                stream.id = self.stack.open();
                is_allowed = stream.id.is_some();
                self.unacknowledged += u64::from(is_allowed);
            }
            let Some(id) = stream.id else { return };
            while stream.left > 0 {
                let length = stream.left.min(ZEROS.len() as u64) as usize;
                let taken = self.stack.write(id, Bytes::from_static(&ZEROS[..length]));
                if taken == 0 {
                    break;
                }
                stream.left -= taken as u64;
                self.written += taken as u64;
            }
            if stream.left == 0 && stream.is_complete && self.stack.finish(id) {
                self.outbound.remove(place);
            } else {
                place += 1;
            }
        }
    }

    /// Adds a stream.
    fn add(&mut self, left: u64, is_complete: bool) {
        self.outbound.push(Outbound { id: None, left, is_complete });
    }
}

impl<S: Stack> Endpoint for Host<S> {
    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        if self.outbox.is_empty() {
            self.guarded(now, Self::transmit);
        }
        let (payload, ecn) = self.outbox.pop_front()?;
        let size = self.header + payload.len() as u32;
        Some(Outgoing { payload, size, ecn })
    }

    fn on_packet(&mut self, now: Time, packet: Incoming) {
        self.guarded(now, |host| host.handle(packet));
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn on_deadline(&mut self, now: Time) {
        self.guarded(now, |host| {
            host.stack.on_timeout(instant(now));
            host.settle(now);
        });
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.stack.observe(see);
    }
}

impl<S: Stack> Source for Host<S> {
    fn open(&mut self, now: Time) {
        self.guarded(now, |host| {
            if host.is_client
                && let Err(reason) = host.stack.connect(instant(now))
            {
                host.fail(now, &reason);
            }
            host.settle(now);
        });
    }
    fn supply(&mut self, bytes: u64) {
        match self.outbound.last_mut().filter(|_| !self.is_duplex) {
            Some(stream) => stream.left = stream.left.saturating_add(bytes),
            None => self.add(bytes, self.is_duplex),
        }
        self.guarded(self.now, Self::write);
    }
    fn finish(&mut self) {
        self.is_complete = true;
        match self.outbound.last_mut().filter(|_| !self.is_duplex) {
            Some(stream) => stream.is_complete = true,
            None => self.add(0, true),
        }
        self.guarded(self.now, Self::write);
    }
    fn post(&mut self, now: Time, content: &[u8], size: u32) {
        let length = (size.saturating_sub(self.header + OVERHEAD) as usize).max(content.len());
        let mut datagram = BytesMut::zeroed(length);
        datagram[..content.len()].copy_from_slice(content);
        self.datagrams.push(datagram.freeze());
        self.guarded(now, Self::write);
    }
    fn cut(&mut self) -> u64 {
        self.outbound.iter_mut().for_each(|stream| stream.left = 0);
        self.written
    }
    fn sent(&self) -> u64 {
        self.written
    }
    fn is_finished(&self) -> bool {
        self.is_complete && self.outbound.is_empty() && self.unacknowledged == 0
    }
    fn is_connected(&self) -> bool {
        self.is_connected
    }
    fn stats(&self) -> Option<Stats> {
        Some(self.counts)
    }
    fn failure(&self) -> Option<String> {
        self.failure.clone().filter(|_| !self.is_finished())
    }
}

impl<S: Stack> Sink for Host<S> {
    fn received(&self) -> u64 {
        self.received
    }
    fn arrived(&self) -> u64 {
        self.received
    }
    fn arrived_of(&self, index: u64) -> Option<u64> {
        self.is_duplex.then(|| self.inbound.get(index as usize).map_or(0, |each| each.received))
    }
    fn take(&mut self) -> Option<Message> {
        self.guarded(self.now, |host| host.stack.datagram()).map(|bytes| bytes.to_vec().into())
    }
}

/// A host as the source of the flow that carries its packets. The host is also the sink of the
/// flow back; a run uses both from one thread.
struct Sending<S>(Arc<Mutex<Host<S>>>);

/// A host as the sink of the flow that carries the packets of its peer.
struct Receiving<S>(Arc<Mutex<Host<S>>>);

fn locked<S>(host: &Mutex<Host<S>>) -> MutexGuard<'_, Host<S>> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Implements traits of an end by calls of its host.
macro_rules! by_host {
    ($($Trait:ident for $End:ident {
        $(fn $method:ident($this:ident: $This:ty $(, $arg:ident: $Type:ty)*) $(-> $Answer:ty)?;)+
    })+) => { $(
        impl<S: Stack> $Trait for $End<S> {
            $(fn $method($this: $This $(, $arg: $Type)*) $(-> $Answer)? {
                locked(&$this.0).$method($($arg),*)
            })+
        }
    )+ };
}
by_host! {
    Endpoint for Sending {
        fn poll(self: &mut Self, now: Time) -> Option<Outgoing>;
        fn on_packet(self: &mut Self, now: Time, packet: Incoming);
        fn deadline(self: &Self) -> Option<Time>;
        fn on_deadline(self: &mut Self, now: Time);
        fn observe(self: &Self, see: &mut dyn FnMut(&'static str, f64));
    }
    Source for Sending {
        fn open(self: &mut Self, now: Time);
        fn supply(self: &mut Self, bytes: u64);
        fn finish(self: &mut Self);
        fn cut(self: &mut Self) -> u64;
        fn sent(self: &Self) -> u64;
        fn is_finished(self: &Self) -> bool;
        fn is_connected(self: &Self) -> bool;
        fn stats(self: &Self) -> Option<Stats>;
        fn failure(self: &Self) -> Option<String>;
    }
    Sink for Receiving {
        fn received(self: &Self) -> u64;
        fn arrived(self: &Self) -> u64;
        fn arrived_of(self: &Self, index: u64) -> Option<u64>;
    }
}

impl<S: Stack> Endpoint for Receiving<S> {
    fn poll(&mut self, _now: Time) -> Option<Outgoing> {
        None
    }
    fn on_packet(&mut self, now: Time, packet: Incoming) {
        locked(&self.0).on_packet(now, packet);
    }
}

/// A connection of the library cannot be copied, and with it no end.
macro_rules! not_copied {
    ($($Trait:ident for $End:ident),+) => { $( impl<S: Stack> $Trait for $End<S> {
        fn boxed_clone(&self) -> Option<Box<dyn $Trait>> {
            None
        }
    } )+ };
}
not_copied!(
    MessageSource for Host,
    MessageSink for Host,
    MessageSource for Sending,
    MessageSink for Receiving
);

#[cfg(test)]
mod tests;
