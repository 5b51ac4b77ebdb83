//! Workloads: applications that drive the transports.
//!
//! Each workload is one file, and one line here. The parameters of a workload create an [`App`] for
//! each member of a group; the group's own keys (`path`, `start`, `count`, `transport`) are common
//! to all members.

use aqmlab_core::params::read_value;
use aqmlab_core::{
    Distribution, Entry, Error, Never, Nothing, ParamType, Params, Result, Stream, Value, catalogue,
};

use self::app::App;

pub(crate) mod agenda;
pub mod app;
mod connection;
mod ledger;
mod player;
mod presets;
pub mod quantities;

pub use presets::PRESETS;

/// Parameters of a workload, with its name and constructor.
pub(crate) trait Workload: Params {
    /// Name in scenario files.
    const NAME: &'static str;
    /// One-line description.
    const SUMMARY: &'static str;
    /// Checks combinations of parameters.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Returns whether the workload ends by itself.
    fn is_finite(&self) -> bool {
        false
    }
    /// True if the workload has an application. Without one, each flow of the group transfers the
    /// group's `size`, or runs to the end.
    const HAS_APP: bool = true;
    /// Creates the application, if the workload has one. It requests random streams by name.
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>>;
}

catalogue! {
    /// Workload with its parameters.
    pub enum WorkloadConfig of Workload, or Never;
    what "workload", key "kind", example "transfers";
    presets PRESETS, elsewhere (|_| None);
    each each;
    // One line for each workload.
    Bulk(bulk::BulkParams),
    Cbr(cbr::CbrParams),
    ParetoOnOff(pareto_onoff::ParetoOnOffParams),
    Transfers(transfers::TransfersParams),
    Sessions(sessions::SessionsParams),
    Requests(requests::RequestsParams),
    PackMime(packmime::PackMimeParams),
    Probe(probe::ProbeParams),
    Voip(voip::VoipParams),
    Page(page::PageParams),
    Video(video::VideoParams),
    Dash(dash::DashParams),
    Game(game::GameParams),
    Incast(incast::IncastParams),
    Rrul(rrul::RrulParams),
    Rpm(rpm::RpmParams),
}

/// Returns the entries of all workloads.
pub fn entries() -> Vec<Entry> {
    WorkloadConfig::entries()
}

impl WorkloadConfig {
    /// Reads the value of `workload` in a group of flows: a name, or a table with `kind` and
    /// parameters. The name may be that of a preset.
    ///
    /// # Errors
    /// Returns an error for unknown names and keys, and for invalid values.
    pub fn read(value: &Value) -> Result<WorkloadConfig> {
        catalogue::read(value, &Nothing)
    }
    pub(crate) fn is_finite(&self) -> bool {
        each!(self, params => params.is_finite(), never => match *never {})
    }
    /// Returns whether the workload has an application.
    pub fn has_app(&self) -> bool {
        fn of<W: Workload>(_: &W) -> bool {
            W::HAS_APP
        }
        each!(self, params => of(params), never => match *never {})
    }
    /// Creates the application of a group's member, which requests random streams by name.
    pub fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        each!(self, params => params.app(streams), never => match *never {})
    }
}

/// Rejects a distribution of size factors whose mean is too far from 1.
fn check_variation(variation: &Distribution<f64>) -> Result<()> {
    let mean = variation.mean();
    if mean > 0.0 && mean <= 100.0 {
        return Ok(());
    }
    let allowed = "a mean above 0 and at most 100";
    Err(Error::not_allowed(format!("{variation:?}"), allowed).at("variation"))
}

/// Parses a default written as in a scenario.
fn written<T: ParamType>(text: &str) -> T {
    read_value(&text.into()).expect("a default is valid")
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        WorkloadConfig::Bulk(bulk::BulkParams::default())
    }
}
