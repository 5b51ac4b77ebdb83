//! Notes about results that may mislead, in plain text.
//!
//! Each function examines one question after a run, and returns a [`Note`] if needed. Disciplines
//! report conditions that only they know (PIE without a rate sample) in their own `notes`.
//! Numbers are those of the results: from the end of the warm-up, unless a note says otherwise.

mod senders;

use aqmlab_aqm::{Counts, LinkEnv, Note, Reason};
use aqmlab_core::{Bytes, Framing, Span, Time};

use super::simulation::{MTU, Simulation};
use crate::endpoints::flow::{Flow, NONE};
use crate::network::{HEADER, LinkConfig, QueuedLink};
use crate::rate::RateProcess;
use crate::scenario::{FlowGroup, Scenario};
use crate::workload::app::Activity;
use crate::workload::cbr::CbrParams;

/// Note with its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Subject of the note.
    pub about: About,
    /// The note.
    pub note: Note,
}

/// Subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Whole run.
    Run,
    /// Link, by index.
    Link(u32),
    /// Group of flows, by index.
    Group(u32),
}

/// Utilisation below which a link has no significant queue.
const IDLE: f64 = 0.5;
/// Number of packets below which a 99th percentile is close to the maximum.
const FEW_PACKETS: u64 = 1000;
/// Number of slowest cycles over which averages settle.
const CYCLES: u64 = 3;
/// A note on BLUE requires that one in this many of COBALT's signals is BLUE's.
const BLUE_SHARE: u64 = 4;
/// Delay after the queue that requires a note.
const HIDDEN: Span = Span::from_millis(2);
/// Mean queuing delay of the return path that LEDBAT must not count as its own.
const WAY_BACK: Span = Span::from_millis(10);
/// One unfinished transfer in so many lowers the mean times of a workload that never ends.
const UNFINISHED: u64 = 10;

/// Returns all notes of a run.
pub(crate) fn diagnose(simulation: &Simulation) -> Vec<Finding> {
    let run = Examined { simulation, scenario: &simulation.scenario };
    if let Some(note) = run.no_traffic() {
        return vec![Finding { about: About::Run, note }];
    }
    let mut findings = Vec::new();
    let mut add = |about, notes: Vec<Note>| {
        findings.extend(notes.into_iter().map(|note| Finding { about, note }));
    };
    add(About::Run, run.unfinished().into_iter().collect());
    for (index, (link, config)) in simulation.network.links().zip(&run.scenario.links).enumerate() {
        let (counts, way) = link.measured(simulation.now);
        let (lost, busy) = (way.lost, run.busy(index));
        let site = Site { link, config, counts, lost, busy, end: simulation.now };
        let mut notes = site.at_any_link();
        notes.extend(run.phase_effects(index as u32, &site));
        if index == run.scenario.bottleneck {
            notes.extend(run.bottleneck_elsewhere(&site));
            notes.extend(site.at_the_bottleneck());
            notes.extend(run.short_for_the_discipline(&site));
        }
        notes.extend(link.queue.notes());
        add(About::Link(index as u32), notes);
    }
    for (index, group) in run.scenario.flows.iter().enumerate() {
        if let Some(note) = run.never_started(index) {
            add(About::Group(index as u32), vec![note]);
            continue;
        }
        let flows = simulation.flows.iter().filter(|flow| flow.group == index as u32);
        let notes = [
            run.failed(flows.clone()),
            run.partly_started(flows.clone()),
            run.never_played(index),
            senders::held_by_receiver(flows.clone().filter_map(Flow::tcp), group),
            senders::no_marks(flows.clone().filter_map(Flow::tcp), group),
            senders::hole_left_open(flows.filter_map(Flow::tcp), group.transport.machine()),
            run.short_for_the_control(group),
            run.queue_on_the_way_back(group),
        ];
        let mut notes: Vec<Note> = notes.into_iter().flatten().collect();
        notes.extend(group.endpoint.notes());
        add(About::Group(index as u32), notes);
    }
    findings
}

/// Returns the drops due to a full buffer.
fn overflows(counts: &Counts) -> u64 {
    let dropped = Reason::ALL.into_iter().filter(|reason| !reason.is_signal());
    dropped.map(|reason| counts.dropped[reason as usize]).sum()
}

/// Link under examination.
struct Site<'a> {
    link: &'a QueuedLink,
    config: &'a LinkConfig,
    counts: Counts,
    lost: u64,
    /// See [`Examined::busy`].
    busy: f64,
    end: Time,
}

