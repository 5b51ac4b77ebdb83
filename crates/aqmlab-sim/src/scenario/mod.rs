//! Scenario: links, flows, and recordings of a simulation.

mod canonical;
mod changes;
mod columns;
mod keys;
mod link_keys;
mod overrides;
mod read;
mod text;
mod transport_keys;

use std::collections::BTreeSet;
use std::sync::Arc;

use aqmlab_aqm::{Discipline, QueueConfig};
use aqmlab_core::{
    Auto, Bytes, Chosen, Distribution, Error, FramingParams, Lookup, ParamType, Rate, Result, Span,
    Stated, Stream, Table, Time, Value, choices, params,
};
use aqmlab_tcp::TcpParams;
use aqmlab_tcp::congestion::ControlParams;

use crate::endpoints::{EndpointConfig, EndpointParams};
use crate::impairment::{Chance, JitterParams, SlotParams};
use crate::network::Setup;
use crate::network::egress::{DriverParams, ShaperParams};
use crate::rate::{InputFile, MAX_RATE, ReadFile};
use crate::workload::WorkloadConfig;

pub use self::changes::{Change, Changing, Effect, LinkChange, Surroundings};
pub use self::columns::ColumnParams;
#[cfg(test)]
pub(crate) use self::columns::with_columns;
pub use self::keys::{ChangeParams, LinkNames, RerouteParams, Start};
pub use self::link_keys::LinkKey;
pub(crate) use self::read::group_index;
pub use self::text::{parse_document, parse_value, to_json, to_toml};
pub use self::transport_keys::{TransportChange, TransportKey};
pub use crate::endpoints::Dscp;
pub use crate::network::{LinkConfig, Simultaneous};

params! {
    /// Top-level keys of a scenario.
    pub struct RunParams {
        /// Virtual time at which the run ends, unless every flow is finite and finishes earlier.
        duration: Span = Span::from_secs(60),
            in Span::from_nanos(1) => Span::from_secs(10_000_000),
            source "this program";
        /// Seed of all random streams; the replication is a second seed.
        seed: u64 = 1, source "this program";
        /// Group of flows whose end ends the run; `none`: the run ends when all flows have
        /// finished.
        until: Option<String> = None, [left out], source "this program";
        /// Order of an arrival from another link and the end of a transmission at the same
        /// nanosecond. Packets of a sender follow both: the key has no effect on the first link of
        /// a path.
        simultaneous: Simultaneous = Simultaneous::ArrivalsFirst, source "docs/engine.md";
        /// Link that results and diagnosis refer to; `none`: the slowest, by itself or its shaper,
        /// on the `path` of any flows.
        bottleneck: Option<String> = None, source "this program";
    }
}

params! {
    /// One direction of a link: queue, transmitter, propagation.
    pub struct LinkParams {
        /// Rate in bit/s on the wire, exact over any interval; or a table, see docs/links.md.
        rate: Stated<Rate>, required "10mbit",
            in Stated::Plain(Rate::from_bps(1)) => Stated::Plain(MAX_RATE),
            source "this program";
        /// One-way propagation delay; or a table, see docs/links.md.
        delay: Stated<Span> = Stated::Plain(Span::from_millis(10)),
            in Stated::Plain(Span::ZERO) => Stated::Plain(Span::from_secs(3600)),
            source "this program";
        /// Random additional delay of each packet; its keys are those of `jitter`.
        jitter: Option<JitterParams> = None, [left out], source "tc-netem(8), delay";
        /// Probability that a packet is lost after the queue; or a table, see docs/links.md.
        loss: Option<Stated<Chance>> = None, [left out],
            in Some(Stated::Plain(Chance(0.0))) => Some(Stated::Plain(Chance(1.0))),
            source "tc-netem(8), loss";
        /// Probability that a packet is duplicated; or a table, see docs/links.md.
        duplicate: Stated<Chance> = Stated::Plain(Chance(0.0)), [left out],
            in Stated::Plain(Chance(0.0)) => Stated::Plain(Chance(1.0)),
            source "tc-netem(8), duplicate";
        /// Arrivals grouped into slots; its keys are those of `slot`.
        slot: Option<SlotParams> = None, [left out], source "tc-netem(8), slot";
        /// True if a packet may overtake another with a longer delay.
        reordering: bool = false, [left out], source "this program";
        /// Another link on the same shared medium, which carries one transmission at a time. All
        /// links that share with either of the two are on one medium.
        shares: Option<String> = None, [left out], source "this program";
        /// Queue discipline: a name, or a table with `discipline` and parameters.
        queue: Chosen<QueueConfig> = Chosen::named("droptail"), source "this program";
        /// Shaper after the queue, one class of HTB or a TBF; its keys are those of `shaper`.
        shaper: Option<ShaperParams> = None, [left out], source "tc-htb(8), tc-tbf(8)";
        /// Driver with its own FIFO after the shaper; its keys are those of `driver`.
        driver: Option<DriverParams> = None, [left out], source "this program";
        /// Backlogs whose crossings are measured, such as `["15000b"]`.
        thresholds: Sizes = Sizes::default(), source "this program";
    } with {
        /// Size of packets on the wire.
        framing: FramingParams = FramingParams::default();
    }
}

