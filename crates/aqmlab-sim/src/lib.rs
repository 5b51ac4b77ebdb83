//! Simulation in virtual time: scenarios, event loop, links, flows, measurements.
//!
//! [`Scenario::parse`] reads and checks a scenario; [`run`](fn@run) runs one replication and
//! returns a [`RunResult`]. The crate reads no clock, no file and no environment variable: the same
//! scenario, seed and replication give identical bits on every machine.
//!
//! # Layers
//! From the lowest up, along the path of a packet. A layer uses only layers below it (checked by
//! `tests/layers.rs`):
//!
//! 1. [`rate`]: transmission opportunities of links.
//! 2. [`impairment`]: loss, delay variation, reordering and duplication.
//! 3. [`network`]: links, routes and packets of any type; their measurements.
//! 5. [`endpoints`]: senders and receivers of packets: TCP, datagrams, others.
//! 6. [`workload`]: applications that generate data.
//! 7. [`scenario`]: description of a simulation, read and checked.
//! 8. [`capture`]: runs in the formats of other programs.
//! 9. [`mod@run`]: a network with endpoints and applications, and its results.

pub mod capture;
pub mod endpoints;
pub mod impairment;
pub mod network;
pub mod rate;
pub mod run;
pub mod scenario;
pub mod workload;

pub use network::LinkResult;
pub use run::results::{FlowResult, GroupResult, Observed, RunResult, Traffic};
pub use run::stepping::{Position, Run};
pub use run::work_limit::{Stopped, WorkLimit};
pub use run::{run, run_into, try_run};
pub use scenario::{Outside, Scenario};
