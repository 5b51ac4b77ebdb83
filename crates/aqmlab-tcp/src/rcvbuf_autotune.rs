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
//! 1. The buffer belongs to one connection: there is no pressure on memory (`tcp_mem`), and so
//!    `tcp_clamp_window` has nothing to reclaim.
//! 2. Payload takes five eighths of the RFCs' buffer, which holds no data out of order.

use aqmlab_core::{Span, Time};

use crate::params::{Stack, TcpParams};
use crate::segment::DataSegment;

/// Share of the payload in the RFCs' buffer; and until Linux 6.6, which measures it, in 256ths
/// (`tcp_adv_win_scale`).
const SHARE: (u64, u64) = (5, 8);
const SHARE_61: u64 = 128;
/// A socket may ask for a buffer this large (net.core.rmem_max).
const RMEM_MAX: u64 = 212_992;
/// The window before data have come: what fits the field without scaling.
const FIRST: u64 = 65_535;
/// Segments shorter than this do not let the window grow: their headers would fill the buffer.
const SHORT: u32 = 128;
/// Segments of the first round trip beyond which the window grows further.
const EXPECTED: u64 = 10;
/// Room for variations of the rate, in segments.
const CUSHION: u64 = 16;

/// Data that the receiver holds, out of order or not read yet, and the packets that hold them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub bytes: u64,
    pub heads: u64,
}

/// Room for a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// True if the window can be as large as the last.
    pub is_open: bool,
    /// True if more than half of the buffer is taken.
    pub is_tight: bool,
}

/// The window of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct RightSizing {
    window: u64,
    /// The present buffer, and the largest: memory with Linux's count, else payload.
    buffer: u64,
    max: u64,
    memory: Option<BufferMemory>,
    /// Bound of the window (`window_clamp`).
    clamp: u64,
    /// The window is a multiple of this, because of its scale.
    unit: u64,
    /// The window that was advertised last, and its end.
    advertised: u64,
    edge: u64,
    mss: u64,
    rtt: RoundTrips,
    /// The last round trip: since when, from where on, and what the best one before brought.
    since: Option<Time>,
    from: u64,
    brought: u64,
}

/// Memory of packets that arrive, as their network interface allocates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMemory {
    /// Bytes of a packet beside its payload (`truesize`).
    pub head: u64,
    /// Neighbours out of order that share it (`tcp_ooo_try_coalesce`).
    pub shared: u32,
}

impl PacketMemory {
    /// Packets of a pair of virtual interfaces (veth), whose payload is in pages, of a kernel without
    /// wireless devices and tunnels: 256 bytes of `sk_buff`, and a head of 512 bytes. Since 6.3 heads
    /// have a cache of their own, and 576 bytes (`SKB_SMALL_HEAD_CACHE_SIZE`: no power of two).
    pub fn of(stack: Stack) -> Self {
        let head = match stack {
            Stack::Linux54 | Stack::Linux61 => 768,
            Stack::Rfc | Stack::Auto | Stack::Linux612 => 832,
        };
        PacketMemory { head, shared: 17 }
    }
}

/// Linux's count of the memory of a buffer.
#[derive(Clone, Copy, Debug)]
struct BufferMemory {
    /// Share of the payload, in 256ths.
    share: u64,
    head: u64,
    /// Memory of a segment for which the buffer grows; none for what its share says.
    segment: Option<u64>,
}

/// The receiver's estimate of the round-trip time.
#[derive(Clone, Debug)]
struct RoundTrips {
    estimate: Option<Span>,
    has_timestamps: bool,
    /// Unit of the timestamps in nanoseconds.
    tick: u64,
    /// With timestamps: the latest echoed one.
    echo: u64,
    /// Without: since when, and up to where, a window of data is awaited.
    since: Time,
    until: u64,
}

