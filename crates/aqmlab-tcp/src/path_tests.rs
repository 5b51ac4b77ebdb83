//! Whole transfers over a path that loses, duplicates and reorders segments
//! and acknowledgements, with the invariants that hold at every step.

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_core::{Auto, Bytes, Ecn, Limit, Span, Time};
use proptest::prelude::*;

use crate::congestion;
use crate::params::{EcnMode, Stack, WindowValidation};
use crate::{Ack, DataSegment, Profile, Receiver, Recovery, Sender, TcpParams};

/// Fate of a packet.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Late(u64),
    Twice(u64),
    Marked,
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Data(DataSegment),
    Ack(Ack),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => (1u64..120).prop_map(Fate::Late),
        1 => (1u64..120).prop_map(Fate::Twice),
        1 => Just(Fate::Marked),
    ]
}

fn any_params() -> impl Strategy<Value = TcpParams> {
    let recovery = prop::sample::select(vec![
        Recovery::Sack,
        Recovery::Rack,
        Recovery::Sack1,
        Recovery::TcpLinux,
        Recovery::NewReno,
        Recovery::Reno,
    ]);
    let windows = (1u64..12, prop::option::of(2u64..20));
    let ecn = prop::sample::select(vec![
        EcnMode::Off,
        EcnMode::Classic,
        EcnMode::Dctcp,
        EcnMode::Accurate,
    ]);
    let switches = prop::collection::vec(any::<bool>(), 8);
    let validation = prop::sample::select(vec![
        WindowValidation::Off,
        WindowValidation::Rfc2861,
        WindowValidation::Rfc7661,
    ]);
    let controls: Vec<_> = congestion::entries().iter().map(|entry| entry.name).collect();
    let control = prop::sample::select(controls);
    (recovery, windows, ecn, 1u64..4, switches, control, validation).prop_map(
        |(recovery, (initial, receive), ecn, delayed_ack, switches, control, validation)| {
            TcpParams {
                congestion_control: Profile::Rfc.control(control).expect("registered"),
                mss: Bytes::new(1000),
                recovery,
                initial_window: Limit::Packets(initial),
                receive_window: match receive {
                    Some(2) => Auto::Auto,
                    Some(packets) => Auto::Set(Limit::Packets(packets)),
                    None => Auto::Set(Limit::Unlimited),
                },
                limited_transmit: switches[0],
                ecn,
                prr: switches[2] && recovery.has_pipe(),
                tail_loss_probe: switches[3],
                frto: switches[4],
                dsack: switches[5],
                timestamps: switches[6],
                pacing: switches[7],
                delayed_ack,
                window_validation: validation,
                min_rto: Span::from_millis(if switches[1] { 60 } else { 1000 }),
                ..TcpParams::rfc()
            }
        },
    )
}

/// For Linux's sender, with the kernel's controls and with the others on its interface.
fn linux_params() -> impl Strategy<Value = TcpParams> {
    let recoveries = prop::sample::select(vec![Recovery::Rack, Recovery::Sack, Recovery::NewReno]);
    let stacks = prop::sample::select(vec![Stack::Linux54, Stack::Linux61, Stack::Linux612]);
    (any_params(), recoveries, stacks).prop_map(|(params, recovery, stack)| {
        let name = params.congestion_control.name();
        TcpParams {
            stack,
            recovery,
            prr: recovery.has_pipe(),
            congestion_control: Profile::Linux6.control(name).expect("registered"),
            mss: params.mss,
            initial_window: params.initial_window,
            receive_window: params.receive_window,
            ecn: params.ecn,
            tail_loss_probe: params.tail_loss_probe,
            frto: params.frto,
            dsack: params.dsack,
            timestamps: params.timestamps,
            pacing: params.pacing,
            delayed_ack: params.delayed_ack,
            segmentation_offload: params.limited_transmit,
            ..TcpParams::default()
        }
    })
}

/// Path with a one-way delay of 20 ms. Packets have the listed fates in the order of sending;
/// after the end of the list all arrive.
struct Path {
    fates: std::vec::IntoIter<Fate>,
    flying: BTreeMap<(Time, u64), Packet>,
    sent: u64,
}

impl Path {
    fn send(&mut self, now: Time, mut packet: Packet) {
        let fate = self.fates.next().unwrap_or(Fate::Arrives);
        if let (Fate::Marked, Packet::Data(segment)) = (fate, &mut packet)
            && segment.ecn.is_capable()
        {
            segment.ecn = Ecn::Ce;
        }
        let mut put = |late: u64| {
            self.sent += 1;
            self.flying.insert((now + Span::from_millis(20 + late), self.sent), packet);
        };
        match fate {
            Fate::Arrives | Fate::Marked => put(0),
            Fate::Lost => {}
            Fate::Late(late) => put(late),
            Fate::Twice(late) => {
                put(0);
                put(late);
            }
        }
    }
}

