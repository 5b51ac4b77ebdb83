//! Closed-loop replay of a recorded connection: sender and receiver with Linux's rules over the
//! simulator's links.
//!
//! Links model the recorded path. Data packets traverse an *edge*, which loses the recorded
//! segments by number, and a *bottleneck* with rate, limit, marks and delay. Late segments traverse
//! an additional delay; those of a blackout enter a link that loses everything. Acknowledgements
//! have an edge too, and a delay.

use aqmlab_aqm::QueueConfig;
use aqmlab_aqm::disciplines::droptail::DropTailParams;
use aqmlab_core::{Bytes, Ecn, Framing, Packet, Rate, Result, Span, Table, Time, Value};
use aqmlab_tcp::{Ack, DataSegment};

use aqmlab_sim::impairment::{
    ChanceParams, DelayProcess, ListedLossParams, Loss, PropagationConfig,
};
use aqmlab_sim::network::{LinkConfig, Network, Observer, RouteId, Setup, Simultaneous};
use aqmlab_sim::rate::schedule::Steps;
use aqmlab_sim::rate::{MAX_RATE, RateProcess, RateStepsParams};

use super::{Case, Ends, Event, Outcome, Path};

/// Time at which an endless replay is aborted.
const AT_MOST: Time = Time::from_nanos(120_000_000_000);

/// Replays the connection of `case`.
///
/// The recorded path sends a packet at the rate in force when it joined the queue: a new rate
/// applies once all packets that joined before have left. The replay finds that time by running the
/// connection up to it.
///
/// # Errors
/// Returns an error if the congestion control is not built in, or its path cannot be created.
pub fn play(case: &Case) -> Result<Outcome> {
    let mut path = case.path.clone();
    for (from, rate) in std::mem::take(&mut path.rates) {
        let mut before = Connection::new(case, &path)?;
        before.drain = Some(Drain { since: from, at: from, delay: path.delay, is_over: false });
        before.run();
        path.rates.push((before.drain.map_or(from, |drain| drain.at), rate));
    }
    Ok(Connection::new(case, &path)?.run())
}

/// Search for the time at which all packets that joined the bottleneck up to `since` have left it.
struct Drain {
    since: Time,
    at: Time,
    /// Delay after the bottleneck.
    delay: Span,
    is_over: bool,
}

/// Optional observer of the packets for a drain.
struct DrainWatch<'a>(&'a mut Option<Drain>);

