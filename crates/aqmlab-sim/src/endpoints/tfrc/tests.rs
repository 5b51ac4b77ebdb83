//! Numbers computed manually from RFC 5348.

use aqmlab_core::{Ecn, Span, Time};

use super::equation::{losses_for, rate, throughput};
use super::losses::{DataArrival, LossHistory};
use super::{Data, Feedback, TfrcParams, TfrcSink, TfrcSource};
use crate::endpoints::{Endpoint, EndpointSetup, Incoming, Sink, Source};

const SETUP: EndpointSetup =
    EndpointSetup { size: None, is_open: false, mss: 1000, header: 40, seed: 0, log: None };

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn near(got: f64, wanted: f64) {
    assert!((got / wanted - 1.0).abs() < 1e-6, "{got}, not {wanted}");
}

/// Section 3.1. With p = 1 %: sqrt(0.02 / 3) + 12 sqrt(0.00375) 0.01 1.0032 = 0.0890216;
/// with p = 1: sqrt(2/3) + 12 sqrt(3/8) 33 = 243.31593.
#[test]
fn the_equation_gives_what_is_computed_by_hand() {
    near(rate(1460.0, 0.1, 0.01), 1460.0 / 0.008_902_163);
    near(rate(1000.0, 2.0, 1.0), 500.0 / 243.315_93);
    // Full form: a longer timeout affects only the second term.
    near(throughput(1460.0, 0.1, 1.0, 1.0, 0.01), 1460.0 / (0.008_164_966 + 0.001_842_995));
    // Delayed acknowledgements, and few losses: s / (R sqrt(4p/3)).
    near(throughput(1000.0, 0.1, 0.4, 2.0, 1e-12), 1000.0 / (0.1 * (4e-12f64 / 3.0).sqrt()));
}

#[test]
fn the_inverse_finds_the_losses_of_a_rate() {
    for losses in [1e-9, 1e-6, 1e-3, 0.05, 0.3, 0.99] {
        near(losses_for(1460.0, 0.1, rate(1460.0, 0.1, losses)), losses);
    }
    // Half a packet per round trip is the minimum; a rate that no loss rate explains has the lowest
    // one; a rate below that of p = 1 has p = 1.
    near(rate(1.0, 1.0, losses_for(1.0, 1.0, 0.5)), 0.5);
    assert!(losses_for(1460.0, 0.1, 1e30) < 1e-11);
    assert_eq!(losses_for(1460.0, 0.1, 1e-30), 1.0);
}

/// History in which packet n arrives at n seconds, except for missing ones.
struct Train {
    losses: LossHistory,
    rtt: f64,
    first: f64,
    next: u64,
}

impl Train {
    fn new(count: usize, has_discounts: bool, rtt: f64, first: f64) -> Self {
        Train { losses: LossHistory::new(count, has_discounts), rtt, first, next: 0 }
    }
    fn come(&mut self, number: u64, time: f64, is_marked: bool) -> DataArrival {
        let first = self.first;
        self.losses.arrive(number, time, is_marked, self.rtt, &|_| first)
    }
    /// Passes all packets below `end`, except for missing ones. Returns the number of loss events.
    fn pass(&mut self, end: u64, missing: &[u64]) -> usize {
        let come = (self.next..end).filter(|number| !missing.contains(number));
        let events: Vec<_> =
            come.map(|number| self.come(number, number as f64, false).is_event).collect();
        self.next = end;
        events.into_iter().filter(|is_event| *is_event).count()
    }
}

/// Section 5.4, with closed intervals of 10 to 80 packets: 10 + 20 + 30 + 40 + 0.8 50 + 0.6 60 +
/// 0.4 70 + 0.2 80 = 220 of weight 6. The current one counts once it makes the mean larger: with
/// 100 packets, 100 + 10 + 20 + 30 + 0.8 40 + 0.6 50 + 0.4 60 + 0.2 70 = 260.
#[test]
fn the_average_loss_interval_is_that_worked_out_by_hand() {
    // The synthetic interval has 90 packets, and is dropped at the end.
    let mut train = Train::new(8, false, 0.5, 90.0);
    let starts = [90, 170, 240, 300, 350, 390, 420, 440, 450];
    assert_eq!(train.pass(455, &starts), 9);
    near(train.losses.rate(), 6.0 / 220.0);
    train.pass(550, &[]);
    near(train.losses.rate(), 6.0 / 260.0);
}

