//! Packets as bytes, and as queues see them: parsing, large packets and their segments.

pub mod buffers;
pub mod checksum;
pub mod offload;
pub mod segments;
pub mod wire;
