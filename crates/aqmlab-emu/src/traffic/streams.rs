//! Connections that carry data one way, from the sender's host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use aqmlab_core::{Bytes, Sampler, Time};
use aqmlab_sim::workload::transfers::{Timing, TransfersParams};

use super::play::{End, Stage};
use crate::sys;
use crate::sys::tcp::set_class;

/// Bytes that are written or read at once.
const CHUNK: usize = 128 << 10;
/// What a connection begins with: the number of its flow, and how many bytes
/// will come.
const HEAD: u64 = 16;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Listens at the receiver's host, and reads what comes there.
pub fn serve(stage: &Arc<Stage>, group: usize) -> io::Result<()> {
    stage.enter(group, End::Receiver)?;
    let listener = TcpListener::bind(stage.address(group, End::Receiver))?;
    stage.spawn(move |stage| {
        loop {
            let (stream, _) = listener.accept()?;
            stage.spawn(move |stage| receive(stage, stream));
        }
    });
    Ok(())
}

/// Reads a connection to its end, and notes when all has come.
fn receive(stage: &Stage, mut stream: TcpStream) -> io::Result<()> {
    let mut head = [0; HEAD as usize];
    stream.read_exact(&mut head)?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
    let (flow, size) = (word(0), word(8));
    let mut bytes = vec![0; CHUNK];
    let mut left = size.saturating_sub(HEAD);
    while left > 0 {
        let most = (CHUNK as u64).min(left) as usize;
        match stream.read(&mut bytes[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read as u64,
        }
    }
    let now = stage.now();
    stage.books().arrived(flow as usize, now);
    // The sender closes first: it sees that all is acknowledged.
    stream.shutdown(Shutdown::Write)?;
    let _ = stream.read(&mut bytes);
    Ok(())
}

/// Opens a connection of a group from one of its hosts to the other.
pub fn connect(stage: &Stage, group: usize, from: End) -> io::Result<TcpStream> {
    let to = if from == End::Sender { End::Receiver } else { End::Sender };
    stage.enter(group, from)?;
    let stream = sys::tcp::connect(stage.address(group, to), stage.control(group))?;
    prepare(stage, group, &stream)?;
    Ok(stream)
}

/// What is set at both ends of a connection.
pub fn prepare(stage: &Stage, group: usize, stream: &TcpStream) -> io::Result<()> {
    set_class(stream, stage.group(group).class.0)?;
    stream.set_nodelay(true)
}

/// A bulk flow: so many bytes, or without end.
pub fn bulk(stage: &Arc<Stage>, group: usize, size: Option<Bytes>) -> io::Result<()> {
    stage.books().groups[group].started += 1;
    transfer(stage, group, size.map(Bytes::get), false, None)
}

/// Sends over a connection of its own, until all is acknowledged.
fn transfer(
    stage: &Arc<Stage>,
    group: usize,
    size: Option<u64>,
    tells_startup: bool,
    told: Option<Sender<()>>,
) -> io::Result<()> {
    let start = stage.now();
    let size = size.map(|size| size.max(HEAD));
    let stream = Arc::new(connect(stage, group, End::Sender)?);
    let flow = {
        let mut books = stage.books();
        if tells_startup {
            books.note(group, "startup", stage.now() - start);
        }
        books.open(group, start, size, Arc::clone(&stream), told)
    };
    let mut writer = &*stream;
    let head = [(flow as u64).to_le_bytes(), size.unwrap_or(u64::MAX).to_le_bytes()].concat();
    writer.write_all(&head)?;
    let mut left = size.unwrap_or(u64::MAX) - HEAD;
    while left > 0 {
        let most = (CHUNK as u64).min(left) as usize;
        left -= writer.write(&ZEROS[..most])? as u64;
    }
    // The receiver ends its side when it has everything.
    while (&*stream).read(&mut [0; 16])? > 0 {}
    let now = stage.now();
    stage.books().finished(flow, now);
    Ok(())
}

/// Flows that come and go.
pub fn transfers(
    stage: &Arc<Stage>,
    group: usize,
    member: usize,
    params: &TransfersParams,
) -> io::Result<()> {
    let name = format!("flows.{}.{member}.workload", stage.group(group).name);
    let mut sizes = Sampler::new(&params.size, stage.stream(&format!("{name}.size")));
    let mut gaps = Sampler::new(&params.gap, stage.stream(&format!("{name}.gap")));
    let (told, ended) = channel();
    let mut next: Time = stage.now() + gaps.draw();
    let mut left = params.number.unwrap_or(u64::MAX);
    let mut under_way = 0;
    while left > 0 {
        stage.sleep_until(next.min(stage.end));
        if stage.now() >= stage.end {
            return Ok(());
        }
        left -= 1;
        under_way += 1;
        let size = sizes.draw().get().max(1);
        stage.books().groups[group].started += 1;
        let told = told.clone();
        stage.spawn(move |stage| transfer(stage, group, Some(size), true, Some(told)));
        match params.timing {
            Timing::Open => next += gaps.draw(),
            Timing::Closed => {
                ended.recv().map_err(io::Error::other)?;
                under_way -= 1;
                next = stage.now() + gaps.draw();
            }
        }
    }
    for _ in 0..under_way {
        ended.recv().map_err(io::Error::other)?;
    }
    Ok(())
}
