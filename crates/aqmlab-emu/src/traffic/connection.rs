//! Connections and datagrams of a group: the threads that write and read.
//!
//! A connection has a thread for each end and direction. One direction is a
//! [`Line`]: how many bytes are to be written to it, and how many have come.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use aqmlab_core::Time;

use super::play::{End, Stage};
use crate::sys;
use crate::sys::tcp::{set_class, set_control};

/// Bytes that are written or read at once.
const CHUNK: usize = 128 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// What a connection begins with: the numbers of its flow and of the one back.
const HEAD: usize = 16;
/// Bytes of the headers of IPv4 and UDP.
pub const HEADERS: u32 = 28;
/// What a datagram begins with: its flow, and when it was sent.
pub const DATAGRAM_HEAD: usize = 16;
/// No flow.
const NONE: u64 = u64::MAX;

/// What the conductor of a group is told.
pub enum Happening {
    /// The opener of a connection has the answer to its SYN.
    Connected(u32, Time),
    /// As many bytes of a flow have arrived as were awaited.
    Received(u32, Time),
    /// A datagram has arrived, and when it was sent.
    Datagram(u32, Time, Time),
    /// The run is over.
    End,
}

/// One direction of a connection.
#[derive(Default)]
pub struct Line {
    writing: Mutex<Writing>,
    changed: Condvar,
    received: AtomicU64,
    awaited: AtomicU64,
}

#[derive(Default)]
struct Writing {
    /// Bytes that there are to write.
    goal: u64,
    written: u64,
    /// Bytes that are being written just now.
    busy: u64,
    is_closed: bool,
}

impl Line {
    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().expect("no thread panics with it")
    }
    /// There are so many bytes more to write.
    pub fn supply(&self, bytes: u64) {
        self.writing().goal += bytes;
        self.changed.notify_all();
    }
    /// What is not written yet is not; how many bytes there are, then.
    pub fn cut(&self) -> u64 {
        let mut writing = self.writing();
        writing.goal = writing.written + writing.busy;
        writing.goal
    }
    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.writing().written
    }
    /// Nothing more will be supplied.
    pub fn close(&self) {
        self.writing().is_closed = true;
        self.changed.notify_all();
    }
    /// Bytes that have come.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }
    /// Asks to be told when so many have come. Whether they have already.
    pub fn expect(&self, bytes: u64) -> bool {
        self.awaited.store(bytes, Ordering::SeqCst);
        self.received() >= bytes
    }

    /// Writes what there is until it is closed; `written` bytes have been.
    fn write(&self, mut stream: &TcpStream, written: u64) -> io::Result<()> {
        self.writing().written = written;
        loop {
            let most = {
                let is_idle = |w: &mut Writing| w.written >= w.goal && !w.is_closed;
                let waited = self.changed.wait_while(self.writing(), is_idle);
                let mut writing = waited.expect("no thread panics with it");
                writing.busy = writing.goal.saturating_sub(writing.written).min(CHUNK as u64);
                writing.busy as usize
            };
            if most == 0 {
                return stream.shutdown(Shutdown::Write);
            }
            let wrote = stream.write(&ZEROS[..most]);
            let mut writing = self.writing();
            writing.busy = 0;
            writing.written += wrote? as u64;
        }
    }

    /// Reads until the other end has closed.
    fn read(&self, mut stream: &TcpStream, mut arrived: impl FnMut()) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK];
        loop {
            let came = self.received();
            if came > 0 && came >= self.awaited.load(Ordering::SeqCst) {
                self.awaited.store(u64::MAX, Ordering::SeqCst);
                arrived();
            }
            match stream.read(&mut bytes)? {
                0 => return Ok(()),
                read => self.received.fetch_add(read as u64, Ordering::SeqCst),
            };
        }
    }
}

/// A flow of datagrams, as who receives them knows it.
pub struct Heard {
    /// Its number in the books.
    pub book: usize,
    /// Whether the application is told of every arrival.
    pub tells: AtomicBool,
}

/// A flow of a group.
pub enum Wire {
    /// Of bytes.
    Bytes(Arc<Line>),
    /// Of datagrams.
    Datagrams(Arc<Heard>),
}

/// What the threads of a group share.
pub struct Exchange {
    pub stage: Arc<Stage>,
    pub group: usize,
    /// By number.
    pub wires: Mutex<Vec<Wire>>,
    pub told: Sender<Happening>,
}

impl Exchange {
    /// Adds a flow; its number.
    pub fn add(&self, wire: Wire) -> u32 {
        let mut wires = self.wires.lock().expect("no thread panics with it");
        wires.push(wire);
        wires.len() as u32 - 1
    }

    fn line(&self, flow: u64) -> Option<Arc<Line>> {
        match self.wires.lock().expect("no thread panics with it").get(flow as usize)? {
            Wire::Bytes(line) => Some(Arc::clone(line)),
            Wire::Datagrams(_) => None,
        }
    }

