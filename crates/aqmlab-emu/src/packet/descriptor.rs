//! Segments of frames as packet descriptors: the form in which the network handles them.

use aqmlab_core::Packet;

use crate::packet::buffers::Frame;

/// A packet on the wire: a whole frame, or a segment of one. Its key is the place of the frame in
/// the [buffers](crate::packet::buffers::Buffers), the number of the segment, and the route.
pub trait FrameSegment {
    /// Returns a segment of the frame that is kept at `place`.
    fn of_frame(place: u32, frame: &Frame, segment: u16, route: u16) -> Self;
    /// Returns the place of the frame.
    fn place(&self) -> u32;
    /// Returns the number of the segment.
    fn segment(&self) -> u16;
    /// Returns the route through the links.
    fn route(&self) -> u16;
    /// Returns the current value of the byte of the IP header that contains DSCP and ECN.
    fn traffic_class(&self) -> u8;
}

impl FrameSegment for Packet {
    fn of_frame(place: u32, frame: &Frame, segment: u16, route: u16) -> Self {
        let headers = &frame.headers;
        let size = match frame.step {
            0 => headers.length,
            step => {
                let begun = u32::from(segment) * step;
                frame.head + (headers.length - frame.head - begun).min(step)
            }
        };
        // Recordings number flows by their hash. Opening segments are not counted apart.
        Packet::new(size, headers.ecn)
            .with_key(u64::from(place) | u64::from(segment) << 32 | u64::from(route) << 48)
            .with_flow_hash(headers.hash)
            .with_flow(headers.hash)
            .with_hosts(headers.hosts)
            .with_class(headers.dscp)
            .with_ack(headers.is_pure_ack)
    }
    fn place(&self) -> u32 {
        self.key as u32
    }
    fn segment(&self) -> u16 {
        (self.key >> 32) as u16
    }
    fn route(&self) -> u16 {
        (self.key >> 48) as u16
    }
    fn traffic_class(&self) -> u8 {
        self.class() << 2 | self.ecn() as u8
    }
}
