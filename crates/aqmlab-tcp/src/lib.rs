//! Transport endpoints and congestion controls: pure state machines.
//!
//! [`Sender`] and [`Receiver`] are the two ends of a one-way transfer:
//! segments, acknowledgements and the time go in, segments and the next
//! deadline come out. [`congestion`] holds the algorithms that set the window.
//!
//! A transfer of 100 kB over a path of 20 ms in each direction:
//!
//! ```
//! use aqmlab_core::{Span, Time};
//! use aqmlab_tcp::{Receiver, Sender, TcpParams};
//! use std::collections::VecDeque;
//!
//! // Linux's; `TcpParams::of_profile` has others.
//! let params = TcpParams::default();
//! let mut sender = Sender::new(&params, Some(100_000), 1);
//! let mut receiver = Receiver::new(&params);
//! let (mut segments, mut acks) = (VecDeque::new(), VecDeque::new());
//! let (mut now, delay) = (Time::ZERO, Span::from_millis(20));
//! sender.open(now);
//! while !sender.is_finished() {
//!     segments.extend(std::iter::from_fn(|| sender.poll(now)).map(|sent| (now + delay, sent)));
//!     acks.extend(std::iter::from_fn(|| receiver.poll(now)).map(|sent| (now + delay, sent)));
//!     let arrivals = [segments.front().map(|(at, _)| *at), acks.front().map(|(at, _)| *at)];
//!     let timers = [sender.next_timeout(), receiver.next_timeout()];
//!     now = arrivals.into_iter().chain(timers).flatten().min().expect("something is due");
//!     if arrivals[0] == Some(now) {
//!         receiver.on_segment(now, &segments.pop_front().expect("it arrives").1);
//!     } else if arrivals[1] == Some(now) {
//!         sender.on_ack(now, &acks.pop_front().expect("it arrives").1);
//!     } else if timers[0] == Some(now) {
//!         sender.on_timeout(now);
//!     } else {
//!         receiver.on_timeout(now);
//!     }
//! }
//! assert_eq!(receiver.received(), 100_000);
//! assert_eq!(now, Time::ZERO + delay * 8);
//! ```

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
