//! Web pages loaded by a browser: objects from several hosts, over a few connections to each. Some
//! objects are discovered only when others have arrived.
//!
//! A page is a document and objects. The document is requested first. An object is requested when
//! the object that refers to it has arrived, with `depth` levels. Objects are on `hosts` in turn
//! (domain sharding). A host's name is resolved once (a DNS query and its answer, as datagrams).
//! Connections are opened for waiting requests, up to `connections` per host. A connection starts
//! with TCP's handshake and `tls` round trips, and carries up to `streams` simultaneous requests.
//! Requests use the group's `return_path`, objects its `path`.
//!
//! Recorded are the times `page_load` (from the start of the page to the last byte of its last
//! object), `first_byte` (to the first byte of the document) and `object` (from the discovery of an
//! object to its last byte). `started`, `completed` and their bytes count pages.
//!
//! # Sources
//! RFC 7928, sections 2.1 and 7.2; RFC 9112, section 9 (connections that
//! persist, no pipelining); RFC 9113, section 5.1.2 and 6.5.2 (streams); RFC
//! 8446, section 2 (TLS 1.3: one round trip) and RFC 5246, section 7.3 (TLS 1.2:
//! two); RFC 1035.
//!
//! # Differences
//! 1. With several `streams`, the server sends objects one after another when they are ready, not
//!    interleaved. Priorities are not modelled, and each host has its own connections.
//! 2. Objects are not cached; scripts take no time other than the server's.
//! 3. The reference to an object is random: any object of the level above.

use std::collections::VecDeque;

use aqmlab_core::{
    Bytes, Component, Distribution, Error, Result, Sampler, Span, Stream, Time, choices, params,
};

use super::connection::{Arrival, Connection};
use super::transfers::{check_size, draw_size};
use super::{Workload, written};
use crate::workload::agenda::Agenda;
use crate::workload::app::{App, Context};

mod names;

use names::Names;

choices! {
    /// Lifetime of connections and cached names.
    pub enum Keep {
        /// One object per connection, names for one page: HTTP/1.0.
        None = "none",
        /// One page: each page starts with new connections and names.
        Page = "page",
        /// All pages.
        All = "all",
    }
}

params! {
    /// Web pages.
    pub struct PageParams {
        /// Number of objects of a page, including its document.
        objects: Distribution<u64> = Distribution::constant(50), source "RFC 7928, section 7.2";
        /// Bytes of an object.
        size: Distribution<Bytes> = written("pareto(shape=1.2, scale=1kb, cap=1mb)"),
            source "this program; at least 1 kB: RFC 7928, section 7.2";
        /// Bytes of the document.
        document: Distribution<Bytes> = Distribution::constant(Bytes::new(30 * 1024)),
            source "this program";
        /// Bytes of a request.
        request: Distribution<Bytes> = Distribution::constant(Bytes::new(400)),
            source "this program";
        /// Levels of objects below the document: each object is discovered from one on the level
        /// above.
        depth: u64 = 2, in 1 => 100, source "this program";
        /// Number of hosts, which have the objects in turn.
        hosts: u64 = 1, in 1 => 1000, source "this program";
        /// Connections to a host.
        connections: u64 = 6, in 1 => 1000,
            source "what browsers do; RFC 7928, section 7.2";
        /// Simultaneous requests over a connection; 100, with one connection, is HTTP/2.
        streams: u64 = 1, in 1 => 1_000_000, source "RFC 9112, section 9.3.1; RFC 9113, section 6.5.2";
        /// Lifetime of connections and cached names.
        keep: Keep = Keep::Page, source "this program";
        /// True if a DNS lookup precedes the first connection to a host.
        dns: bool = true, source "RFC 1035; RFC 7928, section 2.2";
        /// Round trips of TLS before the first request of a connection.
        tls: u64 = 1, in 0 => 3, source "RFC 8446, section 2; RFC 5246, section 7.3";
        /// Bytes of the server's first flight, with its certificates.
        certificates: Bytes = Bytes::new(4000), in Bytes::new(1) => Bytes::new(1_000_000),
            source "this program";
        /// Time from a request's arrival to the start of its answer.
        server_delay: Distribution<Span> = Distribution::constant(Span::ZERO),
            source "this program";
        /// Time from the end of a page to the start of the next.
        think: Distribution<Span> = Distribution::constant(Span::from_secs(1)),
            source "this program";
        /// Number of pages; `none`: no end.
        number: Option<u64> = None, in Some(1) => Some(100_000_000), source "this program";
    }
}

