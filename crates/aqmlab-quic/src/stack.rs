//! One connection of a QUIC library, as the adapter uses it.

use std::time::Instant;

use aqmlab_core::Ecn;
use aqmlab_sim::endpoints::EndpointSetup;
use aqmlab_tcp::Stats;
use bytes::{Bytes, BytesMut};

use crate::own::Own;
use crate::params::QuicParams;

/// UDP datagrams in a buffer, of `segment` bytes each; the last may be shorter.
pub struct Datagrams {
    pub size: usize,
    pub segment: usize,
    pub ecn: Ecn,
}

/// An event of a connection.
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// The connection is closed.
    Lost(String),
    /// The peer opened streams.
    Opened,
    /// A stream has data to read.
    Readable(u64),
    /// A stream may be opened, or written to.
    Writable,
    /// The peer acknowledged the end of a stream.
    Finished,
    /// An event that the adapter has no use for.
    Other,
}

/// One end of a connection. Identifiers of streams are those of RFC 9000, section 2.1.
pub trait Stack: Send + Sized {
    /// Makes an endpoint; its connection IDs and random numbers follow from the seed.
    fn new(params: &QuicParams, own: Option<&Own>, setup: &EndpointSetup, is_client: bool) -> Self;
    /// Starts the handshake.
    fn connect(&mut self, now: Instant) -> Result<(), String>;
    /// Handles a datagram; datagrams that answer it directly are in `buffer`.
    fn handle(
        &mut self,
        now: Instant,
        ecn: Ecn,
        data: BytesMut,
        buffer: &mut Vec<u8>,
    ) -> Option<Datagrams>;
    /// Makes the next datagrams.
    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Datagrams>;
    /// Returns the time of the next timer.
    fn timeout(&mut self) -> Option<Instant>;
    /// Handles expired timers.
    fn on_timeout(&mut self, now: Instant);
    /// Returns the next event.
    fn event(&mut self) -> Option<Event>;
    /// Opens a unidirectional stream, if the peer allows one more.
    fn open(&mut self) -> Option<u64>;
    /// Accepts the next unidirectional stream of the peer.
    fn accept(&mut self) -> Option<u64>;
    /// Writes to a stream; returns how many bytes it took.
    fn write(&mut self, stream: u64, data: Bytes) -> usize;
    /// Ends a stream; returns false if that has to be tried again.
    fn finish(&mut self, stream: u64) -> bool;
    /// Reads all data in order from a stream; returns how many bytes it had, and whether it ended.
    fn read(&mut self, stream: u64) -> Result<(u64, bool), String>;
    /// Sends a datagram (RFC 9221) of an open connection.
    fn send_datagram(&mut self, data: Bytes) -> Result<(), String>;
    /// Returns the next datagram that arrived.
    fn datagram(&mut self) -> Option<Bytes>;
    /// Closes the connection.
    fn close(&mut self, now: Instant);
    /// Returns the counts so far: packets sent, packets declared lost (`retransmissions`), reductions of
    /// the window by losses and ECN marks (`fast_retransmits`), and those found to be spurious (`undone`).
    fn counts(&mut self) -> Stats;
    /// Reports the state that recordings contain, by name.
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64));
}

/// Configures a congestion controller.
macro_rules! controller {
    ($Config:ident, $params:ident) => {{
        let mut config = $Config::default();
        if let Auto::Set(window) = $params.initial_window {
            config.initial_window(window.get());
        }
        Arc::new(config)
    }};
}

