//! What is to be simulated: links, flows, and what to record.

mod canonical;
mod changes;
mod columns;
mod keys;
mod link_keys;
mod overrides;
mod read;
mod toml;

use std::sync::Arc;

use aqmlab_aqm::{CustomConfig, QueueConfig};
use aqmlab_core::{
    Auto, Bytes, Chosen, Distribution, Error, FramingParams, Lookup, Nothing, ParamType, Rate,
    Result, Span, Stated, Table, Value, choices, params,
};
use aqmlab_tcp::TcpParams;
use aqmlab_tcp::congestion::CustomControl;

use crate::endpoints::{CustomEndpoint, EndpointConfig};
use crate::impairment::{Chance, JitterParams, SlotParams};
use crate::network::Setup;
use crate::network::egress::{DriverParams, ShaperParams};
use crate::rate::{InputFile, MAX_RATE, ReadFile};
use crate::workload::WorkloadConfig;

pub use self::canonical::to_json;
pub use self::changes::{Change, Changing, Effect, LinkChange, Surroundings};
pub use self::columns::ColumnParams;
#[cfg(test)]
pub(crate) use self::columns::with_columns;
pub use self::keys::{ChangeParams, LinkNames, RerouteParams, Start};
pub use self::link_keys::LinkKey;
pub use self::toml::{parse_document, parse_value};
pub use crate::endpoints::Dscp;
pub use crate::network::{LinkConfig, Simultaneous};

params! {
    /// The keys at the top of a scenario.
    pub struct RunParams {
        /// Virtual time at which the run ends, unless every flow is finite and done before.
        duration: Span = Span::from_secs(60),
            in Span::from_nanos(1) => Span::from_secs(10_000_000),
            source "this program";
        /// Seed of all random streams; the replication is a second seed.
        seed: u64 = 1, source "this program";
        /// Group of flows whose end ends the run; `none`: the run ends when all flows are
        /// done.
        until: Option<String> = None, [left out], source "this program";
        /// Order of an arrival from another link and the end of a transmission at the same
        /// nanosecond. Packets of a sender come after both: the key has no effect on the first
        /// link of a path.
        simultaneous: Simultaneous = Simultaneous::ArrivalsFirst, source "docs/engine.md";
        /// The link that the questions are about; `none`: the slowest on the `path` of any flows.
        bottleneck: Option<String> = None, source "this program";
    }
}

params! {
    /// One direction of a link: queue, transmitter, way to the far end.
    pub struct LinkParams {
        /// Bits per second on the wire, exact over any time; or a table, see docs/links.md.
        rate: Stated<Rate>, required "10mbit",
            in Stated::Plain(Rate::from_bps(1)) => Stated::Plain(MAX_RATE),
            source "this program";
        /// Propagation delay, one way; or a table, see docs/links.md.
        delay: Stated<Span> = Stated::Plain(Span::from_millis(10)),
            in Stated::Plain(Span::ZERO) => Stated::Plain(Span::from_secs(3600)),
            source "this program";
        /// A delay that is drawn for each packet; its keys are those of `jitter`.
        jitter: Option<JitterParams> = None, [left out], source "tc-netem(8), delay";
        /// Probability that a packet is lost behind the queue; or a table, see
        /// docs/links.md.
        loss: Option<Stated<Chance>> = None, [left out],
            in Some(Stated::Plain(Chance(0.0))) => Some(Stated::Plain(Chance(1.0))),
            source "tc-netem(8), loss";
        /// The chance that a packet arrives twice; or a table, see docs/links.md.
        duplicate: Stated<Chance> = Stated::Plain(Chance(0.0)), [left out],
            in Stated::Plain(Chance(0.0)) => Stated::Plain(Chance(1.0)),
            source "tc-netem(8), duplicate";
        /// Times between which nothing arrives; its keys are those of `slot`.
        slot: Option<SlotParams> = None, [left out], source "tc-netem(8), slot";
        /// Whether a packet may overtake another whose delay is longer.
        reordering: bool = false, [left out], source "this program";
        /// A link on the same medium, on which only one sends at a time. What it shares with
        /// others, they all share.
        shares: Option<String> = None, [left out], source "this program";
        /// The queue discipline: a name, or a table with `discipline` and parameters.
        queue: Chosen<QueueConfig> = Chosen::named("droptail"), source "this program";
        /// A shaper behind the queue, one class of HTB; its keys are those of `shaper`.
        shaper: Option<ShaperParams> = None, [left out], source "tc-htb(8)";
        /// A driver with a FIFO of its own behind that; its keys are those of `driver`.
        driver: Option<DriverParams> = None, [left out], source "this program";
        /// Backlogs whose excursions are measured, such as `["15000b"]`.
        thresholds: Sizes = Sizes::default(), source "this program";
    } with {
        /// Size of packets on the wire.
        framing: FramingParams = FramingParams::default();
    }
}

