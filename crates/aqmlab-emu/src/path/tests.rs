//! Packets through complete paths: conservation, and independence of lateness.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::packet::segments::tests::{large, segmented};
use crate::packet::wire::tests::{tcp, v4, v6};
use crate::packet::wire::{TCP, UDP, be32};
use aqmlab_core::{Span, Stream};
use aqmlab_sim::Outside;
use aqmlab_sim::rate::InputFile;
use proptest::prelude::*;

/// Links of all kinds; each is the second link of a path whose first link is fast.
const LINKS: [&str; 9] = [
    r#"rate = "20mbit", delay = "5ms""#,
    r#"rate = "1000000gbit", delay = "0s""#,
    r#"rate = "5mbit", delay = "1ms", queue = "codel""#,
    r#"rate = "5mbit", delay = "1ms", queue = { discipline = "fq_codel", ecn = true, ce_threshold = "1ms" }"#,
    r#"rate = "5mbit", delay = "1ms", queue = { discipline = "pie", limit = "30p" }"#,
    r#"rate = "8mbit", delay = "3ms", jitter = { spread = "2ms" }, reordering = true, duplicate = 0.2"#,
    r#"rate = "8mbit", delay = "3ms", loss = 0.2, queue = { discipline = "cake", bandwidth = "4mbit" }"#,
    r#"rate = { trace = "t" }, delay = "1ms", overhead = 4"#,
    r#"rate = "20mbit", delay = "1ms", driver = { limit = "5p" }, shaper = { rate = "6mbit" }"#,
];

fn path(link: &str) -> DataPath {
    let text = format!(
        r#"
        links.first = {{ rate = "1gbit", delay = "100us", queue = "droptail" }}
        links.second = {{ {link} }}
        flows.all = {{ path = ["first", "second"], return_path = ["second"] }}
        "#
    );
    let trace = |_: &str| Ok(Arc::new(InputFile::new(b"1\n2\n2\n5\n".to_vec())));
    let scenario = Scenario::parse_with(&text, "test", &[], Outside::files(&trace))
        .unwrap_or_else(|error| panic!("{link}: {error}"));
    let routes = vec![Route { links: vec![0, 1], exit: 1 }, Route { links: vec![1, 0], exit: 0 }];
    DataPath::new(&scenario, routes, Bytes::new(1500), 0)
}

/// Writes a packet into the path.
fn offer(path: &mut DataPath, route: u16, packet: &[u8], offload: Offload, now: Time) {
    path.scratch()[..packet.len()].copy_from_slice(packet);
    path.receive(route, offload, packet.len(), now, Span::ZERO);
}

/// Departures, as the network sees them.
#[derive(Default, PartialEq, Debug)]
struct Wire {
    packets: Vec<(u16, Vec<u8>)>,
    bytes: u64,
    written: u64,
}

impl Exits for Wire {
    fn send(&mut self, departure: &Departure<'_>) {
        let frame = departure.parts.concat();
        let packets = segmented(departure.offload, &frame);
        assert_eq!(packets.len(), departure.packets as usize);
        self.bytes += packets.iter().map(|packet| packet.len() as u64).sum::<u64>();
        self.packets.extend(packets.into_iter().map(|packet| (departure.exit, packet)));
        self.written += 1;
    }
}

/// Arriving packet.
#[derive(Clone, Debug)]
struct Input {
    after: u64,
    route: u16,
    is_v6: bool,
    is_udp: bool,
    ecn: u8,
    flow: u8,
    step: u16,
    payload: usize,
}

fn input() -> impl Strategy<Value = Input> {
    let kinds = (any::<bool>(), any::<bool>(), 0u8..4, 0u8..4, 0u16..2);
    let sizes = (0u64..3_000_000, 500u16..1440, prop_oneof![1usize..1000, 1usize..20_000]);
    (kinds, sizes).prop_map(|((is_v6, is_udp, ecn, flow, route), (after, step, payload))| Input {
        after,
        route,
        is_v6,
        is_udp,
        ecn,
        flow,
        step,
        payload,
    })
}

