//! Set-ups that the tests have in common.

use aqmlab_core::{Bytes, Span, Time};

use crate::TcpParams;
use crate::congestion::{AckSample, Congestion, CongestionControl, CongestionEvent, RateSample};
use crate::segment::Ack;

/// A time in milliseconds.
pub fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Segments of 1000 bytes.
pub fn transport() -> TcpParams {
    TcpParams { mss: Bytes::new(1000), ..TcpParams::rfc() }
}

/// An acknowledgement while the window is full.
pub fn ack(acked: u64) -> AckSample {
    AckSample { acked, delivered: acked, window_limited: true, ..AckSample::default() }
}

/// Acknowledges the whole window, segment by segment. The base round-trip time is 100 ms, this one
/// so many milliseconds.
pub fn round(control: &mut impl CongestionControl, rtt: f64) {
    for number in 0..control.window() / 1000 {
        control.on_ack(&AckSample {
            rtt: Some(Span::from_secs_f64(rtt / 1e3)),
            min_rtt: Some(RTT),
            round_start: number == 0,
            ..ack(1000)
        });
    }
}

/// Base round-trip time of the tests.
pub const RTT: Span = Span::from_millis(100);

/// The acknowledgement of all that was sent in a round trip: so many bytes delivered and lost.
pub fn whole_round(number: u64, prior_delivered: u64, delivered: u64, lost: u64) -> AckSample {
    AckSample {
        now: Time::ZERO + RTT * number,
        total_delivered: prior_delivered + delivered,
        in_flight: delivered,
        rtt: Some(RTT),
        smoothed_rtt: Some(RTT),
        rate: Some(RateSample {
            delivered,
            interval: RTT,
            prior_delivered,
            lost,
            tx_in_flight: delivered + lost,
            ..RateSample::default()
        }),
        lost,
        ..ack(delivered)
    }
}

/// An event with this FlightSize.
pub fn event(kind: Congestion, flight_size: u64) -> CongestionEvent {
    CongestionEvent { now: Time::ZERO, kind, flight_size, in_flight: flight_size }
}

/// Acknowledges so many segments of 1000 bytes, and reports blocks of segments.
pub fn reports(segments: u64, blocks: &[(u64, u64)]) -> Ack {
    let mut ack = Ack { ack: segments * 1000, ..Ack::default() };
    for (start, end) in blocks {
        ack.sack.push(start * 1000, end * 1000);
    }
    ack
}
