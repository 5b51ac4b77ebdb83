//! Rate selection for the next segment.
//!
//! # Sources
//! Throughput: Jiang, Sekar and Zhang, Improving fairness, efficiency, and
//! stability in HTTP-based adaptive video streaming with FESTIVE (CoNEXT 2012):
//! the harmonic mean of the last 20 segments, of which a share of 0.85 is used.
//! Buffer: Spiteri, Urgaonkar and Sitaraman, BOLA: near-optimal bitrate
//! adaptation for online videos (INFOCOM 2016), BOLA-BASIC; Huang, Johari,
//! McKeown, Trunnell and Watson, A buffer-based approach to rate adaptation
//! (SIGCOMM 2014), algorithm 1 (BBA-0).
//!
//! 1. FESTIVE's gradual switching, random scheduling and delayed updates are not modelled, only its
//!    estimate.
//! 2. BOLA selects a rate when the buffer has room for a segment: it does not wait longer when all
//!    its objectives are negative, which its V prevents.
//! 3. BBA's reservoir and cushion are shares of the level up to which segments are requested: the
//!    buffer less one segment. In the paper they are 90 and 126 s of a buffer of 240 s.

use std::collections::VecDeque;

use aqmlab_core::Span;

use super::{Adaptation, DashParams};

/// Rate selection of a player.
#[derive(Clone)]
pub(super) struct Chooser {
    pub params: DashParams,
    /// Rates in bit/s.
    ladder: Vec<f64>,
    /// Seconds per bit of the last segments.
    slowness: VecDeque<f64>,
}

impl Chooser {
    pub fn new(params: &DashParams) -> Self {
        let ladder = params.ladder.iter().map(|rate| rate.as_bps() as f64).collect();
        Chooser { params: params.clone(), ladder, slowness: VecDeque::new() }
    }

    /// Records a fetched segment, and its time.
    pub fn seen(&mut self, bytes: u64, time: Span) {
        if self.params.adaptation == Adaptation::Throughput {
            let bits = 8.0 * bytes as f64;
            self.slowness.push_back(time.as_secs_f64() / bits);
            if self.slowness.len() as u64 > self.params.window {
                self.slowness.pop_front();
            }
        }
    }

    /// Returns the ladder index of the next segment. `level` is the buffer level, `last` the index
    /// of the segment before.
    pub fn choose(&self, level: Span, last: Option<usize>) -> usize {
        let level = level.as_secs_f64();
        match self.params.adaptation {
            Adaptation::Throughput => self.by_throughput(),
            Adaptation::Bola => self.by_bola(level),
            Adaptation::Bba => self.by_bba(level, last.unwrap_or(0)),
        }
    }

    /// Returns the highest rate within the throughput; initially the lowest rate.
    fn by_throughput(&self) -> usize {
        let sum: f64 = self.slowness.iter().sum();
        let estimate = match self.slowness.len() {
            0 => 0.0,
            count => self.params.safety * count as f64 / sum,
        };
        self.ladder.iter().rposition(|rate| *rate <= estimate).unwrap_or(0)
    }

    /// BOLA-BASIC: the rate with the largest (V (v + gamma p) - Q) / S, where Q is the buffer in
    /// segments and v the logarithm of the rate over the lowest. V is the largest value at which
    /// the buffer does not overflow (theorem 1).
    fn by_bola(&self, level: f64) -> usize {
        let DashParams { buffer, segment, gamma, .. } = self.params;
        let [buffer, segment] = [buffer, segment].map(Span::as_secs_f64);
        let utility = |rate: &f64| libm::log(rate / self.ladder[0]);
        let highest = self.ladder.last().map_or(0.0, utility);
        let v = (buffer / segment - 1.0) / (highest + gamma);
        let objective = |rate: &f64| (v * (utility(rate) + gamma) - level / segment) / rate;
        let best = self.ladder.iter().enumerate().max_by(|a, b| {
            // The higher rate wins a tie.
            objective(a.1).total_cmp(&objective(b.1))
        });
        best.map_or(0, |(rung, _)| rung)
    }

