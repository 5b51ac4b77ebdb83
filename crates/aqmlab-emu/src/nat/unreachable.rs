//! ICMP errors to the command about datagrams that did not reach their destination.
//!
//! # Sources
//! RFC 792; RFC 1191, section 4 (fragmentation needed); RFC 4443, sections 3.1 and 3.2.
//!
//! # Differences
//! 1. An error quotes the headers of the datagram only. The checksum of its UDP header is zero.
//! 2. The error is about the last datagram sent to the destination.

use std::io::{Error, ErrorKind};
use std::net::{Ipv6Addr, SocketAddrV6};

use crate::packet::checksum::{fold, sum};
use crate::packet::wire::{ICMP, ICMP_V6, UDP};
use crate::sys::socket::is_too_big;

/// Size of a UDP header.
const UDP_HEADER: usize = 8;

/// Reason why a datagram was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Port,
    Host,
    Network,
    /// The datagram exceeds the path MTU, given in bytes.
    TooBig(u16),
}

impl Problem {
    /// Returns the problem that a socket reported; `mtu` returns the path MTU of that socket.
    pub fn of(error: &Error, mtu: impl FnOnce() -> Option<u16>) -> Option<Self> {
        match error.kind() {
            ErrorKind::ConnectionRefused => Some(Problem::Port),
            ErrorKind::HostUnreachable => Some(Problem::Host),
            ErrorKind::NetworkUnreachable => Some(Problem::Network),
            _ if is_too_big(error) => mtu().map(Problem::TooBig),
            _ => None,
        }
    }

    /// Returns type, code and MTU of the message.
    fn numbers(self, is_v6: bool) -> (u8, u8, u16) {
        match (self, is_v6) {
            (Problem::Network, false) => (3, 0, 0),
            (Problem::Host, false) => (3, 1, 0),
            (Problem::Port, false) => (3, 3, 0),
            (Problem::TooBig(mtu), false) => (3, 4, mtu),
            (Problem::Network, true) => (1, 0, 0),
            (Problem::Host, true) => (1, 3, 0),
            (Problem::Port, true) => (1, 4, 0),
            (Problem::TooBig(mtu), true) => (2, 0, mtu),
        }
    }
}

/// Datagram that was not delivered.
#[derive(Clone, Copy, Debug)]
pub struct UnreachableDatagram {
    /// Sender.
    pub from: SocketAddrV6,
    /// Destination.
    pub to: (Ipv6Addr, u16),
    /// Size of the payload.
    pub size: usize,
}

/// Builds the IP packet that reports `problem` to the sender. The destination reports a closed
/// port, `router` (its IPv4 address mapped to IPv6, and its IPv6 address) everything else.
pub fn packet(problem: Problem, about: &UnreachableDatagram, router: [Ipv6Addr; 2]) -> Vec<u8> {
    let length = UDP_HEADER + about.size;
    let ports = [about.from.port(), about.to.1, length as u16, 0];
    let udp = ports.map(u16::to_be_bytes).concat();
    let host = about.from.ip();
    let is_v6 = host.to_ipv4_mapped().is_none();
    let reporter = match problem {
        Problem::Port => about.to.0,
        _ => router[usize::from(is_v6)],
    };
    let (kind, code, mtu) = problem.numbers(is_v6);
    let [high, low] = mtu.to_be_bytes();
    let mut message = vec![kind, code, 0, 0, 0, 0, high, low];
    message.extend(header(UDP, length, host, &about.to.0));
    message.extend(udp);
    let mut total = sum(&message);
    if is_v6 {
        // Pseudo-header (RFC 8200, section 8.1).
        total += sum(&reporter.octets()) + sum(&host.octets());
        total += message.len() as u64 + u64::from(ICMP_V6);
    }
    message[2..4].copy_from_slice(&(!fold(total)).to_be_bytes());
    let protocol = if is_v6 { ICMP_V6 } else { ICMP };
    [header(protocol, message.len(), &reporter, host), message].concat()
}

/// Builds the IP header of a packet with `load` bytes of payload: of IPv4 if both addresses are.
fn header(protocol: u8, load: usize, from: &Ipv6Addr, to: &Ipv6Addr) -> Vec<u8> {
    let (Some(from), Some(to)) = (from.to_ipv4_mapped(), to.to_ipv4_mapped()) else {
        let [high, low] = (load as u16).to_be_bytes();
        return [&[0x60, 0, 0, 0, high, low, protocol, 64], &from.octets()[..], &to.octets()]
            .concat();
    };
    let [high, low] = ((20 + load) as u16).to_be_bytes();
    let first = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    let mut header = [&first[..], &from.octets(), &to.octets()].concat();
    let checksum = !fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: [&str; 2] = ["::ffff:10.0.0.9", "fd00::9"];

    fn reported(problem: Problem, from: &str, to: &str) -> Vec<u8> {
        let from = SocketAddrV6::new(from.parse().unwrap(), 5000, 0, 0);
        let about = UnreachableDatagram { from, to: (to.parse().unwrap(), 9), size: 100 };
        packet(problem, &about, ROUTER.map(|each| each.parse().unwrap()))
    }

    /// Form and checksums by RFC 792 and RFC 1191.
    #[test]
    fn an_error_of_ipv4_quotes_the_datagram() {
        let packet = reported(Problem::TooBig(1300), "::ffff:10.0.0.1", "::ffff:10.0.0.2");
        assert_eq!(packet.len(), 20 + 8 + 28);
        assert_eq!((packet[9], &packet[12..20]), (1, &[10, 0, 0, 9, 10, 0, 0, 1][..]));
        assert_eq!((packet[20], packet[21], &packet[26..28]), (3, 4, &[5, 20][..]));
        let quoted = &packet[28..];
        assert_eq!(&quoted[12..20], &[10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!((&quoted[2..4], &quoted[20..26]), (&[0, 128][..], &[19, 136, 0, 9, 0, 108][..]));
        for part in [&packet[..20], &packet[20..], &quoted[..20]] {
            assert_eq!(fold(sum(part)), 0xFFFF);
        }
        let packet = reported(Problem::Port, "::ffff:10.0.0.1", "::ffff:10.0.0.2");
        assert_eq!((&packet[12..16], packet[20], packet[21]), (&[10, 0, 0, 2][..], 3, 3));
    }

    /// Form and checksum by RFC 4443, section 2.3.
    #[test]
    fn an_error_of_ipv6_has_the_checksum_of_its_addresses() {
        let packet = reported(Problem::Port, "fd00::1", "fd00::2");
        assert_eq!((packet.len(), packet[6], packet[40], packet[41]), (40 + 8 + 48, 58, 1, 4));
        let pseudo = sum(&packet[8..40]) + (packet.len() as u64 - 40) + 58;
        assert_eq!(fold(pseudo + sum(&packet[40..])), 0xFFFF);
        let packet = reported(Problem::TooBig(1300), "fd00::1", "fd00::2");
        assert_eq!((packet[40], packet[23], &packet[46..48]), (2, 9, &[5, 20][..]));
    }
}
