//! How losses are found and mended: one type for each way, behind one
//! interface.
//!
//! The sender owns the connection: phases, windows, the timer, the count of
//! duplicate acknowledgements. A way of recovery says what an acknowledgement
//! means, what counts against the window, and what is sent again next.

mod newreno;
mod rack;
mod sack;
mod sack1;
mod tcp_linux;

use aqmlab_core::{Deadline, Time, choices};

use crate::params::TcpParams;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::segment::Ack;

/// Where the sender stands with losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// The window is reduced for an ECN echo until this byte is acknowledged
    /// (with PRR).
    Reduction {
        point: u64,
    },
    /// Fast recovery until this byte is acknowledged.
    Recovery {
        point: u64,
    },
    /// After a timeout, until this byte is acknowledged.
    Loss {
        point: u64,
    },
}

impl Phase {
    /// Nothing is being mended.
    #[inline]
    pub fn is_open(self) -> bool {
        matches!(self, Phase::Open | Phase::Reduction { .. })
    }
}

/// The connection when an acknowledgement comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext<'a> {
    pub now: Time,
    pub phase: Phase,
    pub rtt: &'a RttEstimator,
}

/// A segment to be sent again: its place in the scoreboard, and whether
/// HighRxt moves on to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repair {
    pub index: usize,
    pub advance: bool,
}

impl Repair {
    fn at(index: usize) -> Self {
        Repair { index, advance: true }
    }
}

/// A way of recovery.
pub(crate) trait LossRecovery {
    /// Takes the SACK blocks; the bytes that were not known to have arrived.
    fn take_sack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64;

