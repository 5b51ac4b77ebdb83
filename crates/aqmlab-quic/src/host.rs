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
use crate::stack::{Counts, Datagrams, Event, Stack};

/// The data of all streams.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// One end. Each end sends its data on one unidirectional stream.
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
    counts: Counts,
    is_client: bool,
    /// Both ends have data.
    is_duplex: bool,
    is_connected: bool,
    failure: Option<String>,
    /// Stream of this end's data.
    stream: Option<u64>,
    /// Bytes to send; `u64::MAX` without end.
    goal: u64,
    written: u64,
    /// True if `goal` is final.
    is_complete: bool,
    /// The stream has its end.
    is_closed: bool,
    /// The peer has all data and the end of the stream.
    is_acknowledged: bool,
    /// The connection was closed at this end.
    is_closing: bool,
    /// Stream of the peer's data.
    incoming: Option<u64>,
    received: u64,
    /// The peer's stream has been read to its end.
    is_read: bool,
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
        Host {
            name: match own {
                Some(own) => own.name().to_string(),
                None => format!("{}:{}", params.stack.to_text(), params.controller.to_text()),
            },
            now: Time::ZERO,
            has_panicked: false,
            stack: S::new(params, own, setup.seed, is_client),
            header: params.header.get() as u32,
            uses_ecn: params.ecn,
            outbox: VecDeque::new(),
            buffer: Vec::new(),
            deadline: None,
            counts: Counts::default(),
            is_client,
            is_duplex: false,
            is_connected: false,
            failure: None,
            stream: None,
            goal: if is_client { setup.size.unwrap_or(u64::MAX) } else { 0 },
            written: 0,
            is_complete,
            is_closed: false,
            is_acknowledged: false,
            is_closing: false,
            incoming: None,
            received: 0,
            is_read: false,
        }
    }

    /// Cuts a batch into its datagrams.
    fn post(&mut self, batch: Datagrams) {
        let ecn = if self.uses_ecn { batch.ecn } else { Ecn::NotEct };
        for datagram in self.buffer[..batch.size].chunks(batch.segment) {
            self.outbox.push_back((datagram.into(), ecn));
        }
    }

    /// Makes the next datagrams.
    fn transmit(&mut self) {
        self.buffer.clear();
        match self.stack.transmit(instant(self.now), &mut self.buffer) {
            Some(batch) => self.post(batch),
            // Polled last after every call: the timers are those of the state reached.
            None => self.deadline = self.stack.timeout().map(time),
        }
    }

    fn handle(&mut self, packet: Incoming) {
        self.buffer.clear();
        let data = BytesMut::from(Bytes::from(packet.payload));
        let answer = self.stack.handle(instant(self.now), packet.ecn, data, &mut self.buffer);
        if let Some(batch) = answer {
            self.post(batch);
        }
        self.settle(self.now);
        if self.stream.is_some() {
            self.counts = self.stack.counts();
        }
    }

    /// Handles the events of the connection, and writes as much as it accepts.
    fn settle(&mut self, now: Time) {
        while let Some(event) = self.stack.event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Lost(reason) => self.fail(now, &reason),
                Event::Readable => self.read(now),
                Event::Finished => self.is_acknowledged = true,
                Event::Writable | Event::Other => {}
            }
        }
        self.write();
        let is_done = self.is_acknowledged && (self.is_read || !self.is_duplex);
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

    fn read(&mut self, now: Time) {
        self.incoming = self.incoming.or_else(|| self.stack.accept());
        let Some(stream) = self.incoming else { return };
        match self.stack.read(stream) {
            Ok((bytes, is_end)) => {
                self.received += bytes;
                self.is_read |= is_end;
            }
            Err(reason) => self.fail(now, &reason),
        }
    }

    fn write(&mut self) {
        if !self.is_connected || self.is_closed || self.failure.is_some() {
            return;
        }
        if self.stream.is_none() && (self.goal > 0 || self.is_complete) {
            self.stream = self.stack.open();
        }
        let Some(stream) = self.stream else { return };
        while self.written < self.goal {
            let length = (self.goal - self.written).min(ZEROS.len() as u64) as usize;
            let taken = self.stack.write(stream, Bytes::from_static(&ZEROS[..length]));
            if taken == 0 {
                return;
            }
            self.written += taken as u64;
        }
        if self.is_complete {
            self.is_closed = self.stack.finish(stream);
        }
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
        self.goal = self.goal.saturating_add(bytes);
        self.guarded(self.now, Self::write);
    }
    fn finish(&mut self) {
        self.is_complete = true;
        self.guarded(self.now, Self::write);
    }
    fn cut(&mut self) -> u64 {
        self.goal = self.written;
        self.written
    }
    fn sent(&self) -> u64 {
        self.written
    }
    fn is_finished(&self) -> bool {
        self.is_acknowledged
    }
    fn is_connected(&self) -> bool {
        self.is_connected
    }
    fn stats(&self) -> Option<Stats> {
        let Counts { sent, lost, congestion_events, spurious } = self.counts;
        Some(Stats {
            segments_sent: sent,
            retransmissions: lost,
            undone: spurious,
            fast_retransmits: congestion_events,
            ..Stats::default()
        })
    }
    fn failure(&self) -> Option<String> {
        self.failure.clone().filter(|_| !self.is_acknowledged)
    }
}

