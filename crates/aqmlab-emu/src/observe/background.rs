//! A file that another thread writes: whoever carries packets never waits for
//! a disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::output::create;

/// So many bytes are handed over at once.
const BLOCK: usize = 64 << 10;
/// More than this does not wait for the disk, if it may be left out.
const MOST_WAITING: u64 = 256 << 20;

/// The file, and what is not handed over yet.
pub struct Background {
    buffer: Vec<u8>,
    blocks: Option<Sender<Vec<u8>>>,
    /// Buffers that have been written come back.
    spare: Receiver<Vec<u8>>,
    waiting: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
}

impl Background {
    /// Makes the file, or empties it, and starts the thread. With a `ring` of
    /// so many bytes what is older than that goes to a second file, `.old`,
    /// and then away; each file begins with `head`.
    pub fn create(path: &Path, head: Vec<u8>, ring: Option<u64>) -> io::Result<Self> {
        let file = create(path)?;
        let (blocks, incoming) = channel();
        let (returned, spare) = channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let mut writer = Writer {
            file,
            path: path.to_path_buf(),
            head,
            ring,
            size: 0,
            waiting: Arc::clone(&waiting),
        };
        let thread = thread::Builder::new()
            .name("aqmlab-file".into())
            .stack_size(256 << 10)
            .spawn(move || writer.run(&incoming, &returned))?;
        let buffer = Vec::with_capacity(2 * BLOCK);
        let path = path.to_path_buf();
        Ok(Background { buffer, blocks: Some(blocks), spare, waiting, thread: Some(thread), path })
    }

    /// Where the next thing is to be appended.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// A whole thing has been appended.
    #[inline]
    pub fn settle(&mut self) {
        if self.buffer.len() >= BLOCK {
            self.flush();
        }
    }

    /// Hands everything over.
    pub fn flush(&mut self) {
        let Some(blocks) = self.blocks.as_ref().filter(|_| !self.buffer.is_empty()) else { return };
        let next = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(2 * BLOCK));
        let full = std::mem::replace(&mut self.buffer, next);
        self.waiting.fetch_add(full.len() as u64, Ordering::Relaxed);
        // A thread that has ended keeps its error for `close`.
        let _ = blocks.send(full);
    }

    /// Whether the disk is so far behind that something should be left out.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MOST_WAITING
    }

    /// Writes the rest. The error is a sentence with the file's name.
    pub fn close(mut self) -> Result<(), String> {
        self.flush();
        self.blocks = None;
        let thread = self.thread.take().expect("closed once");
        match thread.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{}: not all is in it: {error}", self.path.display())),
            Err(_) => Err(format!("{}: not all is in it", self.path.display())),
        }
    }
}

/// What the thread has.
struct Writer {
    file: File,
    path: PathBuf,
    head: Vec<u8>,
    ring: Option<u64>,
    size: u64,
    waiting: Arc<AtomicU64>,
}

impl Writer {
    fn run(&mut self, blocks: &Receiver<Vec<u8>>, returned: &Sender<Vec<u8>>) -> io::Result<()> {
        let mut result = self.file.write_all(&self.head);
        for mut block in blocks {
            if result.is_ok() {
                result = self.write(&block);
            }
            self.waiting.fetch_sub(block.len() as u64, Ordering::Relaxed);
            block.clear();
            let _ = returned.send(block);
        }
        result
    }

    fn write(&mut self, block: &[u8]) -> io::Result<()> {
        if self.ring.is_some_and(|ring| self.size + block.len() as u64 > ring) && self.size > 0 {
            let mut old = self.path.clone().into_os_string();
            old.push(".old");
            std::fs::rename(&self.path, old)?;
            self.file = create(&self.path)?;
            self.file.write_all(&self.head)?;
            self.size = 0;
        }
        self.size += block.len() as u64;
        self.file.write_all(block)
    }
}
