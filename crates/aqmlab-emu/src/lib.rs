//! Real time: packets of real programs through the simulator's links.
//!
//! The data path (`packet` to `path`) has neither clock nor device and can be driven by a test.
//! Unsafe code stands in `sys` only.
//!
//! # Rooms
//! From below. Each uses those before it, and none behind it (`tests/rooms.rs` checks that):
//!
//! 1. `errors`: errors of the kernel, in words.
//! 2. [`addresses`]: the blocks of addresses that hosts have.
//! 3. [`packet`]: packets as bytes, and as queues see them.
//! 4. [`sys`]: the system calls.
//! 5. [`changes`]: links that change while packets pass.
//! 6. [`path`]: packets in at ports, through links, out at other ports.
//! 7. [`replay`]: recorded cases through the data path.
//! 8. [`routing`]: which way a packet goes among several hosts.
//! 9. [`nat`]: the gateway to other networks.
//! 10. [`observe`]: logs, captures, views, requests for changes.
//! 11. [`live`]: the loop that waits and writes.
//! 12. [`params`]: how the emulator works.
//! 13. [`report`]: what a run leaves.
//! 14. `spaces`: namespaces, their devices and first processes.
//! 15. `steward`: what else happens while packets pass.
//! 16. [`shell`]: one command behind a path.
//! 17. [`topology`]: several hosts that share links.
//! 18. [`traffic`]: the workloads of a scenario, in such hosts.

pub mod addresses;
pub mod changes;
mod errors;
pub mod live;
pub mod nat;
pub mod observe;
pub mod packet;
pub mod params;
pub mod path;
pub mod replay;
pub mod report;
pub mod routing;
pub mod shell;
mod spaces;
mod steward;
pub mod sys;
pub mod topology;
pub mod traffic;
