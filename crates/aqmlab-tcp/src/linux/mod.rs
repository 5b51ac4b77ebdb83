//! The sender of the Linux kernel, as far as its segments and windows show it.
//!
//! A state machine of its own beside the RFCs' ([`crate::sender`]): windows are counted in segments
//! and timers run in jiffies. Recoveries, retransmissions and undo follow `net/ipv4` of Linux 6.1
//! and 6.12, which agree in this: `tcp_input.c` (acknowledgements: `acks`, SACK: `sack`, the
//! congestion machine: `recovery`, `undo`), `tcp_recovery.c` (`rack`), `tcp_output.c` (`output`),
//! `tcp_timer.c` (`timers`), `tcp_rate.c` (`rate`) and the controls (`control`; others than the
//! kernel's: `control::external`). Replays of recorded kernels (`aqmlab-conformance`) send the same
//! segments.
//!
//! # Differences
//! docs/transports/linux.md lists them with their measured effect.

mod acks;
mod change;
mod clock;
pub(crate) mod control;
mod external;
mod memory;
mod offload;
mod output;
mod pushes;
mod rack;
mod rate;
pub(crate) mod receiver;
mod recovery;
mod rtx_queue;
mod sack;
mod segment_queue;
mod state;
mod support;
mod timers;
mod undo;

use std::collections::VecDeque;

use aqmlab_core::{Rate, Span, Time};
use clock::Clock;
use control::LinuxControl;
use memory::Memory;
use offload::Buffers;
use pushes::Pushes;
use segment_queue::Queue;
use state::{CaState, Pending, State};

use crate::connection::{ConnState, Connection};
use crate::losses::Losses;
use crate::params::Recovery;
use crate::params::{Codepoint, EcnMode, Stack, TcpParams, WindowValidation};
use crate::segment::DataSegment;
use crate::sender::CongestionState;

/// Supported settings of the kernel (`net.ipv4.tcp_*`).
#[derive(Clone, Copy, Debug)]
struct Sysctl {
    sack: bool,
    /// RACK; otherwise three segments reported above a hole.
    rack: bool,
    tail_probe: bool,
    /// Segmentation offload, and whether buffers are filled up when they are sent.
    offload: bool,
    grows: bool,
    /// Linux 5.4: a window that is not a multiple of a burst counts as not full.
    forgets: bool,
    frto: bool,
    /// Timeouts of the SYN that do not double the next (`tcp_syn_linear_timeouts`, since 6.5).
    linear_syns: u32,
    after_idle: bool,
    codepoint: Codepoint,
}

