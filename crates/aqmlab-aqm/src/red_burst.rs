//! The weight of RED's average by a burst length, as tc has it.
//!
//! # Sources
//! iproute2's tc_red.c, `tc_red_eval_ewma`: the average may reach `min` at the end of a burst, if
//! the queue was empty before.

use alloc::format;

use aqmlab_core::{Error, Result};

/// Returns the exponent of the weight, 1 to 31, for a burst of packets. `min` is in packets.
pub(crate) fn weight_exponent(min: f64, burst: u64) -> Result<u64> {
    let room = burst as f64 + 1.0 - min;
    if room < 1.0 {
        let allowed = format!("a burst of at least {} packets", libm::ceil(min));
        return Err(Error::not_allowed(burst, allowed));
    }
    let reached = |exponent: &u64| {
        let weight = libm::pow(0.5, *exponent as f64);
        room <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
    };
    (1..32).find(reached).ok_or_else(|| Error::not_allowed(burst, "a shorter burst"))
}

/// Reads a number of packets.
pub(crate) fn read(text: &str) -> Result<u64> {
    let wrong = |_| Error::not_allowed(text, "a whole number of packets").at("burst");
    text.parse().map_err(wrong)
}

/// Returns a burst that gives this exponent, if any: the usual one or the shortest.
pub(crate) fn burst(min: f64, max: f64, exponent: u64) -> Option<u64> {
    let gives = |burst: u64| weight_exponent(min, burst).ok();
    let usual = usual_burst(min, max);
    if gives(usual) == Some(exponent) {
        return Some(usual);
    }
    // The exponent grows with the burst.
    let (mut low, mut high) = (libm::ceil(min) as u64, u64::from(u32::MAX));
    while low < high {
        let middle = low + (high - low) / 2;
        match gives(middle) {
            Some(found) if found < exponent => low = middle + 1,
            _ => high = middle,
        }
    }
    (gives(low) == Some(exponent)).then_some(low)
}

/// Returns the burst that tc takes if none is given; `min` and `max` are in packets.
pub(crate) fn usual_burst(min: f64, max: f64) -> u64 {
    ((2.0 * min + max) / 3.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_gives_a_weight_and_the_weight_a_burst() {
        // tc-red(8)'s example, and its default: (2 * 30 + 90) / 3.
        assert_eq!(weight_exponent(30.0, 55).unwrap(), 5);
        assert_eq!((usual_burst(30.0, 90.0), burst(30.0, 90.0, 5)), (50, Some(50)));
        for exponent in 1..25 {
            let burst = burst(5.0, 15.0, exponent).unwrap();
            assert_eq!(weight_exponent(5.0, burst).unwrap(), exponent);
        }
        // With `min` so high, even the shortest burst needs a longer memory than 1/2.
        assert_eq!(burst(30.0, 90.0, 1), Some(30));
        assert!(weight_exponent(30.0, 29).is_err());
    }
}
