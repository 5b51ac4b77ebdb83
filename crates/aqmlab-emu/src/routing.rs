//! Route selection among several hosts: by sending host and destination address.

use crate::addresses::Block;

/// Index for no route; the data path counts such packets.
const NOWHERE: u16 = u16::MAX;
/// Number of address blocks.
const BLOCKS: usize = 128;

/// Route of packets from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Sending host, by index.
    pub from: usize,
    /// Receiving host, by index.
    pub to: usize,
    /// Links, by index; at least one.
    pub links: Vec<u32>,
}

/// Hosts and the routes between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Number of hosts.
    pub hosts: usize,
    /// Routes between the hosts.
    pub ways: Vec<Way>,
}

/// Looks up the route of a packet.
pub struct Router {
    /// By host, and by the block of the destination: the index of the route.
    ways: Vec<[u16; BLOCKS]>,
}

impl Router {
    /// Creates the router of a topology. Host `n` has block `n`.
    pub fn new(topology: &Topology) -> Self {
        let mut ways = vec![[NOWHERE; BLOCKS]; topology.hosts];
        for (index, way) in topology.ways.iter().enumerate() {
            ways[way.from][way.to] = index as u16;
        }
        Router { ways }
    }

    /// Returns the route of a packet from this host.
    pub fn route(&self, host: usize, packet: &[u8]) -> u16 {
        // Not an IP packet: it is rejected on any route.
        if !matches!(packet.first().map(|byte| byte >> 4), Some(4 | 6)) {
            return self.ways[host].iter().copied().min().unwrap_or(NOWHERE);
        }
        Block::of_packet(packet).map_or(NOWHERE, |block| self.ways[host][block])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_v4(to: std::net::Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&to.octets());
        packet
    }

    #[test]
    fn packets_go_by_sender_and_destination() {
        let way = |from, to| Way { from, to, links: vec![0] };
        let router =
            Router::new(&Topology { hosts: 3, ways: vec![way(0, 2), way(1, 2), way(2, 0)] });
        let block = |number| Block::ALL.inner(number).unwrap();
        let to_last = packet_v4(block(2).near().0);
        assert_eq!([0, 1, 2].map(|host| router.route(host, &to_last)), [0, 1, NOWHERE]);
        assert_eq!(router.route(2, &packet_v4(block(0).near().0)), 2);
        assert_eq!(router.route(2, &packet_v4(block(1).near().0)), NOWHERE);
        assert_eq!(router.route(0, &packet_v4([8, 8, 8, 8].into())), NOWHERE);
        let mut six = vec![0; 40];
        six[0] = 0x60;
        six[24..40].copy_from_slice(&block(2).near().1.octets());
        assert_eq!(router.route(1, &six), 1);
        six[24] = 0x20;
        assert_eq!(router.route(1, &six), NOWHERE);
    }
}