impl Sysctl {
    fn new(params: &TcpParams) -> Self {
        Sysctl {
            sack: params.recovery != Recovery::NewReno,
            rack: params.recovery == Recovery::Rack,
            tail_probe: params.tail_loss_probe,
            offload: params.segmentation_offload,
            grows: params.stack.or_newest() == Stack::Linux612,
            forgets: params.stack == Stack::Linux54,
            frto: params.frto,
            linear_syns: if params.stack.or_newest() == Stack::Linux612 { 4 } else { 0 },
            after_idle: params.window_validation == WindowValidation::Rfc2861,
            codepoint: params.ecn_codepoint,
        }
    }
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct LinuxSender {
    pub conn: Connection,
    clock: Clock,
    pub state: State,
    queue: Queue,
    pub control: LinuxControl,
    sysctl: Sysctl,
    /// Buffer for what the application writes.
    memory: Option<Memory>,
    pushes: Pushes,
    /// When an acknowledgement that PAWS refuses was answered, in jiffies.
    refused_at: Option<u64>,
    /// Segments that are to leave now.
    outbox: VecDeque<DataSegment>,
    /// The application has written since the last look.
    has_written: bool,
    buffers: Buffers,

    /// What the timer is set for, until which jiffy, and when its place in the wheel is looked at.
    pending: Option<Pending>,
    expires: u64,
    looked_at: Option<u64>,
    /// Time at which pacing allows the next segment.
    pace_timer: Option<Time>,
    backoff: u32,

    /// Positions of the searches for lost segments and for retransmissions.
    lost_hint: Option<u64>,
    lost_count: u32,
    again_hint: Option<u64>,
    /// The end of the highest segment reported by SACK.
    highest_sack: u64,
    /// The blocks of the last acknowledgement that reported any.
    known: [(u64, u64); 4],

    /// Lost segments, for logs.
    pub losses: Losses,
}

impl LinuxSender {
    /// A sender of `bytes` bytes, or of data without end. The parameters are those of a
    /// [`machine`](TcpParams::machine) of Linux.
    pub fn new(params: &TcpParams, bytes: Option<u64>, seed: u64) -> Self {
        let control = LinuxControl::new(params, &params.first_setup(seed));
        let mss = params.mss.get();
        let window = (params.in_bytes(params.initial_window) / mss).max(1) as u32;
        let ssthresh = match params.initial_ssthresh {
            Some(bytes) => (bytes.get() / mss).clamp(2, u64::from(state::INFINITE)) as u32,
            None => state::INFINITE,
        };
        let mut state = State::new(mss as u32, window, ssthresh);
        state.rto = millis(params.initial_rto);
        state.rto_min = millis(params.min_rto);
        state.rto_max = millis(params.max_rto);
        state.ecn = params.ecn != EcnMode::Off;
        state.accurate = params.ecn == EcnMode::Accurate;
        state.has_timestamps = params.timestamps;
        state.paces = params.pacing;
        state.pacing_percent = (params.pacing_slow_start, params.pacing_avoidance);
        let mut sender = LinuxSender {
            conn: Connection::new(bytes),
            clock: Clock::somewhere(seed),
            state,
            queue: Queue::new(),
            control,
            sysctl: Sysctl::new(params),
            memory: Memory::new(params),
            pushes: Pushes::default(),
            refused_at: None,
            outbox: VecDeque::new(),
            has_written: false,
            buffers: Buffers::default(),
            pending: None,
            expires: 0,
            looked_at: None,
            pace_timer: None,
            backoff: 0,
            lost_hint: None,
            lost_count: 0,
            again_hint: None,
            highest_sack: 0,
            known: [(0, 0); 4],
            losses: Losses::default(),
        };
        sender.expand_buffer();
        sender.fill();
        sender
    }

    /// Sets the current time.
    #[inline]
    fn refresh(&mut self, now: Time) {
        self.state.now = now;
        self.state.nanos = self.clock.nanos(now);
        self.state.micros = self.state.nanos / 1000;
        self.state.jiffies = self.clock.jiffies(self.state.nanos);
    }

