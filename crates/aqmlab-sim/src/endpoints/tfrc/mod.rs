//! TFRC, TCP-Friendly Rate Control: datagrams at the smooth rate that TCP would have on average.
//!
//! The receiver measures the loss event rate and the rate at which data arrive, and reports both
//! about once a round-trip time. The sender computes from them and the round-trip time the rate
//! that Reno would have ([`equation`]), and sends evenly at that rate. Nothing is sent again.
//!
//! # Sources
//! RFC 5348: the equation of section 3.1, the sender of section 4 ([`sender`]), the loss event
//! rate of section 5 ([`losses`]), the receiver of section 6 ([`receiver`]).
//!
//! # Differences
//! 1. The nofeedback timer after a feedback packet is 2 s/X at least with the X that follows from
//!    this packet, not the one before it (section 4.3, steps 3 to 6): a rate that falls below a packet in
//!    four round trips would otherwise be halved before a packet can be answered.
//! 2. Unused times to send are not saved up (section 4.6 allows a round trip's worth): simulated
//!    timers are exact, so after a pause one packet leaves at once and the others at their rate.
//!    The sender is data-limited (section 8.2.1) whenever no data wait for their time.
//! 3. A packet that arrives after it was taken for lost is delivered, but its loss event stays in the
//!    history (section 5.1 allows removing it).
//! 4. What a lost packet is interpolated from (section 5.2) is the arrival of the highest number below
//!    it, whether or not a lower one arrived later.
//! 5. Feedback packets also have a count of the packets received, so that late and duplicate feedback
//!    is ignored, and the volume received, from which `goodput_bps` is computed.
//! 6. A flow with a `size` sends that many bytes once. The transfer is complete when its last packet
//!    has arrived, whatever was lost before. To learn of it when the last packet or its feedback is
//!    lost, the sender sends a packet without data at each expiration of the nofeedback timer.
//! 7. There is no handshake: the first round-trip sample is that of the first data packet
//!    (section 4.2 allows either).

pub mod equation;
pub mod losses;
pub mod receiver;
pub mod sender;

use aqmlab_core::{Error, Result, Table, Value, params};

pub use self::receiver::TfrcSink;
pub use self::sender::TfrcSource;
use super::{BuiltIn, EndpointSetup, Message};

params! {
    /// Parameters of TFRC. Its packets have `transport.mss` bytes of data and `transport.header`
    /// bytes of headers.
    pub struct TfrcParams {
        /// Packets are ECN-capable; a mark counts as a loss does.
        ecn: bool = false, source "RFC 5348, section 5.1";
        /// Loss intervals that are averaged, n.
        intervals: u64 = 8, in 2 => 64, source "RFC 5348, section 5.4: no more than 8 on the Internet";
        /// Old loss intervals count less during a long one without losses.
        discounting: bool = true, source "RFC 5348, section 5.5, optional";
        /// The rate falls as the round-trip time rises above its average.
        damping: bool = true, source "RFC 5348, section 4.5, recommended";
    }
}

impl BuiltIn for TfrcParams {
    const NAME: &'static str = "tfrc";
    const SUMMARY: &'static str =
        "TCP-Friendly Rate Control (RFC 5348), datagrams at a smooth rate";
}

impl TfrcParams {
    /// Both ends of a flow.
    pub fn build(&self, setup: &EndpointSetup) -> (TfrcSource, TfrcSink) {
        (TfrcSource::new(self, setup), TfrcSink::new(self, setup))
    }

    /// Rejects what a group of flows has that TFRC has no use for; `app` names its workload, if that
    /// is not bulk.
    ///
    /// # Errors
    /// For an application, and parameters of TCP.
    pub(crate) fn check_group(app: Option<&str>, group: &Table) -> Result<()> {
        if let Some(app) = app {
            let problem = format!(
                "`{app}` does not run over `tfrc`, which is for bulk flows: lost data stay lost"
            );
            return Err(Error::new(problem).hint("endpoint = \"tcp\"").at("workload"));
        }
        let Some(Value::Table(transport)) = group.get("transport") else { return Ok(()) };
        match transport.keys().find(|key| !["mss", "header"].contains(key)) {
            None => Ok(()),
            Some(key) => {
                let problem = "this is TCP's: of `transport`, `tfrc` uses `mss` and `header`";
                Err(Error::new(problem).at(key).at("transport"))
            }
        }
    }
}

/// A data packet (section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    /// Its number, one more than that of the packet before.
    pub number: u64,
    /// When it was sent, in nanoseconds.
    pub sent: u64,
    /// The sender's round-trip time in seconds; 0 while it has none.
    pub rtt: f64,
    /// How many bytes of data have been sent with it.
    pub end: u64,
}

/// A feedback packet (section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// When the last data packet received was sent, `t_recvdata`, in nanoseconds.
    pub echo: u64,
    /// Nanoseconds since that packet arrived, `t_delay`.
    pub delay: u64,
    /// Bytes of data received a second, `X_recv`.
    pub rate: f64,
    /// The loss event rate p.
    pub losses: f64,
    /// One more than the highest number received.
    pub next: u64,
    /// Packets received.
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
