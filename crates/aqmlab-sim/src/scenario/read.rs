//! Parsing and checking of scenarios.

use aqmlab_core::error::breaks_line;
use aqmlab_core::params::missing_key;
use aqmlab_core::{Auto, Bytes, Chosen, Error, ParamType, Params, Result, Span, Table, Value};
use aqmlab_tcp::TcpParams;

use super::changes::read_changes;
use super::columns::with_columns;
use super::overrides::{Override, TOP_KEYS, at_key, is_of_queue, whole_key};
use super::parse_document;
use super::{
    FlowGroup, FlowParams, LinkConfig, LinkKey, LinkNames, LinkParams, Outside, RecordParams,
    Reroute, RerouteParams, RunParams, Scenario, Start,
};
use crate::endpoints::tfrc::TfrcParams;
use crate::impairment::{ChanceParams, DelayProcess, Loss, PropagationConfig};
use crate::network::MAX_PACKET;
use crate::rate::RateProcess;
use crate::workload::WorkloadConfig;

/// Limit of the number of links in a path: hops are counted in a byte, and an access link may
/// follow.
const MAX_HOPS: usize = 254;

/// Limit of the access delay, equal to that of a link's delay.
const MAX_ACCESS: Span = Span::from_secs(3600);

impl Scenario {
    /// Parses a scenario from TOML text, with `overrides` (dotted keys) applied.
    ///
    /// # Errors
    /// Returns an error for any invalid key or value; the error names `file` and the key.
    pub fn parse(text: &str, file: &str, overrides: &[(String, Value)]) -> Result<Scenario> {
        Self::parse_with(text, file, overrides, Outside::default())
    }

    /// Parses a scenario that names files or custom components.
    ///
    /// # Errors
    /// See [`Scenario::parse`]; also returns errors of `outside`.
    pub fn parse_with(
        text: &str,
        file: &str,
        overrides: &[(String, Value)],
        outside: Outside<'_>,
    ) -> Result<Scenario> {
        let table = parse_document(text).map_err(|error| error.in_file(file))?;
        Self::from_table(table, file, overrides, outside)
    }

    /// Reads a scenario from values, which may name files or custom components.
    ///
    /// # Errors
    /// See [`Scenario::parse_with`].
    pub fn from_table(
        mut table: Table,
        file: &str,
        overrides: &[(String, Value)],
        outside: Outside<'_>,
    ) -> Result<Scenario> {
        read(&mut table, overrides, outside).map_err(|error| error.in_file(file))
    }
}

/// Returns the index of the bottleneck: as given, or the slowest link on the `path` of any flows.
/// (A return path may be slower, but carries only acknowledgements.)
fn read_bottleneck(table: &Table, run: &RunParams, links: &[LinkConfig]) -> Result<usize> {
    if let Some(name) = &run.bottleneck {
        let index = link_index(links, name);
        return index.map(|index| index as usize).map_err(|error| error.at("bottleneck"));
    }
    let carries_data = |link: &LinkConfig| {
        let flows = table.get("flows").and_then(|flows| flows.as_table().ok());
        flows.is_some_and(|flows| {
            let groups = flows.iter().filter_map(|(_, group)| group.as_table().ok());
            groups.filter_map(|group| group.get("path")).any(|path| names(path, &link.name))
        })
    };
    let (on_paths, others): (Vec<_>, Vec<_>) =
        links.iter().enumerate().partition(|(_, link)| carries_data(link));
    let candidates = if on_paths.is_empty() { others } else { on_paths };
    let slowest = candidates.into_iter().min_by_key(|(_, link)| link.service_rate());
    Ok(slowest.expect("there is a link").0)
}

/// Returns whether a path, a list of links or a single one, contains this link.
fn names(path: &Value, link: &str) -> bool {
    match path {
        Value::List(names) => names.iter().any(|name| name.as_text() == Ok(link)),
        name => name.as_text() == Ok(link),
    }
}

/// Reads the parameters of `T` from a table that also contains the keys `beside`.
fn read_params<T: Params>(table: &Table, beside: &[&str]) -> Result<T> {
    let specs = T::specs();
    let known: Vec<&str> =
        specs.iter().map(|spec| spec.name).chain(beside.iter().copied()).collect();
    table.only(known)?;
    let mut params = T::default();
    for (key, value) in table.iter().filter(|(key, _)| !beside.contains(key)) {
        params.set(key, value)?;
    }
    Ok(params)
}

