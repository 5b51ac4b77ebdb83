//! What a recorded sender did, given to ours: the same writes and acknowledgements at the same
//! times, open loop, and its segments and windows compared.
//!
//! A recording leaves open where in a jiffy its clock began, and where in the kernel's timer
//! wheel: both are taken from it ([`Case::clock`]), as are the phases in which BBR entered
//! its gain cycle, which it draws at random.

mod case;
pub mod closed_loop;
mod codec;
mod ends;
mod path;
pub mod receivers;

use aqmlab_core::{Result, Span, Time};
use aqmlab_tcp::Sender;

pub use case::{Acknowledged, Around, Case, Event, Settings};
pub use ends::{Ends, Outcome};
pub use path::Path;

/// Segments of a timer in jiffies may leave so much earlier or later; others so much.
const TIMER_TOLERANCE: Span = Span::from_millis(1);
const TOLERANCE: Span = Span::from_micros(100);
/// Smoothed round-trip times may differ by so much.
const SRTT_TOLERANCE: Span = Span::from_millis(1);
/// Phases of BBR's gain cycle in which ProbeBW may begin: all but the one that drains.
const PHASES: [u8; 7] = [0, 2, 3, 4, 5, 6, 7];
/// Entries of ProbeBW whose phase is looked for.
const ENTRIES: usize = 16;

/// Agreement of our sender with a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Data segments recorded.
    pub segments: u64,
    /// Segments that ours sent with the same numbers at the same time, less the excess of ours.
    pub segments_equal: u64,
    /// Acknowledgements with a recorded window.
    pub windows: u64,
    /// Acknowledgements before which window and threshold are equal.
    pub windows_equal: u64,
    /// Before which the smoothed round-trip time was the same within a millisecond.
    pub srtt_equal: u64,
    /// Before which it was the same to the microsecond.
    pub srtt_exact: u64,
    /// When the first segment or window differed.
    pub first_difference: Option<Time>,
}

impl Comparison {
    /// True if all segments and windows are equal.
    pub fn is_equal(&self) -> bool {
        self.segments == self.segments_equal && self.windows == self.windows_equal
    }
}

/// A segment that our sender sent.
#[derive(Clone, Copy, Debug)]
struct SentSegment {
    at: Time,
    seq: u64,
    len: u32,
    tolerance: Span,
}

/// Gives a recording to the sender of its kernel and control.
///
/// # Errors
/// Returns an error if the control is unknown.
pub fn compare(case: &Case) -> Result<Comparison> {
    Ok(best_take(case)?.comparison)
}

/// Best match among the replays of a recording.
fn best_take(case: &Case) -> Result<Take> {
    let mut best = Take::of(case, case.clock(), Vec::new())?;
    for clock in case.clocks() {
        if best.comparison.is_equal() {
            break;
        }
        if case.is_bbr() {
            best = with_phases(case, best)?;
        }
        let take = Take::of(case, clock, best.phases.clone())?;
        if take.key() > best.key() {
            best = take;
        }
    }
    if case.is_bbr() { with_phases(case, best) } else { Ok(best) }
}

/// One replay of a recording.
struct Take {
    clock: (Span, u64),
    /// The phases in which BBR enters its gain cycle, as far as they are found out.
    phases: Vec<u8>,
    comparison: Comparison,
    /// Number of entries.
    entries: usize,
}

impl Take {
    fn of(case: &Case, clock: (Span, u64), phases: Vec<u8>) -> Result<Take> {
        let (comparison, entries) = play(case, clock, &phases)?;
        Ok(Take { clock, phases, comparison, entries })
    }
    /// The more is equal, the greater.
    fn key(&self) -> (u64, u64) {
        let Comparison { segments_equal, windows_equal, srtt_exact, .. } = self.comparison;
        (segments_equal + windows_equal, srtt_exact)
    }
}

/// Searches the phases one by one.
fn with_phases(case: &Case, mut best: Take) -> Result<Take> {
    while !best.comparison.is_equal() && best.phases.len() < best.entries.min(ENTRIES) {
        let known = best.phases.clone();
        let mut found: Option<Take> = None;
        for phase in PHASES {
            let phases = known.iter().copied().chain([phase]).collect();
            let take = Take::of(case, best.clock, phases)?;
            if found.as_ref().is_none_or(|found| take.key() > found.key()) {
                found = Some(take);
            }
        }
        best = found.unwrap_or(best);
    }
    Ok(best)
}

