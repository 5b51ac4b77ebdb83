//! What every room of aqmlab speaks: units, parameters, random streams,
//! distributions, packets and errors.
//!
//! Nothing here (nor in `aqmlab-aqm`, `-tcp`, `-sim`) reads a clock, the
//! environment, a file or the operating system's randomness.

pub mod catalogue;
pub mod custom;
pub mod distribution;
pub mod error;
pub mod framing;
mod list;
pub mod packet;
pub mod params;
pub mod quantity;
pub mod random;
pub mod suggest;
pub mod time;
pub mod value;

pub use catalogue::{Catalogue, Preset};
pub use custom::{Added, Custom, CustomParams, Lookup, Never, Nothing};
pub use distribution::{Distribution, Sampler};
pub use error::{Error, Result};
pub use framing::{Framing, LinkLayer};
pub use packet::{Ecn, Packet};
pub use params::{Auto, Entry, ParamSpec, ParamType, Params};
pub use quantity::{Bytes, Limit, Rate};
pub use random::Stream;
pub use time::{Span, Time};
pub use value::{Table, Value};
