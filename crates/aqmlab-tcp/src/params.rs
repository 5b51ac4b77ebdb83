//! The parameters of the endpoints.

use aqmlab_core::{Auto, Bytes, Ecn, Error, Limit, Result, Span, choices, params};

use crate::congestion::control::{CongestionConfig, Setup};

choices! {
    /// Explicit congestion notification at both ends.
    pub enum EcnMode {
        /// Not at all: queues drop.
        Off = "off",
        /// ECE until CWR: one signal a window of data (RFC 3168).
        Classic = "classic",
        /// ECE reports whether the acknowledged data arrived with CE (RFC 8257, section 3.2).
        Dctcp = "dctcp",
        /// Acknowledgements count packets and bytes that arrived with CE (RFC 9768).
        Accurate = "accurate",
    }
}

choices! {
    /// The modelled implementation.
    pub enum Profile {
        /// The RFCs' sender and settings: Reno with SACK.
        Rfc = "rfc",
        /// ns-2's Sack1 with a delaying SACK sink.
        Ns2Sack1 = "ns2-sack1",
        /// NewReno as RFC 5681, RFC 6582 and RFC 3390 have it.
        RfcNewReno = "rfc-newreno",
        /// Linux 6 with its default settings: 6.12, and the RFCs' sender for what that lacks.
        Linux6 = "linux-6",
        /// Linux 6.12 with its default settings, and nothing that it lacks.
        Linux612 = "linux-6.12",
        /// Linux 6.1 with its default settings, and nothing that it lacks.
        Linux61 = "linux-6.1",
        /// Windows 10 and Server 2019 with the template Internet.
        Windows = "windows",
        /// Linux 6 with accurate ECN and ECT(1).
        LinuxL4s = "linux-l4s",
    }
}

choices! {
    /// Loss detection and recovery.
    pub enum Recovery {
        /// With selective acknowledgements (RFC 6675): lost segments count as
        /// gone from the network.
        Sack = "sack",
        /// With selective acknowledgements, by time: RACK (RFC 8985).
        Rack = "rack",
        /// ns-2's Sack1 (Fall and Floyd, "Simulation-based Comparisons of
        /// Tahoe, Reno, and SACK TCP", 1996): each acknowledgement takes one
        /// segment out of the network, a partial one two, and a lost one is
        /// counted until then. After a timeout everything is sent again.
        Sack1 = "sack1",
        /// ns-2's TCP-Linux: forward acknowledgement, and a scoreboard that is cleared at the end of a
        /// recovery.
        TcpLinux = "tcp-linux",
        /// Without selective acknowledgements (RFC 6582).
        NewReno = "newreno",
        /// Without selective acknowledgements, as before NewReno (RFC 5681,
        /// section 3.2): a second loss in a window waits for the timer.
        Reno = "reno",
    }
}

choices! {
    /// State machine of the sender.
    pub enum Stack {
        /// The RFCs' sender and receiver: all recovery algorithms, controls and settings.
        Rfc = "rfc",
        /// Linux 6.12's sender if it has what the other keys ask for, otherwise the RFCs'; the
        /// receiver is Linux's.
        Auto = "auto",
        /// Linux 6.1's, with the rule of Linux 5.4 for a full window.
        Linux54 = "linux-5.4",
        /// Linux 6.1's.
        Linux61 = "linux-6.1",
        /// Linux 6.12's.
        Linux612 = "linux-6.12",
    }
}

impl Stack {
    /// The stack, with the newest kernel instead of `Auto`.
    pub(crate) fn or_newest(self) -> Stack {
        match self {
            Stack::Auto => Stack::Linux612,
            other => other,
        }
    }
}

choices! {
    /// Algorithm of the retransmission timer and of its timeouts.
    pub enum RetransmissionTimer {
        /// The kernel's with Linux's sender, RFC 6298's with the RFCs'.
        Auto = "auto",
        /// The variation of one measurement a round-trip time; restarted when new data are
        /// acknowledged (RFC 6298).
        Rfc6298 = "rfc6298",
        /// In whole ticks of `clock_granularity`, with fractions of an eighth and a quarter (ns-2).
        Ns2 = "ns-2",
        /// The kernel's; only with Linux's sender.
        Linux = "linux",
    }
}

