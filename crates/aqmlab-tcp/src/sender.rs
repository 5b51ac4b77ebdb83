//! The sending end: what to send, and when to send it again.
//!
//! # Sources
//! RFC 9293 (handshake), RFC 5681 (duplicate acknowledgements), RFC 6675
//! (recovery with SACK), RFC 6582 (NewReno, recovery without), RFC 3042
//! (limited transmit), RFC 6298 (timer).
//!
//! # Differences
//! 1. The third segment of the handshake is the first data segment.
//! 2. There is no FIN: a transfer ends when its last byte is acknowledged.
//! 3. Round-trip times are taken from the newest segment that each
//!    acknowledgement covers, if it was sent once (RFC 6298, section 3) and
//!    not SACKed before. Except with Sack1, none that is covered may have been
//!    sent twice: the others may have waited for its repair unreported.
//! 4. With SACK, segments before a recovery are sent while `pipe`, and not
//!    FlightSize, is below the window: that is limited transmit as RFC 6675,
//!    section 5, step 3 has it.
//! 5. After a timeout all SACK information is forgotten (RFC 2018, section 8,
//!    which RFC 6675, section 5.1, leaves in force); what is reported anew is
//!    left out when the rest is sent again.
//! 6. NewReno follows RFC 6582, section 3.2, without the heuristics of its
//!    section 4, and restarts the timer at every partial acknowledgement
//!    (RFC 6298, rule 5.3), not at the first alone.
//! 7. Windows do not fall back after idle time (RFC 5681, section 4.1): data
//!    are there from the start, so a sender is never idle. `pacing_rate` is
//!    not heeded yet.

use aqmlab_core::{Span, Time};

use crate::congestion::{
    AckSample, Congestion, CongestionControl, CongestionEvent, Control, Setup,
};
use crate::params::{Recovery, TcpParams};
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::{Ack, DataSegment};

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    SynSent,
    Established,
}

/// How losses are being mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Fast recovery until this byte is acknowledged.
    Recovery {
        point: u64,
    },
    /// After a timeout, until this byte is acknowledged.
    Loss {
        point: u64,
    },
}

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Data segments, with those sent again.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Times the retransmission timer ran out, the SYN's included.
    pub timeouts: u64,
    /// Fast recoveries.
    pub fast_retransmits: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    state: State,
    phase: Phase,
    board: Scoreboard,
    rtt: RttEstimator,
    control: Control,
    /// Bytes to send in all.
    size: u64,
    finite: bool,
    mss: u64,
    params: TcpParams,
    /// The byte up to which the receiver takes data.
    window_end: u64,
    deadline: Time,
    dup_acks: u64,
    /// NewReno's additions to the window for segments that have left, and
    /// what partial acknowledgements took off again.
    inflation: i64,
    /// NewReno: no recovery begins before more than this is acknowledged.
    recover: Option<u64>,
    /// Sack1's own estimate of what is in the network during a recovery.
    sack1_pipe: u64,
    /// The first segment is to be sent again whatever the window.
    retransmit_head: bool,
    /// RescueRxt: more has to be acknowledged before the last segment may be
    /// sent again for rescue.
    rescue_rxt: u64,
    /// Sent by limited transmit: not counted in FlightSize at a loss.
    limited: u64,
    /// The window was full when last asked.
    window_limited: bool,
    /// The segment whose timeouts are counted: the second and later do not
    /// lower ssthresh.
    timed_out: Option<u64>,
    syn_due: bool,
    syn_sent: Time,
    syn_retransmitted: bool,
    stats: Stats,
}

impl Sender {
    /// A sender of `bytes` bytes, or of data without end.
    pub fn new(params: &TcpParams, bytes: Option<u64>) -> Self {
        Sender {
            state: State::Closed,
            phase: Phase::Open,
            board: Scoreboard::new(params.mss.get()),
            rtt: RttEstimator::new(params),
            control: Self::control(params, params.in_bytes(params.initial_window)),
            size: bytes.unwrap_or(u64::MAX / 4),
            finite: bytes.is_some(),
            mss: params.mss.get(),
            params: params.clone(),
            window_end: 0,
            deadline: Time::MAX,
            dup_acks: 0,
            inflation: 0,
            recover: None,
            sack1_pipe: 0,
            retransmit_head: false,
            rescue_rxt: 0,
            limited: 0,
            window_limited: false,
            timed_out: None,
            syn_due: false,
            syn_sent: Time::ZERO,
            syn_retransmitted: false,
            stats: Stats::default(),
        }
    }

