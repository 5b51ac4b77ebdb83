//! The receiver of the RFCs and of Linux, segment by segment.

use aqmlab_core::Bytes;

use super::*;
use crate::testing::at;

fn receiver() -> Receiver {
    Receiver::new(&TcpParams::rfc())
}
fn segment(number: u64) -> DataSegment {
    DataSegment { seq: number * 1460, len: 1460, ..DataSegment::default() }
}
#[test]
fn a_block_too_many_sends_the_compressed_acknowledgement() {
    let params = TcpParams::of_profile(crate::params::Profile::Linux6).unwrap();
    let mut receiver = Receiver::new(&params);
    receiver.on_segment(at(0), &DataSegment { syn: true, cwr: true, ..segment(0) });
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

/// A receiver of Linux after its first sixteen acknowledgements at once, and the number of the next
/// segment.
fn linux(ecn: EcnMode) -> (Receiver, u64) {
    let params = TcpParams::of_profile(crate::params::Profile::Linux6).unwrap();
    let mut receiver = Receiver::new(&TcpParams { ecn, mss: Bytes::new(1460), ..params });
    receiver.on_segment(at(0), &DataSegment { syn: true, cwr: true, ..segment(0) });
    receiver.poll(at(0));
    for number in 0..16 {
        receiver.on_segment(at(40), &segment(number));
        assert!(receiver.poll(at(40)).is_some());
    }
    (receiver, 16)
}

/// tcp_paws_discard, tcp_send_dupack.
#[test]
fn linux_drops_segments_that_a_retransmission_overtakes() {
    let (mut receiver, next) = linux(EcnMode::Off);
    let mut arrive = |millis, number, sent| {
        receiver.on_segment(at(millis), &DataSegment { sent_at: at(sent), ..segment(number) });
        receiver.poll(at(millis)).map(|ack| (ack.ack / 1460, ack.sack.as_slice().to_vec()))
    };
    let block = |number| vec![(number * 1460, (number + 1) * 1460)];
    assert_eq!(arrive(50, next + 1, 31), Some((next, block(next + 1))));
    // The missing one is sent again, and overtakes itself and one that is new.
    assert_eq!(arrive(90, next, 70), Some((next + 2, vec![])));
    assert_eq!(arrive(91, next, 30), Some((next + 2, block(next))));
    assert_eq!(arrive(92, next + 2, 68), Some((next + 2, vec![])), "new, and dropped");
    assert_eq!(arrive(93, next + 2, 69), Some((next + 3, vec![])), "a millisecond is none");
    // The acknowledgements of dropped segments are none of the sixteen.
    assert!((4..19).all(|more| arrive(94, next + more - 1, 72).is_some()));
    assert_eq!(arrive(94, next + 18, 72), None);
}

/// RFC 7323, section 5.3: a needless retransmission lies before the window, and its timestamp does
/// not outdate the originals that are late.
#[test]
fn what_had_arrived_does_not_advance_the_timestamp() {
    let (mut receiver, next) = linux(EcnMode::Off);
    let mut arrive = |number, sent| {
        receiver.on_segment(at(90), &DataSegment { sent_at: at(sent), ..segment(number) });
        receiver.poll(at(90)).map(|ack| ack.ack / 1460)
    };
    assert_eq!(arrive(next + 1, 30), Some(next));
    assert_eq!(arrive(next - 2, 80), Some(next), "sent again");
    assert_eq!(arrive(next, 30), Some(next + 2));
}

/// tcp_ecn_accept_cwr, with DCTCP too.
#[test]
fn linux_acknowledges_cwr_at_once() {
    for ecn in [EcnMode::Classic, EcnMode::Dctcp] {
        for cwr in [false, true] {
            let (mut receiver, next) = linux(ecn);
            receiver.on_segment(at(41), &DataSegment { cwr, ..segment(next) });
            assert_eq!(receiver.poll(at(41)).is_some(), cwr);
        }
    }
}

/// tcp_data_queue: of a retransmission that takes in the next segment, which had not arrived.
#[test]
fn linux_reports_the_part_that_had_arrived() {
    let (mut receiver, next) = linux(EcnMode::Off);
    let both = DataSegment { len: 2000, ..segment(next - 1) };
    receiver.on_segment(at(41), &both);
    receiver.on_timeout(receiver.next_timeout().expect("it waits for more"));
    let sack = receiver.poll(at(90)).unwrap().sack;
    assert_eq!(sack.as_slice(), [((next - 1) * 1460, next * 1460)]);
}

/// tcp_validate_incoming: the acknowledgement of what ends before the last one is none of the
/// sixteen; that of what ends there is (tcp_data_queue).
#[test]
fn linux_refuses_what_ends_before_the_last_acknowledgement() {
    for (back, quick) in [(2, 16), (1, 15)] {
        let (mut receiver, next) = linux(EcnMode::Off);
        let mut arrive = |number| {
            receiver.on_segment(at(41), &segment(number));
            receiver.poll(at(41)).is_some()
        };
        assert!(arrive(next - back));
        let at_once = (next..).take_while(|number| arrive(*number)).count();
        assert_eq!(at_once, quick);
    }
}

/// __tcp_ecn_check_ce: a segment without ECT after some with it is probably a retransmission.
#[test]
fn linux_acknowledges_a_segment_without_ect_at_once_and_the_next() {
    let (mut receiver, next) = linux(EcnMode::Classic);
    let codepoints = [Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ect0];
    let at_once = (next..).zip(codepoints).map(|(number, ecn)| {
        receiver.on_segment(at(41), &DataSegment { ecn, ..segment(number) });
        receiver.poll(at(41)).is_some()
    });
    assert_eq!(at_once.collect::<Vec<_>>(), [false, true, true, true, false]);
}

/// tcp_ecn_create_request, tcp_ecn_make_synack: the SYN that arrives first decides.
#[test]
fn only_a_first_syn_that_asks_for_ecn_gets_it() {
    for asked in [[true, false], [false, true], [false, false]] {
        let params = TcpParams { ecn: EcnMode::Classic, ..TcpParams::default() };
        let mut receiver = Receiver::new(&params);
        for cwr in asked {
            receiver.on_segment(at(0), &DataSegment { syn: true, cwr, ..segment(0) });
            assert_eq!(receiver.poll(at(0)).unwrap().ece, asked[0], "{asked:?}");
        }
        receiver.on_segment(at(1), &DataSegment { ecn: Ecn::Ce, ..segment(0) });
        assert_eq!(receiver.poll(at(1)).unwrap().ece, asked[0], "{asked:?}");
        // Another setting changes nothing, another mode of ECN begins.
        receiver.change(&params, &TcpParams { dsack: false, ..params.clone() });
        assert_eq!(receiver.uses_ecn(), asked[0]);
        receiver.change(&TcpParams { ecn: EcnMode::Off, ..params.clone() }, &params);
        assert!(receiver.uses_ecn());
    }
}

/// RFC 2883, section 4.1.1; tcp_data_queue_ofo and tcp_ofo_queue.
#[test]
fn the_part_of_a_block_that_comes_again_is_reported() {
    let (mut receiver, next) = linux(EcnMode::Off);
    let start = (next + 1) * 1460;
    let mut first = |seq, len| {
        receiver.on_segment(at(41), &DataSegment { seq, len, ..DataSegment::default() });
        receiver.poll(at(41)).unwrap().sack.as_slice().first().copied()
    };
    assert_eq!(first(start, 1460), Some((start, start + 1460)));
    assert_eq!(first(start + 700, 1460), Some((start + 700, start + 1460)));
    assert_eq!(first(next * 1460, 2000), Some((start, start + 540)));
}
