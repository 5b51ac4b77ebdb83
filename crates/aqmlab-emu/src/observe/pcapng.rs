//! Packet captures for Wireshark: each packet once, or before and after each link.
//!
//! # Places
//! TCP analysers treat all interfaces as one, so a packet captured twice looks like a packet sent
//! twice. By default each packet is therefore captured once: where the command (the first host)
//! sends or receives it, and where it is sent if it is between other hosts; or at the other ends.
//! Packets dropped after that place were captured; packets dropped before it were not, as on any
//! host.
//!
//! # Source
//! draft-ietf-opsawg-pcapng: a section header block, an interface description block for each place
//! (`NAME in`, `NAME out` and, with all places, `NAME dropped` of links) with a comment that
//! describes it, and an enhanced packet block for each packet, with time in nanoseconds.
//! Packets begin with the IP header (LINKTYPE_RAW). Dropped packets are on `NAME dropped`, with the
//! reason as comment.
//!
//! # Differences
//! 1. Transport checksums are as the kernel left them. Checksums left to the device are not filled
//!    in, as in captures of any device.
//! 2. `NAME out` has the scheduled time of departure from the link, not the later time of writing.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use aqmlab_core::{Packet, Time};
use aqmlab_sim::capture::pcapng::{self, Interface};
use aqmlab_sim::network::LossCause;

use super::background::Background;
use super::{CaptureFile, Places};
use crate::packet::buffers::{Buffers, segment_and_route};
use crate::packet::segments::{MOST_HEAD, Run};
use crate::path::{Passage, Route};

/// Interfaces of a link, with their descriptions.
const SIDES: [(&str, &str); 3] = [
    ("in", "packets entering the link"),
    ("out", "packets leaving the link"),
    ("dropped", "packets that the link dropped or lost"),
];
const IN: usize = 0;
const OUT: usize = 1;
const DROPPED: usize = 2;

/// Selection of captured interfaces.
struct Chosen {
    /// By link and side: the number of the interface, if it is captured.
    interfaces: Vec<[Option<u32>; SIDES.len()]>,
    /// By route: the link and the side of its packets; `None`: all.
    of_routes: Option<Vec<(u32, usize)>>,
}

impl Chosen {
    fn new(places: Places, links: usize, routes: &[Route]) -> Self {
        let of_route = |route: &Route| {
            // Port 0 is the command's, or the first host's.
            let at_start = (route.exit == 0) == (places == Places::Far);
            match at_start {
                true => (route.links[0], IN),
                false => (*route.links.last().expect("a route has a link"), OUT),
            }
        };
        let of_routes = (places != Places::All).then(|| routes.iter().map(of_route).collect());
        let of_routes: Option<Vec<(u32, usize)>> = of_routes;
        let mut count = 0;
        let interfaces = (0..links as u32).map(|link| {
            [IN, OUT, DROPPED].map(|side| {
                let is_used = of_routes.as_ref().is_none_or(|used| used.contains(&(link, side)));
                count += u32::from(is_used);
                is_used.then(|| count - 1)
            })
        });
        let interfaces = interfaces.collect();
        Chosen { interfaces, of_routes }
    }

    /// Returns the interface of a packet of this route, if it is captured here.
    #[inline]
    fn interface(&self, link: u32, side: usize, route: u16) -> Option<u32> {
        let is_here = match &self.of_routes {
            None => true,
            Some(places) => places.get(usize::from(route)) == Some(&(link, side)),
        };
        self.interfaces[link as usize][side].filter(|_| is_here)
    }
}

/// Capture being written.
pub struct Capture {
    file: Background,
    name: String,
    chosen: Chosen,
    /// Time zero of the emulation, in nanoseconds since 1970.
    zero: u64,
    is_set: bool,
    most: usize,
    /// Packets skipped because the disk was too slow.
    skipped: u64,
}

impl Capture {
    /// Creates the capture for links of these names and routes over them; its time 0 is now.
    pub fn create(file: &CaptureFile, links: &[&str], routes: &[Route]) -> io::Result<Self> {
        let name = file.file.display().to_string();
        let most = file.most as usize;
        let chosen = Chosen::new(file.places, links.len(), routes);
        let head = head(links, &chosen, file.most);
        let file = Background::create(&file.file, head, file.ring)?;
        Ok(Capture { file, name, chosen, zero: since_1970(), is_set: false, most, skipped: 0 })
    }

    pub fn saw(
        &mut self,
        time: Time,
        link: u32,
        what: Passage,
        handle: &Packet,
        buffers: &Buffers,
    ) {
        let (side, comment) = match what {
            Passage::Arrived => (IN, None),
            Passage::Departed => (OUT, None),
            Passage::Gone(LossCause::Dropped(reason)) => (DROPPED, Some(reason.name())),
            Passage::Gone(LossCause::Lost) => (DROPPED, Some("lost on the link")),
        };
        let (_, route) = segment_and_route(handle);
        let Some(interface) = self.chosen.interface(link, side, route) else { return };
        if self.file.is_behind() {
            self.skipped += 1;
            return;
        }
        let mut room = [0; MOST_HEAD];
        let (_, [head, rest]) = Run::of(handle).frame(buffers, &mut room);
        let length = head.len() + rest.len();
        let head = &head[..head.len().min(self.most)];
        let rest = &rest[..rest.len().min(self.most - head.len())];
        let at = Time::from_nanos(self.zero + time.as_nanos());
        pcapng::packet(self.file.buffer(), interface, at, [head, rest], length as u32, comment);
        self.file.settle();
    }

    /// Processes a tick; the first one compares the clocks.
    pub fn tick(&mut self, now: Time) {
        if !std::mem::replace(&mut self.is_set, true) {
            self.zero = since_1970().saturating_sub(now.as_nanos());
        }
        self.file.flush();
    }

    /// Closes the capture. Returns messages for the user.
    pub fn finish(self) -> Vec<String> {
        let missing = (self.skipped > 0).then(|| {
            format!("{}: {} packets are missing: the disk was too slow", self.name, self.skipped)
        });
        self.file.close().err().into_iter().chain(missing).collect()
    }
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// Returns the header blocks of a file.
fn head(links: &[&str], chosen: &Chosen, most: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    pcapng::section(&mut bytes, None);
    let places = links.iter().zip(&chosen.interfaces).flat_map(|(link, used)| {
        let sides = SIDES.iter().zip(used).filter(|(_, number)| number.is_some());
        sides.map(move |(side, _)| (link, side))
    });
    for (link, (side, comment)) in places {
        let (name, link_type) = (&format!("{link} {side}"), pcapng::LINKTYPE_RAW);
        pcapng::interface(&mut bytes, &Interface { name, comment, link_type, most });
    }
    bytes
}
