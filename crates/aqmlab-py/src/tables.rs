//! Tables of finished runs. `docs/results.md` describes their columns.

use std::borrow::Cow;
use std::sync::Arc;

use aqmlab_aqm::Reason;
use aqmlab_core::{Span, Time};
use aqmlab_sim::endpoints::{Direction, End};
use aqmlab_sim::network::probe::{PacketRecord, QUANTILES, percentile};
use aqmlab_sim::network::series::Subject;
use aqmlab_sim::run::diagnosis::About;
use aqmlab_sim::scenario::FlowGroup;
use aqmlab_sim::workload::quantities::Quantity;
use aqmlab_sim::{FlowResult, GroupResult, LinkResult, Observed, RunResult, Scenario, Traffic};
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
    /// Whether packets were counted there.
    fn has(&self, place: Observed) -> bool {
        self.result.observed >= place
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
    runs: Vec<Arc<Finished>>,
}

fn each(all: &[Arc<Finished>]) -> impl Iterator<Item = &Finished> + Clone {
    all.iter().map(Arc::as_ref)
}

/// Builder of a small table.
type Builder = fn(&[Arc<Finished>]) -> RecordBatch;

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
type PartBuilder = fn(&[Arc<Finished>], usize, usize) -> PyResult<RecordBatch>;

/// Tables that may be too large to be built at once.
const LARGE: &[(&str, PartBuilder)] = &[("series", series), ("packets", packets)];

impl Results {
    pub fn new(runs: impl IntoIterator<Item = Finished>) -> Self {
        Results::sorted(runs.into_iter().map(Arc::new).collect())
    }
    fn sorted(mut runs: Vec<Arc<Finished>>) -> Self {
        runs.sort_by_key(|finished| finished.run);
        Results { runs }
    }
}

