//! E-model: the rating R of a call, and the mean opinion score.
//!
//! # Sources
//! ITU-T G.107: sections 7.1 (rating), 7.2 (Ro), 7.3 (Is), 7.4 (Id), 7.5 (Ie,eff), table 2
//! (defaults), annex B (MOS). The Recommendation itself was not available; the tests compare the
//! formulas with its default rating (93.2 without delay) and with independently computed ratings
//! with delay.
//!
//! # Differences
//! 1. All inputs other than delay, codec and loss have their defaults. These include an echo path
//!    (TELR 65 dB, WEPL 110 dB) as long as the path itself (T = Ta, Tr = 2 Ta): R is 93.2 without
//!    delay, and 90.7 with 100 ms. With cancelled echo, R would remain 93.2.
//! 2. Loss is assumed to be random (BurstR = 1).

use aqmlab_core::Span;
use libm::{exp, log2, log10, pow, sqrt};

/// Impairment of a codec: Ie, and the robustness Bpl against loss.
#[derive(Clone, Copy)]
pub(super) struct Equipment {
    pub impairment: f64,
    pub robustness: f64,
}

// Table 2 of G.107: loudness ratings, sidetone, D-values of the telephones, room noise, circuit
// noise, noise floor, echo losses.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const STMR: f64 = 15.0;
const DS: f64 = 3.0;
const DR: f64 = 3.0;
const PS: f64 = 35.0;
const PR: f64 = 35.0;
const NC: f64 = -70.0;
const NFOR: f64 = -64.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
/// Quantisation distortion units.
const QDU: f64 = 1.0;

/// Returns the rating of a call with this mouth-to-ear delay and this share of lost packets.
pub(super) fn rating(delay: Span, loss: f64, equipment: Equipment) -> f64 {
    let delay = 1e3 * delay.as_secs_f64();
    let noise = noise();
    let ratio = signal_to_noise(noise);
    ratio
        - simultaneous(delay, noise, ratio)
        - delayed(delay, noise, ratio)
        - effective(equipment, loss)
}

/// Returns No, the sum of all noise (section 7.2).
fn noise() -> f64 {
    let olr = SLR + RLR;
    let at_sender = PS - SLR - DS - 100.0 + 0.004 * pow(PS - olr - DS - 14.0, 2.0);
    let sidetone = PR + 10.0 * log10(1.0 + pow(10.0, (10.0 - (STMR + DR)) / 10.0));
    let at_receiver = RLR - 121.0 + sidetone + 0.008 * pow(sidetone - 35.0, 2.0);
    let all = [NC, at_sender, at_receiver, NFOR + RLR];
    10.0 * log10(all.iter().map(|noise| pow(10.0, noise / 10.0)).sum())
}

/// Returns Ro.
fn signal_to_noise(noise: f64) -> f64 {
    15.0 - 1.5 * (SLR + noise)
}

/// Returns Is: loudness, sidetone and quantisation (section 7.3). `delay` is in milliseconds, also
/// below.
fn simultaneous(delay: f64, noise: f64, ratio: f64) -> f64 {
    let root = |x: f64, power: f64| pow(1.0 + pow(x, power), 1.0 / power);
    let x = (SLR + RLR + 0.2 * (64.0 + noise - RLR)) / 8.0;
    let loudness = 20.0 * (root(x, 8.0) - x);
    let echo = exp(-delay / 4.0) * pow(10.0, -TELR / 10.0);
    let stmr = -10.0 * log10(pow(10.0, -STMR / 10.0) + echo);
    let sidetone = 12.0 * root((stmr - 13.0) / 6.0, 8.0)
        - 28.0 * root((stmr + 1.0) / 19.4, 35.0)
        - 13.0 * root((stmr - 3.0) / 33.0, 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * log10(QDU);
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let (y, z) = ((ratio - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0, 46.0 / 30.0 - g / 40.0);
    let quantisation = 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z));
    loudness + sidetone + quantisation
}

