//! Virtual time: scenarios, the event loop, links, flows, probes.
//!
//! [`Scenario::parse`] reads and checks a scenario, [`run`] runs one
//! replication of it and gives a [`RunResult`]. Nothing here reads a clock,
//! a file or the environment: the same scenario, seed and replication give
//! the same bits anywhere.

pub mod endpoints;
pub mod impairment;
pub mod network;
pub mod rate;
pub mod run;
pub mod scenario;
pub mod workload;

pub use network::LinkResult;
pub use run::results::{FlowResult, GroupResult, RunResult};
pub use run::watch::{Stopped, Watch};
pub use run::{run, try_run};
pub use scenario::{Outside, Scenario};