impl Component for PageParams {
    const NAME: &'static str = "page";
    const SUMMARY: &'static str = "Web pages loaded by a browser: page load time";

    fn check(&self) -> Result<()> {
        check_size(&self.size).map_err(|error| error.at("size"))?;
        check_size(&self.document).map_err(|error| error.at("document"))?;
        check_size(&self.request).map_err(|error| error.at("request"))?;
        if self.objects.mean() < 1.0 {
            let allowed = "a mean of at least 1: the document is an object";
            return Err(Error::not_allowed(format!("{:?}", self.objects), allowed).at("objects"));
        }
        if self.keep == Keep::None && self.streams > 1 {
            let allowed = "1 with keep = \"none\": a connection is for one object";
            return Err(Error::not_allowed(self.streams, allowed).at("streams"));
        }
        Ok(())
    }
}

impl Workload for PageParams {
    fn is_finite(&self) -> bool {
        self.number.is_some()
    }

    fn app(&self, streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        Some(Box::new(Browser::new(self, streams)))
    }
}

/// Maximum number of objects of a page.
const MAX_OBJECTS: u64 = 100_000;

/// Object of a page.
#[derive(Clone)]
struct Object {
    size: u64,
    request: u64,
    server_delay: Span,
    host: u32,
    /// Objects that it refers to.
    names: Vec<u32>,
    asked: Time,
}

/// Pending action.
#[derive(Clone)]
enum PageTask {
    NextPage,
    /// The answer to the query for this host's name, sent at this time, is overdue.
    AskAgain(u32, Time),
    /// The server has an object ready.
    Answer {
        connection: u32,
        object: u32,
    },
}

/// Browser with its resolver and all servers.
#[derive(Clone)]
struct Browser {
    params: PageParams,
    objects: Sampler<u64>,
    size: Sampler<Bytes>,
    document: Sampler<Bytes>,
    request: Sampler<Bytes>,
    server_delay: Sampler<Span>,
    think: Sampler<Span>,
    parents: Stream,
    agenda: Agenda<PageTask>,
    names: Names,
    connections: Vec<Connection>,
    /// Objects waiting for a connection, by host, in order.
    waiting: Vec<VecDeque<u32>>,
    page: Vec<Object>,
    began: Time,
    /// Number of missing objects of the page.
    missing: usize,
    pages_left: u64,
}

impl Browser {
    fn new(params: &PageParams, streams: &dyn Fn(&str) -> Stream) -> Self {
        Browser {
            params: params.clone(),
            objects: Sampler::new(&params.objects, streams("objects")),
            size: Sampler::new(&params.size, streams("size")),
            document: Sampler::new(&params.document, streams("document")),
            request: Sampler::new(&params.request, streams("request")),
            server_delay: Sampler::new(&params.server_delay, streams("server_delay")),
            think: Sampler::new(&params.think, streams("think")),
            parents: streams("parents"),
            agenda: Agenda::default(),
            names: Names::new(params.hosts as usize, params.dns),
            connections: Vec::new(),
            waiting: (0..params.hosts).map(|_| Default::default()).collect(),
            page: Vec::new(),
            began: Time::ZERO,
            missing: 0,
            pages_left: params.number.unwrap_or(u64::MAX),
        }
    }

    fn begin_page(&mut self, cx: &mut Context) {
        self.pages_left -= 1;
        self.began = cx.now();
        cx.activity().started += 1;
        self.draw_page();
        self.missing = self.page.len();
        self.want(0, cx);
    }

    /// Draws the objects of a page: evenly distributed over the levels below the document, each
    /// referenced by an object of the level above.
    fn draw_page(&mut self) {
        let number = self.objects.draw().clamp(1, MAX_OBJECTS);
        let hosts = self.waiting.len() as u64;
        let level = |object: u64| match object {
            0 => 0,
            _ => 1 + (object - 1) * self.params.depth / (number - 1),
        };
        self.page = (0..number)
            .map(|object| Object {
                size: draw_size(if object == 0 { &mut self.document } else { &mut self.size }),
                request: draw_size(&mut self.request),
                server_delay: self.server_delay.draw(),
                host: (object % hosts) as u32,
                names: Vec::new(),
                asked: Time::ZERO,
            })
            .collect();
        // Objects of the level above, which have no references yet.
        let (mut first, mut end) = (0, 1);
        for object in 1..number {
            if level(object) > level(object - 1) && object > 1 {
                (first, end) = (end, object);
            }
            let parent = first + (self.parents.uniform() * (end - first) as f64) as u64;
            self.page[parent as usize].names.push(object as u32);
        }
    }

