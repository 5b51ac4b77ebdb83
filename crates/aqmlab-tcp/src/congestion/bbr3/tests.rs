use super::*;
use crate::testing::{RTT, ack, event, transport, whole_round};

fn bbr() -> Bbr3 {
    Bbr3::new(&Bbr3Params::default(), &transport().setup(10_000, 1))
}

/// Round trips one after another, each an acknowledgement of all that was sent
/// in it, at a rate in segments a second.
struct AckedRounds {
    bbr: Bbr3,
    now: Time,
    delivered: u64,
}

impl AckedRounds {
    fn new() -> Self {
        AckedRounds { bbr: bbr(), now: Time::ZERO, delivered: 0 }
    }
    fn sample(&mut self, rate: u64, lost: u64) -> AckSample {
        self.now += RTT;
        let (number, delivered) = (self.now.as_nanos() / RTT.as_nanos(), rate * 1000 / 10);
        let sample = whole_round(number, self.delivered, delivered, lost);
        self.delivered += delivered;
        AckSample { in_flight: delivered.min(self.bbr.window()), ..sample }
    }
    fn round(&mut self, rate: u64, lost: u64) {
        let sample = self.sample(rate, lost);
        self.bbr.on_ack(&sample);
    }
    /// Without ProbeRTT.
    fn undisturbed() -> Self {
        let mut path = AckedRounds::cruising();
        path.bbr.params.probe_rtt_interval = Span::from_secs(1000);
        path
    }
    /// Through Startup and Drain at 1000 segments a second: 100 in flight.
    fn cruising() -> Self {
        let mut path = AckedRounds::new();
        for rate in [125, 250, 500, 1000, 1000, 1000, 1000, 1000, 1000, 1000] {
            path.round(rate, 0);
        }
        assert_eq!(path.bbr.state, Bbr3Mode::Cruise);
        assert_eq!((path.bbr.bw, path.bbr.min_rtt), (1e6, Some(RTT)));
        path
    }
    fn until(&mut self, state: Bbr3Mode) {
        for _ in 0..100 {
            if self.bbr.state == state {
                return;
            }
            self.round(1000, 0);
        }
        panic!("never {state:?}");
    }
    fn lose(&mut self, tx_in_flight: u64, lost: u64) {
        self.bbr.on_lost(&LostSegment { bytes: 1000, tx_in_flight, lost, app_limited: false });
    }
}

/// Section 5.3.1.2: a quarter more is growth, three rounds without are a plateau.
#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut path = AckedRounds::new();
    for rate in [100, 200, 250, 313, 313, 389] {
        path.round(rate, 0);
        assert_eq!(path.bbr.state, Bbr3Mode::Startup, "{rate}");
        assert_eq!(path.bbr.pacing_gain, 2.77);
    }
    path.round(389, 0);
    assert!(path.bbr.full.reached && path.bbr.state != Bbr3Mode::Startup);
}

/// Section 5.3.1.3: six acknowledgements with losses in a round of recovery, and more than 2 % of
/// the data in flight.
#[test]
fn startup_ends_by_losses() {
    let run = |events, lost| {
        let mut path = AckedRounds::new();
        path.round(100, 0);
        path.round(200, 0);
        path.bbr.on_congestion(&event(Congestion::Loss, 20_000));
        for _ in 0..events {
            path.bbr.on_ack(&AckSample { rate: None, lost: 1, in_recovery: true, ..ack(0) });
        }
        let sample = AckSample { in_recovery: true, ..path.sample(300, lost) };
        path.bbr.on_ack(&AckSample { lost: 0, ..sample });
        path.bbr
    };
    let ended = run(6, 3000);
    assert!(ended.full.reached && ended.state != Bbr3Mode::Startup);
    // max(bdp, inflight_latest): 30 segments were delivered in the round.
    assert_eq!(ended.inflight_longterm, 30_000.0);
    assert_eq!(run(5, 3000).state, Bbr3Mode::Startup, "too few");
    assert_eq!(run(6, 100).state, Bbr3Mode::Startup, "too little");
    let mut spurious = ended;
    spurious.on_undo();
    assert_eq!((spurious.state, spurious.full.reached), (Bbr3Mode::Startup, false));
    assert_eq!(spurious.inflight_longterm, f64::INFINITY);
}

/// Section 5.3.2: Drain gives up after three rounds, however much is in flight.
#[test]
fn drain_lasts_three_rounds_at_most() {
    let mut path = AckedRounds::new();
    let mut crowded = || {
        let sample = AckSample { in_flight: 10_000_000, ..path.sample(1000, 0) };
        path.bbr.on_ack(&sample);
        path.bbr.state
    };
    assert!((0..20).any(|_| crowded() == Bbr3Mode::Drain));
    for round in 1..=3 {
        assert_eq!(crowded(), Bbr3Mode::Drain, "round {round}");
    }
    assert_eq!(crowded(), Bbr3Mode::Down);
}

