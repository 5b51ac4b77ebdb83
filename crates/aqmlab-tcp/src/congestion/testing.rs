//! What the tests of congestion controls have in common.

use aqmlab_core::{Bytes, Time};

use super::{AckSample, Congestion, CongestionEvent};
use crate::TcpParams;

/// Segments of 1000 bytes.
pub fn transport() -> TcpParams {
    TcpParams { mss: Bytes::new(1000), ..TcpParams::rfc() }
}

/// An acknowledgement while the window is full.
pub fn ack(acked: u64) -> AckSample {
    AckSample { acked, delivered: acked, window_limited: true, ..AckSample::default() }
}

/// An event with this FlightSize.
pub fn event(kind: Congestion, flight_size: u64) -> CongestionEvent {
    CongestionEvent { now: Time::ZERO, kind, flight_size, in_flight: flight_size }
}
