//! Sender events of TCP, in the format of QUIC's logs.
//!
//! # Sources
//! draft-ietf-quic-qlog-main-schema-14 (the file: `urn:ietf:params:qlog:file:sequential`) as JSON
//! text sequences (RFC 7464), and the event schema `urn:ietf:params:qlog:events:quic-13` of
//! draft-ietf-quic-qlog-quic-events-13 (section 2.1: a draft's number is part of the URI). Metrics
//! are logged at each change, not sampled.
//!
//! # Differences
//! TCP has no schema. In the schema of QUIC
//! 1. a segment is a packet with one frame of stream 0, whose offset is the sequence number from 0;
//!    a SYN has the type `initial` and no frame, all others `1RTT`;
//! 2. packets are numbered in sending order, unlike in TCP; a retransmission has `"retransmission":
//!    true`, which is not in the schema;
//! 3. an acknowledgement is a received packet, numbered in order of arrival, with one `ack` frame.
//!    Its `acked_ranges` are the packets that it acknowledges first, by number or by SACK: for a
//!    segment sent more than once the last transmission, although TCP does not know which one
//!    arrived. The list is empty if nothing is newly acknowledged. `ece` (not in the schema) is the
//!    echo of classic ECN, `ce` the counter of accurate ECN;
//! 4. `packet_lost` names the last transmission of a segment considered lost. Its `trigger` is
//!    `time_threshold` with RACK, `pto_expired` after a retransmission timeout, and otherwise
//!    `reordering_threshold`. A SYN is never reported lost;
//! 5. states are `slow_start`, `congestion_avoidance`, `recovery`, `loss` (after a timeout) and
//!    `ecn_reduction`; for a control without a threshold, `open` replaces the first two;
//! 6. `group_id` is the flow as in the tables of results: group and index.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use aqmlab_core::{Packet, Span, Time};
use aqmlab_tcp::params::EcnMode;
use aqmlab_tcp::{Ack, CongestionState, Recovery, Sender, TcpParams};

use super::output::{Output, Unwritten};
use crate::endpoints::End;
use crate::endpoints::flow::Flow;
use crate::endpoints::packet::{SimPacket, Store};
use crate::scenario::{FlowGroup, Scenario, to_json};

/// Start of each text of a sequence (RFC 7464, section 2.2).
const SEPARATOR: char = '\u{1e}';
/// Controls without slow start and congestion avoidance.
const WITHOUT_THRESHOLD: [&str; 3] = ["bbr", "bbr3", "cbr"];

/// Log being written.
pub(super) struct Qlog {
    events: EventTexts,
    /// Names and transports of the groups of flows.
    groups: Vec<(String, TcpParams)>,
    /// State of each flow.
    flows: Vec<Option<Told>>,
}

/// Sequence of the texts of events.
struct EventTexts {
    output: Output,
    text: String,
}

/// Logged state of a flow.
#[derive(Default)]
struct Told {
    /// Hash of its packets.
    hash: u32,
    id: String,
    /// Packets sent, and acknowledgements received.
    packets: u64,
    acks: u64,
    /// Last SYN, if it is not acknowledged.
    syn: Option<u64>,
    /// Last transmission of each unacknowledged segment, by its first byte.
    flying: BTreeMap<u64, Flying>,
    timeouts: u64,
    state: Option<&'static str>,
    metrics: Metrics,
}

/// Segment in flight.
struct Flying {
    packet: u64,
    len: u32,
    is_lost: bool,
}

