//! Workloads: the applications that drive the transports.
//!
//! One file a workload, and here one line for each. A workload's parameters
//! make an [`App`] for each member of a group; a group's own keys (`path`,
//! `start`, `count`, `transport`) are the same for all.

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

/// What a workload's parameters have to offer.
pub(crate) trait Workload: Params {
    /// The name in scenario files.
    const NAME: &'static str;
    /// One line that says what it is.
    const SUMMARY: &'static str;
    /// Checks what no single parameter shows.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Whether it comes to an end by itself.
    fn is_finite(&self) -> bool {
        false
    }
    /// Whether there is an application. Without one the group's flows run by
    /// themselves, and each transfers the group's `size` or goes on to the end.
    const HAS_APP: bool = true;
    /// The application, if there is one. Its random streams are asked for by name.
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>>;
}

catalogue! {
    /// A workload with its parameters.
    pub enum WorkloadConfig of Workload, or Never;
    what "workload", key "kind", example "transfers";
    presets PRESETS, elsewhere (|_| None);
    each each;
    // One line a workload.
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

/// All workloads.
pub fn entries() -> Vec<Entry> {
    WorkloadConfig::entries()
}

impl WorkloadConfig {
    /// Reads what stands under `workload` in a group of flows: a name, or a
    /// table with `kind` and parameters. The name may be a preset's.
    ///
    /// # Errors
    /// For unknown names and keys, and values that are not allowed.
    pub fn read(value: &Value) -> Result<WorkloadConfig> {
        catalogue::read(value, &Nothing)
    }
    pub(crate) fn is_finite(&self) -> bool {
        each!(self, params => params.is_finite(), never => match *never {})
    }
    /// Whether it has an application; without one flows run by themselves.
    pub fn has_app(&self) -> bool {
        fn of<W: Workload>(_: &W) -> bool {
            W::HAS_APP
        }
        each!(self, params => of(params), never => match *never {})
    }
    /// The application of a member of a group, which asks for its random streams by name.
    pub fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        each!(self, params => params.app(streams), never => match *never {})
    }
}

/// Refuses what sizes are multiplied with unless its mean, which should be 1, is near enough.
fn check_variation(variation: &Distribution<f64>) -> Result<()> {
    let mean = variation.mean();
    if mean > 0.0 && mean <= 100.0 {
        return Ok(());
    }
    let allowed = "a mean above 0 and at most 100";
    Err(Error::not_allowed(format!("{variation:?}"), allowed).at("variation"))
}

/// A default that is written as in a scenario.
fn written<T: ParamType>(text: &str) -> T {
    read_value(&text.into()).expect("a default is valid")
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        WorkloadConfig::Bulk(bulk::BulkParams::default())
    }
}
