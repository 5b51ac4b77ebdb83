//! A run of a scenario: a network with endpoints and applications, and what is
//! left of it.

mod apps;
mod changes;
pub mod diagnosis;
mod digest;
mod events;
pub mod results;
mod series;
mod simulation;
pub mod stepping;
pub mod watch;

use std::sync::Arc;

use self::results::RunResult;
use self::simulation::Simulation;
use self::watch::{Stopped, Watch};
use crate::capture::{Recorder, Unwritten};
use crate::network::records::RecordSink;
use crate::scenario::Scenario;

/// Runs one replication of a scenario.
///
/// # Panics
/// If a packet was lost without being counted, a bug; and where [`try_run`] gives an error.
pub fn run(scenario: &Scenario, replication: u64) -> RunResult {
    try_run(scenario, replication, &Watch::default()).unwrap_or_else(|stopped| panic!("{stopped}"))
}

/// Runs one replication of a scenario, as long as it makes progress.
///
/// # Errors
/// If it does not: see [`Watch`].
///
/// # Panics
/// If a packet was lost without being counted: a bug.
pub fn try_run(scenario: &Scenario, replication: u64, watch: &Watch) -> Result<RunResult, Stopped> {
    run_into(scenario, replication, watch, None)
}

/// The same; at recording level `packets` the records go to `sink`, if there is one, while
/// the run goes on, and but for the last of each link are not in the result.
///
/// # Errors
/// As [`try_run`].
///
/// # Panics
/// As [`try_run`], and if the sink does.
pub fn run_into(
    scenario: &Scenario,
    replication: u64,
    watch: &Watch,
    sink: Option<Arc<dyn RecordSink>>,
) -> Result<RunResult, Stopped> {
    let mut simulation = Simulation::new(Arc::new(scenario.clone()), replication, watch);
    if let Some(sink) = sink {
        simulation.network.give_records(&sink);
    }
    simulation.run(None)?;
    simulation.finish();
    Ok(RunResult::of(simulation))
}

/// The same, recorded: the result, and whether all of the record could be written.
///
/// # Errors
/// As [`try_run`]; what was recorded up to there is written.
pub fn try_run_recorded(
    scenario: &Scenario,
    replication: u64,
    watch: &Watch,
    recorder: Recorder,
) -> Result<(RunResult, Result<(), Unwritten>), Stopped> {
    let mut simulation = Simulation::new(Arc::new(scenario.clone()), replication, watch);
    simulation.recorder = Some(Box::new(recorder));
    let ran = simulation.run(None);
    let written = simulation.recorder.take().map_or(Ok(()), |recorder| recorder.finish());
    ran?;
    simulation.finish();
    Ok((RunResult::of(simulation), written))
}
