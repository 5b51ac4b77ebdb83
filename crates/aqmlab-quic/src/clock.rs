//! Virtual time as the standard library's `Instant`, which the stacks use.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use aqmlab_core::Time;

/// Returns the instant that stands for virtual time 0.
///
/// An `Instant` cannot be made from a number. The stacks only compare instants and subtract them,
/// so the choice of the base does not change a run. It is an hour ahead: stacks subtract durations
/// from early instants.
#[allow(clippy::disallowed_methods)]
fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(|| Instant::now() + Duration::from_secs(3600))
}

/// Converts virtual time to an instant.
pub fn instant(time: Time) -> Instant {
    base() + Duration::from_nanos(time.as_nanos())
}

/// Converts an instant to virtual time; instants before 0 become 0.
pub fn time(instant: Instant) -> Time {
    Time::from_nanos(instant.saturating_duration_since(base()).as_nanos() as u64)
}
