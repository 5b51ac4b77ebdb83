//! What senders of TCP do, in the format of QUIC's logs.
//!
//! # Sources
//! draft-ietf-quic-qlog-main-schema-14 (the file: `urn:ietf:params:qlog:file:sequential`) as JSON
//! text sequences (RFC 7464), and the event schema `urn:ietf:params:qlog:events:quic` of
//! draft-ietf-quic-qlog-quic-events-13. Metrics are given at each change and are not sampled.
//!
//! # Differences
//! There is no schema for TCP. Of that for QUIC
//! 1. a segment is a packet with one frame of stream 0, whose offset is the sequence number from 0;
//!    a SYN is of the type `initial` and has no frame, all else is `1RTT`;
//! 2. packets are numbered in the order in which they are sent, which TCP does not do; one that is
//!    sent again has `"retransmission": true`, which is not of the schema;
//! 3. an acknowledgement is a packet that is received, numbered in the order of arrival, with one `ack`
//!    frame. Its `acked_ranges` are the packets that it is the first to acknowledge, by number or
//!    by SACK: of a segment that was sent more than once the last, though TCP does not know which
//!    of them has arrived. It has none if nothing is new. `ece` (not of the schema) is the echo of
//!    classic ECN, `ce` the counter of accurate ECN;
//! 4. `packet_lost` names the last transmission of a segment that is taken for lost, and
//!    as its `trigger` `time_threshold` with RACK, `pto_expired` after a retransmission timeout and
//!    else `reordering_threshold`. A SYN is never said to be lost;
//! 5. states are `slow_start`, `congestion_avoidance`, `recovery`, `loss` (after a timeout) and
//!    `ecn_reduction`; of a control without a threshold all but the last three are `open`;
//! 6. `group_id` is the flow, as the tables of results have it: group and index.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use aqmlab_core::{Packet, Span, Time};
use aqmlab_tcp::params::EcnMode;
use aqmlab_tcp::{Ack, CongestionState, Recovery, Sender};

use super::output::{Output, Unwritten};
use crate::endpoints::End;
use crate::endpoints::flow::Flow;
use crate::endpoints::packet::{SimPacket, Store};
use crate::scenario::{FlowGroup, Scenario, to_json};

/// Begins each text of a sequence (RFC 7464, section 2.2).
const SEPARATOR: char = '\u{1e}';
/// Controls whose window is not of slow start and avoidance.
const WITHOUT_THRESHOLD: [&str; 3] = ["bbr", "bbr3", "cbr"];

/// A log under way.
pub(super) struct Qlog {
    output: Output,
    groups: Vec<Group>,
    /// By flow.
    flows: Vec<Option<Told>>,
    text: String,
}

/// What is known of a group of flows.
struct Group {
    name: String,
    header: u32,
    mss: u64,
    first_window: u64,
    granularity: u64,
    control: String,
    /// Losses are found by time.
    by_time: bool,
    accurate_ecn: bool,
    /// Flows so far.
    count: u32,
}

/// What was told last of a flow.
struct Told {
    /// Its packets'.
    hash: u32,
    id: String,
    /// Packets sent, and acknowledgements received.
    packets: u64,
    acks: u64,
    /// The SYN that was sent last, if it is not acknowledged.
    syn: Option<u64>,
    /// By its first byte, the last transmission of each segment that is not acknowledged.
    flying: BTreeMap<u64, Flying>,
    timeouts: u64,
    state: Option<&'static str>,
    metrics: Metrics,
}

/// A segment under way.
struct Flying {
    packet: u64,
    len: u32,
    is_lost: bool,
}

/// Metrics by their names in the schema; times in nanoseconds.
type Metrics = [Option<u64>; NAMES.len()];
/// The first are times.
const TIMES: usize = 3;
const NAMES: [&str; 7] = [
    "min_rtt",
    "smoothed_rtt",
    "rtt_variance",
    "congestion_window",
    "bytes_in_flight",
    "ssthresh",
    "pacing_rate",
];

