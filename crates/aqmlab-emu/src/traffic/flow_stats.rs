//! Statistics of flows and groups, and their encoding for the transfer from the traffic process to
//! the emulator.

use std::net::TcpStream;
use std::sync::Arc;

use aqmlab_core::{Span, Time};
use aqmlab_sim::endpoints::Direction;
use aqmlab_sim::endpoints::datagrams::{Copies, DatagramSummary, Sent};
use aqmlab_sim::network::losses::FlowLosses;
use aqmlab_sim::network::probe::TimeHistogram;
use aqmlab_sim::workload::quantities::Quantity;
use aqmlab_sim::{FlowResult, GroupResult, Traffic};
use aqmlab_tcp::Stats;

use super::played::Played;
use crate::sys::tcp::{Info, info};

/// Kernel counters of a group's senders: the `nstat` name, and the name in results.
pub const KERNEL: [(&str, &str); 6] = [
    ("TCPSackRecovery", "kernel_fast_recoveries"),
    ("TCPTimeouts", "kernel_timeouts"),
    ("TCPLossProbes", "kernel_tail_probes"),
    ("TCPLossUndo", "kernel_undone"),
    ("TCPHystartTrainDetect", "kernel_hystart_train"),
    ("TCPHystartDelayDetect", "kernel_hystart_delay"),
];

/// State machine of real senders.
const STACK: &str = "kernel";

/// Connection.
pub struct Connection {
    group: u64,
    index: u64,
    direction: Direction,
    start: Time,
    finish: Option<Time>,
    size: Option<u64>,
    info: Info,
    /// Counters at the end of the warm-up, if it was open by then.
    before: Info,
    /// Socket while it is open; not encoded.
    stream: Option<Arc<TcpStream>>,
}

/// Flow of datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagrams {
    group: u64,
    index: u64,
    direction: Direction,
    start: Time,
    sent: u64,
    sent_bytes: u64,
    received: u64,
    received_bytes: u64,
    /// At the end of the warm-up: packets sent, bytes sent, packets received, bytes received.
    before: [u64; 4],
    last_delay: Span,
    jitter: f64,
    delays: Vec<u64>,
    /// Not encoded.
    copies: Copies,
}

/// Results of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Results of its applications.
    pub played: Played,
    /// Counters by [`KERNEL`].
    pub kernel: [u64; KERNEL.len()],
    /// Number of flows.
    members: u64,
}

/// Statistics of all flows and groups.
#[derive(Default)]
pub struct FlowStats {
    pub groups: Vec<Group>,
    connections: Vec<Connection>,
    datagrams: Vec<Datagrams>,
    /// Time of the end of the warm-up.
    warmup: Time,
    /// Finished members, by group.
    pub members_done: Vec<u64>,
    /// Number of groups whose applications have not reported results.
    pub awaited: usize,
    /// Error messages for the user.
    pub failures: Vec<String>,
}

impl FlowStats {
    pub fn new(groups: usize) -> Self {
        FlowStats {
            groups: vec![Group::default(); groups],
            members_done: vec![0; groups],
            ..FlowStats::default()
        }
    }

    /// Returns the index of the next flow in its group.
    fn next_index(&mut self, group: usize) -> u64 {
        let group = &mut self.groups[group];
        group.members += 1;
        group.members - 1
    }

    /// Records an opened connection. Returns its number.
    pub fn open(
        &mut self,
        group: usize,
        direction: Direction,
        start: Time,
        size: Option<u64>,
        stream: Arc<TcpStream>,
    ) -> usize {
        let index = self.next_index(group);
        self.connections.push(Connection {
            group: group as u64,
            index,
            direction,
            start,
            finish: None,
            size,
            info: Info::default(),
            before: Info::default(),
            stream: Some(stream),
        });
        self.connections.len() - 1
    }

    /// Sets the total size of a connection, as far as it is known.
    pub fn set_size(&mut self, flow: usize, size: Option<u64>) {
        self.connections[flow].size = size;
    }

    /// Records that all data of a connection is acknowledged.
    pub fn finished(&mut self, flow: usize, now: Time) {
        let connection = &mut self.connections[flow];
        connection.finish = Some(now);
        connection.look();
        connection.stream = None;
    }