choices! {
    /// Treatment of an unused window.
    pub enum WindowValidation {
        /// The window stays.
        Off = "off",
        /// Halved for each timeout of idle time, down to the first window; half of what the
        /// application leaves unused for a timeout is given up (RFC 2861, as in Linux).
        Rfc2861 = "rfc2861",
        /// The window stays for five minutes; a loss in that time leaves half of the part in use
        /// (RFC 7661).
        Rfc7661 = "rfc7661",
    }
}

choices! {
    /// ECN codepoint of new data.
    pub enum Codepoint {
        /// ECT(0).
        Ect0 = "ect0",
        /// ECT(1): asks for the treatment of L4S.
        Ect1 = "ect1",
    }
}

impl From<Codepoint> for Ecn {
    fn from(codepoint: Codepoint) -> Ecn {
        match codepoint {
            Codepoint::Ect0 => Ecn::Ect0,
            Codepoint::Ect1 => Ecn::Ect1,
        }
    }
}

/// The most segments of a first window.
const MOST_AT_FIRST: u64 = 100_000;

params! {
    /// Parameters of both ends of a connection.
    pub struct TcpParams {
        /// Implementation that is modelled: defaults of the other keys.
        profile: Profile = Profile::Linux6, source "docs/transports/tcp.md";
        /// State machine of the sender. A kernel's is refused with a setting that the kernel
        /// lacks; `auto` uses the RFCs' for it (docs/transports/linux.md).
        stack: Stack = Stack::Auto, source "docs/transports/linux.md";
        /// The largest payload of a segment.
        mss: Bytes = Bytes::new(1448), in Bytes::new(1) => Bytes::new(1_000_000),
            source "RFC 9293, section 3.7.1; Ethernet, IPv4 and timestamps; 1460b without timestamps";
        /// Bytes on the wire of each segment in addition to its payload; also the size of
        /// SYN and ACK.
        header: Bytes = Bytes::new(52), in Bytes::new(1) => Bytes::new(10_000),
            source "20 bytes of IPv4, 20 of TCP and 12 of timestamps";
        /// Congestion control: a name, or a table with `algorithm` and its parameters.
        congestion_control: CongestionConfig = CongestionConfig::default(),
            source "Linux: net/ipv4/Kconfig, DEFAULT_CUBIC; RFC 5681: reno";
        /// The first window: segments (3p) or bytes (4380b).
        initial_window: Limit = Limit::Packets(10), source "RFC 6928, section 2; RFC 3390: 4380b";
        /// The first slow start threshold; `none` for as high as possible.
        initial_ssthresh: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 50)),
            source "RFC 5681, section 3.1";
        /// The retransmission timeout before the first round-trip time is known.
        initial_rto: Span = Span::from_secs(1), in Span::from_millis(1) => Span::from_secs(60),
            source "RFC 6298, section 2.1; 3s in RFC 2988";
        /// The least retransmission timeout.
        min_rto: Span = Span::from_millis(200), in Span::from_nanos(1) => Span::from_secs(60),
            source "Linux: TCP_RTO_MIN; RFC 6298, section 2.4: 1s";
        /// The largest retransmission timeout.
        max_rto: Span = Span::from_secs(120), in Span::from_millis(1) => Span::from_secs(3600),
            source "Linux: TCP_RTO_MAX; RFC 6298, section 2.5: at least 60s";
        /// The granularity G of the clock that measures round-trip times.
        clock_granularity: Span = Span::from_millis(1), in Span::from_nanos(1) => Span::from_secs(1),
            source "RFC 6298, section 2; 10ms in ns-2's studies";
        /// Algorithm of the retransmission timer and of its timeouts.
        retransmission_timer: RetransmissionTimer = RetransmissionTimer::Auto,
            source "RFC 6298; Linux: net/ipv4/tcp_input.c, tcp_rtt_estimator, tcp_enter_loss";
        /// Loss detection and recovery.
        recovery: Recovery = Recovery::Rack, source "RFC 8985, as in Linux; RFC 6675; RFC 6582; Fall and Floyd 1996; Wei and Cao 2006";
        /// With `rack`: a probe is sent when acknowledgements stay away at the end of a flight.
        tail_loss_probe: bool = true, source "RFC 8985, section 7";
        /// Additional wait of a probe of a single segment, whose acknowledgement may be
        /// delayed.
        max_ack_delay: Span = Span::from_millis(200), in Span::ZERO => Span::from_secs(1),
            source "RFC 8985, section 7.2; 200ms in Linux";
        /// Whether the window shrinks in proportion to the data delivered during recovery
        /// (PRR) instead of at once; with `sack` and `rack`.
        prr: bool = true, source "RFC 9937; Linux: net/ipv4/tcp_input.c, tcp_cwnd_reduction";
        /// Detects spurious timeouts.
        frto: bool = true, source "RFC 5682; Linux: tcp_frto";
        /// Whether the receiver reports duplicates, so that the sender detects spurious
        /// retransmissions.
        dsack: bool = true, source "RFC 2883; RFC 3708; Linux: tcp_dsack";
        /// Adds timestamps to segments; count their 12 bytes in `mss` and `header`.
        timestamps: bool = true, source "RFC 7323; RFC 3522; Linux: tcp_timestamps";
        /// Whether the first two duplicate acknowledgements send new data.
        limited_transmit: bool = true, source "RFC 3042";
        /// Whether the acknowledgement that ends a recovery grows the window by all data
        /// that it covers, including data that SACK had reported.
        recovery_end_counts: bool = false, [left out],
            source "ns-3: tcp-socket-base.cc, ProcessAck; RFC 6675 and Linux: false";
        /// Full segments that are acknowledged together; 1 acknowledges each.
        delayed_ack: u64 = 2, in 1 => 1000, source "RFC 5681, section 4.2";
        /// Delay of an acknowledgement that waits for the next segment.
        ack_delay: Span = Span::from_millis(40), in Span::ZERO => Span::from_millis(500),
            source "Linux: TCP_DELACK_MIN; RFC 1122, section 4.2.3.2: at most 500ms; 200ms is BSD's, 100ms ns-2's";
        /// Segments that the receiver acknowledges each at once, at the beginning and after a
        /// duplicate.
        quick_acks: u64 = 16, in 0 => 1000, source "Linux: TCP_MAX_QUICKACKS, 16";
        /// Whether the window returns to the initial window after an idle time of one
        /// retransmission timeout.
        restart_after_idle: bool = false, source "RFC 5681, section 4.1";
        /// Treatment of a window that the application does not use.
        window_validation: WindowValidation = WindowValidation::Rfc2861,
            source "RFC 2861; Linux: tcp_slow_start_after_idle; RFC 7661";
        /// With `rfc7661`: how long a window that is not used stays.
        non_validated_period: Span = Span::from_secs(300), in Span::from_secs(1) => Span::from_secs(300),
            source "RFC 7661, section 4.4: five minutes at most";
        /// Receive window: packets of one MSS, bytes, or `unlimited`. `auto`: grows with
        /// the rate at which the application reads.
        receive_window: Auto<Limit> = Auto::Set(Limit::Unlimited),
            source "RFC 9293, section 3.8.6; auto: Fisk and Feng 2001, as in Linux";
        /// With `receive_window = auto`: initial receive buffer; payload may use five
        /// eighths of it.
        receive_buffer: Bytes = Bytes::new(131_072), in Bytes::new(2304) => Bytes::new(1 << 40),
            source "Linux: tcp_rmem, the second number";
        /// With `receive_window = auto`: how large the receiver's buffer may become.
        receive_buffer_max: Bytes = Bytes::new(6_291_456), in Bytes::new(2304) => Bytes::new(1 << 40),
            source "Linux: tcp_rmem, the third number; 33554432b in 6.18";
        /// With a Linux `stack`: send buffer for unacknowledged data, including the memory
        /// overhead of each segment; `auto`: grows with the window to 4194304b; `none`: unlimited.
        send_buffer: Auto<Option<Bytes>> = Auto::Set(None), [left out],
            in Auto::Set(Some(Bytes::new(4608))) => Auto::Set(Some(Bytes::new(1 << 40))),
            source "Linux: tcp_wmem; tcp_sndbuf_expand; net/core/stream.c";
        /// Paces congestion controls without pacing of their own by window and round-trip time.
        pacing: bool = false, source "Linux: net/ipv4/tcp_input.c, tcp_update_pacing_rate";
        /// Percent of a window per round-trip time in slow start.
        pacing_slow_start: u64 = 200, in 1 => 1000, source "Linux: tcp_pacing_ss_ratio";
        /// Percent of a window per round-trip time from half of ssthresh on.
        pacing_avoidance: u64 = 120, in 1 => 1000, source "Linux: tcp_pacing_ca_ratio";
        /// With `stack` of Linux: whether the sending host leaves the cutting of segments to its
        /// device, so that several leave at once, and waits for more of the window to do so.
        segmentation_offload: bool = false, source "Linux: net/ipv4/tcp_output.c, tcp_tso_autosize, tcp_tso_should_defer; ethtool -k";
        /// The first data, segments (10p) or bytes, which are not paced.
        pacing_quantum: Limit = Limit::Packets(10), source "Linux: tc-fq(8), initial_quantum";
        /// Explicit congestion notification, at both ends. Each SYN asks for it, Linux's only the first.
        ecn: EcnMode = EcnMode::Off, source "RFC 3168; RFC 8257; RFC 9768";
        /// ECN codepoint of new data if `ecn` is on; with Linux's `dctcp` of all packets.
        ecn_codepoint: Codepoint = Codepoint::Ect0, source "RFC 3168, section 6.1.2; RFC 9331, section 4.1";
    }
}

