//! Queue disciplines: pure state machines, one file each in [`disciplines`].
//!
//! A discipline gets packets and the time and accounts for every packet
//! ([`discipline`]); [`queue::Queue`] owns one, keeps the counts and checks
//! that nothing is lost; [`registry`] is the list of all of them.
//!
//! A program can also use a discipline for a buffer of its own:
//!
//! ```
//! use aqmlab_aqm::disciplines::fq_codel::FqCodelParams;
//! use aqmlab_aqm::{Context, Discipline, LinkEnv, QueueDiscipline, Sink};
//! use aqmlab_core::{Bytes, Ecn, Packet, Rate, Span, Stream, Time};
//!
//! let env = LinkEnv::new(Rate::from_bps(10_000_000), Span::from_millis(100))
//!     .with_sizes(Bytes::new(1514), 14);
//! let mut queue: Box<dyn QueueDiscipline> = FqCodelParams::default().build(&env);
//! let (mut random, mut sink) = (Stream::from_state(1), Sink::default());
//!
//! // Times count from the start of the queue. PIE and others have timers: FQ-CoDel has none.
//! let now = Time::ZERO + Span::from_millis(20);
//! while let Some(due) = queue.next_wakeup().filter(|due| *due <= now) {
//!     queue.on_wakeup(&mut Context::new(due, &mut random, &mut sink));
//! }
//!
//! // The frame with index 7 in the program's buffer.
//! let mut packet = Packet::new(1500, Ecn::NotEct).with_flow_hash(3).with_key(7);
//! packet.set_arrival(now);
//! queue.enqueue(packet, &mut Context::new(now, &mut random, &mut sink));
//! let sent = queue.dequeue(&mut Context::new(now, &mut random, &mut sink));
//! assert_eq!(sent.map(|packet| packet.key), Some(7));
//! // The frames of these keys can be reused.
//! assert_eq!(sink.take_dropped().map(|(packet, _)| packet.key).count(), 0);
//! ```
//!
//! Without the default feature `std` the crate needs only `alloc`; results are
//! the same.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

#[cfg(feature = "std")]
pub mod abi;
mod cobalt;
pub mod custom;
pub mod discipline;
pub mod disciplines;
mod docsis;
pub mod fifo;
mod fq;
#[cfg(test)]
mod laws;
mod one_queue;
pub mod queue;
mod red_burst;
pub mod registry;
#[cfg(test)]
mod testing;

#[cfg(feature = "std")]
#[doc(hidden)]
pub use aqmlab_core::abi::keep_panics as __keep_panics;
pub use discipline::{
    Backlog, CloneDiscipline, CloneParams, Context, Discipline, Disciplines, Headers, LinkEnv,
    Note, QueueConfig, QueueDiscipline, Reason, Sink, Transition,
};
pub use queue::{Counts, Queue};
