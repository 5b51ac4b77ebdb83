//! Tables of finished runs. `docs/results.md` describes their columns.

use std::borrow::Cow;
use std::sync::Arc;

use aqmlab_aqm::Reason;
use aqmlab_core::Span;
use aqmlab_sim::endpoints::{Direction, End};
use aqmlab_sim::network::probe::{PacketRecord, QUANTILES, percentile};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::run::diagnosis::About;
use aqmlab_sim::scenario::FlowGroup;
use aqmlab_sim::workload::quantities::Quantity;
use aqmlab_sim::{FlowResult, GroupResult, LinkResult, RunResult, Scenario, Traffic};
use aqmlab_tcp::Stats;
use arrow_array::RecordBatch;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::columns::{ArrowTable, Columns};
use crate::spill::{Spill, Window, to_os_error};

/// Finished run with its number and scenario.
pub struct Finished {
    pub run: u32,
    pub scenario: Arc<Scenario>,
    pub result: RunResult,
    /// Storage of the records of packets that are not in the result.
    pub spill: Option<Arc<Spill>>,
}

impl Finished {
    /// Creates a run whose records are all in the result.
    pub fn new(run: u32, scenario: Arc<Scenario>, result: RunResult) -> Self {
        Finished { run, scenario, result, spill: None }
    }
    fn packet_rows(&self) -> usize {
        let kept = self.result.links.iter().map(|link| link.packets.len());
        kept.sum::<usize>() + self.spill.as_ref().map_or(0, |spill| spill.rows())
    }
    /// Appends its records of packets in `window`, in pieces of one link.
    fn packets<'a>(&'a self, window: &mut Window, to: &mut Vec<Piece<'a>>) -> PyResult<()> {
        for (link, result) in self.result.links.iter().enumerate() {
            if let Some(spill) = &self.spill {
                let each = |mut records: Vec<PacketRecord>| {
                    for record in &mut records {
                        record.flow = self.result.flow_rows[record.flow as usize];
                    }
                    to.push((self, link as u32, Cow::Owned(records)));
                };
                let read = spill.read(link as u32, window, each);
                read.map_err(|error| to_os_error(&error, spill.path()))?;
            }
            let (from, count) = window.pass(result.packets.len());
            let kept = &result.packets[from..from + count];
            to.push((self, link as u32, Cow::Borrowed(kept)));
        }
        Ok(())
    }
    fn group_name(&self, flow: &FlowResult) -> &str {
        &self.scenario.flows[flow.group as usize].name
    }
    fn flow_name(&self, index: u32) -> String {
        let flow = &self.result.flows[index as usize];
        format!("{}.{}", self.group_name(flow), flow.index)
    }
    fn link_name(&self, index: u32) -> &str {
        &self.scenario.links[index as usize].name
    }
}

/// Records of packets of one link of a run.
type Piece<'a> = (&'a Finished, u32, Cow<'a, [PacketRecord]>);

/// Finished runs, sorted by number.
#[pyclass(module = "aqmlab._core", frozen)]
pub struct Results {
    runs: Vec<Finished>,
}

/// Builder of a small table.
type Builder = fn(&[Finished]) -> RecordBatch;

const TABLES: &[(&str, Builder)] = &[
    ("runs", runs),
    ("links", links),
    ("flows", flows),
    ("groups", groups),
    ("traffic", traffic),
    ("times", times),
    ("scores", scores),
    ("excursions", excursions),
    ("sojourn", sojourn),
    ("delays", delays),
    ("notes", notes),
];

/// Builder of a range of rows of a large table.
type PartBuilder = fn(&[Finished], usize, usize) -> PyResult<RecordBatch>;

/// Tables that may be too large to be built at once.
const LARGE: &[(&str, PartBuilder)] = &[("series", series), ("packets", packets)];

impl Results {
    pub fn new(mut runs: Vec<Finished>) -> Self {
        runs.sort_by_key(|finished| finished.run);
        Results { runs }
    }
}

