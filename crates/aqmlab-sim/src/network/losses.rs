//! Undelivered packets of each flow at a link, and the number of flows that lose simultaneously.
//!
//! A packet is dropped by the link's queue or lost on the link itself (its `loss`); both causes
//! are counted in the same way, SYNs included.
//!
//! A *loss event* begins with a dropped data packet and lasts for the longest
//! base round-trip time of the flows over the link: packets dropped within that time were sent
//! before any sender could detect the first drop.
//! The share of the flows that lose packets in one event is the global
//! synchronisation ratio of RFC 7928, section 2.4: of the flows that have data at that time.

use std::collections::BTreeMap;

use aqmlab_core::{Packet, Span, Time};

/// Undelivered packets of one flow, for one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Segments or datagrams, SYNs included.
    pub data: u64,
    /// Acknowledgements, SYN-ACKs included.
    pub acks: u64,
    /// SYNs and SYN-ACKs.
    pub syns: u64,
}

/// Undelivered packets of one flow, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowLosses {
    /// Dropped by queues.
    pub queues: Lost,
    /// Lost on links.
    pub links: Lost,
}

impl Lost {
    fn add(&mut self, other: Lost) {
        self.data += other.data;
        self.acks += other.acks;
        self.syns += other.syns;
    }

    fn of(packet: &Packet) -> Self {
        let is_ack = packet.is_ack();
        Lost { data: u64::from(!is_ack), acks: u64::from(is_ack), syns: u64::from(packet.is_syn()) }
    }
}

impl FlowLosses {
    pub(crate) fn add(&mut self, other: FlowLosses) {
        self.queues.add(other.queues);
        self.links.add(other.links);
    }
}

/// Losses at one link.
#[derive(Clone, Default)]
pub(crate) struct Losses {
    /// Losses by flow, and the number of the last event in which a flow had any.
    flows: BTreeMap<u32, (FlowLosses, u64)>,
    /// Last packet lost on the link: the end of its transmission, and its flow.
    sending: Option<(Time, u32, Lost)>,
    /// Duration of an event.
    window: Span,
    event_end: Time,
    events: u64,
    /// Sum over all events of the flows with losses.
    event_flows: u64,
    /// Number of bulk flows that have data now, and its sum over all events.
    bulk: u64,
    event_bulk: u64,
}

impl Losses {
    pub fn new(window: Span) -> Self {
        Losses { window: window.max(Span::from_nanos(1)), ..Losses::default() }
    }

    /// Counts a packet that the link loses after its transmission, which ends at `sent`.
    #[inline(never)]
    pub fn lost(&mut self, packet: &Packet, sent: Time) {
        if let Some((_, flow, lost)) = self.sending.replace((sent, packet.flow, Lost::of(packet))) {
            self.flows.entry(flow).or_default().0.links.add(lost);
        }
    }

    /// Counts a packet that the queue drops. Not inlined: drops are rare.
    #[inline(never)]
    pub fn dropped(&mut self, now: Time, packet: &Packet) {
        let (losses, event) = self.flows.entry(packet.flow).or_default();
        losses.queues.add(Lost::of(packet));
        if packet.is_ack() {
            return;
        }
        if now >= self.event_end {
            self.event_end = now + self.window;
            self.events += 1;
            self.event_bulk += self.bulk;
        }
        if *event != self.events {
            *event = self.events;
            self.event_flows += 1;
        }
    }

    /// Counts a bulk flow that begins to have data for this link, in the present event too.
    pub fn joined(&mut self, now: Time) {
        self.bulk += 1;
        self.event_bulk += u64::from(now < self.event_end);
    }

    /// Counts a bulk flow whose data has arrived.
    pub fn left(&mut self) {
        self.bulk -= 1;
    }

    /// Restarts all counts.
    pub fn restart(&mut self) {
        *self = Losses { bulk: self.bulk, ..Losses::new(self.window) };
    }

