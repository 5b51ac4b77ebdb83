//! Links with a queue.

mod fast;
#[cfg(test)]
mod fast_tests;
mod general;
mod queued;
#[cfg(test)]
mod queued_tests;
mod result;
mod transmitter;

pub use self::queued::QueuedLink;
pub use self::result::{LinkColumn, LinkResult};
