//! Requests and responses over persistent connections.
//!
//! A client opens a connection, sends a request, and receives a response; after a think time it
//! sends the next request. With `streams`, that many requests are in flight at a time. Responses use the group's `path`, requests its `return_path`. Recorded
//! are the time from each request to the last byte of its response (`response`), from the SYN until
//! the server first sends data (`startup`), and the lifetime of the connection (`completion`).
//!
//! With `gap`, new connections open regardless of earlier ones: `gap = "200ms"`, `response =
//! "800000b"`, `requests = 1` are the web requests of the study of 2015.
//!
//! # Sources
//! RFC 7928, sections 2.1 and 2.2; RFC 9112, section 9.3 (persistence).
//!
//! # Differences
//! 1. The two directions share the handshake, but data packets carry no acknowledgements.
//! 2. Over TCP, `streams` responses leave one after another, in the order in which they are ready;
//!    over QUIC, each request and response has a stream.

use aqmlab_core::{Bytes, Component, Distribution, Result, Sampler, Span, Stream, Time, params};

use super::Workload;
use super::connection::{Arrival, Connection};
use super::transfers::{check_gap, check_size, draw_size};
use crate::workload::agenda::Agenda;
use crate::workload::app::{App, Context};

params! {
    /// Requests and responses.
    pub struct RequestsParams {
        /// Bytes of a request.
        request: Distribution<Bytes> = Distribution::constant(Bytes::new(300)),
            source "this program";
        /// Bytes of a response.
        response: Distribution<Bytes> = Distribution::constant(Bytes::new(10_000)),
            source "this program";
        /// Time from the end of a response to the next request.
        think: Distribution<Span> = Distribution::constant(Span::from_secs(1)),
            source "this program";
        /// Time from the end of a request to the start of its response.
        server_delay: Distribution<Span> = Distribution::constant(Span::ZERO),
            source "this program";
        /// Requests over one connection; `none`: no limit.
        requests: Option<Distribution<u64>> = None, source "this program";
        /// Simultaneous requests over one connection, each followed by the next.
        streams: u64 = 1, [left out], in 1 => 100_000, source "RFC 9112, section 9.3; RFC 9113, section 6.5.2";
        /// Time between two new connections; `none`: a single connection from the start.
        gap: Option<Distribution<Span>> = None, source "this program";
        /// Number of connections, with `gap`; `none`: no end.
        number: Option<u64> = None, in Some(1) => Some(100_000_000), source "this program";
    }
}

impl Component for RequestsParams {
    const NAME: &'static str = "requests";
    const SUMMARY: &'static str = "Requests and responses over persistent connections";

    fn check(&self) -> Result<()> {
        check_size(&self.request).map_err(|error| error.at("request"))?;
        check_size(&self.response).map_err(|error| error.at("response"))?;
        self.gap.iter().try_for_each(check_gap).map_err(|error| error.at("gap"))
    }
}

impl Workload for RequestsParams {
    fn is_finite(&self) -> bool {
        self.requests.is_some() && (self.gap.is_none() || self.number.is_some())
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(match &self.gap {
            None => Box::new(Session::new(self, streams, false)),
            Some(gap) => Box::new(Arrivals {
                gap: Sampler::new(gap, streams("gap")),
                left: self.number.unwrap_or(u64::MAX),
                params: self.clone(),
            }),
        })
    }
}

/// Arrival process of connections.
#[derive(Clone)]
struct Arrivals {
    gap: Sampler<Span>,
    left: u64,
    params: RequestsParams,
}

impl App for Arrivals {
    fn start(&mut self, cx: &mut Context) {
        let first = self.gap.draw();
        cx.wake_after(first);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        self.left -= 1;
        // Separate streams: the draws of a connection do not depend on the progress of others.
        let params = &self.params;
        cx.spawn(|streams| Box::new(Session::new(params, streams, true)));
        match self.left {
            0 => cx.end(),
            _ => cx.wake_after(self.gap.draw()),
        }
    }
}

/// Single exchange: sizes and times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub request: u64,
    pub response: u64,
    pub server_delay: Span,
}

/// Where the exchanges of a connection come from.
pub(super) trait Script: Clone + Send + 'static {
    /// Returns the next exchange, and the time before it; `None` after the last.
    fn next(&mut self) -> Option<(Span, Exchange)>;
}

/// Exchanges drawn from a group's distributions.
#[derive(Clone)]
struct Drawn {
    request: Sampler<Bytes>,
    response: Sampler<Bytes>,
    think: Sampler<Span>,
    server_delay: Sampler<Span>,
    left: u64,
    /// Number of requests sent without a think time.
    at_once: u64,
}

