//! A player's buffer: it fills with what arrives, and drains while it plays.

use aqmlab_core::{Span, Time};

/// Where a player stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It has not begun.
    Joining,
    Playing,
    /// The buffer ran out at this time.
    Stalled(Time),
}

/// A player. Time passes for it when it is told of something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Player {
    state: State,
    /// Buffered video at which playback starts.
    start_with: Span,
    /// It goes on after a stall with so much.
    resume_with: Span,
    /// What is in the buffer, as of `seen`.
    level: Span,
    seen: Time,
    /// Nothing more will come.
    is_complete: bool,
    pub began: Option<Time>,
    pub played: Span,
    pub stalls: u64,
    pub stalled: Span,
}

/// Thirty frames of a thirtieth of a second, in whole nanoseconds, are less
/// than a second.
const ROUNDING: Span = Span::from_micros(1);

/// What the arrival of something ended.
pub(super) enum Resumed {
    /// The wait for the beginning.
    Join,
    /// A stall of this length.
    Stall(Span),
}

impl Player {
    pub fn new(start_with: Span, resume_with: Span) -> Self {
        Player {
            state: State::Joining,
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

    /// `media` has arrived, with it all if it `is_last`.
    pub fn arrived(&mut self, now: Time, media: Span, is_last: bool) -> Option<Resumed> {
        self.pass(now);
        self.level += media;
        self.is_complete |= is_last;
        let enough = |level: Span| self.is_complete || self.level + ROUNDING >= level;
        match self.state {
            State::Joining if enough(self.start_with) => {
                self.state = State::Playing;
                self.began = Some(now);
                Some(Resumed::Join)
            }
            State::Stalled(since) if enough(self.resume_with) => {
                self.state = State::Playing;
                self.stalled += now - since;
                Some(Resumed::Stall(now - since))
            }
            _ => None,
        }
    }

    /// What is in the buffer.
    pub fn level(&mut self, now: Time) -> Span {
        self.pass(now);
        self.level
    }

    /// The player as it stands at `now`, with a stall that goes on counted.
    pub fn at(&self, now: Time) -> Player {
        let mut player = *self;
        player.pass(now);
        if let State::Stalled(since) = player.state {
            player.stalled += now - since;
        }
        player
    }

    /// What is counted counts from now on: a stall that goes on is one.
    pub fn restart(&mut self, now: Time) {
        self.pass(now);
        (self.played, self.stalled, self.stalls) = (Span::ZERO, Span::ZERO, 0);
        if let State::Stalled(since) = &mut self.state {
            (*since, self.stalls) = (now, 1);
        }
    }

    /// The share of the time since it began in which it stood still.
    pub fn stalled_share(&self) -> f64 {
        let (stalled, played) = (self.stalled.as_secs_f64(), self.played.as_secs_f64());
        if stalled > 0.0 { stalled / (stalled + played) } else { 0.0 }
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

    #[test]
    fn a_buffer_that_runs_out_stalls() {
        let mut player = Player::new(secs(4.0), secs(2.0));
        assert!(player.arrived(at(1.0), secs(2.0), false).is_none());
        assert!(matches!(player.arrived(at(3.0), secs(2.0), false), Some(Resumed::Join)));
        // It plays from 3 to 7 s; what comes at 8 s is not enough.
        assert_eq!(player.level(at(5.0)), secs(2.0));
        assert!(player.arrived(at(8.0), secs(1.0), false).is_none());
        assert_eq!(player.at(at(8.5)).stalled, secs(1.5));
        let resumed = player.arrived(at(9.0), secs(1.0), false);
        assert!(matches!(resumed, Some(Resumed::Stall(length)) if length == secs(2.0)));
        // The last comes in time; then it ends, and does not stall.
        assert!(player.arrived(at(11.0), secs(3.0), true).is_none());
        let end = player.at(at(100.0));
        assert_eq!((end.stalls, end.stalled, end.played), (1, secs(2.0), secs(9.0)));
        assert!((end.stalled_share() - 2.0 / 11.0).abs() < 1e-12);
    }

    #[test]
    fn a_short_video_plays_when_all_of_it_is_there() {
        let mut player = Player::new(secs(10.0), secs(10.0));
        assert!(matches!(player.arrived(at(1.0), secs(3.0), true), Some(Resumed::Join)));
        assert_eq!(player.at(at(9.0)).played, secs(3.0));
        assert_eq!(player.at(at(9.0)).stalls, 0);
    }
}
