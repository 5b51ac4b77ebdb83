//! Requests and responses: the client stands where the receivers are.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use aqmlab_core::{Bytes, Sampler, Span, Stream, Time};
use aqmlab_sim::workload::requests::RequestsParams;

use super::play::{End, Stage};
use super::streams::{connect, prepare};
use crate::sys::tcp::set_control;

/// Bytes that a request has at least: how many come of it, the size of the
/// response, the delay before it, and when the connection was begun (or zero,
/// if that has been told).
const HEAD: usize = 32;
const CHUNK: usize = 128 << 10;

/// Listens at the sender's host, which has the servers.
pub fn serve(stage: &Arc<Stage>, group: usize) -> io::Result<()> {
    stage.enter(group, End::Sender)?;
    let listener = TcpListener::bind(stage.address(group, End::Sender))?;
    set_control(&listener, stage.control(group))?;
    stage.spawn(move |stage| {
        loop {
            let (stream, _) = listener.accept()?;
            stage.spawn(move |stage| answer(stage, group, stream));
        }
    });
    Ok(())
}

/// Answers the requests of a connection.
fn answer(stage: &Arc<Stage>, group: usize, stream: TcpStream) -> io::Result<()> {
    prepare(stage, group, &stream)?;
    let stream = Arc::new(stream);
    let start = stage.now();
    let flow = stage.books().open(group, start, None, Arc::clone(&stream), None);
    let mut bytes = vec![0; CHUNK];
    loop {
        let mut head = [0; HEAD];
        if (&*stream).read(&mut head[..1])? == 0 {
            let now = stage.now();
            stage.books().finished(flow, now);
            return Ok(());
        }
        (&*stream).read_exact(&mut head[1..])?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
        let (size, response, delay, opened) = (word(0), word(8), word(16), word(24));
        skip(&stream, size - HEAD as u64, &mut bytes)?;
        if delay > 0 {
            stage.sleep_until(stage.now() + Span::from_nanos(delay));
        }
        if opened > 0 {
            let startup = stage.now() - Time::from_nanos(opened);
            stage.books().note(group, "startup", startup);
        }
        bytes.fill(0);
        let mut left = response;
        while left > 0 {
            let most = (CHUNK as u64).min(left) as usize;
            left -= (&*stream).write(&bytes[..most])? as u64;
        }
    }
}

/// Reads so many bytes.
fn skip(mut stream: &TcpStream, bytes: u64, room: &mut [u8]) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let most = (room.len() as u64).min(left) as usize;
        match stream.read(&mut room[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read as u64,
        }
    }
    Ok(())
}

/// A client: one connection, or one after another.
pub fn member(
    stage: &Arc<Stage>,
    group: usize,
    member: usize,
    params: &RequestsParams,
) -> io::Result<()> {
    let name = format!("flows.{}.{member}", stage.group(group).name);
    let Some(gap) = &params.gap else {
        return Client::new(stage, group, &name, params).run(stage);
    };
    let mut gaps = Sampler::new(gap, stage.stream(&format!("{name}.workload.gap")));
    let mut next = stage.now() + gaps.draw();
    for number in 0..params.number.unwrap_or(u64::MAX) {
        stage.sleep_until(next.min(stage.end));
        if stage.now() >= stage.end {
            return Ok(());
        }
        let mut client = Client::new(stage, group, &format!("{name}.{number}"), params);
        stage.spawn(move |stage| client.run(stage));
        next += gaps.draw();
    }
    Ok(())
}

/// One connection of a client.
struct Client {
    group: usize,
    request: Sampler<Bytes>,
    response: Sampler<Bytes>,
    think: Sampler<Span>,
    delay: Sampler<Span>,
    left: u64,
}

impl Client {
    fn new(stage: &Stage, group: usize, name: &str, params: &RequestsParams) -> Self {
        let stream = |key: &str| -> Stream { stage.stream(&format!("{name}.workload.{key}")) };
        let left = params.requests.as_ref();
        let left = left.map(|number| Sampler::new(number, stream("requests")).draw().max(1));
        Client {
            group,
            request: Sampler::new(&params.request, stream("request")),
            response: Sampler::new(&params.response, stream("response")),
            think: Sampler::new(&params.think, stream("think")),
            delay: Sampler::new(&params.server_delay, stream("server_delay")),
            left: left.unwrap_or(u64::MAX),
        }
    }

    fn run(&mut self, stage: &Arc<Stage>) -> io::Result<()> {
        let opened = stage.now();
        let mut stream = connect(stage, self.group, End::Receiver)?;
        let mut room = vec![0; CHUNK];
        let mut is_first = true;
        for _ in 0..self.left {
            if !is_first {
                stage.sleep_until((stage.now() + self.think.draw()).min(stage.end));
            }
            // TCP's connection is open before: the time counts from the SYN.
            let asked = if is_first { opened } else { stage.now() };
            let request = self.request.draw().get().max(HEAD as u64);
            let response = self.response.draw().get().max(1);
            let delay = self.delay.draw().as_nanos();
            let since = if is_first { opened.as_nanos().max(1) } else { 0 };
            is_first = false;
            stage.books().groups[self.group].started += 1;
            let head = [request, response, delay, since].map(u64::to_le_bytes).concat();
            let rest = vec![0; request as usize - HEAD];
            stream.write_all(&[head, rest].concat())?;
            skip(&stream, response, &mut room)?;
            let took = stage.now() - asked;
            let mut books = stage.books();
            books.note(self.group, "response", took);
            books.groups[self.group].completed += 1;
            books.groups[self.group].bytes += response;
        }
        let life = stage.now() - opened;
        stage.books().note(self.group, "completion", life);
        Ok(())
    }
}