/// With one loss event, the history has the synthetic interval and the current one.
#[test]
fn the_first_loss_interval_is_synthetic() {
    let mut train = Train::new(8, false, 0.5, 25.0);
    train.pass(1000, &[]);
    assert_eq!(train.losses.rate(), 0.0);
    assert_eq!(train.pass(1010, &[1000]), 1);
    near(train.losses.rate(), 1.0 / 25.0);
    train.pass(1040, &[]);
    near(train.losses.rate(), 1.0 / 40.0);
}

/// Section 5.5. Two intervals of 10, and 40 packets now: DF = 2 10 / 40; (40 + 0.5 10) / 1.5 = 30.
/// With 400, DF has its minimum of 0.25: (400 + 2.5) / 1.25. The discount remains with the old
/// intervals: after a loss they have a weight of 0.25 each, (400 + 10 / 4 + 10 / 4) / 1.5.
#[test]
fn long_intervals_discount_the_history() {
    let [mut with, mut without] = [true, false].map(|has| Train::new(8, has, 0.5, 10.0));
    for train in [&mut with, &mut without] {
        assert_eq!(train.pass(60, &[10, 20]), 2);
    }
    near(with.losses.rate(), 1.0 / 30.0);
    near(without.losses.rate(), 1.0 / 25.0);
    with.pass(420, &[]);
    near(with.losses.rate(), 1.25 / 402.5);
    assert_eq!(with.pass(424, &[420]), 1);
    near(with.losses.rate(), 1.5 / 405.0);
}

/// Section 5.2: losses within a round-trip time of the first loss belong to its event.
#[test]
fn losses_within_a_round_trip_are_one_event() {
    let mut train = Train::new(8, false, 3.0, 50.0);
    assert_eq!(train.pass(40, &[10, 11, 13]), 1);
    assert_eq!(train.pass(60, &[40, 44]), 2);
    // The intervals from 10 to 40, and from 40 to 44.
    near(train.losses.rate(), 3.0 / (50.0 + 30.0 + 4.0));
}

/// Section 5.1: three later packets make a packet lost; one that arrives before was only late.
#[test]
fn a_packet_is_lost_when_three_later_ones_have_come() {
    let mut train = Train::new(8, false, 0.5, 50.0);
    assert_eq!(train.pass(13, &[10]), 0);
    assert!(train.come(13, 13.0, false).is_event);
    let mut train = Train::new(8, false, 0.5, 50.0);
    assert_eq!(train.pass(13, &[10]), 0);
    assert_eq!(train.come(10, 12.5, false), DataArrival { is_new: true, is_event: false });
    assert_eq!(train.come(10, 12.6, false), DataArrival { is_new: false, is_event: false });
    train.next = 13;
    assert_eq!(train.pass(30, &[]), 0);
    // A packet that is too late is new once, and its event remains.
    assert_eq!(train.pass(40, &[30]), 1);
    assert!(train.come(30, 40.0, false).is_new);
    assert!(!train.come(30, 41.0, false).is_new);
}

/// Section 5.1: a mark is an event at once, and begins with a packet missing before it.
#[test]
fn a_mark_is_a_loss_event_at_once() {
    let mut train = Train::new(8, false, 5.0, 50.0);
    train.pass(11, &[10]);
    assert!(!train.come(11, 11.0, false).is_event);
    assert!(train.come(12, 12.0, true).is_event);
    // The event began at 10: a mark at 15 is within 5 s, one at 16 is not.
    assert!(!train.come(13, 15.0, true).is_event);
    assert!(train.come(14, 16.0, true).is_event);
    // 10 to 13 are an interval of four.
    near(train.losses.rate(), 2.0 / 54.0);
}

/// Source with its clock.
struct Sending {
    source: TfrcSource,
    now: Time,
}

