//! Loss detection and recovery algorithms behind one trait.
//!
//! The sender owns the connection: phases, windows, the timer, the count of duplicate
//! acknowledgements. A [`LossRecovery`] determines lost segments, the bytes that count against the
//! window, and the next retransmission; its [`RecoveryQuirks`] list where the sender departs from RFC 6675.

mod newreno;
mod rack;
mod sack;
mod sack1;
mod tcp_linux;

use aqmlab_core::{Deadline, Time, dispatched};

use crate::params::{Recovery, TcpParams};
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
pub(crate) struct Retransmit {
    pub index: usize,
    pub advance: bool,
}

impl Retransmit {
    fn at(index: usize) -> Self {
        Retransmit { index, advance: true }
    }
}

/// When a segment is asked for that is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetransmitReason {
    /// First, and in any case: a recovery begins, or a timeout has come.
    Head,
    /// Before new data (RFC 6675, section 4, NextSeg, rule 1).
    BeforeNew,
    /// There are no new data (rules 3 and 4).
    AfterNew,
}

/// A segment that was sent while something is mended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub len: u32,
    pub repair: Option<SentAgain>,
}

/// One that was sent before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAgain {
    pub seq: u64,
    pub now: Time,
    /// SND.NXT.
    pub nxt: u64,
    /// True if it was chosen as the [head](Choice::Head).
    pub is_head: bool,
}

/// Behaviour of the sender that depends on the recovery. The default is RFC 6675.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryQuirks {
    /// Acknowledgements that count as duplicates.
    pub duplicates: Duplicates,
    /// A duplicate acknowledgement restarts the retransmission timer.
    pub duplicates_restart_timer: bool,
    /// Each of the first two duplicates makes room for a segment (RFC 3042); otherwise what counts
    /// against the window does.
    pub duplicates_widen_window: bool,
    /// Any acknowledgement of new data ends a recovery.
    pub ends_early: bool,
    /// At its end the control lowers the window to the data in flight (RFC 6582, section 3.2, step
    /// 3).
    pub deflates_at_end: bool,
    /// Losses are reported with the whole window in flight. Otherwise with FlightSize without the
    /// segments of limited transmit (RFC 5681, section 3.2).
    pub window_was_in_flight: bool,
    /// A round-trip time is also taken from an acknowledgement that covers segments that were sent
    /// twice.
    pub times_repaired: bool,
    /// A lost SYN counts as a timeout of data.
    pub syn_is_data: bool,
    /// Needs segments in the order of their times, and what each acknowledgement delivers.
    pub goes_by_time: bool,
}

/// Acknowledgements that count as duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// All that acknowledge no new data (RFC 5681, section 2).
    All,
    /// Acknowledgements with new SACK information.
    Reporting,
    /// All that report something, also if they acknowledge new data (RFC 6675, section 2).
    AllReporting,
}

impl RecoveryQuirks {
    const RFC6675: RecoveryQuirks = RecoveryQuirks {
        duplicates: Duplicates::AllReporting,
        duplicates_restart_timer: false,
        duplicates_widen_window: false,
        ends_early: false,
        deflates_at_end: false,
        window_was_in_flight: false,
        times_repaired: false,
        syn_is_data: false,
        goes_by_time: false,
    };

    /// Whether a duplicate acknowledgement counts that reports so many bytes.
    pub fn counts_duplicate(&self, sacked: u64) -> bool {
        self.duplicates == Duplicates::All || sacked > 0
    }
    /// Duplicate acknowledgements counted after one that moves on and reports so many bytes.
    #[inline]
    pub fn duplicates_after(&self, sacked: u64) -> u64 {
        u64::from(self.duplicates == Duplicates::AllReporting && sacked > 0)
    }
}

