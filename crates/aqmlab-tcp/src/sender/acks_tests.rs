//! Tests of the samples passed to congestion controls.

use aqmlab_core::{Bytes, Limit, Span};

use super::RfcSender;
use crate::congestion::{AckSample, CongestionControl};
use crate::params::Recovery;
use crate::params::{EcnMode, TcpParams};
use crate::segment::{Ack, CeCount, Timestamps};
use crate::testing::{at, reports as ack};

/// A sender with ten segments of 1000 bytes in flight, sent at 100 ms.
fn sender(params: TcpParams, keep_records: bool) -> RfcSender {
    let params = TcpParams { mss: Bytes::new(1000), initial_window: Limit::Packets(10), ..params };
    let mut sender = RfcSender::new(&params, None, 0);
    if keep_records {
        sender.keep_records();
    }
    sender.open(at(0));
    assert!(sender.poll(at(0)).unwrap().syn);
    sender.on_ack(at(100), &Ack { syn: true, window: 1 << 40, ..Ack::default() });
    assert_eq!(std::iter::from_fn(|| sender.poll(at(100))).count(), 10);
    sender
}

fn take(sender: &mut RfcSender, millis: u64, ack: Ack) -> AckSample {
    sender.on_ack(at(millis), &Ack { window: 1 << 40, ..ack });
    while sender.poll(at(millis)).is_some() {}
    sender.told
}

#[test]
fn bytes_are_delivered_once_and_losses_told_when_found() {
    for recovery in [Recovery::Sack, Recovery::Rack] {
        let mut sender = sender(TcpParams { recovery, ..TcpParams::rfc() }, false);
        let told = take(&mut sender, 200, ack(1, &[]));
        assert_eq!((told.acked, told.sacked, told.delivered, told.lost), (1000, 0, 1000, 0));
        assert_eq!((told.prior_in_flight, told.in_flight), (10_000, 9000));
        assert_eq!((told.rtt, told.min_rtt), (Some(Span::from_millis(100)), told.rtt));
        assert!(told.window_limited && !told.in_recovery);
        // Segment 1 is lost; 2 to 4 arrive.
        let told = take(&mut sender, 200, ack(1, &[(2, 5)]));
        assert_eq!((told.acked, told.sacked, told.delivered), (0, 3000, 3000));
        assert_eq!((told.lost, told.total_lost), (1000, 1000), "{recovery:?}");
        assert!(!told.in_recovery, "it begins with this one");
        let told = take(&mut sender, 300, ack(10, &[]));
        assert_eq!((told.acked, told.delivered, told.total_delivered), (9000, 6000, 10_000));
        assert!(told.in_recovery);
        assert_eq!(told.rtt, None, "Karn");
    }
}

/// ns-3: what SACK reported before the recovery's end counts with its last acknowledgement.
#[test]
fn the_end_of_a_recovery_counts_with_all_that_it_covers() {
    for recovery_end_counts in [false, true] {
        let params = TcpParams { recovery_end_counts, ..TcpParams::rfc() };
        let mut sender = sender(params, false);
        take(&mut sender, 200, ack(0, &[(1, 5)]));
        let before = sender.control.window();
        let told = take(&mut sender, 300, ack(10, &[]));
        assert_eq!((told.acked, told.delivered), (10_000, 6000));
        assert_eq!(told.in_recovery, !recovery_end_counts);
        assert_eq!(told.counted(), if recovery_end_counts { 10_000 } else { 6000 });
        // Half of ten segments; the ten count as two windows, and the first makes it grow at once.
        let grown = sender.control.window() - before;
        assert_eq!(grown, if recovery_end_counts { 1000 } else { 0 });
    }
}

/// A round ends when data sent after its beginning are acknowledged.
#[test]
fn rounds_are_counted_by_what_was_sent_in_them() {
    let mut sender = sender(TcpParams::rfc(), false);
    let rounds: Vec<bool> = (1..=25)
        .map(|number| take(&mut sender, 190 + 10 * number, ack(number, &[])).round_start)
        .collect();
    // The first begins a round when ten are sent; it ends with the
    // acknowledgement of the eleventh, which was sent in it.
    let starts: Vec<usize> =
        (0..25).filter(|index| rounds[*index]).map(|index| index + 1).collect();
    assert_eq!(starts, [1, 11]);
}

#[test]
fn marks_and_delays_are_told() {
    let params = TcpParams { ecn: EcnMode::Accurate, timestamps: true, ..TcpParams::rfc() };
    let mut sender = sender(params, false);
    let marked = Ack {
        ce: CeCount { packets: 2, bytes: 2000 },
        timestamps: Some(Timestamps { value: at(160), echo: at(100) }),
        ..ack(2, &[])
    };
    let told = take(&mut sender, 200, marked);
    assert_eq!((told.ece, told.ce_packets, told.ce_bytes), (true, 2, 2000));
    assert_eq!(told.one_way_delay, Some(Span::from_millis(60)));
    let told = take(&mut sender, 200, Ack { ce: marked.ce, ..ack(3, &[]) });
    assert_eq!((told.ece, told.ce_packets), (false, 0));
    assert_eq!(sender.conn.stats.ecn_reductions, 1);
}

