//! Real-time emulation: packets of real programs traverse the simulator's links.
//!
//! The data path (`packet` to `path`) uses neither clock nor device, so tests can drive it. Only
//! `sys` contains unsafe code.
//!
//! # Rooms
//! From the lowest up. A layer uses only layers below it (checked by `tests/layers.rs`):
//!
//! 1. `errors`: errors of the kernel as readable messages.
//! 2. [`addresses`]: address blocks of hosts.
//! 3. [`packet`]: packets as bytes, and as queues see them.
//! 4. [`sys`]: system calls.
//! 5. [`changes`]: link changes during a run.
//! 6. [`path`]: the data path, from ports through links to other ports.
//! 8. [`routing`]: route selection among several hosts.
//! 9. [`nat`]: gateway to other networks.
//! 10. [`observe`]: logs, captures, live statistics, requests for changes.
//! 11. [`live`]: event loop that reads, waits and writes.
//! 12. [`params`]: parameters of the emulator.
//! 13. [`report`]: results of a run.
//! 14. `netns`: namespaces, their devices and init processes.
//! 15. `background_tasks`: background tasks of the event loop.
//! 16. [`shell`]: one command behind a path.
//! 17. [`topology`]: several hosts that share links.
//! 18. [`traffic`]: workloads of a scenario, run in those hosts.

pub mod addresses;
mod background_tasks;
pub mod changes;
mod errors;
pub mod live;
pub mod nat;
mod netns;
pub mod observe;
pub mod packet;
pub mod params;
pub mod path;
pub mod report;
pub mod routing;
pub mod shell;
pub mod sys;
pub mod topology;
pub mod traffic;
