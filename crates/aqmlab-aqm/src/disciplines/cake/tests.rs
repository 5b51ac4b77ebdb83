//! CAKE as a whole: who gets what of the link.

use aqmlab_core::framing::Octets;
use aqmlab_core::{FramingParams, Limit, LinkLayer, Packet, Rate, Span, Time};
use proptest::prelude::*;

use super::*;
use crate::discipline::Headers;
use crate::testing::{OfTests, TestPacket, drain, env, offer, queue, queue_on, run, seen};

/// Parameters under which the AQM does practically nothing, to test sharing alone.
fn calm() -> CakeParams {
    CakeParams { interval: Rtt(Span::from_secs(3600)), ..CakeParams::default() }
}

fn shaped(bits: u64) -> CakeParams {
    CakeParams { bandwidth: Bandwidth(Some(Rate::from_bps(bits))), ..calm() }
}

/// Packets sent, by kind.
struct Sent {
    bytes: Vec<u64>,
    /// Bytes with check sequence and the rest of Ethernet's overhead.
    ethernet: u64,
}

impl Sent {
    fn shares(&self) -> Vec<f64> {
        let total: u64 = self.bytes.iter().sum();
        self.bytes.iter().map(|bytes| *bytes as f64 / total as f64).collect()
    }
}

/// A link of 100 Mbit/s behind a queue in which 20 packets of each kind always
/// wait. The flow hash is the kind's number.
fn saturate(params: &CakeParams, kinds: &[Packet], seconds: u64) -> Sent {
    let mut queue = queue(params);
    for packet in kinds.iter().flat_map(|kind| std::iter::repeat_n(kind, 20)) {
        queue.enqueue(packet.clone(), Time::ZERO);
    }
    let mut sent = Sent { bytes: vec![0; kinds.len()], ethernet: 0 };
    let (mut now, end) = (Time::ZERO, Time::ZERO + Span::from_secs(seconds));
    while now < end {
        let Some(packet) = queue.dequeue(now) else {
            now = queue.next_wakeup().expect("it says until when it holds packets back");
            queue.on_wakeup(now);
            continue;
        };
        let kind = packet.flow_hash() as usize;
        sent.bytes[kind] += u64::from(packet.size());
        sent.ethernet += u64::from((packet.size() + 38).max(84));
        now += Span::from_nanos(u64::from(packet.size()) * 80);
        queue.enqueue(kinds[kind].clone(), now);
        queue.take_dropped(|packet, reason| panic!("{packet:?}: {reason:?}"));
    }
    queue.assert_conservation("cake");
    sent
}

fn assert_shares(sent: &Sent, expected: &[f64]) {
    for (share, expected) in sent.shares().iter().zip(expected) {
        assert!((share - expected).abs() < 0.01, "{:?}, not {expected:?}", sent.shares());
    }
}

/// One flow of a host and ten of another; to ten hosts or to the same.
fn one_against_ten(isolation: CakeIsolation, same_destination: bool) -> f64 {
    let kinds: Vec<Packet> = (0..11)
        .map(|flow| {
            let destination = if same_destination { 50 } else { 50 + flow };
            Packet::of_flow(flow).with_hosts([u32::from(flow > 0), destination])
        })
        .collect();
    saturate(&CakeParams { isolation, ..shaped(50_000_000) }, &kinds, 20).shares()[0]
}

#[test]
fn hosts_share_whatever_flows_they_have() {
    for (isolation, same_destination, share) in [
        (CakeIsolation::Flow, false, 1.0 / 11.0),
        (CakeIsolation::DualSrcHost, false, 0.5),
        (CakeIsolation::DualSrcHost, true, 0.5),
        (CakeIsolation::DualDstHost, false, 1.0 / 11.0),
        (CakeIsolation::Triple, false, 0.5),
        // The host that all send to has eleven flows: so each counts a 11th.
        (CakeIsolation::Triple, true, 1.0 / 11.0),
        (CakeIsolation::SrcHost, true, 0.5),
        (CakeIsolation::DstHost, false, 1.0 / 11.0),
        (CakeIsolation::Hosts, true, 0.5),
        (CakeIsolation::FlowBlind, true, 1.0 / 11.0),
    ] {
        let got = one_against_ten(isolation, same_destination);
        assert!((got - share).abs() < 0.01, "{isolation:?}: {got}, not {share}");
    }
}