/// Blocks report data that have arrived.
fn check_sack(ack: &Ack, arrived: &BTreeSet<u64>) {
    for &(start, end) in ack.sack.as_slice() {
        assert!(start < end && (ack.ack < start || ack.dsack() == Some((start, end))));
        assert!((start..end).all(|byte| arrived.contains(&(byte / 1000))));
    }
}

/// Nothing is in flight at the end of a transfer, and everything has arrived.
fn check_end(sender: &mut Sender, receiver: &Receiver, bytes: u64) {
    assert_eq!(receiver.received(), bytes);
    assert!(sender.rfc().is_none_or(|rfc| rfc.next_timeout().is_none()));
    sender.check();
    let in_flight = sender.bytes_in_flight();
    assert!(sender.rfc().is_none() || in_flight == 0, "{sender:?}");
}

/// Transfers `bytes` and checks every step; gives the sender at the end.
fn transfer(params: &TcpParams, bytes: u64, fates: Vec<Fate>) -> Sender {
    let mut path = Path { fates: fates.into_iter(), flying: BTreeMap::new(), sent: 0 };
    let mut sender = Sender::new(params, Some(bytes), 0);
    if let Some(rfc) = sender.rfc().filter(|_| bytes.is_multiple_of(2)) {
        rfc.keep_records();
    }
    let mut receiver = Receiver::new(params);
    let mut arrived = BTreeSet::new();
    let (mut now, mut highest) = (Time::ZERO, 0);
    sender.open(now);
    for _ in 0..20_000 {
        while let Some(segment) = sender.poll(now) {
            assert!(segment.syn || segment.len > 0);
            assert!(
                segment.syn || segment.retransmission == (segment.seq < highest),
                "{segment:?}"
            );
            highest = highest.max(segment.end());
            assert!(highest <= bytes);
            assert!(sender.rfc().is_none_or(|rfc| segment.end() <= rfc.window_end()));
            path.send(now, Packet::Data(segment));
        }
        sender.check();
        assert!(sender.cwnd() >= 1000);
        while let Some(ack) = receiver.poll(now) {
            check_sack(&ack, &arrived);
            path.send(now, Packet::Ack(ack));
        }
        if sender.is_finished() {
            check_end(&mut sender, &receiver, bytes);
            return sender;
        }
        let arrival = path.flying.keys().next().map(|key| key.0);
        let next = [arrival, sender.next_timeout(), receiver.next_timeout()];
        let next = next.into_iter().flatten().min().expect("something is always pending");
        assert!(next >= now, "deadlines lie ahead");
        now = next;
        if arrival == Some(now) {
            match path.flying.pop_first().expect("there is an arrival").1 {
                Packet::Ack(ack) => sender.on_ack(now, &ack),
                Packet::Data(segment) => {
                    receiver.on_segment(now, &segment);
                    if segment.len > 0 {
                        arrived.insert(segment.seq / 1000);
                    }
                    let in_order = (0..).take_while(|number| arrived.contains(number)).count();
                    assert_eq!(receiver.received(), (in_order as u64 * 1000).min(bytes));
                }
            }
        }
        if sender.next_timeout().is_some_and(|deadline| deadline <= now) {
            sender.on_timeout(now);
        }
        if receiver.next_timeout().is_some_and(|deadline| deadline <= now) {
            receiver.on_timeout(now);
        }
    }
    panic!("the transfer does not end: {sender:?}");
}

proptest! {
    // 384 cases, unless the variable PROPTEST_CASES says otherwise.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

    #[test]
    fn every_byte_arrives_once_in_order_whatever_the_path_does(
        params in any_params(),
        bytes in 1u64..60_000,
        fates in prop::collection::vec(fate(), 0..250),
    ) {
        transfer(&params, bytes, fates);
    }

    #[test]
    fn every_byte_arrives_with_linuxs_sender_and_any_control(
        params in linux_params(),
        bytes in 1u64..60_000,
        fates in prop::collection::vec(fate(), 0..250),
    ) {
        transfer(&params, bytes, fates);
    }

    /// On a path that does nothing wrong, nothing is sent twice, but for probes
    /// while an acknowledgement is delayed.
    #[test]
    fn nothing_is_sent_again_without_a_reason(params in any_params(), bytes in 1u64..200_000) {
        let params = TcpParams { min_rto: Span::from_secs(1), tail_loss_probe: false, ..params };
        let stats = transfer(&params, bytes, Vec::new()).stats();
        prop_assert_eq!((stats.retransmissions, stats.timeouts), (0, 0));
        prop_assert_eq!(stats.segments_sent, bytes.div_ceil(1000));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000_000, ..ProptestConfig::default() })]

    /// `cargo test --release -p aqmlab-tcp --lib a_million -- --ignored`
    #[test]
    #[ignore = "takes minutes"]
    fn every_byte_arrives_over_a_million_paths(
        params in any_params(),
        bytes in 1u64..60_000,
        fates in prop::collection::vec(fate(), 0..250),
    ) {
        transfer(&params, bytes, fates);
    }
}
