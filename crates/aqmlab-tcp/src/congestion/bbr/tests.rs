use super::*;
use crate::testing::{RTT, event, transport, whole_round};

fn bbr() -> Bbr {
    Bbr::new(&BbrParams::default(), &transport().setup(10_000, 1))
}
fn play(bbr: &mut Bbr, rounds: &[u64]) {
    let mut delivered = 0;
    for (index, segments) in (1..).zip(rounds) {
        bbr.on_ack(&whole_round(index, delivered, segments * 1000, 0));
        delivered += segments * 1000;
    }
}

/// 100 segments in 100 ms; the pacing rate has 40 bytes with each.
#[test]
fn rate_and_window_are_gains_of_the_model() {
    let mut bbr = bbr();
    play(&mut bbr, &[10, 20, 40, 80, 100, 100, 100, 100, 100, 100, 100]);
    assert_eq!((bbr.btl_bw, bbr.rtprop), (1e6, Some(RTT)));
    assert_eq!(bbr.cwnd_gain, 2.0);
    let wire = 1e6 * 8.0 * 1.04;
    assert_eq!(bbr.pacing_rate().unwrap().as_bps(), (wire * bbr.pacing_gain) as u64);
    // 8 Mbit/s: a quantum of two segments.
    assert_eq!(bbr.in_flight_for(2.0), 200_000 + 3 * 2000);
    assert!(bbr.window() <= 206_000);
}

#[test]
fn a_bandwidth_is_forgotten_after_ten_rounds() {
    let mut bbr = bbr();
    let mut rounds = vec![100; 8];
    rounds.extend([50; 9]);
    play(&mut bbr, &rounds);
    assert_eq!(bbr.btl_bw, 1e6);
    let mut bbr = self::bbr();
    rounds.push(50);
    play(&mut bbr, &rounds);
    assert_eq!(bbr.btl_bw, 0.5e6);
}

/// Sections 4.3.4.1 and 4.3.4.2: 5/4, 3/4 and six times 1, from anywhere but 3/4.
#[test]
fn the_cycle_begins_anywhere_but_in_its_drain() {
    let mut begun = [0; 8];
    let mut bbr = bbr();
    for _ in 0..7000 {
        bbr.enter_probe_bw(Time::ZERO);
        let Mode::ProbeBw { phase, .. } = bbr.state else { unreachable!() };
        begun[phase] += 1;
    }
    assert_eq!(begun[1], 0);
    for phase in [0, 2, 3, 4, 5, 6, 7] {
        assert!((850..1150).contains(&begun[phase]), "{begun:?}");
    }
}

/// Section 4.2.3.4: for a round trip as much is sent as is delivered; at the end the window is
/// restored.
#[test]
fn a_recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
    let mut bbr = bbr();
    play(&mut bbr, &[100; 12]);
    let before = bbr.window();
    bbr.on_congestion(&event(Congestion::Ecn, 100_000));
    assert_eq!(bbr.window(), before, "marks change nothing");
    let in_flight = CongestionEvent { in_flight: 90_000, ..event(Congestion::Loss, 100_000) };
    bbr.on_congestion(&in_flight);
    assert_eq!(bbr.window(), 91_000);
    let within = AckSample {
        now: Time::ZERO + RTT * 13,
        in_flight: 88_000,
        delivered: 2000,
        lost: 1000,
        total_delivered: 1_202_000,
        in_recovery: true,
        ..AckSample::default()
    };
    bbr.on_ack(&within);
    assert_eq!(bbr.window(), 90_000, "what is in flight and what has arrived");
    bbr.on_ack(&AckSample { lost: 0, in_flight: 50_000, ..within });
    assert_eq!(bbr.window(), 90_000, "it falls by losses only");
    bbr.on_ack(&AckSample { in_recovery: false, lost: 0, ..within });
    assert_eq!(bbr.window(), before);
}

#[test]
fn a_timeout_leaves_one_segment_and_a_spurious_one_nothing() {
    let mut bbr = bbr();
    play(&mut bbr, &[100; 12]);
    let before = bbr.window();
    bbr.on_congestion(&event(Congestion::Timeout { first: true }, 100_000));
    assert_eq!(bbr.window(), 1000);
    bbr.on_undo();
    assert_eq!(bbr.window(), before);
}

#[test]
fn the_handshake_gives_the_first_propagation_time() {
    let mut bbr = bbr();
    bbr.on_connected(Time::ZERO, Some(RTT / 2));
    play(&mut bbr, &[10, 20]);
    assert_eq!(bbr.rtprop, Some(RTT / 2));
}

/// Section 4.3.5: 200 ms and a round with four segments; Startup goes on if the pipe is not
/// known to be full.
#[test]
fn probe_rtt_before_the_pipe_is_full_leads_back_to_startup() {
    let mut bbr = bbr();
    play(&mut bbr, &[10, 20]);
    let few = |round, before| AckSample { in_flight: 4000, ..whole_round(round, before, 10000, 0) };
    bbr.on_ack(&few(103, 30_000));
    assert_eq!((bbr.window(), bbr.pacing_gain), (4000, 1.0), "ten seconds after the last");
    bbr.on_ack(&few(105, 40_000));
    assert!(matches!(bbr.state, Mode::ProbeRtt { .. }), "after 200 ms");
    bbr.on_ack(&few(106, 50_000));
    assert_eq!((bbr.state, bbr.pacing_gain), (Mode::Startup, 2.885));
}

#[test]
fn a_timeout_in_a_recovery_keeps_the_window_before_it() {
    let mut bbr = bbr();
    play(&mut bbr, &[100; 12]);
    let before = bbr.window();
    let in_flight = CongestionEvent { in_flight: 50_000, ..event(Congestion::Loss, 100_000) };
    bbr.on_congestion(&in_flight);
    bbr.on_congestion(&event(Congestion::Timeout { first: true }, 50_000));
    bbr.on_undo();
    assert_eq!(bbr.window(), before);
}

#[test]
fn after_a_spurious_loss_the_search_for_the_plateau_begins_again() {
    let mut bbr = bbr();
    play(&mut bbr, &[10, 20, 40, 40]);
    assert_eq!((bbr.full.bw, bbr.full.count), (0.4e6, 1));
    bbr.on_undo();
    bbr.on_ack(&whole_round(5, 110_000, 40000, 0));
    assert_eq!((bbr.full.bw, bbr.full.count), (0.4e6, 0));
}

/// Section 4.3.5: BBRExitProbeRTT with BBRRestoreCwnd.
#[test]
fn probe_rtt_gives_the_window_back() {
    let mut bbr = bbr();
    play(&mut bbr, &[100; 12]);
    (bbr.cwnd, bbr.prior_cwnd) = (4000, 150_000);
    bbr.exit_probe_rtt(Time::ZERO + RTT * 13);
    assert_eq!(bbr.cwnd, 150_000);
}

/// The segments that a timeout declares lost are not subtracted from the window of one segment,
/// those that are lost afterwards are.
#[test]
fn the_losses_of_a_timeout_count_once() {
    let lost = |bbr: &mut Bbr| {
        bbr.set_cwnd(&AckSample { lost: 3000, delivered: 0, ..whole_round(13, 1_200_000, 0, 0) });
        bbr.cwnd
    };
    let mut bbr = bbr();
    play(&mut bbr, &[100; 12]);
    bbr.on_congestion(&event(Congestion::Timeout { first: true }, 100_000));
    bbr.cwnd = 50_000;
    assert_eq!(lost(&mut bbr), 50_000);
    assert_eq!(lost(&mut bbr), 47_000);
}