/// Reads `table` with the overrides applied. Overrides of the bottleneck's queue are applied once
/// the bottleneck is known, and with them those of queues that follow.
fn read(
    table: &mut Table,
    overrides: &[(String, Value)],
    outside: Outside<'_>,
) -> Result<Scenario> {
    let overrides = overrides.iter().map(|setting| Override { setting, option: None });
    let settings =
        outside.settings.iter().map(|it| Override { setting: it, option: Some("--set") });
    let (mut of_queues, mut others) = (Vec::new(), Vec::new());
    for each in overrides.chain(settings) {
        if each.is_of_bottleneck() {
            of_queues.push((each, None));
            continue;
        }
        let key = &each.setting.0;
        let whole = whole_key(table, key).map_err(|error| each.blamed(error, key))?;
        if !of_queues.is_empty() && is_of_queue(&whole) {
            of_queues.push((each, Some(whole)));
        } else {
            each.apply(table, &whole)?;
            others.push((each, whole));
        }
    }
    let scenario = read_with_queues(table, of_queues, outside);
    scenario.map_err(|error| {
        others.iter().rev().fold(error, |error, (other, key)| other.blamed(error, key))
    })
}

fn read_with_queues(
    table: &mut Table,
    of_queues: Vec<(Override<'_>, Option<String>)>,
    outside: Outside<'_>,
) -> Result<Scenario> {
    let run: RunParams =
        read_params(table, TOP_KEYS).map_err(|error| match error.key.as_str() {
            "bottleneck" => error.hint("the name of one of `links`"),
            _ => error,
        })?;
    let mut links = read_links(table, run.duration, outside)?;
    let bottleneck = read_bottleneck(table, &run, &links)?;
    if !of_queues.is_empty() {
        set_queues(table, of_queues, &mut links, bottleneck, outside)?;
    }
    let flows = read_flows(table, &links, outside)?;
    let record: RecordParams = read_group(table, "record")?.unwrap_or_default();
    check_warmup(&record, run.duration)?;
    let until = run.until.map(|name| ending_group(&flows, &name)).transpose();
    let mut scenario = Scenario {
        duration: run.duration,
        seed: run.seed,
        until: until.map_err(|error| error.at("until"))?,
        simultaneous: run.simultaneous,
        bottleneck,
        links,
        flows,
        record,
        changes: Vec::new(),
    };
    read_changes(table, &mut scenario, outside)?;
    Ok(scenario)
}

/// Rejects a warm-up that leaves no time for measurements.
fn check_warmup(record: &RecordParams, duration: Span) -> Result<()> {
    if record.warmup < duration || record.warmup == Span::ZERO {
        return Ok(());
    }
    let allowed = format!("a time shorter than `duration`, {duration}: nothing would be measured");
    Err(Error::not_allowed(record.warmup, allowed).at("warmup").at("record"))
}

/// Sets keys of queues, without a whole key those of the bottleneck, and reads these queues again.
fn set_queues(
    table: &mut Table,
    overrides: Vec<(Override<'_>, Option<String>)>,
    links: &mut [LinkConfig],
    bottleneck: usize,
    outside: Outside<'_>,
) -> Result<()> {
    let short =
        |each: &Override<'_>| format!("links.{}.{}", links[bottleneck].name, each.setting.0);
    let overrides: Vec<_> = overrides
        .into_iter()
        .map(|(each, whole)| (each, whole.unwrap_or_else(|| short(&each))))
        .collect();
    for (each, key) in &overrides {
        each.apply(table, key)?;
    }
    for link in links {
        let place = format!("links.{}", link.name);
        let queue = format!("{place}.queue");
        if !overrides.iter().any(|(_, key)| key.starts_with(&queue)) {
            continue;
        }
        let value = at_key(table, &place).expect("it has been read");
        *link = read_link_alone(value, link, LinkKey::Queue, outside).map_err(|error| {
            let error = error.at(&link.name).at("links");
            overrides.iter().rev().fold(error, |error, (each, key)| each.blamed(error, key))
        })?;
    }
    Ok(())
}

/// Returns the index of the group `name`, whose flows must be finite.
fn ending_group(flows: &[FlowGroup], name: &str) -> Result<u32> {
    let index = group_index(flows, name)?;
    if !flows[index as usize].ends() {
        let allowed = "a group of flows with a `size`, or whose workload has an end";
        return Err(Error::not_allowed(name, allowed));
    }
    Ok(index)
}

/// The named tables below `key`, of which there must be at least one.
fn named_tables<'a>(table: &'a Table, key: &str, example: &str) -> Result<&'a Table> {
    let missing = || Error::new(format!("no {key}: at least one is needed")).hint(example);
    let tables = table.get(key).ok_or_else(missing)?;
    let tables = tables.as_table().map_err(|error| error.hint(example).at(key))?;
    if tables.is_empty() { Err(missing().at(key)) } else { Ok(tables) }
}

