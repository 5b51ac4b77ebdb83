//! How the emulator works: its own parameters.

use aqmlab_core::{Bytes, Span, params};

use crate::live::Precision;

params! {
    /// How the emulator works.
    pub struct EmulatorParams {
        /// How it waits for the time of a departure: `low-cpu`, `balanced` or `exact`.
        precision: Precision = Precision::Balanced, source "this program";
        /// The largest packet.
        mtu: Bytes = Bytes::new(1500), in Bytes::new(68) => Bytes::new(65_535),
            source "Ethernet; RFC 791 for the range";
        /// A run is said to be late if one packet in a hundred was held up for longer than this.
        lateness: Span = Span::from_micros(500), in Span::ZERO => Span::from_secs(3600),
            source "this program";
        /// The processor that it stays on; `none` for any.
        cpu: Option<u64> = None, source "sched_setaffinity(2)";
        /// How long packets in flight may take to arrive when the command has ended; 0s discards
        /// them.
        drain: Span = Span::from_secs(2), in Span::ZERO => Span::from_secs(3600),
            source "this program";
        /// What it is called, for `aqmlab set` and `aqmlab top`; `none`: by its process ID.
        name: Option<String> = None, source "this program";
        /// Whether commands keep the capabilities that they have in a user namespace of the
        /// emulator; without them they cannot change the network there.
        keep_capabilities: bool = false, source "capabilities(7)";
        /// Its real-time priority, where permitted; 0 for none.
        priority: u64 = 40, in 0 => 99, source "sched(7), SCHED_FIFO";
    }
}