params! {
    /// Group of identical flows.
    pub struct FlowParams {
        /// Number of flows or applications.
        count: u64 = 1, in 1 => 1_000_000, source "this program";
        /// Links from the senders to the receivers: their names in order, or a single one.
        path: LinkNames, required "down", source "this program";
        /// Links from the receivers to the senders.
        return_path: LinkNames, required "up", source "this program";
        /// Workload of the flows: a name, or a table with `kind` and parameters.
        workload: Chosen<WorkloadConfig> = Chosen::named("bulk"), source "this program";
        /// Bytes that each bulk flow transfers; `none`: no limit.
        size: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 50)),
            source "this program";
        /// Sending host; `none`: each flow has its own host.
        source: Option<String> = None, source "this program; used by queues that isolate hosts";
        /// Receiving host; `none`: each flow has its own host.
        destination: Option<String> = None,
            source "this program; used by queues that isolate hosts";
        /// Service class (DSCP) of all packets of the flow, in both directions.
        class: Dscp = Dscp(0), source "RFC 2474; used by queues with classes";
        /// True if the one-way delay of each data packet is measured, from its sender to its
        /// receiver; always measured for datagrams.
        delays: bool = false, [left out], source "RFC 7679; RFC 7928, section 2.6";
        /// Delay of each flow or application in addition to its links; twice this value is added to
        /// its round-trip time. Drawn for each; a list is used in turn.
        access_delay: Distribution<Span> = Distribution::constant(Span::ZERO), [left out],
            source "RFC 7928, section 6: round-trip times of their own";
        /// Start time; `{ uniform = ["0s", "1s"] }`: one random time for the group, `each`
        /// instead of `uniform`: one for each flow; `auto`: 0 s for a single flow, several
        /// each within the first second.
        start: Auto<Start> = Auto::Auto, source "this program";
        /// Transport endpoint: a name, or a table with `kind` and parameters.
        endpoint: Chosen<EndpointConfig> = Chosen::named("tcp"), [left out],
            source "this program";
        /// Route changes during the run; the keys of each are those of `reroute`.
        reroutes: Vec<RerouteParams> = vec![], [left out], source "this program";
        /// TCP settings of these flows, which override the scenario's `transport`; the keys are
        /// those of `tcp`.
        transport: Option<Table> = None, source "this program";
    }
}

params! {
    /// Recordings in addition to the summary.
    pub struct RecordParams {
        /// Level of detail: a summary in constant memory, samples at regular times, or every
        /// packet.
        level: Level = Level::Summary, source "this program";
        /// Time between two samples.
        interval: Span = Span::from_millis(100),
            in Span::from_micros(1) => Span::from_secs(3600),
            source "this program";
        /// End of the warm-up: counts, times and rates are measured from here; samples and packets
        /// are recorded from the start.
        warmup: Span = Span::ZERO, [left out], in Span::ZERO => Span::from_secs(10_000_000),
            source "RFC 7928, section 8.2: time 0 is when slow start is over";
        /// True if flows are sampled as well as links; many short flows produce many samples.
        flows: bool = true, source "this program";
    }
}