impl TcpParams {
    /// Checks the parameters against each other, with any sender.
    pub(crate) fn check_together(&self) -> Result<()> {
        // All of it is sent at one moment.
        let is_fit = match self.initial_window {
            Limit::Packets(packets) => packets <= MOST_AT_FIRST,
            Limit::Bytes(bytes) => bytes.get() <= MOST_AT_FIRST * self.mss.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        };
        if !is_fit {
            let allowed = format!("packets (10p) or bytes (14600b), {MOST_AT_FIRST}p at most");
            return Err(Error::not_allowed(self.initial_window, allowed).at("initial_window"));
        }
        for (key, limit) in [
            ("receive_window", self.receive_window.or_else(|| Limit::Unlimited)),
            ("pacing_quantum", self.pacing_quantum),
        ] {
            if matches!(limit, Limit::Bdp(_)) {
                return Err(Error::not_allowed(limit, "packets (10p) or bytes (14600b)").at(key));
            }
        }
        if self.receive_buffer > self.receive_buffer_max {
            let allowed = format!("at most receive_buffer_max = {}", self.receive_buffer_max);
            return Err(Error::not_allowed(self.receive_buffer, allowed).at("receive_buffer"));
        }
        if self.min_rto > self.max_rto {
            let allowed = format!("at most max_rto = {}", self.max_rto);
            return Err(Error::not_allowed(self.min_rto, allowed).at("min_rto"));
        }
        if self.prr && !self.recovery.has_pipe() {
            let allowed = "false, or recovery = sack, rack or tcp-linux";
            return Err(Error::not_allowed(self.prr, allowed).at("prr"));
        }
        if self.restart_after_idle && self.window_validation != WindowValidation::Off {
            let allowed = "false, or window_validation = off: both say what idle times cost";
            return Err(Error::not_allowed(true, allowed).at("restart_after_idle"));
        }
        Ok(())
    }

    /// Whether the receiver sends selective acknowledgements.
    pub fn sends_sack(&self) -> bool {
        !matches!(self.recovery, Recovery::NewReno | Recovery::Reno)
    }

    /// Returns the inputs of a congestion control with this initial window.
    pub fn setup(&self, initial_window: u64, seed: u64) -> Setup {
        Setup {
            mss: self.mss.get(),
            initial_window,
            initial_ssthresh: self.initial_ssthresh.map_or(u64::MAX / 4, |bytes| bytes.get()),
            seed,
            header: self.header.get(),
            is_paced: self.pacing,
            has_sack: self.sends_sack(),
        }
    }

    /// Returns the inputs of the congestion control of a new connection.
    pub(crate) fn first_setup(&self, seed: u64) -> Setup {
        self.setup(self.in_bytes(self.initial_window), seed)
    }

    /// A limit in bytes of payload.
    pub fn in_bytes(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Packets(packets) => packets.saturating_mul(self.mss.get()),
            Limit::Bytes(bytes) => bytes.get(),
            Limit::Bdp(_) | Limit::Unlimited => u64::MAX / 4,
        }
    }
}