fn read_links(table: &Table, duration: Span, outside: Outside<'_>) -> Result<Vec<LinkConfig>> {
    let tables = named_tables(table, "links", "[links.bottleneck]")?;
    let read = |name: &str, value: &Value| -> Result<(LinkConfig, Option<String>)> {
        let params = LinkParams::parse(value).map_err(crate::rate::hinted)?;
        Ok((read_link(name, &params, duration, outside)?, params.shares))
    };
    let mut links = Vec::new();
    let mut shares = Vec::new();
    for (name, value) in tables.iter() {
        let (link, partner) = read(name, value).map_err(|error| error.at(name).at("links"))?;
        links.push(link);
        shares.extend(partner.map(|partner| (name, partner)));
    }
    for (name, partner) in shares {
        read_shares(name, &partner, &mut links)
            .map_err(|error| error.at("shares").at(name).at("links"))?;
    }
    Ok(links)
}

/// Reads a link in which one key of `before` has changed. `link` contains all keys; the others are
/// not read again.
pub(super) fn read_link_alone(
    link: &Value,
    before: &LinkConfig,
    key: LinkKey,
    outside: Outside<'_>,
) -> Result<LinkConfig> {
    let mut alone = Table::new();
    alone.insert("rate", "1mbit".into()); // There must be one.
    if let Some(value) = link.as_table()?.get(&key.to_text()) {
        alone.insert(key.to_text(), value.clone());
    }
    let params = LinkParams::parse(&Value::Table(alone)).map_err(crate::rate::hinted)?;
    // A rate that varies over time is not read here: its mean is irrelevant.
    let read = read_link(&before.name, &params, Span::MAX, outside)?;
    let mut after = before.clone();
    key.take(&mut after, &read);
    Ok(after)
}

/// Puts two links on one medium, with all links that share it with either.
fn read_shares(name: &str, partner: &str, links: &mut [LinkConfig]) -> Result<()> {
    let (own, other) = (link_index(links, name)?, link_index(links, partner)?);
    if own == other {
        return Err(Error::not_allowed(partner, "the name of another link"));
    }
    let mut media = [own, other];
    for (index, medium) in [own, other].into_iter().zip(&mut media) {
        let link = &mut links[index as usize];
        if link.process.gives_grants() {
            let problem =
                format!("`{}` sends when its trace says, not when a medium is free", link.name);
            return Err(Error::new(problem).given(partner));
        }
        *medium = *link.medium.get_or_insert(index);
    }
    for link in links {
        if link.medium.is_some_and(|medium| media.contains(&medium)) {
            link.medium = media.into_iter().min();
        }
    }
    Ok(())
}

fn read_link(
    name: &str,
    params: &LinkParams,
    duration: Span,
    outside: Outside<'_>,
) -> Result<LinkConfig> {
    check_name(name)?;
    let process = RateProcess::read(&params.rate.to_value(), outside.read_file);
    let process = process.map_err(|error| error.at("rate"))?;
    let delay = DelayProcess::read(&params.delay.to_value(), outside.read_file);
    let delay = delay.map_err(|error| error.at("delay"))?;
    let queue = params.queue.read_with(outside.disciplines).map_err(|error| error.at("queue"))?;
    Ok(LinkConfig {
        name: name.to_string(),
        rate: process.mean(duration),
        delay: delay.mean(duration),
        process,
        framing: params.framing.resolve(),
        way: read_way(params, delay)?,
        medium: None,
        queue,
        shaper: params.shaper.clone(),
        driver: params.driver.clone(),
        thresholds: params.thresholds.0.clone(),
    })
}