impl Observer<()> for DrainWatch<'_> {
    fn left(&mut self, now: Time, link: u32, packet: &Packet, (): &()) {
        let Some(drain) = self.0.as_mut().filter(|_| link == BOTTLENECK) else { return };
        if packet.arrival() > drain.since {
            drain.is_over = true;
        } else {
            drain.at = drain.at.max(Time::ZERO + (now - Time::ZERO - drain.delay));
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Data(DataSegment),
    Ack(Ack),
    /// Third segment of the handshake, ignored by the receiver.
    Nothing,
}

/// Contents of packets, by their key. They stay for the whole connection.
#[derive(Default)]
struct Contents(Vec<Content>);

impl Contents {
    fn packet(&mut self, content: Content, size: u32, ecn: Ecn) -> Packet {
        let is_syn = match content {
            Content::Data(segment) => segment.syn,
            Content::Ack(ack) => ack.syn,
            Content::Nothing => false,
        };
        self.0.push(content);
        Packet::new(size, ecn)
            .with_ack(matches!(content, Content::Ack(_)))
            .with_syn(is_syn)
            .with_key(self.0.len() as u64 - 1)
    }
}

/// Routes of packets.
struct Routes {
    /// Route of data.
    data: RouteId,
    /// Route of SYNs and empty segments, which are not counted.
    empty: RouteId,
    /// Route of data sent in a blackout.
    dark: RouteId,
    /// Routes of late data, with segment numbers, in order.
    late: Vec<(u64, RouteId)>,
    ack: RouteId,
    syn_ack: RouteId,
}

/// Returns a link with a negligible queue and a loss process.
fn edge(name: &str, loss: Option<Loss>) -> LinkConfig {
    LinkConfig {
        name: name.to_string(),
        rate: MAX_RATE,
        delay: Span::ZERO,
        process: RateProcess::Constant(MAX_RATE),
        framing: Framing::NONE,
        way: PropagationConfig {
            delay: DelayProcess::Constant(Span::ZERO),
            jitter: None,
            loss,
            duplicate: ChanceParams::default(),
            reordering: false,
            slot: None,
        },
        medium: None,
        queue: QueueConfig::new(Box::new(DropTailParams::default())),
        shaper: None,
        driver: None,
        thresholds: Vec::new(),
    }
}

/// Returns a link that loses packets by number.
fn listed(name: &str, packets: &[u64]) -> LinkConfig {
    let loss = ListedLossParams { packets: packets.to_vec() };
    edge(name, (!packets.is_empty()).then_some(Loss::Listed(loss)))
}

/// Returns the recorded queue. A path's limits include the packet in transmission, a discipline's
/// do not; a path marks from a backlog on, a step above it.
fn queue(path: &Path) -> Result<QueueConfig> {
    let limit = match path.limit {
        0 => "unlimited".to_string(),
        limit => format!("{}p", limit - 1),
    };
    let mut table = Table::new();
    table.insert("limit", Value::from(limit.as_str()));
    if path.mark_above > 0 {
        let threshold = format!("{}p", path.mark_above.saturating_sub(2));
        table.insert("discipline", Value::from("step"));
        table.insert("threshold", Value::from(threshold.as_str()));
        table.insert("not_ect", Value::from("pass"));
    } else {
        table.insert("discipline", Value::from("droptail"));
    }
    QueueConfig::read(&Value::Table(table))
}

fn bottleneck(path: &Path) -> Result<LinkConfig> {
    let rate = |bps| if bps == 0 { MAX_RATE } else { Rate::from_bps(bps) };
    let mut link = edge("bottleneck", None);
    link.rate = rate(path.rate);
    link.process = RateProcess::Constant(link.rate);
    if !path.rates.is_empty() {
        let later = path.rates.iter().map(|(from, bps)| (*from - Time::ZERO, rate(*bps)));
        let steps = Steps([(Span::ZERO, link.rate)].into_iter().chain(later).collect());
        let schedule = steps.schedule(false, |rate| rate.as_bps())?;
        link.process = RateProcess::Steps(RateStepsParams { steps, repeat: false }, schedule);
    }
    link.delay = path.delay;
    link.way.delay = DelayProcess::Constant(path.delay);
    link.queue = queue(path)?;
    Ok(link)
}

/// Creates the links of a path, and the routes over them.
fn build(path: &Path) -> Result<(Network<()>, Routes)> {
    let everything = Loss::Random(ChanceParams { chance: 1.0, ..ChanceParams::default() });
    let links = [
        listed("edge", &path.lost),
        bottleneck(path)?,
        edge("dark", Some(everything)),
        listed("acknowledgements", &path.acks_lost),
    ];
    let mut network = Network::new(&Setup {
        links: &links,
        base_rtts: vec![path.delay + path.return_delay; links.len()],
        seed: 0,
        replication: 0,
        simultaneous: Simultaneous::ArrivalsFirst,
        mtu: Bytes::new(1500),
        end: Setup::NO_END,
        record_packets: false,
        defers_ends: false,
    });
    let back = network.add_delay(path.return_delay);
    let late = path.late.iter().map(|(number, more)| {
        let delay = network.add_delay(*more);
        (*number, network.add_route([EDGE, BOTTLENECK, delay]))
    });
    let late = late.collect();
    let routes = Routes {
        data: network.add_route([EDGE, BOTTLENECK]),
        empty: network.add_route([BOTTLENECK]),
        dark: network.add_route([EDGE, DARK]),
        late,
        ack: network.add_route([ACKS, back]),
        syn_ack: network.add_route([back]),
    };
    network.start();
    Ok((network, routes))
}

/// Links, by index.
const EDGE: u32 = 0;
const BOTTLENECK: u32 = 1;
const DARK: u32 = 2;
const ACKS: u32 = 3;

/// Connection in progress.
struct Connection<'a> {
    path: &'a Path,
    ends: Ends,
    /// Writes of the application, with their times.
    writes: Vec<(Time, u64)>,
    network: Network<()>,
    contents: Contents,
    routes: Routes,
    /// Search in progress, if any.
    drain: Option<Drain>,
    /// Data segments sent, including retransmissions.
    segments: u64,
    now: Time,
}

