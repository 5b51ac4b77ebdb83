//! The CoDel of ns-2, of May 2012 and of 2013.
//!
//! Both learn the largest packet from those that leave.

use super::form::{DropCounting, Recall, Variant};
use super::rfc8289;

pub(super) const OF_2012: Variant = Variant {
    learns: true,
    recall: |last| (last.count > 1 && (last.left_within)(16.0)).then(|| last.count - 1),
    ..rfc8289::FORM
};

pub(super) const OF_2013: Variant = Variant {
    learns: true,
    shorter_wait: Some(8.0),
    counts: DropCounting::IfNextIsLate,
    recall: recalled,
    ..rfc8289::FORM
};

/// Two less, and a high count decays, but in a bucket of sfqCoDel.
fn recalled(last: &Recall<'_>) -> Option<u32> {
    (last.count > 2 && (last.left_within)(8.0)).then(|| match last.count - 2 {
        high if high > 126 && !last.bucket => (0.9844 * f64::from(high + 2)) as u32,
        low => low,
    })
}
