use super::*;
use crate::framing::{CAKE_WORDS, Framing};
use crate::{Cells, Limit, ParamType, Rate, Span, params};

params! {
    /// An example.
    pub struct Example {
        /// A time.
        target: Span = Span::from_millis(5), in Span::ZERO => Span::from_secs(10), source "a test";
        /// A limit.
        limit: Limit = Limit::Packets(100), source "a test";
        /// A number that tc has in sixteenths.
        alpha: f64 = 0.125, in 0.0 => 10.0, source "a test";
        /// A rate.
        rate: Rate, required "1mbit", source "a test";
        /// A switch with words.
        ecn: bool = false, source "a test";
        /// A switch without words.
        drop_head: bool = false, source "a test";
    } with {
        /// Sizes.
        framing: crate::FramingParams = crate::FramingParams::default();
    } words TC
}

const TC: &[Dialect] = &[Dialect {
    kind: "example",
    source: "none",
    always: &["rate"],
    words: &[
        &[
            Word::value("target", "target", Form::Time),
            Word::value("limit", "limit", Form::Packets),
            Word::value("alpha", "alpha", Form::Sixteenths),
            Word::value("rate", "rate", Form::Rate),
            Word::set("ecn", "ecn", "true"),
            Word::ignored("nat", false, "there is none"),
            Word::refused("fwmark", true, "there are no marks"),
        ],
        CAKE_WORDS,
    ],
    ..Dialect::EMPTY
}];

fn read(text: &str) -> Example {
    Example::parse(&format!("rate 1mbit {text}").as_str().into()).expect(text)
}

fn problem(text: &str) -> String {
    Example::parse(&format!("rate 1mbit {text}").as_str().into()).unwrap_err().to_string()
}

#[test]
fn all_forms_say_the_same() {
    let expected = Example {
        target: Span::from_millis(2),
        limit: Limit::Packets(50),
        ecn: true,
        ..Example::default()
    };
    for text in [
        "target 2ms limit 50 ecn",
        "limit 50p target=2ms ecn true",
        "limit=50p target 2msec ecn=true nat",
        "limit=50 target 2000USEC ecn",
        "ecn noecn limit 3 limit 50 target 2ms ecn",
        "dev eth0 root refcnt 2 limit 50 target 2ms ecn 8001:",
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    let line =
        "tc qdisc replace dev eth0 root handle 1: example rate 1Mbit limit 50 target 2ms ecn";
    assert_eq!(Example::parse(&line.into()).unwrap(), expected);
}

#[test]
fn a_key_with_equals_is_the_parameter_and_a_word_alone_is_that_of_tc() {
    assert_eq!((read("alpha 2").alpha, read("alpha=2").alpha), (0.125, 2.0));
    assert!(read("drop_head").drop_head && !read("drop_head=true nodrop_head").drop_head);
    assert_eq!(read("limit 3kb").limit, read("limit=3kb").limit);
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (text, expected) in [
        (
            "targte 5ms",
            "`targte`: unknown word of example; known: target, limit, alpha, rate, ecn,",
        ),
        ("targte 5ms", "did you mean `target`?"),
        ("targte=5ms", "did you mean `target`?"),
        ("target", "target: `target`: `target` needs a value"),
        ("target 5", "target: `5`: expected a time with its unit"),
        ("limit many", "limit: `many`: expected a limit above 0 in packets"),
        ("target=soon", "target: `soon`: expected a time with its unit"),
        ("target 11s", "target: `11s`: expected time from 0s to 10s"),
        ("alpha 0.5", "alpha: `0.5`: expected a whole number of sixteenths from 0 to 32"),
        ("fwmark 3", "fwmark: `3`: not modelled: there are no marks"),
        ("overhead 300", "overhead: `300`: expected a whole number of bytes from -64 to 256"),
        ("ecn = true", "unknown word"),
    ] {
        assert!(problem(text).contains(expected), "{text}: {}", problem(text));
    }
    let error = Example::parse(&"example ecn".into()).unwrap_err().to_string();
    assert!(error.contains("`rate` is missing (example rate 1mbit)"), "{error}");
    assert!(Example::parse(&" ".into()).is_err());
}

/// Sums of `cake_parse_opt` in iproute2.
#[test]
fn words_of_the_size_on_the_wire_add_up_as_in_tc() {
    let framing = |overhead, mpu, cells| Framing { overhead, mpu, cells };
    for (text, expected) in [
        ("", Framing::NONE),
        ("pppoe-ptm", framing(30, 0, Cells::Ptm)),
        ("ethernet ether-vlan ether-vlan", framing(46, 84, Cells::None)),
        ("pppoe-ptm ether-vlan", framing(34, 0, Cells::Ptm)),
        ("ether-vlan pppoe-ptm", framing(34, 0, Cells::Ptm)),
        ("docsis overhead 4", framing(4, 64, Cells::None)),
        ("overhead 4 docsis", framing(22, 64, Cells::None)),
        ("mpu 100 pppoe-vcmux", framing(32, 100, Cells::Atm)),
        ("ethernet bridged-ptm", framing(60, 84, Cells::Ptm)),
        ("ethernet conservative", framing(48, 84, Cells::Atm)),
        ("pppoe-ptm raw", Framing::NONE),
        ("pppoe-ptm noatm", framing(30, 0, Cells::None)),
        ("atm ethernet", framing(38, 84, Cells::Atm)),
        ("overhead -10 ptm mpu 64", framing(-10, 64, Cells::Ptm)),
        ("link_layer docsis", framing(18, 64, Cells::None)),
    ] {
        assert_eq!(read(text).framing.resolve(), expected, "{text}");
    }
}

#[test]
fn what_has_no_word_is_left_out() {
    let said = say_params(&read("target=1ns drop_head limit 50"));
    let left_out: Vec<&str> = said.left_out.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        (said.words.as_str(), left_out),
        ("example limit 50 rate 1mbit", vec!["target", "drop_head"])
    );
}