#[pymethods]
impl Results {
    #[getter]
    fn runs(&self) -> Vec<u32> {
        self.runs.iter().map(|finished| finished.run).collect()
    }
    #[getter]
    fn delivered_packets(&self) -> u64 {
        self.runs
            .iter()
            .map(|finished| finished.result.delivered_packets(finished.scenario.bottleneck))
            .sum()
    }
    #[getter]
    fn events(&self) -> u64 {
        self.runs.iter().map(|finished| finished.result.events).sum()
    }
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<ArrowTable> {
        match TABLES.iter().find(|(known, _)| *known == name) {
            Some((_, build)) => Ok(ArrowTable(py.detach(|| build(&self.runs)))),
            None => self.part(py, name, 0, usize::MAX),
        }
    }
    /// Returns at most `rows` rows of a large table from row `start`, with bounded memory.
    fn part(&self, py: Python<'_>, name: &str, start: usize, rows: usize) -> PyResult<ArrowTable> {
        let (_, build) = LARGE
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| PyKeyError::new_err(format!("no table `{name}`")))?;
        py.detach(|| build(&self.runs, start, rows)).map(ArrowTable)
    }
    /// Returns the names of the large tables.
    #[staticmethod]
    fn large_tables() -> Vec<&'static str> {
        LARGE.iter().map(|(name, _)| *name).collect()
    }
    /// Total number of rows of the large tables.
    #[getter]
    fn large_rows(&self) -> usize {
        self.runs.iter().map(|f| f.packet_rows() + f.result.samples.len()).sum()
    }
    /// Number of flows, links and histogram steps in the other tables.
    #[getter]
    fn small_rows(&self) -> usize {
        let of_links = |f: &Finished| -> usize {
            f.result.links.iter().map(|link| 1 + link.sojourn.buckets.len()).sum()
        };
        self.runs.iter().map(|f| f.result.flows.len() + of_links(f)).sum()
    }
    #[staticmethod]
    fn table_names() -> Vec<&'static str> {
        TABLES.iter().map(|(name, _)| *name).chain(Self::large_tables()).collect()
    }
}

fn runs(all: &[Finished]) -> RecordBatch {
    let mut columns = Columns::default();
    columns.u32("run", all.iter().map(|f| f.run));
    columns.u64("replication", all.iter().map(|f| f.result.replication));
    columns.u64("seed", all.iter().map(|f| f.scenario.seed));
    columns.f64("end_s", all.iter().map(|f| f.result.end.as_secs_f64()));
    columns.f64("warmup_s", all.iter().map(|f| f.result.warmup.as_secs_f64()));
    columns.u64("events", all.iter().map(|f| f.result.events));
    let delivered = |f: &Finished| f.result.delivered_packets(f.scenario.bottleneck);
    columns.u64("delivered_packets", all.iter().map(delivered));
    columns.finish()
}

/// Returns every link of every run.
fn each_link(all: &[Finished]) -> impl Iterator<Item = (&Finished, &str, &LinkResult)> + Clone {
    all.iter().flat_map(|finished| {
        let links = finished.result.links.iter().enumerate();
        links.map(move |(i, link)| (finished, finished.link_name(i as u32), link))
    })
}

fn links(all: &[Finished]) -> RecordBatch {
    let rows = each_link(all);
    let mut columns = Columns::of("link", rows.clone().map(|(f, name, _)| (f.run, name)));
    for (name, of) in LinkResult::counts() {
        columns.u64(&name, rows.clone().map(|(_, _, link)| of(link)));
    }
    for (name, of) in LinkResult::numbers() {
        columns.f64(&name, rows.clone().map(|(_, _, link)| of(link)));
    }
    columns.finish()
}

