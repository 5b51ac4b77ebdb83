//! `params!`: what a declaration generates.

use super::*;
use crate::quantity::{Bytes, Limit, Rate};
use crate::stated::Stated;
use crate::time::Span;
use proptest::prelude::*;

choices! {
    /// A choice.
    pub enum Mode {
        /// One.
        First = "first",
        /// Two.
        Second = "second",
    }
}

params! {
    /// All the types there are.
    pub struct Everything {
        /// A time.
        time: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(10),
            source "nowhere";
        /// A rate.
        rate: Rate = Rate::from_bps(1000), source "nowhere";
        /// A limit.
        limit: Limit = Limit::Packets(100), source "nowhere";
        /// A number.
        share: f64 = 0.5, in 0.0 => 1.0, source "nowhere";
        /// A name,
        /// on two lines.
        mode: Mode = Mode::First, source "nowhere";
        /// Perhaps a time.
        maybe: Option<Span> = None,
            in Some(Span::from_millis(1)) => Some(Span::from_secs(9)), source "nowhere";
        /// A number that may be computed.
        computed: Auto<f64> = Auto::Auto, in Auto::Set(0.0) => Auto::Set(1.0), source "nowhere";
    } with {
        /// Shared parameters.
        shared: Shared = Shared { depth: 7, ..Shared::default() };
    }
}

params! {
    /// Parameters that several structs have.
    pub struct Shared {
        /// A whole number.
        depth: u64 = 3, in 1 => 9, source "nowhere";
        /// A switch.
        fast: bool = false, source "nowhere";
    }
}

params! {
    /// A table in a table.
    pub struct Inner {
        /// A required key.
        rate: Rate, required "10mbit", in Rate::from_bps(1) => Rate::from_bps(1 << 40),
            source "nowhere";
        /// A key that is left out at its default.
        jitter: Span = Span::ZERO, [left out], source "nowhere";
    }
}

params! {
    /// A table with tables.
    pub struct Outer {
        /// One that has to be there.
        inner: Inner = Inner::default(), source "nowhere";
        /// One that may be absent.
        perhaps: Option<Inner> = None, [left out], source "nowhere";
        /// A list of them.
        several: Vec<Inner> = vec![], source "nowhere";
        /// A value, or a table.
        stated: Stated<f64> = Stated::Plain(0.5),
            in Stated::Plain(0.0) => Stated::Plain(1.0), source "nowhere";
        /// The same, or nothing.
        maybe: Option<Stated<f64>> = None, [left out],
            in Some(Stated::Plain(0.0)) => Some(Stated::Plain(1.0)), source "nowhere";
    }
}