impl Qlog {
    pub fn new(scenario: &Scenario, file: String, to: Box<dyn Write + Send>) -> Self {
        let mut log = Qlog {
            output: Output::new(file, to),
            groups: scenario.flows.iter().map(Group::of).collect(),
            flows: Vec::new(),
            text: String::new(),
        };
        let schemas = ["quic", "simulation"].map(|name| format!("\"{}:{name}\"", EVENTS));
        let _ = write!(
            log.text,
            "{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\
             \"title\":\"aqmlab: senders of TCP of a simulation\",\"trace\":{{\
             \"vantage_point\":{{\"name\":\"aqmlab\",\"type\":\"unknown\"}},\
             \"common_fields\":{{\"time_format\":\"relative_to_epoch\",\"reference_time\":\
             {{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}}}},\
             \"event_schemas\":[{}]}}}}",
            schemas.join(",")
        );
        log.end();
        log.begin(Time::ZERO, None, "simulation:scenario");
        let _ = write!(log.text, "\"details\":{}}}}}", scenario.to_json());
        log.end();
        log
    }

    /// A flow sends a packet.
    pub fn sent(&mut self, now: Time, flow: &Flow, packet: &SimPacket, store: &Store) {
        if packet.to() == End::Source || flow.tcp().is_none() {
            return;
        }
        self.know(now, packet.flow, flow);
        let header = self.groups[flow.group as usize].header;
        let Some(segment) = store.segment_of(packet, header) else { return };
        let Some(told) = self.flows[packet.flow as usize].as_mut() else { return };
        let (number, id) = (told.packets, told.id.clone());
        told.packets += 1;
        if segment.syn {
            told.syn = Some(number);
        } else {
            let flying = Flying { packet: number, len: segment.len, is_lost: false };
            told.flying.insert(segment.seq, flying);
        }
        self.begin(now, Some(&id), "quic:packet_sent");
        let kind = if segment.syn { "initial" } else { "1RTT" };
        let _ = write!(
            self.text,
            "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}},\
             \"raw\":{{\"length\":{},\"payload_length\":{}}}",
            packet.size(),
            segment.len
        );
        if !segment.syn {
            let _ = write!(
                self.text,
                ",\"frames\":[{{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":{},\
                 \"raw\":{{\"length\":{}}}}}]",
                segment.seq, segment.len
            );
        }
        if segment.retransmission {
            self.text.push_str(",\"retransmission\":true");
        }
        self.text.push_str("}}");
        self.end();
    }

    /// An acknowledgement comes to a sender.
    pub fn received(&mut self, now: Time, flow: &Flow, packet: &SimPacket, store: &Store) {
        let Some(tcp) = flow.tcp() else { return };
        self.know(now, packet.flow, flow);
        let Some(ack) = store.ack_of(packet, tcp.usual) else { return };
        let Some(told) = self.flows[packet.flow as usize].as_mut() else { return };
        let (number, id) = (told.acks, told.id.clone());
        told.acks += 1;
        let acked = told.acknowledge(&ack);
        self.begin(now, Some(&id), "quic:packet_received");
        let kind = if ack.syn { "initial" } else { "1RTT" };
        let _ = write!(
            self.text,
            "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}},\
             \"raw\":{{\"length\":{}}},\"frames\":[{{\"frame_type\":\"ack\"",
            packet.size(),
        );
        if !acked.is_empty() {
            let _ = write!(self.text, ",\"acked_ranges\":[{}]", ranges(&acked));
        }
        if self.groups[flow.group as usize].accurate_ecn {
            let _ = write!(self.text, ",\"ce\":{}", ack.ce.packets);
        }
        self.text.push_str("}]");
        if ack.ece {
            self.text.push_str(",\"ece\":true");
        }
        self.text.push_str("}}");
        self.end();
    }

    /// A sender knows what has happened, and has sent nothing yet: what it takes for lost.
    pub fn judged(&mut self, now: Time, place: u32, flow: &mut Flow) {
        let group = &self.groups[flow.group as usize];
        let by_time = group.by_time;
        let Some(tcp) = flow.tcp_mut() else { return };
        let losses = tcp.source.sender.take_losses();
        let timeouts = tcp.source.sender.stats().timeouts;
        let known = self.flows.get_mut(place as usize).and_then(Option::as_mut);
        let Some(told) = known.filter(|told| told.hash == flow.hashes[0]) else { return };
        let has_timed_out = std::mem::replace(&mut told.timeouts, timeouts) < timeouts;
        let id = told.id.clone();
        let lost: Vec<_> = losses.iter().flat_map(|of| told.lose(of.0, of.1)).collect();
        let trigger = match (has_timed_out, by_time) {
            (true, _) => "pto_expired",
            (_, true) => "time_threshold",
            _ => "reordering_threshold",
        };
        for (packet, seq, len) in lost {
            self.begin(now, Some(&id), "quic:packet_lost");
            let _ = write!(
                self.text,
                "\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{packet}}},\
                 \"frames\":[{{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":{seq},\
                 \"raw\":{{\"length\":{len}}}}}],\"trigger\":\"{trigger}\"}}}}"
            );
            self.end();
        }
    }

