//! What every registered discipline and preset has to do under any traffic:
//! packets conserved, order kept within a flow, the limit respected, the link
//! never idle beside a queue (unless a shaper holds packets back, and then it
//! says until when), timers that go forward, and the same again when run again.

use aqmlab_aqm::registry::{PRESETS, entries};
use aqmlab_aqm::{
    Backlog, Context, CustomConfig, Handle, LinkEnv, Queue, QueueConfig, QueueDiscipline,
};
use aqmlab_core::{
    Bytes, CustomParams, Ecn, Lookup, Packet, Rate, Result, Span, Stream, Table, Time, Value,
    packet_fields,
};
use proptest::prelude::*;

const LIMIT: u64 = 60;

/// A packet that knows its place, and that only ECN-capable ones may be marked.
#[derive(Clone, Debug)]
struct Numbered {
    id: u64,
    flow: u32,
    size: u32,
    ecn: Ecn,
    arrival: Time,
}

impl Packet for Numbered {
    packet_fields!(size, ecn, arrival);
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    /// Flows of five hosts, and of six classes.
    fn hosts(&self) -> [u32; 2] {
        [self.flow / 2, self.flow % 2]
    }
    fn class(&self) -> u8 {
        (self.flow * 9) as u8
    }
    fn mark(&mut self) {
        assert!(self.ecn.is_capable(), "packet {} was marked but is not ECN-capable", self.id);
        self.ecn = Ecn::Ce;
    }
}

/// An arrival: how long after the last, and what.
#[derive(Clone, Debug)]
struct Arrival {
    gap: Span,
    flow: u32,
    size: u32,
    ecn: u8,
}

/// Bursts of back-to-back packets with pauses, on a link of 10 Mbit/s (1.2 ms
/// for 1500 bytes): from an empty queue to several times what it can send.
fn traffic() -> impl Strategy<Value = Vec<Arrival>> {
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

/// What became of the packets, in the order of the decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Sent { id: u64, at: Time, marked: bool },
    Dropped { id: u64, at: Time },
}

/// The link behind the queue, with checks after every call.
struct Link<'a> {
    name: &'a str,
    /// Whether the queue has a shaper.
    shapes: bool,
    /// Whether what comes to the idle link goes through the queue in one step.
    passes: bool,
    queue: Queue<Numbered>,
    free_at: Option<Time>,
    last_wakeup: Time,
    events: Vec<Event>,
    /// The packets by number, as they arrived.
    packets: Vec<Numbered>,
}

