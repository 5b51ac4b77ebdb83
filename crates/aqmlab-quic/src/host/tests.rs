//! A stack that panics, and streams of one connection.

use std::time::Instant;

use super::*;

/// A stack that panics on its first packet.
struct Broken;

impl Stack for Broken {
    fn new(_: &QuicParams, _: Option<&Own>, _: &EndpointSetup, _: bool) -> Self {
        Broken
    }
    fn connect(&mut self, _: Instant) -> Result<(), String> {
        Ok(())
    }
    fn handle(&mut self, _: Instant, _: Ecn, data: BytesMut, _: &mut Vec<u8>) -> Option<Datagrams> {
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
    fn send_datagram(&mut self, _: Bytes) -> Result<(), String> {
        Ok(())
    }
    fn datagram(&mut self) -> Option<Bytes> {
        None
    }
    fn close(&mut self, _: Instant) {}
    fn counts(&mut self) -> Stats {
        Stats::default()
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

/// A lost packet delays the data of its own stream only.
fn streams_do_not_wait_for_each_other<S: Stack + 'static>() {
    let setup = EndpointSetup { size: Some(0), is_open: true, ..EndpointSetup::default() };
    let ends = Host::<S>::pair(&QuicParams::default(), None, &setup);
    let [(mut client, mut at_server), (mut server, mut at_client)] = ends;
    let now = Time::from_nanos(1);
    let to = |packet: Outgoing| {
        let Outgoing { payload, size, ecn } = packet;
        Incoming { payload, size, ecn }
    };
    client.open(now);
    let mut last = 1;
    while std::mem::take(&mut last) > 0 {
        while let Some(packet) = client.poll(now) {
            last += 1;
            at_server.on_packet(now, to(packet));
        }
        while let Some(packet) = server.poll(now) {
            last += 1;
            at_client.on_packet(now, to(packet));
        }
    }
    assert!(client.is_connected() && server.is_connected());
    server.supply(1000);
    assert!(server.poll(now).is_some_and(|lost| lost.size > 1000));
    server.supply(700);
    while let Some(packet) = server.poll(now) {
        at_client.on_packet(now, to(packet));
    }
    assert_eq!([0, 1, 2].map(|index| at_client.arrived_of(index)), [Some(0), Some(700), Some(0)]);
    assert_eq!(at_client.received(), 700);
}

#[test]
fn streams_are_independent() {
    streams_do_not_wait_for_each_other::<crate::noq::Noq>();
    streams_do_not_wait_for_each_other::<crate::quinn::Quinn>();
}