    /// Something has happened to a sender, and it has sent what it could.
    pub fn settled(&mut self, now: Time, place: u32, flow: &Flow) {
        let Some(tcp) = flow.tcp() else { return };
        self.know(now, place, flow);
        let sender = &tcp.source.sender;
        let Some(told) = self.flows[place as usize].as_mut() else { return };
        let new = metrics(sender);
        let before = std::mem::replace(&mut told.metrics, new);
        let state = state(sender, &self.groups[flow.group as usize].control);
        let last = told.state.replace(state);
        let is_changed = |at: &usize| new[*at].is_some() && before[*at] != new[*at];
        let changed: Vec<usize> = (0..NAMES.len()).filter(is_changed).collect();
        if changed.is_empty() && last == Some(state) {
            return;
        }
        let id = told.id.clone();
        if !changed.is_empty() {
            self.begin(now, Some(&id), "quic:recovery_metrics_updated");
            for at in changed {
                let value = new[at].unwrap_or_default();
                let _ = write!(self.text, "\"{}\":", NAMES[at]);
                match at < TIMES {
                    true => millis(value, &mut self.text),
                    false => self.text.push_str(&value.to_string()),
                }
                self.text.push(',');
            }
            self.text.pop();
            self.text.push_str("}}");
            self.end();
        }
        if last != Some(state) {
            self.begin(now, Some(&id), "quic:congestion_state_updated");
            if let Some(last) = last {
                let _ = write!(self.text, "\"old\":\"{last}\",");
            }
            let _ = write!(self.text, "\"new\":\"{state}\"}}}}");
            self.end();
        }
    }

    /// Writes the rest.
    pub fn finish(self) -> Result<(), Unwritten> {
        self.output.finish()
    }

    /// Tells of a flow when it is seen for the first time in its place.
    pub fn know(&mut self, now: Time, place: u32, flow: &Flow) {
        let at = place as usize;
        if self.flows.len() <= at {
            self.flows.resize_with(at + 1, || None);
        }
        let hash = flow.hashes[0];
        if self.flows[at].as_ref().is_some_and(|told| told.hash == hash) {
            return;
        }
        let group = &mut self.groups[flow.group as usize];
        let id = format!("{}.{}", group.name, group.count);
        group.count += 1;
        let parameters = format!(
            "\"timer_granularity\":{},\"max_datagram_size\":{},\"initial_congestion_window\":{},\
             \"congestion_control\":\"{}\"}}}}",
            group.granularity, group.mss, group.first_window, group.control
        );
        self.begin(now, Some(&id), "quic:recovery_parameters_set");
        self.text.push_str(&parameters);
        self.end();
        let metrics = Metrics::default();
        self.flows[at] = Some(Told {
            hash,
            id,
            packets: 0,
            acks: 0,
            syn: None,
            flying: BTreeMap::new(),
            timeouts: 0,
            state: None,
            metrics,
        });
    }

    /// The common fields of an event, up to its data.
    fn begin(&mut self, now: Time, flow: Option<&str>, name: &str) {
        self.text.push_str("{\"time\":");
        millis(now.as_nanos(), &mut self.text);
        if let Some(flow) = flow {
            let _ = write!(self.text, ",\"group_id\":{}", to_json(&flow.into()));
        }
        let _ = write!(self.text, ",\"name\":\"{name}\",\"data\":{{");
    }

    fn end(&mut self) {
        let text = &self.text;
        self.output.add(|bytes| {
            let mut room = [0; 4];
            bytes.extend_from_slice(SEPARATOR.encode_utf8(&mut room).as_bytes());
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(b'\n');
        });
        self.text.clear();
    }
}

