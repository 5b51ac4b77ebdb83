//! Replays arrivals through a discipline in front of a link of constant rate, and returns the fate
//! of each packet, which `aqmlab conformance` compares with the record of a reference
//! implementation.
//!
//! # Model
//!
//! An open loop: nothing answers to drops or marks. The link sends one packet
//! at a time; the queue does not see the packet under way. At one moment the
//! end of a transmission comes first (and asks the queue for a packet, also
//! if it is empty), then the discipline's timer, then the arrivals; an
//! arrival at an idle link asks for a packet at once. The timer runs as long
//! as arrivals are to come or the link is busy.

pub mod emulated;

use aqmlab_aqm::{LinkEnv, Queue, QueueConfig, Reason};
use aqmlab_core::{Bytes, Ecn, Packet, Rate, Span, Stream, Time};

/// Longest round-trip time reported to disciplines; no replayed one derives a setting from it.
pub const BASE_RTT: Span = Span::from_millis(100);

/// A packet that arrives. Its place in the list of arrivals is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When; never before the arrival ahead of it.
    pub time: Time,
    /// Flow, used by flow queues instead of a hash.
    pub flow: u32,
    /// Size on the wire.
    pub size: u32,
    /// ECN codepoint.
    pub ecn: Ecn,
}

/// The link behind the queue, and what the queue draws from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surroundings {
    /// Rate reported to disciplines.
    pub rate: Rate,
    /// Time for which a byte occupies the link.
    pub nanos_per_byte: u64,
    /// Largest packet size reported to disciplines.
    pub mtu: Bytes,
    /// Where the random numbers start, see [`Stream::from_state`].
    pub random_seed: u64,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOutcome {
    /// The packet: its place in the list of arrivals.
    pub id: u32,
    /// Decision.
    pub verdict: Verdict,
    /// When: at the start of its transmission, or of its drop.
    pub time: Time,
    /// Sojourn time at that moment.
    pub sojourn: Span,
    /// Time of its latest mark, even if it was dropped afterwards.
    pub marked: Option<Time>,
    /// Why it was dropped.
    pub reason: Option<Reason>,
}

aqmlab_aqm::named! {
    /// Decision about a packet.
    pub enum Verdict {
        /// Sent without a mark.
        Delivered = "delivered",
        /// Sent with a mark of this queue.
        Marked = "marked",
        /// A signal to the senders, given when a packet arrived.
        DroppedEnqueue = "dropped_enqueue",
        /// A signal to the senders, given when a packet was to be sent.
        DroppedDequeue = "dropped_dequeue",
        /// A limit was exceeded.
        DroppedOverlimit = "dropped_overlimit",
    }
}

/// Replays `arrivals`; returns the outcomes in the order of the decisions. Packets that are still
/// queued at the end have none.
///
/// # Panics
/// Panics if the discipline loses packets, or if there are more than 2^32.
pub fn replay(
    config: &QueueConfig,
    surroundings: &Surroundings,
    arrivals: &[Arrival],
) -> Vec<QueueOutcome> {
    let env = LinkEnv::new(surroundings.rate, BASE_RTT).with_sizes(surroundings.mtu, 0);
    let random = Stream::from_state(surroundings.random_seed);
    let mut queue = Queue::new(config.build(&env), random);
    queue.record_marks();
    let run = Replay {
        queue,
        marked: vec![None; arrivals.len()],
        nanos_per_byte: surroundings.nanos_per_byte,
        busy_until: None,
        outcomes: Vec::with_capacity(arrivals.len()),
    };
    run.run(config.name(), arrivals)
}

struct Replay {
    queue: Queue,
    /// Times of the last mark, by packet.
    marked: Vec<Option<Time>>,
    nanos_per_byte: u64,
    busy_until: Option<Time>,
    outcomes: Vec<QueueOutcome>,
}

impl Replay {
    fn run(mut self, name: &str, arrivals: &[Arrival]) -> Vec<QueueOutcome> {
        let mut next = 0;
        loop {
            let arrival = arrivals.get(next);
            let ahead = [self.busy_until, arrival.map(|arrival| arrival.time)];
            let Some(work) = ahead.into_iter().flatten().min() else { break };
            let wakeup = self.queue.next_wakeup().filter(|wakeup| *wakeup <= work);
            // At one moment: end of a transmission, timer, arrival.
            if self.busy_until == Some(work) && wakeup.is_none_or(|wakeup| work <= wakeup) {
                self.send(work);
            } else if let Some(now) = wakeup {
                self.queue.on_wakeup(now);
                self.collect(now, Verdict::DroppedDequeue);
            } else if let Some(arrival) = arrival {
                let id = u32::try_from(next).expect("fewer than 2^32 packets");
                next += 1;
                self.arrive(id, arrival);
            }
        }
        self.queue.assert_conservation(name);
        self.outcomes
    }

    fn arrive(&mut self, id: u32, arrival: &Arrival) {
        let Arrival { time, flow, size, ecn } = *arrival;
        let packet = Packet::new(size, ecn).with_flow_hash(flow).with_key(id.into());
        self.queue.enqueue(packet, time);
        self.collect(time, Verdict::DroppedEnqueue);
        if self.busy_until.is_none() {
            self.send(time);
        }
    }