    fn control(params: &TcpParams, initial_window: u64) -> Control {
        let setup = Setup {
            mss: params.mss.get(),
            initial_window,
            initial_ssthresh: params.initial_ssthresh.map_or(u64::MAX / 4, |bytes| bytes.get()),
        };
        Control::new(params.congestion_control, &setup)
    }

    /// Opens the connection: the SYN is due.
    pub fn open(&mut self, now: Time) {
        assert_eq!(self.state, State::Closed, "a connection is opened once");
        self.state = State::SynSent;
        self.syn_due = true;
        self.syn_sent = now;
        self.deadline = now + self.rtt.rto();
    }

    /// Whether all bytes are acknowledged.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.finite && self.board.una() == self.size
    }
    /// The congestion window in bytes, with NewReno's inflation.
    pub fn cwnd(&self) -> u64 {
        self.control.window().saturating_add_signed(self.inflation).max(self.mss)
    }
    /// The slow start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.control.ssthresh()
    }
    /// The smoothed round-trip time, once there is one.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.smoothed()
    }
    /// The retransmission timeout.
    pub fn rto(&self) -> Span {
        self.rtt.rto()
    }
    /// Bytes thought to be in the network.
    pub fn bytes_in_flight(&self) -> u64 {
        self.board.pipe()
    }
    /// The counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// When the retransmission timer runs out.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        (self.deadline != Time::MAX).then_some(self.deadline)
    }

    /// An acknowledgement arrives.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        if ack.syn {
            self.on_syn_ack(now, ack);
            return;
        }
        if self.state != State::Established || ack.ack > self.board.nxt() {
            return; // RFC 9293, section 3.10.7.4: of what was never sent.
        }
        self.window_end = self.window_end.max(ack.ack + ack.window);
        if ack.ack > self.board.una() {
            self.on_new_ack(now, ack);
        } else if ack.ack == self.board.una() && !self.board.is_empty() {
            self.on_duplicate_ack(now, ack);
        }
    }

    fn on_syn_ack(&mut self, now: Time, ack: &Ack) {
        if self.state != State::SynSent {
            return;
        }
        self.state = State::Established;
        self.window_end = ack.ack + ack.window;
        self.deadline = Time::MAX;
        if self.syn_retransmitted {
            self.rtt.after_syn_timeout(self.params.initial_rto);
            // RFC 5681, section 3.1: a window of one segment after a lost SYN.
            self.control = Self::control(&self.params, self.mss);
        } else {
            self.rtt.sample(now - self.syn_sent);
        }
    }

    fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        let in_flight = self.board.flight_size();
        let acked = self.board.acknowledge(ack.ack);
        let sacked = self.take_sack(ack);
        self.stats.bytes_acked = ack.ack;
        let repaired = acked.ambiguous && self.params.recovery != Recovery::Sack1;
        let rtt = acked.sent_at.filter(|_| !repaired).map(|sent_at| now - sent_at);
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        let in_recovery = matches!(self.phase, Phase::Recovery { .. });
        match self.phase {
            Phase::Recovery { point } if ack.ack >= point => self.end_recovery(),
            Phase::Recovery { .. } => self.on_partial_ack(acked.bytes),
            Phase::Loss { point } if ack.ack >= point => self.phase = Phase::Open,
            _ => {}
        }
        // RFC 6675, section 2: one that moves on may be a duplicate as well.
        self.dup_acks = u64::from(sacked > 0 && self.params.recovery == Recovery::Sack);
        self.limited = 0;
        self.timed_out = None;
        self.control.on_ack(&AckSample {
            now,
            acked: acked.bytes,
            in_flight,
            rtt,
            in_recovery,
            window_limited: self.window_limited,
        });
        // RFC 6298, (5.2) and (5.3).
        self.deadline = if self.board.is_empty() { Time::MAX } else { now + self.rtt.rto() };
        if sacked > 0 && self.phase == Phase::Open && self.head_is_lost() {
            self.begin_recovery(now);
        }
    }

    /// Takes the SACK blocks, where there are such; the bytes that were not
    /// known to have arrived. Sack1 forgets them after a timeout.
    fn take_sack(&mut self, ack: &Ack) -> u64 {
        match self.params.recovery {
            Recovery::NewReno => 0,
            Recovery::Sack1 if matches!(self.phase, Phase::Loss { .. }) => 0,
            Recovery::Sack | Recovery::Sack1 => self.board.sack(&ack.sack),
        }
    }

    /// Whether the scoreboard alone tells that the first segment is lost
    /// (RFC 6675, section 5, step 2); Sack1 only counts.
    fn head_is_lost(&self) -> bool {
        self.params.recovery == Recovery::Sack && self.board.head_is_lost()
    }

    /// A partial acknowledgement.
    fn on_partial_ack(&mut self, acked: u64) {
        match self.params.recovery {
            Recovery::Sack => return,
            Recovery::Sack1 => {
                // The lost segment and its retransmission have left.
                self.sack1_pipe = self.sack1_pipe.saturating_sub(2 * self.mss);
                return;
            }
            Recovery::NewReno => {}
        }
        // RFC 6582, section 3.2, step 3.
        self.board.head_lost();
        self.board.begin_recovery();
        self.retransmit_head = true;
        self.inflation -= acked as i64;
        if acked >= self.mss {
            self.inflation += self.mss as i64;
        }
    }

    fn end_recovery(&mut self) {
        if self.params.recovery == Recovery::NewReno {
            self.control.on_recovery_exit(self.board.flight_size());
        }
        self.phase = Phase::Open;
        self.inflation = 0;
        self.retransmit_head = false;
    }

    fn on_duplicate_ack(&mut self, now: Time, ack: &Ack) {
        // RFC 6675, section 2: with SACK, one that tells of data not SACKed
        // before.
        let duplicate = self.params.recovery == Recovery::NewReno || self.take_sack(ack) > 0;
        if self.params.recovery == Recovery::Sack1 {
            self.sack1_pipe = self.sack1_pipe.saturating_sub(self.mss);
        }
        if !duplicate {
            return;
        }
        self.dup_acks += 1;
        match self.phase {
            // RFC 6675, section 5, steps 1 and 2; RFC 5681, section 3.2.
            Phase::Open if self.dup_acks >= DUP_THRESH || self.head_is_lost() => {
                // RFC 6582, section 3.2, step 2.
                let newreno = self.params.recovery == Recovery::NewReno;
                let una = self.board.una();
                if !newreno || self.recover.is_none_or(|recover| una > recover) {
                    self.begin_recovery(now);
                }
            }
            Phase::Recovery { .. } if self.params.recovery == Recovery::NewReno => {
                self.inflation += self.mss as i64;
            }
            _ => {}
        }
    }

    /// RFC 6675, section 5, step 4; RFC 6582, section 3.2, step 2.
    fn begin_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery { point: self.board.nxt() };
        self.recover = Some(self.board.nxt());
        self.stats.fast_retransmits += 1;
        let flight_size = match self.params.recovery {
            Recovery::Sack1 => self.control.window(), // as ns-2 has it
            _ => self.board.flight_size() - self.limited,
        };
        self.control.on_congestion(&CongestionEvent { now, kind: Congestion::Loss, flight_size });
        self.sack1_pipe = self.board.flight_size().saturating_sub(DUP_THRESH * self.mss);
        self.board.begin_recovery();
        self.board.head_lost();
        self.retransmit_head = true;
        self.rescue_rxt = self.board.head_end(); // step 4.3
        if self.params.recovery == Recovery::NewReno {
            self.inflation = (DUP_THRESH * self.mss) as i64;
        }
    }

    /// The time of [`next_timeout`](Self::next_timeout) has come.
    pub fn on_timeout(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        self.stats.timeouts += 1;
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
        if self.state == State::SynSent {
            self.syn_due = true;
            self.syn_retransmitted = true;
            return;
        }
        let head = self.board.una();
        let first = self.timed_out != Some(head);
        self.timed_out = Some(head);
        let flight_size = match self.params.recovery {
            Recovery::Sack1 => self.control.window(), // as ns-2 has it
            _ => self.board.flight_size(),
        };
        let kind = Congestion::Timeout { first };
        self.control.on_congestion(&CongestionEvent { now, kind, flight_size });
        // RFC 6675, section 5.1; RFC 6582, section 3.2, step 4.
        self.phase = Phase::Loss { point: self.board.nxt() };
        self.recover = Some(self.board.nxt());
        self.board.timeout(self.params.recovery == Recovery::Sack);
        self.retransmit_head = true;
        self.inflation = 0;
        self.dup_acks = 0;
        self.limited = 0;
    }

    /// The segment to be sent now, if there is one: call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<DataSegment> {
        match self.state {
            State::Established => self.poll_data(now),
            State::SynSent if self.syn_due => {
                self.syn_due = false;
                let retransmission = self.syn_retransmitted;
                Some(DataSegment { syn: true, retransmission, ..DataSegment::default() })
            }
            _ => None,
        }
    }

    #[inline]
    fn poll_data(&mut self, now: Time) -> Option<DataSegment> {
        let segment = match self.phase {
            Phase::Open => self.new_segment(now),
            Phase::Recovery { .. } | Phase::Loss { .. } => self.recovery_segment(now),
        }?;
        self.stats.segments_sent += 1;
        self.stats.retransmissions += u64::from(segment.retransmission);
        if self.deadline == Time::MAX {
            self.deadline = now + self.rtt.rto(); // RFC 6298, (5.1)
        }
        Some(segment)
    }

    /// New data, as far as both windows allow.
    #[inline]
    fn new_segment(&mut self, now: Time) -> Option<DataSegment> {
        let seq = self.board.nxt();
        let len = (self.size - seq).min(self.mss);
        if len == 0 {
            self.window_limited = false;
            return None;
        }
        if seq + len > self.window_end {
            self.window_limited = false;
            return None;
        }
        if self.in_network() + len > self.allowance() {
            self.window_limited = true;
            return None;
        }
        if self.phase == Phase::Open && self.dup_acks > 0 {
            self.limited += len;
        }
        self.board.sent(len as u32, now);
        Some(DataSegment { seq, len: len as u32, syn: false, retransmission: false })
    }

    /// What counts against the window.
    #[inline]
    fn in_network(&self) -> u64 {
        let open = self.phase == Phase::Open;
        match self.params.recovery {
            _ if matches!(self.phase, Phase::Loss { .. }) => self.board.pipe(),
            Recovery::Sack if !open || self.params.limited_transmit => self.board.pipe(),
            Recovery::Sack1 if !open => self.sack1_pipe,
            _ => self.board.flight_size(),
        }
    }

    /// The window, with what the phase adds to it.
    #[inline]
    fn allowance(&self) -> u64 {
        let mut window = self.cwnd();
        // RFC 3042: the first two duplicate acknowledgements send a segment
        // each. With SACK `pipe` makes room for them.
        let counted = self.params.recovery != Recovery::Sack;
        if self.phase == Phase::Open && counted && self.params.limited_transmit {
            window += self.dup_acks.min(DUP_THRESH - 1) * self.mss;
        }
        window
    }

    /// RFC 6675, section 5, step C: while there is room, what NextSeg says.
    fn recovery_segment(&mut self, now: Time) -> Option<DataSegment> {
        if self.retransmit_head {
            self.retransmit_head = false;
            // RFC 6298 has the timer restarted when the first segment of a
            // recovery is sent again (5.4 for timeouts).
            self.deadline = now + self.rtt.rto();
            self.sack1_pipe = self.sack1_pipe.saturating_sub(self.mss); // it replaces the lost one
            return self.board.next_hole(true).map(|index| self.retransmit(index, now, true));
        }
        if self.in_network() + self.mss > self.cwnd() {
            self.window_limited = true;
            return None;
        }
        // Rule 1; after a timeout, all that was in flight. Sack1 takes rule 3
        // for it: any hole counts as lost.
        let in_loss = matches!(self.phase, Phase::Loss { .. });
        let hole = match self.params.recovery {
            Recovery::Sack1 if !in_loss => self.board.next_hole(false),
            Recovery::NewReno if !in_loss => None,
            _ => self.board.next_hole(true),
        };
        if let Some(index) = hole {
            return Some(self.retransmit(index, now, true));
        }
        // Rule 2.
        if let Some(segment) = self.new_segment(now) {
            self.sack1_pipe += u64::from(segment.len);
            return Some(segment);
        }
        if self.params.recovery != Recovery::Sack || in_loss {
            return None;
        }
        // Rules 3 and 4.
        if let Some(index) = self.board.next_hole(false) {
            return Some(self.retransmit(index, now, true));
        }
        let Phase::Recovery { point } = self.phase else { return None };
        if self.board.una() <= self.rescue_rxt {
            return None;
        }
        self.rescue_rxt = point;
        self.board.last_hole().map(|index| self.retransmit(index, now, false))
    }

    /// Checks what always holds.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.board.check();
        assert_eq!(self.board.is_empty(), self.board.flight_size() == 0);
        let quiet = self.state == State::Established && self.board.is_empty();
        assert_eq!(quiet || self.state == State::Closed, self.deadline == Time::MAX);
    }
    /// The byte up to which the receiver takes data.
    #[cfg(test)]
    pub(crate) fn window_end(&self) -> u64 {
        self.window_end
    }

    fn retransmit(&mut self, index: usize, now: Time, advance: bool) -> DataSegment {
        let (seq, len) = self.board.retransmit(index, now, advance);
        self.sack1_pipe += u64::from(len);
        DataSegment { seq, len, syn: false, retransmission: true }
    }
}
