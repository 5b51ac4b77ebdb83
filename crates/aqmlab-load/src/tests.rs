//! The ABI within one program: the tables of built-in types, read as those of a library.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use aqmlab_aqm::{Context, Disciplines, LinkEnv, QueueDiscipline, disciplines::codel::CodelParams};
use aqmlab_core::abi::{Header, keep_panics};
use aqmlab_core::{Component, Packet, params};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::{Outside, Run, Scenario, run};
use aqmlab_tcp::congestion::{Controls, bbr3::Bbr3Params};

use super::*;

const SCENARIO: &str = r#"
duration = "8s"
bottleneck = "down"
record = { level = "packets" }
links.down = { rate = "10mbit", delay = "20ms", queue = "codel" }
links.up = { rate = "10mbit", delay = "20ms" }
transport = { stack = "rfc", congestion_control = "bbr3", ecn = "classic" }
flows.a = { count = 3, path = ["down"], return_path = ["up"] }
"#;

fn file(name: &str) -> File<'_> {
    File { path: Path::new("libtest.so"), code: "0123456789abcdef", name }
}

fn queue_of<P: Discipline + Component>(name: &str) -> Box<dyn Discipline> {
    let table = aqmlab_aqm::abi::Table::of::<P>("Queue");
    // SAFETY: as `library::table` reads it.
    let functions =
        unsafe { std::mem::transmute::<aqmlab_aqm::abi::Table, aqmlab_aqm::abi::Loaded>(table) };
    let table = queue::Table { functions, fixed: &[] };
    Box::new(queue::Config::new(file(name), true, functions.params, table).unwrap())
}

fn control_of<P: ControlParams + Component>(name: &str) -> Box<dyn ControlParams> {
    let table = aqmlab_tcp::abi::Table::of::<P>("Control");
    // SAFETY: as `library::table` reads it.
    let table =
        unsafe { std::mem::transmute::<aqmlab_tcp::abi::Table, aqmlab_tcp::abi::Loaded>(table) };
    Box::new(control::Config::new(file(name), false, table.params, table).unwrap())
}

/// Every packet of a run with both kinds, marks and pacing included.
#[test]
fn what_is_loaded_gives_the_results_of_what_is_built_in() {
    let queues = Disciplines::default().with(queue_of::<CodelParams>("q.so:Queue")).unwrap();
    let controls = Controls::default().with(control_of::<Bbr3Params>("c.so:Control")).unwrap();
    let outside = || Outside { controls: &controls, ..Outside::disciplines(&queues) };
    let result = |queue: &str, control: &str| {
        let set = [("links.down.queue", queue), ("transport.congestion_control", control)];
        let set = set.map(|(key, text)| (key.to_string(), text.into()));
        run(&Scenario::parse_with(SCENARIO, "test", &set, outside()).unwrap(), 0)
    };
    let own = result("codel target=4ms", "bbr3");
    for (queue, control) in
        [("q.so:Queue target=4ms", "bbr3"), ("codel target=4ms", "c.so:Control")]
    {
        let loaded = result(queue, control);
        for (own, loaded) in own.links.iter().zip(&loaded.links) {
            assert_eq!(own.counts, loaded.counts);
            assert_eq!(format!("{:?}", own.packets), format!("{:?}", loaded.packets));
        }
        let signals = |counts: &aqmlab_aqm::Counts| counts.marked_total() + counts.dropped_total();
        assert!(own.links.iter().any(|link| signals(&link.counts) > 10));
    }
}

params! {
    /// Parameters of a discipline that panics.
    pub struct PanicsParams {
        /// Packets until then.
        after: u64 = 3, source "these tests";
    }
}

impl Component for PanicsParams {
    const NAME: &'static str = "panics";
    const SUMMARY: &'static str = "panics";
}

impl Discipline for PanicsParams {
    fn build(&self, _: &LinkEnv) -> Box<dyn QueueDiscipline> {
        Box::new(Panics(self.after, aqmlab_aqm::fifo::Fifo::default()))
    }
    fn change(&self, queue: &mut dyn QueueDiscipline, _: &LinkEnv, _: &mut Context<'_>) {
        queue.machine::<Panics>().0 = self.after;
    }
}

