//! The stack of `noq-proto` 1.4.

use std::num::NonZeroUsize;
#[cfg(feature = "qlog")]
use std::sync::Mutex;

use noq_proto::crypto::HandshakeTokenKey;
use noq_proto::{FourTuple, PathId, SendStream, ServerConfig as Server};
#[cfg(feature = "qlog")]
use noq_proto::{QlogConfig, QlogFactory};

null_crypto!(noq_proto, path: (PathId), cid: ConnectionId, this: &Self);
stack!(Noq, noq_proto, Bbr3Config);

impl HandshakeTokenKey for Null {
    fn seal(&self, _: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend([0; crate::tls::TAG]);
        Ok(())
    }
    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let end = data.len().checked_sub(crate::tls::TAG).ok_or(CryptoError)?;
        Ok(&data[..end])
    }
}

fn cid_factory<F>(make: F) -> Arc<dyn Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync>
where
    F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
{
    Arc::new(make)
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<Server>>) -> Endpoint {
    Endpoint::new(config, server, true)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::from_remote(peer), ecn, data, buffer)
}

fn transmit(
    connection: &mut Connection,
    now: Instant,
    segments: usize,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::new(segments)?, buffer)
}

fn write(stream: &mut SendStream<'_>, data: Bytes) -> usize {
    stream.write_chunks(&mut &mut [data][..]).unwrap_or(0)
}

/// Log of one connection, which takes its file.
#[cfg(feature = "qlog")]
struct OneLog(Mutex<Option<QlogConfig>>);

#[cfg(feature = "qlog")]
impl QlogFactory for OneLog {
    fn for_connection(
        &self,
        _: Side,
        _: SocketAddr,
        _: ConnectionId,
        _: Instant,
    ) -> Option<QlogConfig> {
        self.0.lock().ok()?.take()
    }
}

#[cfg(feature = "qlog")]
fn write_log(config: &mut TransportConfig, title: String, file: LogFile) {
    let mut log = QlogConfig::new(file);
    log.title(Some(title)).start_time(crate::clock::instant(aqmlab_core::Time::ZERO));
    config.qlog_factory(Arc::new(OneLog(Mutex::new(Some(log)))));
}

fn counts(connection: &mut Connection) -> Stats {
    let path = connection.path_stats(PathId::ZERO).unwrap_or_default();
    Stats {
        segments_sent: path.sent_packets,
        retransmissions: path.lost_packets,
        fast_retransmits: path.congestion_events,
        undone: path.spurious_congestion_events,
        ..Stats::default()
    }
}

fn observe(connection: &Connection, see: &mut dyn FnMut(&'static str, f64)) {
    if let Some(rtt) = connection.rtt(PathId::ZERO) {
        see("smoothed_rtt_s", rtt.as_secs_f64());
    }
    let Some(controller) = connection.congestion_state(PathId::ZERO) else { return };
    let metrics = controller.metrics();
    see("cwnd_bytes", controller.window() as f64);
    if let Some(rate) = metrics.pacing_rate {
        see("pacing_rate_bps", 8.0 * rate as f64);
    }
    if let Some(bandwidth) = metrics.bandwidth_estimate {
        see("bandwidth_bps", bandwidth as f64);
    }
}
