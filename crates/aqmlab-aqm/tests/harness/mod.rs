//! Random traffic, and a link behind a queue that checks every call: what `properties.rs` and
//! `changes.rs` run disciplines with.

#![allow(dead_code)] // Each of them uses a part.

use aqmlab_aqm::registry::{PRESETS, entries};
use aqmlab_aqm::{Backlog, Context, Discipline, LinkEnv, Queue, QueueConfig, QueueDiscipline};
use aqmlab_core::{AnyComponent, Ecn, Packet, Rate, Result, Span, Stream, Table, Time, Value};
use proptest::prelude::*;

pub const LIMIT: u64 = 60;

/// Returns a packet with a number as its key. Flows are of five hosts and of six classes.
pub fn numbered(id: u64, flow: u32, size: u32, ecn: Ecn) -> Packet {
    Packet::new(size, ecn)
        .with_key(id)
        .with_flow_hash(flow)
        .with_hosts([flow / 2, flow % 2])
        .with_class((flow * 9) as u8)
}

/// An arrival: how long after the last, and what.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub gap: Span,
    pub flow: u32,
    pub size: u32,
    pub ecn: u8,
}

/// Bursts of back-to-back packets with pauses, on a link of 10 Mbit/s (1.2 ms for 1500 bytes): from
/// an empty queue to several times its capacity.
pub fn traffic() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        100 => Just(0),
        200 => 0..2_000_000u64,
        1 => 0..300_000_000u64,
    ];
    let size = prop_oneof![3 => Just(1500u32), 1 => 40..1501u32];
    let arrival = (gap, 0..6u32, size, 0..4u8).prop_map(|(gap, flow, size, ecn)| Arrival {
        gap: Span::from_nanos(gap),
        flow,
        size,
        ecn,
    });
    prop::collection::vec(arrival, 1..1500)
}

/// Decisions on the packets, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Sent { id: u64, at: Time, marked: bool },
    Dropped { id: u64, at: Time },
}

/// The link behind the queue, with checks after every call.
pub struct Link<'a> {
    pub name: &'a str,
    /// Whether the queue has a shaper.
    pub shapes: bool,
    /// True if packets that arrive at the idle link pass the queue in one step.
    pub passes: bool,
    /// The most packets that there may be.
    pub limit: u64,
    pub queue: Queue,
    pub free_at: Option<Time>,
    pub last_wakeup: Time,
    pub events: Vec<Event>,
    /// The packets by number, as they arrived.
    pub packets: Vec<Packet>,
}

