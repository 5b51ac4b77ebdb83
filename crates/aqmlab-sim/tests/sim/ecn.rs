//! ECN from end to end: a queue marks, the receiver echoes, the sender yields.

use crate::common::{Settings, on_line};
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

/// RFC 8511: a flow that keeps more at each mark has the larger queue.
#[test]
fn abe_uses_a_small_queue_better() {
    let queue = |settings: &Settings| bulk(settings).links[0].backlog_mean[1];
    let classic = ("transport.ecn", "classic");
    let abe = queue(&[classic, ("transport.congestion_control.beta_ecn", "0.8")]);
    let classic = queue(&[classic]);
    assert!(abe > classic, "{abe} {classic}");
}
