//! Ways of single flows behind the last link of their paths: a delay each,
//! and nothing else. With these, flows over the same links have round-trip
//! times of their own.
//!
//! In paths they have numbers after those of the links.

use std::collections::VecDeque;

use aqmlab_core::{Sampler, Span, Stream, Time};

use crate::events::{Event, EventQueue};
use crate::packet::SimPacket;
use crate::scenario::Scenario;

/// The ways of all groups that have some.
pub(crate) struct Accesses {
    /// The number of the first.
    links: u32,
    ways: Vec<Access>,
    /// The number of the first of each group, if it has some.
    groups: Vec<Option<u32>>,
}

/// One way. As all packets take the same time, they keep their order.
struct Access {
    delay: Span,
    packets: VecDeque<(Time, SimPacket)>,
}

impl Accesses {
    /// Draws the delays: of each group with the stream `flows.NAME.access`.
    pub fn draw(scenario: &Scenario, stream: impl Fn(&str) -> Stream) -> Self {
        let links = scenario.links.len() as u32;
        let mut ways = Vec::new();
        let mut groups = Vec::new();
        for group in &scenario.flows {
            let has_some = group.access_delay.ceiling() > 0.0;
            groups.push(has_some.then_some(links + ways.len() as u32));
            if has_some {
                let path = format!("flows.{}.access", group.name);
                let mut delays = Sampler::new(&group.access_delay, stream(&path));
                let way = |_| Access { delay: delays.draw(), packets: VecDeque::new() };
                ways.extend((0..group.count).map(way));
            }
        }
        Accesses { links, ways, groups }
    }

    /// The links of a path, and the way of this member of a group behind them.
    pub fn path(&self, links: &[u32], group: u32, member: u32) -> Box<[u32]> {
        let own = self.groups[group as usize].map(|first| first + member);
        links.iter().copied().chain(own).collect()
    }

    /// A packet comes from the last link.
    #[cold]
    pub fn arrive(&mut self, number: u32, packet: SimPacket, now: Time, events: &mut EventQueue) {
        let way = &mut self.ways[(number - self.links) as usize];
        let arrival = now + way.delay;
        if way.packets.is_empty() {
            events.push(arrival, Event::Delivery(number));
        }
        way.packets.push_back((arrival, packet));
    }

    /// Takes the packet that arrives now.
    #[cold]
    pub fn deliver(&mut self, number: u32, events: &mut EventQueue) -> Option<SimPacket> {
        let way = &mut self.ways[(number - self.links) as usize];
        let (_, packet) = way.packets.pop_front()?;
        if let Some((time, _)) = way.packets.front() {
            events.push(*time, Event::Delivery(number));
        }
        Some(packet)
    }
}