/// RFC 3168, section 6.1.2: a mark and a loss in one window of data reduce the window once, a loss
/// in the next one again.
#[test]
fn a_loss_in_a_window_of_data_that_was_marked_reduces_no_more() {
    for prr in [false, true] {
        let params = TcpParams { ecn: EcnMode::Classic, prr, ..TcpParams::rfc() };
        let mut sender = sender(params, false);
        take(&mut sender, 200, Ack { ece: true, ..ack(1, &[]) });
        let threshold = sender.control.ssthresh();
        let sent = sender.board.nxt() / 1000;
        take(&mut sender, 210, ack(1, &[(2, 6)]));
        assert_eq!(sender.conn.stats.fast_retransmits, 1);
        assert_eq!(sender.control.ssthresh(), threshold, "the same window, PRR {prr}");
        take(&mut sender, 300, ack(sent, &[]));
        let nxt = sender.board.nxt() / 1000;
        take(&mut sender, 310, ack(nxt - 1, &[]));
        let sent = sender.board.nxt() / 1000;
        take(&mut sender, 400, ack(nxt - 1, &[(nxt, sent)]));
        assert_eq!(sender.conn.stats.fast_retransmits, 2);
        assert!(sender.control.ssthresh() < threshold, "the next window, PRR {prr}");
    }
}

/// With records, SACK alone provides rate samples, and rounds are counted by delivered data.
#[test]
fn rates_and_rounds_come_from_what_was_delivered() {
    let mut sender = sender(TcpParams::rfc(), true);
    let told = take(&mut sender, 200, ack(1, &[]));
    let rate = told.rate.unwrap();
    assert_eq!((rate.delivered, rate.interval), (1000, Span::from_millis(100)));
    assert_eq!((rate.prior_delivered, rate.rtt), (0, Span::from_millis(100)));
    assert!(told.round_start && !rate.app_limited);
    let told = take(&mut sender, 210, ack(1, &[(2, 4)]));
    let rate = told.rate.unwrap();
    assert_eq!((rate.delivered, rate.interval), (3000, Span::from_millis(110)));
    assert!(!told.round_start, "sent before the round began");
    // 10 and 11 were sent at 200, when 1000 were delivered.
    let told = take(&mut sender, 300, ack(1, &[(10, 11), (2, 4)]));
    assert!(told.round_start);
    let rate = told.rate.unwrap();
    assert_eq!((rate.prior_delivered, rate.delivered), (1000, 3000));
    assert_eq!((rate.interval, rate.rtt), (Span::from_millis(100), Span::from_millis(100)));
}

/// The slow start threshold after the next timeout.
fn time_out(sender: &mut RfcSender) -> u64 {
    let before = sender.conn.stats.timeouts;
    while sender.conn.stats.timeouts == before {
        let now = sender.next_timeout().expect("a timer runs");
        sender.on_timeout(now);
        while sender.poll(now).is_some() {}
    }
    sender.control.ssthresh()
}

/// RFC 5681, section 3.1: when the retransmission is lost as well, the threshold stays what the
/// flight of the first loss made it.
#[test]
fn a_segment_that_times_out_again_leaves_the_threshold() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut sender = sender(TcpParams { recovery, ..TcpParams::rfc() }, false);
        let first = time_out(&mut sender);
        assert!((5000..10_000).contains(&first), "{recovery:?}: {first}");
        assert_eq!(time_out(&mut sender), first, "{recovery:?}: once");
        assert_eq!(time_out(&mut sender), first, "{recovery:?}: twice");
        // The head arrives: another that times out is a new loss, of one segment or two.
        let now = sender.next_timeout().unwrap().as_nanos() / 1_000_000;
        take(&mut sender, now, ack(1, &[]));
        assert_eq!(time_out(&mut sender), 2000, "{recovery:?}: another segment");
    }
}

/// RFC 7323, section 4.1: the clocks of sender and receiver need not agree.
#[test]
fn a_receiver_whose_clock_is_behind_has_no_negative_delay() {
    let mut sender = sender(TcpParams { timestamps: true, ..TcpParams::rfc() }, false);
    let timestamps = Some(Timestamps { value: at(10), echo: at(100) });
    let told = take(&mut sender, 200, Ack { timestamps, ..ack(1, &[]) });
    assert_eq!(told.one_way_delay, Some(Span::ZERO));
}

/// RFC 7323, section 4.3: segments echo the newest time value that arrived.
#[test]
fn segments_echo_the_newest_time_value() {
    let mut sender = sender(TcpParams { timestamps: true, ..TcpParams::rfc() }, false);
    for (millis, value, echoed) in [(200, 160, 160), (210, 150, 160), (220, 180, 180)] {
        let timestamps = Some(Timestamps { value: at(value), echo: at(100) });
        let ack = Ack { timestamps, window: 1 << 40, ..ack((millis - 190) / 10, &[]) };
        sender.on_ack(at(millis), &ack);
        assert_eq!(sender.poll(at(millis)).expect("the window is open").echo, at(echoed));
        while sender.poll(at(millis)).is_some() {}
    }
}
