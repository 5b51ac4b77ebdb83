//! Results of an emulation: those of a simulation, and the precision of the emulator.

use std::collections::BTreeMap;

use aqmlab_aqm::Note;
use aqmlab_core::{Span, Time};
use aqmlab_sim::network::probe::TimeSummary;
use aqmlab_sim::network::series::{Sample, Subject};
use aqmlab_sim::run::diagnosis::{About, Finding};
use aqmlab_sim::scenario::{Change, FlowGroup};
use aqmlab_sim::workload::quantities::Quantity;
use aqmlab_sim::{FlowResult, GroupResult, LinkResult, Observed, RunResult};

use crate::live::intake::Intake;
use crate::live::{Emulated, Live, Writer};
use crate::packet::wire::Unfit;
use crate::params::EmulatorParams;

/// Outcome of an emulation.
pub struct Outcome {
    /// Exit status of the command, by the shell's conventions.
    pub status: i32,
    /// Results of the links.
    pub result: RunResult,
    /// Lateness of departures.
    pub lateness: TimeSummary,
    /// Waiting times of packets before they were read.
    pub input: TimeSummary,
    /// Lateness of wake-ups by the kernel.
    pub wakeups: TimeSummary,
    /// Changes made to the links, then changes not reached.
    pub changes: Vec<Change>,
    /// Remarks for the user, one sentence each.
    pub remarks: Vec<String>,
}

/// Finalises the statistics.
pub(crate) fn to_result(
    emulated: Emulated,
    flows: &[FlowGroup],
    params: &EmulatorParams,
) -> Outcome {
    let Emulated { live, end, status, busy, mut remarks } = emulated;
    let Live { path, writer, wakeups, intake, pace, .. } = live;
    let (lateness, wakeups) = (writer.lateness.summary(), wakeups.summary());
    let input = intake.lateness.summary();
    let (entered, left, mut unfit) = (path.entered, path.left, path.unfit);
    unfit[Unfit::NoRoute as usize] += writer.unroutable;
    let mut finished = path.finish(end);
    remarks.append(&mut finished.remarks);
    let flows_seen = number_flows(&mut finished.links);
    let mut notes: Vec<Note> =
        remarks.into_iter().map(|text| Note { id: "emulator", text }).collect();
    notes.extend(doubts(&writer, &intake, [&lateness, &input], params));
    let remarks = notes.iter().map(|note| note.text.clone()).collect();
    let mut findings: Vec<Finding> =
        notes.into_iter().map(|note| Finding { about: About::Run, note }).collect();
    if !finished.samples.is_empty() {
        finished.samples.extend(lateness_samples(&writer, &intake, finished.end));
        finished.samples.sort_by_key(|sample| sample.time);
    }
    for (link, notes) in finished.notes.into_iter().enumerate() {
        let about = About::Link(link as u32);
        findings.extend(notes.into_iter().map(|note| Finding { about, note }));
    }
    let mut values = vec![
        ("packets_in", entered.packets as f64),
        ("packets_out", left.packets as f64),
        ("packets_under_way", finished.under_way as f64),
        ("packets_not_read_in_time", writer.overrun as f64),
        ("packets_refused_by_device", writer.refused.packets as f64),
        ("processor_s", busy.as_secs_f64()),
        ("gathered_s", pace.departures.interval.as_secs_f64()),
    ];
    values.extend(Unfit::ALL.map(Unfit::name).into_iter().zip(unfit.map(|count| count as f64)));
    // Without traffic: the data of programs are unknown, as headers and retransmissions count too.
    let mut groups = vec![GroupResult::default(); flows.len()];
    // Measurements of the emulator itself are in the first group.
    if let Some(first) = groups.first_mut() {
        let times = [("lateness", &lateness), ("input_lateness", &input)];
        let times = times.into_iter().chain([("timer_lateness", &wakeups)]);
        first.times = times.map(|(name, summary)| (Quantity::of(name), summary.clone())).collect();
        first.values =
            values.into_iter().map(|(name, value)| (Quantity::of(name), value)).collect();
    }
    let result = RunResult {
        replication: 0,
        observed: Observed::Links,
        end: finished.end,
        warmup: finished.warmup,
        events: finished.events,
        groups,
        links: finished.links,
        flows: flows_seen,
        findings,
        samples: finished.samples,
        flow_rows: Vec::new(),
    };
    let changes = finished.changes;
    Outcome { status, result, lateness, input, wakeups, changes, remarks }
}

