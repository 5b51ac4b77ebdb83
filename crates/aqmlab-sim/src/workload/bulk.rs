//! Bulk transfers, as by FTP: each flow of the group sends `size` bytes, or
//! without end, from `start` on. What there is to say stands in the group.

use aqmlab_core::{Stream, params};

use super::Workload;
use crate::workload::app::App;

params! {
    /// Bulk transfers.
    pub struct BulkParams {
    }
}

impl Workload for BulkParams {
    const NAME: &'static str = "bulk";
    const SUMMARY: &'static str = "Greedy flows, of the group's `size` or without end";
    const HAS_APP: bool = false;
    fn app(&self, _streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        None
    }
}
