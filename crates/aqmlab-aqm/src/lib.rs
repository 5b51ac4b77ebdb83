//! Queue disciplines: pure state machines, one file each in [`disciplines`].
//!
//! A discipline gets packets and the time and accounts for every packet
//! ([`discipline`]); [`queue::Queue`] owns one, keeps the counts and checks
//! that nothing is lost; [`registry`] is the list of all of them.
//!
//! A discipline can also be driven over a buffer of one's own:
//!
//! ```
//! use aqmlab_aqm::disciplines::fq_codel::FqCodelParams;
//! use aqmlab_aqm::{Context, Discipline, LinkEnv, QueueDiscipline, Sink};
//! use aqmlab_core::{Bytes, Ecn, Packet, Rate, Span, Stream, Time, packet_fields};
//!
//! /// Stands for a frame in the buffer.
//! struct Handle { place: usize, size: u32, hash: u32, ecn: Ecn, arrival: Time }
//! impl Packet for Handle {
//!     packet_fields!(size, hash, ecn, mark, arrival);
//! }
//!
//! let env = LinkEnv {
//!     rate: Rate::from_bps(10_000_000),
//!     base_rtt: Span::from_millis(100),
//!     mtu: Bytes::new(1514),
//!     header: 14,
//! };
//! let mut queue: Box<dyn QueueDiscipline<Handle>> = FqCodelParams::default().build(&env);
//! let (mut random, mut sink) = (Stream::from_state(1), Sink::default());
//!
//! let handle =
//!     Handle { place: 7, size: 1500, hash: 3, ecn: Ecn::NotEct, arrival: Time::ZERO };
//! queue.enqueue(handle, &mut Context::new(Time::ZERO, &mut random, &mut sink));
//! let sent = queue.dequeue(&mut Context::new(Time::ZERO, &mut random, &mut sink));
//! assert_eq!(sent.map(|handle| handle.place), Some(7));
//! // The frames of these places are free again.
//! assert_eq!(sink.take_dropped().map(|(handle, _)| handle.place).count(), 0);
//! ```
//!
//! Without the default feature `std` the crate needs only `alloc`; results are
//! the same.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

mod cobalt;
pub mod custom;
pub mod discipline;
pub mod disciplines;
mod docsis;
pub mod fifo;
mod fq;
mod pie_linux;
pub mod queue;
mod red_burst;
pub mod registry;
#[cfg(test)]
mod testing;

pub use custom::{CustomConfig, Disciplines, Handle};
pub use discipline::{
    Backlog, Context, Discipline, Headers, LinkEnv, Note, QueueDiscipline, Reason, Sink,
};
pub use disciplines::{QueueConfig, Transition};
pub use queue::{Counts, Queue};
