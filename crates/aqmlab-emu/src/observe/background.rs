//! File written by a background thread, so that the packet loop never waits for a disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::output::create;

/// Bytes passed to the thread at once.
const BLOCK: usize = 64 << 10;
/// Limit of bytes waiting for the disk, for data that may be skipped.
const MOST_WAITING: u64 = 256 << 20;

/// File with the data not yet passed to the thread.
pub struct Background {
    buffer: Vec<u8>,
    blocks: Option<Sender<Vec<u8>>>,
    /// Buffers returned after writing.
    spare: Receiver<Vec<u8>>,
    waiting: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
}

impl Background {
    /// Creates or truncates the file, and starts the thread. With a `ring` of this many bytes,
    /// older data moves to a second file, `.old`, and is later deleted. Each file begins with
    /// `head`.
    pub fn create(path: &Path, head: Vec<u8>, ring: Option<u64>) -> io::Result<Self> {
        let file = create(path)?;
        let (blocks, incoming) = channel();
        let (returned, spare) = channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let mut writer = FileWriter {
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

    /// Returns the buffer for the next record.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Ends a record.
    #[inline]
    pub fn settle(&mut self) {
        if self.buffer.len() >= BLOCK {
            self.flush();
        }
    }

    /// Passes all data to the thread.
    pub fn flush(&mut self) {
        let Some(blocks) = self.blocks.as_ref().filter(|_| !self.buffer.is_empty()) else { return };
        let next = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(2 * BLOCK));
        let full = std::mem::replace(&mut self.buffer, next);
        self.waiting.fetch_add(full.len() as u64, Ordering::Relaxed);
        // If the thread has ended, `close` returns its error.
        let _ = blocks.send(full);
    }

    /// Returns true if the disk is so far behind that data should be skipped.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MOST_WAITING
    }

    /// Writes the remaining data. The error is a sentence with the file's name.
    pub fn close(mut self) -> Result<(), String> {
        self.flush();
        self.blocks = None;
        let thread = self.thread.take().expect("closed once");
        match thread.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{}: incomplete: {error}", self.path.display())),
            Err(_) => Err(format!("{}: incomplete", self.path.display())),
        }
    }
}

/// State of the writing thread.
struct FileWriter {
    file: File,
    path: PathBuf,
    head: Vec<u8>,
    ring: Option<u64>,
    size: u64,
    waiting: Arc<AtomicU64>,
}

impl FileWriter {
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