choices! {
    /// Level of detail of a recording.
    pub enum Level {
        /// Streaming statistics only, in constant memory.
        Summary = "summary",
        /// Also samples of queues and flows.
        Series = "series",
        /// Also every packet at every link.
        Packets = "packets",
    }
}

/// List of sizes, written as a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes(pub Vec<Bytes>);

impl ParamType for Sizes {
    const KIND: &'static str = "sizes";
    fn allowed() -> String {
        "a list of sizes such as [\"15000b\"]".into()
    }
    fn read(value: &Value) -> Option<Self> {
        Vec::read(value).map(Sizes)
    }
    fn to_text(&self) -> String {
        self.0.to_text()
    }
    fn to_value(&self) -> Value {
        Value::List(self.0.iter().map(ParamType::to_value).collect())
    }
}

/// Sources of names that a scenario may refer to. The default provides none.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// Custom queue disciplines.
    pub disciplines: &'a dyn Lookup<dyn Discipline>,
    /// Custom congestion controls.
    pub controls: &'a dyn Lookup<dyn ControlParams>,
    /// Custom endpoints.
    pub endpoints: &'a dyn Lookup<dyn EndpointParams>,
    /// Reader of files.
    pub read_file: ReadFile<'a>,
    /// Settings of the option `--set`, which override all others: errors name the option.
    pub settings: &'a [(String, Value)],
}

impl<'a> Outside<'a> {
    /// Provides custom disciplines only.
    pub fn disciplines(disciplines: &'a dyn Lookup<dyn Discipline>) -> Self {
        Outside { disciplines, ..Outside::default() }
    }

    /// Provides custom congestion controls only.
    pub fn controls(controls: &'a dyn Lookup<dyn ControlParams>) -> Self {
        Outside { controls, ..Outside::default() }
    }

    /// Provides custom endpoints only.
    pub fn endpoints(endpoints: &'a dyn Lookup<dyn EndpointParams>) -> Self {
        Outside { endpoints, ..Outside::default() }
    }

    /// Provides files only.
    pub fn files(read_file: ReadFile<'a>) -> Self {
        Outside { read_file, ..Outside::default() }
    }
}

impl Default for Outside<'_> {
    fn default() -> Self {
        Outside {
            disciplines: &(),
            controls: &(),
            endpoints: &(),
            read_file: &no_files,
            settings: &[],
        }
    }
}

fn no_files(name: &str) -> Result<Arc<InputFile>> {
    Err(Error::new("files are not read here").given(name))
}

/// Checked scenario with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// End of the run.
    pub duration: Span,
    /// Seed of the random streams.
    pub seed: u64,
    /// Index of the group whose end ends the run.
    pub until: Option<u32>,
    /// Order of simultaneous events.
    pub simultaneous: Simultaneous,
    /// Index of the link that results and diagnosis refer to.
    pub bottleneck: usize,
    /// Links.
    pub links: Vec<LinkConfig>,
    /// Groups of flows.
    pub flows: Vec<FlowGroup>,
    /// Recordings.
    pub record: RecordParams,
    /// Changes during the run, in the order of their times.
    pub changes: Vec<Change>,
}

/// Group of flows of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Name of the group.
    pub name: String,
    /// Parameters, with every default filled in. The following fields are read from them.
    pub params: FlowParams,
    /// Links from senders to receivers, by index.
    pub path: Vec<u32>,
    /// Links from receivers to senders, by index.
    pub return_path: Vec<u32>,
    /// Workload of the flows.
    pub workload: WorkloadConfig,
    /// Start times.
    pub start: Start,
    /// Transport endpoint.
    pub endpoint: EndpointConfig,
    /// TCP settings; other endpoints use the packet sizes.
    pub transport: TcpParams,
    /// Route changes, in the order of their times.
    pub reroutes: Vec<Reroute>,
    /// True if a change adds the group. Such groups follow the initial ones.
    pub is_added: bool,
}

/// Route change of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Reroute {
    /// Time of the change.
    pub at: Span,
    /// New links from senders to receivers; `None`: unchanged.
    pub path: Option<Vec<u32>>,
    /// New links from receivers to senders; `None`: unchanged.
    pub return_path: Option<Vec<u32>>,
}

