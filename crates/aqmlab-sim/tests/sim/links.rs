//! Links whose rate changes, and ways on which packets do not all fare alike.

use std::sync::Arc;

use crate::common::Settings;
use crate::common::busy_link::{
    RATES, error, file, read_file, result, scenario, scenario_with, trace,
};
use aqmlab_sim::rate::{InputFile, RateProcess};
use aqmlab_sim::{LinkResult, Outside, RunResult, Scenario, run};
use proptest::prelude::*;

fn queue(result: &RunResult) -> &LinkResult {
    &result.links[0]
}

#[test]
fn every_rate_runs_the_same_twice_and_never_uses_more_than_it_offers() {
    for rate in RATES {
        let scenario = scenario(&[("links.down.rate", rate)]).unwrap();
        let (first, again) = (run(&scenario, 3), run(&scenario, 3));
        assert_eq!((first.digest(), first.events), (again.digest(), again.events), "{rate}");
        let used = queue(&first).utilisation;
        assert!(used <= 1.0 && used > 0.6, "{rate}: {used}");
        let mean = queue(&first).counts.delivered_bytes as f64 * 8.0 / 20.0 / used;
        let stated = scenario.links[0].rate.as_bps() as f64;
        assert!((mean / stated - 1.0).abs() < 0.5, "{rate}: {mean} of {stated}");
    }
}