fn flows(all: &[Finished]) -> RecordBatch {
    let rows = all.iter().flat_map(|f| f.result.flows.iter().map(move |flow| (f, flow)));
    let mut columns =
        Columns::of("group", rows.clone().map(|(f, flow)| (f.run, f.group_name(flow))));
    columns.u32("index", rows.clone().map(|(_, flow)| flow.index));
    columns.text("direction", rows.clone().map(|(_, flow)| flow.direction.name()));
    columns.f64("start_s", rows.clone().map(|(_, flow)| flow.start.as_secs_f64()));
    let finish = |flow: &FlowResult| flow.finish.map_or(f64::NAN, |time| time.as_secs_f64());
    columns.f64("finish_s", rows.clone().map(|(_, flow)| finish(flow)));
    let completion = |flow: &FlowResult| flow.completion.map_or(f64::NAN, Span::as_secs_f64);
    columns.f64("completion_s", rows.clone().map(|(_, flow)| completion(flow)));
    columns.maybe_u64("size_bytes", rows.clone().map(|(_, flow)| flow.size));
    columns.f64("goodput_bps", rows.clone().map(|(_, flow)| flow.goodput));
    columns.f64("throughput_bps", rows.clone().map(|(_, flow)| flow.throughput));
    columns.maybe_text("tcp_stack", rows.clone().map(|(_, flow)| flow.stack));
    columns.u64("segments_sent", rows.clone().map(|(_, flow)| flow.sent));
    let mut count = |name: &str, of: fn(&Stats) -> u64| {
        let of = |flow: &FlowResult| flow.stats.as_ref().map_or(0, of);
        columns.u64(name, rows.clone().map(|(_, flow)| of(flow)));
    };
    count("retransmissions", |stats| stats.retransmissions);
    count("timeouts", |stats| stats.timeouts);
    count("fast_retransmits", |stats| stats.fast_retransmits);
    count("tail_probes", |stats| stats.tail_probes);
    count("undone", |stats| stats.undone);
    count("ecn_reductions", |stats| stats.ecn_reductions);
    columns.u64("arrived", rows.clone().map(|(_, flow)| flow.arrived[End::Sink as usize]));
    columns.u64("dropped", rows.clone().map(|(_, flow)| flow.losses.queues.data));
    columns.u64("lost", rows.clone().map(|(_, flow)| flow.losses.links.data));
    let received = |flow: &FlowResult| flow.datagrams.as_ref().map(|datagrams| datagrams.received);
    columns.maybe_u64("datagrams_received", rows.clone().map(|(_, flow)| received(flow)));
    let mut of_flows = |name: &str, of: fn((f64, Span)) -> f64| {
        columns.f64(name, rows.clone().map(|(_, flow)| flow.delays.map_or(f64::NAN, of)));
    };
    of_flows("delay_mean_s", |(mean, _)| mean);
    of_flows("delay_max_s", |(_, max)| max.as_secs_f64());
    let jitter = |flow: &FlowResult| flow.datagrams.as_ref().map_or(f64::NAN, |of| of.jitter);
    columns.f64("jitter_s", rows.clone().map(|(_, flow)| jitter(flow)));
    columns.finish()
}

/// Returns every group of flows of every run.
fn each_group(
    all: &[Finished],
) -> impl Iterator<Item = (&Finished, &FlowGroup, &GroupResult)> + Clone {
    all.iter().flat_map(|finished| {
        let groups = finished.scenario.flows.iter().zip(&finished.result.groups);
        groups.map(move |(config, group)| (finished, config, group))
    })
}

/// Results of the workloads.
fn groups(all: &[Finished]) -> RecordBatch {
    let rows = each_group(all);
    let mut columns =
        Columns::of("group", rows.clone().map(|(f, config, _)| (f.run, config.name.as_str())));
    columns.maybe_text("tcp_stack", rows.clone().map(|(_, _, group)| group.stack));
    columns.u64("started", rows.clone().map(|(_, _, group)| group.started));
    columns.u64("completed", rows.clone().map(|(_, _, group)| group.completed));
    columns.u64("completed_bytes", rows.map(|(_, _, group)| group.bytes));
    columns.finish()
}

