//! A bulk transfer of a QUIC library over UDP sockets and the real clock, for comparison with the
//! simulator: the endpoint is the same, the network is not. `docs/quic.md` has the comparison.
//!
//! ```text
//! quic-transfer receive 0.0.0.0:4433 SECONDS
//! quic-transfer send ADDRESS:4433 SECONDS stack=quinn controller=cubic
//! ```
//!
//! Both print the bytes of data of each second. Sockets set no ECN codepoint.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use aqmlab_core::{AnyComponent, Ecn, Span, Time, Value};
use aqmlab_quic::QuicParams;
use aqmlab_sim::endpoints::{
    Endpoint, EndpointParams, EndpointSetup, Incoming, Outgoing, Sink, Source,
};

/// Longest sleep: datagrams are read so often.
const NAP: Duration = Duration::from_micros(100);
/// Bytes below QUIC: IPv4 and UDP.
const HEADER: u32 = 28;

/// Drives one end until `seconds` have passed since its first packet. `bytes` is its progress.
fn drive<E: Endpoint + ?Sized>(
    end: &mut E,
    socket: &UdpSocket,
    seconds: u64,
    bytes: impl Fn(&E) -> u64,
) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let time = || Time::from_nanos(start.elapsed().as_nanos() as u64);
    let (mut buffer, mut first, mut told, mut before) = ([0; 65_536], None, 0, 0);
    loop {
        let now = time();
        while let Some(Outgoing { payload, .. }) = end.poll(now) {
            first.get_or_insert(now);
            // A full socket buffer drops the datagram, as a queue does.
            let _ = socket.send(&payload);
        }
        while let Ok((size, peer)) = socket.recv_from(&mut buffer) {
            if first.is_none() {
                socket.connect(peer)?;
                first = Some(now);
            }
            let payload = buffer[..size].into();
            let packet = Incoming { payload, size: size as u32 + HEADER, ecn: Ecn::NotEct };
            end.on_packet(time(), packet);
        }
        if end.deadline().is_some_and(|deadline| deadline <= now) {
            end.on_deadline(now);
        }
        if let Some(first) = first
            && now >= first + Span::from_secs(told + 1)
        {
            let total = bytes(end);
            println!("{} {}", told, total - before);
            (told, before) = (told + 1, total);
            if told == seconds {
                return Ok(());
            }
        }
        std::thread::sleep(NAP);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, address, seconds, keys @ ..] = &words[..] else {
        return Err("usage: quic-transfer (send|receive) ADDRESS SECONDS [KEY=VALUE]...".into());
    };
    let mut params = QuicParams { ecn: false, ..QuicParams::default() };
    for (key, value) in keys.iter().filter_map(|each| each.split_once('=')) {
        AnyComponent::set(&mut params, key, &Value::from(value))?;
    }
    AnyComponent::check(&params)?;
    let is_sender = what == "send";
    let socket = UdpSocket::bind(if is_sender { "0.0.0.0:0" } else { address })?;
    socket.set_nonblocking(true)?;
    let setup = EndpointSetup { seed: 1, ..EndpointSetup::default() };
    let (mut source, mut sink) = params.build(&setup);
    if is_sender {
        socket.connect(address)?;
        source.open(Time::ZERO);
        drive(&mut *source, &socket, seconds.parse()?, Source::sent)
    } else {
        drive(&mut *sink, &socket, seconds.parse()?, Sink::received)
    }
}
