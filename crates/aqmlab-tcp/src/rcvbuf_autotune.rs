//! Dynamic right-sizing: the receive window grows with what the application takes.
//!
//! # Sources
//! M. Fisk and W. Feng, "Dynamic Right-Sizing in TCP", 2001: once a round-trip time of the
//! receiver, window for twice the data received in it. Linux 6 before 6.18 (`net/ipv4/tcp_input.c`,
//! `tcp_rcv_space_adjust`, `tcp_grow_window`; ip-sysctl, `tcp_moderate_rcvbuf`), which gives
//! more while a round trip brings more than the one before, so that slow start is not held back.
//! A segment with which the window grows is acknowledged at once there.
//!
//! # Differences
//! 1. Payload takes five eighths of the buffer for any segment size. Linux since 6.6 measures the
//!    share that segments take: for 1448 bytes in 2304 of memory it is the same (before, it was
//!    half, `tcp_adv_win_scale = 1`). Out-of-order data take nothing from the window.
//! 2. The buffer belongs to one connection: there is no pressure on memory (`tcp_mem`), and so
//!    `tcp_clamp_window` has nothing to reclaim.

use aqmlab_core::{Span, Time};

use crate::params::{Stack, TcpParams};
use crate::segment::DataSegment;

/// Share of the payload in a buffer, as a fraction: in Linux 6.1 half, since 6.6 that of segments
/// of 1448 bytes.
const SHARE: (u64, u64) = (5, 8);
const SHARE_61: (u64, u64) = (1, 2);
/// Memory of the segment at hand, for which Linux 6.12 keeps room; 6.1 does so for its payload.
const SEGMENT: u64 = 2304;
/// The window before data have come: what fits the field without scaling.
const FIRST: u64 = 65_535;
/// Segments shorter than this do not let the window grow: their headers would fill the buffer.
const SHORT: u32 = 128;
/// Segments of the first round trip beyond which the window grows further.
const EXPECTED: u64 = 10;
/// Room for variations of the rate, in segments.
const CUSHION: u64 = 16;

/// The window of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct RightSizing {
    window: u64,
    /// Bound of the window: the capacity of the present buffer.
    clamp: u64,
    /// Capacity of the largest buffer.
    max: u64,
    mss: u64,
    rtt: RoundTrips,
    /// The last round trip: since when, from where on, and what the best one before brought.
    since: Time,
    from: u64,
    brought: u64,
}

/// The receiver's estimate of the round-trip time.
#[derive(Clone, Debug)]
struct RoundTrips {
    estimate: Option<Span>,
    has_timestamps: bool,
    /// With timestamps: the latest echoed one.
    echo: Time,
    /// Without: since when, and up to where, a window of data is awaited.
    since: Time,
    until: u64,
}

impl RightSizing {
    pub fn new(params: &TcpParams) -> Self {
        let (mss, stack) = (params.mss.get(), params.stack.or_newest());
        let payload = |buffer: u64| {
            let payload = match stack {
                Stack::Rfc => buffer * SHARE.0 / SHARE.1,
                Stack::Linux54 | Stack::Linux61 => {
                    (buffer * SHARE_61.0 / SHARE_61.1).saturating_sub(mss)
                }
                Stack::Auto | Stack::Linux612 => buffer.saturating_sub(SEGMENT) * SHARE.0 / SHARE.1,
            };
            payload.max(mss)
        };
        let max = payload(params.receive_buffer_max.get());
        let clamp = payload(params.receive_buffer.get());
        // Linux 6.12 knows half of its buffer as room from the beginning.
        let first = match stack {
            Stack::Linux612 => (params.receive_buffer.get() / 2).saturating_sub(mss).max(mss),
            _ => FIRST,
        };
        let window = clamp.min(first);
        let rtt = RoundTrips {
            estimate: None,
            has_timestamps: params.timestamps,
            echo: Time::ZERO,
            since: Time::ZERO,
            until: 0,
        };
        RightSizing {
            window,
            clamp,
            max,
            mss,
            rtt,
            since: Time::ZERO,
            from: 0,
            brought: window.min(EXPECTED * params.mss.get()),
        }
    }

    /// The window in bytes, from the cumulative acknowledgement on. It never shrinks.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The SYN has come.
    pub fn on_syn(&mut self, now: Time) {
        self.since = now;
    }

    /// A segment with new data has come, and now `next` bytes are in order: the application
    /// takes them at once. Whether the window has grown with it.
    pub fn on_data(&mut self, now: Time, segment: &DataSegment, next: u64) -> bool {
        self.rtt.on_data(now, segment, next, self.window, self.mss);
        let before = self.window;
        if segment.len >= SHORT {
            let more = (2 * self.mss).max(2 * u64::from(segment.len));
            self.window = (self.window + more).min(self.clamp);
        }
        if self.rtt.estimate.is_some_and(|rtt| now >= self.since + rtt) {
            self.round(next - self.from);
            (self.since, self.from) = (now, next);
        }
        self.window > before
    }

    /// A round-trip time is over, in which so many bytes were taken.
    fn round(&mut self, taken: u64) {
        if taken <= self.brought {
            return;
        }
        // Twice, for the losses of one round trip are repaired in the next; and as much more as
        // a sender may be faster when acknowledgements of now have led to data, two round trips on.
        let steady = 2 * taken + CUSHION * self.mss;
        let growth =
            u128::from(steady) * u128::from(taken - self.brought) / u128::from(self.brought);
        let wanted = u128::from(steady) + 2 * growth;
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(self.max);
        self.clamp = self.clamp.max(wanted);
        self.brought = taken;
    }
}