    /// The link is idle: sends the next packet, if any.
    fn send(&mut self, now: Time) {
        let packet = self.queue.dequeue(now);
        self.collect(now, Verdict::DroppedDequeue);
        self.busy_until = packet.map(|packet| {
            let sent = if packet.is_marked() { Verdict::Marked } else { Verdict::Delivered };
            self.outcomes.push(outcome(&packet, &self.marked, sent, now, None));
            now + Span::from_nanos(self.nanos_per_byte) * u64::from(packet.size())
        });
    }

    /// Takes the dropped packets; `signal` is the verdict for signals dropped in this call.
    fn collect(&mut self, now: Time, signal: Verdict) {
        let Replay { queue, marked, outcomes, .. } = self;
        for id in queue.take_marks() {
            marked[id as usize] = Some(now);
        }
        queue.take_dropped(|packet, reason| {
            let verdict = if reason.is_signal() { signal } else { Verdict::DroppedOverlimit };
            outcomes.push(outcome(&packet, marked, verdict, now, Some(reason)));
        });
    }
}

fn outcome(
    packet: &Packet,
    marked: &[Option<Time>],
    verdict: Verdict,
    time: Time,
    reason: Option<Reason>,
) -> QueueOutcome {
    let sojourn = time - packet.arrival();
    let id = packet.key as u32;
    QueueOutcome { id, verdict, time, sojourn, marked: marked[id as usize], reason }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Table, Value};

    use super::*;

    /// 800 ns a byte: a packet of 1500 bytes takes 1.2 ms.
    const LINK: Surroundings = Surroundings {
        rate: Rate::from_bps(10_000_000),
        nanos_per_byte: 800,
        mtu: Bytes::new(1514),
        random_seed: 1,
    };

    fn config(settings: &[(&str, &str)]) -> QueueConfig {
        let pairs = settings.iter().map(|(key, text)| ((*key).to_string(), Value::from(*text)));
        QueueConfig::read(&Value::Table(pairs.collect::<Table>())).unwrap()
    }

    fn arrivals(micros: &[u64]) -> Vec<Arrival> {
        let arrival = |us: &u64| Arrival {
            time: Time::from_nanos(us * 1000),
            flow: 0,
            size: 1500,
            ecn: Ecn::Ect0,
        };
        micros.iter().map(arrival).collect()
    }

    /// Packet, verdict, time in microseconds.
    fn decisions(config: &QueueConfig, micros: &[u64]) -> Vec<(u32, Verdict, u64)> {
        let outcomes = replay(config, &LINK, &arrivals(micros));
        outcomes.iter().map(|o| (o.id, o.verdict, o.time.as_nanos() / 1000)).collect()
    }

    #[test]
    fn a_transmission_ends_before_a_packet_arrives_at_the_same_time() {
        let one = config(&[("discipline", "droptail"), ("limit", "1p")]);
        use Verdict::{Delivered, DroppedOverlimit};
        // 1 waits; 2 comes when 0 has just ended and 1 has left the queue.
        let expected = [
            (0, Delivered, 0),
            (1, Delivered, 1200),
            (3, DroppedOverlimit, 1300),
            (2, Delivered, 2400),
            (4, Delivered, 9000),
        ];
        assert_eq!(decisions(&one, &[0, 0, 1200, 1300, 9000]), expected);
    }

    #[test]
    fn marks_have_the_time_at_which_they_were_given() {
        let all = [("discipline", "codel"), ("ce_threshold", "1ms"), ("ecn", "true")];
        let outcomes = replay(&config(&all), &LINK, &arrivals(&[0, 0, 0]));
        let marked: Vec<_> = outcomes.iter().map(|o| o.marked.map(Time::as_nanos)).collect();
        assert_eq!(marked, [None, Some(1_200_000), Some(2_400_000)]);
        assert_eq!(outcomes[2].verdict, Verdict::Marked);
        assert_eq!(outcomes[2].sojourn, Span::from_micros(2400));
    }

    #[test]
    fn a_signal_on_arrival_and_one_on_departure_have_different_names() {
        let early = [("discipline", "red"), ("min_threshold", "1p"), ("max_threshold", "2p")];
        let early = [&early[..], &[("weight", "1"), ("gentle", "false")]].concat();
        let outcomes = replay(&config(&early), &LINK, &arrivals(&[0; 8]));
        let dropped: Vec<_> = outcomes.iter().filter(|o| o.reason.is_some()).collect();
        assert!(!dropped.is_empty());
        assert!(
            dropped.iter().all(|o| o.verdict == Verdict::DroppedEnqueue && o.sojourn == Span::ZERO)
        );
        let late = [("discipline", "codel"), ("interval", "1ms"), ("target", "1ms")];
        let outcomes = replay(&config(&late), &LINK, &arrivals(&[0; 8]));
        assert!(outcomes.iter().any(|o| o.verdict == Verdict::DroppedDequeue));
    }
}
