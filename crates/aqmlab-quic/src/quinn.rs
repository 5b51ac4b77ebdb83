//! The stack of `quinn-proto` 0.11.

#[cfg(feature = "qlog")]
use quinn_proto::QlogConfig;
use quinn_proto::crypto::{AeadKey, HandshakeTokenKey};
use quinn_proto::{SendStream, ServerConfig as Server};

null_crypto!(quinn_proto, path: (), cid: &ConnectionId, this: Arc<Self>);
stack!(Quinn, quinn_proto, BbrConfig);

impl HandshakeTokenKey for Null {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Null)
    }
}

impl AeadKey for Null {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend([0; crate::tls::TAG]);
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let end = data.len().checked_sub(crate::tls::TAG).ok_or(CryptoError)?;
        Ok(&mut data[..end])
    }
}

fn cid_factory<F>(make: F) -> F
where
    F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
{
    make
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<Server>>) -> Endpoint {
    Endpoint::new(config, server, true, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, None, ecn, data, buffer)
}

fn transmit(
    connection: &mut Connection,
    now: Instant,
    segments: usize,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, segments, buffer)
}

fn write(stream: &mut SendStream<'_>, data: Bytes) -> usize {
    stream.write_chunks(&mut [data]).map_or(0, |written| written.bytes)
}

#[cfg(feature = "qlog")]
fn write_log(config: &mut TransportConfig, title: String, file: LogFile) {
    let mut log = QlogConfig::default();
    log.writer(file).title(Some(title)).start_time(crate::clock::instant(aqmlab_core::Time::ZERO));
    config.qlog_stream(log.into_stream());
}

fn counts(connection: &mut Connection) -> Stats {
    let path = connection.stats().path;
    Stats {
        segments_sent: path.sent_packets,
        retransmissions: path.lost_packets,
        fast_retransmits: path.congestion_events,
        ..Stats::default()
    }
}

fn observe(connection: &Connection, see: &mut dyn FnMut(&'static str, f64)) {
    see("smoothed_rtt_s", connection.rtt().as_secs_f64());
    let controller = connection.congestion_state();
    see("cwnd_bytes", controller.window() as f64);
    if let Some(rate) = controller.metrics().pacing_rate {
        see("pacing_rate_bps", rate as f64);
    }
}
