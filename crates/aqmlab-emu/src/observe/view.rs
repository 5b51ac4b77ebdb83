//! Numbers of a running emulator for whoever looks: `aqmlab top`.
//!
//! # How it is seen
//! The numbers stand in a file in memory, which has no name in any file system
//! and is gone with the emulator. Who may look into this process (the same
//! user, and root) finds it in `/proc`, from any terminal and any namespace;
//! the terminal of the command is left alone. The first eight bytes are the
//! viewer's: until when it looks, by the monotonic clock. Nothing is computed
//! while nobody looks. The rest is one line of JSON.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;

use aqmlab_core::{Span, Time};
use aqmlab_sim::network::Network;
use aqmlab_sim::network::probe::TimeHistogram;

use crate::packet::handle::Handle;
use crate::sys::files::memory_file;
use crate::sys::time::monotonic;

/// What the file is called in `/proc`: `/memfd:aqmlab-view`.
const NAME: &str = "aqmlab-view";
/// Where the line begins.
const TEXT: u64 = 8;
/// How often it is looked whether somebody looks.
pub const PERIOD: Span = Span::from_millis(500);

/// The file, and what was in it last.
pub struct View {
    file: Option<File>,
    routes: [Vec<u32>; 2],
    before: Vec<TimeHistogram>,
    next: Time,
    is_watched: bool,
}

impl View {
    /// Makes the file; without one nobody can look, and that is all. `routes`
    /// are the links to the command, and those from it; among several hosts
    /// there are no such.
    pub fn open(routes: [Vec<u32>; 2]) -> Self {
        let file = memory_file(NAME).ok();
        let next = if file.is_some() { Time::ZERO } else { Time::MAX };
        View { file, routes, before: Vec::new(), next, is_watched: false }
    }

    /// When to attend to it next.
    pub fn deadline(&self) -> Time {
        self.next
    }

    /// Writes the numbers if somebody looks and it is time.
    pub fn attend(&mut self, now: Time, network: &Network<Handle>) {
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
        // Who begins to look sees the times from then on.
        if std::mem::replace(&mut self.is_watched, true) {
            let text = self.text(now, network, &sojourns);
            // A viewer that reads it half written reads it again.
            let _ = file.write_all_at(text.as_bytes(), TEXT);
            let _ = file.set_len(TEXT + text.len() as u64);
        }
        self.before = sojourns;
    }

    fn text(&self, now: Time, network: &Network<Handle>, sojourns: &[TimeHistogram]) -> String {
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

/// As JSON has it: there is no NaN.
fn number(value: f64) -> String {
    if value.is_nan() { "null".into() } else { format!("{value:.9}") }
}
