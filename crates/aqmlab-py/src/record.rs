//! Files in which a run is recorded while it is in progress.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use aqmlab_emu::observe;
use aqmlab_sim::Scenario;
use aqmlab_sim::capture::{self, Recorder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::spill::{Unwritten, to_os_error};

/// Recordings of a run: `pcap` with the indices of its links; `qlog` of TCP senders, and
/// `connections` with the start and the end of the names of files that QUIC stacks write.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Record {
    pcap: Option<String>,
    pcap_links: Vec<usize>,
    qlog: Option<String>,
    connections: Option<(String, String)>,
}

impl Record {
    /// Creates the files.
    pub fn begin(self, scenario: &Scenario) -> PyResult<Recorder> {
        let mut recorder = Recorder::default();
        if let Some(link) = self.pcap_links.iter().find(|link| **link >= scenario.links.len()) {
            return Err(PyValueError::new_err(format!("pcap_links: {link}")));
        }
        if let Some(file) = self.pcap {
            let to = create(&file)?;
            recorder = recorder.with_packets(scenario, &self.pcap_links, file, to);
        }
        if let Some(file) = self.qlog {
            let to = create(&file)?;
            recorder = recorder.with_qlog(scenario, file, to);
        }
        if let Some((start, end)) = self.connections {
            recorder = recorder.with_logs(move |name| {
                // Groups of flows may have any name, and a slash must not lead to another folder.
                let name = name.replace('%', "%25").replace('/', "%2F");
                let file = format!("{start}{name}{end}");
                let created = observe::create(Path::new(&file));
                let log = Appended(file.clone());
                (file, created.map(|_| Box::new(log) as _))
            });
        }
        Ok(recorder)
    }
}

/// File that is open only while a block is written: runs have thousands of connections.
struct Appended(String);

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        OpenOptions::new().append(true).open(&self.0)?.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn create(file: &str) -> PyResult<Box<dyn Write + Send>> {
    match observe::create(Path::new(file)) {
        Ok(opened) => Ok(Box::new(opened)),
        Err(error) => Err(to_os_error(&error, Path::new(file))),
    }
}

/// Converts the error of an incomplete capture.
pub fn from_capture(problem: capture::Unwritten) -> Unwritten {
    Unwritten(problem.error, problem.file.into())
}