impl RightSizing {
    pub fn new(params: &TcpParams, packets: PacketMemory) -> Self {
        let (mss, stack) = (params.mss.get(), params.stack.or_newest());
        let memory = match stack {
            Stack::Rfc => None,
            Stack::Linux54 | Stack::Linux61 => {
                // tcp_rcv_space_adjust: with 832 bytes more, in steps of 128 until half is payload.
                let segment = mss + 832 + mss.saturating_sub(832).next_multiple_of(128);
                Some(BufferMemory { share: SHARE_61, head: packets.head, segment: Some(segment) })
            }
            Stack::Auto | Stack::Linux612 => {
                let share = (mss << 8) / (mss + packets.head);
                Some(BufferMemory { share, head: packets.head, segment: None })
            }
        };
        let payload = |buffer: u64| buffer * SHARE.0 / SHARE.1;
        let (buffer, max) = (params.receive_buffer.get(), params.receive_buffer_max.get());
        let (buffer, max) = match memory {
            Some(_) => (buffer.max(4 * mss), max.max(4 * mss)),
            None => (payload(buffer).max(mss), payload(max).max(mss)),
        };
        // tcp_init_buffer_space: Linux knows half of it as room, less a segment, 6.12 until data
        // have come and 6.1 until the buffer grows.
        let half = (buffer / 2).saturating_sub(mss);
        let (window, clamp) = match memory {
            None => (buffer.min(FIRST), buffer),
            Some(BufferMemory { segment: Some(_), .. }) => (half.min(FIRST), half),
            Some(memory) => (half, (buffer * memory.share) >> 8),
        };
        let rtt = RoundTrips {
            estimate: None,
            has_timestamps: params.timestamps,
            tick: if memory.is_some() { 1_000_000 } else { 1 },
            echo: 0,
            since: Time::ZERO,
            until: 0,
        };
        RightSizing {
            window,
            buffer,
            max,
            memory,
            clamp,
            // tcp_select_initial_window: the field has 16 bits.
            unit: match memory {
                Some(_) => 1 << (max.max(RMEM_MAX).ilog2() - 15).min(14),
                None => 1,
            },
            advertised: 0,
            edge: 0,
            mss,
            rtt,
            since: None,
            from: 0,
            brought: window.min(EXPECTED * params.mss.get()),
        }
    }

    /// The window in bytes if no data are out of order.
    pub fn window(&self) -> u64 {
        self.window
    }
    /// Payload that fills so much of the buffer (`tcp_win_from_space`).
    fn payload(&self, buffer: u64) -> u64 {
        self.memory.map_or(buffer, |memory| (buffer * memory.share) >> 8)
    }
    /// Payload for which there is room beside what the receiver holds.
    fn room(&self, held: Held) -> u64 {
        let taken = self.memory.map_or(0, |memory| held.bytes + memory.head * held.heads);
        self.payload(self.buffer.saturating_sub(taken)).min(self.clamp)
    }
    /// Returns the window to advertise from `next` on, and whether more than half of the buffer
    /// is taken. Its end never moves back (`tcp_select_window`).
    pub fn advertise(&mut self, next: u64, held: Held) -> (u64, bool) {
        let left = self.edge.saturating_sub(next);
        let (mut window, is_tight) = self.selected(held);
        if self.edge == 0 && self.memory.is_some() {
            // tcp_select_initial_window: with the SYN, not scaled.
            window = (self.buffer / 2 / self.mss * self.mss).min(FIRST);
        }
        self.advertised = window.max(self.scaled(left));
        self.edge = next + self.advertised;
        (self.advertised, is_tight)
    }
    /// Returns whether there is room for a window as large as that advertised last.
    pub fn room_for_last(&self, held: Held) -> Room {
        let (window, is_tight) = self.selected(held);
        Room { is_open: window >= self.advertised, is_tight }
    }
    /// Returns whether the window may be twice the rest of the advertised one.
    pub fn has_grown(&self, next: u64, held: Held) -> bool {
        let left = self.edge.saturating_sub(next);
        self.memory.is_some() && 2 * left <= self.clamp && {
            let (window, _) = self.selected(held);
            window > 0 && window >= 2 * left
        }
    }
    /// `__tcp_select_window`.
    fn selected(&self, held: Held) -> (u64, bool) {
        let mut room = self.room(held);
        let is_tight = room < self.clamp / 2;
        if is_tight {
            room &= !(self.unit - 1);
            if room < (self.payload(self.buffer) / 16).max(self.mss) {
                return (0, true);
            }
        }
        (self.scaled(room.min(self.window)), is_tight)
    }
    /// A window as its field has it: no smaller.
    fn scaled(&self, window: u64) -> u64 {
        (window + self.unit - 1) & !(self.unit - 1)
    }

