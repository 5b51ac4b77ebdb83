//! Properties that hold for every run.

use aqmlab_core::{Span, Time};
use aqmlab_sim::network::probe::{PacketRecord, TimeSummary};
use aqmlab_sim::{FlowResult, GroupResult, LinkResult, RunResult, Scenario};

use crate::laws;

/// The first thing that is wrong with a result.
pub fn check(scenario: &Scenario, result: &RunResult) -> Result<(), String> {
    if result.end.as_nanos() > scenario.duration.as_nanos() {
        return Err(format!("it ends at {:?}, after {}", result.end, scenario.duration));
    }
    for (config, link) in scenario.links.iter().zip(&result.links) {
        of_link(result, link).map_err(|what| format!("link {}: {what}", config.name))?;
    }
    for flow in &result.flows {
        let name = &scenario.flows[flow.group as usize].name;
        of_flow(result, flow).map_err(|what| format!("flow {name}.{}: {what}", flow.index))?;
    }
    for (config, group) in scenario.flows.iter().zip(&result.groups) {
        of_group(result, group).map_err(|what| format!("flows {}: {what}", config.name))?;
    }
    laws::check(scenario, result)?;
    let mut before = result.samples.first().map(|sample| sample.time);
    for sample in &result.samples {
        if Some(sample.time) < before || sample.time > result.end {
            return Err(format!("a sample at {:?} comes after {before:?}", sample.time));
        }
        if sample.value.is_nan() || sample.value < 0.0 && sample.quantity.ends_with("_bytes") {
            return Err(format!("a sample of {} is {}", sample.quantity, sample.value));
        }
        before = Some(sample.time);
    }
    Ok(())
}

fn of_link(result: &RunResult, link: &LinkResult) -> Result<(), String> {
    let counts = &link.counts;
    let gone = counts.delivered + counts.dropped_total();
    let gone_bytes = counts.delivered_bytes + counts.dropped_bytes;
    if gone > counts.arrived || gone_bytes > counts.arrived_bytes {
        return Err(format!("more left than arrived: {counts:?}"));
    }
    if !(0.0..=1.0).contains(&link.utilisation) {
        return Err(format!("utilisation {}", link.utilisation));
    }
    if counts.delivered_bytes as f64 > link.capacity {
        let given = (counts.delivered_bytes, link.capacity);
        return Err(format!("{} bytes delivered where {} could be", given.0, given.1));
    }
    if link.way.lost > counts.delivered {
        return Err(format!("{} of {} packets lost", link.way.lost, counts.delivered));
    }
    of_times(result, "sojourn", &link.sojourn)?;
    of_times(result, "loss intervals", &link.loss_intervals)?;
    let mean = link.backlog_mean;
    let most = [link.backlog_max.packets as f64, link.backlog_max.bytes as f64];
    if !(0..2).all(|of| mean[of] >= 0.0 && mean[of] <= most[of] * (1.0 + 1e-9)) {
        return Err(format!("mean backlog {mean:?}, largest {most:?}"));
    }
    for excursions in &link.excursions {
        if excursions.longest > excursions.total
            || excursions.total.as_nanos() > result.end.as_nanos()
        {
            return Err(format!("{excursions:?}"));
        }
    }
    if !link.packets.is_empty() && result.warmup == Span::ZERO {
        littles_law(result, link)?;
    }
    let mut before = 0;
    for packet in &link.packets {
        let times = (packet.arrival.as_nanos(), packet.end.as_nanos());
        if times.0 > times.1 || times.1 < before || packet.end > result.end {
            return Err(format!("{packet:?} after {before} ns"));
        }
        before = times.1;
    }
    Ok(())
}

/// Little's law between the mean backlog and the recorded packets. The run itself checks it with
/// the packets that are still queued, which have no record.
fn littles_law(result: &RunResult, link: &LinkResult) -> Result<(), String> {
    let waited = |packet: &PacketRecord| (packet.end - packet.arrival).as_secs_f64();
    let known: f64 = link.packets.iter().map(waited).sum();
    let lasted = (result.end - Time::ZERO).as_secs_f64();
    let queued = (link.counts.arrived - link.packets.len() as u64) as f64;
    let (area, rounding) = (link.backlog_mean[0] * lasted, 1e-9 * (known + 1e-6));
    match (known - rounding..=known + queued * lasted + rounding).contains(&area) {
        true => Ok(()),
        false => Err(format!(
            "a backlog of {area} s, packets that waited {known} s, {queued} still queued"
        )),
    }
}

fn of_times(result: &RunResult, name: &str, times: &TimeSummary) -> Result<(), String> {
    if times.count == 0 {
        return Ok(());
    }
    // A bucket is as wide as 0.1 % of its value.
    let most = times.max.as_secs_f64() * 1.002 + 1e-8;
    let is_sane = times.max.as_nanos() <= result.end.as_nanos()
        && times.min <= times.max
        && times.mean >= times.min.as_secs_f64() * (1.0 - 1e-9)
        && times.mean <= most
        && times.quantiles.iter().all(|quantile| (0.0..=most).contains(quantile))
        && times.quantiles.is_sorted()
        && times.buckets.iter().map(|(_, count)| count).sum::<u64>() == times.count;
    match is_sane {
        true => Ok(()),
        false => Err(format!("{name}: {} to {:?}, {:?}", times.mean, times.max, times.quantiles)),
    }
}

fn of_flow(result: &RunResult, flow: &FlowResult) -> Result<(), String> {
    if flow.finish.is_some_and(|finish| finish < flow.start || finish > result.end) {
        return Err(format!("from {:?} to {:?}", flow.start, flow.finish));
    }
    if flow.size.is_some_and(|size| flow.delivered > size && flow.datagrams.is_none()) {
        return Err(format!("{} of {:?} bytes delivered", flow.delivered, flow.size));
    }
    if flow.stats.is_some_and(|stats| stats.retransmissions > stats.segments_sent) {
        return Err(format!("{:?}", flow.stats));
    }
    let over = flow.completion.map(|completion| flow.start + completion).or(flow.finish);
    if flow.finish.is_some_and(|finish| over > Some(finish)) {
        return Err(format!("{:?} acknowledged at {:?}", flow.completion, flow.finish));
    }
    // A flow has a rate if it was active after the warm-up, were it for no time that can be measured.
    let from = flow.start.max(Time::ZERO + result.warmup);
    let was_active = flow.stopped.or(over).unwrap_or(result.end) > from
        || (flow.completion == Some(Span::ZERO) && from == flow.start);
    let is_rate = flow.goodput >= 0.0 && flow.goodput.is_finite();
    if is_rate != was_active {
        return Err(format!("goodput {}", flow.goodput));
    }
    Ok(())
}

fn of_group(result: &RunResult, group: &GroupResult) -> Result<(), String> {
    if result.warmup == Span::ZERO && group.completed > group.started {
        return Err(format!("{} of {} completed", group.completed, group.started));
    }
    group.times.iter().try_for_each(|(quantity, times)| of_times(result, quantity.name, times))
}