params! {
    /// A group of flows that are alike.
    pub struct FlowParams {
        /// Number of flows or applications.
        count: u64 = 1, in 1 => 1_000_000, source "this program";
        /// The links from the senders to the receivers: their names in order, or a single one.
        path: LinkNames, required "down", source "this program";
        /// The links from the receivers back to the senders.
        return_path: LinkNames, required "up", source "this program";
        /// Workload of the flows: a name, or a table with `kind` and parameters.
        workload: Chosen<WorkloadConfig> = Chosen::named("bulk"), source "this program";
        /// Bytes that each bulk flow transfers; `none` without end.
        size: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 50)),
            source "this program";
        /// The host that sends; `none`: each flow has a host of its own.
        source: Option<String> = None, source "this program; used by queues that isolate hosts";
        /// The host that receives.
        destination: Option<String> = None,
            source "this program; used by queues that isolate hosts";
        /// The class of service of all packets of the flow, in both directions.
        class: Dscp = Dscp(0), source "RFC 2474; used by queues with classes";
        /// Whether the one-way delay of each data packet is measured, from its sender to its
        /// receiver; that of datagrams always is.
        delays: bool = false, [left out], source "RFC 7679; RFC 7928, section 2.6";
        /// Delay of each flow or application beyond its links; twice this value is added to
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
        /// Routes that change during the run; the keys of each are those of `reroute`.
        reroutes: Vec<RerouteParams> = vec![], [left out], source "this program";
        /// TCP settings of these flows, which override the scenario's `transport`; the keys
        /// are those of `tcp`.
        transport: Option<Table> = None, source "this program";
    }
}

params! {
    /// What is recorded besides the summary.
    pub struct RecordParams {
        /// Level of detail: a summary in constant memory, samples at regular times, or
        /// every packet.
        level: Level = Level::Summary, source "this program";
        /// Time between two samples.
        interval: Span = Span::from_millis(100),
            in Span::from_micros(1) => Span::from_secs(3600),
            source "this program";
        /// Counts, times and rates are measured from here; samples and packets are recorded from
        /// the start.
        warmup: Span = Span::ZERO, [left out], in Span::ZERO => Span::from_secs(10_000_000),
            source "RFC 7928, section 8.2: time 0 is when slow start is over";
        /// Whether flows are sampled as well as links; many short flows produce many
        /// samples.
        flows: bool = true, source "this program";
    }
}

choices! {
    /// How much is recorded.
    pub enum Level {
        /// Streaming statistics only; memory stays the same over time.
        Summary = "summary",
        /// And samples of queues and flows.
        Series = "series",
        /// And every packet at every link.
        Packets = "packets",
    }
}

/// Sizes in a list; told as one, too.
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

/// What a scenario may name that is not in it. The default is nothing.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// Queue disciplines that are not in the catalogue.
    pub disciplines: &'a dyn Lookup<dyn CustomConfig>,
    /// Congestion controls that are not in the catalogue.
    pub controls: &'a dyn Lookup<dyn CustomControl>,
    /// Endpoints that are not in here.
    pub endpoints: &'a dyn Lookup<dyn CustomEndpoint>,
    /// Gives a file.
    pub read_file: ReadFile<'a>,
    /// Settings of the option `--set`, on top of all others: errors about them name it.
    pub settings: &'a [(String, Value)],
}

impl<'a> Outside<'a> {
    /// Disciplines that are not in the catalogue, and nothing else.
    pub fn disciplines(disciplines: &'a dyn Lookup<dyn CustomConfig>) -> Self {
        Outside { disciplines, ..Outside::default() }
    }

    /// Congestion controls that are not in the catalogue, and nothing else.
    pub fn controls(controls: &'a dyn Lookup<dyn CustomControl>) -> Self {
        Outside { controls, ..Outside::default() }
    }

    /// Endpoints that are not in here, and nothing else.
    pub fn endpoints(endpoints: &'a dyn Lookup<dyn CustomEndpoint>) -> Self {
        Outside { endpoints, ..Outside::default() }
    }

