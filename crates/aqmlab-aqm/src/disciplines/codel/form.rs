//! Differences between the variants of CoDel.

use super::{CodelForm, linux, ns2, rfc8289};

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
            CodelForm::Rfc8289 => rfc8289::FORM,
            CodelForm::NoRecall => rfc8289::WITHOUT_RECALL,
            CodelForm::Linux => linux::FORM,
            CodelForm::Ns2Of2012 => ns2::OF_2012,
            CodelForm::Ns2Of2013 => ns2::OF_2013,
        }
    }
}
