//! Watching packets: logs, captures, and numbers for whoever looks.
//!
//! The data path shows every packet to a [`Tap`]; `Observers` is the one that
//! hands them on. Nothing here waits for a disk: what is to be written goes to
//! a thread of its own (`background`). `view` is not told of packets: it shows
//! what the links count anyway.

// What computes must write no files and have no clock; this is what touches the world.
#![allow(clippy::disallowed_methods)]

mod background;
pub mod control;
mod log;
mod output;
mod pcapng;
pub mod view;

use std::path::PathBuf;
use std::sync::Arc;

use aqmlab_aqm::Reason;
use aqmlab_core::{Error, Result, Span, Time, choices};
use aqmlab_sim::Scenario;
use aqmlab_sim::network::Network;
use aqmlab_sim::rate::RateProcess;

use self::log::{Log, Offer};
pub use self::output::create;
use self::pcapng::Capture;
use crate::packet::buffers::Buffers;
use crate::packet::handle::Handle;
use crate::path::{Route, Tap};

/// How often observers are told of the time.
pub const TICK: Span = Span::from_millis(100);

/// A log in mahimahi's format.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// The link, by index.
    pub link: u32,
    /// Where it goes.
    pub file: PathBuf,
    /// What it says first, before the times: lines without `#`.
    pub head: Vec<String>,
}

/// A capture of packets.
#[derive(Clone, Debug)]
pub struct CaptureFile {
    /// Where it goes.
    pub file: PathBuf,
    /// Of how many bytes the last are kept; `None` for all.
    pub ring: Option<u64>,
    /// Bytes of each packet that are kept.
    pub most: u32,
    /// Where packets are captured.
    pub places: Places,
}

choices! {
    /// Where packets are captured.
    pub enum Places {
        /// Each once, where the command sends or receives it.
        Near = "near",
        /// Each once, at the other end of its way.
        Far = "far",
        /// Before and after each link, and where it was dropped.
        All = "all",
    }
}

/// What is recorded while packets pass.
#[derive(Clone, Debug, Default)]
pub struct Recordings {
    /// Logs, of one link each.
    pub logs: Vec<LogFile>,
    /// A capture of packets.
    pub capture: Option<CaptureFile>,
}

impl Recordings {
    /// Opens the files. `None` if there is nothing to record.
    ///
    /// # Errors
    /// If a file cannot be written.
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

/// All who watch.
struct Observers {
    logs: Vec<Log>,
    capture: Option<Capture>,
}

impl Tap for Observers {
    fn arrived(&mut self, time: Time, link: u32, handle: &Handle, buffers: &Buffers) {
        for log in self.logs.iter_mut().filter(|log| log.link == link) {
            log.arrived(time, handle);
        }
        if let Some(capture) = &mut self.capture {
            capture.arrived(time, link, handle, buffers);
        }
    }

    fn departed(&mut self, time: Time, link: u32, handle: &Handle, buffers: &Buffers) {
        for log in self.logs.iter_mut().filter(|log| log.link == link) {
            log.departed(time, handle);
        }
        if let Some(capture) = &mut self.capture {
            capture.departed(time, link, handle, buffers);
        }
    }

    fn dropped(
        &mut self,
        time: Time,
        link: u32,
        handle: &Handle,
        reason: Option<Reason>,
        buffers: &Buffers,
    ) {
        for log in self.logs.iter_mut().filter(|log| log.link == link) {
            log.dropped(time, handle);
        }
        if let Some(capture) = &mut self.capture {
            capture.dropped(time, link, handle, reason, buffers);
        }
    }

    fn tick(&mut self, now: Time, network: &Network<Handle>) {
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