impl Input {
    fn build(&self) -> (Vec<u8>, Offload) {
        let protocol = if self.is_udp { UDP } else { TCP };
        let (mut packet, offload) = large(self.is_v6, protocol, 0x18, self.step, self.payload);
        // The source port contains the flow; the checksum is that of the pseudo header.
        let port = if self.is_v6 { 41 } else { 21 };
        packet[port] = self.flow;
        if self.is_v6 {
            packet[1] = packet[1] & 0xCF | self.ecn << 4;
        } else {
            let class = u16::from_be_bytes([packet[0], packet[1] & 0xFC | self.ecn]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = crate::packet::checksum::update(checksum, before, class);
            packet[..2].copy_from_slice(&class.to_be_bytes());
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        (packet, offload)
    }
}

/// Drives inputs through a path; `late` returns the lateness of each step.
fn drive(link: &str, inputs: &[Input], mut late: impl FnMut() -> u64) -> (Wire, DataPath) {
    let mut path = path(link);
    let (mut wire, mut now) = (Wire::default(), 0u64);
    for input in inputs {
        // Departures before the arrival: at their time, or some at a later time.
        let arrival = now + input.after;
        while path.next_time().is_some_and(|time| time.as_nanos() <= arrival) {
            let due = path.next_time().unwrap().as_nanos();
            now = arrival.min(due + late());
            path.advance(Time::from_nanos(now), &mut wire);
        }
        now = arrival;
        let (packet, offload) = input.build();
        offer(&mut path, input.route, &packet, offload, Time::from_nanos(now));
    }
    while path.under_way() > 0 {
        let due = path.next_time().expect("packets under way have a next time").as_nanos();
        path.advance(Time::from_nanos(due + late()), &mut wire);
    }
    (wire, path)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every packet leaves, or is dropped or lost. A late driver gets the same packets.
    #[test]
    fn packets_are_conserved_and_lateness_changes_none(
        inputs in prop::collection::vec(input(), 1..40),
        link in prop::sample::select(LINKS.to_vec()),
        seed in any::<u64>(),
    ) {
        let (on_time, path) = drive(link, &inputs, || 0);
        let entered = path.entered;
        prop_assert_eq!(on_time.packets.len() as u64, path.left.packets);
        prop_assert_eq!(on_time.bytes, path.left.bytes);
        let end = Time::from_nanos(u64::MAX / 4);
        let finished = path.finish(end);
        prop_assert_eq!(finished.under_way, 0);
        let gone = finished.links.iter().map(|link| {
            link.counts.dropped_bytes + link.way.lost_bytes
        }).sum::<u64>();
        if finished.links.iter().all(|link| link.way.duplicated == 0) {
            prop_assert_eq!(entered.bytes, on_time.bytes + gone);
        }
        let mut stream = Stream::from_state(seed);
        let (late, _) = drive(link, &inputs, || stream.next_u64() % 5_000_000);
        prop_assert_eq!(&late.packets, &on_time.packets);
    }
}

#[test]
fn what_leaves_together_is_written_together() {
    let (packet, offload) = large(false, TCP, 0x18, 1448, 40 * 1448);
    let write = |link: &str, step: u64| {
        let mut path = path(link);
        let mut wire = Wire::default();
        offer(&mut path, 0, &packet, offload, Time::ZERO);
        let mut now = Time::ZERO;
        while path.under_way() > 0 {
            now += Span::from_nanos(step);
            path.advance(now, &mut wire);
        }
        (wire.packets.len(), wire.written)
    };
    // On a link of 20 Mbit/s a packet takes 600 us.
    assert_eq!(write(r#"rate = "20mbit", delay = "0s""#, 1000), (40, 40));
    assert_eq!(write(r#"rate = "20mbit", delay = "0s""#, 6_000_000), (40, 5));
    assert_eq!(write(r#"rate = "20mbit", delay = "0s""#, 1_000_000_000), (40, 1));
}

#[test]
fn a_rate_is_exact_however_late_the_driver_is() {
    let mut path = path(r#"rate = "100mbit", delay = "0s""#);
    let packet = v4(UDP, &[0; 1480]);
    let mut dues = Vec::new();
    struct Dues<'a>(&'a mut Vec<Time>);
    impl Exits for Dues<'_> {
        fn send(&mut self, departure: &Departure<'_>) {
            self.0.push(departure.due);
        }
    }
    (0..500).for_each(|_| offer(&mut path, 0, &packet, Offload::default(), Time::ZERO));
    let mut stream = Stream::from_state(1);
    while path.under_way() > 0 {
        let due = path.next_time().unwrap();
        path.advance(due + Span::from_nanos(stream.next_u64() % 900_000), &mut Dues(&mut dues));
    }
    let gaps: Vec<u64> = dues.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos()).collect();
    assert_eq!(dues.len(), 500);
    assert!(gaps.iter().all(|gap| *gap == 120_000), "{gaps:?}");
}

#[test]
fn what_is_not_carried_is_counted_by_reason() {
    let mut path = path(LINKS[0]);
    let good = v4(TCP, &tcp([1, 2], 0x10, &[], b""));
    let strange = Offload { kind: 99, step: 1, ..Offload::default() };
    let mut local = v6(58, &[0; 8]);
    local[24] = 0xFF;
    local[25] = 2;
    for (packet, offload, route) in [
        (&good[..30], Offload::default(), 0),
        (&[0x50; 40], Offload::default(), 0),
        (&good, strange, 0),
        (&good, Offload::default(), 7),
        (&local, Offload::default(), 0),
    ] {
        offer(&mut path, route, packet, offload, Time::ZERO);
    }
    assert_eq!(path.unfit, [1, 1, 0, 1, 1, 1]);
    assert_eq!(path.entered, Tally::default());
}

/// Run manually: `cargo test --release -p aqmlab-emu ten_million -- --ignored --nocapture`.
#[test]
#[ignore = "takes a while"]
fn ten_million_strange_packets() {
    let mut stream = Stream::from_state(7);
    let mut path = path(r#"rate = "1000000gbit", delay = "0s", queue = "fq_codel""#);
    let seeds: Vec<(Vec<u8>, Offload)> = [(false, TCP), (true, TCP), (false, UDP), (true, UDP)]
        .into_iter()
        .flat_map(|(is_v6, protocol)| {
            [(100, 2000), (1400, 200), (0, 0)]
                .map(|(step, payload)| large(is_v6, protocol, 0x98, step, payload))
        })
        .collect();
    struct Check(u64);
    impl Exits for Check {
        fn send(&mut self, departure: &Departure<'_>) {
            self.0 += u64::from(departure.packets);
            let size = departure.parts.iter().map(|part| part.len()).sum::<usize>();
            assert!(size >= 20 && be32(departure.parts[0], 0) != 0);
        }
    }
    let (mut out, mut now) = (Check(0), 0);
    for round in 0..10_000_000u64 {
        let (packet, offload) = &seeds[stream.next_u64() as usize % seeds.len()];
        let (mut packet, mut head) = (packet.clone(), offload.to_bytes());
        let offload = {
            for _ in 0..stream.next_u64() % 4 {
                let at = stream.next_u64() as usize % packet.len().min(90);
                packet[at] = stream.next_u64() as u8;
            }
            if stream.next_u64().is_multiple_of(3) {
                head[stream.next_u64() as usize % head.len()] = stream.next_u64() as u8;
            }
            Offload::from_bytes(&head)
        };
        let length = match stream.next_u64() % 4 {
            0 => stream.next_u64() as usize % (packet.len() + 1),
            _ => packet.len(),
        };
        path.scratch()[..packet.len()].copy_from_slice(&packet);
        path.receive((round % 2) as u16, offload, length, Time::from_nanos(now), Span::ZERO);
        now += 1000;
        path.advance(Time::from_nanos(now), &mut out);
    }
    path.advance(Time::from_nanos(now + 1_000_000_000), &mut out);
    let (entered, unfit) = (path.entered, path.unfit);
    println!("{entered:?} out {} unfit {unfit:?}", out.0);
    assert_eq!(path.finish(Time::from_nanos(now + 2_000_000_000)).under_way, 0);
}

/// Counts dropped packets.
struct Drops(Arc<AtomicUsize>);

impl Tap for Drops {
    fn saw(&mut self, _: Time, _: u32, what: Passage, _: &Packet, _: &Buffers) {
        self.0.fetch_add(usize::from(matches!(what, Passage::Gone(_))), Ordering::Relaxed);
    }
}

#[test]
fn thousands_of_drops_at_once_are_shown_in_a_moment() {
    let mut path = path(r#"rate = "20mbit", delay = "5ms""#);
    let dropped = Arc::new(AtomicUsize::new(0));
    path.set_tap(Some(Box::new(Drops(dropped.clone()))));
    // 30,000 segments of 2 bytes; the first queue holds 1,000 packets.
    let (packet, offload) = large(false, TCP, 0x18, 2, 60_000);
    let began = crate::sys::time::monotonic();
    (0..5).for_each(|_| offer(&mut path, 0, &packet, offload, Time::ZERO));
    assert!(dropped.load(Ordering::Relaxed) > 140_000);
    let took = (crate::sys::time::monotonic() - began) / 150_000;
    assert!(took < 20_000, "{took} ns a drop");
}

#[test]
fn a_packet_that_is_never_sent_is_under_way() {
    let mut path = path(r#"rate = { steps = [["0s", "1mbit"], ["1ms", "0bit"]] }, delay = "1ms""#);
    let packet = v4(UDP, &[1; 1000]);
    offer(&mut path, 0, &packet, Offload::default(), Time::ZERO);
    let mut wire = Wire::default();
    path.advance(Time::from_nanos(1_000_000_000), &mut wire);
    assert_eq!((path.entered.packets, wire.packets.len()), (1, 0));
    assert_eq!(path.finish(Time::from_nanos(2_000_000_000)).under_way, 1);
}
