//! Buffers for the bytes of packets in flight.
//!
//! The kernel delivers one packet at a time, or a large one of up to 64 kB that the network sees as
//! many packets. Its bytes stay in one buffer from read to write. Queues and pipes carry
//! [`Packet`]s of its segments; the last handle frees the buffer.

use std::collections::VecDeque;

use aqmlab_aqm::Headers;
use aqmlab_core::{Packet, Span, TcpHeader};
use aqmlab_sim::network::{LossCause, PacketStore};

use crate::packet::offload::Offload;
use crate::packet::segments::Run;
use crate::packet::wire;

/// Buffer sizes: a frame uses the smallest that fits.
const CLASSES: [usize; 3] = [2 << 10, 10 << 10, LARGEST];
/// IPv6 does not count its header in the 65,535 bytes.
const LARGEST: usize = 66 << 10;

/// Frame read from a device.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Offload header.
    pub offload: Offload,
    /// Parsed headers.
    pub headers: wire::Headers,
    /// Bytes of all headers, if the frame is segmented.
    pub head: u32,
    /// Bytes of payload in each segment but the last; 0 if it is not segmented.
    pub step: u32,
    /// Number of segments; 1 if it is not segmented.
    pub segments: u16,
    /// Upper bound of the time it waited to be read.
    pub waited: Span,
}

impl Frame {
    /// Returns a segment of the frame, as the network handles it: a packet on the wire. Its key is the
    /// frame's place in the [`Buffers`], the number of the segment, and the route through the links.
    pub fn packet(&self, place: u32, segment: u16, route: u16) -> Packet {
        let headers = &self.headers;
        let size = match self.step {
            0 => headers.length,
            step => {
                let begun = u32::from(segment) * step;
                self.head + (headers.length - self.head - begun).min(step)
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
}

/// Returns the place of the frame that a packet is a segment of.
pub fn place_of(packet: &Packet) -> u32 {
    packet.key as u32
}

/// Returns the number of a packet's segment, and its route.
pub fn segment_and_route(packet: &Packet) -> (u16, u16) {
    ((packet.key >> 32) as u16, (packet.key >> 48) as u16)
}

struct Place {
    bytes: Box<[u8]>,
    frame: Option<Frame>,
    /// Number of its handles in flight.
    handles: u32,
}

/// All buffers.
#[derive(Default)]
pub struct Buffers {
    places: Vec<Place>,
    free: [Vec<u32>; CLASSES.len()],
    /// Buffer for the next read.
    reading: Option<u32>,
    /// Dropped or lost handles waiting for the observer, if any.
    dropped: Option<VecDeque<(Packet, LossCause)>>,
}

impl Buffers {
    fn class(size: usize) -> usize {
        CLASSES.iter().position(|most| size <= *most).expect("no packet is larger")
    }

    fn take(&mut self, class: usize) -> u32 {
        self.free[class].pop().unwrap_or_else(|| {
            let bytes = vec![0; CLASSES[class]].into_boxed_slice();
            self.places.push(Place { bytes, frame: None, handles: 0 });
            (self.places.len() - 1) as u32
        })
    }

    /// Returns the buffer for the next read; the same one until `keep` is called.
    pub fn scratch(&mut self) -> &mut [u8] {
        let place = self.reading();
        &mut self.places[place as usize].bytes
    }

    fn reading(&mut self) -> u32 {
        let place = self.reading.unwrap_or_else(|| self.take(CLASSES.len() - 1));
        self.reading = Some(place);
        place
    }

    /// Keeps the frame in the read buffer, with `frame.segments` handles. Returns its buffer.
    pub fn keep(&mut self, frame: Frame) -> u32 {
        let length = frame.headers.length as usize;
        let class = Self::class(length);
        let mut place = self.reading();
        if class == CLASSES.len() - 1 {
            self.reading = None;
        } else {
            let read = place;
            place = self.take(class);
            let [from, to] =
                self.places.get_disjoint_mut([read as usize, place as usize]).expect("two places");
            to.bytes[..length].copy_from_slice(&from.bytes[..length]);
        }
        let kept = &mut self.places[place as usize];
        kept.frame = Some(frame);
        kept.handles = u32::from(frame.segments);
        place
    }

    /// Returns the bytes and description of a frame.
    pub fn get(&self, place: u32) -> (&[u8], &Frame) {
        let place = &self.places[place as usize];
        let frame = place.frame.as_ref().expect("it is kept while there are handles");
        (&place.bytes[..frame.headers.length as usize], frame)
    }

    /// Releases the handle of a packet.
    pub fn free(&mut self, handle: Packet) {
        self.release(place_of(&handle), 1);
    }

    /// Releases the handles of a run.
    pub fn free_run(&mut self, run: Run) {
        self.release(run.place, u32::from(run.count));
    }

    /// Releases `count` handles.
    fn release(&mut self, place: u32, count: u32) {
        let kept = &mut self.places[place as usize];
        kept.handles -= count;
        if kept.handles == 0 {
            kept.frame = None;
            let class = Self::class(kept.bytes.len());
            self.free[class].push(place);
        }
    }

    /// Keeps dropped and lost packets until they are taken.
    pub fn keep_dropped(&mut self) {
        self.dropped.get_or_insert_default();
    }

    /// Returns the first dropped or lost packet. The caller must free it.
    pub fn take_dropped(&mut self) -> Option<(Packet, LossCause)> {
        self.dropped.as_mut()?.pop_front()
    }
}

impl Headers for Buffers {
    fn tcp(&self, packet: &Packet) -> Option<TcpHeader> {
        let (bytes, frame) = self.get(place_of(packet));
        frame.headers.tcp(bytes)
    }
}

/// Packets in flight: all have a payload.
impl PacketStore for Buffers {
    fn live_count(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.handles)).sum()
    }
    fn has_payload(&self, _packet: &Packet) -> bool {
        true
    }
    fn release(&mut self, packet: Packet, cause: LossCause) {
        match &mut self.dropped {
            None => self.free(packet),
            Some(dropped) => dropped.push_back((packet, cause)),
        }
    }
    fn duplicate(&mut self, packet: &Packet) -> Packet {
        self.places[place_of(packet) as usize].handles += 1;
        packet.clone()
    }
}
