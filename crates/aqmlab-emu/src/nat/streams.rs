//! Pairs of connections, one in the gateway and one outside, and the bytes between them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use crate::sys::socket::reset_at_close;

/// Size of a read.
pub const ROOM: usize = 128 << 10;
/// Blocks that one connection may carry per turn.
const TURNS: usize = 8;

/// One direction: bytes read from one end and written to the other.
#[derive(Default)]
struct OneWay {
    /// Bytes read and not yet written.
    waiting: Vec<u8>,
    /// Number of `waiting` bytes that are written.
    written: usize,
    /// True if the end of the stream was read.
    has_ended: bool,
    /// True if the end of the stream was passed on.
    is_closed: bool,
}

/// Result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// No more work until the kernel reports the socket ready.
    Waits,
    /// More work may be possible at once.
    MayGoOn,
    /// Both connections are closed.
    Over,
}

/// Two connections that form one.
pub struct Pair {
    /// Connections in the gateway, and outside.
    ends: [TcpStream; 2],
    ways: [OneWay; 2],
    /// True while the outside connection is being opened.
    pub is_opening: bool,
    /// Start time, on the monotonic clock.
    pub began: u64,
}

impl Pair {
    /// Joins an accepted connection and one that is being opened, both non-blocking.
    pub fn new(inside: TcpStream, outside: TcpStream, now: u64) -> Self {
        for end in [&inside, &outside] {
            let _ = end.set_nodelay(true);
        }
        let (ends, ways) = ([inside, outside], Default::default());
        Pair { ends, ways, is_opening: true, began: now }
    }

    /// Returns both connections.
    pub fn ends(&self) -> &[TcpStream; 2] {
        &self.ends
    }

    /// Carries available bytes in both directions. `room` is a buffer.
    pub fn carry(&mut self, room: &mut [u8]) -> Turn {
        if self.is_opening {
            match self.ends[1].take_error() {
                Ok(None) if self.ends[1].peer_addr().is_err() => return Turn::Waits,
                Ok(None) => self.is_opening = false,
                _ => return self.fail(),
            }
        }
        let [inside, outside] = &self.ends;
        let [there, back] = &mut self.ways;
        let there = there.carry(inside, outside, room);
        let back = back.carry(outside, inside, room);
        let turn = match (there, back) {
            (Err(_), _) | (_, Err(_)) => return self.fail(),
            (Ok(false), Ok(false)) => Turn::Waits,
            _ => Turn::MayGoOn,
        };
        if self.ways.iter().all(|way| way.is_closed) { Turn::Over } else { turn }
    }

    /// Resets both connections when this is dropped, like a refused one.
    pub fn fail(&mut self) -> Turn {
        for end in &self.ends {
            reset_at_close(end.as_fd());
        }
        Turn::Over
    }
}

impl OneWay {
    /// Carries bytes in this direction. Returns whether more may be possible at once.
    fn carry(
        &mut self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        room: &mut [u8],
    ) -> io::Result<bool> {
        for _ in 0..TURNS {
            while self.written < self.waiting.len() {
                match to.write(&self.waiting[self.written..]) {
                    Ok(size) => self.written += size,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            // Only blocked connections hold memory.
            self.waiting = Vec::new();
            self.written = 0;
            if self.has_ended {
                if !std::mem::replace(&mut self.is_closed, true) {
                    to.shutdown(Shutdown::Write)?;
                }
                return Ok(false);
            }
            match from.read(room) {
                Ok(0) => self.has_ended = true,
                Ok(size) => {
                    let sent = match to.write(&room[..size]) {
                        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                        sent => sent?,
                    };
                    self.waiting.extend_from_slice(&room[sent..size]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        other.set_nonblocking(true).unwrap();
        (one, other)
    }

    /// Returns the client, a pair, and the server.
    fn world() -> (TcpStream, Pair, TcpStream) {
        let ((near, inside), (far, outside)) = (connected(), connected());
        (near, Pair::new(inside, outside, 0), far)
    }

    #[test]
    fn bytes_and_ends_go_both_ways() {
        let (mut near, mut pair, mut far) = world();
        let mut room = vec![0; ROOM];
        near.write_all(b"there").unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        far.write_all(b"and back").unwrap();
        while pair.carry(&mut room) == Turn::MayGoOn {}
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "there");
        drop(far);
        while pair.carry(&mut room) != Turn::Over {}
        text.clear();
        near.read_to_string(&mut text).unwrap();
        assert_eq!(text, "and back");
    }

    #[test]
    fn what_the_other_side_does_not_take_waits() {
        let (mut near, mut pair, mut far) = world();
        let mut room = vec![0; ROOM];
        let much: Vec<u8> = (0..16_000_000u32).map(|byte| byte as u8).collect();
        let copy = much.clone();
        let writer = std::thread::spawn(move || {
            near.write_all(&copy).unwrap();
            near
        });
        let mut found = Vec::new();
        far.set_nonblocking(true).unwrap();
        let mut bytes = [0; 60_000];
        while found.len() < much.len() {
            pair.carry(&mut room);
            if let Ok(size) = far.read(&mut bytes) {
                found.extend_from_slice(&bytes[..size]);
            }
        }
        assert!(found == much);
        writer.join().unwrap();
    }

    #[test]
    fn a_connection_that_was_refused_resets_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = listener.local_addr().unwrap();
        drop(listener);
        let (mut near, inside) = connected();
        let outside = crate::sys::socket::begin_connection(&nobody);
        // Loopback may refuse at once or shortly after.
        if let Ok(outside) = outside {
            let mut pair = Pair::new(inside, outside, 0);
            while pair.carry(&mut vec![0; ROOM]) != Turn::Over {}
            drop(pair);
            assert_eq!(near.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        }
    }
}
