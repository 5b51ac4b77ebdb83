//! The whole segments of a window with a fraction.

use aqmlab_core::choices;

use super::Window;

choices! {
    /// How a window with a fraction becomes the segments that may be in flight.
    pub enum Rounding {
        /// The next larger whole number; the pacing rate follows the fraction.
        Up = "up",
        /// A whole number that moves when the window is a whole segment away
        /// from it; the pacing rate follows it.
        Carry = "carry",
        /// Not: a number of bytes, of which whole segments fit.
        None = "none",
    }
}

/// MIN_CWND of the implementation.
const LEAST_WHOLE: u64 = 2;

/// Amount in flight in segments: it follows the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub rounding: Rounding,
    mss: f64,
    segments: u64,
    /// Before the acknowledgement at hand.
    before: u64,
}

impl Whole {
    pub fn new(rounding: Rounding, window: &Window) -> Self {
        let mut whole = Whole { rounding, mss: window.mss, segments: 0, before: 0 };
        whole.jump(window.cwnd);
        whole
    }
    /// The numbers that do for a window.
    fn range(&self, cwnd: f64) -> (u64, u64) {
        let exact = cwnd / self.mss;
        let most = libm::ceil(exact) as u64;
        (if self.rounding == Rounding::Up { most } else { exact as u64 }, most)
    }
    /// To the window at once.
    pub fn jump(&mut self, cwnd: f64) {
        self.segments = self.range(cwnd).1.max(1);
        self.before = self.segments;
    }
    /// By one segment towards the window, or not at all.
    pub fn step(&mut self, cwnd: f64) {
        let (least, most) = self.range(cwnd);
        self.before = self.segments;
        if self.segments > most.max(LEAST_WHOLE) {
            self.segments -= 1;
        } else if self.segments < least {
            self.segments += 1;
        }
    }
    /// The same once more for the same acknowledgement, with another window.
    pub fn step_again(&mut self, cwnd: f64) {
        self.segments = self.before;
        self.step(cwnd);
    }
    pub fn bytes(&self) -> f64 {
        self.segments as f64 * self.mss
    }
}