    /// BBA-0: a line from the lowest rate at the reservoir to the highest at the cushion's end; the
    /// rate changes when the line crosses the next rate.
    fn by_bba(&self, level: f64, last: usize) -> usize {
        let DashParams { buffer, segment, reservoir, cushion_end, .. } = self.params;
        let full = buffer.as_secs_f64() - segment.as_secs_f64();
        let (low, high) = (reservoir * full, cushion_end * full);
        let top = self.ladder.len() - 1;
        if level <= low {
            return 0;
        }
        if level >= high {
            return top;
        }
        let [least, most] = [self.ladder[0], self.ladder[top]];
        let line = least + (most - least) * (level - low) / (high - low);
        if last < top && line >= self.ladder[last + 1] {
            return self.ladder.iter().rposition(|rate| *rate < line).unwrap_or(0);
        }
        if last > 0 && line <= self.ladder[last - 1] {
            return self.ladder.iter().position(|rate| *rate > line).unwrap_or(top);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_core::Rate;

    fn chooser(adaptation: Adaptation) -> Chooser {
        let ladder = [1, 2, 3, 6].map(|mbit| Rate::from_bps(mbit * 1_000_000)).to_vec();
        let (window, safety) = (2, 0.9);
        Chooser::new(&DashParams { adaptation, ladder, window, safety, ..DashParams::default() })
    }

    #[test]
    fn throughput_is_a_harmonic_mean() {
        let mut chooser = chooser(Adaptation::Throughput);
        assert_eq!(chooser.choose(Span::from_secs(9), None), 0);
        for (mbit, rung, mean) in [(6, 2, "6"), (2, 1, "3"), (7, 1, "3.1"), (7, 3, "7")] {
            chooser.seen(mbit * 125_000, Span::from_secs(1));
            assert_eq!(chooser.choose(Span::ZERO, None), rung, "0.9 * {mean}");
        }
    }

    /// With V = 6.5 / (ln 6 + 5), the rate changes where objectives are equal: between 1 and 2
    /// Mbit/s at Q = V (5 - ln 2) = 4.1 segments.
    #[test]
    fn bola_rises_with_the_buffer() {
        let chooser = chooser(Adaptation::Bola);
        let v = (30.0 / 4.0 - 1.0) / (libm::log(6.0) + 5.0);
        let between_first = v * (5.0 - libm::log(2.0)) * 4.0;
        for (level, rung) in
            [(0.0, 0), (between_first - 0.01, 0), (between_first + 0.01, 1), (26.0, 3)]
        {
            assert_eq!(chooser.choose(Span::from_secs_f64(level), None), rung, "{level}");
        }
        // No objective is negative while the buffer has room for a segment.
        assert!(v * (libm::log(6.0) + 5.0) >= 26.0 / 4.0 - 1e-9);
    }

    /// A line from 1 Mbit/s at 9.75 s to 6 Mbit/s at 23.4 s.
    #[test]
    fn bba_follows_its_line_and_stays_where_it_can() {
        let chooser = chooser(Adaptation::Bba);
        let level = |mbit: f64| Span::from_secs_f64(9.75 + 13.65 * (mbit - 1.0) / 5.0);
        for (mbit, last, rung) in [
            (1.9, 0, 0),
            (2.1, 0, 1),
            (4.0, 0, 2),
            (2.5, 2, 2),
            (1.9, 2, 1),
            (2.9, 3, 2),
            (3.1, 3, 3),
        ] {
            assert_eq!(chooser.choose(level(mbit), Some(last)), rung, "{mbit} after {last}");
        }
        assert_eq!(chooser.choose(Span::from_millis(9700), Some(3)), 0);
        assert_eq!(chooser.choose(Span::from_millis(23_410), Some(0)), 3);
    }
}