impl<'a> Connection<'a> {
    fn new(case: &Case, path: &'a Path) -> Result<Self> {
        let (network, routes) = build(path)?;
        let writes = case.events.iter().filter_map(|event| match *event {
            Event::Write { at, bytes } => Some((at, bytes)),
            _ => None,
        });
        Ok(Connection {
            path,
            ends: case.ends()?,
            writes: writes.collect(),
            network,
            contents: Contents::default(),
            routes,
            drain: None,
            segments: 0,
            now: Time::ZERO,
        })
    }

    fn run(&mut self) -> Outcome {
        let writes = std::mem::take(&mut self.writes);
        let size = writes.iter().map(|(_, bytes)| bytes).sum();
        let mut writes = writes.into_iter().peekable();
        self.ends.sender.open(Time::ZERO);
        self.poll();
        let is_over = |drain: &Option<Drain>| drain.as_ref().is_some_and(|drain| drain.is_over);
        while self.ends.sender.stats().bytes_acked < size && !is_over(&self.drain) {
            let write = writes.peek().map(|(at, _)| *at);
            let arrival = self.network.next_time();
            let sender = self.ends.sender.next_timeout();
            let receiver = self.ends.receiver.next_timeout();
            let next = [write, arrival, sender, receiver].into_iter().flatten().min();
            let Some(next) = next.map(|next| next.max(self.now)).filter(|next| *next <= AT_MOST)
            else {
                break;
            };
            self.now = next;
            let is_due = |at: Option<Time>| at.is_some_and(|at| at <= next);
            if is_due(write) {
                let (_, bytes) = writes.next().expect("it was peeked at");
                self.ends.sender.write(bytes);
            } else if is_due(arrival) {
                match self.network.step(&mut DrainWatch(&mut self.drain)) {
                    Some(packet) => self.arrive(packet),
                    None => continue,
                }
            } else if is_due(sender) {
                self.ends.sender.on_timeout(next);
            } else {
                self.ends.receiver.on_timeout(next);
            }
            self.poll();
        }
        let stats = self.ends.sender.stats();
        Outcome {
            all_acknowledged: (stats.bytes_acked >= size).then_some(self.now),
            retransmitted: stats.retransmissions,
        }
    }

    fn inject(&mut self, route: RouteId, content: Content, payload: u32, ecn: Ecn) {
        let packet = self.contents.packet(content, self.ends.header + payload, ecn);
        self.network.inject(self.now, route, packet, &mut DrainWatch(&mut self.drain));
    }

    fn arrive(&mut self, packet: Packet) {
        match self.contents.0[packet.key as usize] {
            Content::Data(mut segment) => {
                segment.ecn = packet.ecn();
                self.ends.receiver.on_segment(self.now, &segment);
            }
            Content::Ack(ack) => {
                if ack.syn {
                    self.inject(self.routes.empty, Content::Nothing, 0, Ecn::NotEct);
                }
                self.ends.sender.on_ack(self.now, &ack);
            }
            Content::Nothing => {}
        }
    }

    /// Sends from both ends.
    fn poll(&mut self) {
        while let Some(segment) = self.ends.sender.poll(self.now) {
            let (route, ecn) = self.way(&segment);
            self.inject(route, Content::Data(segment), segment.len, ecn);
        }
        while let Some(ack) = self.ends.receiver.poll(self.now) {
            let route = if ack.syn { self.routes.syn_ack } else { self.routes.ack };
            self.inject(route, Content::Ack(ack), 0, Ecn::NotEct);
        }
    }

    /// Returns the route of a segment, and its ECN codepoint on arrival at the queue.
    fn way(&mut self, segment: &DataSegment) -> (RouteId, Ecn) {
        if segment.len == 0 {
            return (self.routes.empty, segment.ecn);
        }
        self.segments += 1;
        let number = self.segments;
        if self.path.blackouts.iter().any(|(from, to)| (*from..*to).contains(&self.now)) {
            return (self.routes.dark, segment.ecn);
        }
        let is_marked = self.path.marked.binary_search(&number).is_ok();
        let is_capable = segment.ecn != Ecn::NotEct;
        let ecn = if is_marked && is_capable { Ecn::Ce } else { segment.ecn };
        let late = self.routes.late.binary_search_by_key(&number, |(number, _)| *number);
        (late.map_or(self.routes.data, |place| self.routes.late[place].1), ecn)
    }
}
