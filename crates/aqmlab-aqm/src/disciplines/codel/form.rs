//! What one form of CoDel does differently from another.

use super::{CodelForm, linux, ns2, rfc8289};

/// The decisions that the variants differ in; each has one in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// In which units time is counted.
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
    pub counts: Counts,
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

/// How the root of the count is taken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Root {
    /// As it is.
    Exact,
    /// An estimate of its inverse, of which each drop takes a step.
    Estimate,
}

/// When a drop counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Counts {
    /// Before it is known whether the next packet is late as well.
    Always,
    /// If it is.
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
    pub(super) fn form(self) -> Form {
        match self {
            CodelForm::Rfc8289 => rfc8289::FORM,
            CodelForm::NoRecall => rfc8289::WITHOUT_RECALL,
            CodelForm::Linux => linux::FORM,
            CodelForm::Ns2Of2012 => ns2::OF_2012,
            CodelForm::Ns2Of2013 => ns2::OF_2013,
        }
    }
}