/// Implements [`Stack`] for `$Name`, the connection of the crate `$proto`, whose BBR is `$Bbr`. The
/// module defines what differs between the crates:
///
/// ```text
/// fn handle(&mut Endpoint, Instant, Option<EcnCodepoint>, BytesMut, &mut Vec<u8>) -> Option<DatagramEvent>;
/// fn transmit(&mut Connection, Instant, usize, &mut Vec<u8>) -> Option<Transmit>;
/// fn write(&mut SendStream, Bytes) -> usize;
/// fn write_log(&mut TransportConfig, String, LogFile); // with the feature `qlog`
/// fn counts(&mut Connection) -> Stats;
/// fn observe(&Connection, &mut dyn FnMut(&'static str, f64));
/// ```
macro_rules! stack {
    ($Name:ident, $proto:ident, $Bbr:ident) => {
        use std::net::{Ipv4Addr, SocketAddr};
        use std::sync::Arc;
        use std::time::{Duration, Instant, SystemTime};

        use aqmlab_core::Ecn;
        use aqmlab_core::params::Auto;
        use aqmlab_sim::endpoints::{EndpointSetup, LogFile};
        use aqmlab_tcp::Stats;
        use bytes::Bytes;
        use $proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig, $Bbr};
        use $proto::{
            Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
            EcnCodepoint, Endpoint, EndpointConfig, StreamEvent, StreamId, Transmit,
            TransportConfig, VarInt,
        };

        use crate::own::Own;
        use crate::params::{Controller, QuicParams};
        use crate::stack::{Datagrams, Event, Stack};

        /// Connection IDs that count up from the flow's seed.
        struct Counter(u64);

        impl ConnectionIdGenerator for Counter {
            fn generate_cid(&mut self) -> ConnectionId {
                self.0 = self.0.wrapping_add(1);
                ConnectionId::new(&self.0.to_be_bytes())
            }
            fn cid_len(&self) -> usize {
                8
            }
            fn cid_lifetime(&self) -> Option<Duration> {
                None
            }
        }

        /// The time of day, for the age of tokens: it stands still.
        struct Midnight;

        impl $proto::TimeSource for Midnight {
            fn now(&self) -> SystemTime {
                SystemTime::UNIX_EPOCH
            }
        }

        fn factory(
            params: &QuicParams,
            own: Option<&Own>,
        ) -> Arc<dyn ControllerFactory + Send + Sync> {
            if let Some(Own::$Name(_, factory)) = own {
                return Arc::clone(factory);
            }
            match params.controller {
                Controller::NewReno => controller!(NewRenoConfig, params),
                Controller::Cubic => controller!(CubicConfig, params),
                Controller::Bbr | Controller::Bbr3 => controller!($Bbr, params),
            }
        }

        /// One end of a connection of the crate.
        pub struct $Name {
            endpoint: Endpoint,
            connection: Option<(ConnectionHandle, Connection)>,
            transport: Arc<TransportConfig>,
            sessions: Sessions,
            /// Makes the transport parameters of a connection that writes a log.
            logged: Option<Box<dyn Fn() -> TransportConfig + Send + Sync>>,
            seed: u64,
            segments: usize,
            peer: SocketAddr,
        }

        /// The addresses of client and server (RFC 5737).
        fn address(is_client: bool) -> SocketAddr {
            let (host, port) = if is_client { (1, 50_000) } else { (2, 443) };
            (Ipv4Addr::new(192, 0, 2, host), port).into()
        }

        fn transport(params: &QuicParams, own: Option<&Own>) -> TransportConfig {
            let window = |bytes: aqmlab_core::Bytes| VarInt::from_u32(bytes.get() as u32);
            let mut config = TransportConfig::default();
            config
                .initial_rtt(Duration::from_nanos(params.initial_rtt.as_nanos()))
                .initial_mtu(params.initial_mtu.get() as u16)
                .packet_threshold(params.packet_threshold as u32)
                .time_threshold(params.time_threshold as f32)
                .persistent_congestion_threshold(params.persistent_congestion_threshold as u32)
                .enable_segmentation_offload(params.segments > 1)
                .stream_receive_window(window(params.stream_window))
                .receive_window(params.receive_window.map_or(VarInt::MAX, window))
                .send_window(params.send_window.get())
                .datagram_send_buffer_size(params.datagram_buffer.get() as usize)
                .max_concurrent_uni_streams(VarInt::from_u32(params.max_streams as u32))
                .max_idle_timeout(
                    params.idle_timeout.and_then(|timeout| {
                        Duration::from_nanos(timeout.as_nanos()).try_into().ok()
                    }),
                )
                .mtu_discovery_config(params.max_mtu.map(|mtu| {
                    let mut config = $proto::MtuDiscoveryConfig::default();
                    config.upper_bound(mtu.get() as u16);
                    config
                }));
            if params.ack_eliciting_threshold.is_some() || params.max_ack_delay.is_some() {
                let mut config_of_acks = $proto::AckFrequencyConfig::default();
                if let Some(packets) = params.ack_eliciting_threshold {
                    config_of_acks.ack_eliciting_threshold(VarInt::from_u32(packets as u32));
                }
                let delay =
                    params.max_ack_delay.map(|delay| Duration::from_nanos(delay.as_nanos()));
                config_of_acks.max_ack_delay(delay);
                config.ack_frequency_config(Some(config_of_acks));
            }
            config.congestion_controller_factory(factory(params, own));
            config
        }

        #[cfg(not(feature = "qlog"))]
        fn write_log(_: &mut TransportConfig, _: String, _: LogFile) {}

        /// TLS sessions of client and server.
        type Sessions = (Arc<dyn ClientConfig>, Arc<dyn ServerConfig>);

        fn sessions(own: Option<&Own>) -> Sessions {
            #[cfg(feature = "tls")]
            if let Some(Own::Tls(_)) = own {
                use $proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
                let (client, server) = crate::rustls::sessions();
                let client = QuicClientConfig::try_from(client).expect("TLS 1.3 is offered");
                let server = QuicServerConfig::try_from(server).expect("TLS 1.3 is offered");
                return (Arc::new(client), Arc::new(server));
            }
            let _ = own;
            (Arc::new(Null), Arc::new(Null))
        }

        fn datagrams(transmit: Transmit) -> Datagrams {
            Datagrams {
                size: transmit.size,
                segment: transmit.segment_size.unwrap_or(transmit.size),
                ecn: transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)),
            }
        }

        impl $Name {
            /// Returns the transport parameters of the connection, which opens now.
            fn opened(&self) -> Arc<TransportConfig> {
                let logged = self.logged.as_ref().map(|make| Arc::new(make()));
                logged.unwrap_or_else(|| Arc::clone(&self.transport))
            }

            fn server(&self, transport: Arc<TransportConfig>) -> Arc<$proto::ServerConfig> {
                let crypto = Arc::clone(&self.sessions.1);
                let mut server = $proto::ServerConfig::new(crypto, Arc::new(Null));
                server.transport_config(transport).time_source(Arc::new(Midnight));
                Arc::new(server)
            }

            fn connection(&mut self) -> Option<&mut Connection> {
                self.connection.as_mut().map(|(_, connection)| connection)
            }

            /// Exchanges events between the endpoint and the connection.
            fn exchange(&mut self) {
                let Some((handle, connection)) = &mut self.connection else { return };
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(*handle, event) {
                        connection.handle_event(event);
                    }
                }
            }
        }

        fn stream_of(id: u64) -> StreamId {
            VarInt::from_u64(id)
                .map_or(StreamId::new($proto::Side::Client, Dir::Uni, 0), StreamId::from)
        }

        impl Stack for $Name {
            fn new(
                params: &QuicParams,
                own: Option<&Own>,
                setup: &EndpointSetup,
                is_client: bool,
            ) -> Self {
                let seed = if is_client { setup.seed } else { setup.seed ^ (1 << 63) };
                let mut config = EndpointConfig::new(Arc::new(Null));
                let mut bytes = [0; 32];
                bytes[..8].copy_from_slice(&seed.to_le_bytes());
                config.rng_seed(Some(bytes));
                config.cid_generator(cid_factory(move || Box::new(Counter(seed)) as _));
                let payload = params.max_mtu.unwrap_or(params.initial_mtu).get().max(1472) as u16;
                config.max_udp_payload_size(payload).expect("the range of `max_mtu` is checked");
                let log = setup.log.clone().filter(|_| cfg!(feature = "qlog"));
                let logged = log.map(|log| -> Box<dyn Fn() -> _ + Send + Sync> {
                    let (params, own) = (params.clone(), own.cloned());
                    let end = if is_client { "client" } else { "server" };
                    Box::new(move || {
                        let mut config = transport(&params, own.as_ref());
                        write_log(&mut config, format!("{} ({end})", log.name()), log.open(end));
                        config
                    })
                });
                let mut made = $Name {
                    endpoint: endpoint(Arc::new(config), None),
                    connection: None,
                    transport: Arc::new(transport(params, own)),
                    sessions: sessions(own),
                    logged,
                    seed,
                    segments: params.segments as usize,
                    peer: address(!is_client),
                };
                if !is_client {
                    let server = made.server(Arc::clone(&made.transport));
                    made.endpoint.set_server_config(Some(server));
                }
                made
            }

            fn connect(&mut self, now: Instant) -> Result<(), String> {
                let mut config = $proto::ClientConfig::new(Arc::clone(&self.sessions.0));
                let seed = self.seed;
                config.transport_config(self.opened()).initial_dst_cid_provider(Arc::new(
                    move || ConnectionId::new(&seed.to_be_bytes()),
                ));
                let made = self.endpoint.connect(now, config, self.peer, "server.example");
                self.connection = Some(made.map_err(|error| error.to_string())?);
                Ok(())
            }

            fn handle(
                &mut self,
                now: Instant,
                ecn: Ecn,
                data: BytesMut,
                buffer: &mut Vec<u8>,
            ) -> Option<Datagrams> {
                let codepoint = EcnCodepoint::from_bits(ecn as u8);
                let answer =
                    match handle(&mut self.endpoint, now, self.peer, codepoint, data, buffer)? {
                        DatagramEvent::ConnectionEvent(_, event) => {
                            self.connection()?.handle_event(event);
                            None
                        }
                        DatagramEvent::NewConnection(incoming) => {
                            let logged = self.logged.is_some().then(|| self.server(self.opened()));
                            match self.endpoint.accept(incoming, now, buffer, logged) {
                                Ok(made) => {
                                    self.connection = Some(made);
                                    None
                                }
                                Err(error) => error.response,
                            }
                        }
                        DatagramEvent::Response(transmit) => Some(transmit),
                    };
                self.exchange();
                answer.map(datagrams)
            }

            fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Datagrams> {
                let segments = self.segments;
                let made = transmit(self.connection()?, now, segments, buffer).map(datagrams);
                self.exchange();
                made
            }

            fn timeout(&mut self) -> Option<Instant> {
                self.connection()?.poll_timeout()
            }

            fn on_timeout(&mut self, now: Instant) {
                if let Some(connection) = self.connection() {
                    connection.handle_timeout(now);
                }
                self.exchange();
            }

            fn event(&mut self) -> Option<Event> {
                Some(match self.connection()?.poll()? {
                    $proto::Event::Connected => Event::Connected,
                    $proto::Event::ConnectionLost { reason } => Event::Lost(reason.to_string()),
                    $proto::Event::Stream(event) => match event {
                        StreamEvent::Opened { .. } => Event::Opened,
                        StreamEvent::Readable { id } => Event::Readable(id.into()),
                        StreamEvent::Writable { .. } | StreamEvent::Available { .. } => {
                            Event::Writable
                        }
                        StreamEvent::Finished { .. } => Event::Finished,
                        StreamEvent::Stopped { .. } => Event::Other,
                    },
                    _ => Event::Other,
                })
            }

            fn open(&mut self) -> Option<u64> {
                self.connection()?.streams().open(Dir::Uni).map(u64::from)
            }

            fn accept(&mut self) -> Option<u64> {
                self.connection()?.streams().accept(Dir::Uni).map(u64::from)
            }

            fn write(&mut self, stream: u64, data: Bytes) -> usize {
                let Some(connection) = self.connection() else { return 0 };
                write(&mut connection.send_stream(stream_of(stream)), data)
            }

            fn finish(&mut self, stream: u64) -> bool {
                let Some(connection) = self.connection() else { return false };
                connection.send_stream(stream_of(stream)).finish().is_ok()
            }

            fn read(&mut self, stream: u64) -> Result<(u64, bool), String> {
                let Some(connection) = self.connection() else { return Ok((0, false)) };
                let mut stream = connection.recv_stream(stream_of(stream));
                let mut received = 0;
                // A stream that was read to its end is closed.
                let Ok(mut chunks) = stream.read(true) else { return Ok((0, true)) };
                let read = loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => received += chunk.bytes.len() as u64,
                        Ok(None) => break Ok((received, true)),
                        Err($proto::ReadError::Blocked) => break Ok((received, false)),
                        Err(error) => break Err(error.to_string()),
                    }
                };
                // The window update, if one is due, is sent with the next datagrams.
                let _ = chunks.finalize();
                read
            }

            fn send_datagram(&mut self, data: Bytes) -> Result<(), String> {
                let Some(connection) = self.connection() else { return Ok(()) };
                connection.datagrams().send(data, true).map_err(|error| error.to_string())
            }

            fn datagram(&mut self) -> Option<Bytes> {
                self.connection()?.datagrams().recv()
            }

            fn close(&mut self, now: Instant) {
                if let Some(connection) = self.connection() {
                    connection.close(now, VarInt::from_u32(0), Bytes::new());
                }
            }

            fn counts(&mut self) -> Stats {
                self.connection().map_or_else(Stats::default, counts)
            }

            fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
                if let Some((_, connection)) = &self.connection {
                    observe(connection, see);
                }
            }
        }
    };
}