impl FlowGroup {
    /// Returns whether the flows always have data to send.
    pub fn is_endless_bulk(&self) -> bool {
        self.params.size.is_none() && !self.workload.has_app()
    }

    /// Returns whether the flows or applications finish.
    pub fn ends(&self) -> bool {
        match self.workload.has_app() {
            false => self.params.size.is_some(),
            true => self.workload.is_finite(),
        }
    }

    /// Returns the start times of the flows, drawn from the streams with these names.
    pub fn starts(&self, stream: impl Fn(&str) -> Stream) -> Vec<Time> {
        let drawn = |of: &str, low, high| {
            stream(&format!("flows.{}{of}.start", self.name)).uniform_span(low, high)
        };
        let starts = match self.start {
            Start::Each(low, high) => (0..self.params.count)
                .map(|member| drawn(&format!(".{member}"), low, high))
                .collect(),
            Start::Uniform(low, high) => vec![drawn("", low, high); self.params.count as usize],
            Start::At(start) => vec![start; self.params.count as usize],
        };
        starts.into_iter().map(|start| Time::ZERO + start).collect()
    }

    /// Reads the index of a flow of the group.
    ///
    /// # Errors
    /// Returns an error if the group has no such flow, or applications, whose flows have no fixed index.
    pub fn member(&self, text: &str) -> Result<u32> {
        if self.workload.has_app() {
            return Err(Error::new("flows of applications have no index: change the whole group"));
        }
        let index = text.parse().ok().filter(|index| u64::from(*index) < self.params.count);
        let allowed = || format!("an index from 0 to {}", self.params.count - 1);
        index.ok_or_else(|| Error::not_allowed(text, allowed()))
    }

    /// Returns the links that data may traverse, at any time.
    pub(crate) fn links_of_data(&self) -> BTreeSet<u32> {
        self.courses().flat_map(|[path, _]| path).copied().collect()
    }

    /// Returns all links that packets may traverse in each direction, at any time.
    fn courses(&self) -> impl Iterator<Item = [&[u32]; 2]> {
        let mut both = [&self.path[..], &self.return_path[..]];
        let changes = self.reroutes.iter().map(move |change| {
            for (path, other) in both.iter_mut().zip([&change.path, &change.return_path]) {
                *path = other.as_deref().unwrap_or(path);
            }
            both
        });
        std::iter::once([&self.path[..], &self.return_path[..]]).chain(changes)
    }
}

impl Scenario {
    /// Returns the longest base round-trip time of the initial flows that traverse the link with
    /// this index, in either direction.
    pub fn base_rtt_over(&self, link: usize) -> Span {
        let link = link as u32;
        let of_group = |flow: &FlowGroup| {
            let access = Span::from_nanos(2 * flow.params.access_delay.ceiling() as u64);
            let over = flow.courses().filter(|course| course.iter().any(|p| p.contains(&link)));
            let rtt = over.map(|[path, back]| self.propagation(path) + self.propagation(back));
            rtt.max().map(|rtt| rtt + access)
        };
        let first = self.flows.iter().filter(|flows| !flows.is_added);
        first.filter_map(of_group).max().unwrap_or(Span::ZERO)
    }

    /// Returns the setup of a replication's network, for devices with an MTU of 1500 bytes and
    /// without an end.
    pub fn network(&self, replication: u64) -> Setup<'_> {
        Setup {
            links: &self.links,
            base_rtts: (0..self.links.len()).map(|link| self.base_rtt_over(link)).collect(),
            seed: self.seed,
            replication,
            simultaneous: self.simultaneous,
            mtu: Bytes::new(1500),
            end: Setup::NO_END,
            record_packets: self.record.level == Level::Packets,
            defers_ends: false,
        }
    }

    /// Returns all route changes, with the index of their group.
    pub(crate) fn reroutes(&self) -> impl Iterator<Item = (usize, &Reroute)> {
        let groups = self.flows.iter().enumerate();
        groups.flat_map(|(group, flows)| flows.reroutes.iter().map(move |change| (group, change)))
    }

    /// Returns the sum of the propagation delays of some links.
    fn propagation(&self, links: &[u32]) -> Span {
        links.iter().fold(Span::ZERO, |sum, link| sum + self.links[*link as usize].delay)
    }
}