/// Plays a case; returns as well how often BBR has entered its gain cycle.
fn play(case: &Case, (phase, jiffies): (Span, u64), phases: &[u8]) -> Result<(Comparison, usize)> {
    let params = case.settings.params()?;
    let mss = params.mss.get();
    let mut sender = Sender::new(&params, Some(0), 0);
    if let Some(mut linux) = sender.kernel() {
        linux.set_clock(phase, jiffies);
        linux.set_phases(phases);
    }
    sender.open(Time::ZERO);
    let mut sent = Vec::new();
    let mut comparison = Comparison::default();
    send(&mut sender, Time::ZERO, TOLERANCE, &mut sent);
    let mut last = Time::ZERO;
    for event in &case.events {
        let at = event.at();
        last = last.max(at);
        run_timers(&mut sender, at, &mut sent);
        match event {
            Event::Write { bytes, .. } => sender.write(*bytes),
            Event::Acknowledged(acknowledged) => {
                compare_state(&mut sender, acknowledged, mss, &mut comparison);
                sender.on_ack(at, &acknowledged.ack);
            }
            Event::Sent { .. } => continue,
        }
        send(&mut sender, at, TOLERANCE, &mut sent);
    }
    run_timers(&mut sender, last + TIMER_TOLERANCE, &mut sent);
    compare_segments(case, &sent, &mut comparison);
    let entries = sender.kernel().map_or(0, |linux| linux.phases_drawn());
    Ok((comparison, entries))
}

fn run_timers(sender: &mut Sender, until: Time, sent: &mut Vec<SentSegment>) {
    while let Some(at) = sender.next_timeout().filter(|at| *at <= until) {
        let in_jiffies = sender.kernel().is_none_or(|linux| linux.is_due_in_jiffies(at));
        sender.on_timeout(at);
        send(sender, at, if in_jiffies { TIMER_TOLERANCE } else { TOLERANCE }, sent);
    }
}

fn send(sender: &mut Sender, at: Time, tolerance: Span, sent: &mut Vec<SentSegment>) {
    while let Some(segment) = sender.poll(at) {
        if segment.len > 0 {
            sent.push(SentSegment { at, seq: segment.seq, len: segment.len, tolerance });
        }
    }
}

/// Window, threshold and round-trip time before an acknowledgement.
///
/// The threshold recorded is `tcp_current_ssthresh`: outside of reductions three quarters of the
/// window at least.
fn compare_state(sender: &mut Sender, seen: &Acknowledged, mss: u64, comparison: &mut Comparison) {
    let Some(cwnd) = seen.cwnd else { return };
    comparison.windows += 1;
    let bytes = sender.kernel().map(|linux| linux.current_ssthresh());
    let bytes = bytes.unwrap_or_else(|| sender.ssthresh());
    let ssthresh = (bytes < u64::MAX / 8).then_some(bytes / mss);
    if sender.cwnd() / mss == cwnd && ssthresh == seen.ssthresh {
        comparison.windows_equal += 1;
    } else {
        differs(comparison, seen.at);
    }
    let srtt = sender.srtt().unwrap_or(Span::ZERO).as_nanos();
    let apart = srtt.abs_diff(seen.srtt.as_nanos());
    comparison.srtt_equal += u64::from(apart <= SRTT_TOLERANCE.as_nanos());
    comparison.srtt_exact += u64::from(apart < 1000);
}

fn differs(comparison: &mut Comparison, at: Time) {
    let first = comparison.first_difference.map_or(at, |first| first.min(at));
    comparison.first_difference = Some(first);
}

/// Each recorded segment is looked for among ours from the last one found on.
fn compare_segments(case: &Case, sent: &[SentSegment], comparison: &mut Comparison) {
    let mut next = 0;
    for event in &case.events {
        let Event::Sent { at, seq, len, .. } = *event else { continue };
        comparison.segments += 1;
        let found = sent[next..]
            .iter()
            .take_while(|ours| ours.at <= at + TIMER_TOLERANCE)
            .position(|ours| {
                let apart = ours.at.as_nanos().abs_diff(at.as_nanos());
                (ours.seq, ours.len) == (seq, len) && apart <= ours.tolerance.as_nanos()
            });
        match found {
            Some(ahead) => {
                comparison.segments_equal += 1;
                next += ahead + 1;
            }
            None => differs(comparison, at),
        }
    }
    let beyond = (sent.len() as u64).saturating_sub(comparison.segments);
    comparison.segments_equal = comparison.segments_equal.saturating_sub(beyond);
}
