//! Real-time emulation: packets of real programs traverse the simulator's links.
//!
//! The data path (`packet` to `path`) uses neither clock nor device, so tests can drive it. Only
//! `sys` contains unsafe code.
//!
//! # Rooms
//! From the lowest up. A layer uses only layers below it (checked by `tests/layers.rs`):
//!
//! 1. [`params`]: parameters of the emulator.
//! 2. `addresses`: address blocks of hosts.
//! 3. [`packet`]: packets as bytes, and as queues see them.
//! 4. `sys`: system calls.
//! 5. [`changes`]: link changes during a run.
//! 6. [`path`]: the data path, from ports through links to other ports.
//! 7. [`routing`]: route selection among several hosts.
//! 8. `nat`: gateway to other networks.
//! 9. [`observe`]: logs, captures, live statistics, requests for changes.
//! 10. `netns`: namespaces, their devices and init processes.
//! 11. `background_tasks`: background tasks of the event loop.
//! 12. `live`: event loop that reads, waits and writes.
//! 13. [`report`]: results of a run.
//! 14. [`shell`]: one command behind a path.
//! 15. [`topology`]: several hosts that share links.
//! 16. [`traffic`]: workloads of a scenario, run in those hosts.

mod addresses;
mod background_tasks;
pub mod changes;
mod live;
mod nat;
mod netns;
pub mod observe;
pub mod packet;
pub mod params;
pub mod path;
pub mod report;
pub mod routing;
pub mod shell;
mod sys;
pub mod topology;
pub mod traffic;