/// Metrics by their names in the schema; times are in nanoseconds.
type Metrics = [Option<u64>; NAMES.len()];
/// Number of times among the metrics, which are first.
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
        let mut events = EventTexts { output: Output::new(file, to), text: String::new() };
        let schemas = ["quic-13", "simulation"].map(|name| format!("\"{EVENTS}:{name}\""));
        let _ = write!(
            events.text,
            "{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\
             \"title\":\"aqmlab: senders of TCP of a simulation\",\"trace\":{{\
             \"vantage_point\":{{\"name\":\"aqmlab\",\"type\":\"unknown\"}},\
             \"common_fields\":{{\"time_format\":\"relative_to_epoch\",\"reference_time\":\
             {{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}}}},\
             \"event_schemas\":[{}]}}}}",
            schemas.join(",")
        );
        events.end();
        events.add(Time::ZERO, None, "simulation:scenario", |text| {
            let _ = write!(text, "\"details\":{}", scenario.to_json());
        });
        let named = |group: &FlowGroup| (group.name.clone(), group.transport.clone());
        let groups = scenario.flows.iter().map(named).collect();
        Qlog { events, groups, flows: Vec::new() }
    }

    /// Logs a packet that a flow sends.
    pub fn sent(&mut self, now: Time, flow: &Flow, packet: &Packet, store: &Store) {
        if packet.to() == End::Source || flow.tcp().is_none() {
            return;
        }
        self.know(now, packet.flow, flow);
        let header = self.groups[flow.group as usize].1.header.get() as u32;
        let Some(segment) = store.segment_of(packet, header) else { return };
        let Some(told) = self.flows[packet.flow as usize].as_mut() else { return };
        let number = told.packets;
        told.packets += 1;
        if segment.syn {
            told.syn = Some(number);
        } else {
            let flying = Flying { packet: number, len: segment.len, is_lost: false };
            told.flying.insert(segment.seq, flying);
        }
        self.events.add(now, Some(&told.id), "quic:packet_sent", |text| {
            let _ = write!(
                text,
                "{},\"raw\":{{\"length\":{},\"payload_length\":{}}}",
                header_of(segment.syn, number),
                packet.size(),
                segment.len
            );
            if !segment.syn {
                let _ = write!(text, ",{}", stream_frame(segment.seq, segment.len));
            }
            if segment.retransmission {
                text.push_str(",\"retransmission\":true");
            }
        });
    }

    /// Logs an acknowledgement that arrives at a sender.
    pub fn received(&mut self, now: Time, flow: &Flow, packet: &Packet, store: &Store) {
        let Some(tcp) = flow.tcp() else { return };
        self.know(now, packet.flow, flow);
        let Some(ack) = store.ack_of(packet, tcp.usual) else { return };
        let Some(told) = self.flows[packet.flow as usize].as_mut() else { return };
        let number = told.acks;
        told.acks += 1;
        let acked = told.acknowledge(&ack);
        self.events.add(now, Some(&told.id), "quic:packet_received", |text| {
            let _ = write!(
                text,
                "{},\"raw\":{{\"length\":{}}},\"frames\":[{{\"frame_type\":\"ack\"",
                header_of(ack.syn, number),
                packet.size(),
            );
            if !acked.is_empty() {
                let _ = write!(text, ",\"acked_ranges\":[{}]", ranges(&acked));
            }
            if self.groups[flow.group as usize].1.ecn == EcnMode::Accurate {
                let _ = write!(text, ",\"ce\":{}", ack.ce.packets);
            }
            text.push_str("}]");
            if ack.ece && !ack.syn {
                text.push_str(",\"ece\":true");
            }
        });
    }

    /// Logs the losses that a sender has detected, before it sends.
    pub fn judged(&mut self, now: Time, place: u32, flow: &mut Flow) {
        let by_time = self.groups[flow.group as usize].1.recovery == Recovery::Rack;
        let Some(tcp) = flow.tcp_mut() else { return };
        let losses = tcp.sender.take_losses();
        let timeouts = tcp.sender.stats().timeouts;
        let known = self.flows.get_mut(place as usize).and_then(Option::as_mut);
        let Some(told) = known.filter(|told| told.hash == flow.hashes[0]) else { return };
        let has_timed_out = std::mem::replace(&mut told.timeouts, timeouts) < timeouts;
        let lost: Vec<_> = losses.iter().flat_map(|of| told.lose(of.0, of.1)).collect();
        let trigger = match (has_timed_out, by_time) {
            (true, _) => "pto_expired",
            (_, true) => "time_threshold",
            _ => "reordering_threshold",
        };
        for (packet, seq, len) in lost {
            self.events.add(now, Some(&told.id), "quic:packet_lost", |text| {
                let (header, frame) = (header_of(false, packet), stream_frame(seq, len));
                let _ = write!(text, "{header},{frame},\"trigger\":\"{trigger}\"");
            });
        }
    }

    /// Logs the state of a sender after an event, once it has sent.
    pub fn settled(&mut self, now: Time, place: u32, flow: &Flow) {
        let Some(tcp) = flow.tcp() else { return };
        self.know(now, place, flow);
        let sender = &tcp.sender;
        let Some(told) = self.flows[place as usize].as_mut() else { return };
        let new = metrics(sender);
        let before = std::mem::replace(&mut told.metrics, new);
        let control = &self.groups[flow.group as usize].1.congestion_control;
        let state = state(sender, control.name());
        let last = told.state.replace(state);
        let is_changed = |at: &usize| new[*at].is_some() && before[*at] != new[*at];
        let changed: Vec<usize> = (0..NAMES.len()).filter(is_changed).collect();
        if !changed.is_empty() {
            self.events.add(now, Some(&told.id), "quic:recovery_metrics_updated", |text| {
                for at in changed {
                    let value = new[at].unwrap_or_default();
                    let _ = write!(text, "\"{}\":", NAMES[at]);
                    match at < TIMES {
                        true => millis(value, text),
                        false => text.push_str(&value.to_string()),
                    }
                    text.push(',');
                }
                text.pop();
            });
        }
        if last != Some(state) {
            self.events.add(now, Some(&told.id), "quic:congestion_state_updated", |text| {
                if let Some(last) = last {
                    let _ = write!(text, "\"old\":\"{last}\",");
                }
                let _ = write!(text, "\"new\":\"{state}\"");
            });
        }
    }

    /// Writes the remaining data.
    pub fn finish(self) -> Result<(), Unwritten> {
        self.events.output.finish()
    }

    /// Logs the start of a flow at its first event.
    pub fn know(&mut self, now: Time, place: u32, flow: &Flow) {
        let at = place as usize;
        if self.flows.len() <= at {
            self.flows.resize_with(at + 1, || None);
        }
        let hash = flow.hashes[0];
        if self.flows[at].as_ref().is_some_and(|told| told.hash == hash) {
            return;
        }
        let (name, transport) = &self.groups[flow.group as usize];
        let id = format!("{name}.{}", flow.number);
        self.events.add(now, Some(&id), "quic:recovery_parameters_set", |text| {
            let _ = write!(
                text,
                "\"timer_granularity\":{},\"max_datagram_size\":{},\
                 \"initial_congestion_window\":{},\"congestion_control\":\"{}\"",
                transport.clock_granularity.as_nanos().div_ceil(1_000_000),
                transport.mss.get(),
                transport.in_bytes(transport.initial_window),
                transport.congestion_control.name()
            );
        });
        self.flows[at] = Some(Told { hash, id, ..Told::default() });
    }
}