/// Reads the propagation keys of a link.
fn read_way(params: &LinkParams, delay: DelayProcess) -> Result<PropagationConfig> {
    let loss = params.loss.as_ref().map(|loss| Loss::read(&loss.to_value()));
    let duplicate = ChanceParams::read(&params.duplicate.to_value());
    if let Some(slot) = &params.slot {
        slot.check().map_err(|error| error.at("slot"))?;
        if params.reordering || params.jitter.as_ref().is_some_and(|jitter| jitter.reorder > 0.0) {
            let problem =
                "packets that arrive in slots keep their order: no `reordering`, no `reorder`";
            return Err(Error::new(problem).at("slot"));
        }
    }
    Ok(PropagationConfig {
        delay,
        jitter: params.jitter.clone(),
        loss: loss.transpose().map_err(|error| error.at("loss"))?,
        duplicate: duplicate.map_err(|error| error.at("duplicate"))?,
        reordering: params.reordering,
        slot: params.slot.clone(),
    })
}

/// Reads an optional group of parameters.
fn read_group<T: Params>(table: &Table, key: &str) -> Result<Option<T>> {
    let read = |value: &Value| value.as_table().and_then(|group| read_params(group, &[]));
    table.get(key).map(|value| read(value).map_err(|error| error.at(key))).transpose()
}

fn read_flows(table: &Table, links: &[LinkConfig], outside: Outside<'_>) -> Result<Vec<FlowGroup>> {
    let defaults = transport_of(table, outside)?;
    let tables = named_tables(table, "flows", "[flows.bulk]")?;
    tables
        .iter()
        .map(|(name, value)| {
            read_flow(name, value, Span::ZERO, links, &defaults, outside)
                .map_err(|error| error.at(name).at("flows"))
        })
        .collect()
}

/// Returns the default transport of a scenario's flows.
pub(super) fn transport_of(table: &Table, outside: Outside<'_>) -> Result<TcpParams> {
    let mut defaults = TcpParams::default();
    if let Some(value) = table.get("transport") {
        let table = value.as_table().map_err(|error| error.at("transport"))?;
        update_transport(&mut defaults, table, outside)?;
    }
    Ok(defaults)
}

/// Sets keys of a transport.
pub(super) fn update_transport(
    transport: &mut TcpParams,
    table: &Table,
    outside: Outside<'_>,
) -> Result<()> {
    let read = transport.read_with(table, outside.controls);
    read.and_then(|()| transport.check()).map_err(|error| error.at("transport"))
}

/// Refuses the name of a link or a group of flows that needs more than one line.
fn check_name(name: &str) -> Result<()> {
    match name.contains(breaks_line) {
        true => Err(Error::new("expected a name on one line, without control characters")),
        false => Ok(()),
    }
}

/// Returns a workload without round trips of TLS, which the transport's handshake has (RFC 9001).
/// `given` is its value in the scenario.
fn without_tls(given: &Value, workload: WorkloadConfig) -> Result<WorkloadConfig> {
    if let Value::Table(table) = given
        && let Some(tls) = table.get("tls").filter(|tls| tls.to_string() != "0")
    {
        return Err(Error::not_allowed(tls, "0: the transport's handshake contains that of TLS"));
    }
    match workload.entries().iter().any(|(key, _)| *key == "tls") {
        true => workload.updated_with(
            &Value::Table([("tls".to_string(), 0u64.to_value())].into_iter().collect()),
            &(),
        ),
        false => Ok(workload),
    }
}