    /// Returns the losses of a flow at this link up to `now`; `flow` is as in packets.
    pub fn of(&self, flow: u32, now: Time) -> FlowLosses {
        let (mut losses, _) = self.flows.get(&flow).copied().unwrap_or_default();
        if let Some((sent, of, lost)) = self.sending
            && of == flow
            && sent <= now
        {
            losses.links.add(lost);
        }
        losses
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the mean number of flows with losses per event; NaN without events.
    pub fn mean_flows(&self) -> f64 {
        self.event_flows as f64 / self.events as f64
    }

    /// Returns the mean number of bulk flows that have data at an event; NaN without events.
    pub fn mean_bulk_flows(&self) -> f64 {
        self.event_bulk as f64 / self.events as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::{ack_of, of_flow};

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn an_event_lasts_for_a_round_trip_and_counts_each_flow_once() {
        let mut losses = Losses::new(Span::from_millis(100));
        // From 10 ms to 110 ms flows 0 and 2 have losses, flow 0 twice.
        for (time, flow) in [(10, 0), (11, 0), (109, 2)] {
            losses.dropped(at(time), &of_flow(flow));
        }
        // The next event begins at 110 ms, with one flow; one at 500 ms has three.
        losses.dropped(at(110), &of_flow(2));
        for flow in [0, 1, 8] {
            losses.dropped(at(500), &of_flow(flow));
        }
        assert_eq!(losses.events(), 3);
        assert_eq!(losses.mean_flows(), (2.0 + 1.0 + 3.0) / 3.0);
    }

    #[test]
    fn an_event_counts_the_flows_that_have_data_then() {
        let mut losses = Losses::new(Span::from_millis(100));
        losses.joined(at(0));
        // Of one flow, of two as the other begins in it, of two, and of one.
        losses.dropped(at(10), &of_flow(0));
        losses.dropped(at(200), &of_flow(0));
        losses.joined(at(250));
        losses.dropped(at(260), &of_flow(1));
        losses.dropped(at(400), &of_flow(0));
        losses.left();
        losses.dropped(at(600), &of_flow(1));
        assert_eq!((losses.events(), losses.mean_bulk_flows()), (4, (1.0 + 2.0 + 2.0 + 1.0) / 4.0));
        losses.restart();
        assert!(losses.mean_bulk_flows().is_nan());
        losses.dropped(at(700), &of_flow(1));
        assert_eq!(losses.mean_bulk_flows(), 1.0);
    }

    #[test]
    fn acknowledgements_are_counted_and_make_no_event() {
        let mut losses = Losses::new(Span::from_millis(100));
        losses.dropped(at(1), &ack_of(4, false));
        losses.dropped(at(2), &ack_of(4, true));
        losses.dropped(at(3), &of_flow(9));
        assert_eq!(losses.events(), 1);
        assert_eq!(losses.of(4, at(600)).queues, Lost { data: 0, acks: 2, syns: 1 });
        assert_eq!(losses.of(9, at(600)).queues, Lost { data: 1, acks: 0, syns: 0 });
        assert_eq!(losses.of(7, at(600)), FlowLosses::default());
        losses.restart();
        assert_eq!(losses.events(), 0);
        assert!(losses.mean_flows().is_nan());
        assert_eq!(losses.of(4, at(600)), FlowLosses::default());
    }
    #[test]
    fn losses_of_the_link_are_apart_from_drops_and_make_no_event() {
        let mut losses = Losses::new(Span::from_millis(100));
        losses.lost(&of_flow(4), at(1));
        losses.lost(&ack_of(4, true), at(2));
        losses.lost(&of_flow(4), at(5));
        losses.dropped(at(1), &of_flow(4));
        let [one, ack] = [Lost { data: 1, acks: 0, syns: 0 }, Lost { data: 1, acks: 1, syns: 1 }];
        assert_eq!(losses.of(4, at(4)), FlowLosses { queues: one, links: ack });
        assert_eq!(losses.of(4, at(5)).links.data, 2, "its transmission has ended");
        assert_eq!(losses.events(), 1);
    }
}
