//! Whole transfers over a path that loses, duplicates and reorders segments
//! and acknowledgements, with the invariants that hold at every step.

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_core::{Auto, Bytes, Ecn, Limit, Span, Time};
use proptest::prelude::*;

use crate::congestion::{self, CongestionConfig};
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
#[derive(Clone)]
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

/// Both ends of a transfer of segments of 1000 bytes, with the path between them.
#[derive(Clone)]
struct Transfer {
    sender: Sender,
    receiver: Receiver,
    path: Path,
    bytes: u64,
    now: Time,
    /// The end of the highest segment sent, and the number of the first segment that has not arrived.
    highest: u64,
    arrived: BTreeSet<u64>,
    in_order: u64,
}

impl Transfer {
    fn new(params: &TcpParams, bytes: u64, fates: Vec<Fate>) -> Self {
        let mut sender = Sender::new(params, Some(bytes), 0);
        if let Some(rfc) = sender.rfc().filter(|_| bytes.is_multiple_of(2)) {
            rfc.keep_records();
        }
        sender.open(Time::ZERO);
        Transfer {
            sender,
            receiver: Receiver::new(params),
            path: Path { fates: fates.into_iter(), flying: BTreeMap::new(), sent: 0 },
            bytes,
            now: Time::ZERO,
            highest: 0,
            arrived: BTreeSet::new(),
            in_order: 0,
        }
    }

    /// Polls both ends until nothing is due; returns the segments.
    fn send(&mut self) -> Vec<DataSegment> {
        let mut sent = Vec::new();
        while let Some(segment) = self.sender.poll(self.now) {
            assert!(segment.syn || segment.len > 0);
            let is_again = segment.seq < self.highest;
            assert!(segment.syn || segment.retransmission == is_again, "{segment:?}");
            self.highest = self.highest.max(segment.end());
            assert!(self.highest <= self.bytes);
            assert!(self.sender.rfc().is_none_or(|rfc| segment.end() <= rfc.window_end()));
            self.path.send(self.now, Packet::Data(segment));
            sent.push(segment);
        }
        self.sender.check();
        assert!(self.sender.cwnd() >= 1000);
        while let Some(ack) = self.receiver.poll(self.now) {
            self.check_sack(&ack);
            self.path.send(self.now, Packet::Ack(ack));
        }
        sent
    }

    /// Blocks report data that have arrived.
    fn check_sack(&self, ack: &Ack) {
        for &(start, end) in ack.sack.as_slice() {
            assert!(start < end && (ack.ack < start || ack.dsack() == Some((start, end))));
            let mut segments = (start..end).step_by(1000).map(|byte| byte / 1000);
            assert!(segments.all(|segment| self.arrived.contains(&segment)));
        }
    }

    /// Advances to the next arrival or timeout.
    fn advance(&mut self) {
        let arrival = self.path.flying.keys().next().map(|key| key.0);
        let next = [arrival, self.sender.next_timeout(), self.receiver.next_timeout()];
        let next = next.into_iter().flatten().min().expect("something is always pending");
        assert!(next >= self.now, "deadlines lie ahead");
        self.now = next;
        if arrival == Some(self.now) {
            match self.path.flying.pop_first().expect("there is an arrival").1 {
                Packet::Ack(ack) => self.sender.on_ack(self.now, &ack),
                Packet::Data(segment) => {
                    let (before, number) = (self.receiver.arrived(), segment.seq / 1000);
                    self.receiver.on_segment(self.now, &segment);
                    if self.receiver.arrived() > before {
                        self.arrived.insert(number);
                    }
                    // PAWS of Linux drops new segments, too.
                    let is_known = segment.syn || self.arrived.contains(&number);
                    assert!(is_known || self.sender.rfc().is_none());
                    while self.arrived.contains(&self.in_order) {
                        self.in_order += 1;
                    }
                    assert_eq!(self.receiver.received(), (self.in_order * 1000).min(self.bytes));
                }
            }
        }
        if self.sender.next_timeout().is_some_and(|deadline| deadline <= self.now) {
            self.sender.on_timeout(self.now);
        }
        if self.receiver.next_timeout().is_some_and(|deadline| deadline <= self.now) {
            self.receiver.on_timeout(self.now);
        }
    }

    /// Makes a number of steps; returns the segments sent.
    fn run(&mut self, steps: u64) -> Vec<DataSegment> {
        let mut sent = Vec::new();
        for _ in 0..steps {
            sent.extend(self.send());
            self.advance();
        }
        sent
    }
}

/// Transfers `bytes` and checks every step; gives the sender at the end, when nothing is in flight
/// and everything has arrived.
fn transfer(params: &TcpParams, bytes: u64, fates: Vec<Fate>) -> Sender {
    let mut transfer = Transfer::new(params, bytes, fates);
    for _ in 0..20_000 {
        transfer.send();
        if transfer.sender.is_finished() {
            assert_eq!(transfer.receiver.received(), bytes);
            let mut sender = transfer.sender;
            let in_flight = sender.bytes_in_flight();
            assert!(sender.rfc().is_none_or(|rfc| rfc.next_timeout().is_none()));
            assert!(sender.rfc().is_none() || in_flight == 0, "{sender:?}");
            return sender;
        }
        transfer.advance();
    }
    panic!("the transfer does not end: {:?}", transfer.sender);
}

/// A transfer without end over a path that loses every twentieth packet.
fn lossy(params: &TcpParams) -> Transfer {
    let fate = |number: u64| if number.is_multiple_of(20) { Fate::Lost } else { Fate::Arrives };
    let params = TcpParams { mss: Bytes::new(1000), ..params.clone() };
    Transfer::new(&params, (1 << 40) + 1, (1..100_000).map(fate).collect())
}

/// For each control, with losses.
#[test]
fn a_burst_is_what_single_decisions_would_send() {
    for entry in congestion::entries() {
        let congestion_control = CongestionConfig::named(entry.name).unwrap();
        for window_validation in [WindowValidation::Off, WindowValidation::Rfc2861] {
            let congestion_control = congestion_control.clone();
            let params = TcpParams { congestion_control, window_validation, ..TcpParams::rfc() };
            let (mut bursts, mut single) = (lossy(&params), lossy(&params));
            single.sender.rfc().unwrap().send_singly();
            let (ours, theirs) = (bursts.run(3_000), single.run(3_000));
            assert!(ours.len() > 100 && ours == theirs, "{} {window_validation:?}", entry.name);
            assert_eq!(bursts.sender.stats(), single.sender.stats());
        }
    }
}

/// For each control and both state machines.
#[test]
fn a_copy_continues_as_the_original() {
    for profile in [Profile::Rfc, Profile::Linux6] {
        for entry in congestion::entries() {
            let congestion_control = CongestionConfig::named(entry.name).unwrap();
            let params = TcpParams::of_profile(profile).unwrap();
            let mut original = lossy(&TcpParams { congestion_control, ..params });
            original.run(3_000);
            assert!(original.sender.is_cloneable());
            let mut copy = original.clone();
            let (ours, theirs) = (original.run(3_000), copy.run(3_000));
            assert!(ours.len() > 100 && ours == theirs, "{profile:?} {}", entry.name);
            assert_eq!(original.sender.stats(), copy.sender.stats());
        }
    }
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
