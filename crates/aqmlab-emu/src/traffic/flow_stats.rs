//! Statistics of flows and groups, which the traffic process passes to the emulator (`encoded`).

use std::net::TcpStream;
use std::sync::Arc;

use aqmlab_core::{Span, Time};
use aqmlab_sim::endpoints::Direction;
use aqmlab_sim::endpoints::datagrams::{DatagramSink, DatagramSummary, Sent};
use aqmlab_sim::{FlowResult, GroupResult, Traffic};
use aqmlab_tcp::Stats;

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
    pub(super) group: u64,
    pub(super) index: u64,
    pub(super) direction: Direction,
    pub(super) start: Time,
    pub(super) finish: Option<Time>,
    pub(super) size: Option<u64>,
    pub(super) info: Info,
    /// Counters at the end of the warm-up, if it was open by then.
    pub(super) before: Info,
    /// Socket while it is open.
    pub(super) stream: Option<Arc<TcpStream>>,
}

/// Flow of datagrams.
pub struct Datagrams {
    pub(super) group: u64,
    pub(super) index: u64,
    pub(super) direction: Direction,
    pub(super) start: Time,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    /// At the end of the warm-up: packets sent, bytes sent, packets received, bytes received.
    pub(super) before: [u64; 4],
    pub(super) sink: DatagramSink,
    /// Results after the warm-up, from the end of the run on.
    pub(super) summary: DatagramSummary,
}

/// Statistics of all flows and groups.
#[derive(Default)]
pub struct FlowStats {
    /// Results of the applications, by group.
    pub groups: Vec<GroupResult>,
    /// Number of flows, by group.
    pub(super) members: Vec<u64>,
    pub(super) connections: Vec<Connection>,
    pub(super) datagrams: Vec<Datagrams>,
    /// Time of the end of the warm-up.
    pub(super) warmup: Time,
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
            groups: vec![GroupResult::default(); groups],
            members: vec![0; groups],
            members_done: vec![0; groups],
            ..FlowStats::default()
        }
    }

    /// Returns the index of the next flow in its group.
    fn next_index(&mut self, group: usize) -> u64 {
        self.members[group] += 1;
        self.members[group] - 1
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
            before: [0; 4],
            sink: DatagramSink::default(),
            summary: DatagramSummary::default(),
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
        let Some(Datagrams { sink, .. }) = self.datagrams.get_mut(flow) else { return false };
        sink.arrive(now.max(sent.at), sent, bytes)
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
            flow.sink.delay = Default::default();
        }
    }

    /// Ends the run.
    pub fn close(&mut self) {
        self.connections.iter_mut().for_each(Connection::look);
        self.datagrams.iter_mut().for_each(Datagrams::close);
    }

    /// Returns the rows of the flows, connections first.
    pub fn flow_results(&self, end: Time) -> Vec<FlowResult> {
        let connections = self.connections.iter().map(|each| each.result(self.warmup, end));
        connections.chain(self.datagrams.iter().map(|each| each.result(self.warmup, end))).collect()
    }

    /// Returns the results of the groups, with those of their flows.
    pub fn group_results(self) -> Vec<GroupResult> {
        let flows = self.flow_results(Time::ZERO);
        let result = |(number, group): (usize, GroupResult)| {
            let own = flows.iter().filter(|flow| flow.group as usize == number);
            let traffic = |direction| {
                let mut own = own.clone().filter(|flow| flow.direction == direction).peekable();
                let is_known = direction == Direction::Forward || own.peek().is_some();
                let delivered_bytes = own.map(|flow| flow.delivered).sum();
                is_known.then(|| Traffic { delivered_bytes, ..Traffic::default() })
            };
            let has_tcp = self.connections.iter().any(|each| each.group == number as u64);
            let stack = has_tcp.then_some(STACK);
            GroupResult { traffic: Direction::ALL.map(traffic), stack, ..group }
        };
        self.groups.into_iter().enumerate().map(result).collect()
    }
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
            completion: self.finish.map(|finish| finish - self.start),
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
            ..FlowResult::default()
        }
    }
}

impl Datagrams {
    fn counts(&self) -> [u64; 4] {
        [self.sent, self.sent_bytes, self.sink.received, self.sink.received_bytes]
    }

    /// Ends the run.
    fn close(&mut self) {
        let counts = self.counts();
        let [sent, sent_bytes, received, received_bytes] =
            std::array::from_fn(|each| counts[each] - self.before[each]);
        let summary = self.sink.summary(sent, sent_bytes);
        self.summary = DatagramSummary { received, received_bytes, ..summary };
    }

    fn result(&self, warmup: Time, end: Time) -> FlowResult {
        let DatagramSummary { sent, sent_bytes, received_bytes, delay, .. } = &self.summary;
        FlowResult {
            group: self.group as u32,
            index: self.index as u32,
            start: self.start,
            goodput: rate(*received_bytes, self.start, warmup, end),
            throughput: rate(*sent_bytes, self.start, warmup, end),
            sent: *sent,
            delivered: *received_bytes,
            direction: self.direction,
            delays: Some((delay.mean, delay.max)),
            datagrams: Some(self.summary.clone()),
            ..FlowResult::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_sim::network::probe::TimeHistogram;
    use aqmlab_sim::workload::quantities::Quantity;

    use super::super::encoded::Encoded;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut stats = FlowStats::new(2);
        let mut times = TimeHistogram::new();
        times.note(Span::from_millis(8));
        stats.groups[0] = GroupResult {
            started: 3,
            completed: 2,
            bytes: 9,
            times: vec![(Quantity::delay(Direction::Forward), times.summary())],
            values: vec![
                (Quantity::of("rpm"), 900.0),
                (Quantity { name: "mos", direction: Some(Direction::Backward) }, 4.5),
            ],
            ..GroupResult::default()
        };
        let flow = stats.open_datagrams(1, Direction::Backward, Time::from_nanos(5));
        stats.datagram_sent(flow, 100);
        let sent = Sent { at: Time::from_nanos(100), number: 0 };
        assert!(stats.datagram_arrived(flow, 100, Time::from_nanos(900), sent));
        assert!(!stats.datagram_arrived(flow, 100, Time::from_nanos(950), sent), "a copy");
        stats.members_done[0] = 1;
        stats.failures = vec!["one".into(), "two".into()];
        stats.close();
        let mut bytes = Vec::new();
        stats.encode(&mut bytes);
        let mut left = &bytes[..];
        let read = FlowStats::decode(&mut left);
        assert!(left.is_empty());
        assert_eq!(read.groups, stats.groups);
        assert_eq!((read.members_done, read.failures), (stats.members_done, stats.failures));
        let row = &read.datagrams[0].result(Time::ZERO, Time::from_nanos(1005));
        assert_eq!(row.goodput, 800.0 / 1e-6);
        let summary = row.datagrams.as_ref().unwrap();
        assert_eq!((summary.delay.count, summary.delay.max), (1, Span::from_nanos(800)));
        assert_eq!((row.sent, row.direction), (1, Direction::Backward));
    }
}
