//! Emulation of commands and traffic, for Python.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use aqmlab_core::params::read_value;
use aqmlab_core::{Error, Params, Span};
use aqmlab_emu::observe::{CaptureFile, LogFile, Recordings};
use aqmlab_emu::params::EmulatorParams;
use aqmlab_emu::report::Outcome;
use aqmlab_emu::routing::{Topology, Way};
use aqmlab_emu::shell::{self, Attached, Options};
use aqmlab_emu::topology::{Commands, run_commands};
use aqmlab_emu::traffic;
use aqmlab_sim::network::probe::{QUANTILES, TimeSummary};
use aqmlab_sim::{LinkResult, Scenario};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::convert::{to_py_error, to_table};
use crate::runner::broken;
use crate::scenario::PyScenario;
use crate::tables::{Finished, Results};

/// Result of a command that was run behind links.
#[pyclass(module = "aqmlab._core", frozen)]
pub struct Emulation {
    /// Exit status by the shell's conventions.
    #[pyo3(get)]
    status: i32,
    /// Scenario of the links, with their changes.
    #[pyo3(get)]
    scenario: Py<PyScenario>,
    /// Tables of results.
    #[pyo3(get)]
    results: Py<Results>,
    /// Remarks for the user.
    #[pyo3(get)]
    remarks: Vec<String>,
    /// Lateness of departures.
    lateness: TimeSummary,
    /// Waiting time before packets were read, a part of the lateness.
    input: TimeSummary,
}

#[pymethods]
impl Emulation {
    #[getter]
    fn lateness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        quantiles(py, &self.lateness)
    }

    #[getter]
    fn input_lateness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        quantiles(py, &self.input)
    }
}

fn quantiles<'py>(py: Python<'py>, times: &TimeSummary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("count", times.count)?;
    for (quantile, value) in QUANTILES.iter().zip(times.quantiles) {
        dict.set_item(format!("p{}_s", quantile * 100.0), value)?;
    }
    dict.set_item("max_s", times.max.as_secs_f64())?;
    Ok(dict)
}

/// Runs a command behind links of a scenario; see the type stub.
#[pyfunction]
#[pyo3(signature = (
    scenario, command, *, down, up, environment, far = vec![], nat = false, settings = None,
    logs = vec![], capture = None, until = None, attached = None, interface = None,
))]
#[allow(clippy::too_many_arguments)]
pub fn emulate(
    py: Python<'_>,
    scenario: PyRef<'_, PyScenario>,
    command: Vec<OsString>,
    down: Vec<String>,
    up: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    far: Vec<OsString>,
    nat: bool,
    settings: Option<&Bound<'_, PyMapping>>,
    logs: Logs,
    capture: CaptureOf,
    until: Option<f64>,
    attached: Option<u32>,
    interface: Option<String>,
) -> PyResult<Emulation> {
    let scenario = Arc::clone(&scenario.scenario);
    let params = params_of(py, settings)?;
    let down = indices(py, &scenario, &down, "down")?;
    let up = indices(py, &scenario, &up, "up")?;
    let recordings = recordings(py, &scenario, logs, capture)?;
    let until = until.map(Span::from_secs_f64);
    let attached = attached.map(Attached::Process).or(interface.map(Attached::Interface));
    let options = Options { command, nat, attached, far, down, up, environment, recordings, until };
    emulation(py, 0, &scenario, || shell::run(&scenario, &options, &params), true)
}

/// Returns whether the far end of a shell is this machine; see the type stub.
#[pyfunction]
pub fn has_far_end_here() -> bool {
    shell::has_far_end_here()
}

/// Checks that the emulator supports a scenario's traffic; see the type stub.
#[pyfunction]
pub fn check_playable(py: Python<'_>, scenario: PyRef<'_, PyScenario>) -> PyResult<()> {
    traffic::controls(&scenario.scenario).map(drop).map_err(|error| to_py_error(py, error))
}

/// Runs the workloads of a scenario over its links; see the type stub.
#[pyfunction]
#[pyo3(signature = (
    scenario, *, run = 0, replication = 0, settings = None, logs = vec![], capture = None,
))]
pub fn play(
    py: Python<'_>,
    scenario: PyRef<'_, PyScenario>,
    run: u32,
    replication: u64,
    settings: Option<&Bound<'_, PyMapping>>,
    logs: Logs,
    capture: CaptureOf,
) -> PyResult<Emulation> {
    let scenario = Arc::clone(&scenario.scenario);
    let params = params_of(py, settings)?;
    let recordings = recordings(py, &scenario, logs, capture)?;
    let play = || traffic::run(&scenario, replication, &recordings, &params);
    emulation(py, run, &scenario, play, false)
}

