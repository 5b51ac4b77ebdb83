//! Incast: one client sends requests to many servers, which answer simultaneously.
//!
//! A client has a connection to each of `senders`. It sends a request to all of them
//! simultaneously, waits for the last byte of the last answer, and repeats after `think`. Requests
//! use the group's `return_path`, answers its `path`. Recorded are the times of each `query` (all
//! answers) and of each `response`; `started` and `completed` count queries. Connections stay open,
//! so the first query includes their handshakes.
//!
//! # Sources
//! Phanishayee et al., Measurement and analysis of TCP throughput collapse in
//! cluster-based storage systems (FAST 2008); Vasudevan et al., Safe and
//! effective fine-grained TCP retransmissions for datacenter communication
//! (SIGCOMM 2009): a block of 1 MB from all senders together.
//!
//! # Differences
//! 1. For queues that isolate hosts all senders of one client are one host.

use aqmlab_core::{Bytes, Component, Distribution, Result, Sampler, Span, Stream, Time, params};

use super::Workload;
use super::transfers::{check_size, draw_size};
use crate::workload::agenda::Agenda;
use crate::workload::app::{App, Context};

params! {
    /// Incast: many senders answer one request.
    pub struct IncastParams {
        /// Number of answering senders.
        senders: u64 = 32, in 1 => 100_000, source "this program";
        /// Bytes of a request.
        request: Distribution<Bytes> = Distribution::constant(Bytes::new(100)),
            source "this program";
        /// Bytes of each sender's answer.
        response: Distribution<Bytes> = Distribution::constant(Bytes::new(32 * 1024)),
            source "Vasudevan et al. 2009: 1 MB from all together";
        /// Time from a request's arrival to the start of its answer.
        server_delay: Distribution<Span> = Distribution::constant(Span::ZERO),
            source "this program";
        /// Time from the end of a query to the next.
        think: Distribution<Span> = Distribution::constant(Span::ZERO), source "this program";
        /// Number of queries; `none`: no end.
        number: Option<u64> = None, in Some(1) => Some(100_000_000), source "this program";
    }
}

impl Component for IncastParams {
    const NAME: &'static str = "incast";
    const SUMMARY: &'static str = "Many senders answer one request at once: query times";

    fn check(&self) -> Result<()> {
        check_size(&self.request).map_err(|error| error.at("request"))?;
        check_size(&self.response).map_err(|error| error.at("response"))
    }
}

impl Workload for IncastParams {
    fn is_finite(&self) -> bool {
        self.number.is_some()
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Client {
            senders: self.senders as usize,
            request: Sampler::new(&self.request, streams("request")),
            response: Sampler::new(&self.response, streams("response")),
            server_delay: Sampler::new(&self.server_delay, streams("server_delay")),
            think: Sampler::new(&self.think, streams("think")),
            left: self.number.unwrap_or(u64::MAX),
            connections: Vec::new(),
            first_flow: 0,
            agenda: Agenda::default(),
            asked: Time::ZERO,
            missing: 0,
            bytes: 0,
        }))
    }
}

#[derive(Clone)]
enum IncastTask {
    Ask,
    /// The sender of this number has its answer ready.
    Answer(usize),
}

#[derive(Clone)]
struct Client {
    senders: usize,
    request: Sampler<Bytes>,
    response: Sampler<Bytes>,
    server_delay: Sampler<Span>,
    think: Sampler<Span>,
    left: u64,
    /// Flows to and from each sender, with consecutive numbers.
    connections: Vec<[u32; 2]>,
    first_flow: u32,
    agenda: Agenda<IncastTask>,
    asked: Time,
    /// Number of missing answers.
    missing: usize,
    bytes: u64,
}

impl Client {
    fn ask(&mut self, cx: &mut Context) {
        self.left -= 1;
        self.asked = cx.now();
        self.missing = self.senders;
        self.bytes = 0;
        cx.activity().started += 1;
        for [to_server, _] in &self.connections {
            let bytes = draw_size(&mut self.request);
            cx.write(*to_server, bytes);
        }
    }

    fn answer(&mut self, sender: usize, cx: &mut Context) {
        let bytes = draw_size(&mut self.response);
        self.bytes += bytes;
        cx.write(self.connections[sender][1], bytes);
    }

    fn answered(&mut self, cx: &mut Context) {
        let now = cx.now();
        let activity = cx.activity();
        activity.record("response", now - self.asked);
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        activity.complete(self.bytes, "query", now - self.asked);
        if self.left > 0 {
            return self.agenda.add(now + self.think.draw(), IncastTask::Ask, cx);
        }
        self.connections.iter().flatten().for_each(|flow| cx.close(*flow));
        cx.end();
    }
}

impl App for Client {
    fn start(&mut self, cx: &mut Context) {
        self.connections = (0..self.senders).map(|_| cx.connect(false)).collect();
        self.first_flow = self.connections[0][0];
        self.ask(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        while let Some(step) = self.agenda.due(cx) {
            match step {
                IncastTask::Ask => self.ask(cx),
                IncastTask::Answer(sender) => self.answer(sender, cx),
            }
        }
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        let sender = (flow - self.first_flow) as usize / 2;
        debug_assert!(self.connections[sender].contains(&flow));
        if flow == self.connections[sender][1] {
            return self.answered(cx);
        }
        match self.server_delay.draw() {
            Span::ZERO => self.answer(sender, cx),
            delay => self.agenda.add(cx.now() + delay, IncastTask::Answer(sender), cx),
        }
    }
}
