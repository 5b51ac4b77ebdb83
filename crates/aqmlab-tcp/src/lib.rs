//! Transport endpoints and congestion controls: pure state machines.
//!
//! [`Sender`] and [`Receiver`] are the two ends of a one-way transfer:
//! segments, acknowledgements and the time go in, segments and the next
//! deadline come out. [`congestion`] holds the algorithms that set the window.

pub mod abi;
pub mod congestion;
mod connection;
mod delivery;
mod endpoint;
mod linux;
mod losses;
pub mod params;
mod profiles;
mod prr;
mod rcvbuf_autotune;
mod reassembly;
pub mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
pub mod segment;
mod sender;

#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod response_tests;
#[cfg(test)]
mod testing;

#[doc(hidden)]
pub use aqmlab_core::abi::keep_panics as __keep_panics;
pub use connection::Stats;
pub use endpoint::Sender;
pub use linux::Kernel;
pub use params::{Profile, Recovery, TcpParams};
pub use receiver::Receiver;
pub use segment::{Ack, CeCount, DataSegment, SackBlocks, Timestamps};
pub use sender::CongestionState;
