//! Parameters of the emulator.

use aqmlab_core::{Bytes, Span, choices, params};

choices! {
    /// Waiting method for departures.
    pub enum Precision {
        /// Sleeps for at least 1 ms, and writes all packets that became due together.
        LowCpu = "low-cpu",
        /// Sleeps until just before a departure, at most 2,500 to 10,000 times a second.
        Balanced = "balanced",
        /// Polls the clock and the devices continuously.
        Exact = "exact",
    }
}

params! {
    /// Parameters of the emulator.
    pub struct EmulatorParams {
        /// Waiting method for departures: `low-cpu`, `balanced` or `exact`.
        precision: Precision = Precision::Balanced, source "this program";
        /// Maximum packet size (MTU).
        mtu: Bytes = Bytes::new(1500), in Bytes::new(68) => Bytes::new(65_535),
            source "Ethernet; RFC 791 for the range";
        /// Lateness that one packet in a hundred may exceed before the run is reported as late.
        lateness: Span = Span::from_micros(500), in Span::ZERO => Span::from_secs(3600),
            source "this program";
        /// Processor that the emulator is pinned to; `none`: any.
        cpu: Option<u64> = None, source "sched_setaffinity(2)";
        /// Time allowed for packets in flight to arrive after the command ends; 0s: they are
        /// discarded.
        drain: Span = Span::from_secs(2), in Span::ZERO => Span::from_secs(3600),
            source "this program";
        /// Name for `aqmlab set` and `aqmlab top`; `none`: the process ID.
        name: Option<String> = None, source "this program";
        /// True if commands keep their capabilities in the emulator's user namespace. Without them
        /// they cannot change the network there.
        keep_capabilities: bool = false, source "capabilities(7)";
        /// Real-time priority, if permitted; 0: none.
        priority: u64 = 40, in 0 => 99, source "sched(7), SCHED_FIFO";
    }
}
