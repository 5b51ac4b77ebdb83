//! Virtual time: scenarios, the event loop, links, flows, probes.
//!
//! [`Scenario::parse`] reads and checks a scenario, [`run`] runs one
//! replication of it and gives a [`RunResult`]. Nothing here reads a clock,
//! a file or the environment: the same scenario, seed and replication give
//! the same bits anywhere.

mod app;
pub mod datagram;
pub mod diagnosis;
pub mod egress;
mod events;
mod flow;
mod link;
mod packet;
pub mod probe;
pub mod results;
pub mod scenario;
pub mod series;
mod simulation;
pub mod workload;

pub use results::{FlowResult, GroupResult, LinkResult, RunResult};
pub use scenario::Scenario;
pub use simulation::run;
