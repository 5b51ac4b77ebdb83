//! HighSpeed TCP (`net/ipv4/tcp_highspeed.c`): the table of RFC 3649, appendix B.

use std::sync::OnceLock;

use super::super::state::State;
use super::Algorithm;

/// Lines of the table.
const LINES: usize = 72;
/// The windows at which b(w) is a half and a tenth (RFC 3649, section 5).
const LOW: f64 = 38.0;
const HIGH: f64 = 83_000.0;

/// A line: up to this window the increase is its number, and a loss takes so many 256ths of the
/// window.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    window: u32,
    decrease: u32,
}

fn decrease(w: f64) -> f64 {
    0.5 - 0.4 * (libm::log(w) - libm::log(LOW)) / (libm::log(HIGH) - libm::log(LOW))
}
fn increase(w: f64) -> f64 {
    let b = decrease(w);
    w * w * 2.0 * b / ((2.0 - b) * libm::pow(w, 1.2) * 12.8)
}

/// The table as the RFC's program makes it: a line where a(w) is more than one above that of the
/// last line.
fn table() -> &'static [Line; LINES] {
    static TABLE: OnceLock<[Line; LINES]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut lines = [Line::default(); LINES];
        let (mut last, mut window) = (1.0, LOW as u32);
        for line in &mut lines {
            *line = Line { window, decrease: (256.0 * decrease(f64::from(window))) as u32 };
            let (mut below, mut above) = (window, 2 * window + 100);
            while above - below > 1 {
                let middle = below.midpoint(above);
                let is_above = increase(f64::from(middle)) > last + 1.0;
                (below, above) = if is_above { (below, middle) } else { (middle, above) };
            }
            window = above;
            last = increase(f64::from(window));
        }
        lines
    })
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HighSpeed {
    line: usize,
}

impl Algorithm for HighSpeed {
    fn ssthresh(&mut self, state: &mut State) -> u32 {
        (state.cwnd - ((state.cwnd * table()[self.line].decrease) >> 8)).max(2)
    }
    fn avoid(&mut self, state: &mut State, acked: u32) {
        if !state.is_cwnd_limited() {
            return;
        }
        if state.in_slow_start() {
            state.slow_start(acked);
            return;
        }
        let lines = table();
        while state.cwnd > lines[self.line].window && self.line < LINES - 1 {
            self.line += 1;
        }
        while self.line > 0 && state.cwnd <= lines[self.line - 1].window {
            self.line -= 1;
        }
        state.cwnd_count += self.line as u32 + 1;
        if state.cwnd_count >= state.cwnd {
            state.cwnd_count -= state.cwnd;
            state.cwnd += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3649, appendix B.
    #[test]
    fn the_table_is_the_rfcs() {
        let lines = table();
        for (number, window) in [
            (1, 38),
            (2, 118),
            (3, 221),
            (4, 347),
            (5, 495),
            (12, 2076),
            (31, 11_358),
            (72, 89_053),
        ] {
            assert_eq!(lines[number - 1].window, window, "a(w) = {number}");
        }
        let decrease = |number: usize| f64::from(lines[number - 1].decrease) / 256.0;
        for (number, share) in [(1, 0.5), (2, 0.44), (12, 0.29), (72, 0.1)] {
            assert!((decrease(number) - share).abs() < 0.009, "b(w) of {number}");
        }
    }
}
