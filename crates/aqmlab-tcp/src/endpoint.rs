//! The sending end of a connection, for both state machines.

use aqmlab_core::{Rate, Span, Time};

use crate::congestion::{CongestionControl, Samples};
use crate::connection::Stats;
use crate::linux::control::Algorithm;
use crate::linux::{Kernel, LinuxSender};
use crate::params::{self, TcpParams};
use crate::segment::{Ack, DataSegment};
use crate::sender::{self, CongestionState};

/// The sending end of a connection.
///
/// A clone panics if the congestion control cannot be copied: see
/// [`is_cloneable`](Sender::is_cloneable).
#[derive(Clone, Debug)]
pub struct Sender(Machine);

/// One of them, without a virtual call. In a box, so that a flow has room only for its own.
#[derive(Clone, Debug)]
enum Machine {
    Rfc(Box<sender::RfcSender>),
    Linux(Box<LinuxSender>),
}

/// Calls a method of the one there is.
macro_rules! each {
    ($self:ident, $sender:ident => $call:expr) => {
        match &$self.0 {
            Machine::Rfc($sender) => $call,
            Machine::Linux($sender) => $call,
        }
    };
    (mut $self:ident, $sender:ident => $call:expr) => {
        match &mut $self.0 {
            Machine::Rfc($sender) => $call,
            Machine::Linux($sender) => $call,
        }
    };
}