impl<S: Stack> Sink for Host<S> {
    fn received(&self) -> u64 {
        self.received
    }
    fn arrived(&self) -> u64 {
        self.received
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

impl<S: Stack> Endpoint for Sending<S> {
    fn poll(&mut self, now: Time) -> Option<Outgoing> {
        locked(&self.0).poll(now)
    }
    fn on_packet(&mut self, now: Time, packet: Incoming) {
        locked(&self.0).on_packet(now, packet);
    }
    fn deadline(&self) -> Option<Time> {
        locked(&self.0).deadline()
    }
    fn on_deadline(&mut self, now: Time) {
        locked(&self.0).on_deadline(now);
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        locked(&self.0).observe(see);
    }
}

impl<S: Stack> Source for Sending<S> {
    fn open(&mut self, now: Time) {
        locked(&self.0).open(now);
    }
    fn supply(&mut self, bytes: u64) {
        locked(&self.0).supply(bytes);
    }
    fn finish(&mut self) {
        locked(&self.0).finish();
    }
    fn cut(&mut self) -> u64 {
        locked(&self.0).cut()
    }
    fn sent(&self) -> u64 {
        locked(&self.0).sent()
    }
    fn is_finished(&self) -> bool {
        locked(&self.0).is_finished()
    }
    fn is_connected(&self) -> bool {
        locked(&self.0).is_connected()
    }
    fn stats(&self) -> Option<Stats> {
        locked(&self.0).stats()
    }
    fn failure(&self) -> Option<String> {
        locked(&self.0).failure()
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

impl<S: Stack> Sink for Receiving<S> {
    fn received(&self) -> u64 {
        locked(&self.0).received()
    }
    fn arrived(&self) -> u64 {
        locked(&self.0).arrived()
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
mod tests {
    use std::time::Instant;

    use super::*;

    /// A stack that panics on its first packet.
    struct Broken;

    impl Stack for Broken {
        fn new(_: &QuicParams, _: Option<&Own>, _: u64, _: bool) -> Self {
            Broken
        }
        fn connect(&mut self, _: Instant) -> Result<(), String> {
            Ok(())
        }
        fn handle(
            &mut self,
            _: Instant,
            _: Ecn,
            data: BytesMut,
            _: &mut Vec<u8>,
        ) -> Option<Datagrams> {
            panic!("a packet of {} bytes", data.len())
        }
        fn transmit(&mut self, _: Instant, buffer: &mut Vec<u8>) -> Option<Datagrams> {
            buffer.resize(1200, 0);
            Some(Datagrams { size: 1200, segment: 1200, ecn: Ecn::Ect0 })
        }
        fn timeout(&mut self) -> Option<Instant> {
            Some(instant(Time::ZERO))
        }
        fn on_timeout(&mut self, _: Instant) {}
        fn event(&mut self) -> Option<Event> {
            None
        }
        fn open(&mut self) -> Option<u64> {
            None
        }
        fn accept(&mut self) -> Option<u64> {
            None
        }
        fn write(&mut self, _: u64, _: Bytes) -> usize {
            0
        }
        fn finish(&mut self, _: u64) -> bool {
            true
        }
        fn read(&mut self, _: u64) -> Result<(u64, bool), String> {
            Ok((0, false))
        }
        fn close(&mut self, _: Instant) {}
        fn counts(&mut self) -> Counts {
            Counts::default()
        }
        fn observe(&self, _: &mut dyn FnMut(&'static str, f64)) {}
    }

    #[test]
    fn a_panic_fails_the_connection_and_silences_the_stack() {
        let setup = EndpointSetup { size: Some(1), ..EndpointSetup::default() };
        let mut host = Host::<Broken>::new(&QuicParams::default(), None, &setup, true);
        host.open(Time::ZERO);
        let first = host.poll(Time::ZERO).expect("a datagram");
        assert_eq!((first.size, first.ecn), (1228, Ecn::Ect0));
        let now = Time::from_nanos(1_500_000_000);
        let packet = Incoming { payload: vec![0; 7].into(), size: 35, ecn: Ecn::NotEct };
        host.on_packet(now, packet);
        let failure = host.failure().expect("it failed");
        assert_eq!(failure, "noq:cubic: `panic: a packet of 7 bytes` at 1.500000 s");
        assert_eq!((host.poll(now), host.deadline()), (None, None));
        host.on_deadline(now);
        host.supply(1);
        assert_eq!(host.failure(), Some(failure));
    }
}