#[derive(Clone)]
struct Panics(u64, aqmlab_aqm::fifo::Fifo);

impl QueueDiscipline for Panics {
    fn enqueue(&mut self, packet: Packet, _: &mut Context<'_>) {
        self.0 = self.0.checked_sub(1).expect("no more packets");
        self.1.push(packet);
    }
    fn dequeue(&mut self, _: &mut Context<'_>) -> Option<Packet> {
        self.1.pop()
    }
    fn backlog(&self) -> aqmlab_aqm::Backlog {
        self.1.backlog()
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see(if self.0 == 0 { "backlog_bytes" } else { "left" }, self.0 as f64);
    }
}

#[test]
fn a_panic_ends_the_run_with_its_place_and_time() {
    keep_panics();
    let queues = Disciplines::default().with(queue_of::<PanicsParams>("p.so:Queue")).unwrap();
    let set = [("queue".to_string(), "p.so:Queue".into())];
    let scenario = Scenario::parse_with(SCENARIO, "test", &set, Outside::disciplines(&queues));
    let scenario = scenario.unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| run(&scenario, 0))).err().unwrap();
    let failure = panic.downcast::<Failure>().unwrap();
    let expected = "Queue.enqueue at 0.";
    assert!(failure.is_queue && failure.message.contains(expected), "{failure:?}");
    assert!(failure.message.contains("tests.rs, line"), "{failure:?}");
    assert!(failure.message.ends_with("panic: no more packets"), "{failure:?}");
}

#[test]
fn a_state_variable_has_a_name_of_its_own() {
    let queues = Disciplines::default().with(queue_of::<PanicsParams>("p.so:Queue")).unwrap();
    let set = [("queue", "p.so:Queue"), ("queue.after", "0")];
    let set = set.map(|(key, text)| (key.to_string(), text.into()));
    let scenario = Scenario::parse_with(SCENARIO, "test", &set, Outside::disciplines(&queues));
    let panic = catch_unwind(AssertUnwindSafe(|| run(&scenario.unwrap(), 0))).err().unwrap();
    let Failure { is_queue, message } = *panic.downcast::<Failure>().unwrap();
    assert!(is_queue && message.contains("observe: `backlog_bytes` is a quantity"), "{message}");
}

#[test]
fn the_quantities_of_each_link_and_flow_are_known() {
    let varying = r#"{ steps = [["0s", "10mbit"], ["1s", "8mbit"]] }"#;
    let down = format!("rate = {varying}, driver = {{ limit = \"9p\", bql = true }}");
    let text = SCENARIO.replacen("rate = \"10mbit\"", &down, 1).replace("codel", "droptail");
    let text = text.replace("bbr3", "reno");
    let scenario = Scenario::parse_with(&text, "test", &[], Outside::default()).unwrap();
    let mut seen = BTreeSet::new();
    let samples = run(&scenario, 0).samples;
    seen.extend(
        samples.iter().map(|each| (matches!(each.subject, Subject::Link(_)), each.quantity)),
    );
    let mut stepped = Run::new(scenario, 0);
    stepped.advance(Time::from_nanos(1_000_000_000)).unwrap();
    stepped.observe(&mut |subject, name, _| {
        seen.insert((matches!(subject, Subject::Link(_)), name));
    });
    let known =
        OF_LINKS.map(|name| (true, name)).into_iter().chain(OF_FLOWS.map(|name| (false, name)));
    assert_eq!(seen, known.collect());
}

#[test]
fn a_table_begins_with_its_header() {
    let header = Header::of::<aqmlab_aqm::abi::Table>("Mine", 7);
    assert_eq!(header.name(), "Mine");
    assert_eq!(size_of::<aqmlab_aqm::abi::Table>(), size_of::<aqmlab_aqm::abi::Loaded>());
    assert_eq!(std::mem::offset_of!(aqmlab_aqm::abi::Table, header), 0);
    assert_eq!(std::mem::offset_of!(Header, version), 0);
}
