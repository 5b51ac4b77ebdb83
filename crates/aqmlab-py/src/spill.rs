//! Disk storage for records of packets until the tables are built.
//!
//! During a run, blocks of records are appended to a temporary file, and read back when the run has
//! finished. The file is deleted with its run; leftovers of a killed process are deleted with their
//! folder.
//!
//! A record takes about 11 bytes: numbers have seven bits per byte, and times are the time since
//! the previous record and the time in the queue.
#![allow(clippy::disallowed_methods, reason = "files of the results, not of the engine")]

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use aqmlab_aqm::Reason;
use aqmlab_core::Time;
use aqmlab_core::varint::{put, take};
use aqmlab_sim::network::probe::PacketRecord;
use aqmlab_sim::network::records::RecordSink;
use pyo3::PyErr;
use pyo3::exceptions::PyOSError;

/// Counter for unique file names.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Panic payload that ends a run whose records could not be written.
pub struct Unwritten(pub io::Error, pub PathBuf);

/// Converts a file error to Python, with number and path.
pub fn to_os_error(error: &io::Error, path: &Path) -> PyErr {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_string();
    PyOSError::new_err((error.raw_os_error(), text, path.to_string_lossy().into_owned()))
}

/// Location of a block of records of one link.
#[derive(Clone, Copy)]
struct Block {
    start: u64,
    bytes: u32,
    rows: u32,
    checksum: u64,
}

#[derive(Default)]
struct Written {
    /// Open file during the run.
    file: Option<File>,
    /// Blocks by link.
    blocks: Vec<Vec<Block>>,
    end: u64,
    buffer: Vec<u8>,
}

/// Records of one run.
pub struct Spill {
    path: PathBuf,
    written: Mutex<Written>,
}

impl Spill {
    /// Creates the storage of a run in `folder`; the file is created with the first records.
    pub fn new(folder: &Path) -> Self {
        let name = format!("{}.packets", NEXT.fetch_add(1, Ordering::Relaxed));
        Spill { path: folder.join(name), written: Mutex::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Closes the file of a finished run.
    pub fn close(&self) {
        let mut written = self.lock();
        (written.file, written.buffer) = (None, Vec::new());
    }

    /// Returns the number of records of all links.
    pub fn rows(&self) -> usize {
        self.lock().blocks.iter().flatten().map(|block| block.rows as usize).sum()
    }

    /// Reads the records of a link in `window`, block by block.
    pub fn read(
        &self,
        link: u32,
        window: &mut Window,
        mut each: impl FnMut(Vec<PacketRecord>),
    ) -> io::Result<()> {
        let blocks = self.lock().blocks.get(link as usize).cloned().unwrap_or_default();
        let mut file = None;
        for block in blocks {
            let (from, count) = window.pass(block.rows as usize);
            if count == 0 {
                continue;
            }
            let file = match &file {
                Some(file) => file,
                None => file.insert(File::open(&self.path)?),
            };
            let mut bytes = vec![0; block.bytes as usize];
            file.read_exact_at(&mut bytes, block.start)?;
            if checksum(&bytes) != block.checksum {
                return Err(io::Error::other("damaged: its checksum differs"));
            }
            let mut records = decode(&bytes, block.rows as usize);
            records.drain(..from);
            records.truncate(count);
            each(records);
        }
        Ok(())
    }
}

impl Written {
    fn append(&mut self, path: &Path, link: u32, records: &[PacketRecord]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create(path)?),
        };
        self.buffer.clear();
        encode(records, &mut self.buffer);
        file.write_all(&self.buffer)?;
        let link = link as usize;
        if self.blocks.len() <= link {
            self.blocks.resize_with(link + 1, Vec::new);
        }
        let (bytes, rows) = (self.buffer.len() as u32, records.len() as u32);
        self.blocks[link].push(Block {
            start: self.end,
            bytes,
            rows,
            checksum: checksum(&self.buffer),
        });
        self.end += u64::from(bytes);
        Ok(())
    }
}

impl RecordSink for Spill {
    fn take(&self, link: u32, records: &[PacketRecord]) {
        if let Err(error) = self.lock().append(&self.path, link, records) {
            resume_unwind(Box::new(Unwritten(error, self.path.clone())));
        }
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        let written = self.lock();
        if written.file.is_some() || written.end > 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    File::create(path)
}

/// Range of requested rows.
pub struct Window {
    skip: usize,
    take: usize,
}

impl Window {
    /// Creates a range of at most `rows` rows from row `start`.
    pub fn new(start: usize, rows: usize) -> Self {
        Window { skip: start, take: rows }
    }
    /// Returns the requested part of the next `rows` rows: its start and length.
    pub fn pass(&mut self, rows: usize) -> (usize, usize) {
        let from = self.skip.min(rows);
        let count = (rows - from).min(self.take);
        self.skip -= from;
        self.take -= count;
        (from, count)
    }
}

/// Bits of the first byte of a record; the other bits are the reason of the drop, 0 if sent.
const IS_ACK: u8 = 1;
const CE: u8 = 2;
const REASON: u8 = 4;

const _: () = assert!(Reason::ALL.len() < (u8::MAX / REASON) as usize);

fn encode(records: &[PacketRecord], to: &mut Vec<u8>) {
    let mut before = 0;
    for record in records {
        let reason = record.dropped.map_or(0, |reason| reason as u8 + 1);
        to.push(u8::from(record.is_ack) * IS_ACK + u8::from(record.ce) * CE + reason * REASON);
        let (arrival, end) = (record.arrival.as_nanos(), record.end.as_nanos());
        let times = [end.wrapping_sub(before), end.wrapping_sub(arrival)];
        [u64::from(record.flow), u64::from(record.size)].iter().for_each(|it| put(to, *it));
        times.iter().for_each(|it| put(to, *it));
        before = end;
    }
}

fn decode(mut bytes: &[u8], rows: usize) -> Vec<PacketRecord> {
    let mut end = 0u64;
    let mut next = || {
        let first = get_byte(&mut bytes);
        let [flow, size] = [(); 2].map(|()| get(&mut bytes) as u32);
        end = end.wrapping_add(get(&mut bytes));
        let arrival = end.wrapping_sub(get(&mut bytes));
        PacketRecord {
            flow,
            size,
            is_ack: first & IS_ACK != 0,
            arrival: Time::from_nanos(arrival),
            end: Time::from_nanos(end),
            dropped: (first / REASON).checked_sub(1).map(|at| Reason::ALL[at as usize]),
            ce: first & CE != 0,
        }
    };
    (0..rows).map(|_| next()).collect()
}

/// Returns a checksum: FNV-1a, eight bytes at a time.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |sum: u64, part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    })
}

fn get(bytes: &mut &[u8]) -> u64 {
    take(bytes).expect("what was written is read")
}

fn get_byte(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().expect("what was written is read");
    *bytes = rest;
    *first
}
