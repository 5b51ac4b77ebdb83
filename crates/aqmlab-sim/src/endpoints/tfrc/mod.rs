//! TFRC, TCP-Friendly Rate Control: datagrams at the smooth average rate of TCP.
//!
//! The receiver measures the loss event rate and the receive rate, and reports both about once per
//! round-trip time. From these and the round-trip time, the sender computes the rate of Reno
//! ([`equation`]), and sends evenly at that rate. There are no retransmissions.
//!
//! # Sources
//! RFC 5348: the equation of section 3.1, the sender of section 4 ([`sender`]), the loss event
//! rate of section 5 ([`losses`]), the receiver of section 6 ([`receiver`]).
//!
//! # Differences
//! 1. The nofeedback timer after a feedback packet is at least 2 s/X with the X that results from
//!    this packet, not from the one before (section 4.3, steps 3 to 6). Otherwise a rate that falls
//!    below a packet in four round trips would be halved before a packet can be answered.
//! 2. Unused sending times are not saved (section 4.6 allows a round trip's worth): simulated
//!    timers are exact, so after a pause one packet leaves at once and the others at their rate.
//!    The sender is data-limited (section 8.2.1) whenever no data wait for their time.
//! 3. A packet that arrives after it was considered lost is delivered, but its loss event remains
//!    in the history (section 5.1 allows removing it).
//! 4. The arrival time of a lost packet is interpolated (section 5.2) from the arrival of the
//!    highest number below it, whether or not a lower one arrived later.
//! 5. Feedback packets also contain the number of packets received, so that late and duplicate
//!    feedback is ignored, and the volume received, from which `goodput_bps` is computed.
//! 6. A flow with a `size` sends that many bytes once. The transfer is complete when its last
//!    packet has arrived, regardless of earlier losses. If the last packet or its feedback is lost,
//!    the sender probes with a packet without data at each expiration of the nofeedback timer.
//! 7. There is no handshake: the first round-trip sample is that of the first data packet
//!    (section 4.2 allows either).

pub mod equation;
pub mod losses;
pub mod receiver;
pub mod sender;

use aqmlab_core::{Component, Error, Result, Table, Value, params};

pub use self::receiver::TfrcSink;
pub use self::sender::TfrcSource;
use super::{BoxedEnds, EndpointParams, EndpointSetup, Message};

params! {
    /// Parameters of TFRC. Its packets have `transport.mss` bytes of data and `transport.header`
    /// bytes of headers.
    pub struct TfrcParams {
        /// True if packets are ECN-capable; a mark counts as a loss.
        ecn: bool = false, source "RFC 5348, section 5.1";
        /// Number of averaged loss intervals, n.
        intervals: u64 = 8, in 2 => 64, source "RFC 5348, section 5.4: no more than 8 on the Internet";
        /// True if old loss intervals have less weight during a long interval without losses.
        discounting: bool = true, source "RFC 5348, section 5.5, optional";
        /// True to reduce the rate while the round-trip time is above its average.
        damping: bool = true, source "RFC 5348, section 4.5, recommended";
    }
}

impl Component for TfrcParams {
    const NAME: &'static str = "tfrc";
    const SUMMARY: &'static str =
        "TCP-Friendly Rate Control (RFC 5348), datagrams at a smooth rate";
}

impl EndpointParams for TfrcParams {
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds {
        (Box::new(TfrcSource::new(self, setup)), Box::new(TfrcSink::new(self, setup)))
    }
}

impl TfrcParams {
    /// Keys of `transport` that TFRC uses.
    pub(crate) const USED: [&str; 2] = ["mss", "header"];

    /// Rejects settings of a group of flows that TFRC does not support; `app` names its workload,
    /// unless it is bulk.
    ///
    /// # Errors
    /// Returns an error for an application, and for parameters of TCP.
    pub(crate) fn check_group(app: Option<&str>, group: &Table) -> Result<()> {
        if let Some(app) = app {
            let problem = format!(
                "`{app}` does not run over `tfrc`, which is for bulk flows: lost data stay lost"
            );
            return Err(Error::new(problem).hint("endpoint = \"tcp\"").at("workload"));
        }
        let Some(Value::Table(transport)) = group.get("transport") else { return Ok(()) };
        match transport.keys().find(|key| !Self::USED.contains(key)) {
            None => Ok(()),
            Some(key) => {
                let problem =
                    "only TCP uses this key: of `transport`, `tfrc` uses `mss` and `header`";
                Err(Error::new(problem).at(key).at("transport"))
            }
        }
    }
}

/// Data packet (section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    /// Sequence number, increasing by one.
    pub number: u64,
    /// Sending time in nanoseconds.
    pub sent: u64,
    /// Sender's round-trip time in seconds; 0 if unknown.
    pub rtt: f64,
    /// Total bytes of data sent, including this packet.
    pub end: u64,
}

/// Feedback packet (section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Sending time of the last data packet received, `t_recvdata`, in nanoseconds.
    pub echo: u64,
    /// Nanoseconds since that packet arrived, `t_delay`.
    pub delay: u64,
    /// Receive rate in bytes per second, `X_recv`.
    pub rate: f64,
    /// Loss event rate p.
    pub losses: f64,
    /// Highest number received, plus one.
    pub next: u64,
    /// Number of packets received.
    pub packets: u64,
}

fn pack<const N: usize>(numbers: [u64; N]) -> Message {
    numbers.map(u64::to_le_bytes).concat().into()
}

fn unpack<const N: usize>(message: &Message) -> Option<[u64; N]> {
    if message.len() != 8 * N {
        return None;
    }
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(message.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(numbers)
}

impl Data {
    fn message(&self) -> Message {
        pack([self.number, self.sent, self.rtt.to_bits(), self.end])
    }
    fn read(message: &Message) -> Option<Data> {
        let [number, sent, rtt, end] = unpack(message)?;
        Some(Data { number, sent, rtt: f64::from_bits(rtt), end })
    }
}

impl Feedback {
    fn message(&self) -> Message {
        let [rate, losses] = [self.rate, self.losses].map(f64::to_bits);
        pack([self.echo, self.delay, rate, losses, self.next, self.packets])
    }
    fn read(message: &Message) -> Option<Feedback> {
        let [echo, delay, rate, losses, next, packets] = unpack(message)?;
        let [rate, losses] = [rate, losses].map(f64::from_bits);
        Some(Feedback { echo, delay, rate, losses, next, packets })
    }
}

#[cfg(test)]
mod tests;
