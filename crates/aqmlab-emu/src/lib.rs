//! Real time: packets of real programs through the simulator's links.
//!
//! The *data path* (`wire`, `offload`, `buffers`, `handle`, `segments`,
//! `path`) has neither clock nor device and can be driven by a test. What
//! connects it to the world: TUN devices (`tun`), namespaces and processes
//! (`shell`), the loop that waits and writes (`live`). Unsafe code stands in
//! `sys` only.

pub mod addresses;
pub mod buffers;
pub mod changes;
mod checksum;
pub mod handle;
pub mod live;
pub mod nat;
pub mod observe;
pub mod offload;
pub mod path;
pub mod replay;
mod report;
pub mod segments;
pub mod shell;
pub mod sys;
pub mod topology;
pub mod traffic;
pub mod wire;