dispatched! {
    /// Loss detection and recovery: lost segments, the bytes that count against the window, and the
    /// next retransmission. [`RecoveryQuirks`] has the static part.
    pub(crate) trait LossRecovery {
        /// Takes the SACK blocks; the bytes that were not known to have arrived.
        fn on_ack(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext<'_>) -> u64;
        /// The same of one that acknowledges no new data.
        fn on_duplicate(&mut self, board: &mut Scoreboard, ack: &Ack, cx: &AckContext<'_>) -> u64 {
            self.on_ack(board, ack, cx)
        }
        /// A partial acknowledgement of this many bytes; whether the first segment
        /// is sent again at once.
        fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64) -> bool {
            false
        }
        /// Returns true if there is a loss that begins a recovery. `sacked` bytes were newly
        /// reported; `is_third` if three duplicate acknowledgements have arrived.
        fn finds_loss(&self, board: &mut Scoreboard, sacked: u64, is_third: bool) -> bool;
        /// When a segment that is late will be lost.
        fn deadline(&self) -> Deadline {
            Deadline::NEVER
        }
        /// The deadline has passed.
        fn on_deadline(&mut self, _board: &mut Scoreboard, _cx: &AckContext<'_>) {}

        /// A recovery begins: the first segment is lost.
        fn begin(&mut self, board: &mut Scoreboard);
        /// The recovery ends.
        fn end(&mut self, _board: &mut Scoreboard) {}
        /// The retransmission timer ran out.
        fn on_timeout(&mut self, board: &mut Scoreboard, rtt: &RttEstimator, now: Time);
        /// The losses were spurious.
        fn on_undo(&mut self, _board: &Scoreboard) {}

        /// Returns the bytes that count against the window.
        fn in_network(&self, board: &Scoreboard, phase: Phase) -> u64;
        /// The window while something is mended; `window` is the control's.
        fn window(&self, window: u64) -> u64 {
            window
        }
        /// Returns the next retransmission: a lost segment, before new data.
        fn next(
            &mut self,
            board: &mut Scoreboard,
            _phase: Phase,
            choice: RetransmitReason,
        ) -> Option<Retransmit> {
            match choice {
                RetransmitReason::AfterNew => None,
                _ => board.next_lost().map(Retransmit::at),
            }
        }
        /// A segment was sent while something is mended.
        fn on_sent(&mut self, _sent: &Sent) {}
    }
    passed on by pass_recovery
}

macro_rules! recoveries {
    ($( $Variant:ident($State:ty, $rules:expr), )+) => {
        /// The state of one of them, dispatched without a pointer.
        #[derive(Clone, Debug)]
        pub(crate) enum RecoveryState { $( $Variant($State), )+ }

        impl RecoveryState {
            pub fn new(params: &TcpParams) -> Self {
                match params.recovery {
                    $( Recovery::$Variant => RecoveryState::$Variant(<$State>::new(params)), )+
                }
            }
        }

        impl Recovery {
            /// What the sender does itself.
            pub(crate) fn rules(self) -> RecoveryQuirks {
                match self {
                    $( Recovery::$Variant => $rules, )+
                }
            }
        }

        /// Calls a method of the one there is.
        macro_rules! each {
            ($self:ident, $state:ident => $call:expr) => {
                match $self { $( RecoveryState::$Variant($state) => $call, )+ }
            };
        }
    };
}

// One line for each algorithm.
recoveries! {
    Sack(sack::Sack, RecoveryQuirks::RFC6675),
    Rack(rack::Rack, rack::RULES),
    Sack1(sack1::Sack1, sack1::RULES),
    TcpLinux(tcp_linux::TcpLinux, tcp_linux::RULES),
    NewReno(newreno::NewReno, newreno::RULES),
    Reno(newreno::NewReno, newreno::RENO),
}

impl Recovery {
    /// True if it tracks each segment in the network.
    pub fn has_pipe(self) -> bool {
        matches!(self, Recovery::Sack | Recovery::Rack | Recovery::TcpLinux)
    }
}

pass_recovery!(RecoveryState, each);
