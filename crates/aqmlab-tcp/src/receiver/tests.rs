//! The receiver of the RFCs and of Linux, segment by segment.

use super::*;

fn receiver() -> Receiver {
    Receiver::new(&TcpParams::rfc())
}
fn segment(number: u64) -> DataSegment {
    DataSegment { seq: number * 1460, len: 1460, ..DataSegment::default() }
}
fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn a_block_too_many_sends_the_compressed_acknowledgement() {
    let params = TcpParams::of_profile(crate::params::Profile::Linux6).unwrap();
    let mut receiver = Receiver::new(&params);
    receiver.on_segment(at(0), &DataSegment { syn: true, ..segment(0) });
    receiver.poll(at(0));
    for number in 0..16 {
        receiver.on_segment(at(40), &segment(number));
        receiver.poll(at(40));
    }
    let blocks = |ack: Ack| ack.sack.as_slice().len();
    // Every second one is missing. Three are acknowledged at once, the fourth waits.
    for (number, count) in [(17, 1), (19, 2), (21, 3)] {
        receiver.on_segment(at(50), &segment(number));
        assert_eq!(blocks(receiver.poll(at(50)).unwrap()), count);
    }
    receiver.on_segment(at(50), &segment(23));
    assert_eq!(receiver.poll(at(50)), None);
    // The next block: what waited leaves without it.
    receiver.on_segment(at(50), &segment(25));
    let ack = receiver.poll(at(50)).unwrap();
    let first = ack.sack.as_slice()[0];
    assert_eq!((first, blocks(ack)), ((23 * 1460, 24 * 1460), 3));
    assert_eq!(receiver.poll(at(50)), None);
    // Nothing is due for it, until one that extends its block comes.
    assert_eq!(receiver.next_timeout(), None);
    receiver.on_segment(at(50), &segment(26));
    let due = at(51) + Span::from_micros(100);
    assert_eq!((receiver.poll(at(50)), receiver.next_timeout()), (None, Some(due)));
}

#[test]
fn every_second_segment_is_acknowledged_or_the_timer_does() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(0));
    assert_eq!(receiver.poll(at(0)), None);
    assert_eq!(receiver.next_timeout(), Some(at(200)));
    receiver.on_segment(at(10), &segment(1));
    assert_eq!(receiver.poll(at(10)).unwrap().ack, 2 * 1460);
    assert_eq!(receiver.next_timeout(), None);
    receiver.on_segment(at(20), &segment(2));
    assert_eq!(receiver.poll(at(20)), None);
    receiver.on_timeout(at(220));
    assert_eq!(receiver.poll(at(220)).unwrap().ack, 3 * 1460);
}

#[test]
fn a_gap_is_reported_at_once_and_so_is_its_end() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(1));
    let ack = receiver.poll(at(0)).unwrap();
    assert_eq!((ack.ack, ack.sack.as_slice()), (0, &[(1460, 2920)][..]));
    receiver.on_segment(at(1), &segment(4));
    receiver.on_segment(at(2), &segment(2));
    let ack = receiver.poll(at(2)).unwrap();
    assert_eq!(ack.sack.as_slice(), [(1460, 4380), (5840, 7300)], "the latest first");
    receiver.on_segment(at(3), &segment(0));
    assert_eq!(receiver.poll(at(3)).unwrap().ack, 4380);
    receiver.on_segment(at(4), &segment(3));
    let ack = receiver.poll(at(4)).unwrap();
    assert_eq!((ack.ack, ack.sack.is_empty()), (7300, true));
}

/// RFC 2018, section 3: 40 bytes of options hold four blocks, or three and timestamps.
#[test]
fn timestamps_leave_room_for_three_blocks() {
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let params = TcpParams { timestamps, dsack: true, ..TcpParams::rfc() };
        let mut receiver = Receiver::new(&params);
        let blocks = [1, 3, 5, 7, 9, 9].map(|number| {
            receiver.on_segment(at(0), &segment(number));
            receiver.poll(at(0)).unwrap().sack.as_slice().len()
        });
        assert_eq!(blocks, [1, 2, 3, most, most, most], "timestamps {timestamps}");
    }
}

#[test]
fn each_byte_counts_when_it_first_arrives() {
    let mut receiver = receiver();
    let counts = [(0, 1, 1), (2, 1, 2), (4, 1, 3), (4, 1, 3), (1, 3, 4), (0, 3, 4), (3, 5, 5)];
    for (number, in_order, arrived) in counts {
        receiver.on_segment(at(0), &segment(number));
        let bytes = [receiver.received(), receiver.arrived()];
        assert_eq!(bytes, [1460 * in_order, 1460 * arrived], "{number}");
    }
    // A longer segment over received data adds the missing part.
    receiver.on_segment(at(0), &DataSegment { len: 2 * 1460, ..segment(6) });
    receiver.on_segment(at(0), &DataSegment { len: 4 * 1460, ..segment(5) });
    assert_eq!(receiver.arrived(), 9 * 1460);
}

