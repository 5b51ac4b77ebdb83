//! Queue disciplines: pure state machines, one file each.
//!
//! A discipline gets packets and the time and accounts for every packet
//! ([`discipline`]); [`queue::Queue`] owns one, keeps the counts and checks
//! that nothing is lost; [`registry`] is the list of all of them.

pub mod blue;
pub mod cake;
pub mod choke;
mod cobalt;
pub mod codel;
pub mod discipline;
pub mod droptail;
mod drr;
pub mod dualpi2;
pub mod fifo;
mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod pi2;
pub mod pie;
pub mod pie2013;
mod pie_linux;
pub mod queue;
pub mod red;
pub mod red_linux;
pub mod registry;
pub mod sfb;
pub mod sfq;
pub mod sfq_codel;
#[cfg(test)]
mod testing;

pub use discipline::{Backlog, Context, DropReason, LinkEnv, Note, QueueDiscipline};
pub use queue::{Counts, Queue};
pub use registry::QueueConfig;
