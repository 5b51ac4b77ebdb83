//! DNS lookups: one query per host, over datagrams.

use aqmlab_core::{Span, Time};

use super::PageTask;
use crate::workload::agenda::Agenda;
use crate::workload::app::{Context, Direction};

/// Size of a query and of an answer on the wire: IP and UDP, 12 bytes of header (RFC 1035, section
/// 4.1), and a question of about 30 bytes; the answer has two addresses.
const QUERY: u32 = 20 + 8 + 12 + 30;
const ANSWER: u32 = QUERY + 2 * 16;
/// Timeout of a query before it is sent again: resolv.conf(5).
const TIMEOUT: Span = Span::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq)]
enum NameState {
    Unknown,
    Asked(Time),
    Known,
}

#[derive(Clone)]
pub(super) struct Names {
    states: Vec<NameState>,
    is_used: bool,
    /// Flows to the resolver and from it, once they are needed.
    flows: Option<[u32; 2]>,
    /// Sending times and hosts of datagrams in flight.
    queries: Vec<(Time, u32)>,
    answers: Vec<(Time, u32)>,
}

impl Names {
    pub fn new(hosts: usize, is_used: bool) -> Self {
        let (queries, answers) = (Vec::new(), Vec::new());
        Names { states: vec![NameState::Unknown; hosts], is_used, flows: None, queries, answers }
    }

    /// Returns whether a host's address is known; if not, a query is sent.
    pub fn is_known(&mut self, host: u32, agenda: &mut Agenda<PageTask>, cx: &mut Context) -> bool {
        if !self.is_used {
            return true;
        }
        if self.states[host as usize] == NameState::Unknown {
            self.ask(host, agenda, cx);
        }
        self.states[host as usize] == NameState::Known
    }

    /// Repeats a query that has not been answered.
    pub fn overdue(
        &mut self,
        host: u32,
        asked: Time,
        agenda: &mut Agenda<PageTask>,
        cx: &mut Context,
    ) {
        if self.states[host as usize] == NameState::Asked(asked) {
            self.ask(host, agenda, cx);
        }
    }

    fn ask(&mut self, host: u32, agenda: &mut Agenda<PageTask>, cx: &mut Context) {
        let now = cx.now();
        self.states[host as usize] = NameState::Asked(now);
        // Lost datagrams are removed.
        for sent in [&mut self.queries, &mut self.answers] {
            sent.retain(|(time, of)| *of != host || now.saturating_since(*time) < TIMEOUT);
        }
        let flows = self.flows.get_or_insert_with(|| {
            [Direction::Backward, Direction::Forward].map(|way| cx.datagrams(way, true))
        });
        self.queries.push((now, host));
        cx.send_datagram(flows[0], QUERY);
        agenda.add(now + TIMEOUT, PageTask::AskAgain(host, now), cx);
    }

    /// Handles a query at the resolver, or an answer. Returns the host whose address is now known.
    pub fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) -> Option<u32> {
        let [there, back] = self.flows.expect("what arrives was sent");
        let of = if flow == there { &mut self.queries } else { &mut self.answers };
        let place = of.iter().position(|(time, _)| *time == sent)?;
        let (_, host) = of.remove(place);
        if flow == there {
            self.answers.push((cx.now(), host));
            cx.send_datagram(back, ANSWER);
            return None;
        }
        self.states[host as usize] = NameState::Known;
        Some(host)
    }

    /// Clears the cache: the next page repeats the queries.
    pub fn forget(&mut self) {
        self.states.fill(NameState::Unknown);
        self.queries.clear();
        self.answers.clear();
    }

    /// Closes the flows of an ended browser.
    pub fn close(&self, cx: &mut Context) {
        self.flows.into_iter().flatten().for_each(|flow| cx.close(flow));
    }
}
