//! Tests of the window function of RFC 9438.

use super::*;
use crate::testing::{RTT, ack, event, round, transport};

fn cubic(params: CubicParams) -> Rfc9438 {
    Rfc9438::new(&params, &transport().setup(10_000, 0))
}
/// With another end of slow start than Linux's, the default.
fn with(slow_start: SlowStartKind) -> CubicParams {
    CubicParams { slow_start, ..CubicParams::default() }
}
fn standard() -> Rfc9438 {
    cubic(with(SlowStartKind::Standard))
}
fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}
/// In congestion avoidance with this window in segments, before any loss.
fn with_window(segments: u64) -> Rfc9438 {
    let mut cubic = standard();
    cubic.curve.cwnd = (segments * 1000) as f64;
    cubic.curve.ssthresh = segments * 1000;
    cubic
}
/// Acknowledges window after window, evenly over each round-trip time,
/// up to a time in seconds; gives the window in segments.
fn acknowledge(cubic: &mut Rfc9438, from: f64, to: f64) -> f64 {
    let mut now = from;
    while now < to {
        let segments = (cubic.window() / 1000).max(1);
        cubic.on_ack(&AckSample { now: at(now), smoothed_rtt: Some(RTT), ..ack(1000) });
        now += RTT.as_secs_f64() / segments as f64;
    }
    cubic.curve.cwnd / 1000.0
}

/// Section 4.2: from 0.7 W_max the plateau is K = cbrt(0.3 W_max / C) away.
/// 1000 segments: K is 9.086 s.
#[test]
fn after_a_loss_the_window_is_the_cubic_function_of_the_time() {
    let mut cubic = with_window(1000);
    cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (700_000, 700_000));
    let k = libm::cbrt(300.0 / 0.4);
    let w = |t: f64| 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
    let mut now = 0.0;
    for until in [1.0, 3.0, 6.0, k, 12.0, 15.0] {
        let window = acknowledge(&mut cubic, now, until);
        // The target is a round-trip time ahead and is approached in one.
        assert!(w(until) - 1.0 < window && window < w(until + 0.1) + 1.0, "{until}: {window}");
        assert!((cubic.curve.k - k).abs() < 1e-9);
        now = until;
    }
}

/// Delayed acknowledgements make no difference (difference 1).
#[test]
fn acknowledging_two_segments_at_once_is_as_fast() {
    let grow = |each: u64| {
        let mut cubic = with_window(1000);
        cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
        let mut now = 0.0;
        while now < 4.0 {
            let sample = AckSample { now: at(now), smoothed_rtt: Some(RTT), ..ack(each) };
            cubic.on_ack(&sample);
            now += 0.1 * each as f64 / cubic.curve.cwnd;
        }
        cubic.curve.cwnd
    };
    assert!((grow(1000) / grow(2000) - 1.0).abs() < 0.002, "{} {}", grow(1000), grow(2000));
}

/// Section 4.2: at most by half a window in a round-trip time.
#[test]
fn the_target_is_at_most_one_and_a_half_windows() {
    let mut cubic = with_window(100);
    cubic.begin_epoch(at(0.0));
    let sample = AckSample { now: at(100.0), smoothed_rtt: Some(RTT), ..ack(1000) };
    cubic.on_ack(&sample);
    assert_eq!(cubic.window(), 100_500);
}

/// Section 4.3: small windows grow as AIMD(alpha, 0.7) until W_est is where
/// the loss was, then by a segment a round-trip time.
#[test]
fn with_small_windows_it_is_as_fast_as_reno() {
    let mut cubic = with_window(20);
    cubic.on_congestion(&event(Congestion::Loss, 20_000));
    let alpha = 3.0 * 0.3 / 1.7;
    let window = acknowledge(&mut cubic, 0.0, 1.0);
    let reno = 14.0 + 10.0 * alpha;
    assert!((window - reno).abs() < 0.6, "{window} {reno}");
    // From 14 to 20 segments takes 11.3 round-trip times.
    let before = acknowledge(&mut cubic, 1.0, 1.2);
    let after = acknowledge(&mut cubic, 1.2, 1.7);
    assert!((after - before - 5.0).abs() < 0.5, "{before} {after}");
}

/// The mean window in segments when one segment in `interval` is lost, from
/// the first loss at this window on.
fn mean_window(interval: u64, first: u64) -> f64 {
    let mut cubic = with_window(first);
    cubic.fast_convergence = false; // section 4.7: for a single flow
    let mut now = 0.0;
    for number in 0..5 * interval {
        if number % interval == 0 {
            cubic.on_congestion(&event(Congestion::Loss, cubic.window()));
        }
        cubic.on_ack(&AckSample { now: at(now), smoothed_rtt: Some(RTT), ..ack(1000) });
        now += RTT.as_secs_f64() * 1000.0 / cubic.curve.cwnd;
    }
    (5 * interval) as f64 * RTT.as_secs_f64() / now
}

/// Section 5.1, table 1: as Reno (38 segments) at a loss rate of 1e-3, above
/// it (Reno has 120 and 379) at 1e-4 and 1e-5. The model has each loss at the
/// plateau, where the mean is (3 + beta) / 4 of the window; that is where
/// this begins, for the model returns to it only slowly.
#[test]
fn mean_windows_are_those_of_the_table() {
    for (interval, expected) in [(1000, 38.0), (10_000, 187.0), (100_000, 1054.0)] {
        let mean = mean_window(interval, (expected * 4.0 / 3.7) as u64);
        assert!((mean / expected - 1.0).abs() < 0.06, "{interval}: {mean}");
    }
}

