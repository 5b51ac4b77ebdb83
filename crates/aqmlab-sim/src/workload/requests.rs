//! Requests and responses over persistent connections.
//!
//! A client opens a connection, sends a request, and receives a response; after a think time it
//! sends the next request. Responses use the group's `path`, requests its `return_path`. Recorded
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
//! 2. Requests are not pipelined.

use aqmlab_core::{Bytes, Component, Distribution, Result, Sampler, Span, Stream, Time, params};

use super::Workload;
use super::transfers::{check_gap, check_size, draw_size};
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
    is_first: bool,
}

impl Script for Drawn {
    fn next(&mut self) -> Option<(Span, Exchange)> {
        self.left = self.left.checked_sub(1)?;
        let think = match std::mem::take(&mut self.is_first) {
            true => Span::ZERO,
            false => self.think.draw(),
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
    to_server: u32,
    to_client: u32,
    exchange: Exchange,
    opened: Time,
    asked: Time,
    stage: Stage,
    is_answered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Thinking,
    Asking,
    Serving,
    Answering,
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
            is_first: true,
        };
        Self::of(script, is_transient)
    }
}

impl<S: Script> Session<S> {
    /// Creates a session that follows a script.
    pub fn of(script: S, is_transient: bool) -> Self {
        Session {
            script,
            is_transient,
            to_server: 0,
            to_client: 0,
            exchange: Exchange { request: 0, response: 0, server_delay: Span::ZERO },
            opened: Time::ZERO,
            asked: Time::ZERO,
            stage: Stage::Thinking,
            is_answered: false,
        }
    }

    /// Waits for the next exchange, or ends the session.
    fn go_on(&mut self, cx: &mut Context) {
        let Some((think, exchange)) = self.script.next() else {
            let life = cx.now() - self.opened;
            cx.activity().record("completion", life);
            cx.close(self.to_server);
            cx.close(self.to_client);
            return cx.end();
        };
        self.exchange = exchange;
        self.stage = Stage::Thinking;
        match think {
            Span::ZERO => self.ask(cx),
            think => cx.wake_after(think),
        }
    }

    fn ask(&mut self, cx: &mut Context) {
        self.stage = Stage::Asking;
        self.asked = cx.now();
        cx.activity().started += 1;
        cx.write(self.to_server, self.exchange.request);
    }

    fn answer(&mut self, cx: &mut Context) {
        self.stage = Stage::Answering;
        if !std::mem::replace(&mut self.is_answered, true) {
            let startup = cx.now() - self.opened;
            cx.activity().record("startup", startup);
        }
        cx.write(self.to_client, self.exchange.response);
    }
}

impl<S: Script> App for Session<S> {
    fn start(&mut self, cx: &mut Context) {
        self.opened = cx.now();
        [self.to_server, self.to_client] = cx.connect(self.is_transient);
        self.go_on(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        match self.stage {
            Stage::Thinking => self.ask(cx),
            Stage::Serving => self.answer(cx),
            Stage::Asking | Stage::Answering => {}
        }
    }
    fn on_received(&mut self, _flow: u32, cx: &mut Context) {
        match self.stage {
            Stage::Asking => {
                self.stage = Stage::Serving;
                match self.exchange.server_delay {
                    Span::ZERO => self.answer(cx),
                    delay => cx.wake_after(delay),
                }
            }
            Stage::Answering => {
                let response = cx.now() - self.asked;
                let activity = cx.activity();
                activity.completed += 1;
                activity.bytes += self.exchange.response;
                activity.record("response", response);
                self.go_on(cx);
            }
            Stage::Thinking | Stage::Serving => {}
        }
    }
}