impl Sender {
    /// A sender of `bytes` bytes, or of data without end. Random numbers start from `seed`.
    ///
    /// # Panics
    /// Panics if [`TcpParams::check`] refuses the parameters' `stack`.
    pub fn new(params: &TcpParams, bytes: Option<u64>, seed: u64) -> Self {
        Sender(match params.machine() {
            params::Stack::Rfc => {
                Machine::Rfc(Box::new(sender::RfcSender::new(params, bytes, seed)))
            }
            _ => Machine::Linux(Box::new(LinuxSender::new(params, bytes, seed))),
        })
    }
    /// Returns true if the state of the congestion control can be copied. Only custom ones may
    /// refuse.
    pub fn is_cloneable(&self) -> bool {
        each!(self, sender => sender.control.is_cloneable())
    }
    #[cfg(test)]
    pub(crate) fn rfc(&mut self) -> Option<&mut sender::RfcSender> {
        match &mut self.0 {
            Machine::Rfc(sender) => Some(sender),
            Machine::Linux(_) => None,
        }
    }
    #[cfg(test)]
    pub(crate) fn check(&self) {
        each!(self, sender => sender.check());
    }
    /// The host of Linux's sender, to repeat a connection of a known one.
    pub fn kernel(&mut self) -> Option<Kernel<'_>> {
        match &mut self.0 {
            Machine::Rfc(_) => None,
            Machine::Linux(sender) => Some(Kernel(sender)),
        }
    }

    /// Changes parameters during the connection, as far as
    /// [`check_change`](TcpParams::check_change) allows: congestion control, pacing and ECN. Another
    /// congestion control continues with window and threshold; its random numbers start from
    /// `seed`. Segments may be due afterwards.
    pub fn change(&mut self, now: Time, before: &TcpParams, after: &TcpParams, seed: u64) {
        each!(mut self, sender => sender.change(now, before, after, seed));
    }
    /// Opens the connection: the SYN is due.
    pub fn open(&mut self, now: Time) {
        each!(mut self, sender => sender.open(now));
    }
    /// The application has more to send.
    ///
    /// # Panics
    /// Panics if the data were endless before.
    pub fn write(&mut self, bytes: u64) {
        each!(mut self, sender => sender.write(bytes));
    }
    /// Gives up a connection that is not open yet: nothing is sent any more.
    pub fn abort(&mut self) {
        each!(mut self, sender => sender.abort());
    }
    /// The bytes that have been sent, once or more often.
    pub fn sent_bytes(&self) -> u64 {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.board.nxt(),
            Machine::Linux(linux) => linux.sent_bytes(),
        }
    }
    /// Discards the data that have not been sent; returns the number of bytes that have. Lost ones
    /// are still retransmitted.
    pub fn truncate_unsent(&mut self) -> u64 {
        each!(mut self, sender => sender.truncate_unsent());
        self.sent_bytes()
    }
    /// Returns true if all bytes are acknowledged.
    #[inline]
    pub fn is_finished(&self) -> bool {
        each!(self, sender => sender.conn.is_finished(sender.acknowledged()))
    }
    /// The congestion window in bytes, with what the recovery adds to it.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        each!(self, sender => sender.cwnd())
    }
    /// The slow start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.control.ssthresh(),
            Machine::Linux(linux) => linux.ssthresh(),
        }
    }
    /// The smoothed round-trip time, once there is one.
    pub fn srtt(&self) -> Option<Span> {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.rtt.smoothed(),
            Machine::Linux(linux) => linux.state.srtt(),
        }
    }
    /// The retransmission timeout.
    pub fn rto(&self) -> Span {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.rtt.rto(),
            Machine::Linux(linux) => Span::from_millis(linux.state.rto),
        }
    }
    /// The least round-trip time, once there is one.
    pub fn min_rtt(&self) -> Option<Span> {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.rtt.min(),
            Machine::Linux(linux) => linux.state.measured(linux.state.min_rtt()),
        }
    }
    /// The mean deviation of the round-trip time (RTTVAR), once there is one.
    pub fn rtt_variation(&self) -> Option<Span> {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.rtt.variation(),
            Machine::Linux(linux) => linux.state.measured(linux.state.mdev / 4),
        }
    }
    /// The rate at which segments leave, if they are paced.
    pub fn pacing_rate(&self) -> Option<Rate> {
        each!(self, sender => sender.pacing_rate())
    }
    /// Returns the congestion state.
    pub fn congestion_state(&self) -> CongestionState {
        each!(self, sender => sender.congestion_state())
    }
    /// Bytes thought to be in the network.
    pub fn bytes_in_flight(&self) -> u64 {
        match &self.0 {
            Machine::Rfc(rfc) => rfc.board.pipe(),
            Machine::Linux(linux) => {
                u64::from(linux.state.in_flight()) * u64::from(linux.state.mss)
            }
        }
    }
    /// Reports further values of the congestion control.
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        each!(self, sender => sender.control.observe(see));
    }
    /// The counts so far.
    pub fn stats(&self) -> Stats {
        each!(self, sender => sender.conn.stats)
    }
    /// Returns the losses since the last call: first byte and length of each segment, in order.
    /// Recording starts with the first call.
    pub fn take_losses(&mut self) -> Vec<(u64, u32)> {
        match &mut self.0 {
            Machine::Rfc(rfc) => rfc.board.delivery.log.take(),
            Machine::Linux(linux) => linux.losses.take(),
        }
    }
    /// Returns the recorded acknowledgements, to take them or to begin; `None` if the congestion
    /// control is not `steered`.
    pub fn samples(&mut self) -> Option<&mut Samples> {
        match &mut self.0 {
            Machine::Rfc(rfc) => rfc.control.samples(),
            Machine::Linux(linux) => linux.control.as_external()?.control.samples(),
        }
    }
    /// An acknowledgement arrives.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        each!(mut self, sender => sender.on_ack(now, ack));
    }
    /// Returns the next segment to be sent now: call until `None`.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<DataSegment> {
        each!(mut self, sender => sender.poll(now))
    }
    /// Returns the time at which [`on_timeout`](Self::on_timeout) must be called.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        each!(self, sender => sender.next_timeout())
    }
    /// The time of [`next_timeout`](Self::next_timeout) has come.
    pub fn on_timeout(&mut self, now: Time) {
        each!(mut self, sender => sender.on_timeout(now));
    }
}
