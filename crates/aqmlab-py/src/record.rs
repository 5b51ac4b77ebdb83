//! Files in which a run is recorded while it goes on.

use std::fs::File;
use std::io::{self, Write};

use aqmlab_sim::Scenario;
use aqmlab_sim::capture::{Recorder, Unwritten};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// What is recorded of a run, and where: `pcap` with the indices of its links.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Record {
    pcap: Option<String>,
    pcap_links: Vec<usize>,
}

impl Record {
    /// Makes the files.
    pub fn begin(self, scenario: &Scenario) -> PyResult<Recorder> {
        let mut recorder = Recorder::default();
        if let Some(link) = self.pcap_links.iter().find(|link| **link >= scenario.links.len()) {
            return Err(PyValueError::new_err(format!("pcap_links: {link}")));
        }
        if let Some(file) = self.pcap {
            let to = create(&file)?;
            recorder = recorder.with_packets(scenario, &self.pcap_links, file, to);
        }
        Ok(recorder)
    }
}

#[allow(clippy::disallowed_methods, reason = "the engine is given what it writes to")]
fn create(file: &str) -> PyResult<Box<dyn Write + Send>> {
    match File::create(file) {
        Ok(opened) => Ok(Box::new(opened)),
        Err(error) => Err(os_error(Unwritten { file: file.to_string(), error })),
    }
}

/// As Python has it: number, reason and file.
pub fn os_error(problem: Unwritten) -> PyErr {
    let Unwritten { file, error } = problem;
    let reason = io::Error::to_string(&error);
    let reason = reason.split(" (os error").next().unwrap_or_default().to_string();
    PyOSError::new_err((error.raw_os_error(), reason, file))
}