    /// Records the start of a flow of datagrams. Returns its number.
    pub fn open_datagrams(&mut self, group: usize, direction: Direction, start: Time) -> usize {
        let index = self.next_index(group);
        self.datagrams.push(Datagrams {
            group: group as u64,
            index,
            direction,
            start,
            sent: 0,
            sent_bytes: 0,
            received: 0,
            received_bytes: 0,
            before: [0; 4],
            last_delay: Span::ZERO,
            jitter: 0.0,
            delays: Vec::new(),
            copies: Copies::default(),
        });
        self.datagrams.len() - 1
    }

    /// Counts a sent datagram of this many bytes on the wire. Returns its number in the flow.
    pub fn datagram_sent(&mut self, flow: usize, bytes: u32) -> u32 {
        let flow = &mut self.datagrams[flow];
        flow.sent += 1;
        flow.sent_bytes += u64::from(bytes);
        (flow.sent - 1) as u32
    }

    /// Counts an arrived datagram. Returns false for duplicates, which are not counted.
    pub fn datagram_arrived(&mut self, flow: usize, bytes: u32, now: Time, sent: Sent) -> bool {
        let delay = now.saturating_since(sent.at);
        let Some(flow) = self.datagrams.get_mut(flow) else { return false };
        if !flow.copies.is_new(sent.number) {
            return false;
        }
        if flow.received > 0 {
            // RFC 3550, section 6.4.1.
            let change = (delay.as_secs_f64() - flow.last_delay.as_secs_f64()).abs();
            flow.jitter += (change - flow.jitter) / 16.0;
        }
        flow.last_delay = delay;
        flow.received += 1;
        flow.received_bytes += u64::from(bytes);
        flow.delays.push(delay.as_nanos());
        true
    }

    /// Ends the warm-up: statistics count from now on.
    pub fn end_warmup(&mut self, now: Time) {
        self.warmup = now;
        for connection in &mut self.connections {
            connection.look();
            connection.before = connection.info;
        }
        for flow in &mut self.datagrams {
            flow.before = flow.counts();
            flow.delays.clear();
        }
    }

    /// Ends the run.
    pub fn close(&mut self) {
        self.connections.iter_mut().for_each(Connection::look);
    }

    /// Returns the rows of the flows, connections first.
    pub fn flow_results(&self, end: Time) -> Vec<FlowResult> {
        let connections = self.connections.iter().map(|each| each.result(self.warmup, end));
        connections.chain(self.datagrams.iter().map(|each| each.result(self.warmup, end))).collect()
    }

    /// Returns the results of the groups.
    pub fn group_results(&self) -> Vec<GroupResult> {
        let flows = self.flow_results(Time::ZERO);
        let result = |(number, group): (usize, &Group)| {
            let own = flows.iter().filter(|flow| flow.group as usize == number);
            let traffic = |direction| {
                let mut own = own.clone().filter(|flow| flow.direction == direction).peekable();
                let is_known = direction == Direction::Forward || own.peek().is_some();
                let delivered_bytes = own.map(|flow| flow.delivered).sum();
                is_known.then(|| Traffic { delivered_bytes, ..Traffic::default() })
            };
            let played = group.played.clone();
            let has_tcp = self.connections.iter().any(|each| each.group == number as u64);
            let kernel = KERNEL.iter().zip(group.kernel);
            let kernel = kernel.map(|((_, name), n)| (Quantity::of(name), n as f64));
            GroupResult {
                started: played.started,
                completed: played.completed,
                bytes: played.bytes,
                traffic: Direction::ALL.map(traffic),
                stack: has_tcp.then_some(STACK),
                times: played.times,
                values: played.scores.into_iter().chain(kernel).collect(),
            }
        };
        self.groups.iter().enumerate().map(result).collect()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut words = StatsWriter::default();
        words.number(self.groups.len() as u64);
        for group in &self.groups {
            group.played.write(&mut words);
            group.kernel.iter().for_each(|count| words.number(*count));
            words.number(group.members);
        }
        words.number(self.connections.len() as u64);
        self.connections.iter().for_each(|each| each.write(&mut words));
        words.number(self.datagrams.len() as u64);
        self.datagrams.iter().for_each(|each| each.write(&mut words));
        words.number(self.warmup.as_nanos());
        words.list(&self.members_done);
        words.bytes.extend(self.failures.join("\n").bytes());
        words.bytes
    }

