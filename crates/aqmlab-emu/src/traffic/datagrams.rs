//! Datagrams: a constant bit rate, and probes that are sent back.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use aqmlab_core::{Sampler, Span, Time};
use aqmlab_sim::workload::cbr::CbrParams;
use aqmlab_sim::workload::probe::ProbeParams;

use super::play::{End, Stage};
use crate::sys::tcp::set_class;

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u32 = 28;
/// What a datagram begins with: its flow, when it was sent, and when the probe
/// was that it answers; and whether it wants an answer (the flow of that, or
/// the largest number).
const HEAD: usize = 32;
const NO_ANSWER: u64 = u64::MAX;

/// Receives at the receiver's host, and sends probes back.
pub fn serve(stage: &Arc<Stage>, group: usize) -> io::Result<()> {
    stage.enter(group, End::Receiver)?;
    let socket = UdpSocket::bind(stage.address(group, End::Receiver))?;
    set_class(&socket, stage.group(group).class.0)?;
    stage.spawn(move |stage| {
        let mut bytes = [0; 65_536];
        loop {
            let (size, from) = socket.recv_from(&mut bytes)?;
            let now = stage.now();
            let Some([flow, sent, _, back]) = words(&bytes[..size]) else { continue };
            let wire = size as u32 + HEADERS;
            stage.books().datagram(
                group,
                flow as usize,
                wire,
                now,
                Time::from_nanos(sent),
                stage.is_warm(),
            );
            if back != NO_ANSWER {
                fill(&mut bytes, [back, now.as_nanos(), sent, NO_ANSWER]);
                stage.books().datagram_sent(back as usize, wire);
                let _ = socket.send_to(&bytes[..size], from);
            }
        }
    });
    Ok(())
}

fn words(bytes: &[u8]) -> Option<[u64; 4]> {
    let head: &[u8; HEAD] = bytes.first_chunk()?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
    Some([word(0), word(8), word(16), word(24)])
}

fn fill(bytes: &mut [u8], words: [u64; 4]) {
    bytes[..HEAD].copy_from_slice(&words.map(u64::to_le_bytes).concat());
}

/// A socket at the sender's host, and the bytes of its datagrams.
fn socket(stage: &Stage, group: usize, packet: u64) -> io::Result<(UdpSocket, Vec<u8>)> {
    stage.enter(group, End::Sender)?;
    let own = (*stage.address(group, End::Sender).ip(), 0);
    let socket = UdpSocket::bind(own)?;
    socket.connect(stage.address(group, End::Receiver))?;
    set_class(&socket, stage.group(group).class.0)?;
    let size = (packet as usize).saturating_sub(HEADERS as usize).max(HEAD);
    Ok((socket, vec![0; size]))
}

/// Datagrams at a constant rate.
pub fn cbr(stage: &Arc<Stage>, group: usize, member: usize, params: &CbrParams) -> io::Result<()> {
    let (socket, mut bytes) = socket(stage, group, params.packet.get())?;
    let name = format!("flows.{}.{member}.workload.gap", stage.group(group).name);
    let mut gaps = stage.stream(&name);
    let start = stage.now();
    let flow = stage.books().open_datagrams(group, start);
    let wire = bytes.len() as u32 + HEADERS;
    let gap = f64::from(wire) * 8.0 / params.rate.as_bps() as f64;
    let mut due = 0.0;
    loop {
        let time = start + Span::from_secs_f64(due);
        if time >= stage.end {
            return Ok(());
        }
        stage.sleep_until(time);
        fill(&mut bytes, [flow as u64, stage.now().as_nanos(), 0, NO_ANSWER]);
        stage.books().datagram_sent(flow, wire);
        let _ = socket.send(&bytes);
        due += gap * (1.0 + params.vary * (2.0 * gaps.uniform() - 1.0));
    }
}

/// Datagrams that are sent back at once.
pub fn probe(
    stage: &Arc<Stage>,
    group: usize,
    member: usize,
    params: &ProbeParams,
) -> io::Result<()> {
    let (socket, mut bytes) = socket(stage, group, params.packet.get())?;
    let name = format!("flows.{}.{member}.workload.gap", stage.group(group).name);
    let mut gaps = Sampler::new(&params.gap, stage.stream(&name));
    let start = stage.now();
    let (there, back) = {
        let mut books = stage.books();
        (books.open_datagrams(group, start), books.open_datagrams(group, start))
    };
    let wire = bytes.len() as u32 + HEADERS;
    let answers = socket.try_clone()?;
    stage.spawn(move |stage| hear(stage, group, &answers));
    let mut next = start;
    loop {
        next += gaps.draw();
        if next >= stage.end {
            return Ok(());
        }
        stage.sleep_until(next);
        let words = [there as u64, stage.now().as_nanos(), 0, back as u64];
        fill(&mut bytes, words);
        {
            let mut books = stage.books();
            books.groups[group].started += 1;
            books.datagram_sent(there, wire);
        }
        let _ = socket.send(&bytes);
    }
}

/// Receives the answers to probes.
fn hear(stage: &Stage, group: usize, socket: &UdpSocket) -> io::Result<()> {
    let mut bytes = [0; 65_536];
    loop {
        let size = socket.recv(&mut bytes)?;
        let now = stage.now();
        let Some([flow, sent, asked, _]) = words(&bytes[..size]) else { continue };
        let wire = size as u32 + HEADERS;
        let mut books = stage.books();
        books.datagram(group, flow as usize, wire, now, Time::from_nanos(sent), stage.is_warm());
        books.note(group, "rtt", now - Time::from_nanos(asked));
        books.groups[group].completed += 1;
        books.groups[group].bytes += u64::from(wire);
    }
}
