//! Measurements of two directions are separate, and the worse direction is reported first.

use crate::common::{Settings, on_line};
use aqmlab_sim::endpoints::Direction;
use aqmlab_sim::{GroupResult, RunResult};

/// Four bulk flows keep a deep queue at `down`; nothing waits at `up`. Pings, a game and a call
/// cross both.
fn result(settings: &Settings) -> RunResult {
    let both = |workload| format!("{{ path = 'down', return_path = 'up', {workload} }}");
    let requests = "{ kind = 'requests', request = '2000b', response = '2000b', think = '100ms' }";
    let groups = ["probe", "game", "voip"].map(|kind| both(format!("workload = '{kind}'")));
    let [ping, game, call] = groups.each_ref().map(String::as_str);
    let files = both(format!("delays = true, workload = {requests}"));
    let standing = [
        ("duration", "30s"),
        ("transport.profile", "linux-6"),
        ("flows.bulk.count", "4"),
        ("flows.bulk.delays", "true"),
        ("flows.ping", ping),
        ("flows.game", game),
        ("flows.call", call),
        ("flows.files", &files),
        ("record.warmup", "10s"),
    ];
    on_line(&[&standing, settings].concat())
}

/// Directions, numbers and medians of the one-way delays of a group, in the order of the tables.
fn delays(group: &GroupResult) -> Vec<(Option<Direction>, u64, f64)> {
    let delays = group.times.iter().filter(|(quantity, _)| quantity.name == "delay");
    delays.map(|(quantity, of)| (quantity.direction, of.count, of.quantiles[0])).collect()
}

fn scores(group: &GroupResult, name: &str) -> Vec<(Option<Direction>, f64)> {
    let scores = group.values.iter().filter(|(quantity, _)| quantity.name == name);
    scores.map(|(quantity, value)| (quantity.direction, *value)).collect()
}

const FORWARD: Option<Direction> = Some(Direction::Forward);
const REVERSE: Option<Direction> = Some(Direction::Backward);

#[test]
fn the_delay_of_a_two_way_group_is_that_of_each_direction() {
    let result = result(&[]);
    let waited = result.links[0].sojourn.mean;
    assert!(waited > 0.5, "{waited}");
    assert_eq!(delays(&result.groups[0]).len(), 1, "data of bulk flows go one way");
    for group in &result.groups[1..] {
        // Data of connections is measured like datagrams, in both directions.
        let [(first, _, worse), (second, count, better)] = delays(group)[..] else {
            panic!("{:?}", delays(group))
        };
        assert_eq!((first, second), (FORWARD, REVERSE));
        assert!((worse / (waited + 0.02) - 1.0).abs() < 0.2, "{worse} {waited}");
        assert!((0.020..0.022).contains(&better) && count > 15, "{better}");
        assert_eq!(group.times_of("delay").unwrap().quantiles[0], worse);
    }
    let late = scores(&result.groups[2], "late");
    assert_eq!((late.len(), late[0].0, late[1]), (2, FORWARD, (REVERSE, 0.0)));
    assert!(late[0].1 > 0.8, "the queue makes the game late one way: {late:?}");
}

/// The return path of these groups has the queue, so that direction is the worse.
#[test]
fn the_worse_direction_may_be_the_reverse() {
    let turned = [("flows.ping.path", "up"), ("flows.ping.return_path", "down")];
    let result = result(&turned);
    let [(first, _, worse), (_, _, better)] = delays(&result.groups[1])[..] else { panic!() };
    assert_eq!(first, REVERSE);
    assert!(worse > 0.5 && better < 0.03, "{worse} {better}");
}

/// A side that says nothing loses nothing: the delay of the call is that of the other.
#[test]
fn a_silent_direction_has_no_delays() {
    let call = "{ path = 'down', return_path = 'up', workload = { kind = 'voip', \
                silence = { exponential = '4s' } } }";
    let calls = (0..20).map(|seed: u32| {
        on_line(&[("duration", "3s"), ("seed", &seed.to_string()), ("flows.call", call)])
    });
    let mut silent = calls.filter(|result| {
        let sent = result.groups[1].traffic.map(|of| of.unwrap().sent_bytes.unwrap() > 0);
        sent == [true, false] || sent == [false, true]
    });
    let result = silent.next().unwrap();
    let [(_, count, _)] = delays(&result.groups[1])[..] else { panic!() };
    assert!(count > 0);
}

#[test]
fn a_direction_that_carries_nothing_has_a_score_of_its_own() {
    let result = result(&[("links.up.loss", "1")]);
    let call = &result.groups[3];
    let mos = scores(call, "mos");
    assert_eq!(mos[0], (REVERSE, 1.0), "nothing arrives: {mos:?}");
    assert_eq!(scores(call, "lost")[0], (REVERSE, 1.0));
    assert_eq!(mos.len(), 2);
    let [(first, count, _), _] = delays(call)[..] else { panic!("{:?}", delays(call)) };
    assert_eq!((first, count), (REVERSE, 0), "without a delay: the worst");
    let game = scores(&result.groups[2], "lost");
    assert_eq!((game.len(), game[0]), (2, (REVERSE, 1.0)));
    // No packet arrives, and all losses are on the link.
    let traffic = call.traffic[1].unwrap();
    assert_eq!((traffic.arrived[1], traffic.delivered_bytes), (0, 0));
    assert!(traffic.losses.links.data > 100, "{traffic:?}");
}

/// The player learns the delay of a queue that is there already, or comes later: the score does not
/// depend on when the call started.
#[test]
fn a_call_sounds_the_same_whenever_it_started() {
    let rating = |start| {
        // A window of 600 kB keeps 0.45 s in the queue.
        let settings = [
            ("flows.bulk.count", "1"),
            ("flows.bulk.transport.receive_window", "600000b"),
            ("flows.call.start", start),
            ("flows.call.count", "20"),
            ("record.warmup", "20s"),
            ("duration", "120s"),
        ];
        let call = &result(&settings).groups[3];
        let late = scores(call, "late")[0].1;
        assert!(late < 0.05, "{start}: late {late}");
        scores(call, "r_factor")[0].1
    };
    let (early, later) = (rating("0s"), rating("15s"));
    assert!((early - later).abs() < 3.0 && early > 40.0, "{early} {later}");
}