impl Site<'_> {
    fn discipline(&self) -> &str {
        self.config.queue.name()
    }

    /// Returns the congestion signals of the discipline: drops and marks.
    fn signals(&self) -> u64 {
        self.by_queue() - self.overflows()
    }

    /// Returns the drops and marks.
    fn by_queue(&self) -> u64 {
        self.counts.dropped_total() + self.counts.marked_total()
    }

    fn overflows(&self) -> u64 {
        overflows(&self.counts)
    }

    fn at_any_link(&self) -> Vec<Note> {
        let notes = [
            self.overflow_first(),
            self.blue_set_off(),
            self.capable_dropped(),
            self.hidden(),
            self.loses_packets(),
        ];
        notes.into_iter().flatten().collect()
    }

    fn at_the_bottleneck(&self) -> Vec<Note> {
        let no_load = self.no_load();
        // The load, or the discipline itself, may explain why it never acted.
        let is_explained = no_load.is_some() || !self.link.queue.notes().is_empty();
        let never_acted = if is_explained { None } else { self.never_acted() };
        [no_load, never_acted, self.few_packets()].into_iter().flatten().collect()
    }

    fn no_load(&self) -> Option<Note> {
        let busy = self.busy;
        let is_idle = self.counts.arrived > 0 && busy < IDLE && self.by_queue() == 0;
        is_idle.then(|| Note {
            id: "no-load",
            text: format!(
                "the link was busy for {} of the time and dropped or marked no packet: there \
                 was no queue to manage. Use more or longer flows, or a slower link.",
                percent(busy)
            ),
        })
    }

    /// CoDel always below its target, PIE without a rate sample, a buffer too small to reach the
    /// target.
    fn never_acted(&self) -> Option<Note> {
        let probe = &self.link.probe;
        if !self.config.queue.gives_signals() || self.signals() > 0 || probe.sojourn.count() == 0 {
            return None;
        }
        let name = self.discipline();
        let text = match self.overflows() {
            0 => format!(
                "{name} never acted: it dropped and marked no packet. No packet waited longer than \
                 {}; the results equal those of a plain FIFO.",
                rounded(probe.sojourn.max())
            ),
            overflows => format!(
                "{name} never acted: all {overflows} drops came from a full buffer, as with \
                 drop-tail. Use a larger `limit` or a lower target."
            ),
        };
        Some(Note { id: "aqm-never-acted", text })
    }

    fn overflow_first(&self) -> Option<Note> {
        let (overflow, signal) = (self.link.probe.first_overflow?, self.link.probe.first_signal?);
        let is_seen = self.config.queue.gives_signals() && self.overflows() > 0;
        (is_seen && overflow < signal).then(|| Note {
            id: "overflow-before-aqm",
            text: format!(
                "the buffer overflowed {} before {} first signalled congestion, at {}; {} of {} \
                 drops and marks are overflows. A larger `limit` shows the discipline alone.",
                rounded(signal - overflow),
                self.discipline(),
                rounded(signal - Time::ZERO),
                self.overflows(),
                self.by_queue()
            ),
        })
    }

    /// COBALT's BLUE: a few packets over the limit raise its probability, and thousands of empty
    /// queues are needed to lower it. The trigger may be in the warm-up.
    fn blue_set_off(&self) -> Option<Note> {
        let [blue, law] = [Reason::Blue, Reason::Cobalt].map(|reason| reason as usize);
        let by_law = self.counts.dropped[law] + self.counts.marked[law];
        // Among disciplines with BLUE, COBALT-based ones also have a control law.
        let has_law = self.config.queue.settings().iter().any(|(key, _)| *key == "interval");
        let by_blue = self.counts.dropped[blue];
        let is_noted = by_blue > 0 && BLUE_SHARE * by_blue >= by_blue + by_law;
        (has_law && is_noted).then(|| Note {
            id: "blue-set-off",
            text: format!(
                "BLUE dropped {by_blue} packets and the control law dropped or marked {by_law}: \
                 the buffer overflowed by {} packets, which set BLUE off, and its probability falls \
                 slowly. The result says more about `limit` than about `target` and `interval`.",
                overflows(&self.link.queue.counts()),
            ),
        })
    }

    fn capable_dropped(&self) -> Option<Note> {
        let dropped = self.link.probe.capable_dropped;
        let settings = self.config.queue.settings();
        let is_off =
            settings.iter().any(|(key, text)| *key == "ecn" && text.to_string() == "false");
        let why = match is_off {
            true => "its `ecn` is off",
            false if self.counts.marked_total() == 0 => "it marked none",
            false => "it drops them at overload",
        };
        (dropped > 0).then(|| Note {
            id: "ecn-capable-dropped",
            text: format!(
                "{} dropped {dropped} ECN-capable packets instead of marking them: {why}.",
                self.discipline()
            ),
        })
    }

    fn hidden(&self) -> Option<Note> {
        let driver = self.link.egress.as_ref()?.summary;
        let mean = Span::from_secs_f64(driver.times.mean());
        let seen = self.link.probe.sojourn.mean();
        (mean > HIDDEN && mean.as_secs_f64() > seen).then(|| Note {
            id: "hidden-queue",
            text: format!(
                "packets waited {} in the driver and {} in the queue before it, on average: the \
                 discipline does not control most of the delay. Use a lower `driver.limit`, or \
                 `driver.bql`.",
                rounded(mean),
                rounded(Span::from_secs_f64(seen))
            ),
        })
    }

    /// Random losses and outages also slow senders down.
    fn loses_packets(&self) -> Option<Note> {
        let (lost, by_queue) = (self.lost, self.by_queue());
        (lost > by_queue).then(|| Note {
            id: "losses-of-the-link",
            text: format!(
                "the link itself lost {lost} packets (`loss`), {} of those that it sent; its queue \
                 dropped or marked {by_queue}: most losses here are not signals of {}.",
                percent(lost as f64 / self.counts.delivered.max(lost) as f64),
                self.discipline()
            ),
        })
    }

    fn few_packets(&self) -> Option<Note> {
        let packets = self.link.probe.sojourn.count();
        (packets > 0 && packets < FEW_PACKETS).then(|| Note {
            id: "few-packets",
            text: format!(
                "only {packets} packets passed: high percentiles of their delay are unreliable. \
                 Use longer runs or more replications."
            ),
        })
    }
}

