//! True TLS sessions, to compare them with those without cryptography.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Certificate of `server.example`, self-signed, valid from 2000 to 2099, and padded to the size of
/// a chain of two.
const CERTIFICATE: &[u8] = include_bytes!("certificate/certificate.der");
const KEY: &[u8] = include_bytes!("certificate/key.der");

/// Returns the sessions of a client and of the server that it trusts.
pub fn sessions() -> (ClientConfig, ServerConfig) {
    let certificate = CertificateDer::from(CERTIFICATE);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("the certificate is well-formed");
    let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivatePkcs8KeyDer::from(KEY).into())
        .expect("the key is that of the certificate");
    (client, server)
}