/// Returns Id: talker echo, listener echo and delay itself (section 7.4).
fn delayed(delay: f64, noise: f64, ratio: f64) -> f64 {
    let path = 40.0 * log10((1.0 + delay / 10.0) / (1.0 + delay / 150.0));
    let terv = TELR - path + 6.0 * exp(-0.3 * delay * delay);
    let half = (-1.5 * (noise - RLR) - (80.0 + 2.5 * (terv - 14.0))) / 2.0;
    let talker = (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-delay));
    let half = (ratio - 10.5 * (WEPL + 7.0) * pow(2.0 * delay + 1.0, -0.25)) / 2.0;
    let listener = half + sqrt(half * half + 169.0);
    talker + listener + too_long(delay)
}

/// Returns Idd, which is 0 up to 100 ms.
fn too_long(delay: f64) -> f64 {
    if delay <= 100.0 {
        return 0.0;
    }
    let x = log2(delay / 100.0);
    let root = |x: f64| pow(1.0 + pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// Returns Ie,eff (section 7.5).
fn effective(equipment: Equipment, loss: f64) -> f64 {
    let (Equipment { impairment, robustness }, percent) = (equipment, 100.0 * loss);
    impairment + (95.0 - impairment) * percent / (percent + robustness)
}

/// Returns the mean opinion score, from 1 (bad) to 4.5.
pub(super) fn mos(rating: f64) -> f64 {
    let r = rating.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const G711: Equipment = Equipment { impairment: 0.0, robustness: 25.1 };
    const G729: Equipment = Equipment { impairment: 11.0, robustness: 19.0 };

    /// Table of G.113, appendix I of 1999 for random loss, older than the formula. G.711's values
    /// were rounded to multiples of five.
    #[test]
    fn losses_cost_what_was_tabulated() {
        for (percent, tabulated) in [
            (0.0, 11.0),
            (0.5, 13.0),
            (1.0, 15.0),
            (1.5, 17.0),
            (2.0, 19.0),
            (3.0, 23.0),
            (4.0, 26.0),
            (8.0, 36.0),
            (16.0, 49.0),
        ] {
            let cost = effective(G729, percent / 100.0);
            assert!((cost - tabulated).abs() < 0.6, "G.729 at {percent} %: {cost}");
        }
        for (percent, tabulated) in [
            (0.0, 0.0),
            (1.0, 5.0),
            (2.0, 7.0),
            (3.0, 10.0),
            (5.0, 15.0),
            (7.0, 20.0),
            (10.0, 25.0),
            (15.0, 35.0),
            (20.0, 45.0),
        ] {
            let cost = effective(G711, percent / 100.0);
            assert!((cost - tabulated).abs() < 3.0, "G.711 at {percent} %: {cost}");
        }
        // At a loss of Bpl per cent, half of the remaining rating is lost.
        assert!((effective(G729, 0.19) - (11.0 + 42.0)).abs() < 1e-9);
    }

    /// The default rating of G.107 is 93.2; the others were computed independently.
    #[test]
    fn the_rating_is_that_of_the_e_model_with_its_defaults() {
        for (millis, expected) in
            [(0, 93.2), (90, 90.9), (150, 89.5), (200, 85.8), (300, 72.7), (400, 62.3)]
        {
            let rating = rating(Span::from_millis(millis), 0.0, G711);
            assert!((rating - expected).abs() < 0.06, "{millis} ms: {rating}");
        }
        let ratio = signal_to_noise(noise());
        assert!((ratio - 94.77).abs() < 0.005, "{ratio}");
        assert!((simultaneous(0.0, noise(), ratio) - 1.41).abs() < 0.005);
    }

    /// Values of G.107, annex B, and of its curve of Idd.
    #[test]
    fn scores_and_the_cost_of_delay_are_those_of_the_e_model() {
        for (rating, score) in
            [(93.2, 4.41), (90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (50.0, 2.58)]
        {
            assert!((mos(rating) - score).abs() < 0.01, "{rating}: {}", mos(rating));
        }
        assert_eq!((mos(-5.0), mos(120.0)), (1.0, 4.5));
        for (millis, idd) in [(100.0, 0.0), (150.0, 0.16), (400.0, 24.1)] {
            assert!((too_long(millis) - idd).abs() < 0.1, "{millis} ms: {}", too_long(millis));
        }
    }
}