    /// Whether a round-trip time may be taken from an acknowledgement that
    /// also covers segments that were sent twice.
    fn times_repaired(&self) -> bool {
        false
    }
    /// Duplicate acknowledgements counted after one that moves on and reports
    /// this much by SACK.
    fn duplicates_after(&self, _sacked: u64) -> u64 {
        0
    }
    /// A duplicate acknowledgement with these blocks; whether it counts.
    fn on_duplicate(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> bool;
    /// A partial acknowledgement of this many bytes; whether the first segment
    /// is sent again at once.
    fn on_partial_ack(&mut self, board: &mut Scoreboard, acked: u64) -> bool;

    /// Whether a duplicate acknowledgement restarts the retransmission timer.
    fn duplicates_restart_timer(&self) -> bool {
        false
    }
    /// Whether any acknowledgement of new data ends a recovery.
    fn ends_early(&self) -> bool {
        false
    }
    /// Whether three duplicate acknowledgements mean a loss.
    fn counts_duplicates(&self) -> bool {
        true
    }
    /// Whether there is a loss to be mended, without counting duplicate
    /// acknowledgements; `sacked` bytes were reported just now.
    fn finds_loss(&self, _board: &mut Scoreboard, _sacked: u64) -> bool {
        false
    }
    /// Whether a recovery may begin.
    fn may_begin(&self, _board: &Scoreboard) -> bool {
        true
    }
    /// What the control is told was in flight at a loss: FlightSize without
    /// what limited transmit sent (RFC 5681, section 3.2).
    fn flight_at_loss(&self, board: &Scoreboard, limited: u64, _window: u64) -> u64 {
        board.flight_size() - limited
    }
    /// A recovery begins: the first segment is lost.
    fn begin(&mut self, board: &mut Scoreboard);
    /// It ends; whether the control is to bring the window down to what is in
    /// flight (RFC 6582, section 3.2, step 3).
    fn end(&mut self, _board: &mut Scoreboard) -> bool {
        false
    }
    /// The retransmission timer ran out.
    fn on_timeout(&mut self, board: &mut Scoreboard, rtt: &RttEstimator, now: Time);

    /// What counts against the window.
    fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64;
    /// What is added to the control's window in a recovery.
    fn inflation(&self) -> i64 {
        0
    }
    /// What the window is at least in a recovery: one that comes down slowly.
    fn least_window(&self) -> u64 {
        0
    }
    /// What these duplicate acknowledgements add to the window before a
    /// recovery (RFC 3042).
    fn limited_transmit(&self, dup_acks: u64) -> u64;
    /// What is sent again first, in any case, when a recovery begins and after
    /// a timeout.
    fn head(&mut self, board: &mut Scoreboard) -> Option<Repair> {
        board.next_hole(true).map(Repair::at)
    }
    /// What is sent again before new data (RFC 6675, section 4, NextSeg, rule
    /// 1), in a recovery or after a timeout.
    fn first_choice(&mut self, board: &mut Scoreboard, phase: Phase) -> Option<Repair>;
    /// What is sent again if there are no new data (rules 3 and 4).
    fn last_choice(&mut self, _board: &mut Scoreboard, _phase: Phase) -> Option<Repair> {
        None
    }
    /// A segment was sent while something is mended; `replaces` if it is the lost one that a recovery
    /// begins with.
    fn on_sent(&mut self, _len: u32, _replaces: bool) {}
    /// The segment that begins here was sent again; `nxt` is SND.NXT.
    fn on_repaired(&mut self, _seq: u64, _nxt: u64, _now: Time) {}

    /// When a segment that is late will be lost.
    fn deadline(&self) -> Deadline {
        Deadline::NEVER
    }
    /// That time has come.
    fn on_deadline(
        &mut self,
        _board: &mut Scoreboard,
        _rtt: &RttEstimator,
        _now: Time,
        _phase: Phase,
    ) {
    }
    /// What was taken for lost was not.
    fn on_undo(&mut self, _board: &Scoreboard) {}
}

macro_rules! recoveries {
    ($( $(#[doc = $doc:literal])+ $Variant:ident($State:ty) = $name:literal, )+) => {
        choices! {
            /// How losses are found and mended.
            pub enum Recovery { $( $(#[doc = $doc])+ $Variant = $name, )+ }
        }

        /// The state of one of them, dispatched without a pointer.
        #[derive(Clone, Debug)]
        pub(crate) enum Recoverer { $( $Variant($State), )+ }

        impl Recoverer {
            pub fn new(params: &TcpParams) -> Self {
                match params.recovery {
                    $( Recovery::$Variant => Recoverer::$Variant(<$State>::new(params)), )+
                }
            }
        }

        /// Calls a method of the one there is.
        macro_rules! each {
            ($self:ident, $state:ident => $call:expr) => {
                match $self { $( Recoverer::$Variant($state) => $call, )+ }
            };
        }
    };
}

// One line a way of recovery.
recoveries! {
    /// With selective acknowledgements (RFC 6675): lost segments count as
    /// gone from the network.
    Sack(sack::Sack) = "sack",
    /// With selective acknowledgements, by time: RACK (RFC 8985).
    Rack(rack::Rack) = "rack",
    /// ns-2's Sack1 (Fall and Floyd, "Simulation-based Comparisons of
    /// Tahoe, Reno, and SACK TCP", 1996): each acknowledgement takes one
    /// segment out of the network, a partial one two, and a lost one is
    /// counted until then. After a timeout everything is sent again.
    Sack1(sack1::Sack1) = "sack1",
    /// That of ns-2's TCP-Linux: forward acknowledgement, and a scoreboard
    /// that is emptied when a recovery ends.
    TcpLinux(tcp_linux::TcpLinux) = "tcp-linux",
    /// Without selective acknowledgements (RFC 6582).
    NewReno(newreno::NewReno) = "newreno",
    /// Without selective acknowledgements, as before NewReno (RFC 5681,
    /// section 3.2): a second loss in a window waits for the timer.
    Reno(newreno::NewReno) = "reno",
}

impl Recovery {
    /// Whether it knows what is in the network, segment by segment.
    pub(crate) fn has_pipe(self) -> bool {
        matches!(self, Recovery::Sack | Recovery::Rack | Recovery::TcpLinux)
    }
}

impl LossRecovery for Recoverer {
    #[inline]
    fn take_sack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> u64 {
        each!(self, state => state.take_sack(board, ack, cx))
    }
    #[inline]
    fn times_repaired(&self) -> bool {
        each!(self, state => state.times_repaired())
    }
    #[inline]
    fn duplicates_after(&self, sacked: u64) -> u64 {
        each!(self, state => state.duplicates_after(sacked))
    }
    fn on_duplicate(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext) -> bool {
        each!(self, state => state.on_duplicate(board, ack, cx))
    }
    fn on_partial_ack(&mut self, board: &mut Scoreboard, acked: u64) -> bool {
        each!(self, state => state.on_partial_ack(board, acked))
    }
    fn duplicates_restart_timer(&self) -> bool {
        each!(self, state => state.duplicates_restart_timer())
    }
    #[inline]
    fn ends_early(&self) -> bool {
        each!(self, state => state.ends_early())
    }
    fn counts_duplicates(&self) -> bool {
        each!(self, state => state.counts_duplicates())
    }
    fn finds_loss(&self, board: &mut Scoreboard, sacked: u64) -> bool {
        each!(self, state => state.finds_loss(board, sacked))
    }
    fn may_begin(&self, board: &Scoreboard) -> bool {
        each!(self, state => state.may_begin(board))
    }
    fn flight_at_loss(&self, board: &Scoreboard, limited: u64, window: u64) -> u64 {
        each!(self, state => state.flight_at_loss(board, limited, window))
    }
    fn begin(&mut self, board: &mut Scoreboard) {
        each!(self, state => state.begin(board))
    }
    fn end(&mut self, board: &mut Scoreboard) -> bool {
        each!(self, state => state.end(board))
    }
    fn on_timeout(&mut self, board: &mut Scoreboard, rtt: &RttEstimator, now: Time) {
        each!(self, state => state.on_timeout(board, rtt, now))
    }
    #[inline]
    fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64 {
        each!(self, state => state.in_network(board, phase))
    }
    #[inline]
    fn inflation(&self) -> i64 {
        each!(self, state => state.inflation())
    }
    #[inline]
    fn least_window(&self) -> u64 {
        each!(self, state => state.least_window())
    }
    #[inline]
    fn limited_transmit(&self, dup_acks: u64) -> u64 {
        each!(self, state => state.limited_transmit(dup_acks))
    }
    fn head(&mut self, board: &mut Scoreboard) -> Option<Repair> {
        each!(self, state => state.head(board))
    }
    fn first_choice(&mut self, board: &mut Scoreboard, phase: Phase) -> Option<Repair> {
        each!(self, state => state.first_choice(board, phase))
    }
    fn last_choice(&mut self, board: &mut Scoreboard, phase: Phase) -> Option<Repair> {
        each!(self, state => state.last_choice(board, phase))
    }
    #[inline]
    fn on_sent(&mut self, len: u32, replaces: bool) {
        each!(self, state => state.on_sent(len, replaces))
    }
    fn on_repaired(&mut self, seq: u64, nxt: u64, now: Time) {
        each!(self, state => state.on_repaired(seq, nxt, now))
    }
    #[inline]
    fn deadline(&self) -> Deadline {
        each!(self, state => state.deadline())
    }
    fn on_deadline(&mut self, board: &mut Scoreboard, rtt: &RttEstimator, now: Time, phase: Phase) {
        each!(self, state => state.on_deadline(board, rtt, now, phase))
    }
    fn on_undo(&mut self, board: &Scoreboard) {
        each!(self, state => state.on_undo(board))
    }
}