/// DF, CS1, CS3, EF: best effort, bulk, video and voice.
fn classes(points: &[u8]) -> Vec<Packet> {
    let packet = |(i, point): (usize, &u8)| Packet::of_flow(i as u32).with_class(*point);
    points.iter().enumerate().map(packet).collect()
}

#[test]
fn tins_have_priority_up_to_their_rates() {
    let with = |diffserv| CakeParams { diffserv, ..shaped(16_000_000) };
    let sent = saturate(&with(Diffserv::Diffserv3), &classes(&[0, 8, 46]), 20);
    assert_shares(&sent, &[0.6875, 0.0625, 0.25]);
    let sent = saturate(&with(Diffserv::Diffserv4), &classes(&[0, 8, 24, 46]), 20);
    assert_shares(&sent, &[0.1875, 0.0625, 0.5, 0.25]);
    // What the others do not want is there for bulk.
    let sent = saturate(&with(Diffserv::Diffserv4), &classes(&[8]), 5);
    assert!((sent.bytes[0] as f64 / 10e6 - 1.0).abs() < 0.001, "{}", sent.bytes[0]);
    let sent = saturate(&with(Diffserv::Besteffort), &classes(&[0, 8, 24, 46]), 20);
    assert_shares(&sent, &[0.25; 4]);
}

#[test]
fn tins_share_by_weight_without_a_shaper() {
    let sent = saturate(&calm(), &classes(&[0, 8, 46]), 20);
    assert_shares(&sent, &[1024.0 / 1344.0, 64.0 / 1344.0, 256.0 / 1344.0]);
}

/// A mode, a codepoint of each of its tins (RFC 4594), and their weights without a shaper: parts of
/// 1024 for the rates of tc-cake(8), or 7/8 of the one before, rounded down.
const WEIGHTS: &[(Diffserv, &[u8], &[u64])] = &[
    (Diffserv::Diffserv3, &[0, 8, 46], &[1024, 64, 256]),
    (Diffserv::Diffserv4, &[0, 8, 24, 46], &[1024, 64, 512, 256]),
    (Diffserv::Diffserv8, &[1, 8, 0, 24, 18, 16, 46, 48], &[256, 224, 196, 171, 149, 130, 113, 98]),
    (
        Diffserv::Precedence,
        &[0, 8, 16, 24, 32, 40, 48, 56],
        &[256, 224, 196, 171, 149, 130, 113, 98],
    ),
];

proptest! {
    // 25 cases, unless the variable PROPTEST_CASES says otherwise.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 10))]

    /// Deficit round robin of tins: after any number of rounds each busy tin has had its weight
    /// times the rounds, up to one packet and one weight. Packet sizes and the other busy tins do
    /// not matter.
    #[test]
    fn busy_tins_share_exactly_by_weight(
        mode in 0..WEIGHTS.len(),
        busy in 1..256_usize,
        sizes in prop::collection::vec(40..1501_u32, 8),
    ) {
        let (diffserv, points, weights) = WEIGHTS[mode];
        let tins: Vec<usize> = (0..points.len()).filter(|tin| busy & (1 << tin) != 0).collect();
        prop_assume!(tins.len() > 1);
        let kinds: Vec<Packet> = (0..).zip(&tins).map(|(flow, tin)| {
            Packet::of_flow(flow).with_class(points[*tin]).with_size(sizes[*tin])
        }).collect();
        let sent = saturate(&CakeParams { diffserv, ..calm() }, &kinds, 3).bytes;
        let rounds = |kind: usize| sent[kind] as f64 / weights[tins[kind]] as f64;
        let slack = |kind: usize| 1.0 + f64::from(sizes[tins[kind]]) / weights[tins[kind]] as f64;
        for kind in 1..tins.len() {
            let difference = (rounds(kind) - rounds(0)).abs();
            let allowed = slack(kind) + slack(0);
            prop_assert!(difference <= allowed, "{tins:?} of {diffserv:?}: {sent:?}");
        }
    }

    /// With a shaper, a tin gets its rate as long as it has enough traffic: no tin below takes it,
    /// and the total is the rate of the shaper.
    #[test]
    fn a_tin_has_its_rate_whatever_the_others_send(
        mode in 0..2_usize,
        megabits in 8..60_u64,
        sizes in prop::collection::vec(400..1501_u32, 8),
    ) {
        let (diffserv, points, weights) = WEIGHTS[mode];
        let kinds: Vec<Packet> = (0..).zip(points).zip(&sizes).map(|((flow, point), size)| {
            Packet::of_flow(flow).with_class(*point).with_size(*size)
        }).collect();
        let seconds = 3;
        let params = CakeParams { diffserv, ..shaped(megabits * 1_000_000) };
        let sent = saturate(&params, &kinds, seconds).bytes;
        let all = megabits * 125_000 * seconds;
        let total: u64 = sent.iter().sum();
        prop_assert!(total.abs_diff(all) < 2 * 1500 + all / 5000, "{total} of {all}");
        for (tin, weight) in weights.iter().enumerate().skip(1) {
            let own = (all * weight / 1024) as f64;
            let error = sent[tin] as f64 / own - 1.0;
            prop_assert!(error.abs() < 0.02, "{diffserv:?}, tin {tin}: {error}");
        }
    }
}

