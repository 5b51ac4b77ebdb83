//! Workloads: applications that drive the transports.
//!
//! Each workload is one file, and one line here. The parameters of a workload create an [`App`] for
//! each member of a group; the group's own keys (`path`, `start`, `count`, `transport`) are common
//! to all members.

use aqmlab_core::params::read_value;
use aqmlab_core::{
    AnyComponent, Config, Distribution, Entry, Error, ParamType, Preset, Result, Stream, catalogue,
    cloneable,
};

use self::app::App;

pub(crate) mod agenda;
pub mod app;
mod connection;
mod ledger;
mod player;
pub mod quantities;

cloneable!(pub trait CloneParams of Workload);

/// Parameters of a workload, which create its applications.
pub trait Workload: AnyComponent + CloneParams {
    /// Returns whether the workload ends by itself.
    fn is_finite(&self) -> bool {
        false
    }
    /// Returns whether the workload has an application. Without one, each flow of the group
    /// transfers the group's `size`, or runs to the end.
    fn has_app(&self) -> bool {
        true
    }
    /// Creates the application of a group's member, if the workload has one. It requests random
    /// streams by name.
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>>;
}

/// A workload with its parameters, as a scenario names it.
pub type WorkloadConfig = Config<dyn Workload>;

catalogue! {
    dyn Workload;
    what "workload", key "kind", example "transfers", default "bulk";
    presets PRESETS, elsewhere (|_| None);
    // One line for each workload.
    bulk::BulkParams,
    cbr::CbrParams,
    pareto_onoff::ParetoOnOffParams,
    transfers::TransfersParams,
    sessions::SessionsParams,
    requests::RequestsParams,
    packmime::PackMimeParams,
    probe::ProbeParams,
    voip::VoipParams,
    page::PageParams,
    video::VideoParams,
    dash::DashParams,
    game::GameParams,
    incast::IncastParams,
    rrul::RrulParams,
    rpm::RpmParams,
}

/// Named settings of workloads.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "rfc7928-web",
        of: "page",
        settings: &[
            ("objects", "50"),
            ("size", "pareto(shape=1.2, scale=1kb, cap=1mb)"),
            ("document", "10kb"),
            ("connections", "6"),
            ("streams", "1"),
            ("keep", "all"),
            ("dns", "false"),
            ("tls", "0"),
            ("think", "0s"),
        ],
        summary: "RFC 7928's web: pages of 50 objects over six connections, one after another",
        source: "RFC 7928, section 7.2; the law of the sizes, of at least 1 kB, is this program's",
    },
    Preset {
        name: "rrul-be",
        of: "rrul",
        settings: &[("classes", "[cs0]"), ("probes", "[cs0, cs0, cs0, cs0]")],
        summary: "Flent's response under load, all of it best effort",
        source: "flent, rrul_be",
    },
];

/// Returns the entries of all workloads.
pub fn entries() -> Vec<Entry> {
    WorkloadConfig::entries()
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
