//! Replay of recorded arrivals through the data path, in virtual time.
//!
//! # Model
//! Each arrival becomes an IPv4 packet of its size with its ECN codepoint; the addresses contain
//! its number and that of its flow. The packets traverse one link of the case's rate and leave as
//! bytes, whose checksums are verified. Decisions are reported like those of
//! [`super::replay`], so that the two can be compared; the times of marks are not known here.

use std::sync::{Arc, Mutex};

use aqmlab_aqm::{LinkEnv, Queue, QueueConfig};
use aqmlab_core::{Bytes, Ecn, Error, Packet, Rate, Result, Span, Stream, Time};
use aqmlab_sim::Scenario;
use aqmlab_sim::network::probe::PacketRecord;
use aqmlab_sim::network::{Network, Setup};

use aqmlab_emu::packet::buffers::{Buffers, place_of};
use aqmlab_emu::packet::checksum::{fold, sum};
use aqmlab_emu::packet::offload::Offload;
use aqmlab_emu::packet::wire::{UDP, be32};
use aqmlab_emu::path::{DataPath, Departure, Exits, Passage, Route, Tap};

use super::{Arrival, BASE_RTT, QueueOutcome, Surroundings, Verdict};

/// Size of the headers: the minimum packet size.
const LEAST: u32 = 28;

/// Replays `arrivals`. Returns the decisions in their order.
///
/// # Errors
/// Returns an error if packets of these sizes, or a link of this rate, cannot be created.
///
/// # Panics
/// Panics if the data path loses or corrupts a packet: a bug.
pub fn replay(
    config: &QueueConfig,
    surroundings: &Surroundings,
    arrivals: &[Arrival],
) -> Result<Vec<QueueOutcome>> {
    let sizes = LEAST..=65_535;
    if let Some(strange) = arrivals.iter().find(|arrival| !sizes.contains(&arrival.size)) {
        return Err(Error::not_allowed(strange.size, "packets of 28 to 65535 bytes"));
    }
    let mut path = path(config, surroundings)?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    path.set_tap(Some(Box::new(Watch(Arc::clone(&seen)))));
    let mut sent = Sent::default();
    for (id, arrival) in arrivals.iter().enumerate() {
        path.advance(arrival.time, &mut sent);
        seen.lock().expect("no holder panics").is_arriving = true;
        write(path.scratch(), id as u32, arrival);
        let size = arrival.size as usize;
        path.receive(0, Offload::default(), size, arrival.time, Span::ZERO);
        seen.lock().expect("no holder panics").is_arriving = false;
    }
    while path.under_way() > 0
        && let Some(next) = path.next_time()
    {
        path.advance(next, &mut sent);
    }
    let records = path.network.link_mut(0).take_records();
    let seen = std::mem::take(&mut *seen.lock().expect("no holder panics"));
    let mut dropped = seen.dropped.into_iter();
    let mut sent = sent.packets.into_iter().zip(seen.marked);
    let outcome = |record: PacketRecord| {
        let (id, verdict) = match record.dropped {
            Some(reason) => {
                let (id, on_arrival) = dropped.next().expect("each drop is shown");
                let verdict = match (reason.is_signal(), on_arrival) {
                    (false, _) => Verdict::DroppedOverlimit,
                    (true, true) => Verdict::DroppedEnqueue,
                    (true, false) => Verdict::DroppedDequeue,
                };
                (id, verdict)
            }
            None => {
                let ((id, is_ce), is_marked) = sent.next().expect("each packet comes out");
                let had_ce = arrivals[id as usize].ecn == Ecn::Ce;
                assert_eq!(is_ce, is_marked || had_ce, "the mark of packet {id} on the wire");
                (id, if is_marked { Verdict::Marked } else { Verdict::Delivered })
            }
        };
        let (time, reason) = (record.end, record.dropped);
        QueueOutcome { id, verdict, time, sojourn: time - record.arrival, marked: None, reason }
    };
    Ok(records.into_iter().map(outcome).collect())
}

/// Creates a path of one link with the case's queue.
fn path(config: &QueueConfig, surroundings: &Surroundings) -> Result<DataPath> {
    const BITS: u64 = 8 * aqmlab_core::time::NANOS_PER_SEC;
    let rate = Rate::from_bps(BITS / surroundings.nanos_per_byte.max(1));
    if rate.as_bps() * surroundings.nanos_per_byte != BITS {
        let problem = "expected a number of nanoseconds that makes a whole rate";
        return Err(Error::new(problem).given(surroundings.nanos_per_byte));
    }
    let text = format!(
        "simultaneous = \"departures-first\"\n\
         record = {{ level = \"packets\", interval = \"3600s\" }}\n\
         links.one = {{ rate = \"{}bit\", delay = \"0s\" }}\n\
         flows.all = {{ path = [\"one\"], return_path = [\"one\"] }}\n",
        rate.as_bps()
    );
    let scenario = Scenario::parse(&text, "<replay>", &[])?;
    let setup = Setup { mtu: Bytes::new(1514), ..scenario.network(0) };
    let mut network = Network::<Buffers>::new(&setup);
    let (rate, mtu) = (surroundings.rate, surroundings.mtu);
    let env = LinkEnv::new(rate, BASE_RTT).with_sizes(mtu, 0);
    let random = Stream::from_state(surroundings.random_seed);
    network.link_mut(0).queue = Queue::new(config.build(&env), random);
    let routes = vec![Route { links: vec![0], exit: 0 }];
    let mut path = DataPath::with_network(&scenario, network, routes);
    path.number_flows_by(|packet| be32(packet, 16));
    Ok(path)
}

/// Writes the packet of an arrival.
fn write(bytes: &mut [u8], id: u32, arrival: &Arrival) {
    let head = [0x45, arrival.ecn as u8, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0];
    bytes[..arrival.size as usize].fill(0);
    bytes[..12].copy_from_slice(&head);
    bytes[2..4].copy_from_slice(&(arrival.size as u16).to_be_bytes());
    bytes[12..16].copy_from_slice(&id.to_be_bytes());
    bytes[16..20].copy_from_slice(&arrival.flow.to_be_bytes());
    let checksum = !fold(sum(&bytes[..20]));
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Records the number of each packet that leaves, and whether it has CE.
#[derive(Default)]
struct Sent {
    packets: Vec<(u32, bool)>,
}

impl Exits for Sent {
    fn send(&mut self, departure: &Departure<'_>) {
        let packet = departure.parts.concat();
        assert_eq!(fold(sum(&packet[..20])), 0xFFFF, "the checksum of a header");
        self.packets.push((be32(&packet, 12), Ecn::from_bits(packet[1]) == Ecn::Ce));
    }
}

/// Observations of the tap.
#[derive(Default)]
struct Seen {
    /// True if a packet is arriving now.
    is_arriving: bool,
    /// Number of each dropped packet, and whether a packet was arriving.
    dropped: Vec<(u32, bool)>,
    /// By departure: whether the packet was marked.
    marked: Vec<bool>,
}

struct Watch(Arc<Mutex<Seen>>);

impl Tap for Watch {
    fn saw(&mut self, _: Time, _: u32, what: Passage, handle: &Packet, buffers: &Buffers) {
        let mut seen = self.0.lock().expect("no holder panics");
        let is_arriving = seen.is_arriving;
        match what {
            Passage::Arrived => {}
            Passage::Departed => seen.marked.push(handle.is_marked()),
            Passage::Gone(_) => {
                let (packet, _) = buffers.get(place_of(handle));
                seen.dropped.push((be32(packet, 12), is_arriving));
            }
        }
    }
}