/// Section 5.5.10.2: the last segment but a part of it.
#[test]
fn the_volume_at_which_losses_are_too_many_is_found() {
    let mut bbr = bbr();
    bbr.rs.tx_in_flight = 100_000.0;
    bbr.rs.lost = 2500.0;
    // 99 segments before, 1.5 of them lost; x more, all of them lost, make
    // (1.5 + x) / (99 + x) = 0.02.
    let x = (0.02 * 99.0 - 1.5) / 0.98;
    assert!((bbr.inflight_at_loss(1000.0) - (99.0 + x) * 1000.0).abs() < 1e-6);
}

#[test]
fn too_many_losses_end_a_probe_and_bound_what_is_in_flight() {
    let mut path = AckedRounds::cruising();
    path.until(Bbr3Mode::Up);
    path.lose(125_000, 2000);
    assert_eq!(path.bbr.state, Bbr3Mode::Up, "1.6 % are not too many");
    path.lose(125_000, 3000);
    assert_eq!(path.bbr.state, Bbr3Mode::Down);
    let bound = path.bbr.inflight_longterm;
    assert!((bound - 125_000.0).abs() < 1000.0, "{bound}");
    assert!((path.bbr.inflight_with_headroom() - 0.85 * bound).abs() < 1e-6);
    let mut spurious = path.bbr.clone();
    spurious.on_undo();
    assert_eq!(spurious.state, Bbr3Mode::Refill, "a spurious loss: the probe begins again");
    assert_eq!(spurious.inflight_longterm, f64::INFINITY);
    path.lose(60_000, 6000);
    assert_eq!(path.bbr.inflight_longterm, bound, "once a probe");
}

/// Section 5.5.10.2: not below beta of the target, however little was in flight.
#[test]
fn a_probe_does_not_cost_more_than_beta() {
    let mut path = AckedRounds::cruising();
    path.until(Bbr3Mode::Up);
    path.lose(20_000, 10_000);
    assert_eq!(path.bbr.inflight_longterm, 0.7 * 100_000.0);
}

/// Section 5.5.10.3: max(what arrived, 0.7 of the bound) each round with losses.
#[test]
fn losses_between_probes_bound_rate_and_volume_for_a_while() {
    let mut path = AckedRounds::cruising();
    let cwnd = path.bbr.cwnd;
    path.lose(100_000, 1000);
    path.round(900, 1000);
    assert_eq!(path.bbr.bw_shortterm, 1e6, "the round in which it was lost delivered as before");
    path.lose(100_000, 1000);
    path.round(900, 1000);
    assert_eq!(path.bbr.bw, 0.9e6);
    assert!(
        (path.bbr.inflight_shortterm - 0.7 * 0.7 * cwnd).abs() < 1.0
            || path.bbr.inflight_shortterm == 100_000.0
    );
    for _ in 0..4 {
        path.lose(10_000, 1000);
        path.round(100, 1000);
    }
    let expected = 0.9e6 * 0.7 * 0.7 * 0.7;
    assert!((path.bbr.bw / expected - 1.0).abs() < 1e-9, "{}", path.bbr.bw);
    path.until(Bbr3Mode::Refill);
    assert_eq!(path.bbr.bw_shortterm, f64::INFINITY, "a probe forgets it");
}

/// Section 5.3.3.8: two to three seconds, or 63 round trips.
#[test]
fn probes_come_every_two_to_three_seconds() {
    let mut path = AckedRounds::undisturbed();
    for _ in 0..20 {
        path.until(Bbr3Mode::Up);
        path.until(Bbr3Mode::Down);
        let began = path.now;
        path.until(Bbr3Mode::Refill);
        let waited = (path.now - began).as_secs_f64();
        assert!((2.0..3.2).contains(&waited), "{waited}");
        assert!((2.0..3.0).contains(&path.bbr.bw_probe_wait.as_secs_f64()));
    }
}

/// Section 5.3.3.5: 1, 2, 4, ... segments a round trip.
#[test]
fn the_bound_is_raised_by_twice_as_much_each_round() {
    let mut path = AckedRounds::undisturbed();
    path.until(Bbr3Mode::Up);
    path.bbr.inflight_longterm = 100_000.0;
    path.bbr.probe_up_acked_per_inc = 100_000.0;
    for expected in [1.0, 2.0, 4.0, 8.0, 16.0] {
        path.bbr.cwnd = path.bbr.inflight_longterm;
        path.bbr.full.restart(0.0); // a plateau would end the probe
        let before = path.bbr.inflight_longterm;
        let mut sample = path.sample(1000, 0);
        sample.rate.as_mut().unwrap().tx_in_flight = 0;
        path.bbr.on_ack(&sample);
        // A round is 100 segments here, the bound a little more by then, and what
        // does not make a segment is carried over.
        let grown = (path.bbr.inflight_longterm - before) / 1000.0;
        assert!((grown - expected).abs() <= 0.25 * expected, "{expected}: {grown}");
    }
}