/// Returns reasons to doubt the results. `lateness` is that of departures; `input` are the waiting
/// times before packets were read.
fn doubts(
    writer: &Writer,
    intake: &Intake,
    lateness: [&TimeSummary; 2],
    params: &EmulatorParams,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let [output, input] = lateness;
    if let Some(text) = too_late(output, input, params.lateness) {
        notes.push(Note { id: "late", text });
    }
    if !intake.sees_sleep() {
        let text = "this kernel does not report how long the emulator waited for a processor \
                    (schedstat): packets may have waited longer to be read than reported";
        notes.push(Note { id: "late", text: text.into() });
    }
    let stops = intake.stops;
    if stops.count > 0 {
        let text = format!(
            "the emulator did not run for {:.2} s, {} in all (longest {:.2} s, first at {:.1} s): it was \
             stopped (SIGSTOP, a frozen or limited control group, a paused machine) or waited for a disk, and \
             held packets up",
            stops.total.as_secs_f64(),
            if stops.count == 1 { "once".into() } else { format!("{} times", stops.count) },
            stops.longest.as_secs_f64(),
            stops.first.as_secs_f64()
        );
        notes.push(Note { id: "stopped", text });
    }
    if writer.overrun > 0 {
        let text = format!(
            "{} packets were lost before they were read: no link counts them",
            writer.overrun
        );
        notes.push(Note { id: "overrun", text });
    }
    notes
}

/// Samples the lateness of the emulator over time.
fn lateness_samples(writer: &Writer, intake: &Intake, end: Time) -> Vec<Sample> {
    let subject = Subject::Emulator;
    let series = [
        ("lateness_max_s", &writer.lateness_series),
        ("input_lateness_max_s", &intake.lateness_series),
    ];
    let samples = series.into_iter().flat_map(|(quantity, series)| {
        series.until(end).map(move |(time, most)| Sample {
            time,
            subject,
            quantity,
            value: most.as_secs_f64(),
        })
    });
    samples.collect()
}

/// Numbers the flows of recorded packets, which have hashes, by their first packets. Returns their
/// rows; none without records.
fn number_flows(links: &mut [LinkResult]) -> Vec<FlowResult> {
    let mut first: BTreeMap<u32, Time> = BTreeMap::new();
    for packet in links.iter().flat_map(|link| &link.packets) {
        let start = first.entry(packet.flow).or_insert(packet.arrival);
        *start = packet.arrival.min(*start);
    }
    let mut order: Vec<(Time, u32)> = first.into_iter().map(|(hash, time)| (time, hash)).collect();
    order.sort_unstable();
    let numbers: BTreeMap<u32, u32> =
        order.iter().zip(0..).map(|((_, hash), number)| (*hash, number)).collect();
    let mut rows: Vec<FlowResult> = order
        .iter()
        .zip(0..)
        .map(|((start, _), index)| FlowResult {
            index,
            start: *start,
            goodput: f64::NAN,
            throughput: f64::NAN,
            ..FlowResult::default()
        })
        .collect();
    for link in links {
        // Packets counted at the last link, or any: the smallest of them.
        let mut passed = vec![(0u64, Time::ZERO); rows.len()];
        for packet in &mut link.packets {
            packet.flow = numbers[&packet.flow];
            if packet.dropped.is_none() {
                let (bytes, last) = &mut passed[packet.flow as usize];
                *bytes += u64::from(packet.size);
                *last = packet.end;
            }
        }
        for (row, (bytes, last)) in rows.iter_mut().zip(passed) {
            if bytes > 0 && last > row.start {
                let rate = bytes as f64 * 8.0 / (last - row.start).as_secs_f64();
                row.throughput = row.throughput.min(rate);
            }
        }
    }
    rows
}

/// Factor by which a single packet may exceed the lateness limit of one in a hundred.
const OUTLIER: u64 = 20;

/// Returns a warning if packets were later than the limit.
fn too_late(lateness: &TimeSummary, input: &TimeSummary, limit: Span) -> Option<String> {
    // The waiting time before a read is not in the lateness where the path's delay covers it.
    let (p99, most) = (lateness.quantiles[4], lateness.max);
    let why = match input.max * 2 > most {
        true => "it could not read packets in time",
        false => "it could not write packets in time",
    };
    let is_often = p99 > limit.as_secs_f64();
    if lateness.count >= 100 && is_often {
        let (late, limit) = (p99 * 1e6, limit.as_secs_f64() * 1e6);
        return Some(format!(
            "one packet in a hundred was held up for more than {late:.0} µs by the emulator (the \
             limit is {limit:.0} µs), one for {:.1} ms ({why}): the machine was too busy for these \
             results",
            most.as_secs_f64() * 1e3
        ));
    }
    (is_often || most > limit * OUTLIER).then(|| {
        format!(
            "the emulator held a packet up for {:.1} ms: {why}, because the machine was busy",
            most.as_secs_f64() * 1e3
        )
    })
}

#[cfg(test)]
mod tests {
    use aqmlab_sim::network::probe::TimeHistogram;

    use super::*;

    #[test]
    fn few_packets_are_no_hundred() {
        let warning = |count, late| {
            let mut times = TimeHistogram::new();
            times.note_many(late, count);
            too_late(&times.summary(), &times.summary(), Span::from_micros(500))
        };
        let late = Span::from_millis(1);
        assert!(warning(99, late).unwrap().starts_with("the emulator held a packet up for 1.0 ms"));
        assert!(warning(100, late).unwrap().starts_with("one packet in a hundred was held up"));
        assert_eq!(warning(100, Span::from_micros(400)), None);
        assert_eq!(warning(0, late), None);
    }
}
