//! Playback buffer: fills with arriving media, and drains during playback.

use aqmlab_core::{Span, Time};

use crate::workload::app::Activity;

/// State of playback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Playback has not started.
    Joining,
    Playing,
    /// The buffer has been empty since this time.
    Stalled(Time),
}

/// Player. Its state advances with each call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Player {
    state: State,
    /// Start of the application.
    pub opened: Time,
    /// Buffered media at which playback starts.
    start_with: Span,
    /// Buffered media at which playback resumes after a stall.
    resume_with: Span,
    /// Buffer level at time `seen`.
    level: Span,
    seen: Time,
    /// True if all media has arrived.
    is_complete: bool,
    pub began: Option<Time>,
    pub played: Span,
    pub stalls: u64,
    pub stalled: Span,
}

/// Tolerance: thirty frames of a thirtieth of a second, in whole nanoseconds, are less than a
/// second.
const ROUNDING: Span = Span::from_micros(1);

impl Player {
    pub fn new(start_with: Span, resume_with: Span) -> Self {
        Player {
            state: State::Joining,
            opened: Time::ZERO,
            start_with,
            resume_with,
            level: Span::ZERO,
            seen: Time::ZERO,
            is_complete: false,
            began: None,
            played: Span::ZERO,
            stalls: 0,
            stalled: Span::ZERO,
        }
    }

    /// Handles the arrival of `media`; `is_last` marks the end. Records the time to the first
    /// picture (`join`), and the duration of a `stall` that ends.
    pub fn arrived(&mut self, now: Time, media: Span, is_last: bool, activity: &mut Activity) {
        self.pass(now);
        self.level += media;
        self.is_complete |= is_last;
        let enough = |level: Span| self.is_complete || self.level + ROUNDING >= level;
        match self.state {
            State::Joining if enough(self.start_with) => {
                self.state = State::Playing;
                self.began = Some(now);
                activity.record("join", now - self.opened);
            }
            State::Stalled(since) if enough(self.resume_with) => {
                self.state = State::Playing;
                self.stalled += now - since;
                activity.record("stall", now - since);
            }
            _ => {}
        }
    }

    /// Returns the buffer level.
    pub fn level(&mut self, now: Time) -> Span {
        self.pass(now);
        self.level
    }

    /// Returns the player at `now`, including the current stall.
    pub fn at(&self, now: Time) -> Player {
        let mut player = *self;
        player.pass(now);
        if let State::Stalled(since) = player.state {
            player.stalled += now - since;
        }
        player
    }

    /// Restarts the counters; a current stall counts as one.
    pub fn restart(&mut self, now: Time) {
        self.pass(now);
        (self.played, self.stalled, self.stalls) = (Span::ZERO, Span::ZERO, 0);
        if let State::Stalled(since) = &mut self.state {
            (*since, self.stalls) = (now, 1);
        }
    }

    /// Reports the number of stalls and their share of the time since the start, if playback has
    /// started.
    pub fn report(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        if self.began.is_none() {
            return;
        }
        let player = self.at(now);
        let (stalled, played) = (player.stalled.as_secs_f64(), player.played.as_secs_f64());
        see("stalls", player.stalls as f64);
        see("stalled", if stalled > 0.0 { stalled / (stalled + played) } else { 0.0 });
    }

    fn pass(&mut self, now: Time) {
        let since = std::mem::replace(&mut self.seen, now);
        let elapsed = now - since;
        if self.state != State::Playing {
            return;
        }
        let played = elapsed.min(self.level);
        self.played += played;
        self.level = self.level.saturating_sub(played);
        if played < elapsed && !self.is_complete {
            self.stalls += 1;
            self.state = State::Stalled(since + played);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(secs)
    }
    fn secs(secs: f64) -> Span {
        Span::from_secs_f64(secs)
    }

    /// Returns the counts of the recorded times `join` and `stall`.
    fn recorded(activity: &Activity) -> [u64; 2] {
        let of = |name| activity.times.iter().find(|(quantity, _)| quantity.name == name);
        ["join", "stall"].map(|name| of(name).map_or(0, |(_, times)| times.count()))
    }

    #[test]
    fn a_buffer_that_runs_out_stalls() {
        let mut player = Player::new(secs(4.0), secs(2.0));
        let mut activity = Activity::default();
        let mut arrived = |player: &mut Player, now: f64, media: f64, is_last: bool| {
            player.arrived(at(now), secs(media), is_last, &mut activity);
            recorded(&activity)
        };
        assert_eq!(arrived(&mut player, 1.0, 2.0, false), [0, 0]);
        player.report(at(2.0), &mut |name, value| panic!("not started: {name}: {value}"));
        assert_eq!(arrived(&mut player, 3.0, 2.0, false), [1, 0]);
        // It plays from 3 to 7 s; the media that arrives at 8 s is not enough.
        assert_eq!(player.level(at(5.0)), secs(2.0));
        assert_eq!(arrived(&mut player, 8.0, 1.0, false), [1, 0]);
        assert_eq!(player.at(at(8.5)).stalled, secs(1.5));
        assert_eq!(arrived(&mut player, 9.0, 1.0, false), [1, 1]);
        // The last media arrives in time; playback then ends, without a stall.
        assert_eq!(arrived(&mut player, 11.0, 3.0, true), [1, 1]);
        let times = [secs(3.0), secs(2.0)];
        assert!(activity.times.iter().zip(times).all(|((_, found), time)| found.max() == time));
        let end = player.at(at(100.0));
        assert_eq!((end.stalls, end.stalled, end.played), (1, secs(2.0), secs(9.0)));
        let mut seen = Vec::new();
        player.report(at(100.0), &mut |name, value| seen.push((name, value)));
        assert_eq!(seen, [("stalls", 1.0), ("stalled", 2.0 / 11.0)]);
    }

    #[test]
    fn a_short_video_plays_when_all_of_it_is_there() {
        let mut player = Player::new(secs(10.0), secs(10.0));
        let mut activity = Activity::default();
        player.arrived(at(1.0), secs(3.0), true, &mut activity);
        assert_eq!(recorded(&activity), [1, 0]);
        assert_eq!((player.at(at(9.0)).played, player.at(at(9.0)).stalls), (secs(3.0), 0));
    }
}