impl Link<'_> {
    fn run(mut self, arrivals: &[Arrival]) -> Vec<Event> {
        let mut next = Time::ZERO;
        for (id, arrival) in arrivals.iter().enumerate() {
            next += arrival.gap;
            self.advance(Some(next));
            let packet = Numbered {
                id: id as u64,
                flow: arrival.flow,
                size: arrival.size,
                ecn: Ecn::from_bits(arrival.ecn),
                arrival: next,
            };
            self.packets.push(packet.clone());
            if self.passes && self.free_at.is_none() {
                let packet = self.queue.pass_stamped(packet, next);
                self.check(next);
                self.sent(packet, next);
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

    fn send(&mut self, now: Time) {
        let packet = self.queue.dequeue(now);
        self.check(now);
        self.sent(packet, now);
    }

    fn sent(&mut self, packet: Option<Numbered>, now: Time) {
        match packet {
            Some(packet) => {
                let sent_as = &self.packets[packet.id as usize];
                assert_eq!((packet.size, packet.flow), (sent_as.size, sent_as.flow));
                let marked = packet.ecn != sent_as.ecn;
                self.events.push(Event::Sent { id: packet.id, at: now, marked });
                self.free_at = Some(now + Span::from_nanos(u64::from(packet.size) * 800));
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
        self.queue.take_dropped(|packet, _| events.push(Event::Dropped { id: packet.id, at: now }));
        let Backlog { packets, bytes } = self.queue.backlog();
        assert!(packets <= LIMIT, "{}: {packets} packets, limit {LIMIT}", self.name);
        assert!(bytes <= packets * 1500 && bytes >= packets * 40, "{}: {bytes}", self.name);
        let counts = self.queue.counts();
        let gone = counts.delivered + counts.dropped_total();
        // The packet that `dequeue` has just given is in no event yet.
        let recorded = self.events.len() as u64;
        assert!(gone == recorded || gone == recorded + 1, "{}: {gone}, {recorded}", self.name);
        assert_eq!(counts.arrived, gone + packets, "{}: packets lost", self.name);
    }

    /// What the discipline shows of itself is a number, and probabilities are
    /// such (in Linux's PIE they may be above 1).
    fn check_state(&self) {
        let most = if self.name.contains("\"linux\"") { f64::INFINITY } else { 1.0 };
        self.queue.observe(&mut |quantity, value| {
            assert!(value.is_finite(), "{}: {quantity} is {value}", self.name);
            let is_allowed = !quantity.contains("probability") || (0.0..=most).contains(&value);
            assert!(is_allowed, "{}: {quantity} is {value}", self.name);
        });
    }
}

/// Disciplines with one queue: all packets keep their order.
const SINGLE: &[&str] = &[
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
    "blue",
    "sred",
    "pi",
    "step",
    "choke",
    "sfb",
];
const LANES: usize = 24;

/// Which packets share a queue, and so keep their order. A discipline that is
/// not known here may divide packets by flow and by codepoint.
fn lane(name: &str, settings: &[(String, String)], arrival: &Arrival) -> usize {
    let is_any_ect = || settings.iter().any(|(_, text)| text == "any-ect");
    match name {
        "dualpi2" if is_any_ect() => usize::from(arrival.ecn != 0),
        "dualpi2" => usize::from(arrival.ecn & 1),
        name if name.contains("fq") || ["cake", "drr"].contains(&name) => arrival.flow as usize,
        name if SINGLE.contains(&name) => 0,
        _ => arrival.flow as usize * 4 + usize::from(arrival.ecn),
    }
}

/// Every packet has one end, and packets of a lane leave in the order in
/// which they came.
fn check_order(
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

fn env() -> LinkEnv {
    LinkEnv {
        rate: Rate::from_bps(10_000_000),
        base_rtt: Span::from_millis(100),
        mtu: Bytes::new(1514),
    }
}

fn link<'a>(
    name: &'a str,
    shapes: bool,
    discipline: Box<dyn QueueDiscipline<Numbered>>,
) -> Link<'a> {
    Link {
        name,
        shapes,
        passes: false,
        queue: Queue::new(discipline, Stream::for_component(1, 0, "property")),
        free_at: None,
        last_wakeup: Time::ZERO,
        events: Vec::new(),
        packets: Vec::new(),
    }
}

fn config(name: &str, settings: &[(String, String)]) -> QueueConfig {
    let mut table = Table::new();
    table.insert("discipline", name.into());
    for (key, text) in settings {
        table.insert(key.clone(), text.as_str().into());
    }
    QueueConfig::read(&Value::Table(table)).unwrap()
}

/// Whether a discipline with these settings holds packets back.
fn shapes(settings: &[(String, String)]) -> bool {
    settings.iter().any(|(key, _)| ["bandwidth", "autorate_ingress"].contains(&key.as_str()))
}

fn run(name: &str, settings: &[(String, String)], arrivals: &[Arrival]) -> Vec<Event> {
    let label = format!("{name} {settings:?}");
    link(&label, shapes(settings), config(name, settings).build(&env())).run(arrivals)
}

/// The same again, with packets that pass an idle link in one step.
fn run_passing(name: &str, settings: &[(String, String)], arrivals: &[Arrival]) -> Vec<Event> {
    let label = format!("{name} {settings:?}");
    let link = link(&label, shapes(settings), config(name, settings).build(&env()));
    Link { passes: true, ..link }.run(arrivals)
}

/// A discipline of the catalogue as if it were not in it.
#[derive(Clone, Debug)]
struct AsCustom(QueueConfig);

impl CustomParams for AsCustom {
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

impl CustomConfig for AsCustom {
    fn boxed_clone(&self) -> Box<dyn CustomConfig> {
        Box::new(self.clone())
    }
    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<Handle>> {
        self.0.build(env)
    }
}

impl Lookup<dyn CustomConfig> for AsCustom {
    fn find(&self, _name: &str) -> Result<Option<Box<dyn CustomConfig>>> {
        Ok(Some(self.boxed_clone()))
    }
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// The same through the adapter that custom disciplines run behind.
fn run_adapted(name: &str, settings: &[(String, String)], arrivals: &[Arrival]) -> Vec<Event> {
    let adapted = AsCustom(config(name, settings));
    let adapted = QueueConfig::read_with(&"adapted".into(), &adapted).unwrap();
    assert!(matches!(adapted, QueueConfig::Custom(_)));
    let label = format!("{name} {settings:?}");
    link(&label, shapes(settings), adapted.build(&env())).run(arrivals)
}

/// All disciplines and presets, each with its plain settings and with every
/// switch and every named choice set to each of its values in turn.
fn variants() -> Vec<(&'static str, Vec<(String, String)>)> {
    let limit = ("limit".to_string(), format!("{LIMIT}p"));
    let mut all = Vec::new();
    for entry in entries() {
        all.push((entry.name, vec![limit.clone()]));
        for spec in &entry.params {
            for choice in
                spec.choices.iter().filter(|choice| Some(**choice) != spec.default.as_deref())
            {
                let setting = (spec.name.to_string(), choice.to_string());
                let mut settings = vec![limit.clone(), setting];
                if (entry.name, spec.name) == ("dualpi2", "drop_early") {
                    // Only Linux has it.
                    settings.push(("variant".to_string(), "linux".to_string()));
                }
                all.push((entry.name, settings));
            }
        }
    }
    // What a plain setting of one switch does not reach.
    let mut together: Vec<(&str, &[(&str, &str)])> = vec![
        ("choke", &[("candidates", "auto")]),
        ("red", &[("adaptive", "feng"), ("min_threshold", "auto"), ("ecn", "true")]),
        ("red", &[("mark_p", "0.3"), ("ecn", "true"), ("weight", "auto")]),
        ("red_linux", &[("ecn", "true"), ("harddrop", "true"), ("adaptive", "true")]),
        ("sfq", &[("depth", "7"), ("headdrop", "true")]),
        ("sfq", &[("divisor", "3"), ("flows", "2"), ("depth", "9")]),
        ("sfq", &[("perturb", "5ms"), ("divisor", "4"), ("depth", "20")]),
        ("pie", &[("activation", "0.3"), ("delay", "rate"), ("dq_threshold", "3kb")]),
        ("docsis_pie", &[("peak_rate", "30mbit"), ("sustained_rate", "8mbit")]),
        ("codel_dt", &[("delay", "shaper"), ("peak_rate", "30mbit"), ("access_delay", "6ms")]),
        ("dualpi2", &[("step", "1ms"), ("th_len", "0"), ("scheduler", "ts-fifo")]),
        ("dualpi2", &[("variant", "linux"), ("step_packets", "5"), ("min_qlen_step", "2")]),
        ("cobalt", &[("variant", "linux"), ("ecn", "false")]),
        ("cake", &[("bandwidth", "7mbit"), ("perturb", "5ms")]),
        ("cake", &[("bandwidth", "7mbit"), ("diffserv", "diffserv4"), ("ingress", "true")]),
        (
            "cake",
            &[("bandwidth", "30mbit"), ("diffserv", "diffserv8"), ("link_layer", "pppoe-ptm")],
        ),
        ("cake", &[("bandwidth", "1mbit"), ("diffserv", "precedence"), ("overhead", "-64b")]),
    ];
    for name in ["fq_codel", "fq_pie", "fq_cobalt", "sfq_codel", "sfq_pie", "drr"] {
        together.push((name, &[("perturb", "5ms"), ("flows", "3")]));
    }
    for (name, settings) in together {
        let settings = settings.iter().map(|(key, text)| (key.to_string(), text.to_string()));
        all.push((name, std::iter::once(limit.clone()).chain(settings).collect()));
    }
    all.extend(PRESETS.iter().map(|preset| (preset.name, vec![limit.clone()])));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn disciplines_keep_their_promises(arrivals in traffic()) {
        for (name, settings) in variants() {
            let label = format!("{name} {:?}", &settings[1..]);
            let events = run(name, &settings, &arrivals);
            check_order(&label, &arrivals, &events, |arrival| lane(name, &settings, arrival));
            prop_assert_eq!(&events, &run_passing(name, &settings, &arrivals), "{} differs", label);
            let adapted = run_adapted(name, &settings, &arrivals);
            prop_assert_eq!(events, adapted, "{} differs through the adapter", label);
        }
    }
}

/// Random operations until there were 10^8 of them; takes about a minute:
/// `cargo test --release -p aqmlab-aqm --test properties -- --ignored`.
#[test]
#[ignore = "long: run once for each release"]
fn a_hundred_million_operations() {
    let mut random = Stream::for_component(20_261_121, 0, "hammer");
    let mut operations = 0;
    while operations < 100_000_000 {
        for (name, settings) in variants() {
            let arrivals: Vec<Arrival> = (0..2000)
                .map(|_| Arrival {
                    gap: Span::from_nanos(match random.next_u32() % 300 {
                        0..100 => 0,
                        100..299 => u64::from(random.next_u32() % 2_000_000),
                        _ => u64::from(random.next_u32() % 300_000_000),
                    }),
                    flow: random.next_u32() % 6,
                    size: 40 + random.next_u32() % 1461,
                    ecn: (random.next_u32() % 4) as u8,
                })
                .collect();
            let label = format!("{name} {:?}", &settings[1..]);
            let events = run(name, &settings, &arrivals);
            check_order(&label, &arrivals, &events, |arrival| lane(name, &settings, arrival));
            // Each packet comes in and has one end.
            operations += arrivals.len() + events.len();
        }
    }
    println!("{operations} operations");
}

/// The traffic above must be able to find something: disciplines that signal
/// do so, and all run into their limits.
#[test]
fn the_traffic_makes_disciplines_act() {
    let arrivals: Vec<Arrival> = (0..6000)
        .map(|i| Arrival { gap: Span::from_micros(1000), flow: i % 6, size: 1500, ecn: 0 })
        .collect();
    for (name, mut settings) in variants() {
        settings[0].1 = "200p".to_string();
        let config = config(name, &settings);
        let mut queue = Queue::new(config.build(&env()), Stream::from_state(1));
        let (mut now, mut free) = (Time::ZERO, Time::ZERO);
        for (id, arrival) in arrivals.iter().enumerate() {
            now += arrival.gap;
            while let Some(wakeup) = queue.next_wakeup().filter(|wakeup| *wakeup <= now) {
                queue.on_wakeup(wakeup);
            }
            let Arrival { flow, size, .. } = *arrival;
            let packet = Numbered { id: id as u64, flow, size, ecn: Ecn::NotEct, arrival: now };
            queue.enqueue(packet, now);
            if free <= now {
                let sent = queue.dequeue(now);
                free = now + Span::from_micros(if sent.is_some() { 1200 } else { 0 });
            }
            queue.take_dropped(|_, _| ());
        }
        let counts = queue.counts();
        let signals: u64 = aqmlab_aqm::Reason::ALL
            .iter()
            .filter(|reason| reason.is_signal())
            .map(|reason| counts.dropped[*reason as usize])
            .sum();
        let only_marks = settings.contains(&("not_ect".to_string(), "pass".to_string()));
        let gives_signals = config.gives_signals() && !only_marks;
        assert_eq!(signals > 0, gives_signals, "{name} {settings:?}: {counts:?}");
    }
}

/// Disciplines with a fault, to see that the checks see it.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    LastInFirstOut,
    Loses,
    Idles,
    NoLimit,
    MarksAll,
}

struct Faulty {
    packets: Vec<Numbered>,
    fault: Fault,
    calls: u32,
}

impl QueueDiscipline<Numbered> for Faulty {
    fn enqueue(&mut self, packet: Numbered, cx: &mut Context<'_, Numbered>) {
        if self.fault == Fault::Loses && packet.id == 40 {
            return;
        }
        let mut packet = packet;
        if self.fault == Fault::MarksAll {
            cx.mark(&mut packet, aqmlab_aqm::Reason::User);
        }
        if self.fault != Fault::NoLimit && self.packets.len() as u64 == LIMIT {
            cx.drop(packet, aqmlab_aqm::Reason::Overlimit);
        } else {
            self.packets.push(packet);
        }
    }
    fn dequeue(&mut self, _cx: &mut Context<'_, Numbered>) -> Option<Numbered> {
        self.calls += 1;
        if self.packets.is_empty() || (self.fault == Fault::Idles && self.calls == 20) {
            return None;
        }
        Some(match self.fault {
            Fault::LastInFirstOut => self.packets.pop()?,
            _ => self.packets.remove(0),
        })
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.packets.iter().map(|packet| u64::from(packet.size)).sum();
        Backlog { packets: self.packets.len() as u64, bytes }
    }
}

fn run_faulty(fault: Fault) {
    let arrivals: Vec<Arrival> = (0..200)
        .map(|i| Arrival { gap: Span::from_micros(600), flow: i % 6, size: 1500, ecn: 0 })
        .collect();
    let faulty = Box::new(Faulty { packets: Vec::new(), fault, calls: 0 });
    let events = link("faulty", false, faulty).run(&arrivals);
    check_order("faulty", &arrivals, &events, |_| 0);
}

#[test]
#[should_panic(expected = "after")]
fn disorder_is_found() {
    run_faulty(Fault::LastInFirstOut);
}
#[test]
#[should_panic(expected = "packets lost")]
fn a_lost_packet_is_found() {
    run_faulty(Fault::Loses);
}
#[test]
#[should_panic(expected = "idle beside a queue")]
fn an_idle_link_is_found() {
    run_faulty(Fault::Idles);
}
#[test]
#[should_panic(expected = "limit 60")]
fn an_exceeded_limit_is_found() {
    run_faulty(Fault::NoLimit);
}
#[test]
#[should_panic(expected = "not ECN-capable")]
fn a_mark_on_any_packet_is_found() {
    run_faulty(Fault::MarksAll);
}