impl Script for Drawn {
    fn next(&mut self) -> Option<(Span, Exchange)> {
        self.left = self.left.checked_sub(1)?;
        let think = match self.at_once.checked_sub(1) {
            Some(left) => {
                self.at_once = left;
                Span::ZERO
            }
            None => self.think.draw(),
        };
        let request = draw_size(&mut self.request);
        let response = draw_size(&mut self.response);
        Some((think, Exchange { request, response, server_delay: self.server_delay.draw() }))
    }
}

/// Connection with its client and its server.
#[derive(Clone)]
pub(super) struct Session<S> {
    script: S,
    is_transient: bool,
    opened: Time,
    is_answered: bool,
    /// `None` before the start and after the end.
    connection: Option<Connection>,
    agenda: Agenda<Step>,
    /// Simultaneous exchanges, with the times of their requests.
    slots: Vec<(Exchange, Time)>,
    /// Number of slots that have not ended.
    active: usize,
}

/// Pending action of a slot.
#[derive(Clone)]
enum Step {
    Ask(u32),
    Answer(u32),
}

impl Session<Drawn> {
    fn new(params: &RequestsParams, streams: &dyn Fn(&str) -> Stream, is_transient: bool) -> Self {
        let requests = params.requests.as_ref();
        let left = requests.map(|number| Sampler::new(number, streams("requests")).draw().max(1));
        let script = Drawn {
            request: Sampler::new(&params.request, streams("request")),
            response: Sampler::new(&params.response, streams("response")),
            think: Sampler::new(&params.think, streams("think")),
            server_delay: Sampler::new(&params.server_delay, streams("server_delay")),
            left: left.unwrap_or(u64::MAX),
            at_once: params.streams,
        };
        Self::of(script, params.streams as usize, is_transient)
    }
}

impl<S: Script> Session<S> {
    /// Creates a session that follows a script, with so many exchanges at a time.
    pub fn of(script: S, streams: usize, is_transient: bool) -> Self {
        let none = Exchange { request: 0, response: 0, server_delay: Span::ZERO };
        Session {
            script,
            is_transient,
            opened: Time::ZERO,
            is_answered: false,
            connection: None,
            agenda: Agenda::default(),
            slots: vec![(none, Time::ZERO); streams],
            active: streams,
        }
    }

    /// Waits for the next exchange of a slot. The last slot without one ends the session.
    fn go_on(&mut self, slot: u32, cx: &mut Context) {
        let Some((think, exchange)) = self.script.next() else {
            self.active -= 1;
            if self.active == 0
                && let Some(connection) = self.connection.take()
            {
                let life = cx.now() - self.opened;
                cx.activity().record("completion", life);
                connection.close(cx);
                cx.end();
            }
            return;
        };
        self.slots[slot as usize].0 = exchange;
        match think {
            Span::ZERO => self.ask(slot, cx),
            think => self.agenda.add(cx.now() + think, Step::Ask(slot), cx),
        }
    }

    fn ask(&mut self, slot: u32, cx: &mut Context) {
        let (exchange, asked) = &mut self.slots[slot as usize];
        *asked = cx.now();
        cx.activity().started += 1;
        if let Some(connection) = &mut self.connection {
            connection.ask(slot, exchange.request, cx);
        }
    }

    fn answer(&mut self, slot: u32, cx: &mut Context) {
        if !std::mem::replace(&mut self.is_answered, true) {
            let startup = cx.now() - self.opened;
            cx.activity().record("startup", startup);
        }
        if let Some(connection) = &mut self.connection {
            connection.answer(slot, self.slots[slot as usize].0.response, cx);
        }
    }

    fn finish(&mut self, slot: u32, cx: &mut Context) {
        let (exchange, asked) = self.slots[slot as usize];
        let time = cx.now() - asked;
        cx.activity().complete(exchange.response, "response", time);
        self.go_on(slot, cx);
    }
}

impl<S: Script> App for Session<S> {
    fn start(&mut self, cx: &mut Context) {
        self.opened = cx.now();
        self.connection = Some(Connection::open(0, 0, 0, self.is_transient, cx));
        (0..self.slots.len() as u32).for_each(|slot| self.go_on(slot, cx));
    }
    fn on_timer(&mut self, cx: &mut Context) {
        while let Some(step) = self.agenda.due(cx) {
            match step {
                Step::Ask(slot) => self.ask(slot, cx),
                Step::Answer(slot) => self.answer(slot, cx),
            }
        }
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        while let Some(connection) = &mut self.connection
            && let Some(arrival) = connection.arrived(flow, cx)
        {
            match arrival {
                Arrival::Request(slot) => match self.slots[slot as usize].0.server_delay {
                    Span::ZERO => self.answer(slot, cx),
                    delay => self.agenda.add(cx.now() + delay, Step::Answer(slot), cx),
                },
                Arrival::Object(slot) => self.finish(slot, cx),
                Arrival::Opened | Arrival::FirstByte(_) => {}
            }
        }
    }
}
