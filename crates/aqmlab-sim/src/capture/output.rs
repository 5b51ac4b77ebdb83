//! Output of records: written whole, so that a truncated file remains readable.

use std::io::{self, Write};

/// Size of a write.
const BLOCK: usize = 64 << 10;

/// Error of an incomplete recording.
#[derive(Debug)]
pub struct Unwritten {
    /// Name of the file.
    pub file: String,
    /// Cause.
    pub error: io::Error,
}

/// Output file, with its unwritten data.
pub(super) struct Output {
    file: String,
    to: Box<dyn Write + Send>,
    waiting: Vec<u8>,
    /// First error; no data is written after it.
    error: Option<io::Error>,
}

impl Output {
    pub fn new(file: String, to: Box<dyn Write + Send>) -> Self {
        Output { file, to, waiting: Vec::with_capacity(2 * BLOCK), error: None }
    }

    /// Adds one record, appended by `fill`.
    pub fn add(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.error.is_some() {
            return;
        }
        fill(&mut self.waiting);
        if self.waiting.len() >= BLOCK {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.error.is_none() {
            self.error = self.to.write_all(&self.waiting).err();
        }
        self.waiting.clear();
    }

    /// Writes the remaining data.
    pub fn finish(mut self) -> Result<(), Unwritten> {
        self.write();
        let written = self.error.map_or_else(|| self.to.flush(), Err);
        written.map_err(|error| Unwritten { file: self.file, error })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// File in memory; full after `room` bytes.
    #[derive(Clone)]
    pub struct Memory {
        pub bytes: Arc<Mutex<Vec<u8>>>,
        pub room: usize,
    }

    impl Memory {
        pub fn new() -> Self {
            Memory { bytes: Arc::default(), room: usize::MAX }
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.bytes.lock().unwrap();
            if all.len() + bytes.len() > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            all.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn records_are_written_whole_and_the_first_error_is_kept() {
        let memory = Memory { room: 3 * BLOCK, ..Memory::new() };
        let mut output = Output::new("full".into(), Box::new(memory.clone()));
        let record = [7; 1000];
        for _ in 0..1000 {
            output.add(|bytes| bytes.extend_from_slice(&record));
            assert_eq!(memory.bytes.lock().unwrap().len() % record.len(), 0);
        }
        assert!(memory.bytes.lock().unwrap().len() > BLOCK);
        let Unwritten { file, error } = output.finish().unwrap_err();
        assert_eq!((file.as_str(), error.kind()), ("full", io::ErrorKind::StorageFull));
    }
}
