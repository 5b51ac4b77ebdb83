//! Workloads: the applications that drive the transports.
//!
//! One file a workload, and here one line for each. A workload's parameters
//! make an [`App`] for each member of a group; a group's own keys (`path`,
//! `start`, `count`, `transport`) are the same for all.

use aqmlab_core::params::read_value;
use aqmlab_core::{
    Distribution, Error, ParamSpec, ParamType, Params, Result, Stream, Table, Value,
};

use crate::app::App;

mod connection;
mod ledger;
mod player;
mod presets;

pub use presets::{PRESETS, Preset};

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
    /// The application. Its random streams are asked for by name. `None`: the
    /// flows run by themselves.
    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>>;
}

/// What is known of a workload without starting it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line that says what it is.
    pub summary: &'static str,
    /// Its parameters.
    pub params: Vec<ParamSpec>,
}

macro_rules! workloads {
    ($($Variant:ident($module:ident::$Params:ident)),+ $(,)?) => {
        $( pub mod $module; )+

        /// A workload with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum WorkloadConfig {
            $(
                #[allow(missing_docs)]
                $Variant($module::$Params),
            )+
        }

        /// All workloads.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: <$module::$Params>::NAME,
                summary: <$module::$Params>::SUMMARY,
                params: <$module::$Params>::specs(),
            }),+]
        }

        impl WorkloadConfig {
            /// The workload of this name with its default parameters.
            fn default_of(name: &str) -> Option<WorkloadConfig> {
                if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
                    return Some(preset.config());
                }
                $( if name == <$module::$Params>::NAME {
                    return Some(WorkloadConfig::$Variant(<$module::$Params>::default()));
                } )+
                None
            }
            fn set(&mut self, key: &str, value: &Value) -> Result<()> {
                match self {
                    $( WorkloadConfig::$Variant(params) => params.set(key, value), )+
                }
            }
            fn check(&self) -> Result<()> {
                match self {
                    $( WorkloadConfig::$Variant(params) => params.check(), )+
                }
            }
            /// The workload's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( WorkloadConfig::$Variant(_) => <$module::$Params>::NAME, )+
                }
            }
            /// Its parameters in text form.
            pub fn settings(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $( WorkloadConfig::$Variant(params) => params.entries(), )+
                }
            }
            pub(crate) fn is_finite(&self) -> bool {
                match self {
                    $( WorkloadConfig::$Variant(params) => params.is_finite(), )+
                }
            }
            pub(crate) fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
                match self {
                    $( WorkloadConfig::$Variant(params) => params.app(streams), )+
                }
            }
        }
    };
}

// One line a workload.
workloads! {
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

impl WorkloadConfig {
    /// Reads what stands under `workload` in a group of flows: a name, or a
    /// table with `kind` and parameters. The name may be a preset's.
    ///
    /// # Errors
    /// For unknown names and keys, and values that are not allowed.
    pub fn read(value: &Value) -> Result<WorkloadConfig> {
        let empty = Table::new();
        let (name, table) = match value {
            Value::Text(name) => (name.as_str(), &empty),
            Value::Table(table) => match table.get("kind") {
                Some(name) => (name.as_text().map_err(|error| error.at("kind"))?, table),
                None => {
                    let hint = "kind = \"transfers\"";
                    return Err(Error::new("the key `kind` is missing").hint(hint));
                }
            },
            other => {
                return Err(Error::not_allowed(
                    other,
                    "the name of a workload, or a table with `kind`",
                ));
            }
        };
        let mut config = Self::default_of(name).ok_or_else(|| {
            let presets = PRESETS.iter().map(|preset| preset.name);
            let names = entries().into_iter().map(|entry| entry.name).chain(presets);
            Error::unknown("workload", name, names.collect::<Vec<_>>())
        })?;
        for (key, value) in table.iter().filter(|(key, _)| *key != "kind") {
            config.set(key, value)?;
        }
        config.check()?;
        Ok(config)
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

impl Preset {
    /// The workload with these settings.
    fn config(&self) -> WorkloadConfig {
        let mut config =
            WorkloadConfig::default_of(self.kind).expect("a preset is one of a workload");
        for (key, text) in self.settings {
            config.set(key, &Value::from(*text)).expect("a preset's settings are valid");
        }
        config
    }
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        WorkloadConfig::Bulk(bulk::BulkParams::default())
    }
}
