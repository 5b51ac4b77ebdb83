//! The connection's state, as the congestion controls see it too.

use aqmlab_core::{Span, Time};

use super::clock::Extreme;
use crate::congestion::Congestion;
use crate::prr::Prr;
use crate::segment::CeCount;

/// No threshold yet.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;
/// Duplicates that count as a loss (`tcp_reordering`), and the most that may be taken for
/// reordering (`tcp_max_reordering`).
pub(super) const REORDERING: u32 = 3;
pub(super) const MAX_REORDERING: u32 = 300;
/// The least round-trip time is that of five minutes (`tcp_min_rtt_wlen`), in jiffies.
const MIN_RTT_WINDOW: u64 = 300_000;

/// Where the congestion machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaState {
    /// Nothing dubious.
    #[default]
    Open,
    /// Something was reported out of order.
    Disorder,
    /// The window is being reduced for an echo.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// What the retransmission timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Timeout,
    Probe,
    Reordering,
    WindowProbe,
}

/// RACK's (RFC 8985).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RackState {
    /// When the segment was sent that was sent last of those delivered, in microseconds; its end.
    pub sent: u64,
    pub end: u64,
    pub rtt: u64,
    pub advanced: bool,
    pub dsack_seen: bool,
    pub steps: u32,
    pub persist: u32,
    pub last_delivered: u64,
}

/// Delivery-rate sample and other measurements of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    /// Segments delivered when the newest delivered one was sent; initially 0.
    pub prior_delivered: u64,
    pub prior_at: u64,
    pub prior_in_flight: u32,
    /// Segments delivered since, -1 if there is no sample; over so many microseconds.
    pub delivered: i64,
    pub interval: i64,
    /// The round-trip time of the last segment (s)acked in microseconds, or -1.
    pub rtt: i64,
    pub acked_sacked: u32,
    pub losses: u32,
    pub app_limited: bool,
    /// Lost when that segment was sent, and segments in flight just after it.
    pub prior_lost: u32,
    pub tx_in_flight: u32,
    pub ack_delayed: bool,
    pub last_end: u64,
}

/// The state. Windows are counted in segments; data are numbered from 1, the SYN is 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub mss: u32,
    pub initial_window: u32,
    /// Now: the simulation's time, and the kernel's in nanoseconds, microseconds and jiffies.
    pub now: Time,
    pub nanos: u64,
    pub micros: u64,
    pub jiffies: u64,

    pub cwnd: u32,
    pub cwnd_count: u32,
    pub ssthresh: u32,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub cwnd_stamp: u64,
    pub cwnd_used: u32,
    pub cwnd_limited: bool,
    pub max_packets_out: u32,
    pub usage_end: u64,

    pub una: u64,
    pub nxt: u64,
    /// The number after the last byte that was written.
    pub written: u64,
    pub window: u64,
    pub max_window: u64,
    /// The window is that of the SYN-ACK.
    pub window_of_syn: bool,

    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub delivered: u64,
    pub delivered_ce: u64,
    pub lost: u64,
    pub total_retrans: u64,
    pub dsack_dups: u64,
    pub data_segments: u64,

    pub ca_state: CaState,
    /// Kind of the congestion for which the threshold is set.
    pub cause: Congestion,
    pub high_seq: u64,
    pub undo_marker: u64,
    pub undo_retrans: i32,
    /// The timestamp of the first retransmission, in milliseconds.
    pub retrans_stamp: u64,
    /// In segments (RFC 6937).
    pub prr: Prr,
    pub frto: bool,
    /// Timeouts in a row.
    pub timeouts: u32,
    pub reordering: u32,
    pub reordering_seen: u32,
    pub is_reneging: bool,

    /// Eight times the smoothed round-trip time, the variations, in microseconds.
    pub srtt8: u64,
    pub mdev: u64,
    pub mdev_max: u64,
    pub rttvar: u64,
    pub rtt_end: u64,
    pub min_rtt: Extreme,
    /// In jiffies.
    pub rto: u64,
    pub rto_min: u64,
    pub rto_max: u64,
    pub rack: RackState,
    pub probe_end: u64,
    pub probe_repeats: bool,

    pub flight_began: u64,
    pub delivered_at: u64,
    /// The application is the limit until more than this is delivered.
    pub app_limited: u64,
    pub last_sent: u64,

    /// Percent of a window per round-trip time in slow start and later.
    pub pacing_percent: (u64, u64),
    /// In bytes a second; whether it is kept, and when the next segment may leave.
    pub pacing_rate: u64,
    pub paces: bool,
    pub paced_until: u64,

    pub ecn: bool,
    /// Acknowledgements count marks (RFC 9768), and this many packets so far; there is no CWR.
    pub accurate: bool,
    pub marked: CeCount,
    pub cwr_due: bool,
    /// The timestamp echoed by the acknowledgement at hand, in milliseconds; 0 for none.
    pub echoed: u64,
    pub has_timestamps: bool,
}

