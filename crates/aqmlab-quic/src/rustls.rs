//! True TLS sessions, to compare them with those without cryptography.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Certificate of `server.example`, self-signed, valid from 2000 to 2099, and padded: the server's
/// flight is as long as that without cryptography (noq sends its first data later after a longer
/// flight: docs/quic.md).
const CERTIFICATE: &[u8] = include_bytes!("certificate/certificate.der");
const KEY: &[u8] = include_bytes!("certificate/key.der");

/// Returns the sessions of a client and of the server that it trusts, with the cipher suite and
/// without the tickets that sessions without cryptography stand for.
pub fn sessions() -> (ClientConfig, ServerConfig) {
    let certificate = CertificateDer::from(CERTIFICATE);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("the certificate is well-formed");
    let cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
    let provider = Arc::new(CryptoProvider { cipher_suites, ..default_provider() });
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivatePkcs8KeyDer::from(KEY).into())
        .expect("the key is that of the certificate");
    server.send_tls13_tickets = 0;
    (client, server)
}

#[cfg(test)]
mod tests {
    use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};

    use super::*;
    use crate::tls::{CLIENT_FINISHED, SERVER_FLIGHT, SERVER_HELLO};

    /// Passes what one end has to send to the other. Returns its bytes.
    fn pass(from: &mut Connection, to: &mut Connection) -> usize {
        let mut flight = Vec::new();
        from.write_hs(&mut flight);
        to.read_hs(&flight).unwrap();
        flight.len()
    }

    #[test]
    fn flights_are_as_long_as_without_cryptography() {
        let (client, server) = sessions();
        // As long as those of noq.
        let parameters = vec![0; 107];
        let name = "server.example".try_into().unwrap();
        let v1 = Version::V1;
        let client = ClientConnection::new(Arc::new(client), v1, name, parameters.clone()).unwrap();
        let server = ServerConnection::new(Arc::new(server), v1, parameters).unwrap();
        let (mut client, mut server) = (Connection::from(client), Connection::from(server));
        pass(&mut client, &mut server);
        assert_eq!(pass(&mut server, &mut client), SERVER_HELLO);
        // Signatures differ by a few bytes.
        let flight = pass(&mut server, &mut client);
        assert!(flight.abs_diff(SERVER_FLIGHT) < 32, "{flight} bytes");
        assert_eq!(pass(&mut client, &mut server), CLIENT_FINISHED);
        assert_eq!(pass(&mut server, &mut client), 0);
    }
}