#[test]
fn a_hole_is_open_from_the_first_that_arrives_beyond_it() {
    let mut receiver = receiver();
    let mut held_up = |millis, number| {
        receiver.on_segment(at(millis), &segment(number));
        receiver.held_up()
    };
    assert_eq!(held_up(1, 0), Span::ZERO);
    assert_eq!(held_up(5, 2), Span::ZERO);
    assert_eq!(held_up(9, 4), Span::from_millis(4));
    // The first hole is filled; of the second nothing has come since.
    assert_eq!(held_up(10, 1), Span::ZERO);
    assert_eq!(held_up(20, 6), Span::ZERO);
    assert_eq!(held_up(50, 7), Span::from_millis(30));
    held_up(60, 3);
    assert_eq!(held_up(61, 5), Span::ZERO);
}

fn marked(number: u64) -> DataSegment {
    DataSegment { ecn: Ecn::Ce, ..segment(number) }
}

/// RFC 3168, section 6.1.3.
#[test]
fn ece_is_set_until_cwr_comes() {
    let params = TcpParams { ecn: EcnMode::Classic, delayed_ack: 1, ..TcpParams::rfc() };
    let mut receiver = Receiver::new(&params);
    let mut ece = |segment: DataSegment| {
        receiver.on_segment(at(0), &segment);
        receiver.poll(at(0)).unwrap().ece
    };
    assert!(!ece(segment(0)));
    assert!(ece(marked(1)));
    assert!(ece(segment(2)), "again, until CWR");
    assert!(!ece(DataSegment { cwr: true, ..segment(3) }));
    assert!(ece(DataSegment { cwr: true, ..marked(4) }), "a new mark beside CWR counts");
    assert!(!ece(DataSegment { cwr: true, ..segment(5) }));
    assert!(!ece(marked(5)), "outside of the window");
}

/// RFC 8257, section 3.2, figure 1.
#[test]
fn each_change_is_told_at_once_and_what_came_before_by_itself() {
    let params = TcpParams { ecn: EcnMode::Dctcp, delayed_ack: 4, ..TcpParams::rfc() };
    let mut receiver = Receiver::new(&params);
    let mut told = |segment: DataSegment| -> Vec<(u64, bool)> {
        receiver.on_segment(at(0), &segment);
        let acks = std::iter::from_fn(|| receiver.poll(at(0)));
        acks.map(|ack| (ack.ack / 1460, ack.ece)).collect()
    };
    assert_eq!(told(segment(0)), []);
    assert_eq!(told(marked(1)), [(1, false), (2, true)]);
    assert_eq!(told(marked(2)), []);
    assert_eq!(told(DataSegment { cwr: true, ..marked(3) }), [], "CWR changes nothing");
    assert_eq!(told(segment(4)), [(4, true), (5, false)]);
    assert_eq!(told(marked(5)), [(6, true)], "nothing waits");
    assert_eq!(told(segment(5)), [(6, true)], "outside of the window");
    for number in 6..9 {
        assert_eq!(told(marked(number)), []);
    }
    assert_eq!(told(marked(9)), [(10, true)], "every fourth");
}

/// RFC 9768, section 3.2.2.5.1.
#[test]
fn marks_are_counted_and_the_first_and_every_second_is_told_at_once() {
    let params = TcpParams { ecn: EcnMode::Accurate, delayed_ack: 8, ..TcpParams::rfc() };
    let mut receiver = Receiver::new(&params);
    let mut told = |segment: DataSegment| {
        receiver.on_segment(at(0), &segment);
        receiver.poll(at(0)).map(|ack| (ack.ce.packets, ack.ce.bytes))
    };
    assert_eq!(told(segment(0)), None);
    assert_eq!(told(marked(1)), Some((1, 1460)), "a change");
    assert_eq!(told(marked(2)), None);
    assert_eq!(told(marked(3)), Some((3, 4380)), "two marks");
    assert_eq!(told(segment(4)), None);
    assert_eq!(told(marked(5)), Some((4, 5840)), "a change again");
}

/// RFC 1122, section 4.2.3.2: the delay runs from the first segment that waits; later short
/// segments do not restart it.
#[test]
fn the_delay_runs_from_the_first_segment_that_waits() {
    let mut receiver = receiver();
    for (number, millis) in [(0, 0), (1, 150)] {
        let seq = 100 * number;
        let short = DataSegment { seq, len: 100, ..DataSegment::default() };
        receiver.on_segment(at(millis), &short);
        assert_eq!(receiver.poll(at(millis)), None, "it waits for a full segment");
        assert_eq!(receiver.next_timeout(), Some(at(200)));
    }
    receiver.on_timeout(at(200));
    assert_eq!(receiver.next_timeout(), None, "it is due");
    assert_eq!(receiver.poll(at(200)).map(|ack| ack.ack), Some(200));
    let third = DataSegment { seq: 200, len: 100, ..DataSegment::default() };
    receiver.on_segment(at(300), &third);
    assert_eq!(receiver.next_timeout(), Some(at(500)), "a new delay");
}

#[test]
fn what_came_before_is_answered_at_once() {
    let mut receiver = receiver();
    receiver.on_segment(at(0), &segment(0));
    receiver.on_segment(at(0), &segment(0));
    assert_eq!(receiver.poll(at(0)).unwrap().ack, 1460);
    assert_eq!(receiver.duplicates(), 1);
}
