//! Parameters of a QUIC flow in scenario files.

use aqmlab_aqm::Note;
use aqmlab_core::params::Auto;
use aqmlab_core::{Bytes, Component, Error, ParamType, Result, Span, choices, params};
use aqmlab_sim::endpoints::{BoxedEnds, EndpointParams, EndpointSetup};

use crate::host::Host;
use crate::noq::Noq;
use crate::own::Own;
use crate::quinn::Quinn;

choices! {
    /// A published QUIC library.
    pub enum Library {
        /// The crate `noq-proto`.
        Noq = "noq",
        /// The crate `quinn-proto`.
        Quinn = "quinn",
    }
}

choices! {
    /// A congestion controller of a library.
    pub enum Controller {
        /// NewReno (RFC 9002, section 7).
        NewReno = "new_reno",
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// BBR version 1, of quinn.
        Bbr = "bbr",
        /// BBR version 3, of noq.
        Bbr3 = "bbr3",
    }
}

impl Library {
    /// Controllers of the library.
    pub fn controllers(self) -> [Controller; 3] {
        let last = match self {
            Library::Noq => Controller::Bbr3,
            Library::Quinn => Controller::Bbr,
        };
        [Controller::NewReno, Controller::Cubic, last]
    }
}

params! {
    /// A connection of a QUIC library. The defaults are those of both libraries.
    pub struct QuicParams {
        /// QUIC library that runs.
        stack: Library = Library::Noq, source "crates noq-proto 1.4 and quinn-proto 0.11";
        /// Congestion controller; `bbr` is quinn's, `bbr3` noq's.
        controller: Controller = Controller::Cubic,
            source "noq-proto and quinn-proto, `TransportConfig::default`";
        /// Initial congestion window; `auto` is the controller's own.
        initial_window: Auto<Bytes> = Auto::Auto,
            in Auto::Set(Bytes::new(2400)) => Auto::Set(Bytes::new(100_000_000)),
            source "RFC 9002, section 7.2";
        /// Round-trip time assumed before the first sample.
        initial_rtt: Span = Span::from_millis(333),
            in Span::from_millis(1) => Span::from_secs(10), source "RFC 9002, section 6.2.2";
        /// UDP payload that a path is assumed to carry.
        initial_mtu: Bytes = Bytes::new(1200), in Bytes::new(1200) => Bytes::new(9000),
            source "RFC 9000, section 14.1";
        /// UDP payload up to which the path is probed; `none` sends no probes.
        max_mtu: Option<Bytes> = Some(Bytes::new(1452)),
            in Some(Bytes::new(1200)) => Some(Bytes::new(9000)),
            source "noq-proto and quinn-proto, `MtuDiscoveryConfig::default`";
        /// Bytes of all headers below QUIC.
        header: Bytes = Bytes::new(28), in Bytes::new(8) => Bytes::new(200),
            source "IPv4 (RFC 791) and UDP (RFC 768)";
        /// Packets are ECN-capable, ECT(0).
        ecn: bool = true, source "RFC 9000, section 13.4";
        /// Ack-eliciting packets that may remain unacknowledged, by the ACK frequency extension;
        /// `none` leaves acknowledgements to RFC 9000.
        ack_eliciting_threshold: Option<u64> = None, in Some(0) => Some(1000),
            source "draft-ietf-quic-ack-frequency, section 4";
        /// Delay of acknowledgements requested by the ACK frequency extension.
        max_ack_delay: Option<Span> = None,
            in Some(Span::from_millis(1)) => Some(Span::from_secs(1)),
            source "draft-ietf-quic-ack-frequency, section 4";
        /// Reordering, in packets, after which a packet is lost.
        packet_threshold: u64 = 3, in 1 => 1000, source "RFC 9002, section 6.1.1";
        /// Reordering, in round-trip times, after which a packet is lost.
        time_threshold: f64 = 1.125, in 1.0 => 100.0, source "RFC 9002, section 6.1.2";
        /// Probe timeouts without an acknowledgement that are persistent congestion.
        persistent_congestion_threshold: u64 = 3, in 1 => 1000, source "RFC 9002, section 7.6.1";
        /// Datagrams in one batch of generic segmentation offload (GSO), which leave back to back.
        segments: u64 = 10, in 1 => 64,
            source "crates noq and quinn, `MAX_TRANSMIT_SEGMENTS`";
        /// Receive window of a stream.
        stream_window: Bytes = Bytes::new(1_250_000),
            in Bytes::new(1200) => Bytes::new(1_000_000_000),
            source "noq-proto and quinn-proto, `TransportConfig::default`";
        /// Receive window of the connection; `none` is unlimited.
        receive_window: Option<Bytes> = None,
            in Some(Bytes::new(1200)) => Some(Bytes::new(1_000_000_000)),
            source "noq-proto and quinn-proto, `TransportConfig::default`";
        /// Bytes that a sender buffers until they are acknowledged.
        send_window: Bytes = Bytes::new(10_000_000),
            in Bytes::new(1200) => Bytes::new(1_000_000_000),
            source "noq-proto and quinn-proto, `TransportConfig::default`";
        /// Concurrent streams of the peer.
        max_streams: u64 = 100, in 1 => 1_000_000,
            source "noq-proto and quinn-proto, `TransportConfig::default`";
        /// Datagrams of applications travel in a connection of their own; without it, they are
        /// UDP datagrams.
        datagrams: bool = false, source "RFC 9221";
        /// Bytes of datagrams that a sender keeps; beyond, the oldest are dropped.
        datagram_buffer: Bytes = Bytes::new(1024 * 1024),
            in Bytes::new(1200) => Bytes::new(1_000_000_000),
            source "noq-proto and quinn-proto, `TransportConfig::default`";
        /// Time without packets after which a connection closes; `none` keeps it open.
        idle_timeout: Option<Span> = Some(Span::from_secs(30)),
            in Some(Span::from_millis(1)) => Some(Span::from_secs(86_400)),
            source "RFC 9308, section 3.2";
    }
}

