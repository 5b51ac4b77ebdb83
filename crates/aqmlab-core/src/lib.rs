//! The foundation of all aqmlab crates: units, parameters, random streams, distributions, packets
//! and errors.
//!
//! Nothing here (nor in `aqmlab-aqm`, `-tcp`, `-sim`) reads a clock, the
//! environment, a file or the operating system's randomness.
//!
//! Without the default feature `std` this crate needs only `alloc`; then errors
//! suggest no nearest name, and what has to be rounded is rounded by `libm`,
//! with the same results.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

#[cfg(feature = "std")]
pub mod abi;
pub mod catalogue;
pub mod component;
pub mod distribution;
pub mod error;
pub mod framing;
mod list;
pub mod math;
pub mod packet;
pub mod params;
pub mod quantity;
pub mod random;
pub mod stated;
pub mod suggest;
mod tcp_header;
pub mod time;
pub mod value;
pub mod varint;
pub mod words;

pub use component::{AnyComponent, BuiltIn, Component, Config, Kind, Lookup, Preset, Registry};
pub use distribution::{Distribution, Sampler};
pub use error::{Error, Result};
pub use framing::{Cells, Framing, FramingParams, LinkLayer};
pub use packet::{Ecn, Packet};
pub use params::{Auto, Entry, ParamSpec, ParamType, Params};
pub use quantity::{Bytes, Limit, Rate};
pub use random::Stream;
pub use stated::{Chosen, Stated};
pub use tcp_header::{SackOption, TcpHeader};
pub use time::{Deadline, Span, Time};
pub use value::{Table, Value};

/// What the macros of this crate need wherever they are used.
#[doc(hidden)]
pub mod __alloc {
    pub use alloc::{boxed, format, string, vec};
}