    /// Files, and nothing else.
    pub fn files(read_file: ReadFile<'a>) -> Self {
        Outside { read_file, ..Outside::default() }
    }
}

impl Default for Outside<'_> {
    fn default() -> Self {
        Outside {
            disciplines: &Nothing,
            controls: &Nothing,
            endpoints: &Nothing,
            read_file: &no_files,
            settings: &[],
        }
    }
}

fn no_files(name: &str) -> Result<Arc<InputFile>> {
    Err(Error::new("files are not read here").given(name))
}

/// A checked scenario with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// When the run ends.
    pub duration: Span,
    /// The seed.
    pub seed: u64,
    /// The group, by index, with whose end the run ends.
    pub until: Option<u32>,
    /// The order of what happens at one moment.
    pub simultaneous: Simultaneous,
    /// The link that the questions are about, by index.
    pub bottleneck: usize,
    /// The links.
    pub links: Vec<LinkConfig>,
    /// The groups of flows.
    pub flows: Vec<FlowGroup>,
    /// What is recorded.
    pub record: RecordParams,
    /// What changes during the run, in the order of the times.
    pub changes: Vec<Change>,
}

/// A group of flows of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Its name.
    pub name: String,
    /// How many flows.
    pub count: u64,
    /// Links from senders to receivers, by index.
    pub path: Vec<u32>,
    /// Links from receivers to senders.
    pub return_path: Vec<u32>,
    /// What drives them.
    pub workload: WorkloadConfig,
    /// Bytes that each bulk flow transfers.
    pub size: Option<Bytes>,
    /// The host that sends.
    pub source: Option<String>,
    /// The host that receives.
    pub destination: Option<String>,
    /// Their class of service.
    pub class: Dscp,
    /// Whether the one-way delay of their data packets is measured.
    pub delays: bool,
    /// The delay that each has beyond its links, one way.
    pub access_delay: Distribution<Span>,
    /// When they begin.
    pub start: Start,
    /// What they run over.
    pub endpoint: EndpointConfig,
    /// TCP, and what others take from it: the sizes of packets.
    pub transport: TcpParams,
    /// When their routes change, and to what; in the order of the times.
    pub reroutes: Vec<Reroute>,
    /// Whether a change adds them: they stand behind those that are there from the start.
    pub is_added: bool,
}

/// A change of the routes of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Reroute {
    /// Time of the change.
    pub at: Span,
    /// The links from senders to receivers from then on; `None`: as before.
    pub path: Option<Vec<u32>>,
    /// Those from receivers to senders.
    pub return_path: Option<Vec<u32>>,
}

impl FlowGroup {
    /// Whether its flows always have something to send.
    pub fn is_endless_bulk(&self) -> bool {
        self.size.is_none() && !self.workload.has_app()
    }

    /// Whether its flows or applications come to an end.
    pub fn ends(&self) -> bool {
        match self.workload.has_app() {
            false => self.size.is_some(),
            true => self.workload.is_finite(),
        }
    }

    /// All links that its packets may cross on their way to the receivers, or back,
    /// at whatever time: the lists of both directions.
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
    /// The longest round-trip time without queues of the flows, of those that are there from
    /// the start, that cross the link with this index, in either direction.
    pub fn base_rtt_over(&self, link: usize) -> Span {
        let link = link as u32;
        let of_group = |flow: &FlowGroup| {
            let access = Span::from_nanos(2 * flow.access_delay.ceiling() as u64);
            let over = flow.courses().filter(|course| course.iter().any(|p| p.contains(&link)));
            let rtt = over.map(|[path, back]| self.propagation(path) + self.propagation(back));
            rtt.max().map(|rtt| rtt + access)
        };
        let first = self.flows.iter().filter(|flows| !flows.is_added);
        first.filter_map(of_group).max().unwrap_or(Span::ZERO)
    }

    /// What the network of a replication is made of: for devices of 1500 bytes, and
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

    /// All changes of routes, with the groups of flows whose they are.
    pub(crate) fn reroutes(&self) -> impl Iterator<Item = (usize, &Reroute)> {
        let groups = self.flows.iter().enumerate();
        groups.flat_map(|(group, flows)| flows.reroutes.iter().map(move |change| (group, change)))
    }

    /// The sum of the propagation delays of some links.
    fn propagation(&self, links: &[u32]) -> Span {
        links.iter().fold(Span::ZERO, |sum, link| sum + self.links[*link as usize].delay)
    }
}