#[test]
fn the_rate_is_kept_to_a_ten_thousandth() {
    let sizes = [1500, 40, 577, 9000].map(|size| Packet::of_flow(0).with_size(size));
    for (bits, kind) in [1_000_000, 16_000_000, 50_000_000, 79_000_000].into_iter().zip(sizes) {
        let mut params = shaped(bits);
        params.framing.link_layer = LinkLayer::Ethernet;
        let sent = saturate(&params, &[kind], 200);
        let expected = bits as f64 / 8.0 * 200.0;
        let error = sent.ethernet as f64 / expected - 1.0;
        assert!(error.abs() < 1e-4, "{bits}: {error}");
    }
}

#[test]
fn a_shaper_holds_back_and_says_until_when() {
    // 1500 bytes in 1.5 ms.
    let mut queue = queue(&shaped(8_000_000));
    let at = |micros| Time::ZERO + Span::from_micros(micros);
    offer(&mut queue, (0..2).map(|_| Packet::of_flow(0)));
    assert!(queue.dequeue(at(0)).is_some());
    assert_eq!(queue.next_wakeup(), None, "nobody asked in vain");
    assert!(queue.dequeue(at(120)).is_none());
    assert_eq!((queue.backlog().packets, queue.next_wakeup()), (1, Some(at(1500))));
    queue.on_wakeup(at(1500));
    assert_eq!(queue.next_wakeup(), None);
    assert!(queue.dequeue(at(1500)).is_some());
    assert!(queue.dequeue(at(1620)).is_none());
    assert_eq!(queue.next_wakeup(), None, "it is empty");
}

/// Offers a packet at every tick of 100 us that `comes` names, and asks for one at each. Returns the
/// bits per second that are sent in the last 10 s.
fn sent_at_last(params: &CakeParams, ticks: u64, comes: impl Fn(u64) -> bool) -> f64 {
    let mut queue = queue(params);
    let mut sent = 0.0;
    for tick in 0..ticks {
        let now = Time::ZERO + Span::from_micros(100 * tick);
        if comes(tick) {
            queue.enqueue(Packet::of_flow(0), now);
        }
        if let Some(packet) = queue.dequeue(now).filter(|_| tick >= ticks - 100_000) {
            sent += f64::from(packet.size());
        }
        queue.take_dropped(|_, _| ());
    }
    sent * 8.0 / 10.0
}

#[test]
fn in_ingress_mode_drops_have_used_the_link() {
    // Unresponsive source: 12 Mbit/s for a shaper of 8. Dropped packets would fill the link, but the
    // failsafe still sends at two thirds of the rate.
    for (ingress, share, tolerance) in [(false, 1.0, 0.001), (true, 2.0 / 3.0, 0.01)] {
        let bandwidth = Bandwidth(Some(Rate::from_bps(8_000_000)));
        let params = CakeParams { bandwidth, ingress, ..CakeParams::default() };
        let sent = sent_at_last(&params, 400_000, |tick| tick % 10 == 0) / 8e6;
        assert!((sent - share).abs() < tolerance, "{sent}");
    }
}

