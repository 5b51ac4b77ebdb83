//! Observers of packets: logs, captures, and live statistics.
//!
//! The data path passes every packet to a [`Tap`]; `Observers` distributes them. Nothing here waits
//! for a disk: a background thread writes the files (`background`). `view` does not observe
//! packets: it shows the counters of the links.

// Simulations must not use files or clocks; this module is the output side of the emulator.
#![allow(clippy::disallowed_methods)]

mod background;
pub mod control;
mod log;
mod output;
mod pcapng;
pub mod view;

use std::path::PathBuf;
use std::sync::Arc;

use aqmlab_core::{Error, Packet, Result, Span, Time, choices};
use aqmlab_sim::Scenario;
use aqmlab_sim::network::Network;
use aqmlab_sim::rate::RateProcess;

use self::log::{Log, Offer};
pub use self::output::create;
use self::pcapng::Capture;
use crate::packet::buffers::Buffers;
use crate::path::{Passage, Route, Tap};

/// Interval of `tick` calls.
pub const TICK: Span = Span::from_millis(100);

/// Log in mahimahi's format.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// Link, by index.
    pub link: u32,
    /// Output file.
    pub file: PathBuf,
    /// Header lines before the times, without `#`.
    pub head: Vec<String>,
}

/// Packet capture.
#[derive(Clone, Debug)]
pub struct CaptureFile {
    /// Output file.
    pub file: PathBuf,
    /// Number of most recent bytes that are kept; `None`: all.
    pub ring: Option<u64>,
    /// Maximum number of bytes kept of each packet.
    pub most: u32,
    /// Places of capture.
    pub places: Places,
}

choices! {
    /// Places where packets are captured.
    pub enum Places {
        /// Once per packet, where the command sends or receives it.
        Near = "near",
        /// Once per packet, at the other end of its path.
        Far = "far",
        /// Before and after each link, and where packets are dropped.
        All = "all",
    }
}

/// Recordings made while packets pass.
#[derive(Clone, Debug, Default)]
pub struct Recordings {
    /// Logs, of one link each.
    pub logs: Vec<LogFile>,
    /// Packet capture.
    pub capture: Option<CaptureFile>,
}

impl Recordings {
    /// Opens the files. Returns `None` if nothing is recorded.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn open(&self, scenario: &Scenario, routes: &[Route]) -> Result<Option<Box<dyn Tap>>> {
        let logs: Result<Vec<Log>> =
            self.logs.iter().map(|file| open_log(file, scenario)).collect();
        let capture = self.capture.as_ref().map(|file| open_capture(file, scenario, routes));
        let capture = capture.transpose()?;
        let observers = Observers { logs: logs?, capture };
        let is_idle = observers.logs.is_empty() && observers.capture.is_none();
        Ok((!is_idle).then(|| Box::new(observers) as Box<dyn Tap>))
    }
}

fn open_log(file: &LogFile, scenario: &Scenario) -> Result<Log> {
    let config = &scenario.links[file.link as usize];
    let offer = match &config.process {
        RateProcess::Trace(params, trace) => {
            Offer::trace(Arc::clone(trace), params.opportunity.get())
        }
        _ => Offer::default(),
    };
    Log::create(file, offer, config.framing).map_err(|error| not_written(&file.file, &error))
}

fn open_capture(file: &CaptureFile, scenario: &Scenario, routes: &[Route]) -> Result<Capture> {
    let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    Capture::create(file, &names, routes).map_err(|error| not_written(&file.file, &error))
}

fn not_written(file: &std::path::Path, error: &std::io::Error) -> Error {
    Error::new(format!("this file cannot be written: {error}")).in_file(&file.to_string_lossy())
}

/// All observers of a run.
struct Observers {
    logs: Vec<Log>,
    capture: Option<Capture>,
}

impl Tap for Observers {
    fn saw(&mut self, time: Time, link: u32, what: Passage, handle: &Packet, buffers: &Buffers) {
        for log in self.logs.iter_mut().filter(|log| log.link == link) {
            log.saw(time, what, handle);
        }
        if let Some(capture) = &mut self.capture {
            capture.saw(time, link, what, handle, buffers);
        }
    }

    fn tick(&mut self, now: Time, network: &Network<Buffers>) {
        for log in &mut self.logs {
            log.tick(now, network.link(log.link as usize));
        }
        if let Some(capture) = &mut self.capture {
            capture.tick(now);
        }
    }

    fn finish(&mut self, end: Time) -> Vec<String> {
        let logs = self.logs.drain(..).filter_map(|log| log.finish(end).err());
        let mut remarks: Vec<String> = logs.collect();
        remarks.extend(self.capture.take().into_iter().flat_map(Capture::finish));
        remarks
    }
}
