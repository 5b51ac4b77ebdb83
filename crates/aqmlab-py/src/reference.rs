//! Everything that has parameters, from the declarations.

use aqmlab_aqm::registry;
use aqmlab_core::{ParamSpec, Params};
use aqmlab_sim::egress::{DriverParams, ShaperParams};
use aqmlab_sim::scenario::{FlowParams, LinkParams, RecordParams, RunParams};
use aqmlab_sim::workload;
use aqmlab_tcp::TcpParams;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A list of everything that has parameters; see the type stub.
#[pyfunction]
pub fn reference(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for entry in registry::entries() {
        list.append(section(py, "queue", entry.name, entry.summary, &entry.params)?)?;
    }
    for preset in registry::PRESETS {
        let params = registry::entries()
            .into_iter()
            .find(|entry| entry.name == preset.discipline)
            .map(|entry| entry.params)
            .unwrap_or_default();
        let dict = section(py, "queue", preset.name, preset.summary, &params)?;
        dict.set_item("preset_of", preset.discipline)?;
        dict.set_item("source", preset.source)?;
        let settings = PyDict::new(py);
        for (key, text) in preset.settings {
            settings.set_item(key, text)?;
        }
        dict.set_item("settings", settings)?;
        list.append(dict)?;
    }
    for entry in workload::entries() {
        list.append(section(py, "workload", entry.name, entry.summary, &entry.params)?)?;
    }
    let sections: [(&str, &str, &str, Vec<ParamSpec>); 7] = [
        ("transport", "tcp", "the endpoints of a flow", TcpParams::specs()),
        ("scenario", "scenario", "the keys at the top of a scenario", RunParams::specs()),
        ("link", "link", "one direction of a link", LinkParams::specs()),
        ("shaper", "shaper", "a token bucket between a queue and its link", ShaperParams::specs()),
        (
            "driver",
            "driver",
            "a driver with a FIFO of its own behind the queue",
            DriverParams::specs(),
        ),
        ("flow", "flow", "a group of flows that are alike", FlowParams::specs()),
        ("record", "record", "what is recorded besides the summary", RecordParams::specs()),
    ];
    for (kind, name, summary, params) in sections {
        list.append(section(py, kind, name, summary, &params)?)?;
    }
    Ok(list)
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

fn param_dict<'py>(py: Python<'py>, param: &ParamSpec) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", param.name)?;
    dict.set_item("kind", param.kind)?;
    dict.set_item("default", &param.default)?;
    dict.set_item("range", param.range.as_ref().map(|(low, high)| vec![low, high]))?;
    dict.set_item("choices", param.choices.to_vec())?;
    dict.set_item("meaning", param.meaning)?;
    dict.set_item("source", param.source)?;
    Ok(dict)
}
