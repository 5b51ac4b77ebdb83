//! A handshake with the messages and sizes of TLS 1.3 (RFC 8446, RFC 9001) and no cryptography.
//!
//! # Differences from TLS 1.3
//! 1. A message is a length, the length of its body, the body and padding. The only bodies are the
//!    transport parameters, in ClientHello and EncryptedExtensions.
//! 2. Keys are null: header and packet protection leave the bytes as they are, and the tag is 16
//!    zeros. Tags are not verified: the simulator corrupts no packets.
//! 3. There is no 0-RTT, no resumption and no key update.

/// Bytes of a ClientHello with one key share and the extensions of QUIC.
const CLIENT_HELLO: usize = 280;
/// Bytes of a ServerHello with one key share.
pub const SERVER_HELLO: usize = 90;
/// Bytes from EncryptedExtensions to Finished, with a certificate chain of 1.8 kB.
pub const SERVER_FLIGHT: usize = 2100;
/// Bytes of the client's Finished with SHA-256.
pub const CLIENT_FINISHED: usize = 36;
/// Bytes of the two lengths at the start of a message.
const PREFIX: usize = 8;

/// Bytes of an AEAD tag (RFC 9001, section 5.3).
pub const TAG: usize = 16;

/// Progress of one end's handshake, without the types of a stack.
pub struct Handshake {
    is_client: bool,
    /// Flights written.
    written: u8,
    /// Messages read.
    read: u8,
    input: Vec<u8>,
    /// Encoded transport parameters of this end.
    parameters: Vec<u8>,
}

/// Keys that become available when a flight has been written.
pub enum Level {
    /// None: the flight is of the Initial level.
    None,
    /// Keys of the next level.
    Next,
}

impl Handshake {
    /// Starts a handshake with this end's encoded transport parameters.
    pub fn new(is_client: bool, parameters: Vec<u8>) -> Self {
        Handshake { is_client, written: 0, read: 0, input: Vec::new(), parameters }
    }

    /// True if messages of the peer are missing: each end reads two.
    pub fn is_handshaking(&self) -> bool {
        self.read < 2
    }

    /// Reads bytes of CRYPTO frames; returns the bodies of the messages that they complete.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.input.extend_from_slice(bytes);
        let mut bodies = Vec::new();
        while let Some([size, body]) = self.lengths()
            && self.input.len() >= size
        {
            if body > 0 {
                bodies.push(self.input[PREFIX..PREFIX + body].to_vec());
            }
            self.input.drain(..size);
            self.read += 1;
        }
        bodies
    }

    fn lengths(&self) -> Option<[usize; 2]> {
        let prefix = self.input.first_chunk::<PREFIX>()?;
        let [a, b, c, d, e, f, g, h] = *prefix;
        Some([[a, b, c, d], [e, f, g, h]].map(|bytes| u32::from_be_bytes(bytes) as usize))
    }

    /// Writes the next flight that is due.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Level {
        let parameters = std::mem::take(&mut self.parameters);
        let mut flight = |size: usize, body: &[u8]| {
            let size = size.max(PREFIX + body.len());
            let end = buffer.len() + size;
            buffer.extend((size as u32).to_be_bytes());
            buffer.extend((body.len() as u32).to_be_bytes());
            buffer.extend_from_slice(body);
            buffer.resize(end, 0);
        };
        let level = match (self.is_client, self.written, self.read) {
            (true, 0, _) => {
                flight(CLIENT_HELLO, &parameters);
                Level::None
            }
            // Handshake keys follow from the ServerHello.
            (true, 1, 1..) => Level::Next,
            (true, 2, 2..) => {
                flight(CLIENT_FINISHED, &[]);
                Level::Next
            }
            (false, 0, 1..) => {
                flight(SERVER_HELLO, &[]);
                self.parameters = parameters;
                Level::Next
            }
            (false, 1, _) => {
                flight(SERVER_FLIGHT, &parameters);
                Level::Next
            }
            _ => {
                self.parameters = parameters;
                return Level::None;
            }
        };
        self.written += 1;
        level
    }
}

