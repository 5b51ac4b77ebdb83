//! Virtual time: scenarios, the event loop, links, flows, probes.
//!
//! [`Scenario::parse`] reads and checks a scenario, [`run`](fn@run) runs one
//! replication of it and gives a [`RunResult`]. Nothing here reads a clock,
//! a file or the environment: the same scenario, seed and replication give
//! the same bits anywhere.
//!
//! # Rooms
//! The way of a packet, from below. Each room uses those before it, and none
//! behind it (`tests/rooms.rs` checks that):
//!
//! 1. [`rate`]: when a link can send.
//! 2. [`impairment`]: what happens to packets on their way.
//! 3. [`network`]: links, routes and the packets in them, whatever these are;
//!    what is measured there.
//! 4. [`closed`]: recorded connections once more, over such links.
//! 5. [`endpoints`]: what sends packets and takes them: TCP, datagrams, others.
//! 6. [`workload`]: the applications that have something to send.
//! 7. [`scenario`]: what is to be simulated, read and checked.
//! 8. [`capture`]: runs in the formats of other programs.
//! 9. [`mod@run`]: a network with endpoints and applications, and its results.

pub mod capture;
pub mod closed;
pub mod endpoints;
pub mod impairment;
pub mod network;
pub mod rate;
pub mod run;
pub mod scenario;
pub mod workload;

pub use network::LinkResult;
pub use run::results::{FlowResult, GroupResult, RunResult, Traffic};
pub use run::stepping::{Run, Snapshot};
pub use run::watch::{Stopped, Watch};
pub use run::{run, run_into, try_run, try_run_recorded};
pub use scenario::{Outside, Scenario};