impl State {
    pub fn new(mss: u32, initial_window: u32, ssthresh: u32) -> Self {
        let mut min_rtt = Extreme::default();
        min_rtt.reset(0, u64::from(u32::MAX));
        State {
            mss,
            initial_window,
            cwnd: 10,
            ssthresh,
            written: 1,
            undo_retrans: -1,
            reordering: REORDERING,
            min_rtt,
            rto: 1000,
            rto_min: 200,
            rto_max: 120_000,
            rack: RackState { steps: 1, ..RackState::default() },
            pacing_rate: u64::MAX,
            ..State::default()
        }
    }

    /// Segments that count against the window.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.left_out())
    }
    /// Segments that left the network, though not by a cumulative acknowledgement.
    #[inline]
    pub fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// The window is being reduced.
    #[inline]
    pub fn in_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }
    /// Threshold to return to: at least three quarters of the window.
    pub fn current_ssthresh(&self) -> u32 {
        match self.in_reduction() {
            true => self.ssthresh,
            false => self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2)),
        }
    }
    /// Whether the window was full in the last round trip; in slow start half of it suffices.
    #[inline]
    pub fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }
    /// Slow start; returns what of these segments it leaves.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }
    /// One segment more for each `count` acknowledged.
    pub fn grow(&mut self, count: u32, acked: u32) {
        if self.cwnd_count >= count {
            self.cwnd_count = 0;
            self.cwnd += 1;
        }
        self.cwnd_count += acked;
        if self.cwnd_count >= count {
            let more = self.cwnd_count / count;
            self.cwnd_count -= more * count;
            self.cwnd += more;
        }
    }
    /// The byte after the last that the receiver takes.
    #[inline]
    pub fn window_end(&self) -> u64 {
        self.una + self.window
    }
    /// The smoothed round-trip time, once there is one.
    pub fn srtt(&self) -> Option<Span> {
        self.measured(self.srtt8 >> 3)
    }
    /// A time in microseconds, once there is a measurement.
    pub fn measured(&self, micros: u64) -> Option<Span> {
        (self.srtt8 > 0).then(|| Span::from_micros(micros))
    }
    #[inline]
    pub fn min_rtt(&self) -> u64 {
        self.min_rtt.get()
    }
    /// Delivered, whether in order or not.
    #[inline]
    pub fn count_delivered(&mut self, segments: u32, ece: bool) {
        self.delivered += u64::from(segments);
        if ece && !self.accurate {
            self.delivered_ce += u64::from(segments);
        }
    }
    /// Counts the marks of accurate ECN; returns the new ones.
    #[inline]
    pub fn take_marks(&mut self, count: CeCount) -> CeCount {
        if !self.accurate {
            return CeCount::default();
        }
        let marked = self.marked.take(count);
        self.delivered_ce += marked.packets;
        marked
    }
    /// Requests CWR in the next new segment, with classic ECN, after a reduction.
    pub fn request_cwr(&mut self) {
        self.cwr_due = self.ecn && !self.accurate;
    }
    /// Whether the acknowledgement at hand echoes a time before this one.
    #[inline]
    pub fn echoes_before(&self, stamp: u64) -> bool {
        self.echoed != 0 && self.echoed < stamp
    }

    pub fn take_min_rtt(&mut self, rtt: u64, maybe_delayed: bool) {
        if maybe_delayed && rtt > self.min_rtt() {
            return;
        }
        let rtt = if rtt == 0 { 1000 } else { rtt };
        self.min_rtt.take(MIN_RTT_WINDOW, self.jiffies, rtt, |new, old| new <= old);
    }

    /// Jacobson's estimator with the greatest variation of a round trip (`tcp_rtt_estimator`).
    pub fn estimate(&mut self, rtt: u64) {
        let floor = self.rto_min * 1000;
        if self.srtt8 == 0 {
            self.srtt8 = rtt << 3;
            self.mdev = rtt << 1;
            self.rttvar = self.mdev.max(floor);
            self.mdev_max = self.rttvar;
            self.rtt_end = self.nxt;
        } else {
            let error = rtt as i64 - (self.srtt8 >> 3) as i64;
            self.srtt8 = (self.srtt8 as i64 + error) as u64;
            let mut more = error.abs() - (self.mdev >> 2) as i64;
            if error < 0 && more > 0 {
                more >>= 3;
            }
            self.mdev = (self.mdev as i64 + more) as u64;
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if self.una > self.rtt_end {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.rtt_end = self.nxt;
                self.mdev_max = floor;
            }
        }
        self.srtt8 = self.srtt8.max(1);
    }
    /// The timeout, without its doublings.
    pub fn base_rto(&self) -> u64 {
        super::clock::jiffies_of((self.srtt8 >> 3) + self.rttvar)
    }
    /// The rate at which others than BBR are paced, if they are (`tcp_update_pacing_rate`).
    pub fn update_pacing_rate(&mut self) {
        let (slow_start, avoidance) = self.pacing_percent;
        let percent = if self.cwnd < self.ssthresh / 2 { slow_start } else { avoidance };
        let bytes = u64::from(self.mss) * (10_000 << 3) * percent;
        let rate = u128::from(bytes) * u128::from(self.cwnd.max(self.packets_out));
        self.pacing_rate = (rate / u128::from(self.srtt8.max(1))) as u64;
    }
}
