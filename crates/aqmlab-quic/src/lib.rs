//! QUIC stacks as endpoints of the simulator: the published crates `noq-proto` and `quinn-proto`,
//! unmodified, behind every queue and beside every other transport.
//!
//! Both crates are state machines without sockets. `host` drives one connection of either
//! through the `Stack` trait; `noq` and `quinn` implement that trait with a
//! macro, because the two crates have nearly the same interface. [`QuicParams`] is the endpoint
//! `quic` of scenario files.
//!
//! # Differences from a deployment
//! 1. Cryptography is null (`tls`): the handshake has the messages, round trips and sizes of
//!    TLS 1.3, packets keep their 16-byte tag, and protection is the identity.
//! 2. Time is virtual (`clock`): every packet is processed in zero time.
//! 3. Each flow is one connection between two endpoints of its own.
//! 4. The datagrams of one generic segmentation offload (GSO) batch leave back to back.
//! 5. `bbr` and `bbr3` seed their generators from the operating system, and the crates offer no
//!    alternative: runs with these controllers differ from each other. All other runs are
//!    deterministic.

mod clock;
mod host;
mod params;
#[macro_use]
mod tls;
#[macro_use]
mod stack;
mod evaluate;
mod noq;
mod own;
mod quinn;
#[cfg(feature = "tls")]
mod rustls;

use aqmlab_core::Result;
use aqmlab_sim::endpoints::Endpoints;

pub use evaluate::{Evaluation, Reading, Report, Verdict, evaluate};
pub use noq_proto;
pub use own::{Code, ForNoq, ForQuinn, Own};
pub use quinn_proto;

pub use params::{Controller, Library, QuicParams};

/// Returns the endpoints of this crate, for [`Outside`](aqmlab_sim::Outside).
///
/// # Errors
/// Returns an error if the name `quic` is already an endpoint of the simulator.
pub fn endpoints() -> Result<Endpoints> {
    Endpoints::default().with(Box::new(QuicParams::default()))
}

/// Returns the endpoints of this crate with true TLS sessions, by rustls. Runs with the same seed
/// differ: keys and handshakes are random.
///
/// # Errors
/// Returns an error if the name `quic` is already an endpoint of the simulator.
#[cfg(feature = "tls")]
pub fn endpoints_with_tls(library: Library) -> Result<Endpoints> {
    Endpoints::default().with(Box::new(own::OwnParams::new(Own::Tls(library))))
}
