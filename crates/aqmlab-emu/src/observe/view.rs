//! Live statistics of a running emulator: `aqmlab top`.
//!
//! # Protocol
//! The statistics are in a file in memory, which has no name in any file system and ends with the
//! emulator. Anyone permitted to inspect this process (the same user, and root) finds it in
//! `/proc`, from any terminal and any namespace; the terminal of the command is not used. The
//! viewer writes the first eight bytes: the end of its subscription, on the monotonic clock.
//! Statistics are computed only during a subscription. The rest is one line of JSON.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;

use aqmlab_core::{Span, Time};
use aqmlab_sim::network::Network;
use aqmlab_sim::network::probe::TimeHistogram;

use crate::packet::buffers::Buffers;
use crate::sys::files::memory_file;
use crate::sys::time::monotonic;

/// Name of the file in `/proc`: `/memfd:aqmlab-view`.
const NAME: &str = "aqmlab-view";
/// Offset of the line.
const TEXT: u64 = 8;
/// Interval of checks for a viewer.
pub const PERIOD: Span = Span::from_millis(500);

/// Statistics file, with its last contents.
pub struct View {
    file: Option<File>,
    routes: [Vec<u32>; 2],
    before: Vec<TimeHistogram>,
    next: Time,
    is_watched: bool,
}

impl View {
    /// Creates the file. Without one, live statistics are unavailable, and the emulator still runs.
    /// `routes` are the links to the command, and those from it; both are empty with several hosts.
    pub fn open(routes: [Vec<u32>; 2]) -> Self {
        let file = memory_file(NAME).ok();
        let next = if file.is_some() { Time::ZERO } else { Time::MAX };
        View { file, routes, before: Vec::new(), next, is_watched: false }
    }

    /// Returns the time of the next update.
    pub fn deadline(&self) -> Time {
        self.next
    }

    /// Writes the statistics if a viewer is subscribed and an update is due.
    pub fn attend(&mut self, now: Time, network: &Network<Buffers>) {
        if now < self.next {
            return;
        }
        self.next = now + PERIOD;
        let Some(file) = &self.file else { return };
        let mut until = [0; TEXT as usize];
        let has_watcher =
            file.read_exact_at(&mut until, 0).is_ok() && u64::from_le_bytes(until) > monotonic();
        if !has_watcher {
            self.is_watched = false;
            return;
        }
        let sojourns: Vec<TimeHistogram> =
            network.links().map(|link| link.sojourn().clone()).collect();
        // A new viewer sees delays from now on.
        if std::mem::replace(&mut self.is_watched, true) {
            let text = self.text(now, network, &sojourns);
            // A viewer that reads a partial line reads again.
            let _ = file.write_all_at(text.as_bytes(), TEXT);
            let _ = file.set_len(TEXT + text.len() as u64);
        }
        self.before = sojourns;
    }

    fn text(&self, now: Time, network: &Network<Buffers>, sojourns: &[TimeHistogram]) -> String {
        let mut text = format!("{{\"time_s\":{:.6},\"links\":[", now.as_secs_f64());
        for (index, link) in network.links().enumerate() {
            let (counts, backlog) = (link.counts(now), link.queue.backlog());
            let place = index as u32;
            let direction = match &self.routes {
                [down, _] if down.contains(&place) => "down",
                [_, up] if up.contains(&place) => "up",
                [down, up] if down.is_empty() && up.is_empty() => "between hosts",
                _ => continue,
            };
            let comma = if text.ends_with('[') { "" } else { "," };
            let name: String =
                link.name.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
            let [p50, p95, p99] =
                sojourns[index].quantiles_since(&self.before[index], [0.5, 0.95, 0.99]);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{comma}{{\"link\":\"{name}\",\"direction\":\"{direction}\",\
                 \"arrived\":{},\"delivered\":{},\"delivered_bytes\":{},\"dropped\":{},\
                 \"marked\":{},\"lost\":{},\"backlog_packets\":{},\"backlog_bytes\":{},\
                 \"sojourn_p50_s\":{},\"sojourn_p95_s\":{},\"sojourn_p99_s\":{}}}",
                counts.arrived,
                counts.delivered,
                counts.delivered_bytes,
                counts.dropped_total(),
                counts.marked_total(),
                link.way_at(now).lost,
                backlog.packets,
                backlog.bytes,
                number(p50),
                number(p95),
                number(p99),
            );
        }
        text + "]}\n"
    }
}

fn is_plain(c: char) -> bool {
    !c.is_control() && c != '"' && c != '\\'
}

/// Formats a number as JSON, which has no NaN.
fn number(value: f64) -> String {
    if value.is_nan() { "null".into() } else { format!("{value:.9}") }
}