    /// Decodes the result of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = Reader { bytes };
        let groups = (0..words.number()).map(|_| Group {
            played: Played::read(&mut words),
            kernel: [(); KERNEL.len()].map(|()| words.number()),
            members: words.number(),
        });
        let groups = groups.collect();
        let count = words.number();
        let connections = (0..count).map(|_| Connection::read(&mut words)).collect();
        let count = words.number();
        let datagrams = (0..count).map(|_| Datagrams::read(&mut words)).collect();
        let warmup = Time::from_nanos(words.number());
        let members_done = words.list();
        let text = String::from_utf8_lossy(words.bytes);
        let failures = text.lines().map(str::to_string).collect();
        FlowStats { groups, connections, datagrams, warmup, members_done, awaited: 0, failures }
    }
}

fn summed(values: &[u64]) -> TimeHistogram {
    let mut sum = TimeHistogram::new();
    values.iter().for_each(|value| sum.note(Span::from_nanos(*value)));
    sum
}

/// Returns the rate in bit/s of bytes transferred from `start` to `end`, after the warm-up; NaN if
/// the transfer ended before.
fn rate(bytes: u64, start: Time, warmup: Time, end: Time) -> f64 {
    if warmup > Time::ZERO && end <= warmup {
        return f64::NAN;
    }
    let start = start.max(warmup);
    bytes as f64 * 8.0 / end.saturating_since(start).max(Span::from_nanos(1)).as_secs_f64()
}

impl Connection {
    /// Updates the counters from the kernel.
    fn look(&mut self) {
        if let Some(Ok(info)) = self.stream.as_deref().map(info) {
            self.info = info;
        }
    }

    fn result(&self, warmup: Time, end: Time) -> FlowResult {
        let (info, before) = (&self.info, &self.before);
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let sent = since(info.data_segments.into(), before.data_segments.into());
        // The socket's counters before the last acknowledgement may be incomplete.
        let had_finished = self.finish.is_some_and(|finish| finish <= warmup);
        let acked = match self.finish.and(self.size) {
            Some(_) if had_finished => 0,
            Some(size) => since(size, before.bytes_acked),
            None => since(info.bytes_acked, before.bytes_acked),
        };
        FlowResult {
            group: self.group as u32,
            index: self.index as u32,
            start: self.start,
            finish: self.finish,
            size: self.size,
            goodput: rate(acked, self.start, warmup, self.finish.unwrap_or(end)),
            throughput: f64::NAN,
            sent,
            delivered: acked,
            stack: Some(STACK),
            stats: Some(Stats {
                segments_sent: sent,
                retransmissions: since(info.retransmits.into(), before.retransmits.into()),
                timeouts: since(info.timeouts.into(), before.timeouts.into()),
                bytes_acked: acked,
                ..Stats::default()
            }),
            direction: self.direction,
            arrived: [0; 2],
            losses: FlowLosses::default(),
            delays: None,
            datagrams: None,
        }
    }

    fn write(&self, words: &mut StatsWriter) {
        let option = |value: Option<u64>| value.map_or(u64::MAX, |value| value);
        for word in [
            self.group,
            self.index,
            self.direction as u64,
            self.start.as_nanos(),
            option(self.finish.map(Time::as_nanos)),
            option(self.size),
        ] {
            words.number(word);
        }
        for info in [&self.before, &self.info] {
            let Info { rtt, retransmits, bytes_acked, data_segments, timeouts } = *info;
            let counts = [rtt.into(), retransmits.into(), bytes_acked];
            counts.into_iter().for_each(|word| words.number(word));
            [data_segments.into(), timeouts.into()].into_iter().for_each(|word| words.number(word));
        }
    }

    fn read(words: &mut Reader<'_>) -> Self {
        let info = |words: &mut Reader<'_>| Info {
            rtt: words.number() as u32,
            retransmits: words.number() as u32,
            bytes_acked: words.number(),
            data_segments: words.number() as u32,
            timeouts: words.number() as u16,
        };
        let option = |value: u64| (value != u64::MAX).then_some(value);
        Connection {
            group: words.number(),
            index: words.number(),
            direction: Direction::ALL[words.number() as usize],
            start: Time::from_nanos(words.number()),
            finish: option(words.number()).map(Time::from_nanos),
            size: option(words.number()),
            before: info(words),
            info: info(words),
            stream: None,
        }
    }
}

impl Datagrams {
    fn counts(&self) -> [u64; 4] {
        [self.sent, self.sent_bytes, self.received, self.received_bytes]
    }