#[pymethods]
impl Results {
    /// Returns the runs of several results, without a copy.
    #[staticmethod]
    fn join(parts: Vec<PyRef<'_, Results>>) -> Results {
        Results::sorted(parts.iter().flat_map(|part| part.runs.iter().cloned()).collect())
    }
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

fn runs(all: &[Arc<Finished>]) -> RecordBatch {
    let mut columns = Columns::new(each(all));
    columns.u32("run", |f| f.run);
    columns.u64("replication", |f| f.result.replication);
    columns.u64("seed", |f| f.scenario.seed);
    columns.f64("end_s", |f| f.result.end.as_secs_f64());
    columns.f64("warmup_s", |f| f.result.warmup.as_secs_f64());
    columns.u64("events", |f| f.result.events);
    let delivered = |f: &Finished| f.result.delivered_packets(f.scenario.bottleneck);
    columns.u64("delivered_packets", delivered);
    columns.finish()
}

/// Returns every link of every run.
fn each_link(
    all: &[Arc<Finished>],
) -> impl Iterator<Item = (&Finished, &str, &LinkResult)> + Clone {
    each(all).flat_map(|finished| {
        let links = finished.result.links.iter().enumerate();
        links.map(move |(i, link)| (finished, finished.link_name(i as u32), link))
    })
}

fn links(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_link(all);
    let mut columns = Columns::of(rows, "link", |(f, name, _)| (f.run, name));
    for (name, of) in LinkResult::counts() {
        columns.u64(&name, |(_, _, link)| of(link));
    }
    for (name, of) in LinkResult::numbers() {
        columns.f64(&name, |(_, _, link)| of(link));
    }
    columns.finish()
}

fn flows(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each(all).flat_map(|f| f.result.flows.iter().map(move |flow| (f, flow)));
    let mut columns = Columns::of(rows, "group", |(f, flow)| (f.run, f.group_name(flow)));
    columns.u32("index", |(_, flow)| flow.index);
    columns.text("direction", |(_, flow)| flow.direction.name());
    columns.f64("start_s", |(_, flow)| flow.start.as_secs_f64());
    columns.f64("finish_s", |(_, flow)| flow.finish.map_or(f64::NAN, Time::as_secs_f64));
    columns.f64("completion_s", |(_, flow)| flow.completion.map_or(f64::NAN, Span::as_secs_f64));
    columns.maybe_u64("size_bytes", |(_, flow)| flow.size);
    columns.f64("goodput_bps", |(_, flow)| flow.goodput);
    columns.f64("throughput_bps", |(_, flow)| flow.throughput);
    columns.maybe_text("tcp_stack", |(_, flow)| flow.stack);
    let mut count = |name, least: Observed, of: fn(&FlowResult, &Stats) -> u64| {
        let value = |flow: &FlowResult| of(flow, &flow.stats.unwrap_or_default());
        columns.maybe_u64(name, |(f, flow)| f.has(least).then(|| value(flow)));
    };
    count("segments_sent", Observed::Ends, |flow, _| flow.sent);
    count("retransmissions", Observed::Ends, |_, stats| stats.retransmissions);
    count("timeouts", Observed::Ends, |_, stats| stats.timeouts);
    count("fast_retransmits", Observed::Everywhere, |_, stats| stats.fast_retransmits);
    count("tail_probes", Observed::Everywhere, |_, stats| stats.tail_probes);
    count("undone", Observed::Everywhere, |_, stats| stats.undone);
    count("ecn_reductions", Observed::Everywhere, |_, stats| stats.ecn_reductions);
    count("arrived", Observed::Everywhere, |flow, _| flow.arrived[End::Sink as usize]);
    count("dropped", Observed::Everywhere, |flow, _| flow.losses.queues.data);
    count("lost", Observed::Everywhere, |flow, _| flow.losses.links.data);
    columns.maybe_u64("datagrams_received", |(_, flow)| Some(flow.datagrams.as_ref()?.received));
    let delays = |flow: &FlowResult| {
        // Without packets the mean is NaN, and the longest is none either.
        let measured = flow.delays.filter(|(mean, _)| !mean.is_nan());
        measured.map_or([f64::NAN; 2], |(mean, max)| [mean, max.as_secs_f64()])
    };
    columns.f64("delay_mean_s", |(_, flow)| delays(flow)[0]);
    columns.f64("delay_max_s", |(_, flow)| delays(flow)[1]);
    columns.f64("jitter_s", |(_, flow)| {
        flow.datagrams.as_ref().filter(|of| of.received > 0).map_or(f64::NAN, |of| of.jitter)
    });
    columns.finish()
}

/// Returns every group of flows of every run.
fn each_group(
    all: &[Arc<Finished>],
) -> impl Iterator<Item = (&Finished, &FlowGroup, &GroupResult)> + Clone {
    each(all).flat_map(|finished| {
        let groups = finished.scenario.flows.iter().zip(&finished.result.groups);
        groups.map(move |(config, group)| (finished, config, group))
    })
}

/// Results of the workloads.
fn groups(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_group(all);
    let mut columns = Columns::of(rows, "group", |(f, config, _)| (f.run, config.name.as_str()));
    columns.maybe_text("tcp_stack", |(_, _, group)| group.stack);
    let mut count = |name, of: fn(&GroupResult) -> u64| {
        columns.maybe_u64(name, |(f, _, group)| f.has(Observed::Ends).then(|| of(group)));
    };
    count("started", |group| group.started);
    count("completed", |group| group.completed);
    count("completed_bytes", |group| group.bytes);
    columns.finish()
}

/// Traffic of the groups by direction.
fn traffic(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let both = Direction::ALL.into_iter().zip(group.traffic);
        let there = both.filter_map(|(direction, traffic)| Some((direction, traffic?)));
        there.map(move |(direction, traffic)| (f, config.name.as_str(), direction, traffic))
    });
    let mut columns = Columns::of(rows, "group", |(f, group, ..)| (f.run, group));
    columns.text("direction", |(_, _, direction, _)| direction.name());
    columns.maybe_u64("sent_bytes", |(.., traffic)| traffic.sent_bytes);
    columns.u64("delivered_bytes", |(.., traffic)| traffic.delivered_bytes);
    let mut count = |name, of: fn(&Traffic) -> u64| {
        let known = |f: &Finished| f.has(Observed::Everywhere);
        columns.maybe_u64(name, |(f, _, _, traffic)| known(f).then(|| of(&traffic)));
    };
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
fn times(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let name = config.name.as_str();
        group.times.iter().map(move |(quantity, times)| (f.run, name, quantity, times))
    });
    let mut columns = Columns::of(rows, "group", |(run, group, ..)| (run, group));
    columns.text("quantity", |(_, _, quantity, _)| quantity.name);
    columns.maybe_text("direction", |(_, _, quantity, _)| direction(quantity));
    columns.u64("count", |(.., times)| times.count);
    columns.f64("mean_s", |(.., times)| times.mean);
    for (i, quantile) in QUANTILES.iter().enumerate() {
        let name = format!("{}_s", percentile(*quantile));
        columns.f64(&name, |(.., times)| times.quantiles[i]);
    }
    let known = |count: u64, time: Span| if count > 0 { time.as_secs_f64() } else { f64::NAN };
    columns.f64("min_s", |(.., times)| known(times.count, times.min));
    columns.f64("max_s", |(.., times)| known(times.count, times.max));
    columns.finish()
}

/// Scores of the workloads.
fn scores(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let name = config.name.as_str();
        group.values.iter().map(move |(quantity, value)| (f.run, name, quantity, *value))
    });
    let mut columns = Columns::of(rows, "group", |(run, group, ..)| (run, group));
    columns.text("quantity", |(_, _, quantity, _)| quantity.name);
    columns.maybe_text("direction", |(_, _, quantity, _)| direction(quantity));
    columns.f64("value", |(.., value)| value);
    columns.finish()
}

