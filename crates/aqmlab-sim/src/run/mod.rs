//! Runs of a scenario: a network with endpoints and applications, and its results.

mod apps;
mod changes;
pub mod diagnosis;
mod digest;
mod events;
pub mod results;
mod series;
mod simulation;
pub mod stepping;
pub mod work_limit;

use std::sync::Arc;

use self::results::RunResult;
use self::simulation::Simulation;
use self::work_limit::{Stopped, WorkLimit};
use crate::capture::{Recorder, Unwritten};
use crate::network::records::RecordSink;
use crate::scenario::Scenario;

/// Runs one replication of a scenario.
///
/// # Panics
/// Panics if a packet was lost without being counted, a bug, and where [`try_run`] returns an
/// error.
pub fn run(scenario: &Scenario, replication: u64) -> RunResult {
    try_run(scenario, replication, &WorkLimit::default())
        .unwrap_or_else(|stopped| panic!("{stopped}"))
}

/// Runs one replication of a scenario, while it makes progress.
///
/// # Errors
/// Returns an error if it makes no progress: see [`WorkLimit`].
///
/// # Panics
/// Panics if a packet was lost without being counted: a bug.
pub fn try_run(
    scenario: &Scenario,
    replication: u64,
    limit: &WorkLimit,
) -> Result<RunResult, Stopped> {
    run_into(scenario, replication, limit, None, None).map(|(result, _)| result)
}

/// Runs one replication. Passes the records of level `packets` to `sink`, if any, during the run;
/// the result then contains only the last records of each link. Returns the result, and whether the
/// recording of `recorder`, if any, is complete.
///
/// # Errors
/// See [`try_run`]; the recording up to the error is written.
///
/// # Panics
/// See [`try_run`]; also panics if the sink does.
pub fn run_into(
    scenario: &Scenario,
    replication: u64,
    limit: &WorkLimit,
    sink: Option<Arc<dyn RecordSink>>,
    recorder: Option<Recorder>,
) -> Result<(RunResult, Result<(), Unwritten>), Stopped> {
    let recorder = recorder.map(Box::new);
    let mut simulation = Simulation::new(Arc::new(scenario.clone()), replication, limit, recorder);
    if let Some(sink) = sink {
        simulation.network.give_records(&sink);
    }
    let ran = simulation.run(None);
    let written = simulation.recorder.take().map_or(Ok(()), |recorder| recorder.finish());
    ran?;
    simulation.finish();
    Ok((RunResult::of(simulation), written))
}
