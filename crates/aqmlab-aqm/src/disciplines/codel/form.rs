//! Differences between the variants of CoDel.
//!
//! # Sources
//! RFC 8289, section 5.5; for the others see [`codel`](crate::disciplines::codel).

use super::CodelForm;

/// The decisions that the variants differ in; each has one in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    /// Unit of time.
    pub clock: Clock,
    /// Whether the largest packet is learned from those that leave.
    pub learns: bool,
    /// Whether a delay has been above the target for long enough only after the
    /// time at which it will have been, and not yet at it.
    pub later_than: bool,
    /// Within how many intervals after the dropping state the wait for the next
    /// is divided by the root of the count; `None`: it never is.
    pub shorter_wait: Option<f64>,
    /// How the root of the count is taken.
    pub root: Root,
    /// When a drop counts.
    pub counts: DropCounting,
    /// The count with which a dropping state begins; `None` for 1.
    pub recall: fn(&Recall<'_>) -> Option<u32>,
}

/// The units of time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Clock {
    /// Seconds in floating point.
    Seconds,
    /// Whole units of 1024 ns.
    Units,
}

/// Computation of the root of the count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Root {
    /// The exact root.
    Exact,
    /// An estimate of the inverse root, improved by one step at each drop.
    Estimate,
}

/// Condition for counting a drop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum DropCounting {
    /// Before it is known whether the next packet is late as well.
    Always,
    /// Only if the next packet is late as well.
    IfNextIsLate,
}

/// What a form knows of the last dropping state when the next begins.
pub(super) struct Recall<'a> {
    pub count: u32,
    pub last_count: u32,
    /// The queue is one of many, as ns-2's sfqCoDel has them.
    pub bucket: bool,
    /// Whether the last drop was due less than so many intervals ago.
    pub left_within: &'a dyn Fn(f64) -> bool,
}

impl CodelForm {
    pub(super) fn form(self) -> Variant {
        match self {
            CodelForm::Rfc8289 => RFC_8289,
            // Not used by any implementation: shows the effect of the recall.
            CodelForm::NoRecall => Variant { recall: |_| None, ..RFC_8289 },
            // Another clock and another root.
            CodelForm::Linux => {
                Variant { clock: Clock::Units, later_than: true, root: Root::Estimate, ..RFC_8289 }
            }
            // Both of ns-2 learn the largest packet from those that leave.
            CodelForm::Ns2Of2012 => Variant {
                learns: true,
                recall: |last| (last.count > 1 && (last.left_within)(16.0)).then(|| last.count - 1),
                ..RFC_8289
            },
            CodelForm::Ns2Of2013 => Variant {
                learns: true,
                shorter_wait: Some(8.0),
                counts: DropCounting::IfNextIsLate,
                recall: recalled_by_ns2,
                ..RFC_8289
            },
        }
    }
}

/// The pseudo-code of the RFC.
const RFC_8289: Variant = Variant {
    clock: Clock::Seconds,
    learns: false,
    later_than: false,
    shorter_wait: None,
    root: Root::Exact,
    counts: DropCounting::Always,
    recall: recalled,
};

/// Section 5.5: by how much the count grew in the last dropping state.
fn recalled(last: &Recall<'_>) -> Option<u32> {
    let delta = last.count.wrapping_sub(last.last_count);
    (delta > 1 && (last.left_within)(16.0)).then_some(delta)
}

/// ns-2 of 2013: two less, and a high count decays, but in a bucket of sfqCoDel.
fn recalled_by_ns2(last: &Recall<'_>) -> Option<u32> {
    (last.count > 2 && (last.left_within)(8.0)).then(|| match last.count - 2 {
        high if high > 126 && !last.bucket => (0.9844 * f64::from(high + 2)) as u32,
        low => low,
    })
}