fn excursions(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_link(all)
        .flat_map(|(f, name, link)| link.excursions.iter().map(move |e| (f.run, name, e)));
    let mut columns = Columns::of(rows, "link", |(run, name, _)| (run, name));
    columns.u64("threshold_bytes", |(_, _, e)| e.threshold.get());
    columns.u64("count", |(_, _, e)| e.count);
    columns.f64("longest_s", |(_, _, e)| e.longest.as_secs_f64());
    columns.f64("total_s", |(_, _, e)| e.total.as_secs_f64());
    columns.finish()
}

/// Histograms of the bottlenecks.
fn sojourn(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each(all).flat_map(|f| {
        let bottleneck = f.scenario.bottleneck;
        let buckets = f.result.links[bottleneck].sojourn.buckets.iter();
        buckets.map(move |bucket| (f.run, f.link_name(bottleneck as u32), bucket))
    });
    let mut columns = Columns::of(rows, "link", |(run, name, _)| (run, name));
    columns.f64("sojourn_s", |(.., bucket)| bucket.0 as f64 * 1e-9);
    columns.u64("count", |(.., bucket)| bucket.1);
    columns.finish()
}

/// Histograms of one-way delays of the groups that measure them.
fn delays(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each_group(all).flat_map(|(f, config, group)| {
        let measured = group.times.iter().filter(|(quantity, _)| quantity.name == "delay");
        measured.flat_map(move |(quantity, times)| {
            let name = config.name.as_str();
            times.buckets.iter().map(move |bucket| (f.run, name, quantity, bucket))
        })
    });
    let mut columns = Columns::of(rows, "group", |(run, group, ..)| (run, group));
    columns.maybe_text("direction", |(_, _, quantity, _)| direction(quantity));
    columns.f64("delay_s", |(.., bucket)| bucket.0 as f64 * 1e-9);
    columns.u64("count", |(.., bucket)| bucket.1);
    columns.finish()
}

fn notes(all: &[Arc<Finished>]) -> RecordBatch {
    let rows = each(all).flat_map(|f| f.result.findings.iter().map(move |found| (f, found)));
    let subject = |f: &Finished, about: About| match about {
        About::Run => "run".to_string(),
        About::Link(index) => f.link_name(index).to_string(),
        About::Group(index) => f.scenario.flows[index as usize].name.clone(),
    };
    let mut columns = Columns::new(rows);
    columns.u32("run", |(f, _)| f.run);
    columns.text("subject", |(f, found)| subject(f, found.about));
    columns.text("id", |(_, found)| found.note.id);
    columns.text("text", |(_, found)| found.note.text.as_str());
    columns.finish()
}

fn series(all: &[Arc<Finished>], start: usize, count: usize) -> PyResult<RecordBatch> {
    let rows = each(all).flat_map(|f| f.result.samples.iter().map(move |sample| (f, sample)));
    let rows = rows.skip(start).take(count);
    let subject = |f: &Finished, subject: Subject| match subject {
        Subject::Link(index) => f.link_name(index).to_string(),
        Subject::Flow(index) => f.flow_name(index),
        Subject::Emulator => "emulator".to_string(),
    };
    let mut columns = Columns::new(rows);
    columns.u32("run", |(f, _)| f.run);
    columns.f64("time_s", |(_, s)| s.time.as_secs_f64());
    columns.coded("subject", |(f, s)| subject(f, s.subject));
    columns.coded("quantity", |(_, s)| s.quantity);
    columns.f64("value", |(_, s)| s.value);
    Ok(columns.finish())
}

fn packets(all: &[Arc<Finished>], start: usize, count: usize) -> PyResult<RecordBatch> {
    let (mut pieces, mut window) = (Vec::new(), Window::new(start, count));
    each(all).try_for_each(|finished| finished.packets(&mut window, &mut pieces))?;
    let rows = pieces.iter().flat_map(|(f, link, packets)| {
        packets.iter().map(move |packet| (*f, f.link_name(*link), packet))
    });
    let verdict = |packet: &PacketRecord| packet.dropped.map_or("delivered", Reason::name);
    let mut columns = Columns::new(rows);
    columns.u32("run", |(f, ..)| f.run);
    columns.coded("link", |(_, name, _)| name);
    columns.coded("flow", |(f, _, p)| f.flow_name(p.flow));
    columns.bool("is_ack", |(.., p)| p.is_ack);
    columns.u32("size_bytes", |(.., p)| p.size);
    columns.f64("arrival_s", |(.., p)| p.arrival.as_secs_f64());
    columns.f64("end_s", |(.., p)| p.end.as_secs_f64());
    columns.coded("verdict", |(.., p)| verdict(p));
    columns.bool("ce", |(.., p)| p.ce);
    Ok(columns.finish())
}
