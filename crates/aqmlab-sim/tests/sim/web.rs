//! Web pages: manually computed load times, and completion of all pages.

use proptest::prelude::*;

use crate::common::{mean, run_workload as result};

/// Milliseconds that bytes take at 10 Mbit/s.
fn ms(bytes: f64) -> f64 {
    bytes * 8.0 / 10e6 * 1e3
}

#[test]
fn a_page_of_one_object_takes_its_round_trips() {
    let page = r#"{ kind = "page", objects = 1, document = "10000b", number = 1 }"#;
    let result = result(page, &[]);
    let group = &result.groups[0];
    assert_eq!((group.started, group.completed, group.bytes), (1, 1, 10_000));
    let name = 40.0 + ms(70.0 + 102.0);
    let handshake = 40.0 + ms(40.0 + 40.0);
    // The certificates take three segments; the third waits for the others.
    let tls = 40.0 + ms(557.0 + 4000.0 + 3.0 * 40.0);
    let ask = 40.0 + ms(440.0);
    let first = name + handshake + tls + ask + ms(1500.0);
    let last = first + ms(10_000.0 + 6.0 * 40.0 - 1460.0);
    // Requests wait for acknowledgements, of 40 bytes each.
    let [first_byte, page_load] =
        ["first_byte", "page_load"].map(|quantity| mean(group, quantity) * 1e3);
    assert!((first_byte - first).abs() < 0.1, "{first_byte} {first}");
    assert!((page_load - last).abs() < 0.1, "{page_load} {last}");
    assert!((mean(group, "object") * 1e3 - last).abs() < 0.1);
    assert!((result.end.as_secs_f64() * 1e3 - last).abs() < 0.1, "the run ends with it");
    // Two datagrams, and a connection that is gone.
    assert_eq!(result.flows.len(), 2);
}

/// Each extra round trip of TLS, and the name, take one round trip.
#[test]
fn what_comes_before_the_request_counts() {
    let load = |settings: &str| {
        let page = format!(
            "{{ kind = \"page\", objects = 1, document = \"1000b\", number = 1, {settings} }}"
        );
        mean(
            &result(&page, &[("links.down.rate", "10gbit"), ("links.up.rate", "10gbit")]).groups[0],
            "page_load",
        )
    };
    for (settings, round_trips) in [
        ("dns = false, tls = 0", 2.0),
        ("dns = true, tls = 0", 3.0),
        ("dns = false, tls = 1", 3.0),
        ("dns = true, tls = 2", 5.0),
        ("dns = true, tls = 3", 6.0),
    ] {
        let measured = load(settings) / 0.040;
        assert!((measured - round_trips).abs() < 0.001, "{settings}: {measured}");
    }
}

/// Twelve objects after the document, of a segment each, from a server that
/// needs 100 ms, over 40 ms: a request takes 140 ms, with a handshake 180.
#[test]
fn requests_share_connections() {
    let pages = |settings: &str| -> Vec<f64> {
        let page = format!(
            "{{ kind = \"page\", objects = 13, size = \"1000b\", document = \"1000b\", \
             server_delay = \"100ms\", tls = 0, dns = false, think = \"0s\", {settings} }}"
        );
        // The first page, and the mean of the first two.
        let loads = |number: &str| {
            let links = [("links.down.rate", "10gbit"), ("links.up.rate", "10gbit")];
            let mut overrides = links.to_vec();
            overrides.push(("flows.app.workload.number", number));
            let result = result(&page, &overrides);
            assert_eq!(result.groups[0].completed.to_string(), number);
            mean(&result.groups[0], "page_load") * 1e3
        };
        let (first, both) = (loads("1"), loads("2"));
        vec![first, 2.0 * both - first]
    };
    for (settings, expected) in [
        // The connection of the document is free 40 ms before the five others
        // have their first object; these have a second one each.
        ("depth = 1, keep = \"page\"", [180.0 + 320.0; 2]),
        ("depth = 1, keep = \"all\"", [180.0 + 320.0, 140.0 + 280.0]),
        // One connection an object: two rounds of six.
        ("depth = 1, keep = \"none\"", [180.0 + 360.0; 2]),
        ("depth = 1, keep = \"page\", connections = 1", [180.0 + 12.0 * 140.0; 2]),
        ("depth = 1, keep = \"page\", connections = 1, streams = 100", [180.0 + 140.0; 2]),
        ("depth = 1, keep = \"page\", connections = 1, streams = 6", [180.0 + 280.0; 2]),
        ("depth = 1, keep = \"all\", connections = 1, streams = 100", [180.0 + 140.0, 280.0]),
        // Half of the objects on each of two hosts, all at once.
        ("depth = 1, keep = \"page\", hosts = 2", [180.0 + 180.0; 2]),
        // A level at a time.
        ("keep = \"page\", depth = 3", [180.0 + 140.0 + 140.0 + 180.0; 2]),
        ("keep = \"page\", depth = 12, streams = 9, connections = 1", [180.0 + 12.0 * 140.0; 2]),
    ] {
        let measured = pages(settings);
        for (measured, expected) in measured.iter().zip(expected) {
            assert!((measured - expected).abs() < 0.2, "{settings}: {measured} {expected}");
        }
    }
}

/// The share of pages that RFC 7928 asks for: all of a page, then the next.
#[test]
fn the_preset_has_the_pages_of_rfc_7928() {
    let result = result("\"rfc7928-web\"", &[("record.level", "series")]);
    let group = &result.groups[0];
    assert!(group.completed > 10, "{}", group.completed);
    let objects = group.times_of("object").unwrap().count;
    assert!(objects >= 50 * group.completed && objects < 50 * (group.completed + 1));
    assert_eq!(result.flows.len(), 12, "six connections, two flows each");
    assert!(group.bytes > group.completed * 50 * 1024, "at least 1 kB an object");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With losses, including DNS queries, every page completes, and is as large as its objects.
    #[test]
    fn all_pages_end(
        seed in 0u64..1000,
        limit in 2u64..30,
        hosts in 1u64..4,
        connections in 1u64..7,
        streams in prop::sample::select(vec![1u64, 3, 100]),
        keep in prop::sample::select(vec!["none", "page", "all"]),
        tls in 0u64..3,
    ) {
        prop_assume!(keep != "none" || streams == 1);
        let page = format!(
            "{{ kind = \"page\", objects = \"uniform(1, 30)\", size = \"5000b\", \
             document = \"5000b\", number = 4, think = \"exponential(100ms)\", hosts = {hosts}, \
             connections = {connections}, streams = {streams}, keep = \"{keep}\", tls = {tls}, \
             server_delay = \"exponential(10ms)\" }}"
        );
        let (seed, limit) = (seed.to_string(), format!("{limit}p"));
        let result = result(&page, &[
            ("seed", &seed),
            ("duration", "2000s"),
            ("flows.app.count", "2"),
            ("links.down.rate", "2mbit"),
            ("links.up.rate", "100kbit"),
            ("links.down.queue.limit", &limit),
            ("links.up.queue.limit", &limit),
        ]);
        let group = &result.groups[0];
        prop_assert_eq!((group.started, group.completed), (8, 8));
        let times = |name: &str| group.times_of(name).unwrap();
        prop_assert_eq!(group.bytes, times("object").count * 5000);
        prop_assert_eq!(times("first_byte").count, 8);
        prop_assert!(times("first_byte").max <= times("page_load").max);
        prop_assert!(result.end.as_secs_f64() < 1999.0);
    }
}