impl RoundTrips {
    fn on_data(&mut self, now: Time, segment: &DataSegment, next: u64, window: u64, mss: u64) {
        match self.has_timestamps {
            true => self.by_timestamps(now, segment, mss),
            false => self.by_window(now, next, window),
        }
    }

    /// From an acknowledgement to the first full segment that echoes its timestamp; averaged, but
    /// a shorter time counts at once.
    fn by_timestamps(&mut self, now: Time, segment: &DataSegment, mss: u64) {
        if segment.echo == self.echo || u64::from(segment.len) < mss {
            return;
        }
        self.echo = segment.echo;
        let rtt = now - segment.echo;
        self.estimate = Some(match self.estimate {
            Some(estimate) if rtt > estimate => (estimate * 7 + rtt) / 8,
            _ => rtt,
        });
    }

    /// The time that a whole window takes to come: too long unless the sender is held back by it,
    /// so the least counts.
    fn by_window(&mut self, now: Time, next: u64, window: u64) {
        if next < self.until {
            return;
        }
        if self.until > 0 {
            let rtt = now - self.since;
            self.estimate = Some(self.estimate.map_or(rtt, |estimate| estimate.min(rtt)));
        }
        (self.since, self.until) = (now, next + window);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Auto, Bytes};

    use super::*;

    const MSS: u64 = 1000;
    const RTT: Span = Span::from_millis(100);

    fn params(max: u64) -> TcpParams {
        TcpParams {
            mss: Bytes::new(MSS),
            timestamps: true,
            receive_window: Auto::Auto,
            receive_buffer_max: Bytes::new(max),
            ..TcpParams::rfc()
        }
    }

    /// Rounds of so many segments each, sent when the acknowledgements of those before have
    /// come; the window before each.
    fn windows(params: &TcpParams, rounds: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut sizing = RightSizing::new(params);
        let (mut next, mut now) = (0, Time::ZERO + RTT);
        sizing.on_syn(now);
        let mut play = |segments: u64| {
            let before = sizing.window();
            let echo = now;
            now += RTT;
            for _ in 0..segments {
                let segment =
                    DataSegment { seq: next, len: MSS as u32, echo, ..DataSegment::default() };
                next += MSS;
                sizing.on_data(now, &segment, next);
            }
            (segments * MSS, before)
        };
        rounds.map(&mut play).collect()
    }

    /// Slow start from ten segments up to the bandwidth-delay product, and on at that rate.
    fn slow_start(bdp: u64) -> impl Iterator<Item = u64> {
        (0..20).map(move |round| (10 << round).min(bdp))
    }

    #[test]
    fn slow_start_is_never_held_back_and_the_window_becomes_twice_the_product() {
        for bdp in [10, 64, 65, 400, 1000, 3000, 10_000] {
            let rounds = windows(&params(1 << 30), slow_start(bdp));
            assert!(rounds.iter().all(|(sent, window)| sent <= window), "{bdp}: {rounds:?}");
            // log2(bdp / 10) round trips of slow start; what the last one brought counts in the next
            // but one.
            let reached = bdp.div_ceil(10).next_power_of_two().ilog2() as usize + 2;
            assert!(rounds[reached].1 >= 2 * bdp * MSS, "{bdp}: {rounds:?}");
            // It was doubling: 2 (1 + 2) times the round trip, and the cushion.
            let most = (6 * (bdp + CUSHION / 2) * MSS).max(FIRST);
            assert!(rounds.iter().all(|(_, window)| *window <= most), "{bdp}: {rounds:?}");
            assert_eq!(rounds[18].1, rounds[19].1, "steady");
        }
    }

    #[test]
    fn a_buffer_that_may_not_grow_holds_its_share() {
        let fixed = TcpParams { receive_buffer: Bytes::new(300_000), ..params(300_000) };
        let rounds = windows(&fixed, slow_start(1000));
        assert_eq!(rounds[0].1, FIRST);
        assert_eq!(rounds[19].1, 187_500);
        let small = TcpParams { receive_buffer: Bytes::new(20_000), ..params(20_000) };
        assert!(windows(&small, slow_start(100)).iter().all(|(_, window)| *window == 12_500));
    }

    /// Fisk and Feng: without timestamps a window of data takes a round-trip time or more.
    #[test]
    fn without_timestamps_the_window_is_timed() {
        let params = TcpParams { timestamps: false, ..params(1 << 30) };
        let mut sizing = RightSizing::new(&params);
        let (mut next, mut now) = (0, Time::ZERO);
        sizing.on_syn(now);
        for _ in 0..30 {
            // The sender is held back by the window alone.
            let allowed = sizing.window() / MSS;
            now += RTT;
            for _ in 0..allowed {
                let segment = DataSegment { seq: next, len: MSS as u32, ..DataSegment::default() };
                next += MSS;
                sizing.on_data(now, &segment, next);
            }
            if let Some(estimate) = sizing.rtt.estimate {
                assert!((RTT..RTT * 3).contains(&estimate), "{estimate:?}");
            }
            if sizing.window() > 100_000_000 {
                return;
            }
        }
        panic!("it does not grow: {}", sizing.window());
    }
}
