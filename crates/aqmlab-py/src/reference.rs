//! Reference of all components and their parameters, from the declarations.

use aqmlab_aqm::Discipline;
use aqmlab_core::{Component, Config, Kind, ParamSpec, Params, Preset};
use aqmlab_emu::params::EmulatorParams;
use aqmlab_quic::QuicParams;
use aqmlab_sim::endpoints::EndpointConfig;
use aqmlab_sim::impairment::{
    ChanceParams, DelayCsvParams, DelayStepsParams, GilbertElliottParams, JitterParams,
    ListedLossParams, OutageParams, SlotParams,
};
use aqmlab_sim::network::egress::{DriverParams, ShaperParams};
use aqmlab_sim::rate::radio::{LteParams, WifiParams};
use aqmlab_sim::rate::random::{MarkovParams, OrnsteinUhlenbeckParams};
use aqmlab_sim::rate::{CsvParams, RateStepsParams, TraceParams};
use aqmlab_sim::scenario::{
    ChangeParams, ColumnParams, FlowParams, LinkParams, RecordParams, RerouteParams, RunParams,
};
use aqmlab_sim::workload::Workload;
use aqmlab_tcp::TcpParams;
use aqmlab_tcp::congestion::ControlParams;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::words::{add_words_of_queue, add_words_of_shaper};

/// Returns a list of all components with parameters; see the type stub.
#[pyfunction]
pub fn reference(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    catalogue::<dyn Discipline>(&list, "queue")?;
    catalogue::<dyn ControlParams>(&list, "congestion_control")?;
    catalogue::<dyn Workload>(&list, "workload")?;
    // TCP has its own section for parameters.
    for entry in EndpointConfig::entries().into_iter().filter(|entry| !entry.params.is_empty()) {
        list.append(section(py, "endpoint", entry.name, entry.summary, &entry.params)?)?;
    }
    let (name, summary) = (QuicParams::NAME, QuicParams::SUMMARY);
    list.append(section(py, "endpoint", name, summary, &QuicParams::specs())?)?;
    for (kind, name, summary, params) in sections() {
        list.append(section(py, kind, name, summary, &params)?)?;
    }
    for section in list.iter() {
        let section = section.cast_into::<PyDict>()?;
        let kind: String = section.as_any().get_item("section")?.extract()?;
        let name: String = section.as_any().get_item("name")?.extract()?;
        match kind.as_str() {
            "queue" => add_words_of_queue(&section, &name)?,
            "shaper" => add_words_of_shaper(&section)?,
            _ => {}
        }
    }
    Ok(list)
}

/// Appends the sections of a catalogue: its entries, then its presets.
fn catalogue<K: Kind + ?Sized>(list: &Bound<'_, PyList>, kind: &str) -> PyResult<()> {
    let py = list.py();
    for entry in Config::<K>::entries() {
        list.append(section(py, kind, entry.name, entry.summary, &entry.params)?)?;
    }
    for preset in K::PRESETS {
        let dict = section(py, kind, preset.name, preset.summary, &preset.params::<K>())?;
        make_preset(&dict, preset)?;
        list.append(dict)?;
    }
    Ok(())
}

/// Marks a section as a preset of another.
fn make_preset(section: &Bound<'_, PyDict>, preset: &Preset) -> PyResult<()> {
    section.set_item("preset_of", preset.of)?;
    section.set_item("source", preset.source)?;
    let settings = PyDict::new(section.py());
    for (key, text) in preset.settings {
        settings.set_item(key, text)?;
    }
    section.set_item("settings", settings)
}

type Section = (&'static str, &'static str, &'static str, Vec<ParamSpec>);

fn sections() -> Vec<Section> {
    vec![
        ("transport", "tcp", "the endpoints of a flow", TcpParams::specs()),
        ("scenario", "scenario", "top-level keys of a scenario", RunParams::specs()),
        ("scenario", "change", "a change during the run", ChangeParams::specs()),
        ("link", "link", "one direction of a link", LinkParams::specs()),
        ("link", "rate-steps", "a rate that changes at set times", RateStepsParams::specs()),
        ("link", "rate-trace", "delivery opportunities from a file", TraceParams::specs()),
        ("link", "rate-csv", "times and rates from a file", CsvParams::specs()),
        ("link", "markov", "a rate that jumps between states", MarkovParams::specs()),
        (
            "link",
            "ornstein-uhlenbeck",
            "a rate that varies around its mean",
            OrnsteinUhlenbeckParams::specs(),
        ),
        ("link", "lte", "a synthetic LTE link", LteParams::specs()),
        ("link", "wifi", "a synthetic Wi-Fi link with aggregation", WifiParams::specs()),
        ("link", "delay-steps", "a delay that changes at set times", DelayStepsParams::specs()),
        ("link", "delay-csv", "times and delays from a file", DelayCsvParams::specs()),
        ("link", "jitter", "a random part of the delay of each packet", JitterParams::specs()),
        ("link", "slot", "slots: packets arrive in batches", SlotParams::specs()),
        ("link", "loss", "random losses of single packets", ChanceParams::specs()),
        ("link", "gilbert-elliott", "losses in bursts", GilbertElliottParams::specs()),
        ("link", "loss-list", "losses by the number of the packet", ListedLossParams::specs()),
        ("link", "outages", "intervals in which all packets are lost", OutageParams::specs()),
        (
            "shaper",
            "shaper",
            "a shaper between a queue and its link, one class of HTB or a TBF",
            ShaperParams::specs(),
        ),
        ("driver", "driver", "a driver with its own FIFO after the queue", DriverParams::specs()),
        ("flow", "flow", "a group of identical flows", FlowParams::specs()),
        ("flow", "reroute", "a route change during the run", RerouteParams::specs()),
        (
            "flow",
            "column",
            "values of a distribution from a file: { list = ... } or { cdf = ... }",
            ColumnParams::specs(),
        ),
        ("record", "record", "data recorded in addition to the summary", RecordParams::specs()),
        ("emulator", "emulator", "settings of the emulator", EmulatorParams::specs()),
    ]
}

fn section<'py>(
    py: Python<'py>,
    kind: &str,
    name: &str,
    summary: &str,
    params: &[ParamSpec],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("section", kind)?;
    dict.set_item("name", name)?;
    dict.set_item("summary", summary)?;
    dict.set_item("preset_of", py.None())?;
    dict.set_item("settings", PyDict::new(py))?;
    dict.set_item("source", py.None())?;
    let list = PyList::empty(py);
    for param in params {
        list.append(param_dict(py, param)?)?;
    }
    dict.set_item("params", list)?;
    Ok(dict)
}

pub fn param_dict<'py>(py: Python<'py>, param: &ParamSpec) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", param.name)?;
    dict.set_item("kind", param.kind)?;
    dict.set_item("default", param.default.as_deref())?;
    dict.set_item("range", param.range.as_ref().map(|(low, high)| vec![low, high]))?;
    dict.set_item("choices", param.choices.to_vec())?;
    dict.set_item("meaning", param.meaning)?;
    dict.set_item("source", param.source)?;
    Ok(dict)
}
