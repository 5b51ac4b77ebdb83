//! The names of hosts: one query each, over datagrams.

use aqmlab_core::{Span, Time};

use super::PageTask;
use crate::workload::agenda::Agenda;
use crate::workload::app::{Context, Direction};

/// A query and an answer on the wire: IP and UDP, 12 bytes of header (RFC
/// 1035, section 4.1), and a question of some 30; the answer has two addresses.
const QUERY: u32 = 20 + 8 + 12 + 30;
const ANSWER: u32 = QUERY + 2 * 16;
/// A query is sent again after so long: resolv.conf(5).
const TIMEOUT: Span = Span::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Asked(Time),
    Known,
}

/// A datagram on its way: when it was sent, and the host it is about.
struct Sent(Time, u32);

pub(super) struct Names {
    states: Vec<State>,
    is_used: bool,
    /// To the resolver and back, once they are needed.
    flows: Option<[u32; 2]>,
    queries: Vec<Sent>,
    answers: Vec<Sent>,
}

impl Names {
    pub fn new(hosts: usize, is_used: bool) -> Self {
        let (queries, answers) = (Vec::new(), Vec::new());
        Names { states: vec![State::Unknown; hosts], is_used, flows: None, queries, answers }
    }

    /// Whether a host may be connected to; if not, it is being asked for.
    pub fn is_known(&mut self, host: u32, agenda: &mut Agenda<PageTask>, cx: &mut Context) -> bool {
        if !self.is_used {
            return true;
        }
        if self.states[host as usize] == State::Unknown {
            self.ask(host, agenda, cx);
        }
        self.states[host as usize] == State::Known
    }

    /// Asks again, if nothing has come since.
    pub fn overdue(
        &mut self,
        host: u32,
        asked: Time,
        agenda: &mut Agenda<PageTask>,
        cx: &mut Context,
    ) {
        if self.states[host as usize] == State::Asked(asked) {
            self.ask(host, agenda, cx);
        }
    }

    fn ask(&mut self, host: u32, agenda: &mut Agenda<PageTask>, cx: &mut Context) {
        let now = cx.now();
        self.states[host as usize] = State::Asked(now);
        // What came to nothing is forgotten.
        for sent in [&mut self.queries, &mut self.answers] {
            sent.retain(|Sent(time, of)| *of != host || now.saturating_since(*time) < TIMEOUT);
        }
        let flows = self.flows.get_or_insert_with(|| {
            [Direction::Backward, Direction::Forward].map(|way| cx.datagrams(way, true))
        });
        self.queries.push(Sent(now, host));
        cx.send_datagram(flows[0], QUERY);
        agenda.add(now + TIMEOUT, PageTask::AskAgain(host, now), cx);
    }

    /// A query has come to the resolver, or an answer back: the host that is
    /// known now.
    pub fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) -> Option<u32> {
        let [there, back] = self.flows.expect("what arrives was sent");
        let of = if flow == there { &mut self.queries } else { &mut self.answers };
        let place = of.iter().position(|Sent(time, _)| *time == sent)?;
        let Sent(_, host) = of.remove(place);
        if flow == there {
            self.answers.push(Sent(cx.now(), host));
            cx.send_datagram(back, ANSWER);
            return None;
        }
        self.states[host as usize] = State::Known;
        Some(host)
    }

    /// Forgets all: the next page asks again.
    pub fn forget(&mut self) {
        self.states.fill(State::Unknown);
        self.queries.clear();
        self.answers.clear();
    }

    /// The browser is gone: it is told nothing more.
    pub fn close(&self, cx: &mut Context) {
        self.flows.into_iter().flatten().for_each(|flow| cx.close(flow));
    }
}
