//! Networks with and without events for ends of transmissions are equivalent.

use aqmlab_aqm::{LinkEnv, QueueConfig};
use aqmlab_core::{Bytes, Rate, Span, Stream, Time, Value};
use proptest::prelude::{Just, Strategy, prop, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::Config as ProptestConfig;

use crate::network::events::EventKey;
use crate::network::testing::numbered;
use crate::network::{Network, RouteId, Setup};
use crate::scenario::Scenario;

/// External action on a network.
#[derive(Clone, Debug)]
enum Act {
    /// Injects packets of a size into a route.
    Inject(u32, u32, u64),
    /// Reads all links.
    Look,
    /// Changes rate, delay or queue of a link.
    Rate(u32, u64),
    Delay(u32, u64),
    Queue(u32, &'static str),
    /// Changes the limit of a link's queue, in packets.
    Limit(u32, u64),
    WarmupEnd,
    /// Continues with a copy of the network, in the run that defers ends.
    Copy,
}

const QUEUES: [&str; 6] = ["droptail", "codel", "pie", "fq_codel", "red", "cake"];

/// Rates at which a byte takes one nanosecond, two, or (up to four bytes) none.
const RATES: [u64; 3] = [8_000_000_000, 4_000_000_000, 999_000_000_000];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0u32..4, 1u32..6, 1u64..6).prop_map(|(route, size, count)| Act::Inject(route, size, count)),
        1 => Just(Act::Look),
        1 => (0u32..3, prop::sample::select(RATES.to_vec())).prop_map(|(link, rate)| Act::Rate(link, rate)),
        1 => (0u32..3, 0u64..4).prop_map(|(link, delay)| Act::Delay(link, delay)),
        1 => (0u32..3, prop::sample::select(QUEUES.to_vec())).prop_map(|(link, queue)| Act::Queue(link, queue)),
        1 => (0u32..3, 1u64..20).prop_map(|(link, limit)| Act::Limit(link, limit)),
        1 => Just(Act::WarmupEnd),
        1 => Just(Act::Copy),
    ]
}

fn scenario(links: &[(u64, u64, &str)], order: &str) -> Scenario {
    let mut text = format!("simultaneous = \"{order}\"\n");
    for (number, (rate, delay, queue)) in links.iter().enumerate() {
        text += &format!(
            "[links.l{number}]\nrate = \"{}mbit\"\ndelay = \"{delay}ns\"\nqueue = \"{queue}\"\n",
            rate / 1_000_000
        );
    }
    text += "[flows.one]\npath = [\"l0\"]\nreturn_path = [\"l1\"]\n";
    Scenario::parse(&text, "ends", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs the actions, and returns everything observable: delivered packets, readings, results, and
/// the number of events.
fn seen(scenario: &Scenario, plan: &[(u64, Act)], defers_ends: bool) -> Vec<String> {
    let setup = Setup { defers_ends, record_packets: true, ..scenario.network(0) };
    let mut network = Network::<()>::new(&setup);
    network.add_delay(Span::ZERO);
    for route in [&[0][..], &[0, 1, 2], &[2, 0, 3], &[1, 3]] {
        network.add_route(route.iter().copied());
    }
    network.start();
    let mut queues: Vec<QueueConfig> =
        scenario.links.iter().map(|link| link.queue.clone()).collect();
    let mut seen = Vec::new();
    let mut plan = plan.iter().peekable();
    let mut number = 0;
    let end = Time::from_nanos(400);
    loop {
        let next = plan.peek().map_or(end, |(at, _)| Time::from_nanos(*at));
        let event = network.next();
        if event != EventKey::MAX && event.time() <= next {
            let Some(packet) = network.step(&mut ()) else { continue };
            seen.push(format!("{:?} {} out", event.time(), packet.key));
            // Two of three packets are answered at once.
            if packet.key % 3 != 0 && number < 500 {
                number += 1;
                let answer = numbered(number, 1 + packet.key as u32 % 4);
                network.inject(event.time(), RouteId(packet.key as u32 % 4), answer, &mut ());
            }
            continue;
        }
        network.reach(EventKey::after(next));
        let Some((_, act)) = plan.next() else { break };
        if let Act::Copy = act {
            if defers_ends {
                let copy = network.clone();
                let mut original = std::mem::replace(&mut network, copy);
                // The original has no effect on the copy.
                original.inject(next, RouteId(0), numbered(u64::MAX, 5), &mut ());
                for _ in 0..50 {
                    original.step(&mut ());
                }
            }
            continue;
        }
        done(&mut network, next, act, &mut number, &mut queues, &mut seen);
    }
    network.finish(end);
    seen.push(format!("{} events", network.handled()));
    seen.extend(network.into_results(end).iter().map(|link| format!("{link:?}")));
    seen
}

fn done(
    network: &mut Network<()>,
    now: Time,
    act: &Act,
    number: &mut u64,
    queues: &mut [QueueConfig],
    seen: &mut Vec<String>,
) {
    let env =
        LinkEnv::new(Rate::from_bps(RATES[0]), Span::from_nanos(20)).with_sizes(Bytes::new(6), 0);
    match act {
        Act::Inject(route, size, count) => (0..*count).for_each(|_| {
            *number += 1;
            network.inject(now, RouteId(*route), numbered(*number, *size), &mut ());
        }),
        Act::Copy => unreachable!("handled by the caller"),
        Act::Look => {
            network.catch_up();
            seen.extend(network.links().map(|link| {
                let sojourns = link.sojourn().total();
                format!("{now:?} {:?} {:?} {sojourns:?}", link.queue.backlog(), link.queue.counts())
            }));
            seen.push(format!("{} events", network.handled()));
        }
        Act::Rate(link, rate) => {
            network.change_link(now, *link, |link, _| link.set_rate(now, Rate::from_bps(*rate)));
        }
        Act::Delay(link, delay) => network.change_link(now, *link, |link, _| {
            link.propagation
                .set_delay(Span::from_nanos(*delay), Stream::for_component(0, 0, "way"));
        }),
        Act::Queue(link, queue) => {
            let config = QueueConfig::read(&(*queue).into()).expect("it is a name");
            network.replace_queue(now, *link, config.build(&env));
            queues[*link as usize] = config;
        }
        Act::Limit(link, limit) => {
            let mut table = queues[*link as usize].to_table();
            table.insert("limit", format!("{limit}p").into());
            let config = QueueConfig::read(&Value::Table(table)).expect("all have a limit");
            network.change_queue(now, *link, &config, &env);
            queues[*link as usize] = config;
        }
        Act::WarmupEnd => network.end_warmup(now),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn ends_of_transmissions_without_events_are_those_with_events(
        links in prop::collection::vec(
            (prop::sample::select(RATES.to_vec()), 0u64..4, prop::sample::select(QUEUES.to_vec())), 3,
        ),
        mut plan in prop::collection::vec((0u64..200, act()), 1..60),
        order in prop::sample::select(vec!["arrivals-first", "departures-first"]),
    ) {
        plan.sort_by_key(|(at, _)| *at);
        let scenario = scenario(&links, order);
        prop_assert_eq!(seen(&scenario, &plan, true), seen(&scenario, &plan, false));
    }
}