/// Traffic of the groups by direction.
fn traffic(all: &[Finished]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let both = Direction::ALL.into_iter().zip(group.traffic);
        let there = both.filter_map(|(direction, traffic)| Some((direction, traffic?)));
        there.map(move |(direction, traffic)| (f.run, config.name.as_str(), direction, traffic))
    });
    let mut columns = Columns::of("group", rows.clone().map(|(run, group, ..)| (run, group)));
    columns.text("direction", rows.clone().map(|(_, _, direction, _)| direction.name()));
    columns.maybe_u64("sent_bytes", rows.clone().map(|(.., traffic)| traffic.sent_bytes));
    let mut count = |name: &str, of: fn(&Traffic) -> u64| {
        columns.u64(name, rows.clone().map(|(.., traffic)| of(&traffic)));
    };
    count("delivered_bytes", |traffic| traffic.delivered_bytes);
    count("arrived", |traffic| traffic.arrived[End::Sink as usize]);
    count("dropped", |traffic| traffic.losses.queues.data);
    count("lost", |traffic| traffic.losses.links.data);
    count("arrived_acks", |traffic| traffic.arrived[End::Source as usize]);
    count("dropped_acks", |traffic| traffic.losses.queues.acks);
    count("lost_acks", |traffic| traffic.losses.links.acks);
    count("dropped_syns", |traffic| traffic.losses.queues.syns);
    count("lost_syns", |traffic| traffic.losses.links.syns);
    columns.finish()
}

/// Returns the name of a quantity's direction.
fn direction(quantity: &Quantity) -> Option<&'static str> {
    quantity.direction.map(Direction::name)
}

/// Times measured by the workloads.
fn times(all: &[Finished]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let name = config.name.as_str();
        group.times.iter().map(move |(quantity, times)| (f.run, name, quantity, times))
    });
    let mut columns = Columns::of("group", rows.clone().map(|(run, group, ..)| (run, group)));
    columns.text("quantity", rows.clone().map(|(_, _, quantity, _)| quantity.name));
    columns.maybe_text("direction", rows.clone().map(|(_, _, quantity, _)| direction(quantity)));
    columns.u64("count", rows.clone().map(|(.., times)| times.count));
    columns.f64("mean_s", rows.clone().map(|(.., times)| times.mean));
    for (i, quantile) in QUANTILES.iter().enumerate() {
        let name = format!("{}_s", percentile(*quantile));
        columns.f64(&name, rows.clone().map(|(.., times)| times.quantiles[i]));
    }
    columns.f64("min_s", rows.clone().map(|(.., times)| times.min.as_secs_f64()));
    columns.f64("max_s", rows.map(|(.., times)| times.max.as_secs_f64()));
    columns.finish()
}

/// Scores of the workloads.
fn scores(all: &[Finished]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let name = config.name.as_str();
        group.values.iter().map(move |(quantity, value)| (f.run, name, quantity, *value))
    });
    let mut columns = Columns::of("group", rows.clone().map(|(run, group, ..)| (run, group)));
    columns.text("quantity", rows.clone().map(|(_, _, quantity, _)| quantity.name));
    columns.maybe_text("direction", rows.clone().map(|(_, _, quantity, _)| direction(quantity)));
    columns.f64("value", rows.map(|(.., value)| value));
    columns.finish()
}

fn excursions(all: &[Finished]) -> RecordBatch {
    let rows = each_link(all)
        .flat_map(|(f, name, link)| link.excursions.iter().map(move |e| (f.run, name, e)));
    let mut columns = Columns::of("link", rows.clone().map(|(run, name, _)| (run, name)));
    columns.u64("threshold_bytes", rows.clone().map(|(_, _, e)| e.threshold.get()));
    columns.u64("count", rows.clone().map(|(_, _, e)| e.count));
    columns.f64("longest_s", rows.clone().map(|(_, _, e)| e.longest.as_secs_f64()));
    columns.f64("total_s", rows.map(|(_, _, e)| e.total.as_secs_f64()));
    columns.finish()
}

/// Histograms of the bottlenecks.
fn sojourn(all: &[Finished]) -> RecordBatch {
    let rows = all.iter().flat_map(|f| {
        let bottleneck = f.scenario.bottleneck;
        let buckets = f.result.links[bottleneck].sojourn.buckets.iter();
        buckets.map(move |bucket| (f.run, f.link_name(bottleneck as u32), bucket))
    });
    let mut columns = Columns::of("link", rows.clone().map(|(run, name, _)| (run, name)));
    columns.f64("sojourn_s", rows.clone().map(|(.., bucket)| bucket.0 as f64 * 1e-9));
    columns.u64("count", rows.map(|(.., bucket)| bucket.1));
    columns.finish()
}