impl Link<'_> {
    pub fn run(self, arrivals: &[Arrival]) -> Vec<Event> {
        self.run_with(arrivals, |_, _, _| ())
    }

    /// The same; `before` is called before each arrival with its number and time.
    pub fn run_with(
        mut self,
        arrivals: &[Arrival],
        mut before: impl FnMut(&mut Self, usize, Time),
    ) -> Vec<Event> {
        let mut next = Time::ZERO;
        for (id, arrival) in arrivals.iter().enumerate() {
            next += arrival.gap;
            self.advance(Some(next));
            before(&mut self, id, next);
            let Arrival { flow, size, ecn, .. } = *arrival;
            let mut packet = numbered(id as u64, flow, size, Ecn::from_bits(ecn));
            packet.set_arrival(next);
            self.packets.push(packet.clone());
            if self.passes && self.free_at.is_none() && self.queue.lets_pass(size) {
                self.sent(Some(packet), next);
            } else {
                self.queue.enqueue(packet, next);
                self.check(next);
                if self.free_at.is_none() {
                    self.send(next);
                }
            }
            if id % 64 == 0 {
                self.check_state();
            }
        }
        self.advance(None);
        assert_eq!(self.queue.backlog(), Backlog::default(), "{}: not drained", self.name);
        self.events
    }

    /// Ends of transmissions and timers until `until`, that moment included;
    /// without a limit until the queue is drained.
    fn advance(&mut self, until: Option<Time>) {
        loop {
            let wakeup = self.queue.next_wakeup().unwrap_or(Time::MAX);
            let end = self.free_at.unwrap_or(Time::MAX);
            let held = self.free_at.is_none() && self.queue.backlog().packets > 0;
            let is_done = until.or(self.free_at).is_none() && !held;
            if end.min(wakeup) > until.unwrap_or(Time::MAX) || is_done {
                return;
            }
            if end == Time::MAX && wakeup == Time::MAX {
                return;
            }
            if end <= wakeup {
                self.free_at = None;
                self.send(end);
            } else {
                assert!(wakeup > self.last_wakeup, "{}: the timer goes back", self.name);
                self.last_wakeup = wakeup;
                self.queue.on_wakeup(wakeup);
                self.check(wakeup);
                if self.free_at.is_none() && self.queue.backlog().packets > 0 {
                    self.send(wakeup);
                }
            }
        }
    }

    /// Gives the queue other parameters, as a link does. Gives how many packets were dropped.
    pub fn change(&mut self, to: &QueueConfig, now: Time) -> u64 {
        let before = self.queue.counts().dropped_total();
        self.queue.change(to, &env(), now);
        let mut dropped = Vec::new();
        self.queue.take_dropped(|packet, _| dropped.push(packet.key));
        self.events.extend(dropped.into_iter().map(|id| Event::Dropped { id, at: now }));
        let backlog = self.queue.backlog();
        self.queue.assert_conservation(self.name);
        assert_eq!(self.queue.counted(), backlog, "{}", self.name);
        if self.free_at.is_none() && backlog.packets > 0 {
            self.send(now);
        }
        self.queue.counts().dropped_total() - before
    }

    fn send(&mut self, now: Time) {
        let packet = self.queue.dequeue(now);
        self.check(now);
        self.sent(packet, now);
    }

    fn sent(&mut self, packet: Option<Packet>, now: Time) {
        match packet {
            Some(packet) => {
                let sent_as = &self.packets[packet.key as usize];
                assert_eq!(packet.size(), sent_as.size());
                assert_eq!(packet.flow_hash(), sent_as.flow_hash());
                let marked = packet.ecn() != sent_as.ecn();
                self.events.push(Event::Sent { id: packet.key, at: now, marked });
                self.free_at = Some(now + Span::from_nanos(u64::from(packet.size()) * 800));
            }
            None => {
                let backlog = self.queue.backlog();
                let held_until = self.queue.next_wakeup().filter(|_| self.shapes);
                if held_until.is_some_and(|until| until > now) {
                    return;
                }
                assert_eq!(backlog, Backlog::default(), "{}: idle beside a queue", self.name);
            }
        }
    }

    fn check(&mut self, now: Time) {
        let events = &mut self.events;
        self.queue
            .take_dropped(|packet, _| events.push(Event::Dropped { id: packet.key, at: now }));
        let Backlog { packets, bytes } = self.queue.backlog();
        assert!(packets <= self.limit, "{}: {packets} packets, limit {}", self.name, self.limit);
        assert!(bytes <= packets * 1500 && bytes >= packets * 40, "{}: {bytes}", self.name);
        let counts = self.queue.counts();
        let gone = counts.delivered + counts.dropped_total();
        // The packet that `dequeue` has just given is in no event yet.
        let recorded = self.events.len() as u64;
        assert!(gone == recorded || gone == recorded + 1, "{}: {gone}, {recorded}", self.name);
        assert_eq!(counts.arrived, gone + packets, "{}: packets lost", self.name);
    }

    /// What the discipline shows of itself is a number, and probabilities are
    /// such (in the PIEs of Linux and of cable modems they may be above 1).
    fn check_state(&self) {
        let is_linux = self.name.split(' ').any(|setting| setting == "variant=linux");
        let is_open = is_linux || self.name.starts_with("docsis_pie");
        let most = if is_open { f64::INFINITY } else { 1.0 };
        self.queue.observe(&mut |quantity, value| {
            assert!(value.is_finite(), "{}: {quantity} is {value}", self.name);
            let is_allowed = !quantity.contains("probability") || (0.0..=most).contains(&value);
            assert!(is_allowed, "{}: {quantity} is {value}", self.name);
        });
    }
}

/// Disciplines with one queue: all packets keep their order.
pub const SINGLE: &[&str] = &[
    "droptail",
    "red",
    "red_linux",
    "codel",
    "codel_dt",
    "cobalt",
    "pie",
    "docsis_pie",
    "pie2013",
    "pi2",
    "bernoulli",
    "blue",
    "sred",
    "pi",
    "step",
    "choke",
    "sfb",
];
pub const LANES: usize = 24;

/// Which packets share a queue, and so keep their order. A discipline that is
/// not known here may divide packets by flow and by codepoint.
pub fn lane(queue: &str, arrival: &Arrival) -> usize {
    match name_of(queue) {
        "dualpi2" if queue.contains("=any-ect") => usize::from(arrival.ecn != 0),
        "dualpi2" => usize::from(arrival.ecn & 1),
        name if name.contains("fq") || ["cake", "drr"].contains(&name) => arrival.flow as usize,
        name if SINGLE.contains(&name) => 0,
        _ => arrival.flow as usize * 4 + usize::from(arrival.ecn),
    }
}

/// Every packet has one end, and packets of a lane leave in the order in
/// which they came.
pub fn check_order(
    name: &str,
    arrivals: &[Arrival],
    events: &[Event],
    lane: impl Fn(&Arrival) -> usize,
) {
    let mut ends = vec![0; arrivals.len()];
    let mut last = [None; LANES];
    for event in events {
        let id = match event {
            Event::Dropped { id, .. } => *id,
            Event::Sent { id, .. } => {
                let lane = lane(&arrivals[*id as usize]);
                assert!(last[lane] < Some(*id), "{name}: {id} after {:?}", last[lane]);
                last[lane] = Some(*id);
                *id
            }
        };
        ends[id as usize] += 1;
    }
    assert!(ends.iter().all(|count| *count == 1), "{name}: not every packet has one end");
}

