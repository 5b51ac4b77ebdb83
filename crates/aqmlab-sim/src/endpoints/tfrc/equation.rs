//! The throughput equation of Reno TCP (RFC 5348, section 3.1), and its inverse.

/// The smallest loss event rate that the inverse returns.
const LEAST: f64 = 1e-12;

/// Returns `X_Bps`: the average rate of Reno in bytes per second with segments of `size` bytes, a
/// round-trip time of `rtt` and a retransmission timeout of `rto` seconds, a loss event rate of
/// `losses` (0 to 1) and an acknowledgement for every `per_ack` segments.
pub fn throughput(size: f64, rtt: f64, rto: f64, per_ack: f64, losses: f64) -> f64 {
    let (p, b) = (losses, per_ack);
    let recoveries = rtt * libm::sqrt(2.0 * b * p / 3.0);
    let timeouts = rto * (3.0 * libm::sqrt(3.0 * b * p / 8.0) * p * (1.0 + 32.0 * p * p));
    size / (recoveries + timeouts)
}

/// Returns the rate in bytes per second with the recommendations of section 3.1: a timeout of four
/// round-trip times, and an acknowledgement for each segment.
pub fn rate(size: f64, rtt: f64, losses: f64) -> f64 {
    throughput(size, rtt, 4.0 * rtt, 1.0, losses)
}

/// Returns the loss event rate at which [`rate`] is `target`, at most 1 (section 6.3.1), by
/// bisection on a logarithmic scale: the rate decreases with losses.
pub fn losses_for(size: f64, rtt: f64, target: f64) -> f64 {
    let (mut low, mut high) = (LEAST, 1.0);
    if rate(size, rtt, high) >= target {
        return high;
    }
    for _ in 0..64 {
        let middle = libm::sqrt(low * high);
        if rate(size, rtt, middle) > target {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
