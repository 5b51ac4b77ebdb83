//! The closed loop: our sender and our receiver, with Linux's rules. What lies between them is
//! the simulator's.

use aqmlab_core::{Auto, Bytes, Result, Time};

use super::case::Case;
use aqmlab_tcp::Sender;
use aqmlab_tcp::params::{EcnMode, TcpParams};
use aqmlab_tcp::receiver::{PacketMemory, Receiver};

/// The receivers of the recordings had buffers of 16 MB, which grew.
const BUFFER: u64 = 1 << 24;
/// Memory that a packet of any size took there.
const PACKET: u64 = 2304;
/// Bytes of IP and TCP, without options and with timestamps.
const HEADERS: u32 = 40;
const WITH_TIMESTAMPS: u32 = 52;

/// How a connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Time at which everything was acknowledged; `None` if that took too long.
    pub all_acknowledged: Option<Time>,
    /// Data segments sent again.
    pub retransmitted: u64,
}

impl Outcome {
    /// Whether the time is within a hundredth, and the retransmissions within two or two
    /// hundredths.
    pub fn is_close_to(&self, other: &Outcome) -> bool {
        let (Some(one), Some(two)) = (self.all_acknowledged, other.all_acknowledged) else {
            return self.all_acknowledged == other.all_acknowledged;
        };
        let apart = one.as_nanos().abs_diff(two.as_nanos());
        let more = self.retransmitted.abs_diff(other.retransmitted);
        apart * 100 <= two.as_nanos() && (more <= 2 || more * 50 <= other.retransmitted)
    }
}

/// Both ends of a recorded connection, as it begins.
#[derive(Debug)]
pub struct Ends {
    /// The sender, with the clock and the phases of the recording; not opened, nothing written.
    pub sender: Sender,
    /// The receiver.
    pub receiver: Receiver,
    /// Bytes of IP and TCP headers in each packet.
    pub header: u32,
}

impl Case {
    /// The parameters of both ends in the closed loop.
    fn closed_params(&self) -> Result<TcpParams> {
        let mut params = self.settings.params()?;
        params.receive_window = Auto::Auto;
        params.receive_buffer = Bytes::new(self.receive_buffer.unwrap_or(BUFFER));
        params.receive_buffer_max = Bytes::new(self.receive_buffer.unwrap_or(2 * BUFFER));
        if self.settings.ecn && self.settings.control == "dctcp" {
            params.ecn = EcnMode::Dctcp;
        }
        params.dsack = params.recovery.has_pipe();
        Ok(params)
    }

    /// Both ends, for the whole connection once more: with Linux's rules at both, and the host's
    /// clock as the recording has it.
    ///
    /// # Errors
    /// Returns an error if the control is unknown.
    pub fn ends(&self) -> Result<Ends> {
        let params = self.closed_params()?;
        let mut sender = Sender::new(&params, Some(0), 0);
        let best = super::best_take(self)?;
        if let Some(mut linux) = sender.kernel() {
            linux.set_clock(best.clock.0, best.clock.1);
            linux.set_phases(&best.phases);
            linux.set_write_size(u64::MAX);
        }
        Ok(Ends { sender, receiver: self.receiver()?, header: self.header() })
    }

    /// The receiver, as it begins.
    ///
    /// # Errors
    /// Returns an error if the control is unknown.
    pub fn receiver(&self) -> Result<Receiver> {
        let params = self.closed_params()?;
        let packets = PacketMemory { head: PACKET - params.mss.get(), shared: 1 };
        Ok(Receiver::with_packets(&params, packets))
    }
    /// Bytes of IP and TCP headers in each packet.
    pub fn header(&self) -> u32 {
        if self.settings.timestamps { WITH_TIMESTAMPS } else { HEADERS }
    }
}