impl Sending {
    /// Creates a source that starts at 0, without damping.
    fn new(size: Option<u64>) -> Self {
        let params = TfrcParams { damping: false, ..TfrcParams::default() };
        let mut source = TfrcSource::new(&params, &EndpointSetup { size, ..SETUP });
        source.open(at(0));
        Sending { source, now: at(0) }
    }
    /// Creates a source whose first packet is answered after 100 ms; its second packet leaves then.
    fn answered(size: Option<u64>) -> Self {
        let mut sending = Sending::new(size);
        assert_eq!(sending.send(50).len(), 1);
        sending.answer(100, 0, 0.0, 0.0, 1);
        sending
    }
    /// Sends due packets until a time. Returns their times in milliseconds, and the packets.
    fn send(&mut self, until: u64) -> Vec<(u64, Data)> {
        let mut sent = Vec::new();
        while let Some(deadline) = self.source.deadline().filter(|time| *time <= at(until)) {
            self.now = self.now.max(deadline);
            self.source.on_deadline(self.now);
            while let Some(packet) = self.source.poll(self.now) {
                let data = Data::read(&packet.payload).unwrap();
                sent.push((self.now.as_nanos() / 1_000_000, data));
            }
            assert!(self.source.deadline().is_none_or(|next| next > self.now), "time passes");
        }
        self.now = at(until);
        sent
    }
    /// Processes feedback at `now` on the packet sent at `echo`.
    fn answer(&mut self, now: u64, echo: u64, rate: f64, losses: f64, next: u64) {
        let (echo, packets) = (at(echo).as_nanos(), next);
        let feedback = Feedback { echo, delay: 0, rate, losses, next, packets };
        self.now = at(now);
        let packet = Incoming { payload: feedback.message(), size: 40, ecn: Ecn::NotEct };
        self.source.on_packet(self.now, packet);
    }
    /// Checks the allowed rate in bytes per second.
    fn allows(&self, wanted: f64) {
        near(self.source.allowed, wanted);
    }
}

/// Sections 4.2 and 4.3: one packet per second, then RFC 3390's window per round-trip time, then up
/// to twice the rate each round-trip time; with losses, the equation's rate.
#[test]
fn a_sender_starts_slowly_and_then_follows_the_equation() {
    let mut sending = Sending::answered(None);
    sending.allows(4000.0 / 0.1);
    // 40 packets per second: one every 25 ms.
    let times: Vec<_> = sending.send(199).iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [100, 125, 150, 175]);
    // The receive rate is no limit in the first two round-trip times.
    sending.answer(200, 100, 10_000.0, 0.0, 2);
    sending.allows(80_000.0);
    sending.send(299);
    sending.answer(300, 200, 30_000.0, 0.0, 6);
    sending.allows(60_000.0);
    sending.send(399);
    sending.answer(400, 300, 30_000.0, 0.01, 13);
    sending.allows(60_000.0);
    sending.send(499);
    sending.answer(500, 400, 30_000.0, 0.1, 18);
    sending.allows(rate(1000.0, 0.1, 0.1));
}

/// Section 4.4: half the rate after two seconds without any feedback, repeatedly, down to a packet
/// in 64 s.
#[test]
fn silence_halves_the_rate() {
    let mut sending = Sending::new(None);
    for (until, allowed) in [(1999, 1000.0), (2000, 500.0), (6000, 250.0)] {
        sending.send(until);
        sending.allows(allowed);
    }
    sending.send(3_600_000);
    sending.allows(1000.0 / 64.0);
}

/// Section 4.4: half the rate after max(4R, 2s/X) without feedback, with any limit of the rate.
#[test]
fn silence_on_a_known_path_halves_the_rate() {
    let mut sending = Sending::answered(None);
    sending.send(499);
    sending.allows(40_000.0);
    sending.send(500);
    sending.allows(20_000.0);
    for (received, losses, half) in [(3000.0, 0.001, 3000.0), (1e9, 0.01, 56_166.0)] {
        let mut sending = Sending::answered(None);
        sending.send(199);
        sending.source.received.clear();
        sending.answer(200, 100, received, losses, 2);
        let before = sending.source.allowed;
        assert!((before / 2.0 / half - 1.0).abs() < 1e-4, "{before}");
        let wait = (2e6 / before).max(400.0) as u64;
        sending.send(200 + wait - 1);
        sending.allows(before);
        sending.send(200 + wait + 1);
        sending.allows(before / 2.0);
    }
}

/// Section 4.4: a pause reduces the rate to no less than twice the initial one; with losses, a
/// lower rate remains unchanged.
#[test]
fn a_pause_leaves_the_initial_rate() {
    for (losses, allowed, later) in [(0.0, 80_000.0, 40_000.0), (0.001, 8500.0, 8500.0)] {
        let mut sending = Sending::answered(Some(2000));
        sending.send(150);
        let received = if losses > 0.0 { 10_000.0 } else { 100_000.0 };
        sending.answer(200, 100, received, losses, 2);
        sending.allows(allowed);
        assert!(sending.source.is_finished() && sending.source.deadline().is_none());
        for second in 1..60 {
            sending.source.on_deadline(at(1000 * second));
        }
        sending.allows(later);
    }
}