#[test]
fn the_bandwidth_can_follow_what_arrives() {
    for bandwidth in [None, Some(Rate::from_bps(1_000_000))] {
        let params =
            CakeParams { bandwidth: Bandwidth(bandwidth), autorate_ingress: true, ..calm() };
        // 1500 bytes in 1.4 or 1.6 ms: 8 Mbit/s, and 15/16 of it.
        let sent = sent_at_last(&params, 300_000, |tick| [0, 16].contains(&(tick % 30)));
        assert!((sent / 7.5e6 - 1.0).abs() < 0.001, "{bandwidth:?}: {sent}");
    }
}

#[test]
fn superfluous_acknowledgements_give_way() {
    for (ack_filter, left) in [
        (AckFilter::None, &[1, 2, 3, 4, 5, 6, 6, 7][..]),
        // The second 6 does not cover the first, and 7 covers both.
        (AckFilter::Conservative, &[6, 6, 7]),
        (AckFilter::Aggressive, &[6, 7]),
    ] {
        let mut queue = queue(&CakeParams { ack_filter, ..calm() });
        let acks = [1, 2, 3, 4, 5, 6, 6, 7].map(|number| Packet::of_flow(1).acking(number));
        let others = [1, 2].map(|number| Packet::of_flow(2 + number).acking(number));
        let dropped = offer(&mut queue, acks.into_iter().chain(others));
        let counts = queue.counts();
        assert_eq!(counts.dropped[Reason::AckFilter as usize], dropped.len() as u64);
        assert_eq!(dropped.len(), 8 - left.len());
        let rest = drain(&mut queue);
        let own = rest.iter().filter(|packet| packet.flow_hash() == 1);
        let numbers: Vec<u32> = own.map(|packet| OfTests.tcp(packet).unwrap().ack).collect();
        assert_eq!(numbers, left);
        assert_eq!(rest.len(), left.len() + 2, "other flows lose nothing");
    }
}

#[test]
fn washed_packets_have_had_their_tin() {
    for wash in [false, true] {
        let mut queue = queue(&CakeParams { wash, ..shaped(1_000_000) });
        offer(
            &mut queue,
            [(0, 0), (1, 46)].map(|(flow, class)| Packet::of_flow(flow).with_class(class)),
        );
        let first = queue.dequeue(Time::ZERO).unwrap();
        assert_eq!((first.flow_hash(), first.class()), (1, if wash { 0 } else { 46 }));
    }
}

#[test]
fn blue_comes_with_overflow() {
    let limit = Some(Limit::Packets(20));
    let mut queue = queue(&CakeParams { limit, ..CakeParams::default() });
    run(&mut queue, Span::from_millis(1), 10);
    assert!(seen(&queue, "blue_probability") > 0.05, "{}", seen(&queue, "blue_probability"));
    let counts = queue.counts();
    assert!(counts.dropped[Reason::Blue as usize] > 0, "{counts:?}");
    assert!(counts.dropped[Reason::Overlimit as usize] > 0, "{counts:?}");
}

#[test]
fn the_header_of_the_device_counts_unless_an_overhead_is_given() {
    // 1514 bytes take a millisecond.
    let raw = shaped(1514 * 8 * 1000);
    let with = |overhead| {
        let framing = FramingParams { overhead: Some(Octets(overhead)), ..raw.framing.clone() };
        CakeParams { framing, ..raw.clone() }
    };
    for (params, micros) in [(raw.clone(), 1000), (with(0), 991), (with(14), 1000)] {
        // The sizes of packets leave out the header of the Ethernet device.
        let mut queue = queue_on(&LinkEnv { header: 14, ..env() }, &params);
        offer(&mut queue, [1, 1].map(Packet::of_flow));
        assert!(queue.dequeue(Time::ZERO).is_some());
        assert!(queue.dequeue(Time::ZERO).is_none());
        let next = queue.next_wakeup().unwrap() - Time::ZERO;
        assert_eq!((next.as_nanos() + 500) / 1000, micros, "whole nanoseconds, rounded down");
    }
}