/// Reads a group of flows that begins at `begin` unless it has a `start`.
pub(super) fn read_flow(
    name: &str,
    value: &Value,
    begin: Span,
    links: &[LinkConfig],
    defaults: &TcpParams,
    outside: Outside<'_>,
) -> Result<FlowGroup> {
    check_name(name)?;
    let value = with_columns(value, outside.read_file)?;
    let table = value.as_table()?;
    let mut params: FlowParams = read_params(table, &[])?;
    let mut required = FlowParams::REQUIRED.iter().map(|(key, _)| key);
    if let Some(key) = required.find(|key| table.get(key).is_none()) {
        return Err(missing_key(key, &links[0].name));
    }
    if params.access_delay.ceiling() > MAX_ACCESS.as_nanos() as f64 {
        let given = params.access_delay.to_text();
        return Err(Error::not_allowed(given, format!("at most {MAX_ACCESS}")).at("access_delay"));
    }
    if params.size == Some(Bytes::new(0)) {
        let allowed = "at least 1b: a flow without packets measures nothing";
        return Err(Error::not_allowed("0b", allowed).at("size"));
    }
    let mut workload = params.workload.read_with(&()).map_err(|error| error.at("workload"))?;
    if params.size.is_some() && workload.has_app() {
        let problem =
            format!("`{}` has sizes of its own, if any: this is for bulk flows", workload.name());
        return Err(Error::new(problem).at("size"));
    }
    let mut transport = defaults.clone();
    if let Some(table) = &params.transport {
        update_transport(&mut transport, table, outside)?;
    }
    if transport.mss.get() + transport.header.get() > MAX_PACKET {
        let allowed = format!("at most {MAX_PACKET}b with its header");
        return Err(Error::not_allowed(transport.mss, allowed).at("transport.mss"));
    }
    let endpoint = params.endpoint.read_with(outside.endpoints);
    let endpoint = endpoint.map_err(|error| error.at("endpoint"))?;
    if endpoint.downcast_ref::<TfrcParams>().is_some() {
        TfrcParams::check_group(workload.has_app().then(|| workload.name()), table)?;
    }
    if endpoint.has_tls() {
        workload = without_tls(&params.workload.to_value(), workload)
            .map_err(|error| error.at("tls").at("workload"))?;
    }
    let start = params.start.or_else(|| Start::spread(begin, params.count));
    params.reroutes.sort_by_key(|change| change.at);
    let mut group = FlowGroup {
        name: name.to_string(),
        path: read_path("path", &params.path, links)?,
        return_path: read_path("return_path", &params.return_path, links)?,
        reroutes: read_reroutes(&params.reroutes, links).map_err(|error| error.at("reroutes"))?,
        params,
        workload,
        start,
        endpoint,
        transport,
        is_added: false,
    };
    complete(&mut group);
    Ok(group)
}

/// Makes the parameters of a group canonical, with every default filled in.
fn complete(group: &mut FlowGroup) {
    let FlowGroup { params, workload, start, endpoint, transport, .. } = group;
    let usual = FlowParams::default();
    if params.access_delay.ceiling() == 0.0 {
        params.access_delay = usual.access_delay;
    }
    params.workload = Chosen::from_table(workload.to_table());
    params.start = Auto::Set(*start);
    params.endpoint = match endpoint.is_tcp() {
        true => usual.endpoint,
        false => Chosen::from_table(endpoint.to_table()),
    };
    let mut used = transport.canonical();
    if endpoint.downcast_ref::<TfrcParams>().is_some() {
        used.retain(|(key, _)| TfrcParams::USED.contains(key));
    }
    let used = used.into_iter().map(|(key, value)| (key.to_string(), value));
    params.transport = Some(used.collect());
}

/// Reads the route changes of a group.
fn read_reroutes(changes: &[RerouteParams], links: &[LinkConfig]) -> Result<Vec<Reroute>> {
    let read = |change: &RerouteParams| {
        let path = |key, names: &Option<LinkNames>| {
            names.as_ref().map(|names| read_path(key, names, links)).transpose()
        };
        let path_of = [("path", &change.path), ("return_path", &change.return_path)];
        let [path, return_path] = path_of.map(|(key, names)| path(key, names));
        let (path, return_path) = (path?, return_path?);
        if path.is_none() && return_path.is_none() {
            return Err(Error::new("nothing changes").hint("path, return_path or both"));
        }
        Ok(Reroute { at: change.at, path, return_path })
    };
    changes.iter().map(read).collect()
}

fn read_path(key: &str, names: &LinkNames, links: &[LinkConfig]) -> Result<Vec<u32>> {
    if names.0.is_empty() || names.0.len() > MAX_HOPS {
        let allowed = format!("1 to {MAX_HOPS} link names");
        return Err(Error::not_allowed(names.to_text(), allowed).at(key));
    }
    let indices = names.0.iter().map(|name| link_index(links, name));
    indices.collect::<Result<_>>().map_err(|error| error.at(key))
}

pub(super) fn link_index(links: &[LinkConfig], name: &str) -> Result<u32> {
    index("link", name, links.iter().map(|link| link.name.as_str()))
}

/// Returns the index of the group of flows with this name.
pub(crate) fn group_index(flows: &[FlowGroup], name: &str) -> Result<u32> {
    index("group of flows", name, flows.iter().map(|flow| flow.name.as_str()))
}

fn index<'a>(
    what: &'static str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<u32> {
    let index = names.clone().position(|known| known == name);
    index.map(|index| index as u32).ok_or_else(|| Error::unknown(what, name, names))
}
