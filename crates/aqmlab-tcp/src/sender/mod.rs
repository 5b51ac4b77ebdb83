//! The sending end: what to send, and when to send it again.
//!
//! [Recovery](crate::Recovery) detects and repairs losses, the [congestion
//! control](crate::congestion) sets the window. This module has the common part: acknowledgements
//! (`acks`), ECN (`ecn`), the order of transmissions (`output`), pacing (`pacing`), tail loss probes (`tlp`), undo of spurious recoveries (`undo`), unused
//! windows (`validation`) and timers (`timers`).
//!
//! # Sources
//! RFC 9293 (handshake), RFC 5681 (duplicate acknowledgements), RFC 3042
//! (limited transmit), RFC 6298 (timer).
//!
//! # Differences
//! 1. The third segment of the handshake is the first data segment.
//! 2. There is no FIN: a transfer ends when its last byte is acknowledged.
//! 3. Round-trip times are taken from the newest segment that each
//!    acknowledgement covers, if it was sent once (RFC 6298, section 3) and
//!    not SACKed before. Except with Sack1, none that is covered may have been
//!    sent twice: the others may have waited for its repair unreported.

mod acks;
mod change;
mod cwnd_validation;
mod ecn;
mod output;
mod pacing;
mod timers;
mod tlp;
mod undo;

use aqmlab_core::{Deadline, Time};
use cwnd_validation::Validation;
use ecn::EcnState;
use output::Burst;
use pacing::Pacer;
use tlp::TailProbe;
use undo::SpuriousDetection;

use crate::congestion::{CongestionControl, Control};
use crate::connection::{ConnState, Connection};
use crate::delivery::Delivery;
use crate::params::{TcpParams, WindowValidation};
use crate::prr::Prr;
use crate::recovery::{LossRecovery, Phase, RecoveryQuirks, RecoveryState};
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;

/// What a sender is doing about congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionState {
    /// The window is below the slow start threshold.
    SlowStart,
    /// The window is at or above it.
    Avoidance,
    /// The window is reduced for an ECN echo.
    Reduction,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct RfcSender {
    pub(crate) conn: Connection,
    phase: Phase,
    pub(crate) board: Scoreboard,
    recovery: RecoveryState,
    rules: RecoveryQuirks,
    pub(crate) rtt: RttEstimator,
    ecn: EcnState,
    pacer: Pacer,
    tlp: TailProbe,
    undo: SpuriousDetection,
    validation: Validation,
    /// While the window is being reduced with PRR.
    prr: Option<Prr>,
    pub(crate) control: Control,
    mss: u64,
    params: TcpParams,
    /// The byte up to which the receiver takes data.
    window_end: u64,
    /// When the retransmission timer runs out.
    deadline: Deadline,
    dup_acks: u64,
    /// The first segment must be retransmitted independent of the window.
    retransmit_head: bool,
    /// Sent by limited transmit: not counted in FlightSize at a loss.
    limited: u64,
    /// The window was full when last asked.
    window_limited: bool,
    /// The segment whose timeouts are counted: the second and later do not
    /// lower ssthresh.
    timed_out: Option<u64>,
    /// The lost bytes that the control knows of.
    lost_told: u64,
    /// The byte, or the number of delivered bytes, with which a round ends.
    round_end: u64,
    seed: u64,
    /// Time of the last transmission.
    last_sent: Time,
    /// The receiver's window is closed: the timer is for probing it.
    persisting: bool,
    window_probe_due: bool,
    syn_due: bool,
    burst: Burst,
    /// True if the window alone limits transmission: see [`Control::sends_bursts`].
    sends_bursts: bool,
    /// Latest sample passed to the control.
    #[cfg(test)]
    told: crate::congestion::AckSample,
}

/// Returns whether the window alone limits transmission: see [`Control::sends_bursts`]. RFC 7661
/// may lower the window at any time.
fn sends_bursts(control: &Control, params: &TcpParams) -> bool {
    control.sends_bursts()
        && !params.pacing
        && params.window_validation != WindowValidation::Rfc7661
}