pub fn env() -> LinkEnv {
    LinkEnv::new(Rate::from_bps(10_000_000), Span::from_millis(100))
}

/// Returns a link behind this discipline. `queue` are its settings.
pub fn link(queue: &str, discipline: Box<dyn QueueDiscipline>) -> Link<'_> {
    Link {
        name: queue,
        // A discipline with these settings holds packets back.
        shapes: ["bandwidth=", "autorate_ingress="].iter().any(|key| queue.contains(key)),
        passes: false,
        limit: LIMIT,
        queue: Queue::new(discipline, Stream::for_component(1, 0, "property")),
        free_at: None,
        last_wakeup: Time::ZERO,
        events: Vec::new(),
        packets: Vec::new(),
    }
}

/// Returns a link behind the queue with these settings.
pub fn link_to(queue: &str) -> Link<'_> {
    link(queue, config(queue).build_checked(&env()))
}

/// Reads settings of a queue: `pie limit=60p delay=rate`. The last value of a key counts.
pub fn try_config(queue: &str) -> Result<QueueConfig> {
    let (name, settings) = queue.split_once(' ').unwrap_or((queue, ""));
    let mut table = Table::new();
    table.insert("discipline", name.into());
    for (key, text) in settings.split_whitespace().filter_map(|setting| setting.split_once('=')) {
        table.insert(key, text.into());
    }
    QueueConfig::read(&Value::Table(table))
}

pub fn config(queue: &str) -> QueueConfig {
    try_config(queue).unwrap_or_else(|error| panic!("{queue}: {error}"))
}

/// Returns the discipline or preset of these settings.
pub fn name_of(queue: &str) -> &str {
    queue.split(' ').next().unwrap_or(queue)
}

/// All disciplines and presets, each with its plain settings and with every
/// switch and every named choice set to each of its values in turn.
pub fn variants() -> Vec<String> {
    let mut all = Vec::new();
    for entry in entries() {
        all.push(entry.name.to_string());
        for spec in &entry.params {
            let is_other = |choice: &&&str| Some(**choice) != spec.default.as_deref();
            for choice in spec.choices.iter().filter(is_other) {
                let needs = match (entry.name, spec.name) {
                    ("dualpi2", "drop_early") => " variant=linux",
                    ("red_linux", "nodrop") => " ecn=true",
                    _ => "",
                };
                all.push(format!("{} {}={choice}{needs}", entry.name, spec.name));
            }
        }
    }
    // What a plain setting of one switch does not reach.
    let together = [
        "choke candidates=auto",
        "red adaptive=feng min_threshold=auto ecn=true",
        "red mark_p=0.3 ecn=true weight=auto",
        "red_linux ecn=true harddrop=true adaptive=true",
        "sfq depth=7 headdrop=true",
        "sfq divisor=3 flows=2 depth=9",
        "sfq perturb=5ms divisor=4 depth=20",
        "pie activation=0.3 delay=rate dq_threshold=3kb",
        "docsis_pie peak_rate=30mbit sustained_rate=8mbit",
        "codel_dt delay=shaper peak_rate=30mbit access_delay=6ms",
        "dualpi2 step=1ms th_len=0 scheduler=ts-fifo",
        "dualpi2 variant=linux step_packets=5 min_qlen_step=2",
        "cobalt variant=linux ecn=false",
        "cake bandwidth=7mbit perturb=5ms",
        "cake hashing=set-associative perturb=5ms flows=64",
        "cake bandwidth=7mbit diffserv=diffserv4 ingress=true",
        "cake bandwidth=30mbit diffserv=diffserv8 link_layer=pppoe-ptm",
        "cake bandwidth=1mbit diffserv=precedence overhead=-64b",
        "fq_codel perturb=5ms flows=3",
        "fq_pie perturb=5ms flows=3",
        "fq_cobalt perturb=5ms flows=3",
        "sfq_codel perturb=5ms flows=3",
        "sfq_pie perturb=5ms flows=3",
        "drr perturb=5ms flows=3",
    ];
    all.extend(together.map(String::from));
    all.extend(PRESETS.iter().map(|preset| preset.name.to_string()));
    all.iter().map(|queue| format!("{queue} limit={LIMIT}p")).collect()
}

/// A discipline of the catalogue as if it were not in it.
#[derive(Clone, Debug)]
pub struct AsCustom(pub QueueConfig);

impl AnyComponent for AsCustom {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn set(&mut self, _key: &str, _value: &Value) -> Result<()> {
        Ok(())
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        self.0.settings()
    }
}

impl Discipline for AsCustom {
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        self.0.build(env)
    }
    fn check_change(&self, _key: &str) -> Result<()> {
        Ok(())
    }
    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        self.0.change(queue, env, cx);
    }
}

/// The same discipline as if it were not in the catalogue.
pub fn adapted_config(config: &QueueConfig) -> QueueConfig {
    let adapted = QueueConfig::new(Box::new(AsCustom(config.clone())));
    assert!(!adapted.is_built_in());
    adapted
}