impl EventTexts {
    /// Adds an event; `data` appends the fields of its data.
    fn add(&mut self, now: Time, flow: Option<&str>, name: &str, data: impl FnOnce(&mut String)) {
        self.text.push_str("{\"time\":");
        millis(now.as_nanos(), &mut self.text);
        if let Some(flow) = flow {
            let _ = write!(self.text, ",\"group_id\":{}", to_json(&flow.into()));
        }
        let _ = write!(self.text, ",\"name\":\"{name}\",\"data\":{{");
        data(&mut self.text);
        self.text.push_str("}}");
        self.end();
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
    /// Returns the numbers of newly acknowledged packets, ascending.
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

    /// Records a lost segment. Returns number, first byte and length of each of its packets not
    /// reported before.
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

/// Returns the header of a packet.
fn header_of(is_syn: bool, number: u64) -> String {
    let kind = if is_syn { "initial" } else { "1RTT" };
    format!("\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}}")
}

/// Returns the frame of a segment.
fn stream_frame(seq: u64, len: u32) -> String {
    format!(
        "\"frames\":[{{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":{seq},\
         \"raw\":{{\"length\":{len}}}}}]"
    )
}

/// Formats ascending numbers as ranges: `[0,4],[7]`.
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

fn metrics(sender: &Sender) -> Metrics {
    // An unset threshold has the highest possible value.
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
