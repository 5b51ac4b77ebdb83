//! Laws between the measures of links and those of the flows over them.

use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, Span};
use aqmlab_sim::endpoints::Direction;
use aqmlab_sim::impairment::DelayProcess;
use aqmlab_sim::network::LinkConfig;
use aqmlab_sim::rate::RateProcess;
use aqmlab_sim::scenario::FlowGroup;
use aqmlab_sim::{RunResult, Scenario, Traffic};

/// The first law that does not hold.
pub fn check(scenario: &Scenario, result: &RunResult) -> Result<(), String> {
    losses_add_up(result)?;
    goodput_passes_the_links(scenario, result)?;
    delays_are_possible(scenario, result)
}

fn traffic(result: &RunResult) -> impl Iterator<Item = &Traffic> {
    result.groups.iter().flat_map(|group| group.traffic.iter().flatten())
}

/// Each packet that a link drops or loses is one of a flow, counted once by its cause; and shares
/// of lost packets are at most 1.
fn losses_add_up(result: &RunResult) -> Result<(), String> {
    let dropped: u64 = result.links.iter().map(|link| link.counts.dropped_total()).sum();
    let lost: u64 = result.links.iter().map(|link| link.way.lost).sum();
    let of_flows = traffic(result).map(|each| {
        let [queues, links] = [each.losses.queues, each.losses.links];
        [queues.data + queues.acks, links.data + links.acks]
    });
    let sums = of_flows.fold([0; 2], |sum, each| [sum[0] + each[0], sum[1] + each[1]]);
    if sums != [dropped, lost] {
        return Err(format!("links dropped {dropped} and lost {lost} packets, of flows {sums:?}"));
    }
    for each in traffic(result) {
        for [all, syns] in [
            [each.losses.queues.data + each.losses.queues.acks, each.losses.queues.syns],
            [each.losses.links.data + each.losses.links.acks, each.losses.links.syns],
        ] {
            if syns > all {
                return Err(format!("{syns} SYNs among {all} lost packets"));
            }
        }
    }
    let delivered = |each: &Traffic| each.delivered_bytes > 0 && each.arrived[1] == 0;
    match traffic(result).any(delivered) {
        true => Err("data are delivered, and no packet arrived".into()),
        false => Ok(()),
    }
}

/// The path of a group's data in a direction.
fn path(group: &FlowGroup, direction: Direction) -> &[u32] {
    match direction {
        Direction::Forward => &group.path,
        Direction::Backward => &group.return_path,
    }
}

/// The goodput of all flows through a link is at most what the link delivered.
fn goodput_passes_the_links(scenario: &Scenario, result: &RunResult) -> Result<(), String> {
    if result.warmup > Span::ZERO {
        return Ok(()); // What the link delivered before may arrive after.
    }
    for (index, (config, link)) in (0..).zip(scenario.links.iter().zip(&result.links)) {
        let mut sum = 0;
        for (group, measured) in scenario.flows.iter().zip(&result.groups) {
            if !group.reroutes.is_empty() {
                continue;
            }
            for direction in Direction::ALL {
                let traffic = measured.traffic[direction as usize];
                let through = traffic.filter(|_| path(group, direction).contains(&index));
                sum += through.map_or(0, |traffic| traffic.delivered_bytes);
            }
        }
        if sum > link.counts.delivered_bytes {
            let delivered = link.counts.delivered_bytes;
            return Err(format!("link {}: goodput {sum} of {delivered} bytes", config.name));
        }
    }
    Ok(())
}

/// No packet is faster than propagation and transmission.
fn delays_are_possible(scenario: &Scenario, result: &RunResult) -> Result<(), String> {
    if !scenario.changes.is_empty() {
        return Ok(());
    }
    for (group, measured) in scenario.flows.iter().zip(&result.groups) {
        for (quantity, times) in &measured.times {
            let Some(direction) = quantity.direction.filter(|_| times.count > 0) else { continue };
            let packet = smallest_packet(group);
            let links = path(group, direction).iter().map(|link| &scenario.links[*link as usize]);
            let delays = links.map(|link| least_delay(link, packet));
            let least = delays.fold(Span::ZERO, |sum, delay| sum + delay);
            if group.reroutes.is_empty() && times.min < least {
                let (name, given) = (&group.name, (times.min, least));
                return Err(format!("flows {name}: a delay of {} below {}", given.0, given.1));
            }
        }
    }
    Ok(())
}

/// The fewest bytes of a packet that are certain.
fn smallest_packet(group: &FlowGroup) -> u64 {
    let settings = group.workload.settings();
    let is_fixed = ["cbr", "probe"].contains(&group.workload.name());
    let packet = settings.iter().find(|(key, _)| is_fixed && *key == "packet");
    let packet = packet.and_then(|(_, value)| read_value::<Bytes>(value).ok());
    packet.map_or(1, Bytes::get)
}

/// Returns the minimum time of a packet of this size over a link, if known.
fn least_delay(link: &LinkConfig, bytes: u64) -> Span {
    let propagation = match &link.way.delay {
        DelayProcess::Constant(delay) if link.way.jitter.is_none() => *delay,
        _ => Span::ZERO,
    };
    let transmission = match &link.process {
        RateProcess::Constant(rate) => {
            let size = link.framing.wire_size(bytes as u32);
            rate.transmission_time(Bytes::new(size.into()))
        }
        _ => Span::ZERO,
    };
    // Fractions of a nanosecond are carried over to the next packet.
    propagation + transmission.saturating_sub(Span::from_nanos(1))
}