/// Implements the crypto traits that the two stacks have in common for the types `Null` and
/// `Session` of the module: `$path` is the type of the additional argument of packet keys, `$cid`
/// that of connection IDs, `$this` the receiver of configurations.
macro_rules! null_crypto {
    ($proto:ident, path: ($($path:ty)?), cid: $cid:ty, this: $this:ty) => {
        use bytes::BytesMut;
        use $proto::crypto::{
            ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair,
            Keys, PacketKey, ServerConfig, UnsupportedVersion,
        };
        use $proto::transport_parameters::TransportParameters;
        use $proto::{ConnectError, Side, TransportError};

        /// Null keys, and configurations of null sessions.
        pub struct Null;

        impl PacketKey for Null {
            fn encrypt(&self, $(_: $path,)? _: u64, buffer: &mut [u8], _: usize) {
                let tag = buffer.len() - $crate::tls::TAG;
                buffer[tag..].fill(0);
            }
            fn decrypt(
                &self,
                $(_: $path,)?
                _: u64,
                _: &[u8],
                payload: &mut BytesMut,
            ) -> Result<(), CryptoError> {
                let end = payload.len().checked_sub($crate::tls::TAG).ok_or(CryptoError)?;
                payload.truncate(end);
                Ok(())
            }
            fn tag_len(&self) -> usize {
                $crate::tls::TAG
            }
            // The limits of AES-128-GCM (RFC 9001, section 6.6) would force key updates.
            fn confidentiality_limit(&self) -> u64 {
                u64::MAX
            }
            fn integrity_limit(&self) -> u64 {
                u64::MAX
            }
        }

        impl HeaderKey for Null {
            fn decrypt(&self, _: usize, _: &mut [u8]) {}
            fn encrypt(&self, _: usize, _: &mut [u8]) {}
            fn sample_size(&self) -> usize {
                16
            }
        }

        impl HmacKey for Null {
            /// FNV-1a, repeated: reset tokens must differ, not be secret.
            fn sign(&self, data: &[u8], signature: &mut [u8]) {
                let mut hash = 0xcbf2_9ce4_8422_2325_u64;
                let mut add = |byte: u8| {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                    (hash >> 32) as u8
                };
                data.iter().for_each(|byte| _ = add(*byte));
                signature.iter_mut().for_each(|byte| *byte = add(0));
            }
            fn signature_len(&self) -> usize {
                32
            }
            fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
                let mut expected = vec![0; signature.len()];
                self.sign(data, &mut expected);
                if expected == signature { Ok(()) } else { Err(CryptoError) }
            }
        }

        fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
            KeyPair { local: Box::new(Null), remote: Box::new(Null) }
        }

        fn keys() -> Keys {
            let header = KeyPair { local: Box::new(Null) as _, remote: Box::new(Null) as _ };
            Keys { header, packet: packet_keys() }
        }

        /// A null TLS session.
        pub struct Session {
            handshake: $crate::tls::Handshake,
            side: Side,
            peer: Option<TransportParameters>,
        }

        impl Session {
            fn start(side: Side, own: &TransportParameters) -> Box<dyn $proto::crypto::Session> {
                // The stacks add a parameter of random size to be skipped (RFC 9000, section
                // 18.1). Reading drops it: encoded again, equal parameters have equal bytes.
                let (mut bytes, mut plain) = (Vec::new(), Vec::new());
                own.write(&mut bytes);
                match TransportParameters::read(!side, &mut &bytes[..]) {
                    Ok(own) => own.write(&mut plain),
                    Err(_) => plain = bytes,
                }
                let handshake = $crate::tls::Handshake::new(side.is_client(), plain);
                Box::new(Session { handshake, side, peer: None })
            }
        }

        impl $proto::crypto::Session for Session {
            fn initial_keys(&self, _: $cid, _: Side) -> Keys {
                keys()
            }
            fn handshake_data(&self) -> Option<Box<dyn std::any::Any>> {
                None
            }
            fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
                None
            }
            fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
                None
            }
            fn early_data_accepted(&self) -> Option<bool> {
                None
            }
            fn is_handshaking(&self) -> bool {
                self.handshake.is_handshaking()
            }
            fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
                for body in self.handshake.read(bytes) {
                    self.peer = Some(TransportParameters::read(self.side, &mut &body[..])?);
                }
                Ok(false)
            }
            fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
                Ok(self.peer.clone())
            }
            fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<Keys> {
                match self.handshake.write(buffer) {
                    $crate::tls::Level::None => None,
                    $crate::tls::Level::Next => Some(keys()),
                }
            }
            fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
                Some(packet_keys())
            }
            fn is_valid_retry(&self, _: $cid, _: &[u8], _: &[u8]) -> bool {
                true
            }
            fn export_keying_material(
                &self,
                output: &mut [u8],
                _: &[u8],
                _: &[u8],
            ) -> Result<(), ExportKeyingMaterialError> {
                output.fill(0);
                Ok(())
            }
        }

        impl ClientConfig for Null {
            fn start_session(
                self: $this,
                _: u32,
                _: &str,
                own: &TransportParameters,
            ) -> Result<Box<dyn $proto::crypto::Session>, ConnectError> {
                Ok(Session::start(Side::Client, own))
            }
        }

        impl ServerConfig for Null {
            fn initial_keys(&self, _: u32, _: $cid) -> Result<Keys, UnsupportedVersion> {
                Ok(keys())
            }
            fn retry_tag(&self, _: u32, _: $cid, _: &[u8]) -> [u8; 16] {
                [0; 16]
            }
            fn start_session(
                self: $this,
                _: u32,
                own: &TransportParameters,
            ) -> Box<dyn $proto::crypto::Session> {
                Session::start(Side::Server, own)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes each end's flights to the other; returns the sizes of the flights.
    fn exchange(client: &mut Handshake, server: &mut Handshake) -> Vec<(bool, usize)> {
        let mut flights = Vec::new();
        loop {
            let before = flights.len();
            for of_client in [true, false] {
                let (from, to) = match of_client {
                    true => (&mut *client, &mut *server),
                    false => (&mut *server, &mut *client),
                };
                loop {
                    let mut bytes = Vec::new();
                    let level = from.write(&mut bytes);
                    if !bytes.is_empty() {
                        flights.push((of_client, bytes.len()));
                        // A flight may arrive in pieces.
                        for piece in bytes.chunks(7) {
                            let bodies = to.read(piece);
                            assert!(bodies.iter().all(|body| body[0] == u8::from(!of_client)));
                        }
                    } else if matches!(level, Level::None) {
                        break;
                    }
                }
            }
            if flights.len() == before {
                return flights;
            }
        }
    }

    #[test]
    fn flights_have_the_sizes_of_tls() {
        let mut client = Handshake::new(true, vec![0; 60]);
        let mut server = Handshake::new(false, vec![1; 80]);
        let flights = exchange(&mut client, &mut server);
        assert_eq!(
            flights,
            [
                (true, CLIENT_HELLO),
                (false, SERVER_HELLO),
                (false, SERVER_FLIGHT),
                (true, CLIENT_FINISHED)
            ]
        );
        assert!(!client.is_handshaking() && !server.is_handshaking());
    }
}
