//! Queue disciplines: pure state machines, one file each in [`disciplines`].
//!
//! A discipline gets packets and the time and accounts for every packet
//! ([`discipline`]); [`queue::Queue`] owns one, keeps the counts and checks
//! that nothing is lost; [`registry`] is the list of all of them.

mod cobalt;
pub mod custom;
pub mod discipline;
pub mod disciplines;
mod docsis;
pub mod fifo;
mod fq;
mod pie_linux;
pub mod queue;
pub mod registry;
pub mod replay;
#[cfg(test)]
mod testing;

pub use custom::{CustomConfig, Disciplines, Handle};
pub use discipline::{Backlog, Context, Discipline, DropReason, LinkEnv, Note, QueueDiscipline};
pub use disciplines::QueueConfig;
pub use queue::{Counts, Queue};
