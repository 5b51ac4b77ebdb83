//! The operations on floating-point numbers that are exact everywhere, with or
//! without the standard library. All others come from `libm`.

/// The square root, rounded correctly (IEEE 754).
#[inline]
pub fn sqrt(value: f64) -> f64 {
    #[cfg(feature = "std")]
    return value.sqrt();
    #[cfg(not(feature = "std"))]
    return libm::sqrt(value);
}

/// The nearest whole number; halves away from zero.
#[inline]
pub fn round(value: f64) -> f64 {
    #[cfg(feature = "std")]
    return value.round();
    #[cfg(not(feature = "std"))]
    return libm::round(value);
}

/// The largest whole number that is not larger.
#[inline]
pub fn floor(value: f64) -> f64 {
    #[cfg(feature = "std")]
    return value.floor();
    #[cfg(not(feature = "std"))]
    return libm::floor(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With and without the standard library the results are the same.
    #[test]
    fn libm_agrees_to_the_last_bit() {
        for exponent in -60..60 {
            for part in 0..1000 {
                let value = (1.0 + f64::from(part) / 999.0) * libm::exp2(f64::from(exponent));
                assert_eq!(sqrt(value).to_bits(), libm::sqrt(value).to_bits(), "{value}");
                for value in [value, -value, value.trunc() + 0.5] {
                    assert_eq!(round(value), libm::round(value), "{value}");
                    assert_eq!(floor(value), libm::floor(value), "{value}");
                }
            }
        }
    }
}