impl Told {
    /// The numbers of the packets that are acknowledged for the first time, ascending.
    fn acknowledge(&mut self, ack: &Ack) -> Vec<u64> {
        let mut acked: Vec<u64> = self.syn.take_if(|_| ack.syn).into_iter().collect();
        let below = [(0, ack.ack)];
        for &(start, end) in below.iter().chain(ack.sack.as_slice()) {
            let within = self.flying.range(start..end.max(start));
            let ends = |seq: u64, flying: &Flying| seq + u64::from(flying.len);
            let whole = within.filter(|(seq, flying)| ends(**seq, flying) <= end);
            let gone: Vec<u64> = whole.map(|(seq, _)| *seq).collect();
            acked.extend(gone.iter().filter_map(|seq| self.flying.remove(seq)).map(|it| it.packet));
        }
        acked.sort_unstable();
        acked
    }

    /// A segment is lost: number, first byte and length of each packet of it that was not said to be.
    fn lose(&mut self, seq: u64, len: u32) -> Vec<(u64, u64, u32)> {
        let within = self.flying.range_mut(seq..seq + u64::from(len));
        let new = within.filter(|(_, flying)| !flying.is_lost);
        new.map(|(seq, flying)| {
            flying.is_lost = true;
            (flying.packet, *seq, flying.len)
        })
        .collect()
    }
}

/// Ascending numbers as ranges: `[0,4],[7]`.
fn ranges(numbers: &[u64]) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    let texts = found.into_iter().map(|(first, last)| match first == last {
        true => format!("[{first}]"),
        false => format!("[{first},{last}]"),
    });
    texts.collect::<Vec<_>>().join(",")
}

const EVENTS: &str = "urn:ietf:params:qlog:events";

impl Group {
    fn of(group: &FlowGroup) -> Self {
        let transport = &group.transport;
        Group {
            name: group.name.clone(),
            header: transport.header.get() as u32,
            mss: transport.mss.get(),
            first_window: transport.in_bytes(transport.initial_window),
            granularity: transport.clock_granularity.as_nanos().div_ceil(1_000_000),
            control: transport.congestion_control.name().to_string(),
            by_time: transport.recovery == Recovery::Rack,
            accurate_ecn: transport.ecn == EcnMode::Accurate,
            count: 0,
        }
    }
}

fn metrics(sender: &Sender) -> Metrics {
    // A threshold that nothing has set is as high as possible.
    let ssthresh = Some(sender.ssthresh()).filter(|bytes| *bytes < u64::MAX / 8);
    [
        sender.min_rtt().map(Span::as_nanos),
        sender.srtt().map(Span::as_nanos),
        sender.rtt_variation().map(Span::as_nanos),
        Some(sender.cwnd()),
        Some(sender.bytes_in_flight()),
        ssthresh,
        sender.pacing_rate().map(|rate| rate.as_bps()),
    ]
}

fn state(sender: &Sender, control: &str) -> &'static str {
    match sender.congestion_state() {
        CongestionState::SlowStart | CongestionState::Avoidance
            if WITHOUT_THRESHOLD.contains(&control) =>
        {
            "open"
        }
        CongestionState::SlowStart => "slow_start",
        CongestionState::Avoidance => "congestion_avoidance",
        CongestionState::Reduction => "ecn_reduction",
        CongestionState::Recovery => "recovery",
        CongestionState::Loss => "loss",
    }
}

/// Appends nanoseconds as milliseconds, exactly.
fn millis(nanos: u64, text: &mut String) {
    let (whole, rest) = (nanos / 1_000_000, nanos % 1_000_000);
    let _ = write!(text, "{whole}");
    if rest > 0 {
        let _ = write!(text, ".{rest:06}");
        text.truncate(text.trim_end_matches('0').len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "[0,2],[5],[7,8]");
    }

    #[test]
    fn milliseconds_are_exact() {
        let texts = [0, 1, 1_000_000, 20_083_200, 100_000_000, u64::MAX].map(|nanos| {
            let mut text = "t=".to_string();
            millis(nanos, &mut text);
            text
        });
        let expected = ["0", "0.000001", "1", "20.0832", "100", "18446744073709.551615"];
        assert_eq!(texts, expected.map(|text| format!("t={text}")));
    }
}
