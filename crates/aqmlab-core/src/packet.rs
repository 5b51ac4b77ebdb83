//! What a queue discipline needs to know of a packet.

use crate::time::Time;

/// The ECN codepoint of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not understand ECN: signals must be drops.
    #[default]
    NotEct = 0,
    /// ECT(1): ECN-capable, and L4S since RFC 9331.
    Ect1 = 1,
    /// ECT(0): ECN-capable, classic.
    Ect0 = 2,
    /// Congestion experienced: marked by a queue on the way.
    Ce = 3,
}

impl Ecn {
    /// Whether a queue may mark instead of drop.
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }
    /// The codepoint with these two bits.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// A packet as a queue sees it: a small value in the simulator, a buffer
/// handle in the emulator, a row of a trace in a conformance test.
pub trait Packet: 'static {
    /// Its size on the wire in bytes: the only size there is.
    fn size(&self) -> u32;
    /// A hash of what makes a flow (RFC 8290, section 4.1.1: the 5-tuple).
    /// Queues choose buckets by it; replayed vectors put the flow number in.
    fn flow_hash(&self) -> u32;
    /// Numbers, or hashes, of the hosts that it comes from and goes to, for
    /// queues that share a link between hosts. Where nothing is known of
    /// hosts, each flow has its own.
    fn hosts(&self) -> [u32; 2] {
        [self.flow_hash(); 2]
    }
    /// Its DSCP (RFC 2474), for queues with classes of service.
    fn class(&self) -> u8 {
        0
    }
    /// Sets the DSCP to 0, where there is one.
    fn clear_class(&mut self) {}
    /// Its ECN codepoint.
    fn ecn(&self) -> Ecn;
    /// Sets the codepoint to CE.
    fn mark(&mut self);
    /// When it came to this queue.
    fn arrival(&self) -> Time;
    /// Notes when it came to this queue (called once, before `enqueue`).
    fn set_arrival(&mut self, now: Time);
}

/// The methods of [`Packet`] that only read and write a field, for the fields
/// that a packet has: `size`, `hash`, `hosts`, `class`, `ecn` and `arrival`.
/// `mark` is for those to whom nothing else happens when they are marked.
///
/// ```
/// use aqmlab_core::{Ecn, Packet, Time, packet_fields};
///
/// struct Small {
///     hash: u32,
///     ecn: Ecn,
///     arrival: Time,
/// }
/// impl Packet for Small {
///     packet_fields!(hash, ecn, mark, arrival);
///     fn size(&self) -> u32 {
///         64
///     }
/// }
/// ```
#[macro_export]
macro_rules! packet_fields {
    (@ size) => {
        #[inline]
        fn size(&self) -> u32 {
            self.size
        }
    };
    (@ hash) => {
        #[inline]
        fn flow_hash(&self) -> u32 {
            self.hash
        }
    };
    (@ hosts) => {
        #[inline]
        fn hosts(&self) -> [u32; 2] {
            self.hosts
        }
    };
    (@ class) => {
        #[inline]
        fn class(&self) -> u8 {
            self.class
        }
        #[inline]
        fn clear_class(&mut self) {
            self.class = 0;
        }
    };
    (@ ecn) => {
        #[inline]
        fn ecn(&self) -> $crate::Ecn {
            self.ecn
        }
    };
    (@ mark) => {
        #[inline]
        fn mark(&mut self) {
            self.ecn = $crate::Ecn::Ce;
        }
    };
    (@ arrival) => {
        #[inline]
        fn arrival(&self) -> $crate::Time {
            self.arrival
        }
        #[inline]
        fn set_arrival(&mut self, now: $crate::Time) {
            self.arrival = now;
        }
    };
    ($($field:tt),+) => { $( $crate::packet_fields!(@ $field); )+ };
}