    /// Requests a discovered object as soon as possible.
    fn want(&mut self, object: u32, cx: &mut Context) {
        let wanted = &mut self.page[object as usize];
        wanted.asked = cx.now();
        let host = wanted.host;
        self.waiting[host as usize].push_back(object);
        if self.names.is_known(host, &mut self.agenda, cx) {
            self.serve(host, cx);
        }
    }

    /// Assigns waiting objects to a host's connections, and opens new connections.
    fn serve(&mut self, host: u32, cx: &mut Context) {
        let PageParams { connections: most, streams, tls, certificates, .. } = self.params;
        let [most, streams] = [most, streams].map(|number| number as usize);
        loop {
            let Some(&object) = self.waiting[host as usize].front() else { return };
            let of_host = self.connections.iter_mut().filter(|each| each.host == host);
            let free = of_host.filter(|each| each.is_open() && each.busy < streams);
            if let Some(connection) = free.min_by_key(|each| each.busy) {
                self.waiting[host as usize].pop_front();
                connection.ask(object, self.page[object as usize].request, cx);
                continue;
            }
            // Connections being opened serve a share of the waiting objects.
            let of_host = || self.connections.iter().filter(|each| each.host == host);
            let coming = of_host().filter(|each| !each.is_open()).count() * streams;
            if coming >= self.waiting[host as usize].len() || of_host().count() >= most {
                return;
            }
            self.connections.push(Connection::open(host, tls, certificates.get(), true, cx));
        }
    }

    fn answer(&mut self, connection: u32, object: u32, cx: &mut Context) {
        let size = self.page[object as usize].size;
        let connection = self.connections.iter_mut().find(|each| each.to_server == connection);
        connection.expect("one with a request stays").answer(object, size, cx);
    }

    /// Handles an arrived object.
    fn finish(&mut self, object: u32, cx: &mut Context) {
        let now = cx.now();
        let done = &mut self.page[object as usize];
        cx.activity().record("object", now - done.asked);
        for name in std::mem::take(&mut done.names) {
            self.want(name, cx);
        }
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        let bytes = self.page.iter().map(|object| object.size).sum::<u64>();
        cx.activity().complete(bytes, "page_load", now - self.began);
        if self.params.keep != Keep::All || self.pages_left == 0 {
            self.connections.drain(..).for_each(|connection| connection.close(cx));
            self.names.forget();
        }
        match self.pages_left {
            0 => {
                self.names.close(cx);
                cx.end();
            }
            _ => self.agenda.add(now + self.think.draw(), PageTask::NextPage, cx),
        }
    }

    fn arrived(&mut self, arrival: Arrival, place: usize, cx: &mut Context) {
        let connection = &mut self.connections[place];
        let (number, host) = (connection.to_server, connection.host);
        match arrival {
            Arrival::Opened => self.serve(host, cx),
            Arrival::Request(object) => match self.page[object as usize].server_delay {
                Span::ZERO => self.answer(number, object, cx),
                delay => {
                    let step = PageTask::Answer { connection: number, object };
                    self.agenda.add(cx.now() + delay, step, cx);
                }
            },
            Arrival::FirstByte(0) => {
                let time = cx.now() - self.began;
                cx.activity().record("first_byte", time);
            }
            Arrival::FirstByte(_) => {}
            Arrival::Object(object) => {
                if self.params.keep == Keep::None {
                    self.connections.swap_remove(place).close(cx);
                }
                self.finish(object, cx);
                self.serve(host, cx);
            }
        }
    }
}

impl App for Browser {
    fn start(&mut self, cx: &mut Context) {
        self.begin_page(cx);
    }
    fn on_timer(&mut self, cx: &mut Context) {
        while let Some(step) = self.agenda.due(cx) {
            match step {
                PageTask::NextPage => self.begin_page(cx),
                PageTask::AskAgain(host, asked) => {
                    self.names.overdue(host, asked, &mut self.agenda, cx);
                }
                PageTask::Answer { connection, object } => self.answer(connection, object, cx),
            }
        }
    }
    fn on_received(&mut self, flow: u32, cx: &mut Context) {
        // A connection, and its slot, may end with the arrival.
        while let Some(place) = self.connections.iter().position(|each| each.has(flow))
            && let Some(arrival) = self.connections[place].arrived(flow, cx)
        {
            self.arrived(arrival, place, cx);
        }
    }
    fn on_datagram(&mut self, flow: u32, sent: Time, cx: &mut Context) {
        if let Some(host) = self.names.on_datagram(flow, sent, cx) {
            self.serve(host, cx);
        }
    }
}
