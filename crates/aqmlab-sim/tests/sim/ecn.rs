//! ECN from end to end: a queue marks, the receiver echoes, the sender yields.

use crate::common::{Settings, on_line, run_workload};
use aqmlab_sim::RunResult;

fn bulk(settings: &Settings) -> RunResult {
    let marking = [
        ("links.down.queue", "{ discipline = 'codel', ecn = true, limit = '1000p' }"),
        ("record.level", "packets"),
    ];
    on_line(&[&marking, settings].concat())
}

#[test]
fn marks_take_the_place_of_drops_and_the_sender_yields_to_them() {
    let without = bulk(&[]);
    assert!(without.links[0].counts.dropped_total() > 0);
    assert_eq!(without.links[0].counts.marked_total(), 0);
    for mode in ["classic", "accurate"] {
        let with = bulk(&[("transport.ecn", mode)]);
        let stats = with.flows[0].stats.unwrap();
        assert_eq!(with.links[0].counts.dropped_total(), 0, "{mode}");
        assert!(with.links[0].counts.marked_total() > 5, "{mode}");
        assert!(stats.ecn_reductions > 5, "{mode}");
        assert!(stats.ecn_reductions <= with.links[0].counts.marked_total(), "{mode}");
        assert_eq!((stats.retransmissions, stats.timeouts), (0, 0), "{mode}");
        assert!(with.links[0].utilisation > 0.75, "{mode}");
        // CoDel keeps its target with marks as it does with drops.
        assert!(with.links[0].sojourn.mean < 0.02, "{mode}");
    }
}

/// RFC 3168, sections 6.1.4 and 6.1.5: acknowledgements are not ECN-capable.
#[test]
fn acknowledgements_are_never_marked() {
    let result = bulk(&[("transport.ecn", "classic")]);
    assert!(result.links[1].packets.iter().all(|packet| packet.is_ack && !packet.ce));
    assert!(result.links[0].packets.iter().any(|packet| packet.ce));
}

/// Linux: tcp_ecn_clear_syn.
#[test]
fn a_lost_syn_opens_without_ecn_and_a_lost_syn_ack_with() {
    let drops = |profile, ecn, control, lost: &str| {
        let settings = [
            ("transport.profile", profile),
            ("transport.ecn", ecn),
            ("transport.congestion_control", control),
            (lost, "{ packets = [1] }"),
        ];
        let counts = bulk(&settings).links[0].counts;
        assert!(counts.dropped_total() + counts.marked_total() > 0);
        counts.marked_total() == 0
    };
    for (ecn, control) in [("classic", "cubic"), ("dctcp", "dctcp")] {
        assert!(drops("linux-6", ecn, control, "links.down.loss"), "{ecn}");
        assert!(!drops("linux-6", ecn, control, "links.up.loss"), "{ecn}");
    }
    // RFC 9768, section 3.1.4.1: only the second retransmission. RFC 3168, section 6.1.1.1: MAY.
    assert!(!drops("linux-6", "accurate", "cubic", "links.down.loss"));
    assert!(!drops("rfc", "classic", "cubic", "links.down.loss"));
}

/// Data from the side that answers, and their acknowledgements: the SYN takes the link of the latter.
#[test]
fn a_lost_syn_ends_ecn_in_both_directions() {
    let marks = |loss| {
        let settings = [
            ("links.down.queue", "{ discipline = 'codel', ecn = true, limit = '1000p' }"),
            ("links.up.queue", "{ discipline = 'step', threshold = '1p' }"),
            ("links.up.rate", "100kbit"),
            ("links.up.loss", loss),
            ("transport.profile", "linux-6"),
            ("transport.ecn", "dctcp"),
            ("transport.congestion_control", "dctcp"),
        ];
        let result = run_workload(r#"{ kind = "dash" }"#, &settings);
        let counts = result.links.iter().map(|link| &link.counts);
        counts.map(|of| (of.marked_total() > 0, of.dropped_total() > 0)).collect::<Vec<_>>()
    };
    assert_eq!(marks("none"), [(true, false); 2]);
    assert_eq!(marks("{ packets = [1] }"), [(false, true); 2]);
}

/// RFC 8511: a flow that keeps more at each mark has the larger queue.
#[test]
fn abe_uses_a_small_queue_better() {
    let queue = |settings: &Settings| bulk(settings).links[0].backlog_mean[1];
    let classic = ("transport.ecn", "classic");
    let abe = queue(&[classic, ("transport.congestion_control.beta_ecn", "0.8")]);
    let classic = queue(&[classic]);
    assert!(abe > classic, "{abe} {classic}");
}
