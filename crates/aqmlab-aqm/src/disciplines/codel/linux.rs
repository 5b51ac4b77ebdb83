//! Arithmetic of Linux's CoDel.

/// One Newton step towards 1/sqrt(count), in units of 2^-16, with 32 bits as
/// there.
pub(super) fn newton_step(inverse_sqrt: u16, count: u32) -> u16 {
    let inverse = u64::from(inverse_sqrt) << 16;
    let square = (inverse * inverse) >> 32;
    let value = (3u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
    (value.wrapping_mul(inverse) >> (32 - 2 + 1 + 16)) as u16
}

/// `interval / sqrt(count)` by that estimate, in whole units.
pub(super) fn over_sqrt(interval: f64, inverse_sqrt: u16) -> f64 {
    let inverse = u64::from(inverse_sqrt) << 16;
    ((interval as u64 * inverse) >> 32) as f64
}

/// codel_time_before compares 32 bits as a signed number: after 37 to 73 minutes the time since a
/// drop counts as short again.
pub(super) fn is_before(units: f64, other: f64) -> bool {
    ((units as i64 - other as i64) as i32) < 0
}
