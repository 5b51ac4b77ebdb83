//! Virtual time: scenarios, the event loop, links, flows, probes.
//!
//! [`Scenario::parse`] reads and checks a scenario, [`run`] runs one
//! replication of it and gives a [`RunResult`]. Nothing here reads a clock,
//! a file or the environment: the same scenario, seed and replication give
//! the same bits anywhere.

mod access;
mod agenda;
mod app;
pub mod carried;
pub mod datagram;
pub mod diagnosis;
pub mod egress;
pub mod events;
mod flow;
pub mod impairment;
pub mod link;
pub mod losses;
mod medium;
mod packet;
pub mod pipe;
pub mod probe;
pub mod rate;
pub mod results;
pub mod scenario;
pub mod series;
mod simulation;
pub mod watch;
mod wire;
pub mod workload;

pub use results::{FlowResult, GroupResult, LinkResult, RunResult};
pub use scenario::{Outside, Scenario};
pub use simulation::{run, try_run};
pub use watch::{Stopped, Watch};