impl QuicParams {
    pub(crate) fn ends(&self, own: Option<&Own>, setup: &EndpointSetup) -> BoxedEnds {
        match self.stack {
            Library::Noq => Host::<Noq>::ends(self, own, setup),
            Library::Quinn => Host::<Quinn>::ends(self, own, setup),
        }
    }

    pub(crate) fn pairs(&self, own: Option<&Own>, setup: &EndpointSetup) -> [BoxedEnds; 2] {
        match self.stack {
            Library::Noq => Host::<Noq>::pair(self, own, setup),
            Library::Quinn => Host::<Quinn>::pair(self, own, setup),
        }
    }
}

impl Component for QuicParams {
    const NAME: &'static str = "quic";
    const SUMMARY: &'static str = "QUIC, a published library";

    fn check(&self) -> Result<()> {
        let known = self.stack.controllers();
        if !known.contains(&self.controller) {
            let (stack, given) = (self.stack.to_text(), self.controller.to_text());
            let names: Vec<String> = known.iter().map(ParamType::to_text).collect();
            let allowed = format!("one of {} with stack `{stack}`", names.join(", "));
            return Err(Error::not_allowed(given, allowed).at("controller"));
        }
        if let Some(max) = self.max_mtu
            && max < self.initial_mtu
        {
            let allowed = format!("at least `initial_mtu`, {}, or `none`", self.initial_mtu);
            return Err(Error::not_allowed(max, allowed).at("max_mtu"));
        }
        Ok(())
    }
}

impl EndpointParams for QuicParams {
    fn build(&self, setup: &EndpointSetup) -> BoxedEnds {
        self.ends(None, setup)
    }

    fn pair(&self, setup: &EndpointSetup) -> Option<[BoxedEnds; 2]> {
        Some(self.pairs(None, setup))
    }

    fn datagrams(&self, setup: &EndpointSetup) -> Option<BoxedEnds> {
        self.datagrams.then(|| self.ends(None, setup))
    }

    fn has_tls(&self) -> bool {
        true
    }

    fn is_udp(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<Note> {
        if !matches!(self.controller, Controller::Bbr | Controller::Bbr3) {
            return Vec::new();
        }
        let text = format!(
            "{}:{} seeds its random numbers from the operating system: runs with the same seed differ.",
            self.stack.to_text(),
            self.controller.to_text()
        );
        vec![Note { id: "not-reproducible", text }]
    }
}
