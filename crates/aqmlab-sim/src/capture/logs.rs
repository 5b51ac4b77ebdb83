//! Logs that endpoints of other crates write themselves: one file for each end of a connection.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::output::{Output, Unwritten};
use crate::endpoints::{ConnectionLog, LogFile};

/// Returns the file for a name such as `web.0-client`, and its writer.
type Create = dyn Fn(&str) -> (String, io::Result<Box<dyn Write + Send>>) + Send + Sync;
type Shared = Arc<Mutex<Option<Output>>>;

/// The logs of a run.
#[derive(Clone)]
pub(crate) struct Logs(Arc<Files>);

struct Files {
    create: Box<Create>,
    state: Mutex<OpenFiles>,
}

#[derive(Default)]
struct OpenFiles {
    open: Vec<Weak<Mutex<Option<Output>>>>,
    /// First error.
    problem: Option<Unwritten>,
}

impl Logs {
    pub fn new(create: Box<Create>) -> Self {
        Logs(Arc::new(Files { create, state: Mutex::default() }))
    }

    /// Returns the log of a connection; its name is that of the flow that opens it.
    pub fn of(&self, name: String) -> ConnectionLog {
        let (logs, of) = (self.clone(), name.clone());
        ConnectionLog::new(name, move |end| logs.open(&format!("{of}-{end}")))
    }

    fn open(&self, name: &str) -> LogFile {
        let (file, created) = (self.0.create)(name);
        match created {
            Ok(to) => {
                let output = Arc::new(Mutex::new(Some(Output::new(file, to))));
                self.state().open.push(Arc::downgrade(&output));
                Box::new(File { logs: self.clone(), output })
            }
            Err(error) => {
                self.state().problem.get_or_insert(Unwritten { file, error });
                Box::new(io::sink())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, OpenFiles> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, output: &Shared) {
        let output = output.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(problem)) = output.map(Output::finish) {
            self.state().problem.get_or_insert(problem);
        }
    }

    /// Closes the files of connections that are still open.
    pub fn finish(self) -> Result<(), Unwritten> {
        let open = std::mem::take(&mut self.state().open);
        open.iter().filter_map(Weak::upgrade).for_each(|output| self.close(&output));
        self.state().problem.take().map_or(Ok(()), Err)
    }
}

/// File of one end; closed with its connection, or at the end of the run.
struct File {
    logs: Logs,
    output: Shared,
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(output) = &mut *output {
            output.add(|waiting| waiting.extend_from_slice(bytes));
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.logs.close(&self.output);
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::tests::Memory;
    use super::*;

    fn logs(memory: &Memory) -> Logs {
        let memory = memory.clone();
        Logs::new(Box::new(move |name| (format!("{name}.qlog"), Ok(Box::new(memory.clone())))))
    }

    #[test]
    fn a_file_is_closed_with_its_connection_or_at_the_end() {
        let memory = Memory::new();
        let logs = logs(&memory);
        let mut gone = logs.of("a.0".into()).open("client");
        gone.write_all(b"one ").unwrap();
        assert!(memory.bytes.lock().unwrap().is_empty());
        drop(gone);
        assert_eq!(*memory.bytes.lock().unwrap(), b"one ");
        let mut open = logs.of("a.0".into()).open("server");
        open.write_all(b"two").unwrap();
        logs.finish().unwrap();
        assert_eq!(*memory.bytes.lock().unwrap(), b"one two");
        open.write_all(b"late").unwrap();
    }

    #[test]
    fn the_first_error_is_reported_at_the_end() {
        let full = logs(&Memory { room: 2, ..Memory::new() });
        let mut end = full.of("a.0".into()).open("client");
        end.write_all(b"much").unwrap();
        drop(end);
        let none = Logs::new(Box::new(|name| {
            (name.to_string(), Err(io::ErrorKind::PermissionDenied.into()))
        }));
        let _ = none.of("b.0".into()).open("server");
        let found = [full, none].map(|logs| {
            let Unwritten { file, error } = logs.finish().unwrap_err();
            (file, error.kind())
        });
        let expected = [
            ("a.0-client.qlog".to_string(), io::ErrorKind::StorageFull),
            ("b.0-server".to_string(), io::ErrorKind::PermissionDenied),
        ];
        assert_eq!(found, expected);
    }
}
