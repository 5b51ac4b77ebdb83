//! Replays what reference implementations did and compares it with aqmlab.
//!
//! - [`queues`]: recorded arrivals through a queue discipline, alone or in the emulator's data path.
//! - [`senders`]: recorded connections of Linux through the sender, alone or with simulated links and
//!   receiver.
//!
//! `aqmlab conformance` and the tests of this crate use them. The recordings are in
//! `python/aqmlab/conformance/recorded`.

pub mod queues;
pub mod senders;
