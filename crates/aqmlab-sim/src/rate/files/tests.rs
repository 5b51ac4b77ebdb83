use std::sync::Arc;

use super::*;
use crate::rate::{InputFile, RateProcess};
use proptest::prelude::*;

const MBIT: Scale = Scale { unit: 1e6, most: 1_000_000_000_000_000, repeats: true };

fn opportunities(content: &[u8]) -> Result<Opportunities> {
    Opportunities::parse(content, "a.trace")
}

fn columns(content: &[u8]) -> Result<Schedule> {
    parse_columns(content, "a.csv", &MBIT)
}

#[test]
fn the_digest_is_fnv_1a() {
    // From the published test vectors: the empty text, "a" and "foobar".
    assert_eq!(digest(b""), "6c62272e07bb014262b821756295c58d");
    assert_eq!(digest(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    assert_eq!(digest(b"foobar"), "343e1662793c64bf6f0d3597ba446f18");
}

#[test]
fn bad_traces_are_refused_with_line_and_reason() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "a.trace: the file contains no delivery opportunity"),
        (b"\r\n\n# nothing\n", "a.trace: the file contains no delivery opportunity"),
        (b"1\n2\nabc\n", "a.trace:3: `abc`: expected a whole number of ms from 0 to 4294967295"),
        (b"1\n2 3\n", "a.trace:2: `2 3`: expected a whole number"),
        (b"1\n\n-2\n", "a.trace:3: `-2`: expected a whole number"),
        (b"1\n1.5\n", "a.trace:2: `1.5`: expected a whole number"),
        (b"+1\n", "a.trace:1: `+1`: expected a whole number"),
        (b"9223372036854775807\n", "a.trace:1: `9223372036854775807`: expected a whole number"),
        (b"4294967296\n", "a.trace:1: `4294967296`: expected a whole number"),
        (b"5\n7\n6\n", "a.trace:3: `6`: expected a time not before that of the line before, 7"),
        (b"0\n0\n", "a.trace: `0`: expected a last time above 0"),
        (b"1\n\xff\xfe\n", "a.trace:2: "),
        (b"1\x002\n", "a.trace:1: "),
        (&[b'9'; 1000], "9999...`: expected a whole number"),
    ];
    for (content, expected) in cases {
        let error = opportunities(content).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn line_ends_blanks_and_comments_do_not_matter() {
    let plain = opportunities(b"1\n1\n3\n10").unwrap();
    for content in [
        &b"1\r\n1\r\n3\r\n10\r\n"[..],
        b"\xef\xbb\xbf1\n1\n3\n10\n",
        b"# a comment\n\n1\n 1 \n\t3\n\n10\n\n",
    ] {
        assert_eq!(opportunities(content).unwrap(), plain);
    }
    assert_eq!((plain.period(), plain.total()), (10, 4));
    assert_eq!(opportunities(b"4294967295\n").unwrap().period(), 4_294_967_295);
}

#[test]
fn bad_columns_are_refused_with_line_and_reason() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "a.csv: the file contains no line of time and value"),
        (b"time,rate\n", "a.csv: the file contains no line of time and value"),
        (b"0 1\nx 2\n", "a.csv:2: `x 2`: expected two columns"),
        (b"0 1\n1\n", "a.csv:2: `1`: expected two columns"),
        (b"0 1\n1 2 3\n", "a.csv:2: `1 2 3`: expected two columns"),
        (b"0 1\n1 -2\n", "a.csv:2: `1 -2`: expected a value from 0 to 1000000000"),
        (b"0 1\n1 1e300\n", "a.csv:2: `1 1e300`: expected a value from 0"),
        (b"0 1\n1 nan\n", "a.csv:2: `1 nan`: expected two columns"),
        (b"0 1\ninf 1\n", "a.csv:2: `inf 1`: expected two columns"),
        (b"-1 1\n", "a.csv:1: `-1 1`: expected a time from 0, at most 10000000"),
        (b"0 1\n9223372036854775807 1\n", "seconds after the first"),
        (
            b"0 1\n2 1\n2 1\n",
            "a.csv:3: `2 1`: expected a time later than that of the line before, 2",
        ),
        (b"0 1\n1e-12 1\n", "a.csv:2: `1e-12 1`: expected a time later"),
    ];
    for (content, expected) in cases {
        let error = columns(content).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn columns_may_be_parted_in_any_way_and_begin_at_any_time() {
    let plain = columns(b"0 1.5\n1 2\n3 0\n").unwrap();
    for content in [
        &b"time,rate\r\n0,1.5\r\n1,2\r\n3,0\r\n"[..],
        b"100\t1.5\n101\t2\n103\t0\n",
        b"1764460800 1.5\n1764460801 2\n1764460803 0\n",
        b"# from somewhere\n0; 1.5\n\n1; 2\n3; 0",
    ] {
        assert_eq!(columns(content).unwrap(), plain);
    }
    assert_eq!(plain.at(Time::from_nanos(2_999_999_999)).0, 2_000_000);
    // The last line has the duration of the one before: 2 s.
    assert_eq!(plain.at(Time::from_nanos(5_000_000_000)).0, 1_500_000);
    assert_eq!(plain.mean(Span::from_secs(5)), 1_100_000);
}

#[test]
fn a_million_opportunities_in_one_millisecond_are_one_grant() {
    let trace = opportunities(&b"7\n".repeat(1_000_000)).unwrap();
    let mut cursor = Cursor::start();
    assert_eq!(cursor.peek(&trace), (Time::from_nanos(7_000_000), 1_000_000));
    cursor.advance(&trace);
    assert_eq!(cursor.peek(&trace), (Time::from_nanos(14_000_000), 1_000_000));
    assert_eq!(trace.before(Time::from_nanos(14_000_001)), 2_000_000);
}

proptest! {
    /// Iterating, seeking and counting agree.
    #[test]
    fn cursor_and_count_agree(
        mut times in prop::collection::vec(0u32..40, 1..30),
        ends in prop::collection::vec(0u64..200_000_000, 1..10),
    ) {
        times.sort_unstable();
        prop_assume!(*times.last().unwrap() > 0);
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        let trace = opportunities(text.as_bytes()).unwrap();
        for end in ends {
            let end = Time::from_nanos(end);
            let (mut walked, mut count) = (Cursor::start(), 0);
            while walked.peek(&trace).0 < end {
                count += walked.peek(&trace).1;
                walked.advance(&trace);
            }
            prop_assert_eq!(trace.before(end), count);
            let mut sought = Cursor::start();
            sought.seek(&trace, end);
            prop_assert_eq!(sought.peek(&trace), walked.peek(&trace));
        }
    }

    #[test]
    fn no_bytes_make_a_parser_panic(content in prop::collection::vec(any::<u8>(), 0..200)) {
        try_all(&content);
    }

    #[test]
    fn no_text_that_looks_right_makes_a_parser_panic(
        content in "([0-9]{1,20}|[-+. ,;#eE\r\n]|nan|inf|0s|1mbit){0,60}",
    ) {
        try_all(content.as_bytes());
    }
}

/// Runs every parser of file contents and of `rate`, and uses its result.
fn try_all(content: &[u8]) {
    let somewhen = Time::from_nanos(content.len() as u64 * 977_777_777);
    if let Ok(trace) = opportunities(content) {
        let mut cursor = Cursor::start();
        cursor.seek(&trace, somewhen);
        cursor.advance(&trace);
        let grant = cursor.peek(&trace);
        assert!(grant.0 >= somewhen && grant.1 > 0);
        assert!(trace.before(grant.0 + Span::from_nanos(1)) >= grant.1);
    }
    if let Ok(schedule) = columns(content) {
        let (_, until) = schedule.at(somewhen);
        assert!(until.is_none_or(|until| until > somewhen));
        let until = until.unwrap_or(somewhen);
        assert!(schedule.integral(until) >= schedule.integral(somewhen));
    }
    for column in [
        "{ list = { file = 'f', column = 2, unit = 's' } }",
        "{ list = { file = 'f', unit = 's', differences = true } }",
        "{ cdf = { file = 'f', unit = 's' } }",
    ] {
        let read = |_: &str| Ok(Arc::new(InputFile::new(content.to_vec())));
        let place = crate::scenario::parse_value(column);
        if let Ok(value) = crate::scenario::with_columns(&place, &read) {
            let _ = aqmlab_core::Distribution::<Span>::parse(&value);
        }
    }
    let text = String::from_utf8_lossy(content);
    for key in ["steps", "transitions", "rates", "trace", "csv"] {
        let mut table = aqmlab_core::Table::new();
        table.insert(key, text.as_ref().into());
        if matches!(key, "transitions" | "rates") {
            table.insert("process", "markov".into());
        }
        let value = aqmlab_core::Value::Table(table);
        let read = |_: &str| Ok(Arc::new(InputFile::new(content.to_vec())));
        if let Ok(process) = RateProcess::read(&value, &read) {
            let again = RateProcess::read(&process.to_value(), &read);
            assert_eq!(again.as_ref(), Ok(&process), "{text:?}");
        }
    }
}
