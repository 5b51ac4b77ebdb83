//! What holds of every run.

use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, Span, Time};
use aqmlab_sim::network::probe::TimesSummary;
use aqmlab_sim::scenario::FlowGroup;
use aqmlab_sim::{FlowResult, GroupResult, LinkResult, RunResult, Scenario};

/// The first thing that is wrong with a result.
pub fn check(scenario: &Scenario, result: &RunResult) -> Result<(), String> {
    let fail = |what: String| Err(what);
    if result.end.as_nanos() > scenario.duration.as_nanos() {
        return fail(format!("it ends at {:?}, after {}", result.end, scenario.duration));
    }
    for (config, link) in scenario.links.iter().zip(&result.links) {
        of_link(scenario, result, link).map_err(|what| format!("link {}: {what}", config.name))?;
    }
    for flow in &result.flows {
        let name = &scenario.flows[flow.group as usize].name;
        of_flow(result, flow).map_err(|what| format!("flow {name}.{}: {what}", flow.index))?;
    }
    for (config, group) in scenario.flows.iter().zip(&result.groups) {
        of_group(result, group).map_err(|what| format!("flows {}: {what}", config.name))?;
    }
    let mut before = result.samples.first().map(|sample| sample.time);
    for sample in &result.samples {
        if Some(sample.time) < before || sample.time > result.end {
            return fail(format!("a sample at {:?} comes after {before:?}", sample.time));
        }
        if sample.value.is_nan() || sample.value < 0.0 && sample.quantity.ends_with("_bytes") {
            return fail(format!("a sample of {} is {}", sample.quantity, sample.value));
        }
        before = Some(sample.time);
    }
    Ok(())
}

fn of_link(scenario: &Scenario, result: &RunResult, link: &LinkResult) -> Result<(), String> {
    let counts = &link.counts;
    let gone = counts.delivered + counts.dropped_total();
    // What was waiting at the end of the warm-up leaves without having arrived after it.
    let is_whole = result.warmup == Span::ZERO;
    if is_whole && gone > counts.arrived {
        return Err(format!("{} arrived, {gone} left", counts.arrived));
    }
    let gone = counts.delivered_bytes + counts.dropped_bytes;
    if is_whole && gone > counts.arrived_bytes {
        return Err(format!("{} bytes arrived, {gone} left", counts.arrived_bytes));
    }
    if !(0.0..=1.0).contains(&link.utilisation) {
        return Err(format!("utilisation {}", link.utilisation));
    }
    // What left the queue was sent, but for what is in the driver and on the wire.
    let largest = scenario.flows.iter().map(largest_packet).max().unwrap_or(0) as f64;
    let behind = link.driver.map_or(0, |driver| driver.max_bytes) as f64;
    if counts.delivered_bytes as f64 > link.capacity * (1.0 + 1e-9) + behind + 2.0 * largest {
        let given = (counts.delivered_bytes, link.capacity);
        return Err(format!("{} bytes passed where {} could", given.0, given.1));
    }
    // What left the queue in the warm-up may be lost after it.
    if is_whole && link.way.lost > counts.delivered {
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

/// The most bytes of a packet.
fn largest_packet(group: &FlowGroup) -> u64 {
    let segment = group.transport.mss.get() + group.transport.header.get();
    let settings = group.workload.settings();
    let datagram = settings.iter().find(|(key, _)| *key == "packet");
    let datagram = datagram.and_then(|(_, value)| read_value::<Bytes>(value).ok());
    segment.max(datagram.map_or(0, Bytes::get) + 100).max(70_000)
}

fn of_times(result: &RunResult, name: &str, times: &TimesSummary) -> Result<(), String> {
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
        return Err(format!("{} of {:?} bytes acknowledged", flow.delivered, flow.size));
    }
    if flow.stats.is_some_and(|stats| stats.retransmissions > stats.segments_sent) {
        return Err(format!("{:?}", flow.stats));
    }
    let was_over = flow.finish.is_some_and(|finish| finish <= Time::ZERO + result.warmup);
    let is_rate = flow.goodput >= 0.0 && flow.goodput.is_finite();
    if is_rate == (was_over && result.warmup > Span::ZERO) {
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