/// Section 4.3: feedback on a data-limited interval does not lower the limit, unless it reports a
/// loss event.
#[test]
fn a_data_limited_time_keeps_what_was_received_before() {
    for (losses, allowed) in [(1e-9, 100_000.0), (2e-9, 25_000.0)] {
        let mut sending = Sending::answered(Some(10_000));
        sending.send(190);
        sending.answer(200, 175, 50_000.0, 0.0, 5);
        sending.send(299);
        sending.answer(300, 250, 50_000.0, 1e-9, 10);
        // One packet at a time, each after a pause.
        for (number, time) in [(10, 600), (11, 700), (12, 800), (13, 900)] {
            sending.source.supply(1000);
            assert_eq!(sending.send(time).len(), 1, "{time}");
            let losses = if number == 13 { losses } else { 1e-9 };
            sending.answer(time + 90, time, 10_000.0, losses, number + 1);
        }
        sending.allows(allowed);
    }
}

/// A transfer ends when its last packet has arrived. If that packet is lost, the sender probes.
#[test]
fn a_transfer_ends_with_its_last_packet() {
    let mut sending = Sending::answered(Some(2500));
    let last: Vec<_> = sending.send(160).iter().map(|(_, data)| data.end).collect();
    assert_eq!(last, [2000, 2500]);
    sending.answer(200, 100, 10_000.0, 0.0, 2);
    assert!(!sending.source.is_finished());
    let asked: Vec<_> = sending.send(700).iter().map(|(_, d)| (d.number, d.end)).collect();
    assert_eq!(asked, [(3, 2500)]);
    sending.answer(800, 600, 10_000.0, 0.0, 4);
    assert!(sending.source.is_finished());
}

fn arrive(sink: &mut TfrcSink, now: Time, number: u64, ecn: Ecn) -> Option<Feedback> {
    let end = 1000 * (number + 1);
    let data = Data { number, sent: now.as_nanos() - 1_000_000, rtt: 0.1, end };
    sink.on_packet(now, Incoming { payload: data.message(), size: 1040, ecn });
    said(sink, now)
}

fn said(sink: &mut TfrcSink, now: Time) -> Option<Feedback> {
    Feedback::read(&sink.poll(now)?.payload)
}

/// Sections 6.1 to 6.3: feedback on the first packet, then every round-trip time, and at once on a
/// loss event; none without arrivals.
#[test]
fn a_receiver_answers_each_round_trip_and_each_event() {
    let mut sink = TfrcSink::new(&TfrcParams::default(), &SETUP);
    let first = arrive(&mut sink, at(10), 0, Ecn::NotEct).unwrap();
    assert_eq!((first.rate, first.losses, first.next), (0.0, 0.0, 1));
    assert_eq!(sink.deadline(), Some(at(110)));
    for number in 1..=10 {
        assert_eq!(arrive(&mut sink, at(10 + 9 * number), number, Ecn::NotEct), None);
    }
    sink.on_deadline(at(110));
    let second = said(&mut sink, at(110)).unwrap();
    // Ten packets in 100 ms; the last arrived 10 ms ago.
    near(second.rate, 100_000.0);
    assert_eq!((second.delay, second.packets, sink.arrived()), (10_000_000, 11, 11_000));
    // A mark is reported at once, over 100 ms. Six packets in 130 - 10 ms make 16 in total.
    for number in 11..=15 {
        arrive(&mut sink, at(105 + number), number, Ecn::Ect0);
    }
    let third = arrive(&mut sink, at(130), 16, Ecn::Ce).unwrap();
    near(third.rate, 16_000.0 / 0.12);
    // The equation with the highest rate so far, that of the packets until the mark.
    near(rate(1000.0, 0.1, third.losses), 15_000.0 / 0.12);
    assert_eq!(arrive(&mut sink, at(140), 17, Ecn::Ce), None, "the same event");
    sink.on_deadline(at(230));
    assert!(said(&mut sink, at(230)).is_some());
    // Without arrivals there is no answer and no timer, and the next packet is answered at once.
    sink.on_deadline(at(330));
    assert_eq!((said(&mut sink, at(330)), sink.deadline()), (None, None));
    let late = arrive(&mut sink, at(1330), 18, Ecn::NotEct).unwrap();
    near(late.rate, 10_000.0);
    // The timer would have expired at 1230 and at 1330: one packet per round-trip time.
}

/// Section 6.3.1: a marked first packet results in half a packet per round-trip time.
#[test]
fn a_mark_on_the_first_packet_leaves_half_a_packet() {
    let mut sink = TfrcSink::new(&TfrcParams::default(), &SETUP);
    let first = arrive(&mut sink, at(10), 0, Ecn::Ce).unwrap();
    near(rate(1000.0, 0.1, first.losses), 0.5 * 1000.0 / 0.1);
}