#[test]
fn a_timeout_leaves_one_segment_and_its_end_gives_the_window_back() {
    let mut path = AckedRounds::cruising();
    let cwnd = path.bbr.cwnd;
    path.bbr.on_congestion(&event(Congestion::Timeout { first: true }, 100_000));
    assert_eq!(path.bbr.window(), 1000);
    let sample = path.sample(10, 0);
    path.bbr.on_ack(&AckSample { in_loss: true, ..sample });
    assert_eq!(path.bbr.window(), 4000, "the least that keeps the pipe");
    path.round(10, 0);
    assert!(path.bbr.cwnd >= cwnd);
}

/// Section 5.3.4: five seconds after the last lower delay, for 200 ms and a round trip.
#[test]
fn probe_rtt_ends_in_time() {
    let mut path = AckedRounds::cruising();
    path.until(Bbr3Mode::ProbeRtt);
    let began = path.now;
    assert!((began - Time::ZERO).as_secs_f64() > 5.0);
    path.until(Bbr3Mode::Cruise);
    let lasted = (path.now - began).as_secs_f64();
    assert!((0.2..0.5).contains(&lasted), "{lasted}");
}

/// Section 5.5.5: a sample that the application limits counts if it is no lower.
#[test]
fn a_limited_sample_as_high_as_the_bandwidth_renews_it() {
    let mut path = AckedRounds::cruising();
    (0..2).for_each(|_| path.bbr.advance_max_bw_filter());
    let mut sample = path.sample(1000, 0);
    sample.rate.as_mut().unwrap().app_limited = true;
    path.bbr.on_ack(&sample);
    path.round(900, 0);
    assert_eq!(path.bbr.max_bw, 1e6);
}

/// Section 5.5.7.2: the minimum is that of ten seconds, and the one of ProbeRTT that of five.
#[test]
fn the_lowest_delay_is_that_of_ten_seconds() {
    let mut bbr = bbr();
    let mut measured = |seconds, millis| {
        bbr.now = Time::ZERO + Span::from_secs(seconds);
        bbr.update_min_rtt(&AckSample { rtt: Some(Span::from_millis(millis)), ..ack(1000) });
        bbr.min_rtt
    };
    for (seconds, millis, lowest) in [(1, 20, 20), (8, 15, 15), (14, 30, 15), (19, 25, 25)] {
        assert_eq!(measured(seconds, millis), Some(Span::from_millis(lowest)), "{seconds} s");
    }
}

/// StartProbeBW_UP: growth counts from the rate at which the probe begins.
#[test]
fn a_probe_compares_with_the_rate_at_its_start() {
    let mut path = AckedRounds::cruising();
    path.round(800, 0);
    path.bbr.start_up();
    assert_eq!(path.bbr.full.bw, 8e5);
}

/// CheckProbeRTT: an acknowledgement that delivers nothing does not end the restart after idle.
#[test]
fn only_a_delivery_ends_a_restart_after_idle() {
    let mut path = AckedRounds::cruising();
    for (delivered, is_idle) in [(0, true), (1000, false)] {
        path.bbr.idle_restart = true;
        path.bbr.check_probe_rtt(&AckSample { delivered, ..ack(1000) });
        assert_eq!(path.bbr.idle_restart, is_idle);
    }
}

/// UpdateACKAggregation: a filter of one round in Startup, of ten after it.
#[test]
fn aggregation_in_startup_is_forgotten_after_a_round() {
    let mut bbr = Bbr3 { cwnd: 1e6, bw: 1e9, ..bbr() };
    let round = |bbr: &mut Bbr3, newly_acked: f64, full_pipe: bool| {
        bbr.full.reached = full_pipe;
        bbr.now += RTT;
        (bbr.rounds.count, bbr.rounds.started) = (bbr.rounds.count + 1, true);
        bbr.rs.newly_acked = newly_acked;
        bbr.update_ack_aggregation();
        bbr.extra_acked.max()
    };
    assert_eq!(round(&mut bbr, 50_000.0, false), 50_000.0);
    assert_eq!(round(&mut bbr, 2000.0, false), 2000.0);
    assert_eq!(round(&mut bbr, 1000.0, true), 2000.0);
    (0..8).for_each(|_| assert_eq!(round(&mut bbr, 1000.0, true), 2000.0));
    assert_eq!(round(&mut bbr, 1000.0, true), 1000.0);
}
