//! Any file or text gives a value or a clear error, in bounded time.

#[path = "../../fuzz/inputs.rs"]
mod inputs;

use std::sync::Arc;

use aqmlab_aqm::QueueConfig;
use aqmlab_core::catalogue::say_in_words;
use aqmlab_core::distribution::Measure;
use aqmlab_core::words::say_params;
use aqmlab_core::{Distribution, Error, ParamType, Result, Sampler, Span, Stream, Time, Value};
use aqmlab_sim::network::egress::ShaperParams;
use aqmlab_sim::rate::{Cursor, InputFile, Opportunities};
use aqmlab_sim::scenario::{parse_document, parse_value};
use aqmlab_sim::{Outside, Scenario};

const TOML: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\\u",
    "\\",
    "rate",
    "queue",
    "delay",
    "loss",
    "links.down.",
    "flows.one.",
    "workload",
    "transport",
    "discipline",
    "kind",
    "\"fq_codel\"",
    "\"none\"",
    "\"auto\"",
    "\"unlimited\"",
    "true",
    "1e400",
    "9999999999999999999",
    "1979-05-27T07:32:00Z",
    "\u{0}",
    "\u{FEFF}",
    "\u{202E}",
    "10mbit",
    "1s",
];

/// Checks that errors describe the problem, in a message of bounded length.
fn is_clear(error: &Error) -> bool {
    let text = error.to_string();
    !text.is_empty() && text.len() < 4000
}

fn is_taken<T>(result: &Result<T>) -> bool {
    if let Err(error) = result {
        assert!(is_clear(error), "{error}");
    }
    result.is_ok()
}

/// What a text says, and whether the scenario of it reads back; the file that it names has this
/// content.
fn with_file(text: &str, content: &[u8]) -> Result<Scenario> {
    let content = content.to_vec();
    let read = move |_: &str| Ok(Arc::new(InputFile::new(content.clone())));
    let scenario = Scenario::parse_with(text, "scenario", &[], Outside::files(&read))?;
    let outside = Outside::files(&read);
    let again = Scenario::from_table(scenario.to_table(), "again", &[], outside).unwrap();
    assert_eq!(again.to_json(), scenario.to_json());
    Ok(scenario)
}

#[test]
fn scenarios_are_read_or_refused() {
    inputs::try_all("toml", TOML, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        is_taken(&parse_document(text));
        text.lines().for_each(|line| drop(parse_value(line)));
        is_taken(&with_file(text, b"1\n2\n3\n"))
    });
}

fn draws<T: Measure>(text: &str) -> bool {
    let distribution = Distribution::<T>::parse(&Value::from(text));
    if let Ok(distribution) = &distribution {
        assert!(!distribution.mean().is_sign_negative());
        let mut sampler = Sampler::new(distribution, Stream::for_component(1, 0, "sizes"));
        for _ in 0..20 {
            let _ = sampler.draw();
        }
    }
    is_taken(&distribution)
}

#[test]
fn distributions_are_read_or_refused() {
    const WORDS: &[&str] = &[
        "(",
        ")",
        ",",
        "=",
        "uniform",
        "exponential",
        "pareto",
        "lognormal",
        "weibull",
        "extreme",
        "cdf",
        "list",
        "constant",
        "shape",
        "mean",
        "scale",
        "median",
        "sigma",
        "cap",
        "location",
        "ms",
        "ns",
        "s",
        "b",
        "kb",
        "gb",
        " ",
    ];
    inputs::try_all("distribution", WORDS, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        let sizes = draws::<aqmlab_core::Bytes>(text);
        draws::<Span>(text) || sizes
    });
}

#[test]
fn traces_are_read_or_refused() {
    inputs::try_all("trace", &["\n", "\r\n", "0", "4294967295", "4294967296", " ", "-"], |input| {
        let trace = Opportunities::parse(input, "trace");
        if let Ok(trace) = &trace {
            let end = Time::ZERO + Span::from_secs(1000);
            assert!(trace.period() > 0 && trace.total() > 0);
            assert!(trace.before(end) >= trace.before(Time::ZERO + Span::from_millis(1)));
            let mut cursor = Cursor::start();
            cursor.seek(trace, end);
            let before = cursor.peek(trace);
            cursor.advance(trace);
            assert!(before.0 >= end && before.1 > 0 && cursor.peek(trace).0 >= before.0);
        }
        is_taken(&trace)
    });
}

const WITH_COLUMNS: [&str; 3] = [
    "rate = { csv = \"f\", unit = \"1mbit\" }\ndelay = \"1ms\"",
    "rate = \"1mbit\"\ndelay = { csv = \"f\", unit = \"1ms\", repeat = true }",
    "rate = \"1mbit\"\ndelay = \"1ms\"\n[flows.one.workload]\nkind = \"transfers\"\n\
     size = { list = { file = \"f\", unit = \"b\" } }",
];

#[test]
fn columns_are_read_or_refused() {
    const WORDS: &[&str] =
        &[",", ";", "\t", " ", "\n", "\r\n", "time", "#", "-", "e", "1e300", "nan", "inf", "0"];
    inputs::try_all("csv", WORDS, |input| {
        let tries = WITH_COLUMNS.map(|lines| {
            let text = format!(
                "duration = \"1s\"\n[flows.one]\npath = \"down\"\nreturn_path = \"up\"\n\
                 [links.up]\nrate = \"1mbit\"\ndelay = \"1ms\"\n[links.down]\n{lines}\n"
            );
            is_taken(&with_file(&text, input))
        });
        tries.contains(&true)
    });
}

/// Notation of queues and shapers: printed values read back as the same.
#[test]
fn words_are_read_or_refused() {
    const WORDS: &[&str] = &[
        " ",
        "=",
        "\t",
        "no",
        "tc ",
        "qdisc ",
        "cake ",
        "red ",
        "pfifo ",
        "sfb ",
        "choke ",
        "htb ",
        " limit ",
        " target ",
        " overhead ",
        " burst ",
        " ethernet ",
        " ether-vlan ",
        " rate ",
        " ecn",
        " true",
        " dev",
        ".py:",
        "1:",
        "5ms",
        "64k",
        "100p",
        "2bdp",
        "-64",
        "4294967296",
        "1e400",
        "%",
        "unlimited",
        "none",
        "auto",
        "\u{0}",
        "\u{202E}",
    ];
    inputs::try_all("queue", WORDS, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        let queue = QueueConfig::read(&text.into());
        if let Ok(queue) = &queue {
            let words = say_in_words(queue);
            assert_eq!(&QueueConfig::read(&words.as_str().into()).unwrap(), queue, "{words}");
        }
        let shaper = ShaperParams::parse(&text.into());
        if let Ok(shaper) = &shaper {
            let words = say_params(shaper).text();
            assert_eq!(&ShaperParams::parse(&words.as_str().into()).unwrap(), shaper, "{words}");
        }
        is_taken(&queue) | is_taken(&shaper)
    });
}