    /// The SYN has come.
    pub fn on_syn(&mut self, now: Time) {
        // Linux measures from the end of the handshake on.
        self.since = self.memory.is_none().then_some(now);
    }

    /// A segment with new data has come, with which the receiver holds so much, and now `next`
    /// bytes are in order. Returns whether the window has grown with it.
    pub fn on_data(&mut self, now: Time, segment: &DataSegment, next: u64, held: Held) -> bool {
        let window = if self.memory.is_some() { self.advertised } else { self.window };
        self.rtt.on_data(now, segment, next, window, self.mss);
        self.since.get_or_insert(now);
        let before = self.window;
        if segment.len >= SHORT && before < self.clamp {
            let more = (2 * self.mss).max(2 * u64::from(segment.len));
            self.window = (self.window + more).min(self.room(held)).max(before);
        }
        self.window > before
    }

    /// The application reads all data up to `next`, of which a first packet ends at `first`
    /// (`tcp_rcv_space_adjust` counts the bytes read less those that are not read yet).
    pub fn on_read(&mut self, now: Time, first: u64, next: u64) {
        let is_over = |since| self.rtt.estimate.is_some_and(|rtt| now >= since + rtt);
        if self.since.is_some_and(is_over) {
            self.round((first - self.from).saturating_sub(next - first));
            (self.since, self.from) = (Some(now), first);
        }
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
        let wanted = match self.memory {
            None => wanted,
            Some(BufferMemory { segment: Some(segment), .. }) => {
                wanted / u128::from(self.mss) * u128::from(segment)
            }
            Some(memory) => (wanted << 8) / u128::from(memory.share),
        };
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(self.max);
        if wanted > self.buffer {
            self.buffer = wanted;
            self.clamp = self.payload(wanted);
        }
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
        let ticks = |time: Time| time.as_nanos() / self.tick;
        let echo = ticks(segment.echo);
        let is_known = std::mem::replace(&mut self.echo, echo) == echo;
        let rtt = Span::from_nanos((ticks(now) - echo) * self.tick);
        if is_known || u64::from(segment.len) < mss || rtt == Span::ZERO {
            return;
        }
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
        let mut sizing = RightSizing::new(params, PacketMemory::of(params.stack));
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
                sizing.on_data(now, &segment, next, Held::default());
                sizing.on_read(now, next, next);
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

    /// Linux, tcp_select_window: the end of the window stays while data out of order fill the buffer.
    #[test]
    fn data_out_of_order_take_room_from_linuxs_window() {
        let linux = |params| TcpParams { stack: Stack::Linux612, ..params };
        let fixed = TcpParams { receive_buffer: Bytes::new(300_000), ..params(300_000) };
        for (params, takes) in [(fixed.clone(), false), (linux(fixed), true)] {
            let mut sizing = RightSizing::new(&params, PacketMemory::of(params.stack));
            let (first, _) = sizing.advertise(0, Held::default());
            let held = Held { bytes: 100_000, heads: 15 };
            let (window, is_tight) = sizing.advertise(40_000, held);
            // 1000 of 1832 bytes of a segment are payload.
            let room: u64 = (300_000 - 100_000 - 15 * 832) * 139 / 256;
            let expected = if takes { room.next_multiple_of(8).max(first - 40_000) } else { first };
            assert_eq!((window, is_tight), (expected, false));
        }
    }

    /// Fisk and Feng: without timestamps a window of data takes a round-trip time or more.
    #[test]
    fn without_timestamps_the_window_is_timed() {
        let params = TcpParams { timestamps: false, ..params(1 << 30) };
        let mut sizing = RightSizing::new(&params, PacketMemory::of(params.stack));
        let (mut next, mut now) = (0, Time::ZERO);
        sizing.on_syn(now);
        for _ in 0..30 {
            // The sender is held back by the window alone.
            let allowed = sizing.window() / MSS;
            now += RTT;
            for _ in 0..allowed {
                let segment = DataSegment { seq: next, len: MSS as u32, ..DataSegment::default() };
                next += MSS;
                sizing.on_data(now, &segment, next, Held::default());
                sizing.on_read(now, next, next);
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
