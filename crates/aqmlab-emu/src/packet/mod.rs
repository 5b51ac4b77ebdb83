//! Packets as bytes and as what queues see of them: parsing, large packets, their segments.

pub mod buffers;
pub(crate) mod checksum;
pub mod handle;
pub mod offload;
pub mod segments;
pub mod wire;
