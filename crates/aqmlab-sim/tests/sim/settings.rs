//! Settings on top of a scenario, and queues and shapers in words.

use aqmlab_core::catalogue::say_in_words;
use aqmlab_core::{Framing, ParamType, Value, words};
use aqmlab_sim::network::egress::ShaperParams;
use aqmlab_sim::scenario::LinkConfig;
use aqmlab_sim::{Outside, Scenario};

const LINE: &str = r#"
    [links.down]
    rate = "50mbit"
    [links.up]
    rate = "10mbit"
    queue = "fq_codel limit 1000p target=3ms"
    shaper = "htb rate 9500kbit overhead 30 linklayer atm"
    [flows.bulk]
    path = ["down"]
    return_path = ["up"]
"#;

fn pairs(settings: &[(&str, &str)]) -> Vec<(String, Value)> {
    settings.iter().map(|(key, value)| (key.to_string(), (*value).into())).collect()
}

fn with(settings: &[(&str, &str)]) -> aqmlab_core::Result<Scenario> {
    let settings = pairs(settings);
    let outside = Outside { settings: &settings, ..Outside::default() };
    Scenario::parse_with(LINE, "line.toml", &[], outside)
}

fn links(settings: &[(&str, &str)]) -> [LinkConfig; 2] {
    with(settings).unwrap().links.try_into().unwrap()
}

fn queues(settings: &[(&str, &str)]) -> [String; 2] {
    links(settings).map(|link| say_in_words(&link.queue))
}

#[test]
fn a_queue_is_words_or_a_table_and_settings_reach_it_by_every_name() {
    assert_eq!(queues(&[]), ["pfifo limit 1000", "fq_codel limit 1000 target 3ms"]);
    let shallow = ["pfifo limit 100", "fq_codel limit 1000 target 3ms"];
    for settings in [
        // A limit alone is one of the queue that is there by default.
        &[("queue.limit", "100p")][..],
        &[("links.down.queue.limit", "100p")],
        &[("down.queue.limit", "100p")],
        &[("queue", "droptail limit 100")],
        &[("down.queue", "pfifo limit=100p")],
        &[("links.down.queue", "droptail"), ("queue.limit", "100p")],
    ] {
        assert_eq!(queues(settings), shallow, "{settings:?}");
    }
    let [_, up] = queues(&[("up.queue.limit", "5p")]);
    assert_eq!(up, "fq_codel limit 5 target 3ms", "the words before stay");
    let [down, _] = queues(&[("queue", "cake bandwidth 45mbit nat"), ("queue.interval", "3ms")]);
    assert_eq!(down, "cake bandwidth 45mbit rtt 3ms");
}

#[test]
fn a_shaper_is_words_or_a_table() {
    let [down, up] = links(&[("down.shaper", "rate 45mbit burst 3k link_layer=pppoe-ptm")]);
    let [down, up] = [down, up].map(|link| link.shaper.unwrap());
    assert_eq!(
        up.framing.resolve(),
        Framing { overhead: 30, cells: aqmlab_core::Cells::Atm, ..Framing::NONE }
    );
    assert_eq!(words::say_params(&up).words, "htb rate 9.5mbit overhead 30 linklayer atm");
    assert_eq!((down.burst.unwrap().get(), down.framing.resolve().overhead), (3072, 30));
    let [_, changed] = links(&[("up.shaper.ceil", "10mbit")]);
    let said = words::say_params(&changed.shaper.unwrap());
    assert_eq!(said.words, "htb rate 9.5mbit ceil 10mbit overhead 30 linklayer atm");
    let line = "tc class add dev eth0 parent 1: classid 1:1 htb rate 9500kbit burst 15k/8 \
                prio 1 quantum 1514";
    let read = ShaperParams::parse(&line.into()).unwrap();
    assert_eq!(words::say_params(&read).words, "htb rate 9.5mbit burst 15360");
    let line =
        "tc qdisc add dev eth0 root tbf rate 5mbit burst 5kb latency 70ms peakrate 8mbit mtu 1540";
    let said = words::say_params(&ShaperParams::parse(&line.into()).unwrap());
    assert_eq!(said.text(), "tbf rate 5mbit peakrate 8mbit burst 5120 mtu 1540");
    // HTB supports neither PTM nor keywords: unsupported keys are named.
    let left_out = words::say_params(&down).left_out;
    assert_eq!(left_out, [("link_layer".to_string(), "pppoe-ptm".to_string())]);
}

#[test]
fn settings_of_a_queue_apply_in_their_order_by_every_name() {
    for key in ["queue.target", "down.queue.target", "links.down.queue.target"] {
        let [down, up] = queues(&[("queue", "codel"), (key, "7ms"), ("up.queue.limit", "5p")]);
        assert_eq!(down, "codel target 7ms", "{key}");
        assert_eq!(up, "fq_codel limit 5 target 3ms");
        let [down, _] = queues(&[("queue", "codel"), (key, "7ms"), ("queue", "pie")]);
        assert_eq!(down, "pie", "{key}");
        let error = with(&[("queue", "pfifo"), (key, "7ms")]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--set: {key}: unknown key")), "{error}");
    }
}

#[test]
fn an_error_names_the_option_and_the_key_as_it_was_written() {
    for (key, value, expected) in [
        ("queue", "fq_codel targte 5ms", "--set: queue: `targte`: unknown word of fq_codel"),
        ("queue", "fq_codel target soon", "--set: queue.target: `soon`: expected a time"),
        ("up.queue", "cake fwmark 1", "--set: up.queue.fwmark: `1`: not modelled"),
        ("links.up.queue", "nope", "--set: links.up.queue: `nope`: unknown queue discipline"),
        ("queue.traget", "3ms", "--set: queue.traget: unknown key"),
        ("up.queue.traget", "3ms", "--set: up.queue.traget: unknown key"),
        ("down.rate", "5", "--set: down.rate: `5`: expected a rate"),
        ("rate", "5mbit", "--set: rate: unknown key"),
        ("dwon.rate", "5mbit", "--set: dwon.rate: unknown key"),
        ("dwon.rate", "5mbit", "did you mean `down`?"),
        ("up.shaper", "htb ceil 5mbit", "--set: up.shaper: the key `rate` is missing"),
        ("up.shaper", "rate 5mbit mtu 9000", "--set: up.shaper.mtu: `9000`: expected 1600"),
        ("duration", "soon", "--set: duration: `soon`"),
    ] {
        let error = with(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{key}={value}: {error}");
    }
    // Errors of other keys do not name the option.
    let text = LINE.replace("target=3ms", "target=soon");
    let settings = pairs(&[("queue", "codel"), ("down.rate", "5mbit")]);
    let outside = Outside { settings: &settings, ..Outside::default() };
    let error = Scenario::parse_with(&text, "line.toml", &[], outside).unwrap_err().to_string();
    assert!(error.starts_with("line.toml: links.up.queue.target: `soon`"), "{error}");
}

#[test]
fn changes_take_the_same_forms() {
    let text = format!(
        "{LINE}\n[[changes]]\nat = '1s'\nkey = 'up.queue'\nvalue = 'cake bandwidth 5mbit docsis'\n\
         [[changes]]\nat = '2s'\nkey = 'queue.limit'\nvalue = '50p'\n"
    );
    let scenario = crate::common::scenario(&text, &[]);
    assert_eq!(scenario.changes.len(), 2);
    crate::common::read_again(&scenario);
}
