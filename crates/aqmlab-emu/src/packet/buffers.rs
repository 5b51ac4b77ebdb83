//! Where the bytes of packets are kept while they are on their way.
//!
//! The kernel gives one packet at a time, or a large one of up to 64 kB of
//! which the network sees many. Its bytes stay in one place from the reading
//! to the writing; queues and pipes handle [`Handle`]s
//! of its segments, and the last of these gives the place back.

use std::collections::VecDeque;

use aqmlab_aqm::Headers;
use aqmlab_core::{Span, TcpHeader};
use aqmlab_sim::network::{LossCause, SidePool};

use crate::packet::handle::Handle;
use crate::packet::offload::Offload;
use crate::packet::segments::Run;
use crate::packet::wire;

/// Sizes of places: what is read goes into the smallest that holds it.
const CLASSES: [usize; 3] = [2 << 10, 10 << 10, LARGEST];
/// IPv6 counts its header apart from the 65,535 bytes.
const LARGEST: usize = 66 << 10;

/// What came out of a device at once.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its offload header.
    pub offload: Offload,
    /// Its headers.
    pub headers: wire::Headers,
    /// Bytes of all headers, if it is cut.
    pub head: u32,
    /// Bytes of payload in each segment but the last; 0 if it is not cut.
    pub step: u32,
    /// How many segments it is cut into; 1 if it is not.
    pub segments: u16,
    /// How long it waited to be read, at most.
    pub waited: Span,
}

struct Place {
    bytes: Box<[u8]>,
    frame: Option<Frame>,
    /// Handles of it that are on their way.
    handles: u32,
}

/// All places.
#[derive(Default)]
pub struct Buffers {
    places: Vec<Place>,
    free: [Vec<u32>; CLASSES.len()],
    /// The place that is read into.
    reading: Option<u32>,
    /// Handles that were dropped or lost, and wait to be shown, if they are to be.
    dropped: Option<VecDeque<(Handle, LossCause)>>,
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

    /// A place to read into, the same until something is kept.
    pub fn scratch(&mut self) -> &mut [u8] {
        let place = self.reading();
        &mut self.places[place as usize].bytes
    }

    fn reading(&mut self) -> u32 {
        let place = self.reading.unwrap_or_else(|| self.take(CLASSES.len() - 1));
        self.reading = Some(place);
        place
    }

    /// Keeps what was read into the scratch place, `frame.segments` handles of it.
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

    /// The bytes of a frame, and what is known of it.
    pub fn get(&self, place: u32) -> (&[u8], &Frame) {
        let place = &self.places[place as usize];
        let frame = place.frame.as_ref().expect("it is kept while there are handles");
        (&place.bytes[..frame.headers.length as usize], frame)
    }

    /// One handle more.
    pub(super) fn copied(&mut self, handle: &Handle) {
        self.places[handle.place as usize].handles += 1;
    }

    /// A packet is done with.
    pub fn free(&mut self, handle: Handle) {
        self.release(handle.place, 1);
    }

    /// Packets that left together are done with.
    pub fn free_run(&mut self, run: Run) {
        self.release(run.place, u32::from(run.count));
    }

    /// So many handles fewer.
    fn release(&mut self, place: u32, count: u32) {
        let kept = &mut self.places[place as usize];
        kept.handles -= count;
        if kept.handles == 0 {
            kept.frame = None;
            let class = Self::class(kept.bytes.len());
            self.free[class].push(place);
        }
    }

    /// Keeps what is dropped or lost until it is taken.
    pub fn keep_dropped(&mut self) {
        self.dropped.get_or_insert_default();
    }

    /// The first of what was dropped or lost. To be freed.
    pub fn take_dropped(&mut self) -> Option<(Handle, LossCause)> {
        self.dropped.as_mut()?.pop_front()
    }

    /// A packet was dropped or lost.
    pub(super) fn ended(&mut self, handle: Handle, fate: LossCause) {
        match &mut self.dropped {
            None => self.free(handle),
            Some(dropped) => dropped.push_back((handle, fate)),
        }
    }
}

impl Headers<Handle> for Buffers {
    fn tcp(&self, packet: &Handle) -> Option<TcpHeader> {
        let (bytes, frame) = self.get(packet.place);
        frame.headers.tcp(bytes)
    }
}

/// Packets that are on their way.
impl SidePool for Buffers {
    fn live_count(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.handles)).sum()
    }
}