    fn result(&self, warmup: Time, end: Time) -> FlowResult {
        let delay = summed(&self.delays);
        let counts = self.counts();
        let [sent, sent_bytes, received, received_bytes] =
            std::array::from_fn(|each| counts[each] - self.before[each]);
        FlowResult {
            group: self.group as u32,
            index: self.index as u32,
            start: self.start,
            finish: None,
            size: None,
            goodput: rate(received_bytes, self.start, warmup, end),
            throughput: rate(sent_bytes, self.start, warmup, end),
            sent,
            delivered: received_bytes,
            stack: None,
            stats: None,
            direction: self.direction,
            arrived: [0; 2],
            losses: FlowLosses::default(),
            delays: Some((delay.mean(), delay.max())),
            datagrams: Some(DatagramSummary {
                sent,
                sent_bytes,
                received,
                received_bytes,
                delay: delay.summary(),
                jitter: self.jitter,
            }),
        }
    }

    fn write(&self, words: &mut StatsWriter) {
        for word in [
            self.group,
            self.index,
            self.direction as u64,
            self.start.as_nanos(),
            self.sent,
            self.sent_bytes,
            self.received,
            self.received_bytes,
            self.last_delay.as_nanos(),
            self.jitter.to_bits(),
        ] {
            words.number(word);
        }
        self.before.into_iter().for_each(|count| words.number(count));
        words.list(&self.delays);
    }

    fn read(words: &mut Reader<'_>) -> Self {
        Datagrams {
            group: words.number(),
            index: words.number(),
            direction: Direction::ALL[words.number() as usize],
            start: Time::from_nanos(words.number()),
            sent: words.number(),
            sent_bytes: words.number(),
            received: words.number(),
            received_bytes: words.number(),
            last_delay: Span::from_nanos(words.number()),
            jitter: f64::from_bits(words.number()),
            before: [(); 4].map(|()| words.number()),
            delays: words.list(),
            copies: Copies::default(),
        }
    }
}

#[derive(Default)]
pub(super) struct StatsWriter {
    bytes: Vec<u8>,
}

impl StatsWriter {
    pub(super) fn number(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }
    pub(super) fn list(&mut self, numbers: &[u64]) {
        self.number(numbers.len() as u64);
        numbers.iter().for_each(|number| self.number(*number));
    }
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend(text.bytes());
    }
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    pub(super) fn number(&mut self) -> u64 {
        let (head, rest) = self.bytes.split_first_chunk().expect("written by the same program");
        self.bytes = rest;
        u64::from_le_bytes(*head)
    }
    pub(super) fn list(&mut self) -> Vec<u64> {
        (0..self.number()).map(|_| self.number()).collect()
    }
    pub(super) fn text(&mut self) -> String {
        let size = self.number() as usize;
        let (text, rest) = self.bytes.split_at(size);
        self.bytes = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut stats = FlowStats::new(2);
        stats.groups[1].kernel[2] = 7;
        let mut times = TimeHistogram::new();
        times.note(Span::from_millis(8));
        stats.groups[0].played = Played {
            started: 3,
            completed: 2,
            bytes: 9,
            times: vec![(Quantity::delay(Direction::Forward), times.summary())],
            scores: vec![
                (Quantity::of("rpm"), 900.0),
                (Quantity { name: "mos", direction: Some(Direction::Backward) }, 4.5),
            ],
        };
        let flow = stats.open_datagrams(1, Direction::Backward, Time::from_nanos(5));
        stats.datagram_sent(flow, 100);
        let sent = Sent { at: Time::from_nanos(100), number: 0 };
        assert!(stats.datagram_arrived(flow, 100, Time::from_nanos(900), sent));
        assert!(!stats.datagram_arrived(flow, 100, Time::from_nanos(950), sent), "a copy");
        stats.members_done[0] = 1;
        stats.failures = vec!["one".into(), "two".into()];
        let read = FlowStats::from_bytes(&stats.to_bytes());
        assert_eq!(read.groups, stats.groups);
        stats.datagrams.iter_mut().for_each(|each| each.copies = Copies::default());
        assert_eq!(read.datagrams, stats.datagrams);
        assert_eq!((read.members_done, read.failures), (stats.members_done, stats.failures));
        let row = &read.datagrams[0].result(Time::ZERO, Time::from_nanos(1005));
        assert_eq!(row.goodput, 800.0 / 1e-6);
        assert_eq!(row.datagrams.as_ref().unwrap().delay.count, 1);
    }
}