#[test]
fn every_form_reads_back() {
    let others: &[&Settings] = &[
        &[("links.down.delay", r#"{ steps = [["0s", "1ms"], ["2s", "30ms"]], repeat = true }"#)],
        &[("links.down.delay", r#"{ csv = "delays.csv", unit = "2ms" }"#)],
        &[("links.down.jitter.spread", "3ms"), ("links.down.reordering", "true")],
        &[("links.down.loss", "0.01")],
        &[("links.down.loss", "{ p = 0.01, r = 0.3, bad = 0.9, good = 0.001 }")],
        &[("links.down.loss", "{ packets = [1, 5] }"), ("links.down.duplicate", "0.1")],
        &[("links.down.link_layer", "ipoa-vcmux"), ("links.down.mpu", "60")],
        &[("links.down.shares", "up")],
        &[("links.down.slot.min", "4ms"), ("links.down.slot.packets", "3")],
        &[("links.down.jitter.spread", "3ms"), ("links.down.jitter.correlation", "0.5")],
        &[("links.down.jitter", "{ spread = '0ms', reorder = 0.25, gap = 5 }")],
        &[("links.down.loss", "0.01"), ("links.down.loss.correlation", "0.25")],
        &[("links.down.duplicate", "{ chance = 0.1, correlation = 0.25 }")],
    ];
    let rates: Vec<Vec<(&str, &str)>> =
        RATES.iter().map(|rate| vec![("links.down.rate", *rate)]).collect();
    let plain = scenario(&[]).unwrap().to_json();
    for overrides in others.iter().copied().chain(rates.iter().map(Vec::as_slice)) {
        let scenario = scenario(overrides).unwrap();
        let outside = Outside::files(&read_file);
        let again = Scenario::from_table(scenario.to_table(), "again", &[], outside);
        assert_eq!(again.unwrap(), scenario);
        assert_ne!(scenario.to_json(), plain);
    }
}

/// Files are parsed once, with the same result as if each scenario parsed its own.
#[test]
fn scenarios_that_are_given_the_same_file_share_what_is_in_it() {
    let read = |rate: &str, shared: &Arc<InputFile>| {
        scenario_with(&[("links.down.rate", rate)], Outside::files(&|_| Ok(Arc::clone(shared))))
    };
    let shared = file(trace().as_bytes()).unwrap();
    let twice = ["{ trace = 'some.trace' }", "{ trace = 'some.trace', opportunity = '100b' }"];
    let [one, other] = twice.map(|rate| read(rate, &shared).unwrap());
    let (RateProcess::Trace(_, here), RateProcess::Trace(_, there)) =
        (&one.links[0].process, &other.links[0].process)
    else {
        panic!("not traces")
    };
    assert!(Arc::ptr_eq(here, there));
    assert_eq!(one, scenario(&[("links.down.rate", twice[0])]).unwrap());
    assert_ne!(one, other);
    // What the same columns mean is up to the scenario.
    let shared = file(b"0,1\n1,2\n").unwrap();
    for rate in ["{ csv = 'x' }", "{ csv = 'x', unit = '1kbit' }", "{ csv = 'x', repeat = false }"]
    {
        let alone = read(rate, &file(b"0,1\n1,2\n").unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(read(rate, &shared).unwrap(), alone);
        }
    }
    // Errors name the file as each scenario does.
    let error =
        |name: &str| read(&format!("{{ trace = '{name}' }}"), &shared).unwrap_err().to_string();
    assert!(error("a").starts_with("a:1: links.down.rate.trace: `0,1`"), "{}", error("a"));
    assert!(error("b").starts_with("b:1: "), "{}", error("b"));
}

#[test]
fn a_file_is_part_of_the_scenario_by_its_content() {
    let trace = [("links.down.rate", "{ trace = 'a' }")];
    let read =
        |text: &'static str| scenario_with(&trace, Outside::files(&move |_| file(text.as_bytes())));
    let (one, other) = (read("1\n5\n").unwrap(), read("1\n6\n").unwrap());
    assert_ne!(one.to_json(), other.to_json());
    // A resolved scenario is refused if its file is not the same any more.
    let changed =
        Scenario::from_table(one.to_table(), "a", &[], Outside::files(&|_| file(b"1\n6\n")));
    let changed = changed.unwrap_err().to_string();
    assert!(changed.contains("links.down.rate.trace") && changed.contains("has changed"));
    let missing = error(&[("links.down.rate", "{ trace = 'none' }")]);
    assert_eq!(missing, "none: links.down.rate.trace: there is no such file");
    let unread = scenario_with(&trace, Outside::default()).unwrap_err().to_string();
    assert!(unread.contains("files are not read here"), "{unread}");
}

#[test]
fn settings_of_what_is_not_there_are_refused() {
    let said = error(&[("links.dwon.rate", "5mbit")]);
    assert!(said.contains("`dwon`: unknown link") && said.contains("mean `down`"), "{said}");
    let said = error(&[("flows.blk.count", "5")]);
    assert!(said.contains("unknown group of flows") && said.contains("mean `bulk`"), "{said}");
    let said = error(&[("quue", "codel")]);
    assert!(said.contains("quue: unknown key") && said.contains("mean `queue`"), "{said}");
}

#[test]
fn bad_forms_are_refused() {
    for (key, value, expected) in [
        ("rate", "{ stepz = 1 }", "a table with `steps`, `trace`, `csv` or `process`"),
        ("rate", "{ process = 'lt' }", "did you mean `lte`?"),
        ("rate", "{ process = 'lte', men = '1mbit' }", "did you mean `mean`?"),
        ("rate", "{ steps = [['0s', '0bit']] }", "a rate above zero"),
        ("rate", "{ steps = [['0s', '1mbit'], ['1s', '2000tbit']] }", "at most 1000000gbit"),
        ("rate", "{ steps = [['0s']] }", "a list of steps"),
        (
            "rate",
            "{ steps = [['1s', '1mbit']] }",
            "`step 1: 1s 1mbit`: expected a first step at 0s",
        ),
        (
            "rate",
            "{ steps = [['0s', '1mbit'], ['2s', '2mbit'], ['2s', '3mbit']] }",
            "`step 3: 2s 3mbit`: expected a time later",
        ),
        ("rate", "0bit", "expected rate from 1bit"),
        ("delay", "2h", "a time with its unit"),
        ("delay", "{ steps = [['0s', '70min']] }", "at most 3600s"),
        ("jitter", "5ms", "jitter"),
        ("slot", "{ min = '0s' }", "time has to pass"),
        ("slot", "{ min = '5ms', max = '1ms' }", "from `min`, 5ms"),
        ("slot", "{ bytes = '0b' }", "from 1b"),
        ("slot", "{ mim = '5ms' }", "did you mean `min`?"),
        ("loss", "2", "a probability from 0 to 1"),
        ("loss", "'120%'", "a probability from 0 to 1"),
        ("loss", "nan", "a probability from 0 to 1"),
        ("loss", "{ chance = 1.5 }", "loss.chance: "),
        ("loss", "{ chance = 0.1, correlation = 1 }", "loss.correlation: "),
        ("loss", "{ chance = 0.1, p = 0.1 }", "loss.p: unknown key"),
        ("loss", "{ p = 2.0 }", "loss.p: "),
        ("loss", "{ p = 0.1, r = 1.5 }", "loss.r: "),
        ("loss", "{ packets = [0] }", "numbers from 1"),
        ("loss", "{ packets = [-1] }", "loss.packets: "),
        ("loss", "{ q = 1 }", "known: p, r, bad, good, chance, correlation, packets, on, off"),
        ("loss", "gemodel 1%", "one with `p` (Gilbert-Elliott), `packets` or `on`"),
        ("loss", "{ on = '0s', off = '0s' }", "loss.on: "),
        ("loss", "{ off = '10us' }", "loss.off: "),
        ("loss", "{ on = '1s', p = 0.1 }", "loss.p: unknown key"),
        ("jitter", "'5ms'", "a table, with the keys spread, distribution, correlation"),
        ("rate", "'lte'", "rate = { process = \"lte\" }"),
        ("duplicate", "1.1", "a probability from 0 to 1"),
        ("link_layer", "docsi", "did you mean `docsis`?"),
        ("linklayer", "atm", "did you mean `link_layer`?"),
        ("overhead", "65536", "from -64b to 65535b"),
        ("shares", "upp", "did you mean `up`?"),
        ("shares", "down", "the name of another link"),
    ] {
        let error = error(&[(&format!("links.down.{key}"), value)]);
        assert!(error.contains(expected), "{key} = {value}: {error}");
        assert!(error.contains(&format!("links.down.{key}")), "{error}");
    }
    let both = error(&[("links.down.rate", "{ process = 'lte' }"), ("links.up.shares", "down")]);
    assert!(both.contains("not when a medium is free"), "{both}");
}

/// A flow over a trace of 300 bytes at a time.
fn over_a_slow_trace(settings: &Settings) -> RunResult {
    let trace = |_: &str| file(b"10\n20\n30\n40\n50\n60\n70\n80\n90\n100\n");
    let slow =
        [("links.down.rate", "{ trace = 'x', opportunity = '300b' }"), ("flows.bulk.count", "1")];
    run(&scenario_with(&[&slow, settings].concat(), Outside::files(&trace)).unwrap(), 0)
}

#[test]
fn an_opportunity_carries_parts_of_packets_and_what_is_left_over_is_lost() {
    // 300 bytes at a time, a packet of 1500 needs five of them; with 4 bytes
    // of overhead it needs six.
    let arrival = |overhead: &str| {
        let settings = [("links.down.overhead", overhead), ("flows.bulk.size", "1460b")];
        let result = over_a_slow_trace(&settings);
        (result.flows[0].finish.unwrap().as_secs_f64(), queue(&result).utilisation)
    };
    let (plain, framed) = (arrival("0"), arrival("4"));
    assert!((framed.0 - plain.0 - 0.01).abs() < 1e-6, "{plain:?} {framed:?}");
    assert!(plain.1 < 1.0 && framed.1 < 1.0);
}

/// A packet in transmission at the end of the warm-up counts before it, as delivered and as lost.
#[test]
fn no_more_packets_are_lost_than_delivered_after_the_warm_up() {
    for warmup in ["5010ms", "5020ms", "5030ms", "5040ms", "5050ms"] {
        let settings = [
            ("links.down.loss", "1"),
            ("flows.bulk.size", "'none'"),
            ("flows.bulk.workload", "{ kind = 'cbr', rate = '1mbit', packet = '1500b' }"),
            ("record.warmup", warmup),
        ];
        let result = over_a_slow_trace(&settings);
        let link = queue(&result);
        assert!(link.counts.delivered > 100);
        assert_eq!(link.way.lost, link.counts.delivered, "{warmup}");
    }
}

#[test]
fn framing_takes_its_share() {
    let plain = result(&[]);
    let framed = result(&[("links.down.framing", "atm"), ("links.down.overhead", "8")]);
    let bytes = |result: &RunResult| queue(result).counts.delivered_bytes as f64;
    // A packet of 1500 bytes takes 32 cells of 53.
    let share = bytes(&framed) / bytes(&plain);
    assert!((share - 1500.0 / (32.0 * 53.0)).abs() < 0.005, "{share}");
    assert!(queue(&framed).utilisation > 0.97);
    // With nothing to add, it is the same link.
    let same = result(&[
        ("links.down.link_layer", "docsis"),
        ("links.down.overhead", "0"),
        ("links.down.mpu", "0"),
    ]);
    assert_eq!(queue(&same).counts, queue(&plain).counts);
    let as_course = result(&[("links.down.rate", "{ steps = [['0s', '10mbit']] }")]);
    assert_eq!(queue(&as_course).counts, queue(&plain).counts);
    assert_eq!(queue(&as_course).sojourn, queue(&plain).sojourn);
}

#[test]
fn losses_are_counted_on_the_way_and_not_at_the_queue() {
    let lossy = result(&[("links.down.loss", "0.02"), ("links.up.loss", "0.01")]);
    for (link, chance) in [(0, 0.02), (1, 0.01)] {
        let link = &lossy.links[link];
        let sent = link.counts.delivered as f64;
        let rate = link.way.lost as f64 / sent;
        assert!((rate - chance).abs() < 4.0 * (chance / sent).sqrt(), "{rate}");
        assert!(link.way.lost_bytes >= 40 * link.way.lost);
    }
    assert_eq!(queue(&lossy).counts.dropped_total(), 0, "the windows stay small");
    assert!(lossy.flows.iter().all(|flow| flow.stats.unwrap().retransmissions > 0));
    let listed = result(&[("links.down.loss", "{ packets = [20, 21, 50] }")]);
    assert_eq!(queue(&listed).way.lost, 3);
}

#[test]
fn duplicates_are_counted_and_do_no_harm() {
    let twice = result(&[("links.down.duplicate", "1"), ("links.up.duplicate", "0.5")]);
    let link = queue(&twice);
    assert_eq!(link.way.duplicated, link.counts.delivered);
    assert!(link.utilisation > 0.9, "{}", link.utilisation);
    assert_eq!(link.way.reordered, 0);
}

#[test]
fn a_probe_has_one_answer_however_many_come() {
    let count = ("flows.bulk.count", "1");
    let twice = [("links.down.duplicate", "1"), ("links.up.duplicate", "0.5")];
    let result = result(&[count, ("flows.bulk.workload", "probe"), twice[0], twice[1]]);
    let group = &result.groups[0];
    assert!(group.completed > 90 && group.completed <= group.started, "{}", group.completed);
    let rtt = group.times_of("rtt").unwrap();
    assert_eq!(rtt.count, group.completed);
}

#[test]
fn packets_keep_their_order_unless_they_need_not() {
    let jitter = ("links.down.jitter", "{ spread = '4ms', distribution = 'uniform' }");
    let steps = ("links.down.delay", "{ steps = [['0s', '40ms'], ['1s', '5ms']], repeat = true }");
    let free = ("links.down.reordering", "true");
    for setting in [jitter, steps] {
        let kept = result(&[setting]);
        assert_eq!(queue(&kept).way.reordered, 0, "{setting:?}");
        let loose = result(&[setting, free]);
        assert!(queue(&loose).way.reordered > 5, "{setting:?}");
    }
    let early = result(&[("links.down.jitter", "{ spread = '0ms', reorder = 0.25 }")]);
    assert!(queue(&early).way.reordered > 100, "without `reordering`");
    // A packet does not overtake its duplicate: neither was sent later.
    let load = ("flows.bulk.workload", "{ kind = 'cbr', rate = '400kbit' }");
    let alone = [load, ("flows.bulk.count", "1")];
    let twice = result(&[jitter, free, ("links.down.duplicate", "0.5"), alone[0], alone[1]]);
    assert!(queue(&twice).way.duplicated > 50 && queue(&twice).way.reordered == 0);
    let constant = result(&[free]);
    assert_eq!(queue(&constant).way.reordered, 0);
    assert_eq!(queue(&constant).counts, queue(&result(&[])).counts);
}

#[test]
fn a_changing_delay_is_that_of_the_moment() {
    // 10 ms in each direction, then 60 and 10: the transfer after the step takes two longer round
    // trips.
    let one = |delay: &str| {
        let settings = [
            ("links.down.delay", delay),
            ("flows.bulk.count", "1"),
            ("flows.bulk.size", "1000b"),
            ("flows.bulk.start", "5s"),
        ];
        let result = result(&settings);
        result.flows[0].finish.unwrap().as_secs_f64()
    };
    let before = one("{ steps = [['0s', '10ms'], ['6s', '60ms']] }");
    let after = one("{ steps = [['0s', '10ms'], ['4s', '60ms']] }");
    assert!((before - one("10ms")).abs() < 1e-9);
    assert!((after - before - 0.1).abs() < 1e-6, "{before} {after}");
    let from_file = one("{ csv = 'delays.csv', repeat = false }");
    assert!((before - from_file - 0.01).abs() < 1e-6, "{before} {from_file}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `run` checks that every packet is accounted for, at the queue and in propagation.
    #[test]
    fn nothing_is_lost_uncounted(
        rate in prop::sample::select(RATES.to_vec()),
        queue in prop::sample::select(vec!["droptail", "codel", "pie", "fq_codel", "red"]),
        loss in prop::sample::select(vec!["0", "0.05", "{ p = 0.01, r = 0.2 }"]),
        duplicate in prop::sample::select(vec!["0", "0.1"]),
        spread in prop::sample::select(vec!["0ms", "5ms", "30ms"]),
        reordering in prop::sample::select(vec!["true", "false"]),
        slot in prop::sample::select(vec![None, Some("{ min = '1ms', max = '9ms', packets = 8 }")]),
        order in prop::sample::select(vec!["arrivals-first", "departures-first"]),
        behind in prop::sample::select(vec![None, Some(("links.down.driver.limit", "3p")),
            Some(("links.down.shaper.rate", "4mbit"))]),
    ) {
        let mut settings = vec![
            ("links.down.rate", rate),
            ("queue", queue),
            ("duration", "6s"),
            ("simultaneous", order),
            ("links.down.loss", loss),
            ("links.up.loss", loss),
            ("links.up.duplicate", duplicate),
            ("links.down.duplicate", duplicate),
            ("links.down.jitter.spread", spread),
            ("links.up.jitter.spread", spread),
            ("links.down.reordering", reordering),
            ("links.up.reordering", reordering),
        ];
        settings.extend(behind);
        if let Some(slot) = slot.filter(|_| reordering == "false") {
            settings.extend([("links.down.slot", slot), ("links.up.slot", slot)]);
        }
        let result = result(&settings);
        let link = &result.links[0];
        prop_assert!(link.utilisation <= 1.0);
        prop_assert!(link.counts.delivered > 0);
        prop_assert!(reordering == "true" || link.way.reordered == 0);
    }
}

/// A link whose last packet never ends, and one that needs longer for a packet than any run:
/// outages are drawn up to the end of the run only.
#[test]
fn a_packet_that_is_never_sent_ends_no_run() {
    let rates = [
        "{ steps = [['0s', '1mbit'], ['5s', '0bit']] }",
        "{ process = 'ornstein-uhlenbeck', mean = '1bit', deviation = '0bit' }",
        "{ process = 'lte', mean = '1kbit', outage_interval = '1ms', outage = '1000s' }",
        "1bit",
    ];
    for rate in rates {
        for shaper in ["none", "{ rate = '100kbit' }"] {
            let settings = [
                ("duration", "10s"),
                ("links.down.rate", rate),
                ("links.down.loss", "{ on = '1ms', off = '1ms' }"),
                ("links.down.overhead", "65535"),
            ];
            let shaper = [("links.down.shaper", shaper)];
            let shaper = if shaper[0].1 == "none" { &[][..] } else { &shaper[..] };
            let result = run(&scenario(&[&settings[..], shaper].concat()).unwrap(), 0);
            let down = &result.links[0];
            assert!((0.0..=1.0).contains(&down.utilisation), "{rate}: {}", down.utilisation);
            assert!(down.counts.arrived > 0, "{rate}: there are packets to send");
        }
    }
}