    /// Opens the connection: the SYN is due.
    pub fn open(&mut self, now: Time) {
        self.conn.open(now);
        self.refresh(now);
        self.state.nxt = 1;
        self.transmit_syn(now);
        self.set_timer(Pending::Timeout, self.state.rto);
    }
    pub fn write(&mut self, bytes: u64) {
        if self.conn.state == ConnState::Established {
            self.check_app_limited();
        }
        let before = self.state.written;
        // Without an application that waits for the buffer the data go into it.
        let was_full = before <= self.conn.written;
        self.conn.write(bytes);
        if !was_full {
            self.fill();
        }
        self.has_written |= self.state.written > before;
    }
    pub fn abort(&mut self) {
        self.conn.state = ConnState::Closed;
        self.outbox.clear();
        self.pending = None;
        self.looked_at = None;
    }
    pub fn sent_bytes(&self) -> u64 {
        self.state.nxt.saturating_sub(1)
    }
    /// Acknowledged bytes; before the handshake no number of bytes.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.state.una.wrapping_sub(1)
    }
    pub fn truncate_unsent(&mut self) {
        self.conn.truncate(self.sent_bytes());
        self.state.written = self.state.nxt.max(1);
    }
    #[inline]
    pub fn cwnd(&self) -> u64 {
        u64::from(self.state.cwnd) * u64::from(self.state.mss)
    }
    pub fn ssthresh(&self) -> u64 {
        self.threshold(self.state.ssthresh)
    }
    fn threshold(&self, segments: u32) -> u64 {
        match segments {
            state::INFINITE => u64::MAX / 4,
            segments => u64::from(segments) * u64::from(self.state.mss),
        }
    }
    pub fn congestion_state(&self) -> CongestionState {
        match self.state.ca_state {
            CaState::Open | CaState::Disorder if self.state.cwnd < self.state.ssthresh => {
                CongestionState::SlowStart
            }
            CaState::Open | CaState::Disorder => CongestionState::Avoidance,
            CaState::Cwr => CongestionState::Reduction,
            CaState::Recovery => CongestionState::Recovery,
            CaState::Loss => CongestionState::Loss,
        }
    }
    /// Returns the pacing rate, if it paces.
    pub fn pacing_rate(&self) -> Option<Rate> {
        let bits = self.state.pacing_rate.checked_mul(8).filter(|_| self.state.paces);
        bits.map(Rate::from_bps)
    }
    /// Checks that the counts of segments are those of the queue. An undone timeout leaves the mark of a
    /// retransmission, and the next timeout counts that segment again: `tcp_retransmit_skb` of the
    /// kernel knows it as "retrans_out leaked".
    #[cfg(test)]
    pub fn check(&self) {
        use segment_queue::tag;
        let places = self.queue.first()..self.queue.end();
        let count =
            |tag| places.clone().filter(|place| self.queue.at(*place).has(tag)).count() as u32;
        let state = &self.state;
        let found = (places.clone().count() as u32, count(tag::LOST));
        assert_eq!((state.packets_out, state.lost_out), found, "packets, lost: {self:?}");
        assert!(state.retrans_out >= count(tag::RETRANSMITTED), "{self:?}");
    }
    /// Returns the next segment to be sent now: call until `None`.
    #[inline(never)] // with this in it, the poll of all senders would go through memory
    pub fn poll(&mut self, now: Time) -> Option<DataSegment> {
        if self.has_written && self.conn.state == ConnState::Established {
            self.has_written = false;
            self.refresh(now);
            self.restart_after_idle();
            self.send_written();
        }
        self.outbox.pop_front()
    }
}

/// Properties of a host with Linux's sender that otherwise follow from the seed.
#[derive(Debug)]
pub struct Kernel<'a>(pub(crate) &'a mut LinuxSender);

impl Kernel<'_> {
    /// Sets the clocks: the elapsed part of a jiffy, and the position in the timer wheel.
    pub fn set_clock(&mut self, phase: Span, jiffies: u64) {
        self.0.clock = Clock::new(phase, jiffies);
    }
    /// Sets the phases of the gain cycle in which BBR enters ProbeBW.
    pub fn set_phases(&mut self, phases: &[u8]) {
        if let LinuxControl::Bbr(bbr) = &mut self.0.control {
            bbr.phases = phases.iter().copied().collect();
        }
    }
    /// Sets the number of bytes that the application writes at a time.
    pub fn set_write_size(&mut self, bytes: u64) {
        self.0.conn.write = bytes;
    }
    /// Returns how often BBR has entered ProbeBW.
    pub fn phases_drawn(&self) -> usize {
        match &self.0.control {
            LinuxControl::Bbr(bbr) => bbr.drawn,
            _ => 0,
        }
    }
    /// Whether the timer that expires at this time is in jiffies; pacing's is not.
    pub fn is_due_in_jiffies(&self, at: Time) -> bool {
        self.0.looked_at.is_some_and(|jiffy| self.0.clock.begin(jiffy) <= at)
    }
    /// Returns the threshold in bytes as the kernel reports it (`tcp_current_ssthresh`): outside of
    /// reductions at least three quarters of the window.
    pub fn current_ssthresh(&self) -> u64 {
        self.0.threshold(self.0.state.current_ssthresh())
    }
}

fn millis(span: Span) -> u64 {
    span.as_nanos().div_ceil(1_000_000)
}
