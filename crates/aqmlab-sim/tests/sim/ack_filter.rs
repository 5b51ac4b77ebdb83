//! CAKE's filter of acknowledgements on a slow return path.

use crate::common::on_line;
use aqmlab_aqm::Reason;
use aqmlab_sim::RunResult;

/// Two bulk flows whose acknowledgements are more than the return path carries.
fn result(profile: &str, filter: &str) -> RunResult {
    on_line(&[
        ("duration", "10s"),
        ("links.down.rate", "20mbit"),
        ("links.down.queue.limit", "250p"),
        ("links.up.rate", "1gbit"),
        (
            "links.up.queue",
            "{ discipline = 'cake', bandwidth = '250kbit', diffserv = 'besteffort' }",
        ),
        ("links.up.queue.ack_filter", filter),
        ("transport.profile", profile),
        ("transport.receive_window", "auto"),
        ("flows.bulk.count", "2"),
    ])
}

fn filtered(result: &RunResult) -> u64 {
    result.links[1].counts.dropped[Reason::AckFilter as usize]
}

/// Timestamps, SACK blocks and windows that grow are compared, not excluded.
#[test]
fn the_filter_acts_on_every_sender() {
    for profile in ["rfc", "linux-6", "linux-6.1"] {
        let without = result(profile, "none");
        let bytes = |result: &RunResult| result.links[0].counts.delivered_bytes as f64;
        assert_eq!(filtered(&without), 0);
        for filter in ["conservative", "aggressive"] {
            let with = result(profile, filter);
            let (dropped, gain) = (filtered(&with), bytes(&with) / bytes(&without));
            assert!(dropped > 1000, "{profile}, {filter}: {dropped}");
            assert!(gain > 1.05, "{profile}, {filter}: {gain}");
        }
    }
}

/// The counter of accurate ECN begins with the flag AE set, which protects a segment in Linux 6.12.
#[test]
fn acknowledgements_of_accurate_ecn_stay() {
    assert_eq!(filtered(&result("linux-l4s", "aggressive")), 0);
}