/// Runs commands in hosts behind the links of a scenario; see the type stub.
#[pyfunction]
#[pyo3(signature = (
    scenario, hosts, ways, *, main, environment, settings = None, logs = vec![], capture = None,
))]
#[allow(clippy::too_many_arguments)]
pub fn emulate_hosts(
    py: Python<'_>,
    scenario: PyRef<'_, PyScenario>,
    hosts: Vec<(String, Vec<OsString>)>,
    ways: Vec<(usize, usize, Vec<String>)>,
    main: usize,
    environment: Vec<(OsString, OsString)>,
    settings: Option<&Bound<'_, PyMapping>>,
    logs: Logs,
    capture: CaptureOf,
) -> PyResult<Emulation> {
    let scenario = Arc::clone(&scenario.scenario);
    let params = params_of(py, settings)?;
    let recordings = recordings(py, &scenario, logs, capture)?;
    let ways = ways.into_iter().map(|(from, to, links)| {
        Ok(Way { from, to, links: indices(py, &scenario, &links, "ways")? })
    });
    let topology = Topology { hosts: hosts.len(), ways: ways.collect::<PyResult<_>>()? };
    let (names, words) = hosts.into_iter().unzip();
    let commands = Commands { names, words, main, environment, recordings };
    let run = || run_commands(&scenario, &topology, &commands, &params);
    emulation(py, 0, &scenario, run, true)
}

/// Logged links, with files and header lines.
type Logs = Vec<(String, PathBuf, Vec<String>)>;
/// Capture: file, ring size in bytes, maximum bytes per packet, places.
type CaptureOf = Option<(PathBuf, Option<u64>, u32, String)>;

fn recordings(
    py: Python<'_>,
    scenario: &Scenario,
    logs: Logs,
    capture: CaptureOf,
) -> PyResult<Recordings> {
    let log = |(link, file, head): (String, _, _)| {
        let link = indices(py, scenario, std::slice::from_ref(&link), "logs")?[0];
        Ok(LogFile { link, file, head })
    };
    let capture = capture.map(|(file, ring, most, places)| {
        let places = read_value(&places.as_str().into());
        let places = places.map_err(|error| to_py_error(py, error.at("capture")))?;
        PyResult::Ok(CaptureFile { file, ring, most, places })
    });
    let logs = logs.into_iter().map(log).collect::<PyResult<_>>()?;
    Ok(Recordings { logs, capture: capture.transpose()? })
}

fn params_of(py: Python<'_>, settings: Option<&Bound<'_, PyMapping>>) -> PyResult<EmulatorParams> {
    match settings {
        None => Ok(EmulatorParams::default()),
        Some(settings) => {
            EmulatorParams::from_table(&to_table(settings)?).map_err(|error| to_py_error(py, error))
        }
    }
}

/// Returns the indices of links by name.
fn indices(py: Python<'_>, scenario: &Scenario, names: &[String], key: &str) -> PyResult<Vec<u32>> {
    let index = |name: &String| {
        let names = scenario.links.iter().map(|link| link.name.as_str());
        let found = names.clone().position(|known| known == name);
        found.map(|index| index as u32).ok_or_else(|| Error::unknown("link", name, names))
    };
    let found: Result<Vec<u32>, Error> = names.iter().map(index).collect();
    found.map_err(|error| to_py_error(py, error.at(key)))
}

/// Returns the bottleneck of a command, whose traffic may take either direction: the link where
/// packets waited for the longest time in total, or `own`.
fn bottleneck(links: &[LinkResult], own: usize) -> usize {
    let waited = |at: usize| (links[at].sojourn.mean * links[at].sojourn.count as f64).max(0.0);
    (0..links.len()).fold(own, |most, at| if waited(at) > waited(most) { at } else { most })
}

/// Emulates without the GIL, and converts the outcome for Python.
fn emulation(
    py: Python<'_>,
    run: u32,
    scenario: &Arc<Scenario>,
    emulate: impl FnOnce() -> Result<Outcome, Error> + Send,
    is_command: bool,
) -> PyResult<Emulation> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(emulate)));
    let outcome = outcome.map_err(|panic| broken(py, panic, "emulator"))?;
    let outcome = outcome.map_err(|error| to_py_error(py, error))?;
    let mut scenario = (**scenario).clone();
    if is_command {
        scenario.bottleneck = bottleneck(&outcome.result.links, scenario.bottleneck);
    }
    let mut changed = scenario.clone();
    changed.changes = outcome.changes;
    let changed = PyScenario { scenario: Arc::new(changed), folders: Vec::new() };
    let finished = Finished::new(run, Arc::new(scenario), outcome.result);
    Ok(Emulation {
        status: outcome.status,
        scenario: Py::new(py, changed)?,
        results: Py::new(py, Results::new(vec![finished]))?,
        remarks: outcome.remarks,
        lateness: outcome.lateness,
        input: outcome.input,
    })
}