fn table(pairs: &[(&str, Value)]) -> Value {
    Value::Table(pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
}

#[test]
fn a_required_key_has_no_default_and_has_to_be_there() {
    let specs = Inner::specs();
    assert_eq!((specs[0].default.clone(), specs[1].default.as_deref()), (None, Some("0s")));
    let error = Inner::from_table(&Table::new()).unwrap_err().to_string();
    assert_eq!(error, "the key `rate` is missing (rate = \"10mbit\")");
    let error = Inner::parse(&table(&[("rate", "0bit".into())])).unwrap_err().to_string();
    assert!(error.starts_with("rate: `0bit`: expected rate from 1bit"), "{error}");
}

#[test]
fn tables_in_tables_are_read_and_told_as_tables() {
    let one = || table(&[("rate", "1mbit".into())]);
    let two = || table(&[("rate", "2mbit".into()), ("jitter", "3ms".into())]);
    let all = table(&[
        ("inner", one()),
        ("perhaps", two()),
        ("several", Value::List(vec![two(), one()])),
        ("stated", table(&[("any", "thing".into())])),
        ("maybe", table(&[("any", "thing".into())])),
    ]);
    let outer = Outer::parse(&all).unwrap();
    assert_eq!(outer.inner.rate, Rate::from_bps(1_000_000));
    assert_eq!(outer.perhaps.as_ref().unwrap().jitter, Span::from_millis(3));
    assert_eq!(outer.several.len(), 2);
    assert_eq!(outer.to_value(), all, "in order, and what is as usual is left out");
    assert_eq!(Outer::parse(&outer.to_value()).unwrap(), outer);
    let told: Vec<&str> = Outer::default().canonical().iter().map(|(key, _)| *key).collect();
    assert_eq!(told, ["inner", "several", "stated"]);
    assert_eq!(Outer::parse(&table(&[("perhaps", "none".into())])).unwrap(), Outer::default());
}

#[test]
fn what_is_wrong_in_a_table_is_said_at_its_key() {
    for (key, value, expected) in [
        ("inner", table(&[("rate", "fast".into())]), "inner.rate: `fast`: expected a rate"),
        ("inner", table(&[]), "inner: the key `rate` is missing"),
        ("inner", "fast".into(), "inner: `fast`: expected a table, with the keys rate, jitter"),
        ("perhaps", table(&[("raet", "1mbit".into())]), "perhaps.raet: unknown key"),
        ("several", Value::List(vec![table(&[])]), "several.0: the key `rate` is missing"),
        ("stated", "2".into(), "stated: `2`: expected number from 0 to 1"),
    ] {
        let error = Outer::parse(&table(&[(key, value)])).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

fn set(key: &str, value: impl Into<Value>) -> Result<Everything> {
    let mut params = Everything::default();
    params.set(key, &value.into()).map(|()| params)
}

#[test]
fn text_forms_are_those_of_tc() {
    assert_eq!(set("time", "1.5ms").unwrap().time, Span::from_micros(1500));
    assert_eq!(set("rate", "10mbit").unwrap().rate, Rate::from_bps(10_000_000));
    assert_eq!(set("rate", "399.9gbit").unwrap().rate, Rate::from_bps(399_900_000_000));
    assert_eq!(set("limit", "64kb").unwrap().limit, Limit::Bytes(Bytes::new(65_536)));
    assert_eq!(set("limit", "2bdp").unwrap().limit, Limit::Bdp(2.0));
    assert_eq!(set("limit", "unlimited").unwrap().limit, Limit::Unlimited);
    assert_eq!(set("share", Value::Integer(1)).unwrap().share, 1.0);
    assert_eq!(set("maybe", "none").unwrap().maybe, None);
    assert_eq!(set("computed", "auto").unwrap().computed, Auto::Auto);
    assert_eq!(set("computed", Value::Float(0.5)).unwrap().computed, Auto::Set(0.5));
    assert_eq!(set("maybe", "1s").unwrap().maybe, Some(Span::from_secs(1)));
}

#[test]
fn wrong_values_say_what_is_allowed() {
    for (key, value, expected) in [
        ("time", Value::Integer(5), "units: ns, us, ms, s"),
        ("time", "5".into(), "units: ns, us, ms, s"),
        ("time", "-5ms".into(), "a time with its unit"),
        ("time", "0.2min".into(), "`0.2min`: expected time from 1ns to 10s"),
        ("time", "99999999999999999999s".into(), "a time with its unit"),
        ("limit", "0p".into(), "a limit above 0 in packets"),
        ("limit", "1.5p".into(), "a limit above 0 in packets"),
        ("share", Value::Float(f64::NAN), "a number"),
        ("share", Value::Float(1.5), "expected number from 0 to 1"),
        ("computed", Value::Float(1.5), "expected number from 0 to 1"),
        ("computed", "atuo".into(), "or `auto`"),
        ("mode", "secnd".into(), "did you mean `second`?"),
        ("tmie", "5ms".into(), "did you mean `time`?"),
        ("maybe", "1us".into(), "expected time from 1ms to 9s"),
        ("depth", Value::Integer(10), "expected whole number from 1 to 9"),
        ("dpeth", Value::Integer(4), "did you mean `depth`?"),
    ] {
        let error = set(key, value).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.key, key);
    }
}

#[test]
fn a_declaration_documents_itself() {
    let specs = Everything::specs();
    assert_eq!(specs[0].range, Some(("1ns".into(), "10s".into())));
    assert_eq!(specs[4].meaning, "A name, on two lines.");
    assert_eq!(specs[4].choices, ["first", "second"]);
}

#[test]
fn a_group_is_part_of_what_has_it() {
    assert_eq!(set("depth", Value::Integer(4)).unwrap().shared.depth, 4);
    let specs = Everything::specs();
    let depth = specs.iter().find(|spec| spec.name == "depth").unwrap();
    assert_eq!(depth.default.as_deref(), Some("7"), "the default is that of the whole");
    assert_eq!(Shared::specs()[0].default.as_deref(), Some("3"));
    let entries = Everything::default().entries();
    assert_eq!(entries[7..], [("depth", "7".into()), ("fast", "false".into())]);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(nanos in 1u64..10_000_000_000, share in 0.0..=1.0f64) {
        let params = Everything {
            time: Span::from_nanos(nanos), share, ..Everything::default()
        };
        let table: Table = params
            .entries()
            .into_iter()
            .map(|(key, value)| (key.to_string(), value))
            .collect();
        prop_assert_eq!(Everything::from_table(&table).unwrap(), params);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".*") {
        let _ = set("time", text.as_str());
        let _ = set("limit", text.as_str());
    }
}
