//! CoDel as in the pseudo-code of RFC 8289.

use super::form::{Clock, DropCounting, Recall, Root, Variant};

pub(super) const FORM: Variant = Variant {
    clock: Clock::Seconds,
    learns: false,
    later_than: false,
    shorter_wait: None,
    root: Root::Exact,
    counts: DropCounting::Always,
    recall: recalled,
};

/// Not used by any implementation: shows the effect of the recall.
pub(super) const WITHOUT_RECALL: Variant = Variant { recall: |_| None, ..FORM };

/// Section 5.5: by how much the count grew in the last dropping state.
pub(super) fn recalled(last: &Recall<'_>) -> Option<u32> {
    let delta = last.count.wrapping_sub(last.last_count);
    (delta > 1 && (last.left_within)(16.0)).then_some(delta)
}