impl RfcSender {
    /// A sender of `bytes` bytes, or of data without end. The congestion
    /// control's random numbers start from `seed`.
    pub fn new(params: &TcpParams, bytes: Option<u64>, seed: u64) -> Self {
        let control = Control::new(&params.congestion_control, &params.first_setup(seed));
        let mut board =
            Scoreboard::new(params.mss.get(), Delivery::new(control.needs_rate_samples()));
        let rules = params.recovery.rules();
        board.by_time = rules.goes_by_time;
        board.collects = rules.goes_by_time || params.frto;
        let sends_bursts = sends_bursts(&control, params);
        RfcSender {
            conn: Connection::new(bytes),
            phase: Phase::Open,
            board,
            recovery: RecoveryState::new(params),
            rules,
            rtt: RttEstimator::new(params),
            ecn: EcnState::new(params),
            pacer: Pacer::new(params),
            tlp: TailProbe::new(params),
            undo: SpuriousDetection::new(params),
            validation: Validation::new(params),
            prr: None,
            control,
            mss: params.mss.get(),
            params: params.clone(),
            window_end: 0,
            deadline: Deadline::NEVER,
            dup_acks: 0,
            retransmit_head: false,
            limited: 0,
            window_limited: false,
            timed_out: None,
            lost_told: 0,
            round_end: 0,
            seed,
            last_sent: Time::ZERO,
            persisting: false,
            window_probe_due: false,
            syn_due: false,
            burst: Burst::default(),
            sends_bursts,
            #[cfg(test)]
            told: crate::congestion::AckSample::default(),
        }
    }

    /// Opens the connection: the SYN is due.
    pub fn open(&mut self, now: Time) {
        self.conn.open(now);
        self.syn_due = true;
        self.deadline = Deadline::at(now + self.rtt.rto());
    }
    pub fn write(&mut self, bytes: u64) {
        self.burst = Burst::default();
        self.conn.write(bytes);
    }
    pub fn abort(&mut self) {
        self.burst = Burst::default();
        self.conn.state = ConnState::Closed;
        self.syn_due = false;
        self.deadline = Deadline::NEVER;
    }
    /// Bytes that are acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.board.una()
    }
    pub fn truncate_unsent(&mut self) {
        self.burst = Burst::default();
        self.conn.truncate(self.board.nxt());
    }
    /// The congestion window in bytes, with what the recovery adds to it.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        let window = match self.prr {
            Some(prr) => prr.cwnd(),
            None if self.phase.is_open() => self.control.window(),
            None => self.recovery.window(self.control.window()),
        };
        window.max(self.mss)
    }
    /// Returns the congestion state.
    pub fn congestion_state(&self) -> CongestionState {
        match self.phase {
            Phase::Open if self.cwnd() < self.control.ssthresh() => CongestionState::SlowStart,
            Phase::Open => CongestionState::Avoidance,
            Phase::Reduction { .. } => CongestionState::Reduction,
            Phase::Recovery { .. } => CongestionState::Recovery,
            Phase::Loss { .. } => CongestionState::Loss,
        }
    }

    /// Checks what always holds.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.board.check();
        assert_eq!(self.board.is_empty(), self.board.flight_size() == 0);
        let quiet =
            self.conn.state == ConnState::Established && self.board.is_empty() && !self.persisting;
        assert_eq!(quiet || self.conn.state == ConnState::Closed, self.deadline.is_never());
    }
    /// Asks control and recovery for each segment.
    #[cfg(test)]
    pub(crate) fn send_singly(&mut self) {
        self.sends_bursts = false;
    }
    /// Keeps records of all segments, as for a control that needs rates.
    #[cfg(test)]
    pub(crate) fn keep_records(&mut self) {
        assert_eq!(self.conn.state, ConnState::Closed);
        self.board.delivery = Delivery::new(true);
    }
    /// The byte up to which the receiver takes data.
    #[cfg(test)]
    pub(crate) fn window_end(&self) -> u64 {
        self.window_end
    }
}

#[cfg(test)]
mod acks_tests;