/// Run under examination.
struct Examined<'a> {
    simulation: &'a Simulation,
    scenario: &'a Scenario,
}

impl Examined<'_> {
    /// Returns the used share of what a link could send: of the rate that shapers leave it, and
    /// together with the other links of its medium.
    fn busy(&self, index: usize) -> f64 {
        let config = &self.scenario.links[index];
        let used = |n| self.simulation.network.link(n).utilisation(self.simulation.now);
        let used: f64 = if config.medium.is_none() {
            used(index)
        } else {
            let is_beside = |n: &usize| self.scenario.links[*n].medium == config.medium;
            (0..self.scenario.links.len()).filter(is_beside).map(used).sum()
        };
        used * config.rate.as_bps() as f64 / config.service_rate().as_bps() as f64
    }

    /// Connections that failed: the first reason, and how to repeat the run.
    fn failed<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone) -> Option<Note> {
        let reason = flows.clone().find_map(Flow::failure)?;
        let failed = flows.clone().filter(|flow| flow.failure().is_some()).count();
        let (seed, replication) = (self.scenario.seed, self.simulation.replication);
        Some(Note {
            id: "connection-failed",
            text: format!(
                "{failed} of {} connections failed. The first: {reason} (seed {seed}, replication \
                 {replication}).",
                flows.count()
            ),
        })
    }

    fn no_traffic(&self) -> Option<Note> {
        let arrived: u64 = self.simulation.network.links().map(|l| l.queue.counts().arrived).sum();
        (arrived == 0).then(|| Note {
            id: "no-traffic",
            text: "no packet arrived at any link: did the flows start before the end?".into(),
        })
    }

    fn never_started(&self, group: usize) -> Option<Note> {
        let (end, first) = (self.simulation.now, self.simulation.first_starts.get(group));
        let when = match first {
            Some(first) if *first <= end => return None,
            Some(first) => {
                format!("the first was scheduled to start at {}", rounded(*first - Time::ZERO))
            }
            None => "they were scheduled to be added later".into(),
        };
        Some(Note {
            id: "never-started",
            text: format!(
                "no flow of this group started: {when}, and the run ended at {}. Its goodput of 0 \
                 is not a measurement.",
                rounded(end - Time::ZERO)
            ),
        })
    }

    /// Flows of a group that the run ended before.
    fn partly_started<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone) -> Option<Note> {
        let end = self.simulation.now;
        let missing = flows.clone().filter(|flow| flow.start >= end).count();
        (missing > 0).then(|| Note {
            id: "never-started",
            text: format!(
                "{missing} of {} flows had not started when the run ended at {}: no mean and no \
                 index of fairness includes them.",
                flows.count(),
                rounded(end - Time::ZERO)
            ),
        })
    }

    fn never_played(&self, group: usize) -> Option<Note> {
        let players = self.simulation.scores(group as u32).never_started;
        (players > 0).then(|| Note {
            id: "playback-never-started",
            text: format!(
                "playback never started for {players} of the players: `stalls` and `stalled` are \
                 means over the others, if any."
            ),
        })
    }

    /// Datagrams that do not arrive are lost, not unfinished.
    fn unfinished(&self) -> Option<Note> {
        let flows = || self.simulation.flows.iter();
        let finite = || flows().filter(|flow| flow.app == NONE && flow.size.is_some());
        let has_streams = |group| flows().any(|f| f.group == group && !f.is_of_datagrams());
        let of_apps = |count: fn(&Activity) -> u64| -> usize {
            let groups = self.scenario.flows.iter().zip(&self.simulation.activities).zip(0..);
            let noted = groups.filter(|((group, activity), number)| {
                let left = activity.started - activity.completed;
                let many = !activity.times.is_empty() && left * UNFINISHED > activity.started;
                let is_noted = group.workload.is_finite() || many && activity.completed > 0;
                is_noted && group.workload.has_app() && has_streams(*number)
            });
            noted.map(|((_, activity), _)| count(activity) as usize).sum()
        };
        let started = finite().count() + of_apps(|activity| activity.started);
        let unfinished = finite().filter(|flow| flow.completed().is_none()).count()
            + of_apps(|activity| activity.started - activity.completed);
        (unfinished > 0).then(|| Note {
            id: "unfinished-transfers",
            text: format!(
                "{unfinished} of {started} transfers had not finished when the run ended: no mean and \
                 no percentile includes them. Use a longer `duration`."
            ),
        })
    }

    /// Flows of constant rate that enter the network at this link, with packets that arrive exactly
    /// when transmissions end: Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched
    /// Gateways", 1992.
    fn phase_effects(&self, index: u32, site: &Site) -> Option<Note> {
        let is_constant = matches!(site.config.process, RateProcess::Constant(_));
        if !is_constant || site.config.framing != Framing::NONE || site.overflows() == 0 {
            return None;
        }
        let rate = site.config.service_rate();
        let times = |group: &FlowGroup| match group.workload.downcast_ref::<CbrParams>() {
            Some(load) if load.vary == 0.0 && group.path.first() == Some(&index) => {
                let (load, rate) = (load.rate.as_bps(), rate.as_bps());
                Some(load / rate).filter(|times| *times > 0 && load % rate == 0)
            }
            _ => None,
        };
        let flows = &self.scenario.flows;
        let (group, times) =
            flows.iter().find_map(|group| times(group).map(|times| (group, times)))?;
        let passes =
            |group: &&FlowGroup| group.path.contains(&index) || group.return_path.contains(&index);
        let at_the_link: u64 = flows.iter().filter(passes).map(|group| group.params.count).sum();
        (at_the_link > 1).then(|| Note {
            id: "phase-effects",
            text: format!(
                "each of the flows {} sends at {times} times the {rate} of the link, so that its \
                 packets arrive exactly when others leave and the queue has room: the order \
                 of simultaneous events decides whose packets are dropped. `vary` spreads them.",
                group.name
            ),
        })
    }

    /// Most queuing delay was at a link other than the bottleneck.
    fn bottleneck_elsewhere(&self, site: &Site) -> Option<Note> {
        let waited = |link: &QueuedLink| link.probe.sojourn.mean();
        let here = waited(site.link);
        let links = self.simulation.network.links().enumerate();
        let (index, longest) = links
            .filter(|(_, link)| waited(link) > 0.0)
            .max_by(|(_, a), (_, b)| waited(a).total_cmp(&waited(b)))?;
        let busy = self.busy(index);
        let is_elsewhere = longest.name != site.link.name
            && (here.is_nan() || waited(longest) > 2.0 * here)
            && busy > site.busy;
        let of = |link: &QueuedLink, busy| {
            let mean = Span::from_secs_f64(waited(link));
            format!("{} ({} on average, {} busy)", link.name, rounded(mean), percent(busy))
        };
        is_elsewhere.then(|| Note {
            id: "bottleneck-elsewhere",
            text: format!(
                "the queue was at {}, not at {}: the discipline there had little effect.",
                of(longest, busy),
                of(site.link, site.busy)
            ),
        })
    }

    /// RFC 6817, section 2: LEDBAT uses one-way delays, which require timestamps.
    fn queue_on_the_way_back(&self, group: &FlowGroup) -> Option<Note> {
        let transport = &group.transport;
        if transport.timestamps || transport.congestion_control.name() != "ledbat" {
            return None;
        }
        let waited = self.waited(&group.return_path);
        (waited >= WAY_BACK).then(|| Note {
            id: "ledbat-counts-the-way-back",
            text: format!(
                "without timestamps LEDBAT measures round-trip times and counts the queuing delay \
                 of the return path ({} on average) as its own: it yields to that queue. Use \
                 transport.timestamps = true for one-way delays.",
                rounded(waited),
            ),
        })
    }

    /// Returns the mean queuing delay of the links of a path, including their drivers.
    fn waited(&self, path: &[u32]) -> Span {
        let links = path.iter().map(|link| self.simulation.network.link(*link as usize));
        let mean = |link: &QueuedLink| {
            let driver =
                link.egress.as_ref().map_or(0.0, |egress| egress.summary.times.mean().max(0.0));
            link.probe.sojourn.mean().max(0.0) + driver
        };
        Span::from_secs_f64(links.map(mean).sum())
    }

    /// Loss-based windows oscillate with a period that the control knows. At a loss they fill the
    /// path and the queue, and round trips include the time in the queue: Appenzeller, Keslassy and
    /// McKeown, "Sizing Router Buffers", 2004, section 2. The 95th percentile of that time is its
    /// peak, without that of a slow start. A queue without a drop or mark has not peaked yet.
    fn short_for_the_control(&self, group: &FlowGroup) -> Option<Note> {
        let transport = &group.transport;
        if !group.is_endless_bulk() || !group.endpoint.is_tcp() {
            return None;
        }
        let (narrow, rate) = group
            .path
            .iter()
            .map(|link| (*link, self.scenario.links[*link as usize].service_rate()))
            .min_by_key(|(_, rate)| *rate)?;
        let shared = self.scenario.flows.iter().filter(|g| g.path.contains(&narrow));
        let flows: u64 = shared.filter(|g| g.is_endless_bulk()).map(|g| g.params.count).sum();
        let link = self.simulation.network.link(narrow as usize);
        let counts = link.queue.counts();
        let [mut rtt, mut full] = [self.scenario.base_rtt_over(narrow as usize); 2];
        if counts.dropped_total() + counts.marked_total() > 0 {
            rtt += self.waited(&group.path) + self.waited(&group.return_path);
            full += Span::from_secs_f64(link.probe.sojourn.quantile(0.95).max(0.0));
        }
        let packet = Bytes::new(transport.mss.get() + transport.header.get());
        let each = rate.transmission_time(packet).max(Span::from_nanos(1));
        let window = full.as_secs_f64() / each.as_secs_f64() / flows as f64;
        let control = &transport.congestion_control;
        let cycle = control.cycle(window, rtt.as_secs_f64(), transport.delayed_ack)?;
        let needed = Span::from_secs_f64(cycle * CYCLES as f64);
        let [_, latest] = group.start.range();
        let lasted = self.simulation.now.saturating_since(Time::ZERO + latest);
        (Span::ZERO < lasted && lasted < needed).then(|| Note {
            id: "run-too-short",
            text: format!(
                "these flows ran for {}, but at {rate} and a mean round trip of {} the window of \
                 {} takes {} from one loss to the next: averages depend on the end of the run. \
                 Use at least {}.",
                rounded(lasted),
                rounded(rtt),
                control.name(),
                rounded(Span::from_secs_f64(cycle)),
                rounded(needed)
            ),
        })
    }

    fn short_for_the_discipline(&self, site: &Site) -> Option<Note> {
        let base_rtt = self.scenario.base_rtt_over(self.scenario.bottleneck);
        let env = LinkEnv::new(site.config.service_rate(), base_rtt).with_sizes(MTU, HEADER);
        let (what, span) = site.config.queue.slowest(&env)?;
        let lasted = site.end - Time::ZERO;
        (lasted < span * CYCLES).then(|| Note {
            id: "run-too-short",
            text: format!(
                "the run lasted {}, but {what} takes {} to follow a change: it was not in \
                 equilibrium. Use at least {}.",
                rounded(lasted),
                rounded(span),
                rounded(span * CYCLES)
            ),
        })
    }
}

/// Rounds to three significant digits.
fn rounded(span: Span) -> Span {
    let nanos = span.as_nanos();
    let unit = 10u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Span::from_nanos(nanos.saturating_add(unit / 2) / unit * unit)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