/// Histograms of one-way delays of the groups that measure them.
fn delays(all: &[Finished]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let measured = group.times.iter().filter(|(quantity, _)| quantity.name == "delay");
        measured.flat_map(move |(quantity, times)| {
            let name = config.name.as_str();
            times.buckets.iter().map(move |bucket| (f.run, name, quantity, bucket))
        })
    });
    let mut columns = Columns::of("group", rows.clone().map(|(run, group, ..)| (run, group)));
    columns.maybe_text("direction", rows.clone().map(|(_, _, quantity, _)| direction(quantity)));
    columns.f64("delay_s", rows.clone().map(|(.., bucket)| bucket.0 as f64 * 1e-9));
    columns.u64("count", rows.map(|(.., bucket)| bucket.1));
    columns.finish()
}

fn notes(all: &[Finished]) -> RecordBatch {
    let rows = all.iter().flat_map(|f| f.result.findings.iter().map(move |found| (f, found)));
    let subject = |f: &Finished, about: About| match about {
        About::Run => "run".to_string(),
        About::Link(index) => f.link_name(index).to_string(),
        About::Group(index) => f.scenario.flows[index as usize].name.clone(),
    };
    let mut columns = Columns::default();
    columns.u32("run", rows.clone().map(|(f, _)| f.run));
    columns.text("subject", rows.clone().map(|(f, found)| subject(f, found.about)));
    columns.text("id", rows.clone().map(|(_, found)| found.note.id));
    columns.text("text", rows.map(|(_, found)| found.note.text.as_str()));
    columns.finish()
}

fn series(all: &[Finished], start: usize, count: usize) -> PyResult<RecordBatch> {
    let rows = all.iter().flat_map(|f| f.result.samples.iter().map(move |sample| (f, sample)));
    let rows = rows.skip(start).take(count);
    let subject = |f: &Finished, subject: Subject| match subject {
        Subject::Link(index) => f.link_name(index).to_string(),
        Subject::Flow(index) => f.flow_name(index),
        Subject::Emulator => "emulator".to_string(),
    };
    let mut columns = Columns::default();
    columns.u32("run", rows.clone().map(|(f, _)| f.run));
    columns.f64("time_s", rows.clone().map(|(_, s)| s.time.as_secs_f64()));
    columns.text("subject", rows.clone().map(|(f, s)| subject(f, s.subject)));
    columns.text("quantity", rows.clone().map(|(_, s)| s.quantity));
    columns.f64("value", rows.map(|(_, s)| s.value));
    Ok(columns.finish())
}

fn packets(all: &[Finished], start: usize, count: usize) -> PyResult<RecordBatch> {
    let (mut pieces, mut window) = (Vec::new(), Window::new(start, count));
    all.iter().try_for_each(|finished| finished.packets(&mut window, &mut pieces))?;
    let rows = pieces.iter().flat_map(|(f, link, packets)| {
        packets.iter().map(move |packet| (*f, f.link_name(*link), packet))
    });
    let verdict = |packet: &PacketRecord| packet.dropped.map_or("delivered", Reason::name);
    let mut columns = Columns::of("link", rows.clone().map(|(f, name, _)| (f.run, name)));
    columns.text("flow", rows.clone().map(|(f, _, p)| f.flow_name(p.flow)));
    columns.bool("is_ack", rows.clone().map(|(.., p)| p.is_ack));
    columns.u32("size_bytes", rows.clone().map(|(.., p)| p.size));
    columns.f64("arrival_s", rows.clone().map(|(.., p)| p.arrival.as_secs_f64()));
    columns.f64("end_s", rows.clone().map(|(.., p)| p.end.as_secs_f64()));
    columns.text("verdict", rows.clone().map(|(.., p)| verdict(p)));
    columns.bool("ce", rows.map(|(.., p)| p.ce));
    Ok(columns.finish())
}
