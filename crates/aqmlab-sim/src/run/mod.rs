//! A run of a scenario: a network with endpoints and applications, and what is
//! left of it.

pub(crate) mod app;
pub mod diagnosis;
pub(crate) mod events;
pub mod results;
mod series;
mod simulation;

use self::results::RunResult;
use self::simulation::Simulation;
use crate::scenario::Scenario;

/// Runs one replication of a scenario.
///
/// # Panics
/// If a packet was lost without being counted: a bug.
pub fn run(scenario: &Scenario, replication: u64) -> RunResult {
    let mut simulation = Simulation::new(scenario, replication);
    simulation.run();
    RunResult::of(simulation)
}