    fn heard(&self, flow: u64) -> Option<Arc<Heard>> {
        match self.wires.lock().expect("no thread panics with it").get(flow as usize)? {
            Wire::Datagrams(heard) => Some(Arc::clone(heard)),
            Wire::Bytes(_) => None,
        }
    }

    fn tell(&self, what: Happening) {
        // Nobody listens any more when the run is over.
        let _ = self.told.send(what);
    }

    /// Takes connections and datagrams at one of the hosts.
    pub fn serve(self: &Arc<Self>, at: End) -> io::Result<()> {
        let (stage, group) = (&self.stage, self.group);
        stage.enter(group, at)?;
        let listener = TcpListener::bind(stage.address(group, at))?;
        set_control(&listener, stage.control(group))?;
        let socket = UdpSocket::bind(stage.address(group, at))?;
        let own = Arc::clone(self);
        stage.spawn(move |stage| {
            loop {
                let (stream, _) = listener.accept()?;
                let own = Arc::clone(&own);
                stage.spawn(move |_| own.accepted(stream));
            }
        });
        let own = Arc::clone(self);
        stage.spawn(move |stage| own.hear(stage, &socket));
        Ok(())
    }

    /// A connection has come in: what is written to it is read, and what there
    /// is to write back is written.
    fn accepted(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        prepare(&self.stage, self.group, &stream, None)?;
        let mut head = [0; HEAD];
        (&stream).read_exact(&mut head)?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
        let (flow, back) = (word(0), word(8));
        let Some(line) = self.line(flow) else { return Ok(()) };
        let stream = Arc::new(stream);
        if let Some(back) = self.line(back) {
            let start = self.stage.now();
            let book = self.stage.books().open(self.group, start, None, Arc::clone(&stream));
            let (own, stream) = (Arc::clone(self), Arc::clone(&stream));
            self.stage.spawn(move |stage| {
                back.write(&stream, 0)?;
                stage.books().finished(book, stage.now());
                drop(own);
                Ok(())
            });
        }
        line.received.store(HEAD as u64, Ordering::SeqCst);
        self.read(&line, flow, &stream)
    }

    fn read(&self, line: &Line, flow: u64, stream: &TcpStream) -> io::Result<()> {
        line.read(stream, || self.tell(Happening::Received(flow as u32, self.stage.now())))
    }

    /// Opens a connection from a host, over which flow `flow` goes, and `back` comes.
    pub fn open(
        self: &Arc<Self>,
        from: End,
        flow: u32,
        back: Option<u32>,
        size: Option<u64>,
        class: Option<u8>,
    ) {
        let own = Arc::clone(self);
        let start = self.stage.now();
        self.stage.spawn(move |stage| {
            let to = if from == End::Sender { End::Receiver } else { End::Sender };
            stage.enter(own.group, from)?;
            let control = stage.control(own.group);
            let stream = sys::tcp::connect(stage.address(own.group, to), control)?;
            prepare(stage, own.group, &stream, class)?;
            let stream = Arc::new(stream);
            let book = stage.books().open(own.group, start, size, Arc::clone(&stream));
            let words = [u64::from(flow), back.map_or(NONE, u64::from)];
            (&*stream).write_all(&words.map(u64::to_le_bytes).concat())?;
            own.tell(Happening::Connected(flow, stage.now()));
            if let Some(line) = back.and_then(|back| own.line(u64::from(back))) {
                let (own, stream, back) = (Arc::clone(&own), Arc::clone(&stream), back);
                stage.spawn(move |_| own.read(&line, back.map_or(NONE, u64::from), &stream));
            }
            let Some(line) = own.line(u64::from(flow)) else { return Ok(()) };
            line.write(&stream, HEAD as u64)?;
            if back.is_none() {
                // The other end closes when it has read everything.
                while (&*stream).read(&mut [0; 16])? > 0 {}
            }
            stage.books().finished(book, stage.now());
            Ok(())
        });
    }

    /// Takes the datagrams that come to a socket.
    fn hear(&self, stage: &Stage, socket: &UdpSocket) -> io::Result<()> {
        let mut bytes = [0; 65_536];
        loop {
            let size = socket.recv(&mut bytes)?;
            let now = stage.now();
            let Some(head) = bytes[..size].first_chunk::<DATAGRAM_HEAD>() else { continue };
            let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
            let (flow, sent) = (word(0), Time::from_nanos(word(8)));
            let Some(heard) = self.heard(flow) else { continue };
            if heard.tells.load(Ordering::SeqCst) {
                self.tell(Happening::Datagram(flow as u32, sent, now));
            }
            let wire = size as u32 + HEADERS;
            stage.books().datagram(self.group, heard.book, wire, now, sent, stage.is_warm());
        }
    }
}

/// What is set at both ends of a connection.
fn prepare(stage: &Stage, group: usize, stream: &TcpStream, class: Option<u8>) -> io::Result<()> {
    set_class(stream, class.unwrap_or(stage.group(group).class.0))?;
    stream.set_nodelay(true)
}