#[test]
fn a_loss_below_the_last_lowers_the_plateau() {
    let mut cubic = with_window(100);
    cubic.on_congestion(&event(Congestion::Loss, 100_000));
    assert_eq!(cubic.curve.w_max, 100_000.0);
    cubic.on_congestion(&event(Congestion::Loss, 70_000));
    assert_eq!(cubic.curve.w_max, 70_000.0 * 0.85);
    cubic.fast_convergence = false;
    cubic.on_congestion(&event(Congestion::Loss, 40_000));
    assert_eq!(cubic.curve.w_max, 49_000.0);
    assert_eq!(cubic.window(), 28_000, "of FlightSize");
}

#[test]
fn windows_do_not_fall_below_figure_5s_bounds() {
    let mut cubic = with_window(2);
    cubic.on_congestion(&event(Congestion::Loss, 2000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (2000, 2000));
    cubic.on_congestion(&event(Congestion::Ecn, 2000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (1400, 2000));
    cubic.on_congestion(&event(Congestion::Ecn, 1000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 2000));
}

/// RFC 8511.
#[test]
fn an_echo_may_leave_more_than_a_loss() {
    let mut cubic = cubic(CubicParams { beta_ecn: Some(0.85), ..CubicParams::default() });
    cubic.curve.cwnd = 100_000.0;
    cubic.on_congestion(&event(Congestion::Ecn, 100_000));
    assert_eq!(cubic.window(), 85_000);
    cubic.on_congestion(&event(Congestion::Loss, 100_000));
    assert_eq!(cubic.window(), 59_499, "of the window: no more was in use");
}

/// Section 4.8: slow start to ssthresh, then the convex half of the function.
#[test]
fn after_a_timeout_the_plateau_is_where_avoidance_begins() {
    let mut cubic = with_window(1000);
    cubic.on_congestion(&event(Congestion::Timeout { first: true }, 1_000_000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 700_000));
    cubic.on_congestion(&event(Congestion::Timeout { first: false }, 1000));
    assert_eq!((cubic.window(), cubic.ssthresh()), (1000, 700_000));
    for _ in 0..699 {
        cubic.on_ack(&ack(1000));
    }
    assert_eq!(cubic.window(), 700_000);
    let window = acknowledge(&mut cubic, 1.0, 6.0);
    assert_eq!((cubic.curve.k, cubic.curve.w_max), (0.0, 700_000.0));
    assert!((window - (700.0 + 0.4 * 125.0)).abs() < 4.0, "{window}");
}

/// Section 4.9.2; the second timeout of a segment does not hide the first.
#[test]
fn what_was_spurious_is_undone() {
    let mut cubic = with_window(1000);
    cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
    acknowledge(&mut cubic, 0.0, 2.0);
    let before = cubic.curve;
    for kind in [Congestion::Loss, Congestion::Timeout { first: true }] {
        cubic.on_congestion(&event(kind, 500_000));
        cubic.on_congestion(&event(Congestion::Timeout { first: false }, 1000));
        assert_eq!(cubic.window(), 1000);
        cubic.on_undo();
        assert_eq!(cubic.curve, before);
    }
    cubic.on_congestion(&event(Congestion::Loss, 500_000));
    cubic.curve.cwnd = before.cwnd + 1.0;
    cubic.on_undo();
    assert_eq!(cubic.curve.cwnd, before.cwnd + 1.0, "long past: stays as it is");
}

/// Section 5.8.
#[test]
fn time_without_data_to_send_does_not_count() {
    let mut cubic = with_window(1000);
    cubic.on_congestion(&event(Congestion::Loss, 1_000_000));
    let window = acknowledge(&mut cubic, 0.0, 1.0);
    for now in [20.0, 50.0] {
        cubic.on_ack(&AckSample { now: at(now), window_limited: false, ..ack(1000) });
    }
    assert_eq!(cubic.curve.cwnd / 1000.0, window);
    let later = acknowledge(&mut cubic, 50.0, 50.01);
    assert!(later - window < 10.0, "{window} {later}");
}

/// Section 4.10: HyStart++ ends slow start without a loss; the window goes
/// on from there by the convex half.
#[test]
fn an_exit_without_loss_makes_a_plateau() {
    let mut cubic = cubic(with(SlowStartKind::HystartPp));
    let mut rounds = 0;
    while cubic.ssthresh() > cubic.window() {
        round(&mut cubic, if rounds < 3 { 100.0 } else { 150.0 });
        rounds += 1;
        assert!(rounds < 12);
    }
    assert_eq!(rounds, 9, "three fast, one that finds it, five slow, the last just begun");
    let exit = cubic.ssthresh();
    acknowledge(&mut cubic, 2.0, 2.1);
    assert_eq!((cubic.curve.w_max as u64, cubic.curve.k), (exit, 0.0));
}

/// Section 5.8: a flow that was idle for a minute goes on where it was.
#[test]
fn idle_times_do_not_count() {
    let grown = |idle: u64| {
        let mut cubic = standard();
        cubic.curve.cwnd = 100_000.0;
        cubic.on_congestion(&event(Congestion::Loss, 100_000));
        let mut now = 0;
        for step in 0..100 {
            if step == 50 {
                now += idle;
                let now = Time::ZERO + Span::from_millis(now);
                let app_limited = true;
                let (bytes, prior_in_flight, retransmission) = (1000, 0, false);
                let sent = SentSample { now, bytes, prior_in_flight, app_limited, retransmission };
                cubic.on_sent(&sent);
            }
            now += 10;
            cubic.on_ack(&AckSample {
                now: Time::ZERO + Span::from_millis(now),
                smoothed_rtt: Some(Span::from_millis(100)),
                ..ack(10_000)
            });
        }
        cubic.curve.cwnd
    };
    assert!((grown(60_000) / grown(0) - 1.0).abs() < 1e-9, "{} {}", grown(60_000), grown(0));
}
