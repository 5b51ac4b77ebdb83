//! Playout delay of a voice player: constant within a talk spurt, adaptive between spurts.
//!
//! # Sources
//! Ramjee, Kurose, Towsley and Schulzrinne, Adaptive playout mechanisms for packetized audio
//! applications in wide-area networks (INFOCOM 1994), algorithm 4: moving averages of the delay and
//! its variation with a weight of 1/8, which follow a spike while it lasts. A spurt is played after
//! the average plus four variations. The paper itself was not available; algorithm and constants
//! are those of an independent implementation.
//!
//! # Differences
//! 1. A player has a reserve of at least the speech of one packet (20 ms). The paper's averages
//!    alone leave no reserve at constant delay, so that every queued packet would be late.
//! 2. The first spurt, without earlier measurements, has a reserve of 60 ms.
//! 3. The packet that begins a spurt is marked (RFC 3551, section 4.1); if it is lost, the next one
//!    of the spurt sets the delay.

use aqmlab_core::{Span, Time};

use crate::workload::ledger::GIVEN_UP;

/// Weight of the averages.
const WEIGHT: f64 = 0.125;
/// Variations above the average delay.
const VARIATIONS: f64 = 4.0;
/// A spike begins with a step above this value plus two variations: 800 samples at 8 kHz.
const SPIKE: f64 = 0.1;
/// A spike ends when its slope is at most this: 63 samples.
const FLAT: f64 = 63.0 / 8000.0;
/// Minimum reserve.
const LEAST: Span = Span::from_millis(20);
/// Reserve of the first spurt.
const FIRST: Span = Span::from_millis(60);

/// Estimates of a player, in seconds.
#[derive(Clone)]
struct Estimates {
    delay: f64,
    variation: f64,
    /// Delays of the last two packets.
    previous: [f64; 2],
    /// Slope of the current spike.
    slope: Option<f64>,
}

impl Estimates {
    fn new(delay: f64) -> Self {
        let variation = FIRST.as_secs_f64() / VARIATIONS;
        Estimates { delay, variation, previous: [delay; 2], slope: None }
    }

    fn update(&mut self, delay: f64) {
        let [last, before] = self.previous;
        self.previous = [delay, last];
        match &mut self.slope {
            None if (delay - last).abs() > SPIKE + 2.0 * self.variation => self.slope = Some(0.0),
            None => {}
            Some(slope) => {
                *slope = *slope / 2.0 + (2.0 * delay - last - before).abs() / 8.0;
                if *slope <= FLAT {
                    self.slope = None;
                    return;
                }
            }
        }
        match self.slope {
            None => self.delay += WEIGHT * (delay - self.delay),
            Some(_) => self.delay += delay - last,
        }
        self.variation += WEIGHT * ((delay - self.delay).abs() - self.variation);
    }

    /// Returns the playout delay of a spurt that begins now.
    fn plays_after(&self) -> Span {
        let reserve = (VARIATIONS * self.variation).max(LEAST.as_secs_f64());
        Span::from_secs_f64((self.delay + reserve).max(0.0))
    }
}

/// Playout of a flow of speech.
#[derive(Clone)]
pub(super) struct Playout {
    /// Fixed reserve in addition to the delay of the first packet, if configured.
    fixed: Option<Span>,
    estimates: Option<Estimates>,
    plays_after: Span,
    /// Start of the spurt being played.
    spurt: Time,
}

impl Playout {
    pub fn new(fixed: Option<Span>) -> Self {
        Playout { fixed, estimates: None, plays_after: Span::ZERO, spurt: Time::ZERO }
    }

    /// Returns the playout delay; the longest before the first arrival.
    pub fn plays_after(&self) -> Span {
        if self.estimates.is_some() { self.plays_after } else { GIVEN_UP }
    }

    /// Records the arrival of a packet of the spurt that began at `spurt`, after `delay`. Returns
    /// its playout delay.
    pub fn arrived(&mut self, delay: Span, spurt: Time) -> Span {
        let is_first = self.estimates.is_none();
        let seconds = delay.as_secs_f64();
        let estimates = self.estimates.get_or_insert_with(|| Estimates::new(seconds));
        if !is_first {
            estimates.update(seconds);
        }
        match self.fixed {
            Some(reserve) if is_first => self.plays_after = delay + reserve,
            None if is_first || spurt > self.spurt => self.plays_after = estimates.plays_after(),
            _ => {}
        }
        self.spurt = spurt;
        self.plays_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }
    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }
    /// Returns the playout delay in milliseconds of the last of these packets, with one spurt each.
    fn after(delays: &[u64]) -> f64 {
        let mut playout = Playout::new(None);
        let spurts = delays.iter().zip(1..);
        let played = spurts.map(|(delay, spurt)| playout.arrived(ms(*delay), at(spurt)));
        1e3 * played.last().unwrap().as_secs_f64()
    }

    #[test]
    fn a_spurt_keeps_its_delay_and_the_next_adapts() {
        let mut playout = Playout::new(None);
        assert_eq!(playout.arrived(ms(40), at(1)), ms(100), "60 ms in reserve");
        for _ in 0..200 {
            assert_eq!(playout.arrived(ms(45), at(1)), ms(100));
        }
        let next = playout.arrived(ms(45), at(2));
        assert!((next.as_secs_f64() - 0.065).abs() < 1e-6, "20 ms in reserve: {next:?}");
        // A fixed reserve does not adapt.
        let mut fixed = Playout::new(Some(ms(30)));
        assert_eq!(fixed.arrived(ms(40), at(1)), ms(70));
        assert_eq!(fixed.arrived(ms(900), at(2)), ms(70));
    }

    /// Computed manually: averages of 1/8, and a first variation of 15 ms.
    #[test]
    fn the_averages_are_those_of_the_algorithm() {
        // 40 + 10/8 = 41.25; 15 + (8.75 - 15)/8 = 14.21875, times four.
        assert!((after(&[40, 50]) - (41.25 + 56.875)).abs() < 1e-6, "{}", after(&[40, 50]));
    }

    #[test]
    fn a_spike_is_followed_while_it_lasts() {
        let settled = [50; 60];
        let with = |more: &[u64]| after(&[&settled[..], more].concat());
        assert!((with(&[]) - 70.0).abs() < 0.1, "{}", with(&[]));
        // Up by 500 ms at once: the estimate follows; an average would be at 112 ms.
        assert!((with(&[550]) - 570.0).abs() < 1.0, "{}", with(&[550]));
        // The estimate also follows the slope down, to the end of the spike.
        let down: Vec<u64> = (0..25).map(|step| 550 - 20 * step).collect();
        assert!(with(&down) < 200.0, "{}", with(&down));
        // Lasting delays are learned: with a queue of one second, playout is a second later.
        let lasting: Vec<u64> = [1050; 60].to_vec();
        assert!((with(&lasting) - 1070.0).abs() < 5.0, "{}", with(&lasting));
    }
}
